/*
 * Shares of a device: acs_share_find, and the share that a launch gets. Runs on callers' threads. It asks the backend once
 * for each share and remembers the answer; it takes no lock, and never chooses a stream.
 */
#include "api/draft.h"

#include <stdio.h>
#include <string.h>

enum { PERCENT_ALL = 100 };

/*
 * What acs_context.shares knows of a share.
 *
 * S  learn_share: store with release what the backend answered; acs_share_set: load acquire. Broken: a thread that issues
 *    the op finds a part of what the backend has prepared for the share.
 */
enum { SHARE_NOT_ASKED, SHARE_KNOWN, SHARE_IGNORED };

/* Without partitions a launch gets all that the device has. */
static void fill_whole(acs_context *context, uint32_t device, acs_share_info *info)
{
    acs_backend *backend = context->backend;
    acs_capacity capacity = {0};
    if (backend->ops->capacity && backend->ops->capacity(backend, device, &capacity) == ACS_OK)
        info->device_sms = (uint32_t)capacity.sms;
    info->sms = info->device_sms;
    info->places = 1;
    snprintf(info->reason, sizeof info->reason, "this backend has no multiprocessors to divide");
}

static acs_status find_share(acs_context *context, uint32_t device, uint32_t percent, acs_share_info *info)
{
    acs_backend *backend = context->backend;
    acs_share_info found = {.size = sizeof found};
    if (!backend->ops->share_find)
        fill_whole(context, device, &found);
    else
        ACS_TRY(backend->ops->share_find(backend, device, percent, &found));
    *info = found;
    return ACS_OK;
}

acs_status acs_share_find(acs_context *context, uint32_t device, uint32_t percent, acs_share_info *info)
{
    if (!info || info->size != sizeof *info)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_share_find: info %p, size %zu instead of %zu", (void *)info,
                        info ? info->size : 0, sizeof *info);
    if (percent < 1 || percent > PERCENT_ALL)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_share_find: a share of %u percent; 1 to %d are possible", percent,
                        PERCENT_ALL);
    ACS_ENTER(context);
    if (device >= context->backend->devices)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_share_find: there is no device %u; the context has %u", device,
                        context->backend->devices);
    return find_share(context, device, percent, info);
}

/* A share on all devices: a launch may go to any of them. Failures of the device are the ops' to report. */
static uint8_t learn_share(acs_context *context, uint32_t percent)
{
    acs_share_info info = {.step_sms = 1};
    const acs_error before = *acs_error_thread();
    for (uint32_t d = 0; d < context->backend->devices && info.step_sms; d++)
        if (find_share(context, d, percent, &info) != ACS_OK) {
            snprintf(info.reason, sizeof info.reason, "%.120s", acs_error_thread()->text);
            info.step_sms = 0;
        }
    *acs_error_thread() = before;
    const uint8_t state = info.step_sms ? SHARE_KNOWN : SHARE_IGNORED;
    atomic_store_explicit(&context->shares[percent], state, memory_order_release); /* S */
    /* Relaxed: nothing is published with it. */
    if (state == SHARE_IGNORED && !atomic_exchange_explicit(&context->shares_told, true, memory_order_relaxed))
        acs_log(ACS_LOG_INFO, "launches with a share get the whole device: %s", info.reason);
    return state;
}

acs_status acs_share_set(const acs_draft *draft, uint32_t percent)
{
    acs_context *context = draft->context;
    acs_record *record = draft->record;
    if (percent == UINT8_MAX) /* what acs_make_share makes of any number that is none */
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': ACS_SHARE: a share is 1 to %d percent of the device",
                        acs_draft_name(draft), PERCENT_ALL);
    if (percent > PERCENT_ALL)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': ACS_SHARE: a share of %u percent; 1 to %d are possible",
                        acs_draft_name(draft), percent, PERCENT_ALL);
    record->u.launch.attributes.share = 0;
    if (percent == PERCENT_ALL)
        return ACS_OK;
    uint8_t state = SHARE_IGNORED;
    if (!draft->captured && !draft->decision) {
        state = atomic_load_explicit(&context->shares[percent], memory_order_acquire); /* S */
        state = ACS_UNLIKELY(state == SHARE_NOT_ASKED) ? learn_share(context, percent) : state;
    }
    if (state == SHARE_IGNORED) {
        atomic_fetch_add_explicit(&context->shares_ignored, 1, memory_order_relaxed); /* a counter */
        return ACS_OK;
    }
    record->u.launch.attributes.share = (uint8_t)percent;
    record->flags |= ACS_RECORD_SHARE;
    return ACS_OK;
}

/*
 * Between the pools of a context and the ledger of all programs (see admission.h). What a group took or waited for is a
 * credit of its thread, which the next growths draw on; whatever else pools ask for is taken from the ledger, or not
 * there.
 */
#include "groups/admission.h"
#include "api/threads.h"

#include "base/inside.h"
#include "groups/group_schedule.h"
#include "residency/device_choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 2 << 20 }; /* by which devices give memory */

/* What this thread may take before anybody else: it submits one group at a time, and ends this before the next. */
static _Thread_local struct {
    const acs_context *context;
    uint32_t device;
    uint64_t bytes;
} tl_credit;

static acs_status left(void *user, uint32_t device, uint64_t *bytes)
{
    acs_backend *backend = ((acs_context *)user)->backend;
    char id[64];
    uint64_t total;
    return backend->ops->memory_state(backend, device, id, &total, bytes);
}

/* Who waits is the one that steps where there are no workers. What lies idle goes, whatever other threads do. */
static bool busy(void *user)
{
    acs_context *context = user;
    while (acs_context_unattended(context) && acs_context_step(context))
        continue;
    acs_admission_idle(context);
    return acs_fifo_ready(context->core.fifo) || acs_core_look(&context->core) != ACS_LOAD_NONE;
}

static bool ended(void *user)
{
    return acs_context_is_lost(user);
}

/* "on", "/name" or "/name:bytes". */
static acs_status parse(const char *text, char name[ACS_OPTION_TEXT_BYTES], uint64_t *most)
{
    const char *colon = strchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *most = UINT64_MAX;
    if (strcmp(text, "on") == 0) {
        memcpy(name, "/acs", 5);
        return ACS_OK;
    }
    if (colon) {
        char *end = NULL;
        errno = 0;
        *most = strtoull(colon + 1, &end, 10);
        if (colon[1] < '0' || colon[1] > '9' || *end || errno || *most == 0)
            return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_LEDGER is \"%s\": '%s' is no number of bytes", text, colon + 1);
    }
    if (*text != '/')
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_LEDGER is \"%s\", not off, on, or /name[:bytes]", text);
    memcpy(name, text, length);
    name[length] = '\0';
    return ACS_OK;
}

static acs_status join(acs_context *context, uint32_t device, const char *name, uint64_t most)
{
    acs_backend *backend = context->backend;
    char id[64];
    uint64_t total = 0, free_bytes = 0;
    ACS_TRY(backend->ops->memory_state(backend, device, id, &total, &free_bytes));
    const acs_ledger_config config = {.name = name, .device = id, .total = total < most ? total : most, .number = device,
                                      .user = context, .left = left, .busy = busy, .ended = ended};
    ACS_TRY(acs_ledger_open(&config, &context->ledgers[device]));
    acs_context_add_mode(context, ACS_MODE_LEDGER);
    return ACS_OK;
}

acs_status acs_admission_open(acs_context *context)
{
    const char *text = context->options.ledger;
    char name[ACS_OPTION_TEXT_BYTES];
    uint64_t most = 0;
    if (!*text || strcmp(text, "off") == 0)
        return ACS_OK;
    ACS_TRY(parse(text, name, &most));
    if (context->device_choice && context->device_choice->topology.shared)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_LEDGER is \"%s\": it knows no parts of GPUs, but devices share one "
                        "(ACS_DEVICES_PER_GPU=%d)", text, (int)context->options.devices_per_gpu);
    for (uint32_t d = 0; d < context->backend->devices; d++)
        ACS_TRY(join(context, d, name, most));
    return ACS_OK;
}

void acs_admission_close(acs_context *context)
{
    for (uint32_t d = 0; d < ACS_DEVICES_MOST; d++) {
        acs_ledger_close(context->ledgers[d]);
        context->ledgers[d] = NULL;
    }
}

/* ----------------------------------------------------------------------------------------------- what the pools ask */

static acs_ledger *ledger_of(const acs_context *context, int kind)
{
    return context->ledgers[acs_memory_device(kind)];
}

static acs_status admit(void *user, int kind, uint64_t bytes)
{
    const bool has = tl_credit.context == user && tl_credit.device == acs_memory_device(kind);
    const uint64_t drawn = !has ? 0 : bytes < tl_credit.bytes ? bytes : tl_credit.bytes;
    acs_status status = bytes > drawn ? acs_ledger_take(ledger_of(user, kind), bytes - drawn) : ACS_OK;
    if (status != ACS_OK)
        return ACS_NOT_READY;
    tl_credit.bytes -= drawn;
    return ACS_OK;
}

static void came(void *user, int kind, uint64_t bytes)
{
    acs_ledger_obtained(ledger_of(user, kind), bytes);
}

static void returned(void *user, int kind, uint64_t bytes, uint64_t that_came)
{
    acs_ledger_give(ledger_of(user, kind), bytes, that_came);
}

/* For an error of the pools. */
static void describe(void *user, int kind, char *text, size_t bytes)
{
    uint64_t room = 0;
    acs_demand others = {0};
    bool awaited = false;
    const acs_error before = *acs_error_thread();
    if (acs_ledger_look(ledger_of(user, kind), &room, &others, &awaited) == ACS_OK)
        (void)snprintf(text, bytes, "; of the ledger's %llu other programs reserve %llu, and %llu are left%s",
                       (unsigned long long)acs_ledger_total(ledger_of(user, kind)), (unsigned long long)others.memory,
                       (unsigned long long)room, awaited ? ", for which a group waits" : "");
    else
        (void)snprintf(text, bytes, "; %s", acs_error_thread()->text);
    *acs_error_thread() = before;
}

void acs_admission_config(acs_context *context, acs_memory_config *config)
{
    if (!acs_admission_on(context))
        return;
    config->admit = admit;
    config->came = came;
    config->returned = returned;
    config->describe = describe;
}

/* ----------------------------------------------------------------------------------------------------------- groups */

static uint64_t rounded(uint64_t bytes)
{
    return bytes > UINT64_MAX - PAGE_BYTES ? bytes : (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static void give_credit(const acs_context *context, uint32_t device, uint64_t bytes)
{
    tl_credit.context = context;
    tl_credit.device = device;
    tl_credit.bytes = bytes;
}

acs_status acs_admission_take(acs_context *context, uint32_t device, uint64_t bytes)
{
    if (bytes == 0)
        return ACS_OK;
    acs_status status = acs_ledger_take(context->ledgers[device], rounded(bytes));
    if (status == ACS_OK)
        give_credit(context, device, rounded(bytes));
    return status;
}

acs_status acs_admission_wait(acs_context *context, uint32_t devices, uint64_t bytes, uint32_t *device)
{
    acs_status status = acs_ledger_wait_any(context->ledgers, context->backend->devices, devices, rounded(bytes), device);
    if (status == ACS_OK)
        give_credit(context, *device, rounded(bytes));
    return status;
}

void acs_admission_end(acs_context *context)
{
    if (tl_credit.context == context)
        acs_ledger_give(context->ledgers[tl_credit.device], tl_credit.bytes, 0);
    give_credit(NULL, 0, 0);
}

bool acs_admission_pass(acs_context *context, uint32_t device)
{
    return acs_ledger_pass(context->ledgers[device]) != ACS_NOT_READY; /* no answer shows when memory is taken */
}

acs_status acs_admission_give_way(acs_context *context, uint32_t devices)
{
    for (uint32_t d = 0; d < context->backend->devices; d++)
        if (devices >> d & 1)
            ACS_TRY(acs_ledger_give_way(context->ledgers[d]));
    return ACS_OK;
}

void acs_admission_kept(acs_context *context, int kind)
{
    if (acs_admission_on(context) && context->group_schedule && acs_memory_is_device(kind))
        acs_group_schedule_kept(context, acs_memory_device(kind));
}

void acs_admission_reclaim(acs_context *context, uint32_t devices)
{
    if (!acs_admission_on(context) || acs_context_is_lost(context)) /* it may wait for an op that never ends */
        return;
    const acs_error before = *acs_error_thread(); /* what is not given back stays: no error of whoever is idle */
    for (uint32_t d = 0; d < context->backend->devices; d++)
        if (devices >> d & 1)
            (void)acs_memory_trim(context->memory, acs_memory_kind(d), 0);
    *acs_error_thread() = before;
}

void acs_admission_idle(acs_context *context)
{
    acs_admission_reclaim(context, UINT32_MAX);
    if (acs_admission_on(context) && context->group_schedule && !acs_context_is_lost(context))
        acs_group_schedule_rest(context);
}

void acs_admission_rest(acs_context *context)
{
    if (!acs_admission_on(context) || acs_fifo_ready(context->core.fifo) || acs_core_look(&context->core) != ACS_LOAD_NONE)
        return;
    ACS_NOT_CANCELLED;
    acs_admission_idle(context);
}

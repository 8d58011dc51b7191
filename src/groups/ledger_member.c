/*
 * A context as a member of the ledger (see ledger_member.h): it joins when it is opened, leaves when it is closed, and gives
 * back what lies idle in its pools. Called by the parts of the library, and by the ledger while a group waits for other
 * programs.
 */
#include "groups/ledger_member.h"

#include "api/threads.h"
#include "base/inside.h"
#include "groups/admission.h"
#include "groups/group_schedule.h"
#include "residency/device_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------------- give back */

void acs_ledger_member_kept(acs_context *context, int kind)
{
    if (acs_admission_on(context) && context->group_schedule && acs_memory_is_device(kind))
        acs_group_schedule_kept(context, acs_memory_device(kind));
}

void acs_ledger_member_give_back(acs_context *context)
{
    acs_admission_reclaim(context, UINT32_MAX);
    if (acs_admission_on(context) && context->group_schedule && !acs_context_is_lost(context))
        acs_group_schedule_gave_back(context);
}

void acs_ledger_member_give_back_if_idle(acs_context *context)
{
    if (!acs_admission_on(context) || acs_fifo_ready(context->core.fifo) || acs_core_look(&context->core) != ACS_LOAD_NONE)
        return;
    ACS_NOT_CANCELLED;
    acs_ledger_member_give_back(context);
}

/* ------------------------------------------------------------------------------------------------------ join, leave */

static acs_status memory_left(void *user, uint32_t device, uint64_t *bytes)
{
    acs_backend *backend = ((acs_context *)user)->backend;
    char id[64];
    uint64_t total;
    return backend->ops->memory_state(backend, device, id, &total, bytes);
}

/*
 * Called while a thread of the context waits for other programs. Without workers that thread steps the core; idle memory
 * goes back, whatever other threads do. True: some ops have not ended.
 */
static bool step_and_give_back(void *user)
{
    acs_context *context = user;
    while (acs_workers_asleep(context) && acs_context_step(context))
        continue;
    acs_ledger_member_give_back(context);
    return acs_fifo_ready(context->core.fifo) || acs_core_look(&context->core) != ACS_LOAD_NONE;
}

static bool is_device_lost(void *user)
{
    return acs_context_is_lost(user);
}

/* Parse "on", "/name" or "/name:bytes". */
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

static acs_status join_device(acs_context *context, uint32_t device, const char *name, uint64_t most)
{
    acs_backend *backend = context->backend;
    char id[64];
    uint64_t total = 0, free_bytes = 0;
    ACS_TRY(backend->ops->memory_state(backend, device, id, &total, &free_bytes));
    const acs_ledger_config config = {.name = name, .device = id, .total = total < most ? total : most, .number = device,
                                      .user = context, .left = memory_left, .give_back = step_and_give_back,
                                      .ended = is_device_lost};
    ACS_TRY(acs_ledger_open(&config, &context->ledgers[device]));
    acs_context_add_mode(context, ACS_MODE_LEDGER);
    return ACS_OK;
}

acs_status acs_ledger_member_join(acs_context *context)
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
        ACS_TRY(join_device(context, d, name, most));
    return ACS_OK;
}

void acs_ledger_member_leave(acs_context *context)
{
    for (uint32_t d = 0; d < ACS_DEVICES_MOST; d++) {
        acs_ledger_close(context->ledgers[d]);
        context->ledgers[d] = NULL;
    }
}

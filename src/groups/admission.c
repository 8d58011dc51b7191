/*
 * Memory out of the ledger of all programs (see admission.h): for the pools of a context, which ask whenever they grow, and
 * for its groups. What a group took or waited for is a credit of its thread, which the next growths of the pools draw on.
 * Without a credit a growth takes its bytes from the ledger, or is refused.
 */
#include "groups/admission.h"

#include <stdio.h>

enum { PAGE_BYTES = 2 << 20 }; /* unit by which devices give memory */

/* Bytes that this thread may draw on. It submits one group at a time, and ends this credit before the next. */
static _Thread_local struct {
    const acs_context *context;
    uint32_t device;
    uint64_t bytes;
} tl_credit;

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

/* Describe the ledger for an error of the pools. */
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

bool acs_admission_try_overtake(acs_context *context, uint32_t device)
{
    return acs_ledger_try_overtake(context->ledgers[device]) != ACS_NOT_READY; /* an error shows when memory is taken */
}

acs_status acs_admission_give_way(acs_context *context, uint32_t devices)
{
    for (uint32_t d = 0; d < context->backend->devices; d++)
        if (devices >> d & 1)
            ACS_TRY(acs_ledger_give_way(context->ledgers[d]));
    return ACS_OK;
}

void acs_admission_reclaim(acs_context *context, uint32_t devices)
{
    /* Giving memory back may wait for an op that never ends. */
    if (!acs_admission_on(context) || acs_context_is_lost(context))
        return;
    /* Memory that cannot be given back stays, and is no error of the caller. */
    const acs_error before = *acs_error_thread();
    for (uint32_t d = 0; d < context->backend->devices; d++)
        if (devices >> d & 1)
            (void)acs_memory_trim(context->memory, acs_memory_kind(d), 0);
    *acs_error_thread() = before;
}

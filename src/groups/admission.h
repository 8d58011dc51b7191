/*
 * Admission of memory by the ledger (ACS_LEDGER), by which programs share devices: pools ask it whenever they grow, and
 * groups wait for it. Private to src/groups.
 */
#ifndef ACS_ADMISSION_H
#define ACS_ADMISSION_H

#include "api/context.h"

/* Let the pools ask the ledger. */
void acs_admission_config(acs_context *context, acs_memory_config *config);

static inline bool acs_admission_on(const acs_context *context)
{
    return context->ledgers[0] != NULL;
}

/*
 * For a group: take bytes of a device that only this thread may then draw on. It has to call acs_admission_end before
 * the next call, whether it drew on them or not. ACS_NOT_READY: they are not there; ACS_ERR_STATE as acs_ledger_take.
 */
acs_status acs_admission_take(acs_context *context, uint32_t device, uint64_t bytes);
/*
 * The same, but wait for the context's own ops, then until other programs leave as much on one of these devices (a bit
 * for each). ACS_ERR_MEMORY: they never will; ACS_ERR_STATE, ACS_ERR_DEVICE as acs_ledger_wait.
 */
acs_status acs_admission_wait(acs_context *context, uint32_t devices, uint64_t bytes, uint32_t *device);
void acs_admission_end(acs_context *context);
/*
 * A group is about to use memory of a device again that the pools have. False: other programs come first, as
 * acs_ledger_try_overtake says.
 */
bool acs_admission_try_overtake(acs_context *context, uint32_t device);
/* On each of these devices (a bit for each): acs_ledger_give_way. Errors as there. */
acs_status acs_admission_give_way(acs_context *context, uint32_t devices);
/* Give what lies idle in the pools of these devices (a bit for each) to other programs. */
void acs_admission_reclaim(acs_context *context, uint32_t devices);

#endif

/*
 * Room for blocks (room.c): memory out of the pools, or memory that other blocks give up. Private to src/residency and
 * src/groups.
 */
#ifndef ACS_ROOM_H
#define ACS_ROOM_H

#include "api/draft.h"

/* Make room in a device's memory by other means than waiting. False: there is none. */
typedef bool (*acs_room_fn)(acs_context *context, uint32_t device);
/*
 * Take a block. Waits for freed blocks, then spills (not for pinned memory), as long as either helps. Errors as
 * acs_memory_take.
 */
acs_status acs_room_find(acs_context *context, acs_memory_request request, acs_room_fn spill, acs_block *block);
/*
 * Wait for quarantined blocks, one after the other: blocks that were freed before the call are free then, whatever other
 * ops still run.
 */
void acs_room_wait_quarantine(acs_context *context, int kind);

/* Begin an op of the library's own that does nothing. False: as acs_draft_begin. */
bool acs_room_begin_observe(acs_draft *draft, acs_context *context, const acs_site *site);
/* Give the draft's record one segment, which is the block. */
acs_status acs_room_name_block(acs_draft *draft, void *ptr, size_t bytes);
/* ACS_ERR_DEVICE: the device is lost. E: acquire; seeing that implies seeing its error in `failures`. */
static inline acs_status acs_room_check_alive(const acs_context *context)
{
    if (acs_context_is_lost(context))
        return ACS_FAIL(ACS_ERR_DEVICE, 0, "the device is lost; see acs_context_error");
    return ACS_OK;
}

#endif

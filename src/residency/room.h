/*
 * Room for blocks (room.c): memory out of the pools, or out of what other blocks give up. Private to the modules above
 * src/api.
 */
#ifndef ACS_ROOM_H
#define ACS_ROOM_H

#include "api/context.h"

/* Make room in a device's memory by other means than waiting. False: there is none. */
typedef bool (*acs_room_fn)(acs_context *context, uint32_t device);
/* A block; waits for blocks that were freed, then (not for pinned memory) spills, as long as either helps. Errors as
   acs_memory_take. */
acs_status acs_room_find(acs_context *context, acs_memory_request request, acs_room_fn spill, acs_block *block);
/* What rests is waited for, block by block: what was freed before the call lies idle then, whatever else runs on. */
void acs_room_wait_quarantine(acs_context *context, int kind);

/* Begin an op of the library's own that does nothing. False: as acs_draft_begin. */
bool acs_room_begin_observe(acs_draft *draft, acs_context *context, const acs_site *site);
/* Give the draft's record one segment, which is the block. */
acs_status acs_room_name_block(acs_draft *draft, void *ptr, size_t bytes);
/* ACS_ERR_DEVICE: the device is lost. */
acs_status acs_room_check_alive(const acs_context *context);

#endif

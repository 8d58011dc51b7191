/*
 * Room for blocks, and the lives of memory that is handed out again (malloc.c). Private to the modules above src/api.
 */
#ifndef ACS_MALLOC_H
#define ACS_MALLOC_H

#include "api/context.h"
#include "api/draft.h"

/* Make room in a device's memory by other means than waiting. False: there is none. */
typedef bool (*acs_room_fn)(acs_context *context, uint32_t device);
/* A block; waits for blocks that were freed, then (not for pinned memory) spills, as long as either helps. Errors as
   acs_memory_take. */
acs_status acs_memory_find_room(acs_context *context, acs_memory_request request, acs_room_fn spill, acs_block *block);
/* What rests is waited for, block by block: what was freed before the call lies idle then, whatever else runs on. */
void acs_memory_wait_rests(acs_context *context, int kind);
/* Later ops on the block come behind those of its former life, and do not inherit their failures. ACS_ERR_MEMORY. */
acs_status acs_memory_begin_life(acs_context *context, const acs_block *block);
/* Memory that ops may use begins a new life (acs_reuse) with the next op that is queued. ACS_ERR_MEMORY. */
acs_status acs_reuse_add(acs_context *context, uint64_t base, uint64_t bytes);
/* An op is about to be queued: it takes what was added (ACS_RECORD_REUSES). Then it was queued, or that goes back. */
void acs_reuse_attach(acs_draft *draft);
void acs_reuse_queued(acs_draft *draft);
void acs_reuse_put_back(acs_draft *draft);

#endif

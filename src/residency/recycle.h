/*
 * Recycled memory (recycle.c): a block that is handed out again while ops of its former life may still run. Private to
 * src/residency, src/groups and src/library.
 */
#ifndef ACS_RECYCLE_H
#define ACS_RECYCLE_H

#include "api/draft.h"

/* Memory that ops may still use begins a new life (acs_reuse) with the next op that is queued. ACS_ERR_MEMORY. */
acs_status acs_recycle_add(acs_context *context, uint64_t base, uint64_t bytes);
/*
 * Begin the life of a block that was taken: later ops on it come behind those of its former life, and do not inherit
 * their failures. ACS_ERR_MEMORY.
 */
static inline acs_status acs_recycle_begin_life(acs_context *context, const acs_block *block)
{
    if (block->behind)
        return acs_recycle_add(context, block->range->base, block->range->bytes);
    acs_core_forget_block(&context->core, (uint64_t)(uintptr_t)block->ptr, block->bytes);
    return ACS_OK;
}
/*
 * An op is about to be queued: its record takes the listed ranges (ACS_RECORD_REUSES). Afterwards it was queued, or the
 * ranges go back into the list.
 */
void acs_recycle_attach(acs_draft *draft);
void acs_recycle_queued(acs_draft *draft);
void acs_recycle_put_back(acs_draft *draft);

#endif

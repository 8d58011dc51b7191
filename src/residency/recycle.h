/*
 * Recycled memory (recycle.c): a block that is handed out again while ops of its former life may still run. Private to the
 * modules above src/api.
 */
#ifndef ACS_RECYCLE_H
#define ACS_RECYCLE_H

#include "api/context.h"

/* Later ops on the block come behind those of its former life, and do not inherit their failures. ACS_ERR_MEMORY. */
acs_status acs_recycle_begin_life(acs_context *context, const acs_block *block);
/* Memory that ops may use begins a new life (acs_reuse) with the next op that is queued. ACS_ERR_MEMORY. */
acs_status acs_recycle_add(acs_context *context, uint64_t base, uint64_t bytes);
/* An op is about to be queued: it takes what was added (ACS_RECORD_REUSES). Then it was queued, or that goes back. */
void acs_recycle_attach(acs_draft *draft);
void acs_recycle_queued(acs_draft *draft);
void acs_recycle_put_back(acs_draft *draft);

#endif

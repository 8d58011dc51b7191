/*
 * Program order for one thread alone. Where ops are put around the program's own (ACS_CHECK=written), no op of another
 * thread may come between them. So each thread has program order to itself from where it begins an op to where that is
 * queued or dropped, and over ops that belong together. Contexts that were not opened with acs_order_open have no such lock,
 * and these calls do nothing.
 */
#ifndef ACS_PROGRAM_ORDER_H
#define ACS_PROGRAM_ORDER_H

#include "api/draft.h"

/* ACS_ERR_MEMORY. */
acs_status acs_order_open(acs_context *context);
void acs_order_close(acs_context *context);

/* The lock is recursive. That of blocks whose contents move comes behind it, and is held while ops are queued. */
static inline void acs_order_lock(acs_context *context)
{
    if (ACS_UNLIKELY(context->order != NULL))
        pthread_mutex_lock(context->order);
}

static inline void acs_order_unlock(acs_context *context)
{
    if (ACS_UNLIKELY(context->order != NULL))
        pthread_mutex_unlock(context->order);
}

/* From where a draft begins to where it is queued or dropped. */
static inline void acs_order_enter(acs_draft *draft)
{
    acs_order_lock(draft->context);
    draft->alone = draft->context->order != NULL;
}

static inline void acs_order_leave(acs_draft *draft)
{
    if (draft->alone)
        acs_order_unlock(draft->context);
    draft->alone = false;
}

#endif

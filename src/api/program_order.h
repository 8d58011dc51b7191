/*
 * The lock of program order. ACS_CHECK=writes, reads and all put ops of their own around the program's, and no op of
 * another thread may come between them. So a thread holds this lock while it has a draft, and over ops that belong
 * together. Contexts without acs_order_open have no such lock; for them these calls do nothing.
 */
#ifndef ACS_PROGRAM_ORDER_H
#define ACS_PROGRAM_ORDER_H

#include "api/draft.h"

/* Make the lock. ACS_ERR_MEMORY: there is none. */
acs_status acs_order_open(acs_context *context);
void acs_order_close(acs_context *context);

/* The lock is recursive. It is taken before the lock of blocks whose contents move, and held while ops are queued. */
static inline void acs_order_lock(acs_context *context)
{
    if (ACS_UNLIKELY(context->order != NULL))
        acs_lock_acquire(context->order);
}

/* Take it if that needs no wait. False: another thread has it. */
static inline bool acs_order_try(acs_context *context)
{
    return ACS_LIKELY(context->order == NULL) || acs_lock_try(context->order);
}

static inline void acs_order_unlock(acs_context *context)
{
    if (ACS_UNLIKELY(context->order != NULL))
        acs_lock_release(context->order);
}

/* A draft begins: take the lock, until acs_order_leave when the draft is queued or dropped. */
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

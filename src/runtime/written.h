/*
 * ACS_CHECK=written: do kernels write all bytes of their out segments? Private to src/runtime.
 */
#ifndef ACS_WRITTEN_H
#define ACS_WRITTEN_H

#include "runtime/context.h"

/*
 * acs_launch, with ops before and behind it that fill each out segment with bytes that no kernel writes by chance, and look
 * for what is left of them; returns when they have looked. Not for launches that may not wait, are held or captured, may
 * touch anything, or have more segments than are looked at: those go as they are.
 */
acs_op acs_written_launch(acs_context *context, const acs_launch_params *params);

/*
 * Between a fill and its kernel no op of another thread may come, which would read what was made up. So with this check
 * each thread has program order to itself from where it begins an op to where that is queued or dropped, and over the fills
 * and the kernel together. Does nothing without the check.
 */
void acs_written_lock(acs_context *context);
void acs_written_unlock(acs_context *context);

/* The lock of movable blocks comes behind it, and is held while ops are queued. */
static inline void acs_written_order(acs_context *context)
{
    if (ACS_UNLIKELY(context->written != NULL))
        acs_written_lock(context);
}

static inline void acs_written_order_end(acs_context *context)
{
    if (ACS_UNLIKELY(context->written != NULL))
        acs_written_unlock(context);
}

static inline void acs_written_enter(acs_draft *draft)
{
    acs_written_order(draft->context);
    draft->alone = draft->context->written != NULL;
}

static inline void acs_written_leave(acs_draft *draft)
{
    if (draft->alone)
        acs_written_unlock(draft->context);
    draft->alone = false;
}

/* With the check: the lock, and ACS_MODE_CHECK. ACS_ERR_MEMORY. */
acs_status acs_written_open(acs_context *context);
void acs_written_close(acs_context *context);

#endif

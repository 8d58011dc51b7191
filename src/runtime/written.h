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
    if (ACS_UNLIKELY(context->options.check == ACS_CHECK_WRITTEN))
        acs_written_lock(context);
}

static inline void acs_written_order_end(acs_context *context)
{
    if (ACS_UNLIKELY(context->options.check == ACS_CHECK_WRITTEN))
        acs_written_unlock(context);
}

static inline void acs_written_enter(acs_draft *draft)
{
    if (ACS_LIKELY(draft->context->options.check != ACS_CHECK_WRITTEN))
        return;
    acs_written_lock(draft->context);
    draft->alone = true;
}

static inline void acs_written_leave(acs_draft *draft)
{
    if (ACS_LIKELY(!draft->alone))
        return;
    draft->alone = false;
    acs_written_unlock(draft->context);
}

/* launch.c */
/* acs_launch as it is. */
acs_op acs_launch_unchecked(acs_context *context, const acs_launch_params *params);
/* Its first half. The record holds the call, and its segments are those that the program named. False: refused. */
bool acs_launch_fill(acs_draft *draft, const acs_launch_params *params);
/*
 * Its second half, before acs_draft_queue. The op has its memory, and the backend takes it. False: refused, nothing is
 * queued but copies that bring lazy blocks back.
 */
bool acs_launch_bind(acs_draft *draft);

#endif

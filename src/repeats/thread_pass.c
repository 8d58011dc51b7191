/* The pass that the calling thread is in. Set by repeat.c. */
#include "repeats/repeat_internal.h"

static _Thread_local acs_thread_pass tl_pass;

acs_thread_pass *acs_thread_pass_get(void)
{
    return &tl_pass;
}

acs_repeat *acs_thread_pass_in(const acs_context *context)
{
    return tl_pass.context == context && tl_pass.opened_ns == context->opened_ns ? tl_pass.repeat : NULL;
}

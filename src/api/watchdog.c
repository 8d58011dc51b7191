/*
 * The watchdog of a context (ACS_WATCHDOG_S): decides when a thread looks for ops that do not end, and wakes all
 * threads when ops were given up. scheduler/overdue.c decides which op is overdue. Has no thread and no clock of its
 * own: threads call it when they find nothing to do, or when they wake from a nap while ops are out.
 */
#include "api/watchdog.h"

#include "api/threads.h"
#include "base/tuning.h"

#include <errno.h>

bool acs_watchdog_look(acs_context *context, uint64_t now_ns)
{
    uint64_t limit_ns = context->core.overdue.limit_ns; /* constant since acs_open */
    if (ACS_LIKELY(limit_ns == 0))
        return false;
    /* Relaxed, both: missing another thread's look costs one more look, and the core's lock orders the results. */
    uint64_t next = atomic_load_explicit(&context->next_look_ns, memory_order_relaxed);
    if (now_ns < next ||
        !atomic_compare_exchange_strong_explicit(&context->next_look_ns, &next, now_ns + limit_ns / TUNE_WATCHDOG_LOOKS,
                                                 memory_order_relaxed, memory_order_relaxed))
        return false;
    if (ACS_LIKELY(!acs_core_overdue(&context->core, now_ns)))
        return false;
    if (acs_core_left(&context->core) > 0)
        acs_host_thread_give_up(context);
    acs_eventcount_notify(&context->ends);
    acs_eventcount_notify(&context->work);
    acs_eventcount_notify(&context->host_work);
    return true;
}

bool acs_watchdog_look_now(acs_context *context)
{
    if (ACS_LIKELY(context->core.overdue.limit_ns == 0) || context->stepper)
        return false;
    return acs_watchdog_look(context, acs_clock_ns());
}

uint64_t acs_watchdog_nap_us(acs_context *context)
{
    uint64_t nap_us = context->core.overdue.limit_ns / TUNE_WATCHDOG_LOOKS / 1000;
    if (context->core.overdue.limit_ns == 0)
        return 0;
    return nap_us > TUNE_WATCHDOG_NAP_LEAST_US ? nap_us : TUNE_WATCHDOG_NAP_LEAST_US;
}

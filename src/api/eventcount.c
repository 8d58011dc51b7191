/*
 * Eventcounts (eventcount.h). Called by threads.c and by every thread that has news. Knows nothing of ops. Blocks only
 * in acs_eventcount_wait.
 *
 * A: a waiter increments `waiters`, passes a fence and looks for news; a notifier writes news, passes a fence and loads
 * `waiters`. Both fences are sequentially consistent: either the notifier sees the waiter, or the waiter sees the news.
 * Broken: a waiter sleeps on.
 */
#include "api/eventcount.h"

int acs_eventcount_init(acs_eventcount *eventcount)
{
    int error = acs_lock_init(&eventcount->lock, ACS_RANK_SLEEP);
    if (error)
        return error;
    error = acs_cond_init(&eventcount->cond);
    if (error)
        acs_lock_fini(&eventcount->lock);
    return error;
}

void acs_eventcount_fini(acs_eventcount *eventcount)
{
    acs_cond_fini(&eventcount->cond);
    acs_lock_fini(&eventcount->lock);
}

uint64_t acs_eventcount_prepare_wait(acs_eventcount *eventcount)
{
    acs_lock_acquire(&eventcount->lock);
    uint64_t epoch = eventcount->epoch;
    acs_lock_release(&eventcount->lock);
    atomic_fetch_add_explicit(&eventcount->waiters, 1, memory_order_seq_cst); /* A */
    atomic_thread_fence(memory_order_seq_cst);                                /* A */
    return epoch;
}

void acs_eventcount_wait(acs_eventcount *eventcount, uint64_t epoch, uint64_t timeout_us)
{
    acs_lock_acquire(&eventcount->lock);
    bool in_time = true;
    while (eventcount->epoch == epoch && in_time) {
        if (timeout_us)
            in_time = acs_cond_wait_us(&eventcount->cond, &eventcount->lock, timeout_us);
        else
            acs_cond_wait(&eventcount->cond, &eventcount->lock);
    }
    acs_lock_release(&eventcount->lock);
}

void acs_eventcount_cancel_wait(acs_eventcount *eventcount)
{
    atomic_fetch_sub_explicit(&eventcount->waiters, 1, memory_order_relaxed); /* seen late: a needless notification */
}

uint32_t acs_eventcount_waiters(acs_eventcount *eventcount)
{
    atomic_thread_fence(memory_order_seq_cst);                               /* A */
    return atomic_load_explicit(&eventcount->waiters, memory_order_relaxed); /* A: ordered by the fence */
}

void acs_eventcount_notify(acs_eventcount *eventcount)
{
    if (acs_eventcount_waiters(eventcount) == 0)
        return;
    acs_lock_acquire(&eventcount->lock);
    eventcount->epoch++;
    acs_cond_broadcast(&eventcount->cond);
    acs_lock_release(&eventcount->lock);
}

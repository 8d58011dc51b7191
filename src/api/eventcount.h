/*
 * An eventcount: threads sleep on it until another thread has news for them. A waiter calls
 * acs_eventcount_prepare_wait, looks once more for its news, and then sleeps. A notifier makes its news visible first,
 * and then calls acs_eventcount_notify. One of the two sees the other, so no news is lost. A notification without
 * waiters costs a fence and a load.
 */
#ifndef ACS_EVENTCOUNT_H
#define ACS_EVENTCOUNT_H

#include "base/lock.h"

#include <stdatomic.h>

typedef struct acs_eventcount {
    _Atomic(uint32_t) waiters;  /* threads between prepare_wait and cancel_wait */
    acs_lock lock;              /* rank SLEEP; guards epoch */
    acs_cond cond;
    uint64_t epoch; /* number of notifications */
} acs_eventcount;

/* 0, or an errno. */
int acs_eventcount_init(acs_eventcount *eventcount);
void acs_eventcount_fini(acs_eventcount *eventcount);
/* @return the epoch for acs_eventcount_wait. The caller then looks for its news again. */
uint64_t acs_eventcount_prepare_wait(acs_eventcount *eventcount);
/* Sleep until a notification after prepare_wait, or for `timeout_us` microseconds (0: without limit). */
void acs_eventcount_wait(acs_eventcount *eventcount, uint64_t epoch, uint64_t timeout_us);
/* The thread waits no more. Each prepare_wait is followed by one cancel_wait, whether the thread slept or not. */
void acs_eventcount_cancel_wait(acs_eventcount *eventcount);
/* Wake all waiters. The news was written before this call. */
void acs_eventcount_notify(acs_eventcount *eventcount);
/* Number of waiters, read after all earlier writes of this thread (a fence). */
uint32_t acs_eventcount_waiters(acs_eventcount *eventcount);

#endif

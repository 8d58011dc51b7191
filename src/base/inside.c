/*
 * The mark of threads that are inside the program's code (inside.h). The runtime sets it around steps and footprint
 * functions, executors of the host backend set it for good. Owns thread-local state only.
 */
#include "base/inside.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic(uint64_t) g_threads;
static _Thread_local uint64_t tl_number;
static _Thread_local bool tl_inside;

bool acs_inside(void)
{
    return tl_inside;
}

void acs_inside_set(bool inside)
{
    tl_inside = inside;
}

int acs_cancel_hold(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* fails only for invalid states */
    return before;
}

void acs_cancel_restore(const int *before)
{
    (void)pthread_setcancelstate(*before, NULL);
}

uint64_t acs_thread_number(void)
{
    if (!tl_number)
        tl_number = 1 + atomic_fetch_add_explicit(&g_threads, 1, memory_order_relaxed); /* only has to be unique */
    return tl_number;
}

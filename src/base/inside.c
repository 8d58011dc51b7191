/*
 * The mark of threads that run the program's code for the library (see inside.h). Set by the runtime around steps and
 * footprint functions, and for good by the executors of the host backend. Knows nothing else.
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
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* fails for other states alone */
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

/*
 * The calling thread: its number, and whether it is inside code of the program that the library calls. That is a host
 * function, a callback, a kernel's host body or a footprint function. Calls that take a context are refused there, and
 * acs::compat does not drain: both would wait for themselves.
 */
#ifndef ACS_INSIDE_H
#define ACS_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

bool acs_inside(void);
void acs_inside_set(bool inside);

/*
 * From here to the end of the block pthread_cancel has no effect on the calling thread. For functions that wait or step
 * the core: other threads rely on the locks and the work that this thread has taken. Costs two calls of the C library.
 */
#define ACS_NOT_CANCELLED                                                                                              \
    __attribute__((cleanup(acs_cancel_restore), unused)) int acs_cancel_before = acs_cancel_hold()
int acs_cancel_hold(void);
void acs_cancel_restore(const int *before);

/* Number of the calling thread, from 1. Never reused, unlike the system's ids. */
uint64_t acs_thread_number(void);

#endif

/*
 * The calling thread: its number, and whether it runs the program's code for the library: a host function, a callback, a
 * kernel's host body, a footprint. Calls that take a context are refused then, and acs::compat does not drain: both would
 * wait for themselves.
 */
#ifndef ACS_INSIDE_H
#define ACS_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

bool acs_inside(void);
void acs_inside_set(bool inside);

/*
 * From here to the end of the block pthread_cancel has no effect on the calling thread: for whatever waits, or steps the
 * core, since others rely on what it holds and has promised to do. Costs two calls of the C library.
 */
#define ACS_NOT_CANCELLED                                                                                              \
    __attribute__((cleanup(acs_cancel_restore), unused)) int acs_cancel_before = acs_cancel_hold()
int acs_cancel_hold(void);
void acs_cancel_restore(const int *before);

/* Of the calling thread, from 1; never used again, as the system's ids are. */
uint64_t acs_thread_number(void);

#endif

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

/* Of the calling thread, from 1; never used again, as the system's ids are. */
uint64_t acs_thread_number(void);

#endif

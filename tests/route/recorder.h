/*
 * Which functions of the library run between two moments, and how deep their calls nest. The library is compiled with
 * -finstrument-functions for this; all threads are recorded.
 */
#ifndef ACS_ROUTE_RECORDER_H
#define ACS_ROUTE_RECORDER_H

void recorder_start(void);
void recorder_stop(void);
/* How many locks of base/lock.h this thread has taken, or tried to take. */
unsigned recorder_locks(void);
/* Print the deepest nesting, the deepest stack from its outermost call on, and each function once: hexadecimal addresses. */
void recorder_print(void);

#endif

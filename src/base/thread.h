/*
 * Making the library's threads. Included by modules that make one.
 */
#ifndef ACS_THREAD_H
#define ACS_THREAD_H

#include <pthread.h>

/*
 * As pthread_create, with default attributes. The new thread blocks signals, so they go to the program's threads. It
 * blocks signals that a fault of its own raises only if the calling thread does. Returns 0 or an errno.
 */
int acs_thread_create(pthread_t *thread, void *(*function)(void *), void *argument);
/* Pin the calling thread to a CPU; -1: leave it as it is. A refusal is logged. */
void acs_thread_pin(int cpu);

#endif

/*
 * Threads of the library. Include where a module makes one.
 */
#ifndef ACS_THREAD_H
#define ACS_THREAD_H

#include <pthread.h>

/*
 * As pthread_create, with default attributes. Signals from elsewhere stay with the program's threads. Signals that a
 * fault of the thread itself raises are blocked only where the calling thread blocks them. Returns 0 or an errno.
 */
int acs_thread_create(pthread_t *thread, void *(*function)(void *), void *argument);

#endif

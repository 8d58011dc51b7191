/*
 * Makes the library's threads with the signal mask that they keep: the program's signal handlers run on the program's
 * threads, and its crash handler runs on the thread that faults. Called by the runtime and by the host backend. Changes
 * the mask of the calling thread only during the call.
 */
#include "base/thread.h"

#include "base/base.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

/* Signals that a thread's own faults raise. The kernel ends the process when such a signal is blocked. */
static const int g_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

int acs_thread_create(pthread_t *thread, void *(*function)(void *), void *argument)
{
    sigset_t blocked, before;
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    for (size_t i = 0; i < sizeof g_faults / sizeof g_faults[0]; i++)
        if (!sigismember(&before, g_faults[i]))
            sigdelset(&blocked, g_faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    int error = pthread_create(thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void acs_thread_pin(int cpu)
{
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    if (error)
        acs_log(ACS_LOG_WARN, "cannot pin a thread to CPU %d: %s", cpu, strerror(error));
}

/*
 * Makes the library's threads with the signal mask that they keep: the program's signal handlers run on the program's
 * threads, and its crash handler runs on the thread that faults. Where the main thread ends before them, one more thread
 * takes signals in its place. Called by the runtime and by the host backend. Changes the mask of the calling thread only
 * during the call.
 */
#include "base/thread.h"

#include "base/base.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Signals that a thread's own faults raise. The kernel ends the process when such a signal is blocked. */
static const int g_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

static int create_with(const sigset_t *mask, pthread_t *thread, void *(*function)(void *), void *argument)
{
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, mask, &before);
    int error = pthread_create(thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/*
 * ------------------------------------------------------------------------------------------------------ the stand-in
 * If the main thread has ended by pthread_exit, the library's threads may be all that is left. They block what would end
 * the process, or be handled. So a stand-in with the main thread's mask sleeps as long as there are such threads.
 */

static pthread_key_t g_main;             /* its destructor runs where the main thread ends by pthread_exit */
static bool g_watched;                   /* whether g_main was made; constant once the library is loaded */
static _Atomic(uint32_t) g_threads;           /* threads of the library */
static _Atomic(bool) g_main_left, g_stands_in;
static sigset_t g_main_mask;             /* written before g_main_left */
static sem_t g_none_left;                /* posted when g_threads becomes 0 */

static void *stand_in(void *unused)
{
    /* A: seq_cst; pairs with stand_in_if_needed: a thread that was counted after this load finds that nobody stands in. */
    do {
        while (atomic_load_explicit(&g_threads, memory_order_seq_cst))
            (void)sem_wait(&g_none_left);
        atomic_store_explicit(&g_stands_in, false, memory_order_seq_cst);
    } while (atomic_load_explicit(&g_threads, memory_order_seq_cst) &&
             !atomic_exchange_explicit(&g_stands_in, true, memory_order_seq_cst));
    return unused;
}

static void stand_in_if_needed(void)
{
    pthread_t thread;
    if (!atomic_load_explicit(&g_main_left, memory_order_seq_cst) || /* A, all three */
        !atomic_load_explicit(&g_threads, memory_order_seq_cst) ||
        atomic_exchange_explicit(&g_stands_in, true, memory_order_seq_cst))
        return;
    if (create_with(&g_main_mask, &thread, stand_in, NULL) == 0)
        (void)pthread_detach(thread);
    else
        acs_log(ACS_LOG_WARN, "the main thread has ended, and no thread can be made to take signals in its place");
}

static void main_leaves(void *unused)
{
    (void)unused;
    pthread_sigmask(SIG_SETMASK, NULL, &g_main_mask);
    atomic_store_explicit(&g_main_left, true, memory_order_seq_cst); /* A */
    stand_in_if_needed();
}

/* In a child of fork none of these threads is, and the calling thread is the main thread. Relaxed: it is alone. */
static void begin_process(void)
{
    atomic_store_explicit(&g_threads, 0, memory_order_relaxed);
    atomic_store_explicit(&g_main_left, false, memory_order_relaxed);
    atomic_store_explicit(&g_stands_in, false, memory_order_relaxed);
    (void)pthread_setspecific(g_main, &g_main);
}

__attribute__((constructor)) static void watch_main(void)
{
    (void)sem_init(&g_none_left, 0, 0);
    /* Where another thread loads the library it is not known whether the main thread ends. */
    g_watched = gettid() == getpid() && pthread_key_create(&g_main, main_leaves) == 0;
    if (!g_watched)
        return;
    begin_process();
    (void)pthread_atfork(NULL, NULL, begin_process);
}

/* The library may be unloaded before the main thread ends. */
__attribute__((destructor)) static void watch_main_no_more(void)
{
    if (g_watched)
        (void)pthread_key_delete(g_main);
}

/* ---------------------------------------------------------------------------------------------------------- threads */

typedef struct thread_call {
    void *(*function)(void *);
    void *argument;
} thread_call;

static void *run(void *argument)
{
    const thread_call call = *(thread_call *)argument;
    free(argument);
    void *result = call.function(call.argument);
    if (atomic_fetch_sub_explicit(&g_threads, 1, memory_order_seq_cst) == 1) /* A */
        (void)sem_post(&g_none_left);
    return result;
}

int acs_thread_create(pthread_t *thread, void *(*function)(void *), void *argument)
{
    sigset_t blocked, before;
    thread_call *call = malloc(sizeof *call);
    if (!call)
        return ENOMEM;
    *call = (thread_call){function, argument};
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof g_faults / sizeof g_faults[0]; i++)
        if (!sigismember(&before, g_faults[i]))
            sigdelset(&blocked, g_faults[i]);
    atomic_fetch_add_explicit(&g_threads, 1, memory_order_seq_cst); /* A */
    int error = create_with(&blocked, thread, run, call);
    if (error) {
        atomic_fetch_sub_explicit(&g_threads, 1, memory_order_seq_cst);
        free(call);
    }
    stand_in_if_needed();
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

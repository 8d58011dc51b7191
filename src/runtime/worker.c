/*
 * Threads around the core: workers that step it, callers that step it while they wait, and how both sleep. Owns the sleep
 * lock and the actions of callers. Decides nothing about ops.
 *
 * Sleeping. A sleeper announces itself (A), looks for work once more, then sleeps until the epoch moves. A waker makes
 * work visible, then looks for sleepers (A). Both sides are sequentially consistent: one of them sees the other.
 */
#include "runtime/context.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAP_FIRST_US = 20, NAP_LONGEST_US = 200, CPU_MAX = 1024, PAUSES = 32 };

static _Thread_local bool tl_ours;

bool acs_thread_is_ours(void)
{
    return tl_ours;
}

/* ------------------------------------------------------------------------------------------------------ sleep and wake */

void acs_context_wake(void *user)
{
    acs_context *context = user;
    atomic_thread_fence(memory_order_seq_cst); /* A: what was done before, then the look at sleepers */
    if (ACS_LIKELY(atomic_load_explicit(&context->sleepers, memory_order_relaxed) == 0)) /* A: ordered by the fence */
        return;
    acs_lock_acquire(&context->sleep_lock);
    context->sleep_epoch++;
    acs_cond_broadcast(&context->sleep_cond);
    acs_lock_release(&context->sleep_lock);
}

static uint64_t sleep_announce(acs_context *context)
{
    acs_lock_acquire(&context->sleep_lock);
    uint64_t epoch = context->sleep_epoch;
    acs_lock_release(&context->sleep_lock);
    atomic_fetch_add_explicit(&context->sleepers, 1, memory_order_seq_cst); /* A: announced, then the look for work */
    atomic_thread_fence(memory_order_seq_cst);                              /* A */
    return epoch;
}

/* timeout_us 0: until woken. */
static void sleep_until_woken(acs_context *context, uint64_t epoch, uint64_t timeout_us)
{
    acs_lock_acquire(&context->sleep_lock);
    bool in_time = true;
    while (context->sleep_epoch == epoch && in_time) {
        if (timeout_us)
            in_time = acs_cond_wait_us(&context->sleep_cond, &context->sleep_lock, timeout_us);
        else
            acs_cond_wait(&context->sleep_cond, &context->sleep_lock);
    }
    acs_lock_release(&context->sleep_lock);
}

static void sleep_retract(acs_context *context)
{
    atomic_fetch_sub_explicit(&context->sleepers, 1, memory_order_relaxed); /* nobody waits for it to fall */
}

/* Without completions announced by the backend, ops that run are polled for. */
static uint64_t nap_us(const acs_context *context, uint32_t naps)
{
    if (context->backend->ops->notifies)
        return 0;
    uint64_t us = (uint64_t)NAP_FIRST_US << (naps < 4 ? naps : 4);
    return us < NAP_LONGEST_US ? us : NAP_LONGEST_US;
}

static void pause_briefly(void)
{
    for (int i = 0; i < PAUSES; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    sched_yield();
}

/* ------------------------------------------------------------------------------------------------------------- steps */

static bool step_with(acs_context *context, acs_action *action, uint32_t may)
{
    acs_core *core = &context->core;
    bool found = acs_core_next(core, may, action);
    if (action->news)
        acs_context_wake(context); /* room in the FIFO, ops that ended, or work for the thread of host functions */
    if (!found)
        return false;
    bool inside = acs_inside();
    acs_inside_set(true);
    acs_core_perform(core, action);
    acs_inside_set(inside);
    acs_core_done(core, action);
    acs_context_wake(context);
    return true;
}

static acs_action *action_take(acs_context *context)
{
    acs_lock_acquire(&context->core.lock);
    acs_action *action = context->free_action_count ? context->free_actions[--context->free_action_count] : NULL;
    acs_lock_release(&context->core.lock);
    return action;
}

static void action_give(acs_context *context, acs_action *action)
{
    acs_lock_acquire(&context->core.lock);
    context->free_actions[context->free_action_count++] = action;
    acs_lock_release(&context->core.lock);
}

static uint32_t caller_may(acs_context *context)
{
    /* B: host functions belong to their thread where there is one, so that no caller is held up by somebody else's */
    return atomic_load_explicit(&context->host_thread, memory_order_acquire) == 2 ? ACS_MAY_ISSUE : ACS_MAY_ALL;
}

bool acs_context_step(acs_context *context)
{
    if (context->virtual_count)
        return acs_virtual_step(context);
    acs_action *action = action_take(context);
    if (!action)
        return false; /* as many callers step already as there are actions */
    bool stepped = step_with(context, action, caller_may(context));
    action_give(context, action);
    return stepped;
}

void acs_context_wait(acs_context *context, acs_done_fn done, uint64_t value)
{
    uint64_t idle_since = 0;
    uint32_t naps = 0;
    while (!done(context, value)) {
        if (acs_context_step(context)) {
            idle_since = 0;
            naps = 0;
            continue;
        }
        uint64_t now = acs_clock_ns();
        if (!idle_since)
            idle_since = now;
        if (now - idle_since < (uint64_t)context->options.spin_us * 1000) {
            pause_briefly();
            continue;
        }
        uint64_t epoch = sleep_announce(context);
        if (!done(context, value) && !acs_context_step(context))
            sleep_until_woken(context, epoch, nap_us(context, naps++));
        sleep_retract(context);
    }
}

/* ----------------------------------------------------------------------------------------------------------- threads */

typedef struct thread_start {
    acs_context *context;
    acs_action *action;
    bool host_functions;
} thread_start;

static void pin(int cpu)
{
    if (cpu < 0)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    if (error)
        acs_log(ACS_LOG_WARN, "cannot pin a thread to CPU %d: %s", cpu, strerror(error));
}

static uint32_t worker_may(acs_context *context, bool host_functions)
{
    return host_functions ? ACS_MAY_HOST : caller_may(context);
}

static bool stopping(acs_context *context)
{
    return atomic_load_explicit(&context->stop, memory_order_acquire) != 0; /* C: everything drained before */
}

static void worker_sleep(acs_context *context, const thread_start *start, uint32_t naps)
{
    uint64_t epoch = sleep_announce(context);
    bool may_sleep = !stopping(context) && !step_with(context, start->action, worker_may(context, start->host_functions));
    if (may_sleep) {
        bool running = !start->host_functions && acs_core_look(&context->core) == ACS_LOAD_RUNNING;
        sleep_until_woken(context, epoch, running ? nap_us(context, naps) : 0);
    }
    sleep_retract(context);
}

static void *worker_main(void *argument)
{
    thread_start start = *(thread_start *)argument;
    acs_context *context = start.context;
    free(argument);
    tl_ours = true;
    pin(acs_context_cpu_next(context));
    context->backend->ops->thread_enter(context->backend);
    uint64_t idle_since = 0;
    uint32_t naps = 0;
    while (!stopping(context)) {
        if (step_with(context, start.action, worker_may(context, start.host_functions))) {
            idle_since = 0;
            naps = 0;
            continue;
        }
        uint64_t now = acs_clock_ns();
        if (!idle_since)
            idle_since = now;
        if (now - idle_since < (uint64_t)context->options.spin_us * 1000)
            pause_briefly();
        else
            worker_sleep(context, &start, naps++);
    }
    free(start.action);
    return NULL;
}

/* A thread of the library takes no signals. */
static int thread_make(acs_context *context, bool host_functions)
{
    thread_start *start = malloc(sizeof *start);
    acs_action *action = calloc(1, sizeof *action);
    if (!start || !action || context->thread_count == ACS_THREADS_MAX) {
        free(start);
        free(action);
        return ENOMEM;
    }
    *start = (thread_start){context, action, host_functions};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&context->threads[context->thread_count], NULL, worker_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        free(start);
        free(action);
        return error;
    }
    context->thread_count++;
    return 0;
}

acs_status acs_workers_start(acs_context *context)
{
    bool threads = !context->options.disable && !context->virtual_count;
    uint32_t workers = threads ? (uint32_t)context->options.workers : 0;
    for (uint32_t i = 0; i < 16; i++) {
        acs_action *action = calloc(1, sizeof *action);
        if (!action)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a context's actions");
        context->free_actions[context->free_action_count++] = action;
    }
    for (uint32_t i = 0; i < workers; i++) {
        int error = thread_make(context, false);
        if (error)
            return ACS_FAIL(ACS_ERR_MEMORY, error, "cannot start worker %u of %u: %s", i + 1, workers, strerror(error));
    }
    return ACS_OK;
}

void acs_host_thread_start(acs_context *context)
{
    uint32_t none = 0;
    bool wanted = context->thread_count > 0 && !context->virtual_count;
    if (!wanted || !atomic_compare_exchange_strong_explicit(&context->host_thread, &none, 1, memory_order_acq_rel,
                                                            memory_order_relaxed)) /* B; relaxed: somebody else does it */
        return;
    int error = thread_make(context, true);
    if (error) /* stays 1: workers and callers run host functions */
        acs_log(ACS_LOG_WARN, "no thread for host functions (%s): workers run them", strerror(error));
    else
        atomic_store_explicit(&context->host_thread, 2, memory_order_release); /* B */
}

void acs_workers_stop(acs_context *context)
{
    atomic_store_explicit(&context->stop, 1, memory_order_release); /* C */
    acs_context_wake(context);
    for (uint32_t i = 0; i < context->thread_count; i++)
        pthread_join(context->threads[i], NULL);
    context->thread_count = 0;
}

/* -------------------------------------------------------------------------------------------------------------- CPUs */

int acs_context_cpu_next(void *user)
{
    acs_context *context = user;
    if (context->cpu_count == 0)
        return -1;
    uint32_t turn = atomic_fetch_add_explicit(&context->cpu_turn, 1, memory_order_relaxed); /* a counter, no data */
    return context->cpus[turn % context->cpu_count];
}

static bool parse_number(const char **text, long *number)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *number = strtol(*text, &end, 10);
    *text = end;
    return errno == 0 && *number < CPU_MAX;
}

acs_status acs_cpus_parse(acs_context *context, const char *list)
{
    const char *at = list;
    const uint32_t capacity = sizeof context->cpus / sizeof *context->cpus;
    while (*at) {
        long first, last;
        bool good = parse_number(&at, &first);
        last = first;
        if (good && *at == '-') {
            at++;
            good = parse_number(&at, &last) && last >= first;
        }
        if (!good || (*at && *at != ',') || (*at == ',' && !at[1]))
            return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_CPUS: '%s' is not a list such as 0,2,8-11 of CPUs below %d", list,
                            CPU_MAX);
        for (long cpu = first; cpu <= last && context->cpu_count < capacity; cpu++)
            context->cpus[context->cpu_count++] = (int)cpu;
        at += *at == ',';
    }
    return ACS_OK;
}

/*
 * Threads around the core: steps that workers and callers take, workers that step, and how both sleep and wake. Owns
 * the actions of callers and the worker threads. Decides nothing about ops.
 *
 * Workers sleep at the eventcount `work`, the thread of host functions at `host_work`, callers at `ends`. One worker
 * that is awake is enough. The last worker to fall asleep looks for work after it announced itself, and a caller that
 * queued an op looks at the waiters of `work` afterwards (eventcount.h).
 */
#include "api/threads.h"

#include "base/thread.h"
#include "base/tuning.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool tl_ours;

bool acs_thread_is_ours(void)
{
    return tl_ours;
}

/* --------------------------------------------------------------------------------------------------------- wake */

bool acs_workers_asleep(acs_context *context)
{
    return acs_eventcount_waiters(&context->work) >= context->issuers;
}

/* Work for whoever may step: a worker, unless one is awake and will find it; without workers a caller that waits. */
void acs_wake_somebody(acs_context *context)
{
    if (context->issuers == 0)
        acs_eventcount_notify(&context->ends);
    else if (acs_workers_asleep(context))
        acs_eventcount_notify(&context->work);
}

bool acs_context_unattended(acs_context *context)
{
    return acs_workers_asleep(context);
}

uint64_t acs_context_now_ns(void *user)
{
    acs_context *context = user;
    return context->stepper ? context->stepper->now_ns(context) : acs_clock_ns();
}

void acs_context_completed(void *context)
{
    acs_wake_somebody(context);
}

/* B: host functions belong to their thread where there is one, so that nobody is held up by somebody else's */
static bool has_host_thread(acs_context *context)
{
    return atomic_load_explicit(&context->host_thread, memory_order_acquire) == 2;
}

/*
 * What a step found out that other threads wait for. Only whom it is for is woken: a worker that woke itself for a host
 * function that it may not run would not sleep as long as the one before it runs.
 */
void acs_pass_on_news(acs_context *context, const acs_core_news *news)
{
    acs_eventcount *issuers = context->issuers ? &context->work : &context->ends;
    if (news->condition_met)
        acs_eventcount_notify(&context->ends);
    if (news->host_left)
        acs_eventcount_notify(has_host_thread(context) ? &context->host_work : issuers);
    if (news->issue_left)
        acs_eventcount_notify(issuers);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

/*
 * A caller that looks for completions in the workers' place may find something to issue, as what was queued since it
 * looked. A library call holds it up for as long as it likes: the workers are on their own until it looks again.
 */
static void drop_polling_caller(acs_context *context, const acs_action *action)
{
    bool looks = action->type == ACS_ACTION_SUBMIT && (action->batch.items_used == 0 || !action->batch.items[0].op);
    if (looks || tl_ours ||
        !atomic_load_explicit(&context->polling_callers, memory_order_relaxed)) /* relaxed, both: a hint */
        return;
    atomic_store_explicit(&context->polling_callers, 0, memory_order_relaxed);
    acs_wake_somebody(context);
}

/* False: nothing changed, so the thread may rest; a poll that found nothing is no progress. */
bool acs_step_with(acs_context *context, acs_action *action, uint32_t may)
{
    acs_core *core = &context->core;
    bool found = acs_core_next(core, may, action);
    acs_pass_on_news(context, &action->news);
    if (!found || action->type == ACS_ACTION_NONE)
        return found;
    drop_polling_caller(context, action);
    bool inside = acs_inside();
    acs_inside_set(true);
    acs_core_perform(core, action);
    acs_inside_set(inside);
    acs_core_done(core, action);
    acs_pass_on_news(context, &action->news);
    return action->progress;
}

/*
 * An action that is the calling thread's until action_give, or NULL: as many callers step already as there are. Each
 * thread looks at another one first, so that they do not meet.
 */
static acs_action *action_take(acs_context *context)
{
    const uint64_t first = acs_thread_number();
    for (uint32_t i = 0; i < TUNE_CALLER_ACTIONS; i++) {
        const uint64_t at = (first + i) % TUNE_CALLER_ACTIONS;
        bool taken = false; /* relaxed: somebody else has it */
        if (atomic_compare_exchange_strong_explicit(&context->action_taken[at], &taken, true, memory_order_acquire, /* G */
                                                    memory_order_relaxed))
            return context->actions[at];
    }
    return NULL;
}

/* G: release; pairs with action_take. The next thread that has the action finds what this one wrote into it. */
static void action_give(acs_context *context, const acs_action *action)
{
    uint32_t at = 0;
    while (context->actions[at] != action)
        at++;
    atomic_store_explicit(&context->action_taken[at], false, memory_order_release);
}

uint32_t acs_caller_may(acs_context *context)
{
    return has_host_thread(context) ? ACS_MAY_ISSUE | ACS_MAY_INSERT : ACS_MAY_ALL;
}

/* *load: what the step left to do; as it was where the thread could not step. */
bool acs_caller_steps(acs_context *context, uint32_t may, acs_core_load *load)
{
    ACS_NOT_CANCELLED;
    acs_action *action = action_take(context);
    if (!action)
        return false;
    bool stepped = acs_step_with(context, action, may);
    *load = action->news.load;
    action_give(context, action);
    /*
     * A worker may have gone to sleep because this thread held a slot, or the poll, of what it looked for. Where it
     * polls by itself it will look again, and need not be woken for what this thread looks for.
     */
    if (context->issuers && (context->backend->ops->notifies || *load == ACS_LOAD_BLOCKED))
        acs_wake_somebody(context);
    return stepped;
}

bool acs_context_step(acs_context *context)
{
    acs_core_load load = ACS_LOAD_NONE;
    return context->stepper ? context->stepper->step(context) : acs_caller_steps(context, acs_caller_may(context), &load);
}

/* One step that may issue. True: all that was queued is issued. */
static bool caller_issues(acs_context *context)
{
    ACS_NOT_CANCELLED;
    acs_action *action = action_take(context);
    if (!action)
        return false;
    (void)acs_step_with(context, action, ACS_MAY_ISSUE | ACS_MAY_INSERT);
    bool issued = action->type == ACS_ACTION_SUBMIT && action->batch.items_used > 0 && !action->news.issue_left;
    action_give(context, action);
    return issued && !acs_fifo_ready(context->core.fifo);
}

/*
 * The first kernel into an idle runtime is issued by its caller: the GPU starts at once, no thread is woken for it, and
 * a caller that waits for it looks for its end itself. Whatever is queued behind it wakes a worker as usual, and where
 * nothing is, nobody needs to know that it ended: waits and acs_query step while the workers sleep.
 */
static bool issued_at_once(acs_context *context, acs_op op)
{
    bool plain = context->issuers > 0 && !context->stepper && !context->backend->ops->notifies &&
                 context->options.watchdog_s == 0;
    return plain && acs_core_ends(&context->core) + 1 == op && caller_issues(context);
}

/*
 * Without workers, but where kernels go in bundles, callers feed the GPU as they go: a step now and then costs them
 * little, and what they queue starts before they wait. Host functions are left to waits: the caller may hold what they
 * need.
 */
static bool feeds(const acs_context *context, acs_op op)
{
    return context->issuers == 0 && op % TUNE_FEED_OPS == 0 && context->core.batcher && !context->stepper;
}

void acs_context_queued(acs_context *context, acs_op op, bool kernel)
{
    acs_core_load load = ACS_LOAD_NONE;
    for (int i = 0; feeds(context, op) && i < TUNE_FEED_STEPS; i++)
        if (!acs_caller_steps(context, ACS_MAY_ISSUE | ACS_MAY_INSERT, &load))
            break;
    if (!(kernel && issued_at_once(context, op)))
        acs_wake_somebody(context);
    if (ACS_UNLIKELY(context->stepper != NULL))
        context->stepper->queued(context);
}

/* ---------------------------------------------------------------------------------------------------------- threads */

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
    return host_functions ? ACS_MAY_HOST | ACS_MAY_INSERT : acs_caller_may(context);
}

static bool stopping(acs_context *context)
{
    return atomic_load_explicit(&context->stop, memory_order_acquire) != 0; /* C: everything drained before */
}

/* Whether the next completion matters to somebody: to ops that wait for it (for a while), or to a caller. */
static bool polls_eagerly(acs_context *context, uint64_t idle_ns)
{
    acs_core_load load = acs_core_look(&context->core);
    return load != ACS_LOAD_NONE &&
           (acs_eventcount_waiters(&context->ends) || (load == ACS_LOAD_BLOCKED && idle_ns < TUNE_EAGER_US * 1000ull));
}

/*
 * Nothing to do. While ops run on a backend that does not announce completions, a worker polls: without a pause while
 * it matters, else with naps. Otherwise it sleeps until there is work.
 */
static void worker_sleeps(acs_context *context, const thread_start *start, uint64_t idle_ns)
{
    acs_eventcount *eventcount = start->host_functions ? &context->host_work : &context->work;
    (void)acs_watchdog_look_now(context);
    bool polls = !start->host_functions && !context->backend->ops->notifies;
    if (polls && polls_eagerly(context, idle_ns)) {
        acs_pause_briefly();
        return;
    }
    if (context->hooks)
        context->hooks->idle(context);
    uint64_t epoch = acs_eventcount_prepare_wait(eventcount);
    if (!stopping(context) && !acs_step_with(context, start->action, worker_may(context, start->host_functions))) {
        uint64_t nap_us = polls ? TUNE_WORKER_NAP_US : acs_watchdog_nap_us(context);
        bool running = nap_us && acs_core_look(&context->core) != ACS_LOAD_NONE;
        acs_eventcount_wait(eventcount, epoch, running ? nap_us : 0);
    }
    acs_eventcount_cancel_wait(eventcount);
}

/* A caller looks for the end of all that runs, and nothing is to be issued: there is nothing for a worker to do. */
static bool caller_polls(acs_context *context)
{
    /* Relaxed: a hint. The caller takes it back, and wakes a worker, before it does anything else. */
    return atomic_load_explicit(&context->polling_callers, memory_order_relaxed) && !acs_fifo_ready(context->core.fifo);
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
    while (!stopping(context)) {
        if (!start.host_functions && caller_polls(context)) {
            acs_pause_briefly();
            continue;
        }
        if (acs_step_with(context, start.action, worker_may(context, start.host_functions))) {
            idle_since = 0;
            continue;
        }
        uint64_t now = acs_clock_ns();
        if (!idle_since)
            idle_since = now;
        if (now - idle_since < (uint64_t)context->options.spin_us * 1000)
            acs_pause_briefly();
        else
            worker_sleeps(context, &start, now - idle_since);
    }
    free(start.action);
    return NULL;
}

static int thread_make(acs_context *context, bool host_functions)
{
    thread_start *start = malloc(sizeof *start);
    acs_action *action = calloc(1, sizeof *action);
    if (!start || !action || context->thread_count == ACS_THREADS_MAX) {
        free(start);
        free(action);
        return ENOMEM;
    }
    action->device = context->thread_count % context->backend->devices;
    *start = (thread_start){context, action, host_functions};
    int error = acs_thread_create(&context->threads[context->thread_count], worker_main, start);
    if (error) {
        free(start);
        free(action);
        return error;
    }
    context->thread_actions[context->thread_count++] = action;
    return 0;
}

acs_status acs_workers_start(acs_context *context)
{
    bool threads = !context->options.disable && !context->stepper;
    uint64_t wanted = threads ? (uint64_t)context->options.workers * context->backend->devices : 0;
    uint32_t workers = wanted < ACS_THREADS_MAX - 1 ? (uint32_t)wanted : ACS_THREADS_MAX - 1;
    /*
     * Virtual workers have their own, and callers step through them: 16 more would take most of the time of acs_open.
     */
    for (uint32_t i = 0; i < TUNE_CALLER_ACTIONS && !context->stepper; i++)
        if ((context->actions[i] = calloc(1, sizeof *context->actions[i])) == NULL)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a context's actions");
    context->issuers = workers; /* before the first of them runs */
    for (uint32_t i = 0; i < workers; i++) {
        int error = thread_make(context, false);
        if (error)
            return ACS_FAIL(ACS_ERR_MEMORY, error, "cannot start worker %u of %u: %s", i + 1, workers, strerror(error));
    }
    return ACS_OK;
}

void acs_host_thread_start(acs_context *context)
{
    uint32_t none = 0, making = 1;
    bool wanted = context->issuers > 0 && !context->stepper;
    if (!wanted || !atomic_compare_exchange_strong_explicit(&context->host_thread, &none, 1, memory_order_acq_rel,
                                                            memory_order_relaxed)) /* B; relaxed: somebody else does it */
        return;
    int error = thread_make(context, true);
    if (error) /* stays 1: workers and callers run host functions */
        acs_log(ACS_LOG_WARN, "no thread for host functions (%s): workers run them", strerror(error));
    else /* relaxed: where it is stuck by now, and given up, it stays so */
        (void)atomic_compare_exchange_strong_explicit(&context->host_thread, &making, 2, memory_order_release, /* B */
                                                      memory_order_relaxed);
}

/* False: it is inside something that need not return, and is on its own from now on. Looks on while it waits. */
static bool thread_join(acs_context *context, uint32_t i)
{
    while (pthread_tryjoin_np(context->threads[i], NULL) == EBUSY) {
        if (acs_core_abandoned(&context->core, context->thread_actions[i])) {
            pthread_detach(context->threads[i]);
            return false;
        }
        uint64_t epoch = acs_eventcount_prepare_wait(&context->ends);
        if (!acs_watchdog_look_now(context))
            acs_eventcount_wait(&context->ends, epoch, TUNE_CALLER_NAP_US);
        acs_eventcount_cancel_wait(&context->ends);
    }
    return true;
}

uint32_t acs_workers_stop(acs_context *context)
{
    uint32_t left = 0;
    bool given_up = context->core.backend && acs_core_given_up(&context->core);
    atomic_store_explicit(&context->stop, 1, memory_order_release); /* C */
    acs_eventcount_notify(&context->work);
    acs_eventcount_notify(&context->host_work);
    for (uint32_t i = 0; i < context->thread_count; i++) {
        if (given_up)
            left += !thread_join(context, i);
        else
            pthread_join(context->threads[i], NULL);
    }
    context->thread_count = 0;
    return left;
}

/*
 * Threads around the core: the steps of workers and callers, the worker threads, and how workers sleep and wake. Owns
 * the worker threads and the actions with which callers step. Called by calls that queue an op or wait. Decides nothing
 * about ops.
 *
 * Workers sleep at the eventcount `work`, the thread of host functions at `host_work`, callers at `ends`. One worker
 * that is awake is enough. The last worker to fall asleep looks for work after it announced itself. A caller queues
 * its op first, and then looks at the waiters of `work` (eventcount.h).
 */
#include "api/threads.h"

#include "api/watchdog.h"
#include "base/thread.h"
#include "base/tuning.h"

#include <errno.h>
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

void acs_wake_somebody(acs_context *context)
{
    if (context->issuers == 0)
        acs_eventcount_notify(&context->ends);
    else if (acs_workers_asleep(context))
        acs_eventcount_notify(&context->work);
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

/*
 * Whether the thread of host functions runs. Then it alone calls them, so that no other thread is held up by one.
 * B: acquire; pairs with acs_host_thread_start and acs_host_thread_give_up.
 */
static bool has_host_thread(acs_context *context)
{
    return atomic_load_explicit(&context->host_thread, memory_order_acquire) == 2;
}

/*
 * Wakes only the threads that can use the news. If host functions woke workers that may not run them, a worker would
 * not sleep while the host function before runs.
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
 * A caller polls in the workers' place, and its step found an op to issue. A library call may hold that caller up for
 * any time, so it no longer counts as polling, and a worker is woken. It may take the place again at its next look.
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
 * Take an action, which belongs to the calling thread until action_give. NULL: other callers have all of them. Threads
 * begin the search at different actions, so that they seldom collide.
 */
static acs_action *action_take(acs_context *context)
{
    const uint64_t first = acs_thread_number();
    for (uint32_t i = 0; i < TUNE_CALLER_ACTIONS && context->actions; i++) {
        const uint64_t at = (first + i) % TUNE_CALLER_ACTIONS;
        bool taken = false; /* relaxed on failure: another thread has the action, and nothing of it is read */
        if (atomic_compare_exchange_strong_explicit(&context->action_taken[at], &taken, true, memory_order_acquire, /* G */
                                                    memory_order_relaxed))
            return &context->actions[at];
    }
    return NULL;
}

/* G: release; pairs with action_take. The next owner of the action sees the writes of this one. */
static void action_give(acs_context *context, const acs_action *action)
{
    atomic_store_explicit(&context->action_taken[action - context->actions], false, memory_order_release);
}

uint32_t acs_caller_may(acs_context *context)
{
    return has_host_thread(context) ? ACS_MAY_ISSUE | ACS_MAY_INSERT : ACS_MAY_ALL;
}

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
     * A worker may have gone to sleep because this thread held the slot, or the poll, that the worker wanted. On a
     * backend without notifications workers poll by themselves, so only blocked ops need a worker now.
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

/* One step that may issue. True: it issued ops, and no queued op is left. */
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
 * Issue the first kernel into an idle runtime on the caller's thread: the GPU starts at once, and no thread is woken.
 * An op queued behind it wakes a worker as usual. Without one, no thread has to see the kernel's end: waits and
 * acs_query step while the workers sleep. False: not tried, or ops are left for workers.
 */
static bool try_issue_now(acs_context *context, acs_op op)
{
    bool plain = context->issuers > 0 && !context->stepper && !context->backend->ops->notifies &&
                 context->options.watchdog_s == 0;
    return plain && acs_core_settled(&context->core) + 1 == op && caller_issues(context);
}

/*
 * Whether the call that queued `op` also steps. It does so without workers, where kernels go in bundles, once in
 * TUNE_FEED_OPS ops: then ops start before the caller waits. Such steps run no host functions, since the caller may
 * hold a lock that these need. Bundles of a resident executor wait for each other, so they should be whole.
 */
static bool may_feed(const acs_context *context, acs_op op)
{
    if (context->issuers || op % TUNE_FEED_OPS || !context->core.batcher || context->stepper)
        return false;
    return context->options.issue != ACS_ISSUE_RESIDENT || op % context->core.batch_ahead < TUNE_FEED_OPS;
}

void acs_context_queued(acs_context *context, acs_op op, bool kernel)
{
    acs_core_load load = ACS_LOAD_NONE;
    for (int i = 0; may_feed(context, op) && i < TUNE_FEED_STEPS; i++)
        if (!acs_caller_steps(context, ACS_MAY_ISSUE | ACS_MAY_INSERT, &load))
            break;
    if (!(kernel && try_issue_now(context, op)))
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

/*
 * With ACS_DISABLE the thread of host functions is the only one. It also issues what callers left behind a host function,
 * and polls for what host functions are behind.
 */
static bool only_host_functions(const thread_start *start)
{
    return start->host_functions && start->context->issuers > 0;
}

static uint32_t worker_may(const thread_start *start)
{
    if (only_host_functions(start))
        return ACS_MAY_HOST | ACS_MAY_INSERT;
    return start->host_functions ? ACS_MAY_ALL : acs_caller_may(start->context);
}

static bool stopping(acs_context *context)
{
    return atomic_load_explicit(&context->stop, memory_order_acquire) != 0; /* C: pairs with acs_workers_stop */
}

/*
 * Whether a caller waits for the next completion, or ops do and the worker has been idle for less than TUNE_EAGER_US.
 */
static bool polls_eagerly(acs_context *context, uint64_t idle_ns)
{
    acs_core_load load = acs_core_look(&context->core);
    return load != ACS_LOAD_NONE &&
           (acs_eventcount_waiters(&context->ends) || (load == ACS_LOAD_BLOCKED && idle_ns < TUNE_EAGER_US * 1000ull));
}

/*
 * Let a worker without work rest. While ops run on a backend that does not announce completions, it polls: without a
 * pause while polls_eagerly is true, else with naps between. Otherwise it sleeps until there is work.
 */
static void worker_sleeps(acs_context *context, const thread_start *start, uint64_t idle_ns)
{
    acs_eventcount *eventcount = start->host_functions ? &context->host_work : &context->work;
    (void)acs_watchdog_look_now(context);
    bool polls = !only_host_functions(start) && !context->backend->ops->notifies;
    if (polls && polls_eagerly(context, idle_ns)) {
        acs_pause_briefly();
        return;
    }
    const bool held = context->hooks && context->hooks->idle(context) && !start->host_functions;
    uint64_t epoch = acs_eventcount_prepare_wait(eventcount);
    if (!stopping(context) && !acs_step_with(context, start->action, worker_may(start))) {
        uint64_t nap_us = polls || held ? TUNE_WORKER_NAP_US : acs_watchdog_nap_us(context);
        bool looks_again = held || (nap_us && acs_core_look(&context->core) != ACS_LOAD_NONE);
        acs_eventcount_wait(eventcount, epoch, looks_again ? nap_us : 0);
    }
    acs_eventcount_cancel_wait(eventcount);
}

/*
 * What a worker's step may do. While it has been idle for less than TUNE_REST_US, and no caller waits, more ops come
 * soon: it need not know what has completed.
 */
static uint32_t worker_may_now(const thread_start *start, uint64_t idle_ns)
{
    const acs_context *context = start->context;
    const bool rests = idle_ns < TUNE_REST_US * 1000ull && !context->backend->ops->notifies && !start->host_functions &&
                       !atomic_load_explicit(&context->ends.waiters, memory_order_relaxed); /* relaxed: a hint */
    return worker_may(start) | (rests ? ACS_MAY_REST : 0);
}

/* Whether a worker has nothing to do, because a caller polls for the running ops and no op is to be issued. */
static bool caller_polls(acs_context *context)
{
    /* Relaxed: a hint. The caller clears it, and wakes a worker, before it does anything else. */
    return atomic_load_explicit(&context->polling_callers, memory_order_relaxed) && !acs_fifo_ready(context->core.fifo);
}

static void *worker_main(void *argument)
{
    thread_start start = *(thread_start *)argument;
    acs_context *context = start.context;
    free(argument);
    tl_ours = true;
    acs_log_origin(context->number, NULL);
    acs_thread_pin(acs_context_cpu_next(context));
    context->backend->ops->thread_enter(context->backend);
    uint64_t idle_since = 0, idle_ns = 0;
    while (!stopping(context)) {
        if (!start.host_functions && caller_polls(context)) {
            acs_pause_briefly();
            continue;
        }
        if (acs_step_with(context, start.action, worker_may_now(&start, idle_ns))) {
            idle_since = idle_ns = 0;
            continue;
        }
        uint64_t now = acs_clock_ns();
        if (!idle_since)
            idle_since = now;
        idle_ns = now - idle_since;
        if (idle_ns < (uint64_t)context->options.spin_us * 1000)
            acs_pause_briefly();
        else
            worker_sleeps(context, &start, idle_ns);
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
    /* At once, so that no page is touched. The stepper's virtual workers have actions of their own, for callers, too. */
    context->actions = context->stepper ? NULL : acs_zeros(TUNE_CALLER_ACTIONS, sizeof *context->actions);
    if (!context->actions && !context->stepper)
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
    bool wanted = (context->issuers > 0 || context->options.disable) && !context->stepper;
    if (!wanted || !atomic_compare_exchange_strong_explicit(&context->host_thread, &none, 1, memory_order_acq_rel,
                                                            memory_order_relaxed)) /* B; relaxed: another does it */
        return;
    int error = thread_make(context, true);
    if (error) /* stays 1: workers and callers run host functions */
        acs_log(ACS_LOG_WARN, "no thread for host functions (%s): workers run them", strerror(error));
    else /* relaxed on failure: the thread was given up meanwhile (3), and stays so */
        (void)atomic_compare_exchange_strong_explicit(&context->host_thread, &making, 2, memory_order_release, /* B */
                                                      memory_order_relaxed);
}

/*
 * Join a thread, and look for overdue ops meanwhile. False: the thread is inside an op that was given up and may never
 * return, so it was detached.
 */
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

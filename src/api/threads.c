/*
 * Threads around the core: workers that step it, callers that step it while they wait, and how both sleep. Owns the sleep
 * eventcounts at which they sleep and the actions of callers. Decides nothing about ops.
 *
 * Workers sleep at `work`, the thread of host functions at `host_work`, callers at `ends`. One worker that is awake is
 * enough: the last to fall asleep looks for work after it announced itself, and who queues an op looks at the sleepers
 * after it queued (eventcount.h).
 */
#include "api/context.h"

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

static bool workers_asleep(acs_context *context)
{
    return acs_eventcount_waiters(&context->work) >= context->issuers;
}

/* Work for whoever may step: a worker, unless one is awake and will find it; without workers a caller that waits. */
static void wake_somebody(acs_context *context)
{
    if (context->issuers == 0)
        acs_eventcount_notify(&context->ends);
    else if (workers_asleep(context))
        acs_eventcount_notify(&context->work);
}

bool acs_context_unattended(acs_context *context)
{
    return workers_asleep(context);
}

void acs_context_completed(void *context)
{
    wake_somebody(context);
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
static void pass_on(acs_context *context, const acs_core_news *news)
{
    acs_eventcount *issuers = context->issuers ? &context->work : &context->ends;
    if (news->watched)
        acs_eventcount_notify(&context->ends);
    if (news->host_left)
        acs_eventcount_notify(has_host_thread(context) ? &context->host_work : issuers);
    if (news->issue_left)
        acs_eventcount_notify(issuers);
}

/* ------------------------------------------------------------------------------------------------------------- steps */

/*
 * A caller that looks for completions in the workers' place may find something to issue, as what was queued since it looked.
 * A library call holds it up for as long as it likes: the workers are on their own until it looks again.
 */
static void watch_drop(acs_context *context, const acs_action *action)
{
    bool looks = action->type == ACS_ACTION_SUBMIT && (action->batch.items_used == 0 || !action->batch.items[0].op);
    if (looks || tl_ours || !atomic_load_explicit(&context->watchers, memory_order_relaxed)) /* relaxed, both: a hint */
        return;
    atomic_store_explicit(&context->watchers, 0, memory_order_relaxed);
    wake_somebody(context);
}

/* False: nothing changed, so the thread may rest; a poll that found nothing is no progress. */
static bool step_with(acs_context *context, acs_action *action, uint32_t may)
{
    acs_core *core = &context->core;
    bool found = acs_core_next(core, may, action);
    pass_on(context, &action->news);
    if (!found || action->type == ACS_ACTION_NONE)
        return found;
    watch_drop(context, action);
    bool inside = acs_inside();
    acs_inside_set(true);
    acs_core_perform(core, action);
    acs_inside_set(inside);
    acs_core_done(core, action);
    pass_on(context, &action->news);
    return action->progress;
}

/*
 * An action that is the calling thread's until action_give, or NULL: as many callers step already as there are. Each thread
 * looks at another one first, so that they do not meet.
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

static uint32_t caller_may(acs_context *context)
{
    return has_host_thread(context) ? ACS_MAY_ISSUE | ACS_MAY_INSERT : ACS_MAY_ALL;
}

/* *load: what the step left to do; as it was where the thread could not step. */
static bool caller_steps(acs_context *context, uint32_t may, acs_core_load *load)
{
    ACS_NOT_CANCELLED;
    acs_action *action = action_take(context);
    if (!action)
        return false;
    bool stepped = step_with(context, action, may);
    *load = action->news.load;
    action_give(context, action);
    /*
     * A worker may have gone to sleep because this thread held a slot, or the poll, of what it looked for. Where it polls by
     * itself it will look again, and need not be woken for what this thread looks for.
     */
    if (context->issuers && (context->backend->ops->notifies || *load == ACS_LOAD_BLOCKED))
        wake_somebody(context);
    return stepped;
}

bool acs_context_step(acs_context *context)
{
    acs_core_load load = ACS_LOAD_NONE;
    return context->stepper ? context->stepper->step(context) : caller_steps(context, caller_may(context), &load);
}

/* One step that may issue. True: all that was queued is issued. */
static bool caller_issues(acs_context *context)
{
    ACS_NOT_CANCELLED;
    acs_action *action = action_take(context);
    if (!action)
        return false;
    (void)step_with(context, action, ACS_MAY_ISSUE | ACS_MAY_INSERT);
    bool issued = action->type == ACS_ACTION_SUBMIT && action->batch.items_used > 0 && !action->news.issue_left;
    action_give(context, action);
    return issued && !acs_fifo_ready(context->core.fifo);
}

/*
 * The first kernel into an idle runtime is issued by its caller: the GPU starts at once, no thread is woken for it, and a
 * caller that waits for it looks for its end itself. Whatever is queued behind it wakes a worker as usual, and where
 * nothing is, nobody needs to know that it ended: waits and acs_query step while the workers sleep.
 */
static bool issued_at_once(acs_context *context, acs_op op)
{
    bool plain = context->issuers > 0 && !context->stepper && !context->backend->ops->notifies &&
                 context->options.watchdog_s == 0;
    return plain && acs_core_ends(&context->core) + 1 == op && caller_issues(context);
}

/*
 * Without workers, but where kernels go in bundles, callers feed the GPU as they go: a step now and then costs them little,
 * and what they queue starts before they wait. Host functions are left to waits: the caller may hold what they need.
 */
static bool feeds(const acs_context *context, acs_op op)
{
    return context->issuers == 0 && op % TUNE_FEED_OPS == 0 && context->core.batcher && !context->stepper;
}

void acs_context_queued(acs_context *context, acs_op op, bool kernel)
{
    acs_core_load load = ACS_LOAD_NONE;
    for (int i = 0; feeds(context, op) && i < TUNE_FEED_STEPS; i++)
        if (!caller_steps(context, ACS_MAY_ISSUE | ACS_MAY_INSERT, &load))
            break;
    if (!(kernel && issued_at_once(context, op)))
        wake_somebody(context);
    if (ACS_UNLIKELY(context->stepper != NULL))
        context->stepper->queued(context);
}

/* ------------------------------------------------------------------------------------------------------------ callers */

/* One caller's wait: what it waits for, and how long nothing happened. */
typedef struct waiting {
    acs_context *context;
    acs_watch watch;
    acs_try_fn try;
    void *argument;
    uint64_t ends_seen;
    uint64_t idle_since;
    uint32_t looks;  /* polls, while it watches */
    uint32_t rounds; /* in which it might have begun to watch, but more than a few ops were out */
    bool stepped;    /* it did a worker's work */
    bool watches;    /* for completions, in the workers' place */
    bool busy;       /* others are at work in the core: nothing is known of this round */
    bool fresh;      /* `load` is what its own step, just now, found; every second step, so that others' news count, too */
    bool may_watch;  /* `load` was looked at in this round */
    acs_core_load load; /* what was left to do when this thread looked last */
} waiting;

/* The caller leaves; what still runs is the workers' again. What came since this thread looked, others were woken for. */
static void watch_no_more(waiting *w)
{
    acs_context *context = w->context;
    if (!w->watches)
        return;
    w->watches = false;
    atomic_store_explicit(&context->watchers, 0, memory_order_relaxed); /* a hint */
    if (w->load != ACS_LOAD_NONE)
        wake_somebody(context);
}

/*
 * Whether to see if all is issued, and of many ops that the end is waited for. Where there is much to do the core's lock
 * is the workers', so while more than a few are out only one round in several has a look.
 */
static bool try_look_at_load(waiting *w)
{
    acs_core *core = &w->context->core;
    if (w->context->issuers == 0 || w->context->backend->ops->notifies)
        return false;
    const uint64_t out = acs_fifo_last(core->fifo) - acs_core_ends(core);
    const bool rarely = !w->watches && out > TUNE_WAITER_FEW_OPS;
    if (out > TUNE_WAITER_ORDERED_OPS)
        return false;
    return !rarely || ++w->rounds % TUNE_WAITER_ROUNDS == 0;
}

/* One caller at a time looks for completions in the workers' place, while nothing waits to be issued. */
static bool try_watch(waiting *w)
{
    uint32_t none = 0;
    if (w->busy)
        return false; /* to wait for the lock could mean to sleep */
    if (!w->may_watch || w->load != ACS_LOAD_RUNNING) {
        watch_no_more(w);
        return false;
    }
    /* Relaxed: a hint to workers; who polls is settled by the core. Another caller may have dropped it. */
    if (!w->watches || !atomic_load_explicit(&w->context->watchers, memory_order_relaxed))
        w->watches = atomic_compare_exchange_strong_explicit(&w->context->watchers, &none, 1, memory_order_relaxed,
                                                             memory_order_relaxed);
    return w->watches;
}

static bool is_over(waiting *w)
{
    return w->try ? w->try(w->context, w->argument) : acs_core_true(&w->context->core, &w->watch);
}

/*
 * The look of one round: whether it is over, and, where this thread may watch, what is left to do. Takes the core's lock if
 * an op has ended since the last look, or its own last step does not tell what is left; workers need the lock more.
 */
static bool look_for_end(waiting *w)
{
    acs_core *core = &w->context->core;
    const uint64_t ends = acs_core_ends(core);
    const bool known = w->fresh && w->watches && w->load == ACS_LOAD_RUNNING && !acs_fifo_ready(core->fifo);
    const bool looks = !known && try_look_at_load(w), ended = !w->try && ends != w->ends_seen;
    bool over = false;
    w->busy = false;
    if (w->try ? is_over(w) : ended && acs_core_settled(core) >= w->watch.op)
        return true;
    w->may_watch = looks || known;
    if (looks || ended)
        w->busy = !acs_core_look_try(core, w->try ? NULL : &w->watch, TUNE_WAITER_FEW_OPS, &over, &w->load);
    if (ended && !w->busy)
        w->ends_seen = ends;
    return over;
}

/*
 * A worker that is awake issues: a second thread in one GPU's driver helped wide programs and cost narrow ones as much. But
 * where all is issued a caller looks for the end itself, and the worker leaves it alone: that is quicker than to be told.
 */
static bool steps_itself(waiting *w, uint64_t now)
{
    if (try_watch(w))
        return true;
    return workers_asleep(w->context) || (w->idle_since && now - w->idle_since > TUNE_WORKER_STUCK_US * 1000ull);
}

/* Beside a worker that issues, the caller only finds dependencies, and leaves the core to it where it is at work. */
static bool fills_window(const waiting *w)
{
    acs_core_news news;
    bool inserted;
    if (!acs_fifo_ready(w->context->core.fifo) || !acs_core_insert_try(&w->context->core, &news, &inserted))
        return false;
    pass_on(w->context, &news);
    return inserted;
}

/* Each slot that is asked about takes as long as a launch: who watches for one op seldom asks about others. */
static bool waiting_steps(waiting *w)
{
    const bool one = w->watches && w->watch.type == ACS_WATCH_OP && ++w->looks % TUNE_WAITER_LOOKS != 0;
    if (w->context->stepper)
        return w->context->stepper->step(w->context);
    w->fresh = !w->fresh;
    return caller_steps(w->context, one ? ACS_MAY_LOOK : caller_may(w->context), &w->load);
}

static void caller_sleeps(waiting *w)
{
    acs_context *context = w->context;
    acs_core_watch(&context->core, &w->watch);
    uint64_t epoch = acs_eventcount_prepare_wait(&context->ends);
    bool stepped = false;
    if (!is_over(w)) {
        stepped = workers_asleep(context) && acs_context_step(context);
        bool polls = context->issuers == 0 && !context->backend->ops->notifies;
        if (!stepped)
            acs_eventcount_wait(&context->ends, epoch, polls ? TUNE_WORKER_NAP_US : TUNE_CALLER_NAP_US);
    }
    acs_eventcount_cancel_wait(&context->ends);
    acs_core_unwatch(&context->core, &w->watch);
}

/* Who watches spins in a worker's place, which would, too; to be woken takes longer than most of what is watched. */
static uint64_t spin_ns(const waiting *w)
{
    uint64_t spin_us = (uint64_t)w->context->options.spin_us;
    return (w->watches && spin_us > 0 && spin_us < TUNE_EAGER_US ? TUNE_EAGER_US : spin_us) * 1000;
}

static void wait_for(waiting *w)
{
    w->ends_seen = UINT64_MAX;
    const acs_stepper *stepper = w->context->stepper;
    if (!stepper && !w->try && acs_core_settled(&w->context->core) >= w->watch.op)
        return;
    ACS_NOT_CANCELLED; /* the watch is on this thread's stack */
    while (stepper && !is_over(w))
        if (!stepper->wait(w->context))
            return;
    while (!stepper && !look_for_end(w)) {
        uint64_t now = acs_clock_ns();
        bool stepped = steps_itself(w, now) ? waiting_steps(w) : fills_window(w);
        w->stepped |= stepped;
        if (stepped) {
            w->idle_since = 0;
            continue;
        }
        if (!w->idle_since)
            w->idle_since = now;
        if (acs_watchdog_look_now(w->context)) {
            w->ends_seen = UINT64_MAX;
        } else if (now - w->idle_since < spin_ns(w)) {
            acs_pause_briefly();
        } else {
            watch_no_more(w);
            caller_sleeps(w);
            w->ends_seen = UINT64_MAX;
        }
    }
    w->stepped |= w->watches;
    watch_no_more(w);
    /* What this thread looked for, others have to look for now. */
    if (w->stepped && w->load != ACS_LOAD_NONE)
        wake_somebody(w->context);
}

void acs_context_wait(acs_context *context, acs_watch_type type, acs_op op)
{
    waiting w = {.context = context, .watch = {.type = type, .op = op}};
    bool one = type == ACS_WATCH_OP;
    if (one)
        acs_core_want(&context->core, op);
    wait_for(&w);
    if (one)
        acs_core_want_no_more(&context->core, op);
}

void acs_context_wait_room(acs_context *context, acs_try_fn try, void *argument)
{
    waiting w = {.context = context, .watch = {.type = ACS_WATCH_ROOM}, .try = try, .argument = argument};
    wait_for(&w);
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
    return host_functions ? ACS_MAY_HOST | ACS_MAY_INSERT : caller_may(context);
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
 * Nothing to do. While ops run on a backend that does not announce completions, a worker polls: without a pause while it
 * matters, else with naps. Otherwise it sleeps until there is work.
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
    if (!stopping(context) && !step_with(context, start->action, worker_may(context, start->host_functions))) {
        uint64_t nap_us = polls ? TUNE_WORKER_NAP_US : acs_watchdog_nap_us(context);
        bool running = nap_us && acs_core_look(&context->core) != ACS_LOAD_NONE;
        acs_eventcount_wait(eventcount, epoch, running ? nap_us : 0);
    }
    acs_eventcount_cancel_wait(eventcount);
}

/* A caller looks for the end of all that runs, and nothing is to be issued: there is nothing for a worker to do. */
static bool is_watched(acs_context *context)
{
    /* Relaxed: a hint. The caller takes it back, and wakes a worker, before it does anything else. */
    return atomic_load_explicit(&context->watchers, memory_order_relaxed) && !acs_fifo_ready(context->core.fifo);
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
        if (!start.host_functions && is_watched(context)) {
            acs_pause_briefly();
            continue;
        }
        if (step_with(context, start.action, worker_may(context, start.host_functions))) {
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
    /* Virtual workers have their own, and callers step through them: 16 more would take most of the time of acs_open. */
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

void acs_host_thread_give_up(acs_context *context)
{
    atomic_store_explicit(&context->host_thread, 3, memory_order_release); /* B */
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

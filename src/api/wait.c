/*
 * Waits of callers: for one op, for all ops, for room. A waiting caller steps the core itself while no worker is awake,
 * and polls for completions in the workers' place where all ops are issued. So no wait depends on a sleeping worker.
 * Owns the state of one wait (struct waiting). Blocks at the eventcount `ends`.
 */
#include "api/wait.h"

#include "api/threads.h"
#include "api/watchdog.h"
#include "base/nvtx.h"
#include "base/tuning.h"

/* The state of one wait, on the caller's stack. */
typedef struct waiting {
    acs_context *context;
    acs_wait_condition condition; /* condition to wait for, if `try` is NULL */
    acs_try_fn try;      /* function to succeed, or NULL */
    void *argument;      /* of `try` */
    uint64_t ends_seen;  /* acs_core_ends at the last look; UINT64_MAX: look again in any case */
    uint64_t idle_since; /* time in ns since which no step changed anything; 0: the last step did */
    uint32_t looks;      /* number of steps while the thread polls */
    uint32_t rounds;     /* rounds with more than TUNE_WAITER_FEW_OPS ops out, in which the thread did not poll */
    bool stepped;        /* the thread did a worker's work */
    bool polls_itself;   /* the thread polls for completions in the workers' place */
    bool busy;           /* another thread had the core's lock, so this round learned nothing */
    bool fresh;          /* `load` is of the thread's own last step. Only every second step counts, so that news of
                            others are seen, too */
    bool may_poll;       /* `load` was read in this round */
    acs_core_load load;  /* work that was left when the thread looked last */
} waiting;

/*
 * The thread no longer polls, so workers have to. Only ops that it knows of need a wake: for later ones their callers
 * woke a worker.
 */
static void stop_polling(waiting *w)
{
    acs_context *context = w->context;
    if (!w->polls_itself)
        return;
    w->polls_itself = false;
    atomic_store_explicit(&context->polling_callers, 0, memory_order_relaxed); /* a hint */
    if (w->load != ACS_LOAD_NONE)
        acs_wake_somebody(context);
}

/*
 * Whether this round reads the core's load. Not with more than TUNE_WAITER_ORDERED_OPS ops out, whose issue is the
 * workers' task. With more than TUNE_WAITER_FEW_OPS only one round in TUNE_WAITER_ROUNDS reads it, since the workers
 * need the core's lock more.
 */
static bool try_look_at_load(waiting *w)
{
    acs_core *core = &w->context->core;
    if (w->context->issuers == 0 || w->context->backend->ops->notifies)
        return false;
    const uint64_t out = acs_fifo_last(core->fifo) - acs_core_ends(core);
    const bool rarely = !w->polls_itself && out > TUNE_WAITER_FEW_OPS;
    if (out > TUNE_WAITER_ORDERED_OPS)
        return false;
    return !rarely || ++w->rounds % TUNE_WAITER_ROUNDS == 0;
}

/* Become or stay the one caller that polls in the workers' place; only while no op waits to be issued. */
static bool try_poll(waiting *w)
{
    uint32_t none = 0;
    if (w->busy)
        return false; /* waiting for the core's lock could mean sleeping */
    if (!w->may_poll || w->load != ACS_LOAD_RUNNING) {
        stop_polling(w);
        return false;
    }
    /* Relaxed: a hint to workers; the core itself lets one thread poll. Another caller may have cleared it. */
    if (!w->polls_itself || !atomic_load_explicit(&w->context->polling_callers, memory_order_relaxed))
        w->polls_itself = atomic_compare_exchange_strong_explicit(&w->context->polling_callers, &none, 1,
                                                                  memory_order_relaxed, memory_order_relaxed);
    return w->polls_itself;
}

static bool try_finish(waiting *w)
{
    return w->try ? w->try(w->context, w->argument) : acs_core_true(&w->context->core, &w->condition);
}

/*
 * The look of one round: returns whether the wait is over, and reads the load where this thread may poll. Takes the
 * core's lock only if an op has ended since the last look, or if the thread's own last step does not tell the load.
 * For workers need the lock more.
 */
static bool look_for_end(waiting *w)
{
    acs_core *core = &w->context->core;
    const uint64_t ends = acs_core_ends(core);
    const bool known = w->fresh && w->polls_itself && w->load == ACS_LOAD_RUNNING && !acs_fifo_ready(core->fifo);
    const bool looks = !known && try_look_at_load(w), ended = !w->try && ends != w->ends_seen;
    bool over = false;
    w->busy = false;
    if (w->try ? try_finish(w) : ended && acs_core_settled(core) >= w->condition.op)
        return true;
    w->may_poll = looks || known;
    if (looks || ended)
        w->busy = !acs_core_look_try(core, w->try ? NULL : &w->condition, TUNE_WAITER_FEW_OPS, &over, &w->load);
    if (ended && !w->busy)
        w->ends_seen = ends;
    return over;
}

/*
 * Whether the caller steps. A worker that is awake issues alone: a second thread in one GPU's driver helped wide
 * programs and cost narrow ones as much. But where all ops are issued the caller polls itself, and the worker does not:
 * that is quicker than a wake-up.
 */
static bool steps_itself(waiting *w)
{
    if (try_poll(w))
        return true;
    return acs_workers_asleep(w->context) ||
           (w->idle_since && acs_clock_ns() - w->idle_since > TUNE_WORKER_STUCK_US * 1000ull);
}

/*
 * Beside a worker that issues, the caller only inserts ops into the window, and only if the core's lock is free. Beside
 * one that feeds a resident executor it does not: the worker has little to do there but insert, and two threads at the
 * window take longer than one (bench/experiments/resident-2026-11-27.md).
 */
static bool fills_window(const waiting *w)
{
    acs_core_news news;
    bool inserted;
    if (w->context->options.issue == ACS_ISSUE_RESIDENT || !acs_fifo_ready(w->context->core.fifo) ||
        !acs_core_insert_try(&w->context->core, &news, &inserted))
        return false;
    acs_pass_on_news(w->context, &news);
    return inserted;
}

/*
 * One step. To ask about a slot takes as long as a launch. So a thread that polls for one op asks about other slots
 * only in one step of TUNE_WAITER_LOOKS.
 */
static bool waiting_steps(waiting *w)
{
    const bool one = w->polls_itself && w->condition.type == ACS_WAIT_FOR_OP && ++w->looks % TUNE_WAITER_LOOKS != 0;
    if (w->context->stepper)
        return w->context->stepper->step(w->context);
    w->fresh = !w->fresh;
    return acs_caller_steps(w->context, one ? ACS_MAY_LOOK : acs_caller_may(w->context), &w->load);
}

/* Whether ops may be held back. Relaxed: who knows such an op sees the mode, which was set before it had its number. */
static inline bool holds_back(const waiting *w)
{
    return ACS_UNLIKELY(atomic_load_explicit(&w->context->modes, memory_order_relaxed) & ACS_MODE_REPEATS);
}

/* Ops that the thread needs may be held back, or the window may be full of such. `first`: the wait begins. */
static void let_go_on(waiting *w, bool first)
{
    const acs_op one = w->condition.type == ACS_WAIT_FOR_OP ? w->condition.op : UINT64_MAX;
    w->context->hooks->flush(w->context, w->try ? 0 : one, first && !w->try);
}

static void caller_sleeps(waiting *w)
{
    acs_context *context = w->context;
    acs_core_add_condition(&context->core, &w->condition);
    uint64_t epoch = acs_eventcount_prepare_wait(&context->ends);
    bool stepped = false;
    if (holds_back(w))
        let_go_on(w, false);
    if (!try_finish(w)) {
        stepped = acs_workers_asleep(context) && acs_context_step(context);
        bool polls = acs_workers_asleep(context) && !context->backend->ops->notifies;
        if (!stepped)
            acs_eventcount_wait(&context->ends, epoch, polls ? TUNE_WORKER_NAP_US : TUNE_CALLER_NAP_US);
    }
    acs_eventcount_cancel_wait(&context->ends);
    acs_core_remove_condition(&context->core, &w->condition);
}

/*
 * How long to spin before sleeping. A thread that polls spins like a worker: a wake-up takes longer than most kernels.
 */
static uint64_t spin_ns(const waiting *w)
{
    uint64_t spin_us = (uint64_t)w->context->options.spin_us;
    return (w->polls_itself && spin_us > 0 && spin_us < TUNE_EAGER_US ? TUNE_EAGER_US : spin_us) * 1000;
}

static void wait_for(waiting *w)
{
    w->ends_seen = UINT64_MAX;
    if (holds_back(w))
        let_go_on(w, true);
    const acs_stepper *stepper = w->context->stepper;
    if (!stepper && !w->try && acs_core_settled(&w->context->core) >= w->condition.op)
        return;
    ACS_NOT_CANCELLED; /* the core holds a pointer to the condition, on this thread's stack */
    while (stepper && !try_finish(w)) {
        if (!stepper->wait(w->context))
            return;
        if (holds_back(w))
            let_go_on(w, false);
    }
    while (!stepper && !look_for_end(w)) {
        bool stepped = steps_itself(w) ? waiting_steps(w) : fills_window(w);
        w->stepped |= stepped;
        if (stepped) {
            w->idle_since = 0;
            continue;
        }
        const uint64_t now = acs_clock_ns();
        if (!w->idle_since)
            w->idle_since = now;
        if (acs_watchdog_look_now(w->context)) {
            w->ends_seen = UINT64_MAX;
        } else if (now - w->idle_since < spin_ns(w)) {
            acs_pause_briefly();
        } else {
            stop_polling(w);
            caller_sleeps(w);
            w->ends_seen = UINT64_MAX;
        }
    }
    w->stepped |= w->polls_itself;
    stop_polling(w);
    /* Workers slept while this thread stepped: wake one for the work that is left. */
    if (w->stepped && w->load != ACS_LOAD_NONE)
        acs_wake_somebody(w->context);
}

void acs_context_wait(acs_context *context, acs_wait_condition_type type, acs_op op)
{
    waiting w = {.context = context, .condition = {.type = type, .op = op}};
    bool one = type == ACS_WAIT_FOR_OP;
    const acs_op newest = acs_fifo_last(context->core.fifo);
    const uint64_t began = ACS_RECORDER_NOW(context->recorder);
    if (one)
        acs_core_await(&context->core, op);
    wait_for(&w);
    if (one)
        acs_core_await_no_more(&context->core, op);
    if (ACS_UNLIKELY(context->recorder != NULL))
        acs_recorder_waited(context->recorder, one ? ACS_RECORDED_WAIT_OP : ACS_RECORDED_WAIT_ALL, op, newest, began);
}

void acs_context_wait_room(acs_context *context, acs_try_fn try, void *argument)
{
    waiting w = {.context = context, .condition = {.type = ACS_WAIT_FOR_ROOM}, .try = try, .argument = argument};
    const acs_op newest = acs_fifo_last(context->core.fifo);
    const uint64_t began = ACS_RECORDER_NOW(context->recorder);
    wait_for(&w);
    if (ACS_UNLIKELY(context->recorder != NULL))
        acs_recorder_waited(context->recorder, ACS_RECORDED_WAIT_ROOM, newest, newest, began);
}

bool acs_context_drain(acs_context *context, const char *function)
{
    const acs_op_hooks *hooks = acs_context_modes(context) ? context->hooks : NULL;
    if (ACS_UNLIKELY(acs_nvtx_taken))
        acs_nvtx_push_wait(function, acs_fifo_last(context->core.fifo));
    if (ACS_UNLIKELY(hooks != NULL))
        hooks->before_drain(context);
    acs_context_wait(context, ACS_WAIT_FOR_ALL, acs_fifo_last(context->core.fifo));
    const bool again = ACS_UNLIKELY(hooks != NULL) && hooks->drained(context);
    if (ACS_UNLIKELY(acs_nvtx_taken))
        acs_nvtx_pop();
    return again;
}

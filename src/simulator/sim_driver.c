/*
 * Stepping on the sim backend, in place of threads: one thread plays several workers. Each takes the three parts of a
 * step (decide, perform, book) one at a time. With ACS_SIM_ORDER=seed the seed chooses the order, so that every
 * interleaving of workers, callers and completions can happen and can be replayed. With =time each worker has a clock,
 * which its calls and its own work advance, and the earliest worker is next. Called through the stepper of the context
 * (api/hooks.h). Never sleeps and never reads a clock.
 */
#include "simulator/sim.h"
#include "simulator/sim_driver.h"
#include "api/watchdog.h"

#include <sched.h>
#include <stdlib.h>

enum {
    STEPS_AFTER_CALL = 4, /* by seed: most steps after a call */
    STILL_MOST = 2000, /* steps without progress after which the run stands still: several rounds of all workers, and of
                          all completions that a seed may hide */
    /* Time in ns that the library's own work takes of a thread, measured on the machine of gpus.c with `acs-micro`.
     * bench/results agree: own work per op is 0.9 to 1.3 us in all. */
    CALL_NS = 150,      /* a call */
    STEP_NS = 100,      /* a step */
    OP_NS = 850,        /* each op of a batch */
    BUNDLED_OP_NS = 350 /* each op of a bundle */
};

static bool stepping_take(acs_context *context)
{
    uint32_t idle = 0;
    /* D: acquire; pairs with stepping_give. One thread at a time plays, and sees the writes of the one before. */
    return atomic_compare_exchange_strong_explicit(&context->sim_driver->stepping, &idle, 1, memory_order_acquire,
                                                   memory_order_relaxed); /* relaxed on failure: nothing is read then */
}

static void stepping_give(acs_context *context)
{
    atomic_store_explicit(&context->sim_driver->stepping, 0, memory_order_release); /* D */
}

/* --------------------------------------------------------------------------------------------------------- one step */

/* Take one part of a worker's step. False: nothing changed. */
static bool advance(acs_context *context, acs_sim_worker *worker)
{
    acs_core *core = &context->core;
    if (worker->stage == 0) {
        if (!acs_core_next(core, ACS_MAY_ALL, worker->action))
            return worker->action->news.condition_met;
        worker->stage = worker->action->type != ACS_ACTION_NONE; /* none: the step only inserted ops */
    } else if (worker->stage == 1) {
        acs_inside_set(true);
        acs_core_perform(core, worker->action);
        acs_inside_set(false);
        context->sim_driver->polled |= worker->action->type == ACS_ACTION_SUBMIT && worker->action->poll_count > 0;
        worker->stage = 2;
    } else {
        acs_core_done(core, worker->action);
        worker->stage = 0;
    }
    return true;
}

static bool step_by_seed(acs_context *context)
{
    uint32_t first = acs_random_below(&context->sim_driver->random, context->sim_driver->count);
    const bool queued = context->options.issuers > 0; /* the seed is asked for no more than it needs */
    bool progress = queued && acs_random_below(&context->sim_driver->random, 2) && acs_sim_backend_issues(context->backend);
    for (uint32_t i = 0; i < context->sim_driver->count && !progress; i++)
        progress = advance(context, &context->sim_driver->workers[(first + i) % context->sim_driver->count]);
    return progress || (queued && acs_sim_backend_issues(context->backend));
}

static acs_sim_worker *earliest(acs_context *context)
{
    acs_sim_worker *first = NULL;
    for (uint32_t i = 0; i < context->sim_driver->count; i++) {
        acs_sim_worker *worker = &context->sim_driver->workers[i];
        if (!worker->idle && (!first || worker->at < first->at))
            first = worker;
    }
    return first;
}

/* There is news at virtual time `when`: idle workers look again, then or later. */
static void rouse(acs_context *context, uint64_t when)
{
    for (uint32_t i = 0; i < context->sim_driver->count; i++) {
        acs_sim_worker *worker = &context->sim_driver->workers[i];
        if (worker->idle && worker->at < when)
            worker->at = when;
        worker->idle = false;
    }
}

/* Whether a worker missed news at its latest look and has to look once more. Clears the marks. */
static bool take_missed(acs_context *context)
{
    /* relaxed: the thread that set it plays later, or waits for one that does */
    bool missed = atomic_exchange_explicit(&context->sim_driver->called, false, memory_order_relaxed);
    for (uint32_t i = 0; i < context->sim_driver->count; i++) {
        missed |= context->sim_driver->workers[i].missed;
        context->sim_driver->workers[i].missed = false;
    }
    return missed;
}

/*
 * The earliest worker takes one part of a step. If all are idle, time passes to the next event of the backend, if one of
 * them polls for it. Else events stay where they are: a refused op's wait, when no op is out.
 */
static bool step_by_time(acs_context *context)
{
    acs_sim_worker *worker = earliest(context);
    if (!worker) {
        uint64_t next = context->sim_driver->polled ? acs_sim_backend_next(context->backend) : ACS_SIM_NEVER;
        context->sim_driver->polled = false;
        bool goes_on = next != ACS_SIM_NEVER || take_missed(context);
        if (goes_on)
            rouse(context, next != ACS_SIM_NEVER ? next : acs_sim_backend_now(context->backend));
        return goes_on;
    }
    uint32_t stage = worker->stage;
    acs_sim_backend_at(context->backend, worker->at);
    if (stage == 1)
        worker->looked = worker->at;
    bool progress = advance(context, worker);
    worker->at = acs_sim_backend_now(context->backend) + (stage == 0 ? STEP_NS : 0);
    if (stage == 0 && progress && worker->action->type == ACS_ACTION_SUBMIT)
        worker->at += (uint64_t)(worker->action->batch.bundle ? BUNDLED_OP_NS : OP_NS) * worker->action->batch.items_used;
    if (stage == 2) {
        progress = worker->action->progress;
        worker->missed = !progress && acs_sim_backend_news(context->backend, worker->looked);
    }
    if (!progress)
        worker->idle = true;
    else if (stage == 2)
        rouse(context, worker->at);
    return true;
}

static bool by_seed(const acs_context *context)
{
    return context->options.sim_order == ACS_SIM_ORDER_SEED;
}

/* ------------------------------------------------------------------------------------------------------ standstills */

/*
 * Let the watchdog look. During a standstill (`still`) time passes for it, a quarter of the limit per step. By seed,
 * durations are not times, so only standstills count.
 */
static bool look_for_overdue(acs_context *context, bool still)
{
    uint64_t limit_ns = context->core.overdue.limit_ns; /* 0: off */
    context->sim_driver->idle_ns += still ? limit_ns / 4 : 0;
    uint64_t base = by_seed(context) ? 0 : acs_sim_backend_now(context->backend);
    return acs_watchdog_look(context, base + context->sim_driver->idle_ns);
}

/*
 * A wait could never end, and the watchdog did not end it: report a lost device, so that every op ends. If that
 * happened before and did not help, the library has a defect, and waits end without success.
 */
static void end_standstill(acs_context *context)
{
    if (acs_context_is_lost(context)) {
        context->sim_driver->stuck = true;
        return;
    }
    acs_error error;
    acs_error_fill(&error, ACS_ERR_DEVICE, 0, __func__,
                   "simulation: nothing can make progress any more, but ops have not ended");
    acs_core_lose(&context->core, &error);
    rouse(context, 0); /* workers end the ops that are still in the FIFO */
}

/*
 * Whether the step changed nothing and nothing can change by itself: no op ended or was queued, and
 * the backend has no event to come that a worker will see. Nor is a thread inside the call that queues an op, which may
 * take it any time.
 */
static bool check_still(acs_context *context, uint64_t ends)
{
    acs_core *core = &context->core;
    const acs_op queued = acs_fifo_last(core->fifo);
    const bool is_same = ends == acs_core_ends(core) && queued == context->sim_driver->queued;
    const bool goes_on = context->sim_driver->polled && acs_sim_backend_next(context->backend) != ACS_SIM_NEVER;
    context->sim_driver->queued = queued;
    context->sim_driver->polled &= !by_seed(context); /* by time, a look of all workers is several steps */
    return is_same && !acs_fifo_unfinished(core->fifo) && !goes_on;
}

/* Count standstills after a step of a waiting caller, and end one that lasts. `ends`: acs_core_ends before the step. */
static void judge_standstill(acs_context *context, uint64_t ends)
{
    context->sim_driver->still = check_still(context, ends) ? context->sim_driver->still + 1 : 0;
    if (look_for_overdue(context, context->sim_driver->still > STILL_MOST / 2))
        context->sim_driver->still = 0;
    if (context->sim_driver->still > STILL_MOST) {
        context->sim_driver->still = 0;
        end_standstill(context);
    }
    for (uint32_t i = 0; i < context->sim_driver->count; i++) /* callers learn of it then */
        if (!by_seed(context) && context->sim_driver->caller_at < context->sim_driver->workers[i].at)
            context->sim_driver->caller_at = context->sim_driver->workers[i].at;
}

/* One step; `judges`: then judge. False: it changed nothing, or, if it judges, another thread plays. */
static bool play(acs_context *context, bool judges)
{
    uint64_t ends = acs_core_ends(&context->core);
    if (!stepping_take(context))
        return false;
    bool progress = by_seed(context) ? step_by_seed(context) : step_by_time(context);
    if (judges)
        judge_standstill(context, ends);
    stepping_give(context);
    if (progress)
        acs_eventcount_notify(&context->ends);
    return progress || judges;
}

static bool step(acs_context *context)
{
    return play(context, false);
}

/* ---------------------------------------------------------------------------------------------------------- callers */

/* For tests: let other producers go on. They play on this thread, so its error is saved. */
static void yield(acs_context *context)
{
    if (!context->sim_driver->yield)
        return;
    acs_error error = *acs_error_thread();
    context->sim_driver->yield(context->sim_driver->yield_user);
    *acs_error_thread() = error;
}

/* A call takes CALL_NS of the callers' time; workers step until their time is that of the callers, or they are idle. */
static void interleave_by_time(acs_context *context)
{
    context->sim_driver->caller_at += CALL_NS;
    rouse(context, context->sim_driver->caller_at);
    for (acs_sim_worker *worker = earliest(context); worker && worker->at <= context->sim_driver->caller_at;
         worker = earliest(context))
        (void)step_by_time(context);
}

static void interleave(acs_context *context)
{
    acs_sim_driver *driver = context->sim_driver;
    uint32_t steps = 0;
    if (stepping_take(context)) {
        if (!by_seed(context))
            interleave_by_time(context);
        else if (!driver->ahead || acs_random_below(&driver->random, driver->ahead) == 0)
            steps = acs_random_below(&driver->random, STEPS_AFTER_CALL + 1);
        stepping_give(context);
    } else {
        atomic_store_explicit(&driver->called, true, memory_order_relaxed); /* the one that plays may have looked before */
    }
    while (steps-- > 0)
        (void)step(context);
    yield(context);
}

/* acs_stepper.wait. Where nothing can make progress any more, the device is reported lost. */
static bool wait_for_ops(acs_context *context)
{
    if (context->sim_driver->stuck)
        return false;
    if (!play(context, true))
        sched_yield(); /* another thread plays */
    yield(context);
    return true;
}

/* acs_stepper.wait_for_thread. Does not judge: however long the other thread takes, the device is not lost. */
static void wait_for_thread(acs_context *context)
{
    if (!step(context))
        sched_yield();
    yield(context);
}

/* --------------------------------------------------------------------------------------------------- open and close */

static uint64_t driver_now_ns(acs_context *context)
{
    return acs_sim_backend_now(context->backend);
}

static bool is_stuck(const acs_context *context)
{
    return context->sim_driver->stuck;
}

static const acs_stepper g_stepper = {.now_ns = driver_now_ns,
                                      .step = step,
                                      .queued = interleave,
                                      .wait = wait_for_ops,
                                      .wait_for_thread = wait_for_thread,
                                      .is_stuck = is_stuck};

acs_status acs_sim_driver_open(acs_context *context)
{
    if (context->backend->ops->id != ACS_BACKEND_SIM)
        return ACS_OK;
    int64_t wanted = context->options.workers * context->backend->devices; /* as threads are */
    uint32_t count = wanted < 1 ? 1 : wanted > ACS_SIM_WORKERS ? ACS_SIM_WORKERS : (uint32_t)wanted;
    acs_sim_driver *driver = context->sim_driver = calloc(1, sizeof *driver);
    if (!driver)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the simulated workers");
    driver->random.state = (uint64_t)context->options.seed;
    for (uint32_t i = 0; i < count; i++) {
        driver->workers[i].action = calloc(1, sizeof(acs_action));
        if (!driver->workers[i].action)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a simulated worker");
        driver->workers[i].action->device = i % context->backend->devices;
        driver->count++;
    }
    context->stepper = &g_stepper;
    return ACS_OK;
}

void acs_sim_driver_close(acs_context *context)
{
    context->stepper = NULL;
    if (!context->sim_driver)
        return;
    for (uint32_t i = 0; i < ACS_SIM_WORKERS; i++)
        free(context->sim_driver->workers[i].action);
    free(context->sim_driver);
    context->sim_driver = NULL;
}

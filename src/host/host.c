/*
 * The host backend: slots run on executor threads, or inside poll where the context may make no threads. The core calls
 * it through its ops table. Owns the state machine of host_executor.c with one lock around it, the run queue of slots
 * that can advance, and the executors. These look for work for a while and then sleep. Never holds the lock while an op
 * runs or while it notifies the core.
 *
 * Waking a thread costs as much as several short ops. So at most one executor looks for work without sleeping. While
 * one is awake, another is woken only if the ops that can run are expected to take longer than the wake-up. That
 * estimate rests on recent ops, and a long op may follow short ones. So while an executor is awake, one of the sleepers
 * is the guard: it wakes now and then, and checks that ops were claimed meanwhile. Thus a slot in the run queue always
 * has a searcher, a guard or a signalled thread, unless no executor sleeps. While all sleep, none wakes by time.
 */
#include "host/host_internal.h"
#include "base/inside.h"
#include "base/thread.h"
#include "base/tuning.h"
#include "window/nvtx_op.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Signal a sleeper if the ops of the run queue are worth a wake-up, or if no other thread would run them. The signalled
 * thread claims an op and then calls this again.
 */
static void wake_one_locked(host_backend *h)
{
    bool nobody_comes = (!h->guarded || h->sleepers == h->runner_count) && !h->signalled;
    bool worth = nobody_comes || acs_host_runnable(h) * h->op_ns > TUNE_HOST_WAKE_NS;

    if (h->run_first != HOST_NONE && h->sleepers && !h->searchers && worth) {
        h->signalled = true;
        acs_cond_signal(&h->work);
    }
}

/* With ACS_STATS: an op begins (1) or has ended (-1). */
static void count_locked(host_backend *h, int change)
{
    if (h->config.activity)
        acs_activity_add(h->config.activity, ACS_ACTIVITY_BACKEND, change);
}

/*
 * Claim a slot and its next op; oldest slot of the run queue first, so that none starves. NULL: nothing can run. If the
 * backend was given up, this only empties the run queue.
 */
static acs_record *claim_locked(host_backend *h, uint32_t *slot)
{
    while ((*slot = acs_host_queue_pop_locked(h)) != HOST_NONE) {
        acs_record *op = h->given_up ? NULL : acs_host_advance_locked(h, *slot);
        if (op) {
            h->claims++;
            count_locked(h, 1);
            wake_one_locked(h); /* for the work that is left; the woken thread does the same */
            return op;
        }
    }
    return NULL;
}

/* The claimed slot's op ran. */
static void done_locked(host_backend *h, uint32_t slot)
{
    count_locked(h, -1);
    acs_host_finish_locked(h, slot);
    acs_host_queue_push_locked(h, slot);
}

/* ------------------------------------------------------------------------------------------------------- threads */

/* Notify the core. Never under the backend's lock, for the core takes locks of lower rank. */
static void notify(const host_backend *h)
{
    if (h->config.notify)
        h->config.notify(h->config.user);
}

/* Whether a timeline moved since the last call. The thread that gets true notifies the core once for all ops. */
static bool progress_take_locked(host_backend *h)
{
    bool progress = h->slots.progress;

    h->slots.progress = false;
    return progress;
}

/*
 * Look for work for spin_us without sleeping, unless another executor does. Releases the lock meanwhile. Returns false
 * when it is time to sleep.
 */
static bool search_locked(host_backend *h)
{
    uint64_t spin_ns = (uint64_t)h->config.options->spin_us * 1000;
    uint64_t end;

    if (h->searchers || acs_host_closing(h) || !spin_ns)
        return false;
    h->searchers++;
    acs_lock_release(&h->lock);
    end = acs_clock_ns() + spin_ns;
    while (!acs_host_runnable(h) && !acs_host_closing(h) && acs_clock_ns() < end)
        acs_pause_briefly();
    acs_lock_acquire(&h->lock);
    h->searchers--;
    return h->run_first != HOST_NONE;
}

/* Run an op, and note how long it takes if somebody wants to know. A profiler sees the run as a range. */
static void run_one(const host_backend *h, acs_record *op, uint32_t slot, acs_host_scratch *scratch)
{
    const bool timed = op->kind == ACS_KIND_KERNEL && op->flags & ACS_RECORD_TIMED;
    const uint64_t begin = ACS_UNLIKELY(timed) ? acs_clock_ns() : 0;
    const bool shown = ACS_UNLIKELY(acs_nvtx_taken) && acs_nvtx_op_push(op, (int)slot);
    if (ACS_UNLIKELY(h->base.records_times))
        op->began = acs_clock_ticks();
    acs_host_run(op, scratch);
    if (ACS_UNLIKELY(h->base.records_times))
        op->ended = acs_clock_ticks();
    if (ACS_UNLIKELY(shown))
        acs_nvtx_pop();
    if (ACS_UNLIKELY(timed))
        op->u.launch.timer = acs_clock_ns() - begin;
}

static uint64_t host_elapsed(acs_backend *backend, acs_record *op)
{
    (void)backend;
    return op->u.launch.timer;
}

/* Run an op, and measure one in TUNE_HOST_TIMED_TURNS. *took_ns: UINT64_MAX if it was not measured. */
static void run_op(const host_backend *h, host_runner *runner, acs_record *op, uint32_t slot, uint64_t *took_ns)
{
    bool timed = runner->ops++ % TUNE_HOST_TIMED_TURNS == 0;
    uint64_t begin = timed ? acs_clock_ns() : 0;

    run_one(h, op, slot, &runner->scratch);
    *took_ns = timed ? acs_clock_ns() - begin : UINT64_MAX;
}

static void learn_locked(host_backend *h, uint64_t took_ns)
{
    if (took_ns == UINT64_MAX)
        return;
    h->op_ns = took_ns > h->op_ns ? took_ns : h->op_ns - (h->op_ns - took_ns) / 4;
}

/*
 * Sleep as the guard until a signal comes, until no op was claimed for TUNE_HOST_GUARD_US though a slot could advance,
 * or until all executors sleep. In the last case the next submit wakes one, so no guard is needed.
 */
static void guard_locked(host_backend *h)
{
    bool signalled, stuck;

    h->guarded = true;
    do {
        uint32_t claims = h->claims;
        signalled = acs_cond_wait_us(&h->work, &h->lock, TUNE_HOST_GUARD_US);
        h->signalled = false;
        stuck = h->run_first != HOST_NONE && h->claims == claims;
    } while (!signalled && !stuck && !acs_host_closing(h) && h->sleepers < h->runner_count);
    h->guarded = false;
    if (!signalled && stuck && h->op_ns < TUNE_HOST_LONG_OP_NS)
        h->op_ns = TUNE_HOST_LONG_OP_NS; /* ops are longer than estimated, so the next thread is woken at once */
}

static void sleep_locked(host_backend *h)
{
    h->sleepers++;
    if (!h->guarded && h->sleepers < h->runner_count)
        guard_locked(h);
    else
        acs_cond_wait(&h->work, &h->lock);
    h->signalled = false;
    h->sleepers--;
}

/* Main function of an executor. It notifies the core before it runs the next op, which may take long. */
static void *executor(void *arg)
{
    host_runner *runner = arg;
    host_backend *h = runner->host;
    uint32_t slot;
    uint64_t took_ns = UINT64_MAX;

    acs_thread_pin(runner->cpu);
    acs_inside_set(true); /* host bodies run here; nothing else on this thread calls the library */
    acs_lock_acquire(&h->lock);
    for (;;) {
        acs_record *op = claim_locked(h, &slot);
        bool progress = progress_take_locked(h);
        runner->busy = op != NULL;
        if (op || progress) {
            acs_lock_release(&h->lock);
            if (progress)
                notify(h);
            if (op)
                run_op(h, runner, op, slot, &took_ns);
            acs_lock_acquire(&h->lock);
            runner->busy = false;
            if (op) {
                done_locked(h, slot);
                learn_locked(h, took_ns);
            }
        } else if (acs_host_closing(h)) {
            break;
        } else if (!search_locked(h) && !acs_host_closing(h) && !h->slots.progress && h->run_first == HOST_NONE) {
            sleep_locked(h);
        }
    }
    acs_lock_release(&h->lock);
    return NULL;
}

static acs_status start_threads(host_backend *h)
{
    int error = 0;

    while (h->started < h->runner_count && !error) {
        host_runner *runner = &h->runners[h->started];
        runner->cpu = h->config.cpu_next ? h->config.cpu_next(h->config.user) : -1;
        error = acs_thread_create(&runner->thread, executor, runner);
        if (!error)
            h->started++;
    }
    if (error)
        return ACS_FAIL(ACS_ERR_MEMORY, error, "host backend: thread %u of %u could not be made",
                        (unsigned)h->started + 1, (unsigned)h->runner_count);
    return ACS_OK;
}

/* Threads leave only when no op can run any more. */
static void send_home(host_backend *h)
{
    ACS_HOLD(&h->lock);
    atomic_store_explicit(&h->closing, true, memory_order_relaxed); /* a hint, see the struct */
    acs_cond_broadcast(&h->work);
}

/* The core closes the backend when all ops have completed. */
static void host_quiesce(acs_backend *backend)
{
    host_backend *h = (host_backend *)backend;

    send_home(h);
    for (uint32_t i = 0; i < h->started; i++)
        pthread_join(h->runners[i].thread, NULL);
    h->started = 0;
}

/* --------------------------------------------------------------------------------------------- opening, closing */

/* CPUs that this process may use. */
static uint32_t cpu_count(void)
{
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

static uint32_t executors_asked(const acs_backend_config *config)
{
    return config->options->executors ? (uint32_t)config->options->executors : cpu_count();
}

static uint32_t runners_wanted(const acs_backend_config *config)
{
    const uint32_t wanted = executors_asked(config);

    if (config->inline_only)
        return 1;
    return wanted < config->slots ? wanted : config->slots; /* a slot keeps one thread busy at most */
}

static acs_status make_runners(host_backend *h)
{
    h->runners = calloc(h->runner_count, sizeof *h->runners);
    if (!h->runners)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "host backend: no memory for %u threads", (unsigned)h->runner_count);
    for (uint32_t i = 0; i < h->runner_count; i++) {
        h->runners[i].host = h;
        ACS_TRY(acs_host_scratch_init(&h->runners[i].scratch));
    }
    return ACS_OK;
}

static acs_status make_links(host_backend *h)
{
    h->run_first = HOST_NONE;
    h->links = calloc(h->config.slots, sizeof *h->links);
    if (!h->links)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "host backend: no memory for %u slots", (unsigned)h->config.slots);
    for (uint32_t i = 0; i < h->config.slots; i++)
        h->links[i].blocked = HOST_NONE;
    return ACS_OK;
}

/* Make everything but the lock and its conditions. On failure host_close releases the parts that were made. */
static acs_status make_parts(host_backend *h)
{
    ACS_TRY(acs_host_slots_init(&h->slots, h->config.slots));
    ACS_TRY(make_links(h));
    ACS_TRY(make_runners(h));
    ACS_TRY(acs_call_slots_create(h->config.slots, &h->base.calls));
    return h->config.inline_only ? ACS_OK : start_threads(h);
}

static void host_close(acs_backend *backend)
{
    host_backend *h = (host_backend *)backend;

    host_quiesce(backend);
    acs_call_slots_destroy(h->base.calls, &h->base);
    for (uint32_t i = 0; h->runners && i < h->runner_count; i++)
        acs_host_scratch_fini(&h->runners[i].scratch);
    free(h->runners);
    free(h->links);
    acs_host_slots_fini(&h->slots);
    acs_cond_fini(&h->room);
    acs_cond_fini(&h->work);
    acs_lock_fini(&h->lock);
    free(h);
}

static acs_status host_open(const acs_backend_config *config, acs_backend **backend)
{
    host_backend *h = calloc(1, sizeof *h);
    acs_status status;
    int error;

    if (!h)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "host backend: no memory");
    h->base.ops = config->inline_only ? &acs_backend_host_inline : &acs_backend_host;
    h->base.pages = acs_host_pages;
    h->config = *config;
    h->base.devices = config->devices ? config->devices : 1; /* virtual devices, any number */
    h->config.slots = acs_backend_slots(config->slots, h->base.devices);
    h->op_ns = TUNE_HOST_LONG_OP_NS;
    h->runner_count = h->base.parallel = runners_wanted(&h->config);
    h->base.sms = executors_asked(&h->config);
    (void)snprintf(h->base.model, sizeof h->base.model, "CPU");
    error = acs_lock_init(&h->lock, ACS_RANK_BACKEND);
    if (error)
        goto free_backend;
    error = acs_cond_init(&h->work);
    if (error)
        goto fini_lock;
    error = acs_cond_init(&h->room);
    if (error)
        goto fini_work;
    status = make_parts(h);
    if (status != ACS_OK) {
        host_close(&h->base);
        return status;
    }
    *backend = &h->base;
    return ACS_OK;
fini_work:
    acs_cond_fini(&h->work);
fini_lock:
    acs_lock_fini(&h->lock);
free_backend:
    free(h);
    return ACS_FAIL(ACS_ERR_MEMORY, error, "host backend: no lock");
}

/* ------------------------------------------------------------------------------------------------------ giving up */

static void host_give_up(acs_backend *backend)
{
    host_backend *h = (host_backend *)backend;

    ACS_HOLD(&h->lock);
    h->given_up = true;
    acs_cond_broadcast(&h->room);
}

/* Whether an executor is inside an op. After the give-up an idle one stays idle, for no op can be claimed. */
static bool is_busy(host_backend *h, const host_runner *runner)
{
    ACS_HOLD(&h->lock);
    return runner->busy;
}

/* Detach executors that are inside an op, and join the others. A detached one leaves when its op ends, if ever. */
static acs_leave host_leave(acs_backend *backend)
{
    host_backend *h = (host_backend *)backend;
    bool left = is_busy(h, &h->runners[0]) && h->config.inline_only;

    send_home(h);
    for (uint32_t i = 0; i < h->started; i++) {
        if (is_busy(h, &h->runners[i])) {
            pthread_detach(h->runners[i].thread);
            left = true;
        } else {
            pthread_join(h->runners[i].thread, NULL);
        }
    }
    h->started = 0; /* so host_close joins no thread */
    return left ? ACS_LEFT_THREADS : ACS_LEFT_NOTHING;
}

/* ----------------------------------------------------------------------------------------------- submit and poll */

/* Inline: run all ops that can run. False: another thread does. Releases the lock while an op runs. */
static bool drain_locked(host_backend *h)
{
    acs_record *op;
    uint32_t slot;

    if (h->draining)
        return false;
    h->draining = true;
    while ((op = claim_locked(h, &slot)) != NULL) {
        h->runners[0].busy = true;
        acs_lock_release(&h->lock);
        run_one(h, op, slot, &h->runners[0].scratch);
        acs_lock_acquire(&h->lock);
        h->runners[0].busy = false;
        done_locked(h, slot);
    }
    h->draining = false;
    return true;
}

/*
 * There is no memory for a larger queue: wait until an entry leaves it. Entries wait only for ops that were submitted
 * before them, so one will leave, unless the device is given up.
 */
static void wait_for_room_locked(host_backend *h)
{
    wake_one_locked(h);
    h->crowded++;
    if (!h->config.inline_only || !drain_locked(h))
        acs_cond_wait(&h->room, &h->lock);
    h->crowded--;
}

static void issue_locked(host_backend *h, const acs_batch *batch, acs_item *item)
{
    item->status = ACS_OK;
    item->native = 0;
    item->text = NULL;
    while (!acs_host_issue(&h->slots, batch, item)) {
        if (h->given_up) {
            acs_item_result(item, ACS_ERR_DEVICE, ETIMEDOUT, "the device was given up");
            return;
        }
        wait_for_room_locked(h);
    }
    /* In any other state the slot reaches the new entry by itself. */
    if (item->slot >= 0 && h->links[item->slot].state == HOST_IDLE)
        acs_host_queue_push_locked(h, (uint32_t)item->slot);
}

static void host_submit(acs_backend *backend, acs_batch *batch)
{
    host_backend *h = (host_backend *)backend;
    bool progress;

    acs_lock_acquire(&h->lock);
    for (uint32_t i = 0; i < batch->items_used; i++)
        issue_locked(h, batch, &batch->items[i]);
    wake_one_locked(h);
    progress = progress_take_locked(h); /* a mark in an empty slot is complete at once */
    acs_lock_release(&h->lock);
    if (progress && h->base.ops->notifies)
        notify(h);
}

/* Takes no lock: acs_host_completed pairs with the release by which a timeline is moved. */
static acs_status host_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed)
{
    host_backend *h = (host_backend *)backend;
    uint32_t n = acs_host_marks_complete(marks, count, acs_host_completed(&h->slots, (uint32_t)slot));

    if (n)
        *completed = marks[n - 1].value;
    return ACS_OK;
}

static acs_status host_inline_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count,
                                   uint64_t *completed)
{
    host_backend *h = (host_backend *)backend;

    acs_lock_acquire(&h->lock);
    drain_locked(h);
    acs_lock_release(&h->lock);
    return host_poll(backend, slot, marks, count, completed);
}

/* What both kinds of the backend have: that with threads, and the inline one. */
#define BOTH_KINDS                                                                                                     \
    ACS_HOST_OPS,                                                                                                      \
    .id = ACS_BACKEND_HOST,                                                                                            \
    .tells_running = true,                                                                                             \
    .open = host_open,                                                                                                 \
    .quiesce = host_quiesce,                                                                                           \
    .close = host_close,                                                                                               \
    .give_up = host_give_up,                                                                                           \
    .leave = host_leave,                                                                                               \
    .check = acs_host_check,                                                                                           \
    .submit = host_submit,                                                                                             \
    .elapsed = host_elapsed,                                                                                           \
    .memory_alloc = acs_host_memory_alloc

const acs_backend_ops acs_backend_host = {BOTH_KINDS, .notifies = true, .single_thread = false, .poll = host_poll};
const acs_backend_ops acs_backend_host_inline = {
    BOTH_KINDS, .notifies = false, .single_thread = true, .poll = host_inline_poll};

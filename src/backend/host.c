/*
 * The host backend: slots run on CPU threads, or inside poll where the context may make no threads.
 * Called by the core through its ops table. It is the shell around host_executor: one lock, a queue of slots that can
 * advance, executor threads that look for work for a while and then sleep.
 * Never holds the lock while an op runs or the core is notified.
 *
 * Waking a thread costs as much as several short ops. So one executor at most looks for work without sleeping, and while
 * one is awake another is woken only where the slots that can advance promise it more than its waking costs. That
 * promise rests on how long ops took so far, and a long op may follow short ones. So while any executor is awake one of
 * the sleepers is the guard: it looks now and then whether nothing was claimed meanwhile. A slot in the run queue thus
 * always has a searcher, a guard or a signalled thread, unless no executor sleeps. While all sleep none wakes by time.
 */
#include "base/inside.h"
#include "backend/host_executor.h"
#include "backend/host_kernel.h"
#include "base/lock.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Every slot is in one of these states; the lock guards them.
 *   IDLE     nothing in its queue
 *   QUEUED   in the run queue: its head may be able to go
 *   CLAIMED  a thread runs its head
 *   BLOCKED  its head waits for another slot's timeline, in whose list of blocked slots it is
 */
typedef enum host_state { HOST_IDLE, HOST_QUEUED, HOST_CLAIMED, HOST_BLOCKED } host_state;

#define HOST_NONE UINT32_MAX

/* What waking a thread costs, about: system call, switch, cold cache. */
#define WAKE_NS 10000u
/* Every so many ops of an executor one is timed. */
#define TIMED_EVERY 16u
/* An op that is worth a thread of its own; what is believed of ops before any ran. */
#define LONG_OP_NS (2 * WAKE_NS)
/* How often the guard looks: waking it so rarely costs next to nothing. */
#define GUARD_US 1000u

typedef struct host_link {
    host_state state;
    uint32_t next;    /* QUEUED: next in the run queue; BLOCKED: next in the list it is in */
    uint32_t blocked; /* first of the slots that wait for this one */
} host_link;

typedef struct host_backend host_backend;

typedef struct host_runner {
    host_backend *host;
    pthread_t thread;
    int cpu; /* to pin to, or -1 */
    uint32_t ops;
    acs_host_scratch scratch;
} host_runner;

struct host_backend {
    acs_backend base;
    acs_backend_config config;

    acs_lock lock; /* rank BACKEND; guards all to the next blank line */
    acs_cond work; /* the run queue is not empty, a timeline moved, or closing */
    acs_host_slots slots;
    host_link *links;
    uint32_t run_first, run_last;
    uint32_t sleepers, searchers; /* executors that sleep; that look for work without sleeping, at most one */
    bool guarded;                 /* one of the sleepers is the guard */
    bool signalled;               /* one of the sleepers was signalled and has not got the lock since */
    uint32_t claims;              /* ops claimed, counted round */
    uint64_t op_ns;               /* how long ops took lately; falls slowly, rises at once */
    bool draining;                /* inline: a thread is running ops inside poll */

    /* Written under the lock, read without it as hints: a reader that errs looks again under the lock. */
    _Atomic uint32_t runnable; /* slots in the run queue */
    _Atomic bool closing;      /* threads leave when nothing can run */

    uint32_t runner_count;
    uint32_t started; /* threads to join */
    host_runner *runners;
};

/* ---------------------------------------------------------------------------------------- which slot can advance */

/* Relaxed: a hint for those without the lock (see the struct). */
static void count_runnable_locked(host_backend *h, uint32_t more)
{
    uint32_t count = atomic_load_explicit(&h->runnable, memory_order_relaxed) + more;
    atomic_store_explicit(&h->runnable, count, memory_order_relaxed);
}

static uint32_t runnable(const host_backend *h)
{
    return atomic_load_explicit(&h->runnable, memory_order_relaxed); /* a hint, see the struct */
}

static bool closing(const host_backend *h)
{
    return atomic_load_explicit(&h->closing, memory_order_relaxed); /* a hint, see the struct */
}

/* The run queue is a list through `next` in order of becoming runnable; `run_last` means nothing while it is empty. */
static void queue_push_locked(host_backend *h, uint32_t slot)
{
    h->links[slot].state = HOST_QUEUED;
    h->links[slot].next = HOST_NONE;
    if (h->run_first == HOST_NONE)
        h->run_first = slot;
    else
        h->links[h->run_last].next = slot;
    h->run_last = slot;
    count_runnable_locked(h, 1);
}

static uint32_t queue_pop_locked(host_backend *h)
{
    uint32_t slot = h->run_first;

    if (slot != HOST_NONE) {
        h->run_first = h->links[slot].next;
        count_runnable_locked(h, UINT32_MAX); /* one less, counted round */
    }
    return slot;
}

/* A slot blocks behind one other at a time: its head entry has one wait, and further waits are entries of their own. */
static void block_locked(host_backend *h, uint32_t slot, uint32_t behind)
{
    h->links[slot].state = HOST_BLOCKED;
    h->links[slot].next = h->links[behind].blocked;
    h->links[behind].blocked = slot;
}

/* Queue the slots whose wait for this one is satisfied; the others stay in its list. */
static void unblock_locked(host_backend *h, uint32_t behind)
{
    uint32_t *link = &h->links[behind].blocked;

    while (*link != HOST_NONE) {
        uint32_t slot = *link;
        if (!acs_host_satisfied(&h->slots, acs_host_head(&h->slots, slot))) {
            link = &h->links[slot].next;
            continue;
        }
        *link = h->links[slot].next;
        queue_push_locked(h, slot);
    }
}

static void finish_locked(host_backend *h, uint32_t slot)
{
    acs_host_finish(&h->slots, slot);
    unblock_locked(h, slot);
}

/* Advance one slot to its next op. NULL: it has none that can run now. */
static acs_record *advance_locked(host_backend *h, uint32_t slot)
{
    const acs_host_entry *head;

    while ((head = acs_host_head(&h->slots, slot)) != NULL) {
        if (!acs_host_satisfied(&h->slots, head)) {
            block_locked(h, slot, head->wait_slot);
            return NULL;
        }
        if (head->op) {
            h->links[slot].state = HOST_CLAIMED;
            return head->op;
        }
        finish_locked(h, slot);
    }
    h->links[slot].state = HOST_IDLE;
    return NULL;
}

/*
 * Signal a sleeper if what lies in the run queue is worth its waking, or if nobody else would come to it. The one that
 * was signalled will, and then looks here again.
 */
static void wake_one_locked(host_backend *h)
{
    bool nobody_comes = (!h->guarded || h->sleepers == h->runner_count) && !h->signalled;
    bool worth = nobody_comes || runnable(h) * h->op_ns > WAKE_NS;

    if (h->run_first != HOST_NONE && h->sleepers && !h->searchers && worth) {
        h->signalled = true;
        acs_cond_signal(&h->work);
    }
}

/* Claim a slot and its next op; oldest slot of the run queue first, so that none starves. NULL: nothing can run. */
static acs_record *claim_locked(host_backend *h, uint32_t *slot)
{
    while ((*slot = queue_pop_locked(h)) != HOST_NONE) {
        acs_record *op = advance_locked(h, *slot);
        if (op) {
            h->claims++;
            wake_one_locked(h); /* whoever leaves work behind wakes the next, who does the same */
            return op;
        }
    }
    return NULL;
}

/* The claimed slot's op ran. */
static void done_locked(host_backend *h, uint32_t slot)
{
    finish_locked(h, slot);
    queue_push_locked(h, slot);
}

/* ------------------------------------------------------------------------------------------------------- threads */

/* Never under the backend's lock: the core's answer takes locks that come before it. */
static void notify(const host_backend *h)
{
    if (h->config.notify)
        h->config.notify(h->config.user);
}

/* Read and cleared in one section of the lock: of all that finished since the last time somebody tells once. */
static bool progress_take_locked(host_backend *h)
{
    bool progress = h->slots.progress;

    h->slots.progress = false;
    return progress;
}

static void pin(const host_runner *runner)
{
    cpu_set_t set;
    int error;

    if (runner->cpu < 0 || runner->cpu >= CPU_SETSIZE)
        return;
    CPU_ZERO(&set);
    CPU_SET(runner->cpu, &set);
    error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    if (error)
        acs_log(ACS_LOG_WARN, "host backend: cannot pin a thread to CPU %d: errno %d", runner->cpu, error);
}

/*
 * Look for work for spin_us without sleeping, unless another executor does. The lock is released meanwhile.
 * Returns false when it is time to sleep.
 */
static bool search_locked(host_backend *h)
{
    uint64_t spin_ns = (uint64_t)h->config.options->spin_us * 1000;
    uint64_t end;

    if (h->searchers || closing(h) || !spin_ns)
        return false;
    h->searchers++;
    acs_lock_release(&h->lock);
    end = acs_clock_ns() + spin_ns;
    while (!runnable(h) && !closing(h) && acs_clock_ns() < end)
        acs_pause_briefly();
    acs_lock_acquire(&h->lock);
    h->searchers--;
    return h->run_first != HOST_NONE;
}

/* Run an op; of every few, learn how long it takes. */
static void run_op(host_runner *runner, acs_record *op, uint64_t *took_ns)
{
    bool timed = runner->ops++ % TIMED_EVERY == 0;
    uint64_t begin = timed ? acs_clock_ns() : 0;

    acs_host_run(op, &runner->scratch);
    *took_ns = timed ? acs_clock_ns() - begin : UINT64_MAX;
}

static void learn_locked(host_backend *h, uint64_t took_ns)
{
    if (took_ns == UINT64_MAX)
        return;
    h->op_ns = took_ns > h->op_ns ? took_ns : h->op_ns - (h->op_ns - took_ns) / 4;
}

/*
 * Sleep as the guard, until signalled, until nothing was claimed for a while though a slot could advance, or until all
 * sleep: then whoever submits wakes one, and time need not.
 */
static void guard_locked(host_backend *h)
{
    bool signalled, stuck;

    h->guarded = true;
    do {
        uint32_t claims = h->claims;
        signalled = acs_cond_wait_us(&h->work, &h->lock, GUARD_US);
        h->signalled = false;
        stuck = h->run_first != HOST_NONE && h->claims == claims;
    } while (!signalled && !stuck && !closing(h) && h->sleepers < h->runner_count);
    h->guarded = false;
    if (!signalled && stuck && h->op_ns < LONG_OP_NS)
        h->op_ns = LONG_OP_NS; /* ops are not as short as was believed: the next thread is woken at once */
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

/* Completions are told before the next op runs: it may take long. */
static void *executor(void *arg)
{
    host_runner *runner = arg;
    host_backend *h = runner->host;
    uint32_t slot;
    uint64_t took_ns = UINT64_MAX;

    pin(runner);
    acs_inside_set(true); /* host bodies run here; nothing else on this thread calls the library */
    acs_lock_acquire(&h->lock);
    for (;;) {
        acs_record *op = claim_locked(h, &slot);
        bool progress = progress_take_locked(h);
        if (op || progress) {
            acs_lock_release(&h->lock);
            if (progress)
                notify(h);
            if (op)
                run_op(runner, op, &took_ns);
            acs_lock_acquire(&h->lock);
            if (op) {
                done_locked(h, slot);
                learn_locked(h, took_ns);
            }
        } else if (closing(h)) {
            break;
        } else if (!search_locked(h) && !closing(h) && !h->slots.progress && h->run_first == HOST_NONE) {
            sleep_locked(h);
        }
    }
    acs_lock_release(&h->lock);
    return NULL;
}

/* Threads inherit the mask: the program's signals stay with the program's threads. */
static acs_status start_threads(host_backend *h)
{
    sigset_t all, before;
    int error = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (h->started < h->runner_count && !error) {
        host_runner *runner = &h->runners[h->started];
        runner->cpu = h->config.cpu_next ? h->config.cpu_next(h->config.user) : -1;
        error = pthread_create(&runner->thread, NULL, executor, runner);
        if (!error)
            h->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return ACS_FAIL(ACS_ERR_MEMORY, error, "host backend: thread %u of %u could not be made",
                        (unsigned)h->started + 1, (unsigned)h->runner_count);
    return ACS_OK;
}

/* Threads leave only when nothing is left that can run; close comes when all ops have completed. */
static void join_threads(host_backend *h)
{
    acs_lock_acquire(&h->lock);
    atomic_store_explicit(&h->closing, true, memory_order_relaxed); /* a hint, see the struct */
    acs_cond_broadcast(&h->work);
    acs_lock_release(&h->lock);
    for (uint32_t i = 0; i < h->started; i++)
        pthread_join(h->runners[i].thread, NULL);
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

static uint32_t runners_wanted(const acs_backend_config *config)
{
    uint32_t wanted = config->options->executors ? (uint32_t)config->options->executors : cpu_count();

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

/* Everything but the lock and its condition; whatever was made is released by release_parts. */
static acs_status make_parts(host_backend *h)
{
    ACS_TRY(acs_host_slots_init(&h->slots, h->config.slots));
    ACS_TRY(make_links(h));
    ACS_TRY(make_runners(h));
    ACS_TRY(acs_call_slots_create(h->config.slots, &h->base.calls));
    return h->config.inline_only ? ACS_OK : start_threads(h);
}

static void release_parts(host_backend *h)
{
    join_threads(h);
    acs_call_slots_destroy(h->base.calls, &h->base);
    for (uint32_t i = 0; h->runners && i < h->runner_count; i++)
        acs_host_scratch_fini(&h->runners[i].scratch);
    free(h->runners);
    free(h->links);
    acs_host_slots_fini(&h->slots);
    acs_cond_fini(&h->work);
    acs_lock_fini(&h->lock);
    free(h);
}

static acs_status host_open_as(const acs_backend_ops *ops, const acs_backend_config *config, acs_backend **backend)
{
    host_backend *h = calloc(1, sizeof *h);
    acs_status status;
    int error;

    if (!h)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "host backend: no memory");
    h->base.ops = ops;
    h->config = *config;
    h->config.inline_only = ops->single_thread;
    h->op_ns = LONG_OP_NS;
    h->runner_count = h->base.parallel = runners_wanted(&h->config);
    error = acs_lock_init(&h->lock, ACS_RANK_BACKEND);
    if (error)
        goto free_backend;
    error = acs_cond_init(&h->work);
    if (error)
        goto fini_lock;
    status = make_parts(h);
    if (status != ACS_OK) {
        release_parts(h);
        return status;
    }
    *backend = &h->base;
    return ACS_OK;
fini_lock:
    acs_lock_fini(&h->lock);
free_backend:
    free(h);
    return ACS_FAIL(ACS_ERR_MEMORY, error, "host backend: no lock");
}

static acs_status host_open(const acs_backend_config *config, acs_backend **backend)
{
    return host_open_as(&acs_backend_host, config, backend);
}

static acs_status host_inline_open(const acs_backend_config *config, acs_backend **backend)
{
    return host_open_as(&acs_backend_host_inline, config, backend);
}

static void host_close(acs_backend *backend)
{
    release_parts((host_backend *)backend);
}

/* ----------------------------------------------------------------------------------------------- submit and poll */

static void host_submit(acs_backend *backend, acs_batch *batch)
{
    host_backend *h = (host_backend *)backend;
    bool progress;

    acs_lock_acquire(&h->lock);
    for (uint32_t i = 0; i < batch->items_used; i++) {
        acs_item *item = &batch->items[i];
        item->status = ACS_OK;
        item->native = 0;
        item->text = NULL;
        acs_host_issue(&h->slots, batch, item);
        /* In any other state the slot comes to the new entry by itself. */
        if (item->slot >= 0 && h->links[item->slot].state == HOST_IDLE)
            queue_push_locked(h, (uint32_t)item->slot);
    }
    wake_one_locked(h);
    progress = progress_take_locked(h); /* a mark in an empty slot is complete at once */
    acs_lock_release(&h->lock);
    if (progress && h->base.ops->notifies)
        notify(h);
}

/* Without the lock: a timeline is published by a release, which acs_host_completed pairs with. */
static acs_status host_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed)
{
    host_backend *h = (host_backend *)backend;
    uint32_t n = acs_host_marks_complete(marks, count, acs_host_completed(&h->slots, (uint32_t)slot));

    if (n)
        *completed = marks[n - 1].value;
    return ACS_OK;
}

/* Run all that can run, on one thread at a time: with no threads of its own the context also has no parallelism. */
static void drain(host_backend *h)
{
    acs_record *op;
    uint32_t slot;

    acs_lock_acquire(&h->lock);
    /* A second thread that polls meanwhile only looks at the timelines. */
    if (!h->draining) {
        h->draining = true;
        while ((op = claim_locked(h, &slot)) != NULL) {
            acs_lock_release(&h->lock);
            acs_host_run(op, &h->runners[0].scratch);
            acs_lock_acquire(&h->lock);
            done_locked(h, slot);
        }
        h->draining = false;
    }
    acs_lock_release(&h->lock);
}

static acs_status host_inline_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count,
                                   uint64_t *completed)
{
    drain((host_backend *)backend);
    return host_poll(backend, slot, marks, count, completed);
}

const acs_backend_ops acs_backend_host = {
    .name = "host",
    .id = ACS_BACKEND_HOST,
    .notifies = true,
    .host_calls = true,
    .single_thread = false,
    .open = host_open,
    .close = host_close,
    .thread_enter = acs_host_thread_enter,
    .check = acs_host_check,
    .submit = host_submit,
    .poll = host_poll,
    .stream_record = acs_host_stream_record,
    .event_release = acs_host_event_release,
    .memory_alloc = acs_host_memory_alloc,
    .memory_free = acs_host_memory_free,
};

const acs_backend_ops acs_backend_host_inline = {
    .name = "host",
    .id = ACS_BACKEND_HOST,
    .notifies = false,
    .host_calls = true,
    .single_thread = true,
    .open = host_inline_open,
    .close = host_close,
    .thread_enter = acs_host_thread_enter,
    .check = acs_host_check,
    .submit = host_submit,
    .poll = host_inline_poll,
    .stream_record = acs_host_stream_record,
    .event_release = acs_host_event_release,
    .memory_alloc = acs_host_memory_alloc,
    .memory_free = acs_host_memory_free,
};

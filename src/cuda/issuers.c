/*
 * The threads that issue: they launch what is in the queues of the slots (issue_queue.h), so that launches of several
 * streams go side by side: one thread launches, waits and records in 3.9 us, four together in 2.0. Called by submit.c,
 * which gives ops while a thread is awake and carries them out itself otherwise. The threads begin with the first batch
 * of TUNE_ISSUE_WAKE_OPS ops, look for more for ACS_SPIN_US, and then sleep. They never step the core.
 *
 * A  give, then read `issuing` by a read-modify-write; a thread that falls asleep leaves it, then looks into the
 *    queues. Both acquire and release: the later one sees what the earlier thread did before. Broken: all sleep while
 *    there are ops.
 */
#include "cuda/issuers.h"

#include "cuda/issue.h"

#include "base/inside.h"
#include "base/thread.h"
#include "base/tuning.h"

#include <stdlib.h>

struct acs_cuda_issuers {
    acs_cuda *first;
    acs_issue_queue *queue;
    uint32_t count;
    uint64_t spin_ns;
    void (*notify)(void *user);
    void *user;
    acs_lock lock;           /* rank SLEEP; guards the fields below */
    acs_cond wake;
    uint64_t calls;          /* how often the threads were woken */
    bool started, stopping;
    struct issuer {
        acs_cuda_issuers *all;
        uint64_t own;   /* slots at which it looks first */
        pthread_t thread;
    } issuer[ACS_CUDA_GATE_THREADS];
};

/* ----------------------------------------------------------------------------------------------------------- threads */

/* False: the thread is to end. */
static bool falls_asleep(acs_cuda_issuers *all)
{
    acs_cuda_gate_leave();
    ACS_HOLD(&all->lock);
    const uint64_t calls = all->calls;
    atomic_fetch_sub_explicit(&all->first->issuing, 1, memory_order_acq_rel); /* A */
    while (!acs_issue_queue_busy(all->queue) && !all->stopping && all->calls == calls)
        acs_cond_wait(&all->wake, &all->lock);
    atomic_fetch_add_explicit(&all->first->issuing, 1, memory_order_relaxed); /* a hint: A is about who sleeps */
    return !all->stopping || acs_issue_queue_busy(all->queue);
}

static void *issuer_main(void *argument)
{
    const struct issuer *issuer = argument;
    acs_cuda_issuers *all = issuer->all;
    acs_cuda *first = all->first, *now = first;
    uint64_t idle_since = 0;
    acs_issue_taker taker = {.own = issuer->own};
    acs_thread_pin(first->cpu_next ? first->cpu_next(first->cpu_user) : -1);
    acs_cuda_thread_enter(&first->base);
    acs_inside_set(true);
    for (;;) {
        acs_cuda_gate_pass(&first->gate, (uint32_t)(issuer - all->issuer));
        const acs_issue_step step = acs_issue_queue_step(all->queue, &taker, &acs_cuda_issue_ops, &now);
        if (step == ACS_ISSUE_DONE) {
            idle_since = 0;
            continue;
        }
        if (step == ACS_ISSUE_FAILED)
            all->notify(all->user);
        if (step != ACS_ISSUE_EMPTY) {
            acs_pause_briefly();
            continue;
        }
        const uint64_t now_ns = acs_clock_ns();
        if (!idle_since)
            idle_since = now_ns;
        if (now_ns - idle_since < all->spin_ns)
            acs_pause_briefly();
        else if (!falls_asleep(all))
            return NULL;
        else
            idle_since = 0;
    }
}

static uint64_t own_slots(const acs_cuda_issuers *all, uint32_t number)
{
    uint64_t own = 0;
    for (uint32_t s = 0; s < all->first->slots; s++)
        own |= (uint64_t)(s / all->first->base.devices % all->count == number) << s;
    return own;
}

/* Start the threads. Where none can be had, submit carries all ops out. */
static void start_locked(acs_cuda_issuers *all)
{
    const uint32_t wanted = all->count;
    all->started = true;
    for (uint32_t i = 0; i < wanted && all->count == wanted; i++) {
        all->issuer[i] = (struct issuer){.all = all, .own = own_slots(all, i)};
        atomic_fetch_add_explicit(&all->first->issuing, 1, memory_order_relaxed); /* a hint, as above */
        if (acs_thread_create(&all->issuer[i].thread, issuer_main, &all->issuer[i]) != 0) {
            acs_log(ACS_LOG_WARN, "cuda: %u of %u threads that issue could be made", i, wanted);
            atomic_fetch_sub_explicit(&all->first->issuing, 1, memory_order_relaxed);
            all->count = i;
        }
    }
}

/* -------------------------------------------------------------------------------------------------------------- calls */

/* CPUs beside those of the program's thread and of the one that steps the window. */
static uint32_t count_wanted(const acs_backend_config *config)
{
    cpu_set_t cpus;
    const int64_t asked = config->options->issuers;
    if (config->inline_only || config->options->workers == 0 || config->options->serial)
        return 0;
    if (asked >= 0)
        return (uint32_t)asked;
    const int there = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    const int spare = there > 2 ? there / 2 - 1 : 0;
    return (uint32_t)spare < TUNE_ISSUERS_MOST ? (uint32_t)spare : TUNE_ISSUERS_MOST;
}

static void wake_issuers(acs_cuda *first)
{
    acs_cuda_issuers *all = first->issuers;
    const uint32_t awake = atomic_fetch_add_explicit(&first->issuing, 0, memory_order_acq_rel); /* A */
    if (ACS_LIKELY(awake) || !acs_issue_queue_busy(all->queue))
        return;
    ACS_HOLD(&all->lock);
    all->calls++;
    acs_cond_broadcast(&all->wake);
}

void acs_cuda_issuers_call(acs_cuda_issuers *all)
{
    if (ACS_LIKELY(atomic_load_explicit(&all->first->issuing, memory_order_relaxed) == all->count)) /* relaxed: a hint */
        return;
    ACS_HOLD(&all->lock);
    if (!all->started)
        start_locked(all);
    all->calls++;
    acs_cond_broadcast(&all->wake);
}

acs_status acs_cuda_issuers_open(acs_cuda *first, const acs_backend_config *config)
{
    const uint32_t count = count_wanted(config);
    ACS_TRY(acs_issue_queue_create(first->slots, TUNE_ISSUE_COMMANDS * (uint32_t)config->options->window,
                                   &first->base.queue));
    if (count == 0)
        return ACS_OK;
    acs_cuda_issuers *all = calloc(1, sizeof *all);
    if (!all || acs_lock_init(&all->lock, ACS_RANK_SLEEP) != 0 || acs_cond_init(&all->wake) != 0) {
        free(all);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for the threads that issue");
    }
    all->first = first;
    all->queue = first->base.queue;
    all->count = count;
    all->notify = config->notify;
    all->user = config->user;
    first->base.takers = count;
    all->spin_ns = (uint64_t)config->options->spin_us * 1000;
    first->issuers = all;
    first->wake_issuers = wake_issuers;
    return ACS_OK;
}

void acs_cuda_issuers_close(acs_cuda *first)
{
    acs_cuda_issuers *all = first->issuers;
    if (all) {
        acs_lock_acquire(&all->lock);
        all->stopping = true;
        acs_cond_broadcast(&all->wake);
        acs_lock_release(&all->lock);
        for (uint32_t i = 0; i < all->count && all->started; i++)
            (void)pthread_join(all->issuer[i].thread, NULL);
        acs_cond_fini(&all->wake);
        acs_lock_fini(&all->lock);
        free(all);
    }
    acs_issue_queue_destroy(first->base.queue);
}

void acs_cuda_issuers_settle(acs_backend *backend)
{
    while (backend->queue && acs_issue_queue_busy(backend->queue))
        acs_pause_briefly();
}

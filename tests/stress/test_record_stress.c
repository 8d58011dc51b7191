/*
 * Stress of pool/record: threads acquire, fill, check, exchange and release records and blocks of a pool with fewer
 * records than they ask for, so that the stacks run empty and the same few entries come and go: the case for ABA.
 *
 * Seen to fail:
 *   C  exchange in stack_push relaxed, or load and exchange in stack_pop relaxed: TSan, races on records and blocks.
 *   tag of stack_word left out: TSan, the same races; without TSan some runs end with records torn or lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "window/record.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 4, RECORDS = 6, HELD = 2, ROUNDS = 60000 };

struct shared {
    acs_record_pool *pool;
    bool exchange;                  /* records change threads between acquire and release, as in the library */
    _Atomic(acs_record *) mailbox;
};

struct worker {
    pthread_t thread;
    struct shared *shared;
    uint64_t number;
    uint64_t acquired, empty, torn, failed; /* read after join */
};

/* Segments for a few size classes; the inline places most often. */
static uint32_t pick_segments(acs_random *random)
{
    static const uint32_t sizes[] = {0, 6, 3, 10, 20, 90, 400};
    return sizes[acs_random_below(random, sizeof sizes / sizeof *sizes)];
}

static void fill(acs_record *record, uint32_t segments, uint64_t stamp)
{
    record->segment_count = segments;
    record->u.copy.bytes = stamp;
    if (segments) {
        record->segments[0].base = stamp;
        record->segments[segments - 1].base = stamp;
    }
}

static bool intact(const acs_record *record, uint64_t stamp)
{
    uint32_t n = record->segment_count;
    return record->u.copy.bytes == stamp &&
           (n == 0 || (record->segments[0].base == stamp && record->segments[n - 1].base == stamp));
}

/* Release a record, or leave it in the mailbox and release the one that was there; at once, or with the chain. */
static void give_back(struct shared *shared, acs_record *record, acs_record_chain *chain)
{
    if (shared->exchange) /* D: both sides, the record changes hands */
        record = atomic_exchange_explicit(&shared->mailbox, record, memory_order_acq_rel);
    if (record && chain)
        acs_record_gather(shared->pool, chain, record);
    else if (record)
        acs_record_release(shared->pool, record);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    struct shared *shared = w->shared;
    acs_random random = {w->number};

    for (uint64_t round = 0; round < ROUNDS; round++) {
        acs_record *held[HELD];
        uint64_t stamp = w->number << 32 | round;
        uint32_t want = 1 + acs_random_below(&random, HELD), got = 0;
        while (got < want && (held[got] = acs_record_acquire(shared->pool)) != NULL) {
            uint32_t segments = pick_segments(&random);
            if (acs_record_reserve(shared->pool, held[got], 0, 0, segments) == ACS_OK)
                fill(held[got], segments, stamp + got);
            else
                w->failed++;
            got++;
        }
        w->acquired += got;
        w->empty += got < want;
        if (acs_random_below(&random, 16) == 0)
            sched_yield(); /* let the others meet a stack that looks as before */
        acs_record_chain chain = {0};
        for (uint32_t i = 0; i < got; i++) {
            w->torn += !intact(held[i], stamp + i);
            give_back(shared, held[i], round % 2 ? &chain : NULL);
        }
        acs_record_release_all(shared->pool, &chain);
    }
    return NULL;
}

/* Each record is in the pool exactly once. */
static void assert_complete(acs_record_pool *pool)
{
    acs_record *all[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        all[i] = acs_record_acquire(pool);
        assert_non_null(all[i]);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(all[i], all[j]);
    }
    assert_null(acs_record_acquire(pool));
    for (int i = 0; i < RECORDS; i++)
        acs_record_release(pool, all[i]);
}

static void run(bool exchange)
{
    struct shared shared = {.exchange = exchange};
    struct worker workers[THREADS] = {0};
    atomic_init(&shared.mailbox, NULL);
    assert_int_equal(acs_record_pool_create(RECORDS, &shared.pool), ACS_OK);
    uint64_t empty_bytes = acs_record_pool_bytes(shared.pool);

    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i].shared = &shared;
        workers[i].number = i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            abort(); /* the others are running: no way to fail tidily */
    }
    uint64_t acquired = 0, empty = 0, torn = 0, failed = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        acquired += workers[i].acquired;
        empty += workers[i].empty;
        torn += workers[i].torn;
        failed += workers[i].failed;
    }
    /* relaxed: the threads were joined */
    acs_record *left = atomic_load_explicit(&shared.mailbox, memory_order_relaxed);
    if (left)
        acs_record_release(shared.pool, left);

    print_message("  %llu records acquired, pool found empty %llu times\n", (unsigned long long)acquired,
                  (unsigned long long)empty);
    assert_true(acquired > 0);
    assert_int_equal(torn, 0);
    assert_int_equal(failed, 0);
    assert_complete(shared.pool);
    assert_true(acs_record_pool_bytes(shared.pool) <= empty_bytes + RECORDS * (400 * sizeof(acs_segment) * 2 + 1024));
    acs_record_pool_destroy(shared.pool);
}

static void acquire_and_release_by_four_threads_never_share_a_record(void **state)
{
    (void)state;
    run(false);
}

static void release_by_another_thread_never_shares_a_record(void **state)
{
    (void)state;
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acquire_and_release_by_four_threads_never_share_a_record),
        cmocka_unit_test(release_by_another_thread_never_shares_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

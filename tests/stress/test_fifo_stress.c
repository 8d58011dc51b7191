/*
 * Stress of window/fifo: several producers and one consumer through a small ring, in all a million records, also across
 * the wrap of the counters at 64 bits and past 32. Meant for TSan: nothing but the FIFO's own pairs orders the threads.
 *
 * Seen to fail with a weakened order:
 *   A  turn stored relaxed in push, or loaded relaxed in pop: TSan, race on the record's contents.
 *   B  turn stored relaxed in pop, or loaded relaxed in push: TSan, race on cell->record and on a record used again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "window/fifo_internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    PRODUCERS = 4,
    PER_PRODUCER = 80000,
    CAPACITY = 16,
    /*
     * A producer uses a record again after this many pushes of its own. Its latest push then stands more than CAPACITY
     * behind the record's, so pair B has told it that the consumer is done with the record: no other signal is needed.
     */
    OWN_RECORDS = 2 * CAPACITY
};

struct producer {
    pthread_t thread;
    acs_fifo *fifo;
    uint64_t number;
    uint32_t errors; /* read after join */
    _Atomic bool done;
    acs_record records[OWN_RECORDS];
};

static void *produce(void *argument)
{
    struct producer *p = argument;
    acs_op last = 0;

    for (uint64_t i = 0; i < PER_PRODUCER; i++) {
        acs_record *record = &p->records[i % OWN_RECORDS];
        record->u.copy.bytes = i;
        record->u.copy.value = (int)p->number;
        acs_op seq;
        while ((seq = acs_fifo_push(p->fifo, record)) == 0)
            sched_yield();
        if (seq <= last || acs_fifo_last(p->fifo) < seq)
            p->errors++;
        last = seq;
    }
    atomic_store_explicit(&p->done, true, memory_order_release); /* D: with the load in all_done */
    return NULL;
}

static bool all_done(struct producer *producers)
{
    for (int i = 0; i < PRODUCERS; i++)
        if (!atomic_load_explicit(&producers[i].done, memory_order_acquire)) /* D: its pushes are visible */
            return false;
    return true;
}

struct result {
    uint64_t popped, wrong_number, wrong_order, wrong_ready;
};

/* Pop everything; returns early if records got lost, so that a broken FIFO fails and does not hang. */
static struct result consume(acs_fifo *fifo, struct producer *producers)
{
    struct result r = {0, 0, 0, 0};
    uint64_t next[PRODUCERS] = {0};

    while (r.popped < (uint64_t)PRODUCERS * PER_PRODUCER) {
        bool last_look = all_done(producers), ready = acs_fifo_ready(fifo);
        acs_record *record = acs_fifo_pop(fifo);
        if (!record) {
            r.wrong_ready += ready;
            if (last_look)
                break;
            sched_yield();
            continue;
        }
        r.popped++;
        r.wrong_number += record->seq != r.popped;
        r.wrong_order += record->u.copy.bytes != next[record->u.copy.value]++;
    }
    return r;
}

static void run(uint64_t first_ticket)
{
    acs_fifo *fifo;
    struct producer *producers = calloc(PRODUCERS, sizeof *producers);
    assert_non_null(producers);
    assert_int_equal(acs_fifo_create_at(CAPACITY, CAPACITY, first_ticket, &fifo), ACS_OK);

    for (uint64_t i = 0; i < PRODUCERS; i++) {
        producers[i].fifo = fifo;
        producers[i].number = i;
        if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]))
            abort(); /* the others are running: no way to fail tidily */
    }
    struct result r = consume(fifo, producers);
    uint64_t errors = 0;
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        errors += producers[i].errors;
    }

    assert_int_equal(r.popped, PRODUCERS * PER_PRODUCER);
    assert_int_equal(r.wrong_number, 0);
    assert_int_equal(r.wrong_order, 0);
    assert_int_equal(r.wrong_ready, 0);
    assert_int_equal(errors, 0);
    assert_null(acs_fifo_pop(fifo));
    acs_fifo_destroy(fifo);
    free(producers);
}

static void push_by_four_threads_keeps_each_ones_order_without_gaps(void **state)
{
    (void)state;
    run(0);
}

static void push_by_four_threads_across_wrap_keeps_order_without_gaps(void **state)
{
    (void)state;
    run(UINT64_MAX - PRODUCERS * PER_PRODUCER / 2);
}

static void push_by_four_threads_past_32_bits_keeps_order_without_gaps(void **state)
{
    (void)state;
    run(UINT32_MAX - PRODUCERS * PER_PRODUCER / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_by_four_threads_keeps_each_ones_order_without_gaps),
        cmocka_unit_test(push_by_four_threads_across_wrap_keeps_order_without_gaps),
        cmocka_unit_test(push_by_four_threads_past_32_bits_keeps_order_without_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

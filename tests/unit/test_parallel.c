/*
 * Real parallelism and real order on CPU threads: readers of one buffer run at once and a writer waits for all of them,
 * disjoint parts of one allocation run at once, a chain stays in one slot, and each kind of conflict orders two ops.
 * That ops run at once is proved by barriers inside them; bodies record, the test asserts after it waited.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/context.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AT_ONCE = 4, READERS = 256, CHAIN = 100, LIMIT_SECONDS = 1800 };

/* What bodies share. All orders are sequentially consistent: a test should not depend on anything finer. */
static struct {
    atomic_int gate;      /* 1: the gate op may return */
    atomic_int begun;     /* readers that have started */
    atomic_int arrived;   /* at the barriers */
    atomic_int missed;    /* barriers that were not complete in time */
    atomic_int done;      /* readers that have finished */
    int done_at_write;    /* what the last writer saw */
    atomic_int wrong;     /* bodies that saw bytes of the wrong time */
} g;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int get(atomic_int *value)
{
    return atomic_load_explicit(value, memory_order_seq_cst);
}

static int add(atomic_int *value)
{
    return atomic_fetch_add_explicit(value, 1, memory_order_seq_cst);
}

/* Wait until *value >= goal; false when that does not come about: then ops that should run at once do not. */
static bool reach(atomic_int *value, int goal)
{
    double end = now() + LIMIT_SECONDS;
    while (get(value) < goal) {
        if (now() > end)
            return false;
        sched_yield();
    }
    return true;
}

/* Meet AT_ONCE - 1 others that run at the same time. */
static void meet(void)
{
    int group = add(&g.arrived) / AT_ONCE;
    if (get(&g.missed) || !reach(&g.arrived, (group + 1) * AT_ONCE))
        add(&g.missed);
}

static acs_context *open_with(int executors, int spin_us)
{
    acs_options options;
    acs_context *context = NULL;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_HOST;
    options.executors = executors;
    options.streams = AT_ONCE;
    options.window = 1024;
    options.workers = 1;
    if (spin_us >= 0)
        options.spin_us = spin_us;
    return acs_open(&options, &context) == ACS_OK ? context : NULL;
}

static int setup(void **state)
{
    memset(&g, 0, sizeof g);
    *state = open_with(AT_ONCE, -1); /* spins as long as is usual */
    return *state ? 0 : -1;
}

static int setup_two_that_sleep_at_once(void **state)
{
    memset(&g, 0, sizeof g);
    *state = open_with(2, 0);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    return acs_close(*state) == ACS_OK ? 0 : -1;
}

/* ----------------------------------------------------------------------------------------------------------- bodies */

/* (x): holds everything that depends on it until the test has queued it all; then writes 7. */
static void gate_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)reach(&g.gate, 1);
    **(int *const *)args[0] = 7;
}

/* (x, y): reads what the gate wrote; the first half of the readers meet others. */
static void reader_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    const int *x = *(const int *const *)args[0];
    if (*x != 7)
        add(&g.wrong);
    if (add(&g.begun) < READERS / 2)
        meet();
    if (*x != 7)
        add(&g.wrong);
    **(int *const *)args[1] = *x;
    add(&g.done);
}

static void writer_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    g.done_at_write = get(&g.done);
    **(int *const *)args[0] = 8;
}

static void meet_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
    meet();
}

static void increment_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    **(int *const *)args[0] += 1;
}

/* Spins until the other op has run: its thread cannot run that one. */
static void await_done_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
    add(&g.begun);
    if (!reach(&g.done, 1))
        add(&g.missed);
    add(&g.arrived);
}

static void done_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
    add(&g.done);
}

static const acs_kernel g_gate = ACS_KERNEL_HOST_INIT("gate", gate_body);
static const acs_kernel g_reader = ACS_KERNEL_HOST_INIT("reader", reader_body);
static const acs_kernel g_writer = ACS_KERNEL_HOST_INIT("writer", writer_body);
static const acs_kernel g_meet = ACS_KERNEL_HOST_INIT("meet", meet_body);
static const acs_kernel g_increment = ACS_KERNEL_HOST_INIT("increment", increment_body);

static void open_gate(void)
{
    atomic_store_explicit(&g.gate, 1, memory_order_seq_cst);
}

/* ------------------------------------------------------------------------------------------------------------ tests */

static void readers_of_one_buffer_overlap_and_a_writer_waits_for_all(void **state)
{
    static int results[READERS];
    int x = 0;
    acs_statistics stats = {.size = sizeof stats};
    ACS_LAUNCH_ON(*state, &g_gate, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_OUT(&x, sizeof x)));
    for (int i = 0; i < READERS; i++)
        ACS_LAUNCH_ON(*state, &g_reader, 1, 1, 0, ACS_ARGS(&x, &results[i]),
                      ACS_USES(ACS_IN(&x, sizeof x), ACS_OUT(&results[i], sizeof results[i])));
    ACS_LAUNCH_ON(*state, &g_writer, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    open_gate();

    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(get(&g.missed), 0);
    assert_int_equal(get(&g.wrong), 0);
    assert_int_equal(g.done_at_write, READERS);
    assert_int_equal(x, 8);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(results[i], 7);
    assert_int_equal(acs_stats(*state, &stats), ACS_OK);
    assert_in_range(stats.running_high, AT_ONCE, READERS + 2);
}

static void disjoint_parts_of_one_allocation_overlap(void **state)
{
    char *memory = NULL;
    assert_int_equal(acs_malloc(*state, AT_ONCE * 1000, ACS_MEMORY_DEVICE, (void **)&memory), ACS_OK);
    for (int i = 0; i < AT_ONCE; i++)
        ACS_LAUNCH_ON(*state, &g_meet, 1, 1, 0, ACS_ARGS(memory), ACS_USES(ACS_INOUT(memory + i * 1000, 1000)));
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(get(&g.missed), 0);
    assert_int_equal(get(&g.arrived), AT_ONCE);
    acs_free(*state, memory);
}

/* Columns of one matrix: their rows alternate in memory, so a test of bounds alone would serialise them. */
static void disjoint_tiles_between_each_other_overlap(void **state)
{
    static char matrix[32 * AT_ONCE * 16];
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < AT_ONCE; i++)
            ACS_LAUNCH_ON(*state, &g_meet, 1, 1, 0, ACS_NO_ARGS,
                          ACS_USES(ACS_TILE_INOUT(matrix + 16 * i, 16, 32, 16 * AT_ONCE)));
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(get(&g.missed), 0);
    assert_int_equal(get(&g.arrived), 4 * AT_ONCE);
}

/* What the trace said about a chain. Written under the core's lock; read after acs_sync. */
typedef struct chain_record {
    int issued, slot, other_slots, waits;
} chain_record;

static void note_chain(void *user, const acs_trace_event *event)
{
    chain_record *chain = user;
    if (event->type != ACS_TRACE_ISSUE)
        return;
    if (chain->issued++ == 0)
        chain->slot = event->slot;
    chain->other_slots += event->slot != chain->slot;
    chain->waits += (int)event->wait_count;
}

static uint64_t same_slot_so_far(acs_context *context, acs_statistics *stats)
{
    stats->size = sizeof *stats;
    return acs_stats(context, stats) == ACS_OK ? stats->same_slot : 0;
}

static void chain_stays_in_one_slot_without_waits(void **state)
{
    int x = 0;
    chain_record chain = {0};
    acs_statistics stats;
    double end = now() + LIMIT_SECONDS;
    assert_true(acs_trace_add(&((acs_context *)*state)->core, note_chain, &chain));
    ACS_LAUNCH_ON(*state, &g_gate, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_OUT(&x, sizeof x)));
    for (int i = 1; i < CHAIN; i++)
        ACS_LAUNCH_ON(*state, &g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    while (same_slot_so_far(*state, &stats) < CHAIN - 1 && now() < end)
        sched_yield(); /* all are issued while the first still runs: nothing has to wait for a retirement */
    open_gate();

    assert_int_equal(acs_sync(*state), ACS_OK);
    same_slot_so_far(*state, &stats);
    assert_int_equal(x, 7 + CHAIN - 1);
    assert_int_equal(stats.same_slot, CHAIN - 1);
    assert_int_equal(stats.edges, CHAIN - 1);
    assert_int_equal(stats.waits_sent, 0);
    assert_int_equal(stats.levels, CHAIN);
    assert_int_equal(chain.issued, CHAIN);
    assert_int_equal(chain.other_slots, 0);
    assert_int_equal(chain.waits, 0);
}

/* The host backend judges by past ops whether a thread is worth waking; where it errs it must find out. */
static void ops_that_meet_run_at_once_even_after_many_short_ones(void **state)
{
    int parts[AT_ONCE] = {0};
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 2000; i++)
            ACS_LAUNCH_ON(*state, &g_increment, 1, 1, 0, ACS_ARGS(&parts[i % AT_ONCE]),
                          ACS_USES(ACS_INOUT(&parts[i % AT_ONCE], sizeof parts[0])));
        for (int i = 0; i < AT_ONCE; i++)
            ACS_LAUNCH_ON(*state, &g_meet, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(&parts[i], sizeof parts[0])));
        assert_int_equal(acs_sync(*state), ACS_OK);
        assert_int_equal(get(&g.missed), 0);
    }
}

/* After many short ops a thread is not worth waking for one more, unless all others are busy for long; nobody polls. */
static void op_behind_no_other_runs_while_a_long_one_keeps_a_thread(void **state)
{
    static const acs_kernel await_done = ACS_KERNEL_HOST_INIT("await_done", await_done_body);
    static const acs_kernel done = ACS_KERNEL_HOST_INIT("done", done_body);
    int x = 0;
    for (int i = 0; i < 2000; i++)
        ACS_LAUNCH_ON(*state, &g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    assert_int_equal(acs_sync(*state), ACS_OK);
    ACS_LAUNCH_ON(*state, &await_done, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE);
    assert_true(reach(&g.begun, 1));
    ACS_LAUNCH_ON(*state, &done, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE);
    (void)reach(&g.arrived, 1); /* not inside the library, which would look what is delayed */
    assert_int_equal(get(&g.missed), 0);
    assert_int_equal(acs_sync(*state), ACS_OK);
}

/* (second): the second op notes whether the first had finished. */
static void ordered_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    int second = *(const int *)args[0];
    if (second && get(&g.done) == 0)
        add(&g.wrong);
    for (int i = 0; i < 300 && !second; i++) /* time for the second op to overtake, if nothing holds it */
        sched_yield();
    add(&g.done);
}

static void assert_ordered(acs_context *context, acs_access first, acs_access second)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("ordered", ordered_body);
    static char bytes[64];
    for (int round = 0; round < 20; round++) {
        atomic_store_explicit(&g.done, 0, memory_order_seq_cst);
        ACS_LAUNCH_ON(context, &kernel, 1, 1, 0, ACS_ARGS(0), ACS_USES(ACS_BYTES_(first, bytes, 40)));
        ACS_LAUNCH_ON(context, &kernel, 1, 1, 0, ACS_ARGS(1), ACS_USES(ACS_TILE_(second, bytes + 39, 1, 2, 8)));
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(get(&g.wrong), 0);
    }
}

static void read_after_write_is_ordered(void **state)
{
    assert_ordered(*state, ACS_WRITE, ACS_READ);
    assert_ordered(*state, ACS_UPDATE, ACS_READ);
}

static void write_after_read_is_ordered(void **state)
{
    assert_ordered(*state, ACS_READ, ACS_WRITE);
    assert_ordered(*state, ACS_READ, ACS_UPDATE);
}

static void write_after_write_is_ordered(void **state)
{
    assert_ordered(*state, ACS_WRITE, ACS_WRITE);
    assert_ordered(*state, ACS_UPDATE, ACS_WRITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readers_of_one_buffer_overlap_and_a_writer_waits_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(disjoint_parts_of_one_allocation_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(disjoint_tiles_between_each_other_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(chain_stays_in_one_slot_without_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(ops_that_meet_run_at_once_even_after_many_short_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(op_behind_no_other_runs_while_a_long_one_keeps_a_thread,
                                        setup_two_that_sleep_at_once, teardown),
        cmocka_unit_test_setup_teardown(read_after_write_is_ordered, setup, teardown),
        cmocka_unit_test_setup_teardown(write_after_read_is_ordered, setup, teardown),
        cmocka_unit_test_setup_teardown(write_after_write_is_ordered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

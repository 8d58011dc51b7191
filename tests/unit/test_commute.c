/*
 * Ops that commute (ACS_COMMUTE): their edges in the window, what a failure of one does, and sums by a context.
 */
#include "window_fixture.h"

#include "base/tuning.h"

#define AT(offset) ((uintptr_t)0x10000 + (uintptr_t)(offset))

enum { MANY = 200, ADDERS = 300, CELLS = 64 };

static uint64_t edges(const scene *s)
{
    return s->w.counters.edges;
}

static uint64_t edges_between(acs_segment first, acs_segment second)
{
    scene *s = scene_open(16, false);
    KERNEL(s, first);
    KERNEL(s, second);
    const uint64_t found = edges(s);
    scene_close(s);
    return found;
}

static void they_are_ordered_with_all_others_but_not_among_themselves(void **state)
{
    (void)state;
    const acs_segment sum = ACS_INOUTSET(AT(0), 64), part = ACS_INOUTSET(AT(32), 64);
    const acs_segment tile = ACS_TILE_INOUTSET(AT(0), 8, 4, 16);
    const acs_segment token = acs_make_segment(ACS_EXTENT_TOKEN, ACS_COMMUTE, 7, 0, 0, 0);
    assert_int_equal(edges_between(sum, sum), 0);
    assert_int_equal(edges_between(sum, part), 0);
    assert_int_equal(edges_between(tile, sum), 0);
    assert_int_equal(edges_between(token, token), 0);
    const acs_segment others[] = {ACS_IN(AT(0), 64),  ACS_OUT(AT(0), 64),  ACS_INOUT(AT(0), 64),    ACS_IN(AT(40), 4),
                                  ACS_IN(AT(0), 128), ACS_OUT(AT(60), 64), ACS_TILE_IN(AT(0), 8, 4, 16), ACS_ALL_MEMORY,
                                  ACS_ALL_MEMORY_IN};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(edges_between(sum, others[i]), 1);
        assert_int_equal(edges_between(others[i], sum), 1);
    }
    assert_int_equal(edges_between(token, ACS_TOKEN(7)), 1);
    assert_int_equal(edges_between(ACS_TOKEN_IN(7), token), 1);
    assert_int_equal(edges_between(sum, ACS_IN(AT(64), 64)), 0);
}

/* In the window, and where ops are compared by themselves, as in replays. */
static void all_memory_never_commutes(void **state)
{
    (void)state;
    const acs_segment sum = ACS_INOUTSET(AT(0), 64);
    const acs_segment all = acs_make_segment(ACS_EXTENT_ALL, ACS_COMMUTE, 0, 0, 0, 0);
    assert_int_equal(edges_between(sum, all), 1);
    assert_int_equal(edges_between(all, sum), 1);
    assert_int_equal(edges_between(all, all), 1);
    assert_true(acs_segments_conflict(&sum, 1, &all, 1));
    assert_true(acs_segments_conflict(&all, 1, &sum, 1));
    assert_true(acs_segments_conflict(&all, 1, &all, 1));
    assert_false(acs_segments_conflict(&sum, 1, &sum, 1));
}

/* What an op does to the same bytes besides orders it with the others. */
static void an_op_that_also_reads_the_bytes_is_ordered(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    acs_op first = KERNEL(s, ACS_INOUTSET(AT(0), 64));
    acs_op both = KERNEL(s, ACS_INOUTSET(AT(0), 64), ACS_IN(AT(8), 4), ACS_INOUTSET(AT(0), 64));
    acs_op last = KERNEL(s, ACS_INOUTSET(AT(0), 64));
    assert_int_equal(scene_state(s, both), ACS_ENTRY_PENDING);
    assert_int_equal(scene_state(s, last), ACS_ENTRY_PENDING);
    scene_run(s, first);
    scene_run(s, both);
    assert_int_equal(scene_state(s, last), ACS_ENTRY_READY);
    scene_close(s);
}

/* Readers before, commuters, readers behind, and a writer: each waits for all of the kind before it. */
static void rounds_of_readers_and_commuters_follow_each_other(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    acs_op round[4][3];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            round[i][k] = i % 2 ? KERNEL(s, ACS_INOUTSET(AT(k), 64)) : KERNEL(s, ACS_IN(AT(2 * k), 32));
    acs_op writer = KERNEL(s, ACS_OUT(AT(0), 128));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            assert_int_equal(scene_state(s, writer), ACS_ENTRY_PENDING);
            for (int later = 0; i < 3 && later < 3; later++)
                assert_int_equal(scene_state(s, round[i + 1][later]), ACS_ENTRY_PENDING);
            assert_int_equal(scene_state(s, round[i][k]), ACS_ENTRY_READY);
            scene_run(s, round[i][k]);
        }
    assert_int_equal(scene_state(s, writer), ACS_ENTRY_READY);
    scene_close(s);
}

/* n ops that add, then m that read: about n + m edges; and more than a region's list holds at first. */
static void many_make_linear_edges(void **state)
{
    (void)state;
    scene *s = scene_open(2 * MANY + 1, false);
    acs_op add[MANY], readers[MANY];
    for (int i = 0; i < MANY; i++)
        add[i] = KERNEL(s, ACS_INOUTSET(AT(0), 64));
    assert_int_equal(edges(s), 0);
    for (int i = 0; i < MANY; i++)
        readers[i] = KERNEL(s, ACS_IN(AT(0), 64));
    assert_in_range(edges(s), 2 * MANY, 2 * MANY + 1);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(scene_state(s, readers[i]), ACS_ENTRY_PENDING);
        scene_run(s, add[i]);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(scene_state(s, readers[i]), ACS_ENTRY_READY);
    scene_close(s);
}

static void a_failure_skips_others_and_not_those_that_commute_with_it(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    acs_op failing = KERNEL(s, ACS_INOUTSET(AT(0), 64)), beside = KERNEL(s, ACS_INOUTSET(AT(0), 64));
    acs_op reads = KERNEL(s, ACS_IN(AT(0), 4));
    scene_fail(s, failing);
    acs_op later = KERNEL(s, ACS_INOUTSET(AT(32), 64)), later_read = KERNEL(s, ACS_IN(AT(60), 4));
    acs_op elsewhere = KERNEL(s, ACS_INOUT(AT(64), 16));
    scene_run(s, beside);
    scene_run(s, later);
    scene_run(s, elsewhere);
    assert_int_equal(s->status[beside], ACS_OK);
    assert_int_equal(s->status[later], ACS_OK);
    assert_int_equal(s->status[elsewhere], ACS_OK);
    assert_int_equal(s->status[reads], ACS_ERR_SKIPPED);
    assert_int_equal(s->status[later_read], ACS_ERR_SKIPPED);
    assert_int_equal(s->cause[later_read], failing);
    acs_window_clear_poison(&s->w);
    acs_op cleared = KERNEL(s, ACS_IN(AT(0), 4));
    assert_int_equal(scene_state(s, cleared), ACS_ENTRY_READY);
    scene_close(s);
}

static void a_failed_writer_skips_them(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    acs_op failing = KERNEL(s, ACS_OUT(AT(0), 64)), first = KERNEL(s, ACS_INOUTSET(AT(0), 64));
    scene_fail(s, failing);
    acs_op second = KERNEL(s, ACS_INOUTSET(AT(8), 4)), reads = KERNEL(s, ACS_IN(AT(8), 4));
    assert_int_equal(s->status[first], ACS_ERR_SKIPPED);
    assert_int_equal(s->status[second], ACS_ERR_SKIPPED);
    assert_int_equal(s->status[reads], ACS_ERR_SKIPPED);
    scene_close(s);
}

/* ------------------------------------------------------------------------------------------------------- by a context */

static void add_body(const acs_grid *grid, void *const *args)
{
    uint32_t *cells = *(uint32_t **)args[0];
    const uint32_t by = *(uint32_t *)args[1];
    (void)grid;
    for (uint32_t i = 0; i < CELLS; i++)
        (void)__atomic_fetch_add(&cells[i], by * (i + 1), __ATOMIC_RELAXED);
}

static void double_body(const acs_grid *grid, void *const *args)
{
    uint32_t *cells = *(uint32_t **)args[0];
    (void)grid;
    for (uint32_t i = 0; i < CELLS; i++)
        cells[i] *= 2;
}

static void sums_are_those_of_serial_execution(void **state)
{
    static const acs_kernel add = ACS_KERNEL_HOST_INIT("add", add_body), twice = ACS_KERNEL_HOST_INIT("twice", double_body);
    uint32_t cells[CELLS] = {0}, want = 0, *at = cells;
    (void)state;
    for (int backend = ACS_BACKEND_HOST; backend <= ACS_BACKEND_SIM; backend++) {
        acs_options options;
        acs_context *context = NULL;
        assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
        options.backend = backend;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        memset(cells, 0, sizeof cells);
        want = 0;
        const acs_uses sum = ACS_USES(ACS_INOUTSET(at, sizeof cells)), all = ACS_USES(ACS_INOUT(at, sizeof cells));
        for (uint32_t i = 1; i <= ADDERS; i++) {
            assert_true(ACS_LAUNCH_ON(context, &add, 1, 1, 0, ACS_ARGS(at, i), sum) > 0);
            want += i;
            if (i % 50 == 0) {
                assert_true(ACS_LAUNCH_ON(context, &twice, 1, 1, 0, ACS_ARGS(at), all) > 0);
                want *= 2;
            }
        }
        assert_int_equal(acs_wait_range(context, cells, sizeof cells, ACS_COMMUTE), ACS_OK);
        for (uint32_t i = 0; i < CELLS; i++)
            assert_int_equal(cells[i], want * (i + 1));
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void other_values_of_access_are_refused(void **state)
{
    acs_options options;
    acs_context *context = NULL;
    acs_error error = {.size = sizeof error};
    uint32_t cell = 0, *at = &cell, by = 1;
    static const acs_kernel add = ACS_KERNEL_HOST_INIT("add", add_body);
    (void)state;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (int access = 0; access < 9; access++) {
        const acs_segment s = acs_make_segment(ACS_EXTENT_BYTES, (acs_access)access, (uintptr_t)at, 4, 1, 0);
        if (access == 0 || (access > ACS_UPDATE && access != ACS_COMMUTE)) {
            assert_int_equal(ACS_LAUNCH_ON(context, &add, 1, 1, 0, ACS_ARGS(at, by), ACS_USES(s)), 0);
            assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
            assert_non_null(strstr(error.text, "not 1 to 3, 7 or 11"));
        }
    }
    (void)acs_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_ordered_with_all_others_but_not_among_themselves),
        cmocka_unit_test(all_memory_never_commutes),
        cmocka_unit_test(an_op_that_also_reads_the_bytes_is_ordered),
        cmocka_unit_test(rounds_of_readers_and_commuters_follow_each_other),
        cmocka_unit_test(many_make_linear_edges),
        cmocka_unit_test(a_failure_skips_others_and_not_those_that_commute_with_it),
        cmocka_unit_test(a_failed_writer_skips_them),
        cmocka_unit_test(sums_are_those_of_serial_execution),
        cmocka_unit_test(other_values_of_access_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

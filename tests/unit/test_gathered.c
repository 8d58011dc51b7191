/*
 * Edges of ops whose ranges overlap in part: only those that others do not imply are made, and no failure is lost by that.
 */
#include "window_fixture.h"

#define AT(offset) ((uintptr_t)0x10000 + (uintptr_t)(offset))

static uint64_t edges(const scene *s)
{
    return s->w.counters.edges;
}

enum { STEPS = 200, SIDE = STEPS + 2, PITCH = SIDE * 4 };

static acs_segment part(acs_access access, uint64_t row, uint64_t column, uint64_t rows, uint64_t columns)
{
    return acs_make_segment(ACS_EXTENT_BYTES, access, AT(0) + row * PITCH + column * 4, columns * 4, rows, PITCH);
}

/* Each op follows the one before, which stands for all that came earlier. */
static void insert_of_updates_that_overlap_in_part_makes_an_edge_to_the_latest_alone(void **state)
{
    (void)state;
    scene *s = scene_open(256, false);
    for (uint64_t k = 0; k < STEPS; k++)
        KERNEL(s, ACS_INOUT(AT(0) + k * 64, 32 * 64));
    assert_int_equal(edges(s), STEPS - 1);
    scene_close(s);

    s = scene_open(256, false);
    for (uint64_t k = 1; k < STEPS; k++)
        KERNEL(s, part(ACS_READ, k, k, SIDE - k, 1), part(ACS_UPDATE, k, k + 1, SIDE - k, SIDE - k - 1));
    assert_in_range(edges(s), STEPS - 2, STEPS);
    scene_close(s);
}

/* The op that runs all the same does not stand for the one that fails before it. */
static void insert_behind_an_op_that_is_never_skipped_waits_for_the_one_before_too(void **state)
{
    (void)state;
    scene *s = scene_open(16, false);
    const acs_entry_traits immune = {.on_host = true, .never_skipped = true};
    acs_op fails = KERNEL(s, ACS_INOUT(AT(0), 512));
    acs_op runs = scene_insert(s, ACS_KIND_HOST, immune, SEGMENTS(ACS_INOUT(AT(0) + 64, 512)));
    acs_op other = KERNEL(s, ACS_INOUT(AT(0) + 600, 100));
    acs_op last = KERNEL(s, ACS_INOUT(AT(0) + 128, 512));
    assert_int_equal(edges(s), 4);

    scene_fail(s, fails);
    scene_end(s, runs);
    scene_run(s, other);
    assert_int_equal(s->cause[last], fails);
    scene_close(s);
}

/* The first reader of the whole depends on one of its writers through another range; the second does not. */
static void a_join_of_part_writers_has_those_that_its_first_reader_knew_otherwise(void **state)
{
    (void)state;
    scene *s = scene_open(64, false);
    const acs_op known = KERNEL(s, ACS_OUT(AT(8192), 64), ACS_OUT(AT(0), 64));
    acs_op others[20];
    for (uint32_t i = 0; i < 20; i++)
        others[i] = KERNEL(s, ACS_OUT(AT(64) + i * 64, 64));
    (void)KERNEL(s, ACS_IN(AT(8192), 64), ACS_IN(AT(0), 64), ACS_IN(AT(0), 4096));
    const acs_op second = KERNEL(s, ACS_IN(AT(0), 4096));
    for (uint32_t i = 0; i < 20; i++)
        scene_run(s, others[i]);
    assert_int_equal(scene_state(s, second), ACS_ENTRY_PENDING);
    scene_run(s, known);
    assert_int_equal(scene_state(s, second), ACS_ENTRY_READY);
    scene_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insert_of_updates_that_overlap_in_part_makes_an_edge_to_the_latest_alone),
        cmocka_unit_test(a_join_of_part_writers_has_those_that_its_first_reader_knew_otherwise),
        cmocka_unit_test(insert_behind_an_op_that_is_never_skipped_waits_for_the_one_before_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

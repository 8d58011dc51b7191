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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insert_of_updates_that_overlap_in_part_makes_an_edge_to_the_latest_alone),
        cmocka_unit_test(insert_behind_an_op_that_is_never_skipped_waits_for_the_one_before_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

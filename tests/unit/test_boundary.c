/*
 * Unit tests of bundles/boundary: that pieces have the sizes they may have, that equal streams are cut alike wherever
 * they begin, that repeats of any length give the same few pieces, marks, and what boundary.h says against a slow search.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bundles/boundary.h"

enum { OPS_MOST = 1 << 16 };

/* A stream of ops, and the places where it was cut. */
typedef struct stream {
    uint32_t count, cut_count;
    uint32_t type[OPS_MOST];
    bool marked[OPS_MOST];
    uint32_t cut[OPS_MOST];
} stream;

static stream *make(void)
{
    stream *s = calloc(1, sizeof *s);
    assert_non_null(s);
    return s;
}

static void append(stream *s, uint32_t type, bool marked)
{
    s->marked[s->count] = marked;
    s->type[s->count++] = type;
}

/* Op i has the number `from` + i: numbers begin anywhere. */
static void cut(stream *s, uint32_t most, acs_op from)
{
    acs_boundary cuts;
    acs_boundary_init(&cuts, most);
    s->cut_count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        acs_op found = acs_boundary_add(&cuts, from + i, s->type[i], s->marked[i]);
        if (found)
            s->cut[s->cut_count++] = (uint32_t)(found - from);
    }
}

static uint32_t begin_of(const stream *s, uint32_t piece)
{
    return piece ? s->cut[piece - 1] : 0;
}

static bool same_piece(const stream *s, uint32_t a, uint32_t b)
{
    uint32_t size = s->cut[a] - begin_of(s, a);
    return size == s->cut[b] - begin_of(s, b) &&
           memcmp(s->type + begin_of(s, a), s->type + begin_of(s, b), size * sizeof s->type[0]) == 0;
}

/* Different pieces from the `first` on. */
static uint32_t shapes(const stream *s, uint32_t first)
{
    uint32_t different = 0;
    for (uint32_t p = first; p < s->cut_count; p++) {
        bool seen = false;
        for (uint32_t q = first; q < p && !seen; q++)
            seen = same_piece(s, p, q);
        different += !seen;
    }
    return different;
}

static void one_type_is_cut_at_the_largest_size(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 7, 32, 128, ACS_BOUNDARY_MOST};
    stream *s = make();
    for (int i = 0; i < 2000; i++)
        append(s, 3, false);
    for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        cut(s, sizes[k], 1000 + k);
        assert_int_equal(s->cut_count, 1999 / sizes[k]);
        for (uint32_t p = 0; p < s->cut_count; p++)
            assert_int_equal(s->cut[p], (p + 1) * sizes[k]);
    }
    free(s);
}

/* The period, drawn; then the number of pieces that there are in the long run. */
static uint32_t shapes_of_period(stream *s, acs_random *random, uint32_t period, uint32_t types)
{
    s->count = 0;
    for (uint32_t i = 0; i < period; i++)
        append(s, acs_random_below(random, types), false);
    while (s->count + 1 < 60 * (period < 128 ? 128 : period))
        append(s, s->type[s->count - period], false);
    cut(s, 128, 1);
    return shapes(s, s->cut_count / 2);
}

/* A program's repeat need not fit: fixed sizes would give as many shapes as the period and 128 have no common divisor. */
static void repeats_of_any_length_give_few_shapes(void **state)
{
    (void)state;
    stream *s = make();
    acs_random random = {7};
    for (uint32_t period = 1; period <= 400; period += 1 + period / 16) {
        uint32_t most = 0, sum = 0;
        for (int k = 0; k < 5; k++) {
            uint32_t found = shapes_of_period(s, &random, period, 2 + acs_random_below(&random, 8));
            most = found > most ? found : most;
            sum += found;
        }
        /* Just one where a number of repeats is a piece; else as many as it takes to come round. */
        bool fits = 128 / period * period >= 96;
        assert_in_range(most, 1, fits ? 1 : 16);
        assert_in_range(sum, 5, fits ? 5 : 5 * 10);
    }
    free(s);
}

/* Something else comes between two repeats: some pieces later all is cut as before. */
static void what_comes_between_repeats_is_forgotten(void **state)
{
    (void)state;
    stream *s = make();
    acs_random random = {11};
    for (uint32_t i = 0; i < 60; i++)
        append(s, acs_random_below(&random, 6), false);
    while (s->count < 9000)
        append(s, s->type[s->count - 60], false);
    for (uint32_t i = 0; i < 37; i++)
        append(s, 100 + i, false);
    uint32_t again = s->count;
    while (s->count < again + 9000)
        append(s, s->type[s->count - again], false);
    cut(s, 128, 1);
    uint32_t p = 0;
    while (begin_of(s, p) < again + 600)
        p++;
    assert_int_equal(shapes(s, p), 1);
    while (begin_of(s, --p) > 600)
        if (same_piece(s, p, s->cut_count - 1))
            break;
    assert_true(begin_of(s, p) > 600); /* and the pieces are those from before */
    free(s);
}

static void pieces_end_with_the_last_step_that_fits(void **state)
{
    (void)state;
    static const uint32_t steps[] = {1, 20, 50, 100, 128, 150}, expected[] = {128, 120, 100, 100, 128, 0};
    stream *s = make();
    acs_random random = {3};
    for (uint32_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        s->count = 0;
        while (s->count < 6000)
            append(s, acs_random_below(&random, 1000), s->count % steps[k] == 0);
        cut(s, 128, 77);
        for (uint32_t p = 0; p < s->cut_count && expected[k]; p++)
            assert_int_equal(s->cut[p] - begin_of(s, p), expected[k]);
        /* A step that is larger than a piece: every mark that comes is an end. */
        for (uint32_t at = 150; at < 5800 && !expected[k]; at += 150) {
            bool found = false;
            for (uint32_t p = 0; p < s->cut_count; p++)
                found |= s->cut[p] == at;
            assert_true(found);
        }
    }
    free(s);
}

static void a_gap_in_the_numbers_and_a_restart_begin_a_piece(void **state)
{
    (void)state;
    acs_boundary cuts;
    acs_boundary_init(&cuts, 8);
    for (acs_op op = 1; op <= 5; op++)
        assert_int_equal(acs_boundary_add(&cuts, op, 1, false), 0);
    for (acs_op op = 100; op < 108; op++)
        assert_int_equal(acs_boundary_add(&cuts, op, 1, false), 0);
    assert_true(acs_boundary_full(&cuts));
    assert_int_equal(acs_boundary_likely(&cuts), 107);
    assert_int_equal(acs_boundary_add(&cuts, 108, 1, false), 108);
    assert_int_equal(acs_boundary_add(&cuts, 109, 1, false), 0);
    assert_false(acs_boundary_full(&cuts));
    assert_int_equal(acs_boundary_likely(&cuts), 0);
    acs_boundary_restart(&cuts);
    for (acs_op op = 110; op < 117; op++)
        assert_int_equal(acs_boundary_add(&cuts, op, 1, false), 0);
    assert_int_equal(acs_boundary_add(&cuts, 117, 1, false), 117);
}

/* A rank of its own for each op, from the 32 types before: what boundary.h promises, found by looking at everything. */
static uint64_t rank(const stream *s, uint32_t at)
{
    uint64_t recent = 0;
    for (uint32_t back = 0; back < 32; back++) {
        uint64_t type = s->type[at >= back ? at - back : 0] + UINT64_C(1);
        recent += acs_hash64(type) << 2 * back;
    }
    return s->marked[at] ? UINT32_MAX : recent * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static void cuts_are_where_a_search_finds_them(void **state)
{
    (void)state;
    stream *s = make();
    acs_random random = {5};
    for (int round = 0; round < 60; round++) {
        uint32_t most = 1 + acs_random_below(&random, ACS_BOUNDARY_MOST), types = 1 + acs_random_below(&random, 20);
        uint32_t marks = acs_random_below(&random, 3) ? 0 : 1 + acs_random_below(&random, 200), begin = 0;
        s->count = 0;
        while (s->count < 1500)
            append(s, acs_random_below(&random, types), marks && acs_random_below(&random, marks) == 0);
        cut(s, most, acs_random_next(&random) >> 20);
        for (uint32_t p = 0; p < s->cut_count; p++) {
            uint32_t found = 0;
            uint64_t best = 0;
            for (uint32_t at = begin + 1; at <= begin + most; at++) {
                uint64_t here = rank(s, at);
                bool may = s->marked[at] || at - begin >= (3 * most + 3) / 4;
                if (may && here >= best) {
                    best = here;
                    found = at;
                }
            }
            assert_int_equal(s->cut[p], found);
            begin = found;
        }
        assert_true(begin + most >= s->count);
    }
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_type_is_cut_at_the_largest_size),
        cmocka_unit_test(repeats_of_any_length_give_few_shapes),
        cmocka_unit_test(what_comes_between_repeats_is_forgotten),
        cmocka_unit_test(pieces_end_with_the_last_step_that_fits),
        cmocka_unit_test(a_gap_in_the_numbers_and_a_restart_begin_a_piece),
        cmocka_unit_test(cuts_are_where_a_search_finds_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

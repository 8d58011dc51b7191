/* Shapes: their normal form, and overlap and cover against sets of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "window/regions.h"

#include <stdlib.h>
#include <string.h>

enum { SPACE = 768 }; /* bytes of the address space in which shapes are compared */

static acs_segment tile(uint64_t base, uint64_t row_bytes, uint64_t rows, uint64_t pitch)
{
    return acs_make_segment(ACS_EXTENT_BYTES, ACS_READ, base, row_bytes, rows, pitch);
}

static acs_shape shape_of(acs_segment segment)
{
    acs_shape shape;

    memset(&shape, 0xff, sizeof shape);
    assert_int_equal(acs_shape_of(&segment, &shape), ACS_OK);
    return shape;
}

static void assert_shape(acs_segment segment, uint64_t base, uint64_t row_bytes, uint64_t rows, uint64_t pitch)
{
    acs_shape s = shape_of(segment);

    assert_int_equal(s.base, base);
    assert_int_equal(s.row_bytes, row_bytes);
    assert_int_equal(s.rows, rows);
    assert_int_equal(s.pitch, pitch);
    assert_int_equal(s.token, 0);
}

static uint32_t between(acs_random *random, uint32_t low, uint32_t high)
{
    return low + acs_random_below(random, high - low + 1);
}

/* ------------------------------------------------------------------------------------------------------ normal form */

static void shape_of_rows_without_gaps_is_contiguous(void **state)
{
    (void)state;
    assert_shape(tile(1000, 64, 1, 7777), 1000, 64, 1, 0);
    assert_shape(tile(1000, 64, 10, 64), 1000, 640, 1, 0);
    assert_shape(tile(1000, 64, 10, 32), 1000, 9 * 32 + 64, 1, 0);
    assert_shape(tile(1000, 64, 10, 0), 1000, 64, 1, 0);
}

static void shape_of_rows_with_gaps_is_a_tile(void **state)
{
    (void)state;
    assert_shape(tile(1000, 64, 10, 65), 1000, 64, 10, 65);
    assert_shape(tile(0, 1, 2, 2), 0, 1, 2, 2);
}

static void shape_of_token_keeps_only_its_key(void **state)
{
    (void)state;
    acs_shape s = shape_of(ACS_TOKEN(77));

    assert_int_equal(s.token, 1);
    assert_int_equal(s.base, 77);
    assert_int_equal(s.row_bytes | s.rows | s.pitch, 0);
}

static void shape_of_nothing_or_everything_is_not_ready(void **state)
{
    (void)state;
    acs_segment none = tile(1000, 0, 5, 64), no_rows = tile(1000, 64, 0, 64), all = ACS_ALL_MEMORY;
    acs_shape s;

    assert_int_equal(acs_shape_of(&none, &s), ACS_NOT_READY);
    assert_int_equal(acs_shape_of(&no_rows, &s), ACS_NOT_READY);
    assert_int_equal(acs_shape_of(&all, &s), ACS_NOT_READY);
}

static void shape_of_bytes_up_to_the_last_address_is_accepted(void **state)
{
    (void)state;
    assert_shape(tile(UINT64_MAX, 1, 1, 0), UINT64_MAX, 1, 1, 0);
    assert_shape(tile(UINT64_MAX - 299, 100, 2, 200), UINT64_MAX - 299, 100, 2, 200);
}

static void shape_of_bytes_that_wrap_is_an_error_with_their_values(void **state)
{
    (void)state;
    const acs_segment bad[] = {
        tile(UINT64_MAX, 2, 1, 0),
        tile(UINT64_MAX - 298, 100, 2, 200),
        tile(0, 2, UINT64_MAX, UINT64_MAX),
        tile(0, 1, 3, 1ull << 63),
        tile(4096, 8, (1ull << 40) + 1, 1ull << 24), /* the distance of the last row is 0 modulo 2^64 */
    };
    acs_shape untouched = {.base = 5}, s = untouched;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(acs_shape_of(&bad[i], &s), ACS_ERR_ARGUMENT);
        assert_memory_equal(&s, &untouched, sizeof s);
    }

    acs_error error = {.size = sizeof error};
    assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "0x1000"));
    assert_non_null(strstr(error.text, "1099511627777"));
}

static void shape_of_unknown_access_or_extent_is_an_error(void **state)
{
    (void)state;
    acs_segment s = tile(1000, 8, 1, 0);
    acs_shape shape;

    s.access = 0;
    assert_int_equal(acs_shape_of(&s, &shape), ACS_ERR_ARGUMENT);
    s.access = 4;
    assert_int_equal(acs_shape_of(&s, &shape), ACS_ERR_ARGUMENT);
    s.access = ACS_WRITE;
    s.extent = 3;
    assert_int_equal(acs_shape_of(&s, &shape), ACS_ERR_ARGUMENT);
}

/* ------------------------------------------------------------------------------------------------ overlap and cover */

static void fill_bytes(uint8_t *set, const acs_shape *s, uint64_t origin)
{
    memset(set, 0, SPACE);
    for (uint64_t row = 0; row < s->rows; row++)
        for (uint64_t i = 0; i < s->row_bytes; i++)
            set[s->base - origin + row * s->pitch + i] = 1;
}

/* A random shape inside [origin, origin + SPACE). pitch 0: any. */
static acs_shape random_shape(acs_random *random, uint64_t origin, uint32_t pitch)
{
    for (;;) {
        uint32_t p = pitch ? pitch : between(random, 2, 90), w = between(random, 1, p), h = between(random, 1, 9);
        uint64_t offset = acs_random_below(random, SPACE);
        if (acs_random_below(random, 3) == 0)
            w = between(random, 1, 3);
        if (offset + (uint64_t)(h - 1) * p + w <= SPACE)
            return shape_of(tile(origin + offset, w, h, p));
    }
}

static void assert_same_as_bytes(const acs_shape *a, const acs_shape *b, uint64_t origin)
{
    uint8_t set_a[SPACE], set_b[SPACE];
    bool overlap = false, covers = true;

    fill_bytes(set_a, a, origin);
    fill_bytes(set_b, b, origin);
    for (uint32_t i = 0; i < SPACE; i++) {
        overlap |= set_a[i] && set_b[i];
        covers &= set_a[i] || !set_b[i];
    }
    assert_int_equal(acs_shape_overlap(a, b), overlap);
    assert_int_equal(acs_shape_overlap(b, a), overlap);
    if (a->rows == 1 || b->rows == 1 || a->pitch == b->pitch)
        assert_int_equal(acs_shape_covers(a, b), covers);
    else if (acs_shape_covers(a, b))
        assert_true(covers);
}

static void compare_random_shapes(uint64_t origin, bool same_pitch, uint32_t rounds)
{
    acs_random random = {origin + same_pitch};

    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t pitch = same_pitch ? between(&random, 2, 90) : 0;
        acs_shape a = random_shape(&random, origin, pitch), b = random_shape(&random, origin, pitch);
        assert_same_as_bytes(&a, &b, origin);
        assert_true(acs_shape_covers(&a, &a));
    }
}

static void overlap_of_random_shapes_is_that_of_their_bytes(void **state)
{
    (void)state;
    compare_random_shapes(1 << 20, false, 20000);
    compare_random_shapes(1 << 20, true, 20000);
}

static void overlap_at_both_ends_of_the_address_space_is_that_of_their_bytes(void **state)
{
    (void)state;
    compare_random_shapes(0, false, 10000);
    compare_random_shapes(0, true, 10000);
    compare_random_shapes(UINT64_MAX - SPACE + 1, false, 10000);
    compare_random_shapes(UINT64_MAX - SPACE + 1, true, 10000);
}

static void overlap_of_huge_tiles_is_found_without_walking_them(void **state)
{
    (void)state;
    /* 2^40 rows each. Those of a and b keep apart since their pitches have a common factor; those of a and c do not. */
    acs_shape a = shape_of(tile(0, 2, 1ull << 40, 1 << 10));
    acs_shape b = shape_of(tile(5, 2, 1ull << 40, 3 << 10)), c = shape_of(tile(5, 2, 1ull << 40, (3 << 10) + 9));

    assert_false(acs_shape_overlap(&a, &b));
    assert_true(acs_shape_overlap(&a, &c));
    assert_true(acs_shape_overlap(&c, &a));
}

static void tokens_overlap_only_their_equals(void **state)
{
    (void)state;
    acs_shape a = shape_of(ACS_TOKEN(1000)), b = shape_of(ACS_TOKEN(1001)), bytes = shape_of(tile(1000, 8, 1, 0));

    assert_true(acs_shape_overlap(&a, &a));
    assert_true(acs_shape_covers(&a, &a));
    assert_false(acs_shape_overlap(&a, &b));
    assert_false(acs_shape_overlap(&a, &bytes));
    assert_false(acs_shape_overlap(&bytes, &a));
    assert_false(acs_shape_covers(&bytes, &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_of_rows_without_gaps_is_contiguous),
        cmocka_unit_test(shape_of_rows_with_gaps_is_a_tile),
        cmocka_unit_test(shape_of_token_keeps_only_its_key),
        cmocka_unit_test(shape_of_nothing_or_everything_is_not_ready),
        cmocka_unit_test(shape_of_bytes_up_to_the_last_address_is_accepted),
        cmocka_unit_test(shape_of_bytes_that_wrap_is_an_error_with_their_values),
        cmocka_unit_test(shape_of_unknown_access_or_extent_is_an_error),
        cmocka_unit_test(overlap_of_random_shapes_is_that_of_their_bytes),
        cmocka_unit_test(overlap_at_both_ends_of_the_address_space_is_that_of_their_bytes),
        cmocka_unit_test(overlap_of_huge_tiles_is_found_without_walking_them),
        cmocka_unit_test(tokens_overlap_only_their_equals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

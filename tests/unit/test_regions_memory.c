/*
 * The table of regions when memory runs out: every allocation that a creation makes fails once, and each time the table
 * must be as it was before. Linked with --wrap for the allocating functions of the C library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "window/regions.h"

#include <string.h>

static long g_until_failure = -1; /* allocations that still succeed; negative: all do */

static bool fails_now(void)
{
    return g_until_failure >= 0 && g_until_failure-- == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return fails_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails_now() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return fails_now() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails_now() ? NULL : __real_aligned_alloc(alignment, bytes);
}

static bool unpinned(void *user, const acs_region *region)
{
    (void)user;
    return region->pins == 0;
}

static void add_up(void *user, acs_region *region)
{
    uint64_t *sum = user;

    *sum += acs_hash64(region->id + acs_hash64(region->shape.base + acs_hash64(region->link_count)));
}

/* Changes when a region comes, goes or gains a link. */
static uint64_t sum_of(acs_regions *regions)
{
    uint64_t sum = acs_regions_count(regions);

    acs_regions_each(regions, add_up, &sum);
    return sum;
}

static acs_shape random_shape(acs_random *random, uint64_t seed)
{
    static const uint64_t pitches[] = {64, 1000, 1024, 4096};
    uint64_t base = acs_random_below(random, 1u << (14 + seed % 8)), pitch = pitches[acs_random_below(random, 4)];
    uint64_t rows = 1 + acs_random_below(random, 30), width = 1 + acs_random_below(random, 60);
    acs_shape shape;

    if (acs_random_below(random, 4) == 0)
        rows = 1, width = 1 + acs_random_below(random, 1u << acs_random_below(random, 14));
    else if (seed % 4 == 0) /* more pitches than the table keeps apart */
        pitch = 64 + acs_random_below(random, 100);

    acs_segment segment = acs_make_segment(ACS_EXTENT_BYTES, ACS_READ, base, width, rows, pitch);
    assert_int_equal(acs_shape_of(&segment, &shape), ACS_OK);
    return shape;
}

/* Fail the first allocation, then the second, and so on until none is left to fail. */
static acs_region *get_after_failures(acs_regions *regions, const acs_shape *shape, uint32_t *failures)
{
    uint64_t before = sum_of(regions);

    for (long nth = 0;; nth++) {
        g_until_failure = nth;
        acs_region *region = acs_regions_get(regions, shape, ACS_UPDATE);
        g_until_failure = -1;
        if (region != NULL)
            return region;
        assert_int_equal(sum_of(regions), before);
        ++*failures;
    }
}

static void get_without_memory_leaves_the_table_as_it_was(void **state)
{
    enum { LIVE = 200, STEPS = 1500 };
    uint32_t failures = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        acs_random random = {seed};
        acs_regions *regions = NULL;
        acs_region *live[LIVE] = {NULL};

        assert_int_equal(acs_regions_create(100, unpinned, NULL, &regions), ACS_OK);
        for (uint32_t step = 0; step < STEPS; step++) {
            acs_region **at = &live[acs_random_below(&random, LIVE)];
            acs_shape shape = random_shape(&random, seed);
            if (*at != NULL)
                (*at)->pins--;
            *at = get_after_failures(regions, &shape, &failures);
            (*at)->pins++;
        }
        assert_true(acs_regions_check(regions));
        acs_regions_destroy(regions);
    }
    assert_true(failures > 1000);
}

static void create_without_memory_is_an_error(void **state)
{
    (void)state;
    for (long nth = 0; nth < 2; nth++) {
        acs_regions *untouched = NULL;
        g_until_failure = nth;
        acs_status status = acs_regions_create(100, unpinned, NULL, &untouched);
        g_until_failure = -1;
        assert_int_equal(status, ACS_ERR_MEMORY);
        assert_null(untouched);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_without_memory_leaves_the_table_as_it_was),
        cmocka_unit_test(create_without_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

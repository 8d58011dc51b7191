/*
 * The table of regions against brute force: acs_regions_check compares all pairs with the arithmetic that test_shape.c
 * compares with sets of bytes. A region of these tests is live while its `pins` is not zero, as in the window.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "window/regions.h"

#include <stdlib.h>
#include <string.h>

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

static uint32_t between(acs_random *random, uint32_t low, uint32_t high)
{
    return low + acs_random_below(random, high - low + 1);
}

static bool unpinned(void *user, const acs_region *region)
{
    (void)user;
    return region->pins == 0;
}

static acs_regions *table(uint32_t soft_cap)
{
    acs_regions *regions = NULL;

    assert_int_equal(acs_regions_create(soft_cap, unpinned, NULL, &regions), ACS_OK);
    return regions;
}

static acs_region *get_for(acs_regions *regions, acs_shape shape, uint8_t access)
{
    acs_region *region = acs_regions_get(regions, &shape, access);

    assert_non_null(region);
    assert_memory_equal(&region->shape.base, &shape.base, 4 * sizeof(uint64_t));
    assert_ptr_equal(acs_region_at(regions, region->id), region);
    return region;
}

static acs_region *get(acs_regions *regions, acs_shape shape)
{
    return get_for(regions, shape, ACS_UPDATE);
}

static acs_region *get_live(acs_regions *regions, acs_shape shape)
{
    acs_region *region = get(regions, shape);

    region->pins = 1;
    return region;
}

static void get_of_a_known_shape_returns_the_same_region(void **state)
{
    (void)state;
    acs_regions *regions = table(100);
    acs_shape shape = shape_of(tile(1000, 8, 4, 64)), other = shape_of(tile(1000, 8, 4, 65));
    acs_region *region = get_live(regions, shape);

    region->level_read = 7;
    assert_null(acs_regions_find(regions, &other));
    assert_ptr_equal(get(regions, shape), region);
    assert_ptr_equal(acs_regions_find(regions, &shape), region);
    assert_int_equal(region->level_read, 7);
    assert_int_equal(acs_regions_count(regions), 1);
    acs_regions_destroy(regions);
}

static void get_links_live_overlaps_and_forgets_idle_ones(void **state)
{
    (void)state;
    acs_regions *regions = table(100);
    acs_region *whole = get_live(regions, shape_of(tile(1000, 100, 1, 0)));
    acs_shape idle = shape_of(tile(1050, 100, 1, 0));

    get(regions, idle);
    acs_region *part = get_live(regions, shape_of(tile(1040, 20, 1, 0)));
    assert_null(acs_regions_find(regions, &idle));
    assert_int_equal(whole->link_count, 1);
    assert_int_equal(part->link_count, 1);
    assert_ptr_equal(whole->links[0].region, part);
    assert_true(whole->links[0].covers && !whole->links[0].covered);
    assert_true(part->links[0].covered && !part->links[0].covers);
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void get_after_eviction_starts_from_zero(void **state)
{
    (void)state;
    acs_regions *regions = table(100);
    acs_shape shape = shape_of(tile(1000, 100, 1, 0));
    acs_region *region = get(regions, shape), zero;

    region->level_write = 3;
    region->writer.generation = 9;
    acs_regions_evict_idle(regions);
    assert_int_equal(acs_regions_count(regions), 0);
    region = get(regions, shape);
    memset(&zero, 0, sizeof zero);
    assert_memory_equal(&region->writer, &zero.writer, sizeof zero.writer);
    assert_int_equal(region->level_write, 0);
    assert_int_equal(region->link_count, 0);
    acs_regions_destroy(regions);
}

static void drop_idle_links_keeps_the_live(void **state)
{
    (void)state;
    acs_regions *regions = table(1000);
    acs_region *whole = get_live(regions, shape_of(tile(0, 64 * 100, 1, 0)));
    acs_region *parts[100];

    for (uint32_t i = 0; i < 100; i++)
        parts[i] = get_live(regions, shape_of(tile(64 * i, 64, 1, 0)));
    for (uint32_t i = 0; i < 100; i++)
        parts[i]->pins = i % 3 == 0;
    acs_region_drop_idle_links(regions, whole);
    assert_int_equal(whole->link_count, 34);
    assert_int_equal(acs_regions_count(regions), 35);
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void each_visits_all(void *user, acs_region *region)
{
    *(uint64_t *)user += region->shape.base;
}

static void each_visits_every_region_once(void **state)
{
    (void)state;
    acs_regions *regions = table(10000);
    uint64_t sum = 0;

    for (uint32_t i = 1; i <= 1000; i++)
        get(regions, shape_of(tile(i * 16, 16, 1, 0)));
    acs_regions_each(regions, each_visits_all, &sum);
    assert_int_equal(sum, 16 * 1000 * 1001 / 2);
    acs_regions_destroy(regions);
}

/* What a random run draws its shapes from. */
typedef struct mix {
    uint64_t space;       /* bytes */
    uint32_t pitches[4];  /* 0 ends the list */
    uint32_t width, rows; /* most */
    uint32_t longest;     /* contiguous bytes */
} mix;

static acs_shape draw(acs_random *random, const mix *m)
{
    uint32_t kind = acs_random_below(random, 16), pitches = 0;

    while (pitches < 4 && m->pitches[pitches])
        pitches++;
    if (kind == 0)
        return shape_of(ACS_TOKEN(acs_random_below(random, 8)));
    if (kind < 6 || pitches == 0) {
        uint32_t bits = acs_random_below(random, 32 - (uint32_t)__builtin_clz(m->longest));
        uint64_t bytes = between(random, 1, 1u << bits);
        return shape_of(tile(4096 + (acs_random_next(random) % m->space), bytes, 1, 0));
    }

    uint32_t pitch = m->pitches[acs_random_below(random, pitches)];
    uint32_t width = between(random, 1, m->width < pitch ? m->width : pitch), rows = between(random, 1, m->rows);
    return shape_of(tile(4096 + (acs_random_next(random) % m->space), width, rows, pitch));
}

/* Hide what a region covers in all that it is linked with. */
static void hide_all(acs_regions *regions, acs_region *region)
{
    for (uint32_t i = region->link_count; i-- > 0;)
        (void)acs_region_hide(regions, region, i);
}

enum { LIVE = 150, STEPS = 2500 };

/*
 * Random shapes, read or written; up to LIVE of them are live, in a ring, so that the oldest goes idle when a new one
 * comes. Some hide others. Every live one must be in the table where it was, and all pairs must be linked as REG-1 and
 * REG-2 say.
 */
static void run_random(uint64_t seed, const mix *m, uint32_t soft_cap)
{
    acs_random random = {seed};
    acs_regions *regions = table(soft_cap);
    acs_region *live[LIVE] = {NULL};
    acs_shape shapes[LIVE];

    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t at = acs_random_below(&random, LIVE), again = acs_random_below(&random, LIVE);
        if (live[at] != NULL)
            live[at]->pins--;
        shapes[at] = live[again] != NULL && again != at && step % 5 == 0 ? shapes[again] : draw(&random, m);
        const uint8_t access = acs_random_below(&random, 3) ? ACS_UPDATE : ACS_READ;
        live[at] = get_for(regions, shapes[at], access);
        live[at]->pins++;
        if (access == ACS_UPDATE && step % 4 == 0)
            hide_all(regions, live[at]);
        if (step % 100 == 99) {
            for (uint32_t i = 0; i < LIVE; i++)
                assert_true(live[i] == NULL || acs_regions_find(regions, &shapes[i]) == live[i]);
            assert_true(acs_regions_check(regions));
        }
        if (step % 700 == 699)
            acs_regions_evict_idle(regions);
        if (live[again] != NULL && step % 50 == 0)
            acs_region_drop_idle_links(regions, live[again]);
    }
    acs_regions_evict_idle(regions);
    assert_true(acs_regions_count(regions) <= LIVE);
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

/* Each hides what it covers of the one before: however many there are, a new one meets that one alone. */
static void hidden_bytes_are_found_no_more(void **state)
{
    (void)state;
    enum { SIDE = 200, PITCH = SIDE * 4 + 32 };
    for (uint64_t base = 1 << 20; base < (1 << 20) + PITCH; base += 36) { /* most tiles wrap past the edge of their plane */
        acs_regions *regions = table(10000);
        for (uint32_t k = 0; k + 2 < SIDE; k++) {
            acs_region *tile_k = get_live(regions, shape_of(tile(base + k * (PITCH + 4), (SIDE - k) * 4, SIDE - k, PITCH)));
            assert_int_equal(tile_k->link_count, k > 0);
            hide_all(regions, tile_k);
            assert_int_equal(tile_k->link_count, 0);
        }
        acs_region *column = get_live(regions, shape_of(tile(base, 4, SIDE, PITCH)));
        assert_int_equal(column->link_count, 1);
        assert_true(acs_regions_check(regions));
        acs_regions_destroy(regions);
    }
}

static void a_region_that_is_hidden_is_whole_again_when_it_is_named(void **state)
{
    (void)state;
    acs_regions *regions = table(1000);
    acs_region *old = get_live(regions, shape_of(tile(4096, 100, 1, 0)));
    acs_region *left = get_live(regions, shape_of(tile(4000, 120, 1, 0)));
    acs_region *right = get_live(regions, shape_of(tile(4110, 200, 1, 0)));
    hide_all(regions, left);
    assert_false(old->serves);
    assert_int_equal(right->link_count, 1); /* with `old`, of which bytes are left there */
    hide_all(regions, right);
    assert_int_equal(old->link_count + left->link_count + right->link_count, 0);
    assert_int_equal(get_live(regions, shape_of(tile(4096, 8, 1, 0)))->link_count, 1); /* with `left` alone */
    assert_ptr_equal(get(regions, shape_of(tile(4096, 100, 1, 0))), old);
    assert_int_equal(old->link_count, 3);
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void regions_that_are_only_read_are_linked_when_one_is_written(void **state)
{
    (void)state;
    enum { READS = 50 };
    acs_regions *regions = table(1000);
    for (uint32_t i = 0; i < READS; i++) {
        acs_region *read = get_for(regions, shape_of(tile(4096 + i, 1000, 1, 0)), ACS_READ);
        read->pins++;
        assert_int_equal(read->link_count, 0);
    }
    assert_int_equal(get(regions, shape_of(tile(4096 + 7, 1000, 1, 0)))->link_count, READS - 1);
    assert_int_equal(get_live(regions, shape_of(tile(4000, 4000, 1, 0)))->link_count, READS);
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void random_shapes_are_linked_as_brute_force_says(void **state)
{
    (void)state;
    static const mix mixes[] = {
        {1 << 12, {64, 0}, 80, 20, 512},              /* crowded, one pitch, many wrap past its edge */
        {1 << 20, {1024, 0}, 64, 32, 4096},           /* sparse, one pitch */
        {1 << 14, {100, 128, 7, 33}, 60, 10, 1024},   /* pitches that cut across each other */
        {1 << 20, {0}, 1, 1, 1 << 20},                /* contiguous only, all lengths */
        {1 << 16, {4096, 4100, 0}, 4096, 16, 1 << 14} /* nearly whole rows */
    };

    for (uint32_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        for (uint64_t seed = 1; seed <= 6; seed++) {
            run_random(seed, &mixes[i], 1000);
            run_random(seed, &mixes[i], 100);
        }
}

static void tiles_of_more_pitches_than_are_kept_apart_are_linked(void **state)
{
    (void)state;
    acs_random random = {11};
    acs_regions *regions = table(100);

    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 300; i++) {
            uint64_t base = acs_random_below(&random, 1 << 18);
            get_live(regions, shape_of(tile(base, between(&random, 1, 60), between(&random, 1, 12), 100 + i % 75)));
        }
        assert_true(acs_regions_check(regions));
    }
    acs_regions_destroy(regions);
}

static void nested_regions_are_all_linked(void **state)
{
    (void)state;
    enum { DEPTH = 700 };
    acs_regions *regions = table(100);
    acs_region *outermost = get_live(regions, shape_of(tile(1 << 20, 2 * DEPTH, 1, 0)));

    /* Alternately with the same start and inside, so that equal keys occur too. */
    for (uint32_t i = 1; i < DEPTH; i++) {
        acs_region *region = get_live(regions, shape_of(tile((1 << 20) + i / 2, 2 * DEPTH - i - i / 2, 1, 0)));
        assert_int_equal(region->link_count, i);
    }
    assert_int_equal(outermost->link_count, DEPTH - 1);
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void regions_with_one_start_are_found_and_forgotten(void **state)
{
    (void)state;
    enum { RUNS = 150 };
    acs_random random = {17};
    acs_regions *regions = table(10);
    acs_region *runs[RUNS];
    uint64_t bytes = 0;

    /* The tile of single bytes spans many cells, so that the order of the bounding ranges is what finds the runs. */
    for (uint64_t i = 0; i < RUNS; i++)
        runs[i] = get_live(regions, shape_of(tile(4096, 300 + i, 1, 0)));
    assert_int_equal(get(regions, shape_of(tile(4096, 1, 9, 50000)))->link_count, RUNS);
    for (uint32_t round = 0; round < 2000; round++) {
        uint32_t i = acs_random_below(&random, RUNS);
        runs[i]->pins = 0;
        get(regions, shape_of(tile(1 << 20, 1 + round, 1, 0))); /* takes the free id, so that ids get out of order */
        acs_regions_evict_idle(regions);
        runs[i] = get_live(regions, shape_of(tile(4096, 300 + i, 1, 0)));
        assert_int_equal(runs[i]->link_count, RUNS - 1);
        if (round == 500)
            bytes = acs_regions_bytes(regions);
    }
    assert_true(acs_regions_bytes(regions) <= bytes + bytes / 8);
    assert_int_equal(get(regions, shape_of(tile(4096, 1, 9, 50000)))->link_count, RUNS);
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void long_regions_among_many_short_ones_are_linked(void **state)
{
    (void)state;
    acs_regions *regions = table(100);

    for (uint32_t i = 0; i < 1500; i++)
        get_live(regions, shape_of(tile(64 * ((i * 7919u) % 1500), 64, 1, 0)));
    assert_int_equal(get_live(regions, shape_of(tile(0, 64 * 1500, 1, 0)))->link_count, 1500);
    assert_int_equal(get_live(regions, shape_of(tile(64 * 100 - 1, 65, 1, 0)))->link_count, 3);
    assert_int_equal(get_live(regions, shape_of(tile(0, 1, 64 * 15, 100)))->link_count, 962);
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void links_that_are_gone_give_their_memory_back(void **state)
{
    (void)state;
    acs_regions *regions = table(100);
    uint64_t bytes = 0;

    for (uint32_t round = 0; round < 20; round++) {
        acs_region *nested[200];
        for (uint32_t i = 0; i < 200; i++)
            nested[i] = get_live(regions, shape_of(tile(1000, 200 - i, 1, 0)));
        for (uint32_t i = 0; i < 200; i++)
            nested[i]->pins = 0;
        acs_regions_evict_idle(regions);
        assert_int_equal(acs_regions_count(regions), 0);
        assert_true(bytes == 0 || acs_regions_bytes(regions) == bytes);
        bytes = acs_regions_bytes(regions);
    }
    acs_regions_destroy(regions);
}

static void long_region_is_linked_after_none_was_seen_for_long(void **state)
{
    (void)state;
    enum { PARTS = 400 };
    acs_regions *regions = table(2 * PARTS);

    for (uint64_t i = 0; i < PARTS; i++)
        get_live(regions, shape_of(tile((1 << 20) + 64 * i, 64, 1, 0)));
    for (uint64_t round = 0; round < 3; round++) {
        acs_region *whole = get_live(regions, shape_of(tile(1 << 20, 64 * PARTS - round, 1, 0)));
        assert_int_equal(whole->link_count, PARTS);
        whole->pins = 0;
        for (uint64_t i = 0; i < 6000; i++)
            get(regions, shape_of(tile((1 << 24) + 64 * i + round, 64, 1, 0)));
    }
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void regions_as_large_as_the_address_space_are_linked(void **state)
{
    (void)state;
    acs_regions *regions = table(100);
    acs_random random = {3};

    get_live(regions, shape_of(tile(0, UINT64_MAX, 1, 0)));
    get_live(regions, shape_of(tile(1, UINT64_MAX, 1, 0)));
    get_live(regions, shape_of(tile(0, 1, 1ull << 63, 2)));
    get_live(regions, shape_of(tile(1, 1, 1ull << 63, 2)));
    get_live(regions, shape_of(tile(5, 1ull << 62, 2, 1ull << 63)));
    get_live(regions, shape_of(tile(UINT64_MAX, 1, 1, 0)));
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t bits = between(&random, 1, 60), more = between(&random, 0, 61 - bits);
        uint64_t base = acs_random_next(&random) >> between(&random, 2, 20), pitch = (1ull << bits) + i % 3;
        get_live(regions, shape_of(tile(base, pitch - i % 2, i % 4 ? 1ull << more : 1, pitch)));
    }
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void count_stays_near_the_soft_cap_while_regions_are_idle(void **state)
{
    (void)state;
    acs_regions *regions = table(200);

    for (uint64_t i = 0; i < 5000; i++) {
        get(regions, shape_of(tile(64 * i, 64, 1, 0)));
        assert_true(acs_regions_count(regions) <= 200);
    }
    acs_regions_destroy(regions);
}

/* Columns that nobody names again lie between rows that are searched: searches do not look at ever more of them. */
static void idle_tiles_that_searches_look_at_are_forgotten(void **state)
{
    enum { PITCH = 4096, ROWS = 900, BETWEEN = 1050, BELOW = 1100, TURNS = 1000 };
    (void)state;
    acs_regions *regions = table(100 * TURNS);
    acs_shape live = shape_of(tile((uint64_t)PITCH * 4 * BELOW, PITCH - 4, 2, PITCH));

    get_live(regions, live);
    for (uint64_t i = 0; i < TURNS; i++) {
        get(regions, shape_of(tile(PITCH * (i % 2 ? BELOW : 0) + 4 * i, 4, ROWS, PITCH)));
        get(regions, shape_of(tile(PITCH * BETWEEN, 3000 + i, 1, 0)));
    }
    assert_true(acs_regions_count(regions) < TURNS / 2);
    assert_non_null(acs_regions_find(regions, &live));
    assert_true(acs_regions_check(regions));
    acs_regions_destroy(regions);
}

static void live_regions_exceed_the_soft_cap_and_stay(void **state)
{
    (void)state;
    acs_regions *regions = table(50);
    acs_region *live[500];

    for (uint64_t i = 0; i < 500; i++)
        live[i] = get_live(regions, shape_of(tile(64 * i, 64, 1, 0)));
    for (uint64_t i = 500; i < 3000; i++)
        get(regions, shape_of(tile(64 * i, 64, 1, 0)));
    for (uint64_t i = 0; i < 500; i++) {
        acs_shape shape = shape_of(tile(64 * i, 64, 1, 0));
        assert_ptr_equal(acs_regions_find(regions, &shape), live[i]);
    }
    assert_true(acs_regions_count(regions) < 600);
    acs_regions_destroy(regions);
}

static void regions_that_are_hit_outlive_those_that_are_not(void **state)
{
    (void)state;
    acs_regions *regions = table(100);
    acs_shape hot = shape_of(tile(1, 1, 1, 0));

    get(regions, hot)->level_read = 7;
    for (uint64_t i = 1; i < 2000; i++) {
        get(regions, shape_of(tile(64 * i, 64, 1, 0)));
        assert_int_equal(get(regions, hot)->level_read, 7);
    }
    assert_true(acs_regions_count(regions) <= 120);
    acs_regions_destroy(regions);
}

static void memory_stays_bounded_over_a_long_history(void **state)
{
    (void)state;
    acs_random random = {5};
    acs_regions *regions = table(1000);
    acs_region *ring[256] = {NULL};
    uint64_t high = 0;

    for (uint32_t i = 0; i < 100000; i++) {
        acs_region **at = &ring[i % 256];
        uint64_t base = (uint64_t)acs_random_below(&random, 1 << 30);
        if (*at != NULL)
            (*at)->pins--;
        *at = get(regions, i % 2 ? shape_of(tile(base, between(&random, 1, 5000), 1, 0))
                                 : shape_of(tile(base, 256, between(&random, 2, 100), 8192 + 8192 * (i % 6))));
        (*at)->pins++;
        if (i == 20000)
            high = acs_regions_bytes(regions);
    }
    assert_true(acs_regions_bytes(regions) <= high + high / 4);
    assert_true(acs_regions_bytes(regions) < 1500000);
    acs_regions_destroy(regions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_of_a_known_shape_returns_the_same_region),
        cmocka_unit_test(get_links_live_overlaps_and_forgets_idle_ones),
        cmocka_unit_test(get_after_eviction_starts_from_zero),
        cmocka_unit_test(drop_idle_links_keeps_the_live),
        cmocka_unit_test(each_visits_every_region_once),
        cmocka_unit_test(hidden_bytes_are_found_no_more),
        cmocka_unit_test(a_region_that_is_hidden_is_whole_again_when_it_is_named),
        cmocka_unit_test(regions_that_are_only_read_are_linked_when_one_is_written),
        cmocka_unit_test(random_shapes_are_linked_as_brute_force_says),
        cmocka_unit_test(tiles_of_more_pitches_than_are_kept_apart_are_linked),
        cmocka_unit_test(nested_regions_are_all_linked),
        cmocka_unit_test(regions_with_one_start_are_found_and_forgotten),
        cmocka_unit_test(long_regions_among_many_short_ones_are_linked),
        cmocka_unit_test(links_that_are_gone_give_their_memory_back),
        cmocka_unit_test(long_region_is_linked_after_none_was_seen_for_long),
        cmocka_unit_test(regions_as_large_as_the_address_space_are_linked),
        cmocka_unit_test(count_stays_near_the_soft_cap_while_regions_are_idle),
        cmocka_unit_test(idle_tiles_that_searches_look_at_are_forgotten),
        cmocka_unit_test(live_regions_exceed_the_soft_cap_and_stay),
        cmocka_unit_test(regions_that_are_hit_outlive_those_that_are_not),
        cmocka_unit_test(memory_stays_bounded_over_a_long_history),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Unit tests of pool/arena: which range is handed out, how ranges split and merge, whole chunks, and random sequences
 * against a model that knows each unit's owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "pool/arena.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = ACS_ARENA_ALIGN };

static uint64_t units(uint64_t count)
{
    return count * UNIT;
}

static acs_arena *arena_of(uint64_t base, uint64_t bytes)
{
    acs_arena *arena = NULL;
    assert_int_equal(acs_arena_create(&arena), ACS_OK);
    if (bytes)
        assert_int_equal(acs_arena_add(arena, base, bytes), ACS_OK);
    return arena;
}

static acs_range *take(acs_arena *arena, uint64_t bytes)
{
    acs_range *range = acs_arena_take(arena, bytes, 0);
    assert_non_null(range);
    assert_true(acs_arena_check(arena));
    return range;
}

static void give(acs_arena *arena, acs_range *range)
{
    acs_arena_give(range);
    assert_true(acs_arena_check(arena));
}

static uint64_t largest(const acs_arena *arena)
{
    uint64_t bytes = 0;
    for (const acs_range *r = acs_arena_idle(arena, UINT64_MAX, NULL); r; r = acs_arena_idle(arena, UINT64_MAX, r))
        bytes = r->bytes > bytes ? r->bytes : bytes;
    return bytes;
}

static void sizes_are_rounded_up_and_places_aligned(void **state)
{
    (void)state;
    acs_arena *arena = arena_of(units(7), units(8));
    const acs_range *a = take(arena, 1), *b = take(arena, UNIT), *c = take(arena, UNIT + 1);

    assert_int_equal(a->base, units(7));
    assert_int_equal(a->bytes, UNIT);
    assert_int_equal(b->base, units(8));
    assert_int_equal(c->bytes, 2 * UNIT);
    assert_int_equal(acs_arena_count(arena).taken, 4 * UNIT);
    assert_int_equal(largest(arena), 4 * UNIT);
    acs_arena_destroy(arena);
}

static void nothing_is_handed_out_of_too_little(void **state)
{
    (void)state;
    acs_arena *arena = arena_of(UNIT, units(8));
    assert_null(acs_arena_take(arena, units(8) + 1, 0));
    assert_null(acs_arena_take(arena, 0, 0));
    assert_null(acs_arena_take(arena, UINT64_MAX, 0));
    assert_null(acs_arena_take(arena, UINT64_MAX - UNIT, 0));
    (void)take(arena, units(8));
    assert_null(acs_arena_take(arena, 1, 0));
    assert_int_equal(largest(arena), 0);
    acs_arena_destroy(arena);
}

static void bad_chunks_are_refused(void **state)
{
    (void)state;
    acs_arena *arena = arena_of(0, 0);
    assert_int_equal(acs_arena_add(arena, UNIT, 0), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_arena_add(arena, UNIT + 1, UNIT), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_arena_add(arena, UNIT, UNIT + 1), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_arena_add(arena, UINT64_MAX - UNIT + 1, 2 * UNIT), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_arena_count(arena).chunks, 0);
    acs_arena_destroy(arena);
}

/* Holes of 3, 5 and 4 units; what fits exactly goes first, then what leaves least. */
static void the_smallest_hole_that_is_large_enough_is_taken(void **state)
{
    (void)state;
    acs_arena *arena = arena_of(UNIT, units(100));
    static const uint32_t sizes[] = {3, 1, 5, 1, 4, 1};
    acs_range *ranges[6];
    for (int i = 0; i < 6; i++)
        ranges[i] = take(arena, units(sizes[i]));
    uint64_t three = ranges[0]->base, five = ranges[2]->base, four = ranges[4]->base;
    for (int i = 0; i < 6; i += 2)
        give(arena, ranges[i]);

    assert_int_equal(take(arena, units(4))->base, four);
    assert_int_equal(take(arena, units(4))->base, five);
    assert_int_equal(take(arena, units(2))->base, three);
    acs_arena_destroy(arena);
}

static void of_exact_fits_the_latest_is_taken_of_others_the_lowest(void **state)
{
    (void)state;
    acs_arena *arena = arena_of(UNIT, units(9 * 65));
    acs_range *ranges[9];
    for (int i = 0; i < 9; i++)
        ranges[i] = take(arena, units(65));
    uint64_t low = ranges[2]->base, latest = ranges[4]->base;
    give(arena, ranges[2]);
    give(arena, ranges[6]);
    give(arena, ranges[4]);
    assert_int_equal(take(arena, units(65))->base, latest);
    assert_int_equal(take(arena, units(64))->base, low);
    acs_arena_destroy(arena);
}

/* Whatever the order in which three neighbours come back, they are one. */
static void neighbours_merge(void **state)
{
    (void)state;
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int k = 0; k < 6; k++) {
        acs_arena *arena = arena_of(UNIT, units(6));
        acs_range *ranges[3];
        for (int i = 0; i < 3; i++)
            ranges[i] = take(arena, units(2));
        for (int i = 0; i < 3; i++)
            give(arena, ranges[orders[k][i]]);
        assert_int_equal(largest(arena), units(6));
        assert_int_equal(take(arena, units(6))->base, UNIT);
        acs_arena_destroy(arena);
    }
}

/* The driver gave them separately and takes them back so, though they lie side by side. */
static void chunks_stay_apart(void **state)
{
    (void)state;
    acs_arena *arena = arena_of(UNIT, units(4));
    uint64_t base, bytes;
    assert_int_equal(acs_arena_add(arena, UNIT + units(4), units(6)), ACS_OK);
    assert_null(acs_arena_take(arena, units(7), 0));
    acs_range *four = take(arena, units(4)), *six = take(arena, units(6));
    assert_false(acs_arena_remove(arena, 0, &base, &bytes));
    give(arena, six);
    give(arena, four);

    assert_true(acs_arena_remove(arena, 0, &base, &bytes)); /* the larger one first */
    assert_int_equal(base, UNIT + units(4));
    assert_int_equal(bytes, units(6));
    assert_int_equal(acs_arena_count(arena).reserved, units(4));
    assert_true(acs_arena_remove(arena, 0, &base, &bytes));
    assert_int_equal(base, UNIT);
    assert_false(acs_arena_remove(arena, 0, &base, &bytes));
    assert_true(acs_arena_check(arena));
    acs_arena_destroy(arena);
}

/* More holes of one class than are looked at, the only one that fits behind them. */
static void what_fits_is_found_behind_many_that_do_not(void **state)
{
    (void)state;
    enum { HOLES = 100 };
    acs_arena *arena = arena_of(UNIT, units(HOLES * 65 + 66));
    acs_range *holes[HOLES + 1], *walls[HOLES + 1];
    for (int i = 0; i <= HOLES; i++) {
        holes[i] = take(arena, units(i == HOLES ? 65 : 64)); /* 64 to 67 units are one class */
        walls[i] = i < HOLES ? take(arena, UNIT) : NULL;
    }
    uint64_t fits = holes[HOLES]->base;
    give(arena, holes[HOLES]); /* first in, so behind all others */
    for (int i = 0; i < HOLES; i++)
        give(arena, holes[i]);
    assert_int_equal(take(arena, units(65))->base, fits);
    (void)walls;
    acs_arena_destroy(arena);
}

/* --------------------------------------------------------------------------------------------------------- at random */

enum { CHUNKS = 4, CHUNK_UNITS = 4096, LIVE_MOST = 512 };

/* Who has each unit: 0: nobody. Chunks lie 2 * CHUNK_UNITS apart. */
typedef struct model {
    uint16_t owner[CHUNKS][CHUNK_UNITS];
    acs_range *live[LIVE_MOST];
    bool there[CHUNKS];
} model;

static uint64_t chunk_base(int chunk)
{
    return units(1 + (uint64_t)chunk * 2 * CHUNK_UNITS);
}

static uint16_t *owners(model *m, const acs_range *range)
{
    uint64_t at = range->base / UNIT - 1, chunk = at / (2 * CHUNK_UNITS);
    assert_true(chunk < CHUNKS && m->there[chunk]);
    assert_true(at % (2 * CHUNK_UNITS) + range->bytes / UNIT <= CHUNK_UNITS);
    return &m->owner[chunk][at % (2 * CHUNK_UNITS)];
}

static uint64_t largest_hole(const model *m)
{
    uint64_t largest = 0;
    for (int c = 0; c < CHUNKS; c++)
        for (uint64_t i = 0, run = 0; m->there[c] && i < CHUNK_UNITS; i++) {
            run = m->owner[c][i] ? 0 : run + 1;
            largest = run > largest ? run : largest;
        }
    return largest;
}

static uint64_t some_size(acs_random *random)
{
    uint32_t most = 1u << acs_random_below(random, 11);
    return 1 + acs_random_below(random, most * UNIT);
}

static void model_take(acs_arena *arena, model *m, acs_random *random, uint32_t place)
{
    uint64_t bytes = some_size(random);
    acs_range *range = acs_arena_take(arena, bytes, 0);
    if (!range) {
        assert_true(largest_hole(m) * UNIT < bytes);
        return;
    }
    assert_true(range->bytes >= bytes && range->bytes < bytes + UNIT);
    uint16_t *owner = owners(m, range);
    for (uint64_t i = 0; i < range->bytes / UNIT; i++) {
        assert_int_equal(owner[i], 0);
        owner[i] = (uint16_t)(1 + place);
    }
    m->live[place] = range;
}

static void model_give(model *m, uint32_t place)
{
    acs_range *range = m->live[place];
    uint16_t *owner = owners(m, range);
    for (uint64_t i = 0; i < range->bytes / UNIT; i++) {
        assert_int_equal(owner[i], 1 + place);
        owner[i] = 0;
    }
    m->live[place] = NULL;
    acs_arena_give(range);
}

static void model_chunk(acs_arena *arena, model *m, int chunk)
{
    uint64_t base, bytes;
    if (!m->there[chunk]) {
        assert_int_equal(acs_arena_add(arena, chunk_base(chunk), units(CHUNK_UNITS)), ACS_OK);
        m->there[chunk] = true;
    } else if (acs_arena_remove(arena, 0, &base, &bytes)) {
        int gone = (int)((base / UNIT - 1) / (2 * CHUNK_UNITS));
        assert_int_equal(base, chunk_base(gone));
        assert_int_equal(bytes, units(CHUNK_UNITS));
        for (uint32_t i = 0; i < CHUNK_UNITS; i++)
            assert_int_equal(m->owner[gone][i], 0);
        m->there[gone] = false;
    }
}

static void random_sequences_keep_every_unit_with_one_owner(void **state)
{
    (void)state;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        acs_arena *arena = arena_of(0, 0);
        acs_random random = {seed};
        uint32_t most = seed % 2 ? LIVE_MOST : 24;
        memset(m, 0, sizeof *m);
        for (int i = 0; i < 50000; i++) {
            uint32_t place = acs_random_below(&random, most);
            if (acs_random_below(&random, 1000) == 0)
                model_chunk(arena, m, (int)acs_random_below(&random, CHUNKS));
            else if (m->live[place])
                model_give(m, place);
            else
                model_take(arena, m, &random, place);
            if (i % 512 == 0)
                assert_true(acs_arena_check(arena));
        }
        for (uint32_t place = 0; place < most; place++)
            if (m->live[place])
                model_give(m, place);
        assert_true(acs_arena_check(arena));
        assert_int_equal(acs_arena_count(arena).taken, 0);
        assert_int_equal(largest(arena), acs_arena_count(arena).chunks ? units(CHUNK_UNITS) : 0);
        acs_arena_destroy(arena);
    }
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_rounded_up_and_places_aligned),
        cmocka_unit_test(nothing_is_handed_out_of_too_little),
        cmocka_unit_test(bad_chunks_are_refused),
        cmocka_unit_test(the_smallest_hole_that_is_large_enough_is_taken),
        cmocka_unit_test(of_exact_fits_the_latest_is_taken_of_others_the_lowest),
        cmocka_unit_test(neighbours_merge),
        cmocka_unit_test(chunks_stay_apart),
        cmocka_unit_test(what_fits_is_found_behind_many_that_do_not),
        cmocka_unit_test(random_sequences_keep_every_unit_with_one_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Unit tests of devices/coherence: who holds what after writes, copies and drops, against a mask for each byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "devices/coherence.h"

#include <string.h>

enum { BYTES = 200, PLACES = 5 };

/* How many bytes of [from, to) are valid at the place. */
static uint64_t held_at(const acs_coherence *c, uint64_t from, uint64_t to, uint32_t place)
{
    uint64_t held = 0;
    acs_validity piece;
    for (uint64_t at = from; acs_coherence_piece(c, at, to, &piece); at = piece.to)
        held += piece.places >> place & 1 ? piece.to - piece.from : 0;
    return held;
}

static void a_write_leaves_one_valid_place_and_a_copy_adds_one(void **state)
{
    (void)state;
    acs_coherence c;
    acs_validity v;
    assert_int_equal(acs_coherence_init(&c, 1000), ACS_OK);
    assert_false(acs_coherence_missing(&c, 0, 1000, 0, &v)); /* nobody wrote it: there is nothing to bring */
    assert_int_equal(acs_coherence_copy(&c, 0, 1000, 3), ACS_OK);
    assert_int_equal(held_at(&c, 0, 1000, 3), 0);
    assert_int_equal(acs_coherence_write(&c, 0, 1000, 0), ACS_OK);
    assert_int_equal(acs_coherence_write(&c, 400, 600, 1), ACS_OK);
    assert_true(acs_coherence_missing(&c, 300, 700, 1, &v));
    assert_int_equal(v.from, 300);
    assert_int_equal(v.to, 400);
    assert_int_equal(v.places, 1);
    assert_true(acs_coherence_missing(&c, v.to, 700, 1, &v));
    assert_int_equal(v.from, 600);
    assert_int_equal(v.to, 700);
    assert_false(acs_coherence_missing(&c, v.to, 700, 1, &v));
    assert_int_equal(acs_coherence_copy(&c, 300, 700, 1), ACS_OK);
    assert_int_equal(held_at(&c, 0, 1000, 1), 400);
    assert_int_equal(held_at(&c, 0, 1000, 0), 800);
    assert_int_equal(acs_coherence_write(&c, 0, 1000, 2), ACS_OK);
    assert_int_equal(c.count, 1);
    assert_int_equal(held_at(&c, 0, 1000, 1), 0);
    acs_coherence_fini(&c);
}

static void what_one_place_holds_alone_is_told_before_it_goes(void **state)
{
    (void)state;
    acs_coherence c;
    acs_validity v;
    assert_int_equal(acs_coherence_init(&c, 100), ACS_OK);
    assert_false(acs_coherence_sole(&c, 0, 0, &v));
    assert_int_equal(acs_coherence_write(&c, 10, 90, 0), ACS_OK);
    assert_int_equal(acs_coherence_copy(&c, 30, 50, 1), ACS_OK);
    assert_true(acs_coherence_sole(&c, 0, 0, &v));
    assert_int_equal(v.from, 10);
    assert_int_equal(v.to, 30);
    assert_true(acs_coherence_sole(&c, v.to, 0, &v));
    assert_int_equal(v.from, 50);
    assert_int_equal(v.to, 90);
    assert_false(acs_coherence_sole(&c, v.to, 0, &v));
    acs_coherence_drop(&c, 0);
    assert_int_equal(held_at(&c, 0, 100, 1), 20);
    assert_true(acs_coherence_check(&c));
    assert_int_equal(c.count, 3);
    acs_coherence_fini(&c);
}

static void what_a_copy_did_not_bring_is_where_it_was_written(void **state)
{
    (void)state;
    acs_coherence c;
    acs_validity v;
    assert_int_equal(acs_coherence_init(&c, 100), ACS_OK);
    assert_int_equal(acs_coherence_write(&c, 0, 50, 2), ACS_OK);
    assert_int_equal(acs_coherence_write(&c, 50, 90, 1), ACS_OK);
    assert_int_equal(acs_coherence_copy(&c, 0, 100, 0), ACS_OK);
    assert_int_equal(acs_coherence_copy(&c, 0, 50, 1), ACS_OK);
    assert_int_equal(acs_coherence_copy(&c, 50, 90, 2), ACS_OK);
    assert_true(acs_coherence_missing(&c, 0, 100, 3, &v)); /* all of them are where all are: one copy */
    assert_int_equal(v.from, 0);
    assert_int_equal(v.to, 90);
    acs_coherence_restore(&c, 40, 60, 1);
    assert_true(acs_coherence_check(&c));
    assert_int_equal(held_at(&c, 0, 100, 0), 70);
    assert_int_equal(held_at(&c, 40, 60, 1), 10);
    assert_int_equal(held_at(&c, 40, 60, 2), 10);
    acs_coherence_settle(&c, 0, 100, 0);
    assert_int_equal(held_at(&c, 0, 100, 0), 70);
    assert_int_equal(held_at(&c, 0, 100, 1), 10); /* which the place does not hold */
    acs_coherence_restore(&c, 0, 100, 1); /* and nothing failed there that was settled since */
    assert_int_equal(held_at(&c, 0, 100, 0), 70);
    assert_true(acs_coherence_check(&c));
    acs_coherence_fini(&c);
}

/* Who inherits may have a copy that fails yet: others are not given up for it. */
static void a_copy_that_inherited_and_failed_is_left(void **state)
{
    (void)state;
    acs_coherence c;
    assert_int_equal(acs_coherence_init(&c, 100), ACS_OK);
    assert_int_equal(acs_coherence_write(&c, 0, 100, 3), ACS_OK);
    assert_int_equal(acs_coherence_copy(&c, 0, 100, 0), ACS_OK);
    assert_int_equal(acs_coherence_copy(&c, 0, 100, 1), ACS_OK);
    acs_coherence_drop(&c, 3);
    acs_coherence_restore(&c, 0, 50, 0);
    assert_true(acs_coherence_check(&c));
    assert_int_equal(held_at(&c, 0, 100, 0), 50);
    assert_int_equal(held_at(&c, 0, 100, 1), 100);
    acs_coherence_restore(&c, 0, 50, 1); /* the only one that is left */
    assert_int_equal(held_at(&c, 0, 50, 1), 50);
    acs_coherence_restore(&c, 60, 100, 1); /* and what is there may have been copied from it */
    assert_int_equal(held_at(&c, 50, 100, 1), 10);
    assert_int_equal(acs_coherence_write(&c, 50, 100, 1), ACS_OK);
    assert_int_equal(acs_coherence_copy(&c, 50, 100, 0), ACS_OK);
    acs_coherence_restore(&c, 50, 100, 1); /* that is over: it was written there since */
    assert_int_equal(held_at(&c, 50, 100, 1), 50);
    assert_int_equal(held_at(&c, 50, 100, 0), 0);
    acs_coherence_fini(&c);
}

/* ----------------------------------------------------------------------------------------------------------- at random */

typedef struct byte_model {
    acs_place_set places;
    uint32_t origin;
    bool inherited;
} byte_model;

static byte_model without(byte_model b, uint32_t place)
{
    b.places &= ~(UINT32_C(1) << place);
    if (b.origin != place || !b.places)
        return b.places ? b : (byte_model){0};
    return (byte_model){b.places, (uint32_t)__builtin_ctz(b.places), true};
}

static byte_model restored(byte_model b, uint32_t place)
{
    if (b.inherited && b.origin == place && b.places != UINT32_C(1) << place)
        return without(b, place);
    b.places &= UINT32_C(1) << b.origin;
    return b;
}

static void change(acs_coherence *c, byte_model *model, acs_random *random)
{
    uint32_t from = acs_random_below(random, BYTES + 1), to = acs_random_below(random, BYTES + 1);
    const uint32_t place = acs_random_below(random, PLACES), what = acs_random_below(random, 20), bit = UINT32_C(1) << place;
    if (what == 0)
        acs_coherence_drop(c, place);
    else if (what == 1)
        acs_coherence_restore(c, from, to, place);
    else if (what == 2)
        acs_coherence_settle(c, from, to, place);
    else
        assert_int_equal((what % 3 ? acs_coherence_copy : acs_coherence_write)(c, from, to, place), ACS_OK);
    for (uint32_t i = what ? from : 0; i < (what ? to : BYTES); i++) {
        byte_model *b = &model[i];
        if (what == 0)
            *b = without(*b, place);
        else if (what == 1)
            *b = restored(*b, place);
        else if (what == 2 ? b->places & bit : what % 3 == 0)
            *b = (byte_model){bit, place, false};
        else if (what > 2 && b->places)
            b->places |= bit;
    }
}

static void ask(const acs_coherence *c, const byte_model *model, acs_random *random)
{
    const uint32_t from = acs_random_below(random, BYTES + 1), to = acs_random_below(random, BYTES + 1);
    const uint32_t place = acs_random_below(random, PLACES), bit = UINT32_C(1) << place;
    bool missing[BYTES] = {false}, sole[BYTES] = {false};
    acs_validity v;
    uint64_t held = 0;
    for (uint64_t at = from; acs_coherence_missing(c, at, to, place, &v); at = v.to)
        for (uint64_t i = v.from; i < v.to; i++) {
            missing[i] = true;
            assert_int_equal(v.places, model[i].places);
        }
    for (uint64_t at = 0; acs_coherence_sole(c, at, place, &v); at = v.to)
        memset(&sole[v.from], true, v.to - v.from);
    for (uint32_t i = 0; i < BYTES; i++) {
        const bool asked = i >= from && i < to;
        assert_int_equal(missing[i], asked && model[i].places && !(model[i].places & bit));
        assert_int_equal(sole[i], model[i].places == bit);
        held += asked && (model[i].places & bit);
    }
    assert_int_equal(held_at(c, from, to, place), held);
}

static void every_byte_is_where_a_mask_for_each_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        acs_random random = {seed};
        acs_coherence c;
        byte_model model[BYTES] = {{0}};
        assert_int_equal(acs_coherence_init(&c, BYTES), ACS_OK);
        for (int i = 0; i < 2000; i++) {
            change(&c, model, &random);
            assert_true(acs_coherence_check(&c));
            ask(&c, model, &random);
        }
        acs_coherence_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_leaves_one_valid_place_and_a_copy_adds_one),
        cmocka_unit_test(what_one_place_holds_alone_is_told_before_it_goes),
        cmocka_unit_test(what_a_copy_did_not_bring_is_where_it_was_written),
        cmocka_unit_test(a_copy_that_inherited_and_failed_is_left),
        cmocka_unit_test(every_byte_is_where_a_mask_for_each_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

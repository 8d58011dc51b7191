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

static void a_write_leaves_one_valid_place_and_a_copy_adds_one(void **state)
{
    (void)state;
    acs_coherence c;
    acs_validity v;
    assert_int_equal(acs_coherence_init(&c, 1000), ACS_OK);
    assert_false(acs_coherence_missing(&c, 0, 1000, 0, &v)); /* nobody wrote it: there is nothing to bring */
    assert_int_equal(acs_coherence_copy(&c, 0, 1000, 3), ACS_OK);
    assert_int_equal(acs_coherence_held(&c, 0, 1000, 3), 0);
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
    assert_int_equal(acs_coherence_held(&c, 0, 1000, 1), 400);
    assert_int_equal(acs_coherence_held(&c, 0, 1000, 0), 800);
    assert_int_equal(acs_coherence_write(&c, 0, 1000, 2), ACS_OK);
    assert_int_equal(c.count, 1);
    assert_int_equal(acs_coherence_held(&c, 0, 1000, 1), 0);
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
    assert_int_equal(acs_coherence_held(&c, 0, 100, 1), 20);
    assert_true(acs_coherence_check(&c));
    assert_int_equal(c.count, 3);
    acs_coherence_fini(&c);
}

/* ----------------------------------------------------------------------------------------------------------- at random */

static void change(acs_coherence *c, acs_place_set *model, acs_random *random)
{
    uint32_t from = acs_random_below(random, BYTES + 1), to = acs_random_below(random, BYTES + 1);
    const uint32_t place = acs_random_below(random, PLACES), what = acs_random_below(random, 20);
    if (what == 0) {
        acs_coherence_drop(c, place);
        for (uint32_t i = 0; i < BYTES; i++)
            model[i] &= ~(UINT32_C(1) << place);
        return;
    }
    assert_int_equal((what % 2 ? acs_coherence_write : acs_coherence_copy)(c, from, to, place), ACS_OK);
    for (uint32_t i = from; i < to; i++)
        model[i] = what % 2 ? UINT32_C(1) << place : model[i] ? model[i] | UINT32_C(1) << place : 0;
}

static void ask(const acs_coherence *c, const acs_place_set *model, acs_random *random)
{
    const uint32_t from = acs_random_below(random, BYTES + 1), to = acs_random_below(random, BYTES + 1);
    const uint32_t place = acs_random_below(random, PLACES), bit = UINT32_C(1) << place;
    bool missing[BYTES] = {false}, sole[BYTES] = {false};
    acs_validity v;
    uint64_t held = 0;
    for (uint64_t at = from; acs_coherence_missing(c, at, to, place, &v); at = v.to)
        for (uint64_t i = v.from; i < v.to; i++) {
            missing[i] = true;
            assert_int_equal(v.places, model[i]);
        }
    for (uint64_t at = 0; acs_coherence_sole(c, at, place, &v); at = v.to)
        memset(&sole[v.from], true, v.to - v.from);
    for (uint32_t i = 0; i < BYTES; i++) {
        const bool asked = i >= from && i < to;
        assert_int_equal(missing[i], asked && model[i] && !(model[i] & bit));
        assert_int_equal(sole[i], model[i] == bit);
        held += asked && (model[i] & bit);
    }
    assert_int_equal(acs_coherence_held(c, from, to, place), held);
}

static void every_byte_is_where_a_mask_for_each_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        acs_random random = {seed};
        acs_coherence c;
        acs_place_set model[BYTES] = {0};
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
        cmocka_unit_test(every_byte_is_where_a_mask_for_each_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

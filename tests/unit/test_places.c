/*
 * Unit tests of pool/places: the largest member up to a number, against a plain search, at bounds around the sizes of
 * levels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/places.h"

#include <string.h>

enum { MOST = 5000 };

static void nothing_is_found_in_nothing(void **state)
{
    (void)state;
    acs_places places;
    uint64_t member;
    assert_true(acs_places_init(&places, 1));
    assert_false(acs_places_up_to(&places, 0, &member));
    acs_places_add(&places, 0);
    assert_true(acs_places_up_to(&places, 0, &member));
    assert_int_equal(member, 0);
    acs_places_fini(&places);
}

/* A set of so many numbers is not walked through. */
static void a_far_member_is_found(void **state)
{
    (void)state;
    acs_places places;
    uint64_t member, last = ((uint64_t)1 << 28) - 1;
    assert_true(acs_places_init(&places, last + 1));
    acs_places_add(&places, 5);
    assert_true(acs_places_up_to(&places, last, &member));
    assert_int_equal(member, 5);
    assert_false(acs_places_up_to(&places, 4, &member));
    acs_places_add(&places, last);
    assert_true(acs_places_up_to(&places, last, &member));
    assert_int_equal(member, last);
    assert_true(acs_places_up_to(&places, last - 1, &member));
    assert_int_equal(member, 5);
    acs_places_remove(&places, 5);
    assert_false(acs_places_up_to(&places, last - 1, &member));
    acs_places_fini(&places);
}

static void members_are_those_of_a_plain_search(void **state)
{
    (void)state;
    static const uint32_t bounds[] = {1, 63, 64, 65, 127, 128, 4095, 4096, 4097, MOST};
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        acs_random random = {b + 1};
        acs_places places;
        bool there[MOST] = {false};
        assert_true(acs_places_init(&places, bounds[b]));
        for (int i = 0; i < 20000; i++) {
            uint32_t place = acs_random_below(&random, bounds[b]), asked = acs_random_below(&random, bounds[b]);
            if (acs_random_below(&random, 8) == 0 || there[place]) { /* few members, so that the search goes far */
                (there[place] ? acs_places_remove : acs_places_add)(&places, place);
                there[place] = !there[place];
            }
            uint64_t member = 0;
            int64_t expected = asked;
            while (expected >= 0 && !there[expected])
                expected--;
            assert_int_equal(acs_places_up_to(&places, asked, &member), expected >= 0);
            if (expected >= 0)
                assert_int_equal(member, expected);
        }
        acs_places_fini(&places);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_found_in_nothing),
        cmocka_unit_test(a_far_member_is_found),
        cmocka_unit_test(members_are_those_of_a_plain_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Families of blocks: what is used together becomes one set, within bounds, whatever comes and goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "devices/affinity.h"

enum { BLOCKS = 60, STEPS = 20000, MOST = 400 };

static void what_is_joined_is_one_within_bounds(void **state)
{
    (void)state;
    acs_affinity *a = acs_affinity_make(10), *b = acs_affinity_make(20), *c = acs_affinity_make(30);
    assert_false(acs_affinity_join(a, c, 39));
    assert_true(acs_affinity_of(a) != acs_affinity_of(c));
    assert_true(acs_affinity_join(a, b, 30));
    assert_true(acs_affinity_join(a, b, 0)); /* they are one already */
    assert_ptr_equal(acs_affinity_of(a), acs_affinity_of(b));
    assert_int_equal(acs_affinity_of(a)->bytes, 30);
    assert_false(acs_affinity_join(b, c, 59));
    assert_true(acs_affinity_join(c, a, 60));
    acs_affinity_of(b)->device = 3;
    assert_int_equal(acs_affinity_of(c)->device, 3);
    acs_affinity_leave(c, 30); /* those that are left find each other, whoever stands for them goes first */
    assert_int_equal(acs_affinity_of(a)->bytes, 30);
    assert_ptr_equal(acs_affinity_of(a), acs_affinity_of(b));
    acs_affinity_leave(a, 10);
    assert_int_equal(acs_affinity_of(b)->bytes, 20);
    assert_int_equal(acs_affinity_of(b)->device, 3);
    acs_affinity_leave(b, 20);
    acs_affinity_leave(NULL, 5);
}

/* Beside a table of who is with whom; leaks and use after free are the sanitizer's to find. */
static void sets_are_as_in_a_table(void **state)
{
    (void)state;
    acs_random random = {5};
    struct {
        acs_affinity *family;
        uint64_t bytes;
        uint32_t set;
    } blocks[BLOCKS] = {{0}};
    uint32_t sets = 0, joined = 0;
    for (int i = 0; i < STEPS; i++) {
        uint32_t a = acs_random_below(&random, BLOCKS), b = acs_random_below(&random, BLOCKS);
        if (!blocks[a].family) {
            blocks[a].bytes = 1 + acs_random_below(&random, 50);
            blocks[a].family = acs_affinity_make(blocks[a].bytes);
            blocks[a].set = ++sets;
        } else if (acs_random_below(&random, 4) == 0) {
            acs_affinity_leave(blocks[a].family, blocks[a].bytes);
            blocks[a].family = NULL;
        } else if (blocks[b].family) {
            uint64_t bytes = 0;
            const uint32_t set = blocks[b].set, mine = blocks[a].set;
            for (uint32_t k = 0; k < BLOCKS; k++)
                if (blocks[k].family && (blocks[k].set == set || blocks[k].set == mine))
                    bytes += blocks[k].bytes;
            const bool one = set == mine || bytes <= MOST;
            assert_int_equal(acs_affinity_join(blocks[a].family, blocks[b].family, MOST), one);
            joined += set != mine && one;
            for (uint32_t k = 0; k < BLOCKS && one; k++)
                if (blocks[k].set == set)
                    blocks[k].set = mine;
            assert_int_equal(acs_affinity_of(blocks[a].family)->bytes <= MOST, true);
        }
        if (blocks[a].family && blocks[b].family)
            assert_int_equal(acs_affinity_of(blocks[a].family) == acs_affinity_of(blocks[b].family),
                             blocks[a].set == blocks[b].set);
    }
    assert_true(joined > 100);
    for (uint32_t k = 0; k < BLOCKS; k++)
        acs_affinity_leave(blocks[k].family, blocks[k].bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_joined_is_one_within_bounds),
        cmocka_unit_test(sets_are_as_in_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

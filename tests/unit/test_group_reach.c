/*
 * Groups through the public API: which blocks an op counts as a user of, whatever its footprint says, and random programs
 * against the same ops done one after the other in plain C. On the host backend, with and without threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "group_fixture.h"

/* An op that may touch anything uses the blocks that its pointers reach, though it names none: they do not share a place. */
static void blocks_that_only_pointers_reach_are_apart(void **state)
{
    (void)state;
    for (int how = NAMED; how < FOOTPRINTS; how++)
        for (uint32_t slots = 0; slots < 3; slots++)
            for (int between = 0; between < 2; between++) {
                acs_context *context = open_with(0, 0, ACS_POOL_ON);
                acs_group_report r;
                unsigned char *to = block_of(context, ACS_MEMORY_DEVICE, BYTES);
                assert_true(acs_memset(context, to, 0, BYTES) > 0);
                assert_int_equal(acs_group_begin(context, 0), ACS_OK);
                unsigned char *a = block_of(context, LAZY, BYTES), *b = block_of(context, LAZY, BYTES);
                assert_true(acs_memset(context, a, 1, BYTES) > 0);
                if (between) /* orders the users of b that are named behind those of a */
                    assert_true(launch_mix_as(context, &(mix_args){9, BYTES, to, a, a}, ANY, 0) > 0);
                assert_true(acs_memset(context, b, 2, BYTES) > 0);
                assert_true(launch_mix_as(context, &(mix_args){3, BYTES, to, a, b}, how, 0) > 0);
                assert_true(acs_free(context, a) && acs_free(context, b));
                assert_int_equal(submit(context, slots, &r), ACS_OK);
                assert_int_equal(r.memory_peak, 2 * BYTES);
                assert_int_equal(acs_sync(context), ACS_OK);
                assert_int_equal(to[0], 1 + 3 * 2 + 3);
                assert_int_equal(to[BYTES - 1], 1 + 3 * 2 + 3);
                assert_int_equal(acs_close(context), ACS_OK);
            }
}

/* So do blocks from outside that only pointers reach count: they have to find room beside the plan. */
static void what_only_pointers_reach_outside_has_to_fit_beside_the_plan(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    acs_context *context = open_with(4 * MIB, 0, ACS_POOL_ON);
    acs_group_report r;
    unsigned char *outside = block_of(context, LAZY, 3 * MIB);
    assert_true(acs_memset(context, outside, 9, 3 * MIB) > 0);
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    unsigned char *x = block_of(context, LAZY, 2 * MIB);
    assert_true(launch_mix_as(context, &(mix_args){1, 2 * MIB, x, outside, outside}, ANY, 0) > 0);
    assert_true(acs_free(context, x) > 0);
    assert_int_equal(submit(context, 0, &r), ACS_ERR_MEMORY);
    assert_int_equal(r.memory_peak, 2 * MIB);
    assert_int_equal(r.last, 0);
    assert_int_equal(acs_group_cancel(context), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------------ random */

/* Each block is written once or more, read by some, and copied out at last; sizes differ, so that places do. */
static void random_group(acs_context *context, uint64_t *random, uint32_t slots, uint64_t *shared)
{
    enum { BLOCKS = 24, MOST = 3000 };
    static unsigned char expected[BLOCKS][MOST], results[BLOCKS][MOST], in[BLOCKS][MOST];
    unsigned char *blocks[BLOCKS];
    uint32_t bytes[BLOCKS], count = 2 + below(random, BLOCKS - 1);
    bool out[BLOCKS];
    acs_group_report r;
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    for (uint32_t b = 0; b < count; b++) {
        bytes[b] = 1 + below(random, MOST);
        blocks[b] = block_of(context, LAZY, bytes[b]);
        memset(in[b], (int)below(random, 256), MOST);
        memset(results[b], 0, MOST);
        if (b < 2 || below(random, 4) == 0) {
            memcpy(expected[b], in[b], MOST);
            assert_true(acs_memcpy(context, blocks[b], in[b], bytes[b]) > 0);
        } else {
            uint32_t u = below(random, b), v = below(random, b), common = bytes[u] < bytes[v] ? bytes[u] : bytes[v];
            memset(expected[b], 9, MOST);
            assert_true(acs_memset(context, blocks[b], 9, bytes[b]) > 0);
            common = common < bytes[b] ? common : bytes[b];
            mix(&(mix_args){b, common, expected[b], expected[u], expected[v]});
            int how = below(random, 3) ? NAMED : (int)below(random, FOOTPRINTS);
            assert_true(launch_mix_as(context, &(mix_args){b, common, blocks[b], blocks[u], blocks[v]}, how, 0) > 0);
        }
        if (below(random, 5) == 0) { /* again, behind who reads it */
            uint32_t u = below(random, b + 1);
            memset(expected[u], (int)b, bytes[u] / 2);
            if (bytes[u] / 2)
                assert_true(acs_memset(context, blocks[u], (int)b, bytes[u] / 2) > 0);
        }
    }
    for (uint32_t b = 0; b < count; b++) {
        out[b] = below(random, 3) > 0;
        if (out[b])
            assert_true(acs_memcpy(context, results[b], blocks[b], bytes[b]) > 0);
        assert_true(acs_free(context, blocks[b]) > 0);
    }
    assert_int_equal(submit(context, slots, &r), ACS_OK);
    *shared += r.memory_sum - r.memory_peak;
    assert_int_equal(acs_sync(context), ACS_OK);
    for (uint32_t b = 0; b < count; b++)
        if (out[b])
            assert_memory_equal(results[b], expected[b], bytes[b]);
}

static void random_groups_do_what_their_ops_say(void **state)
{
    (void)state;
    uint64_t random = 3, shared = 0;
    for (int64_t way = 0; way < 4; way++) {
        acs_context *context = open_with(way == 3 ? 4 << 20 : 0, way & 1, way == 2 ? ACS_POOL_OFF : ACS_POOL_ON);
        for (int round = 0; round < 60; round++)
            random_group(context, &random, below(&random, 5), &shared);
        assert_int_equal(live(context), 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
    assert_true(shared > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_that_only_pointers_reach_are_apart),
        cmocka_unit_test(what_only_pointers_reach_outside_has_to_fit_beside_the_plan),
        cmocka_unit_test(random_groups_do_what_their_ops_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

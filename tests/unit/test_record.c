/* Unit tests of pool/record: what an acquired record holds, where its parts lie, that the pool's memory is bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "window/record.h"

enum { RECORDS = 5, BIG_SEGMENTS = 60000 /* beyond the largest class */ };

static int setup(void **state)
{
    return acs_record_pool_create(RECORDS, (acs_record_pool **)state) != ACS_OK;
}

static int teardown(void **state)
{
    acs_record_pool_destroy(*state);
    return 0;
}

/* Write all that was reserved, so that a part too small or overlapping shows up, at the latest under ASan. */
static void fill(acs_record *record, uint32_t args, uint32_t bytes, uint32_t segments, int value)
{
    record->arg_count = args;
    record->arg_bytes_used = bytes;
    record->segment_count = segments;
    memset(record->args, value, args * sizeof *record->args);
    memset(record->arg_bytes, value + 1, bytes);
    memset(record->segments, value + 2, segments * sizeof *record->segments);
}

static int all_bytes_are(const void *part, size_t bytes, int value)
{
    const unsigned char *p = part;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != (unsigned char)value)
            return 0;
    return 1;
}

static void assert_filled(const acs_record *record, int value)
{
    assert_true(all_bytes_are(record->args, record->arg_count * sizeof *record->args, value));
    assert_true(all_bytes_are(record->arg_bytes, record->arg_bytes_used, value + 1));
    assert_true(all_bytes_are(record->segments, record->segment_count * sizeof *record->segments, value + 2));
}

static void acquire_gives_each_record_once_then_null(void **state)
{
    acs_record *records[RECORDS];

    for (int i = 0; i < RECORDS; i++) {
        records[i] = acs_record_acquire(*state);
        assert_non_null(records[i]);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(records[i], records[j]);
    }

    assert_null(acs_record_acquire(*state));
    for (int i = 0; i < RECORDS; i++)
        acs_record_release(*state, records[i]);
    for (int i = 0; i < RECORDS; i++)
        assert_non_null(acs_record_acquire(*state));
}

static void a_chain_gives_all_back_with_their_blocks(void **state)
{
    uint64_t bytes = 0;

    for (int round = 0; round < 3; round++) {
        acs_record_chain chain = {0};
        acs_record *records[RECORDS];
        acs_record_release_all(*state, &chain); /* of nothing */
        for (int i = 0; i < RECORDS; i++) {
            records[i] = acs_record_acquire(*state);
            assert_non_null(records[i]);
            assert_int_equal(acs_record_reserve(*state, records[i], 0, 0, i % 2 ? 100 : 0), ACS_OK);
        }
        assert_null(acs_record_acquire(*state));
        for (int i = 0; i < RECORDS; i++)
            acs_record_gather(*state, &chain, records[i]);
        assert_null(acs_record_acquire(*state));
        acs_record_release_all(*state, &chain);
        assert_int_equal(chain.first | chain.last, 0);
        assert_true(round == 0 || acs_record_pool_bytes(*state) == bytes);
        bytes = acs_record_pool_bytes(*state);
    }
}

static void acquire_after_release_resets_what_the_producer_may_leave(void **state)
{
    acs_record *record = acs_record_acquire(*state);
    assert_int_equal(acs_record_reserve(*state, record, 100, 1000, 100), ACS_OK);
    fill(record, 100, 1000, 100, 1);
    record->kind = ACS_KIND_HOST;
    record->any = 1;
    record->seq = 9;
    acs_record_release(*state, record);

    acs_record *again = acs_record_acquire(*state);

    assert_ptr_equal(again, record);
    assert_int_equal(again->kind, ACS_KIND_KERNEL);
    assert_int_equal(again->any, 0);
    assert_int_equal(again->seq, 0);
    assert_int_equal(again->arg_count + again->arg_bytes_used + again->segment_count, 0);
    assert_ptr_equal(again->args, again->inline_args);
    assert_ptr_equal(again->arg_bytes, again->inline_bytes);
    assert_ptr_equal(again->segments, again->inline_segments);
    assert_null(again->block);
}

static void reserve_of_common_sizes_stays_inline(void **state)
{
    acs_record *record = acs_record_acquire(*state);

    assert_int_equal(acs_record_reserve(*state, record, ACS_INLINE_ARGS, ACS_INLINE_ARG_BYTES, ACS_INLINE_SEGMENTS),
                     ACS_OK);

    assert_null(record->block);
    fill(record, ACS_INLINE_ARGS, ACS_INLINE_ARG_BYTES, ACS_INLINE_SEGMENTS, 3);
    assert_filled(record, 3);
    acs_record_release(*state, record);
}

static void reserve_of_any_mixture_gives_separate_aligned_parts(void **state)
{
    static const uint32_t args[] = {0, 8, 9, 24, 700};
    static const uint32_t bytes[] = {0, 96, 97, 192, 32764};
    static const uint32_t segments[] = {0, 6, 7, 20, 999};

    for (int i = 0; i < 125; i++) {
        uint32_t a = args[i % 5], b = bytes[i / 5 % 5], s = segments[i / 25];
        acs_record *record = acs_record_acquire(*state);
        assert_int_equal(acs_record_reserve(*state, record, a, b, s), ACS_OK);
        assert_int_equal((uintptr_t)record->args % _Alignof(acs_arg_slot), 0);
        assert_int_equal((uintptr_t)record->arg_bytes % 16, 0);
        assert_int_equal((uintptr_t)record->segments % _Alignof(acs_segment), 0);
        fill(record, a, b, s, i);
        assert_filled(record, i);
        acs_record_release(*state, record);
    }
}

static void reserve_for_two_records_gives_two_blocks(void **state)
{
    acs_record *one = acs_record_acquire(*state), *two = acs_record_acquire(*state);
    assert_int_equal(acs_record_reserve(*state, one, 24, 192, 20), ACS_OK);
    assert_int_equal(acs_record_reserve(*state, two, 24, 192, 20), ACS_OK);

    fill(one, 24, 192, 20, 1);
    fill(two, 24, 192, 20, 101);

    assert_filled(one, 1);
    assert_filled(two, 101);
    acs_record_release(*state, one);
    acs_record_release(*state, two);
}

static void reserve_again_of_a_size_seen_before_takes_no_memory(void **state)
{
    uint64_t bytes = 0;

    for (int round = 0; round < 10; round++) {
        acs_record *record = acs_record_acquire(*state);
        assert_int_equal(acs_record_reserve(*state, record, 24, 192, 20), ACS_OK);
        if (round == 0)
            bytes = acs_record_pool_bytes(*state);
        acs_record_release(*state, record);
    }

    assert_int_equal(acs_record_pool_bytes(*state), bytes);
}

static void reserve_beyond_the_largest_class_is_freed_on_release(void **state)
{
    uint64_t before = acs_record_pool_bytes(*state);
    acs_record *record = acs_record_acquire(*state);

    assert_int_equal(acs_record_reserve(*state, record, 0, 0, BIG_SEGMENTS), ACS_OK);

    fill(record, 0, 0, BIG_SEGMENTS, 7);
    assert_filled(record, 7);
    assert_true(acs_record_pool_bytes(*state) >= before + BIG_SEGMENTS * sizeof(acs_segment));
    acs_record_release(*state, record);
    assert_int_equal(acs_record_pool_bytes(*state), before);
}

/* Every size class in turn by all records: were blocks cached per class, the pool would hold five of each. */
static void blocks_over_shifting_sizes_stay_at_one_per_record(void **state)
{
    uint64_t empty = acs_record_pool_bytes(*state);
    acs_record *records[RECORDS];

    for (uint32_t segments = 8; segments <= 32768; segments *= 2) {
        for (int i = 0; i < RECORDS; i++) {
            records[i] = acs_record_acquire(*state);
            assert_int_equal(acs_record_reserve(*state, records[i], 0, 0, segments), ACS_OK);
            fill(records[i], 0, 0, segments, i);
        }
        for (int i = 0; i < RECORDS; i++) {
            assert_filled(records[i], i);
            acs_record_release(*state, records[i]);
        }
    }
    assert_int_equal(acs_record_pool_bytes(*state), empty + RECORDS * ((uint64_t)2 << 20));

    /* Now small ones again: the large cached blocks give way. */
    for (int i = 0; i < RECORDS; i++) {
        records[i] = acs_record_acquire(*state);
        assert_int_equal(acs_record_reserve(*state, records[i], 0, 0, 8), ACS_OK);
    }
    assert_int_equal(acs_record_pool_bytes(*state), empty + RECORDS * 512);
    for (int i = 0; i < RECORDS; i++)
        acs_record_release(*state, records[i]);
}

static void create_of_impossible_pools_is_refused(void **state)
{
    (void)state;
    acs_record_pool *pool = NULL;

    assert_int_equal(acs_record_pool_create(0, &pool), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_record_pool_create(UINT32_MAX, &pool), ACS_ERR_ARGUMENT);

    assert_null(pool);
    acs_record_pool_destroy(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(acquire_gives_each_record_once_then_null),
        TEST(a_chain_gives_all_back_with_their_blocks),
        TEST(acquire_after_release_resets_what_the_producer_may_leave),
        TEST(reserve_of_common_sizes_stays_inline),
        TEST(reserve_of_any_mixture_gives_separate_aligned_parts),
        TEST(reserve_for_two_records_gives_two_blocks),
        TEST(reserve_again_of_a_size_seen_before_takes_no_memory),
        TEST(reserve_beyond_the_largest_class_is_freed_on_release),
        TEST(blocks_over_shifting_sizes_stay_at_one_per_record),
        cmocka_unit_test(create_of_impossible_pools_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

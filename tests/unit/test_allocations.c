/* Unit tests of devices/allocations: finding a block by any of its addresses, and its way LIVE -> FREEING -> FREED. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "devices/allocations.h"

#include <string.h>

/* Addresses are only compared, never read. */
#define AT(address) ((void *)(uintptr_t)(address))

static int setup(void **state)
{
    return acs_allocations_create((acs_allocations **)state) != ACS_OK;
}

static int teardown(void **state)
{
    acs_allocations_destroy(*state);
    return 0;
}

static acs_status add_block(acs_allocations *table, void *ptr, size_t bytes, int memory)
{
    static const acs_site site = {"acs_malloc", "program.c", 7};
    acs_block block = {.ptr = ptr, .bytes = bytes, .kind = memory, .site = &site};
    return acs_allocations_add(table, &block);
}

/* Take a block through its whole life. */
static void add_and_free(acs_allocations *table, uintptr_t base, size_t bytes, acs_op by)
{
    acs_allocation block;
    assert_int_equal(add_block(table, AT(base), bytes, ACS_MEMORY_DEVICE), ACS_OK);
    assert_int_equal(acs_allocations_begin_free(table, AT(base), &block), ACS_OK);
    acs_allocations_set_freed_by(table, AT(base), block.id, by);
    acs_allocations_end_free(table, AT(base));
}

static void assert_last_error_says(const char *part)
{
    acs_error error = {.size = sizeof error};
    assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, part));
}

static void find_inside_a_block_gives_it_and_beside_it_nothing(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block;
    assert_int_equal(add_block(table, AT(0x3000), 0x100, ACS_MEMORY_HOST), ACS_OK);
    assert_int_equal(add_block(table, AT(0x1000), 0x100, ACS_MEMORY_DEVICE), ACS_OK);
    assert_int_equal(add_block(table, AT(0x1100), 0x100, ACS_MEMORY_DEVICE), ACS_OK);

    assert_true(acs_allocations_find(table, 0x30ff, &block));
    assert_int_equal(block.base, 0x3000);
    assert_int_equal(block.bytes, 0x100);
    assert_int_equal(block.id, 1);
    assert_int_equal(block.memory, ACS_MEMORY_HOST);
    assert_int_equal(block.state, ACS_ALLOCATION_LIVE);
    assert_true(acs_allocations_find(table, 0x10ff, &block));
    assert_int_equal(block.id, 2);
    assert_true(acs_allocations_find(table, 0x1100, &block));
    assert_int_equal(block.id, 3);

    assert_false(acs_allocations_find(table, 0xfff, &block));
    assert_false(acs_allocations_find(table, 0x1200, &block));
    assert_false(acs_allocations_find(table, 0x3100, &block));
    assert_false(acs_allocations_find(table, UINT64_MAX, &block));
}

static void find_among_many_blocks_in_any_order_is_exact(void **state)
{
    acs_allocations *table = *state;
    enum { N = 1000 };

    for (uintptr_t i = 0; i < N; i++) {
        uintptr_t place = 1 + i * 7919 % N; /* each once: 7919 is prime to 1000 */
        assert_int_equal(add_block(table, AT(place * 0x100), 0x80, ACS_MEMORY_DEVICE), ACS_OK);
    }

    for (uintptr_t place = 1; place <= N; place++) {
        acs_allocation block;
        assert_true(acs_allocations_find(table, place * 0x100 + 0x7f, &block));
        assert_int_equal(block.base, place * 0x100);
        assert_false(acs_allocations_find(table, place * 0x100 + 0x80, &block));
    }
}

static void add_of_what_is_no_block_is_refused(void **state)
{
    assert_int_equal(add_block(*state, NULL, 16, ACS_MEMORY_DEVICE), ACS_ERR_ARGUMENT);
    assert_int_equal(add_block(*state, AT(0x1000), 0, ACS_MEMORY_DEVICE), ACS_ERR_ARGUMENT);
    assert_int_equal(add_block(*state, AT(UINTPTR_MAX - 8), 16, ACS_MEMORY_DEVICE), ACS_ERR_ARGUMENT);
}

static void add_over_a_live_block_is_a_defect(void **state)
{
    acs_allocations *table = *state;
    assert_int_equal(add_block(table, AT(0x1000), 0x100, ACS_MEMORY_DEVICE), ACS_OK);

    assert_int_equal(add_block(table, AT(0x10ff), 0x10, ACS_MEMORY_DEVICE), ACS_ERR_INTERNAL);
    assert_int_equal(add_block(table, AT(0xff1), 0x10, ACS_MEMORY_DEVICE), ACS_ERR_INTERNAL);
    assert_int_equal(add_block(table, AT(0x800), 0x1000, ACS_MEMORY_DEVICE), ACS_ERR_INTERNAL);

    assert_int_equal(add_block(table, AT(0x1100), 0x10, ACS_MEMORY_DEVICE), ACS_OK);
}

/* The backend may give an address out again before the thread that freed it has noted the end. */
static void add_over_freeing_blocks_ends_them(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block;
    assert_int_equal(add_block(table, AT(0x1000), 0x100, ACS_MEMORY_DEVICE), ACS_OK);
    assert_int_equal(add_block(table, AT(0x1100), 0x100, ACS_MEMORY_DEVICE), ACS_OK);
    assert_int_equal(acs_allocations_begin_free(table, AT(0x1000), &block), ACS_OK);
    assert_int_equal(acs_allocations_begin_free(table, AT(0x1100), &block), ACS_OK);

    assert_int_equal(add_block(table, AT(0x1000), 0x200, ACS_MEMORY_DEVICE), ACS_OK);

    acs_allocations_end_free(table, AT(0x1000)); /* late: must not touch the new block */
    acs_allocations_set_freed_by(table, AT(0x1100), block.id, 9);
    assert_true(acs_allocations_find(table, 0x1180, &block));
    assert_int_equal(block.state, ACS_ALLOCATION_LIVE);
    assert_int_equal(block.id, 3);
    assert_int_equal(block.freed_by, 0);
}

static void begin_free_makes_the_block_freeing_and_copies_it(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block, found;
    assert_int_equal(add_block(table, AT(0x1000), 0x100, ACS_MEMORY_HOST), ACS_OK);

    assert_int_equal(acs_allocations_begin_free(table, AT(0x1000), &block), ACS_OK);

    assert_int_equal(block.base, 0x1000);
    assert_int_equal(block.memory, ACS_MEMORY_HOST);
    acs_allocations_set_freed_by(table, AT(0x1000), block.id, 42);
    assert_true(acs_allocations_find(table, 0x1080, &found));
    assert_int_equal(found.state, ACS_ALLOCATION_FREEING);
    assert_int_equal(found.freed_by, 42);
}

static void begin_free_of_anything_else_is_refused_and_says_why(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block;
    assert_int_equal(add_block(table, AT(0x1000), 0x100, ACS_MEMORY_DEVICE), ACS_OK);

    assert_int_equal(acs_allocations_begin_free(table, AT(0x1010), &block), ACS_ERR_ARGUMENT);
    assert_last_error_says("16 bytes inside the block of 256 bytes at 0x1000");
    assert_int_equal(acs_allocations_begin_free(table, AT(0x9000), &block), ACS_ERR_ARGUMENT);
    assert_last_error_says("not a block");

    assert_int_equal(acs_allocations_begin_free(table, AT(0x1000), &block), ACS_OK);
    acs_allocations_set_freed_by(table, AT(0x1000), block.id, 42);
    assert_int_equal(acs_allocations_begin_free(table, AT(0x1000), &block), ACS_ERR_ARGUMENT);
    assert_last_error_says("being freed already, by op 42");
    acs_allocations_end_free(table, AT(0x1000));
    assert_int_equal(acs_allocations_begin_free(table, AT(0x1000), &block), ACS_ERR_ARGUMENT);
    assert_last_error_says("freed before, by op 42");
}

static void cancel_free_makes_the_block_live_again(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block;
    assert_int_equal(add_block(table, AT(0x1000), 0x100, ACS_MEMORY_DEVICE), ACS_OK);
    assert_int_equal(acs_allocations_begin_free(table, AT(0x1000), &block), ACS_OK);

    acs_allocations_cancel_free(table, AT(0x1000));

    assert_true(acs_allocations_find(table, 0x1000, &block));
    assert_int_equal(block.state, ACS_ALLOCATION_LIVE);
    assert_int_equal(acs_allocations_begin_free(table, AT(0x1000), &block), ACS_OK);
}

static void find_of_a_freed_block_gives_the_latest_unless_a_live_one_is_there(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block;
    add_and_free(table, 0x1000, 0x100, 5);
    add_and_free(table, 0x1000, 0x200, 6);

    assert_true(acs_allocations_find(table, 0x1050, &block));
    assert_int_equal(block.state, ACS_ALLOCATION_FREED);
    assert_int_equal(block.freed_by, 6);

    assert_int_equal(add_block(table, AT(0x1040), 0x20, ACS_MEMORY_DEVICE), ACS_OK);
    assert_true(acs_allocations_find(table, 0x1050, &block));
    assert_int_equal(block.state, ACS_ALLOCATION_LIVE);
    assert_int_equal(block.id, 3);
}

static void set_freed_by_after_the_free_ran_still_reaches_the_block(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block;
    assert_int_equal(add_block(table, AT(0x1000), 0x100, ACS_MEMORY_DEVICE), ACS_OK);
    assert_int_equal(acs_allocations_begin_free(table, AT(0x1000), &block), ACS_OK);
    acs_allocations_end_free(table, AT(0x1000));

    acs_allocations_set_freed_by(table, AT(0x1000), block.id, 8);

    assert_true(acs_allocations_find(table, 0x1000, &block));
    assert_int_equal(block.freed_by, 8);
}

static void freed_blocks_beyond_1024_are_forgotten_oldest_first(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block;

    for (uintptr_t i = 1; i <= 1025; i++)
        add_and_free(table, i * 0x1000, 0x100, i);

    assert_false(acs_allocations_find(table, 0x1000, &block));
    assert_true(acs_allocations_find(table, 0x2000, &block));
    assert_int_equal(block.freed_by, 2);
}

static void take_empties_the_table(void **state)
{
    acs_allocations *table = *state;
    acs_allocation block;
    uint64_t sum = 0;
    assert_int_equal(add_block(table, AT(0x1000), 0x100, ACS_MEMORY_DEVICE), ACS_OK);
    assert_int_equal(add_block(table, AT(0x2000), 0x100, ACS_MEMORY_DEVICE), ACS_OK);

    while (acs_allocations_take(table, &block))
        sum += block.base;

    assert_int_equal(sum, 0x3000);
    assert_false(acs_allocations_find(table, 0x1000, &block));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(find_inside_a_block_gives_it_and_beside_it_nothing),
        TEST(find_among_many_blocks_in_any_order_is_exact),
        TEST(add_of_what_is_no_block_is_refused),
        TEST(add_over_a_live_block_is_a_defect),
        TEST(add_over_freeing_blocks_ends_them),
        TEST(begin_free_makes_the_block_freeing_and_copies_it),
        TEST(begin_free_of_anything_else_is_refused_and_says_why),
        TEST(cancel_free_makes_the_block_live_again),
        TEST(find_of_a_freed_block_gives_the_latest_unless_a_live_one_is_there),
        TEST(set_freed_by_after_the_free_ran_still_reaches_the_block),
        TEST(freed_blocks_beyond_1024_are_forgotten_oldest_first),
        TEST(take_empties_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

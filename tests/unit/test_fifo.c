/* Unit tests of window/fifo: order, bounds, sequence numbers, from one thread. Threads: stress/test_fifo_stress.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "window/fifo_internal.h"

enum { CAPACITY = 4 };

static acs_record g_records[CAPACITY + 1];

static int setup(void **state)
{
    return acs_fifo_create(CAPACITY, CAPACITY, (acs_fifo **)state) != ACS_OK;
}

static int setup_near_wrap(void **state)
{
    return acs_fifo_create_at(CAPACITY, CAPACITY, UINT64_MAX - 5, (acs_fifo **)state) != ACS_OK;
}

static int setup_near_32_bits(void **state)
{
    return acs_fifo_create_at(CAPACITY, CAPACITY, UINT32_MAX - 5, (acs_fifo **)state) != ACS_OK;
}

static int teardown(void **state)
{
    acs_fifo_destroy(*state);
    return 0;
}

static void fill(acs_fifo *fifo)
{
    for (int i = 0; i < CAPACITY; i++)
        assert_int_equal(acs_fifo_push(fifo, &g_records[i]), i + 1);
}

static void push_numbers_records_from_one(void **state)
{
    acs_fifo *fifo = *state;

    fill(fifo);

    for (int i = 0; i < CAPACITY; i++)
        assert_int_equal(g_records[i].seq, i + 1);
    assert_int_equal(acs_fifo_last(fifo), CAPACITY);
}

static void push_on_full_returns_zero_and_changes_nothing(void **state)
{
    acs_fifo *fifo = *state;
    fill(fifo);
    g_records[CAPACITY].seq = 77;

    acs_op seq = acs_fifo_push(fifo, &g_records[CAPACITY]);

    assert_int_equal(seq, 0);
    assert_int_equal(g_records[CAPACITY].seq, 77);
    assert_int_equal(acs_fifo_last(fifo), CAPACITY);
    for (int i = 0; i < CAPACITY; i++)
        assert_ptr_equal(acs_fifo_pop(fifo), &g_records[i]);
    assert_null(acs_fifo_pop(fifo));
}

static void push_after_pop_of_full_succeeds_with_next_number(void **state)
{
    acs_fifo *fifo = *state;
    fill(fifo);
    assert_int_equal(acs_fifo_push(fifo, &g_records[CAPACITY]), 0);

    assert_ptr_equal(acs_fifo_pop(fifo), &g_records[0]);

    assert_int_equal(acs_fifo_push(fifo, &g_records[CAPACITY]), CAPACITY + 1);
    assert_int_equal(acs_fifo_push(fifo, &g_records[0]), 0);
}

static void push_of_several_takes_all_places_or_none(void **state)
{
    acs_fifo *fifo = *state;
    acs_record *several[CAPACITY + 1];
    for (int i = 0; i < CAPACITY + 1; i++)
        several[i] = &g_records[i];
    assert_int_equal(acs_fifo_push_all(fifo, several, CAPACITY + 1), 0); /* never */
    assert_int_equal(acs_fifo_push_all(fifo, several, CAPACITY - 1), CAPACITY - 1);
    assert_int_equal(acs_fifo_push_all(fifo, several, 2), 0);
    assert_int_equal(acs_fifo_push(fifo, &g_records[CAPACITY - 1]), CAPACITY);
    for (int i = 0; i < CAPACITY; i++) {
        assert_ptr_equal(acs_fifo_pop(fifo), &g_records[i]);
        assert_int_equal(g_records[i].seq, i + 1);
    }
    assert_int_equal(acs_fifo_push_all(fifo, several, 2), CAPACITY + 2);
    assert_ptr_equal(acs_fifo_pop(fifo), &g_records[0]);
    assert_ptr_equal(acs_fifo_pop(fifo), &g_records[1]);
}

static void peek_tells_what_later_pops_give(void **state)
{
    acs_fifo *fifo = *state;
    acs_record records[2];
    assert_null(acs_fifo_peek(fifo, 0));
    for (int i = 0; i < 2; i++)
        (void)acs_fifo_push(fifo, &records[i]);

    assert_ptr_equal(acs_fifo_peek(fifo, 0), &records[0]);
    assert_ptr_equal(acs_fifo_peek(fifo, 1), &records[1]);
    assert_null(acs_fifo_peek(fifo, 2));
    assert_ptr_equal(acs_fifo_pop(fifo), &records[0]);
    assert_ptr_equal(acs_fifo_peek(fifo, 0), &records[1]);
    assert_ptr_equal(acs_fifo_pop(fifo), &records[1]);
}

static void pop_on_empty_returns_null(void **state)
{
    acs_fifo *fifo = *state;

    assert_null(acs_fifo_pop(fifo));

    assert_int_equal(acs_fifo_last(fifo), 0);
}

static void ready_tells_whether_a_pop_gives_a_record(void **state)
{
    acs_fifo *fifo = *state;
    assert_false(acs_fifo_ready(fifo));

    acs_fifo_push(fifo, &g_records[0]);
    assert_true(acs_fifo_ready(fifo));

    assert_non_null(acs_fifo_pop(fifo));
    assert_false(acs_fifo_ready(fifo));
}

static void ready_on_full_is_true(void **state)
{
    acs_fifo *fifo = *state;

    fill(fifo);

    assert_true(acs_fifo_ready(fifo));
}

/* Many laps, the fill level going up and down: also run with counters that wrap on the way. */
static void push_and_pop_over_laps_keep_order_and_numbers(void **state)
{
    acs_fifo *fifo = *state;
    acs_op pushed = 0, popped = 0;

    for (int lap = 0; lap < 12; lap++) {
        int burst = 1 + lap % CAPACITY;
        for (int i = 0; i < burst; i++) {
            assert_int_equal(acs_fifo_push(fifo, &g_records[pushed % CAPACITY]), pushed + 1);
            pushed++;
            assert_int_equal(acs_fifo_last(fifo), pushed);
        }
        for (int i = 0; i < burst; i++) {
            assert_true(acs_fifo_ready(fifo));
            acs_record *record = acs_fifo_pop(fifo);
            assert_ptr_equal(record, &g_records[popped % CAPACITY]);
            assert_int_equal(record->seq, ++popped);
        }
        assert_false(acs_fifo_ready(fifo));
        assert_null(acs_fifo_pop(fifo));
    }
}

static void create_rounds_capacity_up_to_power_of_two(void **state)
{
    (void)state;
    static const struct {
        uint32_t asked, given;
    } cases[] = {{0, 2}, {1, 2}, {2, 2}, {3, 4}, {5, 8}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        acs_fifo *fifo;
        assert_int_equal(acs_fifo_create(cases[i].asked, cases[i].asked, &fifo), ACS_OK);
        uint32_t pushed = 0;
        while (acs_fifo_push(fifo, &g_records[0]))
            pushed++;
        assert_int_equal(pushed, cases[i].given);
        acs_fifo_destroy(fifo);
    }
}

static void create_with_absurd_capacity_is_refused(void **state)
{
    (void)state;
    acs_fifo *fifo = NULL;

    assert_int_equal(acs_fifo_create(UINT32_MAX, UINT32_MAX, &fifo), ACS_ERR_ARGUMENT);

    assert_null(fifo);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(push_numbers_records_from_one),
        TEST(push_on_full_returns_zero_and_changes_nothing),
        TEST(push_after_pop_of_full_succeeds_with_next_number),
        TEST(push_of_several_takes_all_places_or_none),
        TEST(pop_on_empty_returns_null),
        TEST(peek_tells_what_later_pops_give),
        TEST(ready_tells_whether_a_pop_gives_a_record),
        TEST(ready_on_full_is_true),
        TEST(push_and_pop_over_laps_keep_order_and_numbers),
        {"push_and_pop_over_wrap_of_64_bits_keep_order_and_numbers", push_and_pop_over_laps_keep_order_and_numbers,
         setup_near_wrap, teardown, NULL},
        {"push_and_pop_over_wrap_of_32_bits_keep_order_and_numbers", push_and_pop_over_laps_keep_order_and_numbers,
         setup_near_32_bits, teardown, NULL},
        {"push_on_full_near_wrap_returns_zero_and_changes_nothing", push_on_full_returns_zero_and_changes_nothing,
         setup_near_wrap, teardown, NULL},
        cmocka_unit_test(create_rounds_capacity_up_to_power_of_two),
        cmocka_unit_test(create_with_absurd_capacity_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

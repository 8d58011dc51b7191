/*
 * ACS_CPUS: which lists of CPUs are taken, and in which order threads get them.
 */
#include "api_fixture.h"

#include "api/threads.h"

#include <stdlib.h>

static acs_context *new_context(void)
{
    acs_context *context = aligned_alloc(ACS_CACHE_LINE, sizeof *context);
    assert_non_null(context);
    return memset(context, 0, sizeof *context);
}

static void numbers_and_ranges_are_taken_in_turn(void **state)
{
    (void)state;
    acs_context *context = new_context();
    static const int expected[] = {3, 0, 8, 9, 10, 3, 0};
    assert_int_equal(acs_context_cpu_next(context), -1); /* threads are not pinned */
    assert_int_equal(acs_cpus_parse(context, "3,0,8-10"), ACS_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(acs_context_cpu_next(context), expected[i]);
    free(context);
}

static void other_lists_are_refused(void **state)
{
    (void)state;
    static const char *const lists[] = {"x", "1,", "1-", "3-2", "-1", "1,,2", "1024", "0-1024", "1;2",
                                        "99999999999999999999"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        acs_error error = {.size = sizeof error};
        acs_context *context = new_context();
        assert_int_equal(acs_cpus_parse(context, lists[i]), ACS_ERR_OPTION);
        assert_int_equal(acs_last_error(&error), ACS_ERR_OPTION);
        assert_non_null(strstr(error.text, "ACS_CPUS: '"));
        assert_non_null(strstr(error.text, lists[i]));
        free(context);
    }
}

static void a_list_that_is_too_long_is_cut(void **state)
{
    (void)state;
    acs_context *context = new_context();
    assert_int_equal(acs_cpus_parse(context, "0-1023"), ACS_OK);
    assert_int_equal(context->cpu_count, sizeof context->cpus / sizeof *context->cpus);
    free(context);
}

static void threads_are_pinned(void **state)
{
    (void)state;
    acs_options options;
    acs_context *context = NULL;
    char byte = 0;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    (void)strcpy(options.cpus, "0");
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_wait(context, acs_memset(context, &byte, 5, 1)), ACS_OK);
    assert_int_equal(byte, 5);
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_ranges_are_taken_in_turn),
        cmocka_unit_test(other_lists_are_refused),
        cmocka_unit_test(a_list_that_is_too_long_is_cut),
        cmocka_unit_test(threads_are_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

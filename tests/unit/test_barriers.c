/* ACS_BARRIERS: ops of the named numbers are ordered with all others. On the sim backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_fixture.h"

#include <stdio.h>

enum { OPS = 20 };

static acs_status open_with_barriers(const char *list, acs_context **context)
{
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.workers = 0;
    options.stats = 1;
    (void)snprintf(options.barriers, sizeof options.barriers, "%s", list);
    return acs_open(&options, context);
}

/* The longest chain of dependent ops, of OPS ops that have nothing in common. */
static uint64_t levels_with(const char *list)
{
    static char cells[OPS];
    acs_context *context = NULL;
    acs_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(open_with_barriers(list, &context), ACS_OK);
    for (int i = 0; i < OPS; i++)
        assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS,
                                  ACS_USES(ACS_INOUT(&cells[i], 1))) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &statistics), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    return statistics.levels;
}

static void ops_wait_for_barriers(void **state)
{
    (void)state;
    assert_int_equal(levels_with(""), 1);
    assert_int_equal(levels_with("100-"), 1);
    assert_int_equal(levels_with("1-"), OPS);
    assert_int_equal(levels_with("10"), 3);
    assert_int_equal(levels_with("1"), 2);
    assert_int_equal(levels_with("5,11-13"), 7);
    assert_int_equal(levels_with("1-20"), OPS);
}

static void other_lists_are_refused(void **state)
{
    static const char *const lists[] = {"0", "-", "-5", "5-3", "a", "1-2,", "1;2",
                                        "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        acs_context *context = NULL;
        acs_error error = {.size = sizeof error};
        assert_int_equal(open_with_barriers(lists[i], &context), ACS_ERR_OPTION);
        assert_int_equal(acs_last_error(&error), ACS_ERR_OPTION);
        assert_non_null(strstr(error.text, lists[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_wait_for_barriers),
        cmocka_unit_test(other_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

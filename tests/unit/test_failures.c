/*
 * What a context says of two ops that conflict and are not ordered (ACS_CHECK=overlap). The library makes no such
 * pair, so the report is made by hand.
 */
#include "api_fixture.h"

#include "api/failures.h"

static void a_pair_that_is_not_ordered_names_both_ops(void **state)
{
    static const acs_site first = {"writer", "one.c", 10}, second = {"reader", NULL, 0};
    acs_context *context = *state;
    const acs_record op = {.seq = 7, .site = &second, .kind = ACS_KIND_HOST, .asked = ACS_KIND_HOST};
    const acs_record other = {.seq = 5, .site = &first, .kind = ACS_KIND_HOST, .asked = ACS_KIND_HOST};
    acs_error error = {.size = sizeof error};
    acs_lock_acquire(&context->core.lock);
    acs_failures_check(context, &op, &other);
    acs_lock_release(&context->core.lock);
    assert_int_equal(acs_context_error(context, &error), ACS_ERR_CHECK);
    assert_int_equal(error.op, 7);
    assert_int_equal(error.cause, 5);
    assert_non_null(strstr(error.text, "op 7 'reader' (?:0) conflicts with op 5 'writer' (one.c:10) and is not ordered"));
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_context_error(context, NULL), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pair_that_is_not_ordered_names_both_ops, setup_host, close_quietly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

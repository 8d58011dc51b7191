/*
 * How failed and skipped ops are remembered: as ranges (bad_ops.h), and through the public API, where no op that was skipped
 * may ever count as complete, however many there are.
 */
#include "api_fixture.h"

#include "base/tuning.h"
#include "api/bad_ops.h"

static const acs_site g_site = {"site", "file", 1}, g_other = {"other", "file", 2};

static void add(acs_bad_ops *bad, acs_op op, acs_op cause, const acs_site *site)
{
    const acs_bad_range what = {.first = op, .last = op, .cause = cause, .status = ACS_ERR_SKIPPED, .site = *site};
    acs_bad_ops_add(bad, &what);
}

static acs_status find(const acs_bad_ops *bad, acs_op op, acs_bad_range *found)
{
    return acs_bad_ops_find(bad, op, found) ? found->status : ACS_OK;
}

/* ----------------------------------------------------------------------------------------------------------- ranges */

static void ops_that_end_alike_in_any_order_are_one_range(void **state)
{
    (void)state;
    acs_bad_ops bad = {0};
    acs_bad_range found;

    for (acs_op op = 10; op < 20; op += 2)
        add(&bad, op, 1, &g_site);
    for (acs_op op = 19; op > 10; op -= 2)
        add(&bad, op, 1, &g_site);

    assert_int_equal(bad.count, 1);
    assert_int_equal(find(&bad, 9, &found), ACS_OK);
    assert_int_equal(find(&bad, 20, &found), ACS_OK);
    assert_int_equal(find(&bad, 10, &found), ACS_ERR_SKIPPED);
    assert_int_equal(found.cause, 1);
    assert_int_equal(found.site.line, g_site.line);
    acs_bad_ops_free(&bad);
}

static void ops_with_other_causes_or_sites_stay_apart(void **state)
{
    (void)state;
    acs_bad_ops bad = {0};
    acs_bad_range found;

    add(&bad, 5, 1, &g_site);
    add(&bad, 6, 2, &g_site);
    add(&bad, 7, 2, &g_other);

    assert_int_equal(bad.count, 3);
    assert_int_equal(find(&bad, 5, &found), ACS_ERR_SKIPPED);
    assert_int_equal(found.cause, 1);
    assert_int_equal(find(&bad, 6, &found), ACS_ERR_SKIPPED);
    assert_int_equal(found.cause, 2);
    assert_int_equal(find(&bad, 7, &found), ACS_ERR_SKIPPED);
    assert_string_equal(found.site.name, "other");
    acs_bad_ops_free(&bad);
}

static void sites_are_given_up_before_ops_are(void **state)
{
    (void)state;
    acs_bad_ops bad = {0};
    acs_bad_range found;
    const acs_op last = 3 * TUNE_FAILED_RANGES;

    for (acs_op op = 1; op <= last; op++)
        add(&bad, op, 77, op % 2 ? &g_site : &g_other);

    assert_int_equal(bad.count, 1);
    assert_int_equal(find(&bad, last, &found), ACS_ERR_SKIPPED);
    assert_int_equal(found.cause, 77);
    assert_null(found.site.name);
    assert_int_equal(find(&bad, last + 1, &found), ACS_OK);
    acs_bad_ops_free(&bad);
}

static void beyond_the_bound_no_bad_op_counts_as_good(void **state)
{
    (void)state;
    acs_bad_ops bad = {0};
    acs_bad_range found;
    const acs_op last = 4 * TUNE_FAILED_RANGES;

    for (acs_op op = 2; op <= last; op += 2)
        add(&bad, op, 1, &g_site);

    assert_int_equal(bad.count, TUNE_FAILED_RANGES);
    for (acs_op op = 2; op <= last; op += 2)
        assert_int_equal(find(&bad, op, &found), ACS_ERR_SKIPPED);
    assert_int_equal(found.first, 0);
    assert_int_equal(find(&bad, 3, &found), ACS_OK);
    assert_int_equal(find(&bad, last + 1, &found), ACS_OK);
    acs_bad_ops_clear(&bad);
    assert_int_equal(find(&bad, last, &found), ACS_OK);
    acs_bad_ops_free(&bad);
}

static void lost_device_stays_when_others_are_forgotten(void **state)
{
    (void)state;
    acs_bad_ops bad = {0};
    acs_bad_range found;

    add(&bad, 1, 9, &g_site);
    for (acs_op op = 2; op < 100; op++) {
        const acs_bad_range what = {
            .first = op, .last = op, .status = ACS_ERR_DEVICE, .site = op % 2 ? g_site : g_other};
        acs_bad_ops_add(&bad, &what);
    }
    assert_int_equal(bad.count, 2);
    acs_bad_ops_clear(&bad);

    assert_int_equal(find(&bad, 1, &found), ACS_OK);
    assert_int_equal(find(&bad, 2, &found), ACS_ERR_DEVICE);
    assert_int_equal(find(&bad, 99, &found), ACS_ERR_DEVICE);
    acs_bad_ops_free(&bad);
}

/* --------------------------------------------------------------------------------------------------------- contexts */

static void keep_status(void *user, acs_op op, acs_status status)
{
    (void)op;
    *(acs_status *)user = status;
}

static void assert_told_as_skipped(acs_context *context, acs_op op)
{
    acs_status told = ACS_ERR_INTERNAL;
    assert_int_equal(acs_wait(context, op), ACS_ERR_SKIPPED);
    assert_int_equal(acs_query(context, op), ACS_ERR_SKIPPED);
    assert_int_equal(acs_wait(context, acs_on_retire(context, op, keep_status, &told)), ACS_OK);
    assert_int_equal(told, ACS_ERR_SKIPPED);
}

static void chain_of_very_many_skipped_ops_is_told_of_each(void **state)
{
    acs_context *context = *state;
    acs_error e = {.size = sizeof e};
    int x = 0;
    acs_op op = 0;

    const acs_op failed = acs_host(context, failing_function, NULL, 0, ACS_USES(ACS_INOUT(&x, sizeof x)));
    for (int i = 0; i < 70000; i++)
        op = queue_increment(context, &x);

    assert_told_as_skipped(context, op);
    assert_int_equal(acs_wait_range(context, &x, sizeof x, ACS_READ), ACS_ERR_SKIPPED);
    assert_int_equal(acs_stream_after(context, NULL, ACS_USES(ACS_IN(&x, sizeof x))), ACS_ERR_SKIPPED);
    assert_int_equal(acs_op_error(context, op, &e), ACS_ERR_SKIPPED);
    assert_int_equal(e.cause, failed);
    assert_int_equal(acs_wait(context, failed), ACS_ERR_HOST);
    assert_int_equal(x, 0);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_wait(context, op), ACS_OK);
}

static void skipped_ops_that_are_too_many_to_record_are_still_told(void **state)
{
    acs_context *context = *state;
    acs_error e = {.size = sizeof e};
    int x = 0, y = 0;
    acs_op op = 0;

    (void)acs_host(context, failing_function, NULL, 0, ACS_USES(ACS_INOUT(&x, sizeof x)));
    for (int i = 0; i <= TUNE_FAILED_RANGES + 10; i++) {
        (void)ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_OUT(&y, sizeof y)));
        op = queue_increment(context, &x);
    }

    assert_told_as_skipped(context, op);
    assert_int_equal(acs_op_error(context, op, &e), ACS_ERR_SKIPPED);
    assert_non_null(strstr(e.text, "the exact record was given up"));
    assert_int_equal(x, 0);
    assert_int_equal(acs_clear(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_that_end_alike_in_any_order_are_one_range),
        cmocka_unit_test(ops_with_other_causes_or_sites_stay_apart),
        cmocka_unit_test(sites_are_given_up_before_ops_are),
        cmocka_unit_test(beyond_the_bound_no_bad_op_counts_as_good),
        cmocka_unit_test(lost_device_stays_when_others_are_forgotten),
        HOST(chain_of_very_many_skipped_ops_is_told_of_each),
        HOST(skipped_ops_that_are_too_many_to_record_are_still_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

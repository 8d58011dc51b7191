/* The log of a context: what ACS_LOG=info says of options, and ACS_LOG=debug of ops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report_fixture.h"

#include <stdbool.h>

enum { TEXT_BYTES = 32768 };

static int do_nothing(void *closure)
{
    (void)closure;
    return 0;
}

static int fail_here(void *closure)
{
    (void)closure;
    return 1;
}

/* What a context writes that runs two host functions of which the last may fail. */
static void log_of_ops(int level, int (*last)(void *), acs_status status, char text[TEXT_BYTES])
{
    int place = 0;
    capture c;
    acs_context *context = NULL;
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.log = level;
    options.window = 77;
    capture_begin(&c);
    bool opened = acs_open(&options, &context) == ACS_OK;
    bool queued = opened && acs_host(context, do_nothing, NULL, 0, ACS_USES(ACS_OUT(&place, 1))) &&
                  acs_host(context, last, NULL, 0, ACS_USES(ACS_INOUT(&place, 1)));
    const acs_status synced = opened ? acs_sync(context) : ACS_OK;
    if (opened) {
        (void)acs_clear(context);
        opened = acs_close(context) == ACS_OK;
    }
    capture_end(&c, text, TEXT_BYTES);
    assert_true(opened && queued);
    assert_int_equal(synced, status);
}

/* Position of the words behind `from`, which are in the text. */
static const char *find(const char *from, const char *words)
{
    const char *at = strstr(from, words);
    if (!at)
        fail_msg("'%s' does not say '%s'", from, words);
    return at;
}

/* The level of the log is the process's. */
static void calls_name_their_context_if_another_one_has_the_log(void **state)
{
    (void)state;
    static char text[TEXT_BYTES];
    capture c;
    acs_context *quiet = NULL, *loud = NULL;
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    assert_int_equal(acs_open(&options, &quiet), ACS_OK);
    options.log = ACS_LOG_ERROR;
    assert_int_equal(acs_open(&options, &loud), ACS_OK);
    capture_begin(&c);
    (void)acs_wait(loud, 12);
    (void)acs_wait(quiet, 11);
    capture_end(&c, text, sizeof text);
    assert_says(text, "context 2: acs_wait: ACS_ERR_ARGUMENT: op 12 was never queued\n");
    assert_says(text, "context 1: acs_wait: ACS_ERR_ARGUMENT: op 11 was never queued\n");
    assert_int_equal(acs_close(loud), ACS_OK);
    assert_int_equal(acs_close(quiet), ACS_OK);
}

static void info_names_the_options_that_are_not_default_alone(void **state)
{
    (void)state;
    static char text[TEXT_BYTES];
    log_of_ops(ACS_LOG_INFO, do_nothing, ACS_OK, text);
    assert_says(text, " acs: info: context 3: ACS_WINDOW=77 (program)\n");
    assert_int_equal(times_said(text, "(default)"), 0);
    assert_int_equal(times_said(text, "op 1 "), 0);
}

static void debug_follows_each_op(void **state)
{
    (void)state;
    static char text[TEXT_BYTES];
    log_of_ops(ACS_LOG_DEBUG, do_nothing, ACS_OK, text);
    const char *entered = find(text, "op 1 'acs_host(do_nothing)' (");
    assert_says(entered, "test_op_log.c:");
    const char *issued = find(find(entered, "in the window"), "op 1 'acs_host(do_nothing)': issued to ");
    find(issued, "op 1 'acs_host(do_nothing)': ended: ACS_OK");
    issued = find(find(text, "op 2 'acs_host(last)' ("), "op 2 'acs_host(last)': issued to ");
    find(issued, "op 2 'acs_host(last)': ended: ACS_OK");
}

static void debug_tells_how_an_op_failed(void **state)
{
    (void)state;
    static char text[TEXT_BYTES];
    log_of_ops(ACS_LOG_DEBUG, fail_here, ACS_ERR_HOST, text);
    assert_says(text, "op 2 'acs_host(last)': ended: ACS_ERR_HOST");
    assert_says(text, " acs: error: context ");
}

/* The level is only ever raised, so the tests run in this order. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_name_their_context_if_another_one_has_the_log),
        cmocka_unit_test(info_names_the_options_that_are_not_default_alone),
        cmocka_unit_test(debug_follows_each_op),
        cmocka_unit_test(debug_tells_how_an_op_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

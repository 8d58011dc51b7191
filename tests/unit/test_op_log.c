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

static int g_line; /* of the latest call */
#define AT(call) (g_line = __LINE__, (void)(call))

/* A call that is refused, by number. False: there are no more. */
static bool refuse(acs_context *context, int call, void *block)
{
    int cell = 0;
    static const uint32_t word = 1;
    switch (call) {
    case 0:
        AT(ACS_LAUNCH_ON(context, &g_nothing, 0, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_IN(&cell, 1))));
        return true;
    case 1:
        AT(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_IN((void *)(UINTPTR_MAX - 7), 64))));
        return true;
    case 2:
        AT(ACS_LAUNCH_ON(context, &g_nothing, 1, 1 << 20, 0, ACS_NO_ARGS, ACS_USES(ACS_IN(&cell, 1))));
        return true;
    case 3:
        AT(acs_memcpy(context, NULL, &cell, 4));
        return true;
    case 4:
        AT(acs_host(context, NULL, NULL, 0, ACS_USES(ACS_IN(&cell, 1))));
        return true;
    case 5:
        AT(acs_free(context, (char *)block + 1));
        return true;
    case 6:
        AT(acs_malloc(context, 0, ACS_MEMORY_DEVICE, &block));
        return true;
    case 7:
        AT(acs_if(context, (const uint32_t *)((uintptr_t)&word + 1)));
        (void)acs_end_if(context);
        return true;
    default:
        return false;
    }
}

/* The line of the log, and the text that a program prints, say where the call is. */
static void calls_that_are_refused_say_where_they_are(void **state)
{
    (void)state;
    static char text[TEXT_BYTES], place[64];
    capture c;
    acs_context *context = NULL;
    acs_options options;
    void *block;
    bool more = true;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.log = ACS_LOG_ERROR;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_malloc(context, 64, ACS_MEMORY_DEVICE, &block), ACS_OK);
    for (int call = 0; more; call++) {
        acs_error error = {.size = sizeof error}, first = {.size = sizeof first};
        capture_begin(&c);
        more = refuse(context, call, block);
        capture_end(&c, text, sizeof text);
        if (!more)
            break;
        (void)snprintf(place, sizeof place, "test_op_log.c:%d: ", g_line);
        assert_says(text, place);
        (void)snprintf(place, sizeof place, "test_op_log.c:%d)", g_line);
        assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
        assert_says(error.text, place);
        assert_int_equal(times_said(error.text, " (at "), 1);
        assert_int_equal(error.site.line, g_line);
        if (acs_context_error(context, &first) != ACS_OK) /* a malloc is no op */
            assert_string_equal(first.text, error.text);
        (void)acs_clear(context);
    }
    assert_int_equal(acs_close(context), ACS_OK);
}

static void info_names_the_options_that_are_not_default_alone(void **state)
{
    (void)state;
    static char text[TEXT_BYTES];
    log_of_ops(ACS_LOG_INFO, do_nothing, ACS_OK, text);
    assert_says(text, " acs: info: context 4: ACS_WINDOW=77 (program)\n");
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
        cmocka_unit_test(calls_that_are_refused_say_where_they_are),
        cmocka_unit_test(info_names_the_options_that_are_not_default_alone),
        cmocka_unit_test(debug_follows_each_op),
        cmocka_unit_test(debug_tells_how_an_op_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

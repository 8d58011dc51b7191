/* Unit tests of base/status, base/error, base/log and base/random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------------- statuses */

static void name_of_a_status_is_its_identifier(void **state)
{
    (void)state;
    assert_string_equal(acs_status_name(ACS_OK), "ACS_OK");
    assert_string_equal(acs_status_name(ACS_ERR_FULL), "ACS_ERR_FULL");
    assert_string_equal(acs_status_text(ACS_ERR_HOST), "a host function or library call reported failure");
}

static void name_of_an_unknown_number_says_so(void **state)
{
    (void)state;
    assert_string_equal(acs_status_name((acs_status)77), "unknown status");
    assert_string_equal(acs_status_text((acs_status)77), "unknown status");
}

/* --------------------------------------------------------------------------------------------------------- errors */

static acs_status fail_with(int value)
{
    return ACS_FAIL(ACS_ERR_ARGUMENT, 12, "grid.x is %d", value);
}

static acs_status hand_on(int value)
{
    ACS_TRY(fail_with(value));
    return ACS_OK;
}

/* Runs in a thread of its own, whose error cannot have been set by another test. */
static void *last_error_of_a_new_thread(void *result)
{
    acs_error error;
    memset(&error, 0x5a, sizeof error);
    error.size = sizeof error;
    acs_status status = acs_last_error(&error);
    *(int *)result = status == ACS_OK && error.native == 0x5a5a5a5a;
    return NULL;
}

static void last_error_without_failure_leaves_the_struct_alone(void **state)
{
    (void)state;
    pthread_t thread;
    int untouched = 0;

    fail_with(1); /* in this thread, not in the other */
    assert_int_equal(pthread_create(&thread, NULL, last_error_of_a_new_thread, &untouched), 0);
    pthread_join(thread, NULL);

    assert_true(untouched);
}

static void fail_fills_what_last_error_returns(void **state)
{
    (void)state;
    acs_error error = {.size = sizeof error};

    acs_status status = hand_on(7);

    assert_int_equal(status, ACS_ERR_ARGUMENT);
    assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
    assert_int_equal(error.status, ACS_ERR_ARGUMENT);
    assert_int_equal(error.native, 12);
    assert_int_equal(error.op, 0);
    assert_string_equal(error.where, "fail_with");
    assert_string_equal(error.text, "grid.x is 7");
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
}

static void fail_with_a_long_text_cuts_it(void **state)
{
    (void)state;
    char longer[2 * ACS_ERROR_TEXT_BYTES];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    acs_error error = {.size = sizeof error};

    ACS_FAIL(ACS_ERR_HOST, 0, "%s", longer);

    acs_last_error(&error);
    assert_int_equal(strlen(error.text), ACS_ERROR_TEXT_BYTES - 1);
}

static void fail_forgets_the_op_of_the_error_before(void **state)
{
    (void)state;
    acs_error error = {.size = sizeof error};

    fail_with(1);
    acs_error_thread()->op = 99;
    fail_with(2);

    acs_last_error(&error);
    assert_int_equal(error.op, 0);
}

static void copy_to_a_shorter_struct_stays_inside_it(void **state)
{
    (void)state;
    acs_error from, to;
    acs_error_fill(&from, ACS_ERR_LAUNCH, 3, __func__, "a text that does not fit");
    memset(&to, 0x5a, sizeof to);
    to.size = offsetof(acs_error, text) + 6;

    acs_error_copy(&to, &from);

    assert_int_equal(to.status, ACS_ERR_LAUNCH);
    assert_int_equal(to.size, offsetof(acs_error, text) + 6);
    assert_string_equal(to.text, "a tex");
    assert_int_equal(to.text[6], 0x5a);
}

static void copy_to_a_struct_without_size_writes_nothing(void **state)
{
    (void)state;
    acs_error from, to = {.native = 5};
    acs_error_fill(&from, ACS_ERR_LAUNCH, 3, __func__, "text");

    acs_error_copy(&to, &from);

    assert_int_equal(to.native, 5);
}

/* ------------------------------------------------------------------------------------------------------------ log */

/* Standard error goes to a pipe from log_start to log_end. */
struct capture {
    int saved, ends[2];
};

static void log_start(struct capture *capture)
{
    capture->saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(capture->ends), 0);
    dup2(capture->ends[1], STDERR_FILENO);
    close(capture->ends[1]);
}

static void log_end(struct capture *capture, char *text, size_t bytes)
{
    dup2(capture->saved, STDERR_FILENO); /* closes the pipe's last writing end */
    close(capture->saved);
    ssize_t length, used = 0;
    while ((length = read(capture->ends[0], text + used, bytes - 1 - (size_t)used)) > 0)
        used += length;
    close(capture->ends[0]);
    text[used] = 0;
}

/* The line behind its time of day, 23:47:46.123456. */
static const char *after_time(const char *line)
{
    unsigned hour, minute, second, micro;
    int used = 0;
    assert_int_equal(sscanf(line, "%2u:%2u:%2u.%6u %n", &hour, &minute, &second, &micro, &used), 4);
    assert_int_equal(used, 16);
    assert_true(hour < 24 && minute < 60 && second < 61);
    return line + used;
}

/* The level is only ever raised, so the tests of the log run in this order. */
static void log_when_off_writes_nothing(void **state)
{
    (void)state;
    struct capture capture;
    char text[256];

    log_start(&capture);
    acs_log(ACS_LOG_ERROR, "not asked for");
    fail_with(3);
    log_end(&capture, text, sizeof text);

    assert_string_equal(text, "");
    assert_false(acs_log_enabled(ACS_LOG_ERROR));
    assert_false(acs_log_enabled(ACS_LOG_OFF));
}

static void log_up_to_the_level_writes_whole_lines(void **state)
{
    (void)state;
    struct capture capture;
    char text[256];
    acs_log_set_level(ACS_LOG_WARN);

    log_start(&capture);
    acs_log(ACS_LOG_WARN, "width %d", 4);
    acs_log(ACS_LOG_INFO, "too much detail");
    fail_with(3);
    log_end(&capture, text, sizeof text);

    const char *second = strchr(text, '\n') + 1;
    assert_string_equal(after_time(second), "acs: error: fail_with: ACS_ERR_ARGUMENT: grid.x is 3\n");
    *(char *)strchr(text, '\n') = 0;
    assert_string_equal(after_time(text), "acs: warn: width 4");
}

static void lines_name_the_origin_that_the_thread_gave(void **state)
{
    (void)state;
    static const acs_site site = {"name", "main.c", 42};
    struct capture capture;
    char text[256];
    acs_log_set_level(ACS_LOG_WARN);

    log_start(&capture);
    acs_log_origin(7, &site);
    acs_log(ACS_LOG_WARN, "width %d", 4);
    acs_log_origin(0, NULL);
    log_end(&capture, text, sizeof text);

    assert_string_equal(after_time(text), "acs: warn: context 7: main.c:42: width 4\n");
}

static void log_level_when_lowered_stays(void **state)
{
    (void)state;
    acs_log_set_level(ACS_LOG_WARN);
    acs_log_set_level(ACS_LOG_OFF);
    assert_true(acs_log_enabled(ACS_LOG_WARN));
}

static void log_of_a_long_text_is_one_line(void **state)
{
    (void)state;
    struct capture capture;
    char longer[3000], text[4000];
    memset(longer, 'y', sizeof longer);
    longer[sizeof longer - 1] = 0;
    acs_log_set_level(ACS_LOG_WARN);

    log_start(&capture);
    acs_log(ACS_LOG_WARN, "%s", longer);
    log_end(&capture, text, sizeof text);

    assert_int_equal(strlen(text), 1024);
    assert_ptr_equal(strchr(text, '\n'), text + 1023);
}

/* --------------------------------------------------------------------------------------------------------- random */

static void random_with_one_seed_repeats(void **state)
{
    (void)state;
    acs_random a = {42}, b = {42};
    assert_int_equal(acs_random_next(&a), 0xbdd732262feb6e95u); /* first value of the published generator */
    (void)acs_random_next(&b);
    for (int i = 0; i < 100; i++)
        assert_int_equal(acs_random_next(&a), acs_random_next(&b));
}

static void random_below_reaches_every_value_and_no_other(void **state)
{
    (void)state;
    acs_random random = {1};
    unsigned seen[7] = {0};

    for (int i = 0; i < 7000; i++) {
        uint32_t value = acs_random_below(&random, 7);
        assert_true(value < 7);
        seen[value]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 850, 1150); /* 1000 expected, standard deviation 29 */
    assert_int_equal(acs_random_below(&random, 0), 0);
    assert_int_equal(acs_random_below(&random, 1), 0);
}

static void clock_never_goes_back(void **state)
{
    (void)state;
    uint64_t before = acs_clock_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = acs_clock_ns();
        assert_true(now >= before);
        before = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_of_a_status_is_its_identifier),
        cmocka_unit_test(name_of_an_unknown_number_says_so),
        cmocka_unit_test(last_error_without_failure_leaves_the_struct_alone),
        cmocka_unit_test(fail_fills_what_last_error_returns),
        cmocka_unit_test(fail_with_a_long_text_cuts_it),
        cmocka_unit_test(fail_forgets_the_op_of_the_error_before),
        cmocka_unit_test(copy_to_a_shorter_struct_stays_inside_it),
        cmocka_unit_test(copy_to_a_struct_without_size_writes_nothing),
        cmocka_unit_test(log_when_off_writes_nothing),
        cmocka_unit_test(log_up_to_the_level_writes_whole_lines),
        cmocka_unit_test(lines_name_the_origin_that_the_thread_gave),
        cmocka_unit_test(log_level_when_lowered_stays),
        cmocka_unit_test(log_of_a_long_text_is_one_line),
        cmocka_unit_test(random_with_one_seed_repeats),
        cmocka_unit_test(random_below_reaches_every_value_and_no_other),
        cmocka_unit_test(clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Unit tests of ACS_ASSERT: what fails ends the program and says where; without ACS_ASSERTIONS nothing is evaluated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int g_evaluated, g_line; /* of the assertion that is not so */

static bool evaluate(bool value)
{
    g_evaluated++;
    return value;
}

static void an_assertion_that_holds_goes_on(void **state)
{
    (void)state;
    g_evaluated = 0;
    ACS_ASSERT(evaluate(true));
#ifdef ACS_ASSERTIONS
    assert_int_equal(g_evaluated, 1);
#else
    ACS_ASSERT(evaluate(false));
    assert_int_equal(g_evaluated, 0);
#endif
}

#ifdef ACS_ASSERTIONS

/* In a child, whose wait status is returned; what it wrote goes to `text`. */
static int fail_in_child(char *text, size_t bytes)
{
    int ends[2];
    g_line = __LINE__ + 8;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL); /* cmocka catches it */
        dup2(ends[1], STDERR_FILENO);
        ACS_ASSERT(g_evaluated < 0); /* at g_line */
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], text, bytes - 1);
    text[length > 0 ? length : 0] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static void an_assertion_that_is_not_so_aborts_and_says_where(void **state)
{
    (void)state;
    char text[1024], place[32];
    int status = fail_in_child(text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    snprintf(place, sizeof place, "test_fatal.c:%d: ", g_line);
    assert_non_null(strstr(text, " acs: error: "));
    assert_non_null(strstr(text, place));
    assert_non_null(strstr(text, ": fail_in_child: not so: g_evaluated < 0\n"));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_assertion_that_holds_goes_on),
#ifdef ACS_ASSERTIONS
        cmocka_unit_test(an_assertion_that_is_not_so_aborts_and_says_where),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

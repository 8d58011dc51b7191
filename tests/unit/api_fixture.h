/*
 * What the tests of the public API share: contexts on CPU threads or simulated, two kernels, and what an error must say.
 */
#ifndef API_FIXTURE_H
#define API_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"

#include <string.h>

static inline void nothing_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static inline void increment_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    int *x = *(int *const *)args[0];
    *x = (int)((unsigned)*x * 2 + 1); /* wraps where a test runs it often */
}

static const acs_kernel g_nothing = ACS_KERNEL_HOST_INIT("nothing", nothing_body);
static const acs_kernel g_increment = ACS_KERNEL_HOST_INIT("increment", increment_body);

static inline acs_context *open_on(int backend, int64_t workers)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = backend;
    options.workers = workers;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static inline int setup_sim(void **state)
{
    *state = open_on(ACS_BACKEND_SIM, 1);
    return 0;
}

static inline int setup_host(void **state)
{
    *state = open_on(ACS_BACKEND_HOST, 1);
    return 0;
}

static inline int setup_inline(void **state)
{
    *state = open_on(ACS_BACKEND_HOST, 0);
    return 0;
}

static inline int close_quietly(void **state)
{
    acs_close(*state);
    return 0;
}

static inline acs_launch_params good_launch(void)
{
    return (acs_launch_params){
        .size = sizeof(acs_launch_params), .kernel = &g_nothing, .grid = {1, 1, 1}, .block = {1, 1, 1}};
}

/* The call failed, and its error says `word`. */
static inline void assert_error(acs_status status, const char *word)
{
    acs_error e = {.size = sizeof e};
    assert_int_equal(acs_last_error(&e), status);
    assert_int_equal(e.status, status);
    assert_non_null(e.where);
    if (!strstr(e.text, word))
        fail_msg("the error '%s' does not say '%s'", e.text, word);
}

static inline void assert_launch_refused(acs_context *context, const acs_launch_params *launch, acs_status status,
                                         const char *word)
{
    assert_int_equal(acs_launch(context, launch), 0);
    assert_error(status, word);
}

static inline acs_op queue_increment(acs_context *context, int *x)
{
    acs_op op = ACS_LAUNCH_ON(context, &g_increment, 1, 1, 0, ACS_ARGS(x), ACS_USES(ACS_INOUT(x, sizeof *x)));
    assert_int_not_equal(op, 0);
    return op;
}

static inline int failing_function(void *closure)
{
    (void)closure;
    return 42;
}

#define SIM(test) cmocka_unit_test_setup_teardown(test, setup_sim, close_quietly)
#define HOST(test) cmocka_unit_test_setup_teardown(test, setup_host, close_quietly)
#define INLINE(test) cmocka_unit_test_setup_teardown(test, setup_inline, close_quietly)

#endif

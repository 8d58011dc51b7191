/*
 * What ran at once: the integral by a clock of the test's own, then what acs_stats and the report say of programs whose
 * figures do not depend on how fast they run.
 */
#include "report_fixture.h"

#include "base/activity.h"

#include <stdatomic.h>
#include <time.h>

enum { CHAIN = 60, CELLS = 4, TEXT_BYTES = 8192, PAUSE_NS = 3000000 };

/* ------------------------------------------------------------------------------------------------------- the integral */

static uint64_t clock_of_test(void *user)
{
    return *(const uint64_t *)user;
}

static void assert_counts(acs_activity *a, uint64_t span, uint64_t idle, uint64_t ran, uint32_t high)
{
    const acs_activity_counts c = acs_activity_read(a);
    assert_int_equal(c.span_ns, span);
    assert_int_equal(c.idle_ns, idle);
    assert_int_equal(c.ran_ns, ran);
    assert_int_equal(c.high, high);
}

static void time_counts_from_the_first_begin_to_the_latest_end(void **state)
{
    (void)state;
    uint64_t now = 1000;
    acs_activity *a = NULL;
    assert_int_equal(acs_activity_create(clock_of_test, &now, &a), ACS_OK);
    assert_counts(a, 0, 0, 0, 0);
    acs_activity_set(a, ACS_ACTIVITY_CORE, 0);
    now = 1100;
    assert_counts(a, 0, 0, 0, 0);
    acs_activity_set(a, ACS_ACTIVITY_CORE, 2); /* from 1100 on */
    now = 1110;
    assert_counts(a, 10, 0, 20, 2);
    acs_activity_add(a, ACS_ACTIVITY_BACKEND, 1); /* from 1110 on three */
    now = 1115;
    acs_activity_set(a, ACS_ACTIVITY_CORE, 0);
    assert_counts(a, 15, 0, 35, 3);
    now = 1120;
    acs_activity_add(a, ACS_ACTIVITY_BACKEND, -1); /* none from 1120 on */
    now = 1220;
    assert_counts(a, 20, 0, 40, 3); /* what comes behind the latest end is not in the span, */
    acs_activity_add(a, ACS_ACTIVITY_BACKEND, 1);
    assert_counts(a, 120, 100, 40, 3); /* unless something follows */
    now = 1210; /* read before the lock was taken */
    acs_activity_add(a, ACS_ACTIVITY_BACKEND, -1);
    assert_counts(a, 120, 100, 40, 3);
    acs_activity_destroy(a);
}

/* ----------------------------------------------------------------------------------------------------------- programs */

static acs_context *open_counting(int backend, int64_t executors, int32_t issue)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = backend;
    options.executors = executors;
    options.issue = issue;
    options.stats = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static acs_statistics statistics_of(acs_context *context)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    return s;
}

static void launch_chains(acs_context *context, uint32_t chains)
{
    static char cells[CELLS];
    for (uint32_t i = 0; i < CHAIN; i++) {
        char *x = &cells[i % chains];
        assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(x, 1))) > 0);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
}

/* Never two at once: then the time that ops took and the time in which nothing ran are all. */
static void assert_serial(const acs_statistics *s)
{
    assert_int_equal(s->ran_high, 1);
    assert_int_equal(s->ran_ns + s->idle_ns, s->span_ns);
}

static void a_chain_runs_one_op_at_once_on_cpu_threads(void **state)
{
    (void)state;
    acs_context *context = open_counting(ACS_BACKEND_HOST, 4, ACS_ISSUE_AUTO);
    launch_chains(context, 1);
    const acs_statistics s = statistics_of(context);
    assert_serial(&s);
    assert_in_range(s.running_high, 1, CHAIN); /* those that queue are another figure */
    char text[TEXT_BYTES];
    close_and_read(context, text, sizeof text);
    assert_says(text, "acs: stats: ran at once: at most 1, on average 1.00 while any did; ");
    assert_says(text, "ops issued and not ended, queued ones included");
}

static void a_chain_can_run_one_op_at_once_however_it_is_issued(void **state)
{
    (void)state;
    for (int32_t issue = ACS_ISSUE_AUTO; issue < ACS_ISSUE_COUNT; issue++) {
        acs_context *context = open_counting(ACS_BACKEND_SIM, 0, issue);
        launch_chains(context, 1);
        const acs_statistics s = statistics_of(context);
        assert_serial(&s);
        char text[TEXT_BYTES];
        close_and_read(context, text, sizeof text);
        assert_says(text, "acs: stats: could run at once: at most 1, on average 1.00 while any did; ");
        assert_says(text, "s from the first begin to the last end, in at least ");
    }
}

static void chains_beside_each_other_are_no_more_than_there_are(void **state)
{
    (void)state;
    for (int32_t issue = ACS_ISSUE_AUTO; issue < ACS_ISSUE_COUNT; issue++) {
        acs_context *context = open_counting(ACS_BACKEND_SIM, 0, issue);
        launch_chains(context, CELLS);
        const acs_statistics s = statistics_of(context);
        assert_in_range(s.ran_high, 2, CELLS);
        assert_in_range(s.ran_ns, 1, CELLS * (s.span_ns - s.idle_ns));
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static atomic_int g_inside;

/* Ends once two have begun. */
static void meet_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
    atomic_fetch_add(&g_inside, 1);
    while (atomic_load(&g_inside) < 2)
        ;
}

static const acs_kernel g_meet = ACS_KERNEL_HOST_INIT("meet", meet_body);

static void ops_that_meet_ran_at_once(void **state)
{
    (void)state;
    acs_context *context = open_counting(ACS_BACKEND_HOST, 2, ACS_ISSUE_AUTO);
    atomic_store(&g_inside, 0);
    for (int i = 0; i < 2; i++)
        assert_true(ACS_LAUNCH_ON(context, &g_meet, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    const acs_statistics s = statistics_of(context);
    assert_int_equal(s.ran_high, 2);
    assert_true(s.ran_ns > s.span_ns - s.idle_ns);
    assert_int_equal(acs_close(context), ACS_OK);
}

static int does_nothing(void *closure)
{
    (void)closure;
    return 0;
}

/* Host functions count, and what the program does between ops is time in which nothing ran. */
static void a_pause_between_ops_is_idle_time(void **state)
{
    (void)state;
    const struct timespec pause = {0, PAUSE_NS};
    acs_context *context = open_counting(ACS_BACKEND_HOST, 1, ACS_ISSUE_AUTO);
    assert_true(acs_host(context, does_nothing, NULL, 0, ACS_USES_NONE) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(nanosleep(&pause, NULL), 0);
    launch_chains(context, 1);
    const acs_statistics s = statistics_of(context);
    assert_serial(&s);
    assert_in_range(s.idle_ns, PAUSE_NS, s.span_ns);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void calls_that_run_all_themselves_count_it(void **state)
{
    (void)state;
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.disable = options.stats = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    launch_chains(context, CELLS);
    const acs_statistics s = statistics_of(context);
    assert_serial(&s);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void without_the_option_nothing_is_counted(void **state)
{
    launch_chains(*state, 1);
    const acs_statistics s = statistics_of(*state);
    assert_int_equal(s.ran_high + s.ran_ns + s.span_ns + s.idle_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_counts_from_the_first_begin_to_the_latest_end),
        cmocka_unit_test(a_chain_runs_one_op_at_once_on_cpu_threads),
        cmocka_unit_test(a_chain_can_run_one_op_at_once_however_it_is_issued),
        cmocka_unit_test(chains_beside_each_other_are_no_more_than_there_are),
        cmocka_unit_test(ops_that_meet_ran_at_once),
        cmocka_unit_test(a_pause_between_ops_is_idle_time),
        cmocka_unit_test(calls_that_run_all_themselves_count_it),
        HOST(without_the_option_nothing_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

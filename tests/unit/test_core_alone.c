/*
 * The core alone (libacs_core.a): a context on CPU threads, with nothing of the library's other parts, runs ops in an order
 * that their footprints allow, tells of what failed, and closes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"

#include <string.h>

enum { CELLS = 64, ROUNDS = 400 };

static uint64_t g_cells[CELLS];

static int open_context(void **state)
{
    acs_context *context = NULL;
    acs_options options;
    (void)acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_HOST;
    options.workers = 1;
    if (acs_open(&options, &context) != ACS_OK)
        return 1;
    memset(g_cells, 0, sizeof g_cells);
    *state = context;
    return 0;
}

static int close_context(void **state)
{
    return acs_close(*state) != ACS_OK;
}

typedef struct step {
    uint32_t to, from;
    uint64_t add;
} step;

static int take_step(void *closure)
{
    const step *s = closure;
    g_cells[s->to] = 3 * g_cells[s->to] + g_cells[s->from] + s->add;
    return 0;
}

static int fail_step(void *closure)
{
    (void)closure;
    return 7;
}

static acs_op queue_step(acs_context *context, acs_host_fn function, const step *s)
{
    const acs_segment segments[] = {ACS_INOUT(&g_cells[s->to], sizeof g_cells[0]),
                                    ACS_IN(&g_cells[s->from], sizeof g_cells[0])};
    return acs_host(context, function, s, sizeof *s, ((acs_uses){segments, 2, NULL, NULL, 0}));
}

static void ops_end_as_if_run_in_order(void **state)
{
    uint64_t expected[CELLS] = {0};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const step s = {(i * 7) % CELLS, (i * 13 + 5) % CELLS, i};
        assert_int_not_equal(queue_step(*state, take_step, &s), 0);
        expected[s.to] = 3 * expected[s.to] + expected[s.from] + s.add;
    }
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_memory_equal(g_cells, expected, sizeof expected);
}

static void what_depends_on_a_failed_op_is_skipped(void **state)
{
    const step first = {1, 2, 1}, second = {3, 1, 1}, other = {5, 6, 1};
    const acs_op failed = queue_step(*state, fail_step, &first);
    const acs_op skipped = queue_step(*state, take_step, &second);
    const acs_op well = queue_step(*state, take_step, &other);
    assert_int_equal(acs_wait(*state, well), ACS_OK);
    assert_int_equal(acs_wait(*state, failed), ACS_ERR_HOST);
    assert_int_equal(acs_wait(*state, skipped), ACS_ERR_SKIPPED);
    assert_int_equal(g_cells[5], 1);
    assert_int_equal(g_cells[3], 0);
    assert_int_equal(acs_sync(*state), ACS_ERR_HOST);
    assert_int_equal(acs_clear(*state), ACS_OK);
    assert_int_equal(acs_sync(*state), ACS_OK);
}

static void counters_are_there(void **state)
{
    const step s = {1, 2, 1};
    acs_statistics statistics = {.size = sizeof statistics};
    assert_int_not_equal(queue_step(*state, take_step, &s), 0);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(acs_stats(*state, &statistics), ACS_OK);
    assert_int_equal(statistics.host_functions, 1);
    assert_int_equal(statistics.retired, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ops_end_as_if_run_in_order, open_context, close_context),
        cmocka_unit_test_setup_teardown(what_depends_on_a_failed_op_is_skipped, open_context, close_context),
        cmocka_unit_test_setup_teardown(counters_are_there, open_context, close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A program that repeats itself: whatever the length of its repeats, most of its kernels go by kept graphs after a while.
 * On the sim backend by time, through the public calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "acs.h"
#include "base/base.h"

enum { OPS = 60000, CELLS = 48 };

typedef struct program {
    uint32_t period, types; /* op i is like op i - period; as many types of kernels */
    bool waits;             /* for everything, before each repeat */
    bool passes;            /* the library compares passes; without them only bundles recur */
    int issue, nodes, window; /* ACS_ISSUE, ACS_GRAPH_NODES, ACS_WINDOW; 0: as it is */
} program;

static char g_cells[CELLS][64];

static void nothing(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

/* Reads two cells that were written not long ago, writes one: drawn for the repeat, but for where the cells are. */
static bool launch(acs_context *context, const program *p, uint32_t i)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("nothing", nothing);
    uint64_t drawn = acs_hash64(i % p->period + UINT64_C(77));
    const acs_segment uses[] = {ACS_IN(g_cells[(i + CELLS - 1 - drawn % 20) % CELLS], 64),
                                ACS_IN(g_cells[(i + CELLS - 1 - (drawn >> 8) % 20) % CELLS], 64),
                                ACS_OUT(g_cells[i % CELLS], 64)};
    acs_launch_params params = {.size = sizeof params, .kernel = &kernel, .grid = {1, 1, 1},
                                .block = {1 + (uint32_t)(drawn >> 16) % p->types, 1, 1}};
    params.uses.segments = uses;
    params.uses.count = 3;
    if (p->waits && i % p->period == 0)
        assert_int_equal(acs_sync(context), ACS_OK);
    return acs_launch(context, &params) != 0;
}

/*
 * Per cent of its kernels that were replayed, by graphs of their bundle's own shape or of passes; and bundles that were of
 * none that is kept.
 */
static uint32_t replayed(const program *p, uint64_t *refused)
{
    acs_options options;
    acs_statistics stats = {.size = sizeof stats};
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.issue = p->issue;
    options.repeats = p->passes ? ACS_REPEATS_AUTO : ACS_REPEATS_NAMED;
    options.graph_nodes = p->nodes ? p->nodes : options.graph_nodes;
    options.window = p->window ? p->window : options.window;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (uint32_t i = 0; i < OPS; i++)
        assert_true(launch(context, p, i));
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &stats), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    *refused = stats.bundles_refused;
    return (uint32_t)(100 * stats.issued_by[ACS_ISSUE_REPLAY] / OPS);
}

/* Without passes, as with several devices: bundles are counted from where the program waits. */
static void bundles_between_waits_are_replayed(void **state)
{
    (void)state;
    static const uint32_t periods[] = {17, 90, 150, 333};
    uint64_t refused;
    for (uint32_t i = 0; i < 4; i++) {
        const program p = {.period = periods[i], .types = 5, .waits = true, .issue = ACS_ISSUE_REPLAY};
        assert_in_range(replayed(&p, &refused), 97, 100);
    }
}

static void passes_find_repeats_of_any_length(void **state)
{
    (void)state;
    static const uint32_t periods[] = {17, 90, 150, 333};
    uint64_t refused;
    for (uint32_t i = 0; i < 4; i++) {
        const program p = {.period = periods[i], .types = 1, .issue = ACS_ISSUE_AUTO, .passes = true};
        assert_in_range(replayed(&p, &refused), 75, 100); /* all, after 12000 ops at most */
    }
}

/* A bundle is at most 256 ops, however large the window: a longer step is a few of them, each time the same. */
static void steps_longer_than_any_bundle_are_replayed(void **state)
{
    (void)state;
    const program p = {.period = 700, .types = 1, .waits = true, .issue = ACS_ISSUE_REPLAY, .window = 4096};
    uint64_t refused;
    assert_in_range(replayed(&p, &refused), 97, 100);
}

/* Decision 103: on one device nothing goes in bundles by itself. */
static void the_runtime_chooses_no_bundles_on_one_device(void **state)
{
    (void)state;
    const program p = {.period = 150, .types = 12, .waits = true, .issue = ACS_ISSUE_AUTO};
    uint64_t refused;
    assert_int_equal(replayed(&p, &refused), 0);
    assert_int_equal(refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bundles_between_waits_are_replayed),
        cmocka_unit_test(passes_find_repeats_of_any_length),
        cmocka_unit_test(steps_longer_than_any_bundle_are_replayed),
        cmocka_unit_test(the_runtime_chooses_no_bundles_on_one_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

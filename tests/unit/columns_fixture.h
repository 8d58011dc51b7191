/*
 * What the tests of automatic repeats share: an array whose cells kernels update, column by column or else, on the sim
 * backend; and the same array as serial execution leaves it.
 */
#ifndef COLUMNS_FIXTURE_H
#define COLUMNS_FIXTURE_H

#include "api_fixture.h"

#include "api/context.h"
#include "base/base.h"
#include "repeats/repeat_internal.h"

enum { COLUMNS = 16, ROWS = 24, OPS = COLUMNS * ROWS };

/* A row has a cell for each column, so the cells of a column are not side by side. Each column lacks one row. */
enum { MANY = 32, TALL = 110 }; /* columns and rows of a larger array */

static uint64_t g_cells[TALL * MANY], g_truth[TALL * MANY];

static inline void mix(uint64_t *to, const uint64_t *from, uint64_t number)
{
    *to = acs_hash64(*to ^ *from * 3 ^ number * 7);
}

static inline void mix_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    mix(*(uint64_t **)args[0], *(uint64_t **)args[1], *(uint64_t *)args[2]);
}

static const acs_kernel g_mix = ACS_KERNEL_HOST_INIT("mix", mix_body);

static inline acs_op launch(acs_context *context, uint32_t at, uint32_t from_at, uint64_t number)
{
    uint64_t *to = &g_cells[at], *from = &g_cells[from_at];
    mix(&g_truth[at], &g_truth[from_at], number);
    return ACS_LAUNCH_ON(context, &g_mix, 1, 1, 0, ACS_ARGS(to, from, number),
                         ACS_USES(ACS_INOUT(to, sizeof *to), ACS_IN(from, sizeof *from)));
}

static inline bool is_missing(uint32_t row, uint32_t column)
{
    return row == 5 + column % 8;
}

/* The cell above, which this one takes from. */
static inline uint32_t above(uint32_t row, uint32_t column)
{
    const uint32_t up = row == 0 ? 0 : is_missing(row - 1, column) ? row - 2 : row - 1;
    return up * COLUMNS + column;
}

/* A kernel for each cell, row by row. */
static inline void launch_most(acs_context *context, uint64_t number)
{
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        if (!is_missing(i / COLUMNS, i % COLUMNS))
            assert_true(launch(context, i, above(i / COLUMNS, i % COLUMNS), number + i) > 0);
}

/* And at last the first row takes from the last one. */
static inline void launch_all(acs_context *context, uint64_t number)
{
    launch_most(context, number);
    for (uint32_t column = 0; column < COLUMNS; column++)
        assert_true(launch(context, column, (ROWS - 1) * COLUMNS + column, number) > 0);
}

static inline acs_context *open_with(int64_t workers, int64_t slack)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.workers = workers;
    options.memory_slack = slack;
    options.repeats = ACS_REPEATS_AUTO;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    memset(g_cells, 0, sizeof g_cells);
    memset(g_truth, 0, sizeof g_truth);
    return context;
}

static inline acs_context *open_automatic(int64_t workers)
{
    return open_with(workers, 1 << 20);
}

static inline int open_one(void **state)
{
    *state = open_automatic(1);
    return 0;
}

static inline acs_statistics stats(acs_context *context)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    return s;
}

static inline void assert_right(acs_context *context)
{
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_memory_equal(g_cells, g_truth, sizeof g_cells);
}

/* How many strands have an open replay. */
static inline uint32_t count_open(const acs_context *context)
{
    uint32_t count = 0;
    for (const acs_strand *s = context->repeats->open_strands; s; s = s->open_next)
        count++;
    return count;
}

#endif

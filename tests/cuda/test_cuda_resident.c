/*
 * Resident executors over the twin: which launches go to one and which do not, what is asked of the driver, and what
 * happens where it refuses. The order of ops is the subject of random programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"
#include "executor_double.h"
#include "twin.h"

#include <string.h>

enum { CELLS = 8, OPS = 24, THREADS = 128, SHARED = 64 * 1024 };

static acs_context *g_context;
static uint32_t g_cells[CELLS];
static uint32_t g_round;  /* rounds launched */
static uint32_t g_blocks; /* of the latest launch of the executor */
static const char g_add_symbol, g_other_symbol, g_executor_symbol;
static executor_double g_executor;

static void add(void *const *args)
{
    uint32_t *cell = *(uint32_t *const *)args[1];
    *cell = *cell * 3 + *(const uint8_t *)args[0];
}

/* Arguments at the offsets of the parameters: a byte, then an address at the next multiple of 8. */
static void run_body(const acs_executor_op *op, const unsigned char *args)
{
    void *list[] = {(void *)(uintptr_t)args, (void *)(uintptr_t)(args + 8)};
    if (op->body >= ACS_EXECUTOR_BODIES)
        executor_double_own(op, args);
    else
        add(list);
}

static void executor_body(void *const *args)
{
    uint32_t grid[3];
    twin_grid(grid);
    g_blocks = grid[0];
    executor_double_run(&g_executor, args[0]);
}

static acs_kernel kernel_at(const char *symbol)
{
    return (acs_kernel){"kernel", symbol, NULL, ACS_KERNEL_FUNCTION, 0};
}

static acs_executor_params params_for(const acs_kernel *kernel)
{
    return (acs_executor_params){.size = sizeof(acs_executor_params),
                                 .executor = kernel_at(&g_executor_symbol),
                                 .layout = ACS_EXECUTOR_LAYOUT,
                                 .threads = THREADS,
                                 .shared_bytes = SHARED,
                                 .kernels = kernel,
                                 .count = 1,
                                 .bodies = 1};
}

/* What op i of a round adds, so that each round has other arguments. */
static uint8_t value_of(uint32_t round, uint32_t i)
{
    return (uint8_t)(round * 29 + i);
}

/* A round: OPS launches on CELLS cells, in turn. */
static void launch_all(const char *symbol, uint32_t grid, uint32_t block, uint64_t shared_bytes)
{
    static const acs_site site = {"add", __FILE__, __LINE__};
    const acs_kernel kernel = kernel_at(symbol);
    for (uint32_t i = 0; i < OPS; i++) {
        const uint8_t value = value_of(g_round, i);
        uint32_t *cell = &g_cells[i % CELLS];
        const acs_arg args[] = {{&value, 1, ACS_ARG_VALUE}, {&cell, sizeof(cell), ACS_ARG_POINTER}};
        const acs_segment uses[] = {ACS_INOUT(cell, sizeof *cell)};
        const acs_launch_params launch = {.size = sizeof launch,
                                          .kernel = &kernel,
                                          .grid = {grid, 1, 1},
                                          .block = {block, 1, 1},
                                          .shared_bytes = shared_bytes,
                                          .args = {args, 2},
                                          .uses = {uses, 1, NULL, NULL, 0},
                                          .site = &site};
        assert_int_not_equal(acs_launch(g_context, &launch), 0);
    }
    g_round++;
}

static uint64_t resident_ops(void)
{
    acs_statistics stats = {.size = sizeof stats};
    assert_int_equal(acs_stats(g_context, &stats), ACS_OK);
    return stats.issued_by[ACS_ISSUE_RESIDENT];
}

/* Wait, and compare the cells with what all rounds give one after the other. */
static void check_cells(void)
{
    uint32_t wanted[CELLS] = {0};
    for (uint32_t r = 0; r < g_round; r++)
        for (uint32_t i = 0; i < OPS; i++)
            wanted[i % CELLS] = wanted[i % CELLS] * 3 + value_of(r, i);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_memory_equal(g_cells, wanted, sizeof wanted);
    assert_null(g_executor.wrong);
    assert_null(twin_breach());
}

static int open_issuing(int32_t issue)
{
    static const uint32_t add_bytes[] = {1, 8}, launch_bytes[] = {sizeof(acs_executor_launch)};
    const twin_kernel_spec kernel = {
        .name = "add", .symbol = &g_add_symbol, .body = add, .param_bytes = add_bytes, .param_count = 2};
    const twin_kernel_spec other = {
        .name = "other", .symbol = &g_other_symbol, .body = add, .param_bytes = add_bytes, .param_count = 2};
    const twin_kernel_spec executor = {.name = "executor", .symbol = &g_executor_symbol, .body = executor_body,
                                       .param_bytes = launch_bytes, .param_count = 1, .block_threads = 256};
    acs_options options;
    twin_reset();
    twin_set_strategy(TWIN_EAGER);
    (void)twin_kernel(&kernel);
    (void)twin_kernel(&other);
    (void)twin_kernel(&executor);
    memset(g_cells, 0, sizeof g_cells);
    g_round = 0;
    g_executor = (executor_double){.seed = 1, .run = run_body};
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.issue = issue;
    options.repeats = ACS_REPEATS_NAMED;
    options.workers = 0;
    options.window = 512;
    options.log = ACS_LOG_OFF;
    return acs_open(&options, &g_context) != ACS_OK;
}

static int open_one(void **state)
{
    (void)state;
    return open_issuing(ACS_ISSUE_RESIDENT);
}

static int close_it(void **state)
{
    (void)state;
    return acs_close(g_context) != ACS_OK;
}

static void add_executor(void)
{
    const acs_kernel kernel = kernel_at(&g_add_symbol);
    const acs_executor_params params = params_for(&kernel);
    assert_int_equal(acs_executor_add(g_context, &params), ACS_OK);
}

/* -------------------------------------------------------------------------------------------------------------- tests */

static void kernels_with_bodies_go_to_the_executor(void **state)
{
    (void)state;
    add_executor();
    launch_all(&g_add_symbol, 3, 96, 1000);
    check_cells();
    assert_int_equal(resident_ops(), OPS);
    assert_int_equal(g_executor.bundles, 1);
    assert_int_equal(g_blocks, 2 * 3 * CELLS); /* TUNE_RESIDENT_WIDTHS */
}

/* Decision 103. A profiler would not see the ops: one that the driver loads, or one that the environment attaches. */
static void auto_takes_an_executor_unless_a_profiler_is_attached(void **state)
{
    (void)state;
    for (int injected = 0; injected < 2; injected++) {
        if (injected)
            assert_int_equal(setenv("CUDA_INJECTION64_PATH", "a profiler that takes no ranges", 1), 0);
        assert_int_equal(open_issuing(ACS_ISSUE_AUTO), 0);
        assert_int_equal(unsetenv("CUDA_INJECTION64_PATH"), 0);
        add_executor();
        launch_all(&g_add_symbol, 3, 96, 0);
        check_cells();
        assert_int_equal(resident_ops() > 0, !injected && !getenv("NVTX_INJECTION64_PATH"));
        assert_int_equal(acs_close(g_context), ACS_OK);
    }
}

static void kernels_without_bodies_are_launched(void **state)
{
    (void)state;
    launch_all(&g_add_symbol, 3, 96, 0); /* nobody has named the executor */
    add_executor();
    launch_all(&g_other_symbol, 3, 96, 0);
    check_cells();
    assert_int_equal(resident_ops(), 0);
}

static void launches_that_do_not_fit_are_launched(void **state)
{
    (void)state;
    add_executor();
    launch_all(&g_add_symbol, 3, THREADS + 32, 0);  /* a larger block */
    launch_all(&g_add_symbol, 3, 33, 0);            /* no whole warps */
    launch_all(&g_add_symbol, 3, 32, SHARED + 512); /* more shared memory */
    launch_all(&g_add_symbol, 50000, 32, 0);        /* more threads than half of the device holds */
    check_cells();
    assert_int_equal(resident_ops(), 0);
}

static void copies_and_fills_go_with_kernels(void **state)
{
    uint32_t *from = NULL;
    (void)state;
    add_executor();
    assert_int_equal(acs_malloc(g_context, 4 * sizeof *from, ACS_MEMORY_HOST, (void **)&from), ACS_OK);
    launch_all(&g_add_symbol, 3, 96, 0);
    assert_int_not_equal(acs_memset(g_context, from, 7, 4 * sizeof *from), 0);
    launch_all(&g_add_symbol, 3, 96, 0);
    assert_int_not_equal(acs_memcpy(g_context, from + 2, from, sizeof *from), 0);
    check_cells();
    assert_int_equal(g_executor.ops, 2 * OPS + 2);
    assert_int_equal(from[2], 0x07070707);
    acs_free(g_context, from);
}

static void an_executor_that_cannot_be_launched_is_not_tried_again(void **state)
{
    (void)state;
    add_executor();
    twin_fail("cuLaunchKernelEx", CUDA_ERROR_INVALID_VALUE, 0, 1);
    launch_all(&g_add_symbol, 3, 96, 0);
    check_cells();
    launch_all(&g_add_symbol, 3, 96, 0);
    check_cells();
    assert_int_equal(resident_ops(), 0);
}

static void a_bundle_without_memory_for_tables_is_refused(void **state)
{
    (void)state;
    add_executor();
    twin_fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    launch_all(&g_add_symbol, 3, 96, 0);
    check_cells();
    assert_int_equal(resident_ops(), OPS - CELLS); /* the head of the refused bundle is launched, the next one tries again */
}

/* Nothing runs until the end, so no table may be written a second time. */
static void tables_wait_for_their_bundles(void **state)
{
    enum { ROUNDS = 30 };
    (void)state;
    add_executor();
    twin_set_strategy(TWIN_HELD);
    for (uint32_t r = 0; r < ROUNDS; r++) {
        launch_all(&g_add_symbol, 3, 96, 0);
        for (int i = 0; i < 50; i++)
            (void)acs_step(g_context);
    }
    twin_set_strategy(TWIN_EAGER);
    check_cells();
}

static void wrong_executors_are_refused(void **state)
{
    const acs_kernel kernel = kernel_at(&g_add_symbol), unknown = kernel_at((const char *)&g_cells);
    acs_executor_params p = params_for(&kernel);
    (void)state;
    p.threads = 512; /* the executor takes 256 */
    assert_int_equal(acs_executor_add(g_context, &p), ACS_ERR_ARGUMENT);
    p = params_for(&kernel);
    p.shared_bytes = TWIN_SHARED_MOST + 1;
    assert_int_equal(acs_executor_add(g_context, &p), ACS_ERR_ARGUMENT);
    p = params_for(&unknown);
    assert_int_equal(acs_executor_add(g_context, &p), ACS_ERR_ARGUMENT);
    p = params_for(&kernel);
    p.executor = unknown;
    assert_int_equal(acs_executor_add(g_context, &p), ACS_ERR_ARGUMENT);
    p = params_for(&kernel);
    p.layout++;
    assert_int_equal(acs_executor_add(g_context, &p), ACS_ERR_UNSUPPORTED);
    launch_all(&g_add_symbol, 3, 96, 0);
    check_cells();
    assert_int_equal(resident_ops(), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_one, close_it)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kernels_with_bodies_go_to_the_executor),
        cmocka_unit_test(auto_takes_an_executor_unless_a_profiler_is_attached),
        TEST(kernels_without_bodies_are_launched),
        TEST(launches_that_do_not_fit_are_launched),
        TEST(copies_and_fills_go_with_kernels),
        TEST(an_executor_that_cannot_be_launched_is_not_tried_again),
        TEST(a_bundle_without_memory_for_tables_is_refused),
        TEST(tables_wait_for_their_bundles),
        TEST(wrong_executors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

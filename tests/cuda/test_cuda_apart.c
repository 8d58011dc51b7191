/*
 * ACS_POOL=auto: blocks come out of chunks, but are the driver's own where compute-sanitizer is at work, which would not see
 * where they end. Over the twin. With an argument: a library to load that has the name of the tool's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"
#include "twin.h"

#include <dlfcn.h>
#include <stdbool.h>

enum { BLOCKS = 5 };

static bool g_tool;

/* How many allocations the driver makes for some blocks. */
static uint64_t obtained_with(int32_t pool, int kind)
{
    acs_options options;
    acs_context *context = NULL;
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = 0;
    options.pool = pool;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (int i = 0; i < BLOCKS; i++) {
        void *block = NULL;
        assert_int_equal(acs_malloc(context, 1000, kind, &block), ACS_OK);
        assert_true(acs_memset(context, block, i, 1000) > 0);
    }
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    return s.memory_obtained;
}

static void blocks_are_apart_under_the_tool_alone(void **state)
{
    (void)state;
    assert_int_equal(obtained_with(ACS_POOL_AUTO, ACS_MEMORY_DEVICE), g_tool ? BLOCKS : 1);
    assert_int_equal(obtained_with(ACS_POOL_AUTO, ACS_MEMORY_DEVICE | ACS_LAZY), g_tool ? BLOCKS : 1);
    assert_int_equal(obtained_with(ACS_POOL_ON, ACS_MEMORY_DEVICE), 1);
    assert_int_equal(obtained_with(ACS_POOL_OFF, ACS_MEMORY_DEVICE), BLOCKS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_apart_under_the_tool_alone)};
    twin_set_strategy(TWIN_EAGER);
    g_tool = argc > 1 && dlopen(argv[1], RTLD_NOW) != NULL;
    return argc > 1 && !g_tool ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

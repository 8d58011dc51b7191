/*
 * Device memory that is short and cut up: blocks of all sizes find what others leave free, and the lazy blocks of an op are
 * laid anew where they fit together. On the host backend, with ACS_MEMORY_LIMIT.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"
#include "sanitizers.h"

#include <stdbool.h>

enum { KIB = 1 << 10, LIMIT = 8 << 20, LAZY = ACS_MEMORY_DEVICE | ACS_LAZY };

static acs_context *open_short(int32_t growth)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.memory_limit = LIMIT;
    options.growth = growth;
    options.pool = ACS_POOL_ON;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* Each chunk of 2 MiB keeps one block of half a MiB, so none can be given back. */
static void a_large_block_fits_between_small_ones(void **state)
{
    (void)state;
    for (int32_t growth = ACS_GROWTH_PAGES; growth <= ACS_GROWTH_CHUNKS; growth++) {
        acs_context *context = open_short(growth);
        unsigned char *small[16];
        for (int i = 0; i < 16; i++)
            small[i] = block_of(context, ACS_MEMORY_DEVICE, 512 * KIB);
        assert_int_equal(statistics_of(context).memory_reserved, LIMIT);
        for (int i = 0; i < 16; i++)
            assert_true(i % 4 == 0 || acs_free(context, small[i]) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        unsigned char *large = block_of(context, ACS_MEMORY_DEVICE, 1270000);
        memset(large, 1, 1270000);
        assert_int_equal(statistics_of(context).memory_reserved, LIMIT);
        assert_true(acs_free(context, large) > 0);
        large = block_of(context, ACS_MEMORY_DEVICE, 1536 * KIB);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* Blocks of one and a half MiB have pieces of 2 MiB each. */
static void a_small_block_fits_behind_large_ones(void **state)
{
    (void)state;
    acs_context *context = open_short(ACS_GROWTH_PAGES);
    for (int i = 0; i < 4; i++)
        (void)block_of(context, ACS_MEMORY_DEVICE, 1536 * KIB);
    assert_int_equal(statistics_of(context).memory_reserved, LIMIT);
    for (int i = 0; i < 4; i++)
        (void)block_of(context, ACS_MEMORY_DEVICE, 500 * KIB);
    void *more = NULL;
    assert_int_equal(acs_malloc(context, 600 * KIB, ACS_MEMORY_DEVICE, &more), ACS_ERR_MEMORY);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ---------------------------------------------------------------------------------------------------------------- lazy */

/* With a sanitizer one for each way to grow: each takes up to twenty times as long. */
enum { PROGRAMS = UNDER_THREAD_SANITIZER || UNDER_ADDRESS_SANITIZER ? 2 : 8 };
enum { BLOCKS = 64, OPS = 300, OPERANDS = 16 };

typedef struct lazy_block {
    unsigned char *at;
    size_t bytes;
    unsigned char wanted; /* in its first byte and its last */
} lazy_block;

static void count_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    for (int i = 0; i < OPERANDS; i++) {
        unsigned char *block = *(unsigned char **)args[2 * i];
        const size_t bytes = *(const size_t *)args[2 * i + 1];
        if (!bytes)
            continue;
        block[0]++;
        block[bytes - 1] = block[0];
    }
}

static const acs_kernel g_count = ACS_KERNEL_HOST_INIT("count", count_body);

/* An op on some blocks, of so many bytes together at most. */
static acs_op launch(acs_context *context, lazy_block *blocks, uint64_t *random, size_t most)
{
    acs_segment segments[OPERANDS];
    acs_arg list[2 * OPERANDS];
    static const size_t none = 0;
    static unsigned char *const nowhere = NULL;
    bool taken[BLOCKS] = {false};
    uint32_t count = 0;
    size_t sum = 0;
    for (int i = 0; i < 4 * OPERANDS && count < OPERANDS; i++) {
        const uint32_t b = below(random, BLOCKS);
        if (taken[b] || sum + blocks[b].bytes > most)
            continue;
        taken[b] = true;
        sum += blocks[b].bytes;
        blocks[b].wanted++;
        segments[count] = ACS_INOUT(blocks[b].at, blocks[b].bytes);
        list[2 * count] = (acs_arg){&blocks[b].at, sizeof blocks[b].at, ACS_ARG_POINTER};
        list[2 * count + 1] = (acs_arg){&blocks[b].bytes, sizeof blocks[b].bytes, ACS_ARG_VALUE};
        count++;
    }
    for (uint32_t i = count; i < OPERANDS; i++) {
        list[2 * i] = (acs_arg){&nowhere, sizeof nowhere, ACS_ARG_VALUE};
        list[2 * i + 1] = (acs_arg){&none, sizeof none, ACS_ARG_VALUE};
    }
    const acs_launch_params params = {.size = sizeof params, .kernel = &g_count, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                      .args = {list, 2 * OPERANDS}, .uses = {.segments = segments, .count = count}};
    return acs_launch(context, &params);
}

static void run_program(uint64_t seed, int32_t growth, size_t most)
{
    static const unsigned char zero = 0;
    lazy_block blocks[BLOCKS];
    uint64_t random = seed;
    acs_context *context = open_short(growth);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i].bytes = 4096 + below(&random, (below(&random, 3) ? 600u : 1500u) * KIB);
        blocks[i].at = block_of(context, LAZY, blocks[i].bytes);
        blocks[i].wanted = 0;
        assert_true(acs_memset(context, blocks[i].at, zero, blocks[i].bytes) > 0);
    }
    for (int op = 0; op < OPS; op++)
        assert_true(launch(context, blocks, &random, most) > 0);
    for (int i = 0; i < BLOCKS; i++) {
        unsigned char ends[2] = {0};
        assert_true(acs_memcpy(context, &ends[0], blocks[i].at, 1) > 0);
        assert_true(acs_memcpy(context, &ends[1], blocks[i].at + blocks[i].bytes - 1, 1) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(ends[0], blocks[i].wanted);
        assert_int_equal(ends[1], blocks[i].wanted);
    }
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Operands of 5 MiB out of 8: they fit, however what lies there is cut up. */
static void operands_that_fit_together_are_never_refused(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
        run_program(seed, seed % 2 ? ACS_GROWTH_PAGES : ACS_GROWTH_CHUNKS, 5 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_block_fits_between_small_ones),
        cmocka_unit_test(a_small_block_fits_behind_large_ones),
        cmocka_unit_test(operands_that_fit_together_are_never_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

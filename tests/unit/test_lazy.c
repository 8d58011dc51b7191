/*
 * Lazy blocks through the public API: more of them than the device has room for, what brings contents back, what is refused,
 * and that refused calls leave contents as they were, on the host backend without threads. Then random programs, on the sim
 * backend too. test_memory_lives does the same with ops that fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"
#include "residency/relocatable.h"
#include "sanitizers.h"

#include <stdlib.h>
#include <string.h>

/* With the thread sanitizer each takes thirty times as long. */
enum { PROGRAMS = UNDER_THREAD_SANITIZER ? 50 : UNDER_ADDRESS_SANITIZER ? 200 : 1000 };
enum { BYTES = 512 << 10, BLOCKS = 16, LIMIT = 4 << 20, LAZY = ACS_MEMORY_DEVICE | ACS_LAZY };

static acs_context *open_with(int64_t limit, int64_t spill, int32_t pool)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.memory_limit = limit;
    options.spill = spill;
    options.pool = pool;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static int byte_at(acs_context *context, const unsigned char *block, size_t at)
{
    unsigned char byte = 0;
    assert_true(acs_memcpy(context, &byte, block + at, 1) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    return byte;
}

/* Adds one to each byte of `from`, in `to`. */
static void add_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    unsigned char *to = *(unsigned char **)args[0];
    const unsigned char *from = *(const unsigned char **)args[1];
    for (int i = 0; i < BYTES; i++)
        to[i] = (unsigned char)(from[i] + 1);
}

static const acs_kernel g_add = ACS_KERNEL_HOST_INIT("add", add_body);
static void nothing_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static const acs_kernel g_nothing = ACS_KERNEL_HOST_INIT("nothing", nothing_body);
static const acs_kernel g_nowhere = {"nowhere", &g_add, NULL, ACS_KERNEL_FUNCTION, 0}; /* no body for this backend */

static acs_op add(acs_context *context, const acs_kernel *kernel, unsigned char *to, unsigned char *from)
{
    return ACS_LAUNCH_ON(context, kernel, 1, 1, 0, ACS_ARGS(to, from),
                         ACS_USES(ACS_OUT(to, BYTES), ACS_IN(from, BYTES)));
}

static int nothing(void *closure)
{
    (void)closure;
    return 0;
}

static void twice_what_fits_is_spilled_and_comes_back(void **state)
{
    (void)state;
    acs_context *context = open_with(LIMIT, -1, ACS_POOL_ON);
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = block_of(context, LAZY, BYTES);
    assert_int_equal(statistics_of(context).memory_reserved, 0); /* addresses alone */
    for (int i = 0; i < BLOCKS; i++)
        assert_true(acs_memset(context, blocks[i], 3 * i, BYTES) > 0);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < BLOCKS; i++)
            assert_true(add(context, &g_add, blocks[(i + 7) % BLOCKS], blocks[i]) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    unsigned char value[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        value[i] = (unsigned char)(3 * i);
    for (int i = 0; i < 3 * BLOCKS; i++)
        value[(i % BLOCKS + 7) % BLOCKS] = (unsigned char)(value[i % BLOCKS] + 1);
    for (int i = 0; i < BLOCKS; i++)
        assert_int_equal(byte_at(context, blocks[i], BYTES - 1), value[i]);

    acs_statistics s = statistics_of(context);
    assert_true(s.memory_spilled >= (BLOCKS - LIMIT / BYTES) * BYTES);
    assert_true(s.memory_returned > 0);
    assert_true(s.memory_peak <= LIMIT && s.memory_reserved <= LIMIT);
    for (int i = 0; i < BLOCKS; i++)
        assert_true(acs_free(context, blocks[i]) > 0);
    assert_int_equal(statistics_of(context).memory_live, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* What was only read since it came back is in host memory already. */
static void what_is_only_read_goes_out_once(void **state)
{
    (void)state;
    acs_context *context = open_with(LIMIT, -1, ACS_POOL_ON);
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = block_of(context, LAZY, BYTES);
        assert_true(acs_memset(context, blocks[i], i, BYTES) > 0);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < BLOCKS; i++)
            assert_int_equal(byte_at(context, blocks[i], 5), i);
    assert_int_equal(statistics_of(context).memory_spilled, BLOCKS * BYTES);
    assert_true(statistics_of(context).memory_returned >= 2 * BLOCKS * BYTES);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* acs_malloc of other memory takes the place of lazy blocks, too. */
static void other_blocks_push_lazy_ones_out(void **state)
{
    (void)state;
    acs_context *context = open_with(LIMIT, -1, ACS_POOL_ON);
    unsigned char *lazy[6], *fixed[6];
    for (int i = 0; i < 6; i++) {
        lazy[i] = block_of(context, LAZY, BYTES);
        assert_true(acs_memset(context, lazy[i], 40 + i, BYTES) > 0);
    }
    for (int i = 0; i < 6; i++) {
        fixed[i] = block_of(context, ACS_MEMORY_DEVICE, BYTES);
        assert_true(acs_memset(context, fixed[i], 50 + i, BYTES) > 0);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(byte_at(context, lazy[i], 1), 40 + i);
        assert_int_equal(byte_at(context, fixed[i], 1), 50 + i);
    }
    assert_int_equal(acs_close(context), ACS_OK);
}

static void impossible_ops_are_errors_at_once(void **state)
{
    (void)state;
    acs_context *context = open_with(LIMIT, -1, ACS_POOL_ON);
    unsigned char *large = block_of(context, LAZY, LIMIT - BYTES), *other = block_of(context, LAZY, LIMIT - BYTES);
    unsigned char *huge = block_of(context, LAZY, 2 * LIMIT);
    assert_true(acs_memset(context, large, 7, LIMIT - BYTES) > 0);
    refused(acs_memset(context, huge, 1, 10), ACS_ERR_MEMORY, "8388608 bytes in 1 ACS_LAZY blocks");
    refused(acs_memcpy(context, other, large, 10), ACS_ERR_MEMORY, "ACS_MEMORY_LIMIT is 4194304");
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(byte_at(context, large, 100), 7);
    assert_true(acs_memset(context, other, 8, LIMIT - BYTES) > 0);
    assert_int_equal(byte_at(context, large, 100), 7);
    assert_int_equal(byte_at(context, other, 100), 8);
    assert_int_equal(acs_close(context), ACS_OK);

    context = open_with(LIMIT, BYTES, ACS_POOL_ON); /* one block may go to host memory */
    for (int i = 0; i < 9; i++)
        assert_true(acs_memset(context, block_of(context, LAZY, BYTES), i, BYTES) > 0);
    refused(acs_memset(context, block_of(context, LAZY, BYTES), 9, BYTES), ACS_ERR_MEMORY, "no 524288 bytes of device");
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* The one that has to come in does not push out the one that came in for it. */
static void operands_of_an_op_are_in_memory_together(void **state)
{
    (void)state;
    enum { LARGE = LIMIT * 3 / 8 };
    acs_context *context = open_with(LIMIT, -1, ACS_POOL_ON);
    unsigned char *blocks[6];
    for (int i = 0; i < 6; i++) {
        blocks[i] = block_of(context, LAZY, LARGE);
        assert_true(acs_memset(context, blocks[i], i, LARGE) > 0);
    }
    for (int i = 0; i < 6; i++) {
        unsigned char *to = blocks[i], *from = blocks[(i + 3) % 6];
        assert_true(ACS_LAUNCH_ON(context, &g_add, 1, 1, 0, ACS_ARGS(to, from),
                                  ACS_USES(ACS_IN(from, LARGE), ACS_INOUT(to, LARGE))) > 0);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(byte_at(context, blocks[i], 0), i < 3 ? i + 4 : i - 3 + 4 + 1);
        assert_int_equal(byte_at(context, blocks[i], LARGE - 1), i);
    }
    assert_int_equal(acs_close(context), ACS_OK);
}

static void other_ways_to_reach_one_are_refused(void **state)
{
    (void)state;
    acs_context *context = open_with(0, -1, ACS_POOL_ON);
    unsigned char *a = block_of(context, LAZY, BYTES);
    acs_uses uses = ACS_USES(ACS_IN(a, 10));
    assert_true(acs_memset(context, a, 5, BYTES) > 0);
    refused(acs_host(context, nothing, NULL, 0, uses), ACS_ERR_UNSUPPORTED, "ACS_LAZY block of 524288 bytes");
    refused(ACS_LAUNCH_ON(context, &g_add, 1, 1, 0, ACS_NO_ARGS, uses), ACS_ERR_UNSUPPORTED, "memory_fixture.h");
    assert_int_equal(acs_pin(context, a), ACS_ERR_UNSUPPORTED);
    refused(acs_memset(context, a + BYTES - 1, 1, 2), ACS_ERR_ARGUMENT, "1 bytes behind its ACS_LAZY block");
    refused(acs_free(context, a + 1), ACS_ERR_ARGUMENT, "free its start");
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_wait_range(context, a, BYTES, ACS_WRITE), ACS_OK);
    assert_int_equal(byte_at(context, a, 0), 5);
    assert_true(acs_free(context, a) > 0);
    refused(acs_memset(context, a, 1, 2), ACS_ERR_ARGUMENT, "was freed");
    refused(acs_free(context, a), ACS_ERR_ARGUMENT, "was freed before");
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* What may touch anything reaches the blocks that it has pointers into. */
static void ops_without_a_footprint_get_what_they_point_to(void **state)
{
    (void)state;
    acs_context *context = open_with(LIMIT, -1, ACS_POOL_ON);
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = block_of(context, LAZY, BYTES);
        assert_true(acs_memset(context, blocks[i], i, BYTES) > 0);
    }
    for (int i = 0; i + 1 < BLOCKS; i++) {
        unsigned char *to = blocks[i + 1], *from = blocks[i];
        const acs_segment segments[] = {ACS_IN(from, BYTES), ACS_ALL_MEMORY};
        const acs_uses all = {segments, 2, NULL, NULL, 0}, any = ACS_USES_ANY;
        assert_true(ACS_LAUNCH_ON(context, &g_add, 1, 1, 0, ACS_ARGS(to, from), i % 2 ? all : any) > 0);
    }
    for (int i = 0; i < BLOCKS; i++)
        assert_int_equal(byte_at(context, blocks[i], BYTES - 1), i);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Of those that were named longest ago the first that has room in host memory; what nobody has written needs none. */
static void what_cannot_go_lets_others_go(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    acs_context *context = open_with(8 * MIB, 3 * MIB, ACS_POOL_ON);
    const size_t bytes[] = {4 * MIB, 2 * MIB, 2 * MIB, 2 * MIB};
    unsigned char *blocks[4], byte;
    for (int i = 0; i < 4; i++) {
        blocks[i] = block_of(context, LAZY, bytes[i]);
        assert_true(acs_memset(context, blocks[i], i + 1, bytes[i]) > 0);
    }
    for (int i = 0; i < 4; i += i == 0 ? 2 : 1) /* but the one that went: to swap it there is no room */
        assert_int_equal(byte_at(context, blocks[i], 1), i + 1);
    refused(acs_memcpy(context, &byte, blocks[1], 1), ACS_ERR_MEMORY, "no 2097152 bytes");
    assert_true(acs_free(context, blocks[0]) > 0);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(byte_at(context, blocks[1], 1), 2);
    assert_int_equal(acs_close(context), ACS_OK);

    context = open_with(8 * MIB, 0, ACS_POOL_ON);
    for (int i = 0; i < 3; i++)
        assert_true(acs_memcpy(context, &byte, block_of(context, LAZY, 4 * MIB), 1) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(statistics_of(context).memory_spilled, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Trying again would help as little as waiting. */
static void without_a_wait_there_is_an_error_where_a_wait_ends_in_one(void **state)
{
    (void)state;
    acs_context *context = open_with(LIMIT, -1, ACS_POOL_ON);
    const acs_op_params now = {NULL, 1};
    unsigned char *fixed = block_of(context, ACS_MEMORY_DEVICE, LIMIT / 4 * 3), *lazy = block_of(context, LAZY, LIMIT / 2);
    refused(acs_memset_op(context, lazy, 1, 10, &now), ACS_ERR_MEMORY, "no 2097152 bytes of device memory");
    assert_true(acs_memset(context, fixed, 1, 10) && acs_free(context, fixed));
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_true(acs_memset_op(context, lazy, 1, 10, &now) > 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* It would have written all of a block that lies in host memory. */
static void a_refused_call_keeps_spilled_contents(void **state)
{
    (void)state;
    acs_context *context = open_with(LIMIT, -1, ACS_POOL_ON);
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = block_of(context, LAZY, BYTES);
        assert_true(acs_memset(context, blocks[i], i + 1, BYTES) > 0);
    }
    uint64_t live = statistics_of(context).memory_live;
    assert_int_equal(add(context, &g_nowhere, blocks[0], blocks[BLOCKS - 1]), 0);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_true(statistics_of(context).memory_live <= live);
    assert_int_equal(byte_at(context, blocks[0], 9), 1);
    assert_int_equal(acs_wait_range(context, blocks[1], BYTES, ACS_WRITE), ACS_OK); /* brings nothing in, loses nothing */
    assert_int_equal(byte_at(context, blocks[1], 9), 2);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void without_pools_the_memory_is_there_at_once(void **state)
{
    (void)state;
    acs_context *context = open_with(0, -1, ACS_POOL_OFF);
    unsigned char *a = block_of(context, LAZY, BYTES);
    assert_true(acs_memset(context, a, 6, BYTES) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(a[BYTES - 1], 6); /* host backend: at its address */
    assert_true(acs_free(context, a) > 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------------ random */

/* to[i] = a[i] + 3 b[i] + add */
static void mix(unsigned char *to, const unsigned char *a, const unsigned char *b, uint32_t bytes, uint32_t add)
{
    for (uint32_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(a[i] + 3 * b[i] + add);
}

static void mix_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    mix(*(unsigned char **)args[0], *(unsigned char **)args[1], *(unsigned char **)args[2], *(uint32_t *)args[3],
        *(uint32_t *)args[4]);
}

static const acs_kernel g_mix = ACS_KERNEL_HOST_INIT("mix", mix_body);

/* Six times as much in blocks as there is room for, kernels of three of them; every call is to succeed. */
static void random_program(acs_context *context, uint64_t *random)
{
    enum { COUNT = 24, MOST = 12000, OPS = 60 };
    static unsigned char expected[COUNT][MOST], result[COUNT][MOST];
    unsigned char *blocks[COUNT];
    uint32_t bytes[COUNT];
    for (uint32_t b = 0; b < COUNT; b++) {
        bytes[b] = MOST / 2 + below(random, MOST / 2);
        blocks[b] = block_of(context, LAZY, bytes[b]);
        memset(expected[b], (int)b, MOST);
        assert_true(acs_memset(context, blocks[b], (int)b, bytes[b]) > 0);
    }
    for (uint32_t i = 0; i < OPS; i++) {
        uint32_t t = below(random, COUNT), u = below(random, COUNT), v = below(random, COUNT), n = bytes[t];
        unsigned char *to = blocks[t], *a = blocks[u], *b = blocks[v];
        n = bytes[u] < n ? bytes[u] : n;
        n = bytes[v] < n ? bytes[v] : n;
        n = below(random, 3) ? n : 1 + below(random, n);
        if (t == u || t == v)
            continue;
        mix(expected[t], expected[u], expected[v], n, i);
        assert_true(ACS_LAUNCH_ON(context, &g_mix, 1, 1, 0, ACS_ARGS(to, a, b, n, i),
                                  ACS_USES(ACS_IN(a, n), ACS_IN(b, n), ACS_OUT(to, n))) > 0);
    }
    for (uint32_t b = 0; b < COUNT; b++)
        assert_true(acs_memcpy(context, result[b], blocks[b], bytes[b]) > 0);
    for (uint32_t b = 0; b < COUNT; b++)
        assert_true(acs_free(context, blocks[b]) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (uint32_t b = 0; b < COUNT; b++)
        assert_memory_equal(result[b], expected[b], bytes[b]);
}

static void a_thousand_random_programs_under_a_tight_limit(void **state)
{
    (void)state;
    enum { CONTEXTS = 20 };
    uint64_t random = 11;
    for (int c = 0; c < CONTEXTS; c++) {
        acs_options options;
        acs_context *context = NULL;
        assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
        options.backend = c % 2 ? ACS_BACKEND_HOST : ACS_BACKEND_SIM;
        options.workers = c / 2 % 3;
        options.seed = c;
        options.executors = 2;
        options.memory_limit = 44000; /* of 216000 on average; three blocks of 12000 fit, whatever lies between them */
        options.memory_slack = c % 3 ? 1 << 28 : 0;
        options.rename = c % 5 == 0 ? -1 : 0;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        for (int i = 0; i < PROGRAMS / CONTEXTS; i++)
            random_program(context, &random);
        acs_statistics s = statistics_of(context);
        assert_true(s.memory_spilled > 100 * 12000 && s.memory_peak <= 44000 && s.memory_live == 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* Each segment asked how the op names its block, by all segments: so many took seconds, under the lock. */
static void an_op_of_many_segments_is_bound_in_one_pass(void **state)
{
    (void)state;
    enum { SEGMENTS = 8000, APART = 64, PASSES = 4 };
    acs_segment *segments = malloc(SEGMENTS * sizeof *segments);
    assert_non_null(segments);
    for (int i = 0; i < 3; i++) {
        acs_options options = host_options();
        acs_context *context = NULL;
        options.devices = i ? 2 : 1;
        options.pool = ACS_POOL_ON;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        if (i == 2)
            assert_int_equal(acs_group_begin(context, 0), ACS_OK);
        unsigned char *x = block_of(context, LAZY, (size_t)SEGMENTS * APART);
        for (int k = 0; k < SEGMENTS; k++)
            segments[k] = ACS_INOUT(x + (size_t)k * APART, APART / 2);
        const acs_uses uses = {segments, SEGMENTS, NULL, NULL, 0};
        const uint64_t before = context->relocatables->namings;
        assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_ARGS(x), uses) > 0);
        if (i == 2)
            assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_in_range(context->relocatables->namings - before, 1, PASSES); /* through all segments */
        assert_int_equal(acs_close(context), ACS_OK);
    }
    free(segments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twice_what_fits_is_spilled_and_comes_back),
        cmocka_unit_test(what_is_only_read_goes_out_once),
        cmocka_unit_test(other_blocks_push_lazy_ones_out),
        cmocka_unit_test(impossible_ops_are_errors_at_once),
        cmocka_unit_test(operands_of_an_op_are_in_memory_together),
        cmocka_unit_test(other_ways_to_reach_one_are_refused),
        cmocka_unit_test(ops_without_a_footprint_get_what_they_point_to),
        cmocka_unit_test(what_cannot_go_lets_others_go),
        cmocka_unit_test(without_a_wait_there_is_an_error_where_a_wait_ends_in_one),
        cmocka_unit_test(a_refused_call_keeps_spilled_contents),
        cmocka_unit_test(a_thousand_random_programs_under_a_tight_limit),
        cmocka_unit_test(an_op_of_many_segments_is_bound_in_one_pass),
        cmocka_unit_test(without_pools_the_memory_is_there_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

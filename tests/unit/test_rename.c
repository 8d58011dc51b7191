/*
 * Renaming through the public API: who gets memory of its own and who does not, what brings contents home, and that
 * calls which are refused leave things as they were. On the host backend without threads, where no op runs before
 * somebody waits: so a block that an op named is in use until then. test_memory_lives does the same at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"

#include <string.h>

enum { BYTES = 1000 };

static acs_status open_with(int64_t rename, int32_t pool, acs_context **context)
{
    acs_options options = host_options();
    options.rename = rename;
    options.pool = pool;
    return acs_open(&options, context);
}

static acs_context *open_renaming(void)
{
    acs_context *context = NULL;
    assert_int_equal(open_with(-1, ACS_POOL_ON, &context), ACS_OK);
    return context;
}

/* Adds one to each byte of `to`, out of `from`. */
static void add_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    unsigned char *to = *(unsigned char **)args[0];
    const unsigned char *from = *(const unsigned char **)args[1];
    for (int i = 0; i < BYTES; i++)
        to[i] = (unsigned char)(from[i] + 1);
}

static const acs_kernel g_add = ACS_KERNEL_HOST_INIT("add", add_body);

static acs_op add(acs_context *context, unsigned char *to, unsigned char *from)
{
    return ACS_LAUNCH_ON(context, &g_add, 1, 1, 0, ACS_ARGS(to, from), ACS_USES(ACS_OUT(to, BYTES), ACS_IN(from, BYTES)));
}

/* The program of a serial loop: the same buffers in each round, copied in and out. */
static void rounds_that_reuse_buffers_get_memory_of_their_own(void **state)
{
    (void)state;
    enum { ROUNDS = 5 };
    acs_context *context = open_renaming();
    unsigned char *a = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
    unsigned char *b = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
    unsigned char in[ROUNDS][BYTES], out[ROUNDS][BYTES];
    for (int i = 0; i < ROUNDS; i++) {
        memset(in[i], 10 * i, BYTES);
        assert_true(acs_memcpy(context, a, in[i], BYTES) > 0);
        assert_true(add(context, b, a) > 0);
        assert_true(acs_memcpy(context, out[i], b, BYTES) > 0);
    }
    uint64_t edges = statistics_of(context).edges;
    assert_int_equal(acs_sync(context), ACS_OK);

    acs_statistics s = statistics_of(context);
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(out[i][BYTES - 1], 10 * i + 1);
    assert_int_equal(edges, 0); /* nothing was looked at yet */
    assert_int_equal(s.memory_versions, 2 * (ROUNDS - 1));
    assert_int_equal(s.levels, 4); /* the ops of one round, and a copy home: as if each had buffers of its own */
    assert_int_equal(s.memory_homed, 2);
    assert_int_equal(a[0], 40);
    assert_int_equal(b[0], 41);
    assert_true(acs_free(context, a) && acs_free(context, b));
    assert_int_equal(statistics_of(context).memory_live, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void both_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    memset(*(unsigned char **)args[0], 1, BYTES);
    memset(*(unsigned char **)args[1], 2, BYTES / 10);
}

/*
 * One version gives its memory up as the next gets its own: a block never counts twice, also where one op writes
 * several.
 */
static void an_op_that_writes_several_blocks_renames_all(void **state)
{
    (void)state;
    enum { ROUNDS = 6 };
    static const acs_kernel both = ACS_KERNEL_HOST_INIT("both", both_body);
    acs_context *context = open_renaming();
    unsigned char *large = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
    unsigned char *small = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES / 10);
    for (int i = 0; i < ROUNDS; i++)
        assert_true(ACS_LAUNCH_ON(context, &both, 1, 1, 0, ACS_ARGS(large, small),
                                  ACS_USES(ACS_OUT(large, BYTES), ACS_OUT(small, BYTES / 10))) > 0);
    assert_int_equal(statistics_of(context).memory_versions, 2 * (ROUNDS - 1));
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_true(large[0] == 1 && small[0] == 2);
    assert_true(acs_free(context, large) && acs_free(context, small));
    assert_int_equal(statistics_of(context).memory_live, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Only who writes all of a block, is in its way, and may have more memory. */
static void others_are_not_renamed(void **state)
{
    (void)state;
    unsigned char in[BYTES] = {1};
    for (int i = 0; i < 6; i++) {
        acs_context *context = NULL;
        assert_int_equal(open_with(i == 0 ? 0 : i == 1 ? BYTES - 1 : -1, ACS_POOL_ON, &context), ACS_OK);
        unsigned char *a = block_of(context, i == 2 ? ACS_MEMORY_DEVICE : ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
        if (i == 5)
            assert_int_equal(acs_pin(context, a + 5), ACS_OK);
        assert_true(acs_memset(context, a, 3, BYTES) > 0);
        if (i == 3)
            assert_int_equal(acs_sync(context), ACS_OK);
        assert_true(acs_memcpy(context, a, in, i == 4 ? BYTES - 1 : BYTES) > 0);
        assert_int_equal(statistics_of(context).memory_versions, 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(a[0], 1);
        assert_int_equal(a[BYTES - 1], i == 4 ? 3 : 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static int look(void *closure)
{
    const unsigned char *at = *(unsigned char **)closure;
    return at[0] == 8 && at[BYTES - 1] == 8 ? 0 : -1;
}

static void look_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    const struct {
        const unsigned char *at;
    } *hidden = args[0];
    *(*(int **)args[1]) = hidden->at[0];
}

static void keep_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    **(unsigned char ***)args[0] = *(unsigned char **)args[1];
}

static const acs_kernel g_keep = ACS_KERNEL_HOST_INIT("keep", keep_body);
static const acs_kernel g_look = ACS_KERNEL_HOST_INIT("look", look_body);

/* Whatever may reach the block's own address finds the newest contents there. */
static void contents_come_home(void **state)
{
    (void)state;
    for (int way = 0; way < 6; way++) {
        acs_context *context = open_renaming();
        unsigned char *a = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
        struct {
            const unsigned char *at;
        } hidden = {a};
        int seen = 0, *to = &seen;
        acs_op op = 1;
        assert_true(acs_memset(context, a, 7, BYTES) && acs_memset(context, a, 8, BYTES));
        assert_int_equal(statistics_of(context).memory_versions, 1);
        if (way == 0)
            op = acs_host(context, look, &a, sizeof a, ACS_USES(ACS_IN(a, 4)));
        else if (way == 1)
            op = acs_host(context, look, &a, sizeof a, ACS_USES_ANY);
        else if (way == 2)
            assert_int_equal(acs_wait_range(context, a, 1, ACS_READ), ACS_OK);
        else if (way == 3)
            op = ACS_LAUNCH_ON(context, &g_look, 1, 1, 0, ACS_ARGS(hidden, to),
                               ACS_USES(ACS_IN(a, 4), ACS_OUT(to, sizeof *to)));
        else if (way == 4)
            assert_int_equal(acs_pin(context, a), ACS_OK);
        assert_true(op > 0);
        if (way == 2)
            assert_int_equal(a[BYTES - 1], 8);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(statistics_of(context).memory_homed, 1);
        assert_int_equal(a[0], 8);
        assert_int_equal(seen, way == 3 ? 8 : 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* Bad arguments are found after the op was given memory: it goes back, and what was there stays. */
static void a_refused_call_renames_nothing(void **state)
{
    (void)state;
    acs_context *context = open_renaming();
    unsigned char *a = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
    assert_true(acs_memset(context, a, 5, BYTES) > 0);
    uint64_t live = statistics_of(context).memory_live;
    acs_attributes cluster = {.cluster = {0, 0, 0}, .programmatic = 0};
    cluster.cooperative = 1;
    cluster.cluster = (acs_dim3){2, 1, 1};
    acs_kernel none = {"none", (const void *)&g_add, NULL, ACS_KERNEL_FUNCTION, 0}; /* no body for this backend */
    assert_int_equal(ACS_LAUNCH_WITH(context, cluster, &none, 1, 1, 0, ACS_ARGS(a), ACS_USES(ACS_OUT(a, BYTES))), 0);
    acs_statistics s = statistics_of(context);
    assert_int_equal(s.memory_versions, 0);
    assert_int_equal(s.memory_live, live);
    assert_true(acs_sync(context) != ACS_OK); /* tells of the refusal */
    assert_int_equal(a[BYTES - 1], 5);
    (void)acs_close(context);
}

static int fail_body(void *closure)
{
    (void)closure;
    return -3;
}

/* What failed in the block is not forgotten for an op that then is refused. */
static void a_refused_call_forgets_no_failure(void **state)
{
    (void)state;
    acs_context *context = open_renaming();
    unsigned char *a = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
    unsigned char *b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    acs_kernel none = {"none", (const void *)&g_add, NULL, ACS_KERNEL_FUNCTION, 0};
    acs_op failed = acs_host(context, fail_body, NULL, 0, ACS_USES(ACS_INOUT(a, 4)));
    assert_int_equal(acs_wait(context, failed), ACS_ERR_HOST);
    assert_int_equal(ACS_LAUNCH_ON(context, &none, 1, 1, 0, ACS_ARGS(a), ACS_USES(ACS_OUT(a, BYTES))), 0);
    acs_op reader = acs_memcpy(context, b, a, BYTES), writer = acs_memset(context, a, 1, BYTES);
    acs_op next = acs_memcpy(context, b, a, 4);
    assert_int_equal(acs_wait(context, reader), ACS_ERR_SKIPPED);
    assert_int_equal(acs_wait(context, writer), ACS_OK);
    assert_int_equal(acs_wait(context, next), ACS_ERR_SKIPPED); /* b was not written */
    unsigned char seen = 0;
    assert_int_equal(acs_wait(context, acs_memcpy(context, &seen, a + 9, 1)), ACS_OK);
    assert_int_equal(seen, 1);
    (void)acs_close(context);
}

/* The end of the block before is where a relocatable block one may begin. */
static void ends_of_other_blocks_stay(void **state)
{
    (void)state;
    acs_context *context = open_renaming();
    unsigned char *blocks[8], *seen = NULL, **to = &seen;
    for (int i = 0; i < 8; i++) {
        void *block = NULL;
        assert_int_equal(acs_malloc(context, 1024, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, &block), ACS_OK);
        blocks[i] = block;
        assert_true(acs_memset(context, block, 1, 1024) && acs_memset(context, block, 2, 1024));
    }
    acs_op op = ACS_LAUNCH_ON(context, &g_keep, 1, 1, 0, ACS_ARGS(to, blocks[1]), ACS_USES(ACS_OUT(to, sizeof *to)));
    assert_int_equal(acs_wait(context, op), ACS_OK);
    assert_ptr_equal(seen, blocks[1]);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void it_needs_pools_and_device_memory(void **state)
{
    (void)state;
    acs_context *context = NULL;
    void *block = NULL;
    assert_int_equal(open_with(-1, ACS_POOL_OFF, &context), ACS_ERR_OPTION);
    context = open_renaming();
    static const struct {
        int kind;
        const char *why;
    } rows[] = {
        {ACS_MEMORY_HOST | ACS_LAZY, "kind 0x201: ACS_LAZY goes with ACS_MEMORY_DEVICE alone"},
        {ACS_MEMORY_DEVICE | ACS_LAZY | ACS_RELOCATABLE, "kind 0x300: ACS_LAZY and ACS_RELOCATABLE exclude each other"},
        {ACS_MEMORY_HOST | ACS_LAZY | ACS_RELOCATABLE, "exclude each other"},
        {2, "kind 0x2: it is none of ACS_MEMORY_DEVICE and"},
        {-1, "it is none of"},
        {ACS_LAZY | 0x400, "it is none of"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(acs_malloc(context, 1, rows[i].kind, &block), ACS_ERR_ARGUMENT);
        refused(0, ACS_ERR_ARGUMENT, rows[i].why);
    }
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_that_reuse_buffers_get_memory_of_their_own),
        cmocka_unit_test(an_op_that_writes_several_blocks_renames_all),
        cmocka_unit_test(others_are_not_renamed),
        cmocka_unit_test(contents_come_home),
        cmocka_unit_test(a_refused_call_renames_nothing),
        cmocka_unit_test(a_refused_call_forgets_no_failure),
        cmocka_unit_test(ends_of_other_blocks_stay),
        cmocka_unit_test(it_needs_pools_and_device_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

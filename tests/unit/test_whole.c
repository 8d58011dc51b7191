/*
 * Whole allocations (ACS_WHOLE), and blocks whose addresses kernels keep (ACS_ESCAPES): which bytes an op touches, and what
 * programs with tables of pointers find. On the host backend without threads, and in virtual time.
 */
#include "declared_fixture.h"

static size_t token_of_user(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    return ACS_SEGMENTS(out, capacity, ACS_TOKEN(in->user));
}

/* ------------------------------------------------------------------------------------------------------------- whole */

static void whole_blocks_from_any_address_in_them(void **state)
{
    (void)state;
    static const struct {
        int kind, pool;
    } rows[] = {{ACS_MEMORY_DEVICE, ACS_POOL_ON},  {ACS_MEMORY_HOST, ACS_POOL_ON},
                {ACS_MEMORY_DEVICE, ACS_POOL_OFF}, {ACS_MEMORY_DEVICE | ACS_RELOCATABLE, ACS_POOL_ON},
                {ACS_MEMORY_DEVICE | ACS_LAZY, ACS_POOL_ON}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_context *context = open_inline(ACS_CHECK_OVERLAP, rows[i].pool);
        unsigned char *before = block_of(context, rows[i].kind, BYTES), *b = block_of(context, rows[i].kind, BYTES);
        unsigned char *behind = block_of(context, rows[i].kind, BYTES);
        const bool lazy = rows[i].kind & ACS_LAZY;
        const trial t = {context, lazy ? &g_saxpy : NULL, ACS_USES(ACS_IN(b + 500, ACS_WHOLE)), (float *)(void *)(b + 500),
                         (float *)(void *)(b + 500)};
        const trial w = {context, &g_saxpy, ACS_USES(ACS_INOUT(b + 996, ACS_WHOLE)), (float *)(void *)b, (float *)(void *)b};
        for (int end = 0; end < 2 && !lazy; end++) {
            assert_true(reads(&t, b + end * (BYTES - 1)));
            assert_true(writes(&w, b + end * (BYTES - 1)));
            assert_true(leaves(&w, end ? behind : before + BYTES - 1));
        }
        if (lazy) { /* a host function cannot be on it, so a fill stands before */
            assert_true(acs_memset(context, b, 0, BYTES) > 0 && queue(&t) > 0 && queue(&w) > 0);
            assert_int_equal(acs_sync(context), ACS_OK);
        }
        assert_int_equal(statistics_of(context).unknown_memory, 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void null_is_nothing_and_freed_memory_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool check = i % 2;
        acs_context *context = open_inline(check ? ACS_CHECK_OVERLAP : ACS_CHECK_OFF, i < 2 ? ACS_POOL_ON : ACS_POOL_OFF);
        trial t = {context, NULL, ACS_USES(ACS_INOUT(NULL, ACS_WHOLE), ACS_ESCAPES(NULL)), NULL, NULL};
        unsigned char *b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
        assert_true(leaves(&t, b));
        assert_true(acs_free(context, b) > 0);
        t.uses = ACS_USES(ACS_IN(b + 3, ACS_WHOLE));
        refused(queue(&t), check ? ACS_ERR_CHECK : ACS_ERR_ARGUMENT, "names memory freed by op");
        assert_int_equal(acs_clear(context), ACS_OK);
        assert_int_equal(statistics_of(context).unknown_memory, 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void unknown_memory_is_any_memory(void **state)
{
    (void)state;
    static unsigned char own[100];
    acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
    unsigned char *b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    trial t = {context, NULL, ACS_USES(ACS_IN(own, ACS_WHOLE), ACS_IN(own + 5, ACS_WHOLE)), NULL, NULL};
    assert_true(reads(&t, b));
    assert_int_equal(statistics_of(context).unknown_memory, 2); /* reads() queues it twice: ops are counted */
    t.uses = ACS_USES(ACS_OUT(own, ACS_WHOLE));
    assert_true(writes(&t, b));
    assert_int_equal(acs_close(context), ACS_OK);

    context = open_inline(ACS_CHECK_WRITES, ACS_POOL_ON); /* registered memory is known */
    assert_int_equal(acs_check_register(context, own, sizeof own), ACS_OK);
    assert_int_equal(acs_check_register(context, own + 10, 5), ACS_OK);
    b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    t = (trial){context, NULL, ACS_USES(ACS_INOUT(own + 12, ACS_WHOLE)), NULL, NULL};
    assert_true(leaves(&t, b) && writes(&t, own) && writes(&t, own + 99));
    assert_int_equal(statistics_of(context).unknown_memory, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* An address that is not the first of its allocation may be one before an array in the next. */
static void whole_allocations_begin_at_the_address_or_are_any_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        acs_context *context = open_inline(i % 2 ? ACS_CHECK_OVERLAP : ACS_CHECK_OFF, i < 2 ? ACS_POOL_ON : ACS_POOL_OFF);
        unsigned char *a = block_of(context, ACS_MEMORY_DEVICE, BYTES), *b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
        trial t = {context, NULL, ACS_USES(ACS_INOUT(b, ACS_WHOLE_AT)), NULL, NULL};
        assert_true(leaves(&t, a) && writes(&t, b) && writes(&t, b + BYTES - 1));
        assert_int_equal(statistics_of(context).unknown_memory, 0);
        t.uses = ACS_USES(ACS_INOUT(a + BYTES - 4, ACS_WHOLE_AT));
        assert_true(writes(&t, a) && writes(&t, b));
        t.uses = ACS_USES(ACS_IN(a + BYTES - 4, ACS_WHOLE_AT));
        assert_true(reads(&t, b));
        assert_true(statistics_of(context).unknown_memory > 0);
        assert_true(acs_free(context, a) > 0); /* what was before the array is gone */
        assert_true(reads(&t, b));
        t.uses = ACS_USES(ACS_IN(a, ACS_WHOLE_AT));
        if (i < 2) /* a pool remembers it */
            refused(queue(&t), i % 2 ? ACS_ERR_CHECK : ACS_ERR_ARGUMENT, "names memory freed by op");
        assert_int_equal(acs_clear(context), ACS_OK);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void memory_of_another_context(void **state)
{
    (void)state;
    for (int check = 0; check < 2; check++) {
        acs_context *context = open_inline(check ? ACS_CHECK_OVERLAP : ACS_CHECK_OFF, ACS_POOL_ON);
        acs_context *other = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
        unsigned char *b = block_of(other, ACS_MEMORY_DEVICE, BYTES);
        const trial t = {context, NULL, ACS_USES(ACS_INOUT(b + 10, ACS_WHOLE)), NULL, NULL};
        if (check)
            refused(queue(&t), ACS_ERR_CHECK, "names memory of context");
        else
            assert_true(queue(&t) > 0);
        assert_int_equal(statistics_of(context).unknown_memory, 0);
        (void)acs_close(context);
        assert_int_equal(acs_close(other), ACS_OK);
    }
}

static void copies_and_waits_have_sizes(void **state)
{
    unsigned char *b = block_of(*state, ACS_MEMORY_HOST, BYTES);
    assert_int_equal(acs_memset(*state, b, 0, ACS_WHOLE), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_wait_range(*state, b, ACS_WHOLE, ACS_READ), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_clear(*state), ACS_OK);
}

/* A lazy block of a group has a size before it has memory. */
static void groups_know_whole_blocks(void **state)
{
    acs_context *context = *state;
    void *b = NULL;
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    assert_int_equal(acs_malloc(context, BYTES, ACS_MEMORY_DEVICE | ACS_LAZY, &b), ACS_OK);
    assert_true(acs_memset(context, b, 0, BYTES) > 0);
    assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_ARGS(b), ACS_USES(ACS_INOUT((char *)b + 9, ACS_WHOLE))) > 0);
    assert_true(acs_free(context, b) > 0);
    assert_int_equal(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_ARGS(b), ACS_USES(ACS_INOUT(b, ACS_WHOLE))), 0);
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
    assert_int_equal(acs_clear(context), ACS_OK);
}

/* Launches whose footprints are computed recur like others. */
static void passes_know_declared_kernels_and_whole_blocks(void **state)
{
    acs_context *context = *state;
    void *fixed = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    assert_int_equal(acs_declare(&g_nothing, token_of_user, NULL), ACS_OK);
    for (int pass = 0; pass < 20; pass++) {
        assert_int_equal(acs_repeat_begin(context, 1), ACS_OK);
        for (int i = 0; i < 40; i++) {
            assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS) > 0);
            assert_true(ACS_LAUNCH_ON(context, &g_increment, 1, 1, 0, ACS_ARGS(fixed),
                                      ACS_USES(ACS_INOUT(fixed, ACS_WHOLE))) > 0);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_true(statistics_of(context).replayed > 500);
    assert_int_equal(acs_declare(&g_nothing, NULL, NULL), ACS_OK);
}

/* ----------------------------------------------------------------------------------------------------------- escapes */

static void keep_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    **(unsigned char ***)args[0] = *(unsigned char **)args[1];
}

/* What a kernel keeps the address of lies at it from then on, whatever renames would do. */
static void escaped_blocks_stay(void **state)
{
    (void)state;
    static const acs_kernel keep = ACS_KERNEL_HOST_INIT("keep", keep_body);
    acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
    unsigned char *b = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
    unsigned char **table = (unsigned char **)(void *)block_of(context, ACS_MEMORY_DEVICE, 64);
    assert_true(acs_memset(context, b, 1, BYTES) > 0 && acs_memset(context, b, 2, BYTES) > 0);
    assert_int_equal(statistics_of(context).memory_versions, 1);
    assert_true(ACS_LAUNCH_ON(context, &keep, 1, 1, 0, ACS_ARGS(table, b),
                              ACS_USES(ACS_OUT(table, sizeof *table), ACS_ESCAPES(b + 1))) > 0);
    assert_int_equal(statistics_of(context).memory_homed, 1);
    assert_true(acs_memset(context, b, 3, BYTES) > 0);
    assert_int_equal(statistics_of(context).memory_versions, 1);
    assert_int_equal(acs_wait_range(context, table, 8, ACS_READ), ACS_OK);
    assert_ptr_equal(*table, b);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal((*table)[BYTES - 1], 3);

    unsigned char *lazy = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    refused(ACS_LAUNCH_ON(context, &keep, 1, 1, 0, ACS_ARGS(table, lazy), ACS_USES(ACS_ESCAPES(lazy))), ACS_ERR_UNSUPPORTED,
            "ACS_LAZY");
    (void)acs_close(context);
}

static void follow_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    unsigned char *const *table = *(unsigned char *const **)args[0];
    **(unsigned char **)args[1] = table[0][BYTES - 1];
}

/*
 * An op that may touch anything finds what a table leads to at its address: contents of blocks that move come home for it.
 * With the table's targets named it need not be ordered with everything.
 */
static void tables_of_pointers(void **state)
{
    (void)state;
    static const acs_kernel follow = ACS_KERNEL_HOST_INIT("follow", follow_body);
    for (int way = 0; way < 3; way++) {
        acs_context *context = open_inline(ACS_CHECK_OFF, ACS_POOL_ON);
        unsigned char *b = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
        unsigned char *to = block_of(context, ACS_MEMORY_HOST, 1), *host[1] = {b};
        unsigned char *table = block_of(context, ACS_MEMORY_DEVICE, sizeof host);
        assert_true(acs_memcpy(context, table, host, sizeof host) > 0);
        assert_true(acs_memset(context, b, 1, BYTES) > 0 && acs_memset(context, b, 2, BYTES) > 0);
        const acs_segment named[] = {ACS_IN(table, ACS_WHOLE), ACS_IN(b, ACS_WHOLE), ACS_OUT(to, 1)};
        const acs_segment all[] = {ACS_ALL_MEMORY_IN, ACS_OUT(to, 1)};
        const acs_uses uses[] = {ACS_USES_ANY, ACS_USES_LIST(named, 3), ACS_USES_LIST(all, 2)};
        assert_true(ACS_LAUNCH_ON(context, &follow, 1, 1, 0, ACS_ARGS(table, to), uses[way]) > 0);
        assert_int_equal(statistics_of(context).memory_homed, 1);
        assert_true(acs_memset(context, b, 3, BYTES) > 0);
        assert_int_equal(acs_wait_range(context, to, 1, ACS_READ), ACS_OK);
        assert_int_equal(*to, 2);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_blocks_from_any_address_in_them),
        cmocka_unit_test(null_is_nothing_and_freed_memory_is_refused),
        cmocka_unit_test(unknown_memory_is_any_memory),
        cmocka_unit_test(whole_allocations_begin_at_the_address_or_are_any_memory),
        cmocka_unit_test(memory_of_another_context),
        INLINE(copies_and_waits_have_sizes),
        SIM(groups_know_whole_blocks),
        SIM(passes_know_declared_kernels_and_whole_blocks),
        cmocka_unit_test(escaped_blocks_stay),
        cmocka_unit_test(tables_of_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

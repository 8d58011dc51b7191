/*
 * Copies between devices that the driver refuses: after acs_clear each block holds what serial execution gives, but for
 * what failed and skipped ops were to write. On the host backend, which refuses as many of the runtime's own copies as
 * it is told. test_memory_lives does the same at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "add_kernel.h"
#include "memory_fixture.h"
#include "api/context.h"

enum { BYTES = 6400, HALF = BYTES / 2, EIGHTH = BYTES / 8 };

/* ---------------------------------------------------------------------------------------------------------- refusal */

static acs_backend_ops g_ops;               /* those of the backend, but for submit */
static void (*g_submit)(acs_backend *backend, acs_batch *batch);
static int g_refusals;                      /* so many of the next transfers are refused, */
static uint64_t g_refused_bytes;            /* of those with rows of so many bytes; 0: of all */

/* A kind that no slot takes is refused where it is issued, and the rest of the batch hears of it. */
static void refuse_some(acs_backend *backend, acs_batch *batch)
{
    bool refused[ACS_BATCH_ITEMS] = {false};
    for (uint32_t i = 0; i < batch->items_used; i++) {
        acs_record *op = batch->items[i].op;
        refused[i] = op && (op->flags & ACS_RECORD_PROPAGATES) && g_refusals > 0 &&
                     (!g_refused_bytes || op->u.copy.bytes == g_refused_bytes);
        g_refusals -= refused[i];
        if (refused[i])
            op->kind = ACS_KIND_JOIN;
    }
    g_submit(backend, batch);
    for (uint32_t i = 0; i < batch->items_used; i++)
        if (refused[i]) {
            batch->items[i].op->kind = ACS_KIND_MEMCPY;
            batch->items[i].status = ACS_ERR_LAUNCH;
        }
}

static acs_context *open_limited(int64_t devices, int64_t memory_limit)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.devices = devices;
    options.policy = ACS_POLICY_SINGLE;
    options.streams = 4;
    options.pool = ACS_POOL_ON;
    options.memory_limit = memory_limit;
    options.memory_slack = 0; /* what was freed is handed out at once */
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    g_refusals = 0;
    g_refused_bytes = 0;
    g_ops = *context->backend->ops;
    g_submit = g_ops.submit;
    g_ops.submit = refuse_some;
    context->backend->ops = &g_ops;
    return context;
}

static acs_context *open_devices(int64_t devices)
{
    return open_limited(devices, 0);
}

static void close_empty(acs_context *context)
{
    assert_int_equal(statistics_of(context).memory_live, 0);
    assert_int_equal(g_refusals, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* -------------------------------------------------------------------------------------------------------------- ops */

/* A block with this value everywhere, which is on the device alone. */
static unsigned char *filled(acs_context *context, int kind, int device, int value)
{
    unsigned char *x = block_of(context, kind, BYTES);
    assert_int_equal(acs_on(context, device), ACS_OK);
    assert_int_equal(acs_wait(context, acs_memset(context, x, value, BYTES)), ACS_OK);
    assert_int_equal(acs_on(context, ACS_ANY_DEVICE), ACS_OK);
    return x;
}

/* All of a range, as an op finds it on each device. */
static void check(acs_context *context, unsigned char *x, size_t bytes, int value)
{
    static unsigned char out[BYTES];
    unsigned char *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    for (int d = 0; d < acs_devices(context); d++) {
        add_on(context, d, y, x, bytes);
        memset(out, 0xee, BYTES);
        assert_true(acs_memcpy(context, out, y, bytes) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (size_t i = 0; i < bytes; i++)
            if (out[i] != value + 1)
                fail_msg("device %d finds %d at byte %zu, which should be %d", d, out[i] - 1, i, value);
    }
    assert_true(acs_free(context, y) > 0);
}

static const int g_kinds[] = {ACS_MEMORY_DEVICE | ACS_LAZY, ACS_MEMORY_DEVICE | ACS_RELOCATABLE,
                              ACS_MEMORY_HOST | ACS_RELOCATABLE};
enum { KINDS = sizeof g_kinds / sizeof *g_kinds };

/* ----------------------------------------------------------------------------------------------------------- copies */

static void what_a_refused_copy_was_to_bring_stays_where_it_was(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        acs_context *context = open_devices(3);
        unsigned char *x = filled(context, g_kinds[k], 2, 5), *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
        g_refusals = 1;
        acs_op op = add_on(context, 1, y, x, BYTES);
        assert_int_equal(acs_wait(context, op), ACS_ERR_SKIPPED);
        add_on(context, 0, y, x, BYTES); /* whose copy may come from there */
        (void)acs_sync(context);
        assert_int_equal(acs_clear(context), ACS_OK);
        assert_int_equal(acs_sync(context), ACS_OK);
        check(context, x, BYTES, 5);
        assert_true(acs_free(context, x) > 0 && acs_free(context, y) > 0);
        close_empty(context);
    }
}

/* The rest of what an op was to read is not lost with what it was to write. */
static void an_op_that_was_to_write_a_part_loses_no_more_than_that(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        acs_context *context = open_devices(2);
        unsigned char *x = filled(context, g_kinds[k], 1, 5);
        size_t half = HALF;
        acs_attributes on = ACS_ON(0);
        g_refusals = 2; /* the parts that the op names are copied one by one */
        assert_true(ACS_LAUNCH_WITH(context, on, &g_add, 1, 1, 0, ACS_ARGS(x, x, half),
                                    ACS_USES(ACS_OUT(x, HALF), ACS_IN(x, BYTES))) > 0);
        assert_int_equal(acs_clear(context), ACS_OK);
        assert_int_equal(acs_sync(context), ACS_OK);
        check(context, x + HALF, HALF, 5);
        assert_true(acs_free(context, x) > 0);
        close_empty(context);
    }
}

/* Rows that come in one copy are all still where they were, and what lies between them is where it is. */
static void refused_rows_stay_where_they_were(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        acs_context *context = open_devices(2);
        unsigned char *x = filled(context, g_kinds[k], 0, 5), *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
        assert_int_equal(acs_sync(context), ACS_OK); /* it is at home, if it has one */
        for (size_t i = 0; i < 8; i += 2)
            (void)acs_wait(context, add_on(context, 1, x + i * EIGHTH, x + i * EIGHTH, EIGHTH)); /* 6, and there alone */
        const uint64_t before = statistics_of(context).transfers;
        const bool at_host = (g_kinds[k] & ~ACS_RELOCATABLE) == ACS_MEMORY_HOST;
        g_refusals = 1;
        acs_op op = add_on(context, 0, y, x, BYTES);
        assert_int_equal(statistics_of(context).transfers - before, at_host ? 2 : 1);
        assert_int_equal(acs_wait(context, op), ACS_ERR_SKIPPED);
        assert_int_equal(acs_clear(context), ACS_OK);
        for (size_t i = 0; i < 8; i++)
            check(context, x + i * EIGHTH, EIGHTH, i % 2 ? 5 : 6);
        assert_true(acs_free(context, x) > 0 && acs_free(context, y) > 0);
        close_empty(context);
    }
}

/* Of more rows than are told apart what lies between comes, too: who takes it along is skipped with it. */
static void many_rows_are_not_written_without_what_lies_between(void **state)
{
    (void)state;
    enum { ROWS = 300, PITCH = 21 };
    for (int k = 0; k < KINDS; k++) {
        acs_context *context = open_devices(2);
        unsigned char *x = filled(context, g_kinds[k], 1, 5), *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
        size_t bytes = 1;
        acs_attributes on = ACS_ON(0);
        add_on(context, 1, y, x, PITCH);
        acs_op op = add_on(context, 0, y, x, 1); /* the first row is there, and what comes behind it comes by itself */
        assert_int_equal(acs_wait(context, op), ACS_OK);
        g_refusals = 1;
        g_refused_bytes = PITCH - 1;
        op = ACS_LAUNCH_WITH(context, on, &g_add, 1, 1, 0, ACS_ARGS(x, x, bytes),
                             ACS_USES(ACS_TILE_OUT(x, 1, ROWS, PITCH)));
        assert_int_equal(acs_wait(context, op), ACS_ERR_SKIPPED);
        assert_int_equal(acs_clear(context), ACS_OK);
        assert_int_equal(acs_sync(context), ACS_OK);
        check(context, x + (ROWS - 1) * PITCH + 1, BYTES - (ROWS - 1) * PITCH - 1, 5);
        assert_true(acs_free(context, x) > 0 && acs_free(context, y) > 0);
        close_empty(context);
    }
}

/* ----------------------------------------------------------------------------------------------------------- memory */

enum { LARGE = 1 << 20 };

/* Two blocks that the device has room for alone: what else is there leaves it. */
static void crowd(acs_context *context, int device)
{
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, LARGE);
    unsigned char *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, LARGE);
    assert_int_equal(acs_on(context, device), ACS_OK);
    assert_true(acs_memset(context, x, 7, LARGE) > 0);
    assert_int_equal(acs_on(context, ACS_ANY_DEVICE), ACS_OK);
    add_on(context, device, y, x, LARGE);
    assert_true(acs_free(context, x) > 0 && acs_free(context, y) > 0);
}

/*
 * A block of device 2 is copied well to device 1 (or not at all), then not well to device 0, and from there perhaps to
 * device 1. Then a device gives its memory up. The failure is known by then, or nothing has run.
 */
static const struct {
    bool good, relayed, known;
    int crowded;
} g_leaving[] = {
    {.good = true, .known = true, .crowded = 2},
    {.good = true, .known = false, .crowded = 2},
    {.known = true, .crowded = 2},
    {.relayed = true, .known = true, .crowded = 0},
    {.relayed = true, .known = false, .crowded = 0},
};

static void what_failed_is_not_what_is_left_of_a_block(void **state)
{
    (void)state;
    static unsigned char out[LARGE];
    for (size_t i = 0; i < sizeof g_leaving / sizeof *g_leaving; i++) {
        acs_context *context = open_limited(3, (int64_t)2 * LARGE);
        unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, LARGE);
        unsigned char *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, LARGE);
        add_on(context, 2, x, x, LARGE);
        assert_int_equal(acs_on(context, 2), ACS_OK);
        assert_int_equal(acs_wait(context, acs_memset(context, x, 5, LARGE)), ACS_OK);
        assert_int_equal(acs_on(context, ACS_ANY_DEVICE), ACS_OK);
        if (g_leaving[i].good)
            assert_int_equal(acs_wait(context, add_on(context, 1, y, x, LARGE)), ACS_OK);
        g_refusals = 1;
        acs_op op = add_on(context, 0, y, x, LARGE);
        if (g_leaving[i].known)
            assert_int_equal(acs_wait(context, op), ACS_ERR_SKIPPED);
        if (g_leaving[i].relayed)
            add_on(context, 1, y, x, LARGE);
        crowd(context, g_leaving[i].crowded);
        assert_int_equal(acs_clear(context), ACS_OK);
        add_on(context, 1, y, x, LARGE);
        assert_true(acs_memcpy(context, out, y, LARGE) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        if (out[0] != 6 || out[LARGE - 1] != 6)
            fail_msg("row %d: device 1 finds %d, which should be 5", (int)i, out[0] - 1);
        assert_true(acs_free(context, x) > 0 && acs_free(context, y) > 0);
        close_empty(context);
    }
}

/* ------------------------------------------------------------------------------------------------------------- home */

static void contents_that_did_not_come_home_are_not_lost(void **state)
{
    (void)state;
    for (int waits = 0; waits < 3; waits++)
        for (int refusals = 1; refusals <= 3; refusals++) { /* the first of one here, the others in acs_clear */
            acs_context *context = open_devices(2);
            unsigned char *x = filled(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, 1, 5);
            add_on(context, 1, x, x, BYTES);
            g_refusals = refusals;
            if (waits < 2)
                assert_int_equal(acs_wait_range(context, x, BYTES, waits ? ACS_UPDATE : ACS_READ), ACS_ERR_SKIPPED);
            else
                assert_int_equal(acs_sync(context), ACS_ERR_LAUNCH);
            assert_int_equal(acs_clear(context), ACS_OK);
            if (refusals == 3) {
                assert_int_equal(acs_sync(context), ACS_ERR_LAUNCH);
                assert_int_equal(acs_clear(context), ACS_OK);
            }
            assert_int_equal(acs_context_error(context, NULL), ACS_OK);
            assert_int_equal(x[0], 6); /* it is home now */
            assert_int_equal(x[BYTES - 1], 6);
            check(context, x, BYTES, 6);
            assert_true(acs_free(context, x) > 0);
            close_empty(context);
        }
}

/* A copy that failed concerns its own bytes: what else came home is the program's, whatever acs_sync says. */
static void what_came_home_is_the_programs_also_where_other_copies_failed(void **state)
{
    (void)state;
    acs_context *context = open_devices(2);
    unsigned char *x = filled(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, 1, 5);
    unsigned char *y = filled(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, 1, 7);
    assert_int_equal(acs_wait(context, add_on(context, 1, x, x, HALF)), ACS_OK);
    assert_int_equal(acs_wait(context, add_on(context, 0, x + HALF, x + HALF, HALF)), ACS_OK);
    assert_int_equal(acs_wait(context, add_on(context, 1, y, y, BYTES)), ACS_OK);
    g_refusals = 1;
    assert_int_equal(acs_wait_range(context, x, HALF, ACS_READ), ACS_ERR_SKIPPED);
    assert_int_equal(acs_sync(context), ACS_ERR_LAUNCH);
    y[1] = x[HALF] = 100;
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    check(context, x, HALF, 6);
    check(context, x + HALF, 1, 100);
    check(context, x + HALF + 1, HALF - 1, 6);
    check(context, y, 1, 8);
    check(context, y + 1, 1, 100);
    assert_true(acs_free(context, x) > 0 && acs_free(context, y) > 0);
    close_empty(context);
}

/* A wait that ended well hands over, whatever failed in the block before all of it was written again. */
static void what_was_written_again_is_the_programs_after_a_wait(void **state)
{
    (void)state;
    acs_context *context = open_devices(2);
    unsigned char *x = filled(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, 0, 5), *y = filled(context, g_kinds[0], 1, 7);
    g_refusals = 1;
    assert_int_equal(acs_wait(context, add_on(context, 1, y, x, BYTES)), ACS_ERR_SKIPPED);
    assert_int_equal(acs_on(context, 1), ACS_OK);
    assert_int_equal(acs_wait(context, acs_memset(context, x, 9, BYTES)), ACS_OK);
    assert_int_equal(acs_on(context, ACS_ANY_DEVICE), ACS_OK);
    assert_int_equal(acs_wait_range(context, x, HALF, ACS_UPDATE), ACS_OK);
    x[0] = 100;
    assert_int_equal(acs_clear(context), ACS_OK);
    check(context, x, 1, 100);
    check(context, x + 1, BYTES - 1, 9);
    assert_true(acs_free(context, x) > 0 && acs_free(context, y) > 0);
    close_empty(context);
}

/* ------------------------------------------------------------------------------------------------------------- life */

static void blocks_that_were_freed_meanwhile_concern_nobody(void **state)
{
    (void)state;
    acs_context *context = open_devices(2);
    unsigned char *x = filled(context, ACS_MEMORY_DEVICE | ACS_LAZY, 1, 5);
    g_refusals = 1;
    add_on(context, 0, x, x, HALF);
    assert_true(acs_free(context, x) > 0); /* nothing has run */
    x = block_of(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, BYTES);
    memset(x, 9, BYTES);
    add_on(context, 0, x, x, BYTES); /* where that copy was to go */
    assert_int_equal(acs_sync(context), ACS_ERR_LAUNCH);
    x[0] = 100;
    assert_int_equal(acs_clear(context), ACS_OK);
    check(context, x, 1, 100);
    check(context, x + 1, BYTES - 1, 10);
    assert_true(acs_free(context, x) > 0);
    close_empty(context);
}

static void many_refused_copies_lose_nothing(void **state)
{
    (void)state;
    enum { BLOCKS = 100 };
    acs_context *context = open_devices(2);
    unsigned char *x[BLOCKS], *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    for (int i = 0; i < BLOCKS; i++)
        x[i] = filled(context, g_kinds[i % KINDS], i % 2, i);
    g_refusals = BLOCKS;
    for (int i = 0; i < BLOCKS; i++) {
        acs_op op = add_on(context, !(i % 2), y, x[i], BYTES);
        assert_int_not_equal(acs_wait(context, op), ACS_ERR_LAUNCH);
    }
    g_refusals = 0;
    assert_int_equal(acs_clear(context), ACS_OK);
    for (int i = 0; i < BLOCKS; i++) {
        check(context, x[i], BYTES, i);
        assert_true(acs_free(context, x[i]) > 0);
    }
    assert_true(acs_free(context, y) > 0);
    close_empty(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_refused_copy_was_to_bring_stays_where_it_was),
        cmocka_unit_test(an_op_that_was_to_write_a_part_loses_no_more_than_that),
        cmocka_unit_test(refused_rows_stay_where_they_were),
        cmocka_unit_test(many_rows_are_not_written_without_what_lies_between),
        cmocka_unit_test(what_failed_is_not_what_is_left_of_a_block),
        cmocka_unit_test(contents_that_did_not_come_home_are_not_lost),
        cmocka_unit_test(what_came_home_is_the_programs_also_where_other_copies_failed),
        cmocka_unit_test(what_was_written_again_is_the_programs_after_a_wait),
        cmocka_unit_test(blocks_that_were_freed_meanwhile_concern_nobody),
        cmocka_unit_test(many_refused_copies_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

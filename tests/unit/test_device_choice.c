/*
 * Unit tests of what travels between devices, and when: parts that lie between others come in one copy, a program that
 * waits now and then leaves its blocks where they are, and what is handed over comes again. On the host backend with
 * virtual devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PART = 512, PARTS = 8, BYTES = PARTS * PART, LARGE = 64 * 1024, TURNS = 12 };

static acs_context *open_devices(int64_t devices, int32_t policy)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.devices = devices;
    options.policy = policy;
    options.pool = ACS_POOL_ON;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* to[i] = from[i] + large[i]; `large` may be `from`. */
static void add_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    unsigned char *to = *(unsigned char **)args[0];
    const unsigned char *from = *(const unsigned char **)args[1], *large = *(const unsigned char **)args[2];
    size_t bytes = *(size_t *)args[3];
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(from[i] + large[i]);
}

static const acs_kernel g_add = ACS_KERNEL_HOST_INIT("add", add_body);

static void add(acs_context *context, int device, unsigned char *to, unsigned char *from, unsigned char *large, size_t bytes,
                size_t read, size_t of_large)
{
    acs_attributes on = ACS_ON(device);
    acs_uses uses = ACS_USES(ACS_OUT(to, bytes), ACS_IN(from, read), ACS_IN(large, of_large));
    assert_true(ACS_LAUNCH_WITH(context, on, &g_add, 1, 1, 0, ACS_ARGS(to, from, large, bytes), uses) > 0);
}

static unsigned char *filled(acs_context *context, int device, int value, size_t bytes)
{
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, bytes);
    assert_int_equal(acs_on(context, device), ACS_OK);
    assert_true(acs_memset(context, x, value, bytes) > 0);
    assert_int_equal(acs_on(context, ACS_ANY_DEVICE), ACS_OK);
    return x;
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* Which device writes each part; a digit each. What device 0 lacks then comes in so many copies. */
static const struct {
    const char *where;
    uint64_t transfers, parts;
} g_strides[] = {
    {"01010101", 1, 4},
    {"10101010", 1, 4},
    {"00110011", 4, 4}, /* beside each other they stay apart: what fails in one is no matter of the other */
    {"00100100", 1, 2},
    {"01001011", 3, 4}, /* neither as long nor as far apart as each other: 1, 4, 67 */
    {"01021020", 2, 4}, /* two of each device */
    {"01200120", 2, 4},
    {"00000000", 0, 0},
};

static void strided_parts_come_in_one_copy(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof g_strides / sizeof g_strides[0]; s++) {
        acs_context *context = open_devices(3, ACS_POLICY_SINGLE);
        unsigned char *y = filled(context, 0, 7, BYTES), *z = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
        unsigned char out[BYTES];
        for (int k = 0; k < PARTS; k++) {
            unsigned char *one = filled(context, g_strides[s].where[k] - '0', k + 1, PART);
            add(context, g_strides[s].where[k] - '0', y + k * PART, one, one, PART, PART, PART);
        }
        assert_int_equal(statistics_of(context).transfers, 0);
        add(context, 0, z, y, y, BYTES, BYTES, BYTES);
        const acs_statistics stats = statistics_of(context);
        if (stats.transfers != g_strides[s].transfers || stats.transfer_bytes != g_strides[s].parts * PART)
            fail_msg("%s: %d copies of %d bytes", g_strides[s].where, (int)stats.transfers, (int)stats.transfer_bytes);
        assert_true(acs_memcpy(context, out, z, BYTES) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (int i = 0; i < BYTES; i++)
            assert_int_equal(out[i], 4 * (i / PART + 1));
        assert_int_equal(statistics_of(context).transfers, g_strides[s].transfers);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* ------------------------------------------------------------------------------------------------------------ tiles */

enum { COLUMNS = 64, WIDE = 1 << 10, ROWS_MOST = 256 }; /* bytes of a row that a tile has, of a row, and rows told apart */

/*
 * The first columns of so many rows: device 1 has them all, device 0 touches them in this way. What travels for that.
 */
static const struct {
    acs_access access;
    uint64_t rows, pitch, transfers, bytes;
} g_tiles[] = {
    {ACS_WRITE, 4, WIDE, 0, 0},
    {ACS_WRITE, ROWS_MOST, WIDE, 0, 0},
    {ACS_READ, 4, WIDE, 1, 4 * COLUMNS},
    {ACS_UPDATE, ROWS_MOST, WIDE, 1, ROWS_MOST * COLUMNS},
    {ACS_UPDATE, 4, COLUMNS, 1, 4 * COLUMNS}, /* there is nothing between */
    {ACS_WRITE, ROWS_MOST + 1, WIDE, 1, ROWS_MOST * WIDE + COLUMNS},
};

static void touch_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    unsigned char *x = *(unsigned char **)args[0];
    const size_t access = *(size_t *)args[1], rows = *(size_t *)args[2], pitch = *(size_t *)args[3];
    for (size_t i = 0; i < rows && access & ACS_WRITE; i++)
        memset(x + i * pitch, 9, COLUMNS);
}

static const acs_kernel g_touch = ACS_KERNEL_HOST_INIT("touch", touch_body);

static acs_op touch(acs_context *context, unsigned char *x, size_t access, size_t rows, size_t pitch)
{
    acs_attributes on = ACS_ON(0);
    acs_op op = ACS_LAUNCH_WITH(context, on, &g_touch, 1, 1, 0, ACS_ARGS(x, access, rows, pitch),
                                ACS_USES(ACS_TILE_((acs_access)access, x, COLUMNS, rows, pitch)));
    assert_true(op > 0);
    return op;
}

static void of_tiles_only_their_rows_travel(void **state)
{
    (void)state;
    static unsigned char out[WIDE * (ROWS_MOST + 1)];
    for (size_t t = 0; t < sizeof g_tiles / sizeof g_tiles[0]; t++) {
        acs_context *context = open_devices(2, ACS_POLICY_SINGLE);
        unsigned char *x = filled(context, 1, 5, sizeof out);
        touch(context, x, g_tiles[t].access, g_tiles[t].rows, g_tiles[t].pitch);
        const acs_statistics stats = statistics_of(context);
        if (stats.transfers != g_tiles[t].transfers || stats.transfer_bytes != g_tiles[t].bytes)
            fail_msg("tile %d: %d copies of %d bytes", (int)t, (int)stats.transfers, (int)stats.transfer_bytes);
        assert_true(acs_memcpy(context, out, x, sizeof out) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (size_t i = 0; i < sizeof out; i++) {
            const int written = g_tiles[t].access & ACS_WRITE && i / g_tiles[t].pitch < g_tiles[t].rows &&
                                 i % g_tiles[t].pitch < COLUMNS;
            if (out[i] != (written ? 9 : 5))
                fail_msg("tile %d: byte %d is %d", (int)t, (int)i, out[i]);
        }
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static _Atomic(int) g_met; /* ops that run at once */

static void meet_body(const acs_grid *grid, void *const *args)
{
    (void)grid, (void)args;
    atomic_fetch_add_explicit(&g_met, 1, memory_order_relaxed); /* nothing is read by it */
    while (atomic_load_explicit(&g_met, memory_order_relaxed) < 2)
        sched_yield();
}

static const acs_kernel g_meet = ACS_KERNEL_HOST_INIT("meet", meet_body);

/* Of more rows than are told apart, too, once all is there: each op waits until the other runs. */
static void columns_of_one_device_are_written_at_once(void **state)
{
    (void)state;
    acs_options options = host_options();
    acs_context *context = NULL;
    options.devices = 2;
    options.policy = ACS_POLICY_SINGLE;
    options.pool = ACS_POOL_ON;
    options.executors = 4;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    unsigned char *x = filled(context, 0, 5, (size_t)WIDE * (ROWS_MOST + 1));
    atomic_store_explicit(&g_met, 0, memory_order_relaxed); /* nobody looks yet */
    for (int i = 0; i < 2; i++) {
        unsigned char *column = x + (size_t)i * COLUMNS;
        acs_attributes on = ACS_ON(0);
        assert_true(ACS_LAUNCH_WITH(context, on, &g_meet, 1, 1, 0, ACS_ARGS(column),
                                    ACS_USES(ACS_TILE_OUT(column, COLUMNS, ROWS_MOST + 1, WIDE))) > 0);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* As two columns of a matrix, one of which is the CPU's while a device writes the other. */
static void what_lies_between_rows_stays_the_programs(void **state)
{
    (void)state;
    acs_context *context = open_devices(2, ACS_POLICY_SINGLE);
    unsigned char *x = block_of(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, 3 * WIDE);
    memset(x, 1, (size_t)3 * WIDE);
    assert_int_equal(acs_wait_range(context, x + COLUMNS, WIDE - COLUMNS, ACS_UPDATE), ACS_OK);
    assert_int_equal(acs_wait(context, touch(context, x, ACS_WRITE, 3, WIDE)), ACS_OK);
    memset(x + COLUMNS, 2, WIDE - COLUMNS);
    assert_int_equal(acs_wait_range(context, x, (size_t)3 * WIDE, ACS_READ), ACS_OK);
    for (size_t i = 0; i < (size_t)3 * WIDE; i++)
        assert_int_equal(x[i], i % WIDE < COLUMNS ? 9 : i < WIDE ? 2 : 1);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------------ waits */

/*
 * As conjugate gradients: large blocks on all devices give parts of a vector, sums over that are waited for, and all
 * that is small stays together. When ops retire makes no difference to where the next ones run.
 */
static void who_waits_leaves_blocks_where_they_are(void **state)
{
    (void)state;
    acs_context *context = open_devices(2, ACS_POLICY_AUTO);
    unsigned char *a[PARTS], *p = filled(context, 0, 1, BYTES), *r = filled(context, 0, 2, BYTES), out[16], wanted = 1;
    unsigned char *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    unsigned char *sum = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, sizeof out);
    uint64_t before = 0;
    for (int k = 0; k < PARTS; k++)
        a[k] = filled(context, k % 2, k, LARGE);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int k = 0; k < PARTS; k++)
            add(context, ACS_ANY_DEVICE, y + k * PART, p, a[k], PART, BYTES, LARGE);
        add(context, ACS_ANY_DEVICE, sum, p, y, sizeof out, BYTES, BYTES);
        assert_int_equal(acs_wait(context, acs_memcpy(context, out, sum, sizeof out)), ACS_OK);
        assert_int_equal(out[0], (unsigned char)(2 * wanted));
        add(context, ACS_ANY_DEVICE, r, p, p, BYTES, BYTES, BYTES); /* independent of each other: */
        add(context, ACS_ANY_DEVICE, p, p, y, BYTES, BYTES, BYTES); /* neither goes elsewhere for that */
        wanted = (unsigned char)(2 * wanted);
        const acs_statistics stats = statistics_of(context);
        if (turn > 1 && stats.transfer_bytes - before != BYTES + BYTES / 2)
            fail_msg("turn %d: %d bytes", turn, (int)(stats.transfer_bytes - before));
        before = stats.transfer_bytes;
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------- statistics */

/*
 * What ACS_STATS writes as a context closes in which device 0 ran one op, device 1 two, behind a copy of what they
 * read.
 */
static void report_of(int64_t devices, char *text, size_t bytes)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    FILE *file = tmpfile();
    options.devices = devices;
    options.policy = ACS_POLICY_SINGLE;
    options.pool = ACS_POOL_ON;
    options.stats = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    unsigned char *x = filled(context, 0, 1, BYTES), *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    for (int i = 0; i < 2; i++)
        add(context, (int)devices - 1, y, x, x, BYTES, BYTES, BYTES);
    assert_int_equal(acs_sync(context), ACS_OK);
    const int errors = dup(STDERR_FILENO);
    assert_true(file && errors >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    acs_status status = acs_close(context);
    assert_true(dup2(errors, STDERR_FILENO) >= 0 && close(errors) == 0);
    assert_int_equal(status, ACS_OK);
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
}

static void the_report_says_what_each_device_was_given(void **state)
{
    (void)state;
    char text[4096];
    report_of(2, text, sizeof text);
    if (!strstr(text, "acs: stats: ops by device: 1, 3; 1 transfers of 4096 bytes in all\n"))
        fail_msg("%s", text);
    report_of(1, text, sizeof text);
    assert_null(strstr(text, "by device"));
}

/* -------------------------------------------------------------------------------------------------------- hand-over */

/* What a foreign stream may write from then on is nowhere else: with its footprint given, computed, or not known. */
static size_t footprint_of(const acs_footprint_input *input, acs_segment *out, size_t room)
{
    if (room)
        out[0] = ACS_INOUT(input->user, BYTES);
    return 1;
}

static void a_foreign_stream_gets_what_it_may_write(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        acs_context *context = open_devices(2, ACS_POLICY_SINGLE);
        unsigned char *x = block_of(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, BYTES);
        unsigned char *y = block_of(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, BYTES);
        const acs_uses uses[] = {ACS_USES(ACS_INOUT(x, BYTES)), ACS_USES(ACS_IN(y, BYTES), ACS_OUT(x, BYTES)),
                                 {NULL, 0, footprint_of, x, 0}, {NULL, 0, NULL, NULL, 1}};
        memset(x, 1, BYTES);
        add(context, 1, y, x, x, BYTES, BYTES, BYTES);
        assert_int_equal(acs_stream_after(context, NULL, uses[way]), ACS_OK);
        memset(x, 2, BYTES); /* as that stream would */
        add(context, 1, y, x, x, BYTES, BYTES, BYTES);
        assert_int_equal(acs_wait_range(context, y, BYTES, ACS_READ), ACS_OK);
        if (y[0] != 4 || y[BYTES - 1] != 4)
            fail_msg("way %d: device 1 has found %d", way, y[0] / 2);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_parts_come_in_one_copy),
        cmocka_unit_test(of_tiles_only_their_rows_travel),
        cmocka_unit_test(columns_of_one_device_are_written_at_once),
        cmocka_unit_test(what_lies_between_rows_stays_the_programs),
        cmocka_unit_test(who_waits_leaves_blocks_where_they_are),
        cmocka_unit_test(the_report_says_what_each_device_was_given),
        cmocka_unit_test(a_foreign_stream_gets_what_it_may_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

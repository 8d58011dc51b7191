/*
 * Wrong footprints, planted in launches of right kernels: ACS_CHECK=reads finds each of them, names the segment or the
 * bytes, and says nothing of the right ones. On the host and the sim backend; on blocks of acs_malloc, of ACS_LAZY, and
 * on registered memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READS "reads bytes outside its footprint,"
#define OUTSIDE "outside its footprint,"

/* Items of an array, of which the kernels use the first half; bytes of that half. */
enum { ITEMS = 512, USED = 256, BYTES = USED * sizeof(float) };
/* A tile in such an array. */
enum { ROWS = 8, COLUMNS = 16, PITCH_ITEMS = 32, ROW = COLUMNS * sizeof(float), PITCH = PITCH_ITEMS * sizeof(float) };

typedef struct arrays {
    float *x, *y, *z; /* read; written; read and written */
    int *lengths;     /* numbers of items, from 2 on */
    float **table;    /* pointers to x and y */
} arrays;

static void update_body(const acs_grid *grid, void *const *args)
{
    const float *x = *(float **)args[0];
    float *y = *(float **)args[1], *z = *(float **)args[2];
    (void)grid;
    for (int i = 0; i < USED; i++) {
        y[i] = 2 * x[i] + z[i];
        z[i] += x[i] + 1;
    }
}

static void tile_body(const acs_grid *grid, void *const *args)
{
    const float *x = *(float **)args[0];
    float *y = *(float **)args[1];
    (void)grid;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        y[i / COLUMNS * PITCH_ITEMS + i % COLUMNS] = 3 * x[i / COLUMNS * PITCH_ITEMS + i % COLUMNS];
}

/* y becomes the sum of as many items of x as the first length says. */
static void sum_body(const acs_grid *grid, void *const *args)
{
    const float *x = *(float **)args[0];
    float *y = *(float **)args[1];
    const int *lengths = *(int **)args[2];
    (void)grid;
    for (int i = 0; i < USED; i++)
        y[i] = 0;
    for (int i = 0; i < lengths[0]; i++)
        y[0] += x[i];
}

/* The same as update, but finds x and y in a table. */
static void through_table_body(const acs_grid *grid, void *const *args)
{
    float *const *table = *(float ***)args[0];
    (void)grid;
    for (int i = 0; i < USED; i++)
        table[1][i] = 5 * table[0][i];
}

static const acs_kernel g_update = ACS_KERNEL_HOST_INIT("update", update_body);
static const acs_kernel g_tile = ACS_KERNEL_HOST_INIT("tile", tile_body);
static const acs_kernel g_sum = ACS_KERNEL_HOST_INIT("sum", sum_body);
static const acs_kernel g_through_table = ACS_KERNEL_HOST_INIT("through table", through_table_body);

/* Launches with footprints: `n` is the number of the mistake; 0 is the right one. @return the text that tells of it. */
static const char *launch_update(acs_context *context, const arrays *a, int n)
{
    const acs_segment x = ACS_IN(a->x, BYTES), y = ACS_OUT(a->y, BYTES), z = ACS_INOUT(a->z, BYTES);
    const struct {
        acs_segment segments[4];
        const char *says;
    } footprints[] = {
        {{x, y, z}, NULL},
        {{y, z}, READS " from 'a->x' on, within 1024 bytes"},
        {{x, z}, "changed 1024 bytes " OUTSIDE " in 1 piece, from 'a->y' on, within 1024 bytes"},
        {{x, y}, "bytes " OUTSIDE " in 1 piece, from 'a->z' on, within 1024 bytes"},
        {{x, y, ACS_IN(a->z, BYTES)}, "bytes of segment 2, which is in; the first lie 0 bytes behind"},
        {{x, y, ACS_OUT(a->z, BYTES)}, "reads old bytes among 1024 of 1024 bytes of segment 2, which is out"},
        {{x, ACS_IN(a->y, BYTES), z}, "changed 1024 of 1024 bytes of segment 1, which is in"},
        {{ACS_OUT(a->x, BYTES), y, z},
         "reads old bytes among 1024 of 1024 bytes of segment 0, which is out; the first lie 0 bytes behind its "
         "beginning: is it in?"},
        {{ACS_OUT(a->x, BYTES), ACS_IN(a->y, BYTES), z}, "of segment 1, which is in"},
        {{ACS_IN(a->x, BYTES - 4), y, z}, READS " from 'a->x' + 1020 bytes on, within 4 bytes"},
        {{ACS_IN(a->x, BYTES - 1), y, z}, READS " from 'a->x' + 1023 bytes on, within 1 bytes"},
        {{ACS_IN(a->x, USED), y, z}, READS " from 'a->x' + 256 bytes on, within 768 bytes"},
        {{ACS_IN(a->x + 1, BYTES), y, z}, READS " from 'a->x' on, within 4 bytes"},
        {{x, ACS_OUT(a->y, BYTES - 4), z}, "changed 4 bytes " OUTSIDE " in 1 piece, from 'a->y' + 1020 bytes"},
        {{x, ACS_OUT(a->y, USED), z}, "changed 768 bytes " OUTSIDE " in 1 piece, from 'a->y' + 256 bytes"},
        {{x, ACS_OUT(a->y + 1, BYTES), z}, "changed 4 bytes " OUTSIDE " in 1 piece, from 'a->y' on, within 4 bytes"},
        {{x, ACS_OUT(a->y, BYTES + 4), z},
         "did not write 4 of 1028 bytes of segment 1, which is out; the first lie 1024"},
        {{x, y, ACS_INOUT(a->z, BYTES / 2)}, "bytes " OUTSIDE " in 1 piece, from 'a->z' + 512 bytes"},
        {{x, y, ACS_INOUT(a->z + 1, BYTES)}, "bytes " OUTSIDE " in 1 piece, from 'a->z' on, within 4 bytes"},
        {{x, y, ACS_INOUT(a->z, BYTES - 4)}, "bytes " OUTSIDE " in 1 piece, from 'a->z' + 1020 bytes"},
        {{ACS_IN(a->y, BYTES), ACS_OUT(a->x, BYTES), z}, "changed 1024 of 1024 bytes of segment 0, which is in"},
    };
    enum { MOST = sizeof footprints / sizeof *footprints };
    if (n >= MOST)
        return "";
    size_t count = 0;
    while (count < 4 && footprints[n].segments[count].row_bytes)
        count++;
    assert_true(ACS_LAUNCH_ON(context, &g_update, 1, 1, 0, ACS_ARGS(a->x, a->y, a->z),
                              ACS_USES_LIST(footprints[n].segments, count)) > 0);
    return footprints[n].says;
}

static const char *launch_tile(acs_context *context, const arrays *a, int n)
{
    const acs_segment x = ACS_TILE_IN(a->x, ROW, ROWS, PITCH), y = ACS_TILE_OUT(a->y, ROW, ROWS, PITCH);
    const struct {
        acs_segment segments[2];
        const char *says;
    } footprints[] = {
        {{x, y}, NULL},
        {{ACS_TILE_IN(a->x, ROW, ROWS - 1, PITCH), y}, READS " from 'a->x' + 896 bytes on, within 64 bytes"},
        {{ACS_TILE_IN(a->x, ROW, ROWS, ROW), y}, READS " from 'a->x' + 512 bytes on, within 448 bytes"},
        {{ACS_TILE_IN(a->x, ROW - 4, ROWS, PITCH), y}, READS " from 'a->x' + 60 bytes on, within 900 bytes"},
        {{x, ACS_TILE_OUT(a->y, ROW, ROWS, ROW)}, "changed 256 bytes " OUTSIDE " in 4 pieces, from 'a->y' + 512 bytes"},
        {{x, ACS_TILE_OUT(a->y, ROW, ROWS - 1, PITCH)},
         "changed 64 bytes " OUTSIDE " in 1 piece, from 'a->y' + 896 bytes"},
        {{x, ACS_TILE_OUT(a->y, ROW, ROWS, PITCH + 4)},
         "changed 112 bytes " OUTSIDE " in 7 pieces, from 'a->y' + 128 bytes on"},
        {{x, ACS_TILE_OUT(a->y, ROW + 4, ROWS, PITCH)}, "did not write 32 of 544 bytes of segment 1"},
    };
    enum { MOST = sizeof footprints / sizeof *footprints };
    if (n >= MOST)
        return "";
    assert_true(ACS_LAUNCH_ON(context, &g_tile, 1, 1, 0, ACS_ARGS(a->x, a->y),
                              ACS_USES_LIST(footprints[n].segments, 2)) > 0);
    return footprints[n].says;
}

static const char *launch_sum(acs_context *context, const arrays *a, int n)
{
    const acs_segment x = ACS_IN(a->x, BYTES), y = ACS_OUT(a->y, BYTES), lengths = ACS_IN(a->lengths, sizeof(int));
    const struct {
        acs_segment segments[3];
        const char *says;
    } footprints[] = {
        {{x, y, lengths}, NULL},
        {{x, y}, READS " from 'a->lengths' on, within 4 bytes"},
        {{ACS_IN(a->x, 100 * sizeof(float) - 4), y, lengths}, READS " from 'a->x' + 396 bytes on, within 4 bytes"},
    };
    enum { MOST = sizeof footprints / sizeof *footprints };
    if (n >= MOST)
        return "";
    assert_true(ACS_LAUNCH_ON(context, &g_sum, 1, 1, 0, ACS_ARGS(a->x, a->y, a->lengths),
                              ACS_USES_LIST(footprints[n].segments, footprints[n].segments[2].row_bytes ? 3 : 2)) > 0);
    return footprints[n].says;
}

static const char *launch_through_table(acs_context *context, const arrays *a, int n)
{
    const acs_segment x = ACS_IN(a->x, BYTES), y = ACS_OUT(a->y, BYTES), table = ACS_IN(a->table, 2 * sizeof(float *));
    const struct {
        acs_segment segments[3];
        const char *says;
    } footprints[] = {
        {{table, x, y}, NULL},
        {{table, y}, READS " from 0x"},
        {{table, x}, "changed 1024 bytes " OUTSIDE " in 1 piece, from 0x"},
    };
    enum { MOST = sizeof footprints / sizeof *footprints };
    if (n >= MOST)
        return "";
    assert_true(ACS_LAUNCH_ON(context, &g_through_table, 1, 1, 0, ACS_ARGS(a->table),
                              ACS_USES_LIST(footprints[n].segments, footprints[n].segments[2].row_bytes ? 3 : 2)) > 0);
    return footprints[n].says;
}

static const char *(*const g_launches[])(acs_context *, const arrays *, int) = {launch_update, launch_tile, launch_sum,
                                                                                launch_through_table};

enum { LAUNCHES = sizeof g_launches / sizeof *g_launches };

static acs_context *open_checking(int backend, int64_t check)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.backend = backend;
    options.check = check;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* Set all arrays to values that are neither 0 nor the same, by ops, since blocks may be lazy. */
static void fill(acs_context *context, const arrays *a)
{
    float values[ITEMS];
    float *const table[] = {a->x, a->y};
    const int lengths[] = {100, 200};
    for (int i = 0; i < ITEMS; i++)
        values[i] = (float)i * 0.25f + 1;
    assert_true(acs_memcpy(context, a->x, values, sizeof values) > 0);
    assert_true(acs_memcpy(context, a->y, values, sizeof values) > 0);
    assert_true(acs_memcpy(context, a->z, values, sizeof values) > 0);
    assert_true(acs_memcpy(context, a->lengths, lengths, sizeof lengths) > 0);
    assert_true(acs_memcpy(context, a->table, table, sizeof table) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
}

/* Launch with each footprint, from the same bytes. @return how many mistakes there were. */
static int find_all(acs_context *context, const arrays *a, int launch)
{
    for (int n = 0;; n++) {
        acs_error error = {.size = sizeof error};
        fill(context, a);
        const char *says = g_launches[launch](context, a, n);
        if (says && !*says)
            return n - 1;
        assert_int_equal(acs_sync(context), says ? ACS_ERR_CHECK : ACS_OK);
        if (says && (acs_context_error(context, &error) != ACS_ERR_CHECK || !strstr(error.text, says)))
            fail_msg("mistake %d of launch %d: '%s' is not in '%s'", n, launch, says, error.text);
        assert_int_equal(acs_clear(context), ACS_OK);
    }
}

static arrays arrays_of(acs_context *context, int kind)
{
    const size_t bytes = ITEMS * sizeof(float);
    return (arrays){.x = (void *)block_of(context, kind, bytes),
                    .y = (void *)block_of(context, kind, bytes),
                    .z = (void *)block_of(context, kind, bytes),
                    .lengths = (void *)block_of(context, kind, 64),
                    .table = (void *)block_of(context, kind, 64)};
}

static void all_mistakes_are_found(void **state)
{
    static const int backends[] = {ACS_BACKEND_HOST, ACS_BACKEND_SIM};
    static const int kinds[] = {ACS_MEMORY_DEVICE, ACS_MEMORY_HOST, ACS_MEMORY_DEVICE | ACS_RELOCATABLE};
    (void)state;
    for (int b = 0; b < 2; b++)
        for (int k = 0; k < 3; k++) {
            acs_context *context = open_checking(backends[b], ACS_CHECK_READS);
            const arrays a = arrays_of(context, kinds[k]);
            int found = 0;
            for (int launch = 0; launch < LAUNCHES; launch++)
                found += find_all(context, &a, launch);
            assert_int_equal(found, 31);
            assert_int_equal(acs_close(context), ACS_OK);
        }
}

static int write_three(void *closure)
{
    float *y = *(float **)closure;
    for (int i = 0; i < 3; i++)
        y[i] = -1;
    return 0;
}

static int call_three(const acs_call_env *env, void *closure)
{
    (void)env;
    return write_three(closure);
}

static acs_op call(acs_context *context, float *const *closure, acs_uses uses)
{
    static const acs_site site = {"call three", __FILE__, __LINE__};
    const acs_call_params params = {.size = sizeof params, .function = call_three, .closure = closure,
                                    .closure_bytes = sizeof *closure, .uses = uses, .site = &site};
    return acs_call(context, &params);
}

/* Host functions and library calls run once: only what they write is looked at. */
static void what_other_ops_write_unnamed_is_found(void **state)
{
    (void)state;
    for (int workers = 0; workers < 2; workers++) {
        acs_options options = host_options();
        acs_context *context = NULL;
        acs_error error = {.size = sizeof error};
        options.check = ACS_CHECK_WRITES;
        options.workers = workers;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        const arrays a = arrays_of(context, ACS_MEMORY_HOST);
        for (int items = 2; items <= 3; items++)
            for (int calls = 0; calls < 2; calls++) {
                fill(context, &a);
                const acs_uses uses = ACS_USES(ACS_OUT(a.y, (size_t)items * sizeof *a.y));
                const acs_op op = calls ? call(context, &a.y, uses)
                                        : acs_host(context, write_three, &a.y, sizeof a.y, uses);
                assert_true(op > 0);
                assert_int_equal(acs_sync(context), items == 2 ? ACS_ERR_CHECK : ACS_OK);
                if (items == 2) {
                    assert_int_equal(acs_context_error(context, &error), ACS_ERR_CHECK);
                    assert_int_equal(error.op, op);
                    assert_non_null(strstr(error.text, calls ? "call three" : "write_three"));
                    assert_non_null(strstr(error.text, "changed 4 bytes " OUTSIDE " in 1 piece, from 0x"));
                }
                assert_int_equal(acs_clear(context), ACS_OK);
            }
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* y becomes x, byte by byte, for which `mask` is not 0; without a mask all of it. */
static void copy_body(const acs_grid *grid, void *const *args)
{
    const unsigned char *x = *(unsigned char **)args[0], *mask = *(unsigned char **)args[2];
    unsigned char *y = *(unsigned char **)args[1];
    (void)grid;
    for (int i = 0; i < USED; i++)
        if (!mask || mask[i])
            y[i] = x[i];
}

static const acs_kernel g_copy = ACS_KERNEL_HOST_INIT("copy", copy_body);

static const unsigned char g_read_only[USED] = {1, 2, 3};

static acs_status launch_copy(acs_context *context, const unsigned char *x, unsigned char *y, const unsigned char *mask,
                              acs_uses uses)
{
    assert_true(ACS_LAUNCH_ON(context, &g_copy, 1, 1, 0, ACS_ARGS(x, y, mask), uses) > 0);
    const acs_status status = acs_sync(context);
    assert_int_equal(acs_clear(context), ACS_OK);
    return status;
}

/* Memory that a launch only reads may be read-only, or not be there at all if the kernel leaves it alone. */
static void memory_that_is_only_read_is_left_alone(void **state)
{
    (void)state;
    for (int64_t check = ACS_CHECK_WRITES; check <= ACS_CHECK_ALL; check++) {
        acs_context *context = open_checking(ACS_BACKEND_HOST, check);
        unsigned char *y = block_of(context, ACS_MEMORY_DEVICE, USED), *none = NULL;
        assert_int_equal(launch_copy(context, g_read_only, y, none, ACS_USES(ACS_IN(g_read_only, USED), ACS_OUT(y, USED),
                                                                             ACS_IN((void *)4096, 64))), ACS_OK);
        assert_memory_equal(y, g_read_only, USED);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* Bytes of any value are seen, wherever they lie in their words. */
static void reads_of_bytes_of_any_value_are_found(void **state)
{
    (void)state;
    acs_context *context = open_checking(ACS_BACKEND_HOST, ACS_CHECK_READS);
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE, USED), *y = block_of(context, ACS_MEMORY_DEVICE, USED);
    unsigned char *mask = block_of(context, ACS_MEMORY_DEVICE, USED), *none = NULL;
    for (int value = 0; value < 256; value++) {
        assert_true(acs_memset(context, x, value, USED) > 0);
        assert_int_equal(launch_copy(context, x, y, none, ACS_USES(ACS_OUT(y, USED))), ACS_ERR_CHECK);
        for (size_t lacks = 1; lacks < 8 && value > 1; lacks++)
            assert_int_equal(launch_copy(context, x, y, none, ACS_USES(ACS_IN(x, USED - lacks), ACS_OUT(y, USED))),
                             ACS_ERR_CHECK);
    }
    uint16_t halves[USED / 2]; /* numbers of two bytes, of which the last is not named */
    for (int i = 0; i < USED / 2; i++)
        halves[i] = (uint16_t)(9 + i);
    assert_true(acs_memcpy(context, x, halves, USED) > 0);
    assert_int_equal(launch_copy(context, x, y, none, ACS_USES(ACS_IN(x, USED - 2), ACS_OUT(y, USED))), ACS_ERR_CHECK);
    assert_true(acs_memset(context, mask, 1, USED) > 0);
    assert_true(acs_memset(context, x, 77, USED) > 0);
    assert_int_equal(launch_copy(context, x, y, mask, ACS_USES(ACS_IN(x, USED), ACS_OUT(y, USED))), ACS_ERR_CHECK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Reads of whole numbers that are 0 or -1 are found, at even and at odd places. */
static void reads_of_zeros_are_found(void **state)
{
    static const int values[] = {0, -1, 1};
    (void)state;
    acs_context *context = open_checking(ACS_BACKEND_HOST, ACS_CHECK_READS);
    int *x = (void *)block_of(context, ACS_MEMORY_DEVICE, USED);
    unsigned char *y = block_of(context, ACS_MEMORY_DEVICE, USED), *none = NULL;
    for (int v = 0; v < 3; v++)
        for (size_t lacks = 1; lacks < 4; lacks++) {
            for (int i = 0; i < USED / 4; i++)
                assert_true(acs_memcpy(context, &x[i], &values[v], sizeof values[v]) > 0);
            const acs_uses uses = ACS_USES(ACS_IN(x, USED - 4 * lacks), ACS_OUT(y, USED));
            assert_int_equal(launch_copy(context, (void *)x, y, none, uses), ACS_ERR_CHECK);
        }
    assert_int_equal(acs_close(context), ACS_OK);
}

typedef struct allocating {
    acs_context *context;
    uint32_t wrong;
} allocating;

static void *allocate_and_launch(void *argument)
{
    allocating *a = argument;
    const unsigned char *none = NULL;
    for (int i = 0; i < 100; i++) {
        void *x = NULL, *y = NULL;
        a->wrong += acs_malloc(a->context, USED, ACS_MEMORY_DEVICE, &x) != ACS_OK;
        a->wrong += acs_malloc(a->context, USED, ACS_MEMORY_DEVICE, &y) != ACS_OK;
        a->wrong += !acs_memset(a->context, x, i, USED);
        a->wrong += !ACS_LAUNCH_ON(a->context, &g_copy, 1, 1, 0, ACS_ARGS(x, y, none),
                                   ACS_USES(ACS_IN(x, USED), ACS_OUT(y, USED)));
        a->wrong += !acs_free(a->context, x) + !acs_free(a->context, y);
    }
    return NULL;
}

/* Threads take and free blocks while others' launches are looked at. */
static void blocks_come_and_go_meanwhile(void **state)
{
    (void)state;
    acs_context *context = open_checking(ACS_BACKEND_HOST, ACS_CHECK_READS);
    allocating threads[3] = {{context, 0}, {context, 0}, {context, 0}};
    pthread_t ids[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, allocate_and_launch, &threads[i]), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(ids[i], NULL), 0);
        assert_int_equal(threads[i].wrong, 0);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void memory_that_cannot_be_is_not_registered(void **state)
{
    (void)state;
    acs_context *context = open_checking(ACS_BACKEND_HOST, ACS_CHECK_READS);
    static char memory[64];
    assert_int_equal(acs_check_register(context, NULL, 8), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_check_register(context, memory, 0), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_check_register(context, memory, SIZE_MAX / 2), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_check_register(context, memory, sizeof memory), ACS_OK);
    assert_int_equal(acs_check_unregister(context, memory + 1), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_check_unregister(context, memory), ACS_OK);
    assert_int_equal(acs_check_unregister(context, memory), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_mistakes_are_found),
        cmocka_unit_test(what_other_ops_write_unnamed_is_found),
        cmocka_unit_test(memory_that_is_only_read_is_left_alone),
        cmocka_unit_test(reads_of_bytes_of_any_value_are_found),
        cmocka_unit_test(reads_of_zeros_are_found),
        cmocka_unit_test(blocks_come_and_go_meanwhile),
        cmocka_unit_test(memory_that_cannot_be_is_not_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

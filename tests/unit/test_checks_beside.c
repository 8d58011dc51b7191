/*
 * ACS_CHECK=writes, reads and all beside what other threads do: their ops, their blocks, and memory that they touch by
 * themselves. Nothing of that is reported, lost or changed. And which memory can be registered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"
#include "report_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };

static acs_context *open_checking(int64_t check)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.check = check;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* y becomes x. */
static void copy_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    memcpy(*(unsigned char **)args[1], *(unsigned char **)args[0], BYTES);
}

static const acs_kernel g_copy = ACS_KERNEL_HOST_INIT("copy", copy_body);

typedef struct allocating {
    acs_context *context;
    uint32_t wrong;
} allocating;

static void *allocate_and_launch(void *argument)
{
    allocating *a = argument;
    for (int i = 0; i < 100; i++) {
        void *x = NULL, *y = NULL;
        a->wrong += acs_malloc(a->context, BYTES, ACS_MEMORY_DEVICE, &x) != ACS_OK;
        a->wrong += acs_malloc(a->context, BYTES, ACS_MEMORY_DEVICE, &y) != ACS_OK;
        a->wrong += !acs_memset(a->context, x, i, BYTES);
        a->wrong += !ACS_LAUNCH_ON(a->context, &g_copy, 1, 1, 0, ACS_ARGS(x, y),
                                   ACS_USES(ACS_IN(x, BYTES), ACS_OUT(y, BYTES)));
        a->wrong += !acs_free(a->context, x) + !acs_free(a->context, y);
    }
    return NULL;
}

/* Threads take and free blocks while others' launches are looked at. */
static void blocks_come_and_go_meanwhile(void **state)
{
    (void)state;
    acs_context *context = open_checking(ACS_CHECK_READS);
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

/* What a thread does by itself with pinned memory meanwhile. It is done in the kernel, so that no run misses it. */
static struct {
    unsigned char *read, *written;
    int runs, wrong;
} g_beside;

static void beside_body(const acs_grid *grid, void *const *args)
{
    copy_body(grid, args);
    for (int i = 0; i < BYTES; i++)
        g_beside.wrong += g_beside.read[i] != 0x41;
    g_beside.written[0] = (unsigned char)++g_beside.runs;
}

static const acs_kernel g_with_beside = ACS_KERNEL_HOST_INIT("copy, beside a thread", beside_body);

/* Another thread may read what the launch reads, or does not name, and what it writes itself is not lost. */
static void pinned_memory_stays_as_threads_know_it(void **state)
{
    (void)state;
    for (int64_t check = ACS_CHECK_WRITES; check <= ACS_CHECK_ALL; check++)
        for (int named = 0; named < 2; named++) {
            acs_context *context = open_checking(check);
            unsigned char *x = block_of(context, ACS_MEMORY_HOST, BYTES), *y = block_of(context, ACS_MEMORY_HOST, BYTES);
            g_beside.read = x;
            g_beside.written = block_of(context, ACS_MEMORY_HOST, BYTES);
            g_beside.runs = g_beside.wrong = 0;
            assert_true(acs_memset(context, x, 0x41, BYTES) > 0);
            assert_true(acs_memset(context, y, 7, BYTES) > 0);
            assert_true(acs_memset(context, g_beside.written, 0, BYTES) > 0);
            const acs_segment segments[] = {ACS_OUT(y, BYTES), ACS_IN(x, BYTES)};
            assert_true(ACS_LAUNCH_ON(context, &g_with_beside, 1, 1, 0, ACS_ARGS(x, y),
                                      ACS_USES_LIST(segments, named ? 2 : 1)) > 0);
            assert_int_equal(g_beside.written[0], g_beside.runs);
            assert_true(g_beside.runs > 1 || check == ACS_CHECK_WRITES);
            assert_int_equal(g_beside.wrong, 0);
            assert_memory_equal(y, x, BYTES);
            (void)acs_clear(context);
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

/* Rows apart in memory of the process, more than the first list of ranges has room for, beside blocks on both sides. */
static void rows_of_other_memory_are_looked_at(void **state)
{
    (void)state;
    enum { TILE = 200, FAR = 40 };
    acs_context *context = open_checking(ACS_CHECK_WRITES);
    for (int i = 0; i < 8; i++)
        assert_true(acs_memset(context, block_of(context, ACS_MEMORY_DEVICE, BYTES), 0, BYTES) > 0);
    float *rows = calloc(TILE, FAR);
    assert_non_null(rows);
    for (int i = 0; i < 4; i++)
        assert_true(acs_host(context, write_three, &rows, sizeof rows, ACS_USES(ACS_TILE_OUT(rows, 12, TILE, FAR))) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    free(rows);
}

/* ------------------------------------------------------------------------------------------------------------ threads */

/* A kernel that says it runs, and waits to be let go. */
static pthread_mutex_t g_gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool g_runs;

static void gate_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
    atomic_store(&g_runs, true);
    pthread_mutex_lock(&g_gate);
    pthread_mutex_unlock(&g_gate);
}

static const acs_kernel g_wait_at_gate = ACS_KERNEL_HOST_INIT("gate", gate_body);

static void *launch_at_gate(void *context)
{
    return ACS_LAUNCH_ON(context, &g_wait_at_gate, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE) ? context : NULL;
}

/* A launch is looked at, so another thread's that must not wait is refused, before it holds what the first one needs. */
static void a_launch_that_must_not_wait_is_refused_meanwhile(void **state)
{
    (void)state;
    acs_context *context = open_checking(ACS_CHECK_WRITES);
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE, BYTES), *y = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    void *lazy, *launched;
    pthread_t thread;
    assert_int_equal(acs_malloc(context, BYTES, ACS_MEMORY_DEVICE | ACS_LAZY, &lazy), ACS_OK);
    assert_true(acs_memset(context, x, 1, BYTES) > 0);
    const acs_segment segments[] = {ACS_ESCAPES(x), ACS_OUT(y, BYTES)};
    const acs_launch_params params = {.size = sizeof params, .kernel = &g_copy, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                      .args = ACS_ARGS(x, y), .uses = ACS_USES_LIST(segments, 2), .no_wait = 1};
    assert_true(acs_launch(context, &params) > 0);
    pthread_mutex_lock(&g_gate);
    assert_int_equal(pthread_create(&thread, NULL, launch_at_gate, context), 0);
    while (!atomic_load(&g_runs))
        sched_yield();
    assert_int_equal(acs_launch(context, &params), 0);
    assert_error(ACS_ERR_FULL, "another thread");
    pthread_mutex_unlock(&g_gate);
    assert_int_equal(pthread_join(thread, &launched), 0);
    assert_ptr_equal(launched, context);
    assert_true(acs_launch(context, &params) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void memory_that_cannot_be_is_not_registered(void **state)
{
    (void)state;
    static char memory[64];
    for (int check = ACS_CHECK_OFF; check <= ACS_CHECK_ALL; check++) {
        acs_context *context = open_checking(check);
        const acs_status unknown = check < ACS_CHECK_WRITES ? ACS_OK : ACS_ERR_ARGUMENT;
        assert_int_equal(acs_check_register(context, NULL, 8), ACS_ERR_ARGUMENT);
        assert_int_equal(acs_check_register(context, memory, 0), ACS_ERR_ARGUMENT);
        assert_int_equal(acs_check_register(context, memory, SIZE_MAX / 2), ACS_ERR_ARGUMENT);
        assert_int_equal(acs_check_register(context, memory, sizeof memory), ACS_OK);
        assert_int_equal(acs_check_unregister(context, memory + 1), unknown);
        assert_int_equal(acs_check_unregister(context, memory), ACS_OK);
        assert_int_equal(acs_check_unregister(context, memory), unknown);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_and_go_meanwhile),
        cmocka_unit_test(pinned_memory_stays_as_threads_know_it),
        cmocka_unit_test(rows_of_other_memory_are_looked_at),
        cmocka_unit_test(a_launch_that_must_not_wait_is_refused_meanwhile),
        cmocka_unit_test(memory_that_cannot_be_is_not_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

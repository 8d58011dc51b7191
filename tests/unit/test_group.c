/*
 * Groups through the public API: what is held and refused, and that memory is shared as planned. On the host backend, with
 * and without threads. What ops reach, and random programs: test_group_reach.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "group_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static int go_wrong(void *closure)
{
    (void)closure;
    return -5;
}

static int count_up(void *closure)
{
    ++**(int **)closure;
    return 0;
}

/* All copies in, all kernels, all copies out, all frees: as a program is written that knows nothing of groups. */
static void streams(acs_context *context, unsigned char in[6][BYTES], unsigned char out[6][BYTES])
{
    unsigned char *x[6], *y[6];
    for (int i = 0; i < 6; i++) {
        x[i] = block_of(context, LAZY, BYTES);
        y[i] = block_of(context, LAZY, BYTES);
        assert_true(acs_memcpy(context, x[i], in[i], BYTES) & ACS_OP_HELD);
    }
    for (int i = 0; i < 6; i++)
        assert_true(launch_mix(context, &(mix_args){(uint32_t)i, BYTES, y[i], x[i], x[i]}) & ACS_OP_HELD);
    for (int i = 0; i < 6; i++)
        assert_true(acs_memcpy(context, out[i], y[i], BYTES) & ACS_OP_HELD);
    for (int i = 0; i < 6; i++)
        assert_true(acs_free(context, x[i]) && acs_free(context, y[i]));
}

static void blocks_have_memory_while_they_are_used(void **state)
{
    (void)state;
    static const uint64_t peaks[] = {12 * BYTES, 2 * BYTES, 4 * BYTES, 6 * BYTES};
    static unsigned char in[6][BYTES], out[6][BYTES];
    for (uint32_t slots = 0; slots < 4; slots++)
        for (int64_t workers = 0; workers < 2; workers++) {
            acs_context *context = open_with(0, workers, ACS_POOL_ON);
            acs_group_report r;
            memset(out, 0, sizeof out);
            for (int i = 0; i < 6; i++)
                memset(in[i], 10 * i + 1, BYTES);
            assert_int_equal(acs_group_begin(context, 0), ACS_OK);
            streams(context, in, out);
            assert_int_equal(live(context), 0);
            assert_int_equal(submit(context, slots, &r), ACS_OK);
            assert_int_equal(r.ops, 18);
            assert_int_equal(r.blocks, 12);
            assert_int_equal(r.memory_sum, 12 * BYTES);
            assert_int_equal(r.memory_peak, peaks[slots]);
            assert_int_equal(r.memory_bound, peaks[slots]);
            assert_int_equal(r.slots, slots ? slots : 6);
            assert_int_equal(r.threads, 64 * r.slots);
            assert_int_equal(r.shared_bytes, 32 * r.slots);
            assert_int_equal(r.registers, 0); /* a CPU's are not told */
            assert_int_equal(r.last - r.first + 1, 18);
            assert_int_equal(acs_wait(context, r.last), ACS_OK);
            assert_int_equal(acs_sync(context), ACS_OK);
            for (int i = 0; i < 6; i++)
                assert_int_equal(out[i][BYTES - 1], (unsigned char)(4 * (10 * i + 1) + i));
            assert_int_equal(live(context), 0);
            assert_int_equal(acs_close(context), ACS_OK);
        }
}

static void waits_and_what_cannot_be_held_are_refused(void **state)
{
    (void)state;
    acs_context *context = open_with(0, 0, ACS_POOL_ON), *other = open_with(0, 0, ACS_POOL_ON);
    unsigned char *a = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    acs_op before = acs_memset(context, a, 1, BYTES);
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_ERR_STATE);
    assert_int_equal(acs_group_cancel(context), ACS_ERR_STATE);
    assert_int_equal(acs_group_begin(context, ACS_GROUP_OPS_MAX + 1), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_group_begin(context, 3), ACS_OK);
    assert_int_equal(acs_group_begin(context, 0), ACS_ERR_STATE);
    assert_int_equal(acs_group_begin(other, 0), ACS_ERR_STATE);
    assert_int_equal(acs_group_submit(other, NULL, NULL), ACS_ERR_STATE);
    assert_int_equal(acs_memset(other, block_of(other, ACS_MEMORY_DEVICE, 10), 1, 10), 1); /* of another context */

    acs_op held = acs_memset(context, a, 2, BYTES);
    assert_int_equal(held, 1 | ACS_OP_HELD);
    assert_int_equal(acs_wait(context, before), ACS_OK);
    assert_int_equal(acs_wait(context, held), ACS_ERR_STATE);
    assert_int_equal(acs_query(context, held), ACS_ERR_STATE);
    assert_int_equal(acs_sync(context), ACS_ERR_STATE);
    assert_int_equal(acs_wait_range(context, a, 1, ACS_READ), ACS_ERR_STATE);
    assert_int_equal(acs_context_error(context, NULL), ACS_OK); /* waits leave no hole in program order */
    refused(acs_after_stream(context, NULL, ACS_USES_NONE), ACS_ERR_STATE, "held in a group");
    assert_int_equal(acs_context_error(context, NULL), ACS_ERR_STATE);
    refused(acs_on_retire(context, before, NULL, NULL), ACS_ERR_STATE, "acs_group_submit comes first");
    assert_int_equal(acs_stream_after(context, NULL, ACS_USES_NONE), ACS_ERR_STATE);
    assert_true(acs_memset(context, a, 3, BYTES) && acs_memset(context, a, 4, 10));
    refused(acs_memset(context, a, 5, 1), ACS_ERR_FULL, "the group holds 3 ops");
    assert_int_equal(a[BYTES - 1], 1);
    const acs_group_params bad = {1, 0, 0};
    assert_int_equal(acs_group_submit(context, &bad, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
    assert_int_equal(acs_wait(context, held), ACS_ERR_STATE);
    (void)acs_sync(context);
    assert_int_equal(a[0], 4);
    assert_int_equal(a[BYTES - 1], 3);
    assert_int_equal(acs_clear(context), ACS_OK); /* of the one that was refused */
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(acs_close(other), ACS_OK);
}

static void op_beyond_a_full_group_is_told_by_sync_too(void **state)
{
    (void)state;
    acs_context *context = open_with(0, 0, ACS_POOL_ON);
    unsigned char *a = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    const acs_op_params no_wait = {.no_wait = 1};
    assert_int_equal(acs_group_begin(context, 1), ACS_OK);
    assert_true(acs_memset(context, a, 2, BYTES) > 0);
    assert_int_equal(acs_memset_op(context, a, 3, BYTES, &no_wait), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_FULL);
    assert_int_equal(acs_context_error(context, NULL), ACS_OK); /* it was asked for */
    refused(acs_memset(context, a, 4, BYTES), ACS_ERR_FULL, "the group holds 1 ops");
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_ERR_FULL);
    assert_int_equal(a[0], 2);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void what_names_a_lazy_block_wrongly_is_refused_when_it_is_launched(void **state)
{
    (void)state;
    acs_context *context = open_with(0, 0, ACS_POOL_ON);
    int zero = 0, *count = &zero;
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    unsigned char *a = block_of(context, LAZY, BYTES), *b = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    refused(acs_host(context, count_up, &count, sizeof(int *), ACS_USES(ACS_IN(a, 1))), ACS_ERR_UNSUPPORTED, "ACS_LAZY");
    refused(acs_memset(context, a + 1, 0, BYTES), ACS_ERR_ARGUMENT, "1 bytes behind");
    assert_true(acs_memset(context, a, 7, BYTES) > 0);
    assert_true(acs_memcpy(context, b, a, BYTES) > 0);
    const uint32_t bad[] = {3, ACS_ARG_VALUE | ACS_POINTER_AT(0), ACS_ARG_POINTERS | ACS_POINTER_AT(sizeof(mix_args) / 8)};
    for (int i = 0; i < 3; i++) {
        const mix_args m = {0, BYTES, b, b, b};
        const acs_arg arg = {&m, sizeof m, bad[i]};
        const acs_launch_params p = {.size = sizeof p, .kernel = &g_mix, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                     .args = {&arg, 1}};
        refused(acs_launch(context, &p), ACS_ERR_ARGUMENT, "argument 0 (from 0) has value");
    }
    assert_true(acs_free(context, a) & ACS_OP_HELD);
    refused(acs_memset(context, a, 0, 1), ACS_ERR_ARGUMENT, "was freed");
    refused(acs_free(context, a), ACS_ERR_ARGUMENT, "freed before");
    refused(acs_free(context, b + 1), ACS_ERR_ARGUMENT, "not the start");
    assert_true(acs_free(context, b) & ACS_OP_HELD);
    refused(acs_free(context, b), ACS_ERR_ARGUMENT, "freed before");
    assert_true(acs_host(context, count_up, &count, sizeof(int *), ACS_USES(ACS_IN(b, 1))) & ACS_OP_HELD);
    assert_true(live(context) > 0); /* b */
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
    assert_int_equal(live(context), 0);
    assert_int_equal(acs_group_begin(context, 0), ACS_OK); /* gets the memory of the one before: closures were copied */
    assert_int_equal(acs_group_cancel(context), ACS_OK);
    (void)acs_sync(context);
    assert_int_equal(b[5], 7); /* host backend: nobody else has it yet */
    assert_int_equal(zero, 1);
    assert_int_equal(acs_close(context), ACS_ERR_UNSUPPORTED); /* the first that was refused */
}

static void cancelled_groups_never_run(void **state)
{
    (void)state;
    acs_context *context = open_with(0, 0, ACS_POOL_ON);
    unsigned char *kept = block_of(context, ACS_MEMORY_DEVICE, BYTES), *old = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    assert_true(acs_memset(context, kept, 1, BYTES) > 0);
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    unsigned char *a = block_of(context, LAZY, BYTES), *lives = block_of(context, LAZY, BYTES);
    assert_true(acs_memset(context, kept, 2, BYTES) && acs_memset(context, a, 2, BYTES));
    assert_true(acs_free(context, a) && acs_free(context, old));
    assert_int_equal(acs_group_cancel(context), ACS_OK);
    assert_true(acs_memset(context, lives, 3, BYTES) > 0);
    assert_true(acs_memcpy(context, kept + 1, lives, 1) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(kept[0], 1);
    assert_int_equal(kept[1], 3);
    assert_int_equal(live(context), 2 * BYTES);
    refused(acs_free(context, a), ACS_ERR_ARGUMENT, "freed before");
    assert_int_equal(acs_group_begin(context, 0), ACS_OK); /* never ended */
    assert_true(acs_memset(context, kept, 2, BYTES) > 0);
    assert_int_equal(acs_close(context), ACS_ERR_ARGUMENT);
}

/* Blocks that were there before, or that stay, are not planned, and keep their contents. */
static void blocks_from_outside_are_used_as_always(void **state)
{
    (void)state;
    acs_context *context = open_with(0, 0, ACS_POOL_ON);
    acs_group_report r;
    unsigned char byte[3] = {0};
    unsigned char *before = block_of(context, LAZY, BYTES);
    assert_true(acs_memset(context, before, 5, BYTES) > 0);
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    unsigned char *inside = block_of(context, LAZY, BYTES), *stays = block_of(context, LAZY, BYTES);
    unsigned char *unused = block_of(context, LAZY, BYTES);
    assert_true(launch_mix(context, &(mix_args){1, BYTES, inside, before, before}) > 0);
    assert_true(launch_mix(context, &(mix_args){2, BYTES, stays, inside, before}) > 0);
    assert_true(acs_free(context, before) && acs_free(context, inside) && acs_free(context, unused));
    assert_int_equal(submit(context, 0, &r), ACS_OK);
    assert_int_equal(r.blocks, 1);
    assert_int_equal(r.memory_peak, BYTES);
    assert_true(acs_memcpy(context, byte, stays, 1) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(byte[0], 21 + 15 + 2);
    assert_int_equal(live(context), BYTES);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void without_room_the_group_stays_and_takes_fewer_slots(void **state)
{
    (void)state;
    enum { LARGE = 1 << 20 };
    static unsigned char in[6][BYTES], out[6][BYTES];
    acs_context *context = open_with(4 * LARGE, 0, ACS_POOL_ON);
    acs_group_report r;
    unsigned char *x[6], *y[6];
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    for (int i = 0; i < 6; i++) {
        x[i] = block_of(context, LAZY, LARGE);
        y[i] = block_of(context, LAZY, LARGE);
        memset(in[i], i, BYTES);
        assert_true(acs_memcpy(context, x[i], in[i], BYTES) > 0);
        assert_true(launch_mix(context, &(mix_args){(uint32_t)i, BYTES, y[i], x[i], x[i]}) > 0);
        assert_true(acs_memcpy(context, out[i], y[i], BYTES) > 0);
        assert_true(acs_free(context, x[i]) && acs_free(context, y[i]));
    }
    assert_int_equal(submit(context, 0, &r), ACS_ERR_MEMORY);
    assert_int_equal(r.memory_peak, 12 * LARGE);
    assert_int_equal(submit(context, 3, &r), ACS_ERR_MEMORY);
    assert_int_equal(submit(context, 2, &r), ACS_OK);
    assert_int_equal(r.memory_peak, 4 * LARGE);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(out[i][3], 5 * i);
    assert_int_equal(acs_close(context), ACS_OK);
}

typedef struct other_thread {
    acs_context *context;
    unsigned char *block;
} other_thread;

static void *fill_block(void *argument)
{
    const other_thread *t = argument;
    return (void *)(uintptr_t)(acs_memset(t->context, t->block, 7, BYTES) > 0 && acs_sync(t->context) == ACS_OK);
}

/* Another thread's ops are not held: what it has written in a block of the group stays. */
static void what_others_did_with_a_block_is_kept(void **state)
{
    (void)state;
    acs_context *context = open_with(0, 1, ACS_POOL_ON);
    acs_group_report r;
    pthread_t thread;
    unsigned char out[2] = {0};
    void *done = NULL;
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    other_thread t = {context, block_of(context, LAZY, BYTES)};
    unsigned char *own = block_of(context, LAZY, BYTES);
    assert_int_equal(pthread_create(&thread, NULL, fill_block, &t), 0);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_true(done != NULL);
    assert_true(launch_mix(context, &(mix_args){1, BYTES, own, t.block, t.block}) > 0);
    assert_true(acs_memcpy(context, &out[0], t.block, 1) && acs_memcpy(context, &out[1], own, 1));
    assert_true(acs_free(context, t.block) && acs_free(context, own));
    assert_int_equal(submit(context, 0, &r), ACS_OK);
    assert_int_equal(r.blocks, 1);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 29);
    assert_int_equal(live(context), 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Blocks from outside have to find room beside the group's. */
static void what_cannot_fit_beside_the_plan_is_told_before_anything_runs(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    acs_context *context = open_with(8 * MIB, 0, ACS_POOL_ON);
    acs_group_report r;
    unsigned char *outside = block_of(context, LAZY, 4 * MIB), *x[3], byte = 0;
    assert_true(acs_memset(context, outside, 9, 4 * MIB) > 0);
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    for (int i = 0; i < 3; i++) {
        x[i] = block_of(context, LAZY, 2 * MIB);
        assert_true(launch_mix(context, &(mix_args){1, 2 * MIB, x[i], outside, outside}) > 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(acs_memcpy(context, &byte, x[i], 1) > 0);
        assert_true(acs_free(context, x[i]) > 0);
    }
    assert_int_equal(submit(context, 0, &r), ACS_ERR_MEMORY);
    assert_int_equal(r.last, 0);
    assert_int_equal(submit(context, 1, &r), ACS_OK); /* one after the other they take one place */
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(byte, 37);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* The streams of a group share a place, one after the other; the first one is skipped. */
static void what_fails_in_a_place_is_no_concern_of_who_gets_it_next(void **state)
{
    (void)state;
    static unsigned char in[BYTES], out[4][BYTES];
    acs_context *context = open_with(0, 0, ACS_POOL_ON);
    acs_group_report r;
    memset(in, 2, BYTES);
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    assert_true(acs_host(context, go_wrong, NULL, 0, ACS_USES(ACS_TOKEN(9))) & ACS_OP_HELD);
    for (int i = 0; i < 4; i++) {
        unsigned char *x = block_of(context, LAZY, BYTES), *y = block_of(context, LAZY, BYTES);
        assert_true(acs_memcpy(context, x, in, BYTES) > 0);
        assert_true(launch_mix_behind(context, &(mix_args){(uint32_t)i, BYTES, y, x, x}, i == 0 ? 9 : 0) > 0);
        assert_true(acs_memcpy(context, out[i], y, BYTES) > 0);
        assert_true(acs_free(context, x) && acs_free(context, y));
    }
    assert_int_equal(submit(context, 1, &r), ACS_OK);
    assert_int_equal(r.memory_peak, 2 * BYTES);
    assert_int_equal(acs_sync(context), ACS_ERR_HOST);
    assert_int_equal(out[0][1], 0);
    for (int i = 1; i < 4; i++)
        assert_int_equal(out[i][1], 8 + i);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Groups that run at the same time have memory each, as far as there is room; then they come behind others in theirs. */
static void groups_have_memory_beside_each_other(void **state)
{
    (void)state;
    enum { GROUPS = 6, MIB = 1 << 20, LARGE = 8 * MIB };
    static unsigned char in[LARGE], out[GROUPS][LARGE];
    static const struct {
        int64_t limit;
        uint64_t at_once;
    } rows[] = {{0, GROUPS}, {20 * MIB, 2}, {9 * MIB, 1}};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        acs_context *context = open_with(rows[row].limit, 0, ACS_POOL_ON);
        for (uint32_t g = 0; g < GROUPS; g++) {
            acs_group_report report;
            assert_int_equal(acs_group_begin(context, 0), ACS_OK);
            unsigned char *block = block_of(context, LAZY, LARGE);
            memset(in, 7, sizeof in);
            assert_true(acs_memcpy(context, block, in, LARGE) != 0);
            assert_true(launch_mix(context, &(mix_args){g, LARGE, block, block, block}) != 0);
            assert_true(acs_memcpy(context, out[g], block, LARGE) != 0);
            assert_true(acs_free(context, block) != 0);
            assert_int_equal(submit(context, 1, &report), ACS_OK);
        }
        const acs_statistics s = statistics_of(context); /* nothing has run yet but what room was waited for */
        assert_true(s.memory_reserved >= rows[row].at_once * LARGE);
        assert_true(s.memory_peak >= rows[row].at_once * LARGE);
        assert_int_equal(s.memory_early, GROUPS - rows[row].at_once);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (uint32_t g = 0; g < GROUPS; g++)
            assert_int_equal(out[g][LARGE - 1], (unsigned char)(7 + 3 * 7 + g));
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* ------------------------------------------------------------------------------------------------------------ devices */

static _Atomic bool g_go;

static void gate_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
    while (!atomic_load_explicit(&g_go, memory_order_acquire)) /* pairs with the store that opens it */
        (void)sched_yield();
}

/* What was queued before it and still runs is no matter of a group: a third one gets the room of the first that ends. */
static void groups_end_whatever_else_runs(void **state)
{
    (void)state;
    enum { LARGE = 6 << 20 };
    static const acs_kernel gate = ACS_KERNEL_HOST_INIT("gate", gate_body);
    acs_options options = host_options();
    acs_context *context = NULL;
    acs_group_report report;
    options.devices = 2;
    options.executors = 2;
    options.workers = 1;
    options.pool = ACS_POOL_ON;
    options.memory_limit = 10 << 20;
    options.memory_slack = 0;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    unsigned char *apart = block_of(context, ACS_MEMORY_DEVICE, 64);
    atomic_store_explicit(&g_go, false, memory_order_relaxed); /* nobody looks yet */
    acs_op held = ACS_LAUNCH_ON(context, &gate, 1, 1, 0, ACS_ARGS(apart), ACS_USES(ACS_INOUT(apart, 64)));
    assert_true(held > 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(acs_group_begin(context, 0), ACS_OK);
        unsigned char *x = block_of(context, LAZY, LARGE);
        assert_true(acs_memset(context, x, i, LARGE) > 0);
        assert_true(acs_free(context, x) > 0);
        assert_int_equal(submit(context, 0, &report), ACS_OK);
    }
    assert_int_equal(acs_query(context, held), ACS_NOT_READY);
    atomic_store_explicit(&g_go, true, memory_order_release); /* pairs with the load in gate_body */
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* A device has the bytes that it takes, but in two pieces; the other has all its memory. And with both so, it is refused. */
static void groups_go_to_another_device_where_room_is_in_pieces(void **state)
{
    (void)state;
    enum { LARGE = 2 << 20 };
    acs_group_report report;
    acs_options options = host_options();
    acs_context *context = NULL;
    options.devices = 2;
    options.pool = ACS_POOL_ON;
    options.memory_limit = LARGE + LARGE / 4;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (int taken = 0; taken < 2; taken++) {
        unsigned char seen = 0;
        const acs_status before = acs_last_error(NULL);
        assert_int_equal(acs_on(context, taken), ACS_OK);
        (void)block_of(context, ACS_MEMORY_DEVICE, BYTES); /* a small chunk is as large as the group */
        assert_int_equal(acs_on(context, ACS_ANY_DEVICE), ACS_OK);
        assert_int_equal(acs_group_begin(context, 0), ACS_OK);
        unsigned char *x = block_of(context, LAZY, LARGE);
        assert_true(acs_memset(context, x, 7, LARGE) > 0);
        assert_true(acs_memcpy(context, &seen, x, 1) > 0);
        assert_true(acs_free(context, x) > 0);
        assert_int_equal(submit(context, 0, &report), taken ? ACS_ERR_MEMORY : ACS_OK);
        assert_int_equal(acs_last_error(NULL), taken ? ACS_ERR_MEMORY : before); /* not what was tried on the way */
        if (taken)
            assert_int_equal(acs_group_cancel(context), ACS_OK);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(seen, taken ? 0 : 7);
    }
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_memory_while_they_are_used),
        cmocka_unit_test(waits_and_what_cannot_be_held_are_refused),
        cmocka_unit_test(op_beyond_a_full_group_is_told_by_sync_too),
        cmocka_unit_test(what_names_a_lazy_block_wrongly_is_refused_when_it_is_launched),
        cmocka_unit_test(cancelled_groups_never_run),
        cmocka_unit_test(blocks_from_outside_are_used_as_always),
        cmocka_unit_test(without_room_the_group_stays_and_takes_fewer_slots),
        cmocka_unit_test(what_others_did_with_a_block_is_kept),
        cmocka_unit_test(what_cannot_fit_beside_the_plan_is_told_before_anything_runs),
        cmocka_unit_test(what_fails_in_a_place_is_no_concern_of_who_gets_it_next),
        cmocka_unit_test(groups_have_memory_beside_each_other),
        cmocka_unit_test(groups_end_whatever_else_runs),
        cmocka_unit_test(groups_go_to_another_device_where_room_is_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Several devices through the public API, on the host backend: on which device each op of small programs runs, what is
 * copied for it, and that results are those of one device. Tables: program, policy, expected devices and transfers.
 * Random programs (test_random, test_memory_lives) do the same at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "add_kernel.h"
#include "memory_fixture.h"
#include "api/context.h"
#include "groups/group_schedule.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 64000, HALF = BYTES / 2, OPS = 64, BLOCKS = 4 };

/* Where each op ran, as the core was told. */
typedef struct record_of_run {
    int device[OPS];
    uint32_t breaches; /* of rule SLOT-5 */
} record_of_run;

static void note(void *user, const acs_trace_event *event)
{
    record_of_run *run = user;
    if (event->type == ACS_TRACE_INSERT && event->seq < OPS)
        run->device[event->seq] = event->op->device;
    if (event->type == ACS_TRACE_ISSUE && event->slot >= 0)
        run->breaches += (uint32_t)event->slot % 2 != event->op->device;
}

static acs_context *open_devices(int64_t devices, int32_t policy, record_of_run *run)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.devices = devices;
    options.policy = policy;
    options.streams = 4;
    options.pool = ACS_POOL_ON;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_devices(context), devices);
    if (run) {
        memset(run, 0, sizeof *run);
        assert_true(acs_trace_add(&context->core, note, run));
    }
    return context;
}

/* ----------------------------------------------------------------------------------------------------------- tables */

/* An op of a program: `to` = `from` + 1, block by block; from -1: filled by acs_memset. */
typedef struct planned {
    int to, from;
    int on;        /* ACS_ON, or ACS_ANY_DEVICE */
    int device;    /* where it is to run, */
    int transfers; /* and how many copies come before it */
} planned;

static const struct {
    const char *what;
    int32_t policy;
    planned ops[8];
} g_table[] = {
    {"round-robin takes turns", ACS_POLICY_ROUND_ROBIN,
     {{0, -1, -1, 0, 0}, {1, -1, -1, 1, 0}, {2, -1, -1, 0, 0}, {3, -1, -1, 1, 0}}},
    {"single stays where it is", ACS_POLICY_SINGLE,
     {{0, -1, -1, 0, 0}, {1, -1, -1, 0, 0}, {2, 0, -1, 0, 0}, {3, 1, -1, 0, 0}}},
    {"single: what was said to run elsewhere is not followed", ACS_POLICY_SINGLE,
     {{0, -1, 1, 1, 0}, {1, 0, -1, 0, 1}, {2, 0, -1, 0, 0}}},
    {"stream-aware: who has fewer ops", ACS_POLICY_STREAM_AWARE,
     {{0, -1, 0, 0, 0}, {1, -1, 0, 0, 0}, {2, -1, -1, 1, 0}, {3, -1, -1, 1, 0}}},
    {"min-transfer-size goes where the data are", ACS_POLICY_MIN_TRANSFER_SIZE,
     {{0, -1, 1, 1, 0}, {1, -1, 0, 0, 0}, {2, 0, -1, 1, 0}, {3, 1, -1, 0, 0}, {1, 2, -1, 1, 0}}},
    {"min-max-transfer-time does, too", ACS_POLICY_MIN_MAX_TRANSFER_TIME,
     {{0, -1, 1, 1, 0}, {1, -1, 0, 0, 0}, {2, 0, -1, 1, 0}, {3, 1, -1, 0, 0}}},
    {"a read makes a copy, which stays until another device writes", ACS_POLICY_ROUND_ROBIN,
     {{0, -1, 0, 0, 0}, {1, 0, 1, 1, 1}, {2, 0, 1, 1, 0}, {3, 0, 0, 0, 0}, {0, 3, 0, 0, 0}, {1, 0, 1, 1, 1}}},
    {"who reads last goes on where it was written", ACS_POLICY_ROUND_ROBIN,
     {{0, -1, 1, 1, 0}, {1, 0, -1, 1, 0}, {2, 0, -1, 0, 1}}},
    {"auto: the copy costs more than the wait", ACS_POLICY_AUTO, {{0, -1, 1, 1, 0}, {0, 0, -1, 1, 0}, {0, 0, -1, 1, 0}}},
    {"auto spreads what depends on nothing", ACS_POLICY_AUTO,
     {{0, -1, -1, 0, 0}, {1, -1, -1, 1, 0}, {2, -1, -1, 0, 0}, {3, -1, -1, 1, 0}}},
    {"auto fills a block where kernels used it", ACS_POLICY_AUTO,
     {{0, -1, 0, 0, 0}, {1, 0, 1, 1, 1}, {2, -1, 0, 0, 0}, {3, -1, 0, 0, 0}, {0, -1, -1, 1, 0}}},
};

static acs_op play(acs_context *context, const planned *p, unsigned char **blocks)
{
    if (p->from >= 0)
        return add_on(context, p->on, blocks[p->to], blocks[p->from], BYTES);
    assert_int_equal(acs_on(context, p->on), ACS_OK);
    acs_op op = acs_memset(context, blocks[p->to], 10 * p->to, BYTES);
    assert_int_equal(acs_on(context, ACS_ANY_DEVICE), ACS_OK);
    return op;
}

static void compare(const char *what, int32_t policy, const planned *ops)
{
    const int kind = ACS_MEMORY_DEVICE | ACS_LAZY;
    record_of_run run;
    unsigned char *blocks[BLOCKS], out[BYTES];
    int value[BLOCKS] = {0};
    acs_op op[8] = {0};
    acs_context *context = open_devices(2, policy, &run);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = block_of(context, kind, BYTES);
    uint64_t before = 0;
    for (int i = 0; i < 8 && (i == 0 || ops[i].to || ops[i].from || ops[i].device || ops[i].on); i++) {
        op[i] = play(context, &ops[i], blocks);
        assert_true(op[i] > 0);
        uint64_t transfers = statistics_of(context).transfers;
        if (transfers - before != (uint64_t)ops[i].transfers)
            fail_msg("%s: %d copies before op %d, not %d", what, (int)(transfers - before), i, ops[i].transfers);
        before = transfers;
        value[ops[i].to] = ops[i].from < 0 ? 10 * ops[i].to : value[ops[i].from] + 1;
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < 8 && op[i]; i++)
        if (run.device[op[i]] != ops[i].device)
            fail_msg("%s: op %d ran on device %d, not %d", what, i, run.device[op[i]], ops[i].device);
    assert_int_equal(run.breaches, 0);
    for (int b = 0; b < BLOCKS; b++) {
        if (!value[b])
            continue;
        assert_true(acs_memcpy(context, out, blocks[b], BYTES) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(out[0], value[b]);
        assert_int_equal(out[BYTES - 1], value[b]);
    }
    assert_int_equal(acs_close(context), ACS_OK);
}

static void ops_run_where_the_policy_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof g_table / sizeof *g_table; i++)
        compare(g_table[i].what, g_table[i].policy, g_table[i].ops);
}

/* ------------------------------------------------------------------------------------------------------------ bytes */

static void only_missing_bytes_travel(void **state)
{
    (void)state;
    acs_context *context = open_devices(2, ACS_POLICY_SINGLE, NULL);
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES), out[BYTES];
    unsigned char *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    assert_true(acs_memset(context, x, 1, BYTES) > 0);
    assert_true(add_on(context, 1, x + HALF, x + HALF, HALF) > 0); /* the second half is on device 1 alone */
    assert_int_equal(statistics_of(context).transfer_bytes, HALF);
    assert_true(add_on(context, 0, x, x, HALF) > 0);
    assert_int_equal(statistics_of(context).transfer_bytes, HALF);
    assert_true(add_on(context, 1, y, x, BYTES) > 0); /* the first half comes */
    assert_int_equal(statistics_of(context).transfer_bytes, 2 * HALF);
    assert_true(add_on(context, 0, y, x, BYTES) > 0); /* and now the second goes */
    assert_int_equal(statistics_of(context).transfer_bytes, 3 * HALF);
    assert_true(acs_memcpy(context, out, y, BYTES) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(out[0], 3);
    assert_int_equal(out[BYTES - 1], 3);
    assert_int_equal(statistics_of(context).transfer_bytes, 3 * HALF);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Memory of a copy is there as long as any of it counts. */
static void copies_that_are_stale_give_their_memory_back(void **state)
{
    (void)state;
    acs_context *context = open_devices(2, ACS_POLICY_SINGLE, NULL);
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    assert_int_equal(statistics_of(context).memory_live, 0);
    assert_true(acs_memset(context, x, 1, BYTES) > 0);
    uint64_t one = statistics_of(context).memory_live;
    assert_true(one >= BYTES);
    assert_true(add_on(context, 1, x, x, HALF) > 0);
    assert_int_equal(statistics_of(context).memory_live, 2 * one);
    assert_true(add_on(context, 1, x, x, BYTES) > 0);
    assert_int_equal(statistics_of(context).memory_live, one);
    assert_true(acs_free(context, x) > 0);
    assert_int_equal(statistics_of(context).memory_live, 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void memory_that_does_not_move_keeps_its_ops(void **state)
{
    (void)state;
    record_of_run run;
    acs_context *context = open_devices(2, ACS_POLICY_ROUND_ROBIN, &run);
    unsigned char *lazy = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES), out[BYTES];
    assert_int_equal(acs_on(context, 1), ACS_OK);
    unsigned char *fixed = block_of(context, ACS_MEMORY_DEVICE, BYTES);
    assert_int_equal(acs_on(context, ACS_ANY_DEVICE), ACS_OK);
    acs_op ops[] = {acs_memset(context, fixed, 5, BYTES), add_on(context, 0, lazy, fixed, BYTES),
                    add_on(context, ACS_ANY_DEVICE, fixed, lazy, BYTES), acs_memcpy(context, out, fixed, BYTES)};
    assert_int_equal(acs_sync(context), ACS_OK);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        assert_int_equal(run.device[ops[i]], 1);
    assert_int_equal(out[7], 7);
    assert_int_equal(statistics_of(context).transfers, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Where an op runs is a hint, and the policy's choice: a device that has no room for it is not the only one. */
static void ops_go_where_there_is_room(void **state)
{
    (void)state;
    enum { LARGE = 3 << 20 };
    static unsigned char out[LARGE];
    for (int i = 0; i < 3; i++) {
        record_of_run run = {{0}, 0};
        acs_options options = host_options();
        acs_context *context = NULL;
        options.devices = 2;
        options.pool = ACS_POOL_ON;
        options.policy = i == 0 ? ACS_POLICY_SINGLE : ACS_POLICY_AUTO;
        options.memory_limit = 5 << 20;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        assert_true(acs_trace_add(&context->core, note, &run));
        (void)block_of(context, ACS_MEMORY_DEVICE, LARGE); /* of device 0, and stays there */
        unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, LARGE);
        acs_op fill = acs_memset(context, x, i, LARGE);
        acs_op add = i == 2 ? add_on(context, 0, x, x, LARGE) : add_on(context, ACS_ANY_DEVICE, x, x, LARGE);
        assert_true(fill > 0 && add > 0);
        assert_true(acs_memcpy(context, out, x, LARGE) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(run.device[fill], 1);
        assert_int_equal(run.device[add], 1);
        assert_int_equal(out[LARGE - 1], i + 1);
        unsigned char *y = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, 2 * LARGE);
        assert_int_equal(acs_memset(context, y, 0, 2 * LARGE), 0); /* has room nowhere */
        assert_int_equal(acs_last_error(NULL), ACS_ERR_MEMORY);
        assert_int_equal(statistics_of(context).memory_live, 2 * LARGE);
        (void)acs_clear(context);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static int wait_for_flag(void *closure)
{
    while (!atomic_load_explicit(*(_Atomic(int) **)closure, memory_order_acquire)) /* the test's store */
        (void)usleep(100);
    return 0;
}

/* Contents that cannot be moved out since there is no room for the copy in the FIFO can be as soon as there is. */
static void who_does_not_wait_is_told_to_come_again(void **state)
{
    (void)state;
    enum { LARGE = 3 << 20 };
    for (int64_t devices = 1; devices <= 2; devices++) {
        _Atomic(int) flag = 0, *at = &flag;
        unsigned char *x[3];
        const acs_op_params no_wait = {NULL, 1};
        acs_options options = host_options();
        acs_context *context = NULL;
        options.devices = devices;
        options.pool = ACS_POOL_ON;
        options.window = 1;
        options.fifo = 2;
        options.memory_limit = LARGE;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        for (int i = 0; i <= devices; i++)
            x[i] = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, LARGE);
        for (int i = 0; i < devices; i++) { /* no device has room any more */
            assert_int_equal(acs_on(context, i), ACS_OK);
            assert_int_equal(acs_wait(context, acs_memset(context, x[i], i, LARGE)), ACS_OK);
        }
        assert_true(acs_host(context, wait_for_flag, &at, sizeof at, ACS_USES(ACS_TOKEN(1))) > 0);
        while (acs_memset_op(context, x[0], 5, 10, &no_wait))
            continue;
        assert_int_equal(acs_last_error(NULL), ACS_ERR_FULL);
        assert_int_equal(acs_memset_op(context, x[devices], 1, LARGE, &no_wait), 0);
        const acs_status status = acs_last_error(NULL);
        atomic_store_explicit(&flag, 1, memory_order_release); /* wait_for_flag */
        assert_int_equal(status, ACS_ERR_FULL);
        assert_true(acs_memset(context, x[devices], 1, LARGE) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* -------------------------------------------------------------------------------------------------------- host data */

/* Pinned memory that moves is the program's whenever it has waited for it. */
static void the_program_and_devices_share_pinned_memory(void **state)
{
    (void)state;
    acs_context *context = open_devices(2, ACS_POLICY_SINGLE, NULL);
    unsigned char *x = block_of(context, ACS_MEMORY_HOST | ACS_RELOCATABLE, BYTES);
    memset(x, 1, BYTES);
    assert_true(add_on(context, 0, x, x, BYTES) > 0); /* all goes to the device */
    assert_true(add_on(context, 1, x, x, HALF) > 0);
    assert_int_equal(acs_wait_range(context, x, 10, ACS_READ), ACS_OK);
    assert_int_equal(x[9], 3);
    assert_int_equal(statistics_of(context).transfer_bytes, BYTES + HALF + 10);
    assert_true(add_on(context, 1, x, x, 10) > 0); /* nothing has to come: the wait was for reading */
    assert_int_equal(statistics_of(context).transfer_bytes, BYTES + HALF + 10);
    assert_int_equal(acs_wait_range(context, x, BYTES, ACS_UPDATE), ACS_OK);
    assert_int_equal(x[9], 4);
    assert_int_equal(x[10], 3);
    assert_int_equal(x[BYTES - 1], 2);
    x[BYTES - 1] = 100; /* it is the program's until the next op */
    assert_true(add_on(context, 1, x, x, BYTES) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(x[0], 5);
    assert_int_equal(x[BYTES - 1], 101);
    assert_int_equal(acs_close(context), ACS_OK);
}

static int sum(void *closure)
{
    const unsigned char *x = *(unsigned char **)closure;
    return x[0] + x[BYTES - 1] == 6 ? 0 : -1;
}

static void host_functions_find_blocks_at_home(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        acs_context *context = open_devices(2, ACS_POLICY_SINGLE, NULL);
        unsigned char *x = block_of(context, (i ? ACS_MEMORY_HOST : ACS_MEMORY_DEVICE) | ACS_RELOCATABLE, BYTES);
        assert_true(acs_memset(context, x, 2, BYTES) > 0);
        assert_true(add_on(context, 1, x, x, BYTES) > 0);
        acs_op op = acs_host(context, sum, &x, sizeof x, ACS_USES(ACS_IN(x, BYTES)));
        assert_int_equal(acs_wait(context, op), ACS_OK);
        assert_int_equal(acs_pin(context, x), ACS_OK);
        assert_true(add_on(context, 1, x, x, BYTES) > 0); /* where it is */
        assert_int_equal(acs_wait_range(context, x, BYTES, ACS_READ), ACS_OK);
        assert_int_equal(x[5], 4);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* What is looked at may be in several places: all ops on any of them are waited for. */
static void waits_for_lazy_blocks_look_everywhere(void **state)
{
    (void)state;
    acs_context *context = open_devices(2, ACS_POLICY_SINGLE, NULL);
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    unsigned char *y[2] = {block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES),
                           block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES)};
    assert_int_equal(acs_wait_range(context, x, BYTES, ACS_UPDATE), ACS_OK); /* it has no memory yet */
    assert_true(acs_memset(context, x, 2, BYTES) > 0);
    acs_op readers[2];
    for (int i = 0; i < 2; i++)
        readers[i] = add_on(context, i, y[i], x, BYTES);
    assert_int_equal(acs_wait_range(context, x, BYTES, ACS_UPDATE), ACS_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(acs_query(context, readers[i]), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ----------------------------------------------------------------------------------------------------------- groups */

/* Fills a block of its own, adds one, copies out: alone in its memory. */
static acs_op submit_group(acs_context *context, unsigned char *out, int value, size_t bytes)
{
    acs_group_report report = {.size = sizeof report};
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, bytes);
    assert_true(acs_memset(context, x, value, bytes) > 0);
    assert_true(add_on(context, ACS_ANY_DEVICE, x, x, bytes) > 0);
    assert_true(acs_memcpy(context, out, x, bytes) > 0);
    assert_true(acs_free(context, x) > 0);
    assert_int_equal(acs_group_submit(context, NULL, &report), ACS_OK);
    return report.first;
}

static void groups_are_spread_as_a_whole(void **state)
{
    (void)state;
    record_of_run run;
    acs_context *context = open_devices(2, ACS_POLICY_SINGLE, &run);
    unsigned char out[4][BYTES];
    acs_op first[4];
    for (int i = 0; i < 4; i++)
        first[i] = submit_group(context, out[i], 10 * i, BYTES);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < 4; i++) {
        for (acs_op op = first[i]; op < first[i] + 3; op++)
            assert_int_equal(run.device[op], i % 2);
        assert_int_equal(out[i][BYTES - 1], 10 * i + 1);
    }
    assert_int_equal(statistics_of(context).transfers, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Each group needs more than half of a device: two at once are as many as there can be. */
static void groups_wait_where_no_device_has_room(void **state)
{
    (void)state;
    enum { GROUPS = 12, LARGE = 6 << 20 };
    acs_options options = host_options();
    acs_context *context = NULL;
    options.devices = 2;
    options.pool = ACS_POOL_ON;
    options.memory_limit = 10 << 20;
    options.memory_slack = 0;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    unsigned char *out = malloc((size_t)GROUPS * LARGE);
    assert_non_null(out);
    for (int i = 0; i < GROUPS; i++)
        (void)submit_group(context, out + (size_t)i * LARGE, i, LARGE);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < GROUPS; i++)
        assert_int_equal(out[(size_t)(i + 1) * LARGE - 1], i + 1);
    free(out);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Between its choice and its memory another thread's group may come. */
static void groups_that_have_no_memory_yet_are_counted(void **state)
{
    (void)state;
    enum { LARGE = 6 << 20 };
    const acs_demand demand = {.memory = LARGE, .queues = 1};
    acs_options options = host_options();
    acs_context *context = NULL;
    acs_scheduled_group to[2];
    options.devices = 2;
    options.streams = 8;
    options.pool = ACS_POOL_ON;
    options.memory_limit = 16 << 20;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (int d = 0; d < 2; d++) {
        assert_int_equal(acs_on(context, d), ACS_OK);
        (void)block_of(context, ACS_MEMORY_DEVICE, LARGE);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(acs_group_schedule_begin(context, &demand, 0, &to[i]), ACS_OK);
    /* Both on one, and what lies there anyway, would be more than there is. */
    assert_int_not_equal(to[0].device, to[1].device);
    for (int i = 0; i < 2; i++)
        acs_group_schedule_queued(context, to[i].ticket, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ---------------------------------------------------------------------------------------------------------- options */

static void bad_devices_are_refused(void **state)
{
    (void)state;
    acs_context *context = open_devices(2, ACS_POLICY_AUTO, NULL);
    assert_int_equal(acs_on(context, 2), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_on(context, -2), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_on(context, 1), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    acs_options options = host_options();
    options.devices = 2;
    options.pool = ACS_POOL_OFF;
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    options.pool = ACS_POOL_ON;
    options.rename = 1;
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    options.rename = 0;
    options.check = ACS_CHECK_WRITES;
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    options.check = ACS_CHECK_OFF;
    (void)snprintf(options.topology, sizeof options.topology, "/no/such/file");
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    options.topology[0] = '\0';
    options.devices = 17;
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
}

/* The others that a byte cannot say do not come to mean device 0 or none. */
static void launches_on_devices_that_there_are_not_are_refused(void **state)
{
    static const int64_t wrong[] = {2, 15, 253, 254, 255, 256, 511, -2, -257, INT64_MIN, INT64_MAX};
    (void)state;
    for (int64_t devices = 1; devices <= 2; devices++) {
        acs_context *context = open_devices(devices, ACS_POLICY_AUTO, NULL);
        unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
        size_t bytes = BYTES;
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            refused(ACS_LAUNCH_WITH(context, ACS_ON(wrong[i]), &g_add, 1, 1, 0, ACS_ARGS(x, x, bytes), ACS_USES_ANY),
                    ACS_ERR_ARGUMENT, devices == 1 ? "the context has 1" : "the context has 2");
        refused(ACS_LAUNCH_WITH(context, ACS_ON(9), &g_add, 1, 1, 0, ACS_ARGS(x, x, bytes), ACS_USES_ANY), ACS_ERR_ARGUMENT,
                "'add': ACS_ON: there is no device 9");
        assert_int_equal(statistics_of(context).queued, 0);
        assert_int_equal(acs_clear(context), ACS_OK);
        assert_true(acs_memset(context, x, 1, BYTES) > 0);
        for (int device = ACS_ANY_DEVICE; device < devices; device++)
            assert_true(add_on(context, device, x, x, BYTES) > 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* What a thread said of one context says nothing of the next, which may lie where that one lay. */
static void acs_on_ends_with_its_context(void **state)
{
    (void)state;
    record_of_run run;
    acs_context *context = open_devices(8, ACS_POLICY_SINGLE, NULL);
    assert_int_equal(acs_on(context, 7), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(acs_on(context, 0), ACS_ERR_STATE);
    assert_int_equal(acs_devices(context), -1);
    context = open_devices(2, ACS_POLICY_SINGLE, &run);
    acs_op op = acs_memset(context, block_of(context, ACS_MEMORY_DEVICE, BYTES), 1, BYTES);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(run.device[op], 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Two virtual devices of which one hardly reaches the other, as a file. */
static void write_links(char *path, uint32_t slow)
{
    acs_topology t = {.count = 2};
    for (uint32_t i = 0; i < 3; i++) {
        if (i < 2)
            (void)snprintf(t.id[i], sizeof t.id[i], "virtual-%u", i);
        for (uint32_t k = 0; k < 3; k++)
            t.links[i][k] = (acs_route){i == slow && i + k == 1 ? 1e9 : 2e9, 1e-6, i < 2 && k < 2};
    }
    int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *out = fdopen(file, "w");
    assert_non_null(out);
    assert_int_equal(acs_topology_write(&t, out), ACS_OK);
    assert_int_equal(fclose(out), 0);
}

/* An op that reads something of each device runs where what it lacks does not come by the slow way. */
static void a_file_says_how_devices_are_linked(void **state)
{
    (void)state;
    for (uint32_t slow = 0; slow < 2; slow++) {
        char path[] = "/tmp/acs-topology-XXXXXX";
        record_of_run run = {{0}, 0};
        acs_options options = host_options();
        acs_context *context = NULL;
        write_links(path, slow);
        (void)snprintf(options.topology, sizeof options.topology, "%s", path);
        options.devices = 2;
        options.pool = ACS_POOL_ON;
        options.policy = ACS_POLICY_MIN_MAX_TRANSFER_TIME;
        if (acs_open(&options, &context) != ACS_OK)
            fail_msg("%s", acs_error_thread()->text);
        assert_true(acs_trace_add(&context->core, note, &run));
        unsigned char *x[2];
        for (int i = 0; i < 2; i++) {
            x[i] = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
            assert_true(add_on(context, i, x[i], x[i], BYTES) > 0);
        }
        size_t none = 0;
        acs_op op = ACS_LAUNCH_ON(context, &g_add, 1, 1, 0, ACS_ARGS(x[0], x[1], none),
                                  ACS_USES(ACS_IN(x[0], BYTES), ACS_IN(x[1], BYTES)));
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(run.device[op], slow);
        assert_int_equal(acs_close(context), ACS_OK);
        assert_int_equal(unlink(path), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_run_where_the_policy_says),
        cmocka_unit_test(only_missing_bytes_travel),
        cmocka_unit_test(copies_that_are_stale_give_their_memory_back),
        cmocka_unit_test(memory_that_does_not_move_keeps_its_ops),
        cmocka_unit_test(ops_go_where_there_is_room),
        cmocka_unit_test(who_does_not_wait_is_told_to_come_again),
        cmocka_unit_test(the_program_and_devices_share_pinned_memory),
        cmocka_unit_test(host_functions_find_blocks_at_home),
        cmocka_unit_test(waits_for_lazy_blocks_look_everywhere),
        cmocka_unit_test(groups_are_spread_as_a_whole),
        cmocka_unit_test(groups_wait_where_no_device_has_room),
        cmocka_unit_test(groups_that_have_no_memory_yet_are_counted),
        cmocka_unit_test(bad_devices_are_refused),
        cmocka_unit_test(launches_on_devices_that_there_are_not_are_refused),
        cmocka_unit_test(acs_on_ends_with_its_context),
        cmocka_unit_test(a_file_says_how_devices_are_linked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

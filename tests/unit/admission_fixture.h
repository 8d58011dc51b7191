/*
 * Contexts that share the test program's own ledger, of so many MiB for each device, and groups of them that take much and
 * do little. Each context could be a process. Included behind cmocka.h.
 */
#ifndef TESTS_ADMISSION_FIXTURE_H
#define TESTS_ADMISSION_FIXTURE_H

#include "devices/ledger.h"
#include "ledger_fixture.h"
#include "memory_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const size_t MIB = (size_t)1 << 20;
enum { TOTAL_MIB = 64 };

static inline acs_options sharing_options(int64_t workers, int64_t devices)
{
    acs_options options = host_options();
    options.workers = workers;
    options.devices = devices;
    options.pool = ACS_POOL_ON;
    snprintf(options.ledger, sizeof options.ledger, "%s:%zu", g_name, TOTAL_MIB * MIB);
    return options;
}

static inline acs_status open_with(const char *ledger, int64_t workers, int64_t devices, acs_context **context)
{
    acs_options options = sharing_options(workers, devices);
    snprintf(options.ledger, sizeof options.ledger, "%s", ledger);
    return acs_open(&options, context);
}

static inline acs_context *open_on(int64_t devices, int64_t workers)
{
    const acs_options options = sharing_options(workers, devices);
    acs_context *context = NULL;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static inline acs_context *open_sharing(int64_t workers)
{
    return open_on(1, workers);
}

static inline void add(void *user, const acs_ledger_line *line)
{
    ((uint64_t *)user)[0] += line->reserved;
    ((uint64_t *)user)[1] += line->wanted != 0;
}

static _Atomic(int) g_go;

/* A kernel that runs until the test lets it end. */
static inline void gate_body(const acs_grid *grid, void *const *args)
{
    (void)grid, (void)args;
    while (!atomic_load_explicit(&g_go, memory_order_acquire)) /* pairs with the test's store */
        sched_yield();
}

static const acs_kernel g_gate = ACS_KERNEL_HOST_INIT("gate", gate_body);

/* A group of so many bytes that runs until g_go is set. */
static inline void submit_gate(acs_context *context, size_t bytes)
{
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    unsigned char *block = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, bytes);
    ACS_LAUNCH_ON(context, &g_gate, 100, 64, 0, ACS_ARGS(block), ACS_USES(ACS_OUT(block, bytes)));
    acs_free(context, block);
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
}

/* A group that takes much and does little. */
static inline acs_status submit_large(acs_context *context, size_t mib, unsigned char *seen, unsigned char value)
{
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    unsigned char *block = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, mib * MIB);
    acs_memset(context, block, value, 64);
    acs_memcpy(context, seen, block + 63, 1);
    acs_free(context, block);
    return acs_group_submit(context, NULL, NULL);
}

static inline void stream(acs_context *context, size_t mib, int groups)
{
    static unsigned char seen;
    for (int i = 0; i < groups; i++)
        assert_int_equal(submit_large(context, mib, &seen, 1), ACS_OK);
}

/* A group, in a thread, of a program that has nothing else. */
typedef struct latecomer {
    pthread_t thread;
    acs_context *context;
    size_t mib;
    acs_status status;
    unsigned char seen;
} latecomer;

static inline void *come_late(void *argument)
{
    latecomer *l = argument;
    l->status = submit_large(l->context, l->mib, &l->seen, 77);
    if (l->status != ACS_OK || acs_sync(l->context) != ACS_OK)
        l->status = l->status == ACS_OK ? ACS_ERR_INTERNAL : l->status;
    return NULL;
}

static inline uint64_t waiting_now(void)
{
    uint64_t sums[2] = {0};
    assert_int_equal(acs_ledger_each(g_name, add, sums), ACS_OK);
    return sums[1];
}

/* On as many devices; it waits from here on, for each of them. */
static inline void begin_late(latecomer *l, int64_t devices, size_t mib)
{
    *l = (latecomer){.context = open_on(devices, 1), .mib = mib};
    assert_int_equal(pthread_create(&l->thread, NULL, come_late, l), 0);
    while (waiting_now() < (uint64_t)devices)
        sched_yield();
}

static inline void end_late(latecomer *l)
{
    assert_int_equal(pthread_join(l->thread, NULL), 0);
    assert_int_equal(l->status, ACS_OK);
    assert_int_equal(l->seen, 77);
    assert_int_equal(acs_close(l->context), ACS_OK);
}

#endif

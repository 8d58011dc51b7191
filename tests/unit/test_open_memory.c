/*
 * Opening and using contexts when the system has nothing more to give: every allocation, mutex, condition variable and
 * thread that acs_open asks for is refused once, and so is each that a program's calls ask for, on several devices, too.
 * Memory that does not go back is no concern of the rest. Linked with --wrap.
 */
#include "api_fixture.h"

#include "api/compat.h"
#include "api/context.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REQUESTS_MOST = 2000, OPS = 40 };

static _Thread_local long tl_until_failure = -1; /* of this thread's requests, those that still succeed; negative: all do */

static _Thread_local bool tl_nothing_left; /* each of this thread's requests fails; */
static atomic_uint g_refused;               /* how many did */

static bool fails_now(void)
{
    if (tl_nothing_left) {
        atomic_fetch_add(&g_refused, 1);
        return true;
    }
    return tl_until_failure >= 0 && tl_until_failure-- == 0;
}

#define WRAP(type, name, parameters, arguments, refusal)                                                               \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        return fails_now() ? (refusal) : __real_##name arguments;                                                      \
    }

WRAP(void *, malloc, (size_t bytes), (bytes), NULL)
WRAP(void *, calloc, (size_t count, size_t bytes), (count, bytes), NULL)
WRAP(void *, realloc, (void *old, size_t bytes), (old, bytes), NULL)
WRAP(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), NULL)
WRAP(int, pthread_mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), (m, a), 12)
WRAP(int, pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), (c, a), 12)
WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *u), (t, a, f, u), 11)

static acs_options options_on(int backend)
{
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = backend;
    options.streams = 3;
    options.executors = 2;
    options.window = 16;
    options.fifo = 16;
    return options;
}

/* Refuse the first request, then the second, until the context opens; each refusal leaves nothing behind (leak checker). */
static void open_refused_everywhere(acs_options options)
{
    acs_context *context = NULL;
    for (long n = 0; !context; n++) {
        assert_true(n < REQUESTS_MOST);
        tl_until_failure = n;
        acs_status status = acs_open(&options, &context);
        bool refused = tl_until_failure < 0;
        tl_until_failure = -1;
        assert_int_equal(status, context ? ACS_OK : ACS_ERR_MEMORY);
        assert_true(context || refused);
    }
    assert_int_equal(acs_close(context), ACS_OK);
}

static void open_without_memory_or_threads_is_refused_and_leaves_nothing(void **state)
{
    acs_options sim = options_on(ACS_BACKEND_SIM), host = options_on(ACS_BACKEND_HOST), inlined = host;
    (void)state;
    sim.stats = 1;
    inlined.disable = 1;
    open_refused_everywhere(sim);
    open_refused_everywhere(host);
    open_refused_everywhere(inlined);
}

static int nothing(void *closure)
{
    (void)closure;
    return 0;
}

static int failing(void *closure)
{
    (void)closure;
    return 5;
}

/* A program whose n-th request for memory is refused: what it queued ends, and close returns. False: it made fewer. */
static bool program_refused(acs_options options, long n)
{
    static char bytes[4096];
    char large[3000] = {0};
    acs_context *context = NULL;
    acs_segment many[20];
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (uint32_t i = 0; i < 20; i++)
        many[i] = ACS_TILE_INOUT(bytes + i, 8, 3, 32 + i);
    tl_until_failure = n;
    for (uint32_t i = 0; i < OPS; i++) {
        void *block = NULL;
        (void)acs_host(context, i % 7 == 3 ? failing : nothing, large, i * 70, ((acs_uses){many, i % 20, NULL, NULL, 0}));
        (void)acs_memset(context, bytes + 8 * i, 1, 16);
        if (acs_malloc(context, 100, ACS_MEMORY_HOST, &block) == ACS_OK && i % 2)
            (void)acs_free(context, block);
    }
    (void)acs_sync(context);
    bool refused = tl_until_failure < 0;
    tl_until_failure = -1;
    acs_statistics stats = {.size = sizeof stats};
    assert_int_equal(acs_stats(context, &stats), ACS_OK);
    assert_int_equal(stats.queued, stats.retired);
    assert_int_not_equal(acs_close(context), ACS_OK);
    return refused;
}

static void program_without_memory_ends_all_that_was_queued(void **state)
{
    acs_options sim = options_on(ACS_BACKEND_SIM);
    long n = 0;
    (void)state;
    while (program_refused(sim, n))
        assert_true(++n < REQUESTS_MOST);
    assert_true(n > 5);
}

/* -------------------------------------------------------------------------------------- queues of CPUs */

static atomic_bool g_may_go;

/* Uses its memory once more before it ends. */
static void gated_body(const acs_grid *grid, void *const *args)
{
    while (!atomic_load(&g_may_go))
        sched_yield();
    increment_body(grid, args);
}

static const acs_kernel g_gated = ACS_KERNEL_HOST_INIT("gated", gated_body);

/* The first kernel goes on once a queue was refused memory. */
static void *open_when_refused(void *nothing_more)
{
    (void)nothing_more;
    while (!atomic_load(&g_refused))
        sched_yield();
    atomic_store(&g_may_go, true);
    return NULL;
}

/* Submitting waits for room in the queue then: nothing is lost, and no op ends before it ran. */
static void full_queue_without_memory_delays_ops_and_loses_none(void **state)
{
    acs_options options = options_on(ACS_BACKEND_HOST);
    acs_context *context = NULL;
    pthread_t opener;
    int *x = NULL;
    (void)state;
    options.streams = 1;
    options.workers = 0; /* this thread submits */
    options.window = options.fifo = 256;
    atomic_store(&g_refused, 0);
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_malloc(context, sizeof *x, ACS_MEMORY_DEVICE, (void **)&x), ACS_OK);
    *x = 0;
    assert_int_not_equal(ACS_LAUNCH_ON(context, &g_gated, 1, 1, 0, ACS_ARGS(x), ACS_USES(ACS_INOUT(x, sizeof *x))), 0);
    for (int i = 0; i < 20; i++)
        (void)queue_increment(context, x);
    assert_int_equal(pthread_create(&opener, NULL, open_when_refused, NULL), 0);
    tl_nothing_left = true;
    acs_status status = acs_sync(context);
    tl_nothing_left = false;
    pthread_join(opener, NULL);
    assert_int_equal(status, ACS_OK);
    assert_int_equal(*x, (1 << 21) - 1);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------ several devices */

enum { PART = 64, PARTS = 8 };

/* The first part is 9, whatever was read. */
static void nine_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    memset(*(void *const *)args[0], 9, PART);
}

static const acs_kernel g_nine = ACS_KERNEL_HOST_INIT("nine", nine_body);

/*
 * An op on device 0 writes a part of what is on device 1, and reads others: what was taken to note the one is not used up by
 * the copies of the others. Its n-th request for memory is refused. False: it made fewer.
 */
static bool write_refused(long n, size_t reads)
{
    acs_options options = options_on(ACS_BACKEND_HOST);
    acs_context *context = NULL;
    acs_segment segments[1 + PARTS];
    unsigned char *x = NULL, out = 0;
    const acs_attributes on = ACS_ON(0);
    const acs_uses uses = {segments, 1 + reads, NULL, NULL, 0};
    options.devices = 2;
    options.pool = ACS_POOL_ON;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_malloc(context, (size_t)3 * PARTS * PART, ACS_MEMORY_DEVICE | ACS_LAZY, (void **)&x), ACS_OK);
    assert_int_equal(acs_on(context, 1), ACS_OK);
    assert_int_equal(acs_wait(context, acs_memset(context, x, 1, (size_t)3 * PARTS * PART)), ACS_OK);
    segments[0] = ACS_OUT(x, PART);
    for (size_t i = 0; i < reads; i++)
        segments[1 + i] = ACS_IN(x + (2 + 2 * i) * PART, PART);
    tl_until_failure = n;
    acs_op op = ACS_LAUNCH_WITH(context, on, &g_nine, 1, 1, 0, ACS_ARGS(x), uses);
    bool refused = tl_until_failure < 0;
    tl_until_failure = -1;
    assert_true(op || refused);
    assert_true(acs_memcpy(context, &out, x, 1) > 0);
    (void)acs_sync(context);
    assert_int_equal(out, op ? 9 : 1);
    (void)acs_close(context); /* it has kept the error */
    return refused;
}

static void what_an_op_has_written_is_noted_without_memory(void **state)
{
    (void)state;
    for (size_t reads = 0; reads <= PARTS; reads++)
        for (long n = 0; write_refused(n, reads); n++)
            assert_true(n < REQUESTS_MOST);
}

/* Pinned memory stays, once. */
static acs_status keep_pinned(acs_backend *backend, int memory, void *ptr)
{
    static bool kept;
    const acs_status status = memory == ACS_MEMORY_HOST && !kept ? ACS_ERR_INTERNAL : ACS_OK;
    (void)backend;
    kept |= status != ACS_OK;
    free(ptr);
    return status;
}

static void pinned_memory_that_stays_keeps_no_device_memory_from_going_back(void **state)
{
    acs_options options = options_on(ACS_BACKEND_HOST);
    acs_context *context = NULL;
    void *block = NULL;
    (void)state;
    options.devices = 2;
    options.workers = 0; /* nobody else looks at the backend while it is another one */
    options.pool = ACS_POOL_ON;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (uint32_t device = 0; device < 2; device++) {
        assert_int_equal(acs_on(context, (int)device), ACS_OK);
        assert_int_equal(acs_malloc(context, PART, ACS_MEMORY_DEVICE, &block), ACS_OK);
        assert_int_not_equal(acs_free(context, block), 0);
    }
    assert_int_equal(acs_malloc(context, PART, ACS_MEMORY_HOST, &block), ACS_OK);
    assert_int_not_equal(acs_free(context, block), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    acs_backend_ops ops = *context->backend->ops;
    const acs_backend_ops *before = context->backend->ops;
    ops.memory_free = keep_pinned;
    context->backend->ops = &ops;
    acs_status status = acs_trim(context, 0);
    context->backend->ops = before;
    assert_int_equal(status, ACS_ERR_INTERNAL);
    for (uint32_t device = 0; device < 2; device++)
        assert_int_equal(acs_memory_count(context->memory, acs_memory_kind(device)).reserved, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ---------------------------------------------------------------------------------------------------- ACS_CHECK=all */

/*
 * The n-th request for memory of a launch under ACS_CHECK=all is refused: the launch is refused, too, or not looked at.
 * The block is lazy, and nothing runs until the launch waits. False: the launch made fewer requests.
 */
static bool checked_launch_refused(long n)
{
    acs_options options = options_on(ACS_BACKEND_HOST);
    acs_context *context = NULL;
    unsigned char *x = NULL, seen[PART];
    options.workers = 0;
    options.pool = ACS_POOL_ON;
    options.check = ACS_CHECK_ALL;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_malloc(context, PART, ACS_MEMORY_DEVICE | ACS_LAZY, (void **)&x), ACS_OK);
    assert_int_not_equal(acs_memset(context, x, 1, PART), 0);
    tl_until_failure = n;
    acs_op op = ACS_LAUNCH_ON(context, &g_nine, 1, 1, 0, ACS_ARGS(x), ACS_USES(ACS_OUT(x, PART)));
    bool refused = tl_until_failure < 0;
    tl_until_failure = -1;
    assert_true(op || acs_last_error(NULL) == ACS_ERR_MEMORY);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_wait(context, acs_memcpy(context, seen, x, PART)), ACS_OK);
    for (int i = 0; i < PART; i++)
        assert_int_equal(seen[i], op ? 9 : 1);
    assert_int_equal(acs_close(context), ACS_OK);
    return refused;
}

static void checked_launch_refused_without_memory_leaves_contents(void **state)
{
    (void)state;
    for (long n = 0; checked_launch_refused(n); n++)
        assert_true(n < REQUESTS_MOST);
}

/* ------------------------------------------------------------------------------------------------ what is read at close */

static size_t close_and_read(acs_context *context, char *text, size_t room)
{
    FILE *file = tmpfile();
    int before = dup(2);
    assert_non_null(file);
    dup2(fileno(file), 2);
    (void)acs_close(context);
    dup2(before, 2);
    close(before);
    rewind(file);
    size_t length = fread(text, 1, room - 1, file);
    text[length] = 0;
    fclose(file);
    return length;
}

static void statistics_at_close_name_width_and_the_pairs_that_wait(void **state)
{
    static char bytes[64];
    char text[4096];
    acs_options options = options_on(ACS_BACKEND_SIM);
    acs_context *context = NULL;
    (void)state;
    options.stats = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (int i = 0; i < 10; i++) {
        acs_memset(context, bytes, i, 64);
        acs_host(context, nothing, NULL, 0, ACS_USES(ACS_IN(bytes, 64)));
    }

    close_and_read(context, text, sizeof text);

    assert_non_null(strstr(text, "acs: stats: 20 ops (0 kernels, 0 copies, 10 fills, 10 host functions, 0 calls)"));
    assert_non_null(strstr(text, "little to gain here"));
    assert_non_null(strstr(text, "waited for 'acs_memset'"));
}

static void drain_of_compat_finishes_the_ops_of_every_context(void **state)
{
    static char bytes[2];
    acs_context *a = open_on(ACS_BACKEND_SIM, 1), *b = open_on(ACS_BACKEND_HOST, 0);
    acs_memset(a, bytes, 1, 1);
    acs_memset(b, bytes + 1, 2, 1);
    (void)state;

    acs_compat_drain();

    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[1], 2);
    assert_int_equal(acs_close(a), ACS_OK);
    assert_int_equal(acs_close(b), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_without_memory_or_threads_is_refused_and_leaves_nothing),
        cmocka_unit_test(program_without_memory_ends_all_that_was_queued),
        cmocka_unit_test(full_queue_without_memory_delays_ops_and_loses_none),
        cmocka_unit_test(what_an_op_has_written_is_noted_without_memory),
        cmocka_unit_test(pinned_memory_that_stays_keeps_no_device_memory_from_going_back),
        cmocka_unit_test(checked_launch_refused_without_memory_leaves_contents),
        cmocka_unit_test(statistics_at_close_name_width_and_the_pairs_that_wait),
        cmocka_unit_test(drain_of_compat_finishes_the_ops_of_every_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

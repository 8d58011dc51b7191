/*
 * The public API in use: failures and skips, memory, waits, statistics, and the C11 call-site macros. Nothing here needs a
 * GPU.
 */
#include "api_fixture.h"

#include "api/context.h"
#include "simulator/sim_driver.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* ----------------------------------------------------------------------------------------------- failures and skips */

static void failed_host_function_skips_what_depends_on_it_alone(void **state)
{
    int x = 0, y = 0, z = 0;
    acs_error e = {.size = sizeof e};
    acs_op failed = acs_host(*state, failing_function, NULL, 0, ACS_USES(ACS_OUT(&x, sizeof x)));
    int line = __LINE__ - 1;
    acs_op dependent = acs_memcpy(*state, &y, &x, sizeof x);
    acs_op indirect = queue_increment(*state, &y);
    acs_op independent = queue_increment(*state, &z);

    assert_int_equal(acs_sync(*state), ACS_ERR_HOST);
    assert_int_equal(acs_wait(*state, failed), ACS_ERR_HOST);
    assert_int_equal(acs_wait(*state, dependent), ACS_ERR_SKIPPED);
    assert_int_equal(acs_wait(*state, indirect), ACS_ERR_SKIPPED);
    assert_int_equal(acs_query(*state, independent), ACS_OK);
    assert_int_equal(y, 0);
    assert_int_equal(z, 1);
    assert_int_equal(acs_op_error(*state, failed, &e), ACS_ERR_HOST);
    assert_int_equal(e.native, 42);
    assert_int_equal(e.op, failed);
    assert_int_equal(e.site.line, line);
    assert_string_equal(e.site.file, __FILE__);
    assert_non_null(strstr(e.site.name, "failing_function"));
    assert_int_equal(acs_op_error(*state, indirect, &e), ACS_ERR_SKIPPED);
    assert_int_equal(e.cause, failed);
    assert_int_equal(acs_context_error(*state, &e), ACS_ERR_HOST);
    assert_int_equal(e.op, failed);
    assert_int_equal(acs_wait_range(*state, &y, sizeof y, ACS_READ), ACS_ERR_SKIPPED);
    assert_int_equal(acs_wait_range(*state, &z, sizeof z, ACS_READ), ACS_OK);
}

static void clear_forgets_failures_and_the_program_goes_on(void **state)
{
    int x = 0;
    acs_op failed = acs_host(*state, failing_function, NULL, 0, ACS_USES(ACS_OUT(&x, sizeof x)));
    acs_op skipped = queue_increment(*state, &x);
    assert_int_equal(acs_clear(*state), ACS_OK);
    assert_int_equal(acs_op_error(*state, failed, NULL), ACS_OK);
    assert_int_equal(acs_op_error(*state, skipped, NULL), ACS_OK);
    acs_op after = queue_increment(*state, &x);
    assert_int_equal(acs_wait(*state, after), ACS_OK);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(x, 1);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static void free_of_what_is_not_an_allocation_is_refused(void **state)
{
    char *memory = NULL;
    int x;
    assert_int_equal(acs_malloc(*state, 1000, ACS_MEMORY_DEVICE, (void **)&memory), ACS_OK);
    assert_int_equal((uintptr_t)memory % 256, 0);
    assert_int_equal(acs_free(*state, &x), 0);
    assert_error(ACS_ERR_ARGUMENT, "0x");
    assert_int_equal(acs_free(*state, memory + 256), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    acs_op freed = acs_free(*state, memory);
    assert_int_not_equal(freed, 0);
    assert_int_equal(acs_free(*state, memory), 0);
    assert_error(ACS_ERR_ARGUMENT, "free");
    assert_int_equal(acs_wait(*state, freed), ACS_OK);
    assert_int_equal(acs_free(*state, NULL), freed);
}

static void free_of_null_before_the_first_op_gives_an_op_to_wait_for(void **state)
{
    acs_op first = acs_free(*state, NULL);
    assert_int_not_equal(first, 0);
    assert_int_equal(acs_wait(*state, first), ACS_OK);
    assert_int_equal(acs_free(*state, NULL), first);
    assert_int_equal(acs_sync(*state), ACS_OK);
}

static void free_of_null_in_a_group_before_the_first_op_succeeds(void **state)
{
    assert_int_equal(acs_group_begin(*state, 0), ACS_OK);
    acs_op first = acs_free(*state, NULL);
    assert_int_not_equal(first, 0);
    assert_int_equal(acs_wait(*state, first), ACS_OK);
    assert_int_equal(acs_group_submit(*state, NULL, NULL), ACS_OK);
}

/* A sanitizer's malloc then fails as malloc does, instead of ending the program. Unused without one. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void malloc_of_too_much_or_of_an_unknown_kind_is_an_error(void **state)
{
    void *memory = state;
    assert_int_equal(acs_malloc(*state, SIZE_MAX / 2, ACS_MEMORY_DEVICE, &memory), ACS_ERR_MEMORY);
    assert_int_equal(acs_malloc(*state, 16, 77, &memory), ACS_ERR_ARGUMENT);
    assert_ptr_equal(memory, state);
}

static acs_context *open_checked(int backend, int pool)
{
    acs_options options;
    acs_context *context = NULL;
    acs_options_init(&options, sizeof options);
    options.backend = backend;
    options.pool = pool;
    options.check = ACS_CHECK_OVERLAP;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* ACS_CHECK=overlap: refused at the launch. */
static void check_finds_segments_beyond_or_after_their_allocation(void **state)
{
    acs_context *context = open_checked(ACS_BACKEND_SIM, ACS_POOL_AUTO);
    char *memory = NULL;
    (void)state;
    assert_int_equal(acs_malloc(context, 1000, ACS_MEMORY_DEVICE, (void **)&memory), ACS_OK);
    assert_int_not_equal(acs_memset(context, memory, 1, 1000), 0);
    assert_int_equal(acs_memset(context, memory + 500, 1, 501), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_CHECK);
    assert_int_not_equal(acs_free(context, memory), 0);
    assert_int_equal(acs_memset(context, memory, 1, 10), 0);
    assert_error(ACS_ERR_CHECK, "freed");
    acs_sync(context);
    assert_int_equal(acs_memset(context, memory, 1, 10), 0);
    assert_error(ACS_ERR_CHECK, "freed");
    acs_close(context);
}

static void check_finds_segments_that_reach_into_an_allocation_from_before(void **state)
{
    (void)state;
    for (int pool = ACS_POOL_OFF; pool <= ACS_POOL_AUTO; pool++) {
        acs_context *context = open_checked(ACS_BACKEND_HOST, pool);
        char *memory = NULL;
        assert_int_equal(acs_malloc(context, 1000, ACS_MEMORY_DEVICE, (void **)&memory), ACS_OK);
        const acs_segment reaching[] = {ACS_IN(memory - 1, 10), ACS_IN(memory - 200, 2000),
                                        ACS_TILE_IN(memory - 100, 4, 5, 100)};
        for (int i = 0; i < 3; i++) {
            acs_launch_params launch = good_launch();
            launch.uses.segments = &reaching[i];
            launch.uses.count = 1;
            assert_int_equal(acs_launch(context, &launch), 0);
            assert_int_equal(acs_last_error(NULL), ACS_ERR_CHECK);
        }
        acs_close(context);
    }
}

static atomic_bool g_free_may_run;

static int wait_for_leave(void *closure)
{
    (void)closure;
    while (!atomic_load_explicit(&g_free_may_run, memory_order_acquire))
        sched_yield();
    return 0;
}

/* With ACS_POOL=off the system has the block's address again: malloc may give it to the program. */
static void check_lets_go_of_an_address_once_its_block_was_given_back(void **state)
{
    acs_context *context = open_checked(ACS_BACKEND_HOST, ACS_POOL_OFF);
    char *memory = NULL;
    (void)state;
    assert_int_equal(acs_malloc(context, 4096, ACS_MEMORY_DEVICE, (void **)&memory), ACS_OK);
    atomic_store_explicit(&g_free_may_run, false, memory_order_relaxed); /* the op comes behind */
    assert_int_not_equal(acs_host(context, wait_for_leave, NULL, 0, ACS_USES(ACS_INOUT(memory, 4096))), 0);
    assert_int_not_equal(acs_free(context, memory), 0);
    assert_int_equal(acs_memset(context, memory, 1, 10), 0);
    assert_error(ACS_ERR_CHECK, "freed");
    atomic_store_explicit(&g_free_may_run, true, memory_order_release);
    acs_sync(context);
    acs_clear(context);
    /* a kernel that touches nothing: the address may be nobody's here */
    acs_launch_params launch = good_launch();
    const acs_segment own = ACS_INOUT(memory, 10);
    launch.uses.segments = &own;
    launch.uses.count = 1;
    assert_int_not_equal(acs_launch(context, &launch), 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------ waits, statistics */

static atomic_int g_gate; /* 1: gate_body may return */

static void gate_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
    while (!atomic_load_explicit(&g_gate, memory_order_acquire)) /* pairs with the test's release */
        sched_yield();
}

static const acs_kernel g_gate_kernel = ACS_KERNEL_HOST_INIT("gate", gate_body);

/* The gate keeps one executor; how many there are else depends on the machine. */
static int setup_two_executors(void **state)
{
    acs_options options;
    acs_context *context = NULL;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_HOST;
    options.workers = 1;
    options.executors = 2;
    if (acs_open(&options, &context) != ACS_OK)
        return -1;
    *state = context;
    return 0;
}

static void query_and_range_waits_do_not_wait_for_what_still_runs(void **state)
{
    int x = 0, y = 0;
    atomic_store_explicit(&g_gate, 0, memory_order_relaxed); /* nothing runs yet */
    acs_op gate = ACS_LAUNCH_ON(*state, &g_gate_kernel, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_OUT(&x, sizeof x)));
    acs_op behind = queue_increment(*state, &x);
    acs_op other = queue_increment(*state, &y);
    assert_int_equal(acs_wait_range(*state, &y, sizeof y, ACS_READ), ACS_OK);
    assert_int_equal(y, 1);
    assert_int_equal(acs_wait(*state, other), ACS_OK);
    assert_int_equal(acs_query(*state, gate), ACS_NOT_READY);
    assert_int_equal(acs_query(*state, behind), ACS_NOT_READY);
    atomic_store_explicit(&g_gate, 1, memory_order_release); /* pairs with gate_body's acquire */
    assert_int_equal(acs_wait_range(*state, &x, sizeof x, ACS_READ), ACS_OK);
    assert_int_equal(x, 1);
    assert_int_equal(acs_query(*state, behind), ACS_OK);
}

static void unwanted_callback(void *user, acs_op op, acs_status status)
{
    (void)user;
    (void)op;
    (void)status;
}

static void wait_for_an_op_that_was_never_queued_is_an_error(void **state)
{
    acs_op op = ACS_LAUNCH_ON(*state, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE);
    assert_int_equal(acs_wait(*state, op + 1), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_wait(*state, 0), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_query(*state, op + 1000), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_on_retire(*state, op + 1000, unwanted_callback, NULL), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_wait(*state, op), ACS_OK);
}

static acs_status range_wait(acs_context *context)
{
    static int x;
    return acs_wait_range(context, &x, sizeof x, ACS_READ);
}

static acs_status order_stream(acs_context *context)
{
    return acs_stream_after(context, NULL, ACS_USES_NONE);
}

static acs_status queue_one(acs_context *context)
{
    return ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE) ? ACS_OK : acs_last_error(NULL);
}

/* Only a defect of the library brings a simulation there: nobody steps, the FIFO is full, and waits give up. */
static void calls_that_find_no_room_and_never_will_say_so(void **state)
{
    acs_status (*const calls[])(acs_context *) = {range_wait, order_stream, queue_one};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        acs_options options;
        acs_context *context = NULL;
        acs_options_init(&options, sizeof options);
        options.backend = ACS_BACKEND_SIM;
        options.fifo = 2;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        atomic_store_explicit(&context->sim_driver->stepping, 1, memory_order_relaxed); /* one thread */
        context->sim_driver->stuck = true;
        for (int op = 0; op < 2; op++)
            assert_int_equal(queue_one(context), ACS_OK);
        assert_int_equal(calls[i](context), ACS_ERR_DEVICE);
        assert_error(ACS_ERR_DEVICE, "nothing will leave it any more");
        atomic_store_explicit(&context->sim_driver->stepping, 0, memory_order_relaxed);
        context->sim_driver->stuck = false;
        assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
        assert_int_equal(acs_close(context), ACS_ERR_DEVICE);
    }
}

static void steps_do_all_the_work_where_there_are_no_workers(void **state)
{
    int x = 0;
    acs_op op = 0;
    assert_int_equal(acs_step(*state), ACS_NOT_READY);
    for (int i = 0; i < 5; i++)
        op = queue_increment(*state, &x);
    while (acs_query(*state, op) == ACS_NOT_READY)
        acs_step(*state);
    assert_int_equal(acs_query(*state, op), ACS_OK);
    assert_int_equal(x, 31);
}

static void statistics_count_what_was_queued(void **state)
{
    acs_statistics stats = {.size = 0};
    int x = 0, y = 0, z = 0;
    assert_int_equal(acs_stats(*state, &stats), ACS_ERR_ARGUMENT);
    stats.size = sizeof stats + 1; /* of another version, which had more */
    assert_int_equal(acs_stats(*state, &stats), ACS_ERR_ARGUMENT);
    stats.size = sizeof stats;
    for (int i = 0; i < 6; i++)
        queue_increment(*state, &x);
    acs_memset(*state, &y, 0, sizeof y);
    acs_memcpy(*state, &z, &y, sizeof y);
    acs_host(*state, failing_function, NULL, 0, ACS_USES_NONE);
    acs_sync(*state);
    assert_int_equal(acs_stats(*state, &stats), ACS_OK);
    assert_int_equal(stats.size, sizeof stats);
    assert_int_equal(stats.queued, 9);
    assert_int_equal(stats.retired, 9);
    assert_int_equal(stats.failed, 1);
    assert_int_equal(stats.skipped, 0);
    assert_int_equal(stats.kernels, 6);
    assert_int_equal(stats.fills, 1);
    assert_int_equal(stats.copies, 1);
    assert_int_equal(stats.host_functions, 1);
    assert_int_equal(stats.levels, 6);
    assert_in_range(stats.edges, 0, 6); /* an op that has ended before the next is inserted takes no edge */
    assert_in_range(stats.window_high, 1, 9);
}

/* ------------------------------------------------------------------------------------------------- call-site macros */

typedef struct mixed {
    char c;
    double d;
    short s[3];
} mixed;

/* What a body got, for the test to compare after it waited. */
static struct received {
    int i;
    float f;
    double d;
    mixed m;
    const int *array;
    char c;
    const char *text;
    long sum;
    uint32_t x, y;
    uint64_t shared;
} g_received;

static void receive_body(const acs_grid *grid, void *const *args)
{
    g_received.x = grid->grid.x;
    g_received.y = grid->block.y;
    g_received.shared = grid->shared_bytes;
    memcpy(&g_received.i, args[0], sizeof(int));
    memcpy(&g_received.f, args[1], sizeof(float));
    memcpy(&g_received.d, args[2], sizeof(double));
    memcpy(&g_received.m, args[3], sizeof(mixed));
    memcpy(&g_received.array, args[4], sizeof(int *));
    memcpy(&g_received.c, args[5], sizeof(char));
    memcpy(&g_received.text, args[6], sizeof(char *));
}

static void sum_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    g_received.sum = 0;
    for (int i = 0; i < 32; i++)
        g_received.sum += (i + 1) * *(const int *)args[i];
}

static void args_keep_the_type_and_value_of_each_expression(void **state)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("receive", receive_body);
    acs_dim3 grid = {7, 1, 1};
    mixed m = {'m', 2.5, {1, 2, 3}};
    int array[4] = {10, 11, 12, 13};
    const char letter = 'q';
    memset(&g_received, 0, sizeof g_received);
    acs_op op = ACS_LAUNCH_ON(*state, &kernel, grid, ((acs_dim3){2, 3, 1}), 64,
                              ACS_ARGS(array[1] + 1, 1.5f, ACS_VAL(double, 3), m, array, letter, "text"), ACS_USES_NONE);
    m.d = 0; /* it was copied */
    assert_int_equal(acs_wait(*state, op), ACS_OK);
    assert_int_equal(g_received.i, 12);
    assert_true(g_received.f == 1.5f);
    assert_true(g_received.d == 3.0);
    assert_true(g_received.m.d == 2.5);
    assert_int_equal(g_received.m.s[2], 3);
    assert_ptr_equal(g_received.array, array);
    assert_int_equal(g_received.c, 'q');
    assert_string_equal(g_received.text, "text");
    assert_int_equal(g_received.x, 7);
    assert_int_equal(g_received.y, 3);
    assert_int_equal(g_received.shared, 64);
}

static void args_know_which_are_pointers(void **state)
{
    (void)state;
    int array[2] = {0}, *pointer = array;
    mixed m = {0};
    acs_args args = ACS_ARGS(array, pointer, m, 1, 2.0f, &array[1]);
    const uint32_t types[] = {ACS_ARG_POINTER, ACS_ARG_POINTER, ACS_ARG_VALUE,
                              ACS_ARG_VALUE,   ACS_ARG_VALUE,   ACS_ARG_POINTER};
    const size_t sizes[] = {sizeof(void *), sizeof(void *), sizeof(mixed), sizeof(int), sizeof(float), sizeof(void *)};
    assert_int_equal(args.count, 6);
    for (size_t i = 0; i < args.count; i++) {
        assert_int_equal(args.list[i].type, types[i]);
        assert_int_equal(args.list[i].size, sizes[i]);
    }
    assert_int_equal((ACS_NO_ARGS).count, 0);
}

static void args_take_up_to_32(void **state)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("sum", sum_body);
    acs_op op = ACS_LAUNCH_ON(*state, &kernel, 1, 1, 0,
                              ACS_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
                                       25, 26, 27, 28, 29, 30, 31, 32), ACS_USES_NONE);
    assert_int_equal(acs_wait(*state, op), ACS_OK);
    assert_int_equal(g_received.sum, 11440); /* 1 * 1 + 2 * 2 + ... + 32 * 32 */
}

static void uses_count_and_describe_their_segments(void **state)
{
    (void)state;
    char bytes[64];
    acs_uses uses = ACS_USES(ACS_IN(bytes, 10), ACS_TILE_INOUT(bytes + 1, 4, 3, 16), ACS_ALL_MEMORY_IN, ACS_TOKEN_IN(5));
    assert_int_equal(uses.count, 4);
    assert_int_equal(uses.any, 0);
    assert_int_equal(uses.segments[0].base, (uintptr_t)bytes);
    assert_int_equal(uses.segments[0].rows, 1);
    assert_int_equal(uses.segments[0].access, ACS_READ);
    assert_int_equal(uses.segments[1].access, ACS_UPDATE);
    assert_int_equal(uses.segments[1].rows, 3);
    assert_int_equal(uses.segments[1].pitch_bytes, 16);
    assert_int_equal(uses.segments[2].extent, ACS_EXTENT_ALL);
    assert_int_equal(uses.segments[3].extent, ACS_EXTENT_TOKEN);
    assert_int_equal(uses.segments[3].base, 5);
    assert_int_equal((ACS_USES_ANY).any, 1);
    assert_int_equal((ACS_USES_NONE).any, 0);
}

static void grid_that_does_not_fit_32_bits_is_refused(void **state)
{
    assert_int_equal(ACS_LAUNCH_ON(*state, &g_nothing, 1ull << 40, 1, 0, ACS_NO_ARGS, ACS_USES_NONE), 0);
    assert_error(ACS_ERR_ARGUMENT, "grid");
}

/* ------------------------------------------------------------------------------------------------------ cancellation */

typedef struct cancelled {
    acs_context *context;
    acs_op op;
    atomic_bool sent, open, returned;
} cancelled;

static int wait_until_open(void *closure)
{
    cancelled *c = *(cancelled **)closure;
    while (!atomic_load(&c->open))
        sched_yield();
    return 0;
}

static void *wait_while_cancelled(void *argument)
{
    cancelled *c = argument;
    while (!atomic_load(&c->sent))
        sched_yield();
    (void)acs_wait(c->context, c->op);
    atomic_store(&c->returned, true);
    pthread_testcancel();
    return NULL;
}

/* The request is pending when the wait begins, and the op ends only once the waiter sleeps. */
static void cancelled_thread_leaves_its_wait_first(void **state)
{
    cancelled c = {.context = *state}, *closure = &c;
    pthread_t thread;
    void *result = NULL;
    c.op = acs_host(*state, wait_until_open, &closure, sizeof closure, ACS_USES_NONE);
    assert_int_not_equal(c.op, 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_while_cancelled, &c), 0);
    assert_int_equal(pthread_cancel(thread), 0);
    atomic_store(&c.sent, true);
    while (!acs_eventcount_waiters(&c.context->ends))
        sched_yield();
    atomic_store(&c.open, true);
    pthread_join(thread, &result);
    assert_true(atomic_load(&c.returned));
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(acs_sync(*state), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM(failed_host_function_skips_what_depends_on_it_alone),
        HOST(failed_host_function_skips_what_depends_on_it_alone),
        INLINE(failed_host_function_skips_what_depends_on_it_alone),
        SIM(clear_forgets_failures_and_the_program_goes_on),
        HOST(clear_forgets_failures_and_the_program_goes_on),
        SIM(free_of_what_is_not_an_allocation_is_refused),
        SIM(free_of_null_before_the_first_op_gives_an_op_to_wait_for),
        SIM(free_of_null_in_a_group_before_the_first_op_succeeds),
        SIM(malloc_of_too_much_or_of_an_unknown_kind_is_an_error),
        cmocka_unit_test(check_finds_segments_beyond_or_after_their_allocation),
        cmocka_unit_test(check_finds_segments_that_reach_into_an_allocation_from_before),
        cmocka_unit_test(check_lets_go_of_an_address_once_its_block_was_given_back),
        cmocka_unit_test_setup_teardown(query_and_range_waits_do_not_wait_for_what_still_runs, setup_two_executors,
                                        close_quietly),
        SIM(wait_for_an_op_that_was_never_queued_is_an_error),
        cmocka_unit_test(calls_that_find_no_room_and_never_will_say_so),
        INLINE(steps_do_all_the_work_where_there_are_no_workers),
        SIM(statistics_count_what_was_queued),
        HOST(statistics_count_what_was_queued),
        SIM(args_keep_the_type_and_value_of_each_expression),
        HOST(args_keep_the_type_and_value_of_each_expression),
        cmocka_unit_test(args_know_which_are_pointers),
        SIM(args_take_up_to_32),
        cmocka_unit_test(uses_count_and_describe_their_segments),
        SIM(grid_that_does_not_fit_32_bits_is_refused),
        HOST(cancelled_thread_leaves_its_wait_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

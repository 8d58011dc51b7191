/*
 * ACS_WATCHDOG_S through the public API: ops that never end, in every way in which a context has threads, on CPU threads.
 * What they block on is released only after acs_close returned, so a wait that hangs here hangs for good, and what acs_close
 * freed too early is used after. Nothing is timed: a second of the limit is a few hundredths of it where only ops that never
 * end, or wait for one that does not, are there to be given up. Elsewhere it is an hour, by a clock of the test.
 */
#include "api_fixture.h"

#include "api/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum { UNIT_NS = 50000000, THREADS = 4 };
#define HOUR_NS 3600000000000u

/* ------------------------------------------------------------------------------------------- bodies that do not end */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    int inside, returned;
} g_gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void gate_pass(void)
{
    pthread_mutex_lock(&g_gate.mutex);
    g_gate.inside++;
    while (!g_gate.open)
        pthread_cond_wait(&g_gate.changed, &g_gate.mutex);
    pthread_mutex_unlock(&g_gate.mutex);
}

/* The last thing that a body does. */
static void gate_leave(void)
{
    pthread_mutex_lock(&g_gate.mutex);
    g_gate.returned++;
    pthread_cond_broadcast(&g_gate.changed);
    pthread_mutex_unlock(&g_gate.mutex);
}

/* Let everybody pass, and wait until they have. */
static void gate_open(void)
{
    pthread_mutex_lock(&g_gate.mutex);
    g_gate.open = true;
    pthread_cond_broadcast(&g_gate.changed);
    while (g_gate.returned < g_gate.inside)
        pthread_cond_wait(&g_gate.changed, &g_gate.mutex);
    pthread_mutex_unlock(&g_gate.mutex);
}

static int gate_shut(void **state)
{
    (void)state;
    g_gate.open = false;
    g_gate.inside = g_gate.returned = 0;
    return 0;
}

/* Uses its argument once more when it ends at last. */
static void endless_body(const acs_grid *grid, void *const *args)
{
    increment_body(grid, args);
    gate_pass();
    increment_body(grid, args);
    gate_leave();
}

static const acs_kernel g_endless = ACS_KERNEL_HOST_INIT("endless", endless_body);

static int endless_function(void *closure)
{
    (void)closure;
    gate_pass();
    gate_leave();
    return 0;
}

static int endless_call(const acs_call_env *env, void *closure)
{
    gate_pass();
    memset(env->scratch, 1, env->scratch_bytes);
    int result = *(int *)closure; /* a copy, in the op's record */
    gate_leave();
    return result;
}

static void endless_callback(void *user, acs_op op, acs_status status)
{
    (void)user;
    (void)op;
    (void)status;
    gate_pass();
    gate_leave();
}

/* -------------------------------------------------------------------------------------------------------- contexts */

typedef struct shape {
    int64_t workers, executors, window;
    int serial, wait;
} shape;

static acs_context *open_watched(const shape *s)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.workers = s->workers;
    options.executors = s->executors;
    options.serial = s->serial;
    options.wait = s->wait;
    if (s->window)
        options.window = options.fifo = s->window;
    options.watchdog_s = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* No op that ends is overdue, however busy the machine is. */
static acs_context *open_patiently(const shape *s)
{
    acs_core_overdue_unit(HOUR_NS);
    acs_context *context = open_watched(s);
    acs_core_overdue_unit(UNIT_NS);
    return context;
}

/* Hours pass, by the test's clock, once a thread is inside the endless op, and until that is given up. */
static void pass_hours(acs_context *context, acs_op endless)
{
    uint64_t now = acs_clock_ns();
    for (int inside = 0; !inside; sched_yield()) {
        pthread_mutex_lock(&g_gate.mutex);
        inside = g_gate.inside;
        pthread_mutex_unlock(&g_gate.mutex);
    }
    while (acs_context_error(context, NULL) == ACS_OK) {
        (void)acs_query(context, endless); /* may poll */
        (void)acs_watchdog_look(context, now += HOUR_NS / 4);
    }
}

static acs_op queue_endless(acs_context *context, int *x)
{
    acs_op op = ACS_LAUNCH_ON(context, &g_endless, 1, 1, 0, ACS_ARGS(x), ACS_USES(ACS_INOUT(x, sizeof *x)));
    assert_int_not_equal(op, 0);
    return op;
}

static void assert_given_up(acs_context *context, acs_op op)
{
    acs_error e = {.size = sizeof e};
    assert_int_equal(acs_context_error(context, &e), ACS_ERR_DEVICE);
    assert_int_equal(e.native, ETIMEDOUT);
    assert_int_equal(e.op, op);
    assert_non_null(strstr(e.text, "has not ended for"));
    assert_int_equal(acs_op_error(context, op, NULL), ACS_ERR_DEVICE);
}

/*
 * On a machine that is busy enough an op is given up that no thread has come to yet; then nothing is left behind. An op that
 * is inside by now was claimed before, since nothing begins after.
 */
static void close_and_open_gate(acs_context *context)
{
    assert_int_equal(acs_close(context), ACS_ERR_DEVICE);
    pthread_mutex_lock(&g_gate.mutex);
    int inside = g_gate.inside;
    pthread_mutex_unlock(&g_gate.mutex);
    if (inside)
        assert_error(ACS_ERR_DEVICE, "may never end");
    assert_int_equal(acs_sync(context), ACS_ERR_STATE);
    gate_open();
}

/* Nothing runs any more, and every call says so. */
static void close_given_up(acs_context *context)
{
    int x = 0;
    void *memory = NULL;
    acs_launch_params launch = good_launch();
    assert_launch_refused(context, &launch, ACS_ERR_DEVICE, "lost");
    assert_int_equal(acs_malloc(context, 16, ACS_MEMORY_DEVICE, &memory), ACS_ERR_DEVICE);
    assert_int_equal(acs_wait_range(context, &x, sizeof x, ACS_READ), ACS_ERR_DEVICE);
    assert_int_equal(acs_clear(context), ACS_ERR_DEVICE);
    assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
    close_and_open_gate(context);
}

/* ----------------------------------------------------------------------------------------------------------- kernels */

static const shape g_shapes[] = {
    {.workers = 1}, {.workers = 0}, {.workers = 3, .executors = 2}, {.workers = 1, .serial = 1},
    {.workers = 0, .serial = 1}, {.workers = 1, .wait = ACS_WAIT_HOST}, {.workers = 1, .executors = 1, .window = 2},
};

static void kernel_that_never_ends_ends_every_wait_and_the_close(void **state)
{
    static int x[sizeof g_shapes / sizeof g_shapes[0]]; /* outlive the kernel */
    for (size_t i = 0; i < sizeof g_shapes / sizeof g_shapes[0]; i++) {
        gate_shut(state);
        acs_context *context = open_watched(&g_shapes[i]);
        acs_op endless = queue_endless(context, &x[i]);
        acs_op behind = g_shapes[i].window ? endless : queue_increment(context, &x[i]);
        assert_int_equal(acs_wait(context, behind), ACS_ERR_DEVICE);
        assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
        assert_given_up(context, endless);
        close_given_up(context);
        assert_in_range(x[i], 0, 3); /* what was behind it never ran */
    }
}

static void close_alone_ends_too(void **state)
{
    static int x;
    const shape s = {.workers = 1};
    (void)state;
    acs_context *context = open_watched(&s);
    queue_endless(context, &x);
    close_and_open_gate(context);
}

/* The producer waits for room in a FIFO that does not move. */
static void launches_into_a_full_fifo_end(void **state)
{
    static int x;
    const shape s = {.workers = 1, .window = 2};
    (void)state;
    acs_context *context = open_watched(&s);
    acs_op endless = queue_endless(context, &x);
    acs_op op;
    do
        op = ACS_LAUNCH_ON(context, &g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    while (op);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_DEVICE);
    assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
    assert_given_up(context, endless);
    close_given_up(context);
}

/* Memory that the kernel may use is not freed, by acs_free or by acs_close. */
static void memory_that_the_kernel_may_use_stays(void **state)
{
    const shape s = {.workers = 1};
    int *freed = NULL, *kept = NULL;
    (void)state;
    acs_context *context = open_watched(&s);
    assert_int_equal(acs_malloc(context, sizeof *freed, ACS_MEMORY_DEVICE, (void **)&freed), ACS_OK);
    assert_int_equal(acs_malloc(context, sizeof *kept, ACS_MEMORY_DEVICE, (void **)&kept), ACS_OK);
    *freed = *kept = 0;
    queue_endless(context, freed);
    acs_op other = queue_endless(context, kept);
    acs_op gone = acs_free(context, freed);
    assert_int_equal(acs_wait(context, gone), ACS_ERR_DEVICE);
    assert_int_equal(acs_wait(context, other), ACS_ERR_DEVICE);
    close_given_up(context);
    if (g_gate.returned > 0) /* else nothing began, and acs_close has freed them */
        assert_in_range(*freed + *kept, 3, 6);
}

/* ----------------------------------------------------------------------------------- on the library's threads */

static void host_function_that_never_returns_is_given_up(void **state)
{
    static int x;
    const shape s = {.workers = 1};
    (void)state;
    acs_context *context = open_watched(&s);
    acs_op endless = acs_host(context, endless_function, NULL, 0, ACS_USES(ACS_OUT(&x, sizeof x)));
    acs_op behind = queue_increment(context, &x);
    assert_int_equal(acs_wait(context, behind), ACS_ERR_DEVICE);
    assert_given_up(context, endless);
    assert_int_equal(acs_clear(context), ACS_ERR_DEVICE);
    assert_given_up(context, endless);
    assert_int_equal(acs_wait(context, endless), ACS_ERR_DEVICE);
    assert_int_equal(acs_query(context, behind), ACS_ERR_DEVICE);
    assert_int_equal(acs_op_error(context, behind, NULL), ACS_ERR_DEVICE);
    close_given_up(context);
    assert_int_equal(x, 0);
}

static void library_call_that_never_returns_is_given_up(void **state)
{
    const shape s = {.workers = 2};
    const int result = 7;
    acs_call_params call = {.size = sizeof call, .function = endless_call, .closure = &result, .scratch_bytes = 64,
                            .closure_bytes = sizeof result};
    (void)state;
    acs_context *context = open_watched(&s);
    acs_op endless = acs_call(context, &call);
    assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
    assert_given_up(context, endless);
    close_given_up(context);
}

static void callback_that_never_returns_is_given_up(void **state)
{
    static int x;
    const shape s = {.workers = 1};
    (void)state;
    acs_context *context = open_patiently(&s);
    acs_op well = queue_increment(context, &x);
    acs_op endless = acs_on_retire(context, well, endless_callback, NULL);
    pass_hours(context, endless);
    assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
    assert_int_equal(acs_op_error(context, well, NULL), ACS_OK);
    assert_given_up(context, endless);
    close_given_up(context);
}

static acs_op queue_stuck(acs_context *context, int how, int *x)
{
    const int result = 7;
    acs_call_params call = {.size = sizeof call, .function = endless_call, .closure = &result, .scratch_bytes = 64,
                            .closure_bytes = sizeof result};
    if (how == 0)
        return acs_host(context, endless_function, NULL, 0, ACS_USES(ACS_OUT(x, sizeof *x)));
    return how == 1 ? queue_endless(context, x) : acs_call(context, &call);
}

static void keep_status(void *user, acs_op op, acs_status status)
{
    (void)op;
    *(acs_status *)user = status;
}

/* The thread of host functions is inside one for ever, and callbacks, which are never skipped, wait for it. */
static void callbacks_behind_what_never_returns_are_called(void **state)
{
    static int x[6];
    for (int i = 0; i < 6; i++) {
        const shape s = {.workers = 1 + i % 2};
        acs_status told = ACS_ERR_INTERNAL;
        gate_shut(state);
        acs_context *context = open_patiently(&s);
        acs_op endless = queue_stuck(context, i / 2, &x[i]);
        acs_op callback = acs_on_retire(context, endless, keep_status, &told);
        pass_hours(context, endless);
        assert_int_equal(i % 2 ? acs_sync(context) : acs_wait(context, callback), i % 2 ? ACS_ERR_DEVICE : ACS_OK);
        assert_int_equal(told, ACS_ERR_DEVICE);
        assert_given_up(context, endless);
        close_given_up(context);
    }
}

/* Its op ended before: the callback is behind the endless function in the host's queue alone. */
static void callback_of_an_earlier_op_is_called(void **state)
{
    static int x;
    const shape s = {.workers = 1};
    acs_status told = ACS_ERR_INTERNAL;
    (void)state;
    acs_context *context = open_patiently(&s);
    acs_op well = queue_increment(context, &x);
    assert_int_equal(acs_wait(context, well), ACS_OK);
    acs_op endless = queue_stuck(context, 0, &x);
    (void)acs_on_retire(context, well, keep_status, &told);
    pass_hours(context, endless);
    assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
    assert_int_equal(told, ACS_OK);
    assert_given_up(context, endless);
    close_given_up(context);
}

/* Without pools acs_free is an op of the host's queue. */
static void free_behind_what_never_returns_ends(void **state)
{
    static int x;
    acs_options options;
    acs_context *context = NULL;
    void *memory = NULL;
    (void)state;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.pool = ACS_POOL_OFF;
    options.watchdog_s = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_malloc(context, 100, ACS_MEMORY_DEVICE, &memory), ACS_OK);
    acs_op endless = queue_stuck(context, 0, &x);
    acs_op gone = acs_free(context, memory);
    assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
    assert_in_set(acs_wait(context, gone), ((unsigned long[]){ACS_OK, ACS_ERR_DEVICE}), 2);
    assert_given_up(context, endless);
    close_given_up(context);
}

/* ---------------------------------------------------------------------------------------------------- many threads */

typedef struct waiter {
    acs_context *context;
    acs_op op;
    int how;
    acs_status status;
} waiter;

static void *wait_somehow(void *argument)
{
    waiter *w = argument;
    if (w->how == 0)
        w->status = acs_sync(w->context);
    else if (w->how == 1)
        w->status = acs_wait(w->context, w->op);
    else if (w->how == 2)
        while ((w->status = acs_query(w->context, w->op)) == ACS_NOT_READY)
            sched_yield();
    else
        w->status = acs_clear(w->context);
    return NULL;
}

static void waits_of_many_threads_all_end(void **state)
{
    static int x[2];
    for (int workers = 0; workers < 2; workers++) {
        const shape s = {.workers = workers};
        waiter w[THREADS];
        pthread_t threads[THREADS];
        gate_shut(state);
        acs_context *context = open_watched(&s);
        queue_endless(context, &x[workers]);
        acs_op behind = queue_increment(context, &x[workers]);
        for (int i = 0; i < THREADS; i++) {
            w[i] = (waiter){context, behind, i, ACS_OK};
            assert_int_equal(pthread_create(&threads[i], NULL, wait_somehow, &w[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(w[i].status, ACS_ERR_DEVICE); /* acs_clear does not forget it */
        }
        close_given_up(context);
    }
}

/* Polling is all that a program does that has no worker and never waits. */
static void queries_alone_find_out(void **state)
{
    static int x;
    const shape s = {.workers = 0};
    (void)state;
    acs_context *context = open_watched(&s);
    acs_op endless = queue_endless(context, &x);
    waiter w = {context, endless, 2, ACS_OK};
    wait_somehow(&w);
    assert_int_equal(w.status, ACS_ERR_DEVICE);
    close_given_up(context);
}

/* ------------------------------------------------------------------------------------------------------ nothing wrong */

static void ops_that_end_are_left_alone(void **state)
{
    const shape s = {.workers = 1};
    int x = 0, y = 0;
    (void)state;
    acs_context *context = open_patiently(&s);
    for (int i = 0; i < 500; i++)
        ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(i % 2 ? &x : &y, sizeof x)));
    acs_host(context, endless_function, NULL, 0, ACS_USES(ACS_INOUT(&x, sizeof x)));
    gate_open();
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* It is inside when the process ends. */
static void kernel_that_never_ever_ends_is_left_to_the_process(void **state)
{
    static int x;
    const shape s = {.workers = 1};
    (void)state;
    acs_context *context = open_watched(&s);
    queue_endless(context, &x);
    assert_int_equal(acs_close(context), ACS_ERR_DEVICE);
}

#define GATED(test) cmocka_unit_test_setup(test, gate_shut)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATED(kernel_that_never_ends_ends_every_wait_and_the_close),
        GATED(close_alone_ends_too),
        GATED(launches_into_a_full_fifo_end),
        GATED(memory_that_the_kernel_may_use_stays),
        GATED(host_function_that_never_returns_is_given_up),
        GATED(library_call_that_never_returns_is_given_up),
        GATED(callback_that_never_returns_is_given_up),
        GATED(callbacks_behind_what_never_returns_are_called),
        GATED(callback_of_an_earlier_op_is_called),
        GATED(free_behind_what_never_returns_ends),
        GATED(waits_of_many_threads_all_end),
        GATED(queries_alone_find_out),
        GATED(ops_that_end_are_left_alone),
        GATED(kernel_that_never_ever_ends_is_left_to_the_process),
    };
    acs_core_overdue_unit(UNIT_NS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

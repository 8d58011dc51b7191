/*
 * ACS_WATCHDOG_S on the CUDA backend, over the twin: nothing that was issued runs until the test says so, or until a call is
 * made that waits for it, which is what must not happen before acs_close returned. What ran then may use what it was
 * given. Time passes by a clock of the test, once all is issued that can be: a thread that gets no CPU is not inside an op
 * for long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/watchdog.h"
#include "twin.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#define HOUR_NS 3600000000000u /* no test takes so long, by any other clock */

static void increment(void *const *args)
{
    int *x = NULL;
    memcpy(&x, args[0], sizeof x);
    ++*x;
}

static acs_kernel kernel_make(void)
{
    static const uint32_t bytes[] = {sizeof(void *)};
    const twin_kernel_spec spec = {.name = "kernel", .body = increment, .param_count = 1, .param_bytes = bytes};
    return (acs_kernel){"kernel", (const void *)twin_kernel(&spec), NULL, ACS_KERNEL_HANDLE, 0};
}

static acs_context *open_watched(int64_t workers, int serial, int wait)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = workers;
    options.serial = serial;
    options.wait = wait;
    options.watchdog_s = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static acs_op queue(acs_context *context, const acs_kernel *kernel, int *x)
{
    acs_op op = ACS_LAUNCH_ON(context, kernel, 1, 1, 0, ACS_ARGS(x), ACS_USES(ACS_INOUT(x, sizeof *x)));
    assert_int_not_equal(op, 0);
    return op;
}

/* Calls that may wait for the device, or take away what runs there. */
static uint64_t calls_that_may_wait(void)
{
    static const char *const names[] = {"cuStreamSynchronize", "cuEventSynchronize", "cuStreamDestroy", "cuEventDestroy",
                                        "cuMemFree", "cuMemFreeHost", "cuDevicePrimaryCtxRelease"};
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        count += twin_count(names[i]);
    return count;
}

static void assert_closes_and_leaves(acs_context *context, const char *word)
{
    acs_error e = {.size = sizeof e};
    assert_int_equal(acs_close(context), ACS_ERR_DEVICE);
    assert_int_equal(acs_last_error(&e), ACS_ERR_DEVICE);
    assert_int_equal(e.native, ETIMEDOUT);
    if (!strstr(e.text, word))
        fail_msg("'%s' does not say '%s'", e.text, word);
}

/* All that was left behind, and what is done with it when the device gets there. */
static void device_goes_on(void)
{
    twin_run_all();
    if (twin_breach())
        fail_msg("%s", twin_breach());
}

/* ---------------------------------------------------------------------------------------------------- the test's clock */

/* A thread that lets hours pass while others wait, until something is given up. */
typedef struct clock_hand {
    acs_context *context;
    acs_op op;
    uint64_t kernels; /* launches before it begins; 0: a thread is inside a submission for ever */
    pthread_t thread;
} clock_hand;

/* Whether a thread is amid the submission of an op. */
static bool is_submitting(acs_core *core)
{
    bool found = false;
    acs_lock_acquire(&core->lock);
    for (const acs_action *a = core->under_way; a; a = a->next_under_way)
        found = found || (a->batch.items_used && a->entries[0]);
    acs_lock_release(&core->lock);
    return found;
}

static void pass_hours(const clock_hand *h)
{
    uint64_t now = acs_clock_ns();
    while (h->kernels && (twin_count("cuLaunchKernelEx") < h->kernels || is_submitting(&h->context->core)))
        sched_yield();
    while (acs_context_error(h->context, NULL) == ACS_OK) {
        (void)acs_query(h->context, h->op); /* may poll */
        (void)acs_watchdog_look(h->context, now += HOUR_NS / 4);
    }
}

static void *turn(void *hand)
{
    pass_hours(hand);
    return NULL;
}

static void kernel_that_never_ends_ends_every_wait_and_no_call_waits_for_it(void **state)
{
    static const int64_t shapes[][4] = {{1, 0, ACS_WAIT_GPU, 3}, {0, 0, ACS_WAIT_GPU, 3}, {3, 0, ACS_WAIT_GPU, 3},
                                        {1, 1, ACS_WAIT_GPU, 1}, {1, 0, ACS_WAIT_HOST, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        int *x = NULL, *kept = NULL;
        acs_error e = {.size = sizeof e};
        twin_reset();
        const acs_kernel kernel = kernel_make();
        acs_context *context = open_watched(shapes[i][0], (int)shapes[i][1], (int)shapes[i][2]);
        assert_int_equal(acs_malloc(context, sizeof *x, ACS_MEMORY_DEVICE, (void **)&x), ACS_OK);
        assert_int_equal(acs_malloc(context, sizeof *kept, ACS_MEMORY_HOST, (void **)&kept), ACS_OK);
        *x = *kept = 0;
        acs_op endless = queue(context, &kernel, x), other = queue(context, &kernel, kept);
        acs_op behind = queue(context, &kernel, x);
        acs_op gone = acs_free(context, x);

        clock_hand hand = {.context = context, .op = behind, .kernels = (uint64_t)shapes[i][3]};
        assert_int_equal(pthread_create(&hand.thread, NULL, turn, &hand), 0);
        assert_int_equal(acs_wait(context, behind), ACS_ERR_DEVICE);
        assert_int_equal(pthread_join(hand.thread, NULL), 0);
        assert_int_equal(acs_wait(context, gone), ACS_ERR_DEVICE);
        assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
        assert_int_equal(acs_context_error(context, &e), ACS_ERR_DEVICE);
        assert_int_equal(e.native, ETIMEDOUT);
        assert_true(e.op == endless || e.op == other);
        assert_closes_and_leaves(context, "an op on the device may never end");

        assert_int_equal(twin_kernels_run(), 0);
        assert_int_equal(calls_that_may_wait(), 0);
        device_goes_on();
        assert_in_range(*x, 1, 2);
    }
}

/* A new context works beside what the old one left. */
static void context_opened_after_it_works(void **state)
{
    int *x = NULL;
    (void)state;
    twin_reset();
    const acs_kernel kernel = kernel_make();
    acs_context *context = open_watched(1, 0, ACS_WAIT_GPU);
    assert_int_equal(acs_malloc(context, sizeof *x, ACS_MEMORY_DEVICE, (void **)&x), ACS_OK);
    *x = 0;
    pass_hours(&(clock_hand){.context = context, .op = queue(context, &kernel, x), .kernels = 1});
    assert_closes_and_leaves(context, "an op on the device may never end");
    twin_set_strategy(TWIN_EAGER);
    context = open_watched(1, 0, ACS_WAIT_GPU);
    queue(context, &kernel, x);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(*x, 2);
    device_goes_on();
}

/* ------------------------------------------------------------------------------- a library call that never returns */

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_changed = PTHREAD_COND_INITIALIZER;
static bool g_inside, g_open, g_returned;

static int endless_call(const acs_call_env *env, void *closure)
{
    (void)env;
    pthread_mutex_lock(&g_mutex);
    g_inside = true;
    pthread_cond_broadcast(&g_changed);
    while (!g_open)
        pthread_cond_wait(&g_changed, &g_mutex);
    g_returned = true;
    pthread_cond_broadcast(&g_changed);
    pthread_mutex_unlock(&g_mutex);
    return *(int *)closure;
}

/* The worker is inside its submission for as long. */
static void library_call_that_never_returns_keeps_its_thread_only(void **state)
{
    const int code = 3;
    acs_call_params call = {.size = sizeof call, .function = endless_call, .closure = &code, .closure_bytes = sizeof code};
    acs_error e = {.size = sizeof e};
    (void)state;
    twin_reset();
    const acs_kernel kernel = kernel_make();
    acs_context *context = open_watched(1, 0, ACS_WAIT_GPU);
    int *x = NULL;
    assert_int_equal(acs_malloc(context, sizeof *x, ACS_MEMORY_DEVICE, (void **)&x), ACS_OK);
    call.uses = ACS_USES(ACS_OUT(x, sizeof *x));
    acs_op endless = acs_call(context, &call);
    pthread_mutex_lock(&g_mutex);
    while (!g_inside) /* a caller that waits might step, and be inside itself */
        pthread_cond_wait(&g_changed, &g_mutex);
    pthread_mutex_unlock(&g_mutex);
    acs_op behind = queue(context, &kernel, x);
    clock_hand hand = {.context = context, .op = behind};
    assert_int_equal(pthread_create(&hand.thread, NULL, turn, &hand), 0);
    assert_int_equal(acs_wait(context, behind), ACS_ERR_DEVICE);
    assert_int_equal(pthread_join(hand.thread, NULL), 0);
    assert_int_equal(acs_context_error(context, &e), ACS_ERR_DEVICE);
    assert_int_equal(e.op, endless);
    assert_non_null(strstr(e.text, "while it is issued"));
    assert_closes_and_leaves(context, "a thread is inside an op");
    assert_int_equal(calls_that_may_wait(), 0);
    pthread_mutex_lock(&g_mutex);
    g_open = true;
    pthread_cond_broadcast(&g_changed);
    while (!g_returned)
        pthread_cond_wait(&g_changed, &g_mutex);
    pthread_mutex_unlock(&g_mutex);
    device_goes_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_that_never_ends_ends_every_wait_and_no_call_waits_for_it),
        cmocka_unit_test(context_opened_after_it_works),
        cmocka_unit_test(library_call_that_never_returns_keeps_its_thread_only),
    };
    acs_core_overdue_unit(HOUR_NS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Threads that wait for kernels while others queue: none holds the others up, whoever issues what. Over the twin; what runs
 * runs when it is asked to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"
#include "twin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { HANG_SECONDS = 1800, ROUNDS = 300 };

static acs_context *g_context;
static _Atomic int g_over;
static _Thread_local bool tl_waits;
static uint32_t g_inside; /* rounds in which the waiting thread issued the call */

static acs_op launch(void)
{
    static CUkernel kernel;
    const twin_kernel_spec spec = {.name = "any"};
    kernel = kernel ? kernel : twin_kernel(&spec);
    const acs_kernel any = {"any", (const void *)kernel, NULL, ACS_KERNEL_HANDLE, 0};
    acs_launch_params launch = {.size = sizeof launch, .kernel = &any, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    return acs_launch(g_context, &launch);
}

static void *wait_for_op(void *argument)
{
    tl_waits = true;
    return (void *)(uintptr_t)acs_wait(g_context, *(acs_op *)argument);
}

/* A library call that takes until another kernel was seen to end, where the waiting thread issues it. */
static int long_call(const acs_call_env *env, void *closure)
{
    (void)env;
    (void)closure;
    g_inside += tl_waits;
    while (tl_waits && !atomic_load(&g_over))
        continue;
    return 0;
}

/* Sometimes it is the waiting thread that issues the call: it must not be taken for one that looks for completions then. */
static void completion_is_seen_while_a_waiting_thread_is_inside_a_call(void **state)
{
    const acs_call_params call = {.size = sizeof call, .function = long_call};
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        void *waited;
        atomic_store(&g_over, 0);
        twin_set_strategy(TWIN_HELD);
        acs_op first = launch();
        assert_int_equal(pthread_create(&thread, NULL, wait_for_op, &first), 0);
        for (volatile uint32_t i = 0; i < 20000 + round * 97; i++)
            continue; /* some rounds find it looking */
        assert_int_not_equal(acs_call(g_context, &call), 0);
        acs_op other = launch();
        while (acs_query(g_context, other) == ACS_NOT_READY)
            twin_run_all();
        atomic_store(&g_over, 1);
        twin_set_strategy(TWIN_EAGER);
        assert_int_equal(pthread_join(thread, &waited), 0);
        assert_int_equal((acs_status)(uintptr_t)waited, ACS_OK);
        assert_int_equal(acs_sync(g_context), ACS_OK);
    }
    assert_null(twin_breach());
    print_message("the waiting thread issued the call in %u of %d rounds\n", g_inside, ROUNDS);
}

typedef struct told {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int count;
} told;

static int tell(void *closure)
{
    told *t = closure;
    pthread_mutex_lock(&t->mutex);
    t->count++;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    return 0;
}

static void tell_retired(void *user, acs_op op, acs_status status)
{
    (void)op;
    (void)status;
    (void)tell(user);
}

/* A program that waits by its own means calls nothing that would look for the end of the kernel, nor issue the second. */
static void disabled_context_calls_functions_behind_kernels_without_a_wait(void **state)
{
    acs_options options;
    acs_context *before = g_context;
    told t = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    (void)state;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.disable = 1;
    assert_int_equal(acs_open(&options, &g_context), ACS_OK);
    twin_set_strategy(TWIN_HELD);
    (void)launch();
    pthread_mutex_lock(&t.mutex); /* over the calls, as the functions take it */
    assert_int_not_equal(acs_host(g_context, tell, &t, 0, ACS_USES_ANY), 0);
    acs_op behind = launch();
    assert_int_not_equal(acs_on_retire(g_context, behind, tell_retired, &t), 0);
    twin_set_strategy(TWIN_EAGER);
    twin_run_all();
    while (t.count < 2)
        pthread_cond_wait(&t.changed, &t.mutex);
    pthread_mutex_unlock(&t.mutex);
    assert_int_equal(acs_close(g_context), ACS_OK);
    g_context = before;
    assert_null(twin_breach());
}

static int open_one(void **state)
{
    acs_options options;
    (void)state;
    twin_reset();
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = 1;
    options.log = ACS_LOG_OFF;
    return acs_open(&options, &g_context) != ACS_OK;
}

static int close_it(void **state)
{
    (void)state;
    return acs_close(g_context) != ACS_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completion_is_seen_while_a_waiting_thread_is_inside_a_call),
        cmocka_unit_test(disabled_context_calls_functions_behind_kernels_without_a_wait),
    };
    alarm(HANG_SECONDS); /* a completion that nobody looks for */
    return cmocka_run_group_tests(tests, open_one, close_it);
}

/*
 * The simulator with several threads that call: a thread that is inside a call, and is not scheduled for long, is no
 * standstill. The test holds what another thread waits for until that thread has looked far more often than a
 * standstill takes.
 */
#include "simulator/sim_driver.h"
#include "api_fixture.h"

#include "base/tuning.h"
#include "residency/relocatable.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { LOOKS = 10000, THREADS = 4, ROUNDS = 200, BYTES = 256 };

static atomic_int g_looks;

static void count_look(void *user)
{
    (void)user;
    atomic_fetch_add_explicit(&g_looks, 1, memory_order_seq_cst);
}

static void *use_a_lazy_block(void *argument)
{
    acs_context *context = argument;
    void *block = NULL;
    bool well = acs_malloc(context, BYTES, ACS_LAZY, &block) == ACS_OK && acs_memset(context, block, 1, BYTES) != 0 &&
                acs_sync(context) == ACS_OK;
    acs_free(context, block);
    return well ? argument : NULL;
}

static void thread_that_waits_for_another_ones_call_keeps_the_device(void **state)
{
    acs_context *context = *state;
    pthread_t thread;
    void *well = use_a_lazy_block(context);
    assert_non_null(well);
    atomic_store_explicit(&g_looks, 0, memory_order_seq_cst);
    context->sim_driver->yield = count_look;
    acs_relocatables_enter(context);

    assert_int_equal(pthread_create(&thread, NULL, use_a_lazy_block, context), 0);
    while (atomic_load_explicit(&g_looks, memory_order_seq_cst) < LOOKS)
        sched_yield();
    acs_relocatables_leave(context);
    pthread_join(thread, &well);

    context->sim_driver->yield = NULL;
    assert_non_null(well);
    assert_int_equal(acs_context_error(context, NULL), ACS_OK);
}

static void *use_blocks(void *argument)
{
    void *well = argument;
    for (int i = 0; i < ROUNDS && well; i++)
        well = use_a_lazy_block(argument);
    return well;
}

static void threads_that_share_the_simulator_keep_the_device(void **state)
{
    pthread_t threads[THREADS];
    void *well[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_blocks, *state), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], &well[i]);
    for (int i = 0; i < THREADS; i++)
        assert_non_null(well[i]);
    assert_int_equal(acs_context_error(*state, NULL), ACS_OK);
}

/* An op that is queued while another thread plays the workers is seen, even if all of them had just become idle. */
static void a_call_while_another_thread_plays_is_noticed(void **state)
{
    (void)state;
    acs_options options;
    acs_context *context = NULL;
    int x = 0;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(acs_sync(context), ACS_OK);
        while (acs_step(context) == ACS_OK)
            continue; /* until the workers are idle */
        atomic_store_explicit(&context->sim_driver->stepping, 1, memory_order_relaxed); /* as if another thread played */
        assert_true(acs_memset(context, &x, i, sizeof x) > 0);
        atomic_store_explicit(&context->sim_driver->stepping, 0, memory_order_relaxed);
        assert_int_equal(acs_sync(context), ACS_OK);
    }
    assert_int_equal(x, 0x02020202);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* ACS_DISABLE steps inside the launch as long as anything goes on: a lost device's time does not, nor does an endless op. */
static void launch_on_a_lost_device_returns(void **state)
{
    static const char *const kinds[] = {"lost", "event", "endless"};
    int lost = 0;
    (void)state;
    acs_core_overdue_unit(1000000);
    for (int64_t seed = 0; seed < 24; seed++) {
        acs_options options;
        acs_context *context = NULL;
        int x = 0;
        assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
        options.backend = ACS_BACKEND_SIM;
        options.sim_order = seed % 2 ? ACS_SIM_ORDER_TIME : ACS_SIM_ORDER_SEED;
        options.disable = options.watchdog_s = 1;
        options.faults = 500;
        options.seed = seed;
        strcpy(options.fault_kinds, kinds[seed % 3]);
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        for (int i = 0; i < ROUNDS; i++)
            ACS_LAUNCH_ON(context, &g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
        lost += acs_sync(context) == ACS_ERR_DEVICE;
        acs_close(context);
    }
    acs_core_overdue_unit(1000000000);
    assert_true(lost > 0);
}

static int do_nothing(void *closure)
{
    (void)closure;
    return 0;
}

static acs_op increment_on(acs_context *context, int *x, int device)
{
    const acs_launch_params launch = {.size = sizeof launch, .kernel = &g_increment, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                      .args = ACS_ARGS(x), .attributes = ACS_ON(device),
                                      .uses = ACS_USES(ACS_INOUT(x, sizeof *x))};
    return acs_launch(context, &launch);
}

/*
 * Nor does that of a device that nobody polls: the wait that was sent for a refused op is still to arrive there, when the
 * poll has seen all ops end. The launch that looks for completions comes behind an op of another device.
 */
static void launch_behind_a_refused_ops_wait_returns(void **state)
{
    int met = 0;
    (void)state;
    for (int64_t seed = 0; seed < 16; seed++) {
        acs_options options;
        acs_context *context = NULL;
        acs_op before = 0, refused = 0;
        int x = 0;
        assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
        options.backend = ACS_BACKEND_SIM;
        options.sim_order = ACS_SIM_ORDER_TIME;
        options.disable = 1;
        options.devices = 2;
        options.faults = 500;
        options.seed = seed;
        strcpy(options.fault_kinds, "launch");
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        for (int i = 0; i < TUNE_DISABLED_CALLS - 2; i++)
            assert_true(acs_host(context, do_nothing, NULL, 0, ACS_USES_NONE) > 0);
        before = increment_on(context, &x, 0);
        const acs_slot *slot = &context->core.slots.slot[0];
        while (slot->outstanding && (slot->mark_count == 0 || slot->batch))
            (void)acs_step(context); /* until its end is marked */
        for (uint32_t i = 0; i < context->sim_driver->count; i++)
            context->sim_driver->workers[i].at += 1000000; /* it ends meanwhile, unseen */
        refused = increment_on(context, &x, 1);
        assert_int_equal(refused, TUNE_DISABLED_CALLS);
        (void)acs_sync(context);
        met += acs_op_error(context, before, NULL) == ACS_OK && acs_op_error(context, refused, NULL) == ACS_ERR_LAUNCH;
        acs_close(context);
    }
    assert_true(met > 0); /* the seeds are fixed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM(thread_that_waits_for_another_ones_call_keeps_the_device),
        cmocka_unit_test(a_call_while_another_thread_plays_is_noticed),
        cmocka_unit_test(launch_on_a_lost_device_returns),
        cmocka_unit_test(launch_behind_a_refused_ops_wait_returns),
        SIM(threads_that_share_the_simulator_keep_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

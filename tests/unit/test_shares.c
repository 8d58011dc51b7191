/*
 * Shares of the device through the interface: on the simulated GPU, whose time shows which multiprocessors kernels have, and
 * on the host, which has none. test_slots_shares knows the slots, test_cuda_shares the GPU.
 */
#include "api_fixture.h"

#include "api/threads.h"

enum { WAVE = 264 /* blocks of 1024 threads that an H200 runs at once */ };

static acs_context *open_issuing(int32_t backend, int64_t disable, int32_t issue)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = backend;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.sim_kernel_us = 100;
    options.disable = (int32_t)disable;
    options.issue = issue;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static acs_context *open_backend(int32_t backend, int64_t disable)
{
    return open_issuing(backend, disable, ACS_ISSUE_AUTO);
}

static void nothing(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static const acs_kernel g_idle = {"nothing", NULL, nothing, ACS_KERNEL_NONE, 0};

/* A launch of that many blocks that has nothing to do with others. */
static acs_op launch(acs_context *context, int percent, uint32_t blocks)
{
    acs_launch_params p = {.size = sizeof p, .kernel = &g_idle, .grid = {blocks, 1, 1}, .block = {1024, 1, 1}};
    p.attributes = percent ? ACS_SHARE(percent) : acs_no_attributes();
    return acs_launch(context, &p);
}

/* Time in us that the launch takes alone. */
static double time_of(acs_context *context, int percent, uint32_t blocks)
{
    const uint64_t before = acs_context_now_ns(context);
    assert_int_not_equal(launch(context, percent, blocks), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    return (double)(acs_context_now_ns(context) - before) / 1000;
}

static void kernel_with_a_share_has_only_its_multiprocessors(void **state)
{
    (void)state;
    acs_context *context = open_backend(ACS_BACKEND_SIM, 0);
    const double whole = time_of(context, 0, WAVE), all = time_of(context, 100, WAVE);
    const double half = time_of(context, 50, WAVE), small = time_of(context, 10, WAVE);
    assert_true(whole > 100 && whole < 150);
    assert_true(all > 100 && all < 150);
    assert_true(half > 300 && half < 350); /* 64 of 132 multiprocessors: three times */
    assert_true(small > 900 && small < 950); /* 16 of them */
    assert_int_equal(acs_close(context), ACS_OK);
}

static void kernels_of_one_share_run_on_different_parts(void **state)
{
    (void)state;
    acs_context *context = open_backend(ACS_BACKEND_SIM, 0);
    const uint64_t before = acs_context_now_ns(context);
    for (int i = 0; i < 2; i++)
        assert_int_not_equal(launch(context, 50, 128), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_true(acs_context_now_ns(context) - before < 150000);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void kernel_with_a_share_does_not_wait_for_a_long_one_beside_it(void **state)
{
    (void)state;
    acs_context *context = open_backend(ACS_BACKEND_SIM, 0);
    const uint64_t before = acs_context_now_ns(context);
    assert_int_not_equal(launch(context, 50, 128 * 20), 0);
    const acs_op beside = launch(context, 50, 128);
    assert_int_equal(acs_wait(context, beside), ACS_OK);
    assert_true(acs_context_now_ns(context) - before < 200000);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void launches_with_shares_are_counted_and_in_no_bundle(void **state)
{
    (void)state;
    acs_context *context = open_issuing(ACS_BACKEND_SIM, 0, ACS_ISSUE_RESIDENT);
    acs_statistics s = {.size = sizeof s};
    for (int i = 0; i < 300; i++)
        assert_int_not_equal(launch(context, 30, 1), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    assert_int_equal(s.bundles, 0);
    for (int i = 0; i < 300; i++) /* as without a share */
        assert_int_not_equal(launch(context, 100, 1), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    assert_true(s.bundles > 0);
    assert_int_equal(s.shares, 300);
    assert_int_equal(s.shares_ignored, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void increment(const acs_grid *grid, void *const *args)
{
    (void)grid;
    ++**(int **)args[0];
}

static void chain_over_shares_is_kept_with_one_stream(void **state)
{
    static const acs_kernel kernel = {"increment", NULL, increment, ACS_KERNEL_NONE, 0};
    (void)state;
    for (int disable = 0; disable < 2; disable++) {
        acs_context *context = open_backend(ACS_BACKEND_SIM, disable);
        int x = 0, *to = &x;
        for (int i = 0; i < 40; i++)
            assert_int_not_equal(ACS_LAUNCH_WITH(context, ACS_SHARE(i % 3 * 20 + 10), &kernel, 1, 1, 0, ACS_ARGS(to),
                                                 ACS_USES(ACS_INOUT(to, sizeof *to))),
                                 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(x, 40);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void host_ignores_shares_and_says_why(void **state)
{
    (void)state;
    acs_context *context = open_backend(ACS_BACKEND_HOST, 0);
    acs_statistics s = {.size = sizeof s};
    acs_share_info info = {.size = sizeof info};
    for (int i = 0; i < 7; i++)
        assert_int_not_equal(launch(context, 30, 1), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    assert_int_equal(s.shares, 0);
    assert_int_equal(s.shares_ignored, 7);
    assert_int_equal(acs_share_find(context, 0, 30, &info), ACS_OK);
    assert_int_equal(info.step_sms, 0);
    assert_int_equal(info.sms, info.device_sms);
    assert_true(info.reason[0]);
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_with_a_share_has_only_its_multiprocessors),
        cmocka_unit_test(kernels_of_one_share_run_on_different_parts),
        cmocka_unit_test(kernel_with_a_share_does_not_wait_for_a_long_one_beside_it),
        cmocka_unit_test(launches_with_shares_are_counted_and_in_no_bundle),
        cmocka_unit_test(chain_over_shares_is_kept_with_one_stream),
        cmocka_unit_test(host_ignores_shares_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

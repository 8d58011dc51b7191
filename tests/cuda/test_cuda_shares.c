/*
 * Shares of a GPU on the CUDA backend: which groups of multiprocessors kernels get, that order is kept where slots change
 * their streams, and what happens where the driver has no green contexts or refuses one. Over the twin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"
#include "twin.h"

#include <string.h>

enum { OPS = 200, GROUPS = TWIN_SMS / 8 };

/* What the kernels found: by the number of the op, how many groups it had, and the first of them. */
static struct {
    uint32_t count, first;
} g_part[OPS];
static uint64_t g_chain, g_ran;
static acs_context *g_context;
static CUkernel g_kernel;

/* The first value depends on the order of all calls. */
static void body(void *const *args)
{
    const uint64_t id = *(const uint64_t *)args[1];
    uint64_t *to = *(uint64_t **)args[0];
    g_part[id].count = twin_part(&g_part[id].first);
    *to = *to * 3 + id;
    g_ran++;
}

static void prepare(uint64_t seed)
{
    static const uint32_t sizes[] = {8, 8};
    const twin_kernel_spec spec = {.name = "part", .body = body, .param_count = 2, .param_bytes = sizes};
    twin_seed(seed);
    g_kernel = twin_kernel(&spec);
    g_chain = g_ran = 0;
    memset(g_part, 0xff, sizeof g_part);
}

static void open_it(int64_t streams, int64_t devices)
{
    acs_options options;
    (void)acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = 0;
    options.streams = streams;
    options.devices = devices;
    options.log = ACS_LOG_OFF;
    assert_int_equal(acs_open(&options, &g_context), ACS_OK);
}

static void close_it(void)
{
    assert_int_equal(acs_close(g_context), ACS_OK);
    twin_audit();
    assert_null(twin_breach());
}

static acs_op launch_with(uint64_t id, acs_attributes attributes, uint64_t *to)
{
    const acs_kernel kernel = {"part", (const void *)g_kernel, NULL, ACS_KERNEL_HANDLE, 0};
    const acs_arg list[] = {{&to, sizeof to, ACS_ARG_POINTER}, {&id, sizeof id, ACS_ARG_VALUE}};
    const acs_segment uses[] = {ACS_INOUT(to, sizeof *to)};
    acs_launch_params launch = {.size = sizeof launch, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    launch.args = (acs_args){list, 2};
    launch.uses = (acs_uses){uses, 1, NULL, NULL, 0};
    launch.attributes = attributes;
    return acs_launch(g_context, &launch);
}

static acs_op launch_on(uint64_t id, int percent, uint64_t *to)
{
    return launch_with(id, percent ? ACS_SHARE(percent) : acs_no_attributes(), to);
}

static acs_share_info found(uint32_t percent)
{
    acs_share_info info = {.size = sizeof info};
    assert_int_equal(acs_share_find(g_context, 0, percent, &info), ACS_OK);
    return info;
}

static acs_statistics counted(void)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(g_context, &s), ACS_OK);
    return s;
}

static void share_find_tells_the_groups_of_a_share(void **state)
{
    static const struct {
        uint32_t percent, sms, places;
    } shares[] = {{1, 8, 16}, {10, 16, 8}, {30, 40, 4}, {50, 64, 2}, {70, 88, 2}, {99, 128, 1}, {100, TWIN_SMS, 1}};
    (void)state;
    prepare(1);
    open_it(4, 1);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        const acs_share_info info = found(shares[i].percent);
        assert_int_equal(info.sms, shares[i].sms);
        assert_int_equal(info.places, shares[i].places);
        assert_int_equal(info.step_sms, 8);
        assert_int_equal(info.device_sms, TWIN_SMS);
        assert_string_equal(info.reason, "");
    }
    close_it();
}

static void share_find_refuses_what_is_no_share_and_leaves_the_result(void **state)
{
    (void)state;
    prepare(1);
    open_it(4, 1);
    acs_share_info info = {.size = sizeof info, .sms = 7};
    assert_int_equal(acs_share_find(g_context, 0, 0, &info), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_share_find(g_context, 0, 101, &info), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_share_find(g_context, 1, 50, &info), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_share_find(g_context, 0, 50, NULL), ACS_ERR_ARGUMENT);
    info.size--;
    assert_int_equal(acs_share_find(g_context, 0, 50, &info), ACS_ERR_ARGUMENT);
    assert_int_equal(info.sms, 7);
    close_it();
}

static void launch_with_a_share_that_cannot_be_is_refused(void **state)
{
    (void)state;
    acs_error error = {.size = sizeof error};
    prepare(1);
    open_it(4, 1);
    assert_int_equal(launch_on(0, 101, &g_chain), 0);
    assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "1 to 100 percent"));
    acs_attributes by_hand = ACS_SHARE(50);
    by_hand.share = 101;
    assert_int_equal(launch_with(0, by_hand, &g_chain), 0);
    assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "101 percent"));
    assert_int_equal(acs_sync(g_context), ACS_ERR_ARGUMENT);
    assert_int_equal(g_ran, 0);
    (void)acs_clear(g_context);
    close_it();
}

static void kernels_get_the_groups_of_their_share_at_places_in_turn(void **state)
{
    (void)state;
    uint64_t to[OPS] = {0};
    bool first_at[GROUPS] = {false};
    static const int shares[] = {0, 30, 50, 100};
    prepare(1);
    twin_set_strategy(TWIN_HELD);
    open_it(32, 1);
    for (uint64_t i = 0; i < 24; i++)
        assert_int_not_equal(launch_on(i, shares[i % 4], &to[i]), 0);
    for (uint32_t i = 0; i < 50; i++)
        (void)acs_step(g_context);
    twin_run_all();
    assert_int_equal(acs_sync(g_context), ACS_OK);
    for (uint64_t i = 0; i < 24; i++) {
        assert_int_equal(g_part[i].count, i % 4 == 1 ? 5 : i % 4 == 2 ? 8 : 0);
        if (i % 4 == 1)
            first_at[g_part[i].first] = true;
    }
    assert_true(first_at[0] && first_at[5] && first_at[10] && first_at[15]);
    assert_int_equal(counted().shares, 12);
    assert_int_equal(counted().shares_ignored, 0);
    close_it();
}

/* One chain, and others beside it, over all shares; with one stream every op changes it. */
static void order_is_kept_where_slots_change_their_streams(void **state)
{
    static const int shares[] = {0, 10, 50, 0, 70, 99, 1};
    static const int64_t streams[] = {1, 2, 3, 8};
    (void)state;
    for (uint64_t seed = 1; seed < 60; seed++) {
        uint64_t beside[OPS] = {0}, expected = 0;
        prepare(seed);
        open_it(streams[seed % 4], 1);
        if (seed % 3 == 0) /* the event of a change is refused now and then */
            twin_fail_rate(100);
        for (uint64_t i = 0; i < OPS; i++) {
            const bool chained = i % 3 != 2;
            assert_int_not_equal(launch_on(i, shares[(i * seed / 3) % 7], chained ? &g_chain : &beside[i % 5]), 0);
            expected = chained ? expected * 3 + i : expected;
        }
        const acs_status status = acs_sync(g_context);
        if (seed % 3)
            assert_int_equal(status, ACS_OK);
        if (status == ACS_OK)
            assert_int_equal(g_chain, expected);
        twin_fail_rate(0);
        (void)acs_clear(g_context);
        close_it();
    }
}

static void disabled_context_keeps_shares_in_its_one_stream(void **state)
{
    uint64_t expected = 0;
    acs_options options;
    (void)state;
    prepare(3);
    (void)acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.disable = 1;
    assert_int_equal(acs_open(&options, &g_context), ACS_OK);
    for (uint64_t i = 0; i < 40; i++) {
        assert_int_not_equal(launch_on(i, i % 3 ? 30 : 0, &g_chain), 0);
        expected = expected * 3 + i;
    }
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_int_equal(g_chain, expected);
    assert_int_equal(g_part[1].count, 5);
    close_it();
}

static void share_is_ignored_and_counted_where_the_driver_has_no_green_contexts(void **state)
{
    (void)state;
    prepare(1);
    twin_without("cuGreenCtxStreamCreate");
    open_it(4, 1);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_not_equal(launch_on(i, 50, &g_chain), 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    const acs_share_info info = found(50);
    assert_int_equal(info.step_sms, 0);
    assert_int_equal(info.sms, info.device_sms);
    assert_non_null(strstr(info.reason, "no green contexts"));
    assert_int_equal(g_part[4].count, 0);
    assert_int_equal(counted().shares, 0);
    assert_int_equal(counted().shares_ignored, 5);
    close_it();
}

/* Each call on the way to a share fails once, in its turn: the share is ignored, or a stream less is made. */
static void share_survives_refusals_of_the_driver(void **state)
{
    static const char *const calls[] = {"cuDeviceGetDevResource", "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc",
                                        "cuGreenCtxCreate", "cuGreenCtxStreamCreate", "cuEventCreate", "cuEventRecord",
                                        "cuStreamWaitEvent"};
    (void)state;
    for (size_t call = 0; call < sizeof calls / sizeof calls[0]; call++)
        for (uint64_t after = 0; after < 6; after++) {
            uint64_t expected = 0;
            prepare(call * 10 + after + 1);
            open_it(2, 1);
            twin_fail(calls[call], CUDA_ERROR_OUT_OF_MEMORY, after, 1);
            for (uint64_t i = 0; i < 20; i++) {
                assert_int_not_equal(launch_on(i, i % 2 ? 30 : 50, &g_chain), 0);
                expected = expected * 3 + i;
            }
            assert_int_equal(acs_sync(g_context), ACS_OK);
            assert_int_equal(g_chain, expected);
            assert_int_equal(counted().shares + counted().shares_ignored, 20);
            close_it();
        }
}

static void each_device_has_shares_of_its_own(void **state)
{
    (void)state;
    uint64_t to[OPS] = {0};
    prepare(5);
    open_it(4, 2);
    acs_share_info info = {.size = sizeof info};
    assert_int_equal(acs_share_find(g_context, 1, 50, &info), ACS_OK);
    assert_int_equal(info.sms, 64);
    for (uint64_t i = 0; i < 40; i++)
        assert_int_not_equal(launch_on(i, 50, &to[i]), 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    for (uint64_t i = 0; i < 40; i++)
        assert_int_equal(g_part[i].count, 8);
    close_it();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share_find_tells_the_groups_of_a_share),
        cmocka_unit_test(share_find_refuses_what_is_no_share_and_leaves_the_result),
        cmocka_unit_test(launch_with_a_share_that_cannot_be_is_refused),
        cmocka_unit_test(kernels_get_the_groups_of_their_share_at_places_in_turn),
        cmocka_unit_test(order_is_kept_where_slots_change_their_streams),
        cmocka_unit_test(disabled_context_keeps_shares_in_its_one_stream),
        cmocka_unit_test(share_is_ignored_and_counted_where_the_driver_has_no_green_contexts),
        cmocka_unit_test(share_survives_refusals_of_the_driver),
        cmocka_unit_test(each_device_has_shares_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A program that launches some kernels side by side, waits for one that reads them all, and launches the same again: long
 * ones get as many slots as help, short ones no more than the first few. On the sim backend by time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backend/sim.h"
#include "runtime/context.h"

enum { TURNS = 30, FIRST_SLOTS = 4, WIDE_MOST = 32, BLOCKS = 8, CELL = 64 };

static char g_parts[WIDE_MOST][CELL], g_whole[CELL];

static void nothing(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static acs_op launch(acs_context *context, uint32_t device, const acs_segment *uses, uint32_t count)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("nothing", nothing);
    acs_launch_params params = {.size = sizeof params, .kernel = &kernel, .grid = {BLOCKS, 1, 1}, .block = {64, 1, 1}};
    params.uses.segments = uses;
    params.uses.count = count;
    params.attributes = ACS_ON(device);
    const acs_op op = acs_launch(context, &params);
    assert_int_not_equal(op, 0);
    return op;
}

static void turn(acs_context *context, uint32_t wide)
{
    for (uint32_t i = 0; i < wide; i++) {
        const acs_segment uses[] = {ACS_IN(g_whole, CELL), ACS_OUT(g_parts[i], CELL)};
        launch(context, i % (uint32_t)acs_devices(context), uses, 2);
    }
    const acs_segment uses[] = {ACS_IN(g_parts, wide * CELL), ACS_OUT(g_whole, CELL)};
    assert_int_equal(acs_wait(context, launch(context, 0, uses, 2)), ACS_OK);
}

typedef struct outcome {
    uint64_t slots, turn_us;
} outcome;

static outcome play(int devices, uint32_t wide, int kernel_us)
{
    acs_options options;
    acs_statistics stats = {.size = sizeof stats};
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.sim_kernel_us = kernel_us;
    options.devices = devices;
    options.issue = ACS_ISSUE_LAUNCH;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (int i = 0; i < TURNS / 3; i++) /* until it is known what to do */
        turn(context, wide);
    const uint64_t began = acs_sim_backend_now(context->backend);
    for (int i = TURNS / 3; i < TURNS; i++)
        turn(context, wide);
    const uint64_t took = acs_sim_backend_now(context->backend) - began;
    assert_int_equal(acs_stats(context, &stats), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    return (outcome){stats.slots_used, took / (TURNS - TURNS / 3) / 1000};
}

/* Launches take 3 us each, one behind the other; then the last of them, and the one that reads all. */
static void long_kernels_run_side_by_side(void **state)
{
    (void)state;
    const struct {
        int devices;
        uint32_t wide;
        int kernel_us;
    } cases[] = {{1, 8, 50}, {1, 16, 50}, {1, 16, 80}, {1, 32, 50}, {1, 32, 80}, {2, 16, 50}, {2, 32, 50}, {2, 32, 80}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const outcome o = play(cases[i].devices, cases[i].wide, cases[i].kernel_us);
        assert_in_range(o.slots, cases[i].wide, WIDE_MOST);
        assert_in_range(o.turn_us, 2 * cases[i].kernel_us, 2 * cases[i].kernel_us + 3 * cases[i].wide + 40);
    }
}

static void short_kernels_stay_in_few_slots(void **state)
{
    (void)state;
    for (uint32_t wide = 4; wide <= WIDE_MOST; wide *= 2)
        for (int kernel_us = 0; kernel_us <= 5; kernel_us += 5)
            for (int devices = 1; devices <= 2; devices++)
                assert_in_range(play(devices, wide, kernel_us).slots, FIRST_SLOTS, FIRST_SLOTS * devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_kernels_run_side_by_side),
        cmocka_unit_test(short_kernels_stay_in_few_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

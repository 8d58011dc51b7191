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

#include "simulator/sim.h"
#include "api/context.h"

enum { TURNS = 30, FIRST_SLOTS = TUNE_SLOTS_FIRST, WIDE_MOST = 32, BLOCKS = 8, CELL = 64 };

static char g_parts[WIDE_MOST][CELL], g_whole[CELL];
static uint32_t g_kernel_ns;

static void nothing(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static void describe(void *user, const acs_record *op, acs_sim_kernel *kernel)
{
    (void)user;
    (void)op;
    kernel->cta_ns = g_kernel_ns;
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

static void burst(acs_context *context, uint32_t wide)
{
    for (uint32_t i = 0; i < wide; i++) {
        const acs_segment uses[] = {ACS_IN(g_whole, CELL), ACS_OUT(g_parts[i], CELL)};
        launch(context, i % (uint32_t)acs_devices(context), uses, 2);
    }
}

static void turn(acs_context *context, uint32_t wide)
{
    burst(context, wide);
    const acs_segment uses[] = {ACS_IN(g_parts, wide * CELL), ACS_OUT(g_whole, CELL)};
    assert_int_equal(acs_wait(context, launch(context, 0, uses, 2)), ACS_OK);
}

typedef struct machine {
    int devices, workers;
} machine;

static acs_context *open_streams(machine m, int streams)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.issue = ACS_ISSUE_LAUNCH;
    options.devices = m.devices;
    options.workers = m.workers;
    options.streams = streams;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    acs_sim_backend_describe(context->backend, describe, NULL);
    return context;
}

static acs_context *open_context(machine m)
{
    return open_streams(m, 32);
}

/* Turns until it is known what to do, then such as are measured: microseconds of each. */
static uint64_t play(acs_context *context, uint32_t wide, uint32_t kernel_us)
{
    g_kernel_ns = kernel_us * 1000;
    for (int i = 0; i < TURNS / 3; i++)
        turn(context, wide);
    const uint64_t began = acs_sim_backend_now(context->backend);
    for (int i = TURNS / 3; i < TURNS; i++)
        turn(context, wide);
    return (acs_sim_backend_now(context->backend) - began) / (TURNS - TURNS / 3) / 1000;
}

static uint32_t active(const acs_context *context)
{
    return context->core.slots.banks[0].active;
}

/* Launches take 3 us each, one behind the other; then the last of them, and the one that reads all. */
static void long_kernels_run_side_by_side(void **state)
{
    (void)state;
    static const machine machines[] = {{1, 0}, {1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}};
    static const uint32_t cases[][2] = {{8, 50}, {8, 100}, {16, 50}, {16, 80}, {32, 50}, {32, 80}};
    for (size_t m = 0; m < sizeof machines / sizeof machines[0]; m++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const uint32_t wide = cases[i][0], us = cases[i][1];
            acs_context *context = open_context(machines[m]);
            assert_in_range(play(context, wide, us), us, 2 * us + 3 * wide + 40);
            assert_int_equal(acs_close(context), ACS_OK);
        }
}

static void short_kernels_take_at_most_a_tenth_longer_than_in_the_first_slots(void **state)
{
    (void)state;
    for (uint32_t wide = 4; wide <= WIDE_MOST; wide *= 2)
        for (uint32_t us = 0; us <= 5; us += 5)
            for (int devices = 1; devices <= 2; devices++) {
                uint64_t took[2];
                for (int i = 0; i < 2; i++) {
                    acs_context *context = open_streams((machine){devices, 1}, i ? FIRST_SLOTS : 32);
                    took[i] = play(context, wide, us);
                    assert_int_equal(acs_close(context), ACS_OK);
                }
                assert_in_range(took[0], 0, took[1] + took[1] / 10);
            }
}

/* A program's long kernels, then its short ones, with waits or without, then long ones again. */
static void slots_go_when_kernels_become_short_and_come_back(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++)
        for (uint32_t wide = 2; wide <= WIDE_MOST; wide *= 2) {
            acs_context *context = open_context((machine){1, 1});
            const uint64_t took = play(context, 16, 80);
            assert_int_equal(active(context), 16);
            for (int i = 0; waits && i < 8; i++)
                play(context, wide, 2);
            for (int i = 0; !waits && i < 200; i++) {
                g_kernel_ns = 2000;
                burst(context, WIDE_MOST);
            }
            assert_int_equal(active(context), FIRST_SLOTS);
            assert_in_range(play(context, 16, 80), 0, took);
            assert_int_equal(acs_close(context), ACS_OK);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_kernels_run_side_by_side),
        cmocka_unit_test(short_kernels_take_at_most_a_tenth_longer_than_in_the_first_slots),
        cmocka_unit_test(slots_go_when_kernels_become_short_and_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

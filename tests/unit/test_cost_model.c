/*
 * Unit tests of bundles/cost_model: that the model ranks issue methods as they were measured, that graphs are built
 * once that pays, and that estimates of kernels follow what is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bundles/cost_model.h"

static const acs_layer_template g_wide = {.levels = 8, .types = 1, .type = {1}, .cells = {32}};

static void many_short_kernels_cost_least_in_their_own_graph_and_most_by_launches(void **state)
{
    (void)state;
    const acs_cost_model_bundle stencil = {.costs = &acs_costs_table, .ops = 256, .levels = 8, .edges = 700};
    uint64_t fixed = acs_cost_model_replay_ns(&stencil, true), set = acs_cost_model_replay_ns(&stencil, false);
    uint64_t layers = acs_cost_model_layers_ns(&stencil, &g_wide, 8), gpu = acs_cost_model_gpu_ns(&stencil);
    assert_true(fixed < set);
    assert_true(fixed < layers && fixed < gpu);
    assert_true(set < acs_cost_model_launch_ns(&stencil) / 4);
    assert_true(layers < acs_cost_model_launch_ns(&stencil) / 4);
    assert_true(gpu < acs_cost_model_launch_ns(&stencil) / 3);
}

/* As measured on one H100: 67 us where ops are empty, beside the host's time, and 220 where they take 5 us. */
static void a_random_bundle_costs_least_in_a_resident_executor(void **state)
{
    (void)state;
    acs_cost_model_bundle random = {.costs = &acs_costs_table, .ops = 256, .levels = 33, .edges = 640};
    assert_in_range(acs_cost_model_resident_ns(&random), 60000, 90000);
    assert_true(acs_cost_model_resident_ns(&random) < acs_cost_model_replay_ns(&random, false));
    assert_true(acs_cost_model_resident_ns(&random) < acs_cost_model_gpu_ns(&random) / 2);
    random.kernel_ns = 5000;
    assert_in_range(acs_cost_model_resident_ns(&random), 190000, 250000);
    assert_true(acs_cost_model_resident_ns(&random) < acs_cost_model_launch_ns(&random));
}

static void a_chain_of_long_kernels_is_launched(void **state)
{
    (void)state;
    const acs_cost_model_bundle chain = {
        .costs = &acs_costs_table, .ops = 64, .levels = 64, .edges = 63, .kernel_ns = 50000};
    const acs_layer_template narrow = {.levels = 64, .types = 1, .type = {1}, .cells = {1}};
    assert_true(acs_cost_model_launch_ns(&chain) <= acs_cost_model_layers_ns(&chain, &narrow, 64));
    assert_true(acs_cost_model_launch_ns(&chain) <= acs_cost_model_gpu_ns(&chain));
}

static void long_kernels_side_by_side_are_not(void **state)
{
    (void)state;
    const acs_cost_model_bundle wide = {
        .costs = &acs_costs_table, .ops = 256, .levels = 8, .edges = 700, .kernel_ns = 50000};
    assert_true(acs_cost_model_layers_ns(&wide, &g_wide, 8) < acs_cost_model_launch_ns(&wide));
}

/* Launches wait for what they depend on, a bundle for the end of those before it. */
static void long_kernels_are_launched_where_bundles_would_end_ragged(void **state)
{
    (void)state;
    const acs_cost_model_bundle even = {
        .costs = &acs_costs_table, .ops = 128, .levels = 25, .edges = 250, .kernel_ns = 200000, .path = 25};
    acs_cost_model_bundle ragged = even;
    ragged.path = 20;
    assert_true(acs_cost_model_replay_ns(&even, false) < acs_cost_model_launch_ns(&even));
    assert_true(acs_cost_model_launch_ns(&ragged) < acs_cost_model_replay_ns(&ragged, false));
}

/*
 * A part of NASNet, in four streams: the host and the kernels hold each other up, and streams kernels that could run.
 */
static void launches_are_charged_for_host_kernels_and_streams(void **state)
{
    (void)state;
    acs_cost_model_bundle b = {
        .costs = &acs_costs_table, .ops = 28, .levels = 6, .edges = 40, .slots = 4, .kernel_ns = 10000};
    const uint64_t launched = acs_cost_model_launch_ns(&b), calls = 28 * 3500;
    assert_true(acs_cost_model_gpu_ns(&b) < launched);
    assert_in_range(launched, calls * 5 / 4, calls * 8 / 5);
    b.kernel_ns = 0;
    assert_in_range(acs_cost_model_launch_ns(&b), calls, calls * 21 / 20);
    b.kernel_ns = 100000;
    assert_in_range(acs_cost_model_launch_ns(&b), 9 * 101500, 10 * 101500); /* Graham: 6 to 11.5 */
    b.slots = 32;
    assert_in_range(acs_cost_model_launch_ns(&b), 6 * 101500, 7 * 101500);
    b = (acs_cost_model_bundle){.costs = &acs_costs_table, .levels = 1, .slots = 4, .kernel_ns = 50000};
    for (b.ops = 6; b.ops <= 64; b.ops++) { /* side by side */
        const uint64_t rounds = (b.ops + 3) / 4;
        assert_in_range(acs_cost_model_launch_ns(&b), rounds * 51500, rounds * 51500 + 51500);
    }
}

static void what_the_gpu_waits_for_counts_less_beside_others(void **state)
{
    (void)state;
    const acs_cost_model_bundle alone = {.costs = &acs_costs_table, .ops = 12, .levels = 6, .edges = 14};
    acs_cost_model_bundle beside = alone;
    beside.beside = 8;
    assert_true(acs_cost_model_gpu_ns(&alone) > acs_cost_model_launch_ns(&alone));
    assert_true(acs_cost_model_gpu_ns(&beside) < acs_cost_model_launch_ns(&beside));
    assert_true(acs_cost_model_gpu_ns(&beside) > 7000); /* the host still has to submit it */
}

static void what_the_gpu_issues_beside_a_bundle_is_as_much_for_each(void **state)
{
    (void)state;
    acs_cost_model_bundle wide = {.costs = &acs_costs_table, .ops = 256, .levels = 1};
    assert_int_equal(acs_cost_model_gpu_others_ns(&wide), 0);
    wide.beside = 1;
    const uint64_t one = acs_cost_model_gpu_others_ns(&wide);
    assert_in_range(one, acs_cost_model_gpu_ns(&wide) / 2, acs_cost_model_gpu_ns(&wide));
    wide.beside = 7;
    assert_int_equal(acs_cost_model_gpu_others_ns(&wide), 7 * one);
}

/*
 * A product of a matrix and a vector in 16 parts: each takes an eighth of the device's threads, and all of its memory.
 */
static acs_cost_model_bundle parts(uint32_t slots)
{
    return (acs_cost_model_bundle){.costs = &acs_costs_table,
                                   .ops = 16,
                                   .levels = 1,
                                   .slots = slots,
                                   .kernel_ns = 2000,
                                   .device_ns = 16 * 10000,
                                   .threads = 16 * 128 * 256,
                                   .device_threads = 132 * 2048};
}

static void kernels_that_fill_the_device_are_launched(void **state)
{
    (void)state;
    const acs_layer_template row = {.levels = 1, .types = 1, .type = {1}, .cells = {16}};
    for (uint32_t beside = 0; beside < 8; beside++)
        for (uint32_t slots = 16; slots <= 32; slots *= 2) { /* eight are not quite the whole device */
            acs_cost_model_bundle b = parts(slots);
            b.beside = beside;
            const uint64_t launched = acs_cost_model_launch_ns(&b);
            assert_int_equal(launched, b.device_ns);
            assert_true(launched < acs_cost_model_gpu_ns(&b));
            assert_true(launched < acs_cost_model_layers_ns(&b, &row, 1));
            assert_true(launched < acs_cost_model_replay_ns(&b, true));
            assert_true(acs_cost_model_replay_ns(&b, true) <= launched + 7000); /* a device is never more than full */
        }
}

/* Four slots full of such kernels are half a device: beside each other all might take half the time. */
static void what_few_slots_held_up_may_take_less_in_a_bundle(void **state)
{
    (void)state;
    const acs_cost_model_bundle four = parts(4), eight = parts(8);
    acs_cost_model_bundle narrow = parts(8);
    narrow.threads = 16 * 256;
    assert_int_equal(acs_cost_model_launch_ns(&four), four.device_ns); /* as was seen */
    assert_true(acs_cost_model_gpu_ns(&four) > four.device_ns * 2 / 5);
    assert_true(acs_cost_model_gpu_ns(&four) < eight.device_ns * 3 / 5);
    assert_true(acs_cost_model_gpu_ns(&narrow) < acs_cost_model_launch_ns(&narrow));
}

/* Only where so much of the device is taken at once that it may be full, and for a good part of what the calls take. */
static void what_a_bundle_gains_is_in_doubt_where_kernels_queued_up(void **state)
{
    (void)state;
    acs_cost_model_bundle b = parts(4);
    assert_true(acs_cost_model_queued(&b));
    b.slots = 2;
    assert_false(acs_cost_model_queued(&b));
    b = parts(4);
    b.levels = 16; /* a chain */
    assert_false(acs_cost_model_queued(&b));
    b = parts(32);
    b.threads = 16 * 256;
    assert_false(acs_cost_model_queued(&b));
    b = parts(4);
    b.device_ns = 10000; /* of one of the sixteen */
    assert_false(acs_cost_model_queued(&b));
    b = parts(2);
    b.device_threads = 4 * 2 * 128 * 256; /* just a quarter */
    assert_true(acs_cost_model_queued(&b));
    b.device_threads += 4;
    assert_false(acs_cost_model_queued(&b));
    b = parts(4);
    b.device_ns = 16 * 3500 / 4; /* just a quarter of the calls */
    assert_true(acs_cost_model_queued(&b));
    b.device_ns--;
    assert_false(acs_cost_model_queued(&b));
    b = parts(4);
    b.device_threads = 0; /* not known */
    assert_false(acs_cost_model_queued(&b));
    assert_true(acs_cost_model_launch_ns(&b) < b.device_ns);
}

/* A bundle of long chains of such kernels beside others: their path counts, as if nothing were known of the device. */
static void the_longest_path_may_take_longer_than_the_device(void **state)
{
    (void)state;
    acs_cost_model_bundle chains = parts(8), unknown;
    chains.levels = 8;
    chains.beside = 2;
    chains.kernel_ns = 30000;
    unknown = chains;
    unknown.device_ns = 0;
    assert_true(acs_cost_model_gpu_ns(&chains) < acs_cost_model_launch_ns(&chains));
    assert_int_equal(acs_cost_model_launch_ns(&chains), acs_cost_model_launch_ns(&unknown));
}

static void a_graph_is_built_when_as_much_was_lost_as_it_costs(void **state)
{
    (void)state;
    uint32_t soon = acs_cost_model_sightings(&acs_costs_table, 128, false, 300000);
    uint32_t late = acs_cost_model_sightings(&acs_costs_table, 128, false, 10000);
    assert_int_equal(soon, 7);
    assert_int_equal(late, 193);
    assert_true(acs_cost_model_sightings(&acs_costs_table, 128, true, 10000) < late);
    assert_true(acs_cost_model_sightings(&acs_costs_table, 1, true, 1000000000) > 1); /* never at first sight */
    assert_int_equal(acs_cost_model_sightings(&acs_costs_table, 128, false, 0), UINT32_MAX);
}

/*
 * A GPU on which a kernel that another one launches begins late: there layers are better, and graphs that cost more
 * wait.
 */
static void other_costs_lead_to_another_choice(void **state)
{
    (void)state;
    acs_costs slow = acs_costs_table;
    acs_cost_model_bundle b = {.costs = &acs_costs_table, .ops = 64, .levels = 8, .edges = 100};
    const acs_layer_template shape = {.levels = 8, .types = 1, .type = {1}, .cells = {64}};
    assert_true(acs_cost_model_gpu_ns(&b) < acs_cost_model_layers_ns(&b, &shape, 8));
    slow.gpu_hop_ns *= 3;
    b.costs = &slow;
    assert_true(acs_cost_model_gpu_ns(&b) > acs_cost_model_layers_ns(&b, &shape, 8));
    slow.build_ns *= 2;
    assert_true(acs_cost_model_sightings(&slow, 128, false, 10000) >
                acs_cost_model_sightings(&acs_costs_table, 128, false, 10000));
    slow.layers_level_ns *= 4;
    assert_true(ACS_COST_MODEL_LAYERS(&slow).level == 4 * ACS_COST_MODEL_LAYERS(&acs_costs_table).level);
}

static void an_estimate_falls_at_once_and_rises_slowly(void **state)
{
    (void)state;
    uint32_t known = acs_cost_model_learn(0, 10000000);
    assert_true(known < 5000); /* one look is not believed */
    for (int i = 0; i < 10; i++)
        known = acs_cost_model_learn(known, 10000000);
    assert_true(known < 100000); /* nor are ten */
    for (int i = 0; i < 40; i++)
        known = acs_cost_model_learn(known, 200000);
    assert_int_equal(known, 200000);
    assert_int_equal(acs_cost_model_learn(known, 5000), 5000);
    assert_true(acs_cost_model_learn(known, 0) > 0); /* 0 is: not known */
    assert_int_equal(acs_cost_model_learn(UINT32_MAX, UINT64_MAX), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_short_kernels_cost_least_in_their_own_graph_and_most_by_launches),
        cmocka_unit_test(a_random_bundle_costs_least_in_a_resident_executor),
        cmocka_unit_test(a_chain_of_long_kernels_is_launched),
        cmocka_unit_test(long_kernels_side_by_side_are_not),
        cmocka_unit_test(long_kernels_are_launched_where_bundles_would_end_ragged),
        cmocka_unit_test(launches_are_charged_for_host_kernels_and_streams),
        cmocka_unit_test(what_the_gpu_waits_for_counts_less_beside_others),
        cmocka_unit_test(what_the_gpu_issues_beside_a_bundle_is_as_much_for_each),
        cmocka_unit_test(kernels_that_fill_the_device_are_launched),
        cmocka_unit_test(what_few_slots_held_up_may_take_less_in_a_bundle),
        cmocka_unit_test(what_a_bundle_gains_is_in_doubt_where_kernels_queued_up),
        cmocka_unit_test(the_longest_path_may_take_longer_than_the_device),
        cmocka_unit_test(a_graph_is_built_when_as_much_was_lost_as_it_costs),
        cmocka_unit_test(other_costs_lead_to_another_choice),
        cmocka_unit_test(an_estimate_falls_at_once_and_rises_slowly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

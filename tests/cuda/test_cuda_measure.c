/*
 * acs-info's measurement of costs over the double of the driver, where each kernel takes a microsecond and nothing else
 * takes time: which rows follow from that, which keep the table's value, and that nothing is told where a call fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs_info_measure.h"
#include "twin.h"

#include <stdlib.h>
#include <string.h>

static uint64_t g_kernels, g_graphs; /* that had run, that were launched, at the call before */

/* A bundle is issued once before those that are timed: that one's kernels do not count. Launches are timed once. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    const uint64_t kernels = twin_kernels_run() - g_kernels, graphs = twin_count("cuGraphLaunch") - g_graphs;
    const uint64_t bundles = graphs ? graphs : 2;
    (void)begin;
    (void)end;
    *ms = (float)(kernels / bundles * (bundles - 1)) / 1000;
    g_kernels += kernels;
    g_graphs += graphs;
    return cudaSuccess;
}

/* Work runs when somebody waits for it: the host function that holds the GPU up then need not wait for the host. */
static int setup(void **state)
{
    (void)state;
    (void)unsetenv("ACS_COSTS");
    twin_reset();
    g_kernels = g_graphs = 0;
    return 0;
}

static uint32_t row(const acs_costs_measured *m, uint32_t number)
{
    return acs_cost_value(&m->costs, number);
}

static void assert_table(const acs_costs_measured *m, uint32_t number, const char *note)
{
    assert_int_equal(row(m, number), acs_cost_value(&acs_costs_table, number));
    if (!strstr(m->note[number], note))
        fail_msg("%s: '%s' is not in '%s'", acs_cost_name(number), note, m->note[number]);
}

static void rows_follow_from_what_bundles_take(void **state)
{
    acs_costs_measured m;
    (void)state;
    assert_int_equal(info_measure_costs(1, "GPU 1", &m), ACS_OK);
    assert_null(twin_breach());
    assert_string_equal(m.gpu.id, "cuda-1");
    assert_string_equal(m.gpu.name, "Twin 1");
    assert_true(m.costs.launch_ns > 0);
    assert_non_null(strstr(m.note[ACS_COST_ROW(hop_ns)], "median of 15, half of them "));
    assert_in_range(m.costs.hop_ns, 990, 1010);
    assert_in_range(m.costs.replay_op_ns, 1000, 1030); /* and one node of 64 that tells of progress */
    assert_in_range(m.costs.replay_hop_ns, 1000, 1030);
    assert_in_range(m.costs.fixed_op_ns, 1000, 1030);
    assert_in_range(m.costs.layers_level_ns, 900, 2000); /* a barrier, and nodes that tell of progress */
    assert_table(&m, ACS_COST_ROW(edge_ns), "the table's value");
    assert_table(&m, ACS_COST_ROW(layers_off_ns), "the table's value");
    assert_table(&m, ACS_COST_ROW(gpu_hop_ns), "not measured"); /* the double has nothing that launches from the device */
    assert_table(&m, ACS_COST_ROW(cell_ns), "not measured");
    assert_table(&m, ACS_COST_ROW(place_ns), "not measured");
    twin_audit();
    assert_null(twin_breach());
}

static void nothing_is_measured_where_a_call_fails(void **state)
{
    static const char *const calls[] = {"cuStreamSynchronize", "cuLaunchHostFunc", "cuEventRecord", "cuLaunchKernelEx",
                                        "cuEventCreate", "cuMemAlloc"};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        acs_costs_measured m = {.costs = {.hop_ns = 7}};
        twin_reset();
        twin_fail(calls[i], CUDA_ERROR_UNKNOWN, 3, UINT64_MAX);
        if (info_measure_costs(0, "GPU 0", &m) == ACS_OK)
            fail_msg("%s fails, and nobody sees it", calls[i]);
        assert_int_equal(m.costs.hop_ns, 7);
    }
}

static void there_is_nothing_to_measure_without_bundles(void **state)
{
    acs_costs_measured m;
    (void)state;
    twin_without("cuGraphLaunch");
    assert_int_equal(info_measure_costs(0, "GPU 0", &m), ACS_ERR_UNSUPPORTED);
    assert_non_null(strstr(acs_error_thread()->text, "launched one by one"));
    twin_audit();
    assert_null(twin_breach());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_follow_from_what_bundles_take, setup),
        cmocka_unit_test_setup(nothing_is_measured_where_a_call_fails, setup),
        cmocka_unit_test_setup(there_is_nothing_to_measure_without_bundles, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

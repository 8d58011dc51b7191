/*
 * GPU-side issue without a GPU: the host's part, cells, tables and refusals, against a double of the driver that runs
 * what the tables say (gpu_issue_double.h). Bundles come at random into several slots, which go on as they like.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu_issue_double.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum { BUNDLES = 120 };

static acs_batch g_batch;
static acs_dag g_dag;
static acs_record g_records[ACS_BATCH_ITEMS];
static uint32_t g_number[ACS_BATCH_ITEMS]; /* of an item's op in the double */

/* What the op at item i of the bundle is given. */
static void make_op(acs_record *op, uint32_t i, uint32_t types, uint32_t bundle)
{
    acs_random *random = &g_double.random;
    uint32_t number = g_double.ops++;
    double_op *to = &g_double.op[number];
    assert_true(number < DOUBLE_OPS);
    memset(op, 0, sizeof *op);
    memset(to, 0, sizeof *to);
    op->type = 1 + acs_random_below(random, types);
    to->grid = op->grid = (acs_dim3){1 + acs_random_below(random, 2), 1 + i % 2, 1};
    to->bundle = bundle;
    memcpy(to->args, &number, sizeof number);
    for (uint32_t k = 1; k < DOUBLE_ARGS / 8; k++)
        to->args[8 * k] = (unsigned char)(acs_random_below(random, 10) == 0);
    op->args = op->inline_args;
    op->arg_bytes = op->inline_bytes;
    op->arg_count = double_params(op->type);
    for (uint32_t k = 0; k < op->arg_count; k++)
        op->args[k] = (acs_arg_slot){.offset = 8 * k, .size = 8};
    memcpy(op->arg_bytes, to->args, 8 * (size_t)op->arg_count);
    g_number[i] = number;
}

/* Ops that an item stands for: itself, or what a join follows, as far as they have room. */
static void add_ups(double_op *op, uint32_t item)
{
    const acs_item *from = &g_batch.items[item];
    if (from->op && op->up_count < sizeof op->ups / sizeof op->ups[0])
        op->ups[op->up_count++] = g_number[item];
    for (uint32_t e = 0; !from->op && e < from->edge_count; e++)
        add_ups(op, g_batch.edges[from->first_edge + e]);
}

static void make_bundle(uint32_t items, uint32_t types, int slot, uint32_t bundle, acs_issue_method method)
{
    acs_random *random = &g_double.random;
    uint32_t joins = acs_random_below(random, 3), near = 1 + acs_random_below(random, 40);
    g_batch.items_used = g_batch.edges_used = 0;
    g_batch.method = (uint8_t)method;
    for (uint32_t i = 0; i < items; i++) {
        acs_item *item = &g_batch.items[g_batch.items_used++];
        bool join = i > 0 && acs_random_below(random, 10) < joins;
        uint32_t edges = acs_random_below(random, join ? 12 : 3) + join;
        memset(item, 0, sizeof *item);
        item->slot = join ? -1 : (int16_t)slot;
        item->first_edge = (uint16_t)g_batch.edges_used;
        item->op = join ? NULL : &g_records[i];
        item->value = join ? 0 : ++g_double.values[slot];
        if (!join)
            make_op(&g_records[i], i, types, bundle);
        for (uint32_t e = 0; i > 0 && e < edges; e++, item->edge_count++)
            g_batch.edges[g_batch.edges_used++] =
                (uint16_t)(i - 1 - acs_random_below(random, i < near ? i : near));
        for (uint32_t e = 0; !join && e < item->edge_count; e++)
            add_ups(&g_double.op[g_number[i]], g_batch.edges[item->first_edge + e]);
    }
    acs_dag_make(&g_batch, &g_dag);
}

/* Random bundles; returns how many were issued. What was refused never runs, what was issued runs once. */
static uint32_t play(uint32_t most_items, uint32_t types, acs_issue_method method)
{
    bool issued[BUNDLES];
    uint32_t count = 0;
    for (uint32_t b = 0; b < BUNDLES; b++) {
        int slot = (int)acs_random_below(&g_double.random, DOUBLE_SLOTS);
        make_bundle(1 + acs_random_below(&g_double.random, most_items), types, slot, b, method);
        count += issued[b] = acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, 0);
        for (uint32_t steps = acs_random_below(&g_double.random, 8); steps > 0; steps--)
            (void)double_step();
    }
    while (double_step())
        ;
    for (uint32_t i = 0; i < g_double.ops; i++)
        assert_int_equal(g_double.op[i].runs, issued[g_double.op[i].bundle]);
    return count;
}

static void bundles_of_several_slots_run_once_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        double_open(seed, 4096);
        assert_true(play(seed % 2 ? 120 : 20, 1 + (uint32_t)seed, ACS_METHOD_GPU) > BUNDLES / 2);
        double_close();
    }
}

/* Most bundles are refused here, some after cells were made for them; other slots take cells, and destroy some. */
static void few_cells_are_shared_by_many_types(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        double_open(seed, 2 * (4 + seed));
        (void)play(8, DOUBLE_TYPES, seed % 3 ? ACS_METHOD_GPU : ACS_METHOD_AUTO);
        assert_true(g_double.self->gpu_issue->cells <= 4 + seed);
        double_close();
    }
}

static void calls_that_fail_refuse_the_bundle(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        double_open(seed, 512);
        g_double.fail_instantiate = 10;
        g_double.fail_launch = 4;
        (void)play(30, 5, ACS_METHOD_GPU);
        double_close();
    }
}

static void only_what_differs_is_set(void **state)
{
    (void)state;
    double_open(1, 4096);
    for (uint64_t round = 1; round <= 40; round++) {
        make_bundle(1, 1, 0, 0, ACS_METHOD_GPU);
        assert_true(acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, 0));
        while (double_step())
            ;
        if (round == 1)
            assert_int_equal(g_double.argument_bytes, 8 * (uint64_t)double_params(1));
    }
    /* The number always differs, the others in two rounds of ten; what lies beside a change is set, too. */
    assert_true(g_double.argument_bytes < 40 * 8 * (uint64_t)double_params(1) * 8 / 10);
    double_close();
}

static void tables_in_use_refuse_the_bundle(void **state)
{
    uint32_t issued = 0;
    (void)state;
    double_open(1, 4096);
    for (uint32_t i = 0; i < ACS_GPU_ISSUE_RING + 3; i++) {
        make_bundle(3, 1, 0, i, ACS_METHOD_GPU);
        issued += acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, 0);
    }
    assert_int_equal(issued, ACS_GPU_ISSUE_RING);
    while (double_step())
        ;
    assert_true(acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, 0));
    double_close();
}

/* Where a bundle gains little, the cells that it lacks are made when as much was lost without them. */
static void cells_are_earned_where_it_is_asked_for(void **state)
{
    (void)state;
    enum { GAIN_NS = TUNE_COST_CELL_NS / 5 };
    double_open(1, 4096);
    make_bundle(12, 1, 0, 0, ACS_METHOD_AUTO);
    const acs_cuda_gpu_issue *gpu_issue = g_double.self->gpu_issue;
    uint64_t lost_ns = 0;
    while (!acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, GAIN_NS)) {
        assert_true((uint64_t)gpu_issue->cells * TUNE_COST_CELL_NS <= lost_ns);
        lost_ns += GAIN_NS;
        assert_true(lost_ns <= 100 * (uint64_t)TUNE_COST_CELL_NS);
        assert_int_equal(gpu_issue->lost_ns, lost_ns - (uint64_t)gpu_issue->cells * TUNE_COST_CELL_NS);
    }
    const uint32_t cells = gpu_issue->cells;
    assert_true(cells >= 12); /* of its ops, and fans */
    assert_true(lost_ns < (cells + 2) * (uint64_t)TUNE_COST_CELL_NS);
    while (double_step())
        ;
    make_bundle(1, 1, 0, 1, ACS_METHOD_AUTO); /* which has its cell */
    assert_true(acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, GAIN_NS));
    while (double_step())
        ;
    make_bundle(1, 2, 0, 2, ACS_METHOD_AUTO);
    g_dag.node[0].type = g_records[0].type = 2;
    assert_true(acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, 0)); /* it is not asked for */
    assert_int_equal(gpu_issue->cells, cells + 1);
    double_close();
}

/* What no cell would have helped is not lost for want of cells; and not more is earned than a bundle may spend. */
static void what_is_lost_counts_where_cells_would_help_and_up_to_a_limit(void **state)
{
    (void)state;
    enum { GAIN_NS = 3 * TUNE_COST_CELL_NS };
    double_open(1, 2 * (TUNE_GPU_GROW + 1)); /* nodes for one cell more than a bundle may make */
    const acs_cuda_gpu_issue *gpu_issue = g_double.self->gpu_issue;
    make_bundle(3, 1, 0, 0, ACS_METHOD_AUTO);
    g_dag.node[0].type = g_records[0].type = DOUBLE_TYPES + 1;
    for (int i = 0; i < 5; i++)
        assert_false(acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, GAIN_NS));
    assert_int_equal(gpu_issue->lost_ns, 0);
    for (uint32_t i = 0; i < 2 * TUNE_GPU_GROW; i++) { /* one op of each type: others' cells have to go */
        make_bundle(1, 1, 0, i + 1, ACS_METHOD_AUTO);
        g_dag.node[0].type = g_records[0].type = i + 1;
        for (int turn = 0; !acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, GAIN_NS); turn++) {
            assert_true(turn < 4);
            assert_true(gpu_issue->lost_ns < TUNE_GPU_GROW * (uint64_t)TUNE_COST_CELL_NS + GAIN_NS);
            while (double_step()) /* what the stream was given for it */
                ;
        }
        while (double_step())
            ;
    }
    double_close();
    double_open(1, 4096);
    gpu_issue = g_double.self->gpu_issue;
    make_bundle(60, 1, 0, 0, ACS_METHOD_AUTO);
    while (!acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, 3 * (uint64_t)GAIN_NS))
        assert_true(gpu_issue->lost_ns < TUNE_GPU_GROW * (uint64_t)TUNE_COST_CELL_NS + 3 * (uint64_t)GAIN_NS);
    while (double_step())
        ;
    double_close();
}

static void types_that_are_not_known_are_refused(void **state)
{
    (void)state;
    double_open(1, 4096);
    make_bundle(3, 1, 0, 0, ACS_METHOD_GPU);
    g_dag.node[0].type = g_records[0].type = DOUBLE_TYPES + 1;
    assert_false(acs_cuda_gpu_issue_issue(g_double.self, &g_batch, &g_dag, 0));
    double_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bundles_of_several_slots_run_once_in_order),
        cmocka_unit_test(few_cells_are_shared_by_many_types),
        cmocka_unit_test(calls_that_fail_refuse_the_bundle),
        cmocka_unit_test(only_what_differs_is_set),
        cmocka_unit_test(tables_in_use_refuse_the_bundle),
        cmocka_unit_test(cells_are_earned_where_it_is_asked_for),
        cmocka_unit_test(what_is_lost_counts_where_cells_would_help_and_up_to_a_limit),
        cmocka_unit_test(types_that_are_not_known_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

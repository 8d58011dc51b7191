/* Bundles in layers: the properties of layer_template.h on random bundles and templates, and the choice of a size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bundles/layer_template.h"

#include <stdlib.h>
#include <string.h>

static const acs_layers_costs g_costs = {3000, 190, 90};

enum { ROUNDS = 600 };

typedef struct fixture {
    acs_dag dag;
    acs_layers layout, again;
    bool taken[ACS_LAYERS_LEVELS][ACS_BATCH_ITEMS * ACS_LAYERS_TYPES];
    int highest[ACS_BATCH_ITEMS]; /* the highest level of what a node stands for */
} fixture;

static int setup(void **state)
{
    *state = calloc(1, sizeof(fixture));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

/* A node behind `edges` earlier ones, of type 0 for a join; made by hand, since levels are all that layouts look at. */
static void add(acs_dag *dag, uint32_t type, uint32_t edges, const uint16_t *to)
{
    acs_dag_node *node = &dag->node[dag->nodes++];

    *node = (acs_dag_node){.type = type, .first_edge = (uint16_t)dag->edges_used, .edge_count = (uint16_t)edges};
    for (uint32_t e = 0; e < edges; e++) {
        uint32_t level = dag->node[to[e]].level + (type ? 1u : 0u);
        node->level = (uint16_t)(level > node->level ? level : node->level);
        dag->edges[dag->edges_used++] = to[e];
    }
    dag->ops += type != 0;
    if (type && node->level >= dag->levels)
        dag->levels = node->level + 1u;
}

static void make_random(fixture *f, acs_random *random, uint32_t types)
{
    uint32_t nodes = 1 + acs_random_below(random, 200), near = 1 + acs_random_below(random, 50);

    memset(&f->dag, 0, sizeof f->dag);
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t edges = i ? acs_random_below(random, 4) : 0;
        uint16_t to[4];
        for (uint32_t e = 0; e < edges; e++)
            to[e] = (uint16_t)(i - 1 - acs_random_below(random, i < near ? i : near));
        add(&f->dag, edges && acs_random_below(random, 8) == 0 ? 0 : 1 + acs_random_below(random, types), edges, to);
    }
}

/* LAYER-1, and what a join stands for. */
static void judge_edges(fixture *f, uint32_t i)
{
    const acs_dag_node *node = &f->dag.node[i];

    f->highest[i] = node->type ? f->layout.level[i] : -1;
    for (uint32_t e = 0; e < node->edge_count; e++) {
        int below = f->highest[f->dag.edges[node->first_edge + e]];
        if (node->type)
            assert_true(f->highest[i] > below);
        else if (below > f->highest[i])
            f->highest[i] = below;
    }
}

/* LAYER-2: a cell of its own, among those of its type. */
static void judge_cell(fixture *f, const acs_layer_template *shape, uint32_t i)
{
    uint32_t level = f->layout.level[i], cell = f->layout.cell[i], t = 0, from = 0;

    if (!f->dag.node[i].type) {
        assert_int_equal(level, ACS_LAYERS_NONE);
        assert_int_equal(cell, ACS_LAYERS_NONE);
        return;
    }
    while (shape->type[t] != f->dag.node[i].type)
        from += shape->cells[t++];
    assert_true(level < f->layout.levels && f->layout.levels <= shape->levels);
    assert_int_equal(acs_layers_first_cell(shape, t), from);
    assert_in_range(cell, from, from + shape->cells[t] - 1u);
    assert_false(f->taken[level][cell]);
    f->taken[level][cell] = true;
}

/* What has ended after a level: all ops up to the first that is in none up to it. */
static void judge_prefixes(const fixture *f)
{
    for (uint32_t l = 0; l < f->layout.levels; l++) {
        uint32_t ended = 0;
        for (uint32_t i = 0; i < f->dag.nodes; i++) {
            if (f->dag.node[i].type && f->layout.level[i] > l)
                break;
            ended += f->dag.node[i].type != 0;
        }
        assert_int_equal(f->layout.prefix[l], ended);
    }
    if (f->layout.levels)
        assert_int_equal(f->layout.prefix[f->layout.levels - 1], f->dag.ops);
}

static void judge(fixture *f, const acs_layer_template *shape)
{
    memset(f->taken, 0, sizeof f->taken);
    for (uint32_t i = 0; i < f->dag.nodes; i++) {
        judge_edges(f, i);
        judge_cell(f, shape, i);
    }
    judge_prefixes(f);
}

static acs_layer_template random_shape(acs_random *random, uint32_t types)
{
    acs_layer_template shape = {.levels = 1 + acs_random_below(random, ACS_LAYERS_LEVELS), .types = types};

    for (uint32_t t = 0; t < types; t++) {
        shape.type[t] = types - t;
        shape.cells[t] = (uint16_t)(1 + acs_random_below(random, 12));
    }
    return shape;
}

static void random_bundles_are_laid_out_in_order(void **state)
{
    fixture *f = *state;
    acs_random random = {11};
    uint32_t fitted = 0;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t types = 1 + acs_random_below(&random, 4);
        acs_layer_template shape = random_shape(&random, types);
        make_random(f, &random, types);
        memset(&f->layout, 0x55, sizeof f->layout);
        if (!acs_layers_make(&f->dag, &shape, &f->layout))
            continue;
        fitted++;
        judge(f, &shape);
        if (f->dag.levels == f->layout.levels || f->layout.levels < shape.levels)
            continue;
        shape.levels = f->layout.levels - 1; /* what was needed is needed */
        assert_false(acs_layers_make(&f->dag, &shape, &f->again));
    }
    assert_in_range(fitted, ROUNDS / 5, ROUNDS - ROUNDS / 20);
}

static void wide_templates_need_no_more_levels_than_the_bundle_has(void **state)
{
    fixture *f = *state;
    acs_random random = {12};

    for (uint32_t round = 0; round < ROUNDS; round++) {
        acs_layer_template shape = {.levels = ACS_LAYERS_LEVELS, .types = 1, .type = {1}, .cells = {200}};
        make_random(f, &random, 1);
        assert_int_equal(acs_layers_make(&f->dag, &shape, &f->layout), f->dag.levels <= ACS_LAYERS_LEVELS);
        if (f->dag.levels <= ACS_LAYERS_LEVELS)
            assert_int_equal(f->layout.levels, f->dag.levels);
    }
}

/* As wide as the bundle's widest level of each type, as deep as the bundle, both in powers of two. */
static acs_layer_template widest_of(const fixture *f, acs_layer_template shape)
{
    for (uint32_t t = 0; t < shape.types; t++) {
        uint32_t widest = 2;
        for (uint32_t l = 0; l < f->dag.levels; l++) {
            uint32_t ops = 0;
            for (uint32_t i = 0; i < f->dag.nodes; i++)
                ops += f->dag.node[i].type == shape.type[t] && f->dag.node[i].level == l;
            widest = ops > widest ? ops : widest;
        }
        shape.cells[t] = (uint16_t)acs_round_up_pow2(widest);
    }
    shape.levels = acs_round_up_pow2(f->dag.levels > 4 ? f->dag.levels : 4);
    return shape;
}

static void chosen_template_fits_and_costs_no_more_than_the_widest(void **state)
{
    fixture *f = *state;
    acs_random random = {13};
    acs_layers_costs costs = g_costs;
    uint32_t chosen = 0, narrower = 0;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        acs_layer_template shape, widest;
        make_random(f, &random, 1 + acs_random_below(&random, 4));
        if (!acs_layers_choose(&f->dag, &costs, 4096, &shape, &f->layout))
            continue;
        chosen++;
        judge(f, &shape);
        widest = widest_of(f, shape);
        assert_true(acs_layers_make(&f->dag, &widest, &f->again));
        assert_true(acs_layers_cost(&shape, &costs, f->dag.ops) <= acs_layers_cost(&widest, &costs, f->dag.ops));
        narrower += acs_layers_cells(&shape) < acs_layers_cells(&widest);
    }
    assert_true(chosen > ROUNDS / 2);
    assert_true(narrower > ROUNDS / 20);
}

static void level_wider_than_the_template_spills(void **state)
{
    fixture *f = *state;
    acs_layer_template shape = {.levels = 3, .types = 1, .type = {1}, .cells = {4}};

    memset(&f->dag, 0, sizeof f->dag);
    for (uint32_t i = 0; i < 10; i++)
        add(&f->dag, 1, 0, NULL);
    assert_true(acs_layers_make(&f->dag, &shape, &f->layout));
    judge(f, &shape);
    assert_int_equal(f->layout.prefix[0], 4);
    assert_int_equal(f->layout.prefix[1], 8);
    for (uint32_t i = 0; i < 3; i++)
        add(&f->dag, 1, 0, NULL);
    assert_false(acs_layers_make(&f->dag, &shape, &f->layout));
}

static void types_and_sizes_that_cannot_be_are_refused(void **state)
{
    fixture *f = *state;
    acs_layer_template shape = {.levels = 3, .types = 1, .type = {1}, .cells = {4}};
    acs_layers_costs costs = g_costs;

    memset(&f->dag, 0, sizeof f->dag);
    add(&f->dag, 2, 0, NULL);
    assert_false(acs_layers_make(&f->dag, &shape, &f->layout));
    for (uint32_t type = 3; type < 10; type++)
        add(&f->dag, type, 0, NULL);
    assert_true(acs_layers_choose(&f->dag, &costs, 4096, &shape, &f->layout));
    assert_false(acs_layers_choose(&f->dag, &costs, 63, &shape, &f->layout)); /* 4 levels of 8 times 2 cells */
    add(&f->dag, 10, 0, NULL);
    assert_false(acs_layers_choose(&f->dag, &costs, 4096, &shape, &f->layout));
    memset(&f->dag, 0, sizeof f->dag);
    for (uint16_t i = 0; i <= ACS_LAYERS_LEVELS; i++)
        add(&f->dag, 1, i ? 1 : 0, &(uint16_t){(uint16_t)(i - 1)});
    assert_false(acs_layers_choose(&f->dag, &costs, 4096, &shape, &f->layout));
}

static void bundles_that_resemble_each_other_share_a_template(void **state)
{
    fixture *f = *state;
    acs_layer_template shape[2];
    acs_layers_costs costs = g_costs;

    for (uint32_t k = 0; k < 2; k++) {
        memset(&f->dag, 0, sizeof f->dag);
        for (uint32_t i = 0; i < 21 + 5 * k; i++)
            add(&f->dag, 1 + (i + k) % 2, 0, NULL);
        assert_true(acs_layers_choose(&f->dag, &costs, 4096, &shape[k], &f->layout));
    }
    assert_true(acs_layers_key(&shape[0]) == acs_layers_key(&shape[1]));
    shape[1].cells[1]++;
    assert_true(acs_layers_key(&shape[0]) != acs_layers_key(&shape[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_bundles_are_laid_out_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(wide_templates_need_no_more_levels_than_the_bundle_has, setup, teardown),
        cmocka_unit_test_setup_teardown(chosen_template_fits_and_costs_no_more_than_the_widest, setup, teardown),
        cmocka_unit_test_setup_teardown(level_wider_than_the_template_spills, setup, teardown),
        cmocka_unit_test_setup_teardown(types_and_sizes_that_cannot_be_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(bundles_that_resemble_each_other_share_a_template, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

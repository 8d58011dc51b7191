/* Shapes of bundles: edges without the implied ones, levels, width and key, against a judge that tries every path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bundles/dag.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400, BIG_ROUNDS = 12, SEEDS = 64 };

/* A bundle under construction, and records for its ops. */
typedef struct fixture {
    acs_batch batch;
    acs_record ops[ACS_BATCH_ITEMS];
    acs_dag dag, other;
    bool named[ACS_BATCH_ITEMS][ACS_BATCH_ITEMS];
    bool reaches[ACS_BATCH_ITEMS][ACS_BATCH_ITEMS]; /* by one edge or several */
    bool resolved[ACS_BATCH_ITEMS];                 /* joins that are no more: what they stand for */
    bool stands_for[ACS_BATCH_ITEMS][ACS_BATCH_ITEMS];
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

/* Add an op of a type, or a join (0). */
static acs_item *add(fixture *f, uint32_t type)
{
    acs_item *item = &f->batch.items[f->batch.items_used];

    memset(item, 0, sizeof *item);
    f->ops[f->batch.items_used].type = type;
    item->op = type ? &f->ops[f->batch.items_used] : NULL;
    item->first_edge = (uint16_t)f->batch.edges_used;
    f->batch.items_used++;
    return item;
}

/* The item added last follows an earlier one. */
static void follow(fixture *f, uint32_t earlier)
{
    f->batch.items[f->batch.items_used - 1].edge_count++;
    f->batch.edges[f->batch.edges_used++] = (uint16_t)earlier;
}

static void start(fixture *f)
{
    f->batch.items_used = f->batch.edges_used = 0;
    f->batch.bundle = true;
}

/* ----------------------------------------------------------------------------------------------------------- judge */

/* Is the edge implied: is there a way from `i` to `to` over another node? */
static bool implied(const fixture *f, uint32_t i, uint32_t to)
{
    for (uint32_t k = to + 1; k < i; k++) {
        if (f->reaches[i][k] && f->reaches[k][to])
            return true;
    }
    return false;
}

/* A join whose n edges and m followers' are not many more as n times m edges is resolved (DAG-3). */
static void judge_join(fixture *f, uint32_t i, uint32_t *spare)
{
    uint32_t n = 0, m = 0, more;

    for (uint32_t e = 0; e < f->batch.edges_used; e++)
        m += f->batch.edges[e] == i;
    for (uint32_t k = 0; k < i; k++) {
        f->stands_for[i][k] = f->named[i][k] && !implied(f, i, k);
        n += f->stands_for[i][k];
    }
    more = n * m > n + m ? n * m - n - m : 0;
    if (more > 2 || more > *spare)
        return;
    *spare -= more;
    f->resolved[i] = true;
    memset(f->named[i], 0, sizeof f->named[i]);
    memset(f->reaches[i], 0, sizeof f->reaches[i]);
}

static void find_paths(fixture *f)
{
    uint32_t spare = ACS_BATCH_EDGES - f->batch.edges_used;

    memset(f->named, 0, sizeof f->named);
    memset(f->reaches, 0, sizeof f->reaches);
    memset(f->resolved, 0, sizeof f->resolved);
    for (uint32_t i = 0; i < f->batch.items_used; i++) {
        const acs_item *item = &f->batch.items[i];
        for (uint32_t e = 0; e < item->edge_count; e++) {
            uint32_t to = f->batch.edges[item->first_edge + e];
            for (uint32_t k = 0; k < to; k++)
                f->named[i][k] |= f->resolved[to] && f->stands_for[to][k];
            f->named[i][to] |= !f->resolved[to];
        }
        for (uint32_t to = 0; to < i; to++) {
            f->reaches[i][to] |= f->named[i][to];
            for (uint32_t k = 0; f->named[i][to] && k < to; k++)
                f->reaches[i][k] |= f->reaches[to][k];
        }
        if (!item->op)
            judge_join(f, i, &spare);
    }
}

static uint32_t judged_level(const fixture *f, const uint32_t *levels, uint32_t i)
{
    uint32_t level = 0;

    for (uint32_t k = 0; k < i; k++) {
        uint32_t one = levels[k] + (f->batch.items[i].op ? 1 : 0);
        if (f->named[i][k] && one > level)
            level = one;
    }
    return level;
}

static void judge_edges(const fixture *f)
{
    uint32_t out[ACS_BATCH_ITEMS] = {0}, used = 0;

    for (uint32_t i = 0; i < f->dag.nodes; i++) {
        const acs_dag_node *node = &f->dag.node[i];
        uint32_t expected = 0;
        assert_int_equal(node->first_edge, used);
        for (uint32_t k = i; k-- > 0;) {
            if (!f->named[i][k] || implied(f, i, k))
                continue;
            assert_true(expected < node->edge_count);
            assert_int_equal(f->dag.edges[node->first_edge + expected++], k);
            out[k]++;
        }
        assert_int_equal(node->edge_count, expected);
        used += expected;
    }
    assert_int_equal(f->dag.edges_used, used);
    for (uint32_t i = 0; i < f->dag.nodes; i++)
        assert_int_equal(f->dag.node[i].out_count, out[i]);
}

static void judge_levels(const fixture *f)
{
    uint32_t levels[ACS_BATCH_ITEMS], ops = 0;

    for (uint32_t i = 0; i < f->dag.nodes; i++) {
        levels[i] = judged_level(f, levels, i);
        assert_int_equal(f->dag.node[i].level, levels[i]);
        assert_int_equal(f->dag.node[i].type, f->batch.items[i].op ? f->ops[i].type : 0);
        ops += f->batch.items[i].op != NULL;
    }
    assert_int_equal(f->dag.ops, ops);
}

/* Levels with ops. */
static uint32_t levels_of(const fixture *f)
{
    uint32_t levels = 0;
    for (uint32_t i = 0; i < f->dag.nodes; i++)
        if (f->dag.node[i].type && f->dag.node[i].level >= levels)
            levels = f->dag.node[i].level + 1u;
    return levels;
}

static void make_and_judge(fixture *f)
{
    memset(&f->dag, 0xff, sizeof f->dag);
    acs_dag_make(&f->batch, &f->dag);
    assert_int_equal(f->dag.nodes, f->batch.items_used);
    find_paths(f);
    judge_edges(f);
    judge_levels(f);
}

/* --------------------------------------------------------------------------------------------------- random bundles */

static void make_random(fixture *f, acs_random *random, uint32_t nodes)
{
    uint32_t most = 1 + acs_random_below(random, nodes < 40 ? 12 : 7), near = 1 + acs_random_below(random, nodes);
    uint32_t joins = acs_random_below(random, 4);

    start(f);
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t edges = i ? acs_random_below(random, most + 1) : 0;
        bool join = edges && acs_random_below(random, 10) < joins;
        add(f, join ? 0 : 1 + acs_random_below(random, 3));
        for (uint32_t e = 0; e < edges && f->batch.edges_used < ACS_BATCH_EDGES; e++)
            follow(f, i - 1 - acs_random_below(random, i < near ? i : near));
    }
}

/* The same bundle with the edges of each item in another order. */
static void turn_edges(fixture *f, acs_random *random)
{
    for (uint32_t i = 0; i < f->batch.items_used; i++) {
        const acs_item *item = &f->batch.items[i];
        for (uint32_t e = item->edge_count; e > 1; e--) {
            uint16_t *edges = &f->batch.edges[item->first_edge], swap = edges[e - 1];
            uint32_t with = acs_random_below(random, e);
            edges[e - 1] = edges[with];
            edges[with] = swap;
        }
    }
}

static void random_bundles_have_the_edges_and_levels_of_the_judge(void **state)
{
    fixture *f = *state;
    acs_random random = {1};

    for (uint32_t round = 0; round < ROUNDS; round++) {
        make_random(f, &random, 1 + acs_random_below(&random, 60));
        make_and_judge(f);
    }
    for (uint32_t round = 0; round < BIG_ROUNDS; round++) {
        make_random(f, &random, ACS_BATCH_ITEMS - acs_random_below(&random, 3) * 64);
        make_and_judge(f);
    }
}

static void key_does_not_depend_on_the_order_or_on_implied_edges(void **state)
{
    fixture *f = *state;
    acs_random random = {2};
    uint32_t without = 0;

    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        uint32_t joins = 0;
        make_random(f, &random, 40);
        make_and_judge(f);
        f->other = f->dag;
        turn_edges(f, &random);
        make_and_judge(f);
        assert_true(f->dag.key == f->other.key);
        for (uint32_t i = 0; i < f->other.nodes; i++) /* which joins are resolved depends on how many name them */
            joins += !f->other.node[i].type && f->other.node[i].out_count;
        start(f);
        for (uint32_t i = 0; i < f->other.nodes; i++) {
            add(f, f->other.node[i].type);
            for (uint32_t e = 0; e < f->other.node[i].edge_count; e++)
                follow(f, f->other.edges[f->other.node[i].first_edge + e]);
        }
        make_and_judge(f);
        assert_true(joins || f->dag.key == f->other.key);
        without += !joins;
    }
    assert_true(without > SEEDS / 4);
}

static void key_tells_types_and_edges_apart(void **state)
{
    fixture *f = *state;
    acs_random random = {3};

    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        make_random(f, &random, 40);
        make_and_judge(f);
        f->other = f->dag;
        if (seed % 2)
            add(f, 1 + seed % 3);
        else
            f->ops[0].type += 7;
        make_and_judge(f);
        assert_true(f->dag.key != f->other.key);
        follow(f, 0); /* an edge more to the last item, where nothing implied it */
        f->other = f->dag;
        make_and_judge(f);
        assert_true((f->dag.key != f->other.key) == (f->dag.edges_used != f->other.edges_used));
    }
}

/* ---------------------------------------------------------------------------------------------------- special shapes */

static void empty_bundle_has_no_levels(void **state)
{
    fixture *f = *state;

    start(f);
    make_and_judge(f);
    assert_int_equal(levels_of(f), 0);
}

static void all_pairs_of_edges_become_a_chain(void **state)
{
    fixture *f = *state;

    start(f);
    for (uint32_t i = 0; i < 64; i++) {
        add(f, 1);
        for (uint32_t k = 0; k < i; k++)
            follow(f, k);
    }
    make_and_judge(f);
    assert_int_equal(f->dag.edges_used, 63);
    assert_int_equal(levels_of(f), 64);
}

static void most_edges_that_a_bundle_can_have_fit(void **state)
{
    fixture *f = *state;

    start(f);
    for (uint32_t i = 0; i < 128; i++) {
        add(f, 1);
        for (uint32_t k = 0; i >= 64 && k < 64; k++)
            follow(f, k);
    }
    make_and_judge(f);
    assert_int_equal(f->dag.edges_used, ACS_BATCH_EDGES);
    assert_int_equal(levels_of(f), 2);
}

static void join_adds_no_level(void **state)
{
    fixture *f = *state;

    start(f);
    for (uint32_t i = 0; i < 4; i++)
        add(f, 1);
    add(f, 0);
    for (uint32_t i = 0; i < 4; i++)
        follow(f, i);
    for (uint32_t i = 0; i < 4; i++) {
        add(f, 2);
        follow(f, 4);
        follow(f, i);
    }
    make_and_judge(f);
    assert_int_equal(f->dag.edges_used, 8);
    assert_int_equal(levels_of(f), 2);
    assert_int_equal(f->dag.ops, 8);
}

static void join_that_costs_more_than_it_saves_is_resolved(void **state)
{
    fixture *f = *state;

    start(f);
    for (uint32_t i = 0; i < 8; i++)
        add(f, 1);
    add(f, 0); /* of eight, for one */
    for (uint32_t i = 0; i < 8; i++)
        follow(f, i);
    add(f, 0); /* of one join, for another */
    follow(f, 8);
    add(f, 1);
    follow(f, 9);
    make_and_judge(f);
    assert_int_equal(f->dag.node[8].out_count + f->dag.node[8].edge_count, 0);
    assert_int_equal(f->dag.node[9].out_count + f->dag.node[9].edge_count, 0);
    assert_int_equal(f->dag.node[10].edge_count, 8);
    assert_int_equal(f->dag.node[10].level, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_bundles_have_the_edges_and_levels_of_the_judge, setup, teardown),
        cmocka_unit_test_setup_teardown(key_does_not_depend_on_the_order_or_on_implied_edges, setup, teardown),
        cmocka_unit_test_setup_teardown(key_tells_types_and_edges_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_bundle_has_no_levels, setup, teardown),
        cmocka_unit_test_setup_teardown(all_pairs_of_edges_become_a_chain, setup, teardown),
        cmocka_unit_test_setup_teardown(most_edges_that_a_bundle_can_have_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(join_adds_no_level, setup, teardown),
        cmocka_unit_test_setup_teardown(join_that_costs_more_than_it_saves_is_resolved, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

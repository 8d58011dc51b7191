/* Who releases whom when the GPU issues a bundle: every op once, behind all that it follows, launches within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/tuning.h"
#include "bundles/dag.h"
#include "bundles/release_tree.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    acs_batch batch;
    acs_record op;
    acs_dag dag;
    acs_release_tree tree;
    uint32_t left[ACS_RELEASE_TREE_NODES]; /* upstream that have not ended */
    bool done[ACS_RELEASE_TREE_NODES];
    uint16_t ready[ACS_RELEASE_TREE_NODES];
    uint32_t ready_used;
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

static void start(fixture *f)
{
    f->batch.items_used = f->batch.edges_used = 0;
    f->op.type = 1;
}

static uint32_t add(fixture *f, bool op)
{
    uint32_t i = f->batch.items_used++;
    memset(&f->batch.items[i], 0, sizeof f->batch.items[i]);
    f->batch.items[i].op = op ? &f->op : NULL;
    f->batch.items[i].first_edge = (uint16_t)f->batch.edges_used;
    return i;
}

static void follow(fixture *f, uint32_t earlier)
{
    assert_true(f->batch.edges_used < ACS_BATCH_EDGES);
    f->batch.items[f->batch.items_used - 1].edge_count++;
    f->batch.edges[f->batch.edges_used++] = (uint16_t)earlier;
}

/* End a node: count down what follows, pass joins. Returns launches and joins passed. */
static uint32_t end(fixture *f, const acs_release_tree_node *node, bool head)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < node->out_count; i++) {
        uint32_t to = f->tree.out[node->first_out + i];
        assert_true(to < f->tree.nodes);
        assert_true(head ? f->left[to] == 0 : f->left[to] > 0);
        if (!head && --f->left[to] > 0)
            continue;
        used++;
        if (f->tree.node[to].kind == ACS_RELEASE_TREE_JOIN_NODE) {
            f->done[to] = true;
            used += end(f, &f->tree.node[to], false);
        } else {
            f->ready[f->ready_used++] = (uint16_t)to;
        }
    }
    return used;
}

/*
 * All ops that an item follows have ended, also those that a join stands for; a resolved join (dag.h) may end any time.
 */
static void assert_behind(const fixture *f, uint32_t i)
{
    for (uint32_t e = 0; e < f->batch.items[i].edge_count; e++) {
        uint32_t to = f->batch.edges[f->batch.items[i].first_edge + e];
        if (f->batch.items[to].op || f->dag.node[to].out_count)
            assert_true(f->done[to]);
        else
            assert_behind(f, to);
    }
}

/* Everything ends in some order; an item may begin when all that it follows have ended. */
static void play(fixture *f, acs_random *random)
{
    uint32_t ended = 0, joins = 0;
    acs_dag_make(&f->batch, &f->dag);
    assert_true(acs_release_tree_make(&f->dag, &f->tree));
    memset(f->done, 0, sizeof f->done);
    f->ready_used = 0;
    for (uint32_t i = 0; i < f->tree.nodes; i++) {
        assert_true(f->tree.node[i].weight <= TUNE_RELEASE_MOST);
        f->left[i] = f->tree.node[i].upstream;
        joins += f->tree.node[i].kind == ACS_RELEASE_TREE_JOIN_NODE;
    }
    assert_true(f->tree.head.weight <= TUNE_RELEASE_MOST);
    assert_true(end(f, &f->tree.head, true) <= f->tree.head.weight);
    while (f->ready_used) {
        uint32_t pick = acs_random_below(random, f->ready_used), i = f->ready[pick];
        f->ready[pick] = f->ready[--f->ready_used];
        assert_false(f->done[i]);
        if (i < f->batch.items_used && (f->batch.items[i].op || f->dag.node[i].out_count))
            assert_behind(f, i);
        f->done[i] = true;
        ended++;
        assert_true(end(f, &f->tree.node[i], false) <= f->tree.node[i].weight);
    }
    assert_int_equal(ended + joins, f->tree.nodes);
}

static void all_run_once_behind_what_they_follow(void **state)
{
    fixture *f = *state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        acs_random random = {seed};
        uint32_t items = 1 + acs_random_below(&random, ACS_BATCH_ITEMS), near = 1 + acs_random_below(&random, 300);
        uint32_t joins = acs_random_below(&random, 3);
        start(f);
        for (uint32_t i = 0; i < items; i++) {
            bool join = i > 0 && acs_random_below(&random, 10) < joins;
            uint32_t edges = acs_random_below(&random, join ? 60 : 3) + join;
            add(f, !join);
            for (uint32_t e = 0; i > 0 && e < edges && f->batch.edges_used + 70 < ACS_BATCH_EDGES; e++)
                follow(f, i - 1 - acs_random_below(&random, i < near ? i : near));
        }
        play(f, &random);
    }
}

static void wide_releases_go_through_fans(void **state)
{
    fixture *f = *state;
    acs_random random = {1};
    start(f);
    for (uint32_t i = 0; i < 500; i++)
        add(f, true); /* all are roots */
    play(f, &random);
    assert_int_equal(f->tree.nodes, 500 + 6);
    start(f);
    add(f, true);
    for (uint32_t i = 1; i < 500; i++) {
        add(f, true);
        follow(f, 0);
    }
    play(f, &random);
    assert_int_equal(f->tree.node[0].out_count, 6);
}

static void a_join_that_costs_much_becomes_a_fan(void **state)
{
    fixture *f = *state;
    acs_random random = {1};
    for (uint32_t after = TUNE_RELEASE_JOIN_MOST; after <= TUNE_RELEASE_JOIN_MOST + 1; after++) {
        start(f);
        for (uint32_t i = 0; i < 10; i++)
            add(f, true);
        uint32_t join = add(f, false);
        for (uint32_t i = 0; i < 10; i++)
            follow(f, i);
        for (uint32_t i = 0; i < after; i++) {
            add(f, true);
            follow(f, join);
        }
        play(f, &random);
        assert_int_equal(f->tree.node[join].kind,
                         after > TUNE_RELEASE_JOIN_MOST ? ACS_RELEASE_TREE_FAN : ACS_RELEASE_TREE_JOIN_NODE);
    }
}

/* A join that follows nothing has to be passed all the same. */
static void a_join_without_upstream_is_launched(void **state)
{
    fixture *f = *state;
    acs_random random = {1};
    start(f);
    uint32_t join = add(f, false);
    add(f, true);
    follow(f, join);
    play(f, &random);
}

static void too_many_fans_are_refused(void **state)
{
    fixture *f = *state;
    start(f);
    /* Each of 80 ops reaches 40 joins of 9 ops: any of them may be the last to reach all. */
    for (uint32_t i = 0; i < 80; i++)
        add(f, true);
    for (uint32_t j = 0; j < 40; j++) {
        add(f, false);
        for (uint32_t i = 0; i < 80; i++)
            follow(f, i);
        for (uint32_t i = 0; i < 9; i++) {
            add(f, true);
            follow(f, 80 + j * 10);
        }
    }
    acs_dag_make(&f->batch, &f->dag);
    assert_false(acs_release_tree_make(&f->dag, &f->tree));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_run_once_behind_what_they_follow, setup, teardown),
        cmocka_unit_test_setup_teardown(wide_releases_go_through_fans, setup, teardown),
        cmocka_unit_test_setup_teardown(a_join_that_costs_much_becomes_a_fan, setup, teardown),
        cmocka_unit_test_setup_teardown(a_join_without_upstream_is_launched, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_fans_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The shape of a graph against brute force, over random graphs: it keeps every given order, has no cycle, no implied edge,
 * and no more unordered ops than chains; and cases whose shape is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "capture/graph_shape.h"

#include <string.h>

enum { OPS_MOST = 60, EDGES_MOST = OPS_MOST * OPS_MOST };

typedef struct relation {
    bool behind[OPS_MOST][OPS_MOST]; /* [a][b]: a path leads from b to a */
} relation;

static uint32_t g_first[OPS_MOST + 1], g_behind[EDGES_MOST];
static uint32_t g_steps[OPS_MOST];
static acs_graph_plan g_plan = {0, g_first, g_behind, g_steps};
static uint64_t g_random;

static uint32_t below(uint32_t n)
{
    g_random = g_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((g_random >> 33) % n);
}

static void begin(void)
{
    g_plan.count = 0;
    g_first[0] = 0;
}

/* Add an op behind the given ones. */
static void add(uint32_t count, const uint32_t *behind)
{
    for (uint32_t i = 0; i < count; i++)
        g_behind[g_first[g_plan.count] + i] = behind[i];
    g_steps[g_plan.count++] = 1;
    g_first[g_plan.count] = g_first[g_plan.count - 1] + count;
}

static void close_paths(relation *r, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t a = 0; a < count; a++)
            for (uint32_t b = 0; r->behind[a][k] && b < count; b++)
                r->behind[a][b] |= r->behind[k][b];
}

static relation of_edges(const acs_graph_shape *shape, uint32_t skipped)
{
    relation r = {0};
    for (uint32_t i = 0; i < shape->edge_count; i++)
        if (i != skipped)
            r.behind[shape->edges[i].to][shape->edges[i].from] = true;
    close_paths(&r, g_plan.count);
    return r;
}

static bool match(const relation *r, uint32_t op, uint32_t *taken_by, bool *seen)
{
    for (uint32_t next = 0; next < g_plan.count; next++) {
        if (!r->behind[next][op] || seen[next])
            continue;
        seen[next] = true;
        if (taken_by[next] == UINT32_MAX || match(r, taken_by[next], taken_by, seen)) {
            taken_by[next] = op;
            return true;
        }
    }
    return false;
}

/* Dilworth: the most ops of which no two are ordered are as many as the chains that cover all. */
static uint32_t width_of(const relation *r)
{
    uint32_t taken_by[OPS_MOST], matched = 0;
    memset(taken_by, 0xff, sizeof taken_by);
    for (uint32_t op = 0; op < g_plan.count; op++) {
        bool seen[OPS_MOST] = {false};
        matched += match(r, op, taken_by, seen);
    }
    return g_plan.count - matched;
}

static uint32_t longest_path(const relation *r)
{
    uint32_t length[OPS_MOST] = {0}, longest = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t a = 0; a < g_plan.count; a++) {
            uint32_t most = 1;
            for (uint32_t b = 0; b < g_plan.count; b++)
                most = r->behind[a][b] && length[b] + 1 > most ? length[b] + 1 : most;
            changed |= most != length[a];
            length[a] = most;
            longest = most > longest ? most : longest;
        }
    }
    return longest;
}

static void check_shape(const acs_graph_shape *shape, uint32_t chains)
{
    const relation r = of_edges(shape, UINT32_MAX);
    for (uint32_t op = 0; op < g_plan.count; op++) {
        assert_false(r.behind[op][op]); /* SHAPE-2 */
        for (uint32_t e = g_first[op]; e < g_first[op + 1]; e++)
            assert_true(r.behind[op][g_behind[e]]); /* SHAPE-1 */
    }
    assert_in_range(shape->chains, g_plan.count ? 1 : 0, chains);
    assert_true(width_of(&r) <= shape->chains); /* SHAPE-3 */
    if (g_plan.count)
        assert_int_equal(longest_path(&r), shape->levels);
    for (uint32_t i = 0; i < shape->edge_count; i += 1 + below(4)) {
        const relation without = of_edges(shape, i);
        assert_false(without.behind[shape->edges[i].to][shape->edges[i].from]);
    }
}

static void random_graph(void)
{
    const uint32_t count = below(OPS_MOST + 1), reach = 1 + below(OPS_MOST), most = 1 + below(4);
    begin();
    for (uint32_t op = 0; op < count; op++) {
        uint32_t behind[4], used = 0;
        for (uint32_t i = 0; i < most && op; i++) {
            const uint32_t up = op - 1 - below(op < reach ? op : reach);
            bool known = below(3) == 0;
            for (uint32_t k = 0; k < used; k++)
                known |= behind[k] == up;
            if (!known)
                behind[used++] = up;
        }
        add(used, behind);
        g_steps[op] = below(8) ? 1 : 1 + below(50);
    }
}

static void random_graphs_keep_their_order_on_few_chains(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        static const uint32_t chains[] = {1, 2, 3, 4, 8, 16, UINT32_MAX};
        acs_graph_shape shape;
        g_random = seed;
        random_graph();
        const uint32_t most = chains[seed % 7];
        assert_true(acs_graph_shape_make(&g_plan, most, &shape));
        check_shape(&shape, most);
        acs_graph_shape_fini(&shape);
    }
}

static void chains_side_by_side_stay_as_they_are(void **state)
{
    (void)state;
    acs_graph_shape shape;
    begin();
    for (uint32_t op = 0; op < 40; op++) {
        const uint32_t up = op - 8;
        add(op >= 8, &up);
    }
    assert_true(acs_graph_shape_make(&g_plan, 8, &shape));
    assert_int_equal(shape.chains, 8);
    assert_int_equal(shape.edge_count, 32);
    assert_int_equal(shape.levels, 5);
    acs_graph_shape_fini(&shape);
}

/* Two programs that share nothing, one with a long op: neither waits for the other, though their ops alternate. */
static void parts_have_chains_of_their_own(void **state)
{
    (void)state;
    acs_graph_shape shape;
    begin();
    for (uint32_t op = 0; op < 40; op++) {
        const uint32_t up = op - 2;
        add(op >= 2, &up);
    }
    g_steps[4] = 100;
    assert_true(acs_graph_shape_make(&g_plan, 4, &shape));
    assert_int_equal(shape.chains, 2);
    for (uint32_t i = 0; i < shape.edge_count; i++)
        assert_int_equal(shape.edges[i].from % 2, shape.edges[i].to % 2);
    assert_int_equal(shape.levels, 20);
    acs_graph_shape_fini(&shape);
}

/* Twelve ops that share nothing on four chains: three each. */
static void more_parts_than_chains_share_them(void **state)
{
    (void)state;
    acs_graph_shape shape;
    begin();
    for (uint32_t op = 0; op < 12; op++)
        add(0, NULL);
    assert_true(acs_graph_shape_make(&g_plan, 4, &shape));
    assert_int_equal(shape.chains, 4);
    assert_int_equal(shape.levels, 3);
    assert_int_equal(shape.edge_count, 8);
    acs_graph_shape_fini(&shape);
}

static void an_op_stays_on_the_chain_that_it_follows(void **state)
{
    (void)state;
    acs_graph_shape shape;
    begin(); /* 0 -> 1 -> 2 -> 4, and 0 -> 3 -> 4 */
    add(0, NULL);
    add(1, (const uint32_t[]){0});
    add(1, (const uint32_t[]){1});
    add(1, (const uint32_t[]){0});
    add(2, (const uint32_t[]){2, 3});
    assert_true(acs_graph_shape_make(&g_plan, 8, &shape));
    assert_int_equal(shape.chains, 2);
    assert_int_equal(shape.edge_count, 5);
    assert_int_equal(shape.levels, 4);
    acs_graph_shape_fini(&shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_keep_their_order_on_few_chains),
        cmocka_unit_test(chains_side_by_side_stay_as_they_are),
        cmocka_unit_test(parts_have_chains_of_their_own),
        cmocka_unit_test(more_parts_than_chains_share_them),
        cmocka_unit_test(an_op_stays_on_the_chain_that_it_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Plans of runs on streams and as graphs: nothing that must be ordered is left unordered, and nothing is ordered twice.
 * Random runs by seed, and small ones whose plan is known.
 */
#include "cmocka.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "dag.h"
#include "graphs_shape.h"
#include "memory.h"
#include "plan.h"
#include "random_program.h"

using namespace bench;

namespace {

typedef std::vector<uint32_t> list;
typedef std::vector<std::vector<char>> relation; /* [to][from]: to is behind from */

/* A run and its dependencies. */
struct run {
    std::vector<op> ops;
    dag d;
};

run random_run(uint64_t seed)
{
    memory m(false);
    random_settings s;
    s.seed = seed;
    s.ops = 90;
    s.words = seed % 3 == 0 ? 500 : seed % 3 == 1 ? 90 : 30;
    s.read_every = seed % 2 ? 12 : 0;
    s.call_every = seed % 4 < 2 ? 5 : 0;
    random_program p(m, s);
    const trace t = record(p);
    return {t.ops, find_dag(t)};
}

/* Kernels with these upstream ops and durations. */
run kernels(const std::vector<list> &up, const std::vector<float> &us = {})
{
    run r;
    r.d.up = up;
    r.ops.assign(up.size(), op());
    for (size_t k = 0; k < us.size(); k++)
        r.ops[k].us = us[k];
    return r;
}

/* All that order implies, from direct successions that go forward in `sequence`. */
relation reach(const list &sequence, const std::vector<list> &direct)
{
    relation behind(direct.size(), std::vector<char>(direct.size(), 0));
    for (uint32_t k : sequence)
        for (uint32_t u : direct[k]) {
            behind[k][u] = 1;
            for (size_t w = 0; w < direct.size(); w++)
                behind[k][w] |= behind[u][w];
        }
    return behind;
}

/* A plan and what it orders: behind which ops each op is by its stream, by its waits, and by a read before it. */
struct ordering {
    list sequence;
    std::vector<list> direct;
    std::vector<list> waits; /* of `direct`, those by events */
};

ordering order_of(const plan &p, const run &r)
{
    ordering o;
    std::vector<int64_t> tail(static_cast<size_t>(p.streams) + 1, -1);
    int64_t read = -1;
    size_t step = 0;

    o.direct.resize(r.ops.size());
    o.waits.resize(r.ops.size());
    for (size_t end : p.stretch_end) {
        int64_t next_read = read;
        for (; step < end; step++) {
            const plan_step &s = p.steps[step];
            o.sequence.push_back(s.op);
            for (uint32_t w = 0; w < s.wait_count; w++)
                o.waits[s.op].push_back(p.waits[s.first_wait + w]);
            o.direct[s.op] = o.waits[s.op];
            if (tail[s.stream] >= 0)
                o.direct[s.op].push_back(static_cast<uint32_t>(tail[s.stream]));
            if (read >= 0)
                o.direct[s.op].push_back(static_cast<uint32_t>(read));
            tail[s.stream] = s.op;
            if (r.ops[s.op].kind == OP_READ)
                next_read = s.op;
        }
        read = next_read;
    }
    return o;
}

void check_order(const plan &p, const run &r)
{
    const ordering o = order_of(p, r);
    const relation behind = reach(o.sequence, o.direct);

    for (uint32_t k = 0; k < r.ops.size(); k++) {
        for (uint32_t u : r.d.up[k])
            assert_true(behind[k][u]);
        for (uint32_t w : o.waits[k])
            for (uint32_t other : o.direct[k])
                assert_false(other != w && behind[other][w]);
        for (uint32_t w : o.waits[k]) /* nor does the stream or the read do what an event does */
            assert_int_equal(std::count(o.direct[k].begin(), o.direct[k].end(), w), 1);
    }
}

void check_steps(const plan &p, const run &r)
{
    const std::vector<size_t> ends = stretches(r.ops);
    std::vector<char> recorded(r.ops.size(), 0), wanted(r.ops.size(), 0);
    std::vector<size_t> issued(r.ops.size(), SIZE_MAX);
    size_t stretch = 0;

    assert_int_equal(p.steps.size(), r.ops.size());
    assert_int_equal(p.stretch_end.size(), ends.size());
    for (size_t k = 0; k < p.steps.size(); k++) {
        const plan_step &s = p.steps[k];
        while (k == p.stretch_end[stretch])
            stretch++;
        assert_int_equal(issued[s.op], SIZE_MAX);
        assert_true(s.op < ends[stretch] && (stretch == 0 || s.op >= ends[stretch - 1]));
        assert_true(s.stream < p.streams + (r.ops[s.op].kind == OP_READ));
        if (r.ops[s.op].kind == OP_READ)
            assert_int_equal(p.thread_of(s.stream), 0);
        issued[s.op] = k;
        recorded[s.op] = s.record;
        wanted[s.op] |= r.ops[s.op].kind == OP_READ;
        for (uint32_t w = 0; w < s.wait_count; w++) {
            assert_true(issued[p.waits[s.first_wait + w]] < k);
            wanted[p.waits[s.first_wait + w]] = 1;
        }
    }
    assert_true(recorded == wanted);
    assert_true(p.stretch_end.back() == p.steps.size());
}

void a_plan_orders_what_must_be_and_nothing_twice(void **)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        const run r = random_run(seed);
        for (int streams : {1, 4, 8, 32})
            for (int threads : {1, 2, 4}) {
                const plan p = make_plan(r.ops, r.d, streams, threads, plan_costs());
                check_steps(p, r);
                check_order(p, r);
            }
    }
}

void an_empty_run_has_an_empty_plan(void **)
{
    const plan p = make_plan({}, dag(), 8, 2, plan_costs());
    assert_true(p.steps.empty());
    assert_int_equal(p.stretch_end.size(), 1);
}

void chains_stay_in_their_streams(void **)
{
    std::vector<list> up;
    for (uint32_t k = 0; k < 40; k++)
        up.push_back(k < 4 ? list() : list({k - 4}));
    const run r = kernels(up);
    const plan p = make_plan(r.ops, r.d, 8, 1, plan_costs());
    std::set<int> streams;
    for (const plan_step &s : p.steps) {
        streams.insert(s.stream);
        assert_false(s.record);
    }
    assert_true(p.waits.empty());
    assert_int_equal(streams.size(), 4);
}

void a_join_waits_for_all_but_the_op_before_it(void **)
{
    const run r = kernels({{}, {}, {}, {0, 1, 2}});
    const plan p = make_plan(r.ops, r.d, 4, 1, plan_costs());
    assert_int_equal(p.waits.size(), 2);
    assert_int_equal(p.steps[3].op, 3);
}

void the_longest_path_is_issued_first(void **)
{
    /* op 0 to 3 alone, 4 -> 5 -> 6 long: program order would start it last. */
    const run r = kernels({{}, {}, {}, {}, {}, {4}, {5}}, {5, 5, 5, 5, 20, 20, 20});
    const plan p = make_plan(r.ops, r.d, 4, 1, plan_costs());
    assert_int_equal(p.steps[0].op, 4);
}

void what_a_read_needs_is_issued_before_the_rest(void **)
{
    run r = kernels({{}, {0}, {1}, {}, {3}}, {50, 50, 50, 1, 1});
    r.ops[4].kind = OP_READ;
    const plan p = make_plan(r.ops, r.d, 4, 1, plan_costs());
    assert_int_equal(p.steps[0].op, 3);
    assert_int_equal(p.stretch_end.size(), 2);
}

/* ----------------------------------------------------------------------------------------------------- as graphs */

/* Behind which ops each op is by the edges within its graph; joins are looked through. */
relation graph_order(const graph_shape &g, size_t ops)
{
    std::vector<list> behind_node(g.nodes.size());
    relation behind(ops, std::vector<char>(ops, 0));

    for (size_t k = 0; k < g.nodes.size(); k++) {
        const graph_node &n = g.nodes[k];
        std::set<uint32_t> all;
        for (uint32_t i = 0; i < n.up_count; i++) {
            const uint32_t up = g.ups[n.first_up + i];
            assert_true(up < k);
            all.insert(behind_node[up].begin(), behind_node[up].end());
            if (g.nodes[up].op != NODE_JOIN)
                all.insert(g.nodes[up].op);
        }
        behind_node[k].assign(all.begin(), all.end());
        if (n.op != NODE_JOIN)
            for (uint32_t u : all)
                behind[n.op][u] = 1;
    }
    return behind;
}

list all_of(size_t n)
{
    list ops;
    for (uint32_t k = 0; k < n; k++)
        ops.push_back(k);
    return ops;
}

void check_nodes(const graph_shape &g, const run &r)
{
    const std::vector<size_t> ends = stretches(r.ops);
    std::vector<int> seen(r.ops.size(), 0);
    size_t first = 0;

    assert_int_equal(g.stretch_end.size(), ends.size());
    for (size_t stretch = 0; stretch < ends.size(); stretch++) {
        for (size_t k = first; k < g.stretch_end[stretch]; k++) {
            for (uint32_t i = 0; i < g.nodes[k].up_count; i++)
                assert_true(g.ups[g.nodes[k].first_up + i] >= first);
            if (g.nodes[k].op == NODE_JOIN)
                continue;
            seen[g.nodes[k].op]++;
            assert_true(g.nodes[k].op < ends[stretch] && (stretch == 0 || g.nodes[k].op >= ends[stretch - 1]));
        }
        first = g.stretch_end[stretch];
    }
    for (size_t k = 0; k < r.ops.size(); k++)
        assert_int_equal(seen[k], r.ops[k].kind == OP_READ ? 0 : 1);
}

void check_slots(const graph_shape &g, const run &r, const relation &behind, int most)
{
    const std::vector<size_t> ends = stretches(r.ops);
    const auto stretch = [&](uint32_t k) { return std::upper_bound(ends.begin(), ends.end(), k); };

    assert_true(g.slots <= most);
    for (const graph_node &a : g.nodes)
        for (const graph_node &b : g.nodes) {
            if (a.op == NODE_JOIN || b.op == NODE_JOIN || a.op >= b.op || a.slot != b.slot ||
                r.ops[a.op].kind != OP_CALL || r.ops[b.op].kind != OP_CALL || stretch(a.op) != stretch(b.op))
                continue;
            assert_true(behind[b.op][a.op]);
            assert_true(a.slot < g.slots);
        }
}

void graphs_order_what_must_be(void **)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        const run r = random_run(seed);
        const std::vector<size_t> ends = stretches(r.ops);
        const relation needed = reach(all_of(r.ops.size()), r.d.up);
        for (int slots : {1, 3, 16})
            for (bool join : {false, true}) {
                const graph_shape g = shape_graphs(r.ops, r.d, join, slots);
                const relation behind = graph_order(g, r.ops.size());
                size_t first = 0;
                check_nodes(g, r);
                check_slots(g, r, behind, slots);
                for (size_t end : ends) {
                    for (size_t k = first; k < end; k++)
                        for (uint32_t u : r.d.up[k])
                            assert_true(u < first || r.ops[k].kind == OP_READ || behind[k][u]);
                    /* Library calls apart, nothing is ordered that need not be. */
                    for (size_t k = first; k < end && !g.calls; k++)
                        for (size_t u = first; u < k; u++)
                            assert_true(!behind[k][u] || needed[k][u]);
                    first = end;
                }
            }
    }
}

void a_join_replaces_edges_where_that_makes_fewer(void **)
{
    std::vector<list> up(4);
    for (uint32_t level = 0; level < 3; level++)
        for (int k = 0; k < 4; k++)
            up.push_back({4 * level, 4 * level + 1, 4 * level + 2, 4 * level + 3});
    const run r = kernels(up);
    assert_int_equal(shape_graphs(r.ops, r.d, false, 1).ups.size(), 48);
    assert_int_equal(shape_graphs(r.ops, r.d, false, 1).joins, 0);
    assert_int_equal(shape_graphs(r.ops, r.d, true, 1).ups.size(), 24);
    assert_int_equal(shape_graphs(r.ops, r.d, true, 1).joins, 3);

    const run narrow = kernels({{}, {}, {0, 1}, {0, 1}}); /* 4 edges, and 4 with a join */
    assert_int_equal(shape_graphs(narrow.ops, narrow.d, true, 1).joins, 0);
}

void joined_ops_are_behind_all_that_the_join_is(void **)
{
    std::vector<list> up(6);
    for (int k = 0; k < 6; k++)
        up.push_back({0, 1, 2, 3, 4, 5});
    const run r = kernels(up);
    const graph_shape g = shape_graphs(r.ops, r.d, true, 1);
    const relation behind = graph_order(g, r.ops.size());
    check_nodes(g, r);
    for (size_t k = 6; k < 12; k++)
        for (size_t u = 0; u < 6; u++)
            assert_true(behind[k][u]);
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_orders_what_must_be_and_nothing_twice),
        cmocka_unit_test(an_empty_run_has_an_empty_plan),
        cmocka_unit_test(chains_stay_in_their_streams),
        cmocka_unit_test(a_join_waits_for_all_but_the_op_before_it),
        cmocka_unit_test(the_longest_path_is_issued_first),
        cmocka_unit_test(what_a_read_needs_is_issued_before_the_rest),
        cmocka_unit_test(graphs_order_what_must_be),
        cmocka_unit_test(a_join_replaces_edges_where_that_makes_fewer),
        cmocka_unit_test(joined_ops_are_behind_all_that_the_join_is),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

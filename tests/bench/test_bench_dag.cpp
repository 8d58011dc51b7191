/*
 * The benchmarks' own dependency finder: what must be ordered, what an edge implies, how wide a graph is.
 */
#include "cmocka.hpp"

#include <deque>
#include <vector>

#include "acs_sw_window.h"
#include "dag.h"
#include "memory.h"
#include "random_program.h"

using namespace bench;

namespace {

typedef std::vector<uint32_t> list;

/* A run of ops that are nothing but footprints. */
struct footprints {
    std::deque<std::vector<acs_segment>> kept;
    trace t;

    footprints &op_of(const std::vector<acs_segment> &segments)
    {
        op o = {};
        kept.push_back(segments);
        o.segments = kept.back().data();
        o.segment_count = static_cast<uint32_t>(segments.size());
        t.ops.push_back(o);
        return *this;
    }
    list up(size_t k) { return find_dag(t).up[k]; }
};

char memory_of[4096];

acs_segment reads(size_t first, size_t bytes)
{
    return ACS_IN(memory_of + first, bytes);
}

acs_segment writes(size_t first, size_t bytes)
{
    return ACS_OUT(memory_of + first, bytes);
}

void ops_conflict_where_one_writes(void **)
{
    assert_true(footprints().op_of({writes(0, 8)}).op_of({reads(0, 8)}).up(1) == list({0}));
    assert_true(footprints().op_of({reads(0, 8)}).op_of({writes(0, 8)}).up(1) == list({0}));
    assert_true(footprints().op_of({writes(0, 8)}).op_of({writes(0, 8)}).up(1) == list({0}));
    assert_true(footprints().op_of({reads(0, 8)}).op_of({reads(0, 8)}).up(1).empty());
    assert_true(footprints().op_of({ACS_INOUT(memory_of, 8)}).op_of({ACS_INOUT(memory_of, 8)}).up(1) == list({0}));
}

void ops_conflict_where_ranges_overlap_in_part(void **)
{
    assert_true(footprints().op_of({writes(0, 16)}).op_of({reads(15, 9)}).up(1) == list({0}));
    assert_true(footprints().op_of({writes(0, 16)}).op_of({reads(16, 8)}).up(1).empty());
    assert_true(footprints().op_of({writes(8, 8)}).op_of({reads(0, 9)}).up(1) == list({0}));
    assert_true(footprints().op_of({writes(8, 8)}).op_of({reads(0, 8)}).up(1).empty());
    assert_true(footprints().op_of({writes(0, 64)}).op_of({reads(20, 2)}).up(1) == list({0}));
    assert_true(footprints().op_of({writes(8, 8)}).op_of({writes(0, 0)}).op_of({reads(8, 0)}).up(2).empty());
}

void a_range_follows_the_writers_of_all_its_parts(void **)
{
    footprints f;
    f.op_of({writes(0, 8)}).op_of({writes(8, 8)}).op_of({writes(24, 8)}).op_of({reads(4, 24)});
    assert_true(f.up(3) == list({0, 1, 2}));
    f.op_of({writes(8, 8)}); /* the second part's writer is implied by its reader */
    assert_true(f.up(4) == list({3}));
    f.op_of({reads(0, 16)});
    assert_true(f.up(5) == list({4})); /* which is behind 3 and so behind 0 */
}

void tiles_conflict_where_rows_do(void **)
{
    const acs_segment left = ACS_TILE_OUT(memory_of, 16, 8, 64), right = ACS_TILE_IN(memory_of + 16, 16, 8, 64);
    const acs_segment low = ACS_TILE_IN(memory_of + 7 * 64 + 8, 16, 4, 64);
    assert_true(footprints().op_of({left}).op_of({right}).up(1).empty());
    assert_true(footprints().op_of({left}).op_of({low}).up(1) == list({0}));
    assert_true(footprints().op_of({left}).op_of({reads(16, 48)}).up(1).empty());
    assert_true(footprints().op_of({left}).op_of({reads(16, 49)}).up(1) == list({0}));
}

acs_segment token(uint64_t key, acs_access access)
{
    return acs_make_segment(ACS_EXTENT_TOKEN, access, key, 1, 1, 0);
}

void tokens_conflict_with_their_key_alone(void **)
{
    const uint64_t address = reinterpret_cast<uintptr_t>(memory_of);
    assert_true(footprints().op_of({token(5, ACS_WRITE)}).op_of({token(5, ACS_READ)}).up(1) == list({0}));
    assert_true(footprints().op_of({token(5, ACS_READ)}).op_of({token(5, ACS_READ)}).up(1).empty());
    assert_true(footprints().op_of({token(5, ACS_WRITE)}).op_of({token(6, ACS_WRITE)}).up(1).empty());
    assert_true(footprints().op_of({token(address, ACS_WRITE)}).op_of({writes(0, 8)}).up(1).empty());
}

void all_memory_conflicts_with_everything(void **)
{
    footprints f;
    f.op_of({writes(0, 8)}).op_of({token(5, ACS_READ)}).op_of({reads(64, 8)}).op_of({ACS_ALL_MEMORY});
    assert_true(f.up(3) == list({0, 1, 2}));
    f.op_of({reads(128, 8)}).op_of({token(9, ACS_WRITE)});
    assert_true(f.up(4) == list({3}));
    assert_true(f.up(5) == list({3}));

    footprints readers;
    readers.op_of({writes(0, 8)}).op_of({reads(64, 8)}).op_of({ACS_ALL_MEMORY_IN}).op_of({reads(64, 8)});
    assert_true(readers.up(2) == list({0}));
    assert_true(readers.up(3).empty());
    readers.op_of({writes(512, 8)});
    assert_true(readers.up(4) == list({2}));
}

void edges_that_others_imply_are_left_out(void **)
{
    footprints f;
    f.op_of({writes(0, 8)}).op_of({reads(0, 8), writes(8, 8)}).op_of({reads(0, 8), reads(8, 8), writes(16, 8)});
    const dag d = find_dag(f.t);
    assert_true(d.up[1] == list({0}));
    assert_true(d.up[2] == list({1}));
    assert_int_equal(d.edges, 2);
    assert_int_equal(d.depth, 3);
}

/* Whether op `to` is behind op `from`. */
std::vector<std::vector<char>> closure(const std::vector<list> &up)
{
    std::vector<std::vector<char>> behind(up.size(), std::vector<char>(up.size(), 0));
    for (size_t k = 0; k < up.size(); k++)
        for (uint32_t u : up[k]) {
            behind[k][u] = 1;
            for (size_t w = 0; w < u; w++)
                behind[k][w] |= behind[u][w];
        }
    return behind;
}

void random_runs_have_the_order_of_pairwise_conflicts(void **)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        memory m(false);
        random_settings s;
        s.seed = seed;
        s.words = seed % 2 ? 40 : 400;
        s.read_every = 9;
        random_program p(m, s);
        const trace t = record(p);
        const dag d = find_dag(t);
        std::vector<list> naive(t.ops.size());
        for (uint32_t k = 0; k < t.ops.size(); k++)
            for (uint32_t u = 0; u < k; u++)
                if (conflicts(t.ops[u], t.ops[k]))
                    naive[k].push_back(u);
        const auto behind = closure(d.up);
        assert_true(behind == closure(naive));
        for (const list &up : d.up)
            for (uint32_t a : up)
                for (uint32_t b : up)
                    assert_false(behind[a][b]);
    }
}

dag graph(const std::vector<list> &up)
{
    dag d;
    d.up = up;
    return d;
}

void width_is_the_largest_antichain(void **)
{
    assert_int_equal(dag_width(graph({{}, {0}, {1}, {2}})), 1);
    assert_int_equal(dag_width(graph({{}, {}, {}, {}, {}})), 5);
    /* two squares and their sum, again and again (VEC) */
    assert_int_equal(dag_width(graph({{}, {}, {0, 1}, {2}, {2}, {3, 4}})), 2);
    /* levels of 3 and 2: a level is not the widest where paths skip it */
    assert_int_equal(dag_width(graph({{}, {}, {}, {0}, {0}, {3, 4}})), 4);
    assert_int_equal(dag_width(graph({})), 0);
}

void critical_path_counts_ops_and_hops(void **)
{
    assert_true(dag_critical_us(graph({{}, {0}, {0}, {1, 2}}), {1, 5, 2, 1}, 0) == 7);
    assert_true(dag_critical_us(graph({{}, {0}, {0}, {1, 2}}), {1, 5, 2, 1}, 1.5) == 10);
    assert_true(dag_critical_us(graph({{}, {}}), {1, 5}, 1.5) == 5);
}

void an_order_without_an_edge_keeps_all_others(void **)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        memory m(false);
        random_settings s;
        s.seed = seed;
        s.ops = 40;
        random_program p(m, s);
        const dag d = find_dag(record(p));
        for (uint32_t to = 0; to < d.up.size(); to++)
            for (uint32_t from : d.up[to]) {
                const list order = order_without(d, from, to);
                std::vector<size_t> place(order.size());
                assert_int_equal(order.size(), d.up.size());
                for (size_t k = 0; k < order.size(); k++)
                    place[order[k]] = k;
                for (uint32_t k = 0; k < d.up.size(); k++)
                    for (uint32_t u : d.up[k])
                        assert_true((place[u] < place[k]) == !(u == from && k == to));
            }
    }
}

/* Fills words; what it does is decided by words that it filled. */
class deciding_program : public program {
public:
    explicit deciding_program(memory &m) : program(m), words_(zeros<uint32_t>(8)) {}

    void run(sink &s) override
    {
        begin();
        set(s, 0);
        if (s.decides())
            sections(s);
        uint32_t iteration = 0;
        s.loop(words_ + 1, 10, [&] {
            if (iteration++ == 2)
                set(s, 1);
            set(s, 7);
        });
    }

    std::string check() override { return ""; }
    std::vector<uint32_t> words() const { return get(words_, 8); }

private:
    void set(sink &s, int word) { fill(s, words_ + word, 1, sizeof *words_); }

    void sections(sink &s)
    {
        s.begin_if(words_, false); /* runs */
        s.begin_if(words_ + 2, false);
        s.begin_if(words_, false);
        set(s, 3);
        s.loop(words_ + 1, 10, [&] { set(s, 3); });
        s.end_if();
        set(s, 3);
        s.end_if();
        set(s, 4);
        s.end_if();
        s.begin_if(words_, true);
        set(s, 5);
        s.end_if();
        s.begin_if(words_ + 2, true); /* runs */
        set(s, 6);
        s.end_if();
    }

    uint32_t *const words_;
};

void sections_and_loops_run_as_words_say(void **)
{
    const uint32_t set = 0x01010101;
    memory m(false);
    deciding_program p(m);

    p.reset();
    assert_int_equal(record(p, true).ops.size(), 1 + 2 + 4);
    assert_true(p.words() == std::vector<uint32_t>({set, set, 0, 0, set, 0, set, set}));
    p.reset();
    const trace t = record(p); /* by reads: four, the last of which ends the loop */
    assert_int_equal(t.ops.size(), 1 + 4 + 4);
    assert_int_equal(t.answers->size(), 4);
    assert_int_equal(t.answers->front()[0], 0);
    assert_int_equal(t.answers->back()[0], 1);
    assert_true(p.words() == std::vector<uint32_t>({set, set, 0, 0, 0, 0, 0, set}));
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_conflict_where_one_writes),
        cmocka_unit_test(ops_conflict_where_ranges_overlap_in_part),
        cmocka_unit_test(a_range_follows_the_writers_of_all_its_parts),
        cmocka_unit_test(tiles_conflict_where_rows_do),
        cmocka_unit_test(tokens_conflict_with_their_key_alone),
        cmocka_unit_test(all_memory_conflicts_with_everything),
        cmocka_unit_test(edges_that_others_imply_are_left_out),
        cmocka_unit_test(random_runs_have_the_order_of_pairwise_conflicts),
        cmocka_unit_test(width_is_the_largest_antichain),
        cmocka_unit_test(critical_path_counts_ops_and_hops),
        cmocka_unit_test(an_order_without_an_edge_keeps_all_others),
        cmocka_unit_test(sections_and_loops_run_as_words_say),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

/*
 * The patterns of acs-bench: the published counts of tasks and dependencies, marks that show every wrong order, METG by
 * hand. Runs on the CPU, op by op; times nothing.
 */
#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}

#include "metg.h"
#include "pattern.h"

using namespace bench;

namespace {

pattern_settings settings_of(const char *name, uint32_t width, uint32_t steps)
{
    pattern_settings s;
    s.name = name;
    s.width = width;
    s.steps = steps;
    return s;
}

/* Tasks and dependencies at steps 16, width 8, radix 5, period 2, as Task Bench counts them. */
void task_bench_patterns_have_the_published_counts(void **)
{
    const struct {
        const char *name;
        size_t tasks, dependencies;
    } published[] = {{"trivial", 128, 0},     {"no_comm", 128, 120}, {"stencil_1d", 128, 330},
                     {"stencil_1d_periodic", 128, 360}, {"dom", 72, 127}, {"tree", 111, 110},
                     {"fft", 128, 290},       {"nearest", 128, 510}, {"spread", 128, 600},
                     {"all_to_all", 128, 960}};
    for (const auto &p : published) {
        uint32_t cells = 0;
        size_t reads = 0;
        const std::vector<task_access> tasks = pattern_tasks(settings_of(p.name, 8, 16), &cells);
        for (const task_access &t : tasks)
            reads += t.reads.size();
        assert_int_equal(tasks.size(), p.tasks);
        assert_int_equal(reads, p.dependencies);
    }
}

void unknown_pattern_has_no_tasks(void **)
{
    uint32_t cells = 0;
    for (const char *name : {"", "stencil", "chains:0", "chains:", "random:2", "buffers:x", "chains:4x"})
        assert_true(pattern_tasks(settings_of(name, 4, 4), &cells).empty());
}

void random_tasks_touch_three_different_buffers(void **)
{
    for (const char *name : {"random:3", "random:64", "fresh:5"}) {
        uint32_t cells = 0;
        for (const task_access &t : pattern_tasks(settings_of(name, 32, 32), &cells)) {
            assert_int_equal(t.reads.size(), 2);
            assert_true(t.out != t.reads[0] && t.out != t.reads[1] && t.reads[0] != t.reads[1]);
            assert_true(t.out < cells && t.reads[0] < cells && t.reads[1] < cells);
        }
    }
}

/* The run's ops one by one in the order of `order`. */
std::string run_in(pattern_program &p, const std::vector<uint32_t> &order)
{
    const trace t = p.describe();
    p.reset();
    for (uint32_t k : order)
        execute(p.mem(), t.ops[k]);
    return p.check();
}

std::vector<uint32_t> program_order(size_t count)
{
    std::vector<uint32_t> order(count);
    for (size_t k = 0; k < count; k++)
        order[k] = static_cast<uint32_t>(k);
    return order;
}

/* For every pattern, each essential dependency lost in turn. `fields` 2: cells are written again and again. */
void marks_show_each_lost_dependency(void **)
{
    for (uint32_t fields : {0u, 2u})
        for (const char *name : {"no_comm", "stencil_1d", "dom", "tree", "fft", "nearest", "spread", "all_to_all",
                                 "chains:3", "buffers:4", "random:6"}) {
            memory m(false);
            pattern_settings s = settings_of(name, 5, 4);
            s.fields = fields;
            pattern_program p(m, s, 0, 2, 3, true);
            const dag d = find_dag(p.describe());
            assert_string_equal(run_in(p, program_order(p.tasks())).c_str(), "");
            for (uint32_t to = 0; to < d.up.size(); to++)
                for (uint32_t from : d.up[to])
                    assert_true(!run_in(p, order_without(d, from, to)).empty());
        }
}

void task_that_never_ran_is_seen(void **)
{
    memory m(false);
    pattern_program p(m, settings_of("no_comm", 4, 4), 0, 1, 1, true);
    std::vector<uint32_t> order = program_order(p.tasks());

    order.pop_back();
    assert_true(!run_in(p, order).empty());
}

void fresh_pattern_varies_and_stays_right(void **)
{
    memory m(false);
    pattern_program p(m, settings_of("fresh:8", 4, 8), 0, 1, 1, true);
    const dag before = find_dag(p.describe());

    assert_true(p.vary(1));
    assert_true(find_dag(p.describe()).up != before.up);
    assert_string_equal(run_in(p, program_order(p.tasks())).c_str(), "");
    pattern_program fixed(m, settings_of("random:8", 4, 8), 0, 1, 1, true);
    assert_false(fixed.vary(1));
}

void metg_lies_between_the_neighbours_of_one_half(void **)
{
    bool below = true;

    /* Half way between 0.75 and 0.25; 100 and 1 us: the middle of their logarithms is 10. */
    assert_true(std::fabs(metg_of({{1, 0.25}, {100, 0.75}, {1000, 0.9}}, &below) - 10) < 1e-9);
    assert_false(below);
    assert_true(metg_of({{1, 0.6}, {100, 0.75}}, &below) == 0);
    assert_true(below);
    assert_true(metg_of({{1, 0.1}, {100, 0.2}}, &below) == 0);
    assert_false(below);
}

} // namespace

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_bench_patterns_have_the_published_counts),
        cmocka_unit_test(unknown_pattern_has_no_tasks),
        cmocka_unit_test(random_tasks_touch_three_different_buffers),
        cmocka_unit_test(marks_show_each_lost_dependency),
        cmocka_unit_test(task_that_never_ran_is_seen),
        cmocka_unit_test(fresh_pattern_varies_and_stays_right),
        cmocka_unit_test(metg_lies_between_the_neighbours_of_one_half),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

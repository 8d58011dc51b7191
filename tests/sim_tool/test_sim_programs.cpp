/*
 * Programs of acs-sim, and what holds for every way to issue them: edges are kept, bounds hold, the same comes out twice.
 */
#include "sim_fixture.h"

namespace {

/* What was kept of other programs does not fit: an update becomes a construction, a kept batch is none. */
void program_never_seen_before_cannot_use_what_was_kept(void **)
{
    program p = program_of(chain_of(4));
    const acs_sim_gpu gpu = round_gpu();
    const double seen = simulate(gpu, p, *find_vehicle("graph-update")).total_us;

    p.recurs = false;
    assert_float_equal(simulate(gpu, p, *find_vehicle("graph-update")).total_us, seen + 4 * 0.4, 1e-6);
    assert_string_equal(simulate(gpu, p, *find_vehicle("kept")).left_out.c_str(),
                        "no program like this one was seen before");
    assert_string_equal(simulate(gpu, p, *find_vehicle("graph-replay")).left_out.c_str(), "");
}

void fresh_programs_do_not_recur_and_recent_ones_read_two(void **)
{
    program_request q;
    q.shape.name = "fresh:8";
    q.shape.width = 8;
    q.shape.steps = 4;
    assert_false(make_program("pattern", q).recurs);
    q.shape.name = "random:8";
    assert_true(make_program("pattern", q).recurs);
    const program recent = make_program("recent", q);
    assert_int_equal(recent.kernels, 32);
    for (uint32_t k = 0; k < recent.kernels; k++) {
        assert_true(recent.dag.up[k].size() <= 2);
        for (uint32_t u : recent.dag.up[k])
            assert_true(u < k && k - u <= 8);
    }
}

void program_on_devices_copies_what_neighbours_wrote(void **)
{
    program_request q;
    q.shape.name = "stencil_1d";
    q.shape.width = 8;
    q.shape.steps = 2;
    q.devices = 2;
    const program p = make_program("pattern", q);
    size_t copies = 0;

    for (const task &t : p.tasks)
        copies += t.kind == COPY;
    assert_int_equal(p.kernels, 16);
    assert_int_equal(copies, 2); /* one each way across the only border */
    for (const char *way : {"chained", "chained-issuers", "chained-windows"})
        play(p, way);
    assert_string_equal(simulate(round_gpu(), p, *find_vehicle("stream")).left_out.c_str(), "issues to one device only");
}

void order_that_is_broken_is_noticed(void **)
{
    /* Played without its edge, judged with it. */
    const program loose = program_of({{}, {}}), strict = program_of({{}, {0}});
    const acs_sim_gpu gpu = round_gpu();
    program p = loose;
    run r(gpu, p);
    const std::unique_ptr<vehicle> v = find_vehicle("chained")->make(p, 0);

    r.play(*v);
    assert_string_equal(r.wrong().c_str(), "");
    p.dag = strict.dag;
    assert_string_equal(r.wrong().c_str(), "task 1 began before task 0 ended");
}

program random_program(uint64_t seed)
{
    program_request q;
    q.shape.name = seed % 3 == 0 ? "stencil_1d" : seed % 3 == 1 ? "random:16" : "buffers:5";
    q.shape.seed = seed;
    q.shape.width = 8;
    q.shape.steps = 1 + static_cast<uint32_t>(seed % 40);
    q.ctas = 1 + static_cast<uint32_t>(seed * 7 % 300);
    q.kernel_us = static_cast<double>(seed % 13);
    return make_program("pattern", q);
}

/* The program waits here and there for the task before. */
void add_waits(program &p, uint64_t seed)
{
    for (size_t k = 1; k + 1 < p.tasks.size(); k++)
        if ((k + seed) % 17 == 0) {
            task wait = {};
            wait.kind = WAIT;
            p.tasks[k] = wait;
            p.dag.up[k] = {static_cast<uint32_t>(k - 1)};
            if (p.tasks[k - 1].kind == WAIT)
                p.dag.up[k].clear();
        }
    finish_program(p);
}

void every_way_keeps_order_and_bounds(void **)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        const acs_sim_gpu &gpu = *acs_sim_gpu_at(static_cast<uint32_t>(seed % 4));
        program p = random_program(seed);
        if (seed >= 5)
            add_waits(p, seed);
        const double least = static_cast<double>(limits_of(gpu, p).largest()) / 1000;
        for (const vehicle_kind &kind : vehicle_kinds()) {
            const result r = kind.direct ? simulate(gpu, p, kind)
                                         : play(p, kind.name, static_cast<int>(seed) % kind.variants, gpu)->found;
            assert_string_equal(r.wrong.c_str(), "");
            assert_true(r.total_us >= least);
            assert_true(r.busy <= 1.0001 && r.submit_us <= r.total_us);
        }
    }
}

void every_way_plays_the_same_twice(void **)
{
    const program p = random_program(7);
    const vehicle_kind &core = *find_vehicle("acs");
    const acs_sim_gpu &gpu = *acs_sim_gpu_at(0);
    assert_float_equal(simulate(gpu, p, core).total_us, simulate(gpu, p, core).total_us, 0);
    for (const vehicle_kind &kind : vehicle_kinds()) {
        if (kind.direct)
            continue;
        const auto one = play(p, kind.name, kind.variants - 1), two = play(p, kind.name, kind.variants - 1);
        for (uint32_t k = 0; k < p.tasks.size(); k++) {
            assert_int_equal(one->start(k), two->start(k));
            assert_int_equal(one->end(k), two->end(k));
        }
        assert_int_equal(one->r->total(), two->r->total());
    }
}

void limits_are_path_and_work(void **)
{
    const acs_sim_gpu gpu = round_gpu();
    program p = program_of(chain_of(3));
    p.tasks[1].kernel.ctas = 65; /* 64 places */

    assert_int_equal(resident(gpu, p.tasks[0].kernel), 64);
    assert_int_equal(limits_of(gpu, p).critical, 4 * TEN_US);
    assert_int_equal(limits_of(gpu, p).work, TEN_US * 67 / 64);
}

} // namespace

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_never_seen_before_cannot_use_what_was_kept),
        cmocka_unit_test(fresh_programs_do_not_recur_and_recent_ones_read_two),
        cmocka_unit_test(program_on_devices_copies_what_neighbours_wrote),
        cmocka_unit_test(order_that_is_broken_is_noticed),
        cmocka_unit_test(every_way_keeps_order_and_bounds),
        cmocka_unit_test(every_way_plays_the_same_twice),
        cmocka_unit_test(limits_are_path_and_work),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

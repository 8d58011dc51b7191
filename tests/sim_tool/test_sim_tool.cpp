/*
 * acs-sim's ways to issue, on a machine of round numbers: times worked out by hand, orders, bounds, the paper's cost model.
 */
#include "bench/cmocka.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "acs-sim/acs_hw.h"
#include "acs-sim/programs.h"
#include "acs-sim/vehicle.h"

using namespace design;

namespace {

acs_sim_gpu round_gpu()
{
    acs_sim_gpu g = {};
    g.name = "round";
    g.sms = 4;
    g.sm_ctas = 16;
    g.sm_threads = 2048;
    g.sm_registers = 65536;
    g.sm_shared_bytes = 65536;
    g.queues = 32;
    g.kernels = 128;
    g.engines = 2;
    g.host_mbps = g.peer_mbps = g.memory_mbps = 10000;
    g.device.launch_latency = 2000;
    g.device.stream_hop = 1000;
    g.device.event_hop = 1200;
    g.device.graph_hop = 300;
    g.device.graph_start = 700;
    g.device.front_end = 100;
    g.device.front_end_edge = 50;
    g.device.device_launch = 5000;
    g.device.host_visible = 3000;
    g.device.copy_latency = 8000;
    g.host.launch = g.host.copy = g.host.graph_launch = 1000;
    g.host.record = g.host.wait = g.host.query = 100;
    g.host.synchronize = 500;
    g.host.graph1_launch = 900;
    g.host.graph_launch_root = 10;
    g.host.graph_launch_node = 1;
    g.host.graph_add_node = 50;
    g.host.graph_instantiate_node = 400;
    g.host.graph_update_node = 20;
    g.host.graph_set_node = 30;
    g.host.graph_destroy_node = 200;
    g.host.device_set_node = 5;
    return g;
}

const uint64_t KERNEL = 10000;

/* Kernels of one block, 10 us each, six segments; up[k]: what kernel k depends on. */
program program_of(const std::vector<std::vector<uint32_t>> &up)
{
    program p;
    p.name = "by hand";
    for (const auto &list : up) {
        p.tasks.push_back(kernel_task(1, 32, KERNEL, 6));
        p.dag.up.push_back(list);
    }
    finish_program(p);
    return p;
}

std::vector<std::vector<uint32_t>> chain_of(uint32_t n)
{
    std::vector<std::vector<uint32_t>> up(n);
    for (uint32_t k = 1; k < n; k++)
        up[k] = {k - 1};
    return up;
}

/* One variant of a way, played. */
struct played {
    acs_sim_gpu gpu;
    std::unique_ptr<run> r;
    result found;

    uint64_t start(uint32_t k) const { return r->moments()[k].start; }
    uint64_t end(uint32_t k) const { return r->moments()[k].end; }
};

std::unique_ptr<played> play(const program &p, const char *name, int variant = 0, acs_sim_gpu gpu = round_gpu())
{
    const vehicle_kind *const kind = find_vehicle(name);
    auto done = std::make_unique<played>();

    assert_non_null(kind);
    done->gpu = gpu;
    if (kind->alter)
        kind->alter(done->gpu);
    done->r = std::make_unique<run>(done->gpu, p);
    done->r->link_ns = gpu.device.launch_latency;
    const std::unique_ptr<vehicle> v = kind->make(p, variant);
    done->found = play_one(*done->r, *v, name);
    assert_string_equal(done->found.wrong.c_str(), "");
    return done;
}

void serial_chain_pays_launch_then_hops(void **)
{
    const program p = program_of(chain_of(3));
    const auto done = play(p, "stream");

    /* The first: its call, then the latency; each further one: the one before and a hop. */
    assert_int_equal(done->start(0), 1000 + 2000);
    assert_int_equal(done->start(1), done->end(0) + 1000);
    assert_int_equal(done->start(2), done->end(1) + 1000);
    assert_int_equal(done->end(2), 3000 + 3 * KERNEL + 2 * 1000);
    assert_int_equal(done->r->submit(), 3 * 1000);
    assert_int_equal(done->r->total(), done->end(2) + 3000);
}

void planned_streams_run_independent_kernels_side_by_side(void **)
{
    const program p = program_of({{}, {}, {0, 1}});
    const auto done = play(p, "streams"); /* 4 streams, one thread */

    /* An event is recorded behind the first; the third follows the second in its stream. */
    assert_int_equal(done->start(0), 3000);
    assert_int_equal(done->start(1), 3000 + 100 + 1000);
    assert_int_equal(done->start(2), done->end(1) + 1000);
    assert_string_equal(done->found.note.c_str(), "events 1, waits 1");
}

void threads_that_launch_together_slow_each_other(void **)
{
    const program p = program_of({{}, {}});
    acs_sim_gpu gpu = round_gpu();
    gpu.host.thread_slowdown = 500;
    const auto done = play(p, "streams", 4, gpu); /* 4 streams, 2 threads */
    const uint64_t first = std::min(done->start(0), done->start(1)), second = std::max(done->start(0), done->start(1));

    assert_int_equal(first, 1000 + 2000);
    assert_int_equal(second, 1500 + 2000);
}

void graph_of_one_node_pays_its_start(void **)
{
    const program p = program_of({{}});
    const auto done = play(p, "graph1");

    assert_int_equal(done->start(0), 900 + 2000 + 700);
}

void graph_replay_pays_launch_start_and_hops(void **)
{
    const program p = program_of({{}, {}, {0, 1}});
    const auto done = play(p, "graph-replay");
    const uint64_t begin = 1000 + 2 * 10 + 3 * 1 + 2000 + 700;

    assert_int_equal(done->start(0), begin);
    assert_int_equal(done->start(1), begin + 100); /* the front end takes one after the other */
    assert_int_equal(done->start(2), done->end(1) + 300);
}

void graph_build_pays_construction_before_and_destruction_behind(void **)
{
    const program p = program_of(chain_of(2));
    const auto replay = play(p, "graph-replay"), build = play(p, "graph-build"), update = play(p, "graph-update");

    assert_int_equal(build->start(0), replay->start(0) + 2 * (50 + 400));
    assert_int_equal(update->start(0), replay->start(0) + 2 * (50 + 20));
    assert_int_equal(build->r->submit(), replay->r->submit() + 2 * (50 + 400) + 2 * 200);
}

void program_waits_until_the_host_sees_the_copy(void **)
{
    program p = program_of({{}, {0}, {}, {}});
    p.tasks[1] = task();
    p.tasks[1].kind = COPY;
    p.tasks[1].direction = ACS_SIM_TO_HOST;
    p.tasks[1].bytes = 10000; /* 1 us at 10000 bytes per us */
    p.tasks[2] = task();
    p.tasks[2].kind = WAIT;
    p.dag.up[2] = {1};
    finish_program(p);
    const auto done = play(p, "stream");

    assert_int_equal(done->end(1) - done->start(1), 8000 + 1000);
    assert_int_equal(done->start(3), done->end(1) + 3000 + 500 + 1000 + 2000);
    for (const vehicle_kind &kind : vehicle_kinds())
        if (!kind.direct)
            assert_true(play(p, kind.name)->start(3) > done->end(1) - done->start(0));
}

void acs_sw_waits_for_its_stream_after_each_kernel(void **)
{
    const program p = program_of(chain_of(2));
    const auto done = play(p, "acs-sw-4");
    /* Handed over, inserted, taken, launched. */
    const uint64_t inserted = costs.push + costs.fifo + published_check_ns(1, 6);
    const uint64_t first = inserted + costs.record + 1000 + 2000;

    assert_int_equal(done->start(0), first);
    /* Seen, the call returns, removed; then another thread takes what has become ready. */
    assert_int_equal(done->start(1), done->end(0) + 3000 + 500 + costs.record + costs.record + 1000 + 2000);
}

void acs_sw_runs_as_many_kernels_as_it_has_threads(void **)
{
    const program p = program_of(std::vector<std::vector<uint32_t>>(40));
    for (int workers : {4, 8}) {
        const auto done = play(p, workers == 4 ? "acs-sw-4" : "acs-sw-8");
        int most = 0;
        for (uint32_t k = 0; k < 40; k++) {
            int running = 0;
            for (uint32_t other = 0; other < 40; other++)
                running += done->start(other) <= done->start(k) && done->start(k) < done->end(other);
            most = std::max(most, running);
        }
        assert_int_equal(most, workers);
    }
}

void published_check_is_table_two(void **)
{
    assert_int_equal(published_check_ns(16, 6), 410);
    assert_int_equal(published_check_ns(16, 10), 700);
    assert_int_equal(published_check_ns(32, 6), 510);
    assert_int_equal(published_check_ns(32, 10), 1640);
    assert_int_equal(published_check_ns(24, 6), 460);
    assert_int_equal(published_check_ns(64, 10), 3280);
    assert_int_equal(published_check_ns(32, 20), 4 * 1640);
}

void acs_hw_dispatches_after_its_cycles(void **)
{
    const program p = program_of(chain_of(3));
    const auto done = play(p, "acs-hw");

    assert_int_equal(acs_hw_cycles_ns(63), 45);
    assert_int_equal(acs_hw_cycles_ns(1400), 1000);
    /* Compared with one entry, launched, carried over the link, inserted in N cycles. */
    assert_int_equal(done->start(0), published_check_ns(1, 6) + 1000 + 2000 + acs_hw_cycles_ns(64));
    /* N - 1 cycles after the one before, no host involved. */
    assert_int_equal(done->start(1), done->end(0) + acs_hw_cycles_ns(63));
    assert_int_equal(done->start(2), done->end(1) + acs_hw_cycles_ns(63));
}

void acs_hw_stops_where_its_list_would_forget_a_running_kernel(void **)
{
    program p = program_of(std::vector<std::vector<uint32_t>>(80));
    p.tasks[0].kernel.cta_ns = 10000000;
    for (uint32_t k = 1; k < 80; k++)
        p.tasks[k].kernel.cta_ns = 100;
    const auto done = play(p, "acs-hw");

    assert_true(done->end(63) < done->end(0));
    for (uint32_t k = 64; k < 80; k++)
        assert_true(done->start(k) > done->end(0));
}

void acs_hw_holds_no_more_than_its_window(void **)
{
    program p = program_of(std::vector<std::vector<uint32_t>>(80));
    set_block_time(p, 1000000);
    for (uint32_t window : {16u, 32u}) {
        const auto done = play(p, window == 16 ? "acs-hw-16" : "acs-hw-32");
        assert_true(done->start(window) > done->end(0));
        assert_true(done->start(window - 1) < done->end(0));
    }
}

void chained_orders_on_the_device(void **)
{
    const program p = program_of(chain_of(2));
    const auto done = play(p, "chained");

    /* The worker inserts what is there before it issues. */
    assert_int_equal(done->start(0), costs.push + 2 * (costs.fifo + costs.insert) + 1000 + 2000);
    assert_int_equal(done->start(1), done->end(0) + 1000);
}

void chained_waits_for_an_event_of_another_slot(void **)
{
    const program p = program_of({{}, {}, {0, 1}});
    const auto done = play(p, "chained");

    /* It follows the first in its slot, and waits for the second's event. */
    assert_int_equal(done->start(1), done->start(0) + 1000);
    assert_int_equal(done->start(2), done->end(1) + 1200);
}

/* Not to the nanosecond: what the core's own work costs is the backend's. */
void core_itself_chains_on_the_device(void **)
{
    const acs_sim_gpu &gpu = *acs_sim_gpu_find("a100");
    program p = program_of(chain_of(20));
    const vehicle_kind &kind = *find_vehicle("acs");
    const double hops = 19 * (gpu.device.stream_hop + gpu.device.kernel_fixed) / 1000.0, kernels = 20 * KERNEL / 1000.0;
    const result chain = simulate(gpu, p, kind), unknown = simulate(round_gpu(), p, kind);

    assert_string_equal(chain.wrong.c_str(), "");
    assert_true(chain.total_us > kernels + hops && chain.total_us < kernels + hops + 20);
    assert_string_equal(unknown.left_out.c_str(), "the core runs on the models of the list only");
}

void kept_batch_pays_insertion_parameters_and_one_launch(void **)
{
    const program p = program_of(chain_of(2));
    const auto done = play(p, "kept");

    assert_int_equal(done->start(0), 2 * (costs.fifo + costs.insert + 30) + 1000 + 10 + 2 * 1 + 2000 + 700);
    assert_int_equal(done->start(1), done->end(0) + 300);
}

/* A head that sets two nodes, level, barrier, level. */
void level_template_pays_a_barrier_with_its_unused_nodes(void **)
{
    const program p = program_of(chain_of(2));
    const auto done = play(p, "layers");
    const uint64_t head = 2 * (costs.fifo + costs.insert + 5) + 1000 + 10 + 2000 + 700;

    assert_int_equal(done->start(0), head + 2 * 60 + 300);
    assert_int_equal(done->start(1), done->end(0) + 300 + 15 * 90 + 300);
}

void gpu_side_issue_pays_a_device_launch_per_hop(void **)
{
    const program p = program_of(chain_of(3));
    const auto done = play(p, "gpu-side");

    for (uint32_t k = 1; k < 3; k++)
        assert_int_equal(done->start(k), done->end(k - 1) + 5000);
}

/* A tree: no more than 120 launches by the head. */
void gpu_side_issue_launches_many_roots_through_a_tree(void **)
{
    const program few = program_of(std::vector<std::vector<uint32_t>>(120)), many =
        program_of(std::vector<std::vector<uint32_t>>(121));
    const auto direct = play(few, "gpu-side"), tree = play(many, "gpu-side");

    /* One op more to insert and to set, a hop more, and the front end's time for a second kernel of the tree. */
    assert_int_equal(tree->start(0) - direct->start(0), costs.fifo + costs.insert + 5 + 60 + 5000 + 100);
}

/* Bytes are not modelled: a copy between devices is a task that its reader is behind. */
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
    assert_int_equal(limits_of(gpu, p).critical, 4 * KERNEL);
    assert_int_equal(limits_of(gpu, p).work, KERNEL * 67 / 64);
}

} // namespace

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serial_chain_pays_launch_then_hops),
        cmocka_unit_test(planned_streams_run_independent_kernels_side_by_side),
        cmocka_unit_test(threads_that_launch_together_slow_each_other),
        cmocka_unit_test(graph_of_one_node_pays_its_start),
        cmocka_unit_test(graph_replay_pays_launch_start_and_hops),
        cmocka_unit_test(graph_build_pays_construction_before_and_destruction_behind),
        cmocka_unit_test(program_waits_until_the_host_sees_the_copy),
        cmocka_unit_test(acs_sw_waits_for_its_stream_after_each_kernel),
        cmocka_unit_test(acs_sw_runs_as_many_kernels_as_it_has_threads),
        cmocka_unit_test(published_check_is_table_two),
        cmocka_unit_test(acs_hw_dispatches_after_its_cycles),
        cmocka_unit_test(acs_hw_stops_where_its_list_would_forget_a_running_kernel),
        cmocka_unit_test(acs_hw_holds_no_more_than_its_window),
        cmocka_unit_test(chained_orders_on_the_device),
        cmocka_unit_test(chained_waits_for_an_event_of_another_slot),
        cmocka_unit_test(core_itself_chains_on_the_device),
        cmocka_unit_test(kept_batch_pays_insertion_parameters_and_one_launch),
        cmocka_unit_test(level_template_pays_a_barrier_with_its_unused_nodes),
        cmocka_unit_test(gpu_side_issue_pays_a_device_launch_per_hop),
        cmocka_unit_test(gpu_side_issue_launches_many_roots_through_a_tree),
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

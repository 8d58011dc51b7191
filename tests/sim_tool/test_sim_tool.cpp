/*
 * acs-sim's ways to issue, on a machine of round numbers: times worked out by hand, and the paper's cost model.
 */
#include <algorithm>
#include <cstring>

#include "acs-sim/acs_hw.h"
#include "sim_fixture.h"

namespace {

void serial_chain_pays_launch_then_hops(void **)
{
    const program p = program_of(chain_of(3));
    const auto done = play(p, "stream");

    /* The first: its call, then the latency; each further one: the one before and a hop. */
    assert_int_equal(done->start(0), 1000 + 2000);
    assert_int_equal(done->start(1), done->end(0) + 1000);
    assert_int_equal(done->start(2), done->end(1) + 1000);
    assert_int_equal(done->end(2), 3000 + 3 * TEN_US + 2 * 1000);
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
    assert_int_equal(copy_kernel(round_gpu(), p.tasks[1]).cta_ns, 8000 + 1000);
    for (const vehicle_kind &kind : vehicle_kinds()) {
        if (kind.direct)
            continue;
        const auto other = play(p, kind.name);
        assert_int_equal(other->end(1) - other->start(1), 8000 + 1000);
        /* The last task is handed over only after the copy was seen. */
        assert_true(other->r->submit() >= other->end(1) + 3000);
    }
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

/* The hardware sleeps until the third kernel's packet arrives; the first kernel ends before that. */
void acs_hw_is_woken_by_a_completion_before_the_next_packet(void **)
{
    program p = program_of({{}, {0}, {}});
    acs_sim_gpu gpu = round_gpu();
    gpu.host.launch = 20000;
    gpu.device.launch_latency = 100000;
    p.tasks[0].kernel.cta_ns = 30000;
    const auto done = play(p, "acs-hw", 0, gpu);

    assert_true(done->start(2) > done->end(0) + 5000);
    assert_int_equal(done->start(1), done->end(0) + acs_hw_cycles_ns(63));
}

/* Two threads that hold one lock for 100 ns each, from the same time on. */
class locking : public thread {
public:
    locking(run &r, lock &l) : thread(r), lock_(l) {}
    uint64_t held_until = 0;

protected:
    bool decide(uint64_t) override
    {
        if (asked_)
            return false;
        asked_ = true;
        locked(lock_, 100, [this](uint64_t at) { held_until = at; });
        return true;
    }

private:
    lock &lock_;
    bool asked_ = false;
};

class two_lockers : public vehicle {
public:
    void begin(run &r) override
    {
        for (auto &t : threads) {
            t = std::make_unique<locking>(r, lock_);
            r.wake(*t, 0);
        }
    }
    uint64_t host_busy() const override { return 0; }
    std::unique_ptr<locking> threads[2];

private:
    lock lock_;
};

void lock_is_held_by_one_thread_at_a_time(void **)
{
    const program p = program_of({});
    const acs_sim_gpu gpu = round_gpu();
    run r(gpu, p);
    two_lockers v;

    r.play(v);
    assert_int_equal(v.threads[0]->held_until, 100);
    assert_int_equal(v.threads[1]->held_until, 200);
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

/* An op is about to be hidden in its slot: its event is recorded first, so that others wait for nothing behind it. */
void chained_waits_for_no_more_than_it_depends_on(void **)
{
    program p = program_of({{}, {0}, {0}});
    p.tasks[1].kernel.cta_ns = 1000000;
    const auto done = play(p, "chained");

    assert_int_equal(done->start(1), done->end(0) + 1000);
    assert_int_equal(done->start(2), done->end(0) + 1200);
}

/* 1024 places in the FIFO and 256 in the window: the caller of more ops waits until one has retired. */
void chained_caller_waits_where_fifo_and_window_are_full(void **)
{
    for (uint32_t count : {1280u, 1281u}) {
        program p = program_of(std::vector<std::vector<uint32_t>>(count));
        set_block_time(p, 10000000);
        const auto done = play(p, "chained");
        assert_true((done->r->submit() > done->end(0)) == (count > 1280));
    }
}

/* Not to the nanosecond: what the core's own work costs is the backend's. */
void core_itself_chains_on_the_device(void **)
{
    const acs_sim_gpu &gpu = *acs_sim_gpu_find("a100");
    program p = program_of(chain_of(20));
    const vehicle_kind &kind = *find_vehicle("acs-launch");
    const double hops = 19 * (gpu.device.stream_hop + gpu.device.kernel_fixed) / 1000.0, kernels = 20 * TEN_US / 1000.0;
    const result chain = simulate(gpu, p, kind), unknown = simulate(round_gpu(), p, kind);

    assert_string_equal(chain.wrong.c_str(), "");
    assert_true(chain.total_us > kernels + hops && chain.total_us < kernels + hops + 20);
    assert_string_equal(unknown.left_out.c_str(), "the core runs on the models of the list only");
}

/* Every way of the core itself orders a chain; none but launches needs a stream's hop for each kernel. */
void core_itself_runs_a_chain_by_each_of_its_ways(void **)
{
    const acs_sim_gpu &gpu = *acs_sim_gpu_find("a100");
    program p = program_of(chain_of(20));

    for (const char *name : {"acs", "acs-replay", "acs-resident"}) {
        const result chain = simulate(gpu, p, *find_vehicle(name));
        assert_string_equal(chain.wrong.c_str(), "");
        assert_true(chain.total_us > 20 * TEN_US / 1000.0);
        if (strcmp(name, "acs-resident") == 0) /* nothing comes twice here */
            assert_non_null(strstr(chain.note.c_str(), " bundles"));
    }
}

void kept_batch_pays_insertion_parameters_and_one_launch(void **)
{
    const program p = program_of(chain_of(2));
    const auto done = play(p, "kept");

    assert_int_equal(done->start(0), 2 * (costs.fifo + costs.insert + 30) + 1000 + 10 + 2 * 1 + 2000 + 700);
    assert_int_equal(done->start(1), done->end(0) + 300);
}

/* Two batches in streams of their own, then one that depends on both: the first lasts longest. */
void kept_batch_waits_for_batches_in_other_streams(void **)
{
    std::vector<std::vector<uint32_t>> up(96);
    for (uint32_t k = 64; k < 96; k++)
        up[k] = {k - 64, k - 32};
    program p = program_of(up);
    for (uint32_t k = 0; k < 32; k++)
        p.tasks[k].kernel.cta_ns = 1000000;
    const auto done = play(p, "kept"); /* batches of 32 */

    assert_true(done->start(32) < done->end(0));
    assert_true(done->start(64) > done->end(31));
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
        cmocka_unit_test(acs_hw_is_woken_by_a_completion_before_the_next_packet),
        cmocka_unit_test(lock_is_held_by_one_thread_at_a_time),
        cmocka_unit_test(acs_hw_stops_where_its_list_would_forget_a_running_kernel),
        cmocka_unit_test(acs_hw_holds_no_more_than_its_window),
        cmocka_unit_test(chained_orders_on_the_device),
        cmocka_unit_test(chained_waits_for_an_event_of_another_slot),
        cmocka_unit_test(chained_waits_for_no_more_than_it_depends_on),
        cmocka_unit_test(chained_caller_waits_where_fifo_and_window_are_full),
        cmocka_unit_test(core_itself_chains_on_the_device),
        cmocka_unit_test(core_itself_runs_a_chain_by_each_of_its_ways),
        cmocka_unit_test(kept_batch_pays_insertion_parameters_and_one_launch),
        cmocka_unit_test(kept_batch_waits_for_batches_in_other_streams),
        cmocka_unit_test(level_template_pays_a_barrier_with_its_unused_nodes),
        cmocka_unit_test(gpu_side_issue_pays_a_device_launch_per_hop),
        cmocka_unit_test(gpu_side_issue_launches_many_roots_through_a_tree),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

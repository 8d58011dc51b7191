/*
 * A GPU of round numbers, programs by hand, and plays of one way on it, for the tests of acs-sim.
 */
#ifndef TESTS_SIM_FIXTURE_H
#define TESTS_SIM_FIXTURE_H

#include "bench/cmocka.hpp"

#include <memory>

#include "acs-sim/programs.h"
#include "acs-sim/vehicle.h"

using namespace design;

inline acs_sim_gpu round_gpu()
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
    g.device.front_end = g.device.front_end_set = g.device.front_end_released = 100;
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

const uint64_t TEN_US = 10000;

/* Kernels of one block, 10 us each, six segments; up[k]: what kernel k depends on. */
inline program program_of(const std::vector<std::vector<uint32_t>> &up)
{
    program p;
    p.name = "by hand";
    for (const auto &list : up) {
        p.tasks.push_back(kernel_task(1, 32, TEN_US, 6));
        p.dag.up.push_back(list);
    }
    finish_program(p);
    return p;
}

inline std::vector<std::vector<uint32_t>> chain_of(uint32_t n)
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

inline std::unique_ptr<played> play(const program &p, const char *name, int variant = 0, acs_sim_gpu gpu = round_gpu())
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

#endif

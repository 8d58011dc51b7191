/*
 * Models of GPUs: NVIDIA's figures for their multiprocessors, and costs of calls measured on an H200 (driver 580.159,
 * CUDA 13.0, 16 Xeon cores; single calls, hops and chains only). Other GPUs have the H200's costs, since theirs were
 * not measured. No figure was fitted to a benchmark that the model is then asked to predict.
 */
#include "simulator/machine.h"

#include <string.h>

/*
 * Times of a hop in a chain of empty kernels: 1.41 us in a stream, 1.52 through an event, 0.7 by a graph's edge, about
 * 5 by a launch from the device. The kernel's own part of that is unknown, and taken as 0.4. From the launch call
 * until the host knew of the end it was 7.7 us: 2.6 for the call, 0.4 for the kernel. The rest is split between the
 * latencies of launch and host by how much sooner the host saw a store to its memory. graph_start was not measured by
 * itself.
 *
 * Graphs whose parameters the device sets, and GPU-side issue: measured in the cuda backend with bundles of 64 to 256
 * empty kernels (tests/gpu/bench_gpu_methods.c), one bundle after another and two side by side. A
 * node that is set took 0.33 us, a released kernel 0.57, a hop of a chain of these 5.0. From the launch call to the
 * first kernel it was 7 and 15 us. The latencies of a launch and of a graph, which are counted apart, are included.
 *
 * Decisions (bench/experiments/decided-2026-11-27.md): in a chain of cached graphs one took 3.4 us more than no kernel,
 * of which 1 are those of any node. A decided kernel by itself took about 3 us more than a launch.
 *
 * A resident executor took 8 us to start, 1.6 for a hop and 0.06 an op (docs/issue-methods.md).
 */
#define DEVICE_COSTS                                                                                                   \
    {                                                                                                                  \
        .launch_latency = 2800, .kernel_fixed = 400, .stream_hop = 1010, .event_hop = 1120, .graph_hop = 300,          \
        .graph_start = 1000, .front_end = 190, .front_end_edge = 100, .front_end_set = 330,                             \
        .front_end_released = 570, .node_off = 90, .decision = 2400, .decided_head = 3000, .device_launch = 4050,      \
        .set_head = 3000,                                                                                             \
        .resident_op = 60, .resident_hop = 1140, .resident_head = 3000,                                               \
        .host_visible = 1900, .copy_latency = 8000                                                                     \
    }

/*
 * Launching a graph of 64 nodes took 1.2 us as a chain, 46 as 64 roots. A cached graph of one kernel took 2.0 us in
 * all: 0.22 for its parameters, 0.3 for its events. Launches by 2, 4 and 8 threads took 1.8, 1.6 and 1.3 us in all. A
 * bundle whose parameters the device sets took the backend 18 us for 64 kernels and 39 for 256, its event included.
 * The part that grows with the kernels is counted per op (device_set_node, src/simulator/sim_driver.c).
 */
#define HOST_COSTS                                                                                                     \
    {                                                                                                                  \
        .launch = 2600, .record = 110, .wait = 100, .query = 120, .copy = 2600, .synchronize = 1000,                   \
        .graph1_launch = 1450, .graph_launch = 1200, .graph_launch_root = 700, .graph_launch_node = 0,                 \
        .graph_add_node = 260, .graph_instantiate_node = 1800, .graph_update_node = 65, .graph_set_node = 220,         \
        .headed_launch = 10000, .graph_destroy_node = 1000, .device_set_node = 30, .thread_slowdown = 430              \
    }

enum { KIB = 1024 };

static const acs_sim_gpu gpus[] = {
    {.name = "h200", .sms = 132, .sm_ctas = 32, .sm_threads = 2048, .sm_registers = 65536, .sm_shared_bytes = 228 * KIB,
     .queues = 32, .kernels = 128, .engines = 3, .host_mbps = 55000, .peer_mbps = 393000, .memory_mbps = 2200000,
     .device = DEVICE_COSTS, .host = HOST_COSTS},
    {.name = "a100", .sms = 108, .sm_ctas = 32, .sm_threads = 2048, .sm_registers = 65536, .sm_shared_bytes = 164 * KIB,
     .queues = 32, .kernels = 128, .engines = 3, .host_mbps = 25000, .peer_mbps = 250000, .memory_mbps = 750000,
     .device = DEVICE_COSTS, .host = HOST_COSTS},
    {.name = "rtx3070", .sms = 46, .sm_ctas = 16, .sm_threads = 1536, .sm_registers = 65536,
     .sm_shared_bytes = 100 * KIB, .queues = 32, .kernels = 128, .engines = 2, .host_mbps = 25000, .peer_mbps = 25000,
     .memory_mbps = 220000, .device = DEVICE_COSTS, .host = HOST_COSTS},
    {.name = "rtx3060", .sms = 28, .sm_ctas = 16, .sm_threads = 1536, .sm_registers = 65536,
     .sm_shared_bytes = 100 * KIB, .queues = 32, .kernels = 128, .engines = 2, .host_mbps = 25000, .peer_mbps = 25000,
     .memory_mbps = 180000, .device = DEVICE_COSTS, .host = HOST_COSTS},
};

const acs_sim_gpu *acs_sim_gpu_at(uint32_t index)
{
    return index < sizeof gpus / sizeof *gpus ? &gpus[index] : NULL;
}

const acs_sim_gpu *acs_sim_gpu_find(const char *name)
{
    for (uint32_t i = 0; acs_sim_gpu_at(i); i++) {
        if (strcmp(gpus[i].name, name) == 0)
            return &gpus[i];
    }
    return NULL;
}

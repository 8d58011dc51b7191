/*
 * A way to run the simulation, as the measurement sees it, and the table of all ways.
 *
 * Every driver gives the same work in the same state to the same kernels, or to ones that compute the same bits; they
 * differ in how the work reaches the GPU. A new way is one more row of the table in variants.cpp.
 */
#ifndef PHYSICS_BENCH_DRIVER_H
#define PHYSICS_BENCH_DRIVER_H

#include <memory>

#include "simulation.h"

/** What a driver has done since `begin`. */
struct driver_counts {
    uint64_t kernels = 0; /* launches, those included that the device switches off */
    uint64_t decisions = 0, not_run = 0; /* of ACS: sections decided on the device, and kernels switched off */
    uint64_t graphs = 0, instantiated = 0, updated = 0; /* of drivers that build graphs as they go */
};

class driver {
public:
    virtual ~driver() {}
    /** The arenas are as a run begins: does what precedes the first step. All of it is complete on return. */
    virtual void begin() = 0;
    /** Issues one environment step of all scenes. */
    virtual void step() = 0;
    /** Returns when everything issued is complete. */
    virtual void finish() = 0;
    virtual driver_counts counts() const = 0;
};

/** What drivers are made from. */
struct driver_setup {
    simulation &sim; /* its context owns the memory and runs nothing */
    order issue_order;
    int cpu;      /* the main thread's; threads of the library follow; -1: not pinned */
    bool emulate; /* graphs run on the CPU, one node at a time, in the last order that their edges allow */
    const char *forget; /* emulated graphs have no edges to this kernel; NULL: all edges */
    const char *timeline; /* file for a profile of runner acs; NULL: none */
};

struct variant {
    const char *name, *what;
    bool is_acs, needs_gpu;
    std::unique_ptr<driver> (*make)(const driver_setup &setup);
};

/** All ways to run, in the order in which they are reported. The first is the one that others must agree with. */
const std::vector<variant> &all_variants();

/** Should the scenes' graphs be one, or one for each scene in a stream of its own? */
enum grouping { GROUP_ALL, GROUP_SCENES };

std::unique_ptr<driver> make_stream_driver(const driver_setup &setup, bool stream_per_scene, bool fused);
/**
 * `adjust` changes options of the context; NULL: as the environment says. `repeats`: each step is a pass of a repeat.
 * `bodies`: the context knows the sample's executor. `captures`: one step becomes a graph, which is launched for each.
 */
std::unique_ptr<driver> make_acs_driver(const driver_setup &setup, void (*adjust)(acs_options &),
                                        decider d = KERNELS_DECIDE, bool repeats = false, bool bodies = false,
                                        bool captures = false);
std::unique_ptr<driver> make_graph_step_driver(const driver_setup &setup, grouping g, bool update);
std::unique_ptr<driver> make_graph_max_driver(const driver_setup &setup, grouping g);
/** The ops of graph-max on one stream, without a graph. */
std::unique_ptr<driver> make_max_stream_driver(const driver_setup &setup);

/** Keeps the calling thread on one CPU; does nothing for a negative one. @return false: the system refused. */
bool stay_on_cpu(int cpu);

#endif

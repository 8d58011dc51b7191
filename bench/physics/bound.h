/*
 * What no runner can beat, and the state that all must end in: from one run on one stream, looked at closely.
 */
#ifndef PHYSICS_BENCH_BOUND_H
#define PHYSICS_BENCH_BOUND_H

#include "driver.h"

/** Facts about the last step of the one-stream run. */
struct bench_bound {
    uint64_t kernels = 0, edges = 0; /* edges: those that no others imply */
    int depth = 0;                   /* ops on the longest path of any scene */
    const char *deepest = "";        /* that scene's body plan */
    double chain_us = 0;             /* its ops one after another without a wait: as a graph, on the CPU in place */
    double graph_us = 0;             /* its ops as one graph, with all counts known beforehand; 0 on the CPU */
    bool differs = false;            /* those two do not give the state that the run gave */
};

using scene_states = std::vector<std::vector<char>>;

/** Runs `steps` steps and measures the last one. @return the final state of each scene. */
scene_states reference_run(const driver_setup &setup, int steps, bench_bound &bound);

/** Puts every scene into its first state. Nothing may be running. */
void reset_scenes(const simulation &sim);
bool same_states(const simulation &sim, const scene_states &want, const char *name);

#endif

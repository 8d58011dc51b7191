/*
 * Several scenes with their memory, run from the beginning by any runner.
 */
#ifndef PHYSICS_SIMULATION_H
#define PHYSICS_SIMULATION_H

#include <functional>
#include <memory>
#include <vector>

#include "runner.h"

struct simulation {
    acs_context *context;
    bool gpu;
    std::vector<std::unique_ptr<scene>> scenes;
};

/** Builds scenes and allocates their arenas from `context`, which stays the caller's. */
simulation simulation_create(acs_context *context, int scenes, int worlds, uint64_t seed);
/** Frees the arenas. */
void simulation_destroy(simulation &s);

/** What one run took. */
struct run_result {
    double seconds;
    launch_counts counts;
};

/** Called after each step, while nothing runs, where given: it makes the run wait after every step. */
using step_hook = std::function<void(int step)>;

/** Puts every scene back to its beginning and runs `steps` environment steps; the state stays in the arenas. */
run_result simulation_run(simulation &s, runner &r, order o, int steps, const char *label,
                          const step_hook &hook = nullptr);

/** The arena of a scene as it is now. Nothing may be running. */
std::vector<char> simulation_state(const simulation &s, const scene &one);

#endif

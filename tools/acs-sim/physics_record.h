/*
 * What the physics sample launches, taken down while it runs on the CPU. A header between two programs whose names
 * collide: it includes neither's.
 */
#ifndef ACS_SIM_PHYSICS_RECORD_H
#define ACS_SIM_PHYSICS_RECORD_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "acs.h"
#include "acs_dual.hpp"

namespace design {

struct physics_op {
    bool copy; /* of counts, to the host */
    const acs_dual_kernel *kernel;
    uint32_t grid, block;
    const void *from;
    void *to;
    size_t bytes;
    std::vector<acs_segment> segments;
};

/** The program waits for op `copy` before it launches op `before`. */
struct physics_wait {
    size_t before;
    uint32_t copy;
};

struct physics_recording {
    std::vector<physics_op> ops;
    std::vector<physics_wait> waits;
};

struct physics_request {
    int plan; /* of the one scene; negative: `scenes` scenes, plan after plan */
    int scenes, worlds, steps;
    bool scene_order;
};

/** Runs the sample from its beginning; what it launches after the first steps, whose contacts are few, is kept. */
physics_recording record_physics(const physics_request &q);
/** Number of a body plan by its name; negative: none. */
int physics_plan(const std::string &name);

} // namespace design

#endif

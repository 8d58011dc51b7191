/*
 * What runs graphs of ops: CUDA, or for tests the CPU, which shows that the edges suffice.
 */
#ifndef PHYSICS_BENCH_GRAPHER_H
#define PHYSICS_BENCH_GRAPHER_H

#include "dag.h"
#include "driver.h"

/** Scenes' ops with the edges among them; there are none between scenes. Borrowed. */
struct ops_graph {
    struct part {
        const std::vector<op> *ops;
        const dag *edges;
    };
    std::vector<part> parts;
};

/** One stream of graphs: what is launched runs in the order of the launches. */
class grapher {
public:
    virtual ~grapher() {}
    /** Builds a graph and launches it. @return the launch's number, from 1. */
    virtual uint64_t launch(const ops_graph &g) = 0;
    /** Returns when that launch is complete. */
    virtual void wait(uint64_t number) = 0;
    /** Builds the graph that `replay` launches. */
    virtual void keep(const ops_graph &g) = 0;
    virtual void replay() = 0;
    /** Returns when all launches are complete. */
    virtual void finish() = 0;

    driver_counts counts;
};

/** `update`: executables are kept, and updated where the shape was seen before. NULL where CUDA is not built in. */
std::unique_ptr<grapher> make_cuda_grapher(bool update);
/** `forget`: the kernel whose edges are left out, to see that tests notice; NULL: none. */
std::unique_ptr<grapher> make_emulated_grapher(const char *forget);

/** The setup's: emulated or CUDA. */
inline std::unique_ptr<grapher> make_grapher(const driver_setup &setup, bool update)
{
    return setup.emulate ? make_emulated_grapher(setup.forget) : make_cuda_grapher(update);
}

/** The scenes of each graph, as a grouping says. */
std::vector<std::vector<const scene *>> grouped_scenes(const simulation &sim, grouping g);

#endif

/*
 * 1-node graphs instead of launches: an executable graph per stream and kernel, whose parameters are set before each
 * launch. Setting them and launching the graph costs the host less than launching the kernel.
 */
#ifndef BENCH_GRAPH_LAUNCH_H
#define BENCH_GRAPH_LAUNCH_H

#include <map>
#include <utility>
#include <vector>

#include "streams.h"

namespace bench {

class graph1_runner : public streams_runner {
public:
    explicit graph1_runner(const machine &m);
    ~graph1_runner() override;

protected:
    std::string plan_run() override;
    void send(size_t step, const op &o, slot &s) override;

private:
    struct vehicle {
        void *graph = nullptr, *node = nullptr, *exec = nullptr; /* cudaGraph_t, cudaGraphNode_t, cudaGraphExec_t */
    };
    typedef std::pair<int, const void *> key; /* stream, function: an executable graph never overlaps with itself */

    vehicle make(const op &o);

    std::map<key, vehicle> vehicles_;
    std::vector<const vehicle *> by_step_; /* null where the op is no kernel */
};

} // namespace bench

#endif

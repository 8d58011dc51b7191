/* How long a launch of a graph takes, for the benchmarks of graphs. */
#ifndef GRAPH_TIME_CUH
#define GRAPH_TIME_CUH

#include "check.h"

#include <algorithm>
#include <chrono>
#include <vector>

/* Microseconds per launch, idle to idle: the median of 15 rounds of 4 launches, after 3 untimed rounds. */
inline double graph_time(cudaGraph_t graph, cudaStream_t stream)
{
    constexpr int ROUNDS = 15, UNTIMED = 3, LAUNCHES = 4;
    cudaGraphExec_t exec;
    std::vector<double> times;
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = -UNTIMED; round < ROUNDS; round++) {
        CHECK_CUDA(cudaStreamSynchronize(stream));
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < LAUNCHES; i++)
            CHECK_CUDA(cudaGraphLaunch(exec, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        if (round >= 0)
            times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / LAUNCHES);
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] * 1e6;
}

#endif

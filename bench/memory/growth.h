/*
 * What the calls cost by which an allocator can get memory from the device and give it back: how a pool should grow.
 */
#ifndef BENCH_MEMORY_GROWTH_H
#define BENCH_MEMORY_GROWTH_H

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/* Calls of one kind, for pieces of one size. */
struct growth_cost {
    std::string way, call; /* who allocates; what is timed */
    uint64_t bytes = 0;
    bool busy = false;     /* beside work that runs on the device, some milliseconds of it */
    int waited = 0;        /* times that this work was over when the call came back */
    std::vector<double> us; /* of each repetition */
};

/** All ways, sizes and calls on the current device. Calls of the driver only, as many as are needed. Exits on an error. */
std::vector<growth_cost> measure_growth(int repetitions);

} // namespace bench

#endif

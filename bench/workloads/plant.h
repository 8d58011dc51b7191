/*
 * Does ACS_CHECK=reads find wrong footprints of real kernels? Runs a workload op by op under the check: once with its own
 * footprints, and once with a mistake in each.
 */
#ifndef BENCH_PLANT_H
#define BENCH_PLANT_H

#include "program.h"
#include "runner.h"

namespace bench {

struct planted {
    uint64_t right = 0;  /* launches with their own footprints */
    std::vector<std::string> blamed; /* of them those of which something was reported */
    uint64_t wrong = 0;  /* launches with a mistake */
    uint64_t found = 0;  /* of them those of which something was reported */
    std::vector<std::string> missed; /* the others: op, kernel, mistake. Some kernels do not need all that they name */
};

/** One mistake in each kernel launch of the program, if it has a segment that can have one. */
planted plant_mistakes(program &p, const machine &m);

} // namespace bench

#endif

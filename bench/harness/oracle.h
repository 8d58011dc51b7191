/*
 * Can a program's check fail? Plays runs in which one dependency was lost, and asks the check.
 */
#ifndef BENCH_ORACLE_H
#define BENCH_ORACLE_H

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

class program;

struct lost_edges {
    uint64_t edges = 0;     /* dependencies between ops; those of the program's own reads are not played */
    uint64_t played = 0;    /* of them */
    uint64_t by_oracle = 0; /* played runs that check() refused */
    uint64_t by_bits = 0;   /* played runs whose result differs from the serial one */
    uint64_t spared = 0;    /* played runs that were right, as the dependency was not needed: program::spares */
    std::vector<std::string> missed; /* "from -> to" of runs that neither of the two caught */
};

/**
 * For each essential dependency (or `most` of them, spread evenly, if there are more): runs the ops once in an order that
 * keeps all others and breaks this one. A lost dependency always shows, then, whatever the timing of a machine is.
 * `decides`: of the version that leaves its decisions to the device, as far as they are among the ops' own footprints.
 */
lost_edges lose_each_edge(program &p, uint64_t most, bool decides = false);

} // namespace bench

#endif

/*
 * An empty kernel for graph nodes in which many edges meet.
 */
#ifndef BENCH_GRAPHS_JOIN_H
#define BENCH_GRAPHS_JOIN_H

#include "acs_dual.hpp"

namespace bench {

struct graph_join_args {
    unsigned threads; /* 0: none has work */
};

extern const acs_dual_kernel kernel_graph_join;

} // namespace bench

#endif

/*
 * The nodes and edges that a run has as CUDA graphs, one graph per stretch between reads.
 */
#ifndef BENCH_GRAPHS_SHAPE_H
#define BENCH_GRAPHS_SHAPE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dag.h"
#include "op.h"

namespace bench {

enum : uint32_t { NODE_JOIN = UINT32_MAX };

struct graph_node {
    uint32_t op;   /* NODE_JOIN: an empty kernel that many edges meet in */
    uint32_t first_up, up_count; /* in graph_shape::ups */
    int slot;      /* of a library call: whose scratch memory and handles it uses; else 0 */
};

struct graph_shape {
    std::vector<graph_node> nodes;   /* upstream nodes first; reads have none */
    std::vector<uint32_t> ups;       /* numbers of nodes, all of the same stretch */
    std::vector<size_t> stretch_end; /* behind each stretch, in `nodes`; one more than there are reads */
    uint32_t joins = 0;
    bool calls = false; /* there are library calls */
    int slots = 1;      /* in use, for library calls */
};

/**
 * Edges as the dag has them, except those into an earlier stretch: its graph went to the same stream before.
 * `joins`: where n ops have the same m upstream ops and n * m > n + m, an empty kernel between them makes n + m edges of
 * those n * m. It costs a node and a hop, and is a kernel because empty nodes are far slower (1.6 to 12 µs per op on an
 * H200).
 * Library calls in one slot never run at once; further edges see to that where the dag has none and all `slots` are taken.
 */
graph_shape shape_graphs(const std::vector<op> &ops, const dag &d, bool joins, int slots);

} // namespace bench

#endif

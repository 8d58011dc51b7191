/*
 * The transitive reduction of a graph that grows at its end: edges lead from new nodes to older ones, and of a new
 * node's edges those are found that others imply. Used by capture_order.c. A state machine; no threads.
 *
 * RED-1  the edges that are kept lead wherever those lead that were given.
 * RED-2  no kept edge is implied by others, but where walks had taken TUNE_REDUCTION_STEPS steps for each reduction so far.
 * RED-3  a node is behind all nodes below its `base`.
 *
 * A walk back from the newer nodes tells whether an edge is implied. It stops at nodes that are older than the sought
 * ones, or not deeper in the graph. Behind a node that all others lead to there is nothing to look for (RED-3). So an edge
 * that leads far back takes time only where strands never meet, and all walks together take time that grows as the graph
 * does. A node takes 28 bytes, an edge 4.
 */
#ifndef ACS_REDUCTION_H
#define ACS_REDUCTION_H

#include "base/base.h"

/* Empty when all zero. Its owner frees it. */
typedef struct acs_reduction {
    struct acs_reduction_node *nodes; /* by number from 1 */
    uint32_t node_count, node_room;
    uint32_t *edges;
    uint32_t edge_count, edge_room;
    uint32_t *stack;
    uint32_t stack_room;
    uint32_t ends;  /* number of nodes that no other one is behind */
    uint32_t walks;
    uint64_t steps; /* edges that walks have looked at */
} acs_reduction;

void acs_reduction_fini(acs_reduction *reduction);
/*
 * Sort a list of different nodes: first those that no other one is behind, newest first, then those that others are
 * behind. Returns the number of the former.
 */
uint32_t acs_reduction_reduce(acs_reduction *reduction, uint32_t *list, uint32_t count);
/*
 * Add a node behind others, with or without implied edges; with them walks are shorter. Returns the node's number: 1, 2
 * and so on. 0: no memory, and nothing was added.
 */
uint32_t acs_reduction_add(acs_reduction *reduction, const uint32_t *behind, uint32_t count);

#endif

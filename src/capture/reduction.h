/*
 * The transitive reduction of a graph that grows at its end: nodes come in an order in which edges lead back, and of the
 * edges of a new node those that others imply are told apart. Used by capture_order.c. A state machine; no threads.
 *
 * RED-1  the edges that are kept lead wherever those lead that were given.
 * RED-2  no kept edge is implied by others, but where a search was given up after TUNE_REDUCTION_VISITS nodes.
 *
 * Whether an edge is implied is found by a walk from the newer nodes back. It stops at nodes that are older than what it
 * looks for, or no deeper in the graph. So it takes time where an edge leads far back, and is exact for graphs of as many
 * nodes as may be visited. A node takes 20 bytes, an edge 4.
 */
#ifndef ACS_REDUCTION_H
#define ACS_REDUCTION_H

#include "base/base.h"

/* All zero: empty. Its owner frees it. */
typedef struct acs_reduction {
    struct acs_reduction_node *nodes; /* by number; 0 is none */
    uint32_t node_count, node_room;
    uint32_t *edges;
    uint32_t edge_count, edge_room;
    uint32_t *stack;
    uint32_t stack_room;
    uint32_t walks;
} acs_reduction;

void acs_reduction_fini(acs_reduction *reduction);
/*
 * Sort nodes, each of which is there once: first those that none of the others is behind, newest first, then those to which
 * the others lead. Returns how many the first are.
 */
uint32_t acs_reduction_reduce(acs_reduction *reduction, uint32_t *list, uint32_t count);
/*
 * Add a node behind others, with edges that are implied or without them: walks are shorter with them. Returns the node: 1, 2
 * and so on. 0: no memory; nothing was added.
 */
uint32_t acs_reduction_add(acs_reduction *reduction, const uint32_t *behind, uint32_t count);

#endif

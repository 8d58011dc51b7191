/*
 * The shape of a graph: its ops on a few chains. CUDA runs an executable graph on internal streams, of which it has few.
 * If a graph has many short branches, those that have nothing to do with each other wait for each other there. With
 * chains that span the graph they do not (docs/capture.md has the measurements).
 *
 * Ops that no path of edges connects are apart: each such part has chains of its own, as many as its ops can use. In a
 * part ops are placed on chains as a list scheduler places them on processors. An op goes to the chain of an op that it
 * follows, if that chain still ends there. Otherwise it goes to a chain that has nothing to do, behind that chain's last
 * op. A pure function of its input; no threads.
 *
 * SHAPE-1  every given edge is an edge of the result, or is implied by its edges.
 * SHAPE-2  the result has no cycle.
 * SHAPE-3  the result has at most `chains` ops of which no two are ordered.
 */
#ifndef ACS_GRAPH_SHAPE_H
#define ACS_GRAPH_SHAPE_H

#include "base/base.h"

/* Ops and their edges. Op i is behind the ops behind[first[i]] to behind[first[i + 1] - 1], all of which are below i. */
typedef struct acs_graph_plan {
    uint32_t count;
    const uint32_t *first;  /* count + 1 elements */
    const uint32_t *behind;
    const uint32_t *steps;  /* time that each op takes, at least 1; a kernel takes one step */
} acs_graph_plan;

typedef struct acs_graph_edge {
    uint32_t from, to;
} acs_graph_edge;

/* All zero at first. Its owner calls acs_graph_shape_fini. */
typedef struct acs_graph_shape {
    acs_graph_edge *edges; /* without implied ones */
    uint32_t edge_count;
    uint32_t levels;       /* ops on the longest path */
    uint32_t steps;        /* steps of the longest path */
    uint32_t chains;
} acs_graph_shape;

/* Place the ops on at most `chains` chains. False: no memory; nothing is left to free. */
bool acs_graph_shape_make(const acs_graph_plan *graph, uint32_t chains, acs_graph_shape *shape);
void acs_graph_shape_fini(acs_graph_shape *shape);

#endif

/*
 * Graphs by footprints (acs_graph_begin to acs_graph_end): work that a program captures from a stream in its own way,
 * with the footprint of each piece, gets the edges that the footprints need. While ops are added (graph.c) each is cut
 * off from the one before it. All edges are made at the end (graph_end.c), when the whole graph is known. Private to
 * src/capture; called by the public functions, on the thread that captures. Nothing is shared, so there is no lock.
 *
 * Programmatic edges. A kernel that was launched with programmatic stream serialization may begin before the kernel
 * before it in the stream has ended, and waits for that kernel itself (griddepcontrol.wait). To see the type of that edge,
 * an op is captured behind the op before it, if this ends with one kernel. The edge is then removed.
 *
 * Why programmatic edges keep the order: let a kernel k begin at B(k), and C(k) be the time at which it has ended and its
 * writes are visible. A full edge a -> b means C(a) <= B(b). A programmatic one means B(a) <= B(b), since each block of a
 * triggers or ends; and C(a) <= C(b) if b waits. Take a path from u to v. If its first edge is full, C(u) <= B(v),
 * whichever edges follow. Else it begins with programmatic edges, all between neighbours of the stream (GRAPH-1). The
 * stream's own capture orders u and v only if all these neighbours wait. So they end after u, and the full edge behind
 * them, or v's own wait, comes after C(u). That an edge is implied by others therefore needs no look at their types.
 *
 * GRAPH-1  a programmatic edge leads to a kernel from the one before it in the stream, and from no other.
 * GRAPH-2  two kernels that conflict are ordered wherever the stream's own capture orders them.
 */
#ifndef ACS_GRAPH_H
#define ACS_GRAPH_H

#include "api/draft.h"
#include "window/nodes.h"

/* An op: where its nodes and segments begin in the graph's lists, and how many they are. */
typedef struct acs_graph_piece {
    uint32_t first_at, first_count; /* nodes that depend on nothing in the op */
    uint32_t end_at, end_count;     /* nodes on which nothing in the op depends */
    uint32_t segment;               /* its latest piece of footprint; UINT32_MAX: none */
    uint32_t steps;                 /* time that it takes: see acs_graph_plan */
    uint32_t present_at, present_count; /* edges from earlier ops that the capture made and that stay */
    uint32_t number;                /* its place in the list of ops, from 1; 0: a join */
    bool early;                     /* whether the edge from the op before it is programmatic, if there is one */
    uint32_t placed;                /* at the end: its node of the shape */
    const acs_site *site;
    bool any;
} acs_graph_piece;

/* An edge of the capture from a node of an earlier op. */
typedef struct acs_graph_present {
    void *from, *to;
    uint32_t op; /* index of the earlier op */
} acs_graph_present;

/* A segment of an op, and the one that was added before it. */
typedef struct acs_graph_segment {
    acs_segment segment;
    uint32_t before; /* UINT32_MAX: none */
} acs_graph_segment;

struct acs_graph {
    acs_context *context;
    acs_graph_piece *ops;
    uint32_t op_count, op_room;
    acs_graph_segment *segments;
    uint32_t segment_count, segment_room;
    acs_nodes nodes; /* nodes of all ops */
    struct acs_graph_seen *seen; /* hash table of the nodes that were found, with those inside of ops */
    acs_graph_present *present;
    uint32_t present_count, present_room;
    void *last; /* kernel with which the latest op ends, while the stream's next work is behind it; NULL: behind nothing */
    bool fixed; /* whether CUDA removes no edges of this graph */
};

static inline const acs_capture_ops *acs_graph_backend(const acs_graph *graph)
{
    return graph->context->backend->ops->capture;
}

acs_status acs_graph_no_memory(void);
/* Refuse NULL, in the name of a public function. */
acs_status acs_graph_check(const acs_graph *graph, const char *function);
/* The capture of the stream, and (unless NULL) the nodes that its next work would be behind. ACS_ERR_STATE: none. */
acs_status acs_graph_look(const acs_graph *graph, void *stream, uint64_t *id, acs_nodes *ends);
bool acs_graph_add_node(acs_graph *graph, void *node);
acs_status acs_graph_add_segment(acs_graph *graph, acs_graph_piece *op, const acs_segment *segment);

#endif

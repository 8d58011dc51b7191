/*
 * The shape of the ops of sections. Their nodes are in the graph at once, with the edges that they need. When a section
 * ends, its ops get further edges, which place them on chains as those of graphs by footprints are (graph_shape.h). A state
 * machine; its owner calls it under one lock.
 *
 * Ops are noted in the order in which their nodes were made, with all paths between them. A path that leaves the noted ops
 * comes back only through work of the program's own. Ops that were noted before such work are shaped without those that
 * come later. A library call is taken to wait for no events but its own.
 *
 * SECTION-1  added edges make no cycle.
 * SECTION-2  the order of ops never depends on an edge that is added here.
 */
#ifndef ACS_SECTION_SHAPE_H
#define ACS_SECTION_SHAPE_H

#include "capture/capture_scratch.h"
#include "capture/node_map.h"

/* Empty when all zero. Its owner calls acs_section_shape_forget. */
typedef struct acs_section_shape {
    struct acs_section_op *ops; /* since the latest shape was made */
    uint32_t count, room;
    uint32_t *behind; /* ops that each op is behind, one after the other */
    uint32_t behind_count, behind_room;
    acs_nodes nodes;  /* first nodes and ends of the ops */
    acs_node_map map; /* op of each node */
    bool off;         /* whether no edges are added: ops run in order, or this driver adds none */
} acs_section_shape;

/*
 * Note an op that became nodes behind `behind`. calls: the backend, if it is a library call, of which the first nodes are
 * looked for; NULL: it has one node. Without memory all ops are forgotten: they get no further edges.
 */
void acs_section_shape_add(acs_section_shape *shape, acs_backend *calls, const acs_nodes *behind, const acs_nodes *ends);
/*
 * Add the edges that place the noted ops on chains (TUNE_GRAPH_CHAINS), and forget the ops. Errors: as acs_capture_ops.link.
 */
acs_status acs_section_shape_make(acs_section_shape *shape, const acs_capture_at *at);
/* Later ops may be behind work of the program's own. What was noted before is shaped now, unless the work is known. */
acs_status acs_section_shape_own(acs_section_shape *shape, const acs_capture_at *at, const acs_nodes *nodes);
void acs_section_shape_forget(acs_section_shape *shape);

#endif

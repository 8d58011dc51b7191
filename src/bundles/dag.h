/*
 * The shape of a bundle: which of its ops must follow which, with every implied edge removed, in levels, and as a key
 * that equal shapes share. Pure arithmetic over a batch; called by backends when they issue one. Keeps nothing.
 *
 * DAG-1  edges lead from a node to nodes with smaller numbers; none is implied by a path of others (transitive
 *        reduction).
 * DAG-2  level of a node: 0 without edges, else one more than the highest of those it has edges to; a join adds none.
 * DAG-3  joins that cost more than they save are resolved: those that follow one follow what it stands for, and it has
 *        no edges and none follow it (out_count 0). Nobody needs to make anything of it.
 */
#ifndef ACS_DAG_H
#define ACS_DAG_H

#include "window/batch.h"

enum { ACS_DAG_EDGES = ACS_BATCH_EDGES };

/* Node i is item i of the bundle. */
typedef struct acs_dag_node {
    uint32_t type;        /* of the kernel; 0: a join */
    uint16_t level;
    uint16_t first_edge;  /* edges: nodes that this one follows, greatest number first */
    uint16_t edge_count;
    uint16_t out_count;   /* nodes that follow it */
} acs_dag_node;

typedef struct acs_dag {
    uint32_t nodes, ops, edges_used;
    uint32_t levels;      /* of ops */
    uint32_t width;       /* most ops in one level */
    uint64_t key;         /* of the types and edges in order: equal for bundles that a cached graph can stand for */
    acs_dag_node node[ACS_BATCH_ITEMS];
    uint16_t edges[ACS_DAG_EDGES];
} acs_dag;

/* The shape of a bundle. Any thread; allocates nothing. */
void acs_dag_make(const acs_batch *batch, acs_dag *dag);
/*
 * By how many levels the bundle makes the program's longest path longer where nothing waits for the end of a bundle,
 * about: half way between all of its levels and where its ends lie on average, since what follows an early end may
 * begin early.
 */
uint32_t acs_dag_path(const acs_dag *dag);

#endif

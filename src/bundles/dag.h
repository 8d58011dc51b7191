/*
 * The shape of a bundle: its edges without the implied ones, levels of its nodes, and a key that equal shapes share. Pure
 * arithmetic over a batch; called by backends when they issue a bundle. Keeps nothing.
 *
 * DAG-1  edges lead from a node to nodes with smaller numbers; none is implied by a path of others (transitive
 *        reduction).
 * DAG-2  level of a node: 0 without edges, else one more than the highest level of the nodes it has edges to; a join
 *        adds none.
 * DAG-3  a join that costs more edges than it saves is resolved: its followers get edges to the nodes that it stood
 *        for. It keeps no edges and no followers (out_count 0), and backends make no node for it.
 */
#ifndef ACS_DAG_H
#define ACS_DAG_H

#include "window/batch.h"

enum { ACS_DAG_EDGES = ACS_BATCH_EDGES };

/* Node i is item i of the bundle. */
typedef struct acs_dag_node {
    uint32_t type;        /* number of the kernel type; 0: a join */
    uint16_t level;
    uint16_t first_edge;  /* edges: the nodes that this one follows, greatest number first */
    uint16_t edge_count;
    uint16_t out_count;   /* followers */
} acs_dag_node;

typedef struct acs_dag {
    uint32_t nodes, ops, edges_used;
    uint64_t key;         /* hash of types and edges in order: equal for bundles that one cached graph can stand for */
    acs_dag_node node[ACS_BATCH_ITEMS];
    uint16_t edges[ACS_DAG_EDGES];
} acs_dag;

/* Compute the shape of a bundle. Any thread; allocates nothing. */
void acs_dag_make(const acs_batch *batch, acs_dag *dag);
#endif

/*
 * The release tree of a bundle that the GPU issues itself: the followers of each node. Where a node would release more
 * than one execution of a graph may launch, the tree has extra nodes (*fans*). Pure arithmetic over a bundle's shape;
 * called by the cuda backend; allocates nothing. Device code reads this header too, so it includes nothing of the
 * library.
 *
 * RELEASE-1  the end of a node causes at most `weight` launches and passed joins together, and weight <=
 *            TUNE_RELEASE_MOST.
 * RELEASE-2  `upstream` is how often a node is named in the lists of followers of others; 0: the head launches it.
 * RELEASE-3  only ops and fans are launched, and every fan has followers; what a join's end causes is counted where
 *            the join is.
 */
#ifndef ACS_RELEASE_TREE_H
#define ACS_RELEASE_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ACS_RELEASE_TREE_ITEMS = 512, /* equal to ACS_BATCH_ITEMS */
    ACS_RELEASE_TREE_FANS = 63,
    ACS_RELEASE_TREE_NODES = ACS_RELEASE_TREE_ITEMS + ACS_RELEASE_TREE_FANS,
    /* all edges, all roots, and an edge to each fan */
    ACS_RELEASE_TREE_OUT = 4096 + ACS_RELEASE_TREE_ITEMS + ACS_RELEASE_TREE_FANS
};

typedef enum acs_release_tree_kind {
    ACS_RELEASE_TREE_OP,
    ACS_RELEASE_TREE_JOIN_NODE,
    ACS_RELEASE_TREE_FAN
} acs_release_tree_kind;

typedef struct acs_release_tree_node {
    uint8_t kind;
    uint16_t upstream, weight;
    uint16_t first_out, out_count; /* followers in acs_release_tree.out */
} acs_release_tree_node;

/* Nodes are the bundle's items, then fans. The head launches all nodes without upstream; it is no node itself. */
typedef struct acs_release_tree {
    uint32_t nodes, out_used;
    acs_release_tree_node node[ACS_RELEASE_TREE_NODES];
    acs_release_tree_node head;
    uint16_t out[ACS_RELEASE_TREE_OUT];
} acs_release_tree;

struct acs_dag;
/* False: the tree would need too many fans. */
bool acs_release_tree_make(const struct acs_dag *dag, acs_release_tree *tree);

#endif

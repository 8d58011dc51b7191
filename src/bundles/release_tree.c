/*
 * The release tree of a bundle that the GPU issues itself (release_tree.h). Called by the cuda backend, with a bundle
 * that no other thread uses. Never allocates, and keeps nothing from one bundle to the next.
 *
 * A shape lists the nodes that each node follows; the tree lists the followers of each node. Followers have greater
 * numbers. So one pass from the last node to the first knows the weight of all followers of a node when it comes to
 * that node.
 */
#include "bundles/release_tree.h"

#include "base/tuning.h"
#include "bundles/dag.h"

_Static_assert((int)ACS_RELEASE_TREE_ITEMS == (int)ACS_BATCH_ITEMS, "a node for every item");
_Static_assert((int)ACS_RELEASE_TREE_OUT >=
                   (int)ACS_DAG_EDGES + (int)ACS_RELEASE_TREE_ITEMS + (int)ACS_RELEASE_TREE_FANS,
               "edges, roots and edges to fans");

/* List the followers of each node, in the order of the items. */
static void turn_round(const acs_dag *dag, acs_release_tree *tree)
{
    uint16_t filled[ACS_RELEASE_TREE_ITEMS];
    uint32_t used = 0;

    for (uint32_t i = 0; i < dag->nodes; i++) {
        filled[i] = tree->node[i].first_out = (uint16_t)used;
        used += dag->node[i].out_count;
    }
    for (uint32_t i = 0; i < dag->nodes; i++)
        for (uint32_t e = 0; e < dag->node[i].edge_count; e++)
            tree->out[filled[dag->edges[dag->node[i].first_edge + e]]++] = (uint16_t)i;
    for (uint32_t i = 0; i < dag->nodes; i++)
        ACS_ASSERT(filled[i] == tree->node[i].first_out + tree->node[i].out_count); /* RELEASE-2 */
    tree->head.first_out = (uint16_t)used;
    for (uint32_t i = 0; i < dag->nodes; i++)
        if (dag->node[i].edge_count == 0)
            tree->out[used++] = (uint16_t)i;
    tree->head.out_count = (uint16_t)(used - tree->head.first_out);
    tree->out_used = used;
}

/* The cost of releasing a node: one launch, or for a join its passing and all releases that this causes at once. */
static uint32_t cost(const acs_release_tree_node *node)
{
    return node->kind == ACS_RELEASE_TREE_JOIN_NODE ? 1u + node->weight : 1u;
}

/*
 * Add a fan for followers [from, to) of `node`. The fan releases them, and is itself released as a follower of `node`.
 */
static bool add_fan(acs_release_tree *tree, const acs_release_tree_node *node, bool head, uint32_t from, uint32_t to,
                    uint32_t weight)
{
    ACS_ASSERT(from < to && weight <= TUNE_RELEASE_MOST); /* RELEASE-1, RELEASE-3 */
    if (tree->nodes == ACS_RELEASE_TREE_NODES)
        return false;
    tree->node[tree->nodes++] = (acs_release_tree_node){
        .kind = ACS_RELEASE_TREE_FAN,
        .upstream = !head,
        .weight = (uint16_t)weight,
        .first_out = (uint16_t)(node->first_out + from),
        .out_count = (uint16_t)(to - from),
    };
    for (uint32_t i = from; head && i < to; i++)
        tree->node[tree->out[node->first_out + i]].upstream = 1;
    return true;
}

/* Give the followers of a node that would launch too many to fans, as many to each as it may launch. */
static bool split(acs_release_tree *tree, acs_release_tree_node *node, bool head)
{
    uint32_t first_fan = tree->nodes, from = 0, weight = 0, out = tree->out_used;

    for (uint32_t i = 0; i < node->out_count; i++) {
        uint32_t more = cost(&tree->node[tree->out[node->first_out + i]]);
        if (weight + more > TUNE_RELEASE_MOST) {
            if (!add_fan(tree, node, head, from, i, weight))
                return false;
            from = i;
            weight = 0;
        }
        weight += more;
    }
    if (!add_fan(tree, node, head, from, node->out_count, weight))
        return false;
    for (uint32_t fan = first_fan; fan < tree->nodes; fan++)
        tree->out[tree->out_used++] = (uint16_t)fan;
    ACS_ASSERT(tree->out_used <= ACS_RELEASE_TREE_OUT && tree->nodes - first_fan <= TUNE_RELEASE_MOST); /* RELEASE-1 */
    node->first_out = (uint16_t)out;
    node->out_count = node->weight = (uint16_t)(tree->nodes - first_fan);
    return true;
}

/* Compute the weight of a node whose followers have theirs; split it if it is too heavy. */
static bool weigh(acs_release_tree *tree, acs_release_tree_node *node, bool head)
{
    uint32_t weight = 0;

    for (uint32_t i = 0; i < node->out_count; i++)
        weight += cost(&tree->node[tree->out[node->first_out + i]]);
    /*
     * The node that reaches a join last passes it, in addition to its own releases. So only joins with few followers
     * stay joins.
     */
    if (node->kind == ACS_RELEASE_TREE_JOIN_NODE && weight > TUNE_RELEASE_JOIN_MOST)
        node->kind = ACS_RELEASE_TREE_FAN;
    node->weight = (uint16_t)weight;
    return weight <= TUNE_RELEASE_MOST || split(tree, node, head);
}

bool acs_release_tree_make(const acs_dag *dag, acs_release_tree *tree)
{
    tree->nodes = dag->nodes;
    tree->head = (acs_release_tree_node){.kind = ACS_RELEASE_TREE_FAN};
    for (uint32_t i = 0; i < dag->nodes; i++) {
        const acs_dag_node *from = &dag->node[i];
        /* A join that follows no node is launched like any root. */
        uint8_t kind = from->type         ? ACS_RELEASE_TREE_OP
                       : from->edge_count ? ACS_RELEASE_TREE_JOIN_NODE
                                          : ACS_RELEASE_TREE_FAN;
        tree->node[i] =
            (acs_release_tree_node){.kind = kind, .upstream = from->edge_count, .out_count = from->out_count};
    }
    turn_round(dag, tree);
    for (uint32_t i = dag->nodes; i-- > 0;)
        if (!weigh(tree, &tree->node[i], false))
            return false;
    return weigh(tree, &tree->head, true);
}

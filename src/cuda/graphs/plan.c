/*
 * Plans of cached graphs: which nodes there are, and what each follows. Pure arithmetic; called by graphs/wanted.c. Makes no
 * CUDA call and keeps nothing.
 */
#include "cuda/graphs/graphs.h"

#include "base/tuning.h"

static acs_cuda_plan_node *node_add(acs_cuda_plan *plan, acs_cuda_node_kind kind, uint32_t type)
{
    acs_cuda_plan_node *node = &plan->node[plan->nodes++];
    node->kind = (uint16_t)kind;
    node->type = type;
    node->first_edge = (uint16_t)plan->edges_used;
    node->edge_count = 0;
    node->fixed = false;
    return node;
}

/* Add an edge to the newest node. */
static void edge_add(acs_cuda_plan *plan, uint32_t to)
{
    plan->edges[plan->edges_used++] = (uint16_t)to;
    plan->node[plan->nodes - 1].edge_count++;
}

void acs_cuda_plan_op(uint32_t type, acs_cuda_plan *plan)
{
    plan->nodes = plan->edges_used = plan->values = 0;
    plan->ops = 1;
    (void)node_add(plan, ACS_CUDA_NODE_OP, type);
}

static bool plan_fits(const acs_cuda_plan *plan, uint32_t edges)
{
    return plan->nodes < ACS_CUDA_PLAN_NODES && plan->edges_used + edges <= ACS_CUDA_PLAN_EDGES;
}

/*
 * Add a node that publishes the end of all ops so far: behind all nodes that nothing follows yet. `last`: the
 * publishing node before, or 0.
 */
static bool publish_add(acs_cuda_plan *plan, const uint16_t *at, uint32_t from, uint32_t end,
                    const uint16_t *followed, uint32_t last)
{
    if (!plan_fits(plan, end - from + 1))
        return false;
    (void)node_add(plan, ACS_CUDA_NODE_PUBLISH, 0);
    plan->values++;
    if (last)
        edge_add(plan, last);
    for (uint32_t i = from; i < end; i++)
        if (!followed[i])
            edge_add(plan, at[i]);
    return true;
}

static bool node_copy(const acs_dag *dag, acs_cuda_plan *plan, uint32_t i, uint16_t *at, uint16_t *followed)
{
    const acs_dag_node *node = &dag->node[i];
    if (!node->type && !node->out_count) { /* a resolved join: it gets no node, and nothing waits for it */
        followed[i] = 1;
        return true;
    }
    if (!plan_fits(plan, node->edge_count))
        return false;
    at[i] = (uint16_t)plan->nodes;
    followed[i] = 0;
    (void)node_add(plan, node->type ? ACS_CUDA_NODE_OP : ACS_CUDA_NODE_JOIN, node->type);
    for (uint32_t e = 0; e < node->edge_count; e++) {
        uint32_t to = dag->edges[node->first_edge + e];
        edge_add(plan, at[to]);
        followed[to]++;
    }
    return true;
}

/*
 * The bundle's own nodes, with a publishing node after every TUNE_GRAPH_PUBLISH_OPS ops. The slot's mark reports its
 * end.
 */
bool acs_cuda_plan_dag(const acs_dag *dag, acs_cuda_plan *plan)
{
    uint16_t at[ACS_BATCH_ITEMS], followed[ACS_BATCH_ITEMS];
    uint32_t ops = 0, from = 0, last = 0;
    plan->nodes = plan->edges_used = plan->values = 0;
    plan->ops = dag->ops;
    for (uint32_t i = 0; i < dag->nodes; i++) {
        if (!node_copy(dag, plan, i, at, followed))
            return false;
        ops += dag->node[i].type != 0;
        if (!dag->node[i].type || ops % TUNE_GRAPH_PUBLISH_OPS || ops == dag->ops)
            continue;
        if (!publish_add(plan, at, from, i + 1, followed, last))
            return false;
        last = plan->nodes - 1;
        from = i + 1;
    }
    return true;
}

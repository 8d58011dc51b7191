/*
 * Plans of cached graphs: that of a replayed bundle, and that of layers. Pure arithmetic; called by graphs/method.c
 * and graphs/cache.c. Makes no CUDA call and keeps nothing.
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

/* ----------------------------------------------------------------------------------------------------------- layers */

uint32_t acs_cuda_publish_levels(const acs_layer_template *shape)
{
    uint32_t cells = acs_layers_cells(shape);
    return cells >= TUNE_GRAPH_PUBLISH_OPS ? 1 : TUNE_GRAPH_PUBLISH_OPS / cells;
}

uint32_t acs_cuda_layers_nodes(const acs_layer_template *shape)
{
    return shape->levels * (acs_layers_cells(shape) + 1) + shape->levels / acs_cuda_publish_levels(shape);
}

/*
 * Each level but the last has a barrier behind it, an empty kernel. Behind some barriers another node publishes
 * progress, beside the next level, which does not wait for it.
 */
bool acs_cuda_plan_layers(const acs_layer_template *shape, acs_cuda_plan *plan)
{
    uint32_t cells = acs_layers_cells(shape), barrier = 0, step = acs_cuda_publish_levels(shape);
    plan->nodes = plan->edges_used = plan->values = 0;
    plan->ops = shape->levels * cells;
    if (acs_cuda_layers_nodes(shape) > ACS_CUDA_PLAN_NODES || 2 * plan->ops + shape->levels > ACS_CUDA_PLAN_EDGES ||
        shape->levels > ACS_CUDA_VALUES + 1)
        return false;
    for (uint32_t level = 0; level < shape->levels; level++) {
        uint32_t first = plan->nodes;
        for (uint32_t t = 0; t < shape->types; t++)
            for (uint32_t c = 0; c < shape->cells[t]; c++) {
                (void)node_add(plan, ACS_CUDA_NODE_OP, shape->type[t]);
                if (level > 0)
                    edge_add(plan, barrier);
            }
        if (level + 1 == shape->levels)
            break;
        barrier = plan->nodes;
        (void)node_add(plan, ACS_CUDA_NODE_JOIN, 0);
        for (uint32_t c = 0; c < cells; c++)
            edge_add(plan, first + c);
        if ((level + 1) % step)
            continue;
        (void)node_add(plan, ACS_CUDA_NODE_PUBLISH, 0);
        edge_add(plan, barrier);
        plan->values++;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- replay */

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

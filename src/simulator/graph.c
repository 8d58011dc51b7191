/*
 * Graphs of kernels: made once, launched in a stream, one launch at a time. A node starts when its upstream nodes have
 * ended; the front end then takes time for the node and its edges. Called by machine.c; never looks at queues.
 */
#include "simulator/internal.h"

#include <stdlib.h>
#include <string.h>

uint32_t acs_sim_graph(acs_sim *sim, uint32_t device)
{
    if (!ACS_SIM_GROW(sim, sim->graph, sim->graph_capacity, sim->graphs))
        return ACS_SIM_NONE;
    memset(&sim->graph[sim->graphs], 0, sizeof *sim->graph);
    sim->graph[sim->graphs].device = device;
    return sim->graphs++;
}

uint32_t acs_sim_graph_node(acs_sim *sim, uint32_t graph, const acs_sim_kernel *kernel, acs_sim_node_kind kind,
                            void *user)
{
    sim_graph *g = &sim->graph[graph];

    if (!ACS_SIM_GROW(sim, g->node, g->node_capacity, g->nodes))
        return ACS_SIM_NONE;
    g->node[g->nodes] = (sim_node){.kernel = acs_sim_fitted(sim, kernel), .kind = kind,
                                      .first_edge = ACS_SIM_NONE, .user = user};
    return g->nodes++;
}

void acs_sim_graph_edge(acs_sim *sim, uint32_t graph, uint32_t from, uint32_t to)
{
    sim_graph *g = &sim->graph[graph];

    if (!ACS_SIM_GROW(sim, g->edge, g->edge_capacity, g->edges))
        return;
    g->edge[g->edges] = (sim_edge){to, g->node[from].first_edge};
    g->node[from].first_edge = g->edges++;
    g->node[to].upstream++;
}

void acs_sim_graph_set(acs_sim *sim, uint32_t graph, uint32_t node, const acs_sim_kernel *kernel, void *user)
{
    sim_node *n = &sim->graph[graph].node[node];

    n->off = !kernel;
    n->user = user;
    if (kernel)
        n->kernel = acs_sim_fitted(sim, kernel);
}

void acs_sim_graph_clear(acs_sim *sim, uint32_t graph)
{
    sim->graph[graph].nodes = sim->graph[graph].edges = 0;
}

bool acs_sim_graph_busy(const acs_sim *sim, uint32_t graph)
{
    return sim->graph[graph].launches > 0;
}

void acs_sim_graphs_free(acs_sim *sim)
{
    for (uint32_t i = 0; i < sim->graphs; i++) {
        free(sim->graph[i].node);
        free(sim->graph[i].edge);
        free(sim->graph[i].waiters);
    }
    free(sim->graph);
}

/* Time from the end of the last upstream node, or from the graph's start, to this node. */
static uint64_t hop(const acs_sim *sim, const sim_node *node)
{
    const acs_sim_device_costs *c = &sim->gpu.device;

    if (node->kind == ACS_SIM_NODE_RELEASED)
        return c->device_launch;
    if (node->kind == ACS_SIM_NODE_RESIDENT)
        return c->resident_hop;
    return node->upstream ? c->graph_hop : 0;
}

bool acs_sim_graph_start(acs_sim *sim, uint32_t graph, uint32_t stream, uint32_t queue)
{
    sim_graph *g = &sim->graph[graph];

    if (g->busy) {
        if (ACS_SIM_GROW(sim, g->waiters, g->waiter_capacity, g->waiter_count))
            g->waiters[g->waiter_count++] = queue;
        return false;
    }
    g->busy = true;
    g->stream = stream;
    g->left = g->nodes;
    sim->device[g->device].count.graphs++;
    for (uint32_t i = 0; i < g->nodes; i++) {
        g->node[i].waiting = g->node[i].upstream;
        if (!g->node[i].upstream)
            acs_sim_happen(sim, sim->now + sim->gpu.device.graph_start + hop(sim, &g->node[i]), SIM_NODE, graph, i);
    }
    if (!g->nodes)
        acs_sim_happen(sim, sim->now + sim->gpu.device.graph_start, SIM_GRAPH_END, graph, 0);
    return true;
}

static uint64_t front_end(const acs_sim_device_costs *c, const sim_node *node)
{
    const uint32_t of_kind[] = {c->front_end, c->front_end_set, c->front_end_released, c->resident_op};
    uint32_t further = node->upstream > 1 && node->kind != ACS_SIM_NODE_RESIDENT ? node->upstream - 1 : 0;

    return of_kind[node->kind] + (uint64_t)further * c->front_end_edge;
}

void acs_sim_node_ready(acs_sim *sim, uint32_t graph, uint32_t node)
{
    sim_graph *g = &sim->graph[graph];
    const acs_sim_device_costs *c = &sim->gpu.device;
    acs_sim_kernel kernel = g->node[node].kernel;
    uint32_t index;

    if (g->node[node].off || !acs_sim_blocks(sim, &kernel, g->node[node].user)) {
        acs_sim_tell(sim, g->node[node].user, false);
        acs_sim_happen(sim, acs_sim_front_end_turn(sim, g->device, c->node_off), SIM_NODE_END, graph, node);
        return;
    }
    index = acs_sim_run_take(sim);
    if (index == ACS_SIM_NONE)
        return;
    sim->run[index] = (sim_run){.kind = ITEM_KERNEL, .device = g->device, .stream = ACS_SIM_NONE, .graph = graph,
                                .node = node, .kernel = kernel, .user = g->node[node].user,
                                .unplaced = kernel.ctas};
    acs_sim_front_end(sim, index, front_end(c, &g->node[node]));
}

void acs_sim_graph_ended(acs_sim *sim, uint32_t graph)
{
    sim_graph *g = &sim->graph[graph];

    g->busy = false;
    g->launches--;
    acs_sim_stream_ended(sim, g->stream);
    acs_sim_wake_all(sim, g->waiters, &g->waiter_count);
}

void acs_sim_node_ended(acs_sim *sim, uint32_t graph, uint32_t node)
{
    sim_graph *g = &sim->graph[graph];

    for (uint32_t e = g->node[node].first_edge; e != ACS_SIM_NONE; e = g->edge[e].next) {
        sim_node *to = &g->node[g->edge[e].to];
        if (--to->waiting == 0)
            acs_sim_happen(sim, sim->now + hop(sim, to), SIM_NODE, graph, g->edge[e].to);
    }
    if (--g->left == 0)
        acs_sim_graph_ended(sim, graph);
}

/*
 * Issue methods on the simulated machine: a bundle becomes launches of graphs, each as the cuda backend would do it,
 * with the same index of cached graphs and reduced edges (src/bundles). Called by sim_bundle.c under the
 * backend's lock. It decides on no faults but those of instantiations, and never lets time pass.
 *
 * The machine's graphs stand for executable graphs: setting a node while a launch runs would change that launch. So a
 * cached graph that is given out while busy is noticed here, and its damage is real.
 */
#include "simulator/sim_internal.h"

#include <stdlib.h>

enum {
    COPIES_MOST = 4,         /* most copies of one key */
    /* if the seed decides: three times in four a shape is kept after one sighting, else after two */
    SEED_SIGHTINGS = 4,
    SEED_BODIES = 16 /* if the seed decides: one type in so many has no body */
};

/* The state of issuing one bundle. */
typedef struct issuing {
    acs_sim_state *s;
    acs_sim_methods *methods;
    const acs_dag *dag;
    const acs_batch *batch;
    acs_sim_bundle *bundle;
    uint32_t slot, sightings;
    uint64_t last; /* value of its last op */
    const char **wrong;
} issuing;

static const acs_sim_kernel g_small = {.ctas = 1, .threads = 1}; /* needs of a head or a join */

const char *acs_sim_method_name(acs_issue_method method)
{
    static const char *const names[ACS_METHOD_COUNT] = {"refused", "launch", "replay", "resident"};
    return names[method];
}

/* ---------------------------------------------------------------------------------------------------- cached graphs */

static uint32_t graph_of(const void *object)
{
    return (uint32_t)((uintptr_t)object - 1);
}

static void *object_of(uint32_t graph)
{
    return (void *)((uintptr_t)graph + 1);
}

/* An empty graph of the machine; ACS_SIM_NONE: no memory. */
static uint32_t take_graph(acs_sim_state *s)
{
    acs_sim_methods *methods = &s->methods;
    uint32_t graph = methods->spare_used ? methods->spare[--methods->spare_used] : acs_sim_graph(s->machine, 0);

    if (graph != ACS_SIM_NONE)
        acs_sim_graph_clear(s->machine, graph);
    return graph;
}

/* Keep an unused graph. Without memory for that it is lost until close. */
static void give_graph(acs_sim_state *s, uint32_t graph)
{
    acs_sim_methods *methods = &s->methods;

    if (ACS_GROW(methods->spare, methods->spare_capacity, methods->spare_used + 1))
        methods->spare[methods->spare_used++] = graph;
}

/* Destroy an executable graph. */
static void destroy_graph(const issuing *t, void *object)
{
    if (acs_sim_graph_busy(t->s->machine, graph_of(object)))
        *t->wrong = "a kept graph thrown out while a launch of it runs";
    else
        give_graph(t->s, graph_of(object));
    t->s->now += t->s->gpu.host.graph_destroy_node;
}

static void destroy_all_graphs(const issuing *t, uint64_t budget)
{
    void *object;

    while ((object = acs_graph_cache_evict(t->methods->cache, budget - acs_graph_cache_nodes(t->methods->cache) + 1,
                                           UINT64_MAX)))
        destroy_graph(t, object);
}

/* Make a copy of `nodes` nodes, taken, with an empty graph. NULL: refused. */
static acs_graph_copy *instantiate(const issuing *t, uint64_t key, uint32_t nodes)
{
    const acs_sim_host_costs *c = &t->s->gpu.host;
    acs_graph_copy *copy;
    uint32_t graph;
    void *object;

    if (acs_sim_fault(&t->s->faults, ACS_FAULT_METHOD))
        return NULL;
    while ((object = acs_graph_cache_evict(t->methods->cache, nodes, UINT64_MAX)))
        destroy_graph(t, object);
    graph = acs_graph_cache_has_room(t->methods->cache, nodes) ? take_graph(t->s) : ACS_SIM_NONE;
    if (graph == ACS_SIM_NONE)
        return NULL;
    copy = acs_graph_cache_add(t->methods->cache, key, nodes, object_of(graph));
    if (copy)
        atomic_fetch_add_explicit(&t->s->base.nodes_built, nodes, memory_order_relaxed); /* relaxed: a counter */
    else
        give_graph(t->s, graph);
    t->s->now += (uint64_t)(c->graph_add_node + c->graph_instantiate_node) * nodes;
    return copy;
}

/* Take a free copy, or make one if that may be, whose graph is still empty (*made). NULL: refused. */
static acs_graph_copy *take(const issuing *t, uint64_t key, uint32_t nodes, bool may_make, bool *made)
{
    acs_graph_copy *copy = acs_graph_cache_take(t->methods->cache, key);

    if (copy && acs_sim_graph_busy(t->s->machine, graph_of(copy->object)))
        *t->wrong = "a kept graph given out while a launch of it runs";
    *made = !copy && may_make && acs_graph_copies(t->methods->cache, key, NULL) < COPIES_MOST;
    return *made ? instantiate(t, key, nodes) : copy;
}

/* ------------------------------------------------------------------------------------------------------------ nodes */

static void add_edges(const issuing *t, uint32_t graph, uint32_t node, const acs_dag_node *of)
{
    if (!of->edge_count)
        acs_sim_graph_edge(t->s->machine, graph, 0, node);
    for (uint32_t e = 0; e < of->edge_count; e++)
        acs_sim_graph_edge(t->s->machine, graph, t->dag->edges[of->first_edge + e] + 1u, node);
}

/* The head of a graph, which sets or launches the other nodes. It takes no time if the seed decides. */
static acs_sim_kernel head_for(const issuing *t, acs_sim_node_kind kind)
{
    const acs_sim_device_costs *c = &t->s->gpu.device;
    acs_sim_kernel head = g_small;

    if (!t->s->by_seed)
        head.cta_ns = kind == ACS_SIM_NODE_RESIDENT ? c->resident_head : c->set_head;
    return head;
}

/* Build a head and the bundle's nodes behind it: item i is node i + 1. */
static void build_whole(const issuing *t, uint32_t graph, acs_sim_node_kind kind)
{
    const acs_sim_kernel head = head_for(t, kind);

    acs_sim_graph_node(t->s->machine, graph, &head, ACS_SIM_NODE_FIXED, NULL);
    for (uint32_t i = 0; i < t->dag->nodes; i++) {
        acs_sim_graph_node(t->s->machine, graph, &g_small, kind, NULL);
        add_edges(t, graph, i + 1, &t->dag->node[i]);
    }
}

/* Let a node run the bundle's item `i`, its op number `position`. */
static void set_op(const issuing *t, uint32_t graph, uint32_t node, uint32_t i, uint32_t position)
{
    acs_record *op = t->batch->items[i].op;
    acs_sim_kernel kernel = acs_sim_draw_kernel(t->s, op, t->slot);

    acs_sim_graph_set(t->s->machine, graph, node, &kernel, acs_sim_work_take(t->s, op, t->bundle, position));
}

static void set_whole(const issuing *t, uint32_t graph)
{
    uint32_t position = 0;

    for (uint32_t i = 0; i < t->dag->nodes; i++)
        if (t->dag->node[i].type)
            set_op(t, graph, i + 1, i, position++);
}

/* Launch a graph with a head, whose parameters the device sets. */
static void launch_headed(const issuing *t, uint32_t graph)
{
    const acs_sim_host_costs *c = &t->s->gpu.host;

    t->s->now += c->headed_launch + (uint64_t)c->device_set_node * t->dag->ops;
    acs_sim_graph_launch(t->s->machine, t->s->now, t->s->slot[t->slot].stream, graph);
}

/* ----------------------------------------------------------------------------------------------------------- replay */

static bool issue_replay(const issuing *t)
{
    const bool worth = t->sightings >= t->methods->sightings_least;
    bool made;
    acs_graph_copy *copy = take(t, t->dag->key, t->dag->nodes + 1, worth, &made);

    if (!copy)
        return false;
    if (made)
        build_whole(t, graph_of(copy->object), ACS_SIM_NODE_SET);
    set_whole(t, graph_of(copy->object));
    launch_headed(t, graph_of(copy->object));
    acs_graph_cache_launched(t->methods->cache, copy, (int)t->slot, t->last);
    return true;
}

/* -------------------------------------------------------------------------------------------------------- executors */

/* A graph for an executor that no launch uses; or ACS_SIM_NONE. */
static uint32_t take_executor_graph(const issuing *t)
{
    acs_sim_methods *methods = t->methods;
    uint32_t made;

    for (uint32_t i = 0; i < methods->executor_graphs; i++)
        if (!acs_sim_graph_busy(t->s->machine, methods->executor_graph[i]))
            return methods->executor_graph[i];
    if (methods->executor_graphs == ACS_SIM_EXECUTOR_GRAPHS)
        return ACS_SIM_NONE;
    made = acs_sim_graph(t->s->machine, 0);
    if (made != ACS_SIM_NONE)
        methods->executor_graph[methods->executor_graphs++] = made;
    return made;
}

/*
 * By seed some kernels have no body in an executor; otherwise all have one. A bundle with a kernel that has none is
 * refused.
 */
static bool issue_resident(const issuing *t)
{
    for (uint32_t i = 0; t->s->by_seed && i < t->dag->nodes; i++)
        if (t->dag->node[i].type && acs_hash64(t->dag->node[i].type ^ t->s->salt) % SEED_BODIES == 0)
            return false;
    const uint32_t graph = take_executor_graph(t);
    if (graph == ACS_SIM_NONE)
        return false;
    acs_sim_graph_clear(t->s->machine, graph);
    t->bundle->tells_end = true;
    build_whole(t, graph, ACS_SIM_NODE_RESIDENT);
    set_whole(t, graph);
    launch_headed(t, graph);
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- choice */

static bool issue_by(const issuing *t, acs_issue_method method)
{
    switch (method) {
    case ACS_METHOD_REPLAY:
        return issue_replay(t);
    case ACS_METHOD_RESIDENT:
        return issue_resident(t);
    default:
        return false;
    }
}

/* By seed: any. By time: as the cuda backend does where no kernel has a body. */
static acs_issue_method choose_method(const issuing *t)
{
    return t->s->by_seed && acs_random_below(&t->methods->random, 2) ? ACS_METHOD_RESIDENT : ACS_METHOD_REPLAY;
}

acs_issue_method acs_sim_method_issue(acs_sim_state *s, const acs_batch *batch, acs_sim_bundle *bundle,
                                      const char **wrong)
{
    issuing t = {.s = s,
              .methods = &s->methods,
              .dag = &s->methods.dag,
              .batch = batch,
              .bundle = bundle,
              .slot = bundle->slot,
              .last = bundle->first + bundle->ops - 1,
              .wrong = wrong};
    acs_issue_method method;

    if (acs_sim_fault(&s->faults, ACS_FAULT_METHOD))
        destroy_all_graphs(&t, s->methods.budget);
    t.sightings = acs_graph_cache_sight(s->methods.cache, t.dag->key);
    method = batch->method == ACS_METHOD_AUTO ? choose_method(&t) : (acs_issue_method)batch->method;
    return issue_by(&t, method) ? method : ACS_METHOD_AUTO;
}

acs_status acs_sim_methods_init(acs_sim_state *s, const acs_backend_config *config)
{
    acs_sim_methods *methods = &s->methods;

    methods->random.state = acs_hash64((uint64_t)config->options->seed + 1);
    methods->sightings_least = s->by_seed && acs_random_below(&methods->random, SEED_SIGHTINGS) ? 1 : 2;
    methods->budget = (uint64_t)config->options->graph_nodes;
    return acs_graph_cache_create(methods->budget, s->slots, &methods->cache);
}

void acs_sim_methods_fini(acs_sim_state *s)
{
    while (s->methods.cache && acs_graph_cache_drain(s->methods.cache))
        continue;
    acs_graph_cache_destroy(s->methods.cache);
    free(s->methods.spare);
    free(s->methods.types);
}

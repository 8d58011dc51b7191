/*
 * The shape of the ops of sections (see section_shape.h): what is noted about them, and the edges that are added at the
 * end. Called by capture.c, under the lock of captures. It removes no edge, and never waits.
 */
#include "capture/section_shape.h"

#include "base/tuning.h"
#include "capture/graph.h"
#include "capture/graph_shape.h"

/* In the map, instead of an op's number: the node was in the graph before all noted ops. */
#define BEFORE UINT32_MAX

typedef struct acs_section_op {
    uint32_t first_at, first_count; /* nodes that depend on nothing in the op; none: they are not known */
    uint32_t end_at, end_count;     /* nodes on which nothing in the op depends */
    uint32_t behind_at;
} section_op;

void acs_section_shape_forget(acs_section_shape *shape)
{
    const bool off = shape->off;
    free(shape->ops);
    free(shape->behind);
    acs_nodes_fini(&shape->nodes);
    acs_node_map_fini(&shape->map);
    *shape = (acs_section_shape){.off = off};
}

/* --------------------------------------------------------------------------------------------------------------- noting */

/* The op that is being noted is behind an earlier one. False: no memory. */
static bool add_behind(acs_section_shape *shape, uint32_t op)
{
    if (op == BEFORE || op == shape->count)
        return true;
    if (!acs_graph_reserve((void **)&shape->behind, &shape->behind_room, shape->behind_count + 1, sizeof *shape->behind))
        return false;
    for (uint32_t i = shape->ops[shape->count].behind_at; i < shape->behind_count; i++)
        if (shape->behind[i] == op)
            return true;
    shape->behind[shape->behind_count++] = op;
    return true;
}

/* Begin an op, which counts once all about it is noted. */
static section_op *begin_op(acs_section_shape *shape)
{
    if (!acs_graph_reserve((void **)&shape->ops, &shape->room, shape->count + 1, sizeof *shape->ops))
        return NULL;
    section_op *op = &shape->ops[shape->count];
    *op = (section_op){.behind_at = shape->behind_count};
    return op;
}

static bool add_node(acs_section_shape *shape, void *node)
{
    if (!acs_nodes_reserve(&shape->nodes, shape->nodes.count + 1))
        return false;
    shape->nodes.list[shape->nodes.count++] = node;
    return true;
}

static bool has_node(const acs_nodes *nodes, const void *node)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->list[i] == node)
            return true;
    return false;
}

/* Add the op's own nodes among those with which it ends. */
static bool add_ends(acs_section_shape *shape, section_op *op, const acs_nodes *behind, const acs_nodes *ends)
{
    uint32_t earlier;
    op->end_at = shape->nodes.count;
    for (uint32_t i = 0; i < ends->count; i++) {
        if (has_node(behind, ends->list[i]) || acs_node_map_get(&shape->map, ends->list[i], &earlier))
            continue;
        if (!acs_node_map_put(&shape->map, ends->list[i], shape->count) || !add_node(shape, ends->list[i]))
            return false;
    }
    op->end_count = shape->nodes.count - op->end_at;
    return true;
}

/* What is being found out about an op whose ends are known. */
typedef struct search {
    acs_backend *backend;
    const acs_nodes *behind;
    acs_nodes seen;  /* nodes of the op */
    bool known, room; /* whether its nodes can be told; whether there was memory */
} search;

/* Whether a node that one of the op's nodes depends on is another op's. Then the op is behind that one. */
static bool is_earlier(acs_section_shape *shape, search *s, void *node)
{
    uint32_t up;
    if (has_node(s->behind, node))
        return true;
    if (!acs_node_map_get(&shape->map, node, &up) || up == shape->count)
        return false;
    s->room &= add_behind(shape, up);
    return true;
}

/* Go from one of the op's nodes to those that it depends on. If none of these is the op's, it is one of the first. */
static void look_behind(acs_section_shape *shape, search *s, void *node)
{
    acs_nodes upstream = {NULL, 0, 0};
    uint32_t own = 0;
    s->known = s->backend->ops->capture->upstream(s->backend, node, &upstream) == ACS_OK;
    for (uint32_t i = 0; s->known && s->room && i < upstream.count; i++) {
        if (is_earlier(shape, s, upstream.list[i]))
            continue;
        own++;
        s->room = acs_nodes_add(&s->seen, upstream.list[i]);
    }
    if (s->known && s->room && !own)
        s->room = add_node(shape, node);
    acs_nodes_fini(&upstream);
}

/* Find the op's first nodes, from its ends. Those of an op with many nodes stay unknown. False: no memory. */
static bool add_first(acs_section_shape *shape, acs_backend *backend, section_op *op, const acs_nodes *behind)
{
    const acs_error before = *acs_error_thread();
    search s = {.backend = backend, .behind = behind, .known = true};
    uint32_t of;
    s.room = acs_nodes_set(&s.seen, shape->nodes.list + op->end_at, op->end_count);
    op->first_at = shape->nodes.count;
    for (uint32_t i = 0; s.known && s.room && i < s.seen.count; i++) {
        look_behind(shape, &s, s.seen.list[i]);
        s.known &= i < TUNE_CAPTURE_LOOK_NODES;
        s.room = s.room && (acs_node_map_get(&shape->map, s.seen.list[i], &of) ||
                            acs_node_map_put(&shape->map, s.seen.list[i], shape->count));
    }
    if (!s.known)
        shape->nodes.count = op->first_at;
    op->first_count = shape->nodes.count - op->first_at;
    acs_nodes_fini(&s.seen);
    *acs_error_thread() = before; /* nothing fails where they are not known */
    return s.room;
}

void acs_section_shape_add(acs_section_shape *shape, acs_backend *calls, const acs_nodes *behind, const acs_nodes *ends)
{
    uint32_t up;
    if (shape->off)
        return;
    section_op *op = begin_op(shape);
    bool room = op != NULL && add_ends(shape, op, behind, ends);
    if (room && !op->end_count)
        return; /* it has no node of its own */
    if (room) {
        op->first_at = op->end_at;
        op->first_count = op->end_count;
    }
    if (room && calls)
        room = add_first(shape, calls, op, behind);
    for (uint32_t i = 0; room && i < behind->count; i++)
        if (acs_node_map_get(&shape->map, behind->list[i], &up))
            room = add_behind(shape, up);
    if (room)
        shape->count++;
    else
        acs_section_shape_forget(shape);
}

/* --------------------------------------------------------------------------------------------------------------- shaping */

static bool is_behind(const acs_graph_plan *plan, const acs_graph_edge *edge)
{
    for (uint32_t i = plan->first[edge->to]; i < plan->first[edge->to + 1]; i++)
        if (plan->behind[i] == edge->from)
            return true;
    return false;
}

/* Add the nodes of an edge to the lists, from each end of one op to each first node of the other. */
static bool add_edge(const acs_section_shape *shape, const acs_graph_edge *edge, acs_nodes *from, acs_nodes *to)
{
    const section_op *up = &shape->ops[edge->from], *down = &shape->ops[edge->to];
    const uint32_t count = from->count + up->end_count * down->first_count;
    if (!acs_nodes_reserve(from, count) || !acs_nodes_reserve(to, count))
        return false;
    for (uint32_t u = 0; u < up->end_count; u++)
        for (uint32_t d = 0; d < down->first_count; d++) {
            from->list[from->count++] = shape->nodes.list[up->end_at + u];
            to->list[to->count++] = shape->nodes.list[down->first_at + d];
        }
    return true;
}

/* Find the edges of the shape that the graph does not have. */
static bool find_edges(const acs_section_shape *shape, const acs_graph_plan *plan, uint32_t chains, acs_nodes *from,
                       acs_nodes *to)
{
    acs_graph_shape made = {0};
    bool room = acs_graph_shape_make(plan, chains, &made);
    for (uint32_t i = 0; room && i < made.edge_count; i++)
        if (!is_behind(plan, &made.edges[i]))
            room = add_edge(shape, &made.edges[i], from, to);
    acs_graph_shape_fini(&made);
    return room;
}

/* Describe the noted ops to graph_shape.h. `first` and `steps` have room for one more than there are ops. */
static acs_graph_plan plan_of(const acs_section_shape *shape, uint32_t *first, uint32_t *steps)
{
    for (uint32_t i = 0; i < shape->count; i++) {
        first[i] = shape->ops[i].behind_at;
        steps[i] = 1;
    }
    first[shape->count] = shape->behind_count;
    return (acs_graph_plan){shape->count, first, shape->behind, steps};
}

/* A driver before CUDA 12.3 adds no edges, so its graphs stay as they are. */
static acs_status link_edges(acs_section_shape *shape, const acs_capture_at *at, const acs_nodes *from, const acs_nodes *to)
{
    const acs_error before = *acs_error_thread();
    if (!from->count)
        return ACS_OK;
    acs_status status = at->backend->ops->capture->link(at->backend, at->stream, at->id, from, to, false);
    shape->off = status == ACS_ERR_UNSUPPORTED;
    if (!shape->off)
        return status;
    *acs_error_thread() = before;
    return ACS_OK;
}

acs_status acs_section_shape_make(acs_section_shape *shape, const acs_capture_at *at)
{
    acs_nodes from = {NULL, 0, 0}, to = {NULL, 0, 0};
    uint32_t *first = calloc((size_t)shape->count + 1, sizeof *first);
    uint32_t *steps = calloc((size_t)shape->count + 1, sizeof *steps);
    acs_status status = ACS_OK;
    if (first && steps && shape->count > 1) {
        const acs_graph_plan plan = plan_of(shape, first, steps);
        if (find_edges(shape, &plan, TUNE_GRAPH_CHAINS, &from, &to)) /* without memory there are no further edges */
            status = link_edges(shape, at, &from, &to);
    }
    free(first);
    free(steps);
    acs_nodes_fini(&from);
    acs_nodes_fini(&to);
    acs_section_shape_forget(shape);
    return status;
}

acs_status acs_section_shape_own(acs_section_shape *shape, const acs_capture_at *at, const acs_nodes *nodes)
{
    acs_status status = ACS_OK;
    bool known = true, room = true;
    uint32_t op;
    if (shape->off)
        return ACS_OK;
    for (uint32_t i = 0; i < nodes->count; i++)
        known &= acs_node_map_get(&shape->map, nodes->list[i], &op);
    if (!known && shape->count)
        status = acs_section_shape_make(shape, at);
    for (uint32_t i = 0; room && !known && i < nodes->count; i++)
        room = acs_node_map_get(&shape->map, nodes->list[i], &op) || acs_node_map_put(&shape->map, nodes->list[i], BEFORE);
    if (!room)
        acs_section_shape_forget(shape);
    return status;
}

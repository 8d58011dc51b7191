/*
 * The end of a graph by footprints (see graph.h): the order of its ops, its shape, and its edges. Called by
 * acs_graph_end. The order is that of sections (capture_order.h), the shape that of graph_shape.h.
 */
#include "capture/graph.h"

#include "base/tuning.h"
#include "capture/capture_order.h"
#include "capture/graph_shape.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------------------- edges */

/* Edges of one type of the captured graph, in the form that the backend takes. */
typedef struct links {
    acs_nodes from, to;
} links;

/* What becomes of the ops at the end: nodes of the shape are ops that have work, and joins. */
typedef struct ending {
    acs_graph *graph;
    void *stream;
    uint64_t id;
    acs_graph_piece *ops;     /* of each node of the shape, the op; a join has one that is made up */
    uint32_t count, room;
    uint32_t *first;   /* count + 1: see acs_graph_plan */
    uint32_t first_room;
    uint32_t *behind;
    uint32_t behind_count, behind_room;
    uint32_t *steps, steps_room;
    links full, programmatic;
    bool early;       /* whether a kernel was captured with a programmatic edge */
    uint32_t longest; /* steps of the longest path */
} ending;

/* Nodes of the shape go through the order as numbers from 1. */
static void *handle_of(uint32_t node)
{
    return (void *)(uintptr_t)(node + 1);
}

static uint32_t node_of(const void *handle)
{
    return (uint32_t)(uintptr_t)handle - 1;
}

static bool add_node(ending *e, const acs_graph_piece *op, const acs_nodes *behind)
{
    if (!ACS_GROW(e->ops, e->room, e->count + 1) || !ACS_GROW(e->first, e->first_room, e->count + 2) ||
        !ACS_GROW(e->steps, e->steps_room, e->count + 1) ||
        !ACS_GROW(e->behind, e->behind_room, e->behind_count + behind->count))
        return false;
    e->first[0] = 0;
    for (uint32_t i = 0; i < behind->count; i++)
        e->behind[e->behind_count++] = node_of(behind->list[i]);
    e->steps[e->count] = op->steps;
    e->ops[e->count++] = *op;
    e->first[e->count] = e->behind_count;
    return true;
}

/* Callback of the order: an empty node behind many. */
static acs_status add_join(void *user, const acs_nodes *behind, acs_nodes *end)
{
    ending *e = user;
    const acs_nodes none = {NULL, 0, 0};
    acs_nodes made = {NULL, 0, 0};
    acs_graph *graph = e->graph;
    acs_status status = acs_graph_backend(graph)->add(graph->context->backend, e->stream, e->id, NULL, NULL, &none, &made);
    const uint32_t at = graph->nodes.count;
    const acs_graph_piece op = {.first_at = at, .first_count = 1, .end_at = at, .end_count = 1, .steps = 1};
    bool room = true;
    if (status == ACS_OK)
        room = acs_graph_add_node(graph, made.list[0]) && add_node(e, &op, behind) &&
               acs_nodes_add(end, handle_of(e->count - 1));
    acs_nodes_fini(&made);
    return room ? status : acs_graph_no_memory();
}

/* Copy the op's segments to `list`, and describe the op to the order. */
static bool describe_op(const acs_graph *graph, const acs_graph_piece *op, acs_segment **list, uint32_t *room,
                        acs_record *record)
{
    static const acs_site unknown = {"op of a graph", NULL, 0};
    uint32_t count = 0;
    for (uint32_t s = op->segment; s != UINT32_MAX; s = graph->segments[s].before)
        count++;
    if (!ACS_GROW(*list, *room, count + 1))
        return false;
    *record = (acs_record){.kind = ACS_KIND_KERNEL, .site = op->site ? op->site : &unknown, .any = op->any};
    record->segments = *list;
    for (uint32_t s = op->segment; s != UINT32_MAX; s = graph->segments[s].before)
        (*list)[record->segment_count++] = graph->segments[s].segment;
    return true;
}

/* Place the op behind those that the order names, and behind those from which the capture made edges. */
static bool place_op(ending *e, acs_graph_piece *op, const acs_nodes *behind)
{
    const acs_graph *graph = e->graph;
    acs_nodes all = {NULL, 0, 0};
    op->placed = e->count;
    e->early |= op->early;
    if (!op->present_count)
        return add_node(e, op, behind);
    bool room = acs_nodes_set(&all, behind->list, behind->count);
    for (uint32_t i = 0; room && i < op->present_count; i++)
        room = acs_nodes_add(&all, handle_of(graph->ops[graph->present[op->present_at + i].op].placed));
    room = room && add_node(e, op, &all);
    acs_nodes_fini(&all);
    return room;
}

static acs_status order_op(ending *e, acs_capture_order *order, acs_graph_piece *op, acs_record *record)
{
    acs_nodes behind = {NULL, 0, 0}, ends = {NULL, 0, 0};
    uint64_t number;
    acs_status status = acs_capture_order_take(order, record, false, &behind);
    if (status == ACS_OK && op->end_count) {
        const bool room = place_op(e, op, &behind) && acs_nodes_add(&ends, handle_of(op->placed));
        status = room ? ACS_OK : acs_graph_no_memory();
    }
    if (status == ACS_OK)
        status = acs_capture_order_put(order, op->end_count ? &ends : &behind, &number);
    acs_nodes_fini(&behind);
    acs_nodes_fini(&ends);
    return status;
}

/* Find what each op has to be behind. */
static acs_status order_ops(ending *e)
{
    const acs_options *options = &e->graph->context->options;
    const acs_capture_order_config config = {
        .limit = TUNE_CAPTURE_WINDOW,
        .in_order = options->serial || options->disable,
        .join = add_join,
        .user = e,
    };
    acs_capture_order *order = NULL;
    acs_segment *list = NULL;
    uint32_t room = 0;
    acs_record record;
    ACS_TRY(acs_capture_order_create(&config, &order));
    acs_status status = ACS_OK;
    for (uint32_t i = 0; i < e->graph->op_count && status == ACS_OK; i++)
        status = describe_op(e->graph, &e->graph->ops[i], &list, &room, &record)
                     ? order_op(e, order, &e->graph->ops[i], &record)
                     : acs_graph_no_memory();
    acs_capture_order_destroy(order);
    free(list);
    return status;
}

static bool is_present(const acs_graph *graph, const acs_graph_piece *op, const void *from, const void *to)
{
    for (uint32_t i = op->present_at; i < op->present_at + op->present_count; i++)
        if (graph->present[i].from == from && graph->present[i].to == to)
            return true;
    return false;
}

/* Make edges from all ends of one op to all first nodes of another, but for those that are there. */
static acs_status link_ops(ending *e, const acs_graph_edge *edge)
{
    const acs_graph_piece *up = &e->ops[edge->from], *down = &e->ops[edge->to];
    void *const *nodes = e->graph->nodes.list;
    const bool early = down->early && up->number && up->number + 1 == down->number; /* GRAPH-1 */
    links *made = early ? &e->programmatic : &e->full;
    const uint32_t count = made->from.count + up->end_count * down->first_count;
    if (!acs_nodes_reserve(&made->from, count) || !acs_nodes_reserve(&made->to, count))
        return acs_graph_no_memory();
    for (uint32_t u = 0; u < up->end_count; u++)
        for (uint32_t d = 0; d < down->first_count; d++) {
            void *from = nodes[up->end_at + u], *to = nodes[down->first_at + d];
            if (is_present(e->graph, down, from, to))
                continue;
            made->from.list[made->from.count++] = from;
            made->to.list[made->to.count++] = to;
        }
    return ACS_OK;
}

static void links_fini(links *made)
{
    acs_nodes_fini(&made->from);
    acs_nodes_fini(&made->to);
}

static acs_status add_links(const ending *e, const links *made, bool programmatic)
{
    const acs_graph *graph = e->graph;
    return acs_graph_backend(graph)->link(graph->context->backend, e->stream, e->id, &made->from, &made->to, programmatic);
}

/*
 * Let the stream's next work come behind the ops that no other op is behind. That work may be a kernel that begins early,
 * and its edges then become programmatic; only one from the kernel before it may (GRAPH-1). An empty node makes the others
 * full.
 */
static acs_status follow_ops(ending *e, const bool *followed)
{
    const acs_capture_ops *ops = acs_graph_backend(e->graph);
    acs_backend *backend = e->graph->context->backend;
    acs_nodes last = {NULL, 0, 0}, empty = {NULL, 0, 0};
    bool room = true, one = true;
    for (uint32_t i = 0; i < e->count; i++)
        for (uint32_t n = 0; n < e->ops[i].end_count && !followed[i]; n++) {
            room &= acs_nodes_add(&last, e->graph->nodes.list[e->ops[i].end_at + n]);
            one &= i == e->count - 1;
        }
    acs_status status = room ? ACS_OK : acs_graph_no_memory();
    if (status == ACS_OK && e->early && !one)
        status = ops->add(backend, e->stream, e->id, NULL, NULL, &last, &empty);
    if (status == ACS_OK)
        status = ops->follow(backend, e->stream, e->id, empty.count ? &empty : &last);
    acs_nodes_fini(&last);
    acs_nodes_fini(&empty);
    return status;
}

/* Give the graph its edges, and let the stream's next work come behind all ops. */
static acs_status link_all(ending *e, const acs_graph_shape *shape)
{
    bool *followed = calloc((size_t)e->count + 1, sizeof *followed);
    acs_status status = followed ? ACS_OK : acs_graph_no_memory();
    for (uint32_t i = 0; i < shape->edge_count && status == ACS_OK; i++) {
        status = link_ops(e, &shape->edges[i]);
        followed[shape->edges[i].from] = true;
    }
    if (status == ACS_OK)
        status = add_links(e, &e->full, false);
    if (status == ACS_OK)
        status = add_links(e, &e->programmatic, true);
    if (status == ACS_OK)
        status = follow_ops(e, followed);
    free(followed);
    return status;
}

/* The edges as the footprints have them. */
static bool plain_shape(const acs_graph_plan *graph, acs_graph_shape *shape)
{
    *shape = (acs_graph_shape){.edges = calloc((size_t)graph->first[graph->count] + 1, sizeof *shape->edges)};
    for (uint32_t i = 0; shape->edges && i < graph->count; i++)
        for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++)
            shape->edges[shape->edge_count++] = (acs_graph_edge){graph->behind[k], i};
    return shape->edges != NULL;
}

/* The number of chains for a graph of this kind. */
static uint32_t chains_for(const acs_graph *graph)
{
    for (uint32_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i].steps > 1)
            return TUNE_GRAPH_LOOP_CHAINS;
    return TUNE_GRAPH_CHAINS;
}

static acs_status make_edges(ending *e, uint32_t chains, acs_graph_report *report)
{
    acs_graph_shape shape = {0};
    ACS_TRY(order_ops(e));
    if (!e->count)
        return ACS_OK;
    const acs_graph_plan graph = {e->count, e->first, e->behind, e->steps};
    const bool plain = chains == ACS_GRAPH_CHAINS_ANY;
    chains = chains ? chains : chains_for(e->graph);
    if (!(plain ? plain_shape(&graph, &shape) : acs_graph_shape_make(&graph, chains, &shape)))
        return acs_graph_no_memory();
    acs_status status = link_all(e, &shape);
    report->nodes = e->count;
    report->edges = e->full.from.count + e->programmatic.from.count;
    report->levels = shape.levels;
    report->chains = shape.chains;
    report->programmatic = e->programmatic.from.count;
    e->longest = shape.steps;
    acs_graph_shape_fini(&shape);
    return status;
}

static int by_memory(const void *a, const void *b)
{
    const acs_segment *x = a, *y = b;
    if (x->base != y->base)
        return x->base < y->base ? -1 : 1;
    if (x->row_bytes != y->row_bytes)
        return x->row_bytes < y->row_bytes ? -1 : 1;
    if (x->rows != y->rows)
        return x->rows < y->rows ? -1 : 1;
    if (x->pitch_bytes != y->pitch_bytes)
        return x->pitch_bytes < y->pitch_bytes ? -1 : 1;
    return x->extent - y->extent;
}

/* Add what the ops of a body touch to its op. The body may not run, so it writes nothing for certain. */
static acs_status add_body(acs_graph *graph, acs_graph_piece *to, const acs_graph *body)
{
    acs_segment *list = calloc((size_t)body->segment_count + 1, sizeof *list);
    acs_status status = list ? ACS_OK : acs_graph_no_memory();
    for (uint32_t i = 1; i < body->op_count; i++) /* what was captured before the ops is no part of the body's work */
        to->any |= body->ops[i].any;
    for (uint32_t i = 0; list && i < body->segment_count; i++) {
        list[i] = body->segments[i].segment;
        list[i].access = list[i].access == ACS_READ ? ACS_READ : ACS_UPDATE;
    }
    if (list)
        qsort(list, body->segment_count, sizeof *list, by_memory);
    for (uint32_t i = 0, next; status == ACS_OK && i < body->segment_count; i = next) {
        for (next = i + 1; next < body->segment_count && !by_memory(&list[i], &list[next]); next++)
            list[i].access |= list[next].access;
        status = acs_graph_add_segment(graph, to, &list[i]);
    }
    free(list);
    return status;
}

/* Make the edges, and tell the graph whose op has this one as its body. */
static acs_status end_graph(ending *e, const acs_graph_params *params, acs_graph_report *report)
{
    acs_graph *above = params ? params->body_of : NULL;
    ACS_TRY(make_edges(e, params ? params->chains : 0, report));
    if (!above)
        return ACS_OK;
    acs_graph_piece *op = &above->ops[params->op];
    const uint64_t steps = op->steps + (uint64_t)TUNE_GRAPH_BODY_ROUNDS * e->longest;
    op->steps = steps < TUNE_GRAPH_STEPS_MOST ? (uint32_t)steps : TUNE_GRAPH_STEPS_MOST;
    return add_body(above, op, e->graph);
}

static acs_status check_params(const acs_graph_params *params)
{
    if (params && params->size != sizeof *params)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_graph_params.size is %zu instead of %zu", params->size, sizeof *params);
    if (params && params->body_of && (!params->op || params->op >= params->body_of->op_count))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "body_of has no op %llu", (unsigned long long)params->op);
    return ACS_OK;
}

acs_status acs_graph_end(acs_graph *graph, void *stream, const acs_graph_params *params, acs_graph_report *report)
{
    acs_graph_report made = {.size = sizeof made};
    ACS_TRY(acs_graph_check(graph, __func__));
    ACS_TRY(check_params(params));
    ending e = {.graph = graph, .stream = stream};
    acs_status status = acs_graph_look(graph, stream, &e.id, NULL);
    made.ops = graph->op_count - 1;
    if (status == ACS_OK)
        status = end_graph(&e, params, &made);
    if (report) {
        made.size = report->size;
        memcpy(report, &made, made.size < sizeof made ? made.size : sizeof made);
    }
    free(e.ops);
    free(e.first);
    free(e.behind);
    free(e.steps);
    links_fini(&e.full);
    links_fini(&e.programmatic);
    acs_graph_cancel(graph);
    return status;
}

/*
 * Graphs by footprints (acs_graph_begin to acs_graph_end): work that a program captures from a stream in its own way,
 * with the footprint of each piece, gets the edges that the footprints need. Owns the list of ops. While ops are added
 * the stream's work depends on nothing; all edges are made at the end, when the whole graph is known. Called by the
 * public functions, on the thread that captures; nothing is shared, so there is no lock.
 */
#include "api/draft.h"
#include "base/tuning.h"
#include "capture/capture_order.h"
#include "capture/graph_shape.h"

#include <stdlib.h>
#include <string.h>

/* An op: where its nodes and segments begin in the graph's lists, and how many they are. */
typedef struct graph_op {
    uint32_t first_at, first_count; /* nodes that depend on nothing in the op */
    uint32_t end_at, end_count;     /* nodes on which nothing in the op depends */
    uint32_t segment;               /* its latest piece of footprint; UINT32_MAX: none */
    uint32_t steps;                 /* time that it takes: see acs_graph_plan */
    const acs_site *site;
    bool any;
} graph_op;

/* A segment of an op, and the one that was added before it. */
typedef struct graph_segment {
    acs_segment segment;
    uint32_t before; /* UINT32_MAX: none */
} graph_segment;

struct acs_graph {
    acs_context *context;
    graph_op *ops;
    uint32_t op_count, op_room;
    graph_segment *segments;
    uint32_t segment_count, segment_room;
    acs_nodes nodes; /* nodes of all ops */
    void **seen;     /* the same, as a hash table: pieces of work that a join of streams reaches twice */
    uint32_t seen_count, seen_room;
};

static acs_status graph_no_memory(void)
{
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the ops of a graph");
}

static const acs_capture_ops *ops_of(const acs_graph *graph)
{
    return graph->context->backend->ops->capture;
}

/* Make room for one more element. */
static bool reserve(void **list, uint32_t *room, uint32_t wanted, size_t bytes)
{
    if (wanted <= *room)
        return true;
    const uint32_t grown = acs_round_up_pow2(wanted < 64 ? 64 : wanted);
    void *moved = realloc(*list, grown * bytes);
    if (!moved)
        return false;
    *list = moved;
    *room = grown;
    return true;
}

/* --------------------------------------------------------------------------------------------------------------- nodes */

static uint32_t place_of(const acs_graph *graph, const void *node)
{
    uint32_t at = (uint32_t)acs_hash64((uint64_t)(uintptr_t)node) & (graph->seen_room - 1);
    while (graph->seen[at] && graph->seen[at] != node)
        at = (at + 1) & (graph->seen_room - 1);
    return at;
}

/* Note the node. *is_new: it was not noted before. False: no memory. */
static bool note(acs_graph *graph, void *node, bool *is_new)
{
    if (2 * (graph->seen_count + 1) > graph->seen_room) {
        void **old = graph->seen;
        const uint32_t old_room = graph->seen_room, room = old_room ? 2 * old_room : 256;
        void **grown = calloc(room, sizeof *grown);
        if (!grown)
            return false;
        graph->seen = grown;
        graph->seen_room = room;
        for (uint32_t i = 0; i < old_room; i++)
            if (old[i])
                grown[place_of(graph, old[i])] = old[i];
        free(old);
    }
    const uint32_t at = place_of(graph, node);
    *is_new = !graph->seen[at];
    graph->seen_count += *is_new;
    graph->seen[at] = node;
    return true;
}

static bool add_to_nodes(acs_graph *graph, void *node)
{
    if (!acs_nodes_reserve(&graph->nodes, graph->nodes.count + 1))
        return false;
    graph->nodes.list[graph->nodes.count++] = node;
    return true;
}

/*
 * Walk back from the ends of new work, and add the nodes to the op that depend on nothing. Nodes of earlier ops, which a
 * wait for an event may lead to, are left alone: their edges are in the graph already.
 */
static acs_status find_first(acs_graph *graph, const acs_nodes *ends, graph_op *op)
{
    acs_nodes stack = {NULL, 0, 0}, behind = {NULL, 0, 0};
    acs_status status = ACS_OK;
    bool room = acs_nodes_set(&stack, ends->list, ends->count), is_new = false;
    op->first_at = graph->nodes.count;
    while (room && status == ACS_OK && stack.count) {
        void *node = stack.list[--stack.count];
        room = note(graph, node, &is_new);
        if (!room || !is_new)
            continue;
        status = ops_of(graph)->upstream(graph->context->backend, node, &behind);
        if (status == ACS_OK && !behind.count)
            room = add_to_nodes(graph, node);
        for (uint32_t i = 0; room && i < behind.count; i++)
            room = acs_nodes_add(&stack, behind.list[i]);
    }
    op->first_count = graph->nodes.count - op->first_at;
    acs_nodes_fini(&stack);
    acs_nodes_fini(&behind);
    return room ? status : graph_no_memory();
}

/* Take what the stream captured since it was cut. Its next work depends on nothing. */
static acs_status cut(acs_graph *graph, void *stream, bool begins, graph_op *op)
{
    const acs_nodes none = {NULL, 0, 0};
    acs_backend *backend = graph->context->backend;
    acs_nodes ends = {NULL, 0, 0};
    uint64_t id = 0;
    bool room = true, is_new = false;
    acs_status status = ops_of(graph)->look(backend, stream, &id, &ends);
    if (status == ACS_OK && !id)
        status = ACS_FAIL(ACS_ERR_STATE, 0, "the stream %p is not being captured", stream);
    if (status == ACS_OK && !begins)
        status = find_first(graph, &ends, op);
    op->end_at = graph->nodes.count;
    for (uint32_t i = 0; status == ACS_OK && room && i < ends.count; i++)
        room = (!begins || note(graph, ends.list[i], &is_new)) && add_to_nodes(graph, ends.list[i]);
    op->end_count = graph->nodes.count - op->end_at;
    if (status == ACS_OK)
        status = room ? ops_of(graph)->follow(backend, stream, id, &none) : graph_no_memory();
    acs_nodes_fini(&ends);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- footprints */

static acs_status add_segment(acs_graph *graph, graph_op *op, const acs_segment *segment)
{
    if (!reserve((void **)&graph->segments, &graph->segment_room, graph->segment_count + 1, sizeof *graph->segments))
        return graph_no_memory();
    graph->segments[graph->segment_count] = (graph_segment){*segment, op->segment};
    op->segment = graph->segment_count++;
    return ACS_OK;
}

static acs_status add_segments(acs_graph *graph, graph_op *op, const acs_record *record)
{
    op->any |= record->any;
    for (uint32_t i = 0; i < record->segment_count; i++)
        ACS_TRY(add_segment(graph, op, &record->segments[i]));
    return ACS_OK;
}

/* Check a footprint as a call at `site` gives it, and add it to the op. */
static acs_status add_uses(acs_graph *graph, graph_op *op, const acs_uses *uses, const acs_site *site)
{
    acs_draft draft = {.context = acs_context_enter_op(graph->context, "acs_graph_op", site), .site = site};
    if (!draft.context || !acs_draft_begin(&draft, ACS_KIND_STREAM_WAIT))
        return acs_error_thread()->status;
    const acs_footprint_input input = {.name = site ? site->name : NULL, .user = uses->user};
    draft.record->u.stream.stream = NULL;
    draft.record->u.stream.event = NULL;
    acs_status status = acs_draft_uses(&draft, uses, &input, 0, 0);
    if (status == ACS_OK)
        status = add_segments(graph, op, draft.record);
    if (status == ACS_OK)
        acs_draft_take_back(&draft);
    else
        (void)acs_draft_drop(&draft);
    return status;
}

static graph_op *op_new(acs_graph *graph, const acs_site *site)
{
    if (graph->op_count > UINT32_MAX / 4 ||
        !reserve((void **)&graph->ops, &graph->op_room, graph->op_count + 1, sizeof *graph->ops))
        return NULL;
    graph_op *op = &graph->ops[graph->op_count];
    *op = (graph_op){.segment = UINT32_MAX, .steps = 1, .site = site};
    return op;
}

/* ----------------------------------------------------------------------------------------------------------- the calls */

static acs_status check(acs_graph *graph, const char *function)
{
    if (graph)
        return ACS_OK;
    return acs_fail(ACS_ERR_ARGUMENT, 0, function, "%s: the graph is NULL", function);
}

acs_status acs_graph_begin(acs_context *context, void *stream, acs_graph **graph)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    if (!graph)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "the place of the graph is NULL");
    *graph = NULL;
    if (!context->backend->ops->capture)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "only the CUDA backend has captures");
    acs_graph *made = calloc(1, sizeof *made);
    graph_op *op = NULL;
    if (made) {
        made->context = context;
        op = op_new(made, NULL);
    }
    acs_status status = op ? cut(made, stream, true, op) : graph_no_memory();
    if (status != ACS_OK) {
        acs_graph_cancel(made);
        return status;
    }
    op->any = true;
    made->op_count++;
    *graph = made;
    return ACS_OK;
}

uint64_t acs_graph_op(acs_graph *graph, void *stream, acs_uses uses, const acs_site *site)
{
    if (check(graph, __func__) != ACS_OK)
        return 0;
    graph_op *op = op_new(graph, site);
    if (!op) {
        (void)graph_no_memory();
        return 0;
    }
    if (cut(graph, stream, false, op) != ACS_OK)
        return 0;
    if (!op->end_count)
        return ACS_GRAPH_NO_OP;
    graph->op_count++;
    if (add_uses(graph, op, &uses, site) == ACS_OK)
        return graph->op_count - 1;
    op->any = true; /* the work is in the graph, whatever it touches */
    return 0;
}

/* Send a fill to the stream, and add its nodes to the op. */
static acs_status capture_fill(acs_graph *graph, void *stream, acs_record *fill, graph_op *op)
{
    const acs_nodes none = {NULL, 0, 0};
    acs_nodes ends = {NULL, 0, 0};
    uint64_t id = 0;
    bool room = true, is_new;
    ACS_TRY(ops_of(graph)->look(graph->context->backend, stream, &id, NULL));
    acs_status status = ops_of(graph)->add(graph->context->backend, stream, id, fill, NULL, &none, &ends);
    op->first_at = op->end_at = graph->nodes.count;
    for (uint32_t i = 0; status == ACS_OK && room && i < ends.count; i++)
        room = note(graph, ends.list[i], &is_new) && add_to_nodes(graph, ends.list[i]);
    op->first_count = op->end_count = graph->nodes.count - op->first_at;
    acs_nodes_fini(&ends);
    return room ? status : graph_no_memory();
}

uint64_t acs_graph_memset(acs_graph *graph, void *stream, void *dst, int value, size_t bytes, const acs_site *site)
{
    static const acs_site unknown = {"acs_graph_memset", NULL, 0};
    const acs_segment segment = ACS_OUT(dst, bytes);
    const acs_uses uses = {.segments = &segment, .count = 1}, any = {.any = 1};
    acs_record fill = {.kind = ACS_KIND_MEMSET, .site = site ? site : &unknown};
    if (check(graph, __func__) != ACS_OK || !acs_graph_op(graph, stream, any, NULL))
        return 0;
    if (!bytes)
        return ACS_GRAPH_NO_OP;
    fill.u.copy.dst = dst;
    fill.u.copy.bytes = bytes;
    fill.u.copy.rows = 1;
    fill.u.copy.value = value;
    graph_op *op = op_new(graph, site);
    if (!op) {
        (void)graph_no_memory();
        return 0;
    }
    if (add_uses(graph, op, &uses, site) != ACS_OK || capture_fill(graph, stream, &fill, op) != ACS_OK)
        return 0;
    return graph->op_count++;
}

acs_status acs_graph_resume(acs_graph *graph, void *stream)
{
    const acs_nodes none = {NULL, 0, 0};
    uint64_t id = 0;
    ACS_TRY(check(graph, __func__));
    ACS_TRY(ops_of(graph)->look(graph->context->backend, stream, &id, NULL));
    if (!id)
        return ACS_FAIL(ACS_ERR_STATE, 0, "the stream %p is not being captured", stream);
    return ops_of(graph)->follow(graph->context->backend, stream, id, &none);
}

void acs_graph_cancel(acs_graph *graph)
{
    if (!graph)
        return;
    free(graph->ops);
    free(graph->segments);
    free(graph->seen);
    acs_nodes_fini(&graph->nodes);
    free(graph);
}

/* --------------------------------------------------------------------------------------------------------------- edges */

/* What becomes of the ops at the end: nodes of the shape are ops that have work, and joins. */
typedef struct ending {
    acs_graph *graph;
    void *stream;
    uint64_t id;
    graph_op *ops;     /* of each node of the shape, the op; a join has one that is made up */
    uint32_t count, room;
    uint32_t *first;   /* count + 1: see acs_graph_plan */
    uint32_t first_room;
    uint32_t *behind;
    uint32_t behind_count, behind_room;
    uint32_t *steps, steps_room;
    uint64_t edges;
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

static bool add_node(ending *e, const graph_op *op, const acs_nodes *behind)
{
    if (!reserve((void **)&e->ops, &e->room, e->count + 1, sizeof *e->ops) ||
        !reserve((void **)&e->first, &e->first_room, e->count + 2, sizeof *e->first) ||
        !reserve((void **)&e->steps, &e->steps_room, e->count + 1, sizeof *e->steps) ||
        !reserve((void **)&e->behind, &e->behind_room, e->behind_count + behind->count, sizeof *e->behind))
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
    acs_status status = ops_of(graph)->add(graph->context->backend, e->stream, e->id, NULL, NULL, &none, &made);
    const graph_op op = {.first_at = graph->nodes.count, .first_count = 1, .end_at = graph->nodes.count, .end_count = 1,
                         .steps = 1};
    bool room = true;
    if (status == ACS_OK)
        room = add_to_nodes(graph, made.list[0]) && add_node(e, &op, behind) && acs_nodes_add(end, handle_of(e->count - 1));
    acs_nodes_fini(&made);
    return room ? status : graph_no_memory();
}

/* Copy the op's segments to `list`, and describe the op to the order. */
static bool describe_op(const acs_graph *graph, const graph_op *op, acs_segment **list, uint32_t *room, acs_record *record)
{
    static const acs_site unknown = {"op of a graph", NULL, 0};
    uint32_t count = 0;
    for (uint32_t s = op->segment; s != UINT32_MAX; s = graph->segments[s].before)
        count++;
    if (!reserve((void **)list, room, count + 1, sizeof **list))
        return false;
    *record = (acs_record){.kind = ACS_KIND_KERNEL, .site = op->site ? op->site : &unknown, .any = op->any};
    record->segments = *list;
    for (uint32_t s = op->segment; s != UINT32_MAX; s = graph->segments[s].before)
        (*list)[record->segment_count++] = graph->segments[s].segment;
    return true;
}

static acs_status order_op(ending *e, acs_capture_order *order, const graph_op *op, acs_record *record)
{
    acs_nodes behind = {NULL, 0, 0}, ends = {NULL, 0, 0};
    uint64_t number;
    acs_status status = acs_capture_order_take(order, record, false, &behind);
    if (status == ACS_OK && op->end_count) {
        const bool room = add_node(e, op, &behind) && acs_nodes_add(&ends, handle_of(e->count - 1));
        status = room ? ACS_OK : graph_no_memory();
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
                     : graph_no_memory();
    acs_capture_order_destroy(order);
    free(list);
    return status;
}

/* Make edges from all ends of one op to all first nodes of another. */
static acs_status link_ops(ending *e, const acs_graph_edge *edge, acs_nodes *from, acs_nodes *to)
{
    const graph_op *up = &e->ops[edge->from], *down = &e->ops[edge->to];
    void *const *nodes = e->graph->nodes.list;
    const uint32_t count = up->end_count * down->first_count;
    if (!acs_nodes_reserve(from, from->count + count) || !acs_nodes_reserve(to, to->count + count))
        return graph_no_memory();
    for (uint32_t u = 0; u < up->end_count; u++)
        for (uint32_t d = 0; d < down->first_count; d++) {
            from->list[from->count++] = nodes[up->end_at + u];
            to->list[to->count++] = nodes[down->first_at + d];
        }
    e->edges += count;
    return ACS_OK;
}

/* Give the graph its edges, and let the stream's next work come behind all ops. */
static acs_status link_all(ending *e, const acs_graph_shape *shape)
{
    acs_backend *backend = e->graph->context->backend;
    acs_nodes from = {NULL, 0, 0}, to = {NULL, 0, 0}, last = {NULL, 0, 0};
    bool *followed = calloc((size_t)e->count + 1, sizeof *followed);
    acs_status status = followed ? ACS_OK : graph_no_memory();
    for (uint32_t i = 0; i < shape->edge_count && status == ACS_OK; i++) {
        status = link_ops(e, &shape->edges[i], &from, &to);
        followed[shape->edges[i].from] = true;
    }
    for (uint32_t i = 0; i < e->count && status == ACS_OK; i++)
        for (uint32_t n = 0; n < e->ops[i].end_count && !followed[i] && status == ACS_OK; n++)
            if (!acs_nodes_add(&last, e->graph->nodes.list[e->ops[i].end_at + n]))
                status = graph_no_memory();
    if (status == ACS_OK)
        status = ops_of(e->graph)->link(backend, e->stream, e->id, &from, &to);
    if (status == ACS_OK)
        status = ops_of(e->graph)->follow(backend, e->stream, e->id, &last);
    free(followed);
    acs_nodes_fini(&from);
    acs_nodes_fini(&to);
    acs_nodes_fini(&last);
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
        return graph_no_memory();
    acs_status status = link_all(e, &shape);
    report->nodes = e->count;
    report->edges = e->edges;
    report->levels = shape.levels;
    report->chains = shape.chains;
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
static acs_status add_body(acs_graph *graph, graph_op *to, const acs_graph *body)
{
    acs_segment *list = calloc((size_t)body->segment_count + 1, sizeof *list);
    acs_status status = list ? ACS_OK : graph_no_memory();
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
        status = add_segment(graph, to, &list[i]);
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
    graph_op *op = &above->ops[params->op];
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
    ACS_TRY(check(graph, __func__));
    ACS_TRY(check_params(params));
    ending e = {.graph = graph, .stream = stream};
    acs_status status = ops_of(graph)->look(graph->context->backend, stream, &e.id, NULL);
    if (status == ACS_OK && !e.id)
        status = ACS_FAIL(ACS_ERR_STATE, 0, "the stream %p is not being captured", stream);
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
    acs_graph_cancel(graph);
    return status;
}

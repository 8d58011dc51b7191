/*
 * Graphs by footprints, until they end (see graph.h): pieces of work that a program captured become ops with footprints.
 * Finds the nodes of each piece, by walking back from its ends. Makes no edge.
 */
#include "capture/graph.h"

#include "api/expand.h"
#include "base/hash.h"

#include <stdlib.h>

/* A node that was found, and the index of its op. */
typedef struct acs_graph_seen {
    void *node;
    uint32_t op;
    int hash_failed;
    UT_hash_handle hh;
} seen;

acs_status acs_graph_no_memory(void)
{
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the ops of a graph");
}

/* --------------------------------------------------------------------------------------------------------------- nodes */

static seen *find_seen(const acs_graph *graph, void *node)
{
    seen *found;
    HASH_FIND_PTR(graph->seen, &node, found);
    return found;
}

/* Note the node as one of the op that is being recorded. *is_new: it was not noted before. False: no memory. */
static bool note(acs_graph *graph, void *node, bool *is_new)
{
    *is_new = !find_seen(graph, node);
    if (!*is_new)
        return true;
    seen *added = calloc(1, sizeof *added);
    if (!added)
        return false;
    added->node = node;
    added->op = graph->op_count;
    HASH_ADD_PTR(graph->seen, node, added);
    if (!added->hash_failed)
        return true;
    free(added);
    return false;
}

static void forget_seen(acs_graph *graph)
{
    seen *at, *next;
    HASH_ITER(hh, graph->seen, at, next) {
        HASH_DEL(graph->seen, at);
        free(at);
    }
}

bool acs_graph_add_node(acs_graph *graph, void *node)
{
    if (!acs_nodes_reserve(&graph->nodes, graph->nodes.count + 1))
        return false;
    graph->nodes.list[graph->nodes.count++] = node;
    return true;
}

static bool add_present(acs_graph *graph, acs_graph_piece *op, void *from, void *to, uint32_t from_op)
{
    if (!ACS_GROW(graph->present, graph->present_room, graph->present_count + 1))
        return false;
    graph->present[graph->present_count++] = (acs_graph_present){from, to, from_op};
    op->present_count++;
    return true;
}

/* Go from a node to those that it depends on. If none of these belongs to the op, it is one of the op's first nodes. */
static bool look_behind(acs_graph *graph, acs_graph_piece *op, void *node, const acs_nodes *behind, acs_nodes *stack)
{
    bool first = true, room = true;
    for (uint32_t i = 0; room && i < behind->count; i++) {
        const seen *of = find_seen(graph, behind->list[i]);
        const bool earlier = of && of->op != graph->op_count;
        first &= earlier;
        room = earlier ? add_present(graph, op, behind->list[i], node, of->op) : acs_nodes_add(stack, behind->list[i]);
    }
    return room && (!first || acs_graph_add_node(graph, node));
}

/*
 * Walk back from the ends of new work, and add the nodes to the op that depend on nothing in it. An edge from a node of
 * an earlier op, which a wait for an event makes, stays, and orders the ops.
 */
static acs_status find_first(acs_graph *graph, const acs_nodes *ends, acs_graph_piece *op)
{
    acs_nodes stack = {NULL, 0, 0}, behind = {NULL, 0, 0};
    acs_status status = ACS_OK;
    bool room = acs_nodes_set(&stack, ends->list, ends->count), is_new = false;
    op->first_at = graph->nodes.count;
    op->present_at = graph->present_count;
    while (room && status == ACS_OK && stack.count) {
        void *node = stack.list[--stack.count];
        room = note(graph, node, &is_new);
        if (!room || !is_new)
            continue;
        status = acs_graph_backend(graph)->upstream(graph->context->backend, node, &behind);
        if (status == ACS_OK)
            room = look_behind(graph, op, node, &behind, &stack);
    }
    op->first_count = graph->nodes.count - op->first_at;
    acs_nodes_fini(&stack);
    acs_nodes_fini(&behind);
    return room ? status : acs_graph_no_memory();
}

acs_status acs_graph_look(const acs_graph *graph, void *stream, uint64_t *id, acs_nodes *ends)
{
    ACS_TRY(acs_graph_backend(graph)->look(graph->context->backend, stream, id, ends));
    return *id ? ACS_OK : ACS_FAIL(ACS_ERR_STATE, 0, "the stream %p is not being captured", stream);
}

/* ---------------------------------------------------------------------------------------------------------- the stream */

/* Let the stream's next work depend on nothing. */
static acs_status follow_nothing(acs_graph *graph, void *stream, uint64_t id)
{
    const acs_nodes none = {NULL, 0, 0};
    graph->last = NULL;
    return acs_graph_backend(graph)->follow(graph->context->backend, stream, id, &none);
}

/* Leave the stream's next work behind the op, for the type of its edge to be seen, or let it depend on nothing. */
static acs_status leave_stream(acs_graph *graph, void *stream, uint64_t id, const acs_nodes *ends)
{
    if (graph->fixed || ends->count != 1 ||
        !acs_graph_backend(graph)->may_trigger(graph->context->backend, ends->list[0]))
        return follow_nothing(graph, stream, id);
    graph->last = ends->list[0];
    return ACS_OK;
}

/* Take the edges from the end of the op before out of those that are present. *to: the nodes that they lead to. */
static bool take_last_edges(acs_graph *graph, acs_graph_piece *op, acs_nodes *to)
{
    bool room = true;
    uint32_t kept = op->present_at;
    for (uint32_t i = op->present_at; i < graph->present_count; i++) {
        if (graph->last && graph->present[i].from == graph->last)
            room &= acs_nodes_add(to, graph->present[i].to);
        else
            graph->present[kept++] = graph->present[i];
    }
    graph->present_count = kept;
    op->present_count = kept - op->present_at;
    return room;
}

/* The edges from the end of the op before stay, since CUDA removes no edges of this graph. */
static bool keep_last_edges(acs_graph *graph, acs_graph_piece *op, const acs_nodes *to)
{
    const seen *of = find_seen(graph, graph->last);
    bool room = of != NULL;
    ACS_ASSERT(room);
    graph->fixed = true;
    for (uint32_t i = 0; room && i < to->count; i++)
        room = add_present(graph, op, graph->last, to->list[i], of->op);
    return room;
}

/* Remove the edges from the end of the op before, behind which the op was captured, and note whether it may begin early. */
static acs_status cut_off(acs_graph *graph, void *stream, uint64_t id, acs_graph_piece *op)
{
    acs_nodes to = {NULL, 0, 0};
    bool room = take_last_edges(graph, op, &to), programmatic = false;
    acs_status status = ACS_OK;
    if (room && to.count)
        status = acs_graph_backend(graph)->detach(graph->context->backend, stream, id, graph->last, &to, &programmatic);
    if (status == ACS_NOT_READY) {
        room = keep_last_edges(graph, op, &to);
        status = ACS_OK;
    }
    op->early = programmatic && op->first_count == 1 && graph->nodes.list[op->first_at] == to.list[0];
    acs_nodes_fini(&to);
    return room ? status : acs_graph_no_memory();
}

/* The end of the op before is none of this one. Returns whether it was one. */
static bool forget_last(const acs_graph *graph, acs_nodes *ends)
{
    const uint32_t count = ends->count;
    for (uint32_t i = 0; i < ends->count; i++)
        if (ends->list[i] == graph->last)
            ends->list[i--] = ends->list[--ends->count];
    return ends->count != count;
}

/* Find the op's first nodes and ends among what the stream captured since its latest op. */
static acs_status take_nodes(acs_graph *graph, void *stream, uint64_t id, const acs_nodes *ends, acs_graph_piece *op)
{
    bool room = true;
    ACS_TRY(find_first(graph, ends, op));
    ACS_TRY(cut_off(graph, stream, id, op));
    op->end_at = graph->nodes.count;
    for (uint32_t i = 0; room && i < ends->count; i++)
        room = acs_graph_add_node(graph, ends->list[i]);
    op->end_count = graph->nodes.count - op->end_at;
    return room ? ACS_OK : acs_graph_no_memory();
}

/* Take what the stream captured since it was cut. */
static acs_status cut(acs_graph *graph, void *stream, acs_graph_piece *op)
{
    acs_nodes ends = {NULL, 0, 0};
    uint64_t id = 0;
    acs_status status = acs_graph_look(graph, stream, &id, &ends);
    const bool joined = forget_last(graph, &ends);
    if (status == ACS_OK && ends.count)
        status = take_nodes(graph, stream, id, &ends, op);
    if (status == ACS_OK && ends.count)
        status = joined || !op->first_count ? follow_nothing(graph, stream, id) : leave_stream(graph, stream, id, &ends);
    acs_nodes_fini(&ends);
    return status;
}

/* Take what the stream captured before the graph began: its ends alone. */
static acs_status cut_before(acs_graph *graph, void *stream, acs_graph_piece *op)
{
    acs_nodes ends = {NULL, 0, 0};
    uint64_t id = 0;
    bool room = true, is_new;
    acs_status status = acs_graph_look(graph, stream, &id, &ends);
    for (uint32_t i = 0; status == ACS_OK && room && i < ends.count; i++)
        room = note(graph, ends.list[i], &is_new) && acs_graph_add_node(graph, ends.list[i]);
    op->end_count = graph->nodes.count;
    if (status == ACS_OK)
        status = room ? leave_stream(graph, stream, id, &ends) : acs_graph_no_memory();
    acs_nodes_fini(&ends);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- footprints */

acs_status acs_graph_add_segment(acs_graph *graph, acs_graph_piece *op, const acs_segment *segment)
{
    if (!ACS_GROW(graph->segments, graph->segment_room, graph->segment_count + 1))
        return acs_graph_no_memory();
    graph->segments[graph->segment_count] = (acs_graph_segment){*segment, op->segment};
    op->segment = graph->segment_count++;
    return ACS_OK;
}

static acs_status add_segments(acs_graph *graph, acs_graph_piece *op, const acs_record *record)
{
    op->any |= record->any;
    for (uint32_t i = 0; i < record->segment_count; i++)
        ACS_TRY(acs_graph_add_segment(graph, op, &record->segments[i]));
    return ACS_OK;
}

/* Check a footprint that a call of `function` gives, and add it to the op. */
static acs_status add_uses(acs_graph *graph, acs_graph_piece *op, const acs_uses *uses, const char *function)
{
    const acs_site *site = op->site;
    acs_draft draft = {.context = acs_context_enter_op(graph->context, function, site), .site = site};
    if (!draft.context || !acs_draft_begin(&draft, ACS_KIND_STREAM_WAIT))
        return acs_error_thread()->status;
    draft.record->u.stream.stream = NULL;
    draft.record->u.stream.event = NULL;
    acs_status status = acs_draft_expand(&draft, uses, 0, 0);
    if (status == ACS_OK)
        status = add_segments(graph, op, draft.record);
    if (status == ACS_OK)
        acs_draft_take_back(&draft);
    else
        (void)acs_draft_drop(&draft);
    return status;
}

/* NULL with an error: no memory. */
static acs_graph_piece *op_new(acs_graph *graph, const acs_site *site)
{
    if (!ACS_GROW(graph->ops, graph->op_room, (uint64_t)graph->op_count + 1)) {
        (void)acs_graph_no_memory();
        return NULL;
    }
    acs_graph_piece *op = &graph->ops[graph->op_count];
    *op = (acs_graph_piece){.segment = UINT32_MAX, .steps = 1, .site = site, .number = graph->op_count + 1};
    return op;
}

/* ----------------------------------------------------------------------------------------------------------- the calls */

acs_status acs_graph_check(const acs_graph *graph, const char *function)
{
    if (graph)
        return ACS_OK;
    return acs_fail(ACS_ERR_ARGUMENT, 0, function, "%s: the graph is NULL", function);
}

acs_status acs_graph_begin(acs_context *context, void *stream, acs_graph **graph)
{
    if (!graph)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "the place of the graph is NULL");
    *graph = NULL;
    ACS_ENTER(context);
    if (!context->backend->ops->capture)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "only the CUDA backend has captures");
    acs_graph *made = calloc(1, sizeof *made);
    if (!made)
        return acs_graph_no_memory();
    made->context = context;
    acs_graph_piece *op = op_new(made, NULL);
    acs_status status = op ? cut_before(made, stream, op) : ACS_ERR_MEMORY;
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
    if (acs_graph_check(graph, __func__) != ACS_OK)
        return 0;
    acs_graph_piece *op = op_new(graph, site);
    if (!op || cut(graph, stream, op) != ACS_OK)
        return 0;
    if (!op->end_count)
        return ACS_GRAPH_NO_OP;
    graph->op_count++;
    if (add_uses(graph, op, &uses, __func__) == ACS_OK)
        return graph->op_count - 1;
    op->any = true; /* the work is in the graph, whatever it touches */
    return 0;
}

acs_status acs_graph_add_uses(acs_graph *graph, uint64_t op, acs_uses uses)
{
    ACS_TRY(acs_graph_check(graph, __func__));
    if (!op || op >= graph->op_count)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "the graph has no op %llu", (unsigned long long)op);
    return add_uses(graph, &graph->ops[op], &uses, __func__);
}

/* Send a fill to the stream, and add its nodes to the op. */
static acs_status capture_fill(acs_graph *graph, void *stream, acs_record *fill, acs_graph_piece *op)
{
    const acs_nodes none = {NULL, 0, 0};
    acs_nodes ends = {NULL, 0, 0};
    uint64_t id = 0;
    bool room = true, is_new;
    ACS_TRY(acs_graph_look(graph, stream, &id, NULL));
    acs_status status = acs_graph_backend(graph)->add(graph->context->backend, stream, id, fill, NULL, &none, &ends);
    op->first_at = op->end_at = graph->nodes.count;
    for (uint32_t i = 0; status == ACS_OK && room && i < ends.count; i++)
        room = note(graph, ends.list[i], &is_new) && acs_graph_add_node(graph, ends.list[i]);
    op->first_count = op->end_count = graph->nodes.count - op->first_at;
    acs_nodes_fini(&ends);
    if (status == ACS_OK && room)
        status = follow_nothing(graph, stream, id); /* the next kernel comes behind the fill, in the stream's own order */
    return room ? status : acs_graph_no_memory();
}

uint64_t acs_graph_memset(acs_graph *graph, void *stream, void *dst, int value, size_t bytes, const acs_site *site)
{
    static const acs_site unknown = {"acs_graph_memset", NULL, 0};
    const acs_segment segment = ACS_OUT(dst, bytes);
    const acs_uses uses = {.segments = &segment, .count = 1}, any = {.any = 1};
    acs_record fill = {.kind = ACS_KIND_MEMSET, .site = site ? site : &unknown};
    if (acs_graph_check(graph, __func__) != ACS_OK || !acs_graph_op(graph, stream, any, NULL))
        return 0;
    if (!bytes)
        return ACS_GRAPH_NO_OP;
    fill.u.copy.dst = dst;
    fill.u.copy.bytes = bytes;
    fill.u.copy.rows = 1;
    fill.u.copy.value = value;
    acs_graph_piece *op = op_new(graph, site);
    if (!op || add_uses(graph, op, &uses, __func__) != ACS_OK || capture_fill(graph, stream, &fill, op) != ACS_OK)
        return 0;
    return graph->op_count++;
}

acs_status acs_graph_resume(acs_graph *graph, void *stream)
{
    uint64_t id = 0;
    ACS_TRY(acs_graph_check(graph, __func__));
    ACS_TRY(acs_graph_look(graph, stream, &id, NULL));
    return follow_nothing(graph, stream, id);
}

void acs_graph_cancel(acs_graph *graph)
{
    if (!graph)
        return;
    free(graph->ops);
    free(graph->segments);
    free(graph->present);
    forget_seen(graph);
    acs_nodes_fini(&graph->nodes);
    free(graph);
}

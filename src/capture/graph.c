/*
 * Graphs by footprints, until they end (see graph.h): pieces of work that a program captured become ops with footprints.
 * Finds the nodes of each piece, by walking back from its ends. Makes no edge.
 */
#include "capture/graph.h"

#include <stdlib.h>

acs_status acs_graph_no_memory(void)
{
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the ops of a graph");
}

bool acs_graph_reserve(void **list, uint32_t *room, uint32_t wanted, size_t bytes)
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

/* Note the node. *is_new: it was not noted before. False: no memory. */
static bool note(acs_graph *graph, void *node, bool *is_new)
{
    acs_graph_seen *seen;
    HASH_FIND_PTR(graph->seen, &node, seen);
    *is_new = !seen;
    if (seen)
        return true;
    seen = calloc(1, sizeof *seen);
    if (!seen)
        return false;
    seen->node = node;
    HASH_ADD_PTR(graph->seen, node, seen);
    if (!seen->hash_failed)
        return true;
    free(seen);
    return false;
}

bool acs_graph_add_node(acs_graph *graph, void *node)
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
static acs_status find_first(acs_graph *graph, const acs_nodes *ends, acs_graph_piece *op)
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
        status = acs_graph_backend(graph)->upstream(graph->context->backend, node, &behind);
        if (status == ACS_OK && !behind.count)
            room = acs_graph_add_node(graph, node);
        for (uint32_t i = 0; room && i < behind.count; i++)
            room = acs_nodes_add(&stack, behind.list[i]);
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

/* Take what the stream captured since it was cut. Its next work depends on nothing. */
static acs_status cut(acs_graph *graph, void *stream, bool begins, acs_graph_piece *op)
{
    const acs_nodes none = {NULL, 0, 0};
    acs_backend *backend = graph->context->backend;
    acs_nodes ends = {NULL, 0, 0};
    uint64_t id = 0;
    bool room = true, is_new = false;
    acs_status status = acs_graph_look(graph, stream, &id, &ends);
    if (status == ACS_OK && !begins)
        status = find_first(graph, &ends, op);
    op->end_at = graph->nodes.count;
    for (uint32_t i = 0; status == ACS_OK && room && i < ends.count; i++)
        room = (!begins || note(graph, ends.list[i], &is_new)) && acs_graph_add_node(graph, ends.list[i]);
    op->end_count = graph->nodes.count - op->end_at;
    if (status == ACS_OK)
        status = room ? acs_graph_backend(graph)->follow(backend, stream, id, &none) : acs_graph_no_memory();
    acs_nodes_fini(&ends);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- footprints */

acs_status acs_graph_add_segment(acs_graph *graph, acs_graph_piece *op, const acs_segment *segment)
{
    if (!acs_graph_reserve((void **)&graph->segments, &graph->segment_room, graph->segment_count + 1,
                           sizeof *graph->segments))
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

static acs_graph_piece *op_new(acs_graph *graph, const acs_site *site)
{
    if (graph->op_count > UINT32_MAX / 4 ||
        !acs_graph_reserve((void **)&graph->ops, &graph->op_room, graph->op_count + 1, sizeof *graph->ops))
        return NULL;
    acs_graph_piece *op = &graph->ops[graph->op_count];
    *op = (acs_graph_piece){.segment = UINT32_MAX, .steps = 1, .site = site};
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
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    if (!context->backend->ops->capture)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "only the CUDA backend has captures");
    acs_graph *made = calloc(1, sizeof *made);
    acs_graph_piece *op = NULL;
    if (made) {
        made->context = context;
        op = op_new(made, NULL);
    }
    acs_status status = op ? cut(made, stream, true, op) : acs_graph_no_memory();
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
    if (!op) {
        (void)acs_graph_no_memory();
        return 0;
    }
    if (cut(graph, stream, false, op) != ACS_OK)
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
    if (!op) {
        (void)acs_graph_no_memory();
        return 0;
    }
    if (add_uses(graph, op, &uses, __func__) != ACS_OK || capture_fill(graph, stream, &fill, op) != ACS_OK)
        return 0;
    return graph->op_count++;
}

acs_status acs_graph_resume(acs_graph *graph, void *stream)
{
    const acs_nodes none = {NULL, 0, 0};
    uint64_t id = 0;
    ACS_TRY(acs_graph_check(graph, __func__));
    ACS_TRY(acs_graph_look(graph, stream, &id, NULL));
    return acs_graph_backend(graph)->follow(graph->context->backend, stream, id, &none);
}

void acs_graph_cancel(acs_graph *graph)
{
    acs_graph_seen *seen, *next;
    if (!graph)
        return;
    free(graph->ops);
    free(graph->segments);
    HASH_ITER(hh, graph->seen, seen, next) {
        HASH_DEL(graph->seen, seen);
        free(seen);
    }
    acs_nodes_fini(&graph->nodes);
    free(graph);
}

/*
 * The twin's captures as those see them who put nodes into a graph that is being captured: what the stream's next node
 * depends on, nodes with their edges, user objects that live as long as the graph. Called through the driver table. Streams
 * that join a capture by an event are not known here.
 */
#include "twin_internal.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------------------- nodes */

static const twin_op *node_find(const twin_graph *graph, uintptr_t handle, uint32_t *number)
{
    const twin_op *node = graph->nodes;
    for (*number = 0; node && node->node != handle; node = node->next)
        ++*number;
    return node;
}

bool twin_nodes_check_locked(const twin_graph *graph, const CUgraphNode *nodes, size_t count)
{
    uint32_t number;
    for (size_t i = 0; i < count; i++) {
        if (!node_find(graph, (uintptr_t)nodes[i], &number)) {
            twin_breach_locked("dependency %zu is no node of graph %u", i, graph->base.number);
            return false;
        }
        for (size_t j = 0; j < i; j++)
            if (nodes[j] == nodes[i]) {
                twin_breach_locked("dependencies %zu and %zu are the same node", j, i);
                return false;
            }
    }
    return true;
}

/* All edges full. */
static twin_nodes nodes_copy(const void *list, size_t count)
{
    twin_nodes copy = {twin_memory((count + 1) * sizeof *copy.list), count,
                       twin_memory((count + 1) * sizeof *copy.programmatic)};
    if (count)
        memcpy(copy.list, list, count * sizeof *copy.list);
    return copy;
}

uintptr_t twin_node_add_locked(twin_graph *graph, twin_op *op, const void *behind, size_t count)
{
    twin_node *node = twin_object_new_locked(TWIN_NODE, -1, sizeof *node);
    node->op = op;
    op->node = node->base.handle;
    op->behind = nodes_copy(behind, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t number;
        op->behind.programmatic[i] =
            op->programmatic && node_find(graph, op->behind.list[i], &number)->kind == OP_LAUNCH;
    }
    *(graph->last ? &graph->last->next : &graph->nodes) = op;
    graph->last = op;
    graph->count++;
    return op->node;
}

TWIN_DEFINE(cuGraphAddEmptyNode, (CUgraphNode * node, CUgraph handle, const CUgraphNode *upstream, size_t count),
            (node, handle, upstream, count))
{
    twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    if (!graph || !twin_nodes_check_locked(graph, upstream, count))
        return CUDA_ERROR_INVALID_VALUE;
    twin_op *op = twin_memory(sizeof *op);
    op->kind = OP_EMPTY;
    *node = (CUgraphNode)twin_node_add_locked(graph, op, upstream, count);
    return CUDA_SUCCESS;
}

/* Of the graph, or of the capture, that it is of: handles are unique here. */
static const twin_op *node_anywhere(uintptr_t handle)
{
    const twin_op *found = NULL;
    uint32_t number;
    for (uint32_t i = 0; i < g_twin.object_count && !found; i++)
        if (g_twin.objects[i]->kind == TWIN_GRAPH && g_twin.objects[i]->alive)
            found = node_find((const twin_graph *)g_twin.objects[i], handle, &number);
    return found;
}

static const CUgraphEdgeData g_programmatic = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                               .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};

/* Edges with data cannot be read without it. */
static CUresult dependencies(CUgraphNode node, CUgraphNode *upstream, CUgraphEdgeData *data, size_t *count)
{
    const twin_op *op = node_anywhere((uintptr_t)node);
    if (!op) {
        twin_breach_locked("%p is no node", (void *)node);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (upstream && *count < op->behind.count) {
        twin_breach_locked("room for %zu nodes, there are %zu", *count, op->behind.count);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; upstream && i < op->behind.count; i++) {
        if (op->behind.programmatic[i] && !data)
            return CUDA_ERROR_LOSSY_QUERY;
        upstream[i] = (CUgraphNode)op->behind.list[i];
        if (data)
            data[i] = op->behind.programmatic[i] ? g_programmatic : (CUgraphEdgeData){0};
    }
    *count = op->behind.count;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *upstream, size_t *count), (node, upstream, count))
{
    return dependencies(node, upstream, NULL, count);
}

CUresult twin_node_dependencies(CUgraphNode node, CUgraphNode *upstream, CUgraphEdgeData *data, size_t *count)
{
    CUresult result = twin_enter("cuGraphNodeGetDependencies");
    if (result == CUDA_SUCCESS)
        result = dependencies(node, upstream, data, count);
    twin_leave();
    return result;
}

/* The graph, or the capture, that the node is of. */
static const twin_graph *graph_of(uintptr_t handle)
{
    uint32_t number;
    for (uint32_t i = 0; i < g_twin.object_count; i++)
        if (g_twin.objects[i]->kind == TWIN_GRAPH && g_twin.objects[i]->alive &&
            node_find((const twin_graph *)g_twin.objects[i], handle, &number))
            return (const twin_graph *)g_twin.objects[i];
    return NULL;
}

TWIN_DEFINE(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count),
            (node, nodes, data, count))
{
    const twin_graph *graph = graph_of((uintptr_t)node);
    size_t found = 0;
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    for (const twin_op *op = graph->nodes; op; op = op->next)
        for (size_t i = 0; i < op->behind.count; i++) {
            if (op->behind.list[i] != (uintptr_t)node)
                continue;
            if (nodes && (found == *count || !data))
                return CUDA_ERROR_INVALID_VALUE;
            if (nodes) {
                nodes[found] = (CUgraphNode)op->node;
                data[found] = op->behind.programmatic[i] ? g_programmatic : (CUgraphEdgeData){0};
            }
            found++;
        }
    *count = found;
    return CUDA_SUCCESS;
}

/* Whether a path of edges leads from one node of the graph to another. `seen`: nodes that were looked at. */
static bool leads_to(const twin_graph *graph, uintptr_t from, uintptr_t to, bool *seen)
{
    uint32_t number;
    const twin_op *op = node_find(graph, to, &number);
    if (!op || seen[number])
        return false;
    seen[number] = true;
    for (size_t i = 0; i < op->behind.count; i++)
        if (op->behind.list[i] == from || leads_to(graph, from, op->behind.list[i], seen))
            return true;
    return false;
}

static bool makes_cycle(const twin_graph *graph, CUgraphNode from, CUgraphNode to)
{
    bool *seen = twin_memory(graph->count * sizeof *seen);
    const bool cycle = leads_to(graph, (uintptr_t)to, (uintptr_t)from, seen);
    free(seen);
    return cycle;
}

static twin_op *op_of(twin_graph *graph, CUgraphNode node)
{
    twin_op *op = graph->nodes;
    while (op && op->node != (uintptr_t)node)
        op = op->next;
    return op;
}

/*
 * Whether all edges that a call adds have the same data. Driver 580.159.04 gives all of them the data of the first one,
 * and reports no error. False after a breach.
 */
static bool data_alike(const CUgraphEdgeData *data, size_t count)
{
    for (size_t i = 1; data && i < count; i++)
        if (memcmp(&data[i], data, sizeof *data) != 0) {
            twin_breach_locked("edge %zu has other data than edge 0, which driver 580 gives to all edges of the call", i);
            return false;
        }
    return true;
}

/* NULL: a full edge. False after a breach. */
static bool data_ok(twin_graph *graph, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData full;
    if (!data || memcmp(data, &full, sizeof full) == 0)
        return true;
    const bool kernels = op_of(graph, from)->kind == OP_LAUNCH && op_of(graph, to)->kind == OP_LAUNCH;
    if (kernels && memcmp(data, &g_programmatic, sizeof g_programmatic) == 0)
        return true;
    twin_breach_locked("an edge of type %u from port %u%s", data->type, data->from_port,
                       kernels ? "" : ", not between kernels");
    return false;
}

static bool add_edge_locked(twin_graph *graph, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
    const CUgraphNode both[] = {from, to};
    if (!twin_nodes_check_locked(graph, both, 2) || !data_ok(graph, from, to, data))
        return false;
    twin_op *op = op_of(graph, to);
    for (size_t i = 0; i < op->behind.count; i++)
        if (op->behind.list[i] == (uintptr_t)from) {
            twin_breach_locked("the edge is in graph %u already", graph->base.number);
            return false;
        }
    if (makes_cycle(graph, from, to)) {
        twin_breach_locked("the edge makes a cycle in graph %u", graph->base.number);
        return false;
    }
    twin_nodes before = op->behind;
    op->behind = nodes_copy(before.list, before.count); /* has room for one more */
    memcpy(op->behind.programmatic, before.programmatic, before.count * sizeof *before.programmatic);
    op->behind.programmatic[op->behind.count] = data && data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    op->behind.list[op->behind.count++] = (uintptr_t)from;
    free(before.list);
    free(before.programmatic);
    return true;
}

TWIN_DEFINE(cuGraphAddDependencies,
            (CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count),
            (handle, from, to, data, count))
{
    twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    if (!graph || !data_alike(data, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!add_edge_locked(graph, from[i], to[i], data ? &data[i] : NULL))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* An edge is named with its data. */
static bool remove_edge_locked(twin_graph *graph, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
    twin_op *op = op_of(graph, to);
    for (size_t i = 0; op && i < op->behind.count; i++) {
        const bool programmatic = data && data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        if (op->behind.list[i] != (uintptr_t)from || op->behind.programmatic[i] != programmatic)
            continue;
        op->behind.count--;
        memmove(op->behind.list + i, op->behind.list + i + 1, (op->behind.count - i) * sizeof *op->behind.list);
        memmove(op->behind.programmatic + i, op->behind.programmatic + i + 1,
                (op->behind.count - i) * sizeof *op->behind.programmatic);
        return true;
    }
    twin_breach_locked("the edge is not in graph %u", graph->base.number);
    return false;
}

TWIN_DEFINE(cuGraphRemoveDependencies,
            (CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count),
            (handle, from, to, data, count))
{
    twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!remove_edge_locked(graph, from[i], to[i], data ? &data[i] : NULL))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGraphGetNodes, (CUgraph handle, CUgraphNode *nodes, size_t *count), (handle, nodes, count))
{
    const twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    if (!graph)
        return CUDA_ERROR_INVALID_HANDLE;
    if (nodes && *count < graph->count)
        twin_breach_locked("room for %zu nodes, there are %u", *count, graph->count);
    size_t used = 0;
    for (const twin_op *op = graph->nodes; nodes && op && used < *count; op = op->next)
        nodes[used++] = (CUgraphNode)op->node;
    *count = graph->count;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type), (node, type))
{
    const twin_op *op = node_anywhere((uintptr_t)node);
    if (!op)
        return CUDA_ERROR_INVALID_VALUE;
    *type = op->kind == OP_LAUNCH ? CU_GRAPH_NODE_TYPE_KERNEL
            : op->kind == OP_FILL ? CU_GRAPH_NODE_TYPE_MEMSET
            : op->kind == OP_COPY ? CU_GRAPH_NODE_TYPE_MEMCPY
                                  : CU_GRAPH_NODE_TYPE_EMPTY;
    return CUDA_SUCCESS;
}

/* The function in the context that is current, as the driver gives it. */
TWIN_DEFINE(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params), (node, params))
{
    const twin_op *op = node_anywhere((uintptr_t)node);
    if (!op || op->kind != OP_LAUNCH)
        return CUDA_ERROR_INVALID_VALUE;
    *params = (CUDA_KERNEL_NODE_PARAMS_v2){
        .kern = (CUkernel)op->kernel->base.handle,
        .gridDimX = op->grid[0], .gridDimY = op->grid[1], .gridDimZ = op->grid[2],
        .blockDimX = op->block[0], .blockDimY = op->block[1], .blockDimZ = op->block[2],
        .sharedMemBytes = op->shared,
        .kernelParams = op->args,
    };
    return CUDA_SUCCESS;
}

/* Only arguments are changed here. */
TWIN_DEFINE(cuGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params), (node, params))
{
    twin_node *found = twin_find_locked(node, TWIN_NODE);
    if (!found || found->op->kind != OP_LAUNCH || params->gridDimX != found->op->grid[0])
        return CUDA_ERROR_INVALID_VALUE;
    void **args = twin_args_copy(&found->op->kernel->spec, params->kernelParams);
    free(found->op->args);
    found->op->args = args;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGraphMemsetNodeGetParams, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1 *params), (node, params))
{
    const twin_op *op = node_anywhere((uintptr_t)node);
    if (!op || op->kind != OP_FILL)
        return CUDA_ERROR_INVALID_VALUE;
    *params = (CUDA_MEMSET_NODE_PARAMS_v1){.dst = op->dst, .value = op->value, .elementSize = 1, .width = op->bytes,
                                           .height = 1};
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------------ captures */

/* The graph may be modified while it is captured, so its handle is valid already. */
TWIN_DEFINE(cuStreamGetCaptureInfo,
            (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **ends,
             size_t *count),
            (handle, status, id, graph, ends, count))
{
    twin_stream *stream = NULL;
    CUresult result = twin_stream_ask_locked(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    *status = stream->capture;
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    *id = stream->capture_id;
    if (graph)
        *graph = (CUgraph)stream->captured->base.handle;
    if (ends) {
        *ends = (const CUgraphNode *)(const void *)stream->ends.list;
        *count = stream->ends.count;
    }
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuStreamUpdateCaptureDependencies, (CUstream handle, CUgraphNode *nodes, size_t count, unsigned flags),
            (handle, nodes, count, flags))
{
    twin_stream *stream = NULL;
    CUresult result = twin_stream_use_locked(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        twin_breach_locked("stream %u is not being captured", stream->base.number);
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        twin_breach_locked("flags %u are not known here", flags);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!twin_nodes_check_locked(stream->captured, nodes, count))
        return CUDA_ERROR_INVALID_VALUE;
    twin_nodes before = stream->ends;
    stream->ends = nodes_copy(nodes, count); /* first: the new set may be the stream's own */
    free(before.list);
    free(before.programmatic);
    return CUDA_SUCCESS;
}

void twin_capture_end_locked(twin_stream *stream)
{
    stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
    free(stream->ends.list);
    free(stream->ends.programmatic);
    stream->ends = (twin_nodes){0};
}

/* -------------------------------------------------------------------------------------------------------- user objects */

TWIN_DEFINE(cuUserObjectCreate,
            (CUuserObject * object, void *argument, CUhostFn destroy, unsigned references, unsigned flags),
            (object, argument, destroy, references, flags))
{
    if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC || !references) {
        twin_breach_locked("flags %u, %u references", flags, references);
        return CUDA_ERROR_INVALID_VALUE;
    }
    twin_user_object *made = twin_object_new_locked(TWIN_OWNED, -1, sizeof *made);
    made->references = references;
    made->destroy = destroy;
    made->argument = argument;
    *object = (CUuserObject)made->base.handle;
    return CUDA_SUCCESS;
}

/* Here with the lock held, on a thread of the driver's in CUDA: the function may not call the driver in either. */
static void release(twin_user_object *object, uint32_t count)
{
    object->references -= count;
    if (object->references)
        return;
    object->base.alive = false;
    object->destroy(object->argument);
}

TWIN_DEFINE(cuUserObjectRelease, (CUuserObject handle, unsigned count), (handle, count))
{
    twin_user_object *object = twin_find_locked(handle, TWIN_OWNED);
    if (!object || count > object->references) {
        twin_breach_locked("%u references are not there", count);
        return CUDA_ERROR_INVALID_VALUE;
    }
    release(object, count);
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGraphRetainUserObject, (CUgraph handle, CUuserObject what, unsigned count, unsigned flags),
            (handle, what, count, flags))
{
    twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    twin_user_object *object = twin_find_locked(what, TWIN_OWNED);
    if (!graph || !object || flags != CU_GRAPH_USER_OBJECT_MOVE || count > object->references) {
        twin_breach_locked("flags %u, %u references", flags, count);
        return CUDA_ERROR_INVALID_VALUE;
    }
    twin_owned *owned = twin_memory(sizeof *owned);
    *owned = (twin_owned){graph->owned, object, count};
    graph->owned = owned;
    return CUDA_SUCCESS;
}

twin_owned *twin_owned_copy_locked(const twin_owned *owned)
{
    twin_owned *first = NULL;
    for (; owned; owned = owned->next) {
        twin_owned *copy = twin_memory(sizeof *copy);
        *copy = (twin_owned){first, owned->object, owned->count};
        copy->object->references += copy->count;
        first = copy;
    }
    return first;
}

void twin_owned_release_locked(twin_owned **owned)
{
    while (*owned) {
        twin_owned *next = (*owned)->next;
        release((*owned)->object, (*owned)->count);
        free(*owned);
        *owned = next;
    }
}

/* --------------------------------------------------------------------------------------------------------- observation */

size_t twin_graph_nodes(CUgraph handle)
{
    pthread_mutex_lock(&g_twin.lock);
    const twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    size_t count = graph ? graph->count : 0;
    pthread_mutex_unlock(&g_twin.lock);
    return count;
}

size_t twin_graph_edges(CUgraph handle, uint32_t (*edges)[2], size_t capacity)
{
    pthread_mutex_lock(&g_twin.lock);
    const twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    size_t count = 0;
    uint32_t down = 0;
    for (const twin_op *node = graph ? graph->nodes : NULL; node; node = node->next, down++)
        for (size_t i = 0; i < node->behind.count; i++, count++)
            if (count < capacity) {
                (void)node_find(graph, node->behind.list[i], &edges[count][0]);
                edges[count][1] = down;
            }
    pthread_mutex_unlock(&g_twin.lock);
    return count;
}

size_t twin_graph_programmatic(CUgraph handle)
{
    pthread_mutex_lock(&g_twin.lock);
    const twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    size_t count = 0;
    for (const twin_op *node = graph ? graph->nodes : NULL; node; node = node->next)
        for (size_t i = 0; i < node->behind.count; i++)
            count += node->behind.programmatic[i];
    pthread_mutex_unlock(&g_twin.lock);
    return count;
}

bool twin_edge_programmatic(CUgraph handle, uint32_t from, uint32_t to)
{
    pthread_mutex_lock(&g_twin.lock);
    const twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    bool found = false;
    uint32_t down = 0, up;
    for (const twin_op *node = graph ? graph->nodes : NULL; node; node = node->next, down++)
        for (size_t i = 0; down == to && i < node->behind.count; i++)
            if (node_find(graph, node->behind.list[i], &up) && up == from)
                found |= node->behind.programmatic[i];
    pthread_mutex_unlock(&g_twin.lock);
    return found;
}

uint32_t twin_user_objects(void)
{
    uint32_t count = 0;
    pthread_mutex_lock(&g_twin.lock);
    for (uint32_t i = 0; i < g_twin.object_count; i++)
        count += g_twin.objects[i]->kind == TWIN_OWNED && g_twin.objects[i]->alive;
    pthread_mutex_unlock(&g_twin.lock);
    return count;
}

/*
 * The twin's graphs: made by hand or by a capture, instantiated, updated, launched. Called through the driver table. An
 * executable graph that is in flight may be neither updated nor destroyed here, which is stricter than CUDA: a runtime that
 * keeps graphs must know when each is done. Nodes may be set meanwhile, for later launches; launches of one executable graph
 * run one after another. Nodes run in any order that their edges allow.
 */
#include "twin_internal.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------------------- graphs */

TWIN_DEFINE(cuGraphCreate, (CUgraph * graph, unsigned flags), (graph, flags))
{
    if (flags) {
        twin_breach_locked("flags %u", flags);
        return CUDA_ERROR_INVALID_VALUE;
    }
    twin_graph *made = twin_object_new_locked(TWIN_GRAPH, -1, sizeof *made);
    *graph = (CUgraph)made->base.handle;
    return CUDA_SUCCESS;
}

static void graph_forgive(CUgraph handle)
{
    twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    if (!graph)
        return;
    graph->base.alive = false;
    twin_owned_release_locked(&graph->owned);
}

TWIN_DEFINE_END(cuGraphDestroy, (CUgraph handle), (handle), graph_forgive)
{
    twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    if (!graph)
        return CUDA_ERROR_INVALID_HANDLE;
    graph->base.alive = false;
    twin_owned_release_locked(&graph->owned);
    return CUDA_SUCCESS;
}

/* By the rules of a launch. */
static CUresult node_op(const CUDA_KERNEL_NODE_PARAMS *p, twin_op **op)
{
    CUlaunchConfig config = {.gridDimX = p->gridDimX, .gridDimY = p->gridDimY, .gridDimZ = p->gridDimZ,
                             .blockDimX = p->blockDimX, .blockDimY = p->blockDimY, .blockDimZ = p->blockDimZ,
                             .sharedMemBytes = p->sharedMemBytes};
    return twin_launch_op_locked(&config, p->func ? p->func : (CUfunction)p->kern, p->kernelParams, true, op);
}

TWIN_DEFINE(cuGraphAddKernelNode,
            (CUgraphNode * node, CUgraph handle, const CUgraphNode *upstream, size_t count,
             const CUDA_KERNEL_NODE_PARAMS *params),
            (node, handle, upstream, count, params))
{
    twin_op *op = NULL;
    twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    if (!graph)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!twin_nodes_check_locked(graph, upstream, count))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = node_op(params, &op);
    if (result != CUDA_SUCCESS)
        return result;
    *node = (CUgraphNode)twin_node_add_locked(graph, op, upstream, count);
    return CUDA_SUCCESS;
}

/* --------------------------------------------------------------------------------------------------- executable graphs */

static void *copy_of(const void *memory, size_t bytes)
{
    return memory ? memcpy(twin_memory(bytes), memory, bytes) : NULL;
}

static twin_op *nodes_copy(const twin_op *from)
{
    twin_op *first = NULL, **end = &first;
    for (; from; from = from->next) {
        twin_op *op = copy_of(from, sizeof *op);
        op->next = NULL;
        op->args = from->args ? twin_args_copy(&from->kernel->spec, from->args) : NULL;
        op->ranges = copy_of(from->ranges, from->range_count * sizeof *from->ranges);
        op->behind.list = copy_of(from->behind.list, from->behind.count * sizeof *from->behind.list);
        op->behind.programmatic = copy_of(from->behind.programmatic, from->behind.count * sizeof *from->behind.programmatic);
        op->waits = NULL;
        op->wait_count = 0;
        op->launched = NULL;
        op->run = NULL;
        *end = op;
        end = &op->next;
    }
    return first;
}

TWIN_DEFINE(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph handle, unsigned long long flags),
            (exec, handle, flags))
{
    CUresult result = twin_unsafe_locked();
    twin_graph *graph = twin_find_locked(handle, TWIN_GRAPH);
    int device = twin_device_locked();
    if (!graph || device < 0 || result != CUDA_SUCCESS)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
        twin_breach_locked("flags %llu are not known here", flags);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const twin_op *op = graph->nodes; op && flags; op = op->next)
        if (op->kernel && op->kernel->spec.launches)
            return CUDA_ERROR_INVALID_VALUE;
    twin_exec *made = twin_object_new_locked(TWIN_EXEC, device, sizeof *made);
    made->nodes = nodes_copy(graph->nodes);
    made->owned = twin_owned_copy_locked(graph->owned);
    for (twin_op *op = made->nodes; op; op = op->next) {
        twin_node *node = op->updatable ? twin_find_locked((void *)op->node, TWIN_NODE) : NULL;
        if (node && node->live)
            twin_breach_locked("graph %u has nodes that the device may change, and was instantiated before",
                               graph->base.number);
        if (node) {
            node->live = op;
            node->device = device;
        }
        made->updatable = made->updatable || op->updatable;
    }
    *exec = (CUgraphExec)made->base.handle;
    return CUDA_SUCCESS;
}

/* For a change: not destroyed, of this context, and not in flight. */
static CUresult exec_use(CUgraphExec handle, twin_exec **exec)
{
    CUresult result = twin_use_locked(handle, TWIN_EXEC, exec);
    if (result == CUDA_SUCCESS && (*exec)->in_flight)
        twin_breach_locked("executable graph %u is in flight", (*exec)->base.number);
    return result;
}

TWIN_DEFINE(cuGraphExecKernelNodeSetParams,
            (CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params), (handle, node, params))
{
    twin_exec *exec = NULL;
    twin_op *op = NULL;
    CUresult result = twin_use_locked(handle, TWIN_EXEC, &exec);
    twin_op *old = result == CUDA_SUCCESS ? twin_node_find(exec->nodes, (uintptr_t)node) : NULL;
    if (old && old->updatable)
        exec->uploaded = false;
    if (result == CUDA_SUCCESS && !old) {
        twin_breach_locked("%p is no node of executable graph %u", (void *)node, exec->base.number);
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS)
        result = node_op(params, &op);
    if (result != CUDA_SUCCESS)
        return result;
    twin_op before = *old;
    *old = *op;
    old->next = before.next;
    old->node = before.node;
    old->behind = before.behind;
    old->updatable = before.updatable;
    old->off = before.off;
    before.behind = (twin_nodes){0};
    *op = before; /* its memory goes with the old contents */
    twin_op_free(op);
    return CUDA_SUCCESS;
}

/* For later launches. Nodes that the device may change are left to it here. */
TWIN_DEFINE(cuGraphNodeSetEnabled, (CUgraphExec handle, CUgraphNode node, unsigned int enabled),
            (handle, node, enabled))
{
    twin_exec *exec = NULL;
    CUresult result = twin_use_locked(handle, TWIN_EXEC, &exec);
    twin_op *op = result == CUDA_SUCCESS ? twin_node_find(exec->nodes, (uintptr_t)node) : NULL;
    if (result != CUDA_SUCCESS)
        return result;
    if (!op || op->kind != OP_LAUNCH || op->updatable) {
        twin_breach_locked("%p is no node of executable graph %u that the host may switch", (void *)node,
                           exec->base.number);
        return CUDA_ERROR_INVALID_VALUE;
    }
    op->off = !enabled;
    return CUDA_SUCCESS;
}

/* The same nodes in the same order; else CUDA refuses, which a right program may meet. */
TWIN_DEFINE(cuGraphExecUpdate, (CUgraphExec handle, CUgraph from, CUgraphExecUpdateResultInfo *info),
            (handle, from, info))
{
    twin_exec *exec = NULL;
    twin_graph *graph = twin_find_locked(from, TWIN_GRAPH);
    CUresult result = exec_use(handle, &exec);
    if (!graph || result != CUDA_SUCCESS)
        return graph ? result : CUDA_ERROR_INVALID_HANDLE;
    const twin_op *a = exec->nodes, *b = graph->nodes;
    while (a && b && a->kind == b->kind) {
        a = a->next;
        b = b->next;
    }
    memset(info, 0, sizeof *info);
    info->result = a || b ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (a || b)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    twin_nodes_free(exec->nodes);
    exec->nodes = nodes_copy(graph->nodes);
    twin_owned_release_locked(&exec->owned);
    exec->owned = twin_owned_copy_locked(graph->owned);
    return CUDA_SUCCESS;
}

static void exec_forgive(CUgraphExec handle)
{
    twin_exec *exec = twin_find_locked(handle, TWIN_EXEC);
    if (!exec)
        return;
    exec->base.alive = false;
    twin_owned_release_locked(&exec->owned);
}

TWIN_DEFINE_END(cuGraphExecDestroy, (CUgraphExec handle), (handle), exec_forgive)
{
    twin_exec *exec = NULL;
    CUresult result = exec_use(handle, &exec);
    if (result != CUDA_SUCCESS)
        return result;
    exec->base.alive = false;
    twin_owned_release_locked(&exec->owned);
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGraphLaunch, (CUgraphExec handle, CUstream where), (handle, where))
{
    twin_exec *exec = NULL;
    twin_stream *stream = NULL;
    CUresult result = twin_use_locked(handle, TWIN_EXEC, &exec);
    if (result == CUDA_SUCCESS)
        result = twin_stream_use_locked(where, &stream);
    if (result == CUDA_SUCCESS)
        result = twin_chance_locked(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
        twin_breach_locked("a graph in a capture is not known here");
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (exec->updatable && !exec->uploaded)
        twin_breach_locked("executable graph %u has nodes that the device may change, and was not uploaded",
                           exec->base.number);
    for (twin_op *node = exec->nodes; node; node = node->next)
        if (node->kind == OP_LAUNCH && !node->updatable && !node->off && !twin_touches_ok_locked(node, exec->base.device))
            return CUDA_ERROR_ILLEGAL_ADDRESS; /* sooner than on a GPU, where the kernel faults */
    twin_note_locked("graph", stream, NULL);
    twin_op *op = twin_memory(sizeof *op);
    op->kind = OP_GRAPH;
    op->exec = exec;
    op->launched = nodes_copy(exec->nodes);
    if (exec->in_flight && exec->last.stream != stream) {
        op->waits = copy_of(&exec->last, sizeof exec->last);
        op->wait_count = 1;
    }
    exec->in_flight++;
    exec->last = (twin_point){stream, stream->issued + 1};
    twin_push_locked(stream, op);
    return CUDA_SUCCESS;
}

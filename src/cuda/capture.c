/*
 * The CUDA backend's part of captures: ops become nodes of a graph that another owner's stream capture makes. Called
 * by the runtime through acs_cuda_capture (backend.h), on the capturing thread, under the context's lock of captures.
 * It runs nothing, makes no stream, and leaves the stream as it found it.
 *
 * All kinds of ops go one way. First the stream's next node is told to depend on the op's upstream nodes. Then the op
 * is sent to the stream, as it would be to one of ours. The nodes that the stream's next node would then depend on are
 * the op's ends. So CUDA itself translates attributes, copies of all kinds of memory, and the work of libraries.
 */
#include "cuda/kernel.h"

#include "base/tuning.h"

/* A capture, as the driver describes it; valid until the next call about the stream. */
typedef struct capture_view {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *ends;
    size_t count;
} capture_view;

static CUresult view(acs_cuda *self, CUstream stream, capture_view *v)
{
    *v = (capture_view){.status = CU_STREAM_CAPTURE_STATUS_NONE};
    return self->cu.cuStreamGetCaptureInfo(stream, &v->status, &v->id, &v->graph, &v->ends, &v->count);
}

static acs_status void_capture(CUstream stream)
{
    return ACS_FAIL(ACS_ERR_STATE, cudaErrorStreamCaptureInvalidated,
                    "the capture of stream %p was invalidated by a call that is not allowed in it; end it and begin again",
                    (void *)stream);
}

/* Copy handles of nodes, which are pointers, to the runtime's list of pointers. */
static bool nodes_set(acs_nodes *nodes, const CUgraphNode *list, size_t count)
{
    return acs_nodes_set(nodes, (void *const *)(const void *)list, (uint32_t)count);
}

static CUresult follow(acs_cuda *self, CUstream stream, const acs_nodes *nodes)
{
    return self->cu.cuStreamUpdateCaptureDependencies(stream, (CUgraphNode *)(void *)nodes->list, nodes->count,
                                                      CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

/* Enter a scope to the end of the block, or return the error. */
#define SCOPE_OR_FAIL(self)                                                                                            \
    ACS_CUDA_SCOPE(self);                                                                                              \
    if (scope.entered != CUDA_SUCCESS)                                                                                 \
        return acs_cuda_scope_failed(self, scope.entered)

static acs_status no_memory(void)
{
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the nodes of a capture");
}

/* --------------------------------------------------------------------------------------------------------- asking */

static acs_status capture_look(acs_backend *backend, void *stream, uint64_t *id, acs_nodes *nodes)
{
    acs_cuda *self = (acs_cuda *)backend;
    CUcontext current = NULL;
    capture_view v;
    *id = 0;
    (void)self->cu.cuCtxGetCurrent(&current); /* on an error it stays NULL; the stream's own context decides */
    SCOPE_OR_FAIL(self);
    CUresult result = view(self, stream, &v);
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, (int)result,
                        "the legacy stream cannot be used while a stream that synchronises with it is being captured");
    if (result != CUDA_SUCCESS)
        return acs_cuda_stream_failed(self, stream, result);
    if (v.status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return void_capture(stream);
    if (v.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return ACS_OK;
    if (nodes && !nodes_set(nodes, v.ends, v.count))
        return no_memory();
    ACS_TRY(acs_cuda_stream_ours(self, stream, current));
    *id = v.id;
    return ACS_OK;
}

/* Look up the capture that the runtime means. A later capture of the same stream is refused. */
static acs_status expect(acs_cuda *self, CUstream stream, uint64_t id, capture_view *v)
{
    CUresult result = view(self, stream, v);
    if (result != CUDA_SUCCESS)
        return acs_cuda_stream_failed(self, stream, result);
    if (v->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return void_capture(stream);
    if (v->status != CU_STREAM_CAPTURE_STATUS_ACTIVE || v->id != id)
        return ACS_FAIL(ACS_ERR_STATE, 0,
                        "the capture of stream %p ended before acs_stream_after; what was launched before is in its graph",
                        (void *)stream);
    return ACS_OK;
}

static acs_status capture_follow(acs_backend *backend, void *stream, uint64_t id, const acs_nodes *nodes)
{
    acs_cuda *self = (acs_cuda *)backend;
    capture_view v;
    SCOPE_OR_FAIL(self);
    ACS_TRY(expect(self, stream, id, &v));
    const CUresult result = follow(self, stream, nodes);
    return result == CUDA_SUCCESS ? ACS_OK : acs_cuda_stream_failed(self, stream, result);
}

/*
 * Add the upstream nodes of `node` to `seen`, which has nodes already looked at and nodes still to be looked at, each
 * once.
 */
static void look_upstream(acs_cuda *self, CUgraphNode node, acs_nodes *seen)
{
    CUgraphNode upstream[TUNE_CAPTURE_LOOK_UPSTREAM];
    size_t count = TUNE_CAPTURE_LOOK_UPSTREAM;
    /* If they are too many, or their edges carry data, nothing is concluded. */
    if (self->cu.cuGraphNodeGetDependencies(node, NULL, &count) != CUDA_SUCCESS || count > TUNE_CAPTURE_LOOK_UPSTREAM ||
        self->cu.cuGraphNodeGetDependencies(node, upstream, &count) != CUDA_SUCCESS)
        return;
    for (size_t i = 0; i < count && seen->count < TUNE_CAPTURE_LOOK_NODES; i++)
        if (!acs_nodes_add(seen, upstream[i]))
            return;
}

static void nodes_remove(acs_nodes *nodes, const void *node)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->list[i] == node)
            nodes->list[i--] = nodes->list[--nodes->count];
}

/* Search against the edges, from the newest node, since between two sections a program sends little to its stream. */
static void capture_implied(acs_backend *backend, const acs_nodes *by, acs_nodes *nodes)
{
    acs_cuda *self = (acs_cuda *)backend;
    acs_nodes seen = {NULL, 0, 0};
    bool room = acs_nodes_set(&seen, by->list, by->count);
    for (uint32_t i = 0; room && i < seen.count && i < TUNE_CAPTURE_LOOK_NODES && nodes->count; i++) {
        nodes_remove(nodes, seen.list[i]);
        look_upstream(self, (CUgraphNode)seen.list[i], &seen);
    }
    acs_nodes_fini(&seen);
}

/* ------------------------------------------------------------------------------------------- edges between any nodes */

/* Edges may have data, which a driver before CUDA 12.3 cannot read. */
static CUresult dependencies_of(acs_cuda *self, CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *data, size_t *count)
{
    if (self->cu.node_dependencies)
        return self->cu.node_dependencies(node, list, data, count);
    return self->cu.cuGraphNodeGetDependencies(node, list, count);
}

static acs_status capture_upstream(acs_backend *backend, void *node, acs_nodes *behind)
{
    acs_cuda *self = (acs_cuda *)backend;
    CUgraphEdgeData *data = NULL;
    size_t count = 0;
    behind->count = 0;
    CUresult result = dependencies_of(self, (CUgraphNode)node, NULL, NULL, &count);
    if (result == CUDA_SUCCESS && count) {
        data = calloc(count, sizeof *data);
        if (!data || !acs_nodes_reserve(behind, (uint32_t)count)) {
            free(data);
            return no_memory();
        }
        result = dependencies_of(self, (CUgraphNode)node, (CUgraphNode *)(void *)behind->list, data, &count);
        behind->count = result == CUDA_SUCCESS ? (uint32_t)count : 0;
    }
    free(data);
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    return ACS_FAIL(result == CUDA_ERROR_LOSSY_QUERY ? ACS_ERR_UNSUPPORTED : ACS_ERR_STATE, (int)result,
                    "the edges of a captured node cannot be read: %s", acs_cuda_text((int)result));
}

static const CUgraphEdgeData g_programmatic = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                               .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};

/* Data of as many programmatic edges. NULL: no memory. */
static CUgraphEdgeData *programmatic_data(uint32_t count)
{
    CUgraphEdgeData *data = calloc(count, sizeof *data);
    for (uint32_t i = 0; data && i < count; i++)
        data[i] = g_programmatic;
    return data;
}

/* Driver 580 gives all edges of a call the data of the first one, so edges of different types need calls of their own. */
static acs_status capture_link(acs_backend *backend, void *stream, uint64_t id, const acs_nodes *from, const acs_nodes *to,
                               bool programmatic)
{
    acs_cuda *self = (acs_cuda *)backend;
    capture_view v;
    SCOPE_OR_FAIL(self);
    ACS_TRY(expect(self, stream, id, &v));
    if (!from->count)
        return ACS_OK;
    if (!self->cu.cuGraphAddDependencies)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "this driver has no cuGraphAddDependencies; one for CUDA 12.3 is needed");
    CUgraphEdgeData *data = programmatic ? programmatic_data(from->count) : NULL;
    if (programmatic && !data)
        return no_memory();
    CUresult result = self->cu.cuGraphAddDependencies(v.graph, (const CUgraphNode *)(const void *)from->list,
                                                      (const CUgraphNode *)(const void *)to->list, data, from->count);
    free(data);
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    return ACS_CUDA_FAIL(self, ACS_ERR_LAUNCH, result, "edges could not be added to the captured graph: %s",
                         acs_cuda_text((int)result));
}

/* -------------------------------------------------------------------------------------- edges of the stream's order */

/* Before compute capability 9.0 no kernel begins before the one before it has ended. */
enum { CAPABILITY_EARLY = 9 };

static bool capture_may_trigger(acs_backend *backend, void *node)
{
    const acs_cuda *self = (const acs_cuda *)backend;
    const acs_cuda_driver *cu = &self->cu;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    return self->limits.capability >= CAPABILITY_EARLY && cu->node_dependencies && cu->cuGraphNodeGetDependentNodes &&
           cu->cuGraphRemoveDependencies && cu->cuGraphAddDependencies && cu->cuGraphNodeGetType &&
           cu->cuGraphNodeGetType((CUgraphNode)node, &type) == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_KERNEL;
}

static bool is_among(const acs_nodes *nodes, const void *node)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->list[i] == node)
            return true;
    return false;
}

/* Keep the edges that lead to the nodes of `to`. Returns their number. */
static size_t edges_kept(CUgraphNode *nodes, CUgraphEdgeData *data, size_t count, const acs_nodes *to, bool *programmatic)
{
    size_t kept = 0;
    *programmatic = true;
    for (size_t i = 0; i < count; i++) {
        if (!is_among(to, nodes[i]))
            continue;
        *programmatic &= memcmp(&data[i], &g_programmatic, sizeof g_programmatic) == 0;
        nodes[kept] = nodes[i];
        data[kept++] = data[i];
    }
    *programmatic &= kept != 0;
    return kept;
}

/* `lists` has room for `count` nodes twice, and `data` for as many edges. */
static CUresult remove_edges(acs_cuda *self, CUgraph graph, CUgraphNode node, const acs_nodes *to, CUgraphNode *lists,
                             CUgraphEdgeData *data, size_t count, bool *programmatic)
{
    CUgraphNode *from = lists + count;
    CUresult result = self->cu.cuGraphNodeGetDependentNodes(node, lists, data, &count);
    if (result != CUDA_SUCCESS)
        return result;
    count = edges_kept(lists, data, count, to, programmatic);
    for (size_t i = 0; i < count; i++)
        from[i] = node;
    return self->cu.cuGraphRemoveDependencies(graph, from, lists, data, count);
}

static acs_status capture_detach(acs_backend *backend, void *stream, uint64_t id, void *node, const acs_nodes *to,
                                 bool *programmatic)
{
    acs_cuda *self = (acs_cuda *)backend;
    capture_view v;
    size_t count = 0;
    *programmatic = false;
    SCOPE_OR_FAIL(self);
    ACS_TRY(expect(self, stream, id, &v));
    CUresult result = self->cu.cuGraphNodeGetDependentNodes(node, NULL, NULL, &count);
    if (result == CUDA_SUCCESS) {
        CUgraphNode *lists = calloc(2 * count + 1, sizeof *lists);
        CUgraphEdgeData *data = calloc(count + 1, sizeof *data);
        const bool room = lists && data;
        if (room)
            result = remove_edges(self, v.graph, node, to, lists, data, count, programmatic);
        free(lists);
        free(data);
        if (!room)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the edges of a captured op");
    }
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    *programmatic = false;
    return acs_cuda_note(self, result) ? acs_cuda_stream_failed(self, stream, result) : ACS_NOT_READY;
}

static acs_status capture_scratch(acs_backend *backend, void *stream, uint64_t id, size_t bytes, void **memory)
{
    acs_cuda *self = (acs_cuda *)backend;
    capture_view v;
    SCOPE_OR_FAIL(self);
    ACS_TRY(expect(self, stream, id, &v));
    return acs_cuda_scratch_give(self, v.graph, bytes, memory);
}

/* --------------------------------------------------------------------------------------------------------- adding */

/*
 * Fill memory. Memory that CUDA does not know is refused: it would need a host function whose argument lives as long
 * as the graph.
 */
static CUresult send_fill(acs_cuda *self, const acs_record *op, CUstream stream)
{
    CUmemorytype type = 0;
    CUdeviceptr dst = (CUdeviceptr)(uintptr_t)op->u.copy.dst;
    CUresult result = CUDA_SUCCESS;
    if (acs_cuda_fill_by_kernel(self, op, stream, &result))
        return result;
    result = self->cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, dst);
    if (result != CUDA_SUCCESS)
        return result;
    return self->cu.cuMemsetD8Async(dst, (unsigned char)op->u.copy.value, op->u.copy.bytes, stream);
}

static acs_status send_call(acs_cuda *self, CUstream stream, acs_record *op, void *scratch_memory)
{
    int native = 0;
    acs_status status = acs_call_capture(self->base.calls, op, self->device, stream, scratch_memory, &native);
    if (status != ACS_ERR_HOST)
        return status;
    return ACS_FAIL(status, native, "'%s' returned %d while it was captured", acs_record_name(op), native);
}

static CUresult send_switchable(acs_cuda *self, CUstream stream, const acs_record *op)
{
    CUresult result = CUDA_SUCCESS;
    if (op->kind == ACS_KIND_KERNEL)
        return acs_cuda_launch(self, op, stream);
    const bool sent = op->kind == ACS_KIND_MEMSET   ? acs_cuda_fill_by_kernel(self, op, stream, &result)
                      : op->kind == ACS_KIND_MEMCPY ? acs_cuda_copy_by_kernel(self, op, stream, &result)
                                                    : false;
    return sent ? result : CUDA_ERROR_NOT_SUPPORTED; /* only nodes of kernels can be switched */
}

/* Send a decision, or an op that obeys one, and let the decision's node switch the op's. */
static CUresult send_decided(acs_cuda *self, CUstream stream, const acs_record *op)
{
    capture_view v;
    CUresult result = view(self, stream, &v);
    if (result == CUDA_SUCCESS)
        result = acs_cuda_decide_before(self, op, v.graph, stream);
    if (result == CUDA_SUCCESS)
        result = send_switchable(self, stream, op);
    if (result == CUDA_SUCCESS)
        result = view(self, stream, &v);
    if (result == CUDA_SUCCESS && v.count != 1)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return result == CUDA_SUCCESS ? acs_cuda_decide_node(self, op, v.graph, v.ends[0]) : result;
}

/* Send the op to the stream, copies as kernels of ours. The error says what failed, not what became of the capture. */
static acs_status send(acs_cuda *self, CUstream stream, acs_record *op, void *scratch_memory)
{
    CUresult result = CUDA_SUCCESS;
    const bool decided = op->flags & ACS_RECORD_DECISION;
    if (decided || op->kind == ACS_KIND_MEMSET || op->kind == ACS_KIND_MEMCPY)
        (void)acs_cuda_code_open(self);
    if (op->kind == ACS_KIND_CALL && !decided)
        return send_call(self, stream, op, scratch_memory);
    if (decided && op->kind == ACS_KIND_KERNEL && !acs_cuda_settable(op))
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "'%s': the GPU cannot switch a captured kernel that has a cluster, is cooperative or launches "
                        "kernels",
                        acs_record_name(op));
    if (ACS_UNLIKELY(decided))
        result = op->kind == ACS_KIND_KERNEL || op->kind == ACS_KIND_CALL || op->u.copy.bytes
                     ? send_decided(self, stream, op)
                     : CUDA_SUCCESS;
    else if (op->kind == ACS_KIND_KERNEL)
        result = acs_cuda_launch(self, op, stream);
    else if (op->u.copy.bytes && op->kind == ACS_KIND_MEMSET)
        result = send_fill(self, op, stream);
    else if (op->u.copy.bytes)
        result = self->cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)op->u.copy.dst, (CUdeviceptr)(uintptr_t)op->u.copy.src,
                                        op->u.copy.bytes, stream);
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    return ACS_CUDA_FAIL(self, ACS_ERR_LAUNCH, result, "'%s' could not become a node of the captured graph: %s",
                         acs_record_name(op), acs_cuda_text((int)result));
}

static acs_status add_empty(acs_cuda *self, CUgraph graph, const acs_nodes *behind, acs_nodes *ends)
{
    CUgraphNode node = NULL;
    CUresult result =
        self->cu.cuGraphAddEmptyNode(&node, graph, (const CUgraphNode *)(const void *)behind->list, behind->count);
    if (result != CUDA_SUCCESS)
        return ACS_CUDA_FAIL(self, ACS_ERR_LAUNCH, result, "an empty node could not be added: %s",
                             acs_cuda_text((int)result));
    return acs_nodes_add(ends, node) ? ACS_OK : no_memory();
}

/* Store the op's ends, then restore the stream's own order. After a failure the contents of the graph are unknown. */
static acs_status restore_order(acs_cuda *self, CUstream stream, uint64_t id, const acs_nodes *own, acs_nodes *ends)
{
    capture_view v;
    acs_status status = expect(self, stream, id, &v);
    CUresult result = CUDA_SUCCESS;
    if (status == ACS_OK && !nodes_set(ends, v.ends, v.count))
        status = no_memory();
    if (status == ACS_OK)
        result = follow(self, stream, own);
    if (result != CUDA_SUCCESS)
        status = acs_cuda_stream_failed(self, stream, result);
    if (status == ACS_OK || status == ACS_ERR_STATE || status == ACS_ERR_DEVICE)
        return status;
    acs_error why = *acs_error_thread();
    return ACS_FAIL(ACS_ERR_STATE, why.native,
                    "the capture of stream %p cannot go on, its order is lost; end it and begin again: %s",
                    (void *)stream, why.text);
}

static acs_status capture_add(acs_backend *backend, void *stream, uint64_t id, acs_record *op, void *scratch_memory,
                              const acs_nodes *behind, acs_nodes *ends)
{
    acs_cuda *self = (acs_cuda *)backend;
    capture_view v;
    acs_nodes own = {NULL, 0, 0};
    ends->count = 0;
    if (!acs_nodes_set(ends, behind->list, behind->count))
        return no_memory();
    if (!op)
        ends->count = 0;
    SCOPE_OR_FAIL(self);
    ACS_TRY(expect(self, stream, id, &v));
    if (!op)
        return add_empty(self, v.graph, behind, ends);
    if (!nodes_set(&own, v.ends, v.count))
        return no_memory();
    acs_status status = ACS_OK;
    CUresult result = follow(self, stream, behind);
    if (result != CUDA_SUCCESS) {
        status = acs_cuda_stream_failed(self, stream, result);
    } else {
        status = send(self, stream, op, scratch_memory);
        acs_error sent = *acs_error_thread();
        acs_status restored = restore_order(self, stream, id, &own, ends);
        if (restored != ACS_OK)
            status = restored; /* says more: the capture is void */
        else if (status != ACS_OK)
            *acs_error_thread() = sent;
    }
    acs_nodes_fini(&own);
    return status;
}

const acs_capture_ops acs_cuda_capture = {
    .look = capture_look,
    .follow = capture_follow,
    .add = capture_add,
    .implied = capture_implied,
    .upstream = capture_upstream,
    .link = capture_link,
    .may_trigger = capture_may_trigger,
    .detach = capture_detach,
    .scratch = capture_scratch,
};

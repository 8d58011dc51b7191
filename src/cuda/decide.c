/*
 * Decisions and decided ops of the CUDA backend (window/decision.h), other than in bundles and replays: the kernel of
 * decisions, ops that are sent by themselves, and ops that become nodes of a captured graph. An op by itself goes in a
 * graph of two nodes: the head, which reads the cell, and the op, which the head switches. Where that cannot be had, the
 * host waits for the stream and reads the cell.
 */
#include "cuda/graphs/graphs.h"

#include "base/hash.h"

#include <string.h>

void acs_cuda_decide_start(acs_cuda *self)
{
    self->decide = acs_cuda_device_kernel(self, "acs_device_decide");
    const CUresult result = self->decide ? self->cu.cuLibraryGetKernel(&self->decider, self->library, "acs_device_decide")
                                         : CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS)
        return;
    (void)acs_cuda_note(self, result);
    acs_log(ACS_LOG_INFO, "cuda: the host decides which ops run (acs_if, ACS_GRID_FOR): there is no kernel for it");
    self->decide = NULL;
}

void acs_cuda_decide_fini(acs_cuda *self)
{
    const CUresult result = self->quiet ? self->cu.cuStreamDestroy(self->quiet) : CUDA_SUCCESS;
    self->quiet = NULL;
    acs_cuda_close_note(self, "the stream of decisions", result);
}

/* ------------------------------------------------------------------------------------------------------- by the host */

/* Copy bytes between host and device behind the stream's work, and wait. */
static CUresult copy_now(acs_cuda *self, void *dst, const void *src, size_t bytes, CUstream stream)
{
    const CUresult result =
        self->cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src, bytes, stream);
    return result == CUDA_SUCCESS ? self->cu.cuStreamSynchronize(stream) : result;
}

/* Whether an op runs that obeys this cell, which the host has read. If not, it is counted. */
static bool runs_by(acs_cuda *self, const acs_cell *cell)
{
    atomic_fetch_add_explicit(&self->members[0]->base.not_run, !cell->runs, memory_order_relaxed); /* a counter */
    return cell->runs;
}

CUresult acs_cuda_cell_wait(acs_cuda *self, const acs_record *op, CUstream stream, bool *runs)
{
    acs_cell cell;
    const CUresult result = copy_now(self, &cell, op->cell, sizeof cell, stream);
    if (result == CUDA_SUCCESS)
        *runs = runs_by(self, &cell);
    return result;
}

acs_status acs_cuda_read_cell(acs_backend *backend, const acs_cell *cell, acs_cell *to)
{
    acs_cuda *self = (acs_cuda *)backend;
    ACS_CUDA_SCOPE(self);
    CUresult result = scope.entered;
    if (result == CUDA_SUCCESS) /* in a stream of the thread's own: the legacy stream may be full of other work */
        result = copy_now(self, to, cell, sizeof *to, CU_STREAM_PER_THREAD);
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    acs_cuda_lose(self, result);
    return ACS_FAIL(ACS_ERR_DEVICE, (int)result, "cuda: whether an op runs could not be read: %s",
                    acs_cuda_text((int)result));
}

/* Decide on the host. */
static CUresult decide_here(acs_cuda *self, const acs_record *op, CUstream stream)
{
    acs_decision d = *acs_record_decision(op);
    acs_cell cell, outer, *const to = d.cell;
    uint32_t words[3] = {0};
    CUresult result = copy_now(self, words, d.word, (d.kind == ACS_DECIDE_DIM3 ? 3 : 1) * sizeof words[0], stream);
    if (result == CUDA_SUCCESS && d.outer)
        result = copy_now(self, &outer, d.outer, sizeof outer, stream);
    if (result == CUDA_SUCCESS)
        result = copy_now(self, &cell, d.cell, sizeof cell, stream);
    if (result != CUDA_SUCCESS)
        return result;
    d.word = words;
    d.outer = d.outer ? &outer : NULL;
    d.cell = &cell;
    acs_decision_run(&d, &cell);
    return copy_now(self, to, &cell, sizeof cell, stream);
}

static CUresult launch_here(acs_cuda *self, const acs_record *op, CUstream stream)
{
    acs_cell cell;
    acs_record launch = *op;
    const CUresult result = copy_now(self, &cell, op->cell, sizeof cell, stream);
    if (result != CUDA_SUCCESS || !runs_by(self, &cell))
        return result;
    if (op->flags & ACS_RECORD_GRID_DECIDED)
        launch.grid = (acs_dim3){cell.grid[0], cell.grid[1], cell.grid[2]};
    return acs_cuda_launch(self, &launch, stream);
}

/* ------------------------------------------------------------------------------------------------------- by a graph */

/* Launch the op by a graph of its own. False: there is none; nothing was sent. */
static bool launch_by_graph(acs_cuda *self, const acs_record *op, int slot, uint64_t value)
{
    const acs_cuda_wanted want = {.key = acs_hash64(0xdec1ded0000u + op->type), .nodes = 2, .slot = slot, .sightings = 1,
                                  .type = op->type};
    acs_cuda_exec *exec = acs_cuda_has_code(self) && op->type ? acs_cuda_exec_get(self, &want) : NULL;
    acs_cuda_contents contents = acs_cuda_contents_of(op);
    if (!exec)
        return false;
    acs_cuda_contents_decide(&contents, op, true);
    acs_cuda_exec_begin(exec);
    const CUresult filled = acs_cuda_exec_set(self, exec, 0, &contents);
    return acs_cuda_exec_issue(self, exec, slot, value, filled) == ACS_OK;
}

CUresult acs_cuda_launch_decided(acs_cuda *self, const acs_record *op, int slot, uint64_t value)
{
    const CUstream stream = self->streams[slot];
    if (op->flags & ACS_RECORD_DECIDES)
        return op->u.launch.resolved ? acs_cuda_launch(self, op, stream) : decide_here(self, op, stream);
    if (launch_by_graph(self, op, slot, value))
        return CUDA_SUCCESS;
    return acs_cuda_fault(self) ? (CUresult)acs_cuda_fault(self) : launch_here(self, op, stream);
}

/* ---------------------------------------------------------------------------------------------------------- captures */

static acs_cuda_captured_decision *find_captured(acs_cuda *self, CUgraph graph, const acs_cell *cell)
{
    for (uint32_t i = 1; i <= ACS_CUDA_CAPTURED_DECISIONS; i++) {
        acs_cuda_captured_decision *known =
            &self->captured[(self->captured_next - i) % ACS_CUDA_CAPTURED_DECISIONS];
        if (known->graph == graph && known->cell == cell)
            return known;
    }
    return NULL;
}

/* Give the node of a captured decision its targets. */
static CUresult set_captured(acs_cuda *self, acs_cuda_captured_decision *known)
{
    void *args[] = {&known->decision};
    const CUDA_KERNEL_NODE_PARAMS params =
        acs_cuda_node_params(self->decide, (acs_dim3){1, 1, 1}, (acs_dim3){ACS_DECISION_THREADS, 1, 1}, 0, args);
    return self->cu.cuGraphKernelNodeSetParams(known->node, &params);
}

/*
 * Memory in which a captured decision keeps what it has made of its targets, so that it switches only what changes. It
 * belongs to the graph, of which there is one instance. Without it they are switched each time.
 */
static uint64_t new_state(acs_cuda *self, CUgraph graph)
{
    void *memory = NULL;
    const acs_error before = *acs_error_thread();
    CUresult result = self->quiet ? CUDA_SUCCESS : self->cu.cuStreamCreate(&self->quiet, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS || acs_cuda_scratch_give(self, graph, sizeof(acs_decision_state), &memory) != ACS_OK) {
        *acs_error_thread() = before;
        return 0;
    }
    const CUdeviceptr state = (CUdeviceptr)(uintptr_t)memory;
    result = self->cu.cuMemsetD8Async(state, 0xff, sizeof(acs_decision_state), self->quiet);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuStreamSynchronize(self->quiet);
    return result == CUDA_SUCCESS ? (uint64_t)state : 0;
}

static void remember(acs_cuda *self, CUgraph graph, CUgraphNode node, const acs_cell *cell, const acs_decision *decision)
{
    acs_cuda_captured_decision *known = &self->captured[self->captured_next++ % ACS_CUDA_CAPTURED_DECISIONS];
    *known = (acs_cuda_captured_decision){graph, node, cell, *decision};
    known->decision.state = new_state(self, graph);
    self->not_run = decision->not_run;
}

/* A decision that copies the op's cell, for this op alone. */
static CUresult send_own(acs_cuda *self, const acs_record *op, CUgraph graph, CUstream stream)
{
    const bool grid = op->flags & ACS_RECORD_GRID_DECIDED;
    acs_decision d = {.word = grid ? op->cell->grid : &op->cell->runs,
                      .kind = grid ? ACS_DECIDE_DIM3 : ACS_DECIDE_IF,
                      .not_run = self->not_run,
                      .most = {op->grid.x, op->grid.y, op->grid.z}};
    void *memory = NULL, *args[] = {&d};
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph same;
    const CUgraphNode *ends;
    size_t count;
    const CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = ACS_DECISION_THREADS,
                                   .blockDimY = 1, .blockDimZ = 1, .hStream = stream};
    if (acs_cuda_scratch_give(self, graph, sizeof(acs_cell), &memory) != ACS_OK)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d.cell = memory;
    CUresult result = self->cu.cuLaunchKernelEx(&config, self->decide, args, NULL);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuStreamGetCaptureInfo(stream, &status, &id, &same, &ends, &count);
    if (result != CUDA_SUCCESS || count != 1)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    remember(self, graph, ends[0], op->cell, &d); /* it stands for the decision that wrote this cell */
    return CUDA_SUCCESS;
}

CUresult acs_cuda_decide_before(acs_cuda *self, const acs_record *op, CUgraph graph, CUstream stream)
{
    if (!self->decide || !self->cu.cuGraphKernelNodeSetParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    atomic_store_explicit(&self->code_stays, true, memory_order_relaxed); /* relaxed: read when the backend closes */
    if (!(op->flags & ACS_RECORD_DECIDED))
        return CUDA_SUCCESS;
    const acs_cuda_captured_decision *known = find_captured(self, graph, op->cell);
    return known && known->decision.target_count < ACS_DECISION_TARGETS ? CUDA_SUCCESS
                                                                        : send_own(self, op, graph, stream);
}

CUresult acs_cuda_decide_node(acs_cuda *self, const acs_record *op, CUgraph graph, CUgraphNode node)
{
    if (op->flags & ACS_RECORD_DECIDES) {
        remember(self, graph, node, acs_record_decision(op)->cell, acs_record_decision(op));
        return CUDA_SUCCESS;
    }
    acs_cuda_captured_decision *known = find_captured(self, graph, op->cell);
    uint64_t handle;
    const CUresult result = acs_cuda_node_give(self, node, &handle);
    if (result != CUDA_SUCCESS)
        return result;
    const uint32_t target = known->decision.target_count++;
    known->decision.target[target] = handle;
    known->decision.target_grids |= (uint32_t)((op->flags & ACS_RECORD_GRID_DECIDED) != 0) << target;
    return set_captured(self, known);
}

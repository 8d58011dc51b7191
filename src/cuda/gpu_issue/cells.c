/*
 * The cells of GPU-side issue: graphs of one kernel type that the device can launch, made on demand and kept. Owns
 * types and cells; called by gpu_issue/gpu_issue.c with a bundle of one slot. It never launches anything. It touches a
 * cell that a bundle in flight may use only from the stream of the same slot.
 */
#include "cuda/gpu_issue/gpu_issue.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum { TYPES_FIRST = 64 };

CUresult acs_gpu_issue_instantiate(acs_cuda *self, CUgraph graph, CUstream stream, CUgraphExec *exec)
{
    CUresult result = self->cu.cuGraphInstantiateWithFlags(exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    if (result != CUDA_SUCCESS) {
        *exec = NULL;
        return result;
    }
    return self->cu.cuGraphUpload(*exec, stream);
}

/* ---------------------------------------------------------------------------------------------------------- types */

static acs_gpu_issue_type **type_cell(acs_gpu_issue_type **types, uint32_t mask, uint32_t type)
{
    uint32_t i = type * 0x9e3779b1u & mask;
    while (types[i] && types[i]->number != type)
        i = (i + 1) & mask;
    return &types[i];
}

static bool types_grow(acs_cuda_gpu_issue *gi)
{
    uint32_t mask = gi->types ? 2 * gi->types_mask + 1 : TYPES_FIRST - 1;
    acs_gpu_issue_type **types = calloc(mask + 1u, sizeof(*types));
    if (!types)
        return false;
    for (uint32_t i = 0; gi->types && i <= gi->types_mask; i++)
        if (gi->types[i])
            *type_cell(types, mask, gi->types[i]->number) = gi->types[i];
    free(gi->types);
    gi->types = types;
    gi->types_mask = mask;
    return true;
}

static void type_destroy(acs_gpu_issue_type *type)
{
    free(type->held);
    free(type);
}

/* The type of an op, or of fans (op NULL), added if it is new. NULL: no memory. */
static acs_gpu_issue_type *type_of(acs_cuda *self, const acs_record *op)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    uint32_t number = op ? op->type : ACS_GPU_ISSUE_FAN;
    if ((!gi->types || 2 * gi->types_used > gi->types_mask) && !types_grow(gi))
        return NULL;
    acs_gpu_issue_type **cell = type_cell(gi->types, gi->types_mask, number);
    if (*cell)
        return *cell;
    acs_gpu_issue_type *type = calloc(1, sizeof *type);
    if (!type)
        return NULL;
    type->number = number;
    type->type = op ? acs_cuda_type_find(self, number) : NULL;
    type->refused = op && !type->type;
    type->held = calloc(self->slots, sizeof(*type->held));
    if (!type->held) {
        type_destroy(type);
        return NULL;
    }
    gi->types_used++;
    return *cell = type;
}

/* ---------------------------------------------------------------------------------------------------------- cells */

static void cell_destroy(acs_cuda *self, acs_gpu_issue_type *type, acs_gpu_issue_cell *cell)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    if (cell->exec)
        (void)acs_cuda_note(self, self->cu.cuGraphExecDestroy(cell->exec));
    if (cell->graph)
        (void)acs_cuda_note(self, self->cu.cuGraphDestroy(cell->graph));
    gi->free_places[gi->free_places_used++] = (uint16_t)cell->place;
    gi->cells--;
    type->cells--;
    free(cell);
}

/* Add the op's kernel with zeros as arguments: the device sets them before it launches the cell. */
static CUresult add_op(acs_cuda *self, const acs_gpu_issue_type *type, acs_gpu_issue_cell *cell, CUgraphNode *node)
{
    void *args[ACS_CUDA_ARG_BYTES];
    const acs_cuda_kernel *kernel = type->type->kernel;
    const CUDA_KERNEL_NODE_PARAMS params = acs_cuda_node_params(kernel->function, (acs_dim3){1, 1, 1}, type->type->block,
                                                                type->type->shared_bytes, args);
    for (uint32_t i = 0; i < kernel->param_count; i++)
        args[i] = cell->args + kernel->param_offset[i];
    if (type->type->shared_bytes)
        (void)acs_cuda_raise_shared(self, kernel, type->type->shared_bytes);
    CUresult result = self->cu.cuGraphAddKernelNode(node, cell->graph, NULL, 0, &params);
    return result == CUDA_SUCCESS ? acs_cuda_node_give(self, *node, &cell->node) : result;
}

/* Add the release kernel behind the op. If the device can do so, its launch overlaps the op's end. */
static CUresult add_release(acs_cuda *self, acs_gpu_issue_cell *cell, const CUgraphNode *op)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    CUgraphNode node;
    CUgraphEdgeData edge = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                            .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    void *args[] = {&gi->slots, &gi->places, &cell->place};
    const CUDA_KERNEL_NODE_PARAMS params =
        acs_cuda_node_params(gi->release, (acs_dim3){1, 1, 1}, (acs_dim3){32, 1, 1}, 0, args);
    bool overlap = op && gi->overlap;
    CUresult result = self->cu.cuGraphAddKernelNode(&node, cell->graph, op, op && !overlap, &params);
    if (result == CUDA_SUCCESS && overlap)
        result = self->cu.cuGraphAddDependencies(cell->graph, op, &node, &edge, 1);
    return result;
}

static CUresult cell_build(acs_cuda *self, const acs_gpu_issue_type *type, acs_gpu_issue_cell *cell, CUstream stream)
{
    CUgraphNode op;
    CUresult result = self->cu.cuGraphCreate(&cell->graph, 0);
    if (result != CUDA_SUCCESS) {
        cell->graph = NULL;
        return result;
    }
    if (type->type)
        result = add_op(self, type, cell, &op);
    if (result == CUDA_SUCCESS)
        result = add_release(self, cell, type->type ? &op : NULL);
    return result == CUDA_SUCCESS ? acs_gpu_issue_instantiate(self, cell->graph, stream, &cell->exec) : result;
}

/* Make a cell. A kernel that cannot be a cell is remembered; after a lack of memory a later bundle may try again. */
static acs_gpu_issue_cell *cell_create(acs_cuda *self, acs_gpu_issue_type *type, CUstream stream)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    acs_gpu_issue_cell *cell = calloc(1, sizeof *cell + (type->type ? type->type->arg_bytes : 0));
    if (!cell)
        return NULL;
    cell->place = gi->free_places[--gi->free_places_used];
    gi->cells++;
    type->cells++;
    CUresult result = cell_build(self, type, cell, stream);
    if (result == CUDA_SUCCESS) {
        atomic_fetch_add_explicit(&self->members[0]->base.nodes_built, type->type ? 2 : 1,
                                  memory_order_relaxed); /* relaxed: a counter */
        return cell;
    }
    if (!acs_cuda_note(self, result) && result != CUDA_ERROR_OUT_OF_MEMORY) {
        type->refused = true;
        acs_log(ACS_LOG_INFO, "cuda: a kernel cannot be launched by the GPU itself and goes in other ways: %s",
                acs_cuda_text((int)result));
    }
    cell_destroy(self, type, cell);
    return NULL;
}

/* --------------------------------------------------------------------------------------------------------- taking */

/* Whether all launches of a slot are over, and no bundle is being made there. `own`: not counting the caller's. */
static bool lane_idle_locked(acs_cuda *self, const acs_gpu_issue_lane *lane, bool own)
{
    if (!lane || (lane->busy && !own))
        return !lane;
    return !lane->latest || self->cu.cuEventQuery(lane->latest) == CUDA_SUCCESS;
}

/* Free the cells of slots whose bundles are all complete. Cells taken for the caller's bundle are in no list. */
static void gather_locked(acs_cuda *self, int own)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    for (uint32_t slot = 0; slot < self->slots; slot++) {
        if (!lane_idle_locked(self, gi->lanes[slot], (int)slot == own))
            continue;
        for (uint32_t t = 0; t <= gi->types_mask; t++) {
            acs_gpu_issue_type *type = gi->types[t];
            while (type && type->held[slot]) {
                acs_gpu_issue_cell *cell = type->held[slot];
                type->held[slot] = cell->next;
                cell->next = type->spare;
                type->spare = cell;
            }
        }
    }
}

/* Destroy a free cell of another type. False: there is none. */
static bool evict_locked(acs_cuda *self, const acs_gpu_issue_type *but)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    for (uint32_t t = 0; t <= gi->types_mask; t++) {
        acs_gpu_issue_type *type = gi->types[t];
        if (!type || type == but || !type->spare)
            continue;
        acs_gpu_issue_cell *cell = type->spare;
        type->spare = cell->next;
        cell_destroy(self, type, cell);
        return true;
    }
    return false;
}

/* The state of taking cells for one bundle. */
typedef struct taking {
    int slot;
    uint32_t grow;    /* price that it may still pay for new cells */
    bool short_of;    /* whether that was too little */
    bool gathered;    /* whether the cells of idle slots were freed */
} taking;

/* Take one of the slot's own cells, else a free one, else one of an idle slot, else make one. */
static acs_gpu_issue_cell *take_one_locked(acs_cuda *self, acs_gpu_issue_type *type, taking *state)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    acs_gpu_issue_cell **list = &type->held[state->slot];
    if (!*list)
        list = &type->spare;
    if (!*list && !state->gathered && type->cells) {
        gather_locked(self, state->slot);
        state->gathered = true;
    }
    if (*list) {
        acs_gpu_issue_cell *cell = *list;
        *list = cell->next;
        return cell;
    }
    bool full = gi->cells >= gi->cells_most;
    uint32_t price = full ? TUNE_GPU_EVICT : 1;
    if (type->refused)
        return NULL;
    state->short_of = state->grow < price;
    if (state->short_of)
        return NULL;
    if (full && !state->gathered)
        gather_locked(self, state->slot);
    state->gathered |= full;
    if (full && !evict_locked(self, type))
        return NULL;
    state->grow -= price;
    return cell_create(self, type, self->streams[state->slot]);
}

static bool take_all_locked(acs_cuda *self, const acs_batch *batch, acs_gpu_issue_lane *lane, taking *state)
{
    const acs_release_tree *tree = &lane->tree;
    for (uint32_t i = 0; i < tree->nodes; i++) {
        lane->cell[i] = NULL;
        if (tree->node[i].kind == ACS_RELEASE_TREE_JOIN_NODE)
            continue;
        /* A join that became a fan has no op. */
        const acs_record *op = tree->node[i].kind == ACS_RELEASE_TREE_OP ? batch->items[i].op : NULL;
        acs_gpu_issue_type *type = type_of(self, op);
        lane->type[i] = type;
        if (!type || type->refused || !(lane->cell[i] = take_one_locked(self, type, state)))
            return false;
    }
    return true;
}

/* All taken cells are the slot's from now on, used or not. */
static void hold_all_locked(const acs_cuda_gpu_issue *gi, acs_gpu_issue_lane *lane, int slot)
{
    for (uint32_t i = 0; i < lane->tree.nodes; i++) {
        acs_gpu_issue_cell *cell = lane->cell[i];
        if (!cell)
            continue;
        acs_gpu_issue_type *type = *type_cell(gi->types, gi->types_mask, lane->type[i]->number);
        cell->next = type->held[slot];
        type->held[slot] = cell;
    }
}

static uint32_t cells_needed(const acs_release_tree *tree)
{
    uint32_t cells = 0;
    for (uint32_t i = 0; i < tree->nodes; i++)
        cells += tree->node[i].kind != ACS_RELEASE_TREE_JOIN_NODE;
    return cells;
}

/*
 * How many cells may be made for a bundle: as many as wanted if ACS_ISSUE asks for this method, else as many as were
 * earned, up to TUNE_GPU_GROW (ski rental).
 */
static uint32_t growth_locked(const acs_cuda *self, const acs_batch *batch, uint64_t gain_ns)
{
    const uint64_t earned = self->gpu_issue->lost_ns / self->costs.cell_ns;
    if (batch->method == ACS_METHOD_GPU)
        return UINT32_MAX;
    return gain_ns && earned < TUNE_GPU_GROW ? (uint32_t)earned : TUNE_GPU_GROW;
}

bool acs_gpu_issue_cells_take(acs_cuda *self, const acs_batch *batch, int slot, acs_gpu_issue_lane *lane, uint64_t gain_ns)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    taking state = {.slot = slot};
    memset(lane->cell, 0, lane->tree.nodes * sizeof(*lane->cell));
    /* A bundle that can never have enough cells must not cost others theirs. */
    if (cells_needed(&lane->tree) > gi->cells_most)
        return false;
    ACS_HOLD(&gi->lock);
    lane->busy = true;
    const uint32_t grow = state.grow = growth_locked(self, batch, gain_ns);
    bool all = take_all_locked(self, batch, lane, &state);
    if (gain_ns)
        gi->lost_ns -= (uint64_t)(grow - state.grow) * self->costs.cell_ns;
    if (!all && state.short_of && gi->lost_ns < (uint64_t)TUNE_GPU_GROW * self->costs.cell_ns)
        gi->lost_ns += gain_ns;
    if (gi->types)
        hold_all_locked(gi, lane, slot);
    return all;
}

void acs_gpu_issue_cells_fini(acs_cuda *self)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    for (uint32_t t = 0; gi->types && t <= gi->types_mask; t++) {
        acs_gpu_issue_type *type = gi->types[t];
        for (uint32_t slot = 0; type && slot <= self->slots; slot++) {
            acs_gpu_issue_cell **list = slot < self->slots ? &type->held[slot] : &type->spare;
            while (*list) {
                acs_gpu_issue_cell *cell = *list;
                *list = cell->next;
                cell_destroy(self, type, cell);
            }
        }
        if (type)
            type_destroy(type);
    }
    free(gi->types);
    gi->types = NULL;
}

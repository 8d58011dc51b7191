/*
 * Cached graphs of the CUDA backend: built from a plan, filled with the ops of a launch, launched. Called by
 * graphs/method.c in a scope; one thread at a time has a graph. It never waits for the GPU, and never decides which
 * graphs to build.
 */
#include "cuda/graphs/graphs.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum {
    OWN_THREADS = 32,
    HEAD_SHARED = 48 * 1024 /* bytes of shared memory that a kernel has without an opt-in */
};

static acs_device_table *table_of(const acs_cuda_exec *exec, uint32_t index)
{
    return (acs_device_table *)((unsigned char *)exec->room->tables + (size_t)index * exec->table_bytes);
}

static uint64_t *values_of(acs_device_table *table)
{
    return (uint64_t *)(void *)(table + 1);
}

static acs_device_set *held_of(const acs_cuda_exec *exec, uint32_t op)
{
    return (acs_device_set *)(void *)(exec->held + (size_t)op * exec->stride);
}

acs_cuda_contents acs_cuda_contents_of(const acs_record *op)
{
    return (acs_cuda_contents){.grid = op->grid, .bytes = op->arg_bytes, .args = op->args};
}

void acs_cuda_exec_keep(acs_cuda_exec *exec, uint32_t word, uint64_t ops)
{
    exec->filled[word] |= ops;
}

/* -------------------------------------------------------------------------------------------------------- building */

/* Add a node with the contents in `held`, or change the node to them. */
static CUresult op_params(acs_cuda *self, acs_cuda_exec *exec, uint32_t op, CUgraphNode *node, const CUgraphNode *deps,
                          size_t count)
{
    void *args[ACS_CUDA_ARG_BYTES];
    const acs_cuda_type *type = exec->types[op];
    acs_device_set *held = held_of(exec, op);
    for (uint32_t i = 0; i < type->kernel->param_count; i++)
        args[i] = (unsigned char *)(held + 1) + type->kernel->param_offset[i];
    const acs_dim3 grid = {held->grid[0], held->grid[1], held->grid[2]};
    const CUDA_KERNEL_NODE_PARAMS params =
        acs_cuda_node_params(type->kernel->function, grid, type->block, type->shared_bytes, args);
    if (type->shared_bytes)
        (void)acs_cuda_raise_shared(self, type->kernel, type->shared_bytes);
    return deps ? self->cu.cuGraphAddKernelNode(node, exec->graph, deps, count, &params)
                : self->cu.cuGraphExecKernelNodeSetParams(exec->exec, *node, &params);
}

/* Let a node hold the contents of a record. */
static void hold(acs_device_set *held, const acs_cuda_type *type, const acs_record *record)
{
    const acs_cuda_contents contents = acs_cuda_contents_of(record);
    uint32_t from, end;
    held->grid[0] = record->grid.x;
    held->grid[1] = record->grid.y;
    held->grid[2] = record->grid.z;
    acs_cuda_args_update(type, &contents, (unsigned char *)(held + 1), &from, &end);
}

CUresult acs_cuda_node_give(acs_cuda *self, CUgraphNode node, uint64_t *handle)
{
    CUkernelNodeAttrValue value = {.deviceUpdatableKernelNode.deviceUpdatable = 1};
    CUresult result =
        self->cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value);
    *handle = (uint64_t)(uintptr_t)value.deviceUpdatableKernelNode.devNode;
    return result;
}

/* Add an op's node, with the contents in `held`. It is switched on. */
static CUresult add_op(acs_cuda *self, acs_cuda_exec *exec, uint32_t op, CUgraphNode *node, const CUgraphNode *deps,
                       size_t count)
{
    CUresult result = op_params(self, exec, op, node, deps, count);
    exec->nodes[op] = *node;
    if (result != CUDA_SUCCESS || exec->fixed[op])
        return result;
    return acs_cuda_node_give(self, *node, &held_of(exec, op)->node);
}

static CUresult add_own(acs_cuda *self, acs_cuda_exec *exec, CUfunction function, void **args, CUgraphNode *node,
                        const CUgraphNode *deps, size_t count)
{
    const CUDA_KERNEL_NODE_PARAMS params =
        acs_cuda_node_params(function, (acs_dim3){1, 1, 1}, (acs_dim3){OWN_THREADS, 1, 1}, 0, args);
    return self->cu.cuGraphAddKernelNode(node, exec->graph, deps, count, &params);
}

/*
 * Set the head's parameters for a table. Each thread of a block holds a set in shared memory, of which a kernel has 48 KiB
 * without an opt-in.
 */
static CUresult head_params(acs_cuda *self, acs_cuda_exec *exec, uint32_t table, bool add)
{
    acs_device_table *address = table_of(exec, table);
    uint32_t sets = exec->settable;
    const uint32_t threads =
        ACS_DEVICE_HEAD_THREADS * exec->stride <= HEAD_SHARED ? ACS_DEVICE_HEAD_THREADS : ACS_DEVICE_HEAD_THREADS / 2;
    void *args[] = {&address, &exec->room->state, &exec->values, &sets, &exec->stride};
    const CUDA_KERNEL_NODE_PARAMS params =
        acs_cuda_node_params(self->methods->head, (acs_dim3){sets ? (sets + threads - 1) / threads : 1, 1, 1},
                             (acs_dim3){threads, 1, 1}, sets ? threads * exec->stride : 0, args);
    return add ? self->cu.cuGraphAddKernelNode(&exec->head, exec->graph, NULL, 0, &params)
               : self->cu.cuGraphExecKernelNodeSetParams(exec->exec, exec->head, &params);
}

static CUresult add_nodes(acs_cuda *self, acs_cuda_exec *exec, const acs_cuda_plan *plan)
{
    CUgraphNode nodes[ACS_CUDA_PLAN_NODES], deps[ACS_CUDA_PLAN_NODES];
    uint32_t op = 0, value = 0;
    CUresult result = head_params(self, exec, 0, true);
    for (uint32_t i = 0; i < plan->nodes && result == CUDA_SUCCESS; i++) {
        const acs_cuda_plan_node *node = &plan->node[i];
        size_t count = node->edge_count ? node->edge_count : 1;
        void *args[] = {&exec->room->state, &value};
        deps[0] = exec->head;
        for (uint32_t e = 0; e < node->edge_count; e++)
            deps[e] = nodes[plan->edges[node->first_edge + e]];
        if (node->kind == ACS_CUDA_NODE_OP) {
            result = add_op(self, exec, op++, &nodes[i], deps, count);
            if (result != CUDA_SUCCESS) /* relaxed: only saves further attempts */
                atomic_store_explicit(&acs_cuda_type_find(self, node->type)->refused, true, memory_order_relaxed);
        } else if (node->kind == ACS_CUDA_NODE_PUBLISH) {
            result = add_own(self, exec, self->methods->publish, args, &nodes[i], deps, count);
            value++;
        } else {
            result = add_own(self, exec, self->methods->join, NULL, &nodes[i], deps, count);
        }
    }
    return result;
}

/* Find the size of a set, and how many there may be: the host changes fixed nodes, without a set. */
static void size_sets(acs_cuda *self, acs_cuda_exec *exec, const acs_cuda_plan *plan)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < plan->nodes; i++) {
        if (plan->node[i].kind != ACS_CUDA_NODE_OP)
            continue;
        const acs_cuda_type *type = acs_cuda_type_find(self, plan->node[i].type);
        most = type->arg_bytes > most ? type->arg_bytes : most;
        exec->settable += !plan->node[i].fixed || type->decided;
    }
    exec->stride = (uint32_t)(sizeof(acs_device_set) + most + 15) / 16 * 16;
}

/*
 * Say what the nodes hold at first. Arguments are zeros, unless `first` has others. They are never read, since the node
 * is switched off or set first.
 */
static void fill_held(acs_cuda *self, acs_cuda_exec *exec, const acs_cuda_plan *plan, const acs_record *first)
{
    uint32_t op = 0;
    for (uint32_t i = 0; i < plan->nodes; i++) {
        if (plan->node[i].kind != ACS_CUDA_NODE_OP)
            continue;
        acs_device_set *held = held_of(exec, op);
        held->grid[0] = held->grid[1] = held->grid[2] = 1;
        exec->types[op] = acs_cuda_type_find(self, plan->node[i].type);
        const acs_cuda_kernel *kernel = exec->types[op]->kernel;
        if (kernel->kind != ACS_KERNEL_FUNCTION && (!exec->handles || kernel->unloads < exec->unloads)) {
            exec->handles = true;
            exec->unloads = kernel->unloads;
        }
        exec->fixed[op] = plan->node[i].fixed && !exec->types[op]->decided;
        exec->on[op / 64] |= (uint64_t)1 << op % 64;
        if (first)
            hold(held, exec->types[op], &first[op]);
        op++;
    }
}

acs_cuda_exec *acs_cuda_exec_prepare(acs_cuda *self, const acs_cuda_plan *plan, const acs_record *first)
{
    acs_cuda_exec *exec = calloc(1, sizeof *exec);
    if (!exec)
        return NULL;
    exec->ops = plan->ops;
    exec->values = (plan->values + 1) / 2 * 2; /* the sets behind them are aligned to 16 bytes */
    size_sets(self, exec, plan);
    exec->table_bytes = (uint32_t)(sizeof(acs_device_table) + exec->values * sizeof(uint64_t));
    exec->table_bytes += exec->settable * exec->stride;
    exec->held = calloc(exec->ops, exec->stride);
    exec->on = calloc(exec->ops / 64 + 1, sizeof *exec->on);
    exec->filled = calloc(exec->ops / 64 + 1, sizeof *exec->filled);
    exec->types = calloc(exec->ops, sizeof(acs_cuda_type *));
    exec->nodes = calloc(exec->ops, sizeof(CUgraphNode));
    exec->fixed = calloc(exec->ops, sizeof *exec->fixed);
    for (uint32_t i = 0; i < TUNE_GRAPH_TABLES; i++)
        exec->launches[i].slot = -1;
    if (exec->held && exec->on && exec->filled && exec->types && exec->nodes && exec->fixed) {
        fill_held(self, exec, plan, first);
        return exec;
    }
    acs_cuda_exec_destroy(self, exec);
    return NULL;
}

CUresult acs_cuda_exec_build(acs_cuda *self, acs_cuda_exec *exec, const acs_cuda_plan *plan, CUstream stream)
{
    CUresult result = acs_cuda_room_acquire(self, (size_t)TUNE_GRAPH_TABLES * exec->table_bytes, &exec->room);
    const bool alone = plan->nodes <= TUNE_ALONE_NODES; /* while a large one is built, launches go on more slowly */
    if (alone)
        acs_cuda_gate_begin(&self->members[0]->gate);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuGraphCreate(&exec->graph, 0);
    if (result == CUDA_SUCCESS)
        result = add_nodes(self, exec, plan);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuGraphInstantiateWithFlags(&exec->exec, exec->graph, 0);
    if (alone)
        acs_cuda_gate_end(&self->members[0]->gate);
    if (result != CUDA_SUCCESS) {
        exec->exec = NULL;
        return result;
    }
    return self->cu.cuGraphUpload(exec->exec, stream);
}

void acs_cuda_exec_destroy(acs_cuda *self, acs_cuda_exec *exec)
{
    CUresult result = exec->exec ? self->cu.cuGraphExecDestroy(exec->exec) : CUDA_SUCCESS;
    CUresult graph = exec->graph ? self->cu.cuGraphDestroy(exec->graph) : CUDA_SUCCESS;
    result = result != CUDA_SUCCESS ? result : graph;
    if (result != CUDA_SUCCESS && !acs_cuda_note(self, result))
        acs_log(ACS_LOG_WARN, "cuda: a kept graph could not be destroyed: %s", acs_cuda_text((int)result));
    if (exec->room)
        acs_cuda_room_release(self->methods, exec->room);
    free(exec->shape);
    free(exec->fixed);
    free(exec->nodes);
    free(exec->types);
    free(exec->on);
    free(exec->filled);
    free(exec->held);
    free(exec);
}

/* ------------------------------------------------------------------------------------------------------- launching */

bool acs_cuda_exec_ready(acs_cuda *self, const acs_cuda_exec *exec)
{
    int slot = exec->launches[exec->next].slot;
    return slot < 0 || exec->launches[exec->next].value <= acs_cuda_completed(self, slot);
}

void acs_cuda_exec_begin(acs_cuda_exec *exec)
{
    acs_device_table *table = table_of(exec, exec->next);
    table->sets = 0;
    exec->publish = values_of(table);
    exec->cells = NULL;
    memset(exec->publish, 0, exec->values * sizeof(uint64_t));
    memset(exec->filled, 0, (exec->ops / 64 + 1) * sizeof *exec->filled);
}

/* Add a set to the launch, without parameters yet. */
static acs_device_set *set_add(acs_cuda_exec *exec, const acs_device_set *held, uint16_t what)
{
    acs_device_table *table = table_of(exec, exec->next);
    unsigned char *sets = (unsigned char *)(values_of(table) + exec->values);
    acs_device_set *set = (acs_device_set *)(void *)(sets + (size_t)table->sets++ * exec->stride);
    *set = *held;
    set->what = what;
    set->bytes = 0;
    set->first = 0;
    set->cell = 0;
    return set;
}

/* The head obeys this cell. */
static void set_cell(acs_cuda_exec *exec, acs_device_set *set, const acs_cuda_contents *contents)
{
    exec->cells = exec->cells ? exec->cells : contents->cell;
    set->what |= contents->cell_grid ? ACS_DEVICE_SET_CELL | ACS_DEVICE_SET_CELL_GRID : ACS_DEVICE_SET_CELL;
    set->cell = (int32_t)((const char *)contents->cell - (const char *)exec->cells);
}

uint64_t acs_cuda_exec_node(const acs_cuda_exec *exec, uint32_t op)
{
    return exec->fixed[op] ? 0 : held_of(exec, op)->node;
}

/*
 * Prefetch the contents of a node and its set. All cached graphs together do not fit into the CPU's cache, and lines
 * that the GPU has read must be fetched again.
 */
static void fetch_held(acs_cuda_exec *exec, uint32_t op)
{
    if (op >= exec->ops)
        return;
    const acs_device_table *table = table_of(exec, exec->next);
    const unsigned char *set = (const unsigned char *)(table + 1) + exec->values * sizeof(uint64_t);
    __builtin_prefetch(held_of(exec, op), 1);
    __builtin_prefetch((unsigned char *)held_of(exec, op) + ACS_CACHE_LINE, 1);
    if (!exec->fixed[op])
        __builtin_prefetch(set + (size_t)(table->sets + TUNE_GRAPH_FETCH_OPS) * exec->stride, 1);
}

/* Change a fixed node to what it is to hold. */
static CUresult set_fixed(acs_cuda *self, acs_cuda_exec *exec, uint32_t op, uint16_t what, bool args)
{
    CUresult result = CUDA_SUCCESS;
    if (args || (what & ACS_DEVICE_SET_GRID))
        result = op_params(self, exec, op, &exec->nodes[op], NULL, 0);
    if (result == CUDA_SUCCESS && (what & ACS_DEVICE_SET_ENABLED))
        result = self->cu.cuGraphNodeSetEnabled(exec->exec, exec->nodes[op], 1);
    return result;
}

CUresult acs_cuda_exec_set(acs_cuda *self, acs_cuda_exec *exec, uint32_t op, const acs_cuda_contents *contents)
{
    acs_device_set *held = held_of(exec, op);
    unsigned char *args = (unsigned char *)(held + 1);
    const acs_dim3 grid = contents->grid;
    const uint64_t bit = (uint64_t)1 << op % 64;
    uint16_t what = 0;
    uint32_t from, end;
    fetch_held(exec, op + TUNE_GRAPH_FETCH_OPS);
    exec->filled[op / 64] |= bit;
    acs_cuda_args_update(exec->types[op], contents, args, &from, &end);
    if (!(exec->on[op / 64] & bit))
        what = ACS_DEVICE_SET_ENABLED | ACS_DEVICE_SET_ON;
    if (grid.x && (held->grid[0] != grid.x || held->grid[1] != grid.y || held->grid[2] != grid.z))
        what |= ACS_DEVICE_SET_GRID;
    held->grid[0] = grid.x; /* 0 differs from what the next op wants */
    held->grid[1] = grid.y;
    held->grid[2] = grid.z;
    if (!what && from >= end && !contents->cell)
        return CUDA_SUCCESS;
    exec->on[op / 64] |= bit;
    if (exec->fixed[op])
        return set_fixed(self, exec, op, what, from < end);
    acs_device_set *set = set_add(exec, held, what);
    if (contents->cell)
        set_cell(exec, set, contents);
    if (from < end) {
        set->first = (uint16_t)from;
        set->bytes = (uint16_t)(end - from);
        memcpy(set + 1, args + from, end - from);
    }
    return CUDA_SUCCESS;
}

static CUresult switch_off(acs_cuda *self, acs_cuda_exec *exec, uint32_t op)
{
    if (exec->fixed[op])
        return self->cu.cuGraphNodeSetEnabled(exec->exec, exec->nodes[op], 0);
    (void)set_add(exec, held_of(exec, op), ACS_DEVICE_SET_ENABLED);
    return CUDA_SUCCESS;
}

static CUresult switch_off_the_rest(acs_cuda *self, acs_cuda_exec *exec)
{
    CUresult result = CUDA_SUCCESS;
    for (uint32_t word = 0; word <= exec->ops / 64; word++) {
        for (uint64_t left = exec->on[word] & ~exec->filled[word]; left && result == CUDA_SUCCESS; left &= left - 1)
            result = switch_off(self, exec, word * 64 + (uint32_t)__builtin_ctzll(left));
        exec->on[word] &= exec->filled[word];
    }
    return result;
}

CUresult acs_cuda_exec_launch(acs_cuda *self, acs_cuda_exec *exec, int slot, uint64_t value)
{
    acs_device_table *table = table_of(exec, exec->next);
    CUresult result = switch_off_the_rest(self, exec);
    table->values = exec->values;
    table->word = (uint64_t)(uintptr_t)&self->methods->words[slot].value;
    table->cells = (uint64_t)(uintptr_t)exec->cells;
    if (result == CUDA_SUCCESS)
        result = head_params(self, exec, exec->next, false);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuGraphLaunch(exec->exec, self->streams[slot]);
    if (result != CUDA_SUCCESS)
        return result;
    exec->launches[exec->next].slot = slot;
    exec->launches[exec->next].value = value;
    exec->next = (exec->next + 1) % TUNE_GRAPH_TABLES;
    return CUDA_SUCCESS;
}

/*
 * The library's own device code in the twin: what stands for its image, its kernels as C functions, and nodes that the
 * device may change. Called through the driver table, and by graphs that run, with the lock held.
 */
#include "twin_internal.h"

#include "cuda/device_code/device.h"
#include "window/decision.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- kernels */

/* A change covers parts of parameters, or several, as the runtime says: bytes of the buffer. */
static void args_change(twin_op *op, const acs_device_set *set)
{
    const twin_kernel_spec *spec = &op->kernel->spec;
    const unsigned char *value = (const unsigned char *)(set + 1);
    uint32_t offset = 0, end = set->first + set->bytes;
    for (uint32_t i = 0; i < spec->param_count; offset += (spec->param_bytes[i++] + 7u) / 8 * 8) {
        uint32_t param_end = offset + spec->param_bytes[i];
        if (param_end <= set->first || offset >= end)
            continue;
        uint32_t from = offset > set->first ? offset : set->first, to = param_end < end ? param_end : end;
        memcpy((unsigned char *)op->args[i] + (from - offset), value + (from - set->first), to - from);
    }
}

/* As device_code/cell.h. */
static void obey(twin_op *op, const acs_cell *cell, bool grid)
{
    op->off = !cell->runs;
    if (grid && cell->runs)
        memcpy(op->grid, cell->grid, sizeof op->grid);
    if (!cell->runs)
        ++*cell->not_run;
}

static void node_change(const acs_device_set *set, uint64_t cells)
{
    twin_node *node = twin_find_locked((void *)(uintptr_t)set->node, TWIN_NODE);
    if (!node || !node->live) {
        twin_breach_locked("a node is set that the device may not change");
        return;
    }
    twin_op *op = node->live;
    if (set->bytes)
        args_change(op, set);
    if (set->what & ACS_DEVICE_SET_GRID)
        memcpy(op->grid, set->grid, sizeof op->grid);
    if (set->what & ACS_DEVICE_SET_ENABLED)
        op->off = !(set->what & ACS_DEVICE_SET_ON);
    if (set->what & ACS_DEVICE_SET_CELL)
        obey(op, (const acs_cell *)(uintptr_t)(cells + (uint64_t)(int64_t)set->cell), set->what & ACS_DEVICE_SET_CELL_GRID);
    if (!op->off)
        (void)twin_touches_ok_locked(op, node->device);
}

static void head_body(void *const *args)
{
    const acs_device_table *table = *(const acs_device_table **)args[0];
    uint64_t *state = *(uint64_t **)args[1];
    uint32_t values = *(const uint32_t *)args[2], most = *(const uint32_t *)args[3], stride = *(const uint32_t *)args[4];
    const unsigned char *sets = (const unsigned char *)(table + 1) + values * sizeof(uint64_t);
    state[0] = table->word;
    memcpy(state + 1, table + 1, values * sizeof(uint64_t));
    if (table->sets > most)
        twin_breach_locked("%u nodes are set of %u", table->sets, most);
    for (uint32_t i = 0; i < table->sets; i++)
        node_change((const acs_device_set *)(const void *)(sets + (size_t)i * stride), table->cells);
}

/* As device_code/decide.cu. */
static void decide_body(void *const *args)
{
    const acs_decision *d = args[0];
    acs_cell cell;
    acs_decision_state *state = (acs_decision_state *)(uintptr_t)d->state;
    acs_decision_run(d, &cell);
    const bool known = state && acs_decision_is_state(state, &cell);
    if (state)
        *state = (acs_decision_state){cell.runs, {cell.grid[0], cell.grid[1], cell.grid[2]}};
    for (uint32_t i = 0; i < d->target_count; i++) {
        twin_node *node = twin_find_locked((void *)(uintptr_t)d->target[i], TWIN_NODE);
        if (node && node->live && node->live->updatable && known)
            *cell.not_run += !cell.runs;
        else if (node && node->live && node->live->updatable)
            obey(node->live, &cell, d->target_grids >> i & 1);
        else
            twin_breach_locked("a decision switches a node that the device may not change");
    }
    *d->cell = cell;
}

static size_t decide_touches(void *const *args, twin_range *out, size_t capacity)
{
    const acs_decision *d = args[0];
    const twin_range ranges[] = {{(uint64_t)(uintptr_t)d->word, d->kind == ACS_DECIDE_DIM3 ? 12 : 4},
                                 {(uint64_t)(uintptr_t)d->cell, sizeof(acs_cell)}};
    for (size_t i = 0; i < 2 && i < capacity; i++)
        out[i] = ranges[i];
    return 2;
}

static void join_body(void *const *args)
{
    (void)args;
}

/* Other threads look at the word without the lock. */
static void publish_body(void *const *args)
{
    const uint64_t *state = *(const uint64_t **)args[0];
    uint64_t value = state[1 + *(const uint32_t *)args[1]], *word = (uint64_t *)(uintptr_t)state[0];
    if (!value)
        return;
    if (value < __atomic_load_n(word, __ATOMIC_RELAXED))
        twin_breach_locked("value %llu is published behind a larger one", (unsigned long long)value);
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* As far as the grid reaches, so that blocks that are missing show. */
static size_t share(uint64_t bytes)
{
    uint64_t reach = (uint64_t)g_twin.running->grid[0] * ACS_DEVICE_COPY_BYTES;
    return bytes < reach ? bytes : reach;
}

static void copy_body(void *const *args)
{
    memmove(*(void **)args[0], *(void *const *)args[1], share(*(const uint64_t *)args[2]));
}

static size_t copy_touches(void *const *args, twin_range *out, size_t capacity)
{
    uint64_t bytes = *(const uint64_t *)args[2];
    for (size_t i = 0; i < 2 && i < capacity; i++)
        out[i] = (twin_range){*(const uint64_t *)args[i], bytes};
    return 2;
}

/* The grid says how many rows there are. */
static uint64_t rows_of(const twin_op *op, uint64_t bytes)
{
    return op->grid[0] / ((bytes + ACS_DEVICE_COPY_BYTES - 1) / ACS_DEVICE_COPY_BYTES);
}

static void rows_body(void *const *args)
{
    const uint64_t bytes = *(const uint64_t *)args[2], pitch = *(const uint64_t *)args[3];
    for (uint64_t row = 0; row < rows_of(g_twin.running, bytes); row++)
        memmove(*(char **)args[0] + row * pitch, *(char *const *)args[1] + row * pitch, bytes);
}

static size_t rows_touches(void *const *args, twin_range *out, size_t capacity)
{
    const uint64_t bytes = *(const uint64_t *)args[2];
    for (size_t i = 0; i < 2 && i < capacity; i++)
        out[i] = (twin_range){*(const uint64_t *)args[i], bytes}; /* of the first: what is touched has no grid */
    return 2;
}

static void fill_body(void *const *args)
{
    memset(*(void **)args[0], (unsigned char)*(const uint64_t *)args[2], share(*(const uint64_t *)args[1]));
}

static size_t fill_touches(void *const *args, twin_range *out, size_t capacity)
{
    if (capacity)
        out[0] = (twin_range){*(const uint64_t *)args[0], *(const uint64_t *)args[1]};
    return capacity ? 1 : 0;
}

/* ---------------------------------------------------------------------------------------------------------- library */

TWIN_DEFINE(cuLibraryLoadData,
            (CUlibrary * library, const void *code, CUjit_option *jit, void **jit_values, unsigned jit_count,
             CUlibraryOption *options, void **values, unsigned count),
            (library, code, jit, jit_values, jit_count, options, values, count))
{
    CUresult result = twin_unsafe_locked();
    if (!code || jit_count || count || jit || jit_values || options || values)
        twin_breach_locked("an image without options is expected");
    if (result == CUDA_SUCCESS)
        *library = (CUlibrary)((twin_object *)twin_object_new_locked(TWIN_LIBRARY, -1, sizeof(twin_object)))->handle;
    return result;
}

static void library_forgive(CUlibrary handle)
{
    twin_object *library = twin_find_locked(handle, TWIN_LIBRARY);
    if (library)
        library->alive = false;
}

TWIN_DEFINE_END(cuLibraryUnload, (CUlibrary handle), (handle), library_forgive)
{
    twin_object *library = twin_find_locked(handle, TWIN_LIBRARY);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    library->alive = false;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary handle, const char *name), (kernel, handle, name))
{
    static const uint32_t head[] = {8, 8, 4, 4, 4}, publish[] = {8, 4}, copy[] = {8, 8, 8, 8},
                          decide[] = {sizeof(acs_decision)};
    static const twin_kernel_spec known[] = {
        {.name = "acs_device_head", .body = head_body, .param_bytes = head, .param_count = 5},
        {.name = "acs_device_join", .body = join_body},
        {.name = "acs_device_publish", .body = publish_body, .param_bytes = publish, .param_count = 2},
        {.name = "acs_device_decide", .body = decide_body, .touches = decide_touches, .param_bytes = decide,
         .param_count = 1, .block_threads = ACS_DECISION_THREADS},
        {.name = "acs_device_copy", .body = copy_body, .touches = copy_touches, .param_bytes = copy, .param_count = 3,
         .block_threads = ACS_DEVICE_COPY_THREADS},
        {.name = "acs_device_copy_rows", .body = rows_body, .touches = rows_touches, .param_bytes = copy, .param_count = 4,
         .block_threads = ACS_DEVICE_COPY_THREADS},
        {.name = "acs_device_fill", .body = fill_body, .touches = fill_touches, .param_bytes = copy, .param_count = 3,
         .block_threads = ACS_DEVICE_COPY_THREADS},
    };
    twin_object *library = twin_find_locked(handle, TWIN_LIBRARY);
    for (size_t i = 0; library && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        twin_kernel_object *made = twin_object_new_locked(TWIN_KERNEL, -1, sizeof *made);
        made->spec = known[i];
        made->own = !known[i].touches; /* those that touch the program's memory are kernels like the program's */
        *kernel = (CUkernel)made->base.handle;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

/* ------------------------------------------------------------------------------------------------------------ nodes */

static twin_node *node_use(CUgraphNode handle, CUkernelNodeAttrID attribute)
{
    twin_node *node = twin_find_locked(handle, TWIN_NODE);
    if (node && node->op->kind == OP_LAUNCH && attribute == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return node;
    twin_breach_locked("attribute %d, or a node of another kind, is not known here", (int)attribute);
    return NULL;
}

TWIN_DEFINE(cuGraphKernelNodeSetAttribute,
            (CUgraphNode handle, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue *value),
            (handle, attribute, value))
{
    twin_node *node = node_use(handle, attribute);
    if (!node || !value->deviceUpdatableKernelNode.deviceUpdatable)
        return CUDA_ERROR_INVALID_VALUE;
    if (node->op->kernel->spec.launches || node->op->kernel->spec.cluster)
        twin_breach_locked("the device may change a node of a kernel that %s",
                           node->op->kernel->spec.launches ? "launches kernels" : "requires a cluster");
    node->op->updatable = true;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGraphKernelNodeGetAttribute,
            (CUgraphNode handle, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue *value), (handle, attribute, value))
{
    if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        memset(value, 0, sizeof *value); /* nodes with either are not known here */
        return CUDA_SUCCESS;
    }
    twin_node *node = node_use(handle, attribute);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    value->deviceUpdatableKernelNode.deviceUpdatable = node->op->updatable;
    value->deviceUpdatableKernelNode.devNode = (CUgraphDeviceNode)node->base.handle;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGraphUpload, (CUgraphExec handle, CUstream where), (handle, where))
{
    twin_exec *exec = NULL;
    twin_stream *stream = NULL;
    CUresult result = twin_use_locked(handle, TWIN_EXEC, &exec);
    if (result == CUDA_SUCCESS)
        result = twin_stream_use_locked(where, &stream);
    if (result == CUDA_SUCCESS)
        result = twin_chance_locked(stream);
    if (result == CUDA_SUCCESS)
        exec->uploaded = true;
    return result;
}

void twin_grid(uint32_t grid[3])
{
    memcpy(grid, g_twin.running->grid, sizeof g_twin.running->grid);
}

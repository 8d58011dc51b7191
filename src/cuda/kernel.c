/*
 * The CUDA backend's kernels: what is known of each, the checks of launches, and a launch. Owns the table of kernels
 * seen. Checks run on the launching thread through check(). A kernel seen before is found without a lock and without a
 * CUDA call. The first sight asks the driver, with the thread's capture mode relaxed, so that a capture of the
 * program's own lives on. A check never launches.
 */
#include "cuda/graphs/graphs.h"
#include "base/inside.h"

#include <stdlib.h>
#include <string.h>

enum {
    TABLE_FIRST = 256,    /* cells of the first table; power of two */
    CLUSTER_PORTABLE = 8, /* most blocks of a cluster on every device that has clusters */
    CLUSTER_MOST = 16     /* most blocks of a cluster with the opt-in */
};

/* ---------------------------------------------------------------------------------------------------------- table */

static acs_cuda_kernel_table *table_create(uint32_t cells)
{
    acs_cuda_kernel_table *table = calloc(1, sizeof *table + cells * sizeof table->cells[0]);
    if (table)
        table->mask = cells - 1;
    return table;
}

/* The cell that holds the kernel, or the empty cell where it belongs. The table is never full. */
static _Atomic(acs_cuda_kernel *) *table_cell(acs_cuda_kernel_table *table, uint32_t kind, const void *key)
{
    /* The kind belongs to the key: a function and a handle may have the same address. */
    uint64_t i = acs_hash64((uint64_t)(uintptr_t)key ^ ((uint64_t)kind << 60));
    for (;; i++) {
        _Atomic(acs_cuda_kernel *) *cell = &table->cells[i & table->mask];
        acs_cuda_kernel *kernel = atomic_load_explicit(cell, memory_order_acquire); /* B */
        if (!kernel || (kernel->key == key && kernel->kind == kind))
            return cell;
    }
}

/*
 * Find a kernel; NULL: not seen yet, or not since a module was unloaded. Its fields are plain, so two pairs order them:
 * A  table_grow_locked: fill a table, publish it with release; kernel_find: load acquire. Broken: a reader sees empty
 *    cells that are full.
 * B  kernel_insert: fill a kernel, publish it with release; table_cell, kernel_find: load acquire. Broken: a reader
 *    sees a kernel without limits.
 */
static acs_cuda_kernel *kernel_find(acs_cuda *self, uint32_t kind, const void *key)
{
    acs_cuda_kernel_table *table = atomic_load_explicit(&self->kernels, memory_order_acquire);                   /* A */
    acs_cuda_kernel *kernel = atomic_load_explicit(table_cell(table, kind, key), memory_order_acquire); /* B */
    /* Relaxed: the program calls acs_declare before it launches the next kernel of that address. */
    const bool old = kernel && kind != ACS_KERNEL_FUNCTION &&
                     kernel->unloads != atomic_load_explicit(&acs_backend_unloads, memory_order_relaxed);
    return ACS_UNLIKELY(old) ? NULL : kernel;
}

/*
 * Replace the table by one twice as large. The old table stays, for readers that hold it. They miss new kernels, and
 * then look here.
 */
static bool table_grow_locked(acs_cuda *self, acs_cuda_kernel_table *old)
{
    acs_cuda_kernel_table *table = table_create(2 * (old->mask + 1));
    if (!table)
        return false;
    for (uint32_t i = 0; i <= old->mask; i++) {
        /* Relaxed: cells are written under the lock, which is held. */
        acs_cuda_kernel *kernel = atomic_load_explicit(&old->cells[i], memory_order_relaxed);
        if (kernel)
            atomic_store_explicit(table_cell(table, kernel->kind, kernel->key), kernel, memory_order_relaxed);
    }
    table->used = old->used;
    table->older = old;
    atomic_store_explicit(&self->kernels, table, memory_order_release); /* A */
    return true;
}

/* Insert a kernel, or replace the record of the same function. */
static bool kernel_insert(acs_cuda *self, acs_cuda_kernel *kernel)
{
    ACS_HOLD(&self->lock);
    /* Relaxed: written under this lock only. */
    acs_cuda_kernel_table *table = atomic_load_explicit(&self->kernels, memory_order_relaxed);
    /* At most half full: probes stay short, and each ends at an empty cell. */
    if (2 * (table->used + 1) > table->mask && !table_grow_locked(self, table))
        return false;
    table = atomic_load_explicit(&self->kernels, memory_order_relaxed);
    _Atomic(acs_cuda_kernel *) *cell = table_cell(table, kernel->kind, kernel->key);
    table->used += atomic_load_explicit(cell, memory_order_relaxed) == NULL;
    /* A replaced kernel stays until close, since queued ops point to it (u.launch.resolved). */
    kernel->older = self->all_kernels;
    self->all_kernels = kernel;
    atomic_store_explicit(cell, kernel, memory_order_release); /* B */
    return true;
}

acs_status acs_cuda_kernels_init(acs_cuda *self)
{
    acs_cuda_kernel_table *table = table_create(TABLE_FIRST);
    if (!table)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for the table of kernels");
    atomic_init(&self->kernels, table);
    return ACS_OK;
}

void acs_cuda_kernels_fini(acs_cuda *self)
{
    /* Relaxed: no other thread is here any more. */
    acs_cuda_kernel_table *table = atomic_load_explicit(&self->kernels, memory_order_relaxed);
    while (table) {
        acs_cuda_kernel_table *older = table->older;
        free(table);
        table = older;
    }
    while (self->all_kernels) {
        acs_cuda_kernel *kernel = self->all_kernels;
        self->all_kernels = kernel->older;
        free(kernel);
    }
}

/* ---------------------------------------------------------------------------------------------------- first sight */

/* A fault of an earlier kernel may show here first; then this kernel is not to blame. */
static acs_status resolve_failed(acs_cuda *self, const acs_record *op, const char *what, int native)
{
    acs_status status = acs_cuda_note(self, (CUresult)native)          ? ACS_ERR_DEVICE
                        : native == (int)cudaErrorMemoryAllocation     ? ACS_ERR_MEMORY
                        : native == (int)cudaErrorNoKernelImageForDevice ? ACS_ERR_UNSUPPORTED
                                                                         : ACS_ERR_ARGUMENT;
    return ACS_FAIL(status, native, "'%.60s': %s: %s", acs_record_name(op), what, acs_cuda_text(native));
}

/* Get the function in our context. */
static acs_status resolve_function(acs_cuda *self, const acs_record *op, CUfunction *function)
{
    const void *given = op->u.launch.kernel.function;
    CUresult result = CUDA_SUCCESS;
    if (op->u.launch.kernel.kind == ACS_KERNEL_CUFUNCTION) {
        *function = (CUfunction)given;
    } else if (op->u.launch.kernel.kind == ACS_KERNEL_HANDLE) {
        result = self->cu.cuKernelGetFunction(function, (CUkernel)given);
    } else {
        cudaError_t error = cudaGetFuncBySymbol(function, given);
        if (error != cudaSuccess) {
            (void)cudaGetLastError(); /* our own error; reported here */
            return resolve_failed(self, op, "not a __global__ function of this program", (int)error);
        }
    }
    /* Loading may synchronise the device. So it is done here, not when other kernels must run beside this one. */
    if (result == CUDA_SUCCESS && self->cu.cuFuncLoad)
        result = self->cu.cuFuncLoad(*function);
    return result == CUDA_SUCCESS ? ACS_OK : resolve_failed(self, op, "the kernel cannot be loaded", (int)result);
}

/* Whether two records of a kernel are equal. */
static bool same_kernel(const acs_cuda_kernel *a, const acs_cuda_kernel *b)
{
    return a->function == b->function && a->block_threads == b->block_threads &&
           a->static_shared == b->static_shared && a->params_known == b->params_known &&
           a->param_count == b->param_count && memcmp(&a->cluster, &b->cluster, sizeof a->cluster) == 0 &&
           a->settable == b->settable &&
           memcmp(a->param_bytes, b->param_bytes, 2 * a->param_count * sizeof a->param_bytes[0]) == 0;
}

/* Put the kernel into the table, or free it if the table has an equal one, from another thread or an earlier look. */
static acs_status kernel_publish(acs_cuda *self, const acs_record *op, acs_cuda_kernel *kernel, acs_cuda_kernel **out)
{
    acs_cuda_kernel *known = kernel_find(self, kernel->kind, kernel->key);
    if (known && same_kernel(known, kernel)) {
        free(kernel);
        kernel = known;
    } else if (!kernel_insert(self, kernel)) {
        free(kernel);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "'%.60s': no memory for a larger table of kernels", acs_record_name(op));
    }
    *out = kernel;
    return ACS_OK;
}

/*
 * Make the record of a kernel at its first sight, on the launching thread, whose state does not change. The driver may
 * read files here, where a thread could be cancelled, and the caller may hold a lock.
 */
static acs_status resolve(acs_cuda *self, const acs_record *op, acs_cuda_kernel **out)
{
    ACS_NOT_CANCELLED;
    uint32_t bytes[ACS_CUDA_ARGS_MOST], offsets[ACS_CUDA_ARGS_MOST], count;
    CUfunction function = NULL;
    ACS_CUDA_SCOPE(self);
    if (scope.entered != CUDA_SUCCESS)
        return resolve_failed(self, op, "the device cannot be selected", (int)scope.entered);
    ACS_TRY(resolve_function(self, op, &function));
    bool known = acs_cuda_code_params(self, function, bytes, offsets, &count);
    acs_cuda_kernel *kernel = calloc(1, sizeof *kernel + 2 * count * sizeof bytes[0]);
    if (!kernel)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "'%.60s': no memory to remember the kernel", acs_record_name(op));
    kernel->key = op->u.launch.kernel.function;
    kernel->kind = op->u.launch.kernel.kind;
    kernel->unloads = atomic_load_explicit(&acs_backend_unloads, memory_order_relaxed); /* relaxed: as in kernel_find */
    kernel->function = function;
    kernel->launch = kernel->kind == ACS_KERNEL_HANDLE ? (CUfunction)kernel->key : function;
    kernel->params_known = known;
    kernel->param_count = count;
    kernel->param_offset = kernel->param_bytes + count;
    memcpy(kernel->param_bytes, bytes, count * sizeof bytes[0]);
    memcpy(kernel->param_bytes + count, offsets, count * sizeof offsets[0]);
    CUresult result = acs_cuda_code_limits(self, kernel);
    if (result != CUDA_SUCCESS) {
        free(kernel);
        return resolve_failed(self, op, "the kernel's limits are not known", (int)result);
    }
    kernel->settable = !kernel->cluster.x && !acs_cuda_code_launches(self, kernel);
    return kernel_publish(self, op, kernel, out);
}

/* Ask the driver for a name. Asking about a __global__ function may load it. */
static CUresult ask_name(acs_cuda *self, const acs_kernel *kernel, const char **name)
{
    CUfunction function = NULL;
    if (kernel->kind == ACS_KERNEL_HANDLE)
        return self->cu.cuKernelGetName ? self->cu.cuKernelGetName(name, (CUkernel)kernel->function)
                                        : CUDA_ERROR_NOT_SUPPORTED;
    if (!self->cu.cuFuncGetName)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (kernel->kind == ACS_KERNEL_CUFUNCTION)
        return self->cu.cuFuncGetName(name, (CUfunction)kernel->function);
    if (cudaGetFuncBySymbol(&function, kernel->function) != cudaSuccess) {
        (void)cudaGetLastError(); /* our own error; the launch reports it */
        return CUDA_ERROR_NOT_FOUND;
    }
    return self->cu.cuFuncGetName(name, function);
}

const char *acs_cuda_kernel_name(acs_backend *backend, const acs_kernel *kernel)
{
    ACS_NOT_CANCELLED;
    acs_cuda *self = (acs_cuda *)backend;
    const char *name = NULL;
    ACS_CUDA_SCOPE(self);
    return scope.entered == CUDA_SUCCESS && ask_name(self, kernel, &name) == CUDA_SUCCESS ? name : NULL;
}

/* --------------------------------------------------------------------------------------------------------- checks */

/* Zero is refused too: it would launch nothing, and is an error in CUDA as well. */
static acs_status check_extent(const acs_record *op, const char *what, acs_dim3 given, const int *limit)
{
    const uint32_t values[3] = {given.x, given.y, given.z};
    for (int i = 0; i < 3; i++)
        if (ACS_UNLIKELY(values[i] == 0 || values[i] > (uint32_t)limit[i]))
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': %s.%c is %u; it must be 1 to %d",
                            acs_record_name(op), what, "xyz"[i], values[i], limit[i]);
    return ACS_OK;
}

/* The kernel's own limit is never above the device's. */
static acs_status check_threads(const acs_cuda *self, const acs_record *op, const acs_cuda_kernel *kernel)
{
    acs_dim3 block = op->u.launch.block;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (ACS_LIKELY(threads <= (uint64_t)kernel->block_threads))
        return ACS_OK;
    bool device = threads > (uint64_t)self->limits.block_threads;
    const char *whose = device ? "the device" : "this kernel, by its registers,";
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': a block of %llu threads; %s takes at most %d", acs_record_name(op),
                    (unsigned long long)threads, whose, kernel->block_threads);
}

/* The common path: a few compares. Sizes must be equal: a double for a float would be read as garbage. */
static bool args_match(const acs_record *op, const acs_cuda_kernel *kernel)
{
    if (!kernel->params_known)
        return true;
    if (op->arg_count != kernel->param_count)
        return false;
    for (uint32_t i = 0; i < op->arg_count; i++)
        if (op->args[i].size != kernel->param_bytes[i])
            return false;
    return true;
}

static acs_status args_refuse(const acs_record *op, const acs_cuda_kernel *kernel)
{
    if (op->arg_count != kernel->param_count)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': %u arguments were given, the kernel has %u parameters",
                        acs_record_name(op), op->arg_count, kernel->param_count);
    uint32_t i = 0;
    while (op->args[i].size == kernel->param_bytes[i])
        i++;
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': argument %u (from 0) is %u bytes, the kernel's parameter is %u",
                    acs_record_name(op), i, op->args[i].size, kernel->param_bytes[i]);
}

/*
 * A mismatch may mean that a module was unloaded and its handle now names another kernel, so the kernel is resolved
 * again.
 */
static acs_status check_args(acs_cuda *self, const acs_record *op, acs_cuda_kernel **kernel)
{
    if (ACS_UNLIKELY(op->arg_count > ACS_CUDA_ARGS_MOST))
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "'%.60s': %u arguments; the cuda backend passes at most %d",
                        acs_record_name(op), op->arg_count, ACS_CUDA_ARGS_MOST);
    if (ACS_LIKELY(args_match(op, *kernel)))
        return ACS_OK;
    if ((*kernel)->kind != ACS_KERNEL_FUNCTION)
        ACS_TRY(resolve(self, op, kernel));
    return args_match(op, *kernel) ? ACS_OK : args_refuse(op, *kernel);
}

/* Allow a kernel more than the default. The call is idempotent, so it needs no lock. */
static acs_status opt_in(acs_cuda *self, const acs_record *op, acs_cuda_kernel *kernel, CUfunction_attribute attribute,
                         int value)
{
    ACS_NOT_CANCELLED;
    ACS_CUDA_SCOPE(self);
    const CUresult result =
        scope.entered ? scope.entered : self->cu.cuFuncSetAttribute(kernel->function, attribute, value);
    return result == CUDA_SUCCESS ? ACS_OK : resolve_failed(self, op, "the device refuses an opt-in", (int)result);
}

/*
 * A kernel needs permission for more than 48 KiB of shared memory. It gets all there is at once, which costs nothing.
 * So two threads that raise the limit cannot leave the smaller value.
 *
 * C  opt in, then store release; load acquire, then launch. Broken: a launch before its opt-in fails.
 */
acs_status acs_cuda_check_shared(acs_cuda *self, const acs_record *op, acs_cuda_kernel *kernel)
{
    uint64_t bytes = op->u.launch.shared_bytes;
    int most = self->limits.shared_bytes - kernel->static_shared;
    if (ACS_UNLIKELY(most < 0 || bytes > (uint64_t)most))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "'%.60s': %llu bytes of dynamic and %d of static shared memory; the device has %d per block",
                        acs_record_name(op), (unsigned long long)bytes, kernel->static_shared, self->limits.shared_bytes);
    if (ACS_LIKELY((int)bytes <= atomic_load_explicit(&kernel->dynamic_shared, memory_order_acquire))) /* C */
        return ACS_OK;
    ACS_TRY(opt_in(self, op, kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    atomic_store_explicit(&kernel->dynamic_shared, most, memory_order_release); /* C */
    return ACS_OK;
}

bool acs_cuda_raise_shared(acs_cuda *self, const acs_cuda_kernel *kernel, uint64_t bytes)
{
    int now = 0;
    CUresult result =
        self->cu.cuFuncGetAttribute(&now, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel->function);
    if (result != CUDA_SUCCESS || (uint64_t)now >= bytes)
        return false;
    result = self->cu.cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         self->limits.shared_bytes - kernel->static_shared);
    return result == CUDA_SUCCESS;
}

/*
 * A cluster of more than 8 blocks is not portable: the kernel opts in, and the launch fails if the device cannot run
 * it.
 */
static acs_status check_cluster(acs_cuda *self, const acs_record *op, acs_cuda_kernel *kernel)
{
    const acs_dim3 own = kernel->cluster, grid = op->grid;
    acs_dim3 c = op->u.launch.attributes.cluster;
    const bool asked = c.x || c.y || c.z;
    if (ACS_LIKELY(!asked && !own.x && !kernel->wants_cluster))
        return ACS_OK;
    if (!asked && !own.x)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': this kernel must be launched with a cluster (attributes.cluster)",
                        acs_record_name(op));
    if (asked && own.x && (c.x != own.x || c.y != own.y || c.z != own.z))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': a cluster of %u x %u x %u blocks; it was compiled for %u x %u x %u",
                        acs_record_name(op), c.x, c.y, c.z, own.x, own.y, own.z);
    c = own.x ? own : c;
    uint64_t blocks = (uint64_t)c.x * c.y * c.z;
    if (!self->limits.clusters)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "'%.60s': this device has no thread block clusters", acs_record_name(op));
    if (c.x == 0 || c.y == 0 || c.z == 0 || c.x > CLUSTER_MOST || c.y > CLUSTER_MOST || c.z > CLUSTER_MOST ||
        blocks > CLUSTER_MOST)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': a cluster of %u x %u x %u blocks; it must hold 1 to %d",
                        acs_record_name(op), c.x, c.y, c.z, CLUSTER_MOST);
    if (grid.x % c.x || grid.y % c.y || grid.z % c.z)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': a grid of %u x %u x %u does not divide into clusters of %u x %u x %u",
                        acs_record_name(op), grid.x, grid.y, grid.z, c.x, c.y, c.z);
    if (blocks > CLUSTER_PORTABLE && !atomic_load_explicit(&kernel->wide_clusters, memory_order_acquire)) { /* D */
        ACS_TRY(opt_in(self, op, kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
        atomic_store_explicit(&kernel->wide_clusters, true, memory_order_release); /* D: as C */
    }
    return ACS_OK;
}

static acs_status check_kind(const acs_record *op)
{
    const acs_kernel *kernel = &op->u.launch.kernel;
    if (kernel->kind == ACS_KERNEL_NONE)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "'%.60s': the kernel has only a host body; the cuda backend needs a __global__ function, a "
                        "cudaKernel_t or a CUfunction",
                        acs_record_name(op));
    if (kernel->kind > ACS_KERNEL_CUFUNCTION)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': kind %u is none of acs_kernel_kind", acs_record_name(op),
                        kernel->kind);
    if (!kernel->function)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': the kernel is NULL", acs_record_name(op));
    return ACS_OK;
}

/* A decision for which there is no kernel: the host makes it (decide.c). */
static acs_status no_kernel(acs_record *op)
{
    op->u.launch.resolved = NULL;
    op->type = 0;
    op->content = 0;
    return ACS_OK;
}

/*
 * Cheap checks come first. A launch that passes can fail only by what changes at run time, such as blocks that must be
 * resident.
 */
acs_status acs_cuda_check(acs_backend *backend, acs_record *op)
{
    acs_cuda *self = (acs_cuda *)backend;
    if (ACS_UNLIKELY(op->flags & ACS_RECORD_DECIDES && !op->u.launch.kernel.function))
        return no_kernel(op);
    ACS_TRY(check_kind(op));
    ACS_TRY(check_extent(op, "grid", op->grid, self->limits.grid));
    ACS_TRY(check_extent(op, "block", op->u.launch.block, self->limits.block));
    if (op->u.launch.attributes.cooperative && !self->limits.cooperative)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "'%.60s': this device has no cooperative launch", acs_record_name(op));
    /* From the second launch on this is all: no lock, no CUDA call. */
    acs_cuda_kernel *kernel = kernel_find(self, op->u.launch.kernel.kind, op->u.launch.kernel.function);
    if (ACS_UNLIKELY(!kernel))
        ACS_TRY(resolve(self, op, &kernel));
    ACS_TRY(check_threads(self, op, kernel));
    ACS_TRY(check_args(self, op, &kernel));
    ACS_TRY(acs_cuda_check_shared(self, op, kernel));
    ACS_TRY(check_cluster(self, op, kernel));
    op->u.launch.resolved = kernel;
    op->type = acs_cuda_type_number(self, kernel, op);
    op->content = op->type ? acs_cuda_args_hash(op) : 0;
    return ACS_OK;
}

acs_cuda_kernel *acs_cuda_kernel_of(acs_cuda *self, const acs_record *op)
{
    acs_cuda_kernel *kernel = kernel_find(self, op->u.launch.kernel.kind, op->u.launch.kernel.function);
    if (!kernel && resolve(self, op, &kernel) != ACS_OK)
        return NULL;
    return kernel;
}

void acs_cuda_meet(acs_cuda *self, const acs_record *op)
{
    const acs_error before = *acs_error_thread();
    if (!acs_cuda_kernel_of(self, op))
        *acs_error_thread() = before; /* no launch of it happens here, so there is no error */
}

void acs_cuda_needs(acs_backend *backend, const acs_record *op, uint32_t *thread_registers, uint32_t *block_shared)
{
    const acs_cuda_kernel *kernel = op->u.launch.resolved;
    (void)backend;
    *thread_registers = kernel ? (uint32_t)kernel->registers : 0; /* the host makes the decision */
    *block_shared = kernel ? (uint32_t)kernel->static_shared : 0;
}

/* ---------------------------------------------------------------------------------------------------------- launch */

/*
 * List the attributes that were asked for; without any, a launch takes the driver's short path. @return their number.
 */
static unsigned launch_attributes(const acs_cuda *self, const acs_attributes *wanted, CUlaunchAttribute *list)
{
    unsigned n = 0;
    if (wanted->cluster.x) {
        list[n].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        list[n].value.clusterDim.x = wanted->cluster.x;
        list[n].value.clusterDim.y = wanted->cluster.y;
        list[n++].value.clusterDim.z = wanted->cluster.z;
    }
    if (wanted->cooperative) {
        list[n].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        list[n++].value.cooperative = 1;
    }
    if (wanted->priority) { /* clamped, as in cudaStreamCreateWithPriority; the smaller number is more urgent */
        int priority = wanted->priority;
        priority = priority < self->limits.priority_high ? self->limits.priority_high : priority;
        priority = priority > self->limits.priority_low ? self->limits.priority_low : priority;
        list[n].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
        list[n++].value.priority = priority;
    }
    return n;
}

/* The driver copies the arguments before it returns, so `args` may point into the record. */
CUresult acs_cuda_launch_args(acs_cuda *self, const acs_record *op, CUstream stream, void **args)
{
    CUlaunchAttribute attributes[3];
    const acs_cuda_kernel *kernel = op->u.launch.resolved;
    CUlaunchConfig config = {
        .gridDimX = op->grid.x,
        .gridDimY = op->grid.y,
        .gridDimZ = op->grid.z,
        .blockDimX = op->u.launch.block.x,
        .blockDimY = op->u.launch.block.y,
        .blockDimZ = op->u.launch.block.z,
        .sharedMemBytes = (unsigned)op->u.launch.shared_bytes, /* checked against the device */
        .hStream = stream,
        .attrs = attributes,
    };
    config.numAttrs = launch_attributes(self, &op->u.launch.attributes, attributes);
    CUresult result = self->cu.cuLaunchKernelEx(&config, kernel->launch, args, NULL);
    if (ACS_UNLIKELY(result == CUDA_ERROR_INVALID_VALUE) && acs_cuda_raise_shared(self, kernel, config.sharedMemBytes))
        result = self->cu.cuLaunchKernelEx(&config, kernel->launch, args, NULL);
    return result;
}

static CUresult launch_with(acs_cuda *self, const acs_record *op, CUstream stream, void **args)
{
    for (uint32_t i = 0; i < op->arg_count; i++)
        args[i] = op->arg_bytes + op->args[i].offset; /* bound to the device: the identity, for now */
    return acs_cuda_launch_args(self, op, stream, args);
}

/* Rare; a function of its own, so that other launches do not pay for its stack. */
static __attribute__((noinline)) CUresult launch_many_args(acs_cuda *self, const acs_record *op, CUstream stream)
{
    void *args[ACS_CUDA_ARGS_MOST]; /* check refuses more */
    return launch_with(self, op, stream, args);
}

CUresult acs_cuda_launch(acs_cuda *self, const acs_record *op, CUstream stream)
{
    void *args[32];
    if (ACS_UNLIKELY(op->arg_count > sizeof args / sizeof args[0]))
        return launch_many_args(self, op, stream);
    return launch_with(self, op, stream, args);
}

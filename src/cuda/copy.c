/*
 * Small copies and fills become kernels of the library's own, which may be in bundles; a copy would cut a bundle in
 * two. Called through adapt() on the thread that made the call. A copy becomes a kernel only if the driver says that
 * kernels reach all of both ends. A kernel that runs out of its memory would cost the program its device; a copy is
 * refused with a clear error. The driver's answer is never stored, since memory is freed and mapped anew. Nothing here
 * fails: an unsuitable copy stays a copy.
 */
#include "cuda/graphs/graphs.h"

#include "base/tuning.h"

#include "acs_executor.h"

#include <stdlib.h>
#include <string.h>

enum { ARGS = 3, ROWS_ARGS = 4 };

_Static_assert((int)ACS_EXECUTOR_COPY_BYTES == ACS_DEVICE_COPY_BYTES, "an executor takes a copy's blocks as they are");

/* By kernel: a launch as check() filled it in, without grid and arguments. */
struct acs_cuda_copies {
    acs_record copy, rows, fill;
};

/* ---------------------------------------------------------------------------------------------------------- opening */

static bool prepare_kernel(acs_cuda *self, acs_record *op, const char *name, const char *function, uint32_t args)
{
    static const acs_site site = {"small copies", NULL, 0};
    CUfunction kernel = acs_cuda_device_kernel(self, function);
    if (!kernel)
        return false;
    op->kind = ACS_KIND_KERNEL;
    op->site = &site;
    op->args = op->inline_args;
    op->arg_bytes = op->inline_bytes;
    op->arg_count = args;
    for (uint32_t i = 0; i < args; i++)
        op->args[i] = (acs_arg_slot){.offset = i * 8, .size = 8};
    op->u.launch.kernel = (acs_kernel){name, (const void *)kernel, NULL, ACS_KERNEL_CUFUNCTION, 0};
    op->grid = (acs_dim3){1, 1, 1};
    op->u.launch.block = (acs_dim3){ACS_DEVICE_COPY_THREADS, 1, 1};
    if (acs_cuda_check(&self->base, op) != ACS_OK || op->type == 0)
        return false;
    return true;
}

void acs_cuda_copies_start(acs_cuda *self)
{
    if (!self->members[0]->bundles || !self->cu.cuPointerGetAttributes) /* kernels are better only in bundles */
        return;
    const acs_error before = *acs_error_thread(); /* errors here are not the program's */
    acs_cuda_copies *copies = aligned_alloc(_Alignof(acs_cuda_copies), sizeof *copies);
    if (copies)
        memset(copies, 0, sizeof *copies);
    if (copies && prepare_kernel(self, &copies->copy, "acs copy", "acs_device_copy", ARGS) &&
        prepare_kernel(self, &copies->rows, "acs copy of rows", "acs_device_copy_rows", ROWS_ARGS) &&
        prepare_kernel(self, &copies->fill, "acs fill", "acs_device_fill", ARGS)) {
        self->copies = copies;
        acs_cuda_resident_copies(copies->copy.u.launch.resolved, copies->rows.u.launch.resolved,
                                 copies->fill.u.launch.resolved);
        return;
    }
    free(copies);
    *acs_error_thread() = before;
    acs_log(ACS_LOG_INFO, "cuda: small copies and fills are not part of bundles: their kernels cannot be had");
}

void acs_cuda_copies_fini(acs_cuda *self)
{
    free(self->copies);
    self->copies = NULL;
}

/* --------------------------------------------------------------------------------------------------------- adapting */

/*
 * Whether the device reaches memory of another: only memory of its context. Memory of pools has owners with their own
 * rules.
 */
static bool is_peers(const acs_cuda *self, int device, CUcontext context)
{
    for (uint32_t i = 0; i < self->base.devices; i++)
        if (self->members[i]->device == device)
            return context == self->members[i]->context && (self->peers >> i & 1);
    return false;
}

/* Whether our kernels reach all these bytes, and one allocation has them. Without an answer: false. */
static bool reaches(acs_cuda *self, CUdeviceptr at, uint64_t bytes)
{
    CUmemorytype type = 0; /* for pageable memory all answers are zero */
    CUcontext context = NULL;
    CUdeviceptr seen = 0, start = 0;
    unsigned managed = 0;
    size_t size = 0;
    int device = -1;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_CONTEXT,
                                   CU_POINTER_ATTRIBUTE_DEVICE_POINTER,   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *answers[] = {&type, &context, &seen, &managed, &start, &size, &device};
    /* A lasting error shows at whatever is issued next. */
    if (self->cu.cuPointerGetAttributes(sizeof asked / sizeof asked[0], asked, answers, at) != CUDA_SUCCESS)
        return false;
    /* Memory of a pool has no context. */
    bool near = type == CU_MEMORYTYPE_DEVICE && device == self->device && (!context || context == self->context);
    bool far = type == CU_MEMORYTYPE_DEVICE && device != self->device && is_peers(self, device, context);
    return (near || far || type == CU_MEMORYTYPE_HOST) && !managed && seen == at && at >= start && bytes <= size &&
           at - start <= size - bytes;
}

static bool overlap(uint64_t a, uint64_t b, uint64_t bytes)
{
    return (a < b ? b - a : a - b) < bytes;
}

/* Make the op a launch like `pattern`, with `values` as arguments. */
static void become(acs_cuda *self, acs_record *op, const acs_record *pattern, uint64_t blocks, const uint64_t *values)
{
    /* The type is asked for again, since a graph with this kernel may have failed meanwhile. */
    acs_record launch = *pattern;
    launch.flags |= op->flags & ACS_RECORD_DECISION;
    const uint32_t type = acs_cuda_type_number(self, pattern->u.launch.resolved, &launch);
    if (!type)
        return;
    op->kind = ACS_KIND_KERNEL;
    op->u.launch = pattern->u.launch;
    op->type = type;
    op->grid = (acs_dim3){(uint32_t)blocks, 1, 1};
    op->arg_count = pattern->arg_count;
    op->arg_bytes_used = op->arg_count * 8;
    memcpy(op->args, pattern->args, op->arg_count * sizeof *op->args);
    memcpy(op->arg_bytes, values, op->arg_bytes_used);
    op->content = acs_cuda_args_hash(op);
}

void acs_cuda_adapt(acs_backend *backend, acs_record *op)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[op->device];
    bool copy = op->kind == ACS_KIND_MEMCPY;
    /* Read before the launch, in the same place, is written. */
    const uint64_t bytes = op->u.copy.bytes, rows = op->u.copy.rows, pitch = op->u.copy.pitch;
    const uint64_t dst = (uint64_t)(uintptr_t)op->u.copy.dst, src = copy ? (uint64_t)(uintptr_t)op->u.copy.src : 0;
    const unsigned char value = copy ? 0 : (unsigned char)op->u.copy.value;
    const bool decided = op->flags & ACS_RECORD_DECIDED; /* a kernel can be switched, however long it takes */
    const uint64_t most = decided ? (uint64_t)INT32_MAX * ACS_DEVICE_COPY_BYTES : TUNE_COPY_KERNEL_MOST;
    const uint64_t all = rows > 1 ? (rows - 1) * pitch + bytes : bytes; /* bytes from the first to the last one */
    const bool code = acs_cuda_has_code(self);
    acs_cuda *first = self->members[0];
    /* relaxed, both: a hint */
    const bool asks = !code && first->code_wanted && !atomic_load_explicit(&first->code_counts, memory_order_relaxed);
    if ((!asks && (!code || !self->copies)) || bytes == 0 || bytes * rows > most ||
        (copy && overlap(dst, src, all)) || acs_cuda_fault(self))
        return;
    ACS_CUDA_SCOPE(self);
    const bool fits = scope.entered == CUDA_SUCCESS && reaches(self, dst, all) && (!copy || reaches(self, src, all));
    const uint64_t blocks = (bytes + ACS_DEVICE_COPY_BYTES - 1) / ACS_DEVICE_COPY_BYTES;
    if (fits && asks)
        atomic_store_explicit(&first->code_counts, true, memory_order_relaxed);
    else if (fits && rows > 1)
        become(self, op, &self->copies->rows, rows * blocks, (const uint64_t[]){dst, src, bytes, pitch});
    else if (fits && copy)
        become(self, op, &self->copies->copy, blocks, (const uint64_t[]){dst, src, bytes});
    else if (fits)
        become(self, op, &self->copies->fill, blocks, (const uint64_t[]){dst, bytes, value});
}

/* Send a launch like `pattern` to a stream that is being captured. */
static CUresult send_like(acs_cuda *self, const acs_record *pattern, uint64_t blocks, const uint64_t *values,
                          CUstream stream)
{
    acs_record launch = *pattern;
    launch.args = launch.inline_args;
    launch.arg_bytes = launch.inline_bytes;
    launch.grid = (acs_dim3){(uint32_t)blocks, 1, 1};
    memcpy(launch.arg_bytes, values, launch.arg_count * sizeof *values);
    atomic_store_explicit(&self->code_stays, true, memory_order_relaxed); /* relaxed: read when the backend closes */
    return acs_cuda_launch(self, &launch, stream);
}

bool acs_cuda_copy_by_kernel(acs_cuda *self, const acs_record *op, CUstream stream, CUresult *result)
{
    const uint64_t bytes = op->u.copy.bytes, dst = (uint64_t)(uintptr_t)op->u.copy.dst;
    const uint64_t values[] = {dst, (uint64_t)(uintptr_t)op->u.copy.src, bytes};
    const uint64_t blocks = (bytes + ACS_DEVICE_COPY_BYTES - 1) / ACS_DEVICE_COPY_BYTES;
    if (!self->copies || blocks > INT32_MAX || overlap(dst, values[1], bytes) || !reaches(self, dst, bytes) ||
        !reaches(self, values[1], bytes))
        return false;
    *result = send_like(self, &self->copies->copy, blocks, values, stream);
    return true;
}

bool acs_cuda_fill_by_kernel(acs_cuda *self, const acs_record *op, CUstream stream, CUresult *result)
{
    const uint64_t bytes = op->u.copy.bytes, dst = (uint64_t)(uintptr_t)op->u.copy.dst;
    const uint64_t values[] = {dst, bytes, (unsigned char)op->u.copy.value};
    const uint64_t blocks = (bytes + ACS_DEVICE_COPY_BYTES - 1) / ACS_DEVICE_COPY_BYTES;
    if (!self->copies || blocks > INT32_MAX || !reaches(self, dst, bytes))
        return false;
    *result = send_like(self, &self->copies->fill, blocks, values, stream);
    return true;
}

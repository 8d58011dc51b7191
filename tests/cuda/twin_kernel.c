/*
 * The twin's kernels: handles of C functions, their limits, and the rules of a launch. Called through the driver table. A
 * launch that breaks a limit is a breach, since the backend checks limits before; only a cooperative grid that does not
 * fit is an error that a right program may meet.
 */
#include "twin_internal.h"

#include "window/decision.h"

#include <stdlib.h>
#include <string.h>

enum { RANGES_MOST = 64, CLUSTER_PORTABLE = 8, CLUSTER_MOST = 16 };

/* ------------------------------------------------------------------------------------------------------------- handles */

CUkernel twin_kernel(const twin_kernel_spec *spec)
{
    pthread_mutex_lock(&g_twin.lock);
    twin_kernel_object *kernel = twin_object_new_locked(TWIN_KERNEL, -1, sizeof *kernel);
    kernel->spec = *spec;
    pthread_mutex_unlock(&g_twin.lock);
    return (CUkernel)kernel->base.handle;
}

void twin_kernel_replace(CUkernel handle, const twin_kernel_spec *spec)
{
    pthread_mutex_lock(&g_twin.lock);
    twin_kernel_object *kernel = twin_find_locked(handle, TWIN_KERNEL);
    if (kernel) {
        kernel->spec = *spec;
        kernel->replaced++;
    }
    pthread_mutex_unlock(&g_twin.lock);
}

static CUfunction function_of(twin_kernel_object *kernel, int device)
{
    if (!kernel->functions[device]) {
        twin_function_object *function = twin_object_new_locked(TWIN_FUNCTION, device, sizeof *function);
        function->kernel = kernel;
        function->dynamic_shared = TWIN_SHARED_DEFAULT - kernel->spec.static_shared;
        kernel->functions[device] = function->base.handle;
    }
    return (CUfunction)kernel->functions[device];
}

CUfunction twin_function(CUkernel handle, int device)
{
    pthread_mutex_lock(&g_twin.lock);
    twin_kernel_object *kernel = twin_find_locked(handle, TWIN_KERNEL);
    CUfunction function = kernel ? function_of(kernel, device) : NULL;
    pthread_mutex_unlock(&g_twin.lock);
    return function;
}

TWIN_DEFINE(cuKernelGetFunction, (CUfunction * function, CUkernel handle), (function, handle))
{
    CUresult result = twin_unsafe_locked();
    twin_kernel_object *kernel = twin_find_locked(handle, TWIN_KERNEL);
    int device = twin_device_locked();
    if (!kernel || device < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        *function = function_of(kernel, device);
    return result;
}

/* Of the runtime; what it does not know is an error that a program may make. */
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    CUresult result = twin_enter("cudaGetFuncBySymbol");
    twin_kernel_object *found = NULL;
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < g_twin.object_count && !found; i++) {
        twin_kernel_object *kernel = (twin_kernel_object *)g_twin.objects[i];
        if (kernel->base.kind == TWIN_KERNEL && kernel->spec.symbol == symbol && symbol)
            found = kernel;
    }
    if (result == CUDA_SUCCESS)
        result = twin_unsafe_locked();
    int device = found ? twin_device_locked() : -1;
    if (result == CUDA_SUCCESS && device >= 0)
        *function = function_of(found, device);
    else if (result == CUDA_SUCCESS)
        result = (CUresult)cudaErrorInvalidDeviceFunction;
    twin_leave();
    return (cudaError_t)result;
}

/* ---------------------------------------------------------------------------------------------------------- attributes */

TWIN_DEFINE(cuKernelGetName, (const char **name, CUkernel handle), (name, handle))
{
    const twin_kernel_object *kernel = twin_find_locked(handle, TWIN_KERNEL);
    if (kernel)
        *name = kernel->spec.name;
    return kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

TWIN_DEFINE(cuFuncGetName, (const char **name, CUfunction handle), (name, handle))
{
    twin_function_object *function = NULL;
    CUresult result = twin_use_locked(handle, TWIN_FUNCTION, &function);
    if (result == CUDA_SUCCESS)
        *name = function->kernel->spec.name;
    return result;
}

TWIN_DEFINE(cuFuncLoad, (CUfunction handle), (handle))
{
    twin_function_object *function = NULL;
    CUresult result = twin_unsafe_locked();
    return result == CUDA_SUCCESS ? twin_use_locked(handle, TWIN_FUNCTION, &function) : result;
}

static int threads_of(const twin_function_object *function)
{
    return function->kernel->spec.block_threads ? function->kernel->spec.block_threads : TWIN_BLOCK_MOST;
}

TWIN_DEFINE(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction handle),
            (value, attribute, handle))
{
    twin_function_object *function = NULL;
    CUresult result = twin_use_locked(handle, TWIN_FUNCTION, &function);
    if (result != CUDA_SUCCESS)
        return result;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = threads_of(function);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = TWIN_REGISTERS;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = function->kernel->spec.static_shared;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->dynamic_shared;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        *value = (int)function->kernel->spec.cluster;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = function->kernel->spec.cluster != 0;
        return CUDA_SUCCESS;
    default:
        twin_breach_locked("attribute %d is not known here", (int)attribute);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

TWIN_DEFINE(cuFuncSetAttribute, (CUfunction handle, CUfunction_attribute attribute, int value),
            (handle, attribute, value))
{
    twin_function_object *function = NULL;
    CUresult result = twin_unsafe_locked();
    if (result == CUDA_SUCCESS)
        result = twin_use_locked(handle, TWIN_FUNCTION, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
        function->wide_clusters = value != 0;
        return CUDA_SUCCESS;
    }
    int most = TWIN_SHARED_MOST - function->kernel->spec.static_shared;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > most) {
        twin_breach_locked("attribute %d of value %d; at most %d bytes may be asked for", (int)attribute, value, most);
        return CUDA_ERROR_INVALID_VALUE;
    }
    function->dynamic_shared = value;
    return CUDA_SUCCESS;
}

void twin_lower_shared(CUkernel kernel, int device, int bytes)
{
    const CUfunction handle = twin_function(kernel, device);
    pthread_mutex_lock(&g_twin.lock);
    twin_function_object *function = twin_find_locked(handle, TWIN_FUNCTION);
    if (function) {
        function->dynamic_shared = bytes;
        function->lowered = true;
    }
    pthread_mutex_unlock(&g_twin.lock);
}

/* Each function is a module of its own. */
TWIN_DEFINE(cuFuncGetModule, (CUmodule * module, CUfunction handle), (module, handle))
{
    twin_function_object *function = NULL;
    CUresult result = twin_use_locked(handle, TWIN_FUNCTION, &function);
    *module = (CUmodule)(void *)handle;
    return result;
}

TWIN_DEFINE(cuModuleGetGlobal, (CUdeviceptr * variable, size_t *bytes, CUmodule module, const char *name),
            (variable, bytes, module, name))
{
    twin_function_object *function = NULL;
    CUresult result = twin_use_locked((CUfunction)(void *)module, TWIN_FUNCTION, &function);
    if (result != CUDA_SUCCESS)
        return result;
    *variable = 0;
    *bytes = sizeof(int);
    const bool has = function->kernel->spec.runtime && strcmp(name, "__CNPRT_VERSION_NUMBER__") == 0;
    return has ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Parameters lie one behind the other, each aligned as its size suggests. */
TWIN_DEFINE(cuFuncGetParamInfo, (CUfunction handle, size_t index, size_t *offset, size_t *bytes),
            (handle, index, offset, bytes))
{
    twin_function_object *function = NULL;
    CUresult result = twin_use_locked(handle, TWIN_FUNCTION, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (index >= function->kernel->spec.param_count)
        return CUDA_ERROR_INVALID_VALUE; /* how a caller learns the number */
    *offset = 0;
    for (size_t i = 0; i < index; i++)
        *offset += (function->kernel->spec.param_bytes[i] + 7u) / 8 * 8;
    *bytes = function->kernel->spec.param_bytes[index];
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------------ launches */

static bool extent_ok(const char *what, unsigned x, unsigned y, unsigned z, unsigned most)
{
    bool ok = x && y && z && x <= most && y <= most && z <= most;
    if (!ok)
        twin_breach_locked("%s %u x %u x %u; each 1 to %u", what, x, y, z, most);
    return ok;
}

static CUresult cluster_check(const CUlaunchConfig *c, const CUlaunchAttribute *attribute, bool wide)
{
    unsigned x = attribute->value.clusterDim.x, y = attribute->value.clusterDim.y, z = attribute->value.clusterDim.z;
    if (g_twin.plain || !extent_ok("cluster", x, y, z, CLUSTER_MOST) || c->gridDimX % x || c->gridDimY % y ||
        c->gridDimZ % z || x * y * z > CLUSTER_MOST || (x * y * z > CLUSTER_PORTABLE && !wide)) {
        twin_breach_locked("a cluster of %u x %u x %u blocks in a grid of %u x %u x %u%s", x, y, z, c->gridDimX, c->gridDimY,
                           c->gridDimZ, wide ? "" : ", without the opt-in to more than 8");
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    return CUDA_SUCCESS;
}

static CUresult attributes_check(const CUlaunchConfig *c, const twin_function_object *function)
{
    uint64_t blocks = (uint64_t)c->gridDimX * c->gridDimY * c->gridDimZ;
    const CUlaunchAttribute own = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {function->kernel->spec.cluster, 1, 1}};
    CUresult result = own.value.clusterDim.x ? cluster_check(c, &own, function->wide_clusters) : CUDA_SUCCESS;
    for (unsigned i = 0; i < c->numAttrs && result == CUDA_SUCCESS; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        bool full = function->kernel->spec.resident && blocks > (uint64_t)function->kernel->spec.resident;
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            result = cluster_check(c, a, function->wide_clusters);
        } else if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            if (g_twin.plain)
                twin_breach_locked("a cooperative launch on a device without");
            result = full ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
        } else if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            continue;
        } else if (a->id != CU_LAUNCH_ATTRIBUTE_PRIORITY || a->value.priority < -5 || a->value.priority > 0) {
            twin_breach_locked("attribute %d, or its value, is not known here", (int)a->id);
            result = CUDA_ERROR_INVALID_VALUE;
        }
    }
    return result;
}

static CUresult limits_check(const CUlaunchConfig *c, const twin_function_object *function)
{
    uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
    if (!extent_ok("grid", c->gridDimX, c->gridDimY, c->gridDimZ, TWIN_GRID_MOST) ||
        !extent_ok("block", c->blockDimX, c->blockDimY, c->blockDimZ, TWIN_BLOCK_MOST))
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > (uint64_t)threads_of(function)) {
        twin_breach_locked("a block of %llu threads, the kernel takes %d", (unsigned long long)threads,
                           threads_of(function));
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    if (c->sharedMemBytes > (unsigned)function->dynamic_shared) {
        if (!function->lowered)
            twin_breach_locked("%u bytes of shared memory, the kernel was opted in to %d", c->sharedMemBytes,
                               function->dynamic_shared);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return attributes_check(c, function);
}

/* One block: the pointers, then the values, each aligned to 16 bytes as kernels' parameters may ask for. */
void **twin_args_copy(const twin_kernel_spec *spec, void *const *args)
{
    size_t bytes = (spec->param_count * sizeof *args + 15) / 16 * 16;
    size_t used = bytes;
    for (uint32_t i = 0; i < spec->param_count; i++)
        bytes += (spec->param_bytes[i] + 15u) / 16 * 16;
    void **copy = twin_memory(bytes);
    for (uint32_t i = 0; i < spec->param_count; i++) {
        copy[i] = (char *)copy + used;
        memcpy(copy[i], args[i], spec->param_bytes[i]);
        used += (spec->param_bytes[i] + 15u) / 16 * 16;
    }
    return copy;
}

static bool args_given(const twin_kernel_spec *spec, void **args)
{
    for (uint32_t i = 0; i < spec->param_count; i++)
        if (!args || !args[i]) {
            twin_breach_locked("argument %u of %u of kernel '%s' is missing", i, spec->param_count, spec->name);
            return false;
        }
    return true;
}

/* What a kernel touches must be there when it is launched; that it stays is checked by whoever frees. */
static bool ranges_ok(const twin_op *op, int device)
{
    uint64_t breaches = g_twin.breaches;
    for (size_t i = 0; i < op->range_count; i++) {
        const twin_block *block = twin_block_find_locked(op->ranges[i].base, op->ranges[i].bytes);
        if (!block || (!block->host && block->device != device && !g_twin.peers[device][block->device]))
            twin_breach_locked("kernel '%s' touches %llu bytes at %#llx, which are no memory of device %d",
                               op->kernel->spec.name, (unsigned long long)op->ranges[i].bytes,
                               (unsigned long long)op->ranges[i].base, device);
    }
    return g_twin.breaches == breaches;
}

/* A CUkernel may be launched where a CUfunction is asked for. */
static CUresult launchable(CUfunction handle, twin_function_object **function)
{
    uintptr_t offset = (uintptr_t)handle - g_twin.first_handle;
    bool known = offset % 16 == 0 && offset / 16 < g_twin.object_count;
    if (known && g_twin.objects[offset / 16]->kind == TWIN_KERNEL) {
        int device = twin_device_locked();
        if (device < 0)
            return CUDA_ERROR_INVALID_CONTEXT;
        handle = function_of((twin_kernel_object *)g_twin.objects[offset / 16], device);
    }
    return twin_use_locked(handle, TWIN_FUNCTION, function);
}

bool twin_touches_ok_locked(twin_op *op, int device)
{
    const twin_kernel_spec *spec = &op->kernel->spec;
    if (!spec->touches)
        return true;
    if (!op->ranges)
        op->ranges = twin_memory(RANGES_MOST * sizeof *op->ranges);
    op->range_count = spec->touches(op->args, op->ranges, RANGES_MOST);
    return ranges_ok(op, device);
}

CUresult twin_launch_op_locked(const CUlaunchConfig *config, CUfunction handle, void **args, bool node, twin_op **out)
{
    twin_function_object *function = NULL;
    CUresult result = launchable(handle, &function);
    if (result == CUDA_SUCCESS)
        result = limits_check(config, function);
    if (result == CUDA_SUCCESS && !args_given(&function->kernel->spec, args))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    const twin_kernel_spec *spec = &function->kernel->spec;
    twin_op *op = twin_memory(sizeof *op);
    op->kind = OP_LAUNCH;
    op->kernel = function->kernel;
    op->replaced = function->kernel->replaced;
    op->args = twin_args_copy(spec, args);
    op->grid[0] = config->gridDimX;
    op->grid[1] = config->gridDimY;
    op->grid[2] = config->gridDimZ;
    op->block[0] = config->blockDimX;
    op->block[1] = config->blockDimY;
    op->block[2] = config->blockDimZ;
    op->shared = config->sharedMemBytes;
    for (unsigned i = 0; i < config->numAttrs; i++)
        op->programmatic |= config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                            config->attrs[i].value.programmaticStreamSerializationAllowed;
    if (!node && !twin_touches_ok_locked(op, function->base.device)) {
        twin_op_free(op);
        return CUDA_ERROR_ILLEGAL_ADDRESS; /* sooner than on a GPU, where the kernel faults */
    }
    *out = op;
    return CUDA_SUCCESS;
}

/*
 * A graph of the program's has a kernel of the library's own, so its code may stay for ever; and so may the report of a
 * decision.
 */
static void forgive_kernel_locked(const twin_op *op)
{
    const acs_decision *d = op->args[0];
    const bool decides = strcmp(op->kernel->spec.name, "acs_device_decide") == 0;
    twin_block *report = decides ? twin_block_find_locked((uint64_t)(uintptr_t)d->report, 1) : NULL;
    if (report)
        report->forgiven = true;
    for (uint32_t i = 0; i < g_twin.object_count; i++)
        if (g_twin.objects[i]->kind == TWIN_LIBRARY)
            g_twin.objects[i]->forgiven = true;
}

TWIN_DEFINE(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **args, void **extra),
            (config, function, args, extra))
{
    twin_stream *stream = NULL;
    twin_op *op = NULL;
    if (extra)
        twin_breach_locked("`extra` is not known here");
    CUresult result = twin_stream_use_locked(config->hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = twin_chance_locked(stream);
    if (result == CUDA_SUCCESS)
        result = twin_launch_op_locked(config, function, args, false, &op);
    if (result != CUDA_SUCCESS)
        return result;
    twin_note_locked("launch", stream, NULL);
    if (stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE && strncmp(op->kernel->spec.name, "acs_device_", 11) == 0)
        forgive_kernel_locked(op);
    twin_push_locked(stream, op);
    return CUDA_SUCCESS;
}

/*
 * The functions of the runtime that src/backend/cuda*.c calls, and the driver's functions that they find through it. Linked
 * instead of the CUDA runtime; used by test_backend_cuda.c.
 */
#include "fake_driver.h"

#include "backend/cuda_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fake_driver g_fake;
_Thread_local fake_thread tl_fake;

enum { STREAM_BASE = 0x1000, EVENT_BASE = 0x10000 };

CUcontext fake_context(void)
{
    return (CUcontext)(uintptr_t)0xc0de;
}

void fake_reset(void)
{
    free(g_fake.memory);
    memset(&g_fake, 0, sizeof g_fake);
    memset(&tl_fake, 0, sizeof tl_fake); /* mode 0 is CUDA's default, global */
    g_fake.stream_context = fake_context();
    g_fake.param_bytes[0] = 8;
    g_fake.param_bytes[1] = 4;
}

void fake_fail(const char *function, CUresult result, int count)
{
    g_fake.failing = function;
    g_fake.failure = result;
    g_fake.fail_count = count;
}

void fake_complete(int count)
{
    for (int i = 0; i < FAKE_EVENTS; i++)
        g_fake.events[i].complete = i < count;
}

static void note(const char *what, CUstream stream, CUevent event)
{
    size_t used = strlen(g_fake.log);
    unsigned s = (unsigned)(uintptr_t)stream;
    int n = snprintf(g_fake.log + used, sizeof g_fake.log - used, "%s %d", what,
                     s >= STREAM_BASE ? (int)(s - STREAM_BASE) : -1);
    used += n > 0 ? (size_t)n : 0;
    if (event && used < sizeof g_fake.log)
        snprintf(g_fake.log + used, sizeof g_fake.log - used, " e%u", (unsigned)(uintptr_t)event - EVENT_BASE);
    used = strlen(g_fake.log);
    snprintf(g_fake.log + used, sizeof g_fake.log - used, ";");
}

/* What this call returns; every function asks first. */
static CUresult answer(const char *function)
{
    atomic_fetch_add_explicit(&g_fake.calls, 1, memory_order_relaxed); /* relaxed: a counter */
    if (!g_fake.failing || strcmp(g_fake.failing, function) != 0 || g_fake.fail_count == 0)
        return CUDA_SUCCESS;
    g_fake.fail_count--;
    return g_fake.failure;
}
#define ANSWER()                                                                                                       \
    do {                                                                                                               \
        CUresult answer_ = answer(__func__ + sizeof "fake_" - 1);                                                      \
        if (answer_ != CUDA_SUCCESS)                                                                                   \
            return answer_;                                                                                            \
    } while (0)

/* ------------------------------------------------------------------------------------------- context, device, memory */

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    ANSWER();
    *context = fake_context();
    g_fake.contexts++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    g_fake.contexts--;
    ANSWER();
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    ANSWER();
    bool grid = attribute >= CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X && attribute <= CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448 : grid ? 65535 : 1024;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetCurrent(CUcontext *context)
{
    ANSWER();
    *context = tl_fake.pushed ? fake_context() : tl_fake.current;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxSetCurrent(CUcontext context)
{
    ANSWER();
    tl_fake.current = context;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    (void)context;
    ANSWER();
    tl_fake.pushed++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxPopCurrent(CUcontext *context)
{
    ANSWER();
    *context = fake_context();
    tl_fake.pushed--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetStreamPriorityRange(int *low, int *high)
{
    ANSWER();
    *low = 0;
    *high = -5;
    return CUDA_SUCCESS;
}

static CUresult fake_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    ANSWER();
    CUstreamCaptureMode before = tl_fake.mode;
    tl_fake.mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
    (void)flags;
    ANSWER();
    *ptr = g_fake.memory = malloc(bytes);
    g_fake.blocks++;
    return *ptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_cuMemAlloc(CUdeviceptr *ptr, size_t bytes)
{
    ANSWER();
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *ptr = 0x7000000;
    g_fake.blocks++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemFreeHost(void *ptr)
{
    ANSWER();
    free(ptr);
    g_fake.memory = NULL;
    g_fake.blocks--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemFree(CUdeviceptr ptr)
{
    (void)ptr;
    ANSWER();
    g_fake.blocks--;
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

static CUresult fake_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    ANSWER();
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

static CUresult fake_cuFuncLoad(CUfunction function)
{
    (void)function;
    ANSWER();
    return CUDA_SUCCESS;
}

static CUresult fake_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)function;
    ANSWER();
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK          ? 512
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 49152 - 1024
                                                                            : 1024;
    return CUDA_SUCCESS;
}

static CUresult fake_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    ANSWER();
    atomic_fetch_add_explicit(&g_fake.opt_ins, 1, memory_order_relaxed); /* relaxed: a counter */
    return CUDA_SUCCESS;
}

static CUresult fake_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    (void)function;
    ANSWER();
    if (index >= FAKE_PARAMS || g_fake.param_bytes[index] == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = 8 * index;
    *bytes = g_fake.param_bytes[index];
    return CUDA_SUCCESS;
}

static CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **args, void **extra)
{
    (void)function;
    (void)args;
    (void)extra;
    ANSWER();
    note("launch", config->hStream, NULL);
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------ streams and events */

static CUresult fake_cuStreamCreate(CUstream *stream, unsigned flags)
{
    ANSWER();
    if (flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *stream = (CUstream)(uintptr_t)(STREAM_BASE + g_fake.streams++);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamDestroy(CUstream stream)
{
    (void)stream;
    ANSWER();
    g_fake.streams--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamSynchronize(CUstream stream)
{
    ANSWER();
    note("sync", stream, NULL);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    ANSWER();
    note("wait", stream, event);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    ANSWER();
    *status = g_fake.capture;
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    (void)stream;
    ANSWER();
    *context = g_fake.stream_context;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventCreate(CUevent *event, unsigned flags)
{
    ANSWER();
    if (flags != CU_EVENT_DISABLE_TIMING || g_fake.events_made == FAKE_EVENTS)
        return CUDA_ERROR_INVALID_VALUE;
    g_fake.events[g_fake.events_made].alive = true;
    *event = (CUevent)(uintptr_t)(EVENT_BASE + g_fake.events_made++);
    g_fake.events_alive++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventDestroy(CUevent event)
{
    ANSWER();
    g_fake.events[(uintptr_t)event - EVENT_BASE].alive = false;
    g_fake.events_alive--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    ANSWER();
    g_fake.events[(uintptr_t)event - EVENT_BASE].recorded = true;
    note("record", stream, event);
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventQuery(CUevent event)
{
    ANSWER();
    return g_fake.events[(uintptr_t)event - EVENT_BASE].complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult fake_cuEventSynchronize(CUevent event)
{
    ANSWER();
    note("host-wait", NULL, event);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    (void)dst;
    (void)src;
    (void)bytes;
    ANSWER();
    note("copy", stream, NULL);
    return CUDA_SUCCESS;
}

static CUresult fake_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument)
{
    ANSWER();
    note("host", stream, NULL);
    function(argument);
    return CUDA_SUCCESS;
}

static CUresult fake_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    (void)attribute;
    (void)pointer;
    if (g_fake.pageable)
        return CUDA_ERROR_INVALID_VALUE;
    *(CUmemorytype *)data = CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t bytes, CUstream stream)
{
    (void)dst;
    (void)value;
    (void)bytes;
    ANSWER();
    note("fill", stream, NULL);
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------ the runtime */

static CUresult fake_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = 0;
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *found)
{
    typedef void (*any_function)(void);
    static const struct {
        const char *name;
        any_function function;
    } table[] = {
#define ROW(name, version, asked) {#name, (any_function)fake_##name},
        ACS_CUDA_DRIVER_NEEDED(ROW) ACS_CUDA_DRIVER_OPTIONAL(ROW)
#undef ROW
        {"cuDevicePrimaryCtxGetState", (any_function)fake_cuDevicePrimaryCtxGetState},
    };
    (void)version;
    (void)flags;
    *function = NULL;
    *found = cudaDriverEntryPointSymbolNotFound;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(symbol, table[i].name) == 0 && !(g_fake.missing && strcmp(symbol, g_fake.missing) == 0)) {
            memcpy(function, &table[i].function, sizeof *function);
            *found = cudaDriverEntryPointSuccess;
        }
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return g_fake.device_error;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 && tl_fake.pushed == 1 ? (cudaError_t)answer("cudaSetDevice") : cudaErrorInvalidDevice;
}

cudaError_t cudaGetLastError(void)
{
    g_fake.last_errors_read++;
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "illegal address" : "some CUDA error";
}

/* Odd addresses are no kernels. */
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    *function = (cudaFunction_t)symbol;
    return (uintptr_t)symbol % 2 ? cudaErrorInvalidDeviceFunction : cudaSuccess;
}

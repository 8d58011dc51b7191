/*
 * Calls of CUDA's driver: its entry points, the scope around calls, and the meaning of its errors. Owns the first
 * fatal error of a backend, and the two thread-local words that say which backend a thread of the library works for.
 * Called by every other file of this folder. A scope leaves an application's thread with the context and capture mode
 * that it came with.
 */
#include "cuda/internal.h"

#include <dlfcn.h>
#include <string.h>

static _Thread_local uint64_t tl_entered; /* serial of the backend that this thread of the library entered; 0: none */
static _Thread_local CUcontext tl_context; /* context of that backend's that is current */

/* ---------------------------------------------------------------------------------------------------------- errors */

const char *acs_cuda_text(int native)
{
    if (native == cudaErrorContextIsDestroyed)
        return "context is destroyed: the program has called cudaDeviceReset, or a call of the driver like it";
    return cudaGetErrorString((cudaError_t)native);
}

/* Errors after which the process can run nothing more, according to cudaError_t's documentation. */
static bool is_fatal(CUresult result)
{
    switch ((cudaError_t)result) {
    case cudaErrorInitializationError:
    case cudaErrorCudartUnloading:
    case cudaErrorDeviceUninitialized: /* CUDA_ERROR_INVALID_CONTEXT */
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

void acs_cuda_lose(acs_cuda *self, CUresult result)
{
    int none = 0;
    /* Relaxed: nothing else is published with the code. The first one wins. */
    atomic_compare_exchange_strong_explicit(&self->members[0]->fault, &none, (int)result, memory_order_relaxed,
                                            memory_order_relaxed);
}

bool acs_cuda_note(acs_cuda *self, CUresult result)
{
    if (!is_fatal(result))
        return false;
    acs_cuda_lose(self, result);
    return true;
}

void acs_cuda_close_note(acs_cuda *self, const char *what, CUresult result)
{
    if (result != CUDA_SUCCESS && !acs_cuda_note(self, result))
        acs_log(ACS_LOG_WARN, "cuda: close: %s: %s", what, acs_cuda_text((int)result));
}

int acs_cuda_fault(const acs_cuda *self)
{
    return atomic_load_explicit(&self->members[0]->fault, memory_order_relaxed); /* relaxed: see acs_cuda_lose */
}

/* Whether an error means that no GPU is usable: `auto` then takes the host backend. */
static bool means_no_device(cudaError_t error)
{
    switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
        return true;
    default:
        return false;
    }
}

/* The CUDA runtime has one error for an old driver and for none. */
const char *acs_cuda_open_text(int native)
{
    if (native != cudaErrorInsufficientDriver)
        return acs_cuda_text(native);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver)
        return "no NVIDIA driver is installed here (libcuda.so.1 is not found)";
    (void)dlclose(driver);
    return acs_cuda_text(native);
}

acs_status acs_cuda_open_failed(const char *what, int native)
{
    acs_status status = native == cudaErrorMemoryAllocation             ? ACS_ERR_MEMORY
                        : means_no_device((cudaError_t)native) ? ACS_ERR_UNSUPPORTED
                                                               : ACS_ERR_DEVICE;
    return ACS_FAIL(status, native, "cuda: %s: %s", what, acs_cuda_open_text(native));
}

/* --------------------------------------------------------------------------------------------------------- threads */

static CUresult enter_member(acs_cuda *self)
{
    CUresult result = self->cu.cuCtxSetCurrent(self->context);
    tl_context = result == CUDA_SUCCESS ? self->context : NULL;
    return result;
}

CUresult acs_cuda_scope_enter(acs_cuda *self, acs_cuda_scope *scope)
{
    unsigned long long id = self->context_id;
    const CUresult known = id ? self->cu.cuCtxGetId(self->context, &id) : CUDA_SUCCESS;
    scope->pushed = false;
    if (ACS_UNLIKELY(known == CUDA_ERROR_CONTEXT_IS_DESTROYED || id != self->context_id)) {
        acs_cuda_lose(self, CUDA_ERROR_CONTEXT_IS_DESTROYED);
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    /* A thread of the library has entered this backend for good, but maybe another member's context is current. */
    if (tl_entered == self->serial)
        return tl_context == self->context ? CUDA_SUCCESS : enter_member(self);
    CUresult result = self->cu.cuCtxPushCurrent(self->context);
    if (result != CUDA_SUCCESS)
        return result;
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    result = self->cu.cuThreadExchangeStreamCaptureMode(&scope->mode);
    if (result != CUDA_SUCCESS) {
        CUcontext popped;
        (void)self->cu.cuCtxPopCurrent(&popped); /* the first error is reported */
        return result;
    }
    scope->pushed = true;
    return CUDA_SUCCESS;
}

void acs_cuda_scope_leave(acs_cuda *self, acs_cuda_scope *scope)
{
    if (!scope->pushed)
        return;
    CUcontext popped;
    CUresult mode = self->cu.cuThreadExchangeStreamCaptureMode(&scope->mode);
    CUresult pop = self->cu.cuCtxPopCurrent(&popped);
    if (mode != CUDA_SUCCESS || pop != CUDA_SUCCESS)
        acs_log(ACS_LOG_WARN, "cuda: a thread's context or capture mode could not be restored: %s",
                acs_cuda_text((int)(mode != CUDA_SUCCESS ? mode : pop)));
}

acs_status acs_cuda_scope_failed(acs_cuda *self, CUresult result)
{
    return ACS_CUDA_FAIL(self, ACS_ERR_UNSUPPORTED, result, "cuda: the device cannot be selected: %s",
                         acs_cuda_text((int)result));
}

/* For good: the thread belongs to this backend from now on. */
void acs_cuda_thread_enter(acs_backend *backend)
{
    acs_cuda *self = (acs_cuda *)backend;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = self->cu.cuCtxSetCurrent(self->context);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuThreadExchangeStreamCaptureMode(&mode);
    tl_context = self->context;
    if (result == CUDA_SUCCESS)
        tl_entered = self->serial;
    else /* each call of this thread then enters a scope, and reports the error */
        acs_log(ACS_LOG_WARN, "cuda: a thread could not enter the device: %s", acs_cuda_text((int)result));
}

/* ---------------------------------------------------------------------------------------------------- entry points */

/*
 * Store a driver function's address in its field, a pointer to a function; NULL if this driver lacks it. The legacy variant
 * is asked for: a NULL stream is never the thread's own.
 */
static bool load_function(const char *name, unsigned version, void *field)
{
    void *symbol = NULL;
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, &symbol, version, cudaEnableLegacyStream, &found);
    if (error != cudaSuccess)
        (void)cudaGetLastError(); /* clear our own error */
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess)
        symbol = NULL;
    memcpy(field, &symbol, sizeof symbol);
    return symbol != NULL;
}

acs_status acs_cuda_driver_load(acs_cuda_driver *cu)
{
    /* #name must stand in the row's own macro: passed on, cuda.h would make cuMemAlloc_v2 of cuMemAlloc. */
#define LOAD_NEEDED(name, version, asked)                                                                              \
    if (!load_function(#name, asked, &cu->name))                                                                       \
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "cuda: the driver has no %s; a driver for CUDA 12 is needed", #name);
#define LOAD_OPTIONAL(name, version, asked) (void)load_function(#name, asked, &cu->name);
    ACS_CUDA_DRIVER_NEEDED(LOAD_NEEDED)
#define LOAD_NEWER(field, name, version, asked) (void)load_function(#name, asked, &cu->field);
    ACS_CUDA_DRIVER_OPTIONAL(LOAD_OPTIONAL)
    ACS_CUDA_DRIVER_NEWER(LOAD_NEWER)
#undef LOAD_NEEDED
#undef LOAD_OPTIONAL
#undef LOAD_NEWER
    return ACS_OK;
}

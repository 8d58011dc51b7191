/*
 * Private to src/cuda: CUDA's driver and how it is called (driver.c): the table of its functions, scopes, and errors.
 */
#ifndef ACS_CUDA_DRIVER_H
#define ACS_CUDA_DRIVER_H

#include "scheduler/backend.h"

#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>

#if CUDART_VERSION < 12050
#error "the CUDA backend needs CUDA 12.5 or newer"
#endif

typedef struct acs_cuda acs_cuda;

/* Functions that must exist: name, version of the signature, CUDA version to ask the driver for. */
#define ACS_CUDA_DRIVER_NEEDED(X)                                                                                      \
    X(cuDevicePrimaryCtxRetain, 7000, 12000)                                                                           \
    X(cuDevicePrimaryCtxRelease, 11000, 12000)                                                                         \
    X(cuDeviceGetAttribute, 2000, 12000)                                                                               \
    X(cuCtxGetCurrent, 4000, 12000)                                                                                    \
    X(cuCtxSetCurrent, 4000, 12000)                                                                                    \
    X(cuCtxPushCurrent, 4000, 12000)                                                                                   \
    X(cuCtxPopCurrent, 4000, 12000)                                                                                    \
    X(cuCtxGetStreamPriorityRange, 5050, 12000)                                                                        \
    X(cuThreadExchangeStreamCaptureMode, 10010, 12000)                                                                 \
    X(cuKernelGetFunction, 12000, 12000)                                                                               \
    X(cuFuncGetModule, 11000, 12000)                                                                                   \
    X(cuModuleGetGlobal, 3020, 12000)                                                                                  \
    X(cuFuncGetAttribute, 2020, 12000)                                                                                 \
    X(cuFuncSetAttribute, 9000, 12000)                                                                                 \
    X(cuLaunchKernelEx, 11060, 12000)                                                                                  \
    X(cuMemcpyAsync, 4000, 12000)                                                                                      \
    X(cuMemsetD8Async, 3020, 12000)                                                                                    \
    X(cuLaunchHostFunc, 10000, 12000)                                                                                  \
    X(cuPointerGetAttribute, 4000, 12000)                                                                              \
    X(cuStreamCreate, 2000, 12000)                                                                                     \
    X(cuStreamDestroy, 4000, 12000)                                                                                    \
    X(cuStreamSynchronize, 2000, 12000)                                                                                \
    X(cuStreamWaitEvent, 3020, 12000)                                                                                  \
    X(cuStreamIsCapturing, 10000, 12000)                                                                               \
    X(cuStreamGetCtx, 9020, 12000)                                                                                     \
    X(cuStreamGetCaptureInfo, 11030, 12000)                                                                            \
    X(cuStreamUpdateCaptureDependencies, 11030, 12000)                                                                 \
    X(cuGraphAddEmptyNode, 10000, 12000)                                                                               \
    X(cuGraphNodeGetDependencies, 10000, 12000)                                                                        \
    X(cuGraphRetainUserObject, 11030, 12000)                                                                           \
    X(cuUserObjectCreate, 11030, 12000)                                                                                \
    X(cuUserObjectRelease, 11030, 12000)                                                                               \
    X(cuEventCreate, 2000, 12000)                                                                                      \
    X(cuEventDestroy, 4000, 12000)                                                                                     \
    X(cuEventRecord, 2000, 12000)                                                                                      \
    X(cuEventQuery, 2000, 12000)                                                                                       \
    X(cuEventSynchronize, 2000, 12000)                                                                                 \
    X(cuMemAlloc, 3020, 12000)                                                                                         \
    X(cuMemFree, 3020, 12000)                                                                                          \
    X(cuMemHostAlloc, 2020, 12000)                                                                                     \
    X(cuMemFreeHost, 2000, 12000)
/*
 * Functions that an older driver may lack; their pointers are then NULL. Without them arguments are not checked,
 * kernels are loaded at their first launch and not timed, or rows are copied one by one. Copies and library calls may
 * never be part of bundles, or there are no bundles. Or launches with a share get the whole GPU.
 */
#define ACS_CUDA_DRIVER_OPTIONAL(X)                                                                                    \
    X(cuFuncGetParamInfo, 12040, 12040)                                                                                \
    X(cuFuncLoad, 12040, 12040)                                                                                        \
    X(cuCtxGetId, 12000, 12000)                                                                                        \
    X(cuEventElapsedTime, 2000, 12000)                                                                                 \
    X(cuMemcpy2DAsync, 3020, 12000)                                                                                    \
    X(cuPointerGetAttributes, 7000, 12000)                                                                             \
    X(cuLibraryLoadData, 12000, 12000)                                                                                 \
    X(cuDeviceGetDevResource, 12040, 12040)                                                                            \
    X(cuDevSmResourceSplitByCount, 12040, 12040)                                                                       \
    X(cuDevResourceGenerateDesc, 12040, 12040)                                                                         \
    X(cuGreenCtxCreate, 12040, 12040)                                                                                  \
    X(cuGreenCtxStreamCreate, 12050, 12050)                                                                            \
    X(cuLibraryUnload, 12000, 12000)                                                                                   \
    X(cuLibraryGetKernel, 12000, 12000)                                                                                \
    X(cuStreamBeginCapture, 10010, 12000)                                                                              \
    X(cuStreamEndCapture, 10000, 12000)                                                                                \
    X(cuGraphGetNodes, 10000, 12000)                                                                                   \
    X(cuGraphNodeGetType, 10000, 12000)                                                                                \
    X(cuGraphKernelNodeGetParams, 12000, 12000)                                                                        \
    X(cuGraphMemsetNodeGetParams, 10000, 12000)                                                                        \
    X(cuMemsetD32Async, 3020, 12000)                                                                                   \
    X(cuGraphCreate, 10000, 12000)                                                                                     \
    X(cuGraphDestroy, 10000, 12000)                                                                                    \
    X(cuGraphAddKernelNode, 12000, 12000)                                                                              \
    X(cuGraphKernelNodeSetParams, 12000, 12000)                                                                        \
    X(cuGraphKernelNodeSetAttribute, 11000, 12000)                                                                     \
    X(cuGraphKernelNodeGetAttribute, 11000, 12000)                                                                     \
    X(cuGraphAddDependencies, 12030, 12030)                                                                            \
    X(cuGraphRemoveDependencies, 12030, 12030)                                                                         \
    X(cuGraphNodeGetDependentNodes, 12030, 12030)                                                                      \
    X(cuGraphInstantiateWithFlags, 11040, 12000)                                                                       \
    X(cuGraphNodeSetEnabled, 11060, 11060)                                                                             \
    X(cuGraphExecKernelNodeSetParams, 12000, 12000)                                                                    \
    X(cuGraphExecDestroy, 10000, 12000)                                                                                \
    X(cuGraphUpload, 11010, 12000)                                                                                     \
    X(cuGraphLaunch, 10000, 12000)                                                                                     \
    X(cuMemAddressReserve, 10020, 12000)                                                                               \
    X(cuMemAddressFree, 10020, 12000)                                                                                  \
    X(cuMemCreate, 10020, 12000)                                                                                       \
    X(cuMemRelease, 10020, 12000)                                                                                      \
    X(cuMemMap, 10020, 12000)                                                                                          \
    X(cuMemUnmap, 10020, 12000)                                                                                        \
    X(cuMemSetAccess, 10020, 12000)                                                                                    \
    X(cuMemGetAllocationGranularity, 10020, 12000)                                                                     \
    X(cuMemGetInfo, 3020, 12000)                                                                                       \
    X(cuDeviceCanAccessPeer, 4000, 12000)                                                                              \
    X(cuCtxEnablePeerAccess, 4000, 12000)                                                                              \
    X(cuDeviceGetUuid, 11040, 12000)                                                                                   \
    X(cuDeviceGetName, 2000, 12000)                                                                                    \
    X(cuKernelGetName, 12030, 12030)                                                                                   \
    X(cuFuncGetName, 12030, 12030)
/* Newer signatures of needed functions, under names of their own: field, name, version, CUDA version to ask for. */
#define ACS_CUDA_DRIVER_NEWER(X)                                                                                       \
    X(node_dependencies, cuGraphNodeGetDependencies, 12030, 12030)

typedef struct acs_cuda_driver {
#define ACS_CUDA_DRIVER_FIELD(name, version, asked) PFN_##name##_v##version name;
    ACS_CUDA_DRIVER_NEEDED(ACS_CUDA_DRIVER_FIELD)
    ACS_CUDA_DRIVER_OPTIONAL(ACS_CUDA_DRIVER_FIELD)
#undef ACS_CUDA_DRIVER_FIELD
#define ACS_CUDA_DRIVER_FIELD(field, name, version, asked) PFN_##name##_v##version field;
    ACS_CUDA_DRIVER_NEWER(ACS_CUDA_DRIVER_FIELD)
#undef ACS_CUDA_DRIVER_FIELD
} acs_cuda_driver;

/* Fill the table. ACS_ERR_UNSUPPORTED, through ACS_FAIL: a needed function is missing. */
acs_status acs_cuda_driver_load(acs_cuda_driver *cu);

/* A scope that a thread has entered, and the state that leaving it restores. */
typedef struct acs_cuda_scope {
    acs_cuda *self;   /* of ACS_CUDA_SCOPE, as the next one */
    CUresult entered; /* what acs_cuda_scope_enter returned */
    bool pushed;
    CUstreamCaptureMode mode;
} acs_cuda_scope;

/*
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the device's context is no longer the one that was opened, since the
 * program has called cudaDeviceReset. The backend is marked as faulted. None of its handles and none of its pinned memory
 * may be touched: that ends the process. To look takes 10 ns (H200, driver 580).
 */
CUresult acs_cuda_scope_enter(acs_cuda *self, acs_cuda_scope *scope);
void acs_cuda_scope_leave(acs_cuda *self, acs_cuda_scope *scope);
/* Enter a scope, named `scope`, from here to the end of the block, in whichever way that is left. */
#define ACS_CUDA_SCOPE(self)                                                                                           \
    __attribute__((cleanup(acs_cuda_scope_end))) acs_cuda_scope scope = acs_cuda_scope_begin(self)
static inline acs_cuda_scope acs_cuda_scope_begin(acs_cuda *self)
{
    acs_cuda_scope scope = {.self = self};
    scope.entered = acs_cuda_scope_enter(self, &scope);
    return scope;
}
static inline void acs_cuda_scope_end(acs_cuda_scope *scope)
{
    acs_cuda_scope_leave(scope->self, scope);
}
void acs_cuda_thread_enter(acs_backend *backend);

/* Errors; no scope needed. */
/* The text of an error, in static storage. */
const char *acs_cuda_text(int native);
/* The text of an error while a device is opened: it tells a missing driver from an old one. */
const char *acs_cuda_open_text(int native);
/* Report an error of opening a device, through ACS_FAIL. */
acs_status acs_cuda_open_failed(const char *what, int native);
/* Report a result through ACS_FAIL: ACS_ERR_DEVICE after an error that acs_cuda_note notes, else `otherwise`. */
#define ACS_CUDA_FAIL(self, otherwise, result, ...)                                                                    \
    ACS_FAIL(acs_cuda_note(self, result) ? ACS_ERR_DEVICE : (otherwise), (int)(result), __VA_ARGS__)
/* A scope could not be entered. */
acs_status acs_cuda_scope_failed(acs_cuda *self, CUresult result);
/* Log an object that could not be destroyed. That is normal after a fault, and while the process exits. */
void acs_cuda_close_note(acs_cuda *self, const char *what, CUresult result);
/* Note a result. True: CUDA runs nothing more in this process, and the backend is marked as faulted. */
bool acs_cuda_note(acs_cuda *self, CUresult result);
/* Mark the backend as faulted, whatever the error, because order or completion can no longer be known. */
void acs_cuda_lose(acs_cuda *self, CUresult result);
int acs_cuda_fault(const acs_cuda *self);

#endif

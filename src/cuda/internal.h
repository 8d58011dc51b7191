/*
 * Private to src/cuda/cuda*.c: the backend's state and what its three files share.
 *
 * Which API. The runtime API is used where only it knows the answer (current device, __global__ functions of the
 * program, error texts). Everything on the path of an op goes through the driver's entry points, for two reasons: a
 * CUfunction of NVRTC, Triton or Warp can be launched in no other way, so one path serves all kinds of kernels; and
 * the driver keeps no "last error" per thread, so stepping the runtime on an application's thread neither shows it
 * our errors nor clears its own. CUresult and cudaError_t share their numbers; natives are reported as cudaError_t.
 *
 * Threads. A thread of the library enters once (thread_enter). Any other thread enters a scope around each call: the
 * device's primary context is pushed and the capture mode relaxed, both restored after, so that an application's
 * thread keeps its device and may be capturing a stream of its own.
 *
 * Locks. acs_cuda.lock (rank BACKEND) guards what is written on first sight of a kernel, the events of foreign
 * streams, and fills of pageable memory.
 */
#ifndef ACS_CUDA_INTERNAL_H
#define ACS_CUDA_INTERNAL_H

#include "scheduler/backend.h"
#include "base/lock.h"
#include "pool/memory.h"
#include "bundles/costs.h"

#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>
#include <stdatomic.h>

#if CUDART_VERSION < 12050
#error "the CUDA backend needs CUDA 12.5 or newer"
#endif

/* Driver functions: name, version of the signature, CUDA version to ask the driver for. */
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
 * May be NULL with an older driver: arguments are then not checked, kernels are loaded at their first launch, rows are
 * copied one by one, copies and library calls are never part of bundles, or there are no bundles.
 */
#define ACS_CUDA_DRIVER_OPTIONAL(X)                                                                                    \
    X(cuFuncGetParamInfo, 12040, 12040)                                                                                \
    X(cuFuncLoad, 12040, 12040)                                                                                        \
    X(cuMemcpy2DAsync, 3020, 12000)                                                                                    \
    X(cuPointerGetAttributes, 7000, 12000)                                                                             \
    X(cuLibraryLoadData, 12000, 12000)                                                                                 \
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
    X(cuGraphKernelNodeSetAttribute, 11000, 12000)                                                                     \
    X(cuGraphKernelNodeGetAttribute, 11000, 12000)                                                                     \
    X(cuGraphAddDependencies, 12030, 12030)                                                                            \
    X(cuGraphInstantiateWithFlags, 11040, 12000)                                                                       \
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
    X(cuDeviceGetName, 2000, 12000)

enum { ACS_CUDA_ARGS_MOST = 4096 }; /* arguments of one kernel */

typedef struct acs_cuda_driver {
#define ACS_CUDA_DRIVER_FIELD(name, version, asked) PFN_##name##_v##version name;
    ACS_CUDA_DRIVER_NEEDED(ACS_CUDA_DRIVER_FIELD)
    ACS_CUDA_DRIVER_OPTIONAL(ACS_CUDA_DRIVER_FIELD)
#undef ACS_CUDA_DRIVER_FIELD
} acs_cuda_driver;

/* What the device allows, read once. */
typedef struct acs_cuda_limits {
    int grid[3], block[3];
    int block_threads;
    int shared_bytes; /* per block, with the opt-in above 48 KiB */
    int cooperative, clusters;
    int sms, sm_threads;
    int priority_low, priority_high; /* high is the smaller number */
} acs_cuda_limits;

typedef struct acs_cuda_type acs_cuda_type;
typedef struct acs_cuda_methods acs_cuda_methods;
typedef struct acs_cuda_copies acs_cuda_copies;
typedef struct acs_cuda_calls acs_cuda_calls;

/* A kernel that was seen before. Immutable once it is in the table, but for the two opt-ins and the list of types. */
typedef struct acs_cuda_kernel {
    const void *key; /* as the program gave it, with `kind` */
    uint32_t kind;
    CUfunction function; /* in our context: for attributes */
    CUfunction launch;   /* what is launched: the CUkernel itself where the program gave one */
    int block_threads;   /* most threads per block, by the kernel's registers */
    int static_shared, registers; /* of a block, of a thread */
    _Atomic int dynamic_shared;  /* bytes that the kernel may ask for now */
    _Atomic bool wide_clusters;  /* opted in to clusters of more than 8 blocks */
    _Atomic bool everywhere;     /* the other members have been told of it */
    _Atomic(acs_cuda_type *) types; /* numbered so far, the latest first */
    bool params_known;
    uint32_t param_count;
    const uint32_t *param_offset;  /* behind param_bytes: where each lies among the parameters */
    struct acs_cuda_kernel *older; /* every kernel resolved so far, for close */
    uint32_t param_bytes[];
} acs_cuda_kernel;

/* Open addressing; a table that became too small is kept until close, since readers take no lock. */
typedef struct acs_cuda_kernel_table {
    struct acs_cuda_kernel_table *older;
    uint32_t mask, used;
    _Atomic(acs_cuda_kernel *) cells[];
} acs_cuda_kernel_table;

typedef struct acs_cuda acs_cuda;

/* An event that a foreign stream's work was recorded in. */
typedef struct acs_cuda_event {
    CUevent event;
    acs_cuda *owner;              /* in whose context it was made */
    struct acs_cuda_event *next;  /* spare */
    struct acs_cuda_event *older; /* every one made so far, for close */
} acs_cuda_event;

typedef struct acs_cuda_fill acs_cuda_fill;
typedef struct acs_cuda_scratches acs_cuda_scratches;

struct acs_cuda {
    acs_backend base; /* first */
    acs_cuda_driver cu;
    acs_cuda_limits limits;
    acs_costs costs; /* of the cost model, on this GPU; filled at opening */
    uint64_t serial; /* tells this backend from an earlier one at the same address; the same for all members */
    acs_cuda *members[ACS_DEVICES_MOST]; /* base.devices, each a GPU or a part of one; the first is the backend */
    uint32_t member; /* which of them this is */
    uint32_t peers;  /* a bit for each member whose memory its kernels reach */
    int device;
    CUcontext context; /* the device's primary context, retained */
    uint32_t slots, mark_capacity; /* slots of all members */
    CUstream *streams; /* one per slot, made by the member whose it is; the arrays are the first member's, all use them */
    CUevent *marks;    /* slots * mark_capacity; NULL until first recorded; the same */
    acs_cuda_scratches *scratches; /* of captured library calls */
    size_t *scratch_high; /* per slot: largest scratch block that a library call asked for; the slot's owner's */
    _Atomic int fault; /* first fatal CUresult of any member, kept by the first; 0: all are well */

    CUlibrary library;    /* our own device code; NULL: not to be had */
    acs_cuda_methods *methods;   /* NULL: no bundles */
    acs_cuda_copies *copies;     /* NULL: copies are never part of bundles */
    acs_cuda_calls *calls;       /* NULL: library calls are always the library's */
    struct acs_cuda_gpu_issue *gpu_issue; /* GPU-side issue; NULL: not to be had */
    void *ranges;  /* NVTX's domain; NULL: no tool takes ranges */
    bool profiled; /* a profiler is attached */

    acs_lock lock; /* rank BACKEND; guards what follows, and insertion into `kernels` */
    _Atomic(acs_cuda_kernel_table *) kernels;
    acs_cuda_kernel *all_kernels;
    acs_cuda_event *spare_events, *all_events;
    acs_cuda_fill *fills; /* given to host functions that have not run */
};

/* Entered, and what to restore when it is left. */
typedef struct acs_cuda_scope {
    bool pushed;
    CUstreamCaptureMode mode;
} acs_cuda_scope;

/* fault.c; no scope needed */
/* Static storage. */
const char *acs_cuda_text(int native);
/* The same for an error while a device is opened: tells a missing driver from an old one. */
const char *acs_cuda_open_text(int native);
/* One sentence, through ACS_FAIL, for an error on the way to an open device. */
acs_status acs_cuda_open_failed(const char *what, int native);
/* True for errors after which CUDA runs nothing more in this process; then the backend is marked as faulted. */
bool acs_cuda_note(acs_cuda *self, CUresult result);
/* Mark the backend as faulted whatever the error: order or completion can no longer be known. */
void acs_cuda_lose(acs_cuda *self, CUresult result);
int acs_cuda_fault(const acs_cuda *self);

/* scope.c */
CUresult acs_cuda_scope_enter(acs_cuda *self, acs_cuda_scope *scope);
void acs_cuda_scope_leave(acs_cuda *self, acs_cuda_scope *scope);
void acs_cuda_thread_enter(acs_backend *backend);

/* driver.c */
/* The address of a driver function; NULL if this driver lacks it. */
void *acs_cuda_driver_symbol(const char *name, unsigned version);
/* Fill the table. ACS_ERR_UNSUPPORTED, through ACS_FAIL: a needed function is missing. */
acs_status acs_cuda_driver_load(acs_cuda_driver *cu);

/* connections.c */
/* Ask the driver for a hardware connection per stream, before the first CUDA call; warn where streams share one. */
void acs_cuda_connections_prepare(uint32_t slots);

/* member.c */
/* What a member is opened as. */
typedef struct acs_cuda_member {
    const acs_backend_ops *ops; /* functions for calls about this member alone */
    int device;                 /* CUDA's number; negative: the current device */
    uint32_t together;          /* members on this device, at most */
    uint32_t member;            /* number among all members */
    acs_cuda *first;            /* the member whose arrays it uses; NULL: it makes its own */
} acs_cuda_member;
/* Errors: nothing is left. */
acs_status acs_cuda_member_open(const acs_backend_config *config, const acs_cuda_member *asked, acs_cuda **opened);
/* The first member is closed last. */
void acs_cuda_member_close(acs_cuda *self);
/* The member whose slot it is. */
static inline acs_cuda *acs_cuda_of_slot(const acs_cuda *self, uint32_t slot)
{
    return self->members[slot % self->base.devices];
}

/* memory.c; no scope needed */
acs_status acs_cuda_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr);
acs_status acs_cuda_memory_free(acs_backend *backend, int memory, void *ptr);
acs_status acs_cuda_memory_state(acs_backend *backend, uint32_t device, char id[64], uint64_t *total, uint64_t *left);
acs_status acs_cuda_capacity(acs_backend *backend, uint32_t device, acs_capacity *capacity);

/* kernel.c */
acs_status acs_cuda_kernels_init(acs_cuda *self);
void acs_cuda_kernels_fini(acs_cuda *self);
acs_status acs_cuda_check(acs_backend *backend, acs_record *op);
/*
 * The kernel of an op as `u.launch.kernel` names it, looked up or resolved. NULL, through ACS_FAIL: it cannot be had.
 */
acs_cuda_kernel *acs_cuda_kernel_of(acs_cuda *self, const acs_record *op);
/*
 * Resolve and load the kernel of an op that another member has checked; what does not go is told when it is launched.
 */
void acs_cuda_meet(acs_cuda *self, const acs_record *op);
void acs_cuda_needs(acs_backend *backend, const acs_record *op, uint32_t *thread_registers, uint32_t *block_shared);

/* graphs/kernel_times.c */
/* Around a batch of launches: true where it is to be timed. */
bool acs_cuda_launches_begin(acs_cuda *self, const acs_batch *batch, uint64_t *began_ns);
void acs_cuda_launches_end(acs_cuda *self, const acs_batch *batch, uint64_t began_ns);
/* What a launch takes of the host with all that belongs to it, as learnt; 0: not known. There are issue methods. */
uint32_t acs_cuda_launch_ns(acs_cuda *self);

/* type.c */
/*
 * The number of the launch's type, or 0: it cannot be in a bundle. Any thread; no CUDA call, no lock for one seen
 * before.
 */
uint32_t acs_cuda_type_number(acs_cuda *self, acs_cuda_kernel *kernel, const acs_record *op);

/* graphs/method.c; init and fini in a scope */
/* Offer bundles where that is possible; where it is not, say why at ACS_LOG=info and go on. */
void acs_cuda_methods_init(acs_cuda *self, const acs_options *options);
void acs_cuda_methods_fini(acs_cuda *self);
/* Issue a bundle, its marks and waits apart. ACS_OK, ACS_NOT_READY: nothing was issued, or ACS_ERR_DEVICE. */
acs_status acs_cuda_bundle_issue(acs_cuda *self, acs_batch *batch, int slot, uint64_t value);
/* What poll learnt of a slot's marks; returns what is known in all. */
uint64_t acs_cuda_progress(acs_cuda *self, int slot, uint64_t completed);

/* copy.c; init and fini in a scope */
/* Behind the issue methods' init. Without it copies stay copies, which is no error. */
void acs_cuda_copies_init(acs_cuda *self, const acs_options *options);
void acs_cuda_copies_fini(acs_cuda *self);
void acs_cuda_adapt(acs_backend *backend, acs_record *op);

/* call.c; init and fini in a scope */
void acs_cuda_calls_init(acs_cuda *self, const acs_options *options);
void acs_cuda_calls_fini(acs_cuda *self);
/* As call_find and call_adapt of acs_backend_ops. */
void acs_cuda_call_find(acs_backend *backend, acs_record *op, const acs_call_params *params, acs_call_room *room);
bool acs_cuda_call_adapt(acs_backend *backend, acs_record *const *parts);
/* Issue a call's work without the library. False: it is not known, and nothing was issued. */
bool acs_cuda_call_send(acs_cuda *self, const acs_item *item, CUstream stream, CUresult *result);
/* The call was issued by its library, in this slot: see what it issued, where that is of use. */
void acs_cuda_call_learn(acs_cuda *self, const acs_item *item);

/* gpu_issue/gpu_issue.c; in a scope */
struct acs_dag;
/*
 * GPU-side issue: an issue method for bundles. Makes nothing before the first one, and keeps at most `nodes` nodes of
 * graphs.
 */
void acs_cuda_gpu_issue_init(acs_cuda *self, uint64_t nodes);
void acs_cuda_gpu_issue_fini(acs_cuda *self);
/*
 * Launch all ops of a bundle behind what its slot was given before; what the slot is given next is behind them all.
 * Waits and marks are the caller's. `gain_ns`: what that saves, where the cells that are missing have to be earned by
 * what is lost for want of them; 0: they are made. False: refused, nothing of the bundle was issued.
 */
bool acs_cuda_gpu_issue_issue(acs_cuda *self, const acs_batch *batch, const struct acs_dag *dag, uint64_t gain_ns);
/* How many of these marks of a slot, from *first on, the driver is worth asking about: those before are known to be
 * complete, those behind cannot be. Now and then it is all of them, for errors. Any thread. */
uint32_t acs_cuda_gpu_issue_marks(acs_cuda *self, int slot, const acs_mark *marks, uint32_t count, uint32_t *first);
/* Why the device could not go on with a bundle, once it has faulted; NULL: it was not that. */
const char *acs_cuda_gpu_issue_refusal(const acs_cuda *self);

/* device.c; both in a scope */
/* Load the library's own device code. Without it there are no bundles, which is no error; says why at ACS_LOG=info. */
bool acs_cuda_device_init(acs_cuda *self);
void acs_cuda_device_fini(acs_cuda *self);
/* A kernel of ours by name; NULL after a log line. */
CUfunction acs_cuda_device_kernel(acs_cuda *self, const char *name);

/* pages.c; in a scope */
/* Fill base.pages where the device has virtual memory. */
void acs_cuda_pages_init(acs_cuda *self);

/* costs.c; no scope needed */
/*
 * By the file that ACS_COSTS names, by the one that acs-info keeps, or by the table. ACS_ERR_OPTION: the first is
 * wrong.
 */
acs_status acs_cuda_costs_init(acs_cuda *self, const acs_options *options);
/* Its id; "cuda-N" where an older driver does not tell: then a measurement is not found again. */
void acs_cuda_gpu_id(acs_cuda *self, char id[ACS_DEVICE_ID_BYTES]);
/* The same with the name of its model. */
void acs_cuda_costs_gpu(acs_cuda *self, acs_costs_gpu *gpu);

/* profiler.c */
/* Look for a profiler, when the device is opened. */
void acs_cuda_profiler_init(acs_cuda *self);
void acs_cuda_range_push(const acs_cuda *self, const acs_batch *batch, acs_issue_method method);
void acs_cuda_range_pop(const acs_cuda *self);

/* Around the launch of a bundle, on one thread: a range that says what is in it, where a tool takes ranges. */
static inline void acs_cuda_range_begin(const acs_cuda *self, const acs_batch *batch, acs_issue_method method)
{
    if (ACS_UNLIKELY(self->ranges))
        acs_cuda_range_push(self, batch, method);
}

static inline void acs_cuda_range_end(const acs_cuda *self)
{
    if (ACS_UNLIKELY(self->ranges))
        acs_cuda_range_pop(self);
}

/* launch.c; in a scope */
/* Send a kernel that was checked to a stream. */
CUresult acs_cuda_launch(acs_cuda *self, const acs_record *op, CUstream stream);
/* The same with arguments from elsewhere: pointers to as many as the kernel has parameters. */
CUresult acs_cuda_launch_args(acs_cuda *self, const acs_record *op, CUstream stream, void **args);

/* submit.c */
void acs_cuda_submit(acs_backend *backend, acs_batch *batch);
acs_status acs_cuda_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed);
void acs_cuda_fills_fini(acs_cuda *self);

/* stream.c */
/* Refuse streams of another device or context. `current`: the thread's context before the scope. */
acs_status acs_cuda_stream_ours(acs_cuda *self, CUstream stream, CUcontext current);
acs_status acs_cuda_stream_record(acs_backend *backend, void *stream, void **event);
void acs_cuda_event_release(acs_backend *backend, void *event);
void acs_cuda_events_fini(acs_cuda *self);

/* capture.c */
extern const acs_capture_ops acs_cuda_capture;
acs_status acs_cuda_scratches_init(acs_cuda *self);
/* Memory that a graph may still use stays, and so does what keeps account of it. */
void acs_cuda_scratches_fini(acs_cuda *self);

#endif

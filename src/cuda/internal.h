/*
 * Private to src/cuda: the state of the backend on one device (*member*), and the functions of its smaller files.
 * Kernels are in kernel.h, bundles in bundle.h, calls of CUDA's driver in driver.h.
 *
 * Which API. The runtime API is used where only it knows the answer: the current device, __global__ functions of the
 * program, texts of errors. The path of an op calls the driver's entry points, for two reasons. A CUfunction of NVRTC,
 * Triton or Warp can only be launched by the driver, so one path serves all kinds of kernels. And the driver keeps no
 * "last error" per thread, so a step on an application's thread neither shows it our errors nor clears its own.
 * CUresult and cudaError_t share their numbers; natives are reported as cudaError_t.
 *
 * Threads. A thread of the library enters once (acs_cuda_thread_enter). Any other thread enters a scope around each
 * call: it pushes the device's primary context and relaxes the capture mode, and restores both. So an application's
 * thread keeps its device and may capture a stream of its own.
 *
 * Locks. acs_cuda.lock (rank BACKEND) guards insertions of kernels, types and library calls, the events of foreign
 * streams, and fills of pageable memory.
 */
#ifndef ACS_CUDA_INTERNAL_H
#define ACS_CUDA_INTERNAL_H

#include "cuda/cupti.h"
#include "cuda/gate.h"
#include "cuda/driver.h"

#include "scheduler/backend.h"
#include "base/lock.h"
#include "base/nvtx.h"
#include "pool/memory.h"
#include "window/replay.h"

#include <stdatomic.h>

/* Limits of the device, read when it is opened. */
typedef struct acs_cuda_limits {
    int grid[3], block[3];
    int block_threads;
    int shared_bytes; /* per block, with the opt-in above 48 KiB */
    int cooperative, clusters, capability; /* capability: the major number of the compute capability */
    int sms, sm_threads;
    int priority_low, priority_high; /* priority_high is the smaller number */
} acs_cuda_limits;

typedef struct acs_cuda_type acs_cuda_type;
typedef struct acs_cuda_methods acs_cuda_methods;
typedef struct acs_cuda_copies acs_cuda_copies;
typedef struct acs_cuda_calls acs_cuda_calls;

/* A decision that became a node of a captured graph. */
typedef struct acs_cuda_captured_decision {
    CUgraph graph;
    CUgraphNode node;
    const acs_cell *cell; /* that the ops obey which it switches */
    acs_decision decision;
} acs_cuda_captured_decision;
enum { ACS_CUDA_CAPTURED_DECISIONS = 8 }; /* so many are remembered */

typedef struct acs_cuda_kernel acs_cuda_kernel;
typedef struct acs_cuda_kernel_table acs_cuda_kernel_table;

/* An event that the work of a foreign stream is recorded in, or the two around a timed kernel. */
typedef struct acs_cuda_event {
    CUevent event;
    CUevent begin;                /* of a timed kernel, whose end is `event`; else NULL */
    acs_cuda *owner;              /* member whose context it was made in */
    struct acs_cuda_event *next;  /* list of spare events */
    struct acs_cuda_event *older; /* list of all events, for close */
} acs_cuda_event;

typedef struct acs_cuda_fill acs_cuda_fill;
typedef struct acs_cuda_shares acs_cuda_shares;
typedef struct acs_cuda_slot_stream acs_cuda_slot_stream;
typedef struct acs_cuda_scratches acs_cuda_scratches;
typedef struct acs_cuda_issuers acs_cuda_issuers;

struct acs_cuda {
    acs_backend base; /* must be first */
    acs_cuda_driver cu;
    acs_cuda_limits limits;
    int (*cpu_next)(void *user); /* as in acs_backend_config, and its user */
    void *cpu_user;
    bool threads;    /* whether it may make a thread */
    uint64_t serial; /* unique number of the backend in this process, equal in all its members */
    /* base.devices members, each a GPU or a part of one; the first is the backend */
    acs_cuda *members[ACS_DEVICES_MOST];
    uint32_t member; /* index of this member */
    uint32_t peers;  /* mask of the members whose memory kernels of this one reach */
    int device;
    CUcontext context; /* primary context of the device, retained */
    unsigned long long context_id; /* unlike the handle, another one after cudaDeviceReset; 0: the driver tells none */
    uint32_t slots, mark_capacity; /* slots of all members; marks per slot */
    /* by slot: of the whole GPU; each made by the slot's member. The arrays belong to the first member */
    CUstream *streams;
    acs_cuda_slot_stream *now; /* by slot: the stream that it has now (share.h) */
    acs_cuda_shares *shares;   /* of the member's GPU */
    CUevent *marks;    /* [slot * mark_capacity + index]; NULL: never recorded; made as `streams` */
    acs_cuda_scratches *scratches; /* scratch memory of captured library calls */
    /* by slot: largest scratch block that a library call asked for; written by the slot's submitter */
    size_t *scratch_high;
    /* threads that issue, in the first member; NULL: the threads that step the core do */
    acs_cuda_issuers *issuers;
    acs_cuda_gate gate;                  /* at which they wait for threads that make things; in the first member */
    _Atomic(uint32_t) issuing;           /* those of them that are awake: A in issuers.c */
    void (*wake_issuers)(acs_cuda *first); /* commands were given: wake those that fell asleep just before */
    _Atomic int fault; /* first fatal CUresult of any member, in the first member; 0: none. See acs_cuda_lose */

    /*
     * The library's own device code, and what is made of it: code.c. P  fill all fields that say so, then store `code` with
     * release; acs_cuda_has_code: load acquire before one is read. Broken: a graph is built with a kernel that is NULL.
     */
    _Atomic(bool) code;
    bool bundles;             /* the program's options allow them; in the first member, as the next six */
    bool code_wanted;         /* the code is opened once it may pay */
    /* that is after some ops, which would be cheaper in bundles or as kernels; relaxed, all: a hint */
    _Atomic(bool) code_counts;
    _Atomic(uint32_t) sent;   /* items issued before; relaxed: a count */
    _Atomic(bool) code_asked; /* relaxed: who sets it asks */
    pthread_mutex_t code_mutex; /* guards the next one; held while the code is opened */
    bool code_tried;

    CUlibrary library;    /* P; NULL: not available */
    _Atomic(bool) code_stays; /* a graph of the program's has kernels of it, so it is never unloaded */
    acs_cuda_methods *methods;   /* NULL: no bundles */
    acs_cuda_copies *copies;     /* P; NULL: copies are never part of bundles */
    acs_cuda_calls *calls;       /* NULL: all library calls go to their library */
    CUkernel decider;     /* P; kernel of decisions, and its function here; NULL: the host decides */
    CUfunction decide;
    acs_cuda_captured_decision captured[ACS_CUDA_CAPTURED_DECISIONS]; /* ring; guarded by the lock of captures */
    uint32_t captured_next;
    CUstream quiet;       /* of the library's own, for memory of captured decisions; NULL: not made yet */
    uint64_t *not_run;    /* counter of captured decisions, as they say */
    struct acs_cuda_resident *resident;   /* NULL: no resident executors */
    _Atomic(bool) has_executors; /* whether the program has given one; set once, before bodies are published */
    bool profiled; /* a tool or a trace is to see all kernels */
    acs_cupti_detail times; /* what CUPTI tells of its ops; constant while ops are queued */

    acs_lock lock; /* rank BACKEND; guards the fields below, and insertion into `kernels` */
    _Atomic(acs_cuda_kernel_table *) kernels;
    acs_cuda_kernel *all_kernels;
    acs_cuda_event *spare_events[2], *all_events; /* spare ones: [1]: of timed kernels */
    acs_cuda_fill *fills; /* fills whose host function has not run */
};

/* member.c */
/* How a member is opened. */
typedef struct acs_cuda_member {
    const acs_backend_ops *ops; /* table of functions for calls about this member alone */
    int device;                 /* CUDA's number of the device; negative: the current device */
    uint32_t member;            /* index among all members */
    acs_cuda *first;            /* member whose arrays it uses; NULL: it makes its own */
} acs_cuda_member;
/* After an error nothing is left open. */
acs_status acs_cuda_member_open(const acs_backend_config *config, const acs_cuda_member *asked, acs_cuda **opened);
/* The first member is closed last. */
void acs_cuda_member_close(acs_cuda *self);
/* The member that a slot belongs to. */
static inline acs_cuda *acs_cuda_of_slot(const acs_cuda *self, uint32_t slot)
{
    return self->members[slot % self->base.devices];
}

/* What a node of a kernel is given. */
static inline CUDA_KERNEL_NODE_PARAMS acs_cuda_node_params(CUfunction function, acs_dim3 grid, acs_dim3 block,
                                                           uint32_t shared_bytes, void **args)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = function, .gridDimX = grid.x, .gridDimY = grid.y, .gridDimZ = grid.z,
                                     .blockDimX = block.x, .blockDimY = block.y, .blockDimZ = block.z,
                                     .sharedMemBytes = shared_bytes, .kernelParams = args};
}

/* memory.c; no scope needed */
acs_status acs_cuda_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr);
acs_status acs_cuda_memory_free(acs_backend *backend, int memory, void *ptr);
acs_status acs_cuda_reaches(acs_backend *backend, uint64_t address);
bool acs_cuda_memory_range(acs_backend *backend, uint64_t address, uint64_t *first, uint64_t *bytes, const char **reason);
acs_status acs_cuda_memory_state(acs_backend *backend, uint32_t device, char id[64], uint64_t *total, uint64_t *left);
acs_status acs_cuda_capacity(acs_backend *backend, uint32_t device, acs_capacity *capacity);

/* copy.c; start and fini in a scope */
/* Make small copies kernels, after acs_cuda_methods_start. Without it copies stay copies, which is no error. */
void acs_cuda_copies_start(acs_cuda *self);
void acs_cuda_copies_fini(acs_cuda *self);
/*
 * Send a MEMCPY op to a stream that is being captured, as a kernel, whose node can be switched. False: its kernels do not
 * reach both ends; nothing was sent.
 */
bool acs_cuda_copy_by_kernel(acs_cuda *self, const acs_record *op, CUstream stream, CUresult *result);
/*
 * Send a MEMSET op to a stream that is being captured, as a kernel of the library's own. A fill node takes 2.5 us of a
 * graph's chain, and 4 us beside one; a kernel less than 1 (tests/gpu/bench_gpu_graph_shape.cu). False: there is no such
 * kernel, or it does not reach the memory; nothing was sent.
 */
bool acs_cuda_fill_by_kernel(acs_cuda *self, const acs_record *op, CUstream stream, CUresult *result);
void acs_cuda_adapt(acs_backend *backend, acs_record *op);

/* call.c; init and fini in a scope */
void acs_cuda_calls_init(acs_cuda *self, const acs_options *options);
void acs_cuda_calls_fini(acs_cuda *self);
/* call_find and call_adapt of acs_backend_ops. */
void acs_cuda_call_find(acs_backend *backend, acs_record *op, const acs_call_params *params, acs_call_room *room);
bool acs_cuda_call_adapt(acs_backend *backend, acs_record *const *parts);
/* Issue a call's work without its library. False: the work is not known; nothing was issued. */
bool acs_cuda_call_send(acs_cuda *self, const acs_item *item, CUstream stream, CUresult *result);
/* After the library has issued a call in the item's slot: capture the call, if more is to be learnt of it. */
void acs_cuda_call_learn(acs_cuda *self, const acs_item *item);

/* device.c; all but the first in a scope */
/*
 * Whether the library's own device code may be loaded; load it. False: there are no bundles, which is no error; the reason
 * is logged at ACS_LOG=info.
 */
bool acs_cuda_device_init(acs_cuda *self, const acs_options *options);
bool acs_cuda_device_load(acs_cuda *self);
void acs_cuda_device_fini(acs_cuda *self);
/* A kernel of the device code by name. NULL: it cannot be loaded; the reason was logged. */
CUfunction acs_cuda_device_kernel(acs_cuda *self, const char *name);

/* code.c */
/* Whether the device code, issue methods and all else that is marked with P can be used. */
static inline bool acs_cuda_has_code(const acs_cuda *self)
{
    return atomic_load_explicit(&self->code, memory_order_acquire); /* P */
}
/* All members are open. Where the program asks for a method, the code is opened here. */
void acs_cuda_code_init(acs_cuda *first, const acs_options *options);
/*
 * Open the code of all members now, if that was not tried before: takes 2 ms, and waits for a thread that does. No scope
 * needed; in a scope of the first member that stays current. @return acs_cuda_has_code
 */
bool acs_cuda_code_open(acs_cuda *self);
/* The code was opened, or the program has given bodies: tell the core whether ops go in bundles. */
void acs_cuda_code_tell(acs_cuda *first);
/* Let it be opened by a thread of its own, or here where there is none; asked once. Where `code_wanted`, not in a scope. */
void acs_cuda_code_ask(acs_cuda *first);
/* Before the first member is closed: no code is opened any more. Waits for a thread that does. */
void acs_cuda_code_stop(acs_cuda *first);

/* pages.c; in a scope */
/* Fill base.pages if the device has virtual memory. */
void acs_cuda_pages_init(acs_cuda *self);

/* profiler.c */
/* Look for a profiler. */
void acs_cuda_profiler_init(acs_cuda *self);
/* Whether somebody watches launches: only then the four below are called. */
static inline bool acs_cuda_watched(const acs_cuda *self)
{
    return ACS_UNLIKELY(acs_nvtx_taken || self->times != ACS_CUPTI_OFF);
}
/* A thread launches an op, a bundle, or a replay. acs_cuda_watch_end gets the result behind the launch, unless it is 0. */
unsigned acs_cuda_watch_op(const acs_cuda *self, const acs_record *op, int slot);
unsigned acs_cuda_watch_bundle(const acs_cuda *self, const acs_batch *batch, acs_issue_method method);
unsigned acs_cuda_watch_replay(const acs_cuda *self, const acs_item *item);
void acs_cuda_watch_end(unsigned watched);
/* times_begin and times_take of acs_backend_ops, for one device and for several. */
acs_status acs_cuda_device_times_begin(acs_backend *backend, const acs_options *options);
acs_status acs_cuda_device_times_take(acs_backend *backend, acs_device_times *times);

/* submit.c */
void acs_cuda_submit(acs_backend *backend, acs_batch *batch);
acs_status acs_cuda_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed);
void acs_cuda_fills_fini(acs_cuda *self);

/* stream.c */
acs_status acs_cuda_stream_failed(acs_cuda *self, CUstream stream, CUresult result);
/* Refuse a stream of another device or context. `current`: the thread's context before the scope. */
acs_status acs_cuda_stream_ours(acs_cuda *self, CUstream stream, CUcontext current);
acs_status acs_cuda_stream_record(acs_backend *backend, void *stream, void **event);
/*
 * Wait for all that the slots' streams still do. All ops have ended, but executors may still run to their own end. In a
 * scope.
 */
void acs_cuda_stream_wait_all(acs_cuda *self);
/* Get a spare event, or make one; `timed`: two. In a scope. */
CUresult acs_cuda_event_acquire(acs_cuda *self, bool timed, acs_cuda_event **out);
void acs_cuda_event_release(acs_backend *backend, void *event);
void acs_cuda_events_fini(acs_cuda *self);

/* capture.c */
extern const acs_capture_ops acs_cuda_capture;
acs_status acs_cuda_scratches_init(acs_cuda *self);
/* Memory that a graph may still use is not freed, nor is the record of it. */
void acs_cuda_scratches_fini(acs_cuda *self);
/* Memory that stays as long as the graph and what is instantiated from it. */
acs_status acs_cuda_scratch_give(acs_cuda *self, CUgraph graph, size_t bytes, void **memory);

#endif

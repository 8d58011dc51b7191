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

#include "cuda/driver.h"

#include "scheduler/backend.h"
#include "base/lock.h"
#include "pool/memory.h"
#include "bundles/costs.h"

#include <stdatomic.h>

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

typedef struct acs_cuda_kernel acs_cuda_kernel;
typedef struct acs_cuda_kernel_table acs_cuda_kernel_table;

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

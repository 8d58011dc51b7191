/*
 * The backend: the one table of functions through which the core acts. A backend has slots (streams), each a timeline.
 * Ops issued to a slot run in order and carry increasing values; (slot, value) names the completion of an op. A
 * backend knows nothing of windows or footprints.
 *
 * Marks. A mark is an event recorded in a slot behind everything issued to it so far. The core names marks (slot,
 * index), index < mark_capacity. It reuses an index only when that mark was seen complete. A wait names a mark
 * of an earlier batch whose submit returned, or of an earlier item of the same batch. The marks and waits of an item
 * take effect on its slot even if the item fails, bounces or is skipped: the core's clocks count on them.
 *
 * Threads. Several threads call submit at once, but never two for the same slot; the slots of a batch's marks count as
 * its own. poll of a slot may run beside submit to it. No function calls the core, except config.notify.
 *
 * Shares. An item may name a part of the device (acs_item.share). Items of one slot may name different parts, and still
 * run in their order.
 */
#ifndef ACS_BACKEND_H
#define ACS_BACKEND_H

#include "base/activity.h"
#include "devices/capacity.h"
#include "devices/topology.h"
#include "window/batch.h"
#include "window/nodes.h"
#include "scheduler/issue_queue.h"
#include "pool/pages.h"

#include <stdatomic.h>

typedef struct acs_backend acs_backend; /* first member of each backend's own struct */
typedef struct acs_call_slots acs_call_slots;

/* What a backend leaves behind when its device was given up. */
typedef enum acs_leave {
    ACS_LEFT_NOTHING, /* nothing runs: close may follow */
    ACS_LEFT_DEVICE,  /* ops may still run: the backend and the memory that it gave out stay, the rest may go */
    ACS_LEFT_THREADS  /* a thread may be inside an op: all that the op or that thread can reach stays */
} acs_leave;

enum { ACS_BACKEND_SLOTS_MOST = 64 };

typedef struct acs_backend_config {
    const acs_options *options;
    uint32_t slots;              /* per device, limited by acs_backend_slots */
    uint32_t devices;            /* number wanted; 0: all */
    uint32_t mark_capacity;      /* per slot */
    bool inline_only;            /* make no threads at all (ACS_DISABLE); ACS_WORKERS=0 only means no worker */
    void (*notify)(void *user);  /* something completed; from any thread, by backends with `notifies` */
    void *user;
    int (*cpu_next)(void *user); /* next CPU of ACS_CPUS to pin a thread to; -1: none */
    acs_activity *activity;      /* told by backends whose threads run ops; NULL: none */
} acs_backend_config;

/*
 * Ops inside a stream capture of the program: they become nodes of the graph that it makes. Called in the calling
 * thread, which alone uses the stream meanwhile. ACS_ERR_STATE: the capture has ended or is invalid, or the contents
 * of its graph are unknown; nothing more may be added.
 */
typedef struct acs_capture_ops {
    /*
     * *id: the capture that the stream is part of; 0: none. nodes (or NULL): those that its next work would run
     * behind.
     */
    acs_status (*look)(acs_backend *backend, void *stream, uint64_t *id, acs_nodes *nodes);
    /* From now on the stream's next work runs behind exactly these nodes. */
    acs_status (*follow)(acs_backend *backend, void *stream, uint64_t id, const acs_nodes *nodes);
    /*
     * Add an op (KERNEL, MEMCPY, MEMSET, CALL; NULL: an empty node) to the graph behind the nodes `behind`. *ends: the
     * nodes that the op ends with, also on an error. The stream's own order stays the same. The op is not kept.
     * `scratch`: a CALL's.
     */
    acs_status (*add)(acs_backend *backend, void *stream, uint64_t id, acs_record *op, void *scratch,
                      const acs_nodes *behind, acs_nodes *ends);
    /* Remove from `nodes` those that the nodes of `by` run behind, as far as a short look at the graph tells. */
    void (*implied)(acs_backend *backend, const acs_nodes *by, acs_nodes *nodes);
    /*
     * The nodes that one of the graph's nodes depends on. ACS_ERR_UNSUPPORTED: its edges have data, and the driver cannot
     * read them.
     */
    acs_status (*upstream)(acs_backend *backend, void *node, acs_nodes *behind);
    /*
     * Add edges to the graph: to->list[i] depends on from->list[i]. No edge is in it yet. programmatic: the edges are those
     * between kernels by which the later may begin once the earlier has triggered; false: all are full.
     */
    acs_status (*link)(acs_backend *backend, void *stream, uint64_t id, const acs_nodes *from, const acs_nodes *to,
                       bool programmatic);
    /* Whether programmatic edges may lead from the node, and detach can read and remove them. */
    bool (*may_trigger)(acs_backend *backend, void *node);
    /*
     * Remove the edges that lead from a node to those of `to`. *programmatic: all of them were programmatic, triggered by
     * the node's kernel. ACS_NOT_READY: CUDA removes no edges of this graph, since it has memory nodes; they are as before.
     */
    acs_status (*detach)(acs_backend *backend, void *stream, uint64_t id, void *node, const acs_nodes *to,
                         bool *programmatic);
    /* Device memory that lives as long as the graph and what is instantiated from it. */
    acs_status (*scratch)(acs_backend *backend, void *stream, uint64_t id, size_t bytes, void **memory);
} acs_capture_ops;

/* What a library call needs to become KERNEL ops, bytes each; parts 0: it cannot. */
typedef struct acs_call_room {
    uint32_t parts; /* ops; at most ACS_CALL_PARTS */
    uint32_t args, bytes;
} acs_call_room;

/*
 * When something of an op ran, by acs_clock_ns. An op may have several: its kernels. Of a bundle or replay it is the graph
 * that has all its ops, with the number of the first, unless `node` is set: then it is this op alone.
 */
typedef struct acs_device_time {
    acs_op op;
    uint64_t began_ns, ended_ns;
    bool node;
} acs_device_time;

typedef struct acs_device_times {
    acs_device_time *list;
    uint64_t count;
    const char *way; /* of learning them, by its name in ACS_TRACE_TIMES */
} acs_device_times;

typedef struct acs_backend_ops {
    int id;             /* ACS_BACKEND_* */
    bool notifies;      /* calls config.notify on completions: threads may sleep without polling */
    bool host_calls;    /* library calls run as host functions, after their upstream ops have retired */
    bool tells_running; /* reports its running ops to config.activity */
    bool single_thread; /* everything runs in the calling threads, and poll makes progress (sim, inline host) */

    acs_status (*open)(const acs_backend_config *config, acs_backend **backend);
    /*
     * The first call at close, before memory that ops may use is freed. Returns once no op runs, also if the device
     * was lost; nothing is submitted after it. NULL: only ops of a lost device may still run, and they touch nothing.
     */
    void (*quiesce)(acs_backend *backend);
    /* All ops have completed, or the device is lost. */
    void (*close)(acs_backend *backend);
    /*
     * The core has given up all ops, since an issued one does not end. Start nothing more, and no longer touch the
     * records of ops that have not begun. Called once, under the core's lock: must not wait. NULL: nothing to do.
     */
    void (*give_up)(acs_backend *backend);
    /*
     * After give_up, before close: end what ends by itself, and wait for no op. If anything is left, close is not
     * called. Ops may end at any time later, or never, and must not crash then. NULL: ACS_LEFT_NOTHING.
     */
    acs_leave (*leave)(acs_backend *backend);
    /* Once per thread of the library, before its other calls: selects the device, relaxes the capture mode. */
    void (*thread_enter)(acs_backend *backend);
    /*
     * Validate a kernel in the calling thread: grid, block, cluster and shared memory, argument sizes, a body for this
     * backend. May set u.launch.resolved and .type. Cached per kernel: no CUDA call for a known one. ACS_ERR_ARGUMENT
     * or _UNSUPPORTED through ACS_FAIL, naming the value and its limit.
     */
    acs_status (*check)(acs_backend *backend, acs_record *op);
    /*
     * What a thread and a block of a checked kernel take beyond its launch parameters: registers, bytes of shared
     * memory. Needs no call of the device. NULL: nothing.
     */
    void (*needs)(acs_backend *backend, const acs_record *op, uint32_t *thread_registers, uint32_t *block_shared);
    /*
     * In the calling thread, for a complete copy or fill that is not captured: may turn it into an equivalent KERNEL
     * op, as check() would leave it, so that it can be in a bundle. NULL: never.
     */
    void (*adapt)(acs_backend *backend, acs_record *op);
    /*
     * Turn a repeatable library call, neither captured nor held, into KERNEL ops. In the calling thread; NULL, both:
     * never. call_find, before the record has room: sets u.call.known, and *room: one op per kernel, each with room
     * for this many arguments. call_adapt: parts[0] is the complete op and the others are like it; makes them KERNEL
     * ops, as check() would leave them. False: nothing was changed.
     */
    void (*call_find)(acs_backend *backend, acs_record *op, const acs_call_params *params, acs_call_room *room);
    bool (*call_adapt)(acs_backend *backend, acs_record *const *parts);
    /*
     * Issue a batch in order; results are in the items. An item that fails does not stop the others. Kernels, copies and
     * fills may be given to backend->queue: their result is then ACS_OK, and a failure shows later (late.c).
     */
    void (*submit)(acs_backend *backend, acs_batch *batch);
    /*
     * With backend->replays_later, in the calling thread: whether what issues replays like this one is there. If not, it is
     * made beside the program, where that is possible. The caller asks again when such ops have come again. The backend
     * counts in *asked how often it could have made it; a call while its device code is being loaded is none of these.
     */
    bool (*replay_ready)(acs_backend *backend, struct acs_replay *replay, uint32_t *asked);
    /*
     * The device is lost, or the core ends all ops as if it were: returns once nothing of backend->queue is carried out any
     * more. Not under the core's lock. NULL: there is no queue.
     */
    void (*settle)(acs_backend *backend);
    /*
     * A timed kernel (ACS_RECORD_TIMED) has ended, under the core's lock: its time on the device in ns; 0: not known, or it
     * did not run. Frees what the time was taken with. Called once. NULL: kernels are not timed.
     */
    uint64_t (*elapsed)(acs_backend *backend, acs_record *op);
    /*
     * Learn what completed. marks: recorded marks of `slot` not yet seen complete, oldest first; at least one.
     * *completed: the value of the newest complete mark, or untouched if none is. It may be later: that of an op of a
     * bundle or replay, even one that another thread is submitting. ACS_ERR_DEVICE through ACS_FAIL: fatal.
     */
    acs_status (*poll)(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed);
    /*
     * In the calling thread: record the present end of a foreign stream (acs_after_stream). *event becomes
     * u.stream.event; event NULL: only check that the stream is not capturing. ACS_ERR_UNSUPPORTED: it is capturing.
     */
    acs_status (*stream_record)(acs_backend *backend, void *stream, void **event);
    /* Release an event of stream_record whose op was skipped. */
    void (*event_release)(acs_backend *backend, void *event);
    /* Memory aligned to 256 bytes. ACS_ERR_MEMORY through ACS_FAIL. */
    acs_status (*memory_alloc)(acs_backend *backend, int memory /* kind: pool/memory.h */, size_t bytes, void **ptr);
    acs_status (*memory_free)(acs_backend *backend, int memory, void *ptr);
    /*
     * A device's id (a UUID, the same in every process), and its bytes: in all, and free (UINT64_MAX: unknown). Any
     * thread. ACS_ERR_DEVICE through ACS_FAIL.
     */
    acs_status (*memory_state)(acs_backend *backend, uint32_t device, char id[64], uint64_t *total, uint64_t *left);
    /*
     * Read a cell whose decision has ended, in any thread; no op writes it meanwhile. ACS_ERR_DEVICE through ACS_FAIL.
     * NULL: the host reaches it.
     */
    acs_status (*read_cell)(acs_backend *backend, const acs_cell *cell, acs_cell *to);
    /*
     * The CUkernel of decisions, for all devices; NULL: their host body runs, or the backend decides in its own way. Any
     * thread; the first call may take milliseconds. NULL, the function: there is none.
     */
    const void *(*decider)(acs_backend *backend);
    /* Whether kernels of a device may touch memory: acs_reaches. NULL: any. */
    acs_status (*reaches)(acs_backend *backend, uint64_t address);
    /*
     * The allocation in which an address lies that the library did not allocate, in the calling thread. False: the device
     * knows none, and *reason, in static storage, says why. NULL: it never knows one.
     */
    bool (*memory_range)(acs_backend *backend, uint64_t address, uint64_t *first, uint64_t *bytes, const char **reason);
    /* The name that the driver has for a kernel's function; copied by the caller. NULL: it tells none. NULL: never. */
    const char *(*kernel_name)(acs_backend *backend, const acs_kernel *kernel);
    /* Take an executor of the program, whose parameters are checked: acs_executor_add. NULL: it is of no use. */
    acs_status (*executor_add)(acs_backend *backend, const acs_executor_params *params);
    /*
     * Several devices. links: their ids, and an estimate of the links between them (`topology->count` is set).
     * ACS_ERR_DEVICE through ACS_FAIL. memory_device: the device of an address unknown to the pools; the number of
     * devices means the host, or unknown. NULL: always that.
     */
    acs_status (*links)(acs_backend *backend, acs_topology *topology);
    acs_status (*capacity)(acs_backend *backend, uint32_t device, acs_capacity *capacity); /* but for its queues */
    uint32_t (*memory_device)(acs_backend *backend, uint64_t address);
    /*
     * What a share of a device comes to, 1 to 100 percent; makes it ready for ops. Sets all but info->size. Any thread.
     * step_sms 0, and a reason: the device cannot be partitioned, and items name no share. NULL: no device can.
     */
    acs_status (*share_find)(acs_backend *backend, uint32_t device, uint32_t percent, acs_share_info *info);
    /*
     * Times of ops, from the device itself. times_begin, while no op is under way: begin to learn them, in the way that
     * the options ask for. ACS_ERR_OPTION through ACS_FAIL: it cannot be, and nothing was begun. times_take: what was
     * learnt, by number of op; the caller frees the list. ACS_ERR_MEMORY through ACS_FAIL. NULL, both: never.
     */
    acs_status (*times_begin)(acs_backend *backend, const acs_options *options);
    acs_status (*times_take)(acs_backend *backend, acs_device_times *times);
    const acs_capture_ops *capture; /* NULL: no captures */
} acs_backend_ops;

/* The part of a backend that its callers see. Fields are set by open and constant, but for the atomic ones. */
struct acs_backend {
    const acs_backend_ops *ops;
    acs_issue_queue *queue; /* of threads that issue behind submit; NULL: none */
    uint32_t takers;        /* those threads */
    acs_call_slots *calls; /* made by open, destroyed by close */
    uint32_t bundle_most;  /* most ops of a bundle; 0: no bundles */
    /*
     * What bundles need is not there yet, and none is submitted. B  the backend: make it, store false with release; the
     * core: load acquire, then submit a bundle. Broken: a bundle finds a part of it.
     */
    _Atomic(bool) bundles_later;
    bool replays_later;    /* replays are to be ready before they are submitted; constant */
    bool apart;            /* a tool checks the bounds of allocations: each block must be one of its own */
    uint32_t parallel;     /* most ops that a device runs at once; 0: many, or unknown */
    /* ops are recorded: set `began` and `ended` of their records, where known; constant while ops are queued */
    bool records_times;
    uint32_t devices;      /* slot s belongs to device s % devices; ops name their device */
    acs_page_ops pages;    /* of device memory, called with the backend; .page 0: none */
    _Atomic(uint64_t) nodes_built;   /* nodes of cached graphs built so far; relaxed: a statistic, from any thread */
    _Atomic(uint64_t) not_run;       /* ops that did not run, as the host saw in cells that it read; relaxed, as above */
    _Atomic(uint32_t) refusals_told; /* relaxed: kernels without a host body are logged once */
    char model[128];       /* what the devices are: a GPU's name, for files with measurements; set by open */
    uint32_t sms;          /* multiprocessors of a device; of CPUs: threads that run kernels */
    char no_gpu[ACS_ERROR_TEXT_BYTES]; /* reason why ACS_BACKEND=auto chose the host backend; empty: it did not */
};

extern const acs_backend_ops acs_backend_host;
extern const acs_backend_ops acs_backend_host_inline; /* the host backend without threads: config.inline_only */
extern const acs_backend_ops acs_backend_sim;
#ifdef ACS_HAVE_CUDA
extern const acs_backend_ops acs_backend_cuda;
#endif

/*
 * How often the program has told that it unloads a kernel that has a handle (acs_declare): handles seen before may be other
 * kernels' since. It is written with the lock held for writing; who builds graphs of handles holds it for reading.
 */
extern _Atomic(uint32_t) acs_backend_unloads;
extern pthread_rwlock_t acs_backend_unloading;
/*
 * Whether a decided op that the host starts runs; its upstream ops have ended. If it does not, it is counted.
 * ACS_NOT_READY: it does not run. ACS_ERR_DEVICE: it is unknown.
 */
acs_status acs_backend_decide(acs_backend *backend, const acs_record *op);

/* Slots of all devices together; the limit ACS_BACKEND_SLOTS_MOST applies to several devices only. */
static inline uint32_t acs_backend_slots(uint32_t slots, uint32_t devices)
{
    uint32_t most = ACS_BACKEND_SLOTS_MOST / devices;
    return devices == 1 ? slots : devices * (slots < most ? slots : most);
}


/* Library calls: scratch memory and places for each slot. A backend owns one. ACS_ERR_MEMORY: *calls is untouched. */
acs_status acs_call_slots_create(uint32_t slots, acs_call_slots **calls);
/* Run the destroy functions of the places, and free the scratch memory through `backend`. */
void acs_call_slots_destroy(acs_call_slots *calls, acs_backend *backend);
/*
 * Run a CALL op. The calling thread owns the slot during the call. With device -1 (host backends) `slot` is ignored
 * and a free one is claimed; blocks while there is none. ACS_ERR_HOST: *native is the function's result.
 * ACS_ERR_MEMORY: no memory for scratch or the place; the function was not run.
 */
acs_status acs_call_run(acs_call_slots *calls, acs_backend *backend, acs_record *op, int slot, int device, void *stream,
                        int *native);
/*
 * The slot's scratch memory, grown to `bytes`; NULL for 0 bytes. The calling thread owns the slot, and no op of its
 * stream may use the old memory. ACS_ERR_MEMORY: the slot has no scratch memory any more.
 */
acs_status acs_call_scratch(acs_call_slots *calls, acs_backend *backend, uint32_t slot, size_t bytes, void **scratch);
/* Run a CALL op inside a capture, with scratch memory of its own, and places that only such calls use. */
acs_status acs_call_capture(acs_call_slots *calls, acs_record *op, int device, void *stream, void *scratch, int *native);
/* Run a CALL op whose upstream ops have retired, in any thread; for backends with host_calls. */
acs_status acs_backend_call(acs_backend *backend, acs_record *op, int *native);

#endif

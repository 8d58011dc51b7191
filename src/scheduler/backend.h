/*
 * The one table of functions through which the core acts. A backend has slots (streams), each a timeline: ops issued to
 * a slot run in order and carry increasing values; "op done" = (slot, value). It knows nothing of windows or
 * footprints.
 *
 * Marks. A mark is an event recorded in a slot behind everything issued to it so far. The core names marks: (slot,
 * index), index < mark_capacity, and reuses an index only when that mark was seen complete. Waits name marks that were
 * recorded earlier: by an earlier batch whose submit returned, or earlier in the same batch. The marks and waits of an
 * item take effect on its slot also when the item fails, bounces or is skipped: the core's clocks count on them.
 *
 * Threads. submit is called by several threads at once, but never by two for the same slot, slots of the batch's marks
 * included. poll of a slot may run beside submit to it. No function calls back into the core, except config.notify.
 */
#ifndef ACS_BACKEND_H
#define ACS_BACKEND_H

#include "base/activity.h"
#include "devices/capacity.h"
#include "devices/topology.h"
#include "window/batch.h"
#include "window/nodes.h"
#include "pool/pages.h"

#include <stdatomic.h>

typedef struct acs_backend acs_backend; /* each backend's own struct begins with one */
typedef struct acs_call_slots acs_call_slots;

/* What a backend leaves behind of a device that was given up. */
typedef enum acs_leave {
    ACS_LEFT_NOTHING, /* nothing runs any more: close may follow */
    ACS_LEFT_DEVICE,  /* the device may still run ops: the backend and the memory it gave out stay, the rest may go */
    ACS_LEFT_THREADS  /* a thread may be inside an op: whatever the op, or the thread behind it, can reach stays */
} acs_leave;

enum { ACS_BACKEND_SLOTS_MOST = 64 };

typedef struct acs_backend_config {
    const acs_options *options;
    uint32_t slots;              /* of each device, as far as there may be so many: acs_backend_slots */
    uint32_t devices;            /* wanted; 0: all that there are */
    uint32_t mark_capacity;      /* marks per slot */
    bool inline_only;            /* make no threads (ACS_DISABLE, ACS_WORKERS=0 asks for no worker, this for no thread) */
    void (*notify)(void *user);  /* something completed; called by backends whose `notifies` is set; any thread */
    void *user;
    int (*cpu_next)(void *user); /* next CPU of ACS_CPUS to pin a thread to, or -1 */
    acs_activity *activity;      /* backends that run ops on threads say what these run; NULL: nobody wants to know */
} acs_backend_config;

/*
 * Somebody else's capture of a stream: ops become nodes of the graph that it makes. All in the calling thread, which is
 * the only one that uses the stream meanwhile. ACS_ERR_STATE: the capture is over or void, or nobody knows what its
 * graph holds: nothing more may be added.
 */
typedef struct acs_capture_ops {
    /*
     * *id: which capture the stream is part of, never 0; 0: none. nodes (or NULL): what its next work would run behind.
     */
    acs_status (*look)(acs_backend *backend, void *stream, uint64_t *id, acs_nodes *nodes);
    /* From now on the stream's next work runs behind exactly these. */
    acs_status (*follow)(acs_backend *backend, void *stream, uint64_t id, const acs_nodes *nodes);
    /*
     * Put an op (KERNEL, MEMCPY, MEMSET, CALL; NULL: an empty node) into the graph behind these nodes; *ends becomes
     * what it ends with, also on an error. The stream's own order stays as it was. The op is not kept. `scratch`: a
     * CALL's.
     */
    acs_status (*add)(acs_backend *backend, void *stream, uint64_t id, acs_record *op, void *scratch,
                      const acs_nodes *behind, acs_nodes *ends);
    /* Take from `nodes` those that the nodes of `by` are behind, as far as a short look at the graph tells. */
    void (*implied)(acs_backend *backend, const acs_nodes *by, acs_nodes *nodes);
    /* Device memory that stays as long as the graph, and what is instantiated from it. */
    acs_status (*scratch)(acs_backend *backend, void *stream, uint64_t id, size_t bytes, void **memory);
} acs_capture_ops;

/* What a library call takes as KERNEL ops; parts 0: it cannot become any. */
typedef struct acs_call_room {
    uint32_t parts; /* ACS_CALL_PARTS at most */
    uint32_t args, bytes;
} acs_call_room;

typedef struct acs_backend_ops {
    int id;             /* ACS_BACKEND_* */
    bool notifies;      /* calls config.notify on completions, so that threads may sleep without polling */
    bool host_calls;    /* library calls run as host functions, after their upstream ops retired */
    bool tells_running; /* what it runs is told to the activity of its config */
    bool single_thread; /* everything runs on the calling threads; poll makes progress (sim, inline host) */

    acs_status (*open)(const acs_backend_config *config, acs_backend **backend);
    /*
     * First thing at close, before what ops may use is freed: returns once no op runs, also of a device that was lost.
     * Nothing is submitted after it. NULL: only ops of a lost device may still run, which touches nothing any more.
     */
    void (*quiesce)(acs_backend *backend);
    /* All ops have completed, or the device is lost. */
    void (*close)(acs_backend *backend);
    /*
     * An op that was issued does not end, and the core has given all of them up. Start nothing more, and touch the
     * records of ops that have not begun no more. Called once, under the core's lock: must not wait. NULL: nothing to
     * do.
     */
    void (*give_up)(acs_backend *backend);
    /*
     * Before close where give_up was called: end what ends by itself, wait for no op. If anything is left, close is not
     * called. Any time later, also never, ops may end; nothing of them may then crash. NULL: as ACS_LEFT_NOTHING.
     */
    acs_leave (*leave)(acs_backend *backend);
    /* Once per thread of the library before other calls: select the device, relax the capture mode. */
    void (*thread_enter)(acs_backend *backend);
    /*
     * Validate a kernel on the caller's thread: limits of grid, block, cluster and shared memory, argument sizes
     * against the kernel's parameters, a body for this backend; may set u.launch.resolved and .type. Cached per kernel:
     * no CUDA call when seen before. ACS_ERR_ARGUMENT or _UNSUPPORTED through ACS_FAIL, naming the value and the limit.
     */
    acs_status (*check)(acs_backend *backend, acs_record *op);
    /*
     * What a thread and a block of a kernel that was checked take beyond what its launch says; known without a call of
     * the device. NULL: nothing.
     */
    void (*needs)(acs_backend *backend, const acs_record *op, uint32_t *thread_registers, uint32_t *block_shared);
    /*
     * On the caller's thread, once a copy or fill is filled in: may turn it into a KERNEL op that does the same, as
     * check() would leave it, so that it can be in a bundle. NULL: never. Not for ops that are captured.
     */
    void (*adapt)(acs_backend *backend, acs_record *op);
    /*
     * On the caller's thread, of a repeatable library call that is neither captured nor held. First, before its record
     * has room: sets u.call.known, and *room where it may become KERNEL ops, one for each kernel, each with room for so
     * many arguments. Then, if parts[0] is the op, filled in, and the others are like it: turns them into those ops, as
     * check() would leave them. False: nothing was changed. NULL, both: never.
     */
    void (*call_find)(acs_backend *backend, acs_record *op, const acs_call_params *params, acs_call_room *room);
    bool (*call_adapt)(acs_backend *backend, acs_record *const *parts);
    /* Issue a batch in order; results in the items. An item that fails does not stop the others. */
    void (*submit)(acs_backend *backend, acs_batch *batch);
    /*
     * Learn what completed. marks: the recorded marks of `slot` not yet seen complete, oldest first (at least one).
     * *completed is the value of the newest complete one, or untouched; or a later value, of an op inside a bundle, up
     * to the last one of a bundle that was submitted just now. ACS_ERR_DEVICE: fatal, through ACS_FAIL.
     */
    acs_status (*poll)(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed);
    /*
     * On the caller's thread: record the work now in a foreign stream (acs_after_stream), *event becomes the record's
     * u.stream.event. A capturing stream: ACS_ERR_UNSUPPORTED. event NULL: only check that the stream is not capturing.
     */
    acs_status (*stream_record)(acs_backend *backend, void *stream, void **event);
    /* Release an event of stream_record whose op is not submitted (skipped). */
    void (*event_release)(acs_backend *backend, void *event);
    /* 256-byte aligned. ACS_ERR_MEMORY through ACS_FAIL. */
    acs_status (*memory_alloc)(acs_backend *backend, int memory /* kind: pool/memory.h */, size_t bytes, void **ptr);
    acs_status (*memory_free)(acs_backend *backend, int memory, void *ptr);
    /*
     * A device's id, the same for every process that uses it (a UUID), and bytes: all, and those that nobody has
     * (UINT64_MAX: not known). Any thread. ACS_ERR_DEVICE through ACS_FAIL.
     */
    acs_status (*memory_state)(acs_backend *backend, uint32_t device, char id[64], uint64_t *total, uint64_t *left);
    /*
     * With several devices: their ids and an estimate of what lies between them (`topology->count` is set).
     * ACS_ERR_DEVICE through ACS_FAIL. And whose memory an address is, of which the pools know nothing: devices, then
     * the host, which also stands for what is not known; NULL: always that.
     */
    acs_status (*links)(acs_backend *backend, acs_topology *topology);
    acs_status (*capacity)(acs_backend *backend, uint32_t device, acs_capacity *capacity); /* but for its queues */
    uint32_t (*memory_device)(acs_backend *backend, uint64_t address);
    const acs_capture_ops *capture; /* NULL: streams are not captured here */
} acs_backend_ops;

/* Backends that count nodes_built do so from any thread. */
struct acs_backend {
    const acs_backend_ops *ops;
    acs_call_slots *calls; /* made by open, destroyed by close */
    uint32_t bundle_most;  /* most ops of a bundle; 0: takes none */
    bool apart;            /* a tool looks where allocations end: each block is to be one of its own */
    uint32_t parallel;     /* most ops that a device runs at once; 0: many, or not known */
    uint32_t devices;      /* how many there are; slot s is one of device s % devices, ops name theirs; set by open */
    acs_page_ops pages;    /* of device memory, called with the backend; .page 0: there are none */
    _Atomic(uint64_t) nodes_built;   /* of cached graphs, ever; a counter */
    _Atomic(uint32_t) refusals_told; /* kernels without a host body that were logged: one */
    char no_gpu[ACS_ERROR_TEXT_BYTES]; /* why ACS_BACKEND=auto chose the host backend; empty: it did not choose it */
};

extern const acs_backend_ops acs_backend_host;
extern const acs_backend_ops acs_backend_host_inline; /* the same without threads: config.inline_only */
extern const acs_backend_ops acs_backend_sim;
#ifdef ACS_HAVE_CUDA
extern const acs_backend_ops acs_backend_cuda;
#endif

/* Slots in all: of a single device as many as are asked for. */
static inline uint32_t acs_backend_slots(uint32_t slots, uint32_t devices)
{
    uint32_t most = ACS_BACKEND_SLOTS_MOST / devices;
    return devices == 1 ? slots : devices * (slots < most ? slots : most);
}

/*
 * Open the backend that `options` ask for. auto: cuda where built and a device answers, else host with a log line.
 * Never a silent fallback from an explicit choice.
 */

/*
 * Library calls: scratch memory and places per slot, shared by the backends. Owned by the backend, one per backend.
 */
acs_status acs_call_slots_create(uint32_t slots, acs_call_slots **calls);
/* Run the destroy functions of the places and free scratch through `backend`. */
void acs_call_slots_destroy(acs_call_slots *calls, acs_backend *backend);
/*
 * Run a CALL op. The slot is owned by this thread for the time of the call; with device -1 (host backends) `slot` is
 * ignored and a free one is claimed, waiting until another thread's call ends where there is none. Result: ACS_OK;
 * ACS_ERR_HOST, *native being what the function returned; ACS_ERR_MEMORY for scratch or the place, function not run.
 */
acs_status acs_call_run(acs_call_slots *calls, acs_backend *backend, acs_record *op, int slot, int device, void *stream,
                        int *native);
/*
 * The slot's scratch memory, made as large as asked for, which its stream must allow; NULL for 0 bytes. The slot is
 * owned by this thread. ACS_ERR_MEMORY.
 */
acs_status acs_call_scratch(acs_call_slots *calls, acs_backend *backend, uint32_t slot, size_t bytes, void **scratch);
/* As acs_call_run for a call that is captured: with scratch of its own, and places that only such calls use. */
acs_status acs_call_capture(acs_call_slots *calls, acs_record *op, int device, void *stream, void *scratch, int *native);
/* The same for backends whose host_calls is set, any thread: the upstream ops have retired. */
acs_status acs_backend_call(acs_backend *backend, acs_record *op, int *native);

#endif

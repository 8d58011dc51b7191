/*
 * A machine of GPUs in virtual time: a deterministic discrete-event model of multiprocessors, hardware queues, events,
 * graphs, copy engines and links. The sim backend runs the library on it; tools/acs-sim runs other ways to issue too.
 *
 * Time is in nanoseconds. The machine has no clock: the host's calls say at which time they are made (`now`, never
 * before what acs_sim_advance reached), and acs_sim_advance lets everything happen up to a time. The host's own costs
 * (what a call takes of a thread) are only listed here, in acs_sim_costs; whoever plays the host adds them to its
 * time.
 *
 * The model, and what it leaves out:
 * - A stream belongs to a hardware queue (stream number modulo the number of queues). A queue is worked off in the
 *   order of the calls: what cannot start yet blocks all behind it, other streams' items too (head-of-line blocking).
 * - The front end starts one kernel after another, in the order in which they became ready; each takes it some time,
 *   and each dependency beyond the first some more.
 * - Blocks (CTAs) are placed on multiprocessors as threads, registers, shared memory and block slots allow, those of
 *   one kernel before those of the next. All blocks of a kernel take the same time; blocks never slow each other down:
 *   caches, clocks and the memory's bandwidth are not modelled, nor are priorities, clusters and preemption.
 * - Copies hold an engine of each device concerned, and their link, for latency plus bytes over bandwidth.
 *
 * One owner, one thread at a time; no locks, no threads, no randomness. Memory is taken from the C library as programs
 * grow; where there is none, `failed` of the machine is set and what was asked for never happens.
 */
#ifndef ACS_SIM_MACHINE_H
#define ACS_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACS_SIM_NEVER UINT64_MAX
#define ACS_SIM_NONE UINT32_MAX

/* What a device's own steps take, in ns. */
typedef struct acs_sim_device_costs {
    uint32_t launch_latency;  /* from the end of the host's call to when the device can start what it asked for */
    uint32_t kernel_fixed;    /* of each kernel, beside its blocks */
    uint32_t stream_hop;      /* end of a kernel to the start of the next in its stream */
    uint32_t event_hop;       /* an event complete to the start of what waited for it */
    uint32_t graph_hop;       /* end of a node of a graph to the start of one that depends on it */
    uint32_t graph_start;     /* a graph's launch at the head of its stream to the start of its first node */
    uint32_t front_end;       /* the front end's time for a kernel */
    uint32_t front_end_edge;  /* and for each dependency beyond the first of a graph's node */
    uint32_t front_end_set;   /* as front_end, for a node whose parameters the device sets; the setting included */
    uint32_t front_end_released; /* for a kernel that a finished one launches, with the kernel that releases others */
    uint32_t node_off;        /* and for a graph's node that is switched off */
    uint32_t device_launch;   /* a kernel's launch of a graph to that graph's first node */
    uint32_t set_head, release_head; /* the kernel at the head of a graph that sets nodes; that launches the first ones */
    uint32_t host_visible;    /* complete to when the host can see it */
    uint32_t copy_latency;
} acs_sim_device_costs;

/* What calls take of the calling thread, in ns. The machine does not use these. */
typedef struct acs_sim_host_costs {
    uint32_t launch, record, wait, query, copy;
    uint32_t synchronize;     /* cudaStreamSynchronize on idle work; on busy work also the way back to the thread */
    uint32_t graph1_launch;   /* an executable graph of one kernel, its parameters set before */
    uint32_t graph_launch;    /* an executable graph: this, */
    uint32_t graph_launch_root;   /* for each root of it */
    uint32_t graph_launch_node;   /* and for each node */
    uint32_t headed_launch;   /* one whose parameters the device sets, with all that a backend does for it */
    uint32_t graph_add_node, graph_instantiate_node, graph_update_node, graph_set_node, graph_destroy_node;
    uint32_t device_set_node; /* of a cached graph whose parameters the device sets: the host's share of a node */
    uint32_t thread_slowdown; /* per mille more for launches, for each further thread that launches at the same time */
} acs_sim_host_costs;

typedef struct acs_sim_gpu {
    const char *name;         /* "h200" */
    uint32_t sms;
    uint32_t sm_ctas, sm_threads, sm_registers, sm_shared_bytes;
    uint32_t queues;          /* hardware queues; CUDA_DEVICE_MAX_CONNECTIONS */
    uint32_t kernels;         /* most kernels that run at once */
    uint32_t engines;         /* copy engines */
    uint32_t host_mbps;       /* MB/s of the link to the host, each way; bytes per us */
    uint32_t peer_mbps;       /* to another device, each way */
    uint32_t memory_mbps;     /* of copies within the device */
    acs_sim_device_costs device;
    acs_sim_host_costs host;
} acs_sim_gpu;

/* Models by name: h200, a100, rtx3070, rtx3060. NULL if unknown; index 0.. until NULL lists them. */
const acs_sim_gpu *acs_sim_gpu_find(const char *name);
const acs_sim_gpu *acs_sim_gpu_at(uint32_t index);

/* What a kernel needs. Zero registers and shared memory: not a limit. */
typedef struct acs_sim_kernel {
    uint32_t ctas, threads;   /* blocks, threads of a block; at least 1 */
    uint32_t registers;       /* of a block */
    uint32_t shared_bytes;    /* of a block */
    uint64_t cta_ns;          /* how long a block takes; ACS_SIM_NEVER: for ever */
} acs_sim_kernel;

typedef enum acs_sim_copy_kind {
    ACS_SIM_TO_DEVICE,
    ACS_SIM_TO_HOST,
    ACS_SIM_WITHIN,
    ACS_SIM_TO_PEER
} acs_sim_copy_kind;

typedef struct acs_sim acs_sim;

/*
 * Told that an item or node with `user` not NULL started (ended false) or ended, at `when`, in the order of time; from
 * inside acs_sim_advance. Must not call the machine.
 */
typedef void (*acs_sim_told)(void *owner, void *user, bool ended, uint64_t when);

/* `devices` GPUs of one model. NULL: no memory. */
acs_sim *acs_sim_create(const acs_sim_gpu *gpu, uint32_t devices, acs_sim_told told, void *owner);
void acs_sim_destroy(acs_sim *sim);
/* Memory ran out: results are worth nothing from here on. */
bool acs_sim_failed(const acs_sim *sim);

/* Streams and events are numbers, counted from 0 in the order of creation. ACS_SIM_NONE: no memory. */
uint32_t acs_sim_stream(acs_sim *sim, uint32_t device);
uint32_t acs_sim_event(acs_sim *sim);

/* Enqueue, as the calls of the same name do; `now`: when the call ended. */
void acs_sim_launch(acs_sim *sim, uint64_t now, uint32_t stream, const acs_sim_kernel *kernel, void *user);
void acs_sim_copy(acs_sim *sim, uint64_t now, uint32_t stream, acs_sim_copy_kind kind, uint32_t peer, uint64_t bytes,
                  void *user);
/* Something that takes `ns` of its stream alone: a host function, an empty op. */
void acs_sim_delay(acs_sim *sim, uint64_t now, uint32_t stream, uint64_t ns, void *user);
void acs_sim_record(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t event);
/* Waits for the latest record of the event before this call; for nothing if there is none. */
void acs_sim_wait(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t event);

/*
 * Graphs of kernels: made once, launched often; one launch of a graph at a time runs, the next waits in its stream for
 * it. Nodes are numbered in the order of adding; edges go from lower to higher numbers.
 */
typedef enum acs_sim_node_kind {
    ACS_SIM_NODE_FIXED,   /* parameters as the host gave them */
    ACS_SIM_NODE_SET,     /* set by a kernel of the same graph */
    ACS_SIM_NODE_RELEASED /* GPU-side issue: launched by the device, which takes longer than an edge's hop */
} acs_sim_node_kind;

uint32_t acs_sim_graph(acs_sim *sim, uint32_t device);
uint32_t acs_sim_graph_node(acs_sim *sim, uint32_t graph, const acs_sim_kernel *kernel, acs_sim_node_kind kind,
                            void *user);
void acs_sim_graph_edge(acs_sim *sim, uint32_t graph, uint32_t from, uint32_t to);
void acs_sim_graph_launch(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t graph);
/*
 * While no launch of it is busy: what a node does from now on (kernel NULL: nothing, it is switched off), and no nodes
 * at all, to make another graph of it. Busy: a launch has not ended.
 */
void acs_sim_graph_set(acs_sim *sim, uint32_t graph, uint32_t node, const acs_sim_kernel *kernel, void *user);
void acs_sim_graph_clear(acs_sim *sim, uint32_t graph);
bool acs_sim_graph_busy(const acs_sim *sim, uint32_t graph);

/* Let everything happen up to and including `until`. */
void acs_sim_advance(acs_sim *sim, uint64_t until);
/* When something next happens; ACS_SIM_NEVER: nothing will. */
uint64_t acs_sim_next(const acs_sim *sim);
/* When the latest record of an event completed, or ACS_SIM_NEVER; acs_sim_advance must have reached that time. */
uint64_t acs_sim_event_time(const acs_sim *sim, uint32_t event);
/* When all that was enqueued in a stream was done (acs_sim_advance reached it), or ACS_SIM_NEVER: not yet. */
uint64_t acs_sim_stream_done(const acs_sim *sim, uint32_t stream);

/* What happened so far, of one device. */
typedef struct acs_sim_counters {
    uint64_t kernels, copies, graphs;
    uint64_t sm_busy_ns;      /* sum over multiprocessors of the time with at least one block */
    uint64_t cta_ns;          /* sum over blocks of their times */
    uint64_t blocked_ns;      /* hardware queues: head not ready although an item of another stream behind it was next */
    uint32_t running_high;    /* kernels at once */
} acs_sim_counters;
acs_sim_counters acs_sim_count(const acs_sim *sim, uint32_t device);

#endif

/*
 * A machine of GPUs in virtual time: a deterministic discrete-event model of multiprocessors, hardware queues, events,
 * graphs, copy engines and links. The sim backend runs the library on it; tools/acs-sim runs other ways to issue too.
 *
 * Time is in nanoseconds. The machine has no clock. The host's calls say when they are made (`now`, never before the
 * time that acs_sim_advance reached), and acs_sim_advance lets everything happen up to a time. The host's own costs (a
 * thread's time for a call) are only listed here, in acs_sim_host_costs. The caller that plays the host adds them to
 * its time.
 *
 * The model and its limits:
 * - A stream belongs to a hardware queue (stream number modulo the number of queues). A queue is worked off in the
 *   order of the calls. An item that cannot start blocks all items behind it, those of other streams too (head-of-line
 *   blocking).
 * - The front end starts one kernel after another, in the order in which they became ready. Each kernel takes it some
 *   time, and each dependency beyond the first some more.
 * - Blocks (CTAs) are placed on multiprocessors as threads, registers, shared memory and block slots allow, those of
 *   one kernel before those of the next that may use the same multiprocessors. All blocks of a kernel take the same time;
 *   blocks never slow each other down. Caches, clocks, memory bandwidth, priorities, clusters and preemption are not
 *   modelled.
 * - Copies hold an engine of each device concerned, and their link, for latency plus bytes over bandwidth.
 *
 * One owner, one thread at a time; no locks, no threads, no randomness. Memory comes from the C library as programs
 * grow. Without memory the machine sets `failed`, and the requested item never happens.
 */
#ifndef ACS_SIM_MACHINE_H
#define ACS_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACS_SIM_NEVER UINT64_MAX
#define ACS_SIM_NONE UINT32_MAX

/* A device's own times, in ns. */
typedef struct acs_sim_device_costs {
    uint32_t launch_latency;  /* from the end of the host's call until the device can start its item */
    uint32_t kernel_fixed;    /* for each kernel, besides its blocks */
    uint32_t stream_hop;      /* from the end of a kernel to the start of the next in its stream */
    uint32_t event_hop;       /* from an event's completion to the start of an item that waited for it */
    uint32_t graph_hop;       /* from the end of a graph's node to the start of a dependent node */
    uint32_t graph_start;     /* from a graph's launch at the head of its stream to the start of its first node */
    uint32_t front_end;       /* the front end's time for a kernel */
    uint32_t front_end_edge;  /* front end, for each dependency of a graph's node beyond the first */
    uint32_t front_end_set;   /* front end, for a node whose parameters the device sets; the setting included */
    uint32_t front_end_released; /* front end, for a kernel that a finished one launches, with the release kernel */
    uint32_t resident_op;     /* an executor's time for an op, where many could run */
    uint32_t resident_hop;    /* from the end of an op to the start of the next in an executor */
    uint32_t node_off;        /* front end, for a graph's node that is switched off */
    uint32_t decision;        /* a kernel that decides whether others run: its block's time, with the switching */
    uint32_t decided_head;    /* front end, for a decided kernel that is launched by itself, before the kernel starts */
    uint32_t device_launch;   /* from a kernel's launch of a graph to that graph's first node */
    /* head of a graph: a kernel that sets nodes, one that launches the first nodes, an executor's start */
    uint32_t set_head, resident_head;
    uint32_t host_visible;    /* from completion until the host can see it */
    uint32_t copy_latency;
} acs_sim_device_costs;

/* The calling thread's times for calls, in ns. The machine does not use these. */
typedef struct acs_sim_host_costs {
    uint32_t launch, record, wait, query, copy;
    uint32_t synchronize;     /* cudaStreamSynchronize on idle work; on busy work the thread's return is included */
    uint32_t graph1_launch;   /* an executable graph of one kernel whose parameters were set before */
    uint32_t graph_launch;    /* an executable graph, without its nodes */
    uint32_t graph_launch_root;   /* for each root of the graph */
    uint32_t graph_launch_node;   /* for each node of the graph */
    uint32_t headed_launch;   /* a graph whose parameters the device sets, with all work of the backend */
    uint32_t graph_add_node, graph_instantiate_node, graph_update_node, graph_set_node, graph_destroy_node;
    uint32_t device_set_node; /* the host's share of a node that the device sets, in a cached graph */
    uint32_t thread_slowdown; /* per mille more for launches, for each further thread that launches at the same time */
} acs_sim_host_costs;

typedef struct acs_sim_gpu {
    const char *name;         /* "h200" */
    uint32_t sms;
    uint32_t sm_ctas, sm_threads, sm_registers, sm_shared_bytes;
    uint32_t queues;          /* hardware queues; CUDA_DEVICE_MAX_CONNECTIONS */
    uint32_t kernels;         /* most kernels that run at once */
    uint32_t engines;         /* copy engines */
    uint32_t host_mbps;       /* link to the host, each way; 1 MB/s is 1 byte per us */
    uint32_t peer_mbps;       /* link to another device, each way */
    uint32_t memory_mbps;     /* copies within the device */
    acs_sim_device_costs device;
    acs_sim_host_costs host;
} acs_sim_gpu;

/* Models by name: h200, a100, rtx3070, rtx3060. NULL: unknown. By index from 0; NULL ends the list. */
const acs_sim_gpu *acs_sim_gpu_find(const char *name);
const acs_sim_gpu *acs_sim_gpu_at(uint32_t index);

/* The needs of a kernel. Zero registers or shared memory: no limit by them. */
typedef struct acs_sim_kernel {
    uint32_t ctas, threads;   /* blocks, threads of a block; at least 1 */
    uint32_t registers;       /* of a block */
    uint32_t shared_bytes;    /* of a block */
    uint64_t cta_ns;          /* time of a block in ns; ACS_SIM_NEVER: it never ends */
    bool decided;             /* the owner says how many blocks it has once its turn has come (acs_sim_ask) */
    /* multiprocessors that its blocks may go to, from the first one on and around the end; sms 0: all */
    uint32_t first_sm, sms;
} acs_sim_kernel;

typedef enum acs_sim_copy_kind {
    ACS_SIM_TO_DEVICE,
    ACS_SIM_TO_HOST,
    ACS_SIM_WITHIN,
    ACS_SIM_TO_PEER
} acs_sim_copy_kind;

typedef struct acs_sim acs_sim;

/*
 * Called when an item or node whose `user` is not NULL started (ended false) or ended, at `when`, in the order of
 * time, from inside acs_sim_advance. Must not call the machine.
 */
typedef void (*acs_sim_told)(void *owner, void *user, bool ended, uint64_t when);

/*
 * Called when all that a decided kernel had to wait for has ended. @return its number of blocks, at most `ctas`; 0: it
 * does not run. Then it is told as started and ended all the same. Must not call the machine.
 */
typedef uint32_t (*acs_sim_asked)(void *owner, void *user, uint32_t ctas);

/* Make `devices` GPUs of one model. NULL: no memory. */
acs_sim *acs_sim_create(const acs_sim_gpu *gpu, uint32_t devices, acs_sim_told told, void *owner);
void acs_sim_destroy(acs_sim *sim);
/* Let an owner decide. Without this, decided kernels run with all their blocks. */
void acs_sim_ask(acs_sim *sim, acs_sim_asked asked);
/* Whether memory ran out; then all later results are void. */
bool acs_sim_failed(const acs_sim *sim);

/* Streams and events are numbered from 0 in the order of creation. ACS_SIM_NONE: no memory. */
uint32_t acs_sim_stream(acs_sim *sim, uint32_t device);
uint32_t acs_sim_event(acs_sim *sim);

/* Enqueue an item, as CUDA's calls of the same name do. `now`: time at which the call ended. */
void acs_sim_launch(acs_sim *sim, uint64_t now, uint32_t stream, const acs_sim_kernel *kernel, void *user);
void acs_sim_copy(acs_sim *sim, uint64_t now, uint32_t stream, acs_sim_copy_kind kind, uint32_t peer, uint64_t bytes,
                  void *user);
/* Enqueue an item that takes `ns` of its stream alone: a host function, an empty op. */
void acs_sim_delay(acs_sim *sim, uint64_t now, uint32_t stream, uint64_t ns, void *user);
void acs_sim_record(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t event);
/* Wait for the latest record of the event before this call; without one, for nothing. */
void acs_sim_wait(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t event);

/*
 * Graphs of kernels: made once, launched often. One launch of a graph runs at a time; the next one waits in its
 * stream. Nodes are numbered in the order of adding; edges go from lower to higher numbers.
 */
typedef enum acs_sim_node_kind {
    ACS_SIM_NODE_FIXED,   /* parameters from the host */
    ACS_SIM_NODE_SET,     /* parameters set by a kernel of the same graph */
    ACS_SIM_NODE_RELEASED, /* GPU-side issue: the device launches it, which takes longer than an edge's hop */
    ACS_SIM_NODE_RESIDENT  /* a resident executor runs its blocks */
} acs_sim_node_kind;

uint32_t acs_sim_graph(acs_sim *sim, uint32_t device);
uint32_t acs_sim_graph_node(acs_sim *sim, uint32_t graph, const acs_sim_kernel *kernel, acs_sim_node_kind kind,
                            void *user);
void acs_sim_graph_edge(acs_sim *sim, uint32_t graph, uint32_t from, uint32_t to);
void acs_sim_graph_launch(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t graph);
/*
 * Busy: a launch has not ended. While the graph is not busy, acs_sim_graph_set changes a node's kernel (NULL: the node
 * is switched off), and acs_sim_graph_clear removes all nodes, to make another graph.
 */
void acs_sim_graph_set(acs_sim *sim, uint32_t graph, uint32_t node, const acs_sim_kernel *kernel, void *user);
void acs_sim_graph_clear(acs_sim *sim, uint32_t graph);
bool acs_sim_graph_busy(const acs_sim *sim, uint32_t graph);

/* Let everything up to and including `until` happen. */
void acs_sim_advance(acs_sim *sim, uint64_t until);
/* Time of the next thing to happen; ACS_SIM_NEVER: nothing will. */
uint64_t acs_sim_next(const acs_sim *sim);
/* Time at which the latest record of an event completed. ACS_SIM_NEVER: acs_sim_advance has not reached it. */
uint64_t acs_sim_event_time(const acs_sim *sim, uint32_t event);
/* Time at which the last item of a stream was done. ACS_SIM_NEVER: acs_sim_advance has not reached it. */
uint64_t acs_sim_stream_done(const acs_sim *sim, uint32_t stream);

/* Counts of one device so far. */
typedef struct acs_sim_counters {
    uint64_t kernels, copies, graphs;
    uint64_t sm_busy_ns;      /* sum over multiprocessors of the time with at least one block */
    uint64_t cta_ns;          /* sum over blocks of their times */
    /* time for which a queue's head was not ready while an item of another stream was next behind it */
    uint64_t blocked_ns;
    uint32_t running_high;    /* most kernels at once */
} acs_sim_counters;
acs_sim_counters acs_sim_count(const acs_sim *sim, uint32_t device);

#endif

/*
 * Private to src/simulator: the machine's state, and the functions that its files share. machine.c works off the
 * queues, sms.c places blocks, graph.c runs graphs, timeline.c keeps what will happen.
 */
#ifndef ACS_SIM_INTERNAL_H
#define ACS_SIM_INTERNAL_H

#include "base/base.h"
#include "simulator/machine.h"

typedef enum sim_what {
    SIM_QUEUE,    /* look at a hardware queue */
    SIM_START,    /* a run's turn came: at the front end, the copy engine, or its stream */
    SIM_CTAS_END, /* the blocks of a cohort end */
    SIM_RUN_END,  /* a copy or a delay ends */
    SIM_NODE,     /* a node of a graph is ready */
    SIM_NODE_END, /* a node that is switched off, or does not run, ends */
    SIM_GRAPH_END /* a graph without nodes ends */
} sim_what;

/* Something that will happen. Of two at the same time the one decided first comes first. */
typedef struct sim_happening {
    uint64_t when, order;
    sim_what what;
    uint32_t index; /* number of the queue, run, cohort or graph; SIM_NODE and SIM_NODE_END have `node` as well */
    uint32_t node;
} sim_happening;

typedef struct sim_heap {
    sim_happening *at;
    uint32_t used, capacity;
    uint64_t order;
} sim_heap;

/* timeline.c: remove the first; the heap is not empty. */
sim_happening acs_sim_heap_take(sim_heap *heap);

typedef enum sim_item_kind { ITEM_KERNEL, ITEM_COPY, ITEM_DELAY, ITEM_RECORD, ITEM_WAIT, ITEM_GRAPH } sim_item_kind;

/* An item of a hardware queue. */
typedef struct sim_item {
    sim_item_kind kind;
    uint32_t stream;
    uint32_t index;           /* RECORD, WAIT: event; GRAPH: graph; COPY: peer */
    acs_sim_copy_kind copy;
    uint64_t arrival;
    uint64_t amount;          /* RECORD, WAIT: number of the event's record; COPY: bytes; DELAY: ns */
    acs_sim_kernel kernel;
    void *user;
} sim_item;

typedef struct sim_queue {
    sim_item *ring;           /* positions run free; capacity is a power of two */
    uint32_t head, tail, capacity;
    uint32_t device;
    uint64_t head_since;      /* time at which the head became the head */
    uint64_t wake_at;         /* time of the latest look at the queue that was arranged */
} sim_queue;

typedef struct sim_stream {
    uint32_t queue;
    bool running;             /* whether an item of it runs */
    uint64_t free_at;         /* time from which its next item may start */
    uint64_t last;            /* time at which its latest item was done */
    uint64_t pending;         /* items not done */
} sim_stream;

typedef struct sim_event {
    uint64_t records;         /* number of calls so far */
    uint64_t *pending;        /* records that are not complete */
    uint32_t pending_count, pending_capacity;
    uint64_t at, latest_at;   /* time at which a record completed last, and at which the latest did */
    uint32_t *waiters;        /* queues whose head waits for the event */
    uint32_t waiter_count, waiter_capacity;
} sim_event;

/* A kernel, copy or delay that has left its queue. */
typedef struct sim_run {
    sim_item_kind kind;
    uint32_t device;
    uint32_t stream;          /* ACS_SIM_NONE: a node of a graph */
    uint32_t graph, node;
    acs_sim_kernel kernel;
    uint32_t unplaced, placed_running;
    bool begun;               /* whether blocks were placed */
    uint64_t ns;              /* COPY, DELAY: duration */
    void *user;
    uint32_t next;            /* next in a list, or next unused run */
} sim_run;

/* Blocks of one kernel that were placed together and end together. */
typedef struct sim_cohort {
    uint32_t run, ctas;
    bool many;
    uint16_t sm[8];           /* if few: multiprocessor of each block */
    uint16_t *count;          /* if many: blocks on each multiprocessor; else all 0 */
    uint32_t next;            /* next unused cohort */
} sim_cohort;

typedef struct sim_sm {
    uint32_t ctas, threads, registers, shared_bytes; /* resources that are free */
} sim_sm;

typedef struct sim_list {
    uint32_t first, last;     /* runs, linked through sim_run.next */
} sim_list;

typedef struct sim_device {
    sim_sm *sm;
    uint32_t cursor;          /* multiprocessor that the next block is tried on first */
    uint32_t busy_sms;
    uint64_t busy_since;
    uint64_t front_end_free;
    uint32_t running;         /* kernels that run */
    sim_list stalled;         /* kernels beyond the most that may run at once */
    sim_list placing;         /* kernels with blocks to place, in order */
    uint64_t *engine_free;    /* by copy engine: time from which it is free */
    uint64_t to_host_free, to_device_free, to_peer_free, from_peer_free; /* times from which the links are free */
    uint32_t first_queue, next_queue;
    acs_sim_counters count;
} sim_device;

typedef struct sim_node {
    acs_sim_kernel kernel;
    acs_sim_node_kind kind;
    bool off;
    uint32_t upstream;        /* number of upstream nodes */
    uint32_t waiting;         /* upstream nodes that are not done in this launch */
    uint32_t first_edge;      /* first edge to a downstream node, linked through sim_edge.next */
    void *user;
} sim_node;

typedef struct sim_edge {
    uint32_t to, next;
} sim_edge;

typedef struct sim_graph {
    uint32_t device;
    sim_node *node;
    uint32_t nodes, node_capacity;
    sim_edge *edge;
    uint32_t edges, edge_capacity;
    bool busy;
    uint32_t launches;        /* launches that have not ended, queued ones included */
    uint32_t left;            /* nodes of this launch not done */
    uint32_t stream;          /* stream of this launch */
    uint32_t *waiters;        /* queues whose head is another launch of the graph */
    uint32_t waiter_count, waiter_capacity;
} sim_graph;

struct acs_sim {
    acs_sim_gpu gpu;
    uint64_t now;
    bool failed;
    acs_sim_told told;
    acs_sim_asked asked;
    void *owner;
    sim_heap heap;
    sim_device *device;
    uint32_t devices;
    sim_queue *queue;
    uint32_t queues;
    sim_stream *stream;
    uint32_t streams, stream_capacity;
    sim_event *event;
    uint32_t events, event_capacity;
    sim_graph *graph;
    uint32_t graphs, graph_capacity;
    sim_run *run;
    uint32_t runs, run_capacity, free_run;
    sim_cohort *cohort;
    uint32_t cohorts, cohort_capacity, free_cohort;
};

/* timeline.c */

/* Make room for one more element. False, and `failed` is set: no memory. */
#define ACS_SIM_GROW(sim, list, room, used) (ACS_GROW(list, room, (used) + 1) || !((sim)->failed = true))
void acs_sim_happen(acs_sim *sim, uint64_t when, sim_what what, uint32_t index, uint32_t node);
/* Arrange a look at a queue at `when`. */
void acs_sim_wake(acs_sim *sim, uint32_t queue, uint64_t when);
/* Arrange a look at all queues of a list, and empty the list. */
void acs_sim_wake_all(acs_sim *sim, const uint32_t *waiters, uint32_t *count);
/* The kernel, with blocks that fit a multiprocessor: one that would not fit takes a whole one. */
acs_sim_kernel acs_sim_fitted(const acs_sim *sim, const acs_sim_kernel *kernel);
/* An unused run, or ACS_SIM_NONE. */
uint32_t acs_sim_run_take(acs_sim *sim);
void acs_sim_tell(acs_sim *sim, void *user, bool ended);
/* Let the owner say how many blocks a kernel has, if it is decided. @return the number; 0: it does not run. */
uint32_t acs_sim_blocks(acs_sim *sim, acs_sim_kernel *kernel, void *user);
/* Occupy a device's front end for `cost`. @return the time at which that begins. */
uint64_t acs_sim_front_end_turn(acs_sim *sim, uint32_t device, uint64_t cost);
/* Let a ready run take its turn at the front end. */
void acs_sim_front_end(acs_sim *sim, uint32_t run, uint64_t cost);
/* An item of a stream is done now. */
void acs_sim_item_done(acs_sim *sim, uint32_t stream);
/* The item that ran in a stream is done; the next one may start after a hop. */
void acs_sim_stream_ended(acs_sim *sim, uint32_t stream);

/* sms.c */
bool acs_sim_sms_init(acs_sim *sim, sim_device *device);
/* A kernel's turn has come. */
void acs_sim_kernel_start(acs_sim *sim, uint32_t run);
/* Free the blocks of a cohort. True: they were the last of their kernel. The caller then calls acs_sim_sms_refill. */
bool acs_sim_ctas_end(acs_sim *sim, uint32_t cohort);
/* Start a stalled kernel if one has ended, and place blocks on free resources. */
void acs_sim_sms_refill(acs_sim *sim, uint32_t device, bool kernel_ended);
/* Count the busy time of multiprocessors up to now. */
void acs_sim_busy_update(acs_sim *sim, sim_device *device);

/* graph.c */
/* Start a launch. False: an earlier launch of the graph runs; the queue is looked at again when it ends. */
bool acs_sim_graph_start(acs_sim *sim, uint32_t graph, uint32_t stream, uint32_t queue);
void acs_sim_node_ready(acs_sim *sim, uint32_t graph, uint32_t node);
void acs_sim_node_ended(acs_sim *sim, uint32_t graph, uint32_t node);
void acs_sim_graph_ended(acs_sim *sim, uint32_t graph);
void acs_sim_graphs_free(acs_sim *sim);

#endif

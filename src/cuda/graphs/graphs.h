/*
 * Private to src/cuda/cuda*.c: cached graphs, what they are built from, and how a launch of one is filled in. Built and
 * launched by graphs/method.c.
 *
 * An executable graph is launched again and again, each time with other ops in its nodes. A kernel at its head, our
 * own, makes the changes; the host knows what every node holds, and writes only differences into a table of the launch.
 * There are several tables, so that launches can queue behind each other; CUDA orders launches of one executable graph
 * by itself.
 *
 * Nodes that the device can change cost the GPU up to twice as much as those that it cannot, and a change by the host
 * costs the host 0.9 us. So a graph can also have fixed nodes, for bundles whose arguments recur with their shape.
 */
#ifndef ACS_CUDA_GRAPHS_H
#define ACS_CUDA_GRAPHS_H

#include "cuda/bundle.h"
#include "cuda/kernel.h"
#include "cuda/device_code/device.h"
#include "base/tuning.h"
#include "bundles/graph_cache.h"
#include "bundles/layer_template.h"

enum {
    ACS_CUDA_PLAN_NODES = 1280,
    ACS_CUDA_PLAN_EDGES = 8192,
    ACS_CUDA_VALUES = 63,      /* most values that a launch publishes */
    ACS_CUDA_ARG_BYTES = 1024, /* of a kernel in a cached graph */
    ACS_CUDA_TYPES = 4096
};

/* A kernel with its block and shared memory: what the device cannot change in a node. Immutable, but for `refused`. */
struct acs_cuda_type {
    uint32_t number;
    uint32_t index; /* among the kernel's own */
    acs_cuda_kernel *kernel;
    acs_dim3 block;
    uint32_t shared_bytes;
    uint32_t arg_bytes; /* of all parameters as they lie behind each other */
    bool packed;        /* in a record they lie so, too */
    bool brief;         /* our own small copies: what a bundle of them takes is never theirs */
    _Atomic bool refused; /* a graph with it could not be built */
    _Atomic uint32_t long_turn; /* launches since it is known to take long */
    _Atomic uint32_t kernel_ns; /* how long it takes, about: bundles/cost_model.h; 0: not known */
    struct acs_cuda_type *next; /* of the kernel's */
};

typedef enum acs_cuda_node_kind { ACS_CUDA_NODE_OP, ACS_CUDA_NODE_JOIN, ACS_CUDA_NODE_PUBLISH } acs_cuda_node_kind;

typedef struct acs_cuda_plan_node {
    uint32_t type;  /* of an op */
    uint16_t kind;  /* acs_cuda_node_kind */
    uint16_t first_edge, edge_count; /* nodes before it; none: it follows the head */
} acs_cuda_plan_node;

/* What a graph is built from. Ops are numbered in order; so are publishing nodes, each with the value of its number. */
typedef struct acs_cuda_plan {
    uint32_t nodes, edges_used, ops, values;
    acs_cuda_plan_node node[ACS_CUDA_PLAN_NODES];
    uint16_t edges[ACS_CUDA_PLAN_EDGES];
} acs_cuda_plan;

typedef struct acs_cuda_slab acs_cuda_slab; /* many rooms, made at once */

/* Pinned memory for tables, kept for the next graph when one goes. */
typedef struct acs_cuda_room {
    struct acs_cuda_room *next;
    size_t bytes;
    void *tables;      /* host, mapped */
    CUdeviceptr state; /* device: what the head leaves for publishing nodes */
} acs_cuda_room;

typedef struct acs_cuda_exec {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode head;
    bool fixed; /* nodes are changed by the host */
    uint32_t ops, values, stride;
    uint32_t table_bytes;
    acs_cuda_room *room;
    unsigned char *held; /* per op an acs_device_set and its parameters, as in a table: what the node holds */
    uint8_t *turn;       /* per op: the launch that set it last, modulo 256 */
    const acs_cuda_type **types; /* per op */
    CUgraphNode *nodes;  /* per op, where they are fixed */
    acs_graph_copy *copy;
    struct acs_cuda_exec *next_dead;
    struct {
        int slot;        /* -1: not used yet */
        uint64_t value;
    } launches[TUNE_GRAPH_TABLES];
    uint32_t next;       /* table of the launch that comes next */
    uint8_t now;         /* its turn */
    uint32_t *shape;     /* what a replayed bundle is compared with */
    size_t shape_words;
    uint64_t *publish;   /* values of the launch that is being filled in */
} acs_cuda_exec;

/* A bundle whose time is taken: from when all before it in its slot was seen complete until it was. */
typedef struct acs_cuda_times {
    _Atomic bool on; /* guarded by the issue methods' lock where it is changed, as all that follows */
    uint64_t after, value;
    uint64_t looked_ns;  /* when the slot was looked at last */
    uint64_t began_ns;   /* 0: not yet */
    uint32_t levels;
    uint64_t without_ns, others_ns; /* of acs_cuda_issued */
    uint32_t type_count, types[4];
} acs_cuda_times;

/* What all issue methods of a device share; NULL in acs_cuda: it issues no bundles. */
struct acs_cuda_methods {
    CUfunction head, join, publish;
    uint64_t nodes_most;            /* nodes of cached graphs; constant */
    _Atomic uint32_t layers_losses; /* bundles since layers were the best for one */
    _Atomic uint32_t launch_turn,
        launch_ns; /* graphs/kernel_times.c: batches of launches, and what a launch takes of this host */
    struct acs_cuda_word {
        _Atomic uint64_t value;
        uint64_t unused[7];
    } *words; /* per slot, mapped: what the device published */
    acs_cuda_times *watches; /* per slot */
    _Atomic uint64_t *known; /* per slot: what poll learnt of marks and words */
    _Atomic uint64_t *marked; /* the same, of marks alone */
    _Atomic(acs_cuda_type *) types[ACS_CUDA_TYPES];
    uint32_t types_used; /* guarded by acs_cuda.lock */

    acs_lock lock; /* rank BACKEND, never together with acs_cuda.lock; guards what follows */
    acs_graph_cache *cache;
    acs_cuda_room *rooms; /* free */
    acs_cuda_slab *slabs; /* the latest first */
    acs_layer_template shape;   /* chosen last, */
    uint32_t shape_for[3];     /* for so many levels, ops side by side, ops */
    uint32_t shape_uses;
    uint64_t bad[32];     /* keys that could not be built or launched */
    uint32_t bad_next;
    uint32_t failures;
    acs_cuda_exec *dead;  /* could not be launched once; earlier launches may be under way, so they stay until close */
};

/* args.c; no CUDA call */
/* Of the op's grid and arguments. */
uint64_t acs_cuda_args_hash(const acs_record *op);
/* Whether the op's arguments lie as the kernel's parameters do. Their sizes match. */
bool acs_cuda_args_packed(const acs_cuda_kernel *kernel, const acs_record *op);
/* Bring what a node holds up to date; what has changed is [*from, *end), which is empty if nothing has. */
void acs_cuda_args_update(const acs_cuda_type *type, const acs_record *op, unsigned char *held, uint32_t *from,
                          uint32_t *end);

/* graphs/graph.c: in a scope, no lock held */
/* NULL: not to be had; *result says why. To be launched in the slot first: it is uploaded in that order. */
acs_cuda_exec *acs_cuda_exec_create(acs_cuda *self, const acs_cuda_plan *plan, bool fixed, int slot, CUresult *result);
/* None of its launches is under way. Its room goes back. */
void acs_cuda_exec_destroy(acs_cuda *self, acs_cuda_exec *exec);
/* Whether a table is free for one more launch. */
bool acs_cuda_exec_ready(acs_cuda *self, const acs_cuda_exec *exec);
/* Begin to fill in a launch, one op after another, then launch it. Ops that are not set are switched off; of a fixed graph
 * all must be set. After a failure the graph is good for nothing but its end. */
void acs_cuda_exec_begin(acs_cuda_exec *exec);
CUresult acs_cuda_exec_set(acs_cuda *self, acs_cuda_exec *exec, uint32_t op, const acs_record *record);
/* The launch ends at `value` of the slot. */
CUresult acs_cuda_exec_launch(acs_cuda *self, acs_cuda_exec *exec, int slot, uint64_t value);

/*
 * graphs/room.c: room for a graph's tables; when a graph goes, which may be under way no more; and all of them, at
 * close
 */
CUresult acs_cuda_room_acquire(acs_cuda *self, size_t bytes, acs_cuda_room **room);
void acs_cuda_room_release(acs_cuda_methods *methods, acs_cuda_room *room);
void acs_cuda_rooms_free(acs_cuda *self);

/* graphs/plan.c */
/* False: too large. */
bool acs_cuda_plan_dag(const acs_dag *dag, acs_cuda_plan *plan);
bool acs_cuda_plan_layers(const acs_layer_template *shape, acs_cuda_plan *plan);
/*
 * Layers publish after so many levels, others after TUNE_GRAPH_PUBLISH_OPS; and the nodes of layers, but for the head.
 */
uint32_t acs_cuda_publish_levels(const acs_layer_template *shape);
uint32_t acs_cuda_layers_nodes(const acs_layer_template *shape);

/* type.c */
acs_cuda_type *acs_cuda_type_find(acs_cuda *self, uint32_t number);
void acs_cuda_types_fini(acs_cuda *self);

/* graphs/cache.c; in a scope */
/* Which cached graph is wanted. */
typedef struct acs_cuda_wanted {
    uint64_t key;
    uint32_t nodes;
    int slot;
    uint32_t sightings; /* from which on it is built; UINT32_MAX: never, and this one does not count */
    bool fixed;         /* its nodes are changed by the host */
    const acs_batch *batch; /* whose shape it has; NULL: layers, of `shape` */
    const acs_layer_template *shape;
} acs_cuda_wanted;
/* A graph, this thread's until it is issued; NULL: none for now. */
acs_cuda_exec *acs_cuda_exec_get(acs_cuda *self, const acs_cuda_wanted *want);
/* Launch what was filled in, unless that failed with `filled`. ACS_OK or ACS_NOT_READY; a fatal error is noted. */
acs_status acs_cuda_exec_issue(acs_cuda *self, acs_cuda_exec *exec, int slot, uint64_t value, CUresult filled);

/* graphs/kernel_times.c */
/* What is known of the time that a bundle takes, which was issued. */
typedef struct acs_cuda_issued {
    uint64_t value;      /* of its last op */
    uint32_t levels;
    uint64_t without_ns; /* what it would take if kernels took no time */
    uint64_t others_ns;  /* of the time that it takes, what may be that of bundles beside it */
} acs_cuda_issued;
/* May take its time. */
void acs_cuda_times_begin(acs_cuda *self, const acs_batch *batch, const acs_cuda_issued *issued);
/*
 * Its kernels are launched because they seem to take long. Nothing more is learnt of them that way, so a little less is
 * believed for each of its ops, until they ride once more.
 */
void acs_cuda_times_doubt(acs_cuda *self, const acs_batch *batch);
/* The slot has completed all up to here, as of now. */
void acs_cuda_times_look(acs_cuda *self, int slot, uint64_t completed);

/* graphs/method.c */
/* All up to this value of the slot have completed, as far as is known without asking the driver. */
uint64_t acs_cuda_completed(const acs_cuda *self, int slot);
/* All graphs whose last op has at most this value are over, with all that they have behind their last op. */
uint64_t acs_cuda_ended(const acs_cuda *self, int slot);

#endif

/*
 * Private to src/cuda: cached graphs, the plans that they are built from, and the filling of a launch. graphs/method.c
 * builds and launches them.
 *
 * An executable graph is launched again and again, each time with other ops in its nodes. A kernel at its head, one of
 * ours, changes the nodes. The host knows the contents of every node, and writes only differences into a table of the
 * launch. A graph has several tables, so that its launches can queue behind each other; CUDA orders launches of one
 * executable graph by itself.
 *
 * Nodes that the device can change cost the GPU up to twice as much as others, and a change by the host costs the host
 * 0.9 us. So a graph can also have fixed nodes, which the host changes: all of them for bundles whose arguments recur
 * with their shape, and in a replay those of ops that mostly stay as they are.
 */
#ifndef ACS_CUDA_GRAPHS_H
#define ACS_CUDA_GRAPHS_H

#include "cuda/bundle.h"
#include "cuda/kernel.h"
#include "cuda/device_code/device.h"
#include "base/tuning.h"
#include "bundles/graph_cache.h"
#include "bundles/dag.h"
#include "window/replay.h"

enum {
    ACS_CUDA_PLAN_NODES = 1280,
    ACS_CUDA_PLAN_EDGES = 8192,
    ACS_CUDA_VALUES = 63,      /* most values that a launch publishes */
    ACS_CUDA_ARG_BYTES = 1024, /* most bytes of arguments of a kernel in a cached graph */
    ACS_CUDA_TYPES = 4096
};

/*
 * A type: a kernel with its block and shared memory, which the device cannot change in a node. Constant but for
 * `refused`.
 */
struct acs_cuda_type {
    uint32_t number;
    uint32_t index; /* number among the types of the kernel */
    acs_cuda_kernel *kernel;
    acs_dim3 block;
    uint32_t shared_bytes;
    uint32_t arg_bytes; /* bytes of all parameters, gaps included */
    bool packed;        /* whether a record's arguments lie at the parameters' offsets */
    bool decided;       /* its ops obey cells: their nodes are never fixed */
    _Atomic bool refused; /* whether a graph with it could not be built */
    struct acs_cuda_type *next; /* list of the kernel's types */
};

typedef enum acs_cuda_node_kind { ACS_CUDA_NODE_OP, ACS_CUDA_NODE_JOIN, ACS_CUDA_NODE_PUBLISH } acs_cuda_node_kind;

typedef struct acs_cuda_plan_node {
    uint32_t type;  /* number of the op's type */
    uint16_t kind;  /* acs_cuda_node_kind */
    uint16_t first_edge, edge_count; /* earlier nodes that it follows; none: it follows the head */
    bool fixed;     /* of an op: the host changes the node, not the device */
} acs_cuda_plan_node;

/* The plan of a graph. Ops are numbered in order. Publishing nodes are, too; each publishes the value of its number. */
typedef struct acs_cuda_plan {
    uint32_t nodes, edges_used, ops, values;
    acs_cuda_plan_node node[ACS_CUDA_PLAN_NODES];
    uint16_t edges[ACS_CUDA_PLAN_EDGES];
} acs_cuda_plan;

typedef struct acs_cuda_slab acs_cuda_slab; /* memory for many rooms, allocated at once */

/* Memory for the tables of one graph. When its graph goes, the next graph gets it. */
typedef struct acs_cuda_room {
    struct acs_cuda_room *next;
    size_t bytes;
    void *tables;      /* in pinned host memory, mapped */
    CUdeviceptr state; /* in device memory: the values that the head leaves for publishing nodes */
} acs_cuda_room;

typedef struct acs_cuda_exec {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode head;
    uint32_t ops, values, stride;
    uint32_t settable; /* ops whose nodes the device changes; the host changes the others, which are fixed */
    uint32_t table_bytes;
    acs_cuda_room *room;
    unsigned char *held; /* by op: contents of its node, as an acs_device_set and its parameters */
    uint64_t *on;        /* bits by op: its node is switched on */
    uint64_t *filled;    /* bits by op: it is part of the launch that is being filled */
    uint64_t shapes_own[ACS_REPLAY_WORDS]; /* bits by op: its contents are those of the replays' shape */
    const acs_cuda_type **types; /* by op */
    bool handles;        /* some kernels have handles; then: */
    uint32_t unloads;    /* acs_backend_unloads when the first of these kernels was seen */
    CUgraphNode *nodes;  /* by op */
    bool *fixed;         /* by op */
    acs_graph_copy *copy;
    struct acs_cuda_exec *next_dead;
    struct {
        int slot;        /* slot of the table's latest launch; -1: none yet */
        uint64_t value;
    } launches[TUNE_GRAPH_TABLES];
    uint32_t next;       /* index of the next launch's table */
    uint64_t replay_id;  /* id of the replays' shape that it was made for; 0: another graph */
    uint32_t *shape;     /* shape of a replayed bundle, for comparison */
    size_t shape_words;
    uint64_t *publish;   /* values of the launch that is being filled */
    const acs_cell *cells; /* the first cell that the head obeys in that launch; NULL: none yet */
} acs_cuda_exec;

/* A prepared graph that is to be built. */
typedef struct acs_cuda_build {
    struct acs_cuda_build *next;
    uint64_t key;
    uint64_t before; /* graphs that were used later are not evicted for it */
    uint32_t nodes;
    acs_cuda_exec *exec;
    acs_cuda_plan plan;
} acs_cuda_build;

typedef struct acs_cuda_builder acs_cuda_builder;

/* State that all issue methods of a device share. */
struct acs_cuda_methods {
    acs_cuda_builder *builder; /* NULL: the thread that issues builds all graphs; constant */
    CUfunction head, join, publish; /* P in internal.h, as `words` */
    _Atomic(CUfunction) own;        /* relaxed: a kernel of the library's own module; NULL: not loaded yet */
    uint64_t nodes_most;            /* most nodes of all cached graphs; constant */
    struct acs_cuda_word {
        _Atomic uint64_t value;
        uint64_t unused[7];
    } *words; /* by slot, mapped: progress that the device publishes */
    acs_cuda_room *words_room; /* where they are */
    _Atomic uint64_t *known; /* by slot: highest value that poll knows to be completed */
    _Atomic uint64_t *marked; /* by slot: the same, by marks alone */
    _Atomic(acs_cuda_type *) types[ACS_CUDA_TYPES];
    uint32_t types_used; /* guarded by acs_cuda.lock */

    acs_lock lock; /* rank BACKEND, never held together with acs_cuda.lock; guards the fields below */
    acs_graph_cache *cache;
    uint64_t earned;      /* nodes that may be built for replays: ACS_GRAPH_NODES at first, then what replays earn */
    acs_cuda_room *rooms; /* unused rooms */
    acs_cuda_slab *slabs; /* all slabs, the latest first */
    uint64_t bad[32];     /* ring of keys whose graphs could not be built or launched */
    uint32_t bad_next;
    uint32_t failures;
    /* graphs whose launch failed; earlier launches may still run, so they are destroyed at close */
    acs_cuda_exec *dead;
};

/* What a node is to hold: an op's grid and arguments. */
typedef struct acs_cuda_contents {
    acs_dim3 grid;            /* zeros: the device alone knows it */
    const unsigned char *bytes;
    const acs_arg_slot *args; /* where the arguments lie in the bytes */
    const acs_cell *cell;     /* that the head obeys; NULL: none */
    bool cell_grid;           /* it takes its grid from the cell */
} acs_cuda_contents;

acs_cuda_contents acs_cuda_contents_of(const acs_record *op);

/* The op is decided. `head`: its decision has ended before the launch, so the head obeys its cell. */
static inline void acs_cuda_contents_decide(acs_cuda_contents *contents, const acs_record *op, bool head)
{
    contents->cell = head ? op->cell : NULL;
    contents->cell_grid = op->flags & ACS_RECORD_GRID_DECIDED;
    if (contents->cell_grid)
        contents->grid = (acs_dim3){0, 0, 0};
}

/*
 * graphs/decided.c: which ops of a launch obey which decisions in it. The launch's ops have numbers below
 * ACS_BATCH_ITEMS; add those that decide or are decided in their order, with their arguments.
 */
enum { ACS_CUDA_LINK_HEADS = 256 };
typedef struct acs_cuda_link_targets {
    uint16_t op[ACS_DECISION_TARGETS];
} acs_cuda_link_targets;
typedef struct acs_cuda_links {
    uint16_t heads[ACS_CUDA_LINK_HEADS]; /* by cell: latest decision + 1 */
    uint16_t older[ACS_BATCH_ITEMS];
    uint16_t obeys[ACS_BATCH_ITEMS]; /* by op that is decided: its decision + 1; 0: that is not in the launch */
    uint8_t count[ACS_BATCH_ITEMS];  /* by decision: its targets */
    uint32_t grids[ACS_BATCH_ITEMS];
    const acs_cell *cell[ACS_BATCH_ITEMS];
    acs_cuda_link_targets targets[ACS_BATCH_ITEMS];
} acs_cuda_links;
void acs_cuda_links_begin(acs_cuda_links *links);
void acs_cuda_links_add(acs_cuda_links *links, uint32_t op, const acs_record *record, const unsigned char *args);
/* Those of a bundle, by item. */
void acs_cuda_links_of(const acs_batch *batch, acs_cuda_links *links);
/* The node of an op of the launch, as the device knows it. */
typedef uint64_t (*acs_cuda_node_of)(const void *user, uint32_t op);
/* Add to a decision's contents its targets (`room`: where they then are), and to a decided op's contents its cell. */
void acs_cuda_links_apply(const acs_cuda_links *links, uint32_t op, const acs_record *record, acs_cuda_node_of node_of,
                          const void *user, acs_decision *room, acs_cuda_contents *contents);

/* args.c; no CUDA call */
/* A hash of the op's grid and arguments. */
uint64_t acs_cuda_args_hash(const acs_record *op);
/* Whether the op's arguments lie at the parameters' offsets. Their sizes match. */
bool acs_cuda_args_packed(const acs_cuda_kernel *kernel, const acs_record *op);
/* Copy an op's arguments into a node's contents. Bytes [*from, *end) have changed; the range is empty if none has. */
void acs_cuda_args_update(const acs_cuda_type *type, const acs_cuda_contents *now, unsigned char *held, uint32_t *from,
                          uint32_t *end);

/* graphs/graph.c: in a scope, no lock held */
/* Let the device change a kernel's node. *handle: as the device knows it. */
CUresult acs_cuda_node_give(acs_cuda *self, CUgraphNode node, uint64_t *handle);
/*
 * Begin a graph of the plan: all but what the driver does. `first`: by op, records whose contents the nodes get; NULL:
 * none. NULL: no memory.
 */
acs_cuda_exec *acs_cuda_exec_prepare(acs_cuda *self, const acs_cuda_plan *plan, const acs_record *first);
/* Build a prepared graph. It is uploaded in the stream, behind which its first launch has to come. */
CUresult acs_cuda_exec_build(acs_cuda *self, acs_cuda_exec *exec, const acs_cuda_plan *plan, CUstream stream);
/* None of its launches may run any more. Its room is kept for other graphs. */
void acs_cuda_exec_destroy(acs_cuda *self, acs_cuda_exec *exec);
/* Whether the table of the next launch is free. */
bool acs_cuda_exec_ready(acs_cuda *self, const acs_cuda_exec *exec);
/*
 * Begin the next launch; acs_cuda_exec_set fills in one op after another. Ops that are not set are switched off. After a
 * failure the graph can only be destroyed.
 */
void acs_cuda_exec_begin(acs_cuda_exec *exec);
CUresult acs_cuda_exec_set(acs_cuda *self, acs_cuda_exec *exec, uint32_t op, const acs_cuda_contents *contents);
/* Ops of this word, all switched on, stay as they are. */
void acs_cuda_exec_keep(acs_cuda_exec *exec, uint32_t word, uint64_t ops);
/* The device's handle of an op's node; 0: it is fixed. */
uint64_t acs_cuda_exec_node(const acs_cuda_exec *exec, uint32_t op);
/* The launch ends at `value` of the slot. */
CUresult acs_cuda_exec_launch(acs_cuda *self, acs_cuda_exec *exec, int slot, uint64_t value);

/*
 * graphs/room.c: take room for a graph's tables; give it back once the graph's launches have ended; free all rooms at
 * close.
 */
CUresult acs_cuda_room_acquire(acs_cuda *self, size_t bytes, acs_cuda_room **room);
void acs_cuda_room_release(acs_cuda_methods *methods, acs_cuda_room *room);
void acs_cuda_rooms_free(acs_cuda *self);

/* graphs/plan.c */
/* Make the plan of a bundle's shape. False: it is too large. */
bool acs_cuda_plan_dag(const acs_dag *dag, acs_cuda_plan *plan);
/* The plan of one op. */
void acs_cuda_plan_op(uint32_t type, acs_cuda_plan *plan);
/* type.c */
acs_cuda_type *acs_cuda_type_find(acs_cuda *self, uint32_t number);
void acs_cuda_types_fini(acs_cuda *self);

/* graphs/cache.c; in a scope */
/* A request for a cached graph. */
typedef struct acs_cuda_wanted {
    uint64_t key;
    uint64_t older;     /* of a graph that will do until that one is built; 0: there is none */
    uint32_t nodes;
    int slot;
    /* sightings from which on it is built; UINT32_MAX: it is not built, and the sighting does not count */
    uint32_t sightings;
    bool fixed;         /* whether the host changes its nodes */
    const acs_batch *batch; /* bundle with the graph's shape; NULL: a replay's, or one op's */
    acs_replay *replay; /* NULL: none */
    uint32_t type;      /* of a graph with one op: its type; 0: another graph */
} acs_cuda_wanted;
/* Find a copy, which belongs to this thread until it is issued. *more: none was found, and one may be built. */
acs_cuda_exec *acs_cuda_exec_find(acs_cuda *self, const acs_cuda_wanted *want, bool *more);
/* Whether there is a copy, in any state. */
bool acs_cuda_exec_exists(acs_cuda *self, uint64_t key);
/* As acs_graph_cache_since. */
uint64_t acs_cuda_graph_since(acs_cuda *self, uint64_t key);
/* Make room for one more graph: graphs that were not used after the time `before` are evicted. False: there is none. */
bool acs_cuda_graph_room(acs_cuda *self, uint32_t nodes, uint64_t before);
/* Whether a graph for replays would find room and was earned, which it then is no more. Nothing is evicted. */
bool acs_cuda_graph_may_build(acs_cuda *self, uint32_t nodes, uint64_t before);
/* Ops were replayed by a graph, so that others may be built. */
void acs_cuda_graph_earn(acs_cuda *self, uint32_t ops);
/* The key's graph failed. If the error is not fatal, the key is not tried again. */
void acs_cuda_graph_refuse(acs_cuda *self, uint64_t key, const char *what, CUresult result);
/*
 * Make room for a prepared graph, build it, and put it into the index, taken. The upload is in the stream; `waits`: it
 * has ended. NULL: the graph cannot be had, and was destroyed.
 */
acs_cuda_exec *acs_cuda_exec_finish(acs_cuda *self, acs_cuda_build *build, CUstream stream, bool waits);
/* The graph may be taken. */
void acs_cuda_exec_give(acs_cuda *self, acs_cuda_exec *exec);

/*
 * graphs/builder.c: a thread that builds graphs. It is made for the first graph, and closed before the index. A graph
 * that is built this way is uploaded before anyone sees it.
 */
acs_cuda_builder *acs_cuda_builder_create(acs_cuda *self);
void acs_cuda_builder_destroy(acs_cuda_builder *builder);
/* Whether the thread builds a graph of this key now or soon. */
bool acs_cuda_builder_has(acs_cuda_builder *builder, uint64_t key);
/* Build a graph. False: no thread can be had; the build stays the caller's. */
bool acs_cuda_builder_add(acs_cuda_builder *builder, acs_cuda_build *build);
/* Call a function on the thread, once; a thread that ends first does not call it. False: no thread can be had. */
bool acs_cuda_builder_call(acs_cuda_builder *builder, bool (*call)(acs_cuda *self));

/*
 * graphs/wanted.c: get a graph, which belongs to this thread until it is issued. NULL: there is none now. A replay's graph
 * is built by another thread, for later; all others in the call.
 */
acs_cuda_exec *acs_cuda_exec_get(acs_cuda *self, const acs_cuda_wanted *want);
/* Whether a replay's graph is there; if not it is built, unless the same was `asked` for in vain not long ago. */
bool acs_cuda_exec_comes(acs_cuda *self, const acs_cuda_wanted *want, uint32_t asked);
/* Launch a filled graph, unless filling failed (`filled`). ACS_OK or ACS_NOT_READY; a fatal error is noted. */
acs_status acs_cuda_exec_issue(acs_cuda *self, acs_cuda_exec *exec, int slot, uint64_t value, CUresult filled);

/* graphs/progress.c */
/* The highest value of the slot that is known to be completed, without asking the driver. */
uint64_t acs_cuda_completed(const acs_cuda *self, int slot);
/* The highest value up to which graphs of the slot are over, with all nodes behind their last op. */
uint64_t acs_cuda_ended(const acs_cuda *self, int slot);

#endif

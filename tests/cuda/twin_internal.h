/*
 * Private to tests/cuda/twin*.c: the twin's objects and what its files share. Everything in g_twin is guarded by one lock,
 * which twin_enter takes and twin_leave releases; functions that end in _locked are called between the two.
 *
 * Handles are numbers, never addresses, so that a wrong one is recognised without touching memory; objects stay until
 * twin_reset, so that a destroyed one is recognised too.
 */
#ifndef TWIN_INTERNAL_H
#define TWIN_INTERNAL_H

#include "twin.h"

#include <pthread.h>

typedef enum twin_kind {
    TWIN_STREAM = 1, TWIN_EVENT, TWIN_KERNEL, TWIN_FUNCTION, TWIN_CONTEXT, TWIN_GRAPH, TWIN_NODE, TWIN_EXEC, TWIN_OWNED,
    TWIN_LIBRARY, TWIN_PIECE, TWIN_GREEN
} twin_kind;

typedef struct twin_object {
    twin_kind kind;
    bool alive;
    bool forgiven;     /* destroying it was made to fail: it may stay */
    int device;        /* -1: none */
    uint32_t number;   /* of its kind, from 0 */
    uintptr_t handle;
} twin_object;

typedef struct twin_stream twin_stream;
typedef struct twin_graph twin_graph;

/* A green context: groups of multiprocessors, from the first one on and around the end. */
typedef struct twin_green {
    twin_object base;
    uint32_t first, count;
} twin_green;

/* A place in a stream's order. */
typedef struct twin_point {
    twin_stream *stream;
    uint64_t position;
} twin_point;

typedef enum twin_op_kind { OP_LAUNCH, OP_COPY, OP_FILL, OP_HOST, OP_RECORD, OP_WAIT, OP_GRAPH, OP_EMPTY } twin_op_kind;

/* The object of a node: where the graph keeps it, and the one executable graph that the device may change it in. */
typedef struct twin_node {
    twin_object base;
    struct twin_op *op, *live;
    int device; /* of the executable graph */
} twin_node;

/* Nodes of a graph, by their handles. */
typedef struct twin_nodes {
    uintptr_t *list;
    size_t count;
    bool *programmatic; /* of a node's dependencies: whether the edge is */
} twin_nodes;

typedef struct twin_kernel_object {
    twin_object base;
    uint32_t replaced;       /* how often its handle has become another kernel's */
    twin_kernel_spec spec;
    bool own; /* of the library's device code, and touches nothing of the program's */
    uintptr_t functions[TWIN_DEVICES]; /* 0: not made yet */
} twin_kernel_object;

typedef struct twin_function_object {
    twin_object base;
    twin_kernel_object *kernel;
    int dynamic_shared; /* what it may ask for now */
    bool lowered;       /* by the program: more is no breach */
    bool wide_clusters;
} twin_function_object;

typedef struct twin_exec {
    twin_object base;
    struct twin_op *nodes; /* copies, in the order of the graph */
    uint32_t in_flight;
    twin_point last;       /* its latest launch */
    bool updatable;        /* it has a node that the device may change */
    bool uploaded;
    struct twin_owned *owned;
} twin_exec;

/* A piece of work of a stream; also a node of a graph. */
typedef struct twin_op {
    struct twin_op *next;
    twin_op_kind kind;
    uint64_t position;
    twin_point *waits;       /* what it runs behind besides its own stream */
    uint32_t wait_count;
    const twin_kernel_object *kernel;
    uint32_t replaced;       /* of the kernel, when the op was made */
    const twin_green *green; /* of its stream; NULL: none */
    void **args;             /* of a launch: one block, copied from the caller */
    uint64_t dst, src, bytes;
    unsigned char value;
    unsigned char *staged;   /* a pageable source, read when the copy was called */
    CUhostFn host;
    void *argument;
    twin_exec *exec;
    twin_range *ranges;      /* that it touches, as far as known */
    size_t range_count;
    uintptr_t node;          /* handle, where it is a graph's */
    twin_nodes behind;       /* the nodes that it depends on */
    bool updatable, off;     /* the device may change it; it is switched off */
    bool programmatic;       /* launched with programmatic stream serialization */
    uint32_t grid[3], block[3], shared;
    struct twin_op *launched; /* of a graph's launch: what its nodes were then */
    struct twin_run_state *run; /* and how far they are, once it has begun; private to twin_queue.c */
} twin_op;

struct twin_stream {
    twin_object base;
    bool blocking;              /* it synchronises with the legacy stream */
    const twin_green *green;    /* it belongs to; NULL: none */
    bool builtin;               /* legacy or per thread: nobody made it */
    twin_op *head, *tail;
    uint64_t issued, done, visible;
    uint64_t stamp;             /* when it was given work last */
    uint32_t late;              /* looks in a row that hid a completion */
    struct twin_seen *behind;   /* waits that were passed and are not visible yet, oldest first */
    uint32_t behind_count, behind_capacity;
    CUstreamCaptureStatus capture;
    CUstreamCaptureMode capture_mode;
    uint64_t capture_thread;
    uint64_t capture_id;
    twin_graph *captured;
    twin_nodes ends;            /* what the next node of the capture depends on */
};

typedef struct twin_seen {
    uint64_t position;
    twin_point implied;
} twin_seen;

typedef struct twin_event {
    twin_object base;
    twin_point recorded;  /* latest record; stream NULL: never */
    bool record_refused;  /* a record failed: then "never recorded" is no fault of the caller */
    bool captured;        /* latest record was in a capture */
    bool timed;           /* made to tell times */
} twin_event;

typedef struct twin_block {
    uint64_t base, bytes;
    int device;    /* whose context was current */
    bool host;     /* pinned */
    bool forgiven; /* freeing it was made to fail */
    twin_trait trait;
    bool mapped;   /* a piece in a span: what follows it may be mapped, too */
} twin_block;

typedef struct twin_span {
    uint64_t base, bytes;
    bool forgiven;
} twin_span;

struct twin_graph {
    twin_object base;
    twin_op *nodes, *last;
    uint32_t count;
    struct twin_owned *owned;
};

/* A user object: what has to be there while a graph, or an executable one made of it, is. */
typedef struct twin_user_object {
    twin_object base;
    uint32_t references;
    CUhostFn destroy;
    void *argument;
} twin_user_object;

typedef struct twin_owned {
    struct twin_owned *next;
    twin_user_object *object;
    uint32_t count;
} twin_owned;

typedef struct twin_failure {
    const char *function;
    CUresult result;
    uint64_t after, count;
} twin_failure;

enum { TWIN_FAILURES = 2, TWIN_NAMES = 128, TWIN_BLOCKS = 4096, TWIN_SPANS = 64 };

typedef struct twin_state {
    pthread_mutex_t lock;
    const char *call;           /* the function that holds the lock */
    uint64_t generation;        /* resets so far */
    uint64_t random;
    twin_strategy strategy;
    uint64_t stamp;
    uint32_t victim;

    twin_object **objects;      /* of this generation */
    uint32_t object_count, object_capacity;
    uintptr_t first_handle;     /* of objects[0] */
    uint32_t made[TWIN_GREEN + 1];
    twin_stream **streams;      /* every one made; the busy ones are looked for among them */
    uint32_t stream_count, stream_capacity;
    twin_stream *legacy[TWIN_DEVICES], *per_thread[TWIN_DEVICES];
    twin_object *contexts[TWIN_DEVICES];
    uint32_t resets[TWIN_DEVICES];
    uint32_t retained[TWIN_DEVICES];
    bool runtime_holds[TWIN_DEVICES];
    bool peers[TWIN_DEVICES][TWIN_DEVICES]; /* whose memory kernels of a device reach */
    twin_block blocks[TWIN_BLOCKS];
    uint32_t block_count;
    twin_span spans[TWIN_SPANS];
    uint32_t span_count;
    uint64_t next_room;         /* behind the block that was made last */
    uint32_t captures;          /* streams that are being captured */
    uint64_t capture_ids;

    twin_failure failures[TWIN_FAILURES];
    uint32_t rate;
    CUresult lost, lose_result;
    bool lost_context;          /* after the loss the context can still be made current */
    bool lose_work;             /* of lose_calls, only work counts */
    bool plain;                 /* the devices have neither clusters nor cooperative launches */
    uint64_t lose_calls, lose_kernels; /* 0: not planned; else how many more, with the one that is lost */
    cudaError_t device_error;
    const char *missing;
    const char *last_failed;    /* by twin_fail */

    const twin_op *running;     /* the kernel that runs, for its own use */
    uint64_t calls, kernels_run, failures_made, breaches;
    struct {
        const char *name;
        uint64_t count;
    } counts[TWIN_NAMES];
    char breach[512];
    char log[16384];
    size_t log_used;
} twin_state;

typedef struct twin_thread {
    uint64_t generation;
    uint64_t number;
    uintptr_t stack[16]; /* handles of contexts */
    int depth;
    int device;          /* of the runtime */
    CUstreamCaptureMode mode;
    bool spared;         /* kept over resets */
} twin_thread;

extern twin_state g_twin;

/* twin.c */
/* Take the lock; what this call has to return at once, or CUDA_SUCCESS. */
CUresult twin_enter(const char *call);
void twin_leave(void);
twin_thread *twin_self_locked(void);
void twin_breach_locked(const char *format, ...) __attribute__((format(printf, 1, 2)));
void twin_note_locked(const char *what, const twin_stream *stream, const twin_event *event);
uint64_t twin_random_locked(uint64_t below);
void twin_lose_locked(CUresult result);
/* By twin_fail_rate, for work of a stream. */
CUresult twin_chance_locked(const twin_stream *stream);
void *twin_memory(size_t bytes); /* zeroed; ends the process when there is none */

/* twin_object.c */
void *twin_object_new_locked(twin_kind kind, int device, size_t bytes);
/* NULL after a breach: not a handle of this kind, or destroyed. */
void *twin_find_locked(const void *handle, twin_kind kind);
/* The object, and only if its context is current; CUDA_SUCCESS or what the call returns after the breach. */
CUresult twin_use_locked(const void *handle, twin_kind kind, void *object);
/* Marks it destroyed. */
CUresult twin_destroy_locked(const void *handle, twin_kind kind, void *object);
const char *twin_kind_name(twin_kind kind);
/* Of this thread's current context, or -1 after a breach. */
int twin_device_locked(void);
/* A call that CUDA forbids while somebody captures, by the thread's mode. */
CUresult twin_unsafe_locked(void);
void twin_objects_free(void);
/* The primary context's handle, made alive. */
uintptr_t twin_context_locked(int device);

/* twin_queue.c */
void twin_push_locked(twin_stream *stream, twin_op *op);
void twin_need_locked(twin_stream *stream, uint64_t position);
void twin_progress_locked(uint64_t most);
void twin_show_locked(twin_stream *stream, bool all);
void twin_op_free(twin_op *op);
void twin_nodes_free(twin_op *nodes);
bool twin_range_busy_locked(uint64_t base, uint64_t bytes);
bool twin_idle_locked(const twin_stream *stream);

/* twin_stream.c */
/* The stream behind a handle, NULL and the two special ones included, fit for work; its context must be current. */
CUresult twin_stream_use_locked(CUstream handle, twin_stream **stream);
twin_stream *twin_stream_builtin_locked(CUstream handle, int device);
twin_stream *twin_stream_new_locked(int device, bool blocking);
CUresult twin_stream_ask_locked(CUstream handle, twin_stream **stream);

/* twin_capture.c */
/* Whether all are nodes of the graph, and none is named twice; false after a breach. */
bool twin_nodes_check_locked(const twin_graph *graph, const CUgraphNode *nodes, size_t count);
/* The op becomes a node of the graph, behind these; the edges of a kernel from kernels may be programmatic. */
uintptr_t twin_node_add_locked(twin_graph *graph, twin_op *op, const void *behind, size_t count);
void twin_capture_end_locked(twin_stream *stream);
/* Another holder of what the first one holds, and the end of one. */
twin_owned *twin_owned_copy_locked(const twin_owned *owned);
void twin_owned_release_locked(twin_owned **owned);

/* twin_virtual.c */
void twin_spans_free(void);

/* twin_memory.c */
/* The live block that holds the bytes, or NULL. */
twin_block *twin_block_find_locked(uint64_t base, uint64_t bytes);
void twin_memory_free_locked(const twin_block *block);

/* twin_kernel.c */
/* A node's arguments are looked at when its graph is launched. */
CUresult twin_launch_op_locked(const CUlaunchConfig *config, CUfunction function, void **args, bool node, twin_op **op);
/* Whether all that the kernel touches, as far as its spec says, is there; false after a breach. */
bool twin_touches_ok_locked(twin_op *op, int device);
void **twin_args_copy(const twin_kernel_spec *spec, void *const *args);

/* twin_queue.c: the node of a list that is in the order in which nodes were added */
twin_op *twin_node_find(twin_op *nodes, uintptr_t handle);

/* Every driver function of the twin; those of graphs and captures are for what comes after plain launches. */
#define TWIN_TABLE(X)                                                                                                  \
    X(cuDevicePrimaryCtxRetain, 7000)                                                                                  \
    X(cuDevicePrimaryCtxRelease, 11000)                                                                                \
    X(cuDevicePrimaryCtxGetState, 7000)                                                                                \
    X(cuCtxGetId, 12000)                                                                                               \
    X(cuDeviceGetAttribute, 2000)                                                                                      \
    X(cuDeviceGetName, 2000)                                                                                           \
    X(cuDeviceCanAccessPeer, 4000)                                                                                     \
    X(cuCtxEnablePeerAccess, 4000)                                                                                     \
    X(cuCtxGetCurrent, 4000)                                                                                           \
    X(cuCtxSetCurrent, 4000)                                                                                           \
    X(cuCtxPushCurrent, 4000)                                                                                          \
    X(cuCtxPopCurrent, 4000)                                                                                           \
    X(cuCtxGetStreamPriorityRange, 5050)                                                                               \
    X(cuThreadExchangeStreamCaptureMode, 10010)                                                                        \
    X(cuKernelGetFunction, 12000)                                                                                      \
    X(cuKernelGetName, 12030)                                                                                          \
    X(cuFuncGetName, 12030)                                                                                            \
    X(cuFuncGetModule, 11000)                                                                                          \
    X(cuModuleGetGlobal, 3020)                                                                                         \
    X(cuFuncGetAttribute, 2020)                                                                                        \
    X(cuFuncSetAttribute, 9000)                                                                                        \
    X(cuFuncGetParamInfo, 12040)                                                                                       \
    X(cuFuncLoad, 12040)                                                                                               \
    X(cuLaunchKernelEx, 11060)                                                                                         \
    X(cuMemcpyAsync, 4000)                                                                                             \
    X(cuMemsetD32Async, 3020)                                                                                          \
    X(cuMemsetD8Async, 3020)                                                                                           \
    X(cuLaunchHostFunc, 10000)                                                                                         \
    X(cuPointerGetAttribute, 4000)                                                                                     \
    X(cuPointerGetAttributes, 7000)                                                                                    \
    X(cuStreamCreate, 2000)                                                                                            \
    X(cuStreamDestroy, 4000)                                                                                           \
    X(cuStreamSynchronize, 2000)                                                                                       \
    X(cuStreamWaitEvent, 3020)                                                                                         \
    X(cuStreamIsCapturing, 10000)                                                                                      \
    X(cuStreamBeginCapture, 10010)                                                                                     \
    X(cuStreamEndCapture, 10000)                                                                                       \
    X(cuStreamGetCaptureInfo, 11030)                                                                                   \
    X(cuStreamUpdateCaptureDependencies, 11030)                                                                        \
    X(cuDeviceGetDevResource, 12040)                                                                                   \
    X(cuDevSmResourceSplitByCount, 12040)                                                                              \
    X(cuDevResourceGenerateDesc, 12040)                                                                                \
    X(cuGreenCtxCreate, 12040)                                                                                         \
    X(cuGreenCtxDestroy, 12040)                                                                                        \
    X(cuGreenCtxStreamCreate, 12050)                                                                                   \
    X(cuStreamGetCtx, 9020)                                                                                            \
    X(cuEventCreate, 2000)                                                                                             \
    X(cuEventDestroy, 4000)                                                                                            \
    X(cuEventRecord, 2000)                                                                                             \
    X(cuEventQuery, 2000)                                                                                              \
    X(cuEventElapsedTime, 2000)                                                                                        \
    X(cuEventSynchronize, 2000)                                                                                        \
    X(cuMemAlloc, 3020)                                                                                                \
    X(cuMemFree, 3020)                                                                                                 \
    X(cuMemHostAlloc, 2020)                                                                                            \
    X(cuMemFreeHost, 2000)                                                                                             \
    X(cuMemAddressReserve, 10020)                                                                                      \
    X(cuMemAddressFree, 10020)                                                                                         \
    X(cuMemCreate, 10020)                                                                                              \
    X(cuMemRelease, 10020)                                                                                             \
    X(cuMemMap, 10020)                                                                                                 \
    X(cuMemUnmap, 10020)                                                                                               \
    X(cuMemSetAccess, 10020)                                                                                           \
    X(cuMemGetAllocationGranularity, 10020)                                                                            \
    X(cuGraphCreate, 10000)                                                                                            \
    X(cuGraphGetNodes, 10000)                                                                                          \
    X(cuGraphAddDependencies, 12030)                                                                                   \
    X(cuGraphRemoveDependencies, 12030)                                                                                \
    X(cuGraphNodeGetDependentNodes, 12030)                                                                             \
    X(cuGraphNodeGetType, 10000)                                                                                       \
    X(cuGraphKernelNodeGetParams, 12000)                                                                               \
    X(cuGraphKernelNodeSetParams, 12000)                                                                               \
    X(cuGraphMemsetNodeGetParams, 10000)                                                                               \
    X(cuGraphDestroy, 10000)                                                                                           \
    X(cuGraphAddKernelNode, 12000)                                                                                     \
    X(cuGraphAddEmptyNode, 10000)                                                                                      \
    X(cuGraphNodeGetDependencies, 10000)                                                                               \
    X(cuGraphRetainUserObject, 11030)                                                                                  \
    X(cuUserObjectCreate, 11030)                                                                                       \
    X(cuUserObjectRelease, 11030)                                                                                      \
    X(cuGraphInstantiateWithFlags, 11040)                                                                              \
    X(cuGraphExecKernelNodeSetParams, 12000)                                                                           \
    X(cuGraphNodeSetEnabled, 11060)                                                                                    \
    X(cuGraphExecUpdate, 12000)                                                                                        \
    X(cuGraphExecDestroy, 10000)                                                                                       \
    X(cuGraphLaunch, 10000)                                                                                            \
    X(cuGraphUpload, 11010)                                                                                            \
    X(cuGraphKernelNodeSetAttribute, 11000)                                                                            \
    X(cuGraphKernelNodeGetAttribute, 11000)                                                                            \
    X(cuLibraryLoadData, 12000)                                                                                        \
    X(cuLibraryUnload, 12000)                                                                                          \
    X(cuLibraryGetKernel, 12000)

/* By the types of cudaTypedefs.h, so that a signature that is wrong here does not compile. */
#define DECLARE(name, version) extern __typeof__(*(PFN_##name##_v##version)0) twin_##name;
TWIN_TABLE(DECLARE)
#undef DECLARE
/* Newer signatures of functions of the table, for programs that ask for that version. */
extern __typeof__(*(PFN_cuGraphNodeGetDependencies_v12030)0) twin_node_dependencies;

/*
 * A driver function: locks, answers failures that were asked for, then calls name_locked. `name` stands in the row's own
 * macro: passed on, cuda.h would make cuMemAlloc_v2 of cuMemAlloc.
 */
#define TWIN_DEFINE(name, parameters, arguments)                                                                       \
    static CUresult name##_locked parameters;                                                                          \
    CUresult twin_##name parameters                                                                                    \
    {                                                                                                                  \
        CUresult result = twin_enter(#name);                                                                           \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = name##_locked arguments;                                                                          \
        twin_leave();                                                                                                  \
        return result;                                                                                                 \
    }                                                                                                                  \
    static CUresult name##_locked parameters

/* The same for what destroys: a call that is made to fail still counts as the attempt that it was. */
#define TWIN_DEFINE_END(name, parameters, arguments, forgive)                                                          \
    static CUresult name##_locked parameters;                                                                          \
    CUresult twin_##name parameters                                                                                    \
    {                                                                                                                  \
        CUresult result = twin_enter(#name);                                                                           \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = name##_locked arguments;                                                                          \
        else                                                                                                           \
            forgive arguments;                                                                                         \
        twin_leave();                                                                                                  \
        return result;                                                                                                 \
    }                                                                                                                  \
    static CUresult name##_locked parameters

#endif

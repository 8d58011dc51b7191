/*
 * The twin: a test double of the CUDA driver and of the few runtime calls that src/cuda makes. It executes:
 * streams are queues, events and waits have CUDA's meaning, kernels are C functions that run inside later calls, out of
 * order between streams and seen late, by a seed. It checks that each call is legal and keeps the first breach. It fails
 * calls on demand. Two devices, each with its primary context. Linked instead of the CUDA runtime.
 *
 * All calls may come from any thread; one lock makes them one after another, so one thread and one seed always give the
 * same run. Where CUDA leaves room the twin is stricter than CUDA: every call that is not pure work for a stream counts
 * as unsafe while somebody captures, and a handle may be used only while its own context is current.
 */
#ifndef TWIN_H
#define TWIN_H

#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TWIN_DEVICES = 2,
    TWIN_GRID_MOST = 65535,
    TWIN_BLOCK_MOST = 1024,
    TWIN_SHARED_DEFAULT = 48 * 1024,
    TWIN_SHARED_MOST = 232448, /* per block, with the opt-in */
    TWIN_SMS = 132,
    TWIN_REGISTERS = 40        /* of a thread of any kernel */
};

/* Which stream's work runs next. */
typedef enum twin_strategy {
    TWIN_UNIFORM, /* any that may */
    TWIN_NEWEST,  /* the stream that was given work last */
    TWIN_STARVE,  /* one stream's only when no other's can */
    TWIN_EAGER,   /* everything runs, and is seen, in the next call */
    TWIN_HELD     /* nothing runs but what a synchronising call or twin_run asks for */
} twin_strategy;

/* Bytes that a kernel touches. */
typedef struct twin_range {
    uint64_t base, bytes;
} twin_range;

typedef struct twin_kernel_spec {
    const char *name;
    const void *symbol;          /* what cudaGetFuncBySymbol knows it by, or NULL */
    void (*body)(void *const *args); /* NULL: it does nothing */
    uint32_t param_count;
    const uint32_t *param_bytes; /* as long as the kernel */
    int block_threads;           /* 0: as many as the device takes */
    int static_shared;
    int resident;                /* most blocks of a cooperative launch; 0: any number */
    uint32_t cluster;            /* blocks in x of the cluster that its code requires; 0: none */
    bool runtime;                /* its module has CUDA's device runtime */
    bool launches;               /* it launches kernels, which only launches and plain nodes wait for */
    bool never_waits;            /* for what programmatic edges lead from: it has no cudaGridDependencySynchronize */
    /* The bytes of one launch, as many as fit into `out`; NULL: not checked. */
    size_t (*touches)(void *const *args, twin_range *out, size_t capacity);
} twin_kernel_spec;

/* ------------------------------------------------------------------------------------------------------------ control */

/* Forget everything: no objects, no failures, TWIN_HELD. Handles of before are never valid again. */
void twin_reset(void);
/* Reset, and take every choice, the strategy included, from the seed. */
void twin_seed(uint64_t seed);
void twin_set_strategy(twin_strategy strategy);
/* Run up to `count` pieces of work of a stream, and what they wait for. */
void twin_run(CUstream stream, uint64_t count);
/* Run all that was issued. */
void twin_run_all(void);

/* Kernels. A CUkernel belongs to no device, a CUfunction to one. */
CUkernel twin_kernel(const twin_kernel_spec *spec);
CUfunction twin_function(CUkernel kernel, int device);
/* From now on the handle means another kernel, as after a module was unloaded and its memory reused. */
void twin_kernel_replace(CUkernel kernel, const twin_kernel_spec *spec);

/* The program lowers how much dynamic shared memory the kernel may ask for: more is refused from now on. */
void twin_lower_shared(CUkernel kernel, int device, int bytes);

/* For a kernel's body: the grid of its launch. */
void twin_grid(uint32_t grid[3]);

/* The same: how many groups of 8 multiprocessors it has, and the first of them; 0: the whole device. */
uint32_t twin_part(uint32_t *first);

/* What is said of a block that starts here, whatever it was made as. */
typedef enum twin_trait {
    TWIN_ORDINARY,
    TWIN_MANAGED,
    TWIN_MAPPED_ELSEWHERE, /* kernels know it by another address */
    TWIN_OTHER_CONTEXT,    /* of the same device */
    TWIN_OF_A_POOL         /* which belongs to no context */
} twin_trait;
void twin_block_is(const void *memory, twin_trait trait);

/* ----------------------------------------------------------------------------------------------------------- failures */

/* After `after` more calls of this function, `count` calls return `result`, and do nothing. "*": of any function. */
void twin_fail(const char *function, CUresult result, uint64_t after, uint64_t count);
/* A second one, beside the first. */
void twin_fail_also(const char *function, CUresult result, uint64_t after, uint64_t count);
/* Of 1000 calls that give work to a stream that somebody made, about so many fail, with codes that CUDA recovers from. */
void twin_fail_rate(uint32_t per_mille);
/*
 * After `calls` more calls (but for those that only the thread's contexts are about), or after `kernels` more kernels have
 * run, the device is lost: every later call returns it.
 */
void twin_lose_after_calls(CUresult result, uint64_t calls);
/* The same, counting only calls that give streams work or look for its end. */
void twin_lose_after_work(CUresult result, uint64_t calls);
void twin_lose_after_kernels(CUresult result, uint64_t kernels);
/* cudaDeviceReset: nothing of before is left, and the next that asks for the context gets it anew, by the same handle. */
void twin_device_reset(int device);
/* Unless it is lost already. */
void twin_lose_never(void);
bool twin_lost(void);
/* Errors of the runtime itself, and a driver without this function. */
void twin_device_error(cudaError_t error);
void twin_without(const char *function);
/* Devices of compute capability 8 with neither clusters nor cooperative launches. */
void twin_plain_devices(void);
/* On this thread no call fails by rate, nor counts as work: the program's own calls. */
void twin_spare_thread(bool spare);

/* -------------------------------------------------------------------------------------------------------- observation */

/* The first breach as "call: what was wrong", or NULL. */
const char *twin_breach(void);
uint64_t twin_breaches(void);
void twin_forget_breaches(void);
/* A breach if streams, events, memory, graphs or retained contexts are left. */
void twin_audit(void);

/* What was sent to streams since the last twin_log_clear: "launch 0;record 0 e1;wait 1 e1;". */
const char *twin_log(void);
void twin_log_clear(void);
uint64_t twin_calls(void);            /* of any function */
uint64_t twin_count(const char *function);
uint64_t twin_kernels_run(void);
uint64_t twin_failures(void);         /* that were injected */
const char *twin_last_failed(void);   /* the function that twin_fail made fail last, or NULL */
uint32_t twin_events_made(void);
/* The nodes of a graph, and its edges as pairs of their numbers, in the order in which they were added; how many edges. */
size_t twin_graph_nodes(CUgraph graph);
size_t twin_graph_edges(CUgraph graph, uint32_t (*edges)[2], size_t capacity);
/* How many of its edges are programmatic, and whether the one between these nodes is. */
size_t twin_graph_programmatic(CUgraph graph);
bool twin_edge_programmatic(CUgraph graph, uint32_t from, uint32_t to);
/* How many user objects were made and not destroyed. */
uint32_t twin_user_objects(void);
CUcontext twin_context(int device);   /* the primary context */
int twin_thread_depth(void);          /* of this thread's stack of contexts */
CUstreamCaptureMode twin_thread_mode(void);
void twin_thread_set_mode(CUstreamCaptureMode mode);
CUcontext twin_thread_context(void);

/* The address of a driver function, as cudaGetDriverEntryPointByVersion gives it: TWIN_GET(cuMemAlloc, 3020). */
void *twin_entry(const char *function);
#define TWIN_GET(name, version) ((PFN_##name##_v##version)(uintptr_t)twin_entry(#name))

#endif

/*
 * Private to src/cuda/gpu_issue: GPU-side issue, the issue method in which finished kernels launch their followers.
 * Its state: cells (graphs of one kernel that the device can launch), their holders, and each slot's tables.
 *
 * CELL-1  a cell is free, or held by one slot, which uses it for bundle after bundle. The slot's stream orders them,
 *         and a bundle's graph is complete only when all graphs that it launched are.
 * CELL-2  the cells of a slot are free again once its latest bundle is complete. If that bundle was refused, they are
 *         free once the cells made for it are on the device. They are taken only when another slot needs some and none
 *         is free.
 * CELL-3  a type whose kernel the device cannot launch is remembered as such (`refused`).
 * CELL-4  the device reports a bundle's end by the slot's word. Until then no mark behind the bundle is complete, and
 *         the driver is asked only now and then, for errors.
 *
 * Locks: acs_cuda_gpu_issue.lock (rank BACKEND) guards the start, types and cells. The rest of a slot's state belongs
 * to the thread that submits to the slot.
 */
#ifndef ACS_CUDA_GPU_ISSUE_H
#define ACS_CUDA_GPU_ISSUE_H

#include "cuda/graphs/graphs.h"
#include "cuda/device_code/gpu_issue.h"
#include "bundles/dag.h"

enum { ACS_GPU_ISSUE_FAN = 0 }; /* number of the type of fans; no type of kernels has it */

typedef struct acs_gpu_issue_cell acs_gpu_issue_cell;
struct acs_gpu_issue_cell {
    acs_gpu_issue_cell *next; /* list of its type */
    CUgraph graph;
    CUgraphExec exec;
    uint64_t node; /* CUgraphDeviceNode; 0: a fan */
    uint32_t place;
    bool known;    /* whether args and grid are the node's contents */
    uint32_t grid[3];
    unsigned char args[]; /* at the offsets of the kernel's parameters */
};

typedef struct acs_gpu_issue_type {
    uint32_t number;           /* number of the kernel type, or ACS_GPU_ISSUE_FAN */
    const acs_cuda_type *type; /* NULL: a fan */
    bool refused;
    acs_gpu_issue_cell *spare;    /* free cells */
    acs_gpu_issue_cell **held;    /* by slot: cells that it holds */
    uint32_t cells;
} acs_gpu_issue_type;

/* State of one slot. */
typedef struct acs_gpu_issue_lane {
    unsigned char *tables; /* ACS_GPU_ISSUE_RING tables, in pinned memory */
    CUgraph graph;
    CUgraphExec head;
    CUevent done[ACS_GPU_ISSUE_RING]; /* by table: event behind its latest bundle */
    uint32_t turn;                   /* bundles launched */
    uint64_t end;                    /* value of the last op of the current bundle */
    CUevent made;                    /* event behind the making of cells for a bundle that was then refused */
    /* The next two are written by the slot's submitter, under the lock. */
    CUevent latest;                  /* event behind all work on the slot's cells; NULL: there was none */
    bool busy;                       /* whether a bundle has taken cells and is not launched yet */
    acs_release_tree tree;
    acs_gpu_issue_cell *cell[ACS_RELEASE_TREE_NODES]; /* by node of the current bundle */
    const acs_gpu_issue_type *type[ACS_RELEASE_TREE_NODES];
} acs_gpu_issue_lane;

/* The values that a slot's word will reach. Written by the slot's submitter, read by its poller. */
typedef struct acs_gpu_issue_news {
    _Atomic uint64_t ends[ACS_GPU_ISSUE_RING]; /* by table: value of the last op of its bundle */
    _Atomic uint32_t looks;                 /* number of polls of the slot */
} acs_gpu_issue_news;

typedef enum acs_gpu_issue_state { ACS_GPU_ISSUE_UNTRIED, ACS_GPU_ISSUE_ON, ACS_GPU_ISSUE_OFF } acs_gpu_issue_state;

typedef struct acs_cuda_gpu_issue {
    CUfunction head, release;
    bool overlap;             /* whether a release kernel's launch may overlap the op's end (compute capability 9.0) */
    CUdeviceptr places, slots;
    uint64_t *refusal;        /* in pinned memory: why the device could not launch an op; 0: it could */
    acs_gpu_issue_lane **lanes;  /* by slot; NULL before its first bundle */
    acs_gpu_issue_news *news;    /* by slot */

    acs_lock lock;
    acs_gpu_issue_state state;
    acs_gpu_issue_type **types;  /* open addressing by type number */
    uint32_t types_mask, types_used;
    uint32_t cells, cells_most;
    uint64_t lost_ns;         /* ns lost by bundles that were refused for lack of cells, and not yet spent on cells */
    uint16_t free_places[ACS_GPU_ISSUE_CELLS];
    uint32_t free_places_used;
} acs_cuda_gpu_issue;

/* gpu_issue/cells.c; in a scope. The lock is not held. */
/*
 * Take a cell for each op and fan of lane->tree, into lane->cell; the slot holds them from then on. False: refused;
 * nothing was launched.
 */
bool acs_gpu_issue_cells_take(acs_cuda *self, const acs_batch *batch, int slot, acs_gpu_issue_lane *lane, uint64_t gain_ns);
/* Destroy all cells and types. Nothing runs any more. */
void acs_gpu_issue_cells_fini(acs_cuda *self);
/* Instantiate a graph that the device can launch, or that launches from the device. It is uploaded in `stream`. */
CUresult acs_gpu_issue_instantiate(acs_cuda *self, CUgraph graph, CUstream stream, CUgraphExec *exec);

#endif

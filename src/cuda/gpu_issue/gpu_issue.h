/*
 * Private to src/cuda/gpu_issue: GPU-side issue, the issue method in which finished kernels launch what they
 * release. The cells (graphs of one kernel that the device can launch), who holds them, and each slot's tables.
 *
 * C1  a cell is free, or held by one slot. A slot uses a cell that it holds for bundle after bundle: they are ordered
 * by its
 *     stream, and a bundle's graph is complete only when all that it launched is.
 * C2  a slot's cells are free again once its latest bundle is complete, or, where that was refused, once the cells made
 * for
 *     it are on the device; they are taken from it only when another slot needs some and none is free.
 * C3  a type whose kernel the device cannot launch is remembered as such (`refused`).
 *
 * C4  the device tells of a bundle's end by the slot's word: until the word is there no mark behind the bundle is
 *     complete, and the driver is asked only now and then, for errors.
 *
 * Locks: acs_cuda_gpu_issue.lock (rank BACKEND) guards the start, types and cells. The rest of a slot's
 * state belongs to whoever submits to it.
 */
#ifndef ACS_CUDA_GPU_ISSUE_H
#define ACS_CUDA_GPU_ISSUE_H

#include "cuda/graphs/graphs.h"
#include "cuda/device_code/gpu_issue.h"
#include "bundles/dag.h"

enum { ACS_GPU_ISSUE_FAN = 0 }; /* the type of a fan: there is no such type of kernels */

typedef struct acs_gpu_issue_cell acs_gpu_issue_cell;
struct acs_gpu_issue_cell {
    acs_gpu_issue_cell *next; /* in a list of its type */
    CUgraph graph;
    CUgraphExec exec;
    uint64_t node; /* CUgraphDeviceNode; 0: a fan */
    uint32_t place;
    bool known;    /* args and grid are what the node holds */
    uint32_t grid[3];
    unsigned char args[]; /* as the kernel's parameters lie */
};

typedef struct acs_gpu_issue_type {
    uint32_t number;           /* as the backend's types', or ACS_GPU_ISSUE_FAN */
    const acs_cuda_type *type; /* NULL: fans */
    bool refused;
    acs_gpu_issue_cell *spare;    /* free ones */
    acs_gpu_issue_cell **held;    /* by slot */
    uint32_t cells;
} acs_gpu_issue_type;

/* One slot's. */
typedef struct acs_gpu_issue_lane {
    unsigned char *tables; /* pinned: ACS_GPU_ISSUE_RING tables */
    CUgraph graph;
    CUgraphExec head;
    CUevent done[ACS_GPU_ISSUE_RING]; /* behind the bundle whose table this is */
    uint32_t turn;                   /* bundles launched */
    uint64_t end;                    /* value of the last op of the bundle at hand */
    CUevent made;                    /* behind the making of cells for a bundle that was refused after all */
    /* Written by the slot's submitter, under the lock. */
    CUevent latest;                  /* behind all that concerns the slot's cells; NULL: there was nothing */
    bool busy;                       /* a bundle is being made, whose cells are taken */
    acs_release_tree tree;
    acs_gpu_issue_cell *cell[ACS_RELEASE_TREE_NODES]; /* of the bundle at hand */
    const acs_gpu_issue_type *type[ACS_RELEASE_TREE_NODES];
} acs_gpu_issue_lane;

/* One slot's: what its word will come to. Written by the slot's submitter, read by who polls it. */
typedef struct acs_gpu_issue_news {
    _Atomic uint64_t ends[ACS_GPU_ISSUE_RING]; /* last values of bundles, by turn */
    _Atomic uint32_t looks;                 /* polls of the slot */
} acs_gpu_issue_news;

typedef enum acs_gpu_issue_state { ACS_GPU_ISSUE_UNTRIED, ACS_GPU_ISSUE_ON, ACS_GPU_ISSUE_OFF } acs_gpu_issue_state;

typedef struct acs_cuda_gpu_issue {
    CUfunction head, release;
    bool overlap;             /* the release kernel's launch may overlap with the op's end (compute capability 9.0) */
    CUdeviceptr places, slots;
    uint64_t *refusal;        /* pinned: why the device could not launch something; 0: it could */
    acs_gpu_issue_lane **lanes;  /* by slot; NULL until its first bundle */
    acs_gpu_issue_news *news;    /* by slot */

    acs_lock lock;
    acs_gpu_issue_state state;
    acs_gpu_issue_type **types;  /* open addressing by type number */
    uint32_t types_mask, types_used;
    uint32_t cells, cells_most;
    uint64_t lost_ns;         /* what bundles whose cells have to be earned lost for want of them */
    uint16_t free_places[ACS_GPU_ISSUE_CELLS];
    uint32_t free_places_used;
} acs_cuda_gpu_issue;

/* gpu_issue/cells.c; in a scope. The lock is not held. */
/* A cell, now the slot's, for each op and fan of lane->wires, in lane->cell. False: refused; nothing was launched. */
bool acs_gpu_issue_cells_take(acs_cuda *self, const acs_batch *batch, int slot, acs_gpu_issue_lane *lane, uint64_t gain_ns);
/* Every cell and type; nothing runs any more. */
void acs_gpu_issue_cells_fini(acs_cuda *self);
/* A graph that the device can launch, or that launches from the device; uploaded by `stream`. */
CUresult acs_gpu_issue_instantiate(acs_cuda *self, CUgraph graph, CUstream stream, CUgraphExec *exec);

#endif

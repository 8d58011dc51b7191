/*
 * Private to src/cuda/resident: the issue method in which a kernel of the program, an *executor*, runs the blocks of a
 * whole bundle as calls of device functions, the *bodies* of its kernels (acs_resident.cuh).
 *
 * RES-1  a table is written again only once the bundle that it was written for is complete.
 * RES-2  entries stand in an order in which each follows only earlier ones, and tickets number their blocks in that
 *        order. The executor relies on that to make progress.
 * RES-3  the bundles of a slot use its device memory one after the other, in the order of the slot's stream.
 *
 * Locks: acs_cuda.lock guards insertion of executors. A slot's state belongs to the thread that submits to the slot.
 */
#ifndef ACS_CUDA_RESIDENT_H
#define ACS_CUDA_RESIDENT_H

#include "cuda/graphs/graphs.h"
#include "bundles/dag.h"

#include "acs_executor.h"

typedef struct acs_cuda_executor acs_cuda_executor;

/* A body of an executor; kernels point to it. Constant. */
typedef struct acs_cuda_body {
    acs_cuda_executor *executor; /* NULL: every executor has it, for copies and fills */
    uint32_t number;
} acs_cuda_body;

/* An executor of the program. Constant but for `refused`; freed at close. */
struct acs_cuda_executor {
    acs_cuda_executor *next;
    const acs_cuda_kernel *kernel;
    uint32_t threads;      /* most threads of a block */
    uint64_t shared_bytes; /* most dynamic shared bytes of a block */
    _Atomic bool refused;  /* whether a launch of it failed */
    acs_cuda_body bodies[];
};

enum {
    ACS_RESIDENT_TABLES = 16,          /* tables of a slot */
    ACS_RESIDENT_TABLE_BYTES = 1 << 17 /* bytes of a table; a bundle with larger arguments is refused */
};

/* State of one slot. */
typedef struct acs_resident_lane {
    unsigned char *tables;          /* ACS_RESIDENT_TABLES tables, in pinned memory */
    CUdeviceptr memory;             /* the copy of a table, then an acs_executor_state */
    uint32_t turn;                  /* bundles launched */
    uint64_t ends[ACS_RESIDENT_TABLES]; /* by table: value of the last op of its bundle */
} acs_resident_lane;

/* What polls read of a slot: the ends of its latest bundles. Relaxed: a poll that misses one asks the driver. */
typedef struct acs_resident_news {
    _Atomic uint64_t ends[ACS_RESIDENT_TABLES];
    _Atomic uint32_t looks;
} acs_resident_news;

struct acs_cuda_resident {
    acs_resident_lane **lanes;     /* by slot; NULL before its first bundle */
    acs_resident_news *news;       /* by slot */
    acs_cuda_executor *executors; /* all, for close; guarded by acs_cuda.lock */
};

/* resident/table.c; no CUDA call */
/* A bundle that is to be launched. */
typedef struct acs_resident_bundle {
    const acs_batch *batch;
    const acs_dag *dag;
    uint32_t threads; /* threads of an executor's block: the most of an op's block */
    uint32_t shared_bytes;
    uint32_t widest;  /* most blocks of one level */
    acs_executor_launch launch;
} acs_resident_bundle;
/* Write the table of a bundle. False: it has no room for the arguments. */
bool acs_resident_table(acs_cuda *self, acs_resident_bundle *bundle, unsigned char *table);

#endif

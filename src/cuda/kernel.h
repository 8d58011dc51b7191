/*
 * Private to src/cuda: the record of a kernel that was seen before, the check of launches against it, the numbers of types
 * and a launch.
 */
#ifndef ACS_CUDA_KERNEL_H
#define ACS_CUDA_KERNEL_H

#include "cuda/internal.h"

enum { ACS_CUDA_ARGS_MOST = 4096 }; /* arguments of one kernel */

/* A kernel that was seen before. Immutable once it is in the table, but for the two opt-ins and the list of types. */
struct acs_cuda_kernel {
    const void *key; /* as the program gave it, with `kind` */
    uint32_t kind;
    CUfunction function; /* in our context: for attributes */
    CUfunction launch;   /* what is launched: the CUkernel itself where the program gave one */
    int block_threads;   /* most threads per block, by the kernel's registers */
    int static_shared, registers; /* of a block, of a thread */
    _Atomic int dynamic_shared;  /* bytes that the kernel may ask for now */
    _Atomic bool wide_clusters;  /* opted in to clusters of more than 8 blocks */
    _Atomic bool everywhere;     /* the other members have been told of it */
    _Atomic(acs_cuda_type *) types; /* numbered so far, the latest first */
    bool params_known;
    uint32_t param_count;
    const uint32_t *param_offset;  /* behind param_bytes: where each lies among the parameters */
    struct acs_cuda_kernel *older; /* every kernel resolved so far, for close */
    uint32_t param_bytes[];
};

/* Open addressing; a table that became too small is kept until close, since readers take no lock. */
struct acs_cuda_kernel_table {
    struct acs_cuda_kernel_table *older;
    uint32_t mask, used;
    _Atomic(acs_cuda_kernel *) cells[];
};

/* kernel.c */
acs_status acs_cuda_kernels_init(acs_cuda *self);
void acs_cuda_kernels_fini(acs_cuda *self);
acs_status acs_cuda_check(acs_backend *backend, acs_record *op);
/*
 * The kernel of an op as `u.launch.kernel` names it, looked up or resolved. NULL, through ACS_FAIL: it cannot be had.
 */
acs_cuda_kernel *acs_cuda_kernel_of(acs_cuda *self, const acs_record *op);
/*
 * Resolve and load the kernel of an op that another member has checked; what does not go is told when it is launched.
 */
void acs_cuda_meet(acs_cuda *self, const acs_record *op);
void acs_cuda_needs(acs_backend *backend, const acs_record *op, uint32_t *thread_registers, uint32_t *block_shared);

/* type.c */
/*
 * The number of the launch's type, or 0: it cannot be in a bundle. Any thread; no CUDA call, no lock for one seen
 * before.
 */
uint32_t acs_cuda_type_number(acs_cuda *self, acs_cuda_kernel *kernel, const acs_record *op);

/* In a scope: */
/* Send a kernel that was checked to a stream. */
CUresult acs_cuda_launch(acs_cuda *self, const acs_record *op, CUstream stream);
/* The same with arguments from elsewhere: pointers to as many as the kernel has parameters. */
CUresult acs_cuda_launch_args(acs_cuda *self, const acs_record *op, CUstream stream, void **args);

#endif

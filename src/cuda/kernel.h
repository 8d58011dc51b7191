/*
 * Private to src/cuda: what is known of a kernel that was seen before, the check of launches against it, its types,
 * and a launch.
 */
#ifndef ACS_CUDA_KERNEL_H
#define ACS_CUDA_KERNEL_H

#include "cuda/internal.h"

enum { ACS_CUDA_ARGS_MOST = 4096 }; /* most arguments of a kernel */

/* A kernel that was seen before. Constant once it is in the table, but for the atomic fields. */
struct acs_cuda_kernel {
    const void *key; /* key: address as the program gave it, with `kind` */
    uint32_t kind;
    uint32_t unloads;    /* acs_backend_unloads when it was seen; a handle may be another kernel's since */
    CUfunction function; /* function in our context, for attributes */
    CUfunction launch;   /* handle to launch: the program's CUkernel, if it gave one */
    int block_threads;   /* most threads of a block, by the kernel's registers */
    int static_shared, registers; /* static shared bytes of a block, registers of a thread */
    acs_dim3 cluster;    /* blocks of a cluster that its code requires; zeros: none */
    bool wants_cluster;  /* each launch must name a cluster */
    bool settable;       /* its code neither requires a cluster nor launches kernels; see acs_cuda_settable */
    _Atomic int dynamic_shared;  /* dynamic shared bytes that the kernel may ask for now; C in kernel.c */
    _Atomic bool wide_clusters;  /* whether clusters of more than 8 blocks are opted in to; D in kernel.c */
    _Atomic bool everywhere;     /* whether the other members have loaded the kernel */
    _Atomic(acs_cuda_type *) types; /* numbered types, the latest first; A in type.c */
    _Atomic(const struct acs_cuda_body *) body; /* its body in an executor; NULL: none; E in resident/executor.c */
    bool params_known;
    uint32_t param_count;
    const uint32_t *param_offset;  /* offsets of parameters, stored behind param_bytes */
    struct acs_cuda_kernel *older; /* list of all kernels, for close */
    uint32_t param_bytes[];
};

/* Open addressing. A table that became too small is kept until close, since readers take no lock. */
struct acs_cuda_kernel_table {
    struct acs_cuda_kernel_table *older;
    uint32_t mask, used;
    _Atomic(acs_cuda_kernel *) cells[];
};

/* kernel.c */
acs_status acs_cuda_kernels_init(acs_cuda *self);
void acs_cuda_kernels_fini(acs_cuda *self);
acs_status acs_cuda_check(acs_backend *backend, acs_record *op);
/* The record of an op's kernel, looked up or made. NULL, through ACS_FAIL: the kernel cannot be loaded. */
acs_cuda_kernel *acs_cuda_kernel_of(acs_cuda *self, const acs_record *op);
/* Check the op's dynamic shared memory, and opt in to it. */
acs_status acs_cuda_check_shared(acs_cuda *self, const acs_record *op, acs_cuda_kernel *kernel);
/*
 * The program may lower how much dynamic shared memory a kernel may ask for, after the check: raise it again. False: it is
 * enough, or the driver refuses. In a scope.
 */
bool acs_cuda_raise_shared(acs_cuda *self, const acs_cuda_kernel *kernel, uint64_t bytes);
/* Load the kernel of an op that another member has checked. Errors are reported when it is launched here. */
void acs_cuda_meet(acs_cuda *self, const acs_record *op);
void acs_cuda_needs(acs_backend *backend, const acs_record *op, uint32_t *thread_registers, uint32_t *block_shared);

/* kernel_code.c: what the driver tells of a new kernel's code. In a scope */
/* Fill in the limits, and the cluster that the code requires. */
CUresult acs_cuda_code_limits(acs_cuda *self, acs_cuda_kernel *kernel);
/*
 * Read sizes of parameters until the driver says that there are no more. False: it does not tell; arguments are then not
 * checked.
 */
bool acs_cuda_code_params(acs_cuda *self, CUfunction function, uint32_t *bytes, uint32_t *offsets, uint32_t *count);
/* Whether the kernel launches kernels, or may: the driver does not tell. */
bool acs_cuda_code_launches(acs_cuda *self, const acs_cuda_kernel *kernel);

/* type.c */
/*
 * Whether the device may set, switch or launch a node that holds the op, a launch that was checked. Such nodes lose blocks
 * of clusters and hang with a cooperative kernel, and what follows them does not wait for kernels that their kernel has
 * launched (test_gpu_kernel_code.cu, driver 580).
 */
bool acs_cuda_settable(const acs_record *op);
/*
 * The number of the launch's type; 0: it cannot be in a bundle. Any thread. No CUDA call, and no lock for a type seen
 * before.
 */
uint32_t acs_cuda_type_number(acs_cuda *self, acs_cuda_kernel *kernel, const acs_record *op);

/* In a scope: */
/* Send a checked kernel to a stream. */
CUresult acs_cuda_launch(acs_cuda *self, const acs_record *op, CUstream stream);
/* The same with other arguments: pointers to as many as the kernel has parameters. */
CUresult acs_cuda_launch_args(acs_cuda *self, const acs_record *op, CUstream stream, void **args);

/* timer.c */
/* Send a checked kernel to a stream, between two events. */
CUresult acs_cuda_launch_timed(acs_cuda *self, acs_record *op, CUstream stream);
/* elapsed of acs_backend_ops. */
uint64_t acs_cuda_elapsed(acs_backend *backend, acs_record *op);

/* decide.c; in a scope but for init and read_cell */
/* Offer the kernel of decisions, after acs_cuda_methods_init. Without it the host decides, which is no error. */
void acs_cuda_decide_start(acs_cuda *self);
void acs_cuda_decide_fini(acs_cuda *self);
/* Send a decision or a decided kernel to a slot, whose timeline then reaches `value` at the earliest. */
CUresult acs_cuda_launch_decided(acs_cuda *self, const acs_record *op, int slot, uint64_t value);
/* Wait for the stream, and read whether a decided op runs. If it does not, it is counted. */
CUresult acs_cuda_cell_wait(acs_cuda *self, const acs_record *op, CUstream stream, bool *runs);
/* read_cell of acs_backend_ops. */
acs_status acs_cuda_read_cell(acs_backend *backend, const acs_cell *cell, acs_cell *to);
/*
 * Captures. Before a decided op becomes a node: see that a decision switches it, or send one of its own to the stream.
 * CUDA_ERROR_NOT_SUPPORTED: there is no kernel of decisions.
 */
CUresult acs_cuda_decide_before(acs_cuda *self, const acs_record *op, CUgraph graph, CUstream stream);
/* A decision, or a decided op, has become this node: remember the decision, or let the op's decision switch the node. */
CUresult acs_cuda_decide_node(acs_cuda *self, const acs_record *op, CUgraph graph, CUgraphNode node);

/* The name that the driver has for a kernel, mangled; NULL: it tells none. Valid while the kernel is loaded. */
const char *acs_cuda_kernel_name(acs_backend *backend, const acs_kernel *kernel);

#endif

/*
 * Private to call.c and call_learn.c: the table of library calls that are issued without their library.
 */
#ifndef ACS_CUDA_CALL_H
#define ACS_CUDA_CALL_H

#include "cuda/kernel.h"
#include "bundles/call_template.h"

enum { ACS_CUDA_CALL_CELLS = 1024 }; /* cells of the table; a power of two */

typedef enum acs_cuda_step_kind { ACS_CUDA_STEP_KERNEL, ACS_CUDA_STEP_FILL } acs_cuda_step_kind;

/* A template, and its predecessors, which other threads may still read. */
typedef struct acs_cuda_call_version {
    struct acs_cuda_call_version *older;
    acs_call_template of;
} acs_cuda_call_version;

/*
 * A  call.c, call_add: fill a call's key, publish it in its cell with release; cell_of: load acquire. Broken: a key
 *    without its closure.
 * B  call_learn.c, learn_from: fill a version and the patterns, publish it with release; readers of `latest`: load
 *    acquire. Broken: half a template.
 */
typedef struct acs_cuda_call {
    acs_call_fn function;
    const void *place_key;
    uint64_t scratch_bytes, pointers;
    acs_call_key key;
    _Atomic(acs_cuda_call_version *) latest; /* B; NULL: never captured */
    _Atomic bool hopeless;     /* whether the call stays with its library */
    acs_call_room room;        /* room for its kernels as KERNEL ops; zero: it cannot become ops. Set before `latest` */
    uint32_t captures;         /* captures so far; written by the thread that learns */
    acs_record *pattern[ACS_CALL_STEPS]; /* by kernel: a launch as check() left it; set before `latest` */
} acs_cuda_call;

struct acs_cuda_calls {
    uint32_t used;         /* filled cells; guarded by acs_cuda.lock */
    atomic_flag learning;  /* held by the one thread that captures; other threads skip learning */
    CUstream stream;       /* stream for captures; made by the first capture */
    _Atomic(acs_cuda_call *) cells[ACS_CUDA_CALL_CELLS];
};

#endif

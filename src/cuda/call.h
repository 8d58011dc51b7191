/*
 * Private to call.c and call_learn.c: library calls that are issued without their library, as they are known.
 */
#ifndef ACS_CUDA_CALL_H
#define ACS_CUDA_CALL_H

#include "cuda/kernel.h"
#include "bundles/call_template.h"

enum { ACS_CUDA_CALL_CELLS = 1024 }; /* of the table; a power of two */

typedef enum acs_cuda_step_kind { ACS_CUDA_STEP_KERNEL, ACS_CUDA_STEP_FILL } acs_cuda_step_kind;

/* A template with its predecessors, which other threads may still read. */
typedef struct acs_cuda_call_version {
    struct acs_cuda_call_version *older;
    acs_call_template of;
} acs_cuda_call_version;

/*
 * A  fill a call's key, publish it in its cell release -> find: load acquire. Broken: a key without its closure.
 * B  fill a version and the patterns, publish it release -> whoever predicts: load acquire. Broken: half a template.
 */
typedef struct acs_cuda_call {
    acs_call_fn function;
    const void *place_key;
    uint64_t scratch_bytes, pointers;
    acs_call_key key;
    _Atomic(acs_cuda_call_version *) latest; /* B; NULL: not captured yet */
    _Atomic bool hopeless;     /* left to the library */
    acs_call_room room;        /* as KERNEL ops, where it is kernels alone without scratch memory. Set before `latest` */
    uint32_t captures;         /* of the thread that learns */
    acs_record *pattern[ACS_CALL_STEPS]; /* of each kernel: a launch as check() left it; set before `latest` */
} acs_cuda_call;

struct acs_cuda_calls {
    uint32_t used;         /* guarded by acs_cuda.lock */
    atomic_flag learning;  /* one thread captures at a time, others do without */
    CUstream stream;       /* that is captured; made by the first */
    _Atomic(acs_cuda_call *) cells[ACS_CUDA_CALL_CELLS];
};

#endif

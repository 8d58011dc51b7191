/*
 * Stand-ins for cuBLAS and cuSOLVER, to be found by dlopen under their names: what acs_blas calls is executed on the CPU by
 * its own loops, and the rules that it must keep are watched over. The counters lie in the test program.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "blas/blas.h"

typedef struct fake_cuda {
    void (*run)(const acs_blas_args *args);
    int handles_made, handles_live, calls;
    int fail_with;  /* a status that the next operation returns; 0: none */
    int want_elements; /* what cuSOLVER says that it needs */
    const char *broken; /* a rule that was broken, or NULL */
    void *stream, *workspace; /* what the calls must have been given */
} fake_cuda;

__attribute__((visibility("default"))) extern fake_cuda g_fake_cuda;

/* A handle of either library. */
typedef struct fake_handle {
    void *stream, *workspace;
} fake_handle;

static inline void fake_check(int kept, const char *rule)
{
    if (!kept && !g_fake_cuda.broken)
        g_fake_cuda.broken = rule;
}

/* @return the status of the operation */
static inline int fake_run(const acs_blas_args *args)
{
    const int status = g_fake_cuda.fail_with;
    g_fake_cuda.fail_with = 0;
    g_fake_cuda.calls++;
    if (!status)
        g_fake_cuda.run(args);
    return status;
}

#endif

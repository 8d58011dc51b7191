/*
 * What the parts of acs_blaslt share: a product as data, and the two machines that run it. Not installed.
 *
 * acs_blaslt.c checks arguments and makes the footprint; host.c and cuda.c run the product when ACS asks them to.
 */
#ifndef ACS_BLASLT_INTERNAL_H
#define ACS_BLASLT_INTERNAL_H

#include "acs_blaslt.h"
#include "common/wrap.h"

/* What an algorithm is chosen for, but for the alignment of pointers. No padding: it is compared by its bytes. */
typedef struct acs_blaslt_shape {
    int type, transa, transb, m, n, k, lda, ldb, ldc, ldd, activation, has_bias;
} acs_blaslt_shape;

/* The closure. The pointers are its first words. It has no padding: calls are compared by its bytes. */
typedef struct acs_blaslt_args {
    const void *a, *b, *c, *bias; /* c: D where C is not read */
    void *d;
    double alpha, beta;
    acs_blaslt_shape shape;
} acs_blaslt_args;
_Static_assert(sizeof(acs_blaslt_args) == 5 * sizeof(void *) + 2 * sizeof(double) + 12 * sizeof(int), "no padding");

enum {
    ACS_BLASLT_POINTERS = 5,
    ACS_BLASLT_CODE_ALGORITHM = ACS_WRAP_CODE_OTHER /* cuBLASLt has none for this product */
};

/* Runs on the CPU, on the calling thread. */
void acs_blaslt_host_run(const acs_blaslt_args *args);

/* Issues to env->stream. @return 0 or a code */
int acs_blaslt_cuda_run(const acs_call_env *env, const acs_blaslt_args *args);
bool acs_blaslt_cuda_load(const char **why);

#endif

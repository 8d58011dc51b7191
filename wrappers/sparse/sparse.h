/*
 * What the parts of acs_sparse share: a product as data, and the two machines that run it. Not installed.
 *
 * acs_sparse.c checks arguments and makes footprints; host.c and cuda.c run the product when ACS asks them to.
 */
#ifndef ACS_SPARSE_INTERNAL_H
#define ACS_SPARSE_INTERNAL_H

#include "acs_sparse.h"
#include "common/wrap.h"

/* The closure of an op. A vector is a matrix of one column. */
typedef struct acs_sparse_args {
    acs_sparse_matrix a;
    const void *b;
    void *c;
    int n, ldb, ldc; /* n 0: a vector */
    double alpha, beta;
} acs_sparse_args;

/* A question to cuSPARSE, for acs_wrap_ask. */
typedef struct acs_sparse_question {
    acs_sparse_matrix a;
    int code;
} acs_sparse_question;

/* Runs on the CPU, on the calling thread. */
void acs_sparse_host_run(const acs_sparse_args *args);

/* Issues to env->stream. @return 0 or a code */
int acs_sparse_cuda_run(const acs_call_env *env, const acs_sparse_args *args);
/* Fill in how many bytes the products need. @return 0 or a code */
int acs_sparse_cuda_sizes(const acs_call_env *env, acs_sparse_matrix *a);
bool acs_sparse_cuda_load(const char **why);
const char *acs_sparse_cuda_text(int status);

#endif

/*
 * What the parts of acs_blas share: an operation as data, and the two machines that run it. Not installed.
 *
 * acs_blas.c fills acs_blas_args from a call and makes the footprint; host.c and cuda.c run it when ACS asks them to.
 */
#ifndef ACS_BLAS_INTERNAL_H
#define ACS_BLAS_INTERNAL_H

#include "acs_blas.h"

#include <stdbool.h>

typedef enum acs_blas_kind {
    ACS_BLAS_GEMM,
    ACS_BLAS_SYRK,
    ACS_BLAS_TRSM,
    ACS_BLAS_GEMV,
    ACS_BLAS_AXPY,
    ACS_BLAS_POTRF,
    ACS_BLAS_GETRF,
    ACS_BLAS_KINDS
} acs_blas_kind;

/*
 * The closure. Operands are in the order of the call; of vectors, ld is the distance. What an operation lacks is 0. It has
 * no padding: calls are compared by its bytes.
 */
typedef struct acs_blas_args {
    uint8_t kind, precise;    /* acs_blas_kind; nonzero: double */
    uint8_t unused[2];
    int transa, transb;       /* acs_blas_trans, as given; gemv and syrk: transa */
    int side, uplo, diag;
    int m, n, k;
    int lda, ldb, ldc;
    const void *a, *b;        /* read */
    void *c;                  /* written: C, y, B of trsm, A of potrf and getrf (with ldc) */
    int *info;
    double alpha, beta;       /* exact for float too */
} acs_blas_args;
_Static_assert(sizeof(acs_blas_args) == 4 + 11 * sizeof(int) + 4 * sizeof(void *) + 2 * sizeof(double), "no padding");

/* Codes of ops that failed while they ran; those of the libraries follow their base. */
enum {
    ACS_BLAS_CODE_LIBRARY = 1,  /* cuBLAS or cuSOLVER was not found */
    ACS_BLAS_CODE_MEMORY = 2,   /* no memory for a slot's handles */
    ACS_BLAS_CODE_SCRATCH = 3,  /* the caller's scratch is too small */
    ACS_BLAS_CODE_CUBLAS = 1000,
    ACS_BLAS_CODE_CUSOLVER = 2000
};

/* At the start of a factorization's scratch: its info where the caller gave none, then what cuSOLVER works in. */
enum { ACS_BLAS_INFO_BYTES = 256 };

/* The element of a vector that BLAS begins with: the first in memory, or with a negative distance the last. */
static inline size_t acs_blas_vector_start(int count, int distance)
{
    return distance < 0 && count > 0 ? (size_t)(count - 1) * (size_t)(-(int64_t)distance) : 0;
}

/* Runs on the CPU, on the calling thread. */
void acs_blas_host_run(const acs_blas_args *args);

/* Issues to env->stream. @return 0 or a code. */
int acs_blas_cuda_run(const acs_call_env *env, const acs_blas_args *args);
/* Releases a place of acs_blas_cuda_run. */
void acs_blas_cuda_place_destroy(void *place);
/* Whether the libraries are there; if not, `why` is a sentence of static storage. */
bool acs_blas_cuda_load(const char **why);
/* cuBLAS's own text for a status, or NULL. */
const char *acs_blas_cuda_text(int cublas_status);

#endif

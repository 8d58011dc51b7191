/*
 * libcusolver.so as acs_blas sees it: fake_cuda.h. Built as a shared library, opened by test_blas_cuda alone.
 */
#include "fake_cuda.h"

#include <cusolverDn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *h)
{
    *h = calloc(1, sizeof(fake_handle));
    g_fake_cuda.handles_made++;
    g_fake_cuda.handles_live++;
    return *h ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}

EXPORT cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t h)
{
    free(h);
    g_fake_cuda.handles_live--;
    return CUSOLVER_STATUS_SUCCESS;
}

EXPORT cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t h, cudaStream_t stream)
{
    ((fake_handle *)(void *)h)->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

/* What is promised as work space is written to: all of it, and the place for info apart from it. */
static cusolverStatus_t run(cusolverDnHandle_t h, const acs_blas_args *args, void *work, size_t bytes)
{
    fake_check(((fake_handle *)(void *)h)->stream == g_fake_cuda.stream, "a factorization goes to the slot's stream");
    fake_check(args->info && ((char *)args->info < (char *)work || (char *)args->info >= (char *)work + bytes),
               "a factorization has a place for info, apart from its work space");
    memset(work, 0x7f, bytes);
    return (cusolverStatus_t)fake_run(args);
}

static int uplo_of(cublasFillMode_t mode)
{
    return mode == CUBLAS_FILL_MODE_LOWER ? ACS_BLAS_LOWER : ACS_BLAS_UPPER;
}

#define FUNCTIONS(letter, real, exact)                                                                                 \
    EXPORT cusolverStatus_t cusolverDn##letter##potrf_bufferSize(cusolverDnHandle_t h, cublasFillMode_t uplo, int n,   \
                                                                 real *a, int lda, int *elements)                      \
    {                                                                                                                  \
        fake_check(h && uplo_of(uplo) && n <= lda && a, "a buffer's size is asked for with the matrix");               \
        *elements = g_fake_cuda.want_elements;                                                                         \
        return CUSOLVER_STATUS_SUCCESS;                                                                                \
    }                                                                                                                  \
    EXPORT cusolverStatus_t cusolverDn##letter##getrf_bufferSize(cusolverDnHandle_t h, int m, int n, real *a, int lda, \
                                                                 int *elements)                                        \
    {                                                                                                                  \
        fake_check(h && m <= lda && n > 0 && a, "a buffer's size is asked for with the matrix");                       \
        *elements = g_fake_cuda.want_elements;                                                                         \
        return CUSOLVER_STATUS_SUCCESS;                                                                                \
    }                                                                                                                  \
    EXPORT cusolverStatus_t cusolverDn##letter##potrf(cusolverDnHandle_t h, cublasFillMode_t uplo, int n, real *a,     \
                                                      int lda, real *work, int elements, int *info)                    \
    {                                                                                                                  \
        const acs_blas_args x = {.kind = ACS_BLAS_POTRF, .precise = exact, .uplo = uplo_of(uplo), .m = n, .n = n,      \
                                 .ldc = lda, .c = a, .info = info};                                                    \
        fake_check(elements == g_fake_cuda.want_elements, "potrf has the buffer that it asked for");                   \
        return run(h, &x, work, (size_t)elements * sizeof(real));                                                      \
    }                                                                                                                  \
    EXPORT cusolverStatus_t cusolverDn##letter##getrf(cusolverDnHandle_t h, int m, int n, real *a, int lda,            \
                                                      real *work, int *pivots, int *info)                              \
    {                                                                                                                  \
        const acs_blas_args x = {.kind = ACS_BLAS_GETRF, .precise = exact, .m = m, .n = n, .ldc = lda, .c = a,         \
                                 .info = info};                                                                        \
        fake_check(pivots == NULL, "getrf exchanges no rows");                                                         \
        return run(h, &x, work, (size_t)g_fake_cuda.want_elements * sizeof(real));                                     \
    }

FUNCTIONS(S, float, 0)
FUNCTIONS(D, double, 1)

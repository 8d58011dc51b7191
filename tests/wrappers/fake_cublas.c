/*
 * libcublas.so as acs_blas sees it: fake_cuda.h. Built as a shared library, opened by test_blas_cuda alone.
 */
#include "fake_cuda.h"

#include <cublas_v2.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static fake_handle *of(cublasHandle_t h)
{
    return (fake_handle *)(void *)h;
}

EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *h)
{
    *h = calloc(1, sizeof(fake_handle));
    g_fake_cuda.handles_made++;
    g_fake_cuda.handles_live++;
    return *h ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t h)
{
    free(h);
    g_fake_cuda.handles_live--;
    return CUBLAS_STATUS_SUCCESS;
}

/* As cuBLAS does it: a new stream resets the workspace to the library's own. */
EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream)
{
    of(h)->stream = stream;
    of(h)->workspace = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t bytes)
{
    fake_check(bytes == ACS_BLAS_WORKSPACE_BYTES, "the workspace has one size");
    of(h)->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_EXECUTION_FAILED ? "the fake failed" : "another status";
}

static cublasStatus_t run(cublasHandle_t h, const acs_blas_args *args)
{
    fake_check(of(h)->stream == g_fake_cuda.stream, "an operation goes to the slot's stream");
    fake_check(of(h)->workspace == g_fake_cuda.workspace, "an operation has the slot's workspace");
    return (cublasStatus_t)fake_run(args);
}

static int trans_of(cublasOperation_t op)
{
    return op == CUBLAS_OP_N ? ACS_BLAS_N : op == CUBLAS_OP_T ? ACS_BLAS_T : 0;
}

static int uplo_of(cublasFillMode_t mode)
{
    return mode == CUBLAS_FILL_MODE_LOWER ? ACS_BLAS_LOWER : ACS_BLAS_UPPER;
}

#define FUNCTIONS(letter, real, exact)                                                                                 \
    EXPORT cublasStatus_t cublas##letter##gemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, \
                                                  int n, int k, const real *alpha, const real *a, int lda,             \
                                                  const real *b, int ldb, const real *beta, real *c, int ldc)          \
    {                                                                                                                  \
        const acs_blas_args x = {.kind = ACS_BLAS_GEMM, .precise = exact, .transa = trans_of(ta),                      \
                                 .transb = trans_of(tb), .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc,   \
                                 .a = a, .b = b, .c = c, .alpha = *alpha, .beta = *beta};                              \
        return run(h, &x);                                                                                             \
    }                                                                                                                  \
    EXPORT cublasStatus_t cublas##letter##syrk_v2(cublasHandle_t h, cublasFillMode_t uplo, cublasOperation_t trans,    \
                                                  int n, int k, const real *alpha, const real *a, int lda,             \
                                                  const real *beta, real *c, int ldc)                                  \
    {                                                                                                                  \
        const acs_blas_args x = {.kind = ACS_BLAS_SYRK, .precise = exact, .transa = trans_of(trans),                   \
                                 .uplo = uplo_of(uplo), .m = n, .n = n, .k = k, .lda = lda, .ldc = ldc, .a = a,        \
                                 .c = c, .alpha = *alpha, .beta = *beta};                                              \
        return run(h, &x);                                                                                             \
    }                                                                                                                  \
    EXPORT cublasStatus_t cublas##letter##trsm_v2(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo,      \
                                                  cublasOperation_t trans, cublasDiagType_t diag, int m, int n,        \
                                                  const real *alpha, const real *a, int lda, real *b, int ldb)         \
    {                                                                                                                  \
        const acs_blas_args x = {.kind = ACS_BLAS_TRSM, .precise = exact, .transa = trans_of(trans),                   \
                                 .side = side == CUBLAS_SIDE_LEFT ? ACS_BLAS_LEFT : ACS_BLAS_RIGHT,                    \
                                 .uplo = uplo_of(uplo),                                                                \
                                 .diag = diag == CUBLAS_DIAG_UNIT ? ACS_BLAS_UNIT : ACS_BLAS_NON_UNIT, .m = m, .n = n, \
                                 .lda = lda, .ldc = ldb, .a = a, .c = b, .alpha = *alpha};                             \
        return run(h, &x);                                                                                             \
    }                                                                                                                  \
    EXPORT cublasStatus_t cublas##letter##gemv_v2(cublasHandle_t h, cublasOperation_t trans, int m, int n,             \
                                                  const real *alpha, const real *a, int lda, const real *x0, int incx, \
                                                  const real *beta, real *y, int incy)                                 \
    {                                                                                                                  \
        const acs_blas_args x = {.kind = ACS_BLAS_GEMV, .precise = exact, .transa = trans_of(trans), .m = m, .n = n,   \
                                 .lda = lda, .ldb = incx, .ldc = incy, .a = a, .b = x0, .c = y, .alpha = *alpha,       \
                                 .beta = *beta};                                                                       \
        return run(h, &x);                                                                                             \
    }                                                                                                                  \
    EXPORT cublasStatus_t cublas##letter##axpy_v2(cublasHandle_t h, int n, const real *alpha, const real *x0,          \
                                                  int incx, real *y, int incy)                                         \
    {                                                                                                                  \
        const acs_blas_args x = {.kind = ACS_BLAS_AXPY, .precise = exact, .m = n, .n = n, .ldb = incx, .ldc = incy,    \
                                 .b = x0, .c = y, .alpha = *alpha};                                                    \
        return run(h, &x);                                                                                             \
    }

FUNCTIONS(S, float, 0)
FUNCTIONS(D, double, 1)

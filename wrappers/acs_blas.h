/**
 * @file acs_blas.h
 * Dense linear algebra as ops of ACS: gemm, syrk, trsm, gemv, axpy, potrf and getrf without pivoting, in single and double
 * precision. Footprints come from the arguments; handles and workspaces are one per slot.
 *
 *     acs_blas_dpotrf(context, ACS_BLAS_LOWER, n, a, lda, NULL);
 *     acs_blas_dtrsm(context, ACS_BLAS_RIGHT, ACS_BLAS_LOWER, ACS_BLAS_T, ACS_BLAS_NON_UNIT, m, n, 1, a, lda, b, ldb);
 *
 * **Matrices** are stored by columns as in BLAS: element (i, j) of A is a[i + j * lda]. A matrix is a tile: `lda` may be
 * larger than the number of rows, and what lies between two columns is not touched.
 *
 * **Where they run.** On a GPU by cuBLAS and cuSOLVER, which are looked for at run time, at the first op on such a context
 * (acs_blas_load). On the host backends by plain loops: the same call sites work there, not fast. Pointers are what the
 * backend of the context takes; `alpha`, `beta` and sizes are values of the call.
 *
 * **Footprints** name whole rectangles: of a triangular operand the triangle is used and the rectangle is named. An operand
 * that is written is `inout`, except C of gemm and y of gemv where beta is 0: they are `out`, and their old bytes are not
 * read. Where BLAS returns at once (a size is 0) the op touches nothing.
 *
 * **Repeatable.** Each slot has its own handle and a workspace of one size, math is in the precision named (no TF32), and
 * cuBLAS and cuSOLVER use no atomics: the same call on the same bytes gives the same bits, whatever stream it runs in.
 *
 * **Errors.** Functions that queue return 0 and those that prepare a status; acs_blas_last_error() then tells the calling
 * thread what was wrong. Nothing was queued, and since program order has a hole the context keeps an ACS_ERR_ARGUMENT or
 * ACS_ERR_UNSUPPORTED too (acs_sync), with the function's name for a site. What fails while an op runs is ACS_ERR_HOST with
 * a code for acs_blas_code_text(). A factorization that breaks down is no failure of its op: see `info`.
 *
 * **Threads.** As acs.h: any, at any time.
 */
#ifndef ACS_BLAS_H
#define ACS_BLAS_H

#include "acs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values are CBLAS's. */
typedef enum acs_blas_trans { ACS_BLAS_N = 111, ACS_BLAS_T = 112 } acs_blas_trans;
typedef enum acs_blas_uplo { ACS_BLAS_UPPER = 121, ACS_BLAS_LOWER = 122 } acs_blas_uplo;
typedef enum acs_blas_diag { ACS_BLAS_NON_UNIT = 131, ACS_BLAS_UNIT = 132 } acs_blas_diag;
typedef enum acs_blas_side { ACS_BLAS_LEFT = 141, ACS_BLAS_RIGHT = 142 } acs_blas_side;

/** Device memory that an op asks of its slot; factorizations of more than some 1400 rows and columns ask more. */
#define ACS_BLAS_WORKSPACE_BYTES (32u << 20)

enum { ACS_BLAS_SEGMENTS_MAX = 3, ACS_BLAS_CLOSURE_WORDS = 14 };

/**
 * An op that was prepared and not queued: for programs that issue library calls themselves. `params` points into the rest,
 * so the struct must stay where it is until acs_call() has returned. `params.site` and `params.no_wait` may be set, and
 * `params.scratch_bytes` raised, in between. What calls `params.function` by other means gives it an acs_call_env as ACS
 * does: stream and device (-1: the host), `scratch_bytes` of device memory where there is a device, and one place per
 * stream, which `params.place_destroy` releases.
 */
typedef struct acs_blas_call {
    acs_call_params params;
    acs_segment segments[ACS_BLAS_SEGMENTS_MAX];
    uint64_t closure[ACS_BLAS_CLOSURE_WORDS];
} acs_blas_call;

/* Each operation has four functions: for float and double, to queue (context NULL: the default one) and to prepare. */
#define ACS_BLAS_DECLARE_(name, ...)                                                                                   \
    acs_op acs_blas_##name(acs_context *context, __VA_ARGS__);                                                         \
    acs_status acs_blas_##name##_prepare(acs_blas_call *call, __VA_ARGS__)

/* ------------------------------------------------------------------------------------------------ matrix by matrix */

/**
 * C = alpha op(A) op(B) + beta C; op(A) is m x k, op(B) k x n, C m x n.
 * Reads A and B; updates C, or only writes it where beta is 0. With m or n 0 touches nothing, with k 0 neither A nor B.
 */
ACS_BLAS_DECLARE_(sgemm, acs_blas_trans transa, acs_blas_trans transb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
ACS_BLAS_DECLARE_(dgemm, acs_blas_trans transa, acs_blas_trans transb, int m, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);

/**
 * One triangle of C = alpha A Aᵀ + beta C (N; A is n x k), or of alpha Aᵀ A + beta C (T; A is k x n).
 * Reads A; updates C: the other triangle is not touched, but the footprint names all of C, also where beta is 0.
 */
ACS_BLAS_DECLARE_(ssyrk, acs_blas_uplo uplo, acs_blas_trans trans, int n, int k, float alpha, const float *a, int lda,
                  float beta, float *c, int ldc);
ACS_BLAS_DECLARE_(dsyrk, acs_blas_uplo uplo, acs_blas_trans trans, int n, int k, double alpha, const double *a, int lda,
                  double beta, double *c, int ldc);

/**
 * B = alpha op(A)⁻¹ B (LEFT; A is m x m) or alpha B op(A)⁻¹ (RIGHT; A is n x n); A is triangular, B m x n.
 * Reads A: one triangle of it, without the diagonal if that is UNIT; the footprint names all of A. Updates B.
 */
ACS_BLAS_DECLARE_(strsm, acs_blas_side side, acs_blas_uplo uplo, acs_blas_trans transa, acs_blas_diag diag, int m, int n,
                  float alpha, const float *a, int lda, float *b, int ldb);
ACS_BLAS_DECLARE_(dtrsm, acs_blas_side side, acs_blas_uplo uplo, acs_blas_trans transa, acs_blas_diag diag, int m, int n,
                  double alpha, const double *a, int lda, double *b, int ldb);

/* ------------------------------------------------------------------------------------------------- matrix by vector */

/**
 * y = alpha op(A) x + beta y; A is m x n. incx and incy are distances in elements and not 0; with a negative one the
 * vector runs backwards from the far end, as in BLAS.
 * Reads A and x; updates y, or only writes it where beta is 0. With m or n 0 touches nothing.
 */
ACS_BLAS_DECLARE_(sgemv, acs_blas_trans trans, int m, int n, float alpha, const float *a, int lda, const float *x, int incx,
                  float beta, float *y, int incy);
ACS_BLAS_DECLARE_(dgemv, acs_blas_trans trans, int m, int n, double alpha, const double *a, int lda, const double *x,
                  int incx, double beta, double *y, int incy);

/** y = alpha x + y, n elements each. Reads x, updates y. Distances as in gemv. */
ACS_BLAS_DECLARE_(saxpy, int n, float alpha, const float *x, int incx, float *y, int incy);
ACS_BLAS_DECLARE_(daxpy, int n, double alpha, const double *x, int incx, double *y, int incy);

/* --------------------------------------------------------------------------------------------------- factorizations */

/**
 * Cholesky: A = L Lᵀ (LOWER) or Uᵀ U (UPPER), over that triangle of A; n is at least 1.
 * Updates A: the other triangle is not touched, but the footprint names all of A.
 * @param info  memory of the context's backend that gets 0, or i where the leading minor of order i is not positive
 *              definite (A then holds nothing of use); an `out` of the op. NULL: nobody asks.
 */
ACS_BLAS_DECLARE_(spotrf, acs_blas_uplo uplo, int n, float *a, int lda, int *info);
ACS_BLAS_DECLARE_(dpotrf, acs_blas_uplo uplo, int n, double *a, int lda, int *info);

/**
 * LU without exchange of rows: A = L U over A, L with ones on its diagonal; A is m x n, both at least 1. For matrices that
 * need no pivots, such as diagonally dominant ones, and for the tiles on the diagonal of such.
 * @param info  as for potrf: 0, or i where U(i, i) is exactly 0.
 */
ACS_BLAS_DECLARE_(sgetrf_nopiv, int m, int n, float *a, int lda, int *info);
ACS_BLAS_DECLARE_(dgetrf_nopiv, int m, int n, double *a, int lda, int *info);

#undef ACS_BLAS_DECLARE_

/* ------------------------------------------------------------------------------------------------ libraries and errors */

/**
 * Find cuBLAS and cuSOLVER now: first as the loader finds libraries, then where the CUDA toolkit of the build was. Called by
 * the first op on a CUDA context and looked up once per process.
 * @retval ACS_ERR_UNSUPPORTED  one of them, or a function in it, was not found, or the wrapper was built without CUDA;
 *                              acs_blas_last_error names it and gives the loader's own text.
 */
acs_status acs_blas_load(void);

/**
 * The latest error that a function of this header returned to this thread; as acs_last_error otherwise.
 * @param[out] error  `size` set by the caller, may be NULL; untouched when there was none.
 */
acs_status acs_blas_last_error(acs_error *error);

/**
 * What an op's code means (acs_error.native of an ACS_ERR_HOST), in one sentence.
 * @return bytes needed without the final 0, as snprintf does; `text` may be NULL when `bytes` is 0.
 */
size_t acs_blas_code_text(int code, char *text, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ACS_BLAS_H */

/*
 * The public functions of acs_blas.c in one precision: included with REAL, PRECISE (1: double), NAME(operation) and
 * SITE(operation) defined, once for each. Their signatures are those of acs_blas.h.
 */

ENTRY(gemm,
      (acs_blas_trans transa, acs_blas_trans transb, int m, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b,
       int ldb, REAL beta, REAL *c, int ldc),
      (transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), .kind = ACS_BLAS_GEMM, .transa = (int)transa,
      .transb = (int)transb, .m = m, .n = n, .k = k, .alpha = (double)alpha, .a = a, .lda = lda, .b = b, .ldb = ldb,
      .beta = (double)beta, .c = c, .ldc = ldc)

ENTRY(syrk,
      (acs_blas_uplo uplo, acs_blas_trans trans, int n, int k, REAL alpha, const REAL *a, int lda, REAL beta, REAL *c,
       int ldc),
      (uplo, trans, n, k, alpha, a, lda, beta, c, ldc), .kind = ACS_BLAS_SYRK, .uplo = (int)uplo, .transa = (int)trans,
      .m = n, .n = n, .k = k, .alpha = (double)alpha, .a = a, .lda = lda, .beta = (double)beta, .c = c, .ldc = ldc)

ENTRY(trsm,
      (acs_blas_side side, acs_blas_uplo uplo, acs_blas_trans transa, acs_blas_diag diag, int m, int n, REAL alpha,
       const REAL *a, int lda, REAL *b, int ldb),
      (side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb), .kind = ACS_BLAS_TRSM, .side = (int)side, .uplo = (int)uplo,
      .transa = (int)transa, .diag = (int)diag, .m = m, .n = n, .alpha = (double)alpha, .a = a, .lda = lda, .c = b,
      .ldc = ldb)

ENTRY(gemv,
      (acs_blas_trans trans, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y,
       int incy),
      (trans, m, n, alpha, a, lda, x, incx, beta, y, incy), .kind = ACS_BLAS_GEMV, .transa = (int)trans, .m = m, .n = n,
      .alpha = (double)alpha, .a = a, .lda = lda, .b = x, .ldb = incx, .beta = (double)beta, .c = y, .ldc = incy)

ENTRY(axpy, (int n, REAL alpha, const REAL *x, int incx, REAL *y, int incy), (n, alpha, x, incx, y, incy),
      .kind = ACS_BLAS_AXPY, .m = n, .n = n, .alpha = (double)alpha, .b = x, .ldb = incx, .c = y, .ldc = incy)

ENTRY(potrf, (acs_blas_uplo uplo, int n, REAL *a, int lda, int *info), (uplo, n, a, lda, info), .kind = ACS_BLAS_POTRF,
      .uplo = (int)uplo, .m = n, .n = n, .c = a, .ldc = lda, .info = info)

ENTRY(getrf_nopiv, (int m, int n, REAL *a, int lda, int *info), (m, n, a, lda, info), .kind = ACS_BLAS_GETRF, .m = m,
      .n = n, .c = a, .ldc = lda, .info = info)

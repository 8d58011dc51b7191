/*
 * What an operation's result must be, by definitions in double precision: products are sums over an index, systems and
 * factorizations are multiplied out again. Used by tests that ran a case over an arena (blas_cases.h). C11 and C++17.
 */
#ifndef BLAS_REFERENCE_H
#define BLAS_REFERENCE_H

#include "blas_cases.h"

/* op(A)(i, j); of trsm with what its triangle implies. */
static inline double reference_a(const blas_arena *x, int i, int j)
{
    const blas_case *c = &x->what;
    const int row = c->transa == ACS_BLAS_T ? j : i, column = c->transa == ACS_BLAS_T ? i : j;
    if (c->operation == CASE_TRSM && !case_in_triangle(c, row, column))
        return 0;
    if (c->operation == CASE_TRSM && i == j && c->diag == ACS_BLAS_UNIT)
        return 1;
    return case_get(x, CASE_A + row + column * case_lda(c));
}

/* op(B)(i, j); of syrk, op(A) transposed. */
static inline double reference_b(const blas_arena *x, int i, int j)
{
    const blas_case *c = &x->what;
    if (c->operation == CASE_SYRK)
        return reference_a(x, j, i);
    return case_get(x, CASE_B + (c->transb == ACS_BLAS_T ? j + i * case_ldb(c) : i + j * case_ldb(c)));
}

static inline double reference_c(const blas_arena *x, int i, int j)
{
    return case_get(x, CASE_C + i + j * case_ldc(&x->what));
}

/* The factors that potrf and getrf leave in C, as two matrices. */
static inline double reference_factor(const blas_arena *x, int first, int i, int j)
{
    const blas_case *c = &x->what;
    if (c->operation == CASE_GETRF) {
        if (first)
            return i == j ? 1 : i > j ? reference_c(x, i, j) : 0;
        return i <= j ? reference_c(x, i, j) : 0;
    }
    /* L Lᵀ, or Uᵀ U */
    const int turned = (c->uplo == ACS_BLAS_LOWER) != first;
    const int row = turned ? j : i, column = turned ? i : j;
    return case_in_triangle(c, row, column) ? reference_c(x, row, column) : 0;
}

/* beta y, where y is not looked at if beta is 0. */
static inline double reference_scaled(double beta, double y)
{
    return beta == 0 ? 0 : beta * y;
}

/* Sets what element (i, j) of the output says, and what it must say. */
static inline void reference_matrix(const blas_arena *before, const blas_arena *after, int i, int j, double *got,
                                    double *want)
{
    const blas_case *c = &before->what;
    double sum = 0;
    *got = *want = 0;
    switch (c->operation) {
    case CASE_GEMM:
    case CASE_SYRK:
        for (int l = 0; l < c->k; l++)
            sum += reference_a(before, i, l) * reference_b(before, l, j);
        *want = c->alpha * sum + reference_scaled(c->beta, reference_c(before, i, j));
        *got = reference_c(after, i, j);
        break;
    case CASE_TRSM:
        for (int l = 0; l < (c->side == ACS_BLAS_LEFT ? c->m : c->n); l++)
            *got += c->side == ACS_BLAS_LEFT ? reference_a(before, i, l) * reference_c(after, l, j)
                                             : reference_c(after, i, l) * reference_a(before, l, j);
        *want = c->alpha * reference_c(before, i, j);
        break;
    default:
        for (int l = 0; l < (c->m < c->n ? c->m : c->n); l++)
            *got += reference_factor(after, 1, i, l) * reference_factor(after, 0, l, j);
        *want = reference_c(before, i, j);
    }
}

/* Element i of the output of gemv and axpy. */
static inline double reference_vector(const blas_arena *before, int i)
{
    const blas_case *c = &before->what;
    const int length_x = case_length_x(c), length_y = case_length_y(c);
    const double y = case_get(before, case_vector(CASE_C, length_y, c->incy, i));
    double sum = 0;
    if (c->operation == CASE_AXPY)
        return c->alpha * case_get(before, case_vector(CASE_B, length_x, c->incx, i)) + y;
    for (int j = 0; j < length_x; j++)
        sum += reference_a(before, i, j) * case_get(before, case_vector(CASE_B, length_x, c->incx, j));
    return c->alpha * sum + reference_scaled(c->beta, y);
}

/* Written so that NaN is never near. */
static inline int reference_near(const blas_case *c, double got, double want)
{
    const double tolerance = (c->precise ? 1e-12 : 1e-4) * (1 + fabs(want));
    return fabs(got - want) <= tolerance;
}

/* Whether what the operation had to write is right; if not, says where. */
static inline int reference_agrees(const blas_arena *before, const blas_arena *after)
{
    const blas_case *c = &before->what;
    double got, want;
    if (c->m == 0 || c->n == 0)
        return 1;
    for (int j = 0; j < c->n && c->operation != CASE_GEMV && c->operation != CASE_AXPY; j++)
        for (int i = 0; i < c->m; i++) {
            if ((c->operation == CASE_SYRK || c->operation == CASE_POTRF) && !case_in_triangle(c, i, j))
                continue;
            reference_matrix(before, after, i, j, &got, &want);
            if (!reference_near(c, got, want)) {
                fprintf(stderr, "%s: (%d, %d) says %.17g, must be %.17g\n", case_name(c), i, j, got, want);
                return 0;
            }
        }
    for (int i = 0; i < case_length_y(c) && (c->operation == CASE_GEMV || c->operation == CASE_AXPY); i++) {
        got = case_get(after, case_vector(CASE_C, case_length_y(c), c->incy, i));
        want = reference_vector(before, i);
        if (!reference_near(c, got, want)) {
            fprintf(stderr, "%s: element %d is %.17g, must be %.17g\n", case_name(c), i, got, want);
            return 0;
        }
    }
    return 1;
}

/* Whether nothing was written but what the operation writes; if not, says where. */
static inline int reference_rest_untouched(const blas_arena *before, const blas_arena *after)
{
    const size_t size = case_size(&before->what);
    for (int i = 0; i < CASE_ELEMENTS; i++)
        if (!(before->purpose[i] & CASE_WRITTEN) &&
            memcmp((const char *)before->bytes + (size_t)i * size, (const char *)after->bytes + (size_t)i * size, size)) {
            fprintf(stderr, "%s: element %d of the arena was written\n", case_name(&before->what), i);
            return 0;
        }
    return 1;
}

#endif

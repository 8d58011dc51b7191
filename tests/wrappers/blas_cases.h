/*
 * Every operation of acs_blas in every form, as cases that each test runs its own way: in one arena of elements, where
 * all is NaN but what the operation may read by its definition. C11 and C++17.
 *
 * What each byte is for is worked out here from the definitions, element by element, and shares nothing with the wrapper.
 */
#ifndef BLAS_CASES_H
#define BLAS_CASES_H

#include "acs_blas.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CASE_GEMM, CASE_SYRK, CASE_TRSM, CASE_GEMV, CASE_AXPY, CASE_POTRF, CASE_GETRF, CASE_OPERATIONS };
/* Where operands begin, in elements; the gaps between them are never touched. */
enum { CASE_A = 16, CASE_B = 176, CASE_C = 336, CASE_ELEMENTS = 496, CASE_INFO_BEFORE = -77 };
/* What an element is for. */
enum { CASE_READ = 1, CASE_WRITTEN = 2, CASE_NAMED_IN = 4, CASE_NAMED_OUT = 8 };

typedef struct blas_case {
    int operation, precise;
    acs_blas_trans transa, transb;
    acs_blas_side side;
    acs_blas_uplo uplo;
    acs_blas_diag diag;
    int m, n, k, gap; /* gap: how much larger than the rows lda, ldb and ldc are */
    int incx, incy;
    double alpha, beta;
} blas_case;

/* Arena elements of one case, and what each is for. `bytes` holds floats or doubles. */
typedef struct blas_arena {
    blas_case what;
    unsigned char purpose[CASE_ELEMENTS];
    double bytes[CASE_ELEMENTS];
    int info;
} blas_arena;

static inline size_t case_size(const blas_case *c)
{
    return c->precise ? sizeof(double) : sizeof(float);
}

static inline double case_get(const blas_arena *a, int i)
{
    float single;
    double value;
    memcpy(&single, (const char *)a->bytes + (size_t)i * sizeof single, sizeof single);
    memcpy(&value, (const char *)a->bytes + (size_t)i * sizeof value * (a->what.precise != 0), sizeof value);
    return a->what.precise ? value : (double)single;
}

static inline void case_set(blas_arena *a, int i, double value)
{
    const float single = (float)value;
    if (a->what.precise)
        memcpy((char *)a->bytes + (size_t)i * sizeof value, &value, sizeof value);
    else
        memcpy((char *)a->bytes + (size_t)i * sizeof single, &single, sizeof single);
}

/* ------------------------------------------------------------------------------------------------------------- layout */

static inline int case_is_factorization(const blas_case *c)
{
    return c->operation == CASE_POTRF || c->operation == CASE_GETRF;
}

/* Rows and columns of each operand as stored. Vectors are told by case_vector. */
static inline int case_rows_a(const blas_case *c)
{
    const int turned = c->transa == ACS_BLAS_T;
    switch (c->operation) {
    case CASE_GEMM: return turned ? c->k : c->m;
    case CASE_SYRK: return turned ? c->k : c->n;
    case CASE_TRSM: return c->side == ACS_BLAS_LEFT ? c->m : c->n;
    default: return c->m;
    }
}
static inline int case_columns_a(const blas_case *c)
{
    const int turned = c->transa == ACS_BLAS_T;
    switch (c->operation) {
    case CASE_GEMM: return turned ? c->m : c->k;
    case CASE_SYRK: return turned ? c->n : c->k;
    case CASE_TRSM: return case_rows_a(c);
    default: return c->n;
    }
}
static inline int case_distance(int rows, int gap)
{
    return rows + gap > 1 ? rows + gap : 1;
}
static inline int case_lda(const blas_case *c)
{
    return case_distance(case_rows_a(c), c->gap);
}
static inline int case_rows_b(const blas_case *c)
{
    return c->transb == ACS_BLAS_T ? c->n : c->k;
}
static inline int case_ldb(const blas_case *c)
{
    return case_distance(case_rows_b(c), c->gap);
}
static inline int case_ldc(const blas_case *c)
{
    return case_distance(c->operation == CASE_SYRK ? c->n : c->m, c->gap);
}

/* The place of element i of a vector, as BLAS counts them. */
static inline int case_vector(int start, int count, int distance, int i)
{
    return start + (distance < 0 ? (i - count + 1) * distance : i * distance);
}
static inline int case_length_x(const blas_case *c)
{
    return c->operation == CASE_AXPY ? c->n : c->transa == ACS_BLAS_T ? c->m : c->n;
}
static inline int case_length_y(const blas_case *c)
{
    return c->operation == CASE_AXPY ? c->n : c->transa == ACS_BLAS_T ? c->n : c->m;
}

/* Whether (i, j) is in the triangle that the operation uses. */
static inline int case_in_triangle(const blas_case *c, int i, int j)
{
    return i == j || (c->uplo == ACS_BLAS_LOWER) == (i > j);
}

/* ----------------------------------------------------------------------------------------------------------- contents */

/* Numbers between -1 and 1, the same on every machine. */
static inline double case_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(uint32_t)(*state >> 32) / 2147483648.0;
}

static inline void case_mark(blas_arena *a, int at, int purpose, uint64_t *random, double shift)
{
    a->purpose[at] = (unsigned char)purpose;
    if (purpose & CASE_READ)
        case_set(a, at, case_random(random) + shift);
}

/* A matrix that is read, written or both; triangle: only that part of it. Diagonals of systems are far from 0. */
static inline void case_mark_matrix(blas_arena *a, int start, int rows, int columns, int ld, int purpose, int named,
                                    int triangle, uint64_t *random)
{
    const blas_case *c = &a->what;
    const int solves = case_is_factorization(c) || (c->operation == CASE_TRSM && start == CASE_A);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++) {
            int used = triangle && !case_in_triangle(c, i, j) ? 0 : purpose;
            if (i == j && c->operation == CASE_TRSM && start == CASE_A && c->diag == ACS_BLAS_UNIT)
                used = 0;
            case_mark(a, start + i + j * ld, used | named, random, solves && i == j ? 12 : 0);
        }
}

static inline void case_mark_vector(blas_arena *a, int start, int count, int distance, int purpose, int named,
                                    uint64_t *random)
{
    for (int i = 0; i < count; i++)
        case_mark(a, case_vector(start, count, distance, i), purpose | named, random, 0);
}

static inline void case_fill_operands(blas_arena *a, uint64_t *random)
{
    const blas_case *c = &a->what;
    const int in = CASE_NAMED_IN, both = CASE_NAMED_IN | CASE_NAMED_OUT, update = CASE_READ | CASE_WRITTEN;
    const int output = c->beta == 0 ? CASE_WRITTEN : update, named = c->beta == 0 ? CASE_NAMED_OUT : both;

    if (c->m == 0 || c->n == 0)
        return;
    if (c->operation <= CASE_GEMV)
        case_mark_matrix(a, CASE_A, case_rows_a(c), case_columns_a(c), case_lda(c), CASE_READ, in,
                         c->operation == CASE_TRSM, random);
    switch (c->operation) {
    case CASE_GEMM:
        case_mark_matrix(a, CASE_B, case_rows_b(c), c->transb == ACS_BLAS_T ? c->k : c->n, case_ldb(c), CASE_READ, in, 0,
                         random);
        case_mark_matrix(a, CASE_C, c->m, c->n, case_ldc(c), output, named, 0, random);
        break;
    case CASE_SYRK: case_mark_matrix(a, CASE_C, c->n, c->n, case_ldc(c), output, both, 1, random); break;
    case CASE_TRSM:
    case CASE_GETRF: case_mark_matrix(a, CASE_C, c->m, c->n, case_ldc(c), update, both, 0, random); break;
    case CASE_POTRF: case_mark_matrix(a, CASE_C, c->m, c->n, case_ldc(c), update, both, 1, random); break;
    case CASE_GEMV:
        case_mark_vector(a, CASE_B, case_length_x(c), c->incx, CASE_READ, in, random);
        case_mark_vector(a, CASE_C, case_length_y(c), c->incy, output, named, random);
        break;
    default:
        case_mark_vector(a, CASE_B, c->n, c->incx, CASE_READ, in, random);
        case_mark_vector(a, CASE_C, c->n, c->incy, update, both, random);
    }
}

static inline void case_fill(blas_arena *a, const blas_case *c)
{
    uint64_t random = 17;
    memset(a, 0, sizeof *a);
    a->what = *c;
    a->info = CASE_INFO_BEFORE;
    for (int i = 0; i < CASE_ELEMENTS; i++)
        case_set(a, i, NAN);
    case_fill_operands(a, &random);
}

/* --------------------------------------------------------------------------------------------------------------- calls */

/* Prepares the case over an arena at `base`, which may be on a GPU; `real`: float or double, `letter`: s or d. */
#define CASE_PREPARE(letter, real)                                                                                     \
    static inline acs_status case_prepare_##letter(acs_blas_call *call, const blas_case *c, void *base, int *info)     \
    {                                                                                                                  \
        real *const a = (real *)base + CASE_A, *const b = (real *)base + CASE_B, *const out = (real *)base + CASE_C;   \
        const real alpha = (real)c->alpha, beta = (real)c->beta;                                                       \
        const int lda = case_lda(c), ldb = case_ldb(c), ldc = case_ldc(c), m = c->m, n = c->n, k = c->k;               \
        switch (c->operation) {                                                                                        \
        case CASE_GEMM:                                                                                                \
            return acs_blas_##letter##gemm_prepare(call, c->transa, c->transb, m, n, k, alpha, a, lda, b, ldb, beta,   \
                                                   out, ldc);                                                          \
        case CASE_SYRK:                                                                                                \
            return acs_blas_##letter##syrk_prepare(call, c->uplo, c->transa, n, k, alpha, a, lda, beta, out, ldc);     \
        case CASE_TRSM:                                                                                                \
            return acs_blas_##letter##trsm_prepare(call, c->side, c->uplo, c->transa, c->diag, m, n, alpha, a, lda,    \
                                                   out, ldc);                                                          \
        case CASE_GEMV:                                                                                                \
            return acs_blas_##letter##gemv_prepare(call, c->transa, m, n, alpha, a, lda, b, c->incx, beta, out,        \
                                                   c->incy);                                                           \
        case CASE_AXPY: return acs_blas_##letter##axpy_prepare(call, n, alpha, b, c->incx, out, c->incy);              \
        case CASE_POTRF: return acs_blas_##letter##potrf_prepare(call, c->uplo, n, out, ldc, info);                    \
        default: return acs_blas_##letter##getrf_nopiv_prepare(call, m, n, out, ldc, info);                            \
        }                                                                                                              \
    }
CASE_PREPARE(s, float)
CASE_PREPARE(d, double)

static inline acs_status case_prepare(acs_blas_call *call, const blas_case *c, void *base, int *info)
{
    return c->precise ? case_prepare_d(call, c, base, info) : case_prepare_s(call, c, base, info);
}

/* "dtrsm left lower T unit, 5 x 4", for messages. */
static inline const char *case_name(const blas_case *c)
{
    static const char *const names[CASE_OPERATIONS] = {"gemm", "syrk", "trsm", "gemv", "axpy", "potrf", "getrf"};
    static char text[160];
    snprintf(text, sizeof text, "%c%s transa %d transb %d side %d uplo %d diag %d, m %d n %d k %d gap %d inc %d %d, %g %g",
             c->precise ? 'd' : 's', names[c->operation], (int)c->transa, (int)c->transb, (int)c->side, (int)c->uplo,
             (int)c->diag, c->m, c->n, c->k, c->gap, c->incx, c->incy, c->alpha, c->beta);
    return text;
}

/* ------------------------------------------------------------------------------------------------------------ all cases */

typedef void (*case_function)(const blas_case *c, void *user);

/* Whether this operation looks at what bit `bit` of a form chooses; forms that differ only elsewhere are run once. */
static inline int case_has_choice(int operation, int bit)
{
    enum { TRANSA, TRANSB, SIDE, UPLO, DIAG };
    switch (bit) {
    case TRANSA: return operation <= CASE_GEMV;
    case TRANSB: return operation == CASE_GEMM;
    case SIDE:
    case DIAG: return operation == CASE_TRSM;
    case UPLO: return operation == CASE_SYRK || operation == CASE_TRSM || operation == CASE_POTRF;
    default: return 0;
    }
}

static inline void case_set_form(blas_case *c, int form)
{
    c->transa = form & 1 ? ACS_BLAS_T : ACS_BLAS_N;
    c->transb = form & 2 ? ACS_BLAS_T : ACS_BLAS_N;
    c->side = form & 4 ? ACS_BLAS_RIGHT : ACS_BLAS_LEFT;
    c->uplo = form & 8 ? ACS_BLAS_UPPER : ACS_BLAS_LOWER;
    c->diag = form & 16 ? ACS_BLAS_UNIT : ACS_BLAS_NON_UNIT;
}

static inline void case_sizes(blas_case *c, int number)
{
    static const int sizes[][3] = {{5, 4, 3}, {1, 1, 1}, {7, 2, 6}, {3, 7, 7}, {6, 6, 1}, {4, 3, 0}, {0, 5, 2}, {5, 0, 2}};
    c->m = sizes[number][0];
    c->n = sizes[number][1];
    c->k = sizes[number][2];
    if (c->operation == CASE_SYRK || c->operation == CASE_AXPY || c->operation == CASE_POTRF)
        c->m = c->n;
}

static inline void case_each_size(blas_case *c, case_function function, void *user)
{
    static const double scalars[][2] = {{1, 1}, {-0.5, 0}, {1.5, 0.25}, {0, 0.5}};
    static const int distances[][2] = {{1, 1}, {2, 1}, {-1, 3}, {3, -2}};
    const int factorization = case_is_factorization(c);
    for (int number = 0; number < 8 * 4; number++) {
        const int variant = number % 4;
        case_sizes(c, number / 4);
        if (factorization && (c->m == 0 || c->n == 0 || variant > 1))
            continue;
        c->gap = variant % 2 ? 3 : 0;
        c->alpha = scalars[variant][0];
        c->beta = c->operation == CASE_TRSM || c->operation == CASE_AXPY || factorization ? 1 : scalars[variant][1];
        c->incx = distances[variant][0];
        c->incy = distances[variant][1];
        function(c, user);
    }
}

/* Calls the function with each case of one operation, in both precisions. */
static inline void case_each(int operation, case_function function, void *user)
{
    for (int form = 0; form < 32; form++) {
        blas_case c;
        int wanted = 1;
        for (int bit = 0; bit < 5; bit++)
            wanted = wanted && (case_has_choice(operation, bit) || !(form & 1 << bit));
        if (!wanted)
            continue;
        memset(&c, 0, sizeof c);
        c.operation = operation;
        case_set_form(&c, form);
        for (c.precise = 0; c.precise < 2; c.precise++)
            case_each_size(&c, function, user);
    }
}

#endif

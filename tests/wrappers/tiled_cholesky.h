/*
 * A tiled Cholesky factorization through ACS, and what the tests do with it: tiles of one matrix with a pitch, n = T * B
 * rows, right-looking. C11 and C++17.
 */
#ifndef TILED_CHOLESKY_H
#define TILED_CHOLESKY_H

#include "acs_blas.h"

#include <stddef.h>

typedef struct tiled {
    double *a; /* memory of the context's backend */
    int tiles, tile, ld;
} tiled;

static inline size_t tiled_at(const tiled *t, int i, int j)
{
    return (size_t)i + (size_t)j * (size_t)t->ld;
}

/* Symmetric, positive definite since the diagonal outweighs its row; the same on every machine. */
static inline void tiled_fill(const tiled *t, double *host)
{
    const int n = t->tiles * t->tile;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            const int high = i > j ? i : j, low = i > j ? j : i;
            host[tiled_at(t, i, j)] = i == j ? n : (double)((high * 131 + low * 71) % 257) / 257 - 0.5;
        }
}

/* Queues all ops. @return how many; 0 if one was refused */
static inline int tiled_queue(acs_context *context, const tiled *t)
{
    const int b = t->tile, ld = t->ld;
    int ops = 0, refused = 0;
#define TILE(i, j) (t->a + tiled_at(t, (i) * b, (j) * b))
#define QUEUE(call) (ops++, refused += (call) == 0)
    for (int k = 0; k < t->tiles; k++) {
        QUEUE(acs_blas_dpotrf(context, ACS_BLAS_LOWER, b, TILE(k, k), ld, NULL));
        for (int i = k + 1; i < t->tiles; i++)
            QUEUE(acs_blas_dtrsm(context, ACS_BLAS_RIGHT, ACS_BLAS_LOWER, ACS_BLAS_T, ACS_BLAS_NON_UNIT, b, b, 1, TILE(k, k),
                                 ld, TILE(i, k), ld));
        for (int j = k + 1; j < t->tiles; j++) {
            QUEUE(acs_blas_dsyrk(context, ACS_BLAS_LOWER, ACS_BLAS_N, b, b, -1, TILE(j, k), ld, 1, TILE(j, j), ld));
            for (int i = j + 1; i < t->tiles; i++)
                QUEUE(acs_blas_dgemm(context, ACS_BLAS_N, ACS_BLAS_T, b, b, b, -1, TILE(i, k), ld, TILE(j, k), ld, 1,
                                     TILE(i, j), ld));
        }
    }
#undef QUEUE
#undef TILE
    return refused ? 0 : ops;
}

/* Largest difference between L Lᵀ and the matrix, over the lower triangle; NaN counts as 1. */
static inline double tiled_residual(const tiled *t, const double *original, const double *factored)
{
    const int n = t->tiles * t->tile;
    double worst = 0;
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            double sum = -original[tiled_at(t, i, j)];
            for (int k = 0; k <= j; k++)
                sum += factored[tiled_at(t, i, k)] * factored[tiled_at(t, j, k)];
            if (!(sum <= worst && sum >= -worst))
                worst = sum < 0 ? -sum : sum > 0 ? sum : 1;
        }
    return worst;
}

#endif

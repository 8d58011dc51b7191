/*
 * What an operator computes: sizes, strides, and what follows the sum. The same for every version of its kernel, and its
 * first argument. It has no pointer, so that two instances of a network have the same bytes here.
 *
 * Every kernel of this directory takes (problem, x, w, bias, add, y): input, weights, a vector for each channel or column, a
 * tensor that is added, output.
 */
#ifndef VARIANTS_PROBLEM_H
#define VARIANTS_PROBLEM_H

#include <cstdint>

namespace variants {

enum activation : int32_t { ACT_NONE, ACT_RELU, ACT_GELU, ACT_TANH };

/* What is done to a sum: flags of problem.flags. */
enum : int32_t {
    WITH_BIAS = 1,   /* + bias[channel] */
    WITH_ADD = 2,    /* + add, a tensor with the output's shape */
    WITH_AFFINE = 4, /* (sum + add) * bias[channels + channel] + bias[channel], in place of WITH_BIAS */
};

struct problem {
    /* y[m][n] = sum over k of a[m][k] * b[k][n]. Convolutions: channels out, pixels, channels in x window. */
    int32_t m, n, k;
    int32_t batch;                    /* independent products; 1 in convolutions */
    int32_t a_row, b_k, b_n;          /* distance between rows of a, and between neighbours in k and n of b */
    int32_t y_row, add_row;           /* distance between rows */
    int32_t a_batch, b_batch, y_batch; /* distance between products */

    /* Convolutions and pools: x is [channels][height][width], y [channels][out_height][out_width]. */
    int32_t channels, height, width, out_height, out_width;
    int32_t window_rows, window_columns, stride, pad;
    int32_t window_magic, column_magic; /* for quotients without a division: see quotient() */

    int32_t flags, act;
    float scale; /* a factor of the sum: 1, or 1 / sqrt(size of a head) */

    /* Rows of softmax and layer norm, bags of embeddings, samples of the interaction: see operators.cuh. */
    int32_t rows, columns;
    int32_t tables, table_rows, lookups;
};

/**
 * For k * divisor < 65536, `magic` = 65536 / divisor + 1: then k * magic >> 16 is k / divisor. Shapes refuse convolutions
 * with larger windows.
 */
inline int32_t magic_of(int32_t divisor)
{
    return 65536 / divisor + 1;
}

inline problem no_problem()
{
    problem p = {};
    p.batch = 1;
    p.scale = 1;
    p.stride = 1;
    p.window_rows = p.window_columns = 1;
    return p;
}

} // namespace variants

#endif

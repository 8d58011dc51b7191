/*
 * Arguments of the networks' kernels. Feature maps are planes of floats, channel after channel, one image at a time.
 * Used by network.cpp, which launches them; knows nothing of layers' names, buffers or order.
 */
#ifndef BENCH_NETWORK_KERNELS_H
#define BENCH_NETWORK_KERNELS_H

#include "acs_dual.hpp"

namespace bench {

enum activation { LINEAR, RELU, SIGMOID, TANH };

/* Threads of a CTA, and what one CTA computes: network.cpp derives grids from these. */
enum {
    CONV_BLOCK = 256,
    CONV_TILE = 32,     /* a CTA of a dense convolution makes 32 channels of 32 pixels */
    FLAT_BLOCK = 256,   /* kernels whose threads do not work together */
    FLAT_ITEMS = 4,     /* elements of one such thread */
    ROWS_BLOCK = 256,
    ROWS_JOINED = 16,   /* threads of a row whose sums one thread joins */
    SOFTMAX_BLOCK = 128,
    DECIDE_BLOCK = 32,
    MAX_INPUTS = 16     /* of a sum */
};

/** y = act(scale * conv(x, w) + shift + add). Weights [in_c][kernel][kernel][out_c]; "same" padding. */
struct conv_args {
    unsigned threads;
    const float *x, *w, *fold; /* fold: out_c scales, then out_c shifts */
    const float *add;          /* NULL or of y's shape */
    float *y;
    int in_c, in_h, in_w, out_c, out_h, out_w, kernel, stride, act;
};

/** The same with one filter per channel, weights [c][kernel][kernel]. */
struct depthwise_args {
    unsigned threads, count; /* count: elements of y */
    const float *x, *w, *fold;
    float *y;
    int c, in_h, in_w, out_h, out_w, kernel, stride, act;
};

/** Largest value or mean of the pixels under a 3x3 window; the mean counts those inside of the image only. */
struct pool_args {
    unsigned threads, count;
    const float *x;
    float *y;
    int in_h, in_w, out_h, out_w, stride, largest;
};

/** y = act(scale * sum of factor[k] * x[k]); a factor that is NULL is 1. */
struct sum_args {
    unsigned threads, count;
    int inputs, act;
    float scale;
    const float *x[MAX_INPUTS], *factor[MAX_INPUTS];
    float *y;
};

/**
 * The same over the chosen inputs. Input k is chosen if its word is NULL, or not zero. If bit k of `unless` is set, zero
 * chooses it. The spare is the result if no input is chosen.
 */
struct chosen_sum_args {
    unsigned threads, count; /* count: elements of y */
    unsigned unless;
    sum_args sum;
    const uint32_t *word[MAX_INPUTS];
    const float *spare; /* or NULL */
};

/**
 * word[k]: whether x[k] is above 0. Of each `step` elements the largest is chosen if none is, with `fallback`. Behind
 * them a word that says whether one of the elements in `any` is chosen.
 */
struct decide_args {
    unsigned threads, count, step, fallback, any;
    const float *x;
    uint32_t *word;
};

/** y[c, pixel] = x[c, pixel] * factor[c] */
struct scale_args {
    unsigned threads, count, plane;
    const float *x, *factor;
    float *y;
};

/** y = x enlarged to out_h x out_w by repeating pixels `times` times each way. */
struct enlarge_args {
    unsigned threads, count;
    const float *x;
    float *y;
    int in_h, in_w, out_h, out_w, times;
};

/** y[i] = sum of routing[e] * experts[e][i] */
struct mix_args {
    unsigned threads, count;
    int experts;
    const float *routing, *weights;
    float *y;
};

/**
 * y[r] = act(sum of w[r][i] * x[i]), divided by the root mean square of x if `normalized`; without w, x has rows of its
 * own and y[r] is the mean of row r.
 */
struct rows_args {
    unsigned threads, rows, length;
    unsigned lanes; /* threads that share a row: a multiple of ROWS_JOINED that divides ROWS_BLOCK */
    int act, normalized;
    const float *x, *w;
    float *y;
};

struct softmax_args {
    unsigned threads, count;
    const float *x;
    float *y;
};

extern const acs_dual_kernel kernel_net_conv, kernel_net_depthwise, kernel_net_pool, kernel_net_sum, kernel_net_scale,
    kernel_net_enlarge, kernel_net_chosen_sum, kernel_net_decide, kernel_net_mix, kernel_net_rows, kernel_net_softmax;

} // namespace bench

#endif

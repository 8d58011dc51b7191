/**
 * @file acs_dnn.h
 * Layers of neural networks, forward, as ops of ACS: convolution with bias and activation, pooling, softmax, batch
 * normalisation, activation. In float. On a GPU by cuDNN, which is opened at run time. On the host backends by plain loops.
 *
 *     acs_dnn_convolution conv = {.size = sizeof conv, .x = {8, 64, 56, 56}, .filters = 64, .height = 3, .width = 3,
 *                                 .pad_h = 1, .pad_w = 1, .activation = ACS_DNN_RELU};
 *     acs_dnn_convolution_prepare(context, &conv);
 *     acs_dnn_convolve(context, &conv, x, filters, bias, y);
 *
 * **Tensors** are dense and have the order NCHW: element (n, c, h, w) is at ((n * C + c) * H + h) * W + w.
 *
 * **Footprint.** Inputs and parameters are `in`, the result is `out`, each as a whole. Where the result may be the input
 * (x == y) it is `inout`.
 *
 * **State and order.** Each slot has a handle, and a call makes its descriptors, so no state lasts from call to call. A
 * convolution's workspace is the slot's scratch memory. Layers that touch no common memory run at the same time.
 *
 * **Repeatable.** One algorithm is used for all convolutions (CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM), with float
 * arithmetic (no TF32), and pooling by maximum is the deterministic one: the same call gives the same bits.
 *
 * Errors and threads: acs_wrap.h. What fails while an op runs is ACS_ERR_HOST with a code for acs_dnn_code_text().
 */
#ifndef ACS_DNN_H
#define ACS_DNN_H

#include "acs_wrap.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sizes of a tensor, each at least 1. */
typedef struct acs_dnn_shape {
    int n, c, h, w;
} acs_dnn_shape;

typedef enum acs_dnn_activation {
    ACS_DNN_IDENTITY = 0,
    ACS_DNN_RELU = 1,
    ACS_DNN_SIGMOID = 2,
    ACS_DNN_TANH = 3
} acs_dnn_activation;

/* --------------------------------------------------------------------------------------------------------- convolution */

/**
 * A convolution. It belongs to the program, and no op keeps a pointer to it. Strides and dilations of 0 count as 1. Fields
 * below the line are written by acs_dnn_convolution_prepare; begin with zeros. If the program changes another one, it
 * prepares anew: an op whose workspace is too small for its convolution fails while it runs.
 */
typedef struct acs_dnn_convolution {
    size_t size;                     /**< sizeof(acs_dnn_convolution) */
    acs_dnn_shape x;
    int filters, height, width;      /**< the filter tensor is filters x x.c x height x width */
    int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
    acs_dnn_activation activation;   /**< identity or ReLU, behind the bias */
    /* ------------------------------------------------------------------------------------------------------------- */
    int prepared;                    /**< 1: acs_dnn_convolution_prepare has returned ACS_OK */
    acs_dnn_shape y;
    size_t workspace_bytes;          /**< scratch memory of the op; may be raised */
} acs_dnn_convolution;

/**
 * Compute the result's shape, and ask cuDNN how much memory the convolution needs. On a GPU it waits for an op of its own,
 * and is refused with ACS_ERR_STATE inside captures and groups.
 * @param context  NULL: the default context.
 * @retval ACS_ERR_ARGUMENT     a field is out of its range.
 * @retval ACS_ERR_UNSUPPORTED  cuDNN was not found.
 * @retval ACS_ERR_HOST         cuDNN refused the convolution; the text has its code. The context keeps no error.
 * Other errors are those of acs_call and acs_wait. After an error `prepared` is 0.
 */
acs_status acs_dnn_convolution_prepare(acs_context *context, acs_dnn_convolution *conv);

/*
 * Each operation has two functions: to queue (context NULL: the default one) and to prepare (acs_wrap_call). Structs are
 * copied. Pointers are memory of the context's backend.
 */

/** y = activation(x * filters + bias). A cross-correlation, as in all frameworks. @param bias  conv->filters; NULL: none */
acs_op acs_dnn_convolve(acs_context *context, const acs_dnn_convolution *conv, const float *x, const float *filters,
                        const float *bias, float *y);
acs_status acs_dnn_convolve_prepare(acs_wrap_call *call, const acs_dnn_convolution *conv, const float *x,
                                    const float *filters, const float *bias, float *y);

/* ------------------------------------------------------------------------------------------------------------- pooling */

typedef enum acs_dnn_pooling_mode {
    ACS_DNN_MAXIMUM = 0,
    ACS_DNN_AVERAGE_WITH_PADDING = 1,   /**< padded elements count as zeros */
    ACS_DNN_AVERAGE_WITHOUT_PADDING = 2 /**< the average of the elements that there are */
} acs_dnn_pooling_mode;

typedef struct acs_dnn_pooling {
    size_t size; /**< sizeof(acs_dnn_pooling) */
    acs_dnn_shape x;
    acs_dnn_pooling_mode mode;
    int height, width;      /**< of the window */
    int pad_h, pad_w;       /**< less than the window */
    int stride_h, stride_w; /**< 0 counts as 1 */
} acs_dnn_pooling;

/** The result's shape; zeros if the fields are out of their range (acs_wrap_last_error). */
acs_dnn_shape acs_dnn_pooling_shape(const acs_dnn_pooling *pooling);
/** y = pooled x. */
acs_op acs_dnn_pool(acs_context *context, const acs_dnn_pooling *pooling, const float *x, float *y);
acs_status acs_dnn_pool_prepare(acs_wrap_call *call, const acs_dnn_pooling *pooling, const float *x, float *y);

/* ------------------------------------------------------------------------------------------------- element by element */

/** Softmax over the channels of each (n, h, w). y may be x. */
acs_op acs_dnn_softmax(acs_context *context, acs_dnn_shape shape, const float *x, float *y);
acs_status acs_dnn_softmax_prepare(acs_wrap_call *call, acs_dnn_shape shape, const float *x, float *y);

/** y = activation(x), which is not the identity. y may be x. */
acs_op acs_dnn_activate(acs_context *context, acs_dnn_shape shape, acs_dnn_activation activation, const float *x, float *y);
acs_status acs_dnn_activate_prepare(acs_wrap_call *call, acs_dnn_shape shape, acs_dnn_activation activation,
                                    const float *x, float *y);

/** Parameters of batch normalisation, one of each for each channel. */
typedef struct acs_dnn_norm {
    const float *scale, *bias, *mean, *variance;
    double epsilon; /**< not negative; added to the variance */
} acs_dnn_norm;

/** y = scale * (x - mean) / sqrt(variance + epsilon) + bias, per channel (inference). y may be x. */
acs_op acs_dnn_normalise(acs_context *context, acs_dnn_shape shape, const acs_dnn_norm *norm, const float *x, float *y);
acs_status acs_dnn_normalise_prepare(acs_wrap_call *call, acs_dnn_shape shape, const acs_dnn_norm *norm, const float *x,
                                     float *y);

/* ------------------------------------------------------------------------------------------------ libraries and errors */

/**
 * Find cuDNN now; the first op on a CUDA context does so otherwise.
 * @retval ACS_ERR_UNSUPPORTED  it was not found, or the wrapper was built without it; acs_wrap_last_error has the text.
 */
acs_status acs_dnn_load(void);
/** What an op's code means (acs_error.native), in one sentence; as snprintf. */
size_t acs_dnn_code_text(int code, char *text, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ACS_DNN_H */

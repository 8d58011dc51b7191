/*
 * What the parts of acs_dnn share: a layer as data, and the two machines that run it. Not installed.
 *
 * acs_dnn.c checks arguments and makes footprints; host.c and cuda.c run the layer when ACS asks them to.
 */
#ifndef ACS_DNN_INTERNAL_H
#define ACS_DNN_INTERNAL_H

#include "acs_dnn.h"
#include "common/wrap.h"

typedef enum acs_dnn_kind {
    ACS_DNN_CONVOLVE,
    ACS_DNN_POOL,
    ACS_DNN_SOFTMAX,
    ACS_DNN_ACTIVATE,
    ACS_DNN_NORMALISE
} acs_dnn_kind;

/* A window that slides over the input: a filter, or what is pooled. */
typedef struct acs_dnn_window {
    int h, w, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
} acs_dnn_window;

/* The closure of an op. What a layer lacks is 0. */
typedef struct acs_dnn_args {
    acs_dnn_kind kind;
    int mode;             /* acs_dnn_activation, or of pooling acs_dnn_pooling_mode */
    acs_dnn_shape x_shape, y_shape;
    acs_dnn_window window;
    const float *x, *filters, *bias, *scale, *mean, *variance;
    float *y;
    double epsilon;
} acs_dnn_args;

/* A question to cuDNN, for acs_wrap_ask. */
typedef struct acs_dnn_question {
    acs_dnn_args args;
    size_t workspace_bytes;
    int code;
} acs_dnn_question;

static inline size_t acs_dnn_elements(acs_dnn_shape s)
{
    return (size_t)s.n * (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

/* Runs on the CPU, on the calling thread. */
void acs_dnn_host_run(const acs_dnn_args *args);

/* Issues to env->stream. @return 0 or a code */
int acs_dnn_cuda_run(const acs_call_env *env, const acs_dnn_args *args);
/* Fill in the bytes that a convolution needs. @return 0 or a code */
int acs_dnn_cuda_workspace(const acs_call_env *env, acs_dnn_question *question);
bool acs_dnn_cuda_load(const char **why);
const char *acs_dnn_cuda_text(int status);

#endif

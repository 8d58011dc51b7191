/*
 * Layers on a GPU: cuDNN, found at run time. Called by the thread that issues an op, with the slot's stream, scratch memory
 * and handle. Descriptors are made for each call; they are host memory alone. Never synchronises, but for what cuDNN does
 * when a handle is made. Built without cuDNN's header it only says so.
 */
#include "dnn/dnn.h"

#if ACS_DNN_HAVE_CUDA

#include <cudnn.h>

#define FUNCTIONS(X)                                                                                                   \
    X(cudnnCreate) X(cudnnDestroy) X(cudnnSetStream) X(cudnnGetErrorString) X(cudnnCreateTensorDescriptor)             \
    X(cudnnDestroyTensorDescriptor) X(cudnnSetTensor4dDescriptor) X(cudnnCreateFilterDescriptor)                       \
    X(cudnnDestroyFilterDescriptor) X(cudnnSetFilter4dDescriptor) X(cudnnCreateConvolutionDescriptor)                  \
    X(cudnnDestroyConvolutionDescriptor) X(cudnnSetConvolution2dDescriptor) X(cudnnSetConvolutionMathType)             \
    X(cudnnCreatePoolingDescriptor) X(cudnnDestroyPoolingDescriptor) X(cudnnSetPooling2dDescriptor)                    \
    X(cudnnCreateActivationDescriptor) X(cudnnDestroyActivationDescriptor) X(cudnnSetActivationDescriptor)             \
    X(cudnnGetConvolutionForwardWorkspaceSize) X(cudnnConvolutionForward) X(cudnnConvolutionBiasActivationForward)     \
    X(cudnnPoolingForward) X(cudnnSoftmaxForward) X(cudnnActivationForward) X(cudnnBatchNormalizationForwardInference)

static struct {
    FUNCTIONS(ACS_WRAP_MEMBER)
} g;
static const acs_wrap_function g_functions[] = {FUNCTIONS(ACS_WRAP_ROW)};
static const acs_wrap_library g_library = {"libcudnn.so." ACS_WRAP_TEXT(CUDNN_MAJOR), g_functions,
                                           sizeof g_functions / sizeof g_functions[0]};
static acs_wrap_loader g_loader = {&g_library, 1, 0, ""};

bool acs_dnn_cuda_load(const char **why)
{
    return acs_wrap_load(&g_loader, why);
}

const char *acs_dnn_cuda_text(int status)
{
    return g.cudnnGetErrorString((cudnnStatus_t)status);
}

static int code_of(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? 0 : ACS_WRAP_CODE_BASE + (int)status;
}

static int create(void **handle)
{
    cudnnHandle_t made = NULL;
    const int code = code_of(g.cudnnCreate(&made));
    *handle = made;
    return code;
}

static void destroy(void *handle)
{
    (void)g.cudnnDestroy(handle); /* the context closes: there is nobody to tell of a failure */
}

/* --------------------------------------------------------------------------------------------------------- descriptors */

/* What a layer may need, made for all: it is host memory alone. What was not made is NULL. */
typedef struct descriptors {
    cudnnTensorDescriptor_t x, y, channels;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t convolution;
    cudnnPoolingDescriptor_t pooling;
    cudnnActivationDescriptor_t activation;
} descriptors;

static int make_tensor(acs_dnn_shape s, cudnnTensorDescriptor_t *made)
{
    const int code = code_of(g.cudnnCreateTensorDescriptor(made));
    return code ? code
                : code_of(g.cudnnSetTensor4dDescriptor(*made, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s.n, s.c, s.h, s.w));
}

static int make_convolution(const acs_dnn_args *a, descriptors *d)
{
    const acs_dnn_window *const w = &a->window;
    int code = code_of(g.cudnnCreateFilterDescriptor(&d->filter));

    if (!code)
        code = code_of(g.cudnnSetFilter4dDescriptor(d->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, a->y_shape.c,
                                                    a->x_shape.c, w->h, w->w));
    if (!code)
        code = code_of(g.cudnnCreateConvolutionDescriptor(&d->convolution));
    if (!code)
        code = code_of(g.cudnnSetConvolution2dDescriptor(d->convolution, w->pad_h, w->pad_w, w->stride_h, w->stride_w,
                                                         w->dilation_h, w->dilation_w, CUDNN_CROSS_CORRELATION,
                                                         CUDNN_DATA_FLOAT));
    return code ? code : code_of(g.cudnnSetConvolutionMathType(d->convolution, CUDNN_FMA_MATH));
}

static int make_pooling(const acs_dnn_args *a, descriptors *d)
{
    static const cudnnPoolingMode_t modes[] = {CUDNN_POOLING_MAX_DETERMINISTIC,
                                               CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                               CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING};
    const acs_dnn_window *const w = &a->window;
    const int code = code_of(g.cudnnCreatePoolingDescriptor(&d->pooling));

    return code ? code
                : code_of(g.cudnnSetPooling2dDescriptor(d->pooling, modes[a->mode], CUDNN_NOT_PROPAGATE_NAN, w->h, w->w,
                                                        w->pad_h, w->pad_w, w->stride_h, w->stride_w));
}

static int make_activation(const acs_dnn_args *a, descriptors *d)
{
    static const cudnnActivationMode_t modes[] = {CUDNN_ACTIVATION_IDENTITY, CUDNN_ACTIVATION_RELU,
                                                  CUDNN_ACTIVATION_SIGMOID, CUDNN_ACTIVATION_TANH};
    const int code = code_of(g.cudnnCreateActivationDescriptor(&d->activation));

    return code ? code
                : code_of(g.cudnnSetActivationDescriptor(d->activation, modes[a->mode], CUDNN_NOT_PROPAGATE_NAN, 0));
}

static int make_descriptors(const acs_dnn_args *a, descriptors *d)
{
    int code = make_tensor(a->x_shape, &d->x);

    if (!code)
        code = make_tensor(a->y_shape, &d->y);
    if (!code)
        code = make_tensor((acs_dnn_shape){1, a->y_shape.c, 1, 1}, &d->channels);
    if (!code && a->kind == ACS_DNN_CONVOLVE)
        code = make_convolution(a, d);
    if (!code && a->kind == ACS_DNN_POOL)
        code = make_pooling(a, d);
    if (!code && (a->kind == ACS_DNN_CONVOLVE || a->kind == ACS_DNN_ACTIVATE))
        code = make_activation(a, d);
    return code;
}

/* Host memory alone: failures leave nothing to do. */
static void release_descriptors(const descriptors *d)
{
    const cudnnTensorDescriptor_t tensors[] = {d->x, d->y, d->channels};

    for (int i = 0; i < 3; i++)
        if (tensors[i])
            (void)g.cudnnDestroyTensorDescriptor(tensors[i]);
    if (d->filter)
        (void)g.cudnnDestroyFilterDescriptor(d->filter);
    if (d->convolution)
        (void)g.cudnnDestroyConvolutionDescriptor(d->convolution);
    if (d->pooling)
        (void)g.cudnnDestroyPoolingDescriptor(d->pooling);
    if (d->activation)
        (void)g.cudnnDestroyActivationDescriptor(d->activation);
}

/* -------------------------------------------------------------------------------------------------------------- layers */

static const cudnnConvolutionFwdAlgo_t g_algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
static const float g_one = 1, g_zero = 0; /* cuDNN reads its scalars from the host while it is called */

static cudnnStatus_t workspace_bytes(cudnnHandle_t h, const descriptors *d, size_t *bytes)
{
    return g.cudnnGetConvolutionForwardWorkspaceSize(h, d->x, d->filter, d->convolution, d->y, g_algorithm, bytes);
}

static cudnnStatus_t activate(cudnnHandle_t h, const acs_dnn_args *a, const descriptors *d, const float *x,
                              cudnnTensorDescriptor_t x_shape)
{
    return g.cudnnActivationForward(h, d->activation, &g_one, x_shape, x, &g_zero, d->y, a->y);
}

/* Without a bias, the activation is a second kernel in place. */
static cudnnStatus_t convolve_plainly(cudnnHandle_t h, const acs_dnn_args *a, const descriptors *d, void *workspace,
                                      size_t bytes)
{
    const cudnnStatus_t status = g.cudnnConvolutionForward(h, &g_one, d->x, a->x, d->filter, a->filters, d->convolution,
                                                           g_algorithm, workspace, bytes, &g_zero, d->y, a->y);
    return status != CUDNN_STATUS_SUCCESS || a->mode == ACS_DNN_IDENTITY ? status : activate(h, a, d, a->y, d->y);
}

static int convolve(const acs_call_env *env, cudnnHandle_t h, const acs_dnn_args *a, const descriptors *d)
{
    size_t bytes = 0;
    const int code = code_of(workspace_bytes(h, d, &bytes));

    if (code)
        return code;
    if (bytes > env->scratch_bytes)
        return ACS_WRAP_CODE_SCRATCH;
    if (!a->bias)
        return code_of(convolve_plainly(h, a, d, env->scratch, bytes));
    return code_of(g.cudnnConvolutionBiasActivationForward(h, &g_one, d->x, a->x, d->filter, a->filters, d->convolution,
                                                           g_algorithm, env->scratch, bytes, &g_zero, d->y, a->y,
                                                           d->channels, a->bias, d->activation, d->y, a->y));
}

static int issue(const acs_call_env *env, cudnnHandle_t h, const acs_dnn_args *a, const descriptors *d)
{
    switch (a->kind) {
    case ACS_DNN_CONVOLVE: return convolve(env, h, a, d);
    case ACS_DNN_POOL: return code_of(g.cudnnPoolingForward(h, d->pooling, &g_one, d->x, a->x, &g_zero, d->y, a->y));
    case ACS_DNN_SOFTMAX:
        return code_of(g.cudnnSoftmaxForward(h, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &g_one, d->x, a->x,
                                             &g_zero, d->y, a->y));
    case ACS_DNN_ACTIVATE: return code_of(activate(h, a, d, a->x, d->x));
    case ACS_DNN_NORMALISE:
        return code_of(g.cudnnBatchNormalizationForwardInference(h, CUDNN_BATCHNORM_SPATIAL, &g_one, &g_zero, d->x, a->x,
                                                                 d->y, a->y, d->channels, a->scale, a->bias, a->mean,
                                                                 a->variance, a->epsilon));
    }
    return ACS_WRAP_CODE_LIBRARY;
}

int acs_dnn_cuda_run(const acs_call_env *env, const acs_dnn_args *args)
{
    static const acs_wrap_handle_type type = {create, destroy};
    descriptors d = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    const char *why;
    void *handle;
    int code;

    if (!acs_dnn_cuda_load(&why))
        return ACS_WRAP_CODE_LIBRARY;
    code = acs_wrap_handle(env, &type, &handle);
    if (!code)
        code = code_of(g.cudnnSetStream(handle, env->stream));
    if (!code)
        code = make_descriptors(args, &d);
    if (!code)
        code = issue(env, handle, args, &d);
    release_descriptors(&d);
    return code;
}

int acs_dnn_cuda_workspace(const acs_call_env *env, acs_dnn_question *question)
{
    descriptors d = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    void *handle = NULL;
    int code = create(&handle);

    if (code)
        return code;
    code = code_of(g.cudnnSetStream(handle, env->stream));
    if (!code)
        code = make_descriptors(&question->args, &d);
    if (!code)
        code = code_of(workspace_bytes(handle, &d, &question->workspace_bytes));
    release_descriptors(&d);
    destroy(handle);
    return code;
}

#else /* no cuDNN */

bool acs_dnn_cuda_load(const char **why)
{
    *why = "this build of acs_dnn has no cuDNN: its header was not there, or was not wanted";
    return false;
}

const char *acs_dnn_cuda_text(int status)
{
    (void)status;
    return NULL;
}

int acs_dnn_cuda_run(const acs_call_env *env, const acs_dnn_args *args)
{
    (void)env;
    (void)args;
    return ACS_WRAP_CODE_LIBRARY;
}

int acs_dnn_cuda_workspace(const acs_call_env *env, acs_dnn_question *question)
{
    (void)env;
    (void)question;
    return ACS_WRAP_CODE_LIBRARY;
}

#endif

/*
 * The calls of acs_dnn.h: arguments are checked, shapes computed, footprints made from them, and ops queued. Called by
 * programs from any thread. Computes nothing else: dnn/host.c and dnn/cuda.c do, when the op runs.
 */
#include "acs_dnn.h"
#include "dnn/dnn.h"

ACS_WRAP_ROOM(acs_dnn_args);

static const acs_wrap_codes g_codes = {"cuDNN", "cudnnStatus_t", acs_dnn_cuda_load, acs_dnn_cuda_text, NULL};

size_t acs_dnn_code_text(int code, char *text, size_t bytes)
{
    return acs_wrap_code_text(&g_codes, code, text, bytes);
}

acs_status acs_dnn_load(void)
{
    static const acs_site site = {"acs_dnn_load", NULL, 0};
    return acs_wrap_load_status(acs_dnn_cuda_load, &site);
}

/* -------------------------------------------------------------------------------------------------------------- checks */

static acs_status check_shape(acs_dnn_shape s, const acs_site *site)
{
    size_t elements = sizeof(float);

    if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a shape is %d x %d x %d x %d; each must be at least 1", s.n, s.c,
                             s.h, s.w);
    if (__builtin_mul_overflow(elements, (size_t)s.n, &elements) ||
        __builtin_mul_overflow(elements, (size_t)s.c, &elements) ||
        __builtin_mul_overflow(elements, (size_t)s.h, &elements) ||
        __builtin_mul_overflow(elements, (size_t)s.w, &elements) || elements > SIZE_MAX / 2)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a shape is %d x %d x %d x %d; memory cannot have so many", s.n, s.c,
                             s.h, s.w);
    return ACS_OK;
}

static acs_status check_window(const acs_dnn_window *w, const acs_site *site)
{
    if (w->h < 1 || w->w < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "the window is %d x %d; it must be at least 1 x 1", w->h, w->w);
    if (w->pad_h < 0 || w->pad_w < 0)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "pad_h is %d and pad_w %d; they must not be negative", w->pad_h,
                             w->pad_w);
    if (w->stride_h < 1 || w->stride_w < 1 || w->dilation_h < 1 || w->dilation_w < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "a stride or a dilation is negative");
    return ACS_OK;
}

/* How many places a window has along one dimension; less than 1: none. */
static int places(int size, int window, int pad, int stride, int dilation)
{
    const int64_t room = (int64_t)size + 2 * (int64_t)pad - ((int64_t)dilation * (window - 1) + 1);
    const int64_t count = room < 0 ? 0 : room / stride + 1;
    return count > INT32_MAX ? 0 : (int)count;
}

static acs_dnn_shape slide(acs_dnn_shape x, int channels, const acs_dnn_window *w)
{
    return (acs_dnn_shape){x.n, channels, places(x.h, w->h, w->pad_h, w->stride_h, w->dilation_h),
                           places(x.w, w->w, w->pad_w, w->stride_w, w->dilation_w)};
}

static acs_status check_slide(acs_dnn_shape y, const acs_site *site)
{
    if (y.h < 1 || y.w < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "the window does not fit into the padded input");
    return check_shape(y, site);
}

static int at_least_one(int value)
{
    return value == 0 ? 1 : value;
}

/* ---------------------------------------------------------------------------------------------------------------- ops */

static int run(const acs_call_env *env, void *closure)
{
    if (env->device >= 0)
        return acs_dnn_cuda_run(env, closure);
    acs_dnn_host_run(closure);
    return 0;
}

/* What a layer reads beside x. */
static size_t name_parameters(const acs_dnn_args *a, acs_segment *s)
{
    const uint64_t channels = (uint64_t)a->y_shape.c * sizeof(float);
    const float *const each[] = {a->bias, a->scale, a->mean, a->variance};
    size_t count = 0;

    if (a->filters)
        s[count++] = ACS_IN(a->filters, channels * (uint64_t)a->x_shape.c * (uint64_t)a->window.h * (uint64_t)a->window.w);
    for (int i = 0; i < 4; i++)
        if (each[i])
            s[count++] = ACS_IN(each[i], channels);
    return count;
}

static acs_status prepare(acs_wrap_call *call, const acs_site *site, const acs_dnn_args *args, size_t scratch_bytes)
{
    static const char place_key = 0; /* names the places that hold the handles */
    static const acs_wrap_kind kind = {acs_dnn_cuda_load, run, &place_key, acs_wrap_handles_destroy};
    const uint64_t x_bytes = acs_dnn_elements(args->x_shape) * sizeof(float);
    const uint64_t y_bytes = acs_dnn_elements(args->y_shape) * sizeof(float);
    const bool may_be_in_place = args->kind != ACS_DNN_CONVOLVE && args->kind != ACS_DNN_POOL;
    size_t count = 0;

    if (!call || !args->x || !args->y)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is NULL", !call ? "call" : !args->x ? "x" : "y");
    if (args->x == args->y && !may_be_in_place)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "x equals y; this layer needs separate memory");
    if (args->x == args->y)
        call->segments[count++] = ACS_INOUT(args->y, y_bytes);
    else {
        call->segments[count++] = ACS_IN(args->x, x_bytes);
        call->segments[count++] = ACS_OUT(args->y, y_bytes);
    }
    count += name_parameters(args, call->segments + count);
    acs_wrap_fill(call, &kind, site, args, sizeof *args, count,
                  acs_wrap_scratch(scratch_bytes));
    return ACS_OK;
}

/* --------------------------------------------------------------------------------------------------------- convolution */

static acs_dnn_args convolution_args(const acs_dnn_convolution *c)
{
    acs_dnn_args a = {.kind = ACS_DNN_CONVOLVE, .mode = (int)c->activation, .x_shape = c->x};

    a.window = (acs_dnn_window){c->height, c->width, c->pad_h, c->pad_w, at_least_one(c->stride_h),
                                at_least_one(c->stride_w), at_least_one(c->dilation_h), at_least_one(c->dilation_w)};
    return a;
}

static acs_status check_convolution(const acs_dnn_convolution *c, acs_dnn_args *a, const acs_site *site)
{
    if (c->size != sizeof *c)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "conv.size is %zu; it must be %zu", c->size, sizeof *c);
    if (c->activation != ACS_DNN_IDENTITY && c->activation != ACS_DNN_RELU)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "activation is %d; it must be 0 or 1", (int)c->activation);
    if (c->filters < 1)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "filters is %d; it must be at least 1", c->filters);
    *a = convolution_args(c);
    if (check_shape(c->x, site) != ACS_OK || check_window(&a->window, site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    a->y_shape = slide(c->x, c->filters, &a->window);
    if (check_slide(a->y_shape, site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    return check_shape((acs_dnn_shape){c->filters, c->x.c, c->height, c->width}, site);
}

static int ask(const acs_call_env *env, void *closure)
{
    acs_dnn_question *const q = *(acs_dnn_question **)closure;
    q->code = acs_dnn_cuda_workspace(env, q);
    return 0;
}

acs_status acs_dnn_convolution_prepare(acs_context *context, acs_dnn_convolution *conv)
{
    static const acs_site site = {"acs_dnn_convolution_prepare", NULL, 0};
    acs_dnn_question q = {.workspace_bytes = 0};
    acs_status status;
    char text[200];

    if (!conv)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &site, "conv is NULL");
    conv->prepared = 0;
    if (check_convolution(conv, &q.args, &site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    status = acs_wrap_ask(context, &site, ask, &q, sizeof q, acs_dnn_cuda_load);
    if (status == ACS_OK && q.code) {
        (void)acs_dnn_code_text(q.code, text, sizeof text);
        status = acs_wrap_fail(ACS_ERR_HOST, &site, "%s", text);
    }
    if (status == ACS_OK) {
        conv->y = q.args.y_shape;
        conv->workspace_bytes = q.workspace_bytes;
        conv->prepared = 1;
    }
    return status;
}

static const acs_site g_convolve_site = {"acs_dnn_convolve", NULL, 0};

acs_status acs_dnn_convolve_prepare(acs_wrap_call *call, const acs_dnn_convolution *conv, const float *x,
                                    const float *filters, const float *bias, float *y)
{
    acs_dnn_args a;

    if (!conv || !filters)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_convolve_site, "%s is NULL", conv ? "filters" : "conv");
    if (!conv->prepared)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_convolve_site,
                             "conv is not prepared; call acs_dnn_convolution_prepare before");
    if (check_convolution(conv, &a, &g_convolve_site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    a.x = x;
    a.filters = filters;
    a.bias = bias;
    a.y = y;
    return prepare(call, &g_convolve_site, &a, conv->workspace_bytes);
}

acs_op acs_dnn_convolve(acs_context *context, const acs_dnn_convolution *conv, const float *x, const float *filters,
                        const float *bias, float *y)
{
    acs_wrap_call call;
    const acs_status prepared = acs_dnn_convolve_prepare(&call, conv, x, filters, bias, y);
    return acs_wrap_queue(context, &call.params, &g_convolve_site, prepared, acs_dnn_cuda_load);
}

/* ------------------------------------------------------------------------------------------------------------- pooling */

static const acs_site g_pool_site = {"acs_dnn_pool", NULL, 0};

static acs_status check_pooling(const acs_dnn_pooling *p, acs_dnn_args *a, const acs_site *site)
{
    if (p->size != sizeof *p)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "pooling.size is %zu; it must be %zu", p->size, sizeof *p);
    if ((unsigned)p->mode > ACS_DNN_AVERAGE_WITHOUT_PADDING)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "mode is %d; it must be 0, 1 or 2", (int)p->mode);
    *a = (acs_dnn_args){.kind = ACS_DNN_POOL, .mode = (int)p->mode, .x_shape = p->x};
    a->window = (acs_dnn_window){p->height, p->width, p->pad_h, p->pad_w, at_least_one(p->stride_h),
                                 at_least_one(p->stride_w), 1, 1};
    if (check_shape(p->x, site) != ACS_OK || check_window(&a->window, site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    if (p->pad_h >= p->height || p->pad_w >= p->width)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "pad_h is %d and pad_w %d; they must be less than the window",
                             p->pad_h, p->pad_w);
    a->y_shape = slide(p->x, p->x.c, &a->window);
    return check_slide(a->y_shape, site);
}

acs_dnn_shape acs_dnn_pooling_shape(const acs_dnn_pooling *pooling)
{
    static const acs_site site = {"acs_dnn_pooling_shape", NULL, 0};
    acs_dnn_args a;

    if (!pooling || check_pooling(pooling, &a, &site) != ACS_OK)
        return (acs_dnn_shape){0, 0, 0, 0};
    return a.y_shape;
}

acs_status acs_dnn_pool_prepare(acs_wrap_call *call, const acs_dnn_pooling *pooling, const float *x, float *y)
{
    acs_dnn_args a;

    if (!pooling)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_pool_site, "pooling is NULL");
    if (check_pooling(pooling, &a, &g_pool_site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    a.x = x;
    a.y = y;
    return prepare(call, &g_pool_site, &a, 0);
}

acs_op acs_dnn_pool(acs_context *context, const acs_dnn_pooling *pooling, const float *x, float *y)
{
    acs_wrap_call call;
    const acs_status prepared = acs_dnn_pool_prepare(&call, pooling, x, y);
    return acs_wrap_queue(context, &call.params, &g_pool_site, prepared, acs_dnn_cuda_load);
}

/* ------------------------------------------------------------------------------------------------- element by element */

static const acs_site g_softmax_site = {"acs_dnn_softmax", NULL, 0}, g_activate_site = {"acs_dnn_activate", NULL, 0},
                      g_normalise_site = {"acs_dnn_normalise", NULL, 0};

acs_status acs_dnn_softmax_prepare(acs_wrap_call *call, acs_dnn_shape shape, const float *x, float *y)
{
    const acs_dnn_args a = {.kind = ACS_DNN_SOFTMAX, .x_shape = shape, .y_shape = shape, .x = x, .y = y};
    return check_shape(shape, &g_softmax_site) == ACS_OK ? prepare(call, &g_softmax_site, &a, 0) : ACS_ERR_ARGUMENT;
}

acs_op acs_dnn_softmax(acs_context *context, acs_dnn_shape shape, const float *x, float *y)
{
    acs_wrap_call call;
    const acs_status prepared = acs_dnn_softmax_prepare(&call, shape, x, y);
    return acs_wrap_queue(context, &call.params, &g_softmax_site, prepared, acs_dnn_cuda_load);
}

acs_status acs_dnn_activate_prepare(acs_wrap_call *call, acs_dnn_shape shape, acs_dnn_activation activation,
                                    const float *x, float *y)
{
    const acs_dnn_args a = {.kind = ACS_DNN_ACTIVATE, .mode = (int)activation, .x_shape = shape, .y_shape = shape, .x = x,
                            .y = y};

    if (activation != ACS_DNN_RELU && activation != ACS_DNN_SIGMOID && activation != ACS_DNN_TANH)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_activate_site, "activation is %d; it must be 1, 2 or 3",
                             (int)activation);
    return check_shape(shape, &g_activate_site) == ACS_OK ? prepare(call, &g_activate_site, &a, 0) : ACS_ERR_ARGUMENT;
}

acs_op acs_dnn_activate(acs_context *context, acs_dnn_shape shape, acs_dnn_activation activation, const float *x, float *y)
{
    acs_wrap_call call;
    const acs_status prepared = acs_dnn_activate_prepare(&call, shape, activation, x, y);
    return acs_wrap_queue(context, &call.params, &g_activate_site, prepared, acs_dnn_cuda_load);
}

acs_status acs_dnn_normalise_prepare(acs_wrap_call *call, acs_dnn_shape shape, const acs_dnn_norm *norm, const float *x,
                                     float *y)
{
    acs_dnn_args a = {.kind = ACS_DNN_NORMALISE, .x_shape = shape, .y_shape = shape, .x = x, .y = y};

    if (!norm || !norm->scale || !norm->bias || !norm->mean || !norm->variance)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_normalise_site, "norm, or one of its pointers, is NULL");
    if (!(norm->epsilon >= 0))
        return acs_wrap_fail(ACS_ERR_ARGUMENT, &g_normalise_site, "epsilon is %g; it must not be negative", norm->epsilon);
    a.scale = norm->scale;
    a.bias = norm->bias;
    a.mean = norm->mean;
    a.variance = norm->variance;
    a.epsilon = norm->epsilon;
    return check_shape(shape, &g_normalise_site) == ACS_OK ? prepare(call, &g_normalise_site, &a, 0) : ACS_ERR_ARGUMENT;
}

acs_op acs_dnn_normalise(acs_context *context, acs_dnn_shape shape, const acs_dnn_norm *norm, const float *x, float *y)
{
    acs_wrap_call call;
    const acs_status prepared = acs_dnn_normalise_prepare(&call, shape, norm, x, y);
    return acs_wrap_queue(context, &call.params, &g_normalise_site, prepared, acs_dnn_cuda_load);
}

/*
 * Layers on the CPU, for the host backends: loops as the definitions have them. Their order does not depend on who runs
 * them, so the same call gives the same bits. Called when an op runs, or by whoever issues it by other means. Checks
 * nothing.
 */
#include "dnn/dnn.h"

#include <math.h>

static size_t at(acs_dnn_shape s, int n, int c, int h, int w)
{
    return (((size_t)n * (size_t)s.c + (size_t)c) * (size_t)s.h + (size_t)h) * (size_t)s.w + (size_t)w;
}

static float activated(int activation, float x)
{
    switch ((acs_dnn_activation)activation) {
    case ACS_DNN_IDENTITY: break;
    case ACS_DNN_RELU: return x > 0 ? x : 0;
    case ACS_DNN_SIGMOID: return 1 / (1 + expf(-x));
    case ACS_DNN_TANH: return tanhf(x);
    }
    return x;
}

/* The place in the input that element (i, j) of the window has for the result's (h, w); false: it is padding. */
static bool place_of(const acs_dnn_args *a, int h, int w, int i, int j, int *row, int *column)
{
    *row = h * a->window.stride_h - a->window.pad_h + i * a->window.dilation_h;
    *column = w * a->window.stride_w - a->window.pad_w + j * a->window.dilation_w;
    return *row >= 0 && *row < a->x_shape.h && *column >= 0 && *column < a->x_shape.w;
}

/* One element of the result, from one channel. */
static float correlate(const acs_dnn_args *a, int n, int k, int c, int h, int w)
{
    const acs_dnn_shape filter = {a->y_shape.c, a->x_shape.c, a->window.h, a->window.w};
    float sum = 0;
    int row, column;

    for (int i = 0; i < a->window.h; i++)
        for (int j = 0; j < a->window.w; j++)
            if (place_of(a, h, w, i, j, &row, &column))
                sum += a->x[at(a->x_shape, n, c, row, column)] * a->filters[at(filter, k, c, i, j)];
    return sum;
}

static float convolved(const acs_dnn_args *a, int n, int k, int h, int w)
{
    float sum = 0;

    for (int c = 0; c < a->x_shape.c; c++)
        sum += correlate(a, n, k, c, h, w);
    return activated(a->mode, a->bias ? sum + a->bias[k] : sum);
}

static float pooled(const acs_dnn_args *a, int n, int c, int h, int w)
{
    float sum = 0, most = -INFINITY;
    int row, column, count = 0;

    for (int i = 0; i < a->window.h; i++)
        for (int j = 0; j < a->window.w; j++)
            if (place_of(a, h, w, i, j, &row, &column)) {
                const float x = a->x[at(a->x_shape, n, c, row, column)];
                most = x > most ? x : most;
                sum += x;
                count++;
            }
    if (a->mode == ACS_DNN_MAXIMUM)
        return most;
    return sum / (float)(a->mode == ACS_DNN_AVERAGE_WITH_PADDING ? a->window.h * a->window.w : count);
}

static float normalised(const acs_dnn_args *a, int n, int c, int h, int w)
{
    const float deviation = sqrtf(a->variance[c] + (float)a->epsilon);
    return a->scale[c] * (a->x[at(a->x_shape, n, c, h, w)] - a->mean[c]) / deviation + a->bias[c];
}

/* All channels of one place; y may be x. */
static void softmax(const acs_dnn_args *a, int n, int h, int w)
{
    float most = -INFINITY, sum = 0;

    for (int c = 0; c < a->x_shape.c; c++)
        most = fmaxf(most, a->x[at(a->x_shape, n, c, h, w)]);
    for (int c = 0; c < a->x_shape.c; c++)
        sum += expf(a->x[at(a->x_shape, n, c, h, w)] - most);
    for (int c = 0; c < a->x_shape.c; c++)
        a->y[at(a->x_shape, n, c, h, w)] = expf(a->x[at(a->x_shape, n, c, h, w)] - most) / sum;
}

static void element(const acs_dnn_args *a, int n, int c, int h, int w)
{
    float *const y = &a->y[at(a->y_shape, n, c, h, w)];

    switch (a->kind) {
    case ACS_DNN_CONVOLVE: *y = convolved(a, n, c, h, w); break;
    case ACS_DNN_POOL: *y = pooled(a, n, c, h, w); break;
    case ACS_DNN_ACTIVATE: *y = activated(a->mode, a->x[at(a->x_shape, n, c, h, w)]); break;
    case ACS_DNN_NORMALISE: *y = normalised(a, n, c, h, w); break;
    case ACS_DNN_SOFTMAX:
        if (c == 0)
            softmax(a, n, h, w);
        break;
    }
}

void acs_dnn_host_run(const acs_dnn_args *a)
{
    for (int n = 0; n < a->y_shape.n; n++)
        for (int c = 0; c < a->y_shape.c; c++)
            for (int h = 0; h < a->y_shape.h; h++)
                for (int w = 0; w < a->y_shape.w; w++)
                    element(a, n, c, h, w);
}

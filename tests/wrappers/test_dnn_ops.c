/*
 * acs_dnn on the CPU: layers against numbers that are worked out here, footprints, errors, and layers that are ops.
 */
#include "host_call.h"

#include "acs_dnn.h"

#include <math.h>

static acs_context *g_context;

static int start(void **state)
{
    (void)state;
    g_context = host_open();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return acs_close(g_context) != ACS_OK;
}

static void run(const acs_wrap_call *call)
{
    assert_int_equal(host_run(call), 0);
}

/* Two channels of 3 x 4, in one image; padded on top and below alone. */
static acs_dnn_convolution convolution(void)
{
    acs_dnn_convolution c = {.size = sizeof c, .x = {1, 2, 3, 4}, .filters = 2, .height = 2, .width = 3, .pad_h = 1,
                             .stride_h = 2, .activation = ACS_DNN_RELU};
    assert_int_equal(acs_dnn_convolution_prepare(g_context, &c), ACS_OK);
    return c;
}

/* The definition with signed places, for that convolution. */
static float convolved(const float *x, const float *filters, const float *bias, int k, int h, int w)
{
    float sum = bias ? bias[k] : 0;
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++) {
                const int row = 2 * h - 1 + i;
                if (row >= 0 && row < 3)
                    sum += x[(c * 3 + row) * 4 + w + j] * filters[((k * 2 + c) * 2 + i) * 3 + j];
            }
    return fmaxf(sum, 0);
}

static void convolutions_are_right(void **state)
{
    (void)state;
    const acs_dnn_convolution c = convolution();
    float x[24], filters[24], y[8];
    const float bias[2] = {0.5f, -2};
    acs_wrap_call call;
    assert_true(c.y.n == 1 && c.y.c == 2 && c.y.h == 2 && c.y.w == 2);
    for (int i = 0; i < 24; i++) {
        x[i] = (float)(i * 5 % 7 - 3);
        filters[i] = (float)(i * 3 % 5 - 2);
    }
    for (int with_bias = 0; with_bias < 2; with_bias++) {
        assert_int_equal(acs_dnn_convolve_prepare(&call, &c, x, filters, with_bias ? bias : NULL, y), ACS_OK);
        run(&call);
        for (int i = 0; i < 8; i++)
            assert_true(y[i] == convolved(x, filters, with_bias ? bias : NULL, i / 4, i / 2 % 2, i % 2));
    }
}

static void pooling_is_right(void **state)
{
    (void)state;
    const float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const float wanted[3][4] = {{1, 3, 7, 9}, {0.25f, 1.25f, 2.75f, 7}, {1, 2.5f, 5.5f, 7}};
    for (int mode = 0; mode < 3; mode++) {
        const acs_dnn_pooling p = {.size = sizeof p, .x = {1, 1, 3, 3}, .mode = (acs_dnn_pooling_mode)mode, .height = 2,
                                   .width = 2, .pad_h = 1, .pad_w = 1, .stride_h = 2, .stride_w = 2};
        const acs_dnn_shape shape = acs_dnn_pooling_shape(&p);
        float y[4];
        acs_wrap_call call;
        assert_true(shape.h == 2 && shape.w == 2);
        assert_int_equal(acs_dnn_pool_prepare(&call, &p, x, y), ACS_OK);
        run(&call);
        for (int i = 0; i < 4; i++)
            assert_true(y[i] == wanted[mode][i]);
    }
}

static void elements_are_right(void **state)
{
    (void)state;
    const acs_dnn_shape shape = {1, 2, 1, 2};
    const float x[4] = {1, -2, 3, 0}, scale[2] = {2, 3}, bias[2] = {1, 0}, mean[2] = {0, 1}, variance[2] = {3, 0};
    const acs_dnn_norm norm = {scale, bias, mean, variance, 1};
    float y[4];
    acs_wrap_call call;
    assert_int_equal(acs_dnn_softmax_prepare(&call, shape, x, y), ACS_OK);
    run(&call);
    for (int i = 0; i < 2; i++) {
        assert_true(fabsf(y[i] + y[i + 2] - 1) < 1e-6f);
        assert_true(fabsf(y[i] / y[i + 2] - expf(x[i] - x[i + 2])) < 1e-5f);
    }
    assert_int_equal(acs_dnn_activate_prepare(&call, shape, ACS_DNN_TANH, x, y), ACS_OK);
    run(&call);
    assert_true(y[1] == tanhf(-2));
    assert_int_equal(acs_dnn_normalise_prepare(&call, shape, &norm, x, y), ACS_OK);
    run(&call);
    assert_true(y[0] == 2 && y[1] == -1 && y[2] == 6 && y[3] == -3);
}

static void footprints_are_whole_tensors(void **state)
{
    (void)state;
    const acs_dnn_convolution c = convolution();
    const acs_dnn_shape shape = {2, 3, 4, 5};
    float x[240], f[24], b[3], y[120];
    const acs_dnn_norm norm = {b, b, f, f, 0};
    acs_wrap_call call;
    assert_int_equal(acs_dnn_convolve_prepare(&call, &c, x, f, b, y), ACS_OK);
    HOST_USES(&call, ACS_IN(x, 96), ACS_OUT(y, 32), ACS_IN(f, 96), ACS_IN(b, 8));
    assert_int_equal(acs_dnn_softmax_prepare(&call, shape, x, x), ACS_OK);
    HOST_USES(&call, ACS_INOUT(x, 480));
    assert_int_equal(acs_dnn_normalise_prepare(&call, shape, &norm, x, y), ACS_OK);
    HOST_USES(&call, ACS_IN(x, 480), ACS_OUT(y, 480), ACS_IN(b, 12), ACS_IN(b, 12), ACS_IN(f, 12), ACS_IN(f, 12));
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    acs_dnn_convolution c = convolution();
    const acs_dnn_pooling p = {.size = sizeof p, .x = {1, 1, 3, 3}, .height = 2, .width = 2, .pad_h = 2};
    float x[24] = {0};
    acs_wrap_call call;
    host_refused(acs_dnn_convolve_prepare(&call, &c, x, NULL, NULL, x), "acs_dnn_convolve: filters is NULL");
    host_refused(acs_dnn_convolve_prepare(&call, &c, x, x, NULL, x),
                 "acs_dnn_convolve: x equals y; this layer needs separate memory");
    c.height = 6;
    host_refused(acs_dnn_convolution_prepare(g_context, &c),
                 "acs_dnn_convolution_prepare: the window does not fit into the padded input");
    host_refused(acs_dnn_convolve_prepare(&call, &c, x, x, NULL, NULL),
                 "acs_dnn_convolve: conv is not prepared; call acs_dnn_convolution_prepare before");
    host_refused(acs_dnn_pool_prepare(&call, &p, x, x),
                 "acs_dnn_pool: pad_h is 2 and pad_w 0; they must be less than the window");
    host_refused(acs_dnn_softmax_prepare(&call, (acs_dnn_shape){1, 0, 1, 1}, x, x),
                 "acs_dnn_softmax: a shape is 1 x 0 x 1 x 1; each must be at least 1");
    host_refused(acs_dnn_activate_prepare(&call, (acs_dnn_shape){1, 1, 1, 1}, ACS_DNN_IDENTITY, x, x),
                 "acs_dnn_activate: activation is 0; it must be 1, 2 or 3");
}

/* Two layers, of which the second reads what the first writes. */
static void layers_are_ops(void **state)
{
    (void)state;
    const acs_dnn_shape shape = {1, 1, 1, 4};
    const float x[4] = {-1, 0, 1, 2};
    float y[4];
    assert_true(acs_dnn_activate(g_context, shape, ACS_DNN_RELU, x, y) != 0);
    assert_true(acs_dnn_activate(g_context, shape, ACS_DNN_TANH, y, y) != 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_true(y[0] == 0 && y[3] == tanhf(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_right),       cmocka_unit_test(pooling_is_right),
        cmocka_unit_test(elements_are_right),           cmocka_unit_test(footprints_are_whole_tensors),
        cmocka_unit_test(bad_arguments_are_named),      cmocka_unit_test(layers_are_ops),
    };
    return cmocka_run_group_tests(tests, start, stop);
}

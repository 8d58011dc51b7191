/*
 * acs_blaslt on the CPU: products of every form and type against the definition, footprints, and errors.
 */
#include "host_call.h"

#include "acs_blaslt.h"

#include <math.h>

enum { M = 5, N = 3, K = 4, ELEMENTS = 64 };

typedef struct arena {
    float a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], bias[M], d[ELEMENTS];
} arena;

/* The upper half of a float is a bfloat; these numbers have few bits, and so are exact in all types. */
static void fill(arena *x)
{
    for (int i = 0; i < ELEMENTS; i++) {
        x->a[i] = (float)(i * 7 % 11 - 5) / 2;
        x->b[i] = (float)(i * 5 % 13 - 6) / 4;
        x->c[i] = (float)(i % 7 - 3);
        x->d[i] = 1000;
    }
    for (int i = 0; i < M; i++)
        x->bias[i] = (float)(i - 2) / 2;
}

static acs_blaslt_matmul_params params_of(arena *x, int transa, int transb, int activation, int with_bias)
{
    return (acs_blaslt_matmul_params){.size = sizeof(acs_blaslt_matmul_params), .transa = transa, .transb = transb, .m = M,
                                      .n = N, .k = K, .alpha = 2, .beta = -1, .a = x->a, .b = x->b, .c = x->c, .d = x->d,
                                      .bias = with_bias ? x->bias : NULL, .lda = 6, .ldb = 7, .ldc = 5, .ldd = 8,
                                      .activation = (acs_blaslt_activation)activation};
}

static float wanted(const arena *x, const acs_blaslt_matmul_params *p, int i, int j)
{
    float value = 0;
    for (int l = 0; l < K; l++)
        value += x->a[p->transa ? l + i * 6 : i + l * 6] * x->b[p->transb ? j + l * 7 : l + j * 7];
    value = 2 * value - x->c[i + j * 5] + (p->bias ? x->bias[i] : 0);
    if (p->activation == ACS_BLASLT_RELU)
        return fmaxf(value, 0);
    if (p->activation == ACS_BLASLT_NONE)
        return value;
    const double x3 = 0.044715 * pow((double)value, 3);
    return (float)(0.5 * (double)value * (1 + tanh(0.79788456080286536 * ((double)value + x3))));
}

static void run(const acs_blaslt_matmul_params *p)
{
    acs_wrap_call call;
    assert_int_equal(acs_blaslt_matmul_prepare(&call, p), ACS_OK);
    assert_int_equal(host_run(&call), 0);
}

static void every_form_is_right(void **state)
{
    (void)state;
    for (int form = 0; form < 24; form++) {
        arena x;
        fill(&x);
        const acs_blaslt_matmul_params p = params_of(&x, form & 1, form >> 1 & 1, form / 8, form >> 2 & 1);
        run(&p);
        for (int j = 0; j < N; j++)
            for (int i = 0; i < 8; i++)
                assert_true(fabsf(x.d[i + 8 * j] - (i < M ? wanted(&x, &p, i, j) : 1000)) < 1e-4f);
    }
}

/* Half floats of small numbers, by hand: sign, exponent + 15, ten bits. Numbers here have at most six bits. */
static uint16_t half(float value)
{
    int exponent;
    const float fraction = frexpf(fabsf(value), &exponent); /* in [0.5, 1) */
    const int bits = value == 0 ? 0 : ((exponent + 14) << 10) + (int)((fraction * 2 - 1) * 1024);
    return (uint16_t)(bits | (signbit(value) ? 0x8000 : 0));
}

static uint16_t bfloat(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void short_types_are_right(void **state)
{
    (void)state;
    for (int type = ACS_BLASLT_F16; type <= ACS_BLASLT_BF16; type++) {
        uint16_t (*const convert)(float) = type == ACS_BLASLT_F16 ? half : bfloat;
        uint16_t a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], d[ELEMENTS] = {0}, bias[M];
        arena x;
        fill(&x);
        acs_blaslt_matmul_params p = params_of(&x, 0, 1, ACS_BLASLT_RELU, 1);
        for (int i = 0; i < ELEMENTS; i++) {
            a[i] = convert(x.a[i]);
            b[i] = convert(x.b[i]);
            c[i] = convert(x.c[i]);
        }
        for (int i = 0; i < M; i++)
            bias[i] = convert(x.bias[i]);
        p.type = (acs_blaslt_type)type;
        p.a = a, p.b = b, p.c = c, p.d = d, p.bias = bias;
        run(&p);
        for (int j = 0; j < N; j++)
            for (int i = 0; i < M; i++)
                assert_int_equal(d[i + 8 * j], convert(wanted(&x, &p, i, j)));
    }
}

/* 1 / 3 has to be rounded; numbers beyond the range, below the normal ones, and NaN. */
static void halves_are_rounded(void **state)
{
    (void)state;
    const float values[] = {1.0f / 3, 65519, 65520, 0x1p-24f, 0x1.8p-25f, 0x1p-25f, -0x1.ffep-15f, 2049, 2051};
    const uint16_t one = 0x3c00, halves[] = {0x3555, 0x7bff, 0x7c00, 1, 1, 0, 0x8400, 0x6800, 0x6802};
    for (int i = 0; i < 9; i++) {
        /* 1 x 1: the value comes by alpha */
        uint16_t d = 0;
        const acs_blaslt_matmul_params p = {.size = sizeof p, .type = ACS_BLASLT_F16, .m = 1, .n = 1, .k = 1,
                                            .alpha = (double)values[i], .a = &one, .b = &one, .d = &d, .lda = 1, .ldb = 1,
                                            .ldd = 1};
        run(&p);
        assert_int_equal(d, halves[i]);
    }
}

static void footprints_are_tiles(void **state)
{
    (void)state;
    arena x;
    acs_wrap_call call;
    acs_blaslt_matmul_params p = params_of(&x, 0, 1, ACS_BLASLT_RELU, 1);
    assert_int_equal(acs_blaslt_matmul_prepare(&call, &p), ACS_OK);
    HOST_USES(&call, ACS_TILE_IN(x.a, 20, 4, 24), ACS_TILE_IN(x.b, 12, 4, 28), ACS_TILE_IN(x.c, 20, 3, 20),
              ACS_TILE_OUT(x.d, 20, 3, 32), ACS_IN(x.bias, 20));
    p.bias = NULL;
    p.beta = 0;
    p.c = NULL;
    p.type = ACS_BLASLT_F16;
    assert_int_equal(acs_blaslt_matmul_prepare(&call, &p), ACS_OK);
    HOST_USES(&call, ACS_TILE_IN(x.a, 10, 4, 12), ACS_TILE_IN(x.b, 6, 4, 14), ACS_TILE_OUT(x.d, 10, 3, 16));
    p.beta = 1;
    p.c = x.d;
    p.ldc = 8;
    assert_int_equal(acs_blaslt_matmul_prepare(&call, &p), ACS_OK);
    HOST_USES(&call, ACS_TILE_IN(x.a, 10, 4, 12), ACS_TILE_IN(x.b, 6, 4, 14), ACS_TILE_INOUT(x.d, 10, 3, 16));
    p.m = 0;
    assert_int_equal(acs_blaslt_matmul_prepare(&call, &p), ACS_OK);
    assert_int_equal(call.params.uses.count, 0);
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    arena x;
    acs_wrap_call call;
    acs_blaslt_matmul_params p = params_of(&x, 0, 0, 0, 0);
    p.lda = 4;
    host_refused(acs_blaslt_matmul_prepare(&call, &p), "acs_blaslt_matmul: lda is 4; it must be at least 5, the rows of a");
    p.lda = 5;
    p.c = NULL;
    host_refused(acs_blaslt_matmul_prepare(&call, &p), "acs_blaslt_matmul: c is NULL");
    p.c = x.d;
    host_refused(acs_blaslt_matmul_prepare(&call, &p),
                 "acs_blaslt_matmul: ldc is 5 and ldd 8; they must be equal where c is d");
    p.k = 0;
    host_refused(acs_blaslt_matmul_prepare(&call, &p),
                 "acs_blaslt_matmul: m, n, k are 5, 3, 0; they must be at least 0, 0, 1");
    host_refused(acs_blaslt_matmul_prepare(&call, NULL), "acs_blaslt_matmul: params is NULL");
}

static void products_are_ops(void **state)
{
    (void)state;
    acs_context *const context = host_open();
    arena x;
    fill(&x);
    const acs_blaslt_matmul_params p = params_of(&x, 0, 0, 0, 0);
    assert_true(acs_blaslt_matmul(context, &p) != 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_true(x.d[0] == wanted(&x, &p, 0, 0));
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_right),  cmocka_unit_test(short_types_are_right),
        cmocka_unit_test(halves_are_rounded),   cmocka_unit_test(footprints_are_tiles),
        cmocka_unit_test(bad_arguments_are_named), cmocka_unit_test(products_are_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

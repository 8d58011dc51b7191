/*
 * acs_fft on the CPU: every kind in one to three dimensions against the definition, footprints, errors, and transforms that
 * are ops of a context.
 */
#include "host_call.h"

#include "acs_fft.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { ELEMENTS = 4096 };

static acs_context *g_context;
static double g_in[2 * ELEMENTS], g_out[2 * ELEMENTS];

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

static acs_fft_plan *plan_of(acs_fft_kind kind, int precise, int rank, const int *n, int batch)
{
    acs_fft_params params = {.size = sizeof params, .kind = kind, .precise = precise, .rank = rank, .batch = batch};
    acs_fft_plan *plan = NULL;
    memcpy(params.n, n, (size_t)rank * sizeof *n);
    assert_int_equal(acs_fft_plan_create(g_context, &params, &plan), ACS_OK);
    return plan;
}

static void run(acs_fft_plan *plan, const void *in, void *out, acs_fft_direction direction)
{
    acs_wrap_call call;
    assert_int_equal(acs_fft_exec_prepare(&call, plan, in, out, direction), ACS_OK);
    assert_int_equal(host_run(&call), 0);
}

/* Element k of the transform of `elements` complex numbers, by definition. */
static double _Complex element(const double *in, const int *n, int rank, int sign, int k)
{
    int elements = 1;
    double _Complex sum = 0;
    for (int d = 0; d < rank; d++)
        elements *= n[d];
    for (int i = 0; i < elements; i++) {
        double turns = 0;
        for (int d = rank - 1, a = i, b = k; d >= 0; a /= n[d], b /= n[d], d--)
            turns += (double)(a % n[d] * (b % n[d]) % n[d]) / n[d];
        sum += (in[2 * i] + in[2 * i + 1] * I) * cexp(sign * 2 * acos(-1) * turns * I);
    }
    return sum;
}

static const struct {
    int rank, n[3], elements;
} g_shapes[] = {{1, {1}, 1},       {1, {64}, 64},      {1, {60}, 60},      {1, {97}, 97},
                {2, {8, 6}, 48},   {2, {5, 7}, 35},    {3, {4, 3, 10}, 120}};

static void fill(void)
{
    for (int i = 0; i < 2 * ELEMENTS; i++) {
        g_in[i] = (double)(i * 37 % 101) / 101 - 0.5;
        g_out[i] = NAN;
    }
}

/* Two transforms of a batch, in both directions. */
static void complex_transforms_are_right(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof g_shapes / sizeof g_shapes[0]; s++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const int elements = g_shapes[s].elements;
            acs_fft_plan *const plan = plan_of(ACS_FFT_C2C, 1, g_shapes[s].rank, g_shapes[s].n, 2);
            fill();
            run(plan, g_in, g_out, (acs_fft_direction)sign);
            for (int k = 0; k < 2 * elements; k++) {
                const double _Complex wanted = element(g_in + (k >= elements ? 2 * elements : 0), g_shapes[s].n,
                                                       g_shapes[s].rank, sign, k % elements);
                assert_true(cabs(g_out[2 * k] + g_out[2 * k + 1] * I - wanted) < 1e-10);
            }
            acs_fft_plan_destroy(plan);
        }
}

/* Forward as the complex transform says, and back to the data times their number; in float, with two in a batch. */
static void real_transforms_are_right(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof g_shapes / sizeof g_shapes[0]; s++) {
        const int elements = g_shapes[s].elements, rank = g_shapes[s].rank, n = g_shapes[s].n[rank - 1];
        acs_fft_plan *const there = plan_of(ACS_FFT_R2C, 0, rank, g_shapes[s].n, 2);
        acs_fft_plan *const back = plan_of(ACS_FFT_C2R, 0, rank, g_shapes[s].n, 2);
        float in[2 * ELEMENTS], half[2 * ELEMENTS], out[2 * ELEMENTS];
        double full[2 * ELEMENTS] = {0};
        for (int i = 0; i < 2 * elements; i++)
            in[i] = (float)(i * 37 % 101) / 101 - 0.5f;
        run(there, in, half, ACS_FFT_FORWARD);
        for (int i = 0; i < elements; i++)
            full[2 * i] = (double)in[elements + i];
        for (int k = 0, at = elements / n * (n / 2 + 1); k < elements; k++)
            if (k % n <= n / 2) {
                const double _Complex is = (double)half[2 * at] + (double)half[2 * at + 1] * I;
                assert_true(cabs(is - element(full, g_shapes[s].n, rank, -1, k)) < 1e-4);
                at++;
            }
        run(back, half, out, ACS_FFT_INVERSE);
        for (int i = 0; i < 2 * elements; i++)
            assert_true(fabsf(out[i] - (float)elements * in[i]) < 1e-3f);
        acs_fft_plan_destroy(there);
        acs_fft_plan_destroy(back);
    }
}

static void footprints_are_whole_batches(void **state)
{
    (void)state;
    const int n[2] = {4, 10};
    acs_fft_plan *const c2c = plan_of(ACS_FFT_C2C, 1, 2, n, 3), *const r2c = plan_of(ACS_FFT_R2C, 0, 2, n, 3);
    acs_fft_plan *const c2r = plan_of(ACS_FFT_C2R, 0, 2, n, 3);
    acs_wrap_call call;
    assert_int_equal(acs_fft_exec_prepare(&call, c2c, g_in, g_out, ACS_FFT_INVERSE), ACS_OK);
    HOST_USES(&call, ACS_IN(g_in, 3 * 40 * 16), ACS_OUT(g_out, 3 * 40 * 16));
    assert_int_equal(acs_fft_exec_prepare(&call, c2c, g_in, g_in, ACS_FFT_FORWARD), ACS_OK);
    HOST_USES(&call, ACS_INOUT(g_in, 3 * 40 * 16));
    assert_int_equal(acs_fft_exec_prepare(&call, r2c, g_in, g_out, ACS_FFT_FORWARD), ACS_OK);
    HOST_USES(&call, ACS_IN(g_in, 3 * 40 * 4), ACS_OUT(g_out, 3 * 24 * 8));
    assert_int_equal(acs_fft_exec_prepare(&call, c2r, g_in, g_out, ACS_FFT_INVERSE), ACS_OK);
    HOST_USES(&call, ACS_INOUT(g_in, 3 * 24 * 8), ACS_OUT(g_out, 3 * 40 * 4));
    acs_fft_plan_destroy(c2c);
    acs_fft_plan_destroy(r2c);
    acs_fft_plan_destroy(c2r);
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    const int n[1] = {8};
    acs_fft_plan *const c2r = plan_of(ACS_FFT_C2R, 0, 1, n, 1), *made = NULL;
    acs_fft_params p = {.size = sizeof p, .kind = ACS_FFT_C2C, .rank = 4, .n = {8}, .batch = 1};
    acs_wrap_call call;
    host_refused(acs_fft_plan_create(g_context, &p, &made), "acs_fft_plan_create: rank is 4; it must be 1 to 3");
    p.rank = 3;
    host_refused(acs_fft_plan_create(g_context, &p, &made), "acs_fft_plan_create: n[1] is 0; it must be at least 1");
    p = (acs_fft_params){.size = sizeof p, .precise = 1, .rank = 3, .n = {1 << 30, 1 << 30, 8}, .batch = 1};
    host_refused(acs_fft_plan_create(g_context, &p, &made),
                 "acs_fft_plan_create: the transforms have more bytes than memory can have");
    assert_null(made);
    host_refused(acs_fft_exec_prepare(&call, c2r, g_in, g_out, ACS_FFT_FORWARD),
                 "acs_fft_exec: direction is -1; this plan's kind needs 1");
    host_refused(acs_fft_exec_prepare(&call, c2r, g_in, g_in, ACS_FFT_INVERSE),
                 "acs_fft_exec: in equals out; real transforms need separate memory");
    host_refused(acs_fft_exec_prepare(&call, c2r, NULL, g_out, ACS_FFT_INVERSE), "acs_fft_exec: in is NULL");
    assert_int_equal(acs_fft_exec(g_context, c2r, g_in, g_in, ACS_FFT_INVERSE), 0);
    assert_int_equal(acs_sync(g_context), ACS_ERR_ARGUMENT); /* program order has a hole */
    assert_int_equal(acs_clear(g_context), ACS_OK);
    acs_fft_plan_destroy(c2r);
}

/* There and back in place, eight at a time: the second of each pair follows the first. */
static void transforms_are_ops(void **state)
{
    (void)state;
    const int n[1] = {128};
    acs_fft_plan *const plan = plan_of(ACS_FFT_C2C, 1, 1, n, 1);
    fill();
    memcpy(g_out, g_in, sizeof g_in);
    for (int sign = -1; sign <= 1; sign += 2)
        for (int i = 0; i < 8; i++)
            assert_true(acs_fft_exec(g_context, plan, g_out + i * 256, g_out + i * 256, (acs_fft_direction)sign) != 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    for (int i = 0; i < 8 * 256; i++)
        assert_true(fabs(g_out[i] / 128 - g_in[i]) < 1e-12);
    acs_fft_plan_destroy(plan);
}

static void codes_have_texts(void **state)
{
    (void)state;
    char text[160];
    (void)acs_fft_code_text(1005, text, sizeof text);
    assert_string_equal(text, "cuFFT returned cufftResult 5");
    (void)acs_fft_code_text(5, text, sizeof text);
    assert_string_equal(text, "the plan was made for the host backends");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complex_transforms_are_right),
        cmocka_unit_test(real_transforms_are_right),
        cmocka_unit_test(footprints_are_whole_batches),
        cmocka_unit_test(bad_arguments_are_named),
        cmocka_unit_test(transforms_are_ops),
        cmocka_unit_test(codes_have_texts),
    };
    return cmocka_run_group_tests(tests, start, stop);
}

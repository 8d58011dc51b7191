/*
 * Transforms on the CPU, for the host backends: mixed radix by the prime factors of n, in double for both precisions. Called
 * when an op runs, or by whoever issues it by other means. The order of additions does not depend on who runs it, so the
 * same call gives the same bits. For correctness: a large prime n takes n * n steps. Checks nothing.
 */
#include "fft/fft.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For transforms of n elements: the n roots of unity, and room for one butterfly and for a line before and after. */
typedef struct tables {
    size_t n;
    double _Complex *root, *part, *before, *after;
} tables;

static size_t smallest_factor(size_t n)
{
    for (size_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

static bool tables_init(tables *t, size_t n, int direction)
{
    t->n = n;
    t->root = malloc(4 * n * sizeof *t->root);
    if (!t->root)
        return false;
    t->part = t->root + n;
    t->before = t->part + n;
    t->after = t->before + n;
    for (size_t i = 0; i < n; i++) {
        const double angle = direction * 2 * 3.14159265358979323846 * (double)i / (double)n;
        t->root[i] = cos(angle) + sin(angle) * I;
    }
    return true;
}

/* Joins the p transforms of m elements in `out` to one of p * m elements. */
static void join(const tables *t, size_t p, size_t m, double _Complex *out)
{
    const size_t step = t->n / (p * m);

    for (size_t k = 0; k < m; k++) {
        for (size_t r = 0; r < p; r++)
            t->part[r] = out[r * m + k] * t->root[r * k * step];
        for (size_t q = 0; q < p; q++) {
            double _Complex sum = t->part[0];
            for (size_t r = 1; r < p; r++)
                sum += t->part[r] * t->root[r * q % p * m * step];
            out[q * m + k] = sum;
        }
    }
}

/* A transform of n elements that are `stride` apart; n divides the tables' n. As deep as n has prime factors. */
static void line(const tables *t, size_t n, const double _Complex *in, size_t stride, double _Complex *out)
{
    const size_t p = smallest_factor(n), m = n / p;

    if (n == 1) {
        out[0] = in[0];
        return;
    }
    for (size_t r = 0; r < p; r++)
        line(t, m, in + r * stride, stride * p, out + r * m);
    join(t, p, m, out);
}

/* All lines along one dimension of `count` elements, over them. */
static bool dimension(double _Complex *data, size_t count, size_t n, size_t stride, int direction)
{
    tables t;

    if (!tables_init(&t, n, direction))
        return false;
    for (size_t first = 0; first < count; first++) {
        if (first / stride % n)
            continue; /* not the start of a line */
        for (size_t i = 0; i < n; i++)
            t.before[i] = data[first + i * stride];
        line(&t, n, t.before, 1, t.after);
        for (size_t i = 0; i < n; i++)
            data[first + i * stride] = t.after[i];
    }
    free(t.root);
    return true;
}

/* --------------------------------------------------------------------------------------------------------- one transform */

static double real_at(const acs_fft_params *p, const void *data, size_t i)
{
    return p->precise ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static double _Complex complex_at(const acs_fft_params *p, const void *data, size_t i)
{
    return real_at(p, data, 2 * i) + real_at(p, data, 2 * i + 1) * I;
}

static void set_real(const acs_fft_params *p, void *data, size_t i, double value)
{
    if (p->precise)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static void set_complex(const acs_fft_params *p, void *data, size_t i, double _Complex value)
{
    set_real(p, data, 2 * i, creal(value));
    set_real(p, data, 2 * i + 1, cimag(value));
}

static size_t elements_of(const acs_fft_params *p)
{
    size_t elements = 1;
    for (int i = 0; i < p->rank; i++)
        elements *= (size_t)p->n[i];
    return elements;
}

/* The element that is the conjugate of element i in the transform of real data: all indices negated. */
static size_t mirror_of(const acs_fft_params *p, size_t i)
{
    size_t mirror = 0, stride = 1;

    for (int d = p->rank - 1; d >= 0; d--) {
        const size_t n = (size_t)p->n[d], index = i % n;
        mirror += (n - index) % n * stride;
        stride *= n;
        i /= n;
    }
    return mirror;
}

/* Where element i of the full data is in the half that real transforms keep. */
static size_t half_index(const acs_fft_params *p, size_t i)
{
    const size_t n = (size_t)p->n[p->rank - 1];
    return i / n * acs_fft_half(p) + i % n;
}

static void read_element(const acs_fft_params *p, const void *in, size_t i, double _Complex *to)
{
    const size_t n = (size_t)p->n[p->rank - 1];

    if (p->kind == ACS_FFT_R2C)
        *to = real_at(p, in, i);
    else if (p->kind == ACS_FFT_C2C)
        *to = complex_at(p, in, i);
    else if (i % n < acs_fft_half(p))
        *to = complex_at(p, in, half_index(p, i));
    else
        *to = conj(complex_at(p, in, half_index(p, mirror_of(p, i))));
}

static void write_element(const acs_fft_params *p, void *out, size_t i, double _Complex value)
{
    if (p->kind == ACS_FFT_C2R)
        set_real(p, out, i, creal(value));
    else if (p->kind == ACS_FFT_C2C)
        set_complex(p, out, i, value);
    else if (i % (size_t)p->n[p->rank - 1] < acs_fft_half(p))
        set_complex(p, out, half_index(p, i), value);
}

static bool transform(const acs_fft_params *p, const void *in, void *out, int direction, double _Complex *data)
{
    const size_t elements = elements_of(p);
    size_t stride = 1;

    for (size_t i = 0; i < elements; i++)
        read_element(p, in, i, &data[i]);
    for (int d = p->rank - 1; d >= 0; d--) {
        if (!dimension(data, elements, (size_t)p->n[d], stride, direction))
            return false;
        stride *= (size_t)p->n[d];
    }
    for (size_t i = 0; i < elements; i++)
        write_element(p, out, i, data[i]);
    return true;
}

int acs_fft_host_run(const acs_fft_args *args)
{
    const acs_fft_plan *const plan = args->plan;
    const acs_fft_params *const p = &plan->params;
    const size_t batch = (size_t)p->batch;
    double _Complex *const data = malloc(elements_of(p) * sizeof *data);
    bool enough = data != NULL;

    for (size_t b = 0; b < batch && enough; b++)
        enough = transform(p, (const char *)args->in + b * (plan->in_bytes / batch),
                           (char *)args->out + b * (plan->out_bytes / batch), (int)args->direction, data);
    free(data);
    return enough ? 0 : ACS_WRAP_CODE_MEMORY;
}

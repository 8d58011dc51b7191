/*
 * Products on the CPU, for the host backends: loops as the definition has them, summed in float, in an order that does not
 * depend on who runs them. Called when an op runs, or by whoever issues it by other means. Checks nothing.
 */
#include "blaslt/blaslt.h"

#include <math.h>
#include <string.h>

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* IEEE binary16: 1 sign bit, 5 of the exponent, 10 of the fraction. */
static float float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;

    if (exponent == 0)
        return copysignf((float)fraction * 0x1p-24f, float_of_bits(sign));
    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000 | fraction << 13);
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* To the nearest, ties to even. */
static uint16_t half_of_float(float value)
{
    const uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000;
    const float size = fabsf(value);

    if (isnan(value))
        return (uint16_t)(sign | 0x7e00);
    if (size >= 65520)
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x1p-14f) /* rounded by the addition, since the last bit of 0.5f is 2 ** -24 */
        return (uint16_t)(sign | (bits_of_float(size + 0.5f) - bits_of_float(0.5f)));
    const uint32_t rest = bits & 0x7fffffff, rounded = rest + 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | (rounded - (112u << 23)) >> 13);
}

static uint16_t bfloat_of_float(float value)
{
    const uint32_t bits = bits_of_float(value);
    return isnan(value) ? (uint16_t)(bits >> 16 | 64) : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float get(int type, const void *p, size_t i)
{
    switch ((acs_blaslt_type)type) {
    case ACS_BLASLT_F16: return float_of_half(((const uint16_t *)p)[i]);
    case ACS_BLASLT_BF16: return float_of_bits((uint32_t)((const uint16_t *)p)[i] << 16);
    case ACS_BLASLT_F32: break;
    }
    return ((const float *)p)[i];
}

static void set(int type, void *p, size_t i, float value)
{
    switch ((acs_blaslt_type)type) {
    case ACS_BLASLT_F16: ((uint16_t *)p)[i] = half_of_float(value); break;
    case ACS_BLASLT_BF16: ((uint16_t *)p)[i] = bfloat_of_float(value); break;
    case ACS_BLASLT_F32: ((float *)p)[i] = value; break;
    }
}

static float activated(int activation, float x)
{
    if (activation == ACS_BLASLT_RELU)
        return x > 0 ? x : 0;
    if (activation == ACS_BLASLT_GELU)
        return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    return x;
}

static float product(const acs_blaslt_args *x, size_t i, size_t j)
{
    const acs_blaslt_shape *const s = &x->shape;
    const size_t lda = (size_t)s->lda, ldb = (size_t)s->ldb;
    float sum = 0;

    for (size_t l = 0; l < (size_t)s->k; l++)
        sum += get(s->type, x->a, s->transa ? l + i * lda : i + l * lda) *
               get(s->type, x->b, s->transb ? j + l * ldb : l + j * ldb);
    return sum;
}

/* The old C is not looked at where beta is 0: there may be NaN. */
void acs_blaslt_host_run(const acs_blaslt_args *x)
{
    const acs_blaslt_shape *const s = &x->shape;

    for (size_t j = 0; j < (size_t)s->n; j++)
        for (size_t i = 0; i < (size_t)s->m; i++) {
            float value = (float)x->alpha * product(x, i, j);
            if (x->beta != 0)
                value += (float)x->beta * get(s->type, x->c, i + j * (size_t)s->ldc);
            if (x->bias)
                value += get(s->type, x->bias, i);
            set(s->type, x->d, i + j * (size_t)s->ldd, activated(s->activation, value));
        }
}

/*
 * Random numbers on the CPU, for the host backends: Philox4x32-10 (Salmon and others, SC 2011), in cuRAND's order and with
 * its conversions. Called when an op runs, or by whoever issues it by other means. Each number follows from seed and
 * position alone. Checks nothing.
 */
#include "rand/rand.h"

#include <math.h>

typedef struct block {
    uint32_t x[4];
} block;

static void one_round(uint32_t x[4], uint32_t key0, uint32_t key1)
{
    const uint64_t product0 = (uint64_t)0xD2511F53u * x[0], product1 = (uint64_t)0xCD9E8D57u * x[2];
    const uint32_t high0 = (uint32_t)(product0 >> 32), high1 = (uint32_t)(product1 >> 32);

    x[0] = high1 ^ x[1] ^ key0;
    x[1] = (uint32_t)product1;
    x[2] = high0 ^ x[3] ^ key1;
    x[3] = (uint32_t)product0;
}

/* Block `counter` of a subsequence. */
static block philox(uint64_t seed, uint64_t subsequence, uint64_t counter)
{
    block b = {{(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)subsequence, (uint32_t)(subsequence >> 32)}};
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);

    for (int i = 0; i < 10; i++) {
        one_round(b.x, key0, key1);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return b;
}

static uint32_t bits_at(uint64_t seed, uint64_t position)
{
    const uint64_t in_pass = position % ACS_RAND_PASS;
    return philox(seed, in_pass / 4, position / ACS_RAND_PASS).x[in_pass % 4];
}

/* Number i from a position. A double takes two numbers of 32 bits, so four of them are two blocks of one subsequence. */
static uint64_t wide_at(uint64_t seed, uint64_t position, uint64_t i)
{
    const uint64_t from_pass = position % ACS_RAND_PASS + i, in_pass = from_pass % ACS_RAND_PASS, lane = in_pass % 4;
    const uint64_t counter = position / ACS_RAND_PASS + from_pass / ACS_RAND_PASS * 2 + lane / 2;
    const block b = philox(seed, in_pass / 4, counter);
    return b.x[lane % 2 * 2] ^ (uint64_t)b.x[lane % 2 * 2 + 1] << 21; /* 53 bits count */
}

static float uniform_of(uint32_t bits)
{
    return (float)bits * 0x1p-32f + 0x1p-33f;
}

static double uniform_double_of(uint64_t wide)
{
    return (double)wide * 0x1p-53 + 0x1p-54;
}

/* One of a pair, by Box and Muller: the pair begins at an even position. */
static float normal_at(uint64_t seed, uint64_t position)
{
    const uint64_t first = position & ~UINT64_C(1);
    const float u = uniform_of(bits_at(seed, first)), two_pi = 6.2831855f;
    const float v = (float)bits_at(seed, first + 1) * (0x1p-32f * two_pi) + 0x1p-33f * two_pi;
    return sqrtf(-2 * logf(u)) * (position % 2 ? cosf(v) : sinf(v));
}

static double normal_double_at(uint64_t seed, uint64_t position, uint64_t i)
{
    const uint64_t first = i & ~UINT64_C(1);
    const double u = uniform_double_of(wide_at(seed, position, first)), pi = 3.14159265358979323846;
    const double v = ((double)wide_at(seed, position, first + 1) * 0x1p-52 + 0x1p-53) * pi;
    return sqrt(-2 * log(u)) * (i % 2 ? cos(v) : sin(v));
}

static void make_one(const acs_rand_args *x, uint64_t i)
{
    const uint64_t at = x->position + i;

    switch ((acs_rand_kind)x->kind) {
    case ACS_RAND_BITS: ((uint32_t *)x->out)[i] = bits_at(x->seed, at); break;
    case ACS_RAND_UNIFORM: ((float *)x->out)[i] = uniform_of(bits_at(x->seed, at)); break;
    case ACS_RAND_UNIFORM_DOUBLE:
        ((double *)x->out)[i] = uniform_double_of(wide_at(x->seed, x->position, i));
        break;
    case ACS_RAND_NORMAL:
        ((float *)x->out)[i] = (float)x->mean + (float)x->deviation * normal_at(x->seed, at);
        break;
    case ACS_RAND_NORMAL_DOUBLE:
        ((double *)x->out)[i] = x->mean + x->deviation * normal_double_at(x->seed, x->position, i);
        break;
    }
}

void acs_rand_host_run(const acs_rand_args *args)
{
    for (uint64_t i = 0; i < args->count; i++)
        make_one(args, i);
}

/**
 * @file acs_rand.h
 * Random numbers as ops of ACS: uniform, normal and 32-bit ones, float and double. On a GPU by cuRAND's device functions
 * for the generator Philox4x32-10. On the host backends by the same generator on the CPU.
 *
 *     acs_rand_generator g = acs_rand_begin(seed);
 *     acs_rand_uniform(context, &g, x, n);            // two ops that may run at the same time
 *     acs_rand_normal(context, &g, y, n, 0, 1);
 *
 * **State and order.** A host generator of cuRAND is a state that each call changes, so its calls must run in order. It
 * waits for the whole device when its seed or offset is set, and then cannot be captured. Here the
 * generator is a seed and a position, and belongs to the program. A call takes its numbers from the position and moves it
 * on, at once. So the order of the calls alone decides which numbers an op gets. Ops of one generator are independent, and
 * run at the same time.
 *
 * The numbers are those of one cuRAND generator that makes the same calls one after the other. That holds as long as the
 * calls are all of 32 bits and floats, or all of doubles. Where that changes, the rest of the pass is left out, so that no
 * number is used twice.
 *
 * **Footprint.** The numbers are `out`, and nothing else is touched.
 *
 * **Captures.** The position is fixed when the call is captured: each launch of the graph makes the same numbers again.
 *
 * **The CPU's numbers.** Integers and uniform numbers have the bits of cuRAND's host generator. Normal numbers follow the
 * same formula, and differ by the rounding of logarithm, sine and cosine.
 *
 * Errors: acs_wrap.h. What fails while an op runs is ACS_ERR_HOST with a code for acs_rand_code_text(). A call that was
 * refused leaves the position as it was.
 *
 * **Threads.** Any thread, but one at a time for each generator.
 */
#ifndef ACS_RAND_H
#define ACS_RAND_H

#include "acs_wrap.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A generator: plain values, which the program may read, copy and set. No call keeps a pointer to it. */
typedef struct acs_rand_generator {
    uint64_t seed;
    /**
     * Where the next number lies in the sequence, from 0. A pass of 262144 numbers of 32 bits moves it on by 262144, one of
     * 262144 doubles by 524288; inside a pass each number moves it by 1. It wraps around at 2^64.
     */
    uint64_t position;
    uint64_t wide;     /**< 1: the latest numbers were doubles; else 0 */
} acs_rand_generator;

/** A generator at the start of its sequence. */
static inline acs_rand_generator acs_rand_begin(uint64_t seed)
{
    acs_rand_generator g;
    g.seed = seed;
    g.position = 0;
    g.wide = 0;
    return g;
}

/*
 * Each operation has two functions: to queue (context NULL: the default one) and to prepare (acs_wrap_call). Both move the
 * generator on, on success alone. A prepared call makes the same numbers whenever it is queued.
 */
#define ACS_RAND_DECLARE_(name, ...)                                                                                   \
    acs_op acs_rand_##name(acs_context *context, acs_rand_generator *generator, __VA_ARGS__);                          \
    acs_status acs_rand_##name##_prepare(acs_wrap_call *call, acs_rand_generator *generator, __VA_ARGS__)

/** Integers of 32 random bits. With `count` 0 the op touches nothing, and the position stays, here and below. */
ACS_RAND_DECLARE_(bits, uint32_t *out, size_t count);

/** Numbers in (0, 1]. `out` is aligned as its type. */
ACS_RAND_DECLARE_(uniform, float *out, size_t count);
ACS_RAND_DECLARE_(uniform_double, double *out, size_t count);

/**
 * Numbers of a normal distribution. They are made in pairs, so `count` must be even. So must the position be, else a pair
 * would be cut: draw an even count of other numbers before.
 */
ACS_RAND_DECLARE_(normal, float *out, size_t count, float mean, float deviation);
ACS_RAND_DECLARE_(normal_double, double *out, size_t count, double mean, double deviation);

#undef ACS_RAND_DECLARE_

/**
 * Find the CUDA driver now; the first op on a CUDA context does so otherwise.
 * @retval ACS_ERR_UNSUPPORTED  it was not found, or the wrapper was built without nvcc; acs_wrap_last_error has the text.
 */
acs_status acs_rand_load(void);
/** What an op's code means (acs_error.native), in one sentence; as snprintf. */
size_t acs_rand_code_text(int code, char *text, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ACS_RAND_H */

/*
 * What the kernels of this directory have in common, for .cu files only.
 */
#ifndef VARIANTS_OPERATORS_CUH
#define VARIANTS_OPERATORS_CUH

#include <cuda_runtime.h>

#include "functions.h"
#include "problem.h"
#include "versions.h"

namespace variants {

/* Not inlined: it would be there once for each output of a thread, which takes nvcc long. */
static __noinline__ __device__ float activate_slowly(float v, int32_t act)
{
    return act == ACT_GELU ? 0.5f * v * (1.0f + erff(v * 0.70710678f)) : tanhf(v);
}

__device__ inline float activate(float v, int32_t act)
{
    if (act == ACT_NONE)
        return v;
    return act == ACT_RELU ? fmaxf(v, 0.0f) : activate_slowly(v, act);
}

/* What follows a sum. `channels`: how many values `bias` has before the factors of WITH_AFFINE. */
__device__ inline float finish(const problem &p, float sum, const float *bias, int32_t channel, int32_t channels,
                               const float *add, size_t add_at)
{
    float v = sum * p.scale;
    if (p.flags & WITH_ADD)
        v += add[add_at];
    if (p.flags & WITH_AFFINE)
        v = v * bias[channels + channel] + bias[channel];
    else if (p.flags & WITH_BIAS)
        v += bias[channel];
    return activate(v, p.act);
}

__device__ inline int32_t quotient(int32_t k, int32_t magic)
{
    return static_cast<int32_t>(static_cast<uint32_t>(k) * static_cast<uint32_t>(magic) >> 16);
}

/*
 * The sum, or the largest, of a value over THREADS threads, the same in all of them. `room`: THREADS / 32 floats that these
 * threads alone have. THREADS is at most a warp, or all threads of the block call it.
 */
template <int THREADS, bool LARGEST> __device__ inline float reduce(float v, float *room, int lane)
{
    constexpr int width = THREADS < 32 ? THREADS : 32;
#pragma unroll
    for (int d = width / 2; d > 0; d /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, v, d, width);
        v = LARGEST ? fmaxf(v, other) : v + other;
    }
    if constexpr (THREADS > 32) {
        __syncthreads(); /* the last values in `room` were read */
        if (lane % 32 == 0)
            room[lane / 32] = v;
        __syncthreads();
        v = room[0];
#pragma unroll
        for (int w = 1; w < THREADS / 32; w++)
            v = LARGEST ? fmaxf(v, room[w]) : v + room[w];
    }
    return v;
}

} // namespace variants

#endif

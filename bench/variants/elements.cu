/*
 * The versions of operators without a sum to share: pools, elements, and those of recommendation (bags of embeddings, the
 * dot products of a sample's features).
 */
#include <cfloat>

#include "operators.cuh"

namespace variants {

/* Calls body(i) for ITEMS numbers below `count`, neighbours in neighbouring threads. */
template <int THREADS, int ITEMS, class B> __device__ inline void for_items(int32_t count, const B &body)
{
    const int32_t first = static_cast<int32_t>(blockIdx.x) * (THREADS * ITEMS) + static_cast<int32_t>(threadIdx.x);
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (first + k * THREADS < count)
            body(first + k * THREADS);
}

template <int THREADS, int ITEMS>
__global__ void __launch_bounds__(THREADS)
    pool_kernel(problem p, const float *x, const float *, const float *bias, const float *add, float *y)
{
    const int32_t plane = p.out_height * p.out_width;
    for_items<THREADS, ITEMS>(p.channels * plane, [&](int32_t i) {
        const int32_t channel = i / plane, pixel = i % plane;
        const int32_t top = pixel / p.out_width * p.stride - p.pad, left = pixel % p.out_width * p.stride - p.pad;
        const float *const from = x + static_cast<size_t>(channel) * p.height * p.width;
        float largest = -FLT_MAX;
        for (int32_t r = max(top, 0); r < min(top + p.window_rows, p.height); r++)
            for (int32_t c = max(left, 0); c < min(left + p.window_columns, p.width); c++)
                largest = fmaxf(largest, __ldg(from + r * p.width + c));
        y[i] = finish(p, largest, bias, channel, p.channels, add, static_cast<size_t>(i));
    });
}

template <int THREADS, int ITEMS>
__global__ void __launch_bounds__(THREADS)
    element_kernel(problem p, const float *x, const float *, const float *bias, const float *add, float *y)
{
    for_items<THREADS, ITEMS>(p.rows * p.columns, [&](int32_t i) {
        y[i] = finish(p, __ldg(x + i), bias, i / p.columns, p.rows, add, static_cast<size_t>(i));
    });
}

template <int WIDTH> struct floats;
template <> struct floats<1> {
    using type = float;
};
template <> struct floats<2> {
    using type = float2;
};
template <> struct floats<4> {
    using type = float4;
};

__device__ inline void accumulate(float &sum, float v)
{
    sum += v;
}
__device__ inline void accumulate(float2 &sum, float2 v)
{
    sum = make_float2(sum.x + v.x, sum.y + v.y);
}
__device__ inline void accumulate(float4 &sum, float4 v)
{
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
}

/* x: int32_t [rows][tables][lookups]; w: [tables][table_rows][columns]; y: [rows], y_row apart, of [tables][columns]. */
template <int THREADS, int WIDTH, int BAGS>
__global__ void __launch_bounds__(THREADS *BAGS)
    embedding_kernel(problem p, const float *x, const float *w, const float *, const float *, float *y)
{
    using wide = typename floats<WIDTH>::type;
    const int32_t bag = static_cast<int32_t>(blockIdx.x) * BAGS + static_cast<int32_t>(threadIdx.x) / THREADS;
    const int32_t lane = static_cast<int32_t>(threadIdx.x) % THREADS;

    if (bag >= p.rows * p.tables)
        return;
    const int32_t *const index = reinterpret_cast<const int32_t *>(x) + static_cast<size_t>(bag) * p.lookups;
    const int32_t row = bag / p.tables, table = bag % p.tables;
    const float *const from = w + static_cast<size_t>(table) * p.table_rows * p.columns;
    float *const to = y + static_cast<size_t>(row) * p.y_row + static_cast<size_t>(table) * p.columns;
    for (int32_t c = lane * WIDTH; c < p.columns; c += THREADS * WIDTH) {
        wide sum = {};
        for (int32_t k = 0; k < p.lookups; k++)
            accumulate(sum, __ldg(reinterpret_cast<const wide *>(
                                from + static_cast<size_t>(__ldg(index + k)) * p.columns + c)));
        *reinterpret_cast<wide *>(to + c) = sum;
    }
}

/* x: [rows][tables][columns]; y: [rows] of the first feature, then the products of each feature with those before it. */
template <int THREADS, int SAMPLES>
__global__ void __launch_bounds__(THREADS *SAMPLES)
    interaction_kernel(problem p, const float *x, const float *, const float *, const float *, float *y)
{
    extern __shared__ float shared[];
    const int32_t group = static_cast<int32_t>(threadIdx.x) / THREADS;
    const int32_t lane = static_cast<int32_t>(threadIdx.x) % THREADS;
    const int32_t row = static_cast<int32_t>(blockIdx.x) * SAMPLES + group;
    const int32_t pitch = p.columns + 1, pairs = p.tables * (p.tables - 1) / 2;
    float *const features = shared + group * p.tables * pitch;
    float *const to = y + static_cast<size_t>(row) * p.y_row;

    if (row < p.rows)
        for (int32_t i = lane; i < p.tables * p.columns; i += THREADS) {
            const float v = __ldg(x + static_cast<size_t>(row) * p.tables * p.columns + i);
            features[i / p.columns * pitch + i % p.columns] = v;
            if (i < p.columns)
                to[i] = v;
        }
    __syncthreads();
    if (row >= p.rows)
        return;
    for (int32_t q = lane; q < pairs; q += THREADS) {
        int32_t later = static_cast<int32_t>((1.0f + sqrtf(1.0f + 8.0f * static_cast<float>(q))) * 0.5f);
        later -= later * (later - 1) / 2 > q;
        later += later * (later + 1) / 2 <= q;
        const float *const a = features + later * pitch, *const b = features + (q - later * (later - 1) / 2) * pitch;
        float sum = 0;
#pragma unroll 8
        for (int32_t c = 0; c < p.columns; c++)
            sum = fmaf(a[c], b[c], sum);
        to[p.columns + q] = sum;
    }
}

#define ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__),
#define POOL(threads, items) ADDRESS(pool_kernel<threads, items>)
#define ELEMENTS(threads, items) ADDRESS(element_kernel<threads, items>)
#define EMBEDDING(threads, width, bags) ADDRESS(embedding_kernel<threads, width, bags>)
#define INTERACTION(threads, samples) ADDRESS(interaction_kernel<threads, samples>)
static const void *const pools[] = {VARIANTS_POOL(POOL)};
static const void *const elements[] = {VARIANTS_ELEMENTS(ELEMENTS)};
static const void *const embeddings[] = {VARIANTS_EMBEDDING(EMBEDDING)};
static const void *const interactions[] = {VARIANTS_INTERACTION(INTERACTION)};

function_list pool_functions()
{
    return pools;
}

function_list element_functions()
{
    return elements;
}

function_list embedding_functions()
{
    return embeddings;
}

function_list interaction_functions()
{
    return interactions;
}

} // namespace variants

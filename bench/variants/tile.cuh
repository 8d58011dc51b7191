/*
 * A product of matrices by tiles, in fp32 on plain cores: y[m][n] = sum over k of a[m][k] * b[k][n], and what follows it.
 * In convolutions `a` are the weights, and b[k][n] is the pixel of channel and window place k that output pixel n sees; it
 * is found in the image, never stored (implicit GEMM).
 *
 * While a block computes with one pair of tiles in shared memory, each thread holds its part of the next one in registers.
 */
#ifndef VARIANTS_TILE_CUH
#define VARIANTS_TILE_CUH

#include "operators.cuh"

namespace variants {

template <int BM, int BN, int BK, int TM, int TN, int SPLIT, int UNROLL> struct tile {
    static constexpr int bm = BM, bn = BN, bk = BK, tm = TM, tn = TN, split = SPLIT, unroll = UNROLL;
    static constexpr int group = BM / TM * (BN / TN); /* threads that share a pair of tiles */
    static constexpr int threads = group * SPLIT;
    static constexpr int a_row = BM + VARIANTS_TILE_PAD, b_row = BN + VARIANTS_TILE_PAD;
    static constexpr int stage = BK * (a_row + b_row);
    static constexpr int a_items = (BM * BK + group - 1) / group, b_items = (BN * BK + group - 1) / group;

    static_assert(threads <= 1024 && group % 32 == 0 && group % BK == 0 && group % BN == 0);
    static_assert(BM * BK % group == 0 && BN * BK % group == 0);
};

/* Where a thread's part of a tile of b lies. */
template <class T, bool CONV> struct b_reader {
    const float *from;
    int32_t k_at, n_at, row, column; /* row, column: of the image, at the window's first place; or the row in b */
    bool along_k;                    /* neighbours in k lie beside each other: threads go along k */

    __device__ b_reader(const problem &p, const float *b, int32_t n0, int lane) : from(b)
    {
        if constexpr (CONV) {
            k_at = lane / T::bn;
            n_at = lane % T::bn;
            along_k = false;
            const int32_t pixel = n0 + n_at;
            row = pixel / p.out_width * p.stride - p.pad;
            column = pixel % p.out_width * p.stride - p.pad;
            if (pixel >= p.n)
                row = -(1 << 24); /* outside of the image, whatever is added */
        } else {
            along_k = p.b_k == 1 && p.b_n != 1;
            k_at = along_k ? lane % T::bk : lane / T::bn;
            n_at = along_k ? lane / T::bk : lane % T::bn;
            row = column = n0;
        }
    }

    __device__ float read(const problem &p, int32_t k0, int item) const
    {
        if constexpr (CONV) {
            const int32_t k = k0 + k_at + item * (T::group / T::bn);
            const int32_t channel = quotient(k, p.window_magic);
            const int32_t place = k - channel * p.window_rows * p.window_columns;
            const int32_t down = quotient(place, p.column_magic);
            const int32_t y = row + down, x = column + place - down * p.window_columns;
            const bool inside = k < p.k && static_cast<uint32_t>(y) < static_cast<uint32_t>(p.height) &&
                                static_cast<uint32_t>(x) < static_cast<uint32_t>(p.width);
            return inside ? __ldg(from + (channel * p.height + y) * p.width + x) : 0.0f;
        } else {
            const int32_t k = k0 + k_at + (along_k ? 0 : item * (T::group / T::bn));
            const int32_t n = row + n_at + (along_k ? item * (T::group / T::bk) : 0);
            return k < p.k && n < p.n ? __ldg(from + static_cast<size_t>(k) * p.b_k + static_cast<size_t>(n) * p.b_n)
                                      : 0.0f;
        }
    }

    __device__ void store(float *tile, const float *held) const
    {
#pragma unroll
        for (int i = 0; i < T::b_items; i++) {
            const int k = k_at + (along_k ? 0 : i * (T::group / T::bn));
            const int n = n_at + (along_k ? i * (T::group / T::bk) : 0);
            tile[k * T::b_row + n] = held[i];
        }
    }
};

template <class T> __device__ inline void read_a(const problem &p, const float *a, int32_t m0, int32_t k0, int lane,
                                                  float *held)
{
    const int32_t k = k0 + lane % T::bk;
#pragma unroll
    for (int i = 0; i < T::a_items; i++) {
        const int32_t m = m0 + lane / T::bk + i * (T::group / T::bk);
        held[i] = m < p.m && k < p.k ? __ldg(a + static_cast<size_t>(m) * p.a_row + k) : 0.0f;
    }
}

template <class T> __device__ inline void store_a(float *tile, int lane, const float *held)
{
#pragma unroll
    for (int i = 0; i < T::a_items; i++)
        tile[lane % T::bk * T::a_row + lane / T::bk + i * (T::group / T::bk)] = held[i];
}

/* Where a thread's i-th of COUNT outputs lies in a block's ALL: four beside each other, then the next four further on. */
template <int ALL, int COUNT> __device__ inline int place(int thread, int i)
{
    constexpr int run = COUNT < 4 ? COUNT : 4;
    return i / run * (ALL / (COUNT / run)) + thread * run + i % run;
}

template <int ALL, int COUNT> __device__ inline void take(const float *row, int thread, float *to)
{
    constexpr int run = COUNT < 4 ? COUNT : 4;
#pragma unroll
    for (int i = 0; i < COUNT; i += run) {
        const float *const at = row + place<ALL, COUNT>(thread, i);
        if constexpr (run == 4)
            *reinterpret_cast<float4 *>(to + i) = *reinterpret_cast<const float4 *>(at);
        else if constexpr (run == 2)
            *reinterpret_cast<float2 *>(to + i) = *reinterpret_cast<const float2 *>(at);
        else
            to[i] = *at;
    }
}

template <class T> __device__ inline void multiply(const float *a, const float *b, int lane, float (&sum)[T::tm][T::tn])
{
    const int down = lane / (T::bn / T::tn), across = lane % (T::bn / T::tn);
#pragma unroll(T::unroll)
    for (int k = 0; k < T::bk; k++) {
        alignas(16) float left[T::tm], right[T::tn];
        take<T::bm, T::tm>(a + k * T::a_row, down, left);
        take<T::bn, T::tn>(b + k * T::b_row, across, right);
#pragma unroll
        for (int i = 0; i < T::tm; i++)
#pragma unroll
            for (int j = 0; j < T::tn; j++)
                sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
    }
}

/* Adds the sums of all groups to those of the first one, in their order. */
template <class T> __device__ inline void join(float *room, int group, int lane, float (&sum)[T::tm][T::tn])
{
    constexpr int count = T::tm * T::tn;
    float *const all = &sum[0][0];

    if (group > 0)
#pragma unroll
        for (int i = 0; i < count; i++)
            room[((group - 1) * count + i) * T::group + lane] = all[i];
    __syncthreads();
    if (group == 0)
        for (int g = 0; g < T::split - 1; g++)
#pragma unroll
            for (int i = 0; i < count; i++)
                all[i] += room[(g * count + i) * T::group + lane];
}

template <class T, bool CONV>
__global__ void __launch_bounds__(T::threads)
    tile_kernel(problem p, const float *x, const float *w, const float *bias, const float *add, float *y)
{
    extern __shared__ __align__(16) float shared[];
    const int group = static_cast<int>(threadIdx.x) / T::group, lane = static_cast<int>(threadIdx.x) % T::group;
    const int32_t m0 = static_cast<int32_t>(blockIdx.y) * T::bm, n0 = static_cast<int32_t>(blockIdx.x) * T::bn;
    const size_t product = blockIdx.z;
    const float *const a = (CONV ? w : x) + product * p.a_batch;
    const b_reader<T, CONV> reader(p, (CONV ? x : w) + product * p.b_batch, n0, lane);
    float *const mine = shared + group * 2 * T::stage;
    const int32_t step = T::bk * T::split, steps = (p.k + step - 1) / step;
    float a_held[T::a_items], b_held[T::b_items], sum[T::tm][T::tn] = {};

    for (int32_t s = 0; s <= steps; s++) {
        const int32_t k0 = s * step + group * T::bk;
        if (s < steps) {
            read_a<T>(p, a, m0, k0, lane, a_held);
#pragma unroll
            for (int i = 0; i < T::b_items; i++)
                b_held[i] = reader.read(p, k0, i);
        }
        if (s > 0) {
            const float *const from = mine + (s - 1) % 2 * T::stage;
            multiply<T>(from, from + T::bk * T::a_row, lane, sum);
        }
        if (s < steps) {
            float *const to = mine + s % 2 * T::stage;
            store_a<T>(to, lane, a_held);
            reader.store(to + T::bk * T::a_row, b_held);
        }
        __syncthreads();
    }
    if constexpr (T::split > 1)
        join<T>(shared, group, lane, sum);
    if (group > 0)
        return;
#pragma unroll
    for (int i = 0; i < T::tm; i++) {
        const int32_t m = m0 + place<T::bm, T::tm>(lane / (T::bn / T::tn), i);
#pragma unroll
        for (int j = 0; j < T::tn; j++) {
            const int32_t n = n0 + place<T::bn, T::tn>(lane % (T::bn / T::tn), j);
            if (m < p.m && n < p.n)
                y[product * p.y_batch + static_cast<size_t>(m) * p.y_row + n] =
                    finish(p, sum[i][j], bias, CONV ? m : n, CONV ? p.m : p.n, add,
                           static_cast<size_t>(m) * p.add_row + n);
        }
    }
}

} // namespace variants

#endif

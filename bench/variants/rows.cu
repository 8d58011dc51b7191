/*
 * The versions of operators that reduce rows: products with one vector, means, softmax, layer norm. A row belongs to a group
 * of threads; groups behind the last row compute that row again and write nothing, since all threads meet in reduce().
 */
#include <cfloat>

#include "operators.cuh"

namespace variants {

template <int THREADS, int ROWS> struct row_place {
    static constexpr int warps = THREADS < 32 ? 1 : THREADS / 32;
    int lane, group;
    int32_t row;
    bool mine; /* there is such a row */
    __device__ explicit row_place(int32_t rows)
        : lane(static_cast<int>(threadIdx.x) % THREADS), group(static_cast<int>(threadIdx.x) / THREADS),
          row(static_cast<int32_t>(blockIdx.x) * ROWS + group), mine(row < rows)
    {
        row = mine ? row : rows - 1;
    }
};

template <int OUTPUTS, int THREADS>
__global__ void __launch_bounds__(OUTPUTS *THREADS)
    vector_kernel(problem p, const float *x, const float *w, const float *bias, const float *add, float *y)
{
    __shared__ float room[OUTPUTS][row_place<THREADS, OUTPUTS>::warps];
    const row_place<THREADS, OUTPUTS> at(p.n);
    const int32_t m = static_cast<int32_t>(blockIdx.y);
    const float4 *const a = reinterpret_cast<const float4 *>(x + static_cast<size_t>(m) * p.a_row);
    const float4 *const b = reinterpret_cast<const float4 *>(w + static_cast<size_t>(at.row) * p.b_n);
    float sum = 0;

#pragma unroll 4
    for (int32_t k = at.lane; k < p.k / 4; k += THREADS) {
        const float4 u = __ldg(a + k), v = __ldg(b + k);
        sum = fmaf(u.x, v.x, fmaf(u.y, v.y, fmaf(u.z, v.z, fmaf(u.w, v.w, sum))));
    }
    sum = reduce<THREADS, false>(sum, room[at.group], at.lane);
    if (at.mine && at.lane == 0)
        y[static_cast<size_t>(m) * p.y_row + at.row] =
            finish(p, sum, bias, at.row, p.n, add, static_cast<size_t>(m) * p.add_row + at.row);
}

template <int THREADS, int ROWS>
__global__ void __launch_bounds__(THREADS *ROWS)
    average_kernel(problem p, const float *x, const float *, const float *bias, const float *add, float *y)
{
    __shared__ float room[ROWS][row_place<THREADS, ROWS>::warps];
    const row_place<THREADS, ROWS> at(p.rows);
    const float *const from = x + static_cast<size_t>(at.row) * p.columns;
    float sum = 0;

    for (int32_t c = at.lane; c < p.columns; c += THREADS)
        sum += __ldg(from + c);
    sum = reduce<THREADS, false>(sum, room[at.group], at.lane);
    if (at.mine && at.lane == 0)
        y[at.row] = finish(p, sum, bias, at.row, p.rows, add, static_cast<size_t>(at.row));
}

template <int THREADS, int ROWS>
__global__ void __launch_bounds__(THREADS *ROWS)
    softmax_kernel(problem p, const float *x, const float *, const float *, const float *, float *y)
{
    __shared__ float room[ROWS][row_place<THREADS, ROWS>::warps];
    const row_place<THREADS, ROWS> at(p.rows);
    const float *const from = x + static_cast<size_t>(at.row) * p.columns;
    float *const to = y + static_cast<size_t>(at.row) * p.columns;
    float largest = -FLT_MAX, sum = 0;

    for (int32_t c = at.lane; c < p.columns; c += THREADS)
        largest = fmaxf(largest, __ldg(from + c) * p.scale);
    largest = reduce<THREADS, true>(largest, room[at.group], at.lane);
    for (int32_t c = at.lane; c < p.columns; c += THREADS)
        sum += expf(__ldg(from + c) * p.scale - largest);
    sum = 1.0f / reduce<THREADS, false>(sum, room[at.group], at.lane);
    for (int32_t c = at.lane; at.mine && c < p.columns; c += THREADS)
        to[c] = expf(__ldg(from + c) * p.scale - largest) * sum;
}

/* bias: what is added to each column, then its factors. */
template <int THREADS, int ROWS>
__global__ void __launch_bounds__(THREADS *ROWS)
    layer_norm_kernel(problem p, const float *x, const float *, const float *bias, const float *add, float *y)
{
    __shared__ float room[ROWS][row_place<THREADS, ROWS>::warps];
    const row_place<THREADS, ROWS> at(p.rows);
    const size_t first = static_cast<size_t>(at.row) * p.columns;
    const auto value = [&](int32_t c) {
        return __ldg(x + first + c) + (p.flags & WITH_ADD ? __ldg(add + first + c) : 0.0f);
    };
    float mean = 0, square = 0;

    for (int32_t c = at.lane; c < p.columns; c += THREADS)
        mean += value(c);
    mean = reduce<THREADS, false>(mean, room[at.group], at.lane) / static_cast<float>(p.columns);
    for (int32_t c = at.lane; c < p.columns; c += THREADS) {
        const float off = value(c) - mean;
        square = fmaf(off, off, square);
    }
    square = reduce<THREADS, false>(square, room[at.group], at.lane) / static_cast<float>(p.columns);
    const float factor = rsqrtf(square + 1e-5f);
    for (int32_t c = at.lane; at.mine && c < p.columns; c += THREADS)
        y[first + c] = (value(c) - mean) * factor * __ldg(bias + p.columns + c) + __ldg(bias + c);
}

#define ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__),
#define VECTOR(outputs, threads) ADDRESS(vector_kernel<outputs, threads>)
#define AVERAGE(threads, rows) ADDRESS(average_kernel<threads, rows>)
#define SOFTMAX(threads, rows) ADDRESS(softmax_kernel<threads, rows>)
#define LAYER_NORM(threads, rows) ADDRESS(layer_norm_kernel<threads, rows>)
static const void *const vectors[] = {VARIANTS_VECTOR(VECTOR)};
static const void *const averages[] = {VARIANTS_AVERAGE(AVERAGE)};
static const void *const softmaxes[] = {VARIANTS_SOFTMAX(SOFTMAX)};
static const void *const layer_norms[] = {VARIANTS_LAYER_NORM(LAYER_NORM)};

function_list vector_functions()
{
    return vectors;
}

function_list average_functions()
{
    return averages;
}

function_list softmax_functions()
{
    return softmaxes;
}

function_list layer_norm_functions()
{
    return layer_norms;
}

} // namespace variants

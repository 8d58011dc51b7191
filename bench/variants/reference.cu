/*
 * The reference of each operator. Shares no code with the versions but what follows a sum.
 */
#include "reference.h"

#include "memory.h"
#include "operators.cuh"

namespace variants {

struct operands {
    const float *x, *w, *bias, *add;
    float *y;
};

__device__ static int64_t output_number()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

static __global__ void conv_reference(problem p, operands o)
{
    const int64_t i = output_number(), plane = static_cast<int64_t>(p.out_height) * p.out_width;
    if (i >= p.m * plane)
        return;
    const int channel = static_cast<int>(i / plane), row = static_cast<int>(i % plane / p.out_width);
    const int column = static_cast<int>(i % p.out_width);
    double sum = 0;
    int64_t k = static_cast<int64_t>(channel) * p.k;

    for (int c = 0; c < p.channels; c++)
        for (int r = 0; r < p.window_rows; r++)
            for (int s = 0; s < p.window_columns; s++, k++) {
                const int y = row * p.stride - p.pad + r, x = column * p.stride - p.pad + s;
                if (y >= 0 && y < p.height && x >= 0 && x < p.width)
                    sum += static_cast<double>(o.w[k]) *
                           static_cast<double>(o.x[(static_cast<int64_t>(c) * p.height + y) * p.width + x]);
            }
    o.y[i] = finish(p, static_cast<float>(sum), o.bias, channel, p.m, o.add, static_cast<size_t>(i));
}

static __global__ void matmul_reference(problem p, operands o)
{
    const int64_t i = output_number(), each = static_cast<int64_t>(p.m) * p.n;
    if (i >= p.batch * each)
        return;
    const int64_t product = i / each, m = i % each / p.n, n = i % p.n;
    double sum = 0;

    for (int64_t k = 0; k < p.k; k++)
        sum += static_cast<double>(o.x[product * p.a_batch + m * p.a_row + k]) *
               static_cast<double>(o.w[product * p.b_batch + k * p.b_k + n * p.b_n]);
    o.y[product * p.y_batch + m * p.y_row + n] = finish(p, static_cast<float>(sum), o.bias, static_cast<int32_t>(n), p.n,
                                                        o.add, static_cast<size_t>(m * p.add_row + n));
}

static __global__ void pool_reference(problem p, operands o)
{
    const int64_t i = output_number(), plane = static_cast<int64_t>(p.out_height) * p.out_width;
    if (i >= p.channels * plane)
        return;
    const int channel = static_cast<int>(i / plane), row = static_cast<int>(i % plane / p.out_width);
    const int column = static_cast<int>(i % p.out_width);
    float largest = -3.4e38f;

    for (int r = 0; r < p.window_rows; r++)
        for (int s = 0; s < p.window_columns; s++) {
            const int y = row * p.stride - p.pad + r, x = column * p.stride - p.pad + s;
            if (y >= 0 && y < p.height && x >= 0 && x < p.width)
                largest = fmaxf(largest, o.x[(static_cast<int64_t>(channel) * p.height + y) * p.width + x]);
        }
    o.y[i] = finish(p, largest, o.bias, channel, p.channels, o.add, static_cast<size_t>(i));
}

static __global__ void average_reference(problem p, operands o)
{
    const int64_t i = output_number();
    double sum = 0;
    if (i >= p.rows)
        return;
    for (int64_t c = 0; c < p.columns; c++)
        sum += static_cast<double>(o.x[i * p.columns + c]);
    o.y[i] = finish(p, static_cast<float>(sum), o.bias, static_cast<int32_t>(i), p.rows, o.add, static_cast<size_t>(i));
}

static __global__ void softmax_reference(problem p, operands o)
{
    const int64_t i = output_number();
    if (i >= static_cast<int64_t>(p.rows) * p.columns)
        return;
    const float *const row = o.x + i / p.columns * p.columns;
    double largest = -1e300, sum = 0;
    const double scale = static_cast<double>(p.scale);

    for (int c = 0; c < p.columns; c++)
        largest = fmax(largest, static_cast<double>(row[c]) * scale);
    for (int c = 0; c < p.columns; c++)
        sum += exp(static_cast<double>(row[c]) * scale - largest);
    o.y[i] = static_cast<float>(exp(static_cast<double>(o.x[i]) * scale - largest) / sum);
}

static __global__ void layer_norm_reference(problem p, operands o)
{
    const int64_t i = output_number();
    if (i >= static_cast<int64_t>(p.rows) * p.columns)
        return;
    const int64_t first = i / p.columns * p.columns;
    const int column = static_cast<int>(i % p.columns);
    const auto value = [&](int64_t at) {
        return static_cast<double>(o.x[at]) + (p.flags & WITH_ADD ? static_cast<double>(o.add[at]) : 0.0);
    };
    double mean = 0, square = 0;

    for (int c = 0; c < p.columns; c++)
        mean += value(first + c) / p.columns;
    for (int c = 0; c < p.columns; c++)
        square += (value(first + c) - mean) * (value(first + c) - mean) / p.columns;
    o.y[i] = static_cast<float>((value(i) - mean) / sqrt(square + 1e-5) * static_cast<double>(o.bias[p.columns + column]) +
                                static_cast<double>(o.bias[column]));
}

static __global__ void elements_reference(problem p, operands o)
{
    const int64_t i = output_number();
    if (i < static_cast<int64_t>(p.rows) * p.columns)
        o.y[i] = finish(p, o.x[i], o.bias, static_cast<int32_t>(i / p.columns), p.rows, o.add, static_cast<size_t>(i));
}

static __global__ void embedding_reference(problem p, operands o)
{
    const int64_t i = output_number(), row_size = static_cast<int64_t>(p.tables) * p.columns;
    if (i >= p.rows * row_size)
        return;
    const int64_t row = i / row_size, table = i % row_size / p.columns, column = i % p.columns;
    const int32_t *const index = reinterpret_cast<const int32_t *>(o.x) + (row * p.tables + table) * p.lookups;
    double sum = 0;

    for (int k = 0; k < p.lookups; k++)
        sum += static_cast<double>(o.w[(table * p.table_rows + index[k]) * p.columns + column]);
    o.y[row * p.y_row + table * p.columns + column] = static_cast<float>(sum);
}

static __global__ void interaction_reference(problem p, operands o)
{
    const int64_t i = output_number(), pairs = static_cast<int64_t>(p.tables) * (p.tables - 1) / 2;
    if (i >= p.rows * (p.columns + pairs))
        return;
    const int64_t row = i / (p.columns + pairs), place = i % (p.columns + pairs);
    const float *const features = o.x + row * p.tables * p.columns;
    double sum = 0;
    int64_t later = 1;

    if (place < p.columns) {
        sum = static_cast<double>(features[place]);
    } else {
        int64_t earlier = place - p.columns;
        for (; earlier >= later; later++)
            earlier -= later;
        for (int c = 0; c < p.columns; c++)
            sum += static_cast<double>(features[later * p.columns + c]) *
                   static_cast<double>(features[earlier * p.columns + c]);
    }
    o.y[row * p.y_row + place] = static_cast<float>(sum);
}

/* How many outputs; and which kernel computes them. */
struct plan {
    void (*kernel)(problem, operands);
    int64_t outputs;
};

static plan plan_of(const operation &o)
{
    const problem &p = o.p;
    const int64_t plane = static_cast<int64_t>(p.out_height) * p.out_width, rows = p.rows;

    switch (o.family) {
    case CONV: return {conv_reference, p.m * plane};
    case MATMUL: return {matmul_reference, static_cast<int64_t>(p.batch) * p.m * p.n};
    case POOL: return {pool_reference, p.channels * plane};
    case AVERAGE: return {average_reference, rows};
    case SOFTMAX: return {softmax_reference, rows * p.columns};
    case LAYER_NORM: return {layer_norm_reference, rows * p.columns};
    case ELEMENTS: return {elements_reference, rows * p.columns};
    case EMBEDDING: return {embedding_reference, rows * p.tables * p.columns};
    default: return {interaction_reference, rows * (p.columns + static_cast<int64_t>(p.tables) * (p.tables - 1) / 2)};
    }
}

void launch_reference(const operation &o)
{
    const plan what = plan_of(o);
    what.kernel<<<static_cast<unsigned>((what.outputs + 127) / 128), 128>>>(o.p, {o.x, o.w, o.bias, o.add, o.y});
    bench::require_cuda(cudaGetLastError(), ("the reference of " + o.name).c_str());
}

} // namespace variants

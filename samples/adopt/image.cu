/*
 * A program in plain CUDA, for acs-adopt (docs/adopt.md): it sharpens what is in focus in an image.
 *
 *     image [side of the image] [iterations]
 *
 * Its eleven kernels are those of the benchmark IMG of GrCUDA and HuntKTm: up to four could run at once, but the program
 * has one stream. It prints a checksum of the results, and the time of an iteration without its copies.
 */
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        const cudaError_t error = (call);                                                                              \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

constexpr int BLOCK = 256, BINS = 64;

/* The image is square, and repeats beyond its edges. */
__device__ inline float at(const float *image, int side, int row, int column)
{
    return image[((row + side) % side) * side + (column + side) % side];
}

template <int RADIUS> __global__ void blur(const float *image, const float *weights, float *out, int side)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= side * side)
        return;
    float sum = 0;
    for (int r = -RADIUS; r <= RADIUS; r++)
        for (int c = -RADIUS; c <= RADIUS; c++)
            sum += at(image, side, i / side + r, i % side + c) *
                   weights[(r + RADIUS) * (2 * RADIUS + 1) + c + RADIUS];
    out[i] = sum;
}

__global__ void sobel(const float *image, float *out, int side)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= side * side)
        return;
    float x = 0, y = 0;
    for (int k = -1; k <= 1; k++) {
        const float weight = k == 0 ? 2.0f : 1.0f;
        x += weight * (at(image, side, i / side + k, i % side + 1) - at(image, side, i / side + k, i % side - 1));
        y += weight * (at(image, side, i / side + 1, i % side + k) - at(image, side, i / side - 1, i % side + k));
    }
    out[i] = sqrtf(x * x + y * y);
}

/* The largest or smallest value of each of BINS parts. */
template <bool LARGEST> __global__ void extremes(const float *image, float *out, int n)
{
    __shared__ float best[BLOCK];
    float mine = image[blockIdx.x * (n / BINS)];
    for (int i = blockIdx.x * (n / BINS) + threadIdx.x; i < (blockIdx.x + 1) * (n / BINS); i += BLOCK)
        mine = LARGEST ? fmaxf(mine, image[i]) : fminf(mine, image[i]);
    best[threadIdx.x] = mine;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            best[threadIdx.x] = LARGEST ? fmaxf(best[threadIdx.x], best[threadIdx.x + half])
                                        : fminf(best[threadIdx.x], best[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = best[0];
}

__global__ void extend(float *image, const float *smallest, const float *largest, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low = smallest[0], high = largest[0];
    for (int k = 1; k < BINS; k++) {
        low = fminf(low, smallest[k]);
        high = fmaxf(high, largest[k]);
    }
    if (i < n)
        image[i] = fminf(1.0f, 5.0f * (image[i] - low) / (high - low));
}

__global__ void unsharpen(const float *image, const float *blurred, float *out, float amount, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = fminf(1.0f, fmaxf(0.0f, image[i] * (1 + amount) - blurred[i] * amount));
}

__global__ void combine(const float *front, const float *back, const float *mask, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = front[i] * mask[i] + back[i] * (1 - mask[i]);
}

static std::vector<float> gaussian(int radius, float sigma)
{
    std::vector<float> weights;
    float sum = 0;
    for (int r = -radius; r <= radius; r++)
        for (int c = -radius; c <= radius; c++)
            weights.push_back(std::exp(-(r * r + c * c) / (2 * sigma * sigma)));
    for (float weight : weights)
        sum += weight;
    for (float &weight : weights)
        weight /= sum;
    return weights;
}

static float *array(size_t count)
{
    float *array = nullptr;
    CHECK(cudaMalloc((void **)&array, count * sizeof *array));
    return array;
}
static float *upload(const std::vector<float> &values)
{
    float *const copy = array(values.size());
    CHECK(cudaMemcpy(copy, values.data(), values.size() * sizeof *copy, cudaMemcpyHostToDevice));
    return copy;
}

int main(int count, char **arguments)
{
    const int side = count > 1 ? atoi(arguments[1]) : 512, iterations = count > 2 ? atoi(arguments[2]) : 100;
    const int n = side * side, blocks = (n + BLOCK - 1) / BLOCK;
    if (side < BINS || side > 16384 || iterations < 1) {
        fprintf(stderr, "usage: image [side, at least %d] [iterations]\n", BINS);
        return 64;
    }
    std::vector<float> image(n), result(n);
    float *const input = array(n), *const narrow = upload(gaussian(1, 1)), *const wide = upload(gaussian(2, 10)),
                 *const soft = upload(gaussian(1, 5));
    float *const blur_narrow = array(n), *const blur_wide = array(n), *const blur_soft = array(n);
    float *const mask_narrow = array(n), *const mask_wide = array(n), *const largest = array(BINS),
                 *const smallest = array(BINS);
    float *const sharp = array(n), *const part = array(n), *const output = array(n);

    uint64_t checksum = 0;
    std::chrono::duration<double, std::micro> time{};
    for (int iteration = 0; iteration < iterations; iteration++) {
        for (int i = 0; i < n; i++)
            image[i] = (uint32_t(i) * 2654435761u + uint32_t(iteration) * 40503u) / 4294967296.0f;
        CHECK(cudaMemcpy(input, image.data(), n * sizeof *input, cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        const auto begin = std::chrono::steady_clock::now();
        blur<1><<<blocks, BLOCK>>>(input, narrow, blur_narrow, side);
        blur<2><<<blocks, BLOCK>>>(input, wide, blur_wide, side);
        blur<1><<<blocks, BLOCK>>>(input, soft, blur_soft, side);
        sobel<<<blocks, BLOCK>>>(blur_narrow, mask_narrow, side);
        sobel<<<blocks, BLOCK>>>(blur_wide, mask_wide, side);
        extremes<true><<<BINS, BLOCK>>>(mask_wide, largest, n);
        extremes<false><<<BINS, BLOCK>>>(mask_wide, smallest, n);
        extend<<<blocks, BLOCK>>>(mask_wide, smallest, largest, n);
        unsharpen<<<blocks, BLOCK>>>(input, blur_soft, sharp, 0.5f, n);
        combine<<<blocks, BLOCK>>>(sharp, blur_wide, mask_wide, part, n);
        combine<<<blocks, BLOCK>>>(part, blur_narrow, mask_narrow, output, n);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        if (iteration > 0 || iterations == 1)
            time += std::chrono::steady_clock::now() - begin;
        CHECK(cudaMemcpy(result.data(), output, n * sizeof *output, cudaMemcpyDeviceToHost));
        for (float value : result) {
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            checksum = checksum * 1099511628211u + bits;
        }
    }
    for (float *each : {input, narrow, wide, soft, blur_narrow, blur_wide, blur_soft, mask_narrow, mask_wide, largest,
                        smallest, sharp, part, output})
        CHECK(cudaFree(each));
    printf("checksum %016llx\n", static_cast<unsigned long long>(checksum));
    printf("time %.1f us per iteration\n", time.count() / (iterations > 1 ? iterations - 1 : 1));
    return 0;
}

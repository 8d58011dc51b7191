/*
 * Kernels and memory that the tests share. Every kernel whose result is compared mixes: it depends on the order in which
 * it and others touched a word, so a lost dependency shows.
 */
#ifndef GPU_KERNELS_CUH
#define GPU_KERNELS_CUH

#include "check.h"

#include <vector>

__host__ __device__ inline uint32_t mix_word(uint32_t old, uint32_t in, uint32_t salt)
{
    const uint32_t x = (old ^ salt) * 0x9e3779b1u + in;
    return x ^ (x >> 15);
}

__device__ inline uint64_t now_ns()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* Keep the GPU busy, so that what is not ordered behind this has time to go wrong. */
__device__ inline void delay(uint32_t ns)
{
    const uint64_t end = now_ns() + ns;
    while (ns && now_ns() < end) {
    }
}

static __global__ void mix_kernel(uint32_t *dst, const uint32_t *src, uint32_t words, uint32_t salt, uint32_t delay_ns)
{
    delay(delay_ns);
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
        dst[i] = mix_word(dst[i], src ? src[i] : 0, salt);
}

/* Spin until the host sets the flag, at most 20 s: a broken test shall end. */
static __global__ void wait_flag_kernel(volatile uint32_t *flag, uint32_t *dst)
{
    const uint64_t end = now_ns() + 20000000000ull;
    while (*flag == 0 && now_ns() < end) {
    }
    *dst += 1;
}

/* Device memory for one test. */
template <class T> struct device_buffer {
    T *data = nullptr;
    size_t count;

    explicit device_buffer(size_t n) : count(n)
    {
        CHECK_CUDA(cudaMalloc(&data, n * sizeof(T)));
        CHECK_CUDA(cudaMemset(data, 0, n * sizeof(T)));
        CHECK_CUDA(cudaDeviceSynchronize()); /* our streams do not wait for the legacy stream */
    }
    ~device_buffer() { CHECK_CUDA(cudaFree(data)); }
    device_buffer(const device_buffer &) = delete;
    device_buffer &operator=(const device_buffer &) = delete;

    size_t bytes() const { return count * sizeof(T); }
    std::vector<T> read() const
    {
        std::vector<T> host(count);
        CHECK_CUDA(cudaMemcpy(host.data(), data, bytes(), cudaMemcpyDeviceToHost));
        return host;
    }
    T first() const { return read()[0]; }
};

/* Queue a mix of `words` words: dst is read and written, src (may be NULL) is read. */
inline acs_op launch_mix(acs_context *context, uint32_t *dst, const uint32_t *src, uint32_t words, uint32_t salt,
                         uint32_t delay_ns)
{
    const uint32_t grid = words > 1024 ? 4 : 1;
    return ACS_LAUNCH_ON(context, mix_kernel, grid, 256, 0, ACS_ARGS(dst, src, words, salt, delay_ns),
                         ACS_USES(ACS_INOUT(dst, words * 4), ACS_IN(src, src ? words * 4 : 0)));
}

#endif

/*
 * The kernels of bundle.h: each with other parameters, so that a node which holds another op's arguments, or some of them,
 * shows in the result.
 */
#include <cuda_runtime.h>
#include <stdint.h>

enum { WORDS = 64 };

struct odd {
    short a;
    double b;
    char c;
};
struct large {
    uint32_t words[48];
};

static __device__ uint32_t mix(uint32_t old, uint32_t a, uint32_t b, uint32_t c, uint32_t salt)
{
    uint32_t x = (old ^ salt) * 0x9e3779b1u + a;
    x = (x ^ x >> 15) * 0x85ebca6bu + b;
    x = (x ^ x >> 13) * 0xc2b2ae35u + c;
    return x ^ x >> 16;
}

/* The grid is part of the result. */
static __device__ void work(uint32_t *to, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t salt)
{
    salt += gridDim.x * 977 + gridDim.y * 31 + gridDim.z;
    const uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const uint32_t step = gridDim.x * gridDim.y * gridDim.z * blockDim.x;
    for (uint32_t i = block * blockDim.x + threadIdx.x; i < WORDS; i += step)
        to[i] = mix(to[i], a ? a[i] : 0, b ? b[i] : 0, c ? c[i] : 0, salt);
}

static __device__ void spin(uint32_t ns)
{
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

static __global__ void plain_kernel(uint32_t *to, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t salt)
{
    if (salt & 1u << 30)
        spin(20000);
    work(to, a, b, c, salt);
}

static __global__ void odd_kernel(uint8_t low, uint32_t *to, odd rest, const uint32_t *a, const uint32_t *b,
                                  const uint32_t *c)
{
    work(to, a, b, c, low + (static_cast<uint32_t>(rest.a) << 8) + static_cast<uint32_t>(rest.b) + rest.c);
}

static __global__ void large_kernel(const __grid_constant__ large salts, uint32_t *to, const uint32_t *a,
                                    const uint32_t *b, const uint32_t *c)
{
    work(to, a, b, c, salts.words[0] + salts.words[47]);
}

static __global__ void shared_kernel(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t salt, uint32_t *to)
{
    extern __shared__ uint32_t own[];
    own[threadIdx.x] = salt;
    __syncthreads();
    work(to, a, b, c, own[blockDim.x - 1 - threadIdx.x]);
}

static __global__ void spin_kernel(uint32_t *to, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t ns)
{
    if (ns)
        spin(ns);
}

extern "C" const void *bundle_kernel(int number)
{
    const void *kernels[] = {reinterpret_cast<const void *>(plain_kernel), reinterpret_cast<const void *>(odd_kernel),
                             reinterpret_cast<const void *>(large_kernel), reinterpret_cast<const void *>(shared_kernel),
                             reinterpret_cast<const void *>(spin_kernel)};
    return kernels[number];
}

extern "C" void bundle_prepare(void)
{
}

extern "C" void bundle_hold(int)
{
}

extern "C" const int bundle_runs_at_once = 0;

extern "C" int bundle_zero(void *at, size_t bytes)
{
    return cudaMemset(at, 0, bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
}

extern "C" int bundle_read(void *to, const void *from, size_t bytes)
{
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost) == cudaSuccess;
}

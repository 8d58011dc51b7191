/*
 * Owns the memory of benchmarks. Called between runs, never inside a timed region. Compiled by nvcc where there is one,
 * else as C++: then there is CPU memory only.
 */
#include "memory.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acs_dual.hpp"
#include "op.h"

#ifdef __CUDACC__
#include <cuda_runtime_api.h>
#endif

namespace bench {

void require(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

void require_cuda(int code, const char *what)
{
    if (code == 0)
        return;
#ifdef __CUDACC__
    fprintf(stderr, "bench: %s: %s\n", what, cudaGetErrorString(static_cast<cudaError_t>(code)));
#else
    fprintf(stderr, "bench: %s: CUDA error %d\n", what, code);
#endif
    exit(1);
}

bool gpu_answers()
{
#ifdef __CUDACC__
    /* Before the first CUDA call: by default 32 streams share 8 hardware connections, and wait for each other falsely. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
#else
    return false;
#endif
}

unsigned gpu_count()
{
    int count = 0;
#ifdef __CUDACC__
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        count = 0;
#endif
    return static_cast<unsigned>(count);
}

unsigned device_count()
{
    acs_options options;
    require(acs_options_init(&options, sizeof options) == ACS_OK, "a bad option");
    return gpu_count() * static_cast<unsigned>(options.devices_per_gpu);
}

int gpu_of(unsigned device)
{
    const unsigned count = gpu_count();
    return static_cast<int>(count ? device % count : device);
}

const char *op_name(const op &o)
{
    switch (o.kind) {
    case OP_KERNEL: return o.kernel->site.name;
    case OP_COPY: return "copy";
    case OP_FILL: return "fill";
    case OP_CALL: return o.call->site ? o.call->site->name : "call";
    case OP_READ: return "read";
    }
    return "op";
}

/* The finaliser of splitmix64. */
ACS_DUAL uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

ACS_DUAL double unit(uint64_t seed, uint64_t i)
{
    return static_cast<double>(mix(seed ^ mix(i)) >> 40) * (1.0 / 16777216.0);
}

double random_unit(uint64_t seed, uint64_t i)
{
    return unit(seed, i);
}

template <class T> ACS_DUAL T random_at(uint64_t seed, uint64_t i, T low, T high)
{
    return static_cast<T>(static_cast<double>(low) +
                          (static_cast<double>(high) - static_cast<double>(low)) * unit(seed, i));
}

#ifdef __CUDACC__
template <class T> static __global__ void fill_random(T *to, size_t count, uint64_t seed, T low, T high)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = random_at(seed, i, low, high);
}
#endif

template <class T> static void fill(bool gpu, T *to, size_t count, uint64_t seed, T low, T high)
{
#ifdef __CUDACC__
    if (gpu) {
        fill_random<<<528, 256>>>(to, count, seed, low, high);
        require_cuda(cudaGetLastError(), "filling a buffer");
        return;
    }
#endif
    (void)gpu;
    for (size_t i = 0; i < count; i++)
        to[i] = random_at(seed, i, low, high);
}

void memory::random(float *to, size_t count, uint64_t seed, float low, float high)
{
    bench::fill(gpu_, to, count, seed, low, high);
}

void memory::random(double *to, size_t count, uint64_t seed, double low, double high)
{
    bench::fill(gpu_, to, count, seed, low, high);
}

memory::~memory()
{
    while (!blocks_.empty())
        release(blocks_.back().p);
}

void *memory::allocate(size_t bytes)
{
    void *p = nullptr;
    bytes = bytes ? (bytes + 255) / 256 * 256 : 256;
#ifdef __CUDACC__
    if (gpu_)
        require_cuda(cudaMalloc(&p, bytes), "cudaMalloc");
#endif
    if (!gpu_)
        p = aligned_alloc(256, bytes);
    require(p != nullptr, "out of memory");
    blocks_.push_back({p, bytes});
    return p;
}

void memory::release(void *p)
{
    for (size_t i = blocks_.size(); i-- > 0;)
        if (blocks_[i].p == p) {
            blocks_[i] = blocks_.back();
            blocks_.pop_back();
            break;
        }
#ifdef __CUDACC__
    if (gpu_) {
        (void)cudaFree(p);
        return;
    }
#endif
    free(p);
}

void memory::copy(void *to, const void *from, size_t bytes)
{
#ifdef __CUDACC__
    if (gpu_) {
        require_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
        wait();
        return;
    }
#endif
    if (bytes > 0) /* memcpy takes no null pointer, not even for nothing */
        memcpy(to, from, bytes);
}

void memory::upload(void *to, const void *from, size_t bytes)
{
    copy(to, from, bytes);
}

void memory::download(void *to, const void *from, size_t bytes)
{
    copy(to, from, bytes);
}

void memory::fill(void *to, int value, size_t bytes)
{
#ifdef __CUDACC__
    if (gpu_) {
        require_cuda(cudaMemset(to, value, bytes), "cudaMemset");
        return;
    }
#endif
    memset(to, value, bytes);
}

void memory::wait()
{
#ifdef __CUDACC__
    if (gpu_)
        require_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
#endif
}

} // namespace bench

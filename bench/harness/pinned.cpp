/*
 * Owns the calls for pinned host memory. Called between runs. Apart from memory.cu, which without nvcc knows no GPU: this is
 * tested over a pretended CUDA runtime.
 */
#include "memory.h"

#include <cstdlib>

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

void *pinned_allocate(bool gpu, size_t bytes)
{
    void *p = nullptr;
    bytes = (bytes + 255) / 256 * 256;
#if BENCH_CUDA
    if (gpu)
        require_cuda(cudaHostAlloc(&p, bytes, cudaHostAllocDefault), "cudaHostAlloc");
#endif
    if (!gpu)
        p = aligned_alloc(256, bytes);
    require(p != nullptr, "out of memory");
    return p;
}

void pinned_release(bool gpu, void *p)
{
#if BENCH_CUDA
    if (gpu) {
        (void)cudaFreeHost(p);
        return;
    }
#endif
    (void)gpu;
    free(p);
}

} // namespace bench

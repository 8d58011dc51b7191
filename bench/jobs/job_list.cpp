/*
 * Owns the host buffers of jobs. Called between runs; a runner's ops read and write the buffers during one.
 */
#include <cstdlib>
#include <cstring>

#include "job_runner.h"

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static char *allocate(bool gpu, size_t bytes)
{
    void *p = nullptr;
#if BENCH_CUDA
    if (gpu)
        require_cuda(cudaHostAlloc(&p, bytes, cudaHostAllocDefault), "cudaHostAlloc");
#endif
    if (!gpu)
        p = aligned_alloc(256, bytes);
    require(p != nullptr, "out of memory");
    return static_cast<char *>(p);
}

static void release(bool gpu, void *p)
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

job_list::job_list(const work &w, size_t count, bool gpu)
    : work_(w), count_(count), in_stride_(rounded(w.in_bytes())), out_stride_(rounded(w.out_bytes())), gpu_(gpu),
      in_(allocate(gpu, count * in_stride_)), out_(allocate(gpu, count * out_stride_))
{
    for (size_t job = 0; job < count; job++)
        w.fill(job, in_ + job * in_stride_);
}

job_list::~job_list()
{
    release(gpu_, in_);
    release(gpu_, out_);
}

void job_list::reset() const
{
    memset(out_, 0xff, count_ * out_stride_);
}

std::vector<char> job_list::results() const
{
    return std::vector<char>(out_, out_ + count_ * out_stride_);
}

} // namespace bench

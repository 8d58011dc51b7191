/*
 * Owns the host buffers of jobs, and where device buffers come from. Called between runs; a runner's ops read and write the
 * buffers during one.
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

job_list::job_list(const work &w, size_t count, bool gpu)
    : work_(w), count_(count), in_stride_(rounded(w.in_bytes())), out_stride_(rounded(w.out_bytes())), gpu_(gpu),
      in_(static_cast<char *>(pinned_allocate(gpu, count * in_stride_))),
      out_(static_cast<char *>(pinned_allocate(gpu, count * out_stride_)))
{
    for (size_t job = 0; job < count; job++)
        w.fill(job, in_ + job * in_stride_);
}

job_list::~job_list()
{
    pinned_release(gpu_, in_);
    pinned_release(gpu_, out_);
}

static void *take_buffer(bool gpu, size_t bytes)
{
    void *p = nullptr;
#if BENCH_CUDA
    if (gpu && cudaMalloc(&p, rounded(bytes)) != cudaSuccess) {
        (void)cudaGetLastError(); /* said by the caller: not found again by the next check */
        return nullptr;
    }
#endif
    return gpu ? p : aligned_alloc(256, rounded(bytes));
}

static void give_buffer(bool gpu, void *p)
{
#if BENCH_CUDA
    if (gpu) {
        (void)cudaFree(p);
        return;
    }
#endif
    (void)gpu;
    free(p);
}

std::string fill_ring(buffer_ring &ring, const work &w, size_t sets, bool gpu)
{
    const bool filled = ring.fill(w.buffers(), sets, [gpu](size_t bytes) { return take_buffer(gpu, bytes); },
                                  [gpu](void *p) { give_buffer(gpu, p); });
    return filled ? "" : "there is no memory for " + std::to_string(sets) + " sets of device buffers";
}

void job_list::reset() const
{
    memset(out_, 0xff, count_ * out_stride_);
}

std::vector<char> job_list::results() const
{
    return std::vector<char>(out_, out_ + count_ * out_stride_);
}

bool job_list::results_are(const std::vector<char> &right) const
{
    return right.size() == count_ * out_stride_ && memcmp(out_, right.data(), right.size()) == 0;
}

} // namespace bench

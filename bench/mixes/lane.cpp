/*
 * Owns the plain execution of a job. Called from threads of ways, each with lanes of its own, and by the processes that
 * are jobs.
 */
#include "lane.h"

#include <cstdlib>

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

void use_device(bool gpu, unsigned device)
{
#if BENCH_CUDA
    if (gpu)
        require_cuda(cudaSetDevice(gpu_of(device)), "cudaSetDevice");
#endif
    (void)gpu, (void)device;
}

device_memory::device_memory(bool gpu, unsigned device, source from) : gpu_(gpu), source_(from)
{
#if BENCH_CUDA
    if (gpu && from == POOL) {
        cudaMemPoolProps properties = {};
        cudaMemPool_t pool = nullptr;
        uint64_t keep = UINT64_MAX;
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = gpu_of(device);
        require_cuda(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
        require_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
        pool_ = pool;
    }
#endif
    (void)device, (void)source_;
}

device_memory::~device_memory()
{
#if BENCH_CUDA
    if (pool_)
        (void)cudaMemPoolDestroy(static_cast<cudaMemPool_t>(pool_));
#endif
}

#if BENCH_CUDA
static void *allocate_cuda(size_t bytes, void *pool, void *stream, failure &f)
{
    void *p = nullptr;
    const cudaError_t code = pool ? cudaMallocFromPoolAsync(&p, bytes, static_cast<cudaMemPool_t>(pool),
                                                            static_cast<cudaStream_t>(stream))
                                  : cudaMalloc(&p, bytes);
    if (code == cudaErrorMemoryAllocation)
        (void)cudaGetLastError(); /* the caller counts it: not found again by the next check */
    else
        f.cuda(code, pool ? "cudaMallocFromPoolAsync" : "cudaMalloc");
    return code == cudaSuccess ? p : nullptr;
}
#endif

void *device_memory::allocate(size_t bytes, void *stream, failure &f)
{
    void *p = nullptr;
#if BENCH_CUDA
    if (gpu_)
        p = allocate_cuda(bytes, pool_, stream, f);
#endif
    if (!gpu_)
        p = aligned_alloc(256, (bytes + 255) / 256 * 256);
    (void)stream, (void)f;
    if (!p)
        return nullptr;
    const uint64_t live = live_.fetch_add(bytes) + bytes;
    for (uint64_t peak = peak_.load(); peak < live && !peak_.compare_exchange_weak(peak, live);)
        continue;
    return p;
}

void device_memory::release(void *p, size_t bytes, void *stream, failure &f)
{
    live_.fetch_sub(bytes);
#if BENCH_CUDA
    if (gpu_ && pool_)
        f.cuda(cudaFreeAsync(p, static_cast<cudaStream_t>(stream)), "cudaFreeAsync");
    else if (gpu_)
        f.cuda(cudaFree(p), "cudaFree");
#endif
    if (!gpu_)
        free(p);
    (void)stream, (void)f;
}

void lane::begin(const task_block &b, void *place, failure &f)
{
    op o = {};
    o.kind = b.in ? OP_COPY : OP_FILL;
    o.to = place;
    o.from = b.in;
    o.bytes = b.bytes;
    if (b.in || b.zero)
        slot_.issue(o, f);
}

/* Blocks are freed behind the wait, for the pool to know that other streams need not wait for this one to use them. */
bool lane::run(job &j, failure &f)
{
    const std::vector<task_block> &blocks = j.of().blocks();
    bool room = true;
    places_.assign(blocks.size(), nullptr);
    for (size_t b = 0; b < blocks.size() && room; b++)
        room = (places_[b] = memory_.allocate(blocks[b].bytes, slot_.stream(), f)) != nullptr;
    if (room) {
        for (size_t b = 0; b < blocks.size(); b++)
            begin(blocks[b], places_[b], f);
        for (size_t k = 0; k < j.of().kernels(); k++)
            slot_.issue(j.kernel(k, places_), f);
        for (size_t b = 0; b < blocks.size(); b++) {
            op o = {};
            o.kind = OP_COPY;
            o.to = j.out(b);
            o.from = places_[b];
            o.bytes = blocks[b].bytes;
            if (o.to)
                slot_.issue(o, f);
        }
    }
    slot_.wait(f);
    for (size_t b = 0; b < blocks.size(); b++)
        if (places_[b])
            memory_.release(places_[b], blocks[b].bytes, slot_.stream(), f);
    return room;
}

} // namespace bench

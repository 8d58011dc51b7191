/*
 * Owns the ways of the CUDA runtime: its stream-ordered allocator and cudaMalloc. Called by the measuring loop. Looks at no
 * device but the current one.
 */
#include <cuda_runtime_api.h>

#include "way.h"

namespace bench {

namespace {

/* One stream, in which ops run in program order, and the first call that failed. */
class stream_way : public way {
public:
    stream_way() { require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
    ~stream_way() override { (void)cudaStreamDestroy(stream_); }
    stream_way(const stream_way &) = delete;
    stream_way &operator=(const stream_way &) = delete;

    void use(void *block, size_t bytes) override { note(cudaMemsetAsync(block, 1, bytes, stream_), "cudaMemsetAsync"); }

    std::string finish() override
    {
        note(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
        std::string what;
        what.swap(failure_);
        return what;
    }

protected:
    bool note(cudaError_t code, const char *what)
    {
        if (code == cudaSuccess)
            return true;
        (void)cudaGetLastError();
        if (failure_.empty())
            failure_ = std::string(what) + ": " + cudaGetErrorString(code);
        return false;
    }

    cudaStream_t stream_ = nullptr;

private:
    std::string failure_;
};

/* The default pool of the device, told to keep what it has, as is usually advised: else each synchronisation empties it. */
class async_way : public stream_way {
public:
    async_way()
    {
        int device = 0;
        uint64_t everything = UINT64_MAX, none = 0;
        require_cuda(cudaGetDevice(&device), "cudaGetDevice");
        require_cuda(cudaDeviceGetDefaultMemPool(&pool_, device), "cudaDeviceGetDefaultMemPool");
        require_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold_), "release threshold");
        require_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &everything), "release threshold");
        empty();
        require_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &none), "reserved memory");
    }

    ~async_way() override
    {
        empty();
        (void)cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold_);
    }

    void *take(size_t bytes) override
    {
        void *block = nullptr;
        return note(cudaMallocAsync(&block, bytes, stream_), "cudaMallocAsync") ? block : nullptr;
    }

    void give(void *block) override { note(cudaFreeAsync(block, stream_), "cudaFreeAsync"); }

    uint64_t reserved_bytes() override
    {
        uint64_t bytes = 0;
        return cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &bytes) == cudaSuccess ? bytes : 0;
    }

private:
    /* Blocks whose frees are still queued would stay. */
    void empty()
    {
        (void)cudaStreamSynchronize(stream_);
        (void)cudaMemPoolTrimTo(pool_, 0);
    }

    cudaMemPool_t pool_ = nullptr;
    uint64_t threshold_ = 0;
};

class cuda_way : public stream_way {
public:
    void *take(size_t bytes) override
    {
        void *block = nullptr;
        return note(cudaMalloc(&block, bytes), "cudaMalloc") ? block : nullptr;
    }

    void give(void *block) override { note(cudaFree(block), "cudaFree"); } /* waits for the device by itself */
    uint64_t reserved_bytes() override { return 0; }
};

} // namespace

std::string lacking_for_async()
{
    int device = 0, pools = 0;
    require_cuda(cudaGetDevice(&device), "cudaGetDevice");
    require_cuda(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device), "cudaDeviceGetAttribute");
    return pools ? "" : "the device has no memory pools";
}

std::unique_ptr<way> make_async_way(const machine &)
{
    return std::unique_ptr<way>(new async_way);
}

std::unique_ptr<way> make_cuda_way(const machine &)
{
    return std::unique_ptr<way>(new cuda_way);
}

} // namespace bench

/*
 * Owns the ways without ACS: one stream, with the memory of all blocks from begin to end, or of each block from its first
 * kernel to its last, moved there by hand; by cudaMallocAsync, whose pool keeps what it got. Called by the measuring loop.
 */
#include "streams_slot.h"
#include "task_way.h"

#include <cstdlib>

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

namespace {

class stream_way : public task_way {
public:
    stream_way(const machine &m, bool late) : gpu_(m.gpu), late_(late), slot_(m.gpu, 0)
    {
#if BENCH_CUDA
        if (gpu_) {
            cudaMemPoolProps properties = {};
            uint64_t keep = UINT64_MAX;
            properties.allocType = cudaMemAllocationTypePinned;
            properties.location.type = cudaMemLocationTypeDevice;
            require_cuda(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
            require_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
        }
#endif
    }
    ~stream_way() override
    {
#if BENCH_CUDA
        if (pool_)
            (void)cudaMemPoolDestroy(pool_);
#endif
    }
    stream_way(const stream_way &) = delete;
    stream_way &operator=(const stream_way &) = delete;

    std::string run(task &t) override
    {
        places_.assign(t.blocks().size(), nullptr);
        for (size_t b = 0; b < places_.size() && !late_; b++)
            begin(t, b);
        for (size_t k = 0; k < t.kernels(); k++) {
            for (size_t b = 0; b < places_.size() && late_; b++)
                if (t.blocks()[b].first == k)
                    begin(t, b);
            slot_.issue(t.kernel(k, places_), failure_);
            for (size_t b = 0; b < places_.size() && late_; b++)
                if (t.blocks()[b].last == k && places_[b])
                    end(t, b);
        }
        for (size_t b = 0; b < places_.size(); b++)
            if (places_[b])
                end(t, b);
        slot_.wait(failure_);
        return failure_.take();
    }

    uint64_t peak_bytes() override { return attribute(true); }
    uint64_t reserved_bytes() override { return attribute(false); }

private:
    void begin(const task &t, size_t b)
    {
        const task_block &block = t.blocks()[b];
        places_[b] = allocate(block.bytes);
        if (!block.in && !block.zero)
            return;
        op o = {};
        o.kind = block.in ? OP_COPY : OP_FILL;
        o.to = places_[b];
        o.from = block.in;
        o.bytes = block.bytes;
        slot_.issue(o, failure_);
    }

    void end(const task &t, size_t b)
    {
        const task_block &block = t.blocks()[b];
        op o = {};
        o.kind = OP_COPY;
        o.to = block.out;
        o.from = places_[b];
        o.bytes = block.bytes;
        if (block.out)
            slot_.issue(o, failure_);
        release(places_[b], block.bytes);
        places_[b] = nullptr;
    }

    void *allocate(size_t bytes)
    {
        void *p = nullptr;
#if BENCH_CUDA
        if (gpu_) {
            failure_.cuda(cudaMallocFromPoolAsync(&p, bytes, pool_, static_cast<cudaStream_t>(slot_.stream())),
                          "cudaMallocFromPoolAsync");
            return p;
        }
#endif
        p = aligned_alloc(256, (bytes + 255) / 256 * 256);
        live_ += bytes;
        peak_ = live_ > peak_ ? live_ : peak_;
        return p;
    }

    void release(void *p, size_t bytes)
    {
#if BENCH_CUDA
        if (gpu_) {
            failure_.cuda(cudaFreeAsync(p, static_cast<cudaStream_t>(slot_.stream())), "cudaFreeAsync");
            return;
        }
#endif
        live_ -= bytes;
        free(p);
    }

    uint64_t attribute(bool used)
    {
        uint64_t value = peak_;
#if BENCH_CUDA
        if (gpu_)
            require_cuda(cudaMemPoolGetAttribute(pool_, used ? cudaMemPoolAttrUsedMemHigh : cudaMemPoolAttrReservedMemHigh,
                                                 &value), "cudaMemPoolGetAttribute");
#endif
        (void)used, (void)gpu_;
        return value;
    }

    const bool gpu_, late_;
    slot slot_;
    failure failure_;
    std::vector<void *> places_;
    uint64_t live_ = 0, peak_ = 0; /* on the CPU */
#if BENCH_CUDA
    cudaMemPool_t pool_ = nullptr;
#endif
};

} // namespace

void add_stream_ways(std::vector<task_way_kind> &list)
{
    list.push_back({"stream", "one stream, memory of all blocks from begin to end", [](const machine &m, const task &) {
                        return std::unique_ptr<task_way>(new stream_way(m, false));
                    }});
    list.push_back({"stream-late", "one stream, memory of each block from its first kernel to its last, by hand",
                    [](const machine &m, const task &) { return std::unique_ptr<task_way>(new stream_way(m, true)); }});
}

} // namespace bench

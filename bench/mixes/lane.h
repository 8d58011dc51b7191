/*
 * How a job runs without ACS: all of its blocks are allocated, copies, kernels and copies follow each other in one
 * stream, then the blocks are freed.
 */
#ifndef BENCH_MIX_LANE_H
#define BENCH_MIX_LANE_H

#include <atomic>

#include "job.h"
#include "streams_slot.h"

namespace bench {

/** The calling thread's CUDA calls are for this device from now on; nothing on the CPU. */
void use_device(bool gpu, unsigned device);

/** A device's memory, for several threads at once. */
class device_memory {
public:
    /** A pool of the driver's, told to keep what it got; or cudaMalloc and cudaFree. On the CPU all is the same. */
    enum source { POOL, MALLOC };

    /** Of the device that the thread uses. */
    device_memory(bool gpu, unsigned device, source from);
    ~device_memory();
    device_memory(const device_memory &) = delete;
    device_memory &operator=(const device_memory &) = delete;

    /** @return null: there is no more; or `f` has something else. */
    void *allocate(size_t bytes, void *stream, failure &f);
    /** Of a block that nobody uses any more. */
    void release(void *p, size_t bytes, void *stream, failure &f);
    uint64_t peak_bytes() const { return peak_.load(); }

private:
    const bool gpu_;
    const source source_;
    [[maybe_unused]] void *pool_ = nullptr; /* a cudaMemPool_t */
    std::atomic<uint64_t> live_{0}, peak_{0};
};

class lane {
public:
    /** Its stream is of the device that the thread uses, whose memory this is. */
    lane(bool gpu, device_memory &m) : memory_(m), slot_(gpu, 0) {}

    /** Runs a job to its end. @return false: there was not enough memory, and nothing ran. */
    bool run(job &j, failure &f);

private:
    void begin(const task_block &b, void *place, failure &f);

    device_memory &memory_;
    slot slot_;
    std::vector<void *> places_;
};

} // namespace bench

#endif

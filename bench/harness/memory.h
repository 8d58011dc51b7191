/*
 * Memory of the machine that a benchmark runs on: the GPU's, by plain cudaMalloc, or the CPU's. Calls are synchronous
 * and used outside timed regions only.
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/** Prints "bench: <what>: <reason>" and ends the program with status 1 unless `code` (a cudaError_t) is 0. */
void require_cuda(int code, const char *what);
/** The same unless `ok`. */
void require(bool ok, const char *what);

/** Is there a GPU that this program can use? */
bool gpu_answers();
/** GPUs of the machine. */
unsigned gpu_count();
/** Devices that contexts can have on them: each GPU is as many as ACS_DEVICES_PER_GPU says. */
unsigned device_count();
/** The GPU that a device is on. */
int gpu_of(unsigned device);

class memory {
public:
    explicit memory(bool gpu) : gpu_(gpu) {}
    ~memory();
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    bool gpu() const { return gpu_; }
    /** 256-byte aligned; released with the object. Ends the program if there is none left. */
    void *allocate(size_t bytes);
    void release(void *p);
    void upload(void *to, const void *from, size_t bytes);
    void download(void *to, const void *from, size_t bytes);
    void copy(void *to, const void *from, size_t bytes);
    void fill(void *to, int value, size_t bytes);
    /** to[i] = low + (high - low) * u, u in [0, 1) from a hash of seed and i: the same numbers on both machines. */
    void random(float *to, size_t count, uint64_t seed, float low, float high);
    void random(double *to, size_t count, uint64_t seed, double low, double high);
    /** Waits for everything that was given to the GPU. */
    void wait();

    struct block {
        void *p;
        size_t bytes;
    };
    /** What was allocated and not released. */
    const std::vector<block> &blocks() const { return blocks_; }

private:
    bool gpu_;
    std::vector<block> blocks_;
};

/** Host memory that copies of the GPU reach at full speed; 256-byte aligned. Ends the program if there is none. */
void *pinned_allocate(bool gpu, size_t bytes);
void pinned_release(bool gpu, void *p);

/** The number in [0, 1) that memory::random derives from seed and i: 24 random bits, so exact as a float. */
double random_unit(uint64_t seed, uint64_t i);

} // namespace bench

#endif

/*
 * A way to allocate: the library with and without its pool, the driver's pool, the driver, the C library.
 *
 * An object is an allocator that starts cold: what it has kept goes back when it ends. Only one of them is there at a time,
 * for none to find the device filled by another.
 */
#ifndef BENCH_WAY_H
#define BENCH_WAY_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner.h"

namespace bench {

/* What an op of --use writes of a block, at most: the op is to be short, whatever the block's size. */
const size_t USED_BYTES = 4096;

class way {
public:
    virtual ~way() = default;
    /** A block, or null if it was refused. */
    virtual void *take(size_t bytes) = 0;
    /** Gives a block back once the ops that were queued before have used it; waits for none of them, if it can. */
    virtual void give(void *block) = 0;
    /** Queues an op that writes the block's first bytes; at most USED_BYTES. */
    virtual void use(void *block, size_t bytes) = 0;
    /** Waits until everything is complete. @return empty, or the first failure since the last call. */
    virtual std::string finish() = 0;
    /** Called before a run, outside of the clock: wakes the threads that a working program has awake. */
    virtual void ready() {}
    /** The most bytes that were reserved at once since the object was made; 0: it does not say. */
    virtual uint64_t reserved_bytes() = 0;
};

struct way_kind {
    const char *name, *about;
    bool gpu, host; /* where it runs */
    size_t most_pairs_gpu; /* where each call is one of the driver, so many of a trace are enough; 0: all */
    std::function<std::unique_ptr<way>(const machine &)> make;
    std::function<std::string()> lacking = nullptr; /* what the machine lacks for it; empty: nothing */
};

/** Every way, in the order of reports. */
const std::vector<way_kind> &way_kinds();
/** What the others are compared with on a machine. */
inline const char *reference_way(bool gpu)
{
    return gpu ? "async" : "malloc";
}

/* Those of the CUDA runtime: ways_cuda.cpp. */
std::unique_ptr<way> make_async_way(const machine &m);
std::unique_ptr<way> make_cuda_way(const machine &m);
std::string lacking_for_async();

} // namespace bench

#endif

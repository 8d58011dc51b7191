/*
 * Sets of device buffers that jobs take in turn: set k is for jobs k, k + N, k + 2 N and so on.
 */
#ifndef BENCH_BUFFER_RING_H
#define BENCH_BUFFER_RING_H

#include <functional>

#include "work.h"

namespace bench {

class buffer_ring {
public:
    typedef std::function<void *(size_t bytes)> allocator; /* null: refused */
    typedef std::function<void(void *)> releaser;

    buffer_ring() = default;
    ~buffer_ring() { clear(); }
    buffer_ring(const buffer_ring &) = delete;
    buffer_ring &operator=(const buffer_ring &) = delete;

    /** Gives back what there was and allocates `sets` sets. @return false if a buffer was refused; then there is no set. */
    bool fill(const std::vector<size_t> &bytes, size_t sets, const allocator &take, const releaser &give);
    void clear();

    size_t sets() const { return sets_.size(); }
    /** The set of a job; there must be sets. */
    const buffer_set &of(size_t job) const { return sets_[job % sets_.size()]; }
    uint64_t bytes() const { return bytes_; }

private:
    std::vector<buffer_set> sets_;
    releaser give_;
    uint64_t bytes_ = 0;
};

} // namespace bench

#endif

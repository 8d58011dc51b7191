/*
 * Owns the life of sets of buffers. Called by runners while nothing runs; knows no allocator.
 */
#include "buffer_ring.h"

namespace bench {

bool buffer_ring::fill(const std::vector<size_t> &bytes, size_t sets, const allocator &take, const releaser &give)
{
    clear();
    give_ = give;
    for (size_t k = 0; k < sets; k++) {
        sets_.emplace_back();
        for (size_t size : bytes) {
            void *const p = take(size);
            if (!p) {
                clear();
                return false;
            }
            sets_.back().push_back(p);
            bytes_ += size;
        }
    }
    return true;
}

void buffer_ring::clear()
{
    for (const buffer_set &s : sets_)
        for (void *p : s)
            give_(p);
    sets_.clear();
    bytes_ = 0;
}

} // namespace bench

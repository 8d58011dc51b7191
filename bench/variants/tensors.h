/*
 * Memory of networks: random weights and inputs that are the same in every run.
 */
#ifndef VARIANTS_TENSORS_H
#define VARIANTS_TENSORS_H

#include <cstddef>
#include <cstdint>

#include "memory.h"

namespace variants {

class tensors {
public:
    /** @param where  NULL: addresses without memory, for tests of shapes and footprints. */
    tensors(bench::memory *where, uint64_t seed) : where_(where), seed_(seed) {}

    /** Room for numbers; 256-byte aligned. */
    float *room(size_t count);
    /** The same with numbers from [low, high). */
    float *random(size_t count, float low, float high);
    /** For WITH_AFFINE: `count` numbers to add, then `count` factors near 1. */
    float *affine(size_t count);
    /** int32_t numbers from [0, below). */
    float *indices(size_t count, int32_t below);

private:
    void fill(float *to, size_t count, float low, float high);

    bench::memory *where_;
    uint64_t seed_, next_ = 256;
};

} // namespace variants

#endif

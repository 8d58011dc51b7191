/*
 * Fills the memory of networks, outside of timed regions.
 */
#include "tensors.h"

#include <vector>

namespace variants {

float *tensors::room(size_t count)
{
    const size_t bytes = (count * sizeof(float) + 255) / 256 * 256;

    if (where_)
        return static_cast<float *>(where_->allocate(bytes));
    const uintptr_t address = next_;
    next_ += bytes;
    return reinterpret_cast<float *>(address);
}

void tensors::fill(float *to, size_t count, float low, float high)
{
    if (where_)
        where_->random(to, count, ++seed_, low, high);
}

float *tensors::random(size_t count, float low, float high)
{
    float *const p = room(count);
    fill(p, count, low, high);
    return p;
}

float *tensors::affine(size_t count)
{
    float *const p = room(2 * count);
    fill(p, count, -0.1f, 0.1f);
    fill(p + count, count, 0.8f, 1.2f);
    return p;
}

float *tensors::indices(size_t count, int32_t below)
{
    float *const p = room(count);

    seed_++;
    if (where_) {
        std::vector<int32_t> list(count);
        for (size_t i = 0; i < count; i++)
            list[i] = static_cast<int32_t>(bench::random_unit(seed_, i) * below);
        where_->upload(p, list.data(), count * sizeof(int32_t));
    }
    return p;
}

} // namespace variants

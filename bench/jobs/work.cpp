/*
 * Owns the list of works and what their inputs and oracles share. Called by the program before and between runs.
 */
#include "work.h"

#include <algorithm>
#include <cmath>

namespace bench {

const std::vector<work_kind> &work_kinds()
{
    static const std::vector<work_kind> kinds = {
        {"sobel", "normalise, edges, mean, threshold, blend, of an image of bytes",
         [](memory &, const std::string &size) { return make_sobel(size); }},
        {"bp", "a training step of one layer, on a minibatch that is made on the device",
         [](memory &, const std::string &size) { return make_bp(size); }},
        {"gemm", "a product of two matrices by tiles", [](memory &, const std::string &size) { return make_gemm(size); }},
        {"knn", "classes of feature vectors by their nearest neighbours", make_knn},
        {"hotspot", "temperatures of a chip, some time steps",
         [](memory &, const std::string &size) { return make_hotspot(size); }},
    };
    return kinds;
}

void fill_random(float *to, size_t count, uint64_t seed, float low, float high)
{
    for (size_t i = 0; i < count; i++)
        to[i] = low + (high - low) * static_cast<float>(random_unit(seed, i));
}

std::string first_off(const float *got, const std::vector<double> &expected, double tolerance)
{
    for (size_t i = 0; i < expected.size(); i++) {
        const double off = std::fabs(static_cast<double>(got[i]) - expected[i]);
        if (!(off <= tolerance * std::max(1.0, std::fabs(expected[i])))) /* also where it is no number */
            return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " + std::to_string(expected[i]);
    }
    return "";
}

} // namespace bench

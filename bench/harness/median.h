/*
 * The median, as every benchmark program tells it.
 */
#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

/** Of an even number of values the mean of the two in the middle; 0 of none. */
inline double median_of(std::vector<double> values)
{
    const size_t n = values.size();
    std::sort(values.begin(), values.end());
    return n == 0 ? 0 : (n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2);
}

} // namespace bench

#endif

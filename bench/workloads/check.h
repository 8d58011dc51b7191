/*
 * How a workload's check() compares results with an oracle that was computed on the CPU in double precision. Used by
 * every family's .cu file, outside timed regions. A NaN is never right: buffers that nobody wrote are full of them.
 */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

#include "memory.h"

namespace bench {

/** Whether |got - want| <= relative * |want| + absolute. Written so that a NaN on either side fails. */
inline bool near(double got, double want, double relative, double absolute = 0)
{
    return std::fabs(got - want) <= relative * std::fabs(want) + absolute;
}

/** "<what>[index] is <got>, must be <want>" of the first element that is not near(), and how many are not; or empty. */
template <class T>
std::string differs(const char *what, const std::vector<T> &got, const std::vector<double> &want, double relative,
                    double absolute = 0)
{
    size_t wrong = 0, first = 0;
    char text[256] = "";

    if (got.size() != want.size()) {
        snprintf(text, sizeof text, "%s has %zu elements, must have %zu", what, got.size(), want.size());
        return text;
    }
    for (size_t i = got.size(); i-- > 0;)
        if (!near(static_cast<double>(got[i]), want[i], relative, absolute)) {
            wrong++;
            first = i;
        }
    if (wrong > 0)
        snprintf(text, sizeof text, "%s[%zu] is %.9g, must be %.9g; %zu of %zu are wrong", what, first,
                 static_cast<double>(got[first]), want[first], wrong, got.size());
    return text;
}

/** The same for one number. */
inline std::string differs(const char *what, double got, double want, double relative, double absolute = 0)
{
    return differs(what, std::vector<double>{got}, std::vector<double>{want}, relative, absolute);
}

/** The first of some findings that says anything. */
inline std::string first_of(std::initializer_list<std::string> findings)
{
    for (const std::string &f : findings)
        if (!f.empty())
            return f;
    return {};
}

/** Element i of what program::random puts into a buffer of T (float or double), for oracles. */
template <class T> double random_content(size_t i, uint64_t seed, T low, T high)
{
    const double from = static_cast<double>(low), range = static_cast<double>(high) - from;
    return static_cast<double>(static_cast<T>(from + range * random_unit(seed, i)));
}

/** The whole buffer. */
template <class T> std::vector<double> random_contents(size_t count, uint64_t seed, T low, T high)
{
    std::vector<double> v(count);
    for (size_t i = 0; i < count; i++)
        v[i] = random_content(i, seed, low, high);
    return v;
}

/**
 * For oracles that find single elements: differs() for about `most` elements, spread evenly; all of them where there
 * are no more. `want(i)` is what element i must be.
 */
template <class T, class W>
std::string differs_where(const char *what, const std::vector<T> &got, W want, double relative, double absolute = 0,
                          size_t most = 20000)
{
    /* An odd step meets every column of a matrix whose rows have an even length. */
    const size_t step = got.size() <= most ? 1 : (got.size() / most) | 1;
    char text[256];

    for (size_t i = 0; i < got.size(); i += step) {
        const double right = want(i);
        if (near(static_cast<double>(got[i]), right, relative, absolute))
            continue;
        snprintf(text, sizeof text, "%s[%zu] is %.9g, must be %.9g", what, i, static_cast<double>(got[i]), right);
        return text;
    }
    return {};
}

} // namespace bench

#endif

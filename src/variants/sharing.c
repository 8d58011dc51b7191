/*
 * Sharing of measurements (sharing.h): which versions are measured at which shares. Called by tuning, which measures. Knows
 * no device.
 */
#include "variants/sharing.h"

#include "base/tuning.h"

#include <math.h>

static bool is_known(const acs_version_times *t, uint32_t step)
{
    return t->us[step] > 0 && !isinf(t->us[step]);
}

/* The square root of a positive number (Heron's method): the library needs no libm. */
static double root(double x)
{
    double r = x > 1 ? x : 1;
    for (double last = 0; r != last && (last == 0 || r < last);) {
        last = r;
        r = (r + x / r) / 2;
    }
    return r;
}

/* Scaling the times changes nothing, so the paper's normalised latencies give the same value. */
double acs_sharing_correlation(const acs_sharing *s, uint32_t a, uint32_t b)
{
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!is_known(&s->times[i], a) || !is_known(&s->times[i], b))
            continue;
        const double u = s->times[i].us[a], v = s->times[i].us[b];
        n++;
        x += u;
        y += v;
        xx += u * u;
        yy += v * v;
        xy += u * v;
    }
    const double spread = (n * xx - x * x) * (n * yy - y * y);
    return n < 3 || !(spread > 0) ? 1 : (n * xy - x * y) / root(spread);
}

static bool measure_missing(const acs_sharing *s, const bool *wanted, uint32_t step)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (wanted[i] && !(s->times[i].us[step] > 0) && !s->measure(s->user, i, step))
            return false;
    return true;
}

/* Mark the best part of the versions at a step, one of so many and one at least. */
static void mark_best(const acs_sharing *s, uint32_t step, uint32_t part, bool *marked)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < s->count; i++)
        known += s->fits[i] && is_known(&s->times[i], step);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t better = 0;
        for (uint32_t k = 0; k < s->count; k++)
            better += s->fits[k] && is_known(&s->times[k], step) && s->times[k].us[step] < s->times[i].us[step];
        marked[i] |= s->fits[i] && is_known(&s->times[i], step) && better < (known + part - 1) / part;
    }
}

static bool refine(const acs_sharing *s, uint32_t low, uint32_t high)
{
    if (high - low < 2)
        return true;
    const uint32_t middle = (low + high) / 2;
    const bool alike = s->percent && acs_sharing_correlation(s, low, high) * 100 >= s->percent;
    const uint32_t part = alike ? TUNE_SHARING_ALIKE : TUNE_SHARING_UNLIKE;
    bool best[ACS_VERSIONS_MOST] = {false};
    mark_best(s, low, part, best);
    mark_best(s, high, part, best);
    if (!alike)
        return measure_missing(s, s->percent ? best : s->fits, middle) && refine(s, low, middle) && refine(s, middle, high);
    for (uint32_t step = low + 1; step < high; step++)
        if (!measure_missing(s, best, step))
            return false;
    return true;
}

bool acs_sharing_run(const acs_sharing *s)
{
    const uint32_t last = ACS_SHARE_STEPS - 1;
    return measure_missing(s, s->fits, last) && measure_missing(s, s->fits, 0) && refine(s, 0, last);
}

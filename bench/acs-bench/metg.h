/*
 * METG(50 %): the smallest granularity of tasks at which a runner still does useful work half of the time (Slaughter et
 * al., "Task Bench", section IV).
 */
#ifndef ACS_BENCH_METG_H
#define ACS_BENCH_METG_H

#include <map>
#include <string>
#include <vector>

#include "measure.h"
#include "pattern.h"

namespace bench {

/**
 * Time in µs that the pattern's work takes when nothing is lost between tasks: on a GPU, the same kernels in one large
 * grid (`width` kernels side by side, measured); on the CPU, the kernels' calibrated time on all CPUs.
 */
double ideal_us(bool gpu, const pattern_settings &s, double kernel_us, uint32_t ctas, size_t tasks);

/** One run on the curve of efficiency over granularity. */
struct curve_point {
    double granularity_us; /* elapsed time x workers / tasks */
    double efficiency;
};

/**
 * The granularity at which a curve falls below one half, on the straight line between its neighbours (granularity in
 * logarithms).
 * @return 0 if the curve never reaches one half, or never falls below it; *below then says which: true: it is below the
 *         smallest granularity measured.
 */
double metg_of(std::vector<curve_point> curve, bool *below);

/** Curves of all patterns and runners of one run of the program. */
class metg {
public:
    void add(const std::string &pattern, double kernel_us, double ideal, double workers, size_t tasks,
             const std::vector<outcome> &outcomes);
    void print() const;

private:
    std::vector<std::string> patterns_, runners_;
    std::map<std::string, std::map<std::string, std::vector<curve_point>>> curves_;
};

} // namespace bench

#endif

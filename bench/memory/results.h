/*
 * What acs-memory tells: a table for a person, a row of the result file for bench/report.
 */
#ifndef BENCH_MEMORY_RESULTS_H
#define BENCH_MEMORY_RESULTS_H

#include <vector>

#include "growth.h"
#include "passes.h"
#include "report.h"

namespace bench {

/** One line per way: us per pair of malloc and free, beside the reference's; memory. */
void print_ways(const allocation_trace &t, const pass_settings &s, const std::vector<way_outcome> &ways);
void write_ways(result_file &file, const allocation_trace &t, const pass_settings &s, uint64_t seed,
                const std::vector<way_outcome> &ways);

/** A line per call, and a row. */
void print_growth(const std::vector<growth_cost> &costs);
void write_growth(result_file &file, const std::vector<growth_cost> &costs);

} // namespace bench

#endif

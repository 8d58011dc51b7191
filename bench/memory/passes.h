/*
 * The measuring loop: one trace, several ways to allocate, interleaved within each repetition.
 *
 * In each repetition each way starts cold, and plays the trace again and again: the first pass, timed as the cold one; warm
 * passes that are not timed, in the first of which blocks are looked at; the pass that counts; and a pass in which each call
 * is timed by itself.
 */
#ifndef BENCH_PASSES_H
#define BENCH_PASSES_H

#include <string>
#include <vector>

#include "median.h"
#include "allocation_trace.h"
#include "way.h"

namespace bench {

struct pass_settings {
    machine where = {false, -1};
    int repetitions = 5;
    bool use = false; /* an op writes each block behind its malloc */
};

/** How a way did on a trace. Times are of a whole pass, one per repetition. */
struct way_outcome {
    const way_kind *kind = nullptr;
    std::string left_out, wrong; /* why it did not run; the first thing that was not as it must be */
    std::string note;
    size_t pairs = 0;            /* of malloc and free in a pass */
    uint64_t live_bytes = 0, reserved_bytes = 0; /* the most at once; reserved 0: not known */
    std::vector<double> calls_us; /* in the calls of malloc and free */
    std::vector<double> total_us; /* until everything was complete, the ops of --use too */
    std::vector<double> cold_us;  /* calls_us of the first pass */
    double malloc_p99_us = 0, free_p99_us = 0; /* of single calls, over all repetitions */

    bool ran() const { return left_out.empty() && wrong.empty() && !calls_us.empty(); }
};

/** Why a way does not run on a machine; empty: it does. */
std::string why_left_out(const way_kind &k, bool gpu);

std::vector<way_outcome> play(const allocation_trace &t, const std::vector<const way_kind *> &ways, const pass_settings &s);

/** The cost of reading the clock in µs, which is taken off whatever is timed in pieces. */
double clock_cost_us();
/** The value that `share` of the values do not exceed; reorders them; 0 of none. */
double quantile_of(std::vector<double> &values, double share);

} // namespace bench

#endif

/*
 * The measuring loop: one stream of jobs, several runners, interleaved within each repetition. Every run's results must be
 * those of the serial program, bit for bit, which an oracle has looked at.
 */
#ifndef BENCH_JOB_MEASURE_H
#define BENCH_JOB_MEASURE_H

#include "job_runner.h"
#include "median.h"

namespace bench {

struct job_settings {
    machine where = {false, -1};
    int repetitions = 5;
    size_t jobs = 256;
    std::vector<size_t> sets = {4, 8, 16, 32}; /* how many sets of buffers are tried; the fastest is kept */
    bool check = false;                        /* the oracle looks at every job, not only at the first and the last */
};

/** How a runner did. Times are of all jobs, one per repetition. */
struct job_outcome {
    const job_runner_kind *kind = nullptr;
    std::string left_out, wrong, note;
    size_t sets = 0; /* chosen; 0: there was nothing to choose */
    uint64_t device_bytes = 0;
    std::vector<double> total_us, submit_us;

    bool ran() const { return left_out.empty() && wrong.empty() && !total_us.empty(); }
    std::string setting() const { return sets ? std::to_string(sets) + " " + kind->sets : ""; }
};

struct job_results {
    std::string wrong; /* what the oracle says of the serial program; then nobody else was run */
    std::vector<job_outcome> outcomes;
};

job_results measure_jobs(const work &w, const std::vector<const job_runner_kind *> &kinds, const job_settings &s);

} // namespace bench

#endif

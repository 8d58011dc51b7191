/*
 * What acs-jobs tells: a table for a person with the paper's figures beside it, a row of the result file for bench/report.
 */
#ifndef BENCH_JOB_REPORT_H
#define BENCH_JOB_REPORT_H

#include "job_measure.h"
#include "report.h"

namespace bench {

/**
 * Speed-ups of SET over its baselines, from the paper's Table 1, on an RTX 3090 and an RTX 5090: the same methods, on other
 * GPUs, with other kernels and sizes.
 */
struct paper_row {
    const char *work;
    double stream[2], graph[2], batch[2], queue[2];
};

/** Null: not in the paper. */
const paper_row *paper_row_of(const std::string &work);

/** The baselines that the paper compares with; also names of runners. */
extern const char *const paper_baselines[4];
/** "2.99 / 1.86": over the baseline of this number; empty for no row. */
std::string paper_text(const paper_row *row, size_t baseline);

struct job_head {
    const work_kind *kind;
    std::string size;
    const work *what;
};

void print_jobs(const job_head &head, const job_settings &s, const std::vector<job_outcome> &done);
void write_jobs(result_file &file, const job_head &head, const job_settings &s, const std::vector<job_outcome> &done);

} // namespace bench

#endif

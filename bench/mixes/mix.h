/*
 * HuntKTm's workloads W1 to W8: which of its suite's tasks each one has, in which order they are handed over, and how
 * large they are.
 */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

#include <string>
#include <string_view>
#include <vector>

#include "workload.h"

namespace bench {

struct mix {
    std::string name;
    unsigned large, small;         /* jobs of m1, m2, bs, img; of vec, ml, dl */
    std::vector<std::string> jobs; /* the task of each, in order */
    double without, with;          /* the paper's Table 4: gigabytes of all jobs, without and with its memory manager */
};

/** All of them, W1 first; the same at each call. */
const std::vector<mix> &mixes();

/** The tasks that jobs are runs of; each is the name of a workload. */
const std::vector<std::string> &mix_tasks();
const workload &mix_workload(std::string_view task);

/** The paper's sizes with bytes times `scale`: rows and elements by it, sides of pictures by its root. */
sizes scaled_sizes(const workload &w, double scale);

} // namespace bench

#endif

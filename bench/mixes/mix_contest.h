/*
 * The measuring loop: one workload by several ways, which take turns within each repetition; and what is told of it.
 */
#ifndef BENCH_MIX_CONTEST_H
#define BENCH_MIX_CONTEST_H

#include "contest.h"
#include "mix.h"
#include "mix_way.h"
#include "report.h"

namespace bench {

struct mix_result {
    std::string name;
    double paper; /* as in mix_way_kind */
    std::string wrong;
    std::vector<double> us;
    unsigned exhausted = 0; /* jobs that found no memory, in all runs */
    uint64_t peak = 0, copied = 0;
};

/** A workload as it was run. */
struct mix_run {
    const mix &what;
    mix_machine on;
    double scale;
    bool processes;
    uint64_t bytes, in, out; /* of all jobs: of their blocks; copied to devices, and to the host */
};

/** Once for nothing, in which memory comes to where it stays, then `repetitions` times. Ways live as long as this. */
std::vector<mix_result> contend(const mix_run &r, const std::vector<mix_way_kind> &kinds, int repetitions);

/** Was every way right, and did every job find memory? */
bool is_right(const std::vector<mix_result> &results);

void print(const mix_run &r, const std::vector<mix_result> &results);
void write(result_file &file, const mix_run &r, const measuring &how, const std::vector<mix_result> &results);

/** The geometric mean of each way's speed over the first one's, beside the paper's. */
class mix_summary {
public:
    void add(const std::vector<mix_result> &results);
    void print(unsigned devices) const;

private:
    struct line {
        std::string name;
        double paper, logarithms;
        unsigned workloads;
    };
    std::vector<line> lines_;
    unsigned workloads_ = 0;
};

} // namespace bench

#endif

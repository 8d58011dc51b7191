/*
 * Owns what is told of a workload: a table for a person, a row of the result file, means over workloads. Measures
 * nothing.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "median.h"
#include "mix_contest.h"

namespace bench {

static double gigabytes(uint64_t bytes)
{
    return static_cast<double>(bytes) / 1e9;
}

static std::string number_text(const char *form, double value, bool known)
{
    char text[32] = "-";
    if (known)
        snprintf(text, sizeof text, form, value);
    return text;
}

/* Speed over the first way; negative: one of the two has no time. */
static double speed_of(const std::vector<mix_result> &results, const mix_result &r)
{
    const mix_result &base = results.front();
    if (!r.wrong.empty() || !base.wrong.empty() || r.us.empty() || base.us.empty())
        return -1;
    return median_of(base.us) / median_of(r.us);
}

void print(const mix_run &run, const std::vector<mix_result> &results)
{
    printf("\n%s on %u devices of %.4g GB each: %zu jobs%s, %u large and %u small, of %.4g GB, "
           "%.4g GB in and %.4g out; the paper's: %.4g GB, planned %.4g\n",
           run.what.name.c_str(), run.on.devices, gigabytes(run.on.limit), run.what.jobs.size(),
           run.processes ? ", each a process" : "", run.what.large, run.what.small, gigabytes(run.bytes),
           gigabytes(run.in), gigabytes(run.out), run.what.without, run.what.with);
    printf("  %-12s %28s %8s %9s %9s %12s\n", "way", "ms, median (least-most)", "speed", "peak GB", "GB/s",
           "no memory");
    for (const mix_result &r : results) {
        if (!r.wrong.empty()) {
            printf("  %-12s WRONG: %s (%u jobs found no memory)\n", r.name.c_str(), r.wrong.c_str(), r.exhausted);
            continue;
        }
        const auto ends = std::minmax_element(r.us.begin(), r.us.end());
        const double speed = speed_of(results, r);
        char ms[64];
        snprintf(ms, sizeof ms, "%.3f (%.3f-%.3f)", median_of(r.us) / 1000, *ends.first / 1000, *ends.second / 1000);
        printf("  %-12s %28s %8s %9s %9.4g %7u jobs\n", r.name.c_str(), ms,
               number_text("%.2f", speed, speed > 0).c_str(),
               number_text("%.4g", gigabytes(r.peak), r.peak > 0).c_str(),
               gigabytes(r.copied) / (median_of(r.us) / 1e6), r.exhausted);
    }
    fflush(stdout);
}

void write(result_file &file, const mix_run &run, const measuring &how, const std::vector<mix_result> &results)
{
    std::vector<entry> entries;
    for (const mix_result &r : results)
        entries.push_back({{{"name", r.name},
                            {"wrong", r.wrong},
                            {"peak_bytes", r.peak},
                            {"copied_bytes", r.copied},
                            {"exhausted", r.exhausted},
                            {"paper_speed", r.paper}},
                           {{"total_us", r.us}}});
    file.row({{"work", run.what.name},
              {"devices", run.on.devices},
              {"jobs", run.what.jobs.size()},
              {"large", run.what.large},
              {"small", run.what.small},
              {"scale", run.scale},
              {"limit_bytes", run.on.limit},
              {"processes", run.processes ? 1 : 0},
              {"bytes", run.bytes},
              {"in_bytes", run.in},
              {"out_bytes", run.out},
              {"paper_without_gb", run.what.without},
              {"paper_with_gb", run.what.with},
              {"reps", how.repetitions},
              {"cpu", how.first_cpu},
              {"backend", how.gpu ? "cuda" : "host"}},
             entries);
}

void mix_summary::add(const std::vector<mix_result> &results)
{
    workloads_++;
    for (const mix_result &r : results) {
        auto at = std::find_if(lines_.begin(), lines_.end(), [&](const line &l) { return l.name == r.name; });
        if (at == lines_.end())
            at = lines_.insert(at, {r.name, r.paper, 0, 0});
        const double speed = speed_of(results, r);
        if (speed > 0) {
            at->logarithms += std::log(speed);
            at->workloads++;
        }
    }
}

void mix_summary::print(unsigned devices) const
{
    printf("\n%u workloads on %u devices: geometric mean of the speeds; the paper's, on 4 A100\n", workloads_, devices);
    for (const line &l : lines_)
        printf("  %-12s %8s %8s\n", l.name.c_str(),
               number_text("%.2f", std::exp(l.logarithms / l.workloads), l.workloads == workloads_).c_str(),
               number_text("%.2f", l.paper, l.paper > 0).c_str());
    fflush(stdout);
}

} // namespace bench

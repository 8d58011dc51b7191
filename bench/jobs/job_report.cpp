/*
 * Owns the wording of acs-jobs's tables, the fields of its rows, and what the paper says. Called between works; measures
 * nothing itself.
 */
#include "job_report.h"

#include <algorithm>
#include <cstdio>

namespace bench {

const char *const paper_baselines[4] = {"stream", "graph", "batch", "queue"};

/* "SET: Stream-Event-Triggered Scheduling for Efficient CUDA Graph Pipelines" (arXiv:2606.05495), Table 1. Its SSSP is not
 * here: how many kernels a job has depends on the graph. */
static const paper_row table_1[] = {
    {"sobel", {2.99, 1.86}, {2.97, 1.71}, {1.23, 1.12}, {1.20, 1.10}},
    {"bp", {2.34, 2.78}, {2.26, 2.78}, {1.10, 1.04}, {1.01, 1.01}},
    {"gemm", {1.58, 1.39}, {1.58, 1.38}, {1.12, 1.02}, {1.01, 1.01}},
    {"knn", {2.47, 2.63}, {2.08, 2.19}, {1.23, 1.08}, {2.94, 2.09}},
    {"hotspot", {1.10, 1.47}, {1.39, 1.45}, {1.27, 1.56}, {1.38, 1.81}},
};

const paper_row *paper_row_of(const std::string &work)
{
    for (const paper_row &row : table_1)
        if (work == row.work)
            return &row;
    return nullptr;
}

std::string paper_text(const paper_row *row, size_t baseline)
{
    char text[32] = "";
    if (row) {
        const double *const figures[] = {row->stream, row->graph, row->batch, row->queue};
        snprintf(text, sizeof text, "%.2f / %.2f", figures[baseline][0], figures[baseline][1]);
    }
    return text;
}

static double per_job(const std::vector<double> &us, const job_settings &s)
{
    return median_of(us) / static_cast<double>(s.jobs);
}

static const job_outcome *named(const std::vector<job_outcome> &done, const std::string &name)
{
    for (const job_outcome &o : done)
        if (o.ran() && name == o.kind->name)
            return &o;
    return nullptr;
}

/* How many times as fast `o` is as the runner of this name; "-" where that did not run. */
static std::string times_text(const std::vector<job_outcome> &done, const job_outcome &o, const char *name)
{
    const job_outcome *const other = named(done, name);
    char text[32] = "-";
    if (other)
        snprintf(text, sizeof text, "%.2f", median_of(other->total_us) / median_of(o.total_us));
    return text;
}

static void print_outcome(const std::vector<job_outcome> &done, const job_outcome &o, const job_settings &s)
{
    char us[64];
    if (!o.ran()) {
        printf("  %-12s %s%s\n", o.kind->name, o.left_out.empty() ? "WRONG: " : "left out: ",
               (o.left_out + o.wrong).c_str());
        return;
    }
    const auto ends = std::minmax_element(o.total_us.begin(), o.total_us.end());
    const double jobs = static_cast<double>(s.jobs);
    snprintf(us, sizeof us, "%.2f (%.2f-%.2f)", per_job(o.total_us, s), *ends.first / jobs, *ends.second / jobs);
    printf("  %-12s %24s %9.2f", o.kind->name, us, per_job(o.submit_us, s));
    for (const char *baseline : paper_baselines)
        printf(" %8s", times_text(done, o, baseline).c_str());
    const std::string setting = o.setting();
    printf(" %9.2f   %s%s%s\n", static_cast<double>(o.device_bytes) / (1 << 20), setting.c_str(),
           setting.empty() || o.note.empty() ? "" : "; ", o.note.c_str());
}

static void print_ratio(const std::vector<job_outcome> &done, const char *name, const char *over)
{
    const job_outcome *const o = named(done, name);
    if (o && named(done, over))
        printf("  %s is %s times as fast as %s\n", name, times_text(done, *o, over).c_str(), over);
}

void print_jobs(const job_head &head, const job_settings &s, const std::vector<job_outcome> &done)
{
    const paper_row *const paper = paper_row_of(head.kind->name);

    printf("\n%s, size %s: %zu jobs of %u ops, %zu bytes in, %zu out\n", head.kind->name, head.size.c_str(), s.jobs,
           head.what->ops(), head.what->in_bytes(), head.what->out_bytes());
    printf("  %-12s %24s %9s %35s %9s\n", "us per job", "complete", "submitted", "times as fast as", "device");
    printf("  %-12s %24s %9s", "runner", "median (least-most)", "median");
    for (const char *baseline : paper_baselines)
        printf(" %8s", baseline);
    printf(" %9s\n", "MiB");
    for (const job_outcome &o : done)
        print_outcome(done, o, s);
    if (paper) {
        printf("  the paper's SET, on an RTX 3090 / an RTX 5090, times as fast as its own");
        for (size_t k = 0; k < 4; k++)
            printf("%s %s %s", k ? "," : "", paper_baselines[k], paper_text(paper, k).c_str());
        printf("\n");
    }
    print_ratio(done, "acs-rename", "acs-buffers");
    print_ratio(done, "acs-rename", "buffers");
    fflush(stdout);
}

void write_jobs(result_file &file, const job_head &head, const job_settings &s, const std::vector<job_outcome> &done)
{
    const paper_row *const paper = paper_row_of(head.kind->name);
    std::vector<entry> runners;
    uint64_t set_bytes = 0;

    for (size_t bytes : head.what->buffers())
        set_bytes += bytes;
    for (const job_outcome &o : done)
        runners.push_back({{{"name", o.kind->name},
                            {"setting", o.setting()},
                            {"note", o.note},
                            {"left_out", o.left_out},
                            {"wrong", o.wrong},
                            {"device_bytes", o.device_bytes}},
                           {{"total_us", o.total_us}, {"submit_us", o.submit_us}}});
    file.row({{"work", head.kind->name},
              {"size", head.size},
              {"jobs", s.jobs},
              {"ops", head.what->ops()},
              {"in_bytes", head.what->in_bytes()},
              {"out_bytes", head.what->out_bytes()},
              {"set_bytes", set_bytes},
              {"paper_stream", paper_text(paper, 0)},
              {"paper_graph", paper_text(paper, 1)},
              {"paper_batch", paper_text(paper, 2)},
              {"paper_queue", paper_text(paper, 3)},
              {"reps", s.repetitions},
              {"cpu", s.where.first_cpu},
              {"backend", s.where.gpu ? "cuda" : "host"}},
             runners);
}

} // namespace bench

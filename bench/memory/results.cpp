/*
 * Owns the wording of acs-memory's tables and the fields of its rows. Called between traces; measures nothing itself.
 */
#include "results.h"

#include <algorithm>
#include <cstdio>

namespace bench {

static std::string size_text(uint64_t bytes)
{
    const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    double size = static_cast<double>(bytes);
    size_t unit = 0;
    char text[32];

    for (; size >= 1024 && unit < 3; unit++)
        size /= 1024;
    snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
    return text;
}

static double per_pair(const way_outcome &o, const std::vector<double> &times_us)
{
    return median_of(times_us) / static_cast<double>(o.pairs);
}

static const way_outcome *reference_of(const std::vector<way_outcome> &ways, bool gpu)
{
    for (const way_outcome &o : ways)
        if (o.ran() && std::string(o.kind->name) == reference_way(gpu))
            return &o;
    return nullptr;
}

/* How many times as fast as the reference, in calls and until complete. */
static std::string times_text(const way_outcome &o, const way_outcome *reference)
{
    char text[32] = "";
    if (reference)
        snprintf(text, sizeof text, "%.2f, %.2f", per_pair(*reference, reference->calls_us) / per_pair(o, o.calls_us),
                 per_pair(*reference, reference->total_us) / per_pair(o, o.total_us));
    return text;
}

static void print_way(const way_outcome &o, const way_outcome *reference)
{
    if (!o.left_out.empty()) {
        printf("  %-8s left out: %s\n", o.kind->name, o.left_out.c_str());
        return;
    }
    if (!o.wrong.empty()) {
        printf("  %-8s WRONG: %s\n", o.kind->name, o.wrong.c_str());
        return;
    }
    const auto ends = std::minmax_element(o.calls_us.begin(), o.calls_us.end());
    const double pairs = static_cast<double>(o.pairs);
    char calls[64], memory[64] = "not known";
    snprintf(calls, sizeof calls, "%.3f (%.3f-%.3f)", per_pair(o, o.calls_us), *ends.first / pairs, *ends.second / pairs);
    if (o.reserved_bytes)
        snprintf(memory, sizeof memory, "%s, %.2f", size_text(o.reserved_bytes).c_str(),
                 static_cast<double>(o.reserved_bytes) / static_cast<double>(o.live_bytes));
    printf("  %-8s %24s %9.3f %14s %9.3f %9.3f %9.3f   %s%s%s\n", o.kind->name, calls, per_pair(o, o.total_us),
           times_text(o, reference).c_str(), o.malloc_p99_us, o.free_p99_us, per_pair(o, o.cold_us), memory,
           o.note.empty() ? "" : "; ", o.note.c_str());
}

void print_ways(const allocation_trace &t, const pass_settings &s, const std::vector<way_outcome> &ways)
{
    const char *const against = reference_way(s.where.gpu);

    printf("\n%s: %zu pairs of malloc and free, at most %s live; %s\n", t.name.c_str(), t.pairs(),
           size_text(peak_live_bytes(t)).c_str(),
           s.use ? "an op writes each block between the two (--use)"
                 : "no op touches a block, so that frees have nothing to wait for");
    if (!t.note.empty())
        printf("  %s\n", t.note.c_str());
    printf("  %-8s %24s %9s %14s %9s %9s %9s   %s\n", "us/pair", "in the calls", "complete",
           (std::string("x ") + against).c_str(), "malloc", "free", "cold", "memory reserved,");
    printf("  %-8s %24s %9s %14s %9s %9s %9s   %s\n", "way", "median (least-most)", "median", "calls, compl.", "p99, us",
           "p99, us", "median", "over live");
    const way_outcome *const reference = reference_of(ways, s.where.gpu);
    for (const way_outcome &o : ways)
        print_way(o, reference);
    fflush(stdout);
}

void write_ways(result_file &file, const allocation_trace &t, const pass_settings &s, uint64_t seed,
                const std::vector<way_outcome> &ways)
{
    std::vector<entry> runners;
    for (const way_outcome &o : ways)
        runners.push_back({{{"name", o.kind->name},
                            {"note", o.note},
                            {"left_out", o.left_out},
                            {"wrong", o.wrong},
                            {"pairs", o.pairs},
                            {"live_bytes", o.live_bytes},
                            {"reserved_bytes", o.reserved_bytes ? static_cast<double>(o.reserved_bytes) : -1},
                            {"malloc_p99_us", o.malloc_p99_us},
                            {"free_p99_us", o.free_p99_us}},
                           {{"calls_us", o.calls_us}, {"total_us", o.total_us}, {"cold_us", o.cold_us}}});
    file.row({{"work", t.name},
              {"use", s.use},
              {"pairs", t.pairs()},
              {"live_bytes", peak_live_bytes(t)},
              {"seed", seed},
              {"note", t.note},
              {"reference", reference_way(s.where.gpu)},
              {"reps", s.repetitions},
              {"cpu", s.where.first_cpu},
              {"backend", s.where.gpu ? "cuda" : "host"},
              {"clock_us", clock_cost_us()}},
             runners);
}

void print_growth(const std::vector<growth_cost> &costs)
{
    printf("\n%-24s %10s %-14s %24s   %s\n", "us a call", "piece", "call", "idle, median (least)",
           "beside work, median; waited for it");
    for (const growth_cost &idle : costs)
        for (const growth_cost &busy : costs) {
            if (idle.busy || !busy.busy || idle.way != busy.way || idle.call != busy.call || idle.bytes != busy.bytes)
                continue;
            printf("%-24s %10s %-14s %15.1f (%6.1f)   %.1f; %d of %zu\n", idle.way.c_str(), size_text(idle.bytes).c_str(),
                   idle.call.c_str(), median_of(idle.us), *std::min_element(idle.us.begin(), idle.us.end()),
                   median_of(busy.us), busy.waited, busy.us.size());
        }
    fflush(stdout);
}

void write_growth(result_file &file, const std::vector<growth_cost> &costs)
{
    for (const growth_cost &c : costs)
        file.row({{"work", "growth"}, {"bytes", c.bytes}, {"busy", c.busy}, {"reps", c.us.size()}},
                 {{{{"name", c.way}, {"call", c.call}, {"waited", c.waited}}, {{"calls_us", c.us}}}});
}

} // namespace bench

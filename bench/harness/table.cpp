/*
 * Owns the wording of tables. Called by the benchmark programs; measures nothing itself.
 */
#include "table.h"

#include "progress.h"

#include <cstdio>

namespace bench {

std::string short_number(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%g", x);
    return text;
}

/* The fastest runner that may be compared with ACS: it issues what it is given, and knows no run beforehand. */
static const outcome *best_rival(const std::vector<outcome> &outcomes)
{
    const outcome *best = nullptr;
    for (const outcome &o : outcomes) {
        if (o.samples.empty() || !o.wrong.empty() || o.kind->role != RIVAL)
            continue;
        if (!best || spread_of(o.samples, &sample::total_us).median < spread_of(best->samples, &sample::total_us).median)
            best = &o;
    }
    return best;
}

static void print_runner(const outcome &o, double ops, const outcome *rival)
{
    if (!o.left_out.empty()) {
        printf("  %-14s left out: %s\n", o.kind->name, o.left_out.c_str());
        return;
    }
    if (!o.wrong.empty()) {
        printf("  %-14s WRONG: %s\n", o.kind->name, o.wrong.c_str());
        return;
    }
    if (o.samples.empty())
        return;
    const spread total = spread_of(o.samples, &sample::total_us), submit = spread_of(o.samples, &sample::submit_us);
    const double times = rival ? spread_of(rival->samples, &sample::total_us).median / total.median : 0;
    printf("  %-14s %9.3f  %9.3f .. %-9.3f %9.3f  %6.2f   %s%s%s\n", o.kind->name, total.median / ops, total.low / ops,
           total.high / ops, submit.median / ops, times, o.setting.c_str(),
           o.setting.empty() || o.note.empty() ? "" : "; ", o.note.c_str());
}

void print_table(const table_head &head, const std::vector<outcome> &outcomes)
{
    bench_progress_hide();
    const double ops = static_cast<double>(head.ops);
    const outcome *const rival = best_rival(outcomes);

    printf("\n%s\n%zu ops", head.title.c_str(), head.ops);
    if (head.depth > 0)
        printf(", %llu edges, depth %u", static_cast<unsigned long long>(head.edges), head.depth);
    printf("; at least %.3f us per op (critical path %.3f", head.bound.largest() / ops, head.bound.critical_us / ops);
    if (head.bound.work_us > 0)
        printf(", work %.3f", head.bound.work_us / ops);
    if (head.bound.front_end_us > 0)
        printf(", front end %.3f", head.bound.front_end_us / ops);
    printf(")\n");
    printf("  %-14s %9s  %9s .. %-9s %9s  %6s\n", "runner", "us per op", "least", "most", "submitted",
           "x best");
    for (const outcome &o : outcomes)
        print_runner(o, ops, rival);
    if (rival)
        printf("  best rival: %s\n", rival->kind->name);
    fflush(stdout);
}

} // namespace bench

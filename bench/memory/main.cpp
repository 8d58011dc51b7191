/*
 * acs-memory: what a malloc and a free cost, by ACS and by its rivals in one run, on the same trace.
 *
 * Owns the command line and the order of measurements. Exit status: 0; 1: something was wrong, or failed; 2: bad command
 * line, or a trace that cannot be read.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "contest.h"
#include "growth.h"
#include "progress.h"
#include "results.h"

using namespace bench;

namespace {

struct settings {
    std::vector<std::string> only, ways = {"all"};
    std::string trace_file, write_file;
    measuring how;
    synthetic_settings synthetic;
    pass_settings passes;
    bool list = false, growth = false;
};

std::string usage()
{
    std::string text =
        "usage: acs-memory [options]\n"
        "  --only TRACE[,TRACE]     these synthetic traces, see below               (all; none where --trace is given)\n"
        "  --trace FILE             a recorded one: CSV, event,block,bytes,memory,op,file,line\n"
        "  --use                    an op writes each block (4 KiB of it at most) between its malloc and its free\n"
        "  --pairs N                mallocs of a synthetic trace, about                                       (4096)\n"
        "  --live N                 blocks that random keeps                                                   (256)\n"
        "  --seed N                 of synthetic traces                                                          (1)\n"
        "  --write FILE             write the synthetic trace that --only names as CSV, and measure nothing\n"
        "  --backend cuda|host      where the memory is                     (cuda where a GPU answers, else host)\n"
        "  --way W[,W]|all          who allocates, see below                                                   (all)\n"
        "  --reps N                 repetitions, in each of which every way starts cold                          (5)\n"
        "  --cpu N                  pin the program's thread to CPU N and the library's to those behind (not pinned)\n"
        "  --growth                 only: what calls cost that get memory from the device and give it back (cuda only)\n"
        "  --json FILE              write all figures for bench/report\n"
        "  --go-on                  skip what FILE has: the same command wrote it and was interrupted\n"
        "  --list                   traces and ways\n"
        "traces:\n";
    char line[200];
    for (const synthetic_kind &k : synthetic_kinds()) {
        snprintf(line, sizeof line, "  %-10s %s\n", k.name, k.about);
        text += line;
    }
    text += "ways:\n";
    for (const way_kind &k : way_kinds()) {
        snprintf(line, sizeof line, "  %-10s %s%s\n", k.name, k.about, k.gpu && !k.host ? " (cuda only)" :
                 (k.host && !k.gpu ? " (host only)" : ""));
        text += line;
    }
    return text;
}

bool parse_trace(settings &s, arguments &a)
{
    if (a.is("--only"))
        s.only = a.list();
    else if (a.is("--trace"))
        s.trace_file = a.text();
    else if (a.is("--write"))
        s.write_file = a.text();
    else if (a.is("--pairs"))
        s.synthetic.pairs = static_cast<uint32_t>(a.number(1, 10000000));
    else if (a.is("--live"))
        s.synthetic.live = static_cast<uint32_t>(a.number(1, 1000000));
    else if (a.is("--seed"))
        s.synthetic.seed = a.number(0, UINT32_MAX);
    else
        return false;
    return true;
}

settings parse(arguments &a)
{
    settings s;
    while (a.next()) {
        if (parse_trace(s, a) || s.how.take(a))
            continue;
        if (a.is("--use"))
            s.passes.use = true;
        else if (a.is("--list"))
            s.list = true;
        else if (a.is("--growth"))
            s.growth = true;
        else if (a.is("--way"))
            s.ways = a.list();
        else
            a.refuse("there is no such option");
    }
    s.passes.where = s.how.where();
    s.passes.repetitions = s.how.repetitions;
    return s;
}

std::vector<allocation_trace> traces_of(const settings &s, const arguments &a)
{
    std::vector<allocation_trace> traces;
    for (const std::string &name : s.only)
        if (std::none_of(synthetic_kinds().begin(), synthetic_kinds().end(),
                         [&](const synthetic_kind &k) { return name == k.name; }))
            a.refuse_for("--only", "there is no trace '" + name + "'");
    for (const synthetic_kind &k : synthetic_kinds())
        if (s.only.empty() ? s.trace_file.empty() : std::count(s.only.begin(), s.only.end(), k.name) > 0)
            traces.push_back(k.make(s.synthetic));
    if (!s.trace_file.empty()) {
        allocation_trace t;
        const std::string wrong = read_trace(s.trace_file, &t);
        if (!wrong.empty()) {
            fprintf(stderr, "acs-memory: --trace: %s\n", wrong.c_str());
            exit(2);
        }
        traces.push_back(std::move(t));
    }
    return traces;
}

/* Those that do not run here are said once, and stay in the results. */
std::vector<const way_kind *> ways_of(const settings &s, const arguments &a)
{
    std::vector<const way_kind *> ways;
    const bool all = s.ways == std::vector<std::string>{"all"};

    for (const std::string &name : s.ways)
        if (!all && std::none_of(way_kinds().begin(), way_kinds().end(), [&](const way_kind &k) { return name == k.name; }))
            a.refuse_for("--way", "there is no way '" + name + "'");
    for (const way_kind &k : way_kinds())
        if (all || std::count(s.ways.begin(), s.ways.end(), k.name) > 0)
            ways.push_back(&k);
    return ways;
}

int write_one(const settings &s, const arguments &a)
{
    if (s.only.size() != 1 || !s.trace_file.empty())
        a.refuse_for("--write", "needs one synthetic trace: --only NAME");
    const std::string wrong = write_trace(s.write_file, traces_of(s, a).front());
    if (!wrong.empty())
        fprintf(stderr, "acs-memory: --write: %s\n", wrong.c_str());
    return wrong.empty() ? 0 : 1;
}

#if BENCH_CUDA
int grow(const settings &s, const arguments &a)
{
    if (!s.passes.where.gpu)
        a.refuse_for("--growth", "needs a GPU");
    printf("%s\n", machine_line(true).c_str());
    result_file file(s.how.json, "acs-memory-growth", a.command(), true);
    const std::vector<growth_cost> costs = measure_growth(s.how.repetitions);
    print_growth(costs);
    write_growth(file, costs);
    return 0;
}
#else
int grow(const settings &, const arguments &a)
{
    a.refuse_for("--growth", "this was built without GPUs");
    return 2;
}
#endif

void list()
{
    for (const synthetic_kind &k : synthetic_kinds())
        printf("trace %-10s %s\n", k.name, k.about);
    for (const way_kind &k : way_kinds())
        printf("way   %-10s %s\n", k.name, k.about);
}

} // namespace

int main(int argc, char **argv)
{
    arguments a(argc, argv, "acs-memory", usage());
    const settings s = parse(a);
    bool ok = true;

    if (s.list) {
        list();
        return 0;
    }
    if (!s.write_file.empty())
        return write_one(s, a);
    if (s.growth)
        return grow(s, a);
    const std::vector<allocation_trace> traces = traces_of(s, a);
    const std::vector<const way_kind *> ways = ways_of(s, a);
    pin_thread(s.passes.where, 0);
    printf("%s; reading the clock takes %.3f us\n", machine_line(s.passes.where.gpu).c_str(), clock_cost_us());
    result_file file(s.how.json, "acs-memory", a.command(), s.passes.where.gpu);
    bench_interrupts_catch();
    bench_progress_begin("acs-memory", static_cast<double>(traces.size()));
    for (const allocation_trace &t : traces) {
        if (bench_interrupted())
            break;
        if (file.has({{"work", t.name}})) {
            bench_progress_skip();
            continue;
        }
        const std::vector<way_outcome> done = play(t, ways, s.passes);
        bench_progress_hide();
        print_ways(t, s.passes, done);
        write_ways(file, t, s.passes, s.synthetic.seed, done);
        if (!bench_interrupted())
            bench_progress_step(t.name.c_str());
        ok = ok && std::all_of(done.begin(), done.end(), [](const way_outcome &o) { return o.wrong.empty(); });
    }
    if (!ok)
        fprintf(stderr, "acs-memory: at least one way was wrong\n");
    return end_of("acs-memory", s.how.json, ok);
}

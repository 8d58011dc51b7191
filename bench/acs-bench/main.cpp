/*
 * acs-bench: patterns of tasks, issued by ACS and by its rivals in one run.
 *
 * Owns the command line and the order of measurements. Exit status: 0; 1: a runner's result was wrong, or something
 * failed; 2: bad command line; 130: interrupted.
 */
#include <algorithm>
#include <cstdio>
#include <thread>

#include "acs_context.h"
#include "contest.h"
#include "metg.h"
#include "pattern.h"
#include "progress.h"
#include "report.h"
#include "table.h"

using namespace bench;

namespace {

struct settings {
    std::vector<std::string> patterns = {"stencil_1d"};
    std::vector<double> kernel_us = {5};
    pattern_settings shape;
    uint32_t ctas = 4;
    int functions = 1;
    bool check = false;
    contest who{{"all"}};
};

const char usage_text[] =
    "usage: acs-bench [options]\n"
    "  --pattern P[,P]          who reads what, see below                                           (stencil_1d)\n"
    "  --width N, --steps N     tasks of a step, and steps                                             (32, 128)\n"
    "  --radix N, --period N    of nearest and spread                                                     (5, 2)\n"
    "  --fields N               cells per point, written in turn; 0: one per step, so that only what the\n"
    "                           pattern says is ordered                                                      (0)\n"
    "  --seed N                 of random patterns                                                           (1)\n"
    "  --kernel-us U[,U]        how long a kernel keeps its CTAs busy                                        (5)\n"
    "  --ctas N                 CTAs of a kernel                                                             (4)\n"
    "  --functions F            the kernel under F names, one at random per task (1 to 64)                   (1)\n"
    "  --check                  every task checks the marks that it must see; a wrong order fails the run\n";

bool parse_shape(settings &s, arguments &a)
{
    if (a.is("--pattern"))
        s.patterns = a.list();
    else if (a.is("--width"))
        s.shape.width = static_cast<uint32_t>(a.number(1, 100000));
    else if (a.is("--steps"))
        s.shape.steps = static_cast<uint32_t>(a.number(1, 1000000));
    else if (a.is("--radix"))
        s.shape.radix = static_cast<uint32_t>(a.number(1, 1000));
    else if (a.is("--period"))
        s.shape.period = static_cast<uint32_t>(a.number(1, 1000));
    else if (a.is("--fields"))
        s.shape.fields = static_cast<uint32_t>(a.number(0, 1000000));
    else if (a.is("--seed"))
        s.shape.seed = a.number(0, UINT32_MAX);
    else if (a.is("--kernel-us"))
        s.kernel_us = a.reals(0, 1e6);
    else if (a.is("--ctas"))
        s.ctas = static_cast<uint32_t>(a.number(1, 65535));
    else if (a.is("--functions"))
        s.functions = static_cast<int>(a.number(1, TASK_FUNCTIONS));
    else
        return false;
    return true;
}

settings parse(arguments &a)
{
    settings s;
    while (a.next()) {
        if (s.who.take(a) || parse_shape(s, a))
            continue;
        if (!a.is("--check"))
            a.refuse("there is no such option");
        s.check = true;
    }
    return s;
}

/* Refuses what cannot be run before anything is. */
void look_at(const settings &s, const arguments &a)
{
    for (const std::string &name : s.patterns) {
        pattern_settings one = s.shape;
        uint32_t cells = 0;
        one.name = name;
        one.width = std::min(one.width, 4u);
        one.steps = std::min(one.steps, 4u);
        if (pattern_tasks(one, &cells).empty())
            a.refuse_for("--pattern", "there is no pattern '" + name + "'");
    }
    if (static_cast<uint64_t>(s.shape.width) * s.shape.steps > 20000000)
        a.refuse_for("--steps", "width times steps is more than 20 million tasks");
}

/* What is known of a row before it is measured. */
std::vector<field> key_of(const settings &s, const std::string &name, double kernel_us)
{
    return {{"work", name},
            {"width", s.shape.width},
            {"steps", s.shape.steps},
            {"fields", s.shape.fields},
            {"radix", s.shape.radix},
            {"period", s.shape.period},
            {"seed", s.shape.seed},
            {"reps", s.who.repetitions},
            {"cpu", s.who.first_cpu},
            {"backend", s.who.gpu ? "cuda" : "host"},
            {"kernel_us", kernel_us},
            {"ctas", s.ctas},
            {"functions", s.functions},
            {"check", s.check}};
}

/* One pattern at one kernel time. @return whether every runner was right. */
bool measure_one(const settings &s, const std::string &name, double kernel_us, std::vector<contestant> &runners,
                 result_file &file, metg &curves)
{
    const bool gpu = s.who.gpu;
    const std::vector<field> key = key_of(s, name, kernel_us);
    if (file.has(key)) {
        bench_progress_skip();
        return true;
    }
    const unsigned workers = gpu ? s.shape.width : std::thread::hardware_concurrency();
    memory m(gpu);
    pattern_settings shape = s.shape;
    shape.name = name;
    pattern_program p(m, shape, kernel_us, s.ctas, s.functions, s.check);
    const trace t = p.describe();
    const dag d = t.ops.size() <= 20000 ? find_dag(t) : dag();
    const bounds b = bounds_of(t, d, gpu, gpu ? task_resident_ctas() : workers);
    /* What no runner can beat: all CTAs busy, or the longest path. */
    const double ideal = std::max(ideal_us(gpu, shape, kernel_us, s.ctas, t.ops.size()), b.critical_us);
    measure_settings how;
    how.repetitions = s.who.repetitions;
    how.check = true; /* final marks at least; outside of the clock */
    const std::vector<outcome> done = measure(p, runners, how);

    const table_head head = {name + ", kernels of " + short_number(kernel_us) + " us, " + std::to_string(s.ctas) + " CTAs",
                             t.ops.size(), d.edges, d.depth, b};
    print_table(head, done);
    std::vector<field> all = key;
    for (const field &more : {field("ops", static_cast<double>(t.ops.size())), field("edges", static_cast<double>(d.edges)),
                              field("depth", d.depth), field("critical_us", b.critical_us), field("work_us", b.work_us),
                              field("front_end_us", b.front_end_us), field("ideal_us", ideal), field("workers", workers)})
        all.push_back(more);
    file.row(all, done);
    if (!bench_interrupted())
        bench_progress_step(head.title.c_str());
    curves.add(name, kernel_us, ideal, workers, t.ops.size(), done);
    return std::all_of(done.begin(), done.end(), [](const outcome &o) { return o.wrong.empty(); });
}

} // namespace

int main(int argc, char **argv)
{
    arguments a(argc, argv, "acs-bench", usage_text + contest::help() + pattern_help());
    const settings s = parse(a);
    bool right = true;

    look_at(s, a);
    if (s.who.gpu)
        acs_use_executor(task_executor());
    std::vector<contestant> runners = s.who.enter(a);
    result_file file(s.who.json, "acs-bench", a.command(), s.who.gpu);
    metg curves;
    printf("%s\n%u x %u tasks; median of %d\n", machine_line(s.who.gpu).c_str(), s.shape.width, s.shape.steps,
           s.who.repetitions);
    bench_interrupts_catch();
    bench_progress_begin("acs-bench", static_cast<double>(s.patterns.size() * s.kernel_us.size()));
    for (const std::string &name : s.patterns)
        for (double us : s.kernel_us)
            if (!bench_interrupted())
                right = measure_one(s, name, us, runners, file, curves) && right;
    if (s.kernel_us.size() > 1)
        curves.print();
    if (!right)
        fprintf(stderr, "acs-bench: at least one result was wrong\n");
    return end_of("acs-bench", s.who.json, right);
}

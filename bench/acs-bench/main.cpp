/*
 * acs-bench: patterns of tasks, issued by ACS and by its rivals in one run.
 *
 * Owns the command line and the order of measurements. Exit status: 0; 1: a runner's result was wrong, or something
 * failed; 2: bad command line.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "arguments.h"
#include "metg.h"
#include "pattern.h"
#include "report.h"
#include "table.h"

using namespace bench;

namespace {

struct settings {
    std::vector<std::string> patterns = {"stencil_1d"}, runners = {"all"};
    std::vector<double> kernel_us = {5};
    pattern_settings shape;
    uint32_t ctas = 4;
    int functions = 1, first_cpu = -1;
    bool gpu = false;
    measure_settings measure;
    std::string json;
};

std::string usage()
{
    std::string text =
        "usage: acs-bench [options]\n"
        "  --backend cuda|host      where the kernels run                        (cuda where a GPU answers, else host)\n"
        "  --pattern P[,P]          who reads what, see below                                           (stencil_1d)\n"
        "  --width N, --steps N     tasks of a step, and steps                                             (32, 128)\n"
        "  --radix N, --period N    of nearest and spread                                                     (5, 2)\n"
        "  --fields N               cells per point, written in turn; 0: one per step, so that only what the\n"
        "                           pattern says is ordered                                                      (0)\n"
        "  --seed N                 of random patterns                                                           (1)\n"
        "  --kernel-us U[,U]        how long a kernel keeps its CTAs busy                                        (5)\n"
        "  --ctas N                 CTAs of a kernel                                                             (4)\n"
        "  --functions F            the kernel under F names, one at random per task (1 to 64)                   (1)\n"
        "  --runner R[,R]|all       who issues, see below                                                      (all)\n"
        "  --reps N                 timed repetitions of each runner                                             (5)\n"
        "  --check                  every task checks the marks that it must see; a wrong order fails the run\n"
        "  --cpu N                  pin the program's thread to CPU N and the runners' to those behind   (not pinned)\n"
        "  --json FILE              write all figures for bench/report\n";
    text += pattern_help();
    text += "runners:\n";
    for (const runner_kind &k : runner_kinds()) {
        char line[200];
        snprintf(line, sizeof line, "  %-14s %s%s\n", k.name, k.about,
                 k.gpu && k.host ? "" : (k.gpu ? " (cuda only)" : " (host only)"));
        text += line;
    }
    return text;
}

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
    s.gpu = gpu_answers();
    while (a.next()) {
        if (parse_shape(s, a))
            continue;
        if (a.is("--backend")) {
            const std::string name = a.text();
            if (name != "cuda" && name != "host")
                a.refuse("'" + name + "' is neither cuda nor host");
            if (name == "cuda" && !gpu_answers())
                a.refuse("no GPU answers");
            s.gpu = name == "cuda";
        } else if (a.is("--runner")) {
            s.runners = a.list();
        } else if (a.is("--reps")) {
            s.measure.repetitions = static_cast<int>(a.number(1, 10000));
        } else if (a.is("--check")) {
            s.measure.check = true;
        } else if (a.is("--cpu")) {
            s.first_cpu = static_cast<int>(a.number(0, 1023));
        } else if (a.is("--json")) {
            s.json = a.text();
        } else {
            a.refuse("there is no such option");
        }
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
            a.refuse("there is no pattern '" + name + "'");
    }
    if (static_cast<uint64_t>(s.shape.width) * s.shape.steps > 20000000)
        a.refuse("width times steps is more than 20 million tasks");
}

/* One pattern at one kernel time. @return whether every runner was right. */
bool measure_one(const settings &s, const std::string &name, double kernel_us, std::vector<contestant> &runners,
                 result_file &file, metg &curves)
{
    memory m(s.gpu);
    pattern_settings shape = s.shape;
    shape.name = name;
    pattern_program p(m, shape, kernel_us, s.ctas, s.functions, s.measure.check);
    const trace t = p.describe();
    const dag d = t.ops.size() <= 20000 ? find_dag(t) : dag();
    const bounds b = bounds_of(t, d, s.gpu, s.gpu ? task_resident_ctas() : std::thread::hardware_concurrency());
    const double ideal = ideal_us(s.gpu, shape, kernel_us, s.ctas, t.ops.size());
    const std::vector<outcome> done = measure(p, runners, s.measure);

    const table_head head = {name + ", kernels of " + short_number(kernel_us) + " us, " + std::to_string(s.ctas) + " CTAs",
                             t.ops.size(), d.edges, d.depth, b};
    print_table(head, done);
    file.row({{"work", name},
              {"width", shape.width},
              {"steps", shape.steps},
              {"fields", shape.fields},
              {"kernel_us", kernel_us},
              {"ctas", s.ctas},
              {"functions", s.functions},
              {"check", s.measure.check},
              {"ops", static_cast<double>(t.ops.size())},
              {"edges", static_cast<double>(d.edges)},
              {"depth", d.depth},
              {"critical_us", b.critical_us},
              {"work_us", b.work_us},
              {"front_end_us", b.front_end_us},
              {"ideal_us", ideal},
              {"workers", s.gpu ? shape.width : std::thread::hardware_concurrency()}},
             done);
    curves.add(name, kernel_us, ideal, s.gpu ? shape.width : std::thread::hardware_concurrency(), t.ops.size(), done);
    return std::all_of(done.begin(), done.end(), [](const outcome &o) { return o.wrong.empty(); });
}

} // namespace

int main(int argc, char **argv)
{
    arguments a(argc, argv, "acs-bench", usage());
    const settings s = parse(a);
    bool right = true;

    look_at(s, a);
    const machine m = {s.gpu, s.first_cpu};
    pin_thread(m, 0);
    std::string unknown;
    std::vector<contestant> runners = make_contestants(m, s.runners, &unknown);
    if (!unknown.empty())
        a.refuse("there is no runner '" + unknown + "' on this machine");
    result_file file(s.json, "acs-bench", a.command(), s.gpu);
    metg curves;
    printf("%s\n%u x %u tasks; median of %d\n", machine_line(s.gpu).c_str(), s.shape.width, s.shape.steps,
           s.measure.repetitions);
    for (const std::string &name : s.patterns)
        for (double us : s.kernel_us)
            right = measure_one(s, name, us, runners, file, curves) && right;
    if (s.kernel_us.size() > 1)
        curves.print();
    if (!right)
        fprintf(stderr, "acs-bench: at least one result was wrong\n");
    return right ? 0 : 1;
}

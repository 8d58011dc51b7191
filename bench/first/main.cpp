/*
 * acs-first: the learning curve. What each pass of a program costs from the first kernel on, through ACS and by rivals.
 *
 * Owns the command line, the rows and their table. Exit status: 0; 1: a runner's result was wrong, or something failed;
 * 2: bad command line; 130: interrupted.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "contest.h"
#include "median.h"
#include "passes.h"
#include "pattern.h"
#include "progress.h"
#include "report.h"

using namespace bench;

namespace {

struct row {
    std::string pattern;
    uint32_t kernels;
};

struct settings {
    std::vector<row> rows = {{"fresh:64", 100},     {"chains:32", 1000},   {"fresh:64", 1000},   {"random:64", 8000},
                             {"random:64", 10000}, {"chains:32", 10000}, {"random:64", 100000}};
    double kernel_us = 5;
    uint32_t ctas = 4;
    passes_settings how;
    contest who{{"all"}};
};

/* The first passes of a table, each by itself; later ones are told as one median. */
enum { PASSES_SHOWN = 4 };

const char usage_text[] =
    "usage: acs-first [options]\n"
    "  --rows P/N[,P/N]         patterns, and kernels of a pass    (fresh:64/100,chains:32/1000,fresh:64/1000,\n"
    "                           random:64/8000,random:64/10000,chains:32/10000,random:64/100000)\n"
    "  --passes N               of a program                                                                (12)\n"
    "  --kernel-us U            how long a kernel keeps its CTAs busy                                        (5)\n"
    "  --ctas N                 CTAs of a kernel                                                             (4)\n";

pattern_settings shape_of(const row &r)
{
    pattern_settings shape;
    shape.name = r.pattern;
    shape.width = 1;
    shape.steps = r.kernels;
    return shape;
}

std::vector<row> rows_of(arguments &a)
{
    std::vector<row> rows;
    for (const std::string &text : a.list()) {
        const std::vector<std::string> parts = split(text, '/');
        const double kernels = parts.size() == 2 ? atof(parts[1].c_str()) : 0;
        if (!(kernels >= 1 && kernels <= 1000000 && kernels == std::floor(kernels)))
            a.refuse("'" + text + "' is not a pattern and a number of kernels up to 1000000, such as random:64/8000");
        rows.push_back({parts[0], static_cast<uint32_t>(kernels)});
        uint32_t cells = 0;
        if (pattern_tasks(shape_of({parts[0], 16}), &cells).empty())
            a.refuse("there is no pattern '" + parts[0] + "'");
    }
    return rows;
}

settings parse(arguments &a)
{
    settings s;
    while (a.next()) {
        if (s.who.take(a))
            continue;
        if (a.is("--rows"))
            s.rows = rows_of(a);
        else if (a.is("--passes"))
            s.how.passes = static_cast<int>(a.number(1, 1000));
        else if (a.is("--kernel-us"))
            s.kernel_us = a.real(0, 1e6);
        else if (a.is("--ctas"))
            s.ctas = static_cast<uint32_t>(a.number(1, 65535));
        else
            a.refuse("there is no such option");
    }
    s.how.repetitions = s.who.repetitions;
    return s;
}

/* Median µs of a pass, the first being 0; of those from `pass` on, if `later`. */
double pass_us(const curve &c, size_t pass, bool later = false)
{
    std::vector<double> us;
    for (size_t k = pass; k < (later ? c.total_us.size() : pass + 1); k++)
        us.insert(us.end(), c.total_us[k].begin(), c.total_us[k].end());
    return median_of(us);
}

bool shown(const curve &c)
{
    return c.left_out.empty() && c.wrong.empty() && !c.total_us.front().empty();
}

/* The least that a rival takes for a pass; 0: there is none. */
double best_rival_us(const std::vector<curve> &curves, size_t pass)
{
    double best = 0;
    for (const curve &c : curves)
        if (c.kind->role == RIVAL && shown(c) && (best <= 0 || pass_us(c, pass) < best))
            best = pass_us(c, pass);
    return best;
}

/* The largest factor over the best rival, in any pass. */
double worst_factor(const std::vector<curve> &curves, const curve &of)
{
    double worst = 0;
    for (size_t pass = 0; pass < of.total_us.size(); pass++)
        if (best_rival_us(curves, pass) > 0)
            worst = std::max(worst, pass_us(of, pass) / best_rival_us(curves, pass));
    return worst;
}

void print_curve(const std::vector<curve> &curves, const curve &c, double kernels)
{
    if (!c.left_out.empty() || !c.wrong.empty()) {
        printf("  %-14s %s%s\n", c.kind->name, c.wrong.empty() ? "left out: " : "WRONG: ",
               (c.wrong.empty() ? c.left_out : c.wrong).c_str());
        return;
    }
    printf("  %-14s", c.kind->name);
    for (size_t pass = 0; pass < PASSES_SHOWN; pass++)
        printf(" %8.3f", pass < c.total_us.size() ? pass_us(c, pass) / kernels : NAN);
    printf(" %8.3f", PASSES_SHOWN < c.total_us.size() ? pass_us(c, PASSES_SHOWN, true) / kernels : NAN);
    if (c.kind->role == OURS)
        printf("   %6.2f %9.0f", worst_factor(curves, c), median_of(c.open_us));
    printf("   %s\n", c.setting.c_str());
}

void print_table(const row &r, const settings &s, const std::vector<curve> &curves)
{
    bench_progress_hide();
    printf("\n%s, %u kernels of %g us, %u CTAs; us per kernel\n", r.pattern.c_str(), r.kernels, s.kernel_us, s.ctas);
    printf("  %-14s %8s %8s %8s %8s %8s   %6s %9s\n", "", "1st", "2nd", "3rd", "4th", "later", "worst", "open us");
    for (const curve &c : curves)
        print_curve(curves, c, r.kernels);
}

void write_row(const std::vector<field> &key, const std::vector<curve> &curves, result_file &file)
{
    std::vector<entry> entries;
    for (const curve &c : curves) {
        std::vector<double> us; /* of a program, one pass behind the other */
        for (size_t repetition = 0; repetition < c.total_us.back().size(); repetition++)
            for (const std::vector<double> &pass : c.total_us)
                us.push_back(pass[repetition]);
        entries.push_back({{{"name", c.kind->name}, {"setting", c.setting}, {"left_out", c.left_out}, {"wrong", c.wrong}},
                           {{"open_us", c.open_us}, {"total_us", us}}});
    }
    file.row(key, entries);
}

/* @return whether every runner was right. */
bool measure_row(const row &r, const settings &s, const arguments &a, result_file &file)
{
    const std::vector<field> key = {{"work", r.pattern},         {"kernels", r.kernels},
                                    {"passes", s.how.passes},    {"reps", s.how.repetitions},
                                    {"kernel_us", s.kernel_us},  {"ctas", s.ctas},
                                    {"cpu", s.who.first_cpu},    {"backend", s.who.gpu ? "cuda" : "host"}};
    if (file.has(key)) {
        bench_progress_skip();
        return true;
    }
    memory m(s.who.gpu);
    pattern_program p(m, shape_of(r), s.kernel_us, s.ctas, 1, false);
    std::string unknown;
    const std::vector<curve> curves = measure_passes(p, s.who.where(), s.who.runners, s.how, &unknown);
    if (!unknown.empty())
        a.refuse_for("--runner", "there is no runner '" + unknown + "' on this machine");
    print_table(r, s, curves);
    write_row(key, curves, file);
    if (!bench_interrupted())
        bench_progress_step(r.pattern.c_str());
    return std::all_of(curves.begin(), curves.end(), [](const curve &c) { return c.wrong.empty(); });
}

} // namespace

int main(int argc, char **argv)
{
    arguments a(argc, argv, "acs-first", usage_text + contest::help() + pattern_help());
    const settings s = parse(a);
    bool right = true;

    pin_thread(s.who.where(), 0);
    result_file file(s.who.json, "acs-first", a.command(), s.who.gpu);
    printf("%s\nmedians of %d programs of %d passes; worst: the largest factor of a pass over the best rival\n",
           machine_line(s.who.gpu).c_str(), s.how.repetitions, s.how.passes);
    bench_interrupts_catch();
    bench_progress_begin("acs-first", static_cast<double>(s.rows.size()));
    for (const row &r : s.rows)
        if (!bench_interrupted())
            right = measure_row(r, s, a, file) && right;
    if (!right)
        fprintf(stderr, "acs-first: at least one result was wrong\n");
    return end_of("acs-first", s.who.json, right);
}

/*
 * acs-workloads: the papers' programs, their shapes, their oracles, and how long ACS and its rivals need for them.
 *
 * Owns the command line and the order of measurements. Exit status: 0; 1: a check failed; 2: bad command line.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "contest.h"
#include "durations.h"
#include "oracle.h"
#include "acs_context.h"
#include "plant.h"
#include "progress.h"
#include "scanned.h"
#include "report.h"
#include "table.h"
#include "workload.h"

using namespace bench;

namespace {

const char usage_text[] =
    "usage: acs-workloads [options]\n"
    "  --list                   names, sources and sizes\n"
    "  --only NAME[,NAME]       these workloads                                                            (all)\n"
    "  --size PRESET            tiny, normal or paper                                                     (tiny)\n"
    "  --set NAME=VALUE         one size of every workload that has it, over the preset's\n"
    "  --lose N                 play runs in which a dependency is lost, N of each workload; a run that no check\n"
    "                           catches is a failure                                                         (0)\n"
    "  --plant                  launch each kernel with a mistake in its footprint under ACS_CHECK=reads, and once with\n"
    "                           none; a report about a right one is a failure\n"
    "Each workload's shape and oracle are checked in any case; with --runner it is measured.\n";

struct settings {
    std::vector<std::string> only;
    std::string size = "tiny";
    sizes set;
    uint64_t lose = 0;
    bool list = false, plant = false;
    contest who{{}};
};

void parse_set(settings &s, arguments &a)
{
    const std::string text = a.text();
    const size_t equals = text.find('=');
    char *end = nullptr;
    const uint64_t value = equals == std::string::npos ? 0 : strtoull(text.c_str() + equals + 1, &end, 10);
    const std::string name = text.substr(0, equals);
    bool known = false;

    for (const workload &w : workloads())
        for (const parameter &p : w.parameters)
            known = known || name == p.name;
    if (!end || *end || equals + 1 == text.size() || !known)
        a.refuse("'" + text + "' is not NAME=VALUE with the name of a size (see --list) and a number");
    s.set.set(name, value);
}

settings parse(arguments &a)
{
    settings s;
    while (a.next()) {
        if (s.who.take(a))
            continue;
        if (a.is("--list")) {
            s.list = true;
        } else if (a.is("--only")) {
            s.only = a.list();
        } else if (a.is("--size")) {
            s.size = a.text();
            if (s.size != "tiny" && s.size != "normal" && s.size != "paper")
                a.refuse("'" + s.size + "' is none of tiny, normal, paper");
        } else if (a.is("--set")) {
            parse_set(s, a);
        } else if (a.is("--plant")) {
            s.plant = true;
        } else if (a.is("--lose")) {
            s.lose = a.number(0, UINT64_MAX);
        } else {
            a.refuse("there is no such option");
        }
    }
    return s;
}

void look_at(const settings &s, const arguments &a)
{
    for (const std::string &name : s.only)
        if (std::none_of(workloads().begin(), workloads().end(), [&](const workload &w) { return name == w.name; }))
            a.refuse_for("--only", "there is no workload '" + name + "'");
}

sizes sizes_of(const workload &w, const settings &s)
{
    sizes chosen = sizes_of_preset(w, s.size);
    for (const parameter &p : w.parameters)
        if (s.set.has(p.name))
            chosen.set(p.name, s.set[p.name]);
    return chosen;
}

void list(const workload &w)
{
    const char *const who = w.on_device ? " (the host decides on the way, or the device: acs-decided)"
                                        : (w.decides ? " (the host decides on the way)" : "");
    printf("%-12s %-10s %s%s\n", w.name, w.source, w.about, who);
    for (const parameter &p : w.parameters)
        printf("    %-10s tiny %llu, normal %llu, paper %llu: %s\n", p.name, static_cast<unsigned long long>(p.tiny),
               static_cast<unsigned long long>(p.normal), static_cast<unsigned long long>(p.paper), p.about);
}

/* The shape of a run without the program's own reads. */
shape shape_of(const trace &t, const dag &d)
{
    shape found = {0, 0, t.ops.size() < 5000 ? dag_width(d) : 0, d.depth};
    for (size_t k = 0; k < t.ops.size(); k++) {
        found.kernels += t.ops[k].kind != OP_READ;
        for (uint32_t u : d.up[k])
            found.edges += t.ops[k].kind != OP_READ && t.ops[u].kind != OP_READ;
    }
    return found;
}

std::string text_of(const shape &s)
{
    const auto number = [](uint32_t n) { return n ? std::to_string(n) : std::string("-"); };
    return number(s.kernels) + " / " + number(s.edges) + " / " + number(s.width) + " / " + number(s.depth);
}

std::string text_of(const sizes &chosen)
{
    std::string text;
    for (const auto &size : chosen.all())
        text += (text.empty() ? "" : " ") + size.first + "=" + std::to_string(size.second);
    return text;
}

bool as_expected(const shape &e, const shape &found)
{
    return (!e.kernels || e.kernels == found.kernels) && (!e.edges || e.edges == found.edges) &&
           (!e.width || e.width == found.width) && (!e.depth || e.depth == found.depth);
}

bool lose_edges(program &p, uint64_t most, bool decides)
{
    const lost_edges lost = lose_each_edge(p, most, decides);
    printf("             %llu of %llu dependencies lost in turn: %llu caught by the oracle, %llu by the bits\n",
           static_cast<unsigned long long>(lost.played), static_cast<unsigned long long>(lost.edges),
           static_cast<unsigned long long>(lost.by_oracle), static_cast<unsigned long long>(lost.by_bits));
    if (lost.spared > 0)
        printf("             %llu of them not needed, since what was not chosen is not looked at\n",
               static_cast<unsigned long long>(lost.spared));
    for (const std::string &edge : lost.missed)
        printf("             NOT CAUGHT: %s\n", edge.c_str());
    return lost.missed.empty();
}

bool plant_all(program &p, const machine &m)
{
    const planted done = plant_mistakes(p, m);
    printf("             %llu right footprints, %zu reported; %llu wrong ones, %llu found\n",
           static_cast<unsigned long long>(done.right), done.blamed.size(), static_cast<unsigned long long>(done.wrong),
           static_cast<unsigned long long>(done.found));
    for (const std::string &op : done.blamed)
        printf("             WRONGLY REPORTED: %s\n", op.c_str());
    for (const std::string &op : done.missed)
        printf("             not found: %s\n", op.c_str());
    return done.blamed.empty();
}

/* What acs-scan found in the kernels, beside the footprints of the program. */
void print_scanned(const std::vector<op> &ops)
{
#ifdef ACS_SCANNED
    const scanned_launches found = compare_scanned(ops);
    printf("             acs-scan: the same bytes for %u launches, more for %u, not all for %u, whole allocations for %u\n",
           found.same, found.more, found.less, found.whole);
#else
    (void)ops;
#endif
}

bool measure_one(const workload &w, const settings &s, program &p, const trace &t, const dag &d, const shape &found,
                 std::vector<contestant> &runners, result_file &file)
{
    const sizes chosen = sizes_of(w, s);
    const shape expected = w.expected ? w.expected(chosen) : shape{0, 0, 0, 0};
    measure_settings how;
    trace timed = t;

    how.repetitions = s.who.repetitions;
    how.bits = true;
    how.us = op_durations(p.mem(), t);
    for (size_t k = 0; k < how.us.size(); k++)
        timed.ops[k].us = how.us[k];
    const bounds b = bounds_of(timed, d, s.who.gpu, 0);
    const std::vector<outcome> done = measure(p, runners, how);
    print_table({std::string(w.name) + ", size " + s.size, found.kernels, found.edges, found.depth, b}, done);
    file.row({{"work", w.name},
              {"source", w.source},
              {"size", s.size},
              {"sizes", text_of(chosen)},
              {"reps", s.who.repetitions},
              {"cpu", s.who.first_cpu},
              {"backend", s.who.gpu ? "cuda" : "host"},
              {"decides", w.decides},
              {"ops", found.kernels},
              {"edges", found.edges},
              {"width", found.width},
              {"depth", found.depth},
              {"expected", text_of(expected)},
              {"critical_us", b.critical_us},
              {"front_end_us", b.front_end_us}},
             done);
    return std::all_of(done.begin(), done.end(), [](const outcome &o) { return o.wrong.empty(); });
}

/* The same of the version that leaves its decisions to the device, whose result must be the other's, bit for bit. */
bool examine_decided(const settings &s, program &p)
{
    p.reset();
    (void)record(p);
    const std::vector<char> right = p.result();
    p.reset();
    const trace t = record(p, true);
    std::string wrong = p.check();
    if (wrong.empty() && p.result() != right)
        wrong = "the result is not that of the host's decisions, bit for bit";
    printf("             decided on the device %s   %s\n", text_of(shape_of(t, find_dag(t))).c_str(),
           wrong.empty() ? "right" : ("WRONG: " + wrong).c_str());
    fflush(stdout);
    return (s.lose == 0 || lose_edges(p, s.lose, true)) && wrong.empty();
}

/* Shape, oracle, lost edges and times of one workload. @return whether all is right. */
bool examine(const workload &w, const settings &s, std::vector<contestant> &runners, result_file &file)
{
    memory m(s.who.gpu);
    const sizes chosen = sizes_of(w, s);
    const std::unique_ptr<program> p = w.make(m, chosen);

    acs_use_memory(p->mem());
    p->reset();
    const trace t = record(*p);
    const std::string wrong = p->check();
    const dag d = find_dag(t);
    const shape expected = w.expected ? w.expected(chosen) : shape{0, 0, 0, 0}, found = shape_of(t, d);
    bool ok = wrong.empty() && as_expected(expected, found);
    bench_progress_hide();
    printf("%-12s kernels / edges / width / depth %s   %s\n", w.name, text_of(found).c_str(),
           wrong.empty() ? "right" : ("WRONG: " + wrong).c_str());
    if (!as_expected(expected, found))
        printf("             EXPECTED %s\n", text_of(expected).c_str());
    fflush(stdout);
    print_scanned(t.ops);
    if (s.lose > 0)
        ok = lose_edges(*p, s.lose, false) && ok;
    if (s.plant)
        ok = plant_all(*p, {s.who.gpu, s.who.first_cpu}) && ok;
    if (!runners.empty())
        ok = measure_one(w, s, *p, t, d, found, runners, file) && ok;
    if (w.on_device)
        ok = examine_decided(s, *p) && ok;
    if (!bench_interrupted())
        bench_progress_step(w.name);
    return ok;
}

} // namespace

int main(int argc, char **argv)
{
#ifdef ACS_SCANNED
    acs_use_scanned(scanned_footprint);
#endif
    arguments a(argc, argv, "acs-workloads", usage_text + contest::help());
    const settings s = parse(a);
    bool ok = true;

    look_at(s, a);
    std::vector<contestant> runners = s.who.enter(a);
    result_file file(s.who.json, "acs-workloads", a.command(), s.who.gpu);
    bench_interrupts_catch();
    bench_progress_begin("acs-workloads", static_cast<double>(s.only.empty() ? workloads().size() : s.only.size()));
    for (const workload &w : workloads()) {
        if (bench_interrupted() ||
            (!s.only.empty() && std::find(s.only.begin(), s.only.end(), w.name) == s.only.end()))
            continue;
        if (s.list)
            list(w);
        else if (file.has({{"work", w.name}}))
            bench_progress_skip();
        else
            ok = examine(w, s, runners, file) && ok;
    }
    if (!ok)
        fprintf(stderr, "acs-workloads: at least one check failed\n");
    return end_of("acs-workloads", s.who.json, ok);
}

/*
 * acs-workloads: the workloads' shapes, oracles and times.
 *
 * Owns the command line. Exit status: 0; 1: a check failed; 2: bad command line.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dag.h"
#include "oracle.h"
#include "workload.h"

using namespace bench;

static const char usage[] =
    "usage: acs-workloads [options]\n"
    "  --list              names, sources and sizes\n"
    "  --only NAME[,NAME]  these workloads                                                        (all)\n"
    "  --size PRESET       tiny, normal or paper                                                 (tiny)\n"
    "  --set NAME=VALUE    one size of every workload that has it, over the preset's\n"
    "  --lose N            play runs in which a dependency is lost, N of each workload; a run that no check\n"
    "                      catches is a failure; 0: none                                            (0)\n"
    "  --backend NAME      cuda or host                                    (cuda where a GPU answers)\n";

struct settings {
    std::vector<std::string> only;
    std::string size = "tiny";
    sizes set;
    uint64_t lose = 0;
    bool list = false, gpu = false;
};

[[noreturn]] static void refuse(const char *option, const char *value)
{
    fprintf(stderr, "acs-workloads: %s does not take \"%s\"\n%s", option, value, usage);
    exit(2);
}

static uint64_t number(const char *option, const char *text)
{
    char *end = nullptr;
    const unsigned long long n = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-')
        refuse(option, text);
    return n;
}

static std::vector<std::string> words(const std::string &text)
{
    std::vector<std::string> list;
    for (size_t place = 0; place <= text.size();) {
        const size_t comma = std::min(text.find(',', place), text.size());
        list.push_back(text.substr(place, comma - place));
        place = comma + 1;
    }
    return list;
}

static settings parse(int argc, char **argv)
{
    settings s;
    for (int k = 1; k < argc; k++) {
        const char *const name = argv[k], *const value = k + 1 < argc ? argv[k + 1] : "";
        if (strcmp(name, "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        }
        if (strcmp(name, "--list") == 0) {
            s.list = true;
            continue;
        }
        k++;
        if (strcmp(name, "--only") == 0) {
            s.only = words(value);
        } else if (strcmp(name, "--size") == 0) {
            s.size = value;
        } else if (strcmp(name, "--lose") == 0) {
            s.lose = number(name, value);
        } else if (strcmp(name, "--set") == 0 && strchr(value, '=')) {
            s.set.set(std::string(value, strchr(value, '=')), number(name, strchr(value, '=') + 1));
        } else if (strcmp(name, "--backend") == 0 && (strcmp(value, "host") == 0 || strcmp(value, "cuda") == 0)) {
            s.gpu = strcmp(value, "cuda") == 0;
        } else {
            refuse(name, value);
        }
    }
    if (s.size != "tiny" && s.size != "normal" && s.size != "paper")
        refuse("--size", s.size.c_str());
    return s;
}

static sizes sizes_of(const workload &w, const settings &s)
{
    sizes chosen;
    for (const parameter &p : w.parameters) {
        const uint64_t preset = s.size == "tiny" ? p.tiny : (s.size == "normal" ? p.normal : p.paper);
        chosen.set(p.name, s.set.has(p.name) ? s.set[p.name] : preset);
    }
    return chosen;
}

/* Shape, oracle, lost edges of one workload. @return whether all is right. */
static bool examine(const workload &w, const settings &s)
{
    memory m(s.gpu);
    const sizes chosen = sizes_of(w, s);
    const std::unique_ptr<program> p = w.make(m, chosen);
    bool ok = true;

    p->reset();
    const trace t = record(*p);
    const std::string wrong = p->check();
    const dag d = find_dag(t);
    const shape e = w.expected ? w.expected(chosen) : shape{0, 0, 0, 0};
    const uint32_t kernels = static_cast<uint32_t>(t.ops.size()), width = t.ops.size() < 5000 ? dag_width(d) : 0;
    printf("%-12s %6u kernels %6llu edges, width %4u, depth %4u   %s\n", w.name, kernels,
           static_cast<unsigned long long>(d.edges), width, d.depth, wrong.empty() ? "right" : wrong.c_str());
    ok = wrong.empty();
    if ((e.kernels && e.kernels != kernels) || (e.edges && e.edges != d.edges) || (e.width && e.width != width) ||
        (e.depth && e.depth != d.depth)) {
        printf("             EXPECTED %u kernels, %u edges, width %u, depth %u\n", e.kernels, e.edges, e.width, e.depth);
        ok = false;
    }
    if (s.lose == 0)
        return ok;
    const lost_edges lost = lose_each_edge(*p, s.lose);
    printf("             %llu of %llu dependencies lost in turn: %llu caught by the oracle, %llu by the bits\n",
           static_cast<unsigned long long>(lost.played), static_cast<unsigned long long>(lost.edges),
           static_cast<unsigned long long>(lost.by_oracle), static_cast<unsigned long long>(lost.by_bits));
    for (const std::string &edge : lost.missed)
        printf("             NOT CAUGHT: %s\n", edge.c_str());
    return ok && lost.missed.empty();
}

int main(int argc, char **argv)
{
    const settings s = parse(argc, argv);
    size_t found = 0;
    bool ok = true;

    for (const workload &w : workloads()) {
        bool wanted = s.only.empty();
        for (const std::string &name : s.only)
            wanted = wanted || name == w.name;
        if (!wanted)
            continue;
        found++;
        if (s.list)
            printf("%-12s %-10s %s\n", w.name, w.source, w.about);
        else
            ok = examine(w, s) && ok;
    }
    if (found == 0 && !s.only.empty())
        refuse("--only", s.only[0].c_str());
    return ok ? 0 : 1;
}

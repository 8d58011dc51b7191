/*
 * physics-bench: the physics sample's work, run by ACS and by its rivals, side by side.
 *
 * Owns the command line. Exit status: 0; 1: a state differs from one stream's with --check, or a call failed; 2: bad
 * command line.
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "../harness/progress.h"
#include "report.h"

static const char usage[] =
    "usage: physics-bench [options]\n"
    "  --scenes N          scenes; scene k has body plan k mod 5                                         (5)\n"
    "  --worlds N[,N...]   worlds of each scene, a table for each           (256,512,1024,2048,4096,8192)\n"
    "  --steps N           environment steps of a repetition                                            (50)\n"
    "  --warm-up N         steps of each repetition, before those, that are not timed                    (0)\n"
    "  --reps N            repetitions; runners take turns within each                                   (3)\n"
    "  --order ORDER       scene: scene after scene; interleaved: one kernel of each in turn  (interleaved)\n"
    "  --runner R[,R...]   runners, or all                                                             (all)\n"
    "  --check             compare final states bit for bit with a one-stream run\n"
    "  --cpu FIRST         keep the main thread on CPU FIRST, others on those behind it\n"
    "  --seed N            seed of worlds and networks                                                   (1)\n"
    "  --json FILE         write the figures to FILE\n"
    "  --timeline FILE     a profile of the last run of runner acs: here, and for chrome://tracing to FILE. It slows the\n"
    "                      run by about 0.1 us an op\n"
    "  --backend NAME      auto, cuda or host, as the environment variable ACS_BACKEND says           (auto)\n"
    "  --emulate           on the CPU, run graphs one node at a time, as late as their edges allow: a test of edges\n"
    "  --forget KERNEL     with --emulate: leave out the edges to KERNEL, to see that --check notices\n"
    "Options of ACS itself come from the environment. Runners:\n";

static void print_usage(FILE *f)
{
    fputs(usage, f);
    for (const variant &v : all_variants())
        fprintf(f, "  %-19s %s\n", v.name, v.what);
}

[[noreturn]] static void refuse(const char *option, const char *value)
{
    fprintf(stderr, "physics-bench: %s does not take \"%s\"\n", option, value);
    print_usage(stderr);
    exit(2);
}

static long number(const char *option, const char *value, long low, long high)
{
    char *end = nullptr;
    errno = 0;
    const long n = strtol(value, &end, 10);
    if (errno || end == value || *end || n < low || n > high)
        refuse(option, value);
    return n;
}

static std::vector<std::string> split(const char *list)
{
    std::vector<std::string> parts(1);
    for (; *list; list++)
        if (*list == ',')
            parts.emplace_back();
        else
            parts.back() += *list;
    return parts;
}

static void choose_runners(bench_settings &s, const char *list)
{
    s.variants.clear();
    for (const std::string &name : split(list)) {
        const size_t before = s.variants.size();
        for (const variant &v : all_variants())
            if (name == "all" || name == v.name)
                s.variants.push_back(&v);
        if (s.variants.size() == before)
            refuse("--runner", name.c_str());
    }
}

static void choose_worlds(bench_settings &s, const char *list)
{
    s.worlds.clear();
    for (const std::string &one : split(list))
        s.worlds.push_back(static_cast<int>(number("--worlds", one.c_str(), 1, 100000)));
}

/* The library's threads need a CPU behind the first. */
static int choose_cpu(const char *value)
{
    return static_cast<int>(number("--cpu", value, 0, sysconf(_SC_NPROCESSORS_ONLN) - 2));
}

/* An option with a value. @return false if it is unknown. */
static bool parse_value(bench_settings &s, const char *name, const char *value)
{
    if (strcmp(name, "--scenes") == 0)
        s.scenes = static_cast<int>(number(name, value, 1, 1000));
    else if (strcmp(name, "--worlds") == 0)
        choose_worlds(s, value);
    else if (strcmp(name, "--steps") == 0)
        s.steps = static_cast<int>(number(name, value, 1, 1000000));
    else if (strcmp(name, "--warm-up") == 0)
        s.warm_up = static_cast<int>(number(name, value, 0, 1000000));
    else if (strcmp(name, "--reps") == 0)
        s.reps = static_cast<int>(number(name, value, 1, 1000));
    else if (strcmp(name, "--seed") == 0)
        s.seed = static_cast<uint64_t>(number(name, value, 0, 1000000000));
    else if (strcmp(name, "--cpu") == 0)
        s.cpu = choose_cpu(value);
    else if (strcmp(name, "--order") == 0 && (strcmp(value, "scene") == 0 || strcmp(value, "interleaved") == 0))
        s.issue_order = strcmp(value, "scene") == 0 ? ORDER_SCENE : ORDER_INTERLEAVED;
    else if (strcmp(name, "--runner") == 0)
        choose_runners(s, value);
    else if (strcmp(name, "--forget") == 0)
        s.forget = value;
    else if (strcmp(name, "--json") == 0)
        s.json = value;
    else if (strcmp(name, "--timeline") == 0)
        s.timeline = value;
    else if (strcmp(name, "--backend") == 0 &&
             (strcmp(value, "auto") == 0 || strcmp(value, "cuda") == 0 || strcmp(value, "host") == 0))
        setenv("ACS_BACKEND", value, 1); /* before any thread exists */
    else
        return false;
    return true;
}

static bench_settings parse(int argc, char **argv)
{
    bench_settings s;

    choose_runners(s, "all");
    for (int k = 1; k < argc; k++) {
        const char *const value = k + 1 < argc ? argv[k + 1] : "";
        if (strcmp(argv[k], "--help") == 0) {
            print_usage(stdout);
            exit(0);
        } else if (strcmp(argv[k], "--check") == 0) {
            s.check = true;
        } else if (strcmp(argv[k], "--emulate") == 0) {
            s.emulate = true;
        } else if (k + 1 < argc && parse_value(s, argv[k], value)) {
            k++;
        } else {
            refuse(argv[k], value);
        }
    }
    return s;
}

/* Before anything is measured for it: a runner that it is of, and a file. */
static bool can_profile(const bench_settings &s)
{
    for (const variant *v : s.variants)
        if (strcmp(v->name, "acs") == 0) {
            FILE *f = fopen(s.timeline, "w");
            if (!f)
                fprintf(stderr, "physics-bench: %s: %s\n", s.timeline, strerror(errno));
            return f && fclose(f) == 0;
        }
    fprintf(stderr, "physics-bench: --timeline needs runner acs\n");
    return false;
}

int main(int argc, char **argv)
{
    const bench_settings s = parse(argc, argv);
    std::vector<bench_table> tables;
    bool passed = true;

    if (s.timeline && !can_profile(s))
        return 1;
    bench_interrupts_catch();
    bench_progress_begin("physics-bench", static_cast<double>(s.worlds.size()));
    for (const int worlds : s.worlds) {
        if (bench_interrupted())
            break;
        tables.push_back(measure(s, worlds));
        bench_progress_hide();
        report_table(s, tables.back());
        passed = passed && tables.back().passed;
        if (s.json) /* after each number of worlds, so that a run that ends early leaves what it measured */
            passed = report_json(s, tables, argc, argv) && passed;
        if (!bench_interrupted())
            bench_progress_step((std::to_string(worlds) + " worlds").c_str());
    }
    if (s.check)
        printf("\ncheck         %s\n", passed ? "every runner ends in the state of one stream, bit for bit" : "FAILED");
    if (bench_interrupted()) {
        fprintf(stderr, "physics-bench: interrupted; %zu of %zu numbers of worlds were begun; --worlds takes the others\n",
                tables.size(), s.worlds.size());
        return BENCH_INTERRUPTED;
    }
    return passed ? 0 : 1;
}

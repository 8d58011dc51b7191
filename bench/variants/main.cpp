/*
 * acs-conco: the experiments of ConCo (Lu et al., ICS '25), by its baselines, by plans, by the runtime's own choice, and by
 * plain streams.
 *
 * Owns the command line. Exit status: 0; 1: something was wrong, or failed; 2: bad command line; 77: no GPU.
 */
#include <cstdio>
#include <cstring>

#include "session.h"

using namespace variants;

static const char *const usage =
    "usage: acs-conco EXPERIMENT [options]\n"
    "  operators   pairs of operators, each run 500 times by several instances at once (Table 2, A100)\n"
    "  table       latency of an inference: versions for C % of the GPU, run on R % (Tables 3, 4)\n"
    "  models      mixes of networks from one queue, p requests in flight (Table 5, Figure 10)\n"
    "  changing    1 to 32 instances of resnet-18 and vgg-19, in phases\n"
    "  check       every version of every operator against a reference; sets of versions against each other\n"
    "  once        an inference of each network, versions left to the runtime: the program for acs-tune to tune\n"
    "options\n"
    "  --only N[,N]     operators, models: these rows of the table, from 1; changing: these ways, by name        (all)\n"
    "  --ways NAME[,NAME]   models: these ways beside streams and baseline-1; fit-10 .. fit-90, too   (all but fit-N)\n"
    "  --pair A:N,B:M,P,Q   operators: operator N of network A (A@512: with this batch) by P instances, and M of B\n"
    "  --network NAME   table: resnet-18, vgg-19, bert-small, dlrm or all                                (resnet-18)\n"
    "  --window N       ops in the window of ACS (ACS_WINDOW): as many as the requests in flight have           (2048)\n"
    "  --repeats        ACS looks for parts that recur (ACS_REPEATS=auto), which is slower here                    (no)\n"
    "  --times          check: the time of each version, too\n"
    "  --fit measured|library   who knows the versions for a share: this program, which times all of them first, or the\n"
    "                   library by its profile (attributes.fit)                                            (measured)\n"
    "  --quick          short runs, few of them: shows that it works\n"
    "  --seed N         of weights, searches and the order of phases                                             (1)\n"
    "  --reps N         timed repetitions of each way                                               (5; of models 3)\n"
    "  --cpu N          pin the program's thread to CPU N and the library's to those behind             (not pinned)\n"
    "  --json FILE      write all figures; rows that are done stay in it when the program is interrupted\n"
    "ways\n"
    "  streams     plain CUDA, a stream for each instance; versions that are fastest alone (--fit library: base)\n"
    "  baseline-1  ACS, the same versions, no shares\n"
    "  baseline-2  ACS, the same versions, with the shares of the GPU that are best for this mix\n"
    "  conco       ACS, version and share as acs_mix_plan finds them for this mix\n"
    "  online      ACS, nothing set: the runtime picks each version\n";

static bool take(settings &s, bench::arguments &a)
{
    if (a.is("--only")) {
        s.only = a.list();
    } else if (a.is("--ways")) {
        s.ways = a.list();
    } else if (a.is("--pair")) {
        s.pair = a.text();
    } else if (a.is("--network")) {
        s.network = a.text();
    } else if (a.is("--window")) {
        s.window = a.number(1, 4096);
    } else if (a.is("--repeats")) {
        s.repeats = true;
    } else if (a.is("--times")) {
        s.times = true;
    } else if (a.is("--quick")) {
        s.quick = true;
    } else if (a.is("--seed")) {
        s.seed = a.number(0, UINT32_MAX);
    } else if (a.is("--fit")) {
        const std::string by = a.text();
        if (by != "measured" && by != "library")
            a.refuse("takes measured or library");
        s.library_fit = by == "library";
    } else if (a.is("--go-on")) {
        a.refuse("name the rows that are left by --only: the summary is of the rows of one run");
    } else {
        return s.take(a);
    }
    return true;
}

static int run(const std::string &what, const settings &s, const std::string &command)
{
    if (what == "operators")
        return run_operators(s, command);
    if (what == "table")
        return run_table(s, command);
    if (what == "models")
        return run_models(s, command);
    if (what == "once")
        return run_once(s);
    return what == "changing" ? run_changing(s, command) : run_check(s);
}

int main(int argc, char **argv)
{
    static const char *const experiments[] = {"operators", "table", "models", "changing", "check", "once"};
    const std::string what = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
    bench::arguments a(what.empty() ? argc : argc - 1, what.empty() ? argv : argv + 1, "acs-conco", usage);
    settings s;
    bool known = false;

    if (what == "models")
        s.repetitions = 3; /* of 24 rows */
    while (a.next())
        if (!take(s, a))
            a.refuse("there is no such option");
    for (const char *name : experiments)
        known = known || what == name;
    if (!known) {
        fprintf(stderr, "acs-conco: which experiment? '%s' is none\n%s", what.c_str(), usage);
        return 2;
    }
    bool network_known = s.network == "all";
    for (const std::string &name : network_names())
        network_known = network_known || s.network == name;
    if (!network_known)
        a.refuse_for("--network", "there is no network '" + s.network + "'");
    if (!s.gpu) {
        printf("acs-conco: no GPU answers, and its kernels have no host bodies: nothing to run\n");
        return 77;
    }
    bench_interrupts_catch();
    bench::pin_thread(s.where(), 0);
    printf("%s\n", bench::machine_line(true).c_str());
    const int code = run(what, s, what + " " + a.command());
    const int status = bench::end_of("acs-conco", s.json, true, "the rest of its rows by --only, and another file");
    return status ? status : code;
}

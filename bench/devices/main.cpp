/*
 * acs-devices: GrCUDA's suite on several devices, by every policy, beside the same programs by hand: how long a run
 * takes from the first copy in to the last copy out, and how many bytes travel.
 *
 * Owns the command line, the order of measurements and what is told of them. Exit status: 0; 1: something was wrong, or
 * failed; 2: bad command line.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "contest.h"
#include "median.h"
#include "progress.h"
#include "report.h"
#include "ways.h"

using namespace bench;

namespace {

/* By hand a part of the data belongs to a device, with all that is done to it. */
unsigned by_triples(size_t k, unsigned n)
{
    return static_cast<unsigned>(k / 3) % n;
}

unsigned by_ops(size_t k, unsigned n)
{
    return static_cast<unsigned>(k) % n;
}

/* The two classifiers of ML beside each other: naive Bayes, and the regression with what is left. */
unsigned by_classifier(size_t k, unsigned n)
{
    static const size_t bayes[] = {1, 3, 4, 6, 7};
    return std::find(std::begin(bayes), std::end(bayes), k) != std::end(bayes) ? 1 % n : 0;
}

/* CG: assembling, the first residual, then each iteration's 16 products by parts; vectors on the first device. */
unsigned by_rows(size_t k, unsigned n)
{
    const size_t parts = 16, head = 2 * parts + 2, iteration = parts + 7;
    const size_t at = k < head ? k : (k - head) % iteration;
    const bool part = k < head ? k < 2 * parts : at < parts;
    return part ? static_cast<unsigned>(at % parts) % n : 0;
}

/* Sizes that are not a preset's: of `large` some milliseconds on one H200, as GrCUDA's are on its GPUs. */
struct work_of_suite {
    const char *name;
    std::vector<std::pair<const char *, uint64_t>> always, large;
    unsigned (*where)(size_t, unsigned);
};
const work_of_suite g_suite[] = {{"vec-16", {}, {{"n", 8u << 20}}, by_triples},
                                 {"bs", {{"series", 24}}, {{"n", 2u << 20}}, by_ops},
                                 {"ml", {}, {{"rows", 400000}}, by_classifier},
                                 {"cg", {}, {{"n", 16384}}, by_rows},
                                 {"mul", {}, {{"rows", 1024}, {"columns", 16384}}, by_ops}};
const char *const g_policies[ACS_POLICY_COUNT] = {"single",            "round-robin",           "stream-aware",
                                                  "min-transfer-size", "min-max-transfer-time", "auto"};

/** How `--launches` has ACS issue kernels. */
const struct {
    const char *name;
    int issue;
} g_issues[] = {{"acs", ACS_ISSUE_LAUNCH},
                {"acs-auto", ACS_ISSUE_AUTO},
                {"acs-replay", ACS_ISSUE_REPLAY}};

struct settings {
    std::vector<std::string> only;
    std::string size = "large";
    std::vector<unsigned> devices = {2};
    measuring how;
    bool check = false;
    unsigned launches = 0; /* 0: the suite */
};

const char usage_text[] =
    "usage: acs-devices [options]\n"
    "  --only WORK[,WORK]       these of vec-16, bs, ml, cg, mul                                            (all)\n"
    "  --devices N[,N]          on so many devices; on the CPU they are virtual                               (2)\n"
    "  --size PRESET            tiny, normal or large                                                     (large)\n"
    "  --launches N             instead of the suite, of which --only, --size and --check speak: so many empty\n"
    "                           kernels one after the other, to one device and to all, by each issue method\n"
    "  --check                  an oracle looks at the serial program first\n"
    "  --backend cuda|host      where the kernels run                        (cuda where a GPU answers, else host)\n"
    "  --reps N                 timed repetitions of each way                                                 (5)\n"
    "  --cpu N                  pin the program's thread to CPU N                                    (not pinned)\n"
    "  --json FILE              write all figures for bench/report\n"
    "  --go-on                  skip what FILE has: the same command wrote it and was interrupted\n";

bool take(settings &s, arguments &a)
{
    if (a.is("--only")) {
        s.only = a.list();
    } else if (a.is("--devices")) {
        s.devices.clear();
        for (double n : a.reals(1, 16))
            s.devices.push_back(static_cast<unsigned>(n));
    } else if (a.is("--size")) {
        s.size = a.text();
        if (s.size != "tiny" && s.size != "normal" && s.size != "large")
            a.refuse("'" + s.size + "' is none of tiny, normal, large");
    } else if (a.is("--launches")) {
        s.launches = static_cast<unsigned>(a.number(1, 1000000000));
    } else if (a.is("--check")) {
        s.check = true;
    } else {
        return s.how.take(a);
    }
    return true;
}

struct result {
    std::string name;
    std::unique_ptr<devices_way> way;
    std::string wrong;
    std::vector<double> us, submit_us;
    uint64_t copied = 0;
};

void run_once(task &t, result &r, bool timed)
{
    if (!r.wrong.empty())
        return;
    t.reset();
    r.way->ready();
    const auto begin = std::chrono::steady_clock::now();
    r.way->submit(t);
    const auto handed = std::chrono::steady_clock::now();
    r.wrong = r.way->finish();
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    if (r.wrong.empty() && !t.is_right())
        r.wrong = "the results are not those of the serial program, bit for bit";
    r.copied = r.way->copied();
    if (timed) {
        r.us.push_back(us);
        r.submit_us.push_back(std::chrono::duration<double, std::micro>(handed - begin).count());
    }
}

const result &of_name(const std::vector<result> &results, const char *name)
{
    return *std::find_if(results.begin(), results.end(), [&](const result &r) { return r.name == name; });
}

void print(const char *name, unsigned devices, const task &t, const std::vector<result> &results)
{
    const result &hand = of_name(results, "hand"), &one = of_name(results, "hand-1");
    printf("\n%s on %u devices: %zu ops, %zu blocks of %.4g GB\n", name, devices, t.kernels(), t.blocks().size(),
           static_cast<double>(t.bytes()) / 1e9);
    printf("  %-28s %24s %8s %8s %11s %9s %11s\n", "way", "ms, median (least-most)", "of hand", "of one", "submit ms", "MB",
           "over hand's");
    for (const result &r : results) {
        if (!r.wrong.empty()) {
            printf("  %-28s WRONG: %s\n", r.name.c_str(), r.wrong.c_str());
            continue;
        }
        const auto ends = std::minmax_element(r.us.begin(), r.us.end());
        char ms[64];
        snprintf(ms, sizeof ms, "%.3f (%.3f-%.3f)", median_of(r.us) / 1000, *ends.first / 1000, *ends.second / 1000);
        printf("  %-28s %24s %8.2f %8.2f %11.3f %9.4g %11.2f\n", r.name.c_str(), ms, median_of(hand.us) / median_of(r.us),
               median_of(one.us) / median_of(r.us), median_of(r.submit_us) / 1000, static_cast<double>(r.copied) / 1e6,
               static_cast<double>(r.copied) / static_cast<double>(hand.copied));
    }
    fflush(stdout);
}

void write(result_file &file, const settings &s, const char *name, unsigned devices, const task &t,
           const std::vector<result> &results)
{
    std::vector<entry> entries;
    for (const result &r : results)
        entries.push_back({{{"name", r.name}, {"wrong", r.wrong}, {"copied_bytes", r.copied}},
                           {{"total_us", r.us}, {"submit_us", r.submit_us}}});
    file.row({{"work", name},
              {"devices", devices},
              {"size", s.size},
              {"ops", t.kernels()},
              {"bytes", t.bytes()},
              {"reps", s.how.repetitions},
              {"cpu", s.how.first_cpu},
              {"backend", s.how.gpu ? "cuda" : "host"}},
             entries);
}

void add(std::vector<result> &results, const std::string &name, std::unique_ptr<devices_way> way)
{
    results.emplace_back();
    results.back().name = name;
    results.back().way = std::move(way);
}

/* The four policies place what they are told of when kernels ask for it: their inputs are shared, as in GrCUDA. */
std::vector<result> make_ways(const machine &m, const task &t, unsigned devices, const work_of_suite &w)
{
    std::vector<result> results;
    add(results, "hand-1", make_hand_way(m, t, 1, [](size_t, unsigned) { return 0u; }));
    add(results, "hand", make_hand_way(m, t, devices, w.where));
    for (int policy = 0; policy < ACS_POLICY_COUNT; policy++)
        add(results, std::string(g_policies[policy]) + " shared", make_acs_way(m, t, devices, policy, false));
    add(results, "single", make_acs_way(m, t, devices, ACS_POLICY_SINGLE, true));
    add(results, "auto", make_acs_way(m, t, devices, ACS_POLICY_AUTO, true));
    return results;
}

bool play(const workload &w, const work_of_suite &of, unsigned devices, const settings &s, result_file &file)
{
    sizes chosen = sizes_of_preset(w, s.size == "tiny" ? "tiny" : "normal");
    for (const auto &value : of.always)
        chosen.set(value.first, value.second);
    for (const auto &value : of.large)
        if (s.size == "large")
            chosen.set(value.first, value.second);
    if (file.has({{"work", w.name}, {"devices", devices}})) {
        bench_progress_skip();
        return true;
    }
    task t(w, chosen, s.how.gpu, s.check);
    if (!t.wrong().empty()) {
        printf("\n%s: the serial program is WRONG: %s\n", w.name, t.wrong().c_str());
        return false;
    }
    std::vector<result> results = make_ways(s.how.where(), t, devices, of);
    for (int warm = 0; warm < 3; warm++)
        for (result &r : results)
            run_once(t, r, false);
    for (int repetition = 0; repetition < s.how.repetitions && (repetition == 0 || !bench_interrupted()); repetition++) {
        for (size_t turn = 0; turn < results.size(); turn++) /* each repetition begins with another one */
            run_once(t, results[(turn + static_cast<size_t>(repetition)) % results.size()], true);
        bench_progress_part((repetition + 1.0) / s.how.repetitions, w.name);
    }
    bench_progress_hide();
    print(w.name, devices, t, results);
    write(file, s, w.name, devices, t, results);
    if (!bench_interrupted())
        bench_progress_step(w.name);
    return std::all_of(results.begin(), results.end(), [](const result &r) { return r.wrong.empty(); });
}

void play_launches(const settings &s, unsigned devices, result_file &file)
{
    std::vector<entry> entries;
    if (file.has({{"work", "launches"}, {"devices", devices}})) {
        bench_progress_skip();
        return;
    }
    bench_progress_hide();
    printf("\n%u launches on %u devices\n", s.launches, devices);
    const auto add_way = [&](const std::string &name, const std::vector<double> &us) {
        bench_progress_hide();
        printf("  %-28s %12.0f a second\n", name.c_str(), s.launches / (median_of(us) / 1e6));
        entries.push_back({{{"name", name}, {"wrong", std::string()}, {"copied_bytes", 0}}, {{"total_us", us}}});
    };
    for (unsigned n : {1u, devices})
        if (s.how.gpu && !bench_interrupted())
            add_way(n == 1 ? "hand-1" : "hand", launches_us_by_hand(s.how.where(), n, s.launches, s.how.repetitions));
    for (const auto &way : g_issues)
        for (unsigned n : {1u, devices})
            if (!bench_interrupted() && (s.how.gpu || way.issue == ACS_ISSUE_LAUNCH)) /* the host backend has no bundles */
                add_way(std::string(way.name) + (n == 1 ? "-1" : ""),
                        launches_us(s.how.where(), way.issue, n, s.launches, s.how.repetitions));
    fflush(stdout);
    file.row({{"work", "launches"},
              {"devices", devices},
              {"ops", s.launches},
              {"reps", s.how.repetitions},
              {"cpu", s.how.first_cpu},
              {"backend", s.how.gpu ? "cuda" : "host"}},
             entries);
    if (!bench_interrupted())
        bench_progress_step("launches");
}

} // namespace

int main(int argc, char **argv)
{
    arguments a(argc, argv, "acs-devices", usage_text);
    settings s;
    bool ok = true;

    while (a.next())
        if (!take(s, a))
            a.refuse("there is no such option");
    for (const std::string &name : s.only)
        if (std::none_of(std::begin(g_suite), std::end(g_suite), [&](const work_of_suite &w) { return name == w.name; }))
            a.refuse_for("--only", "there is no '" + name + "'");
    for (unsigned devices : s.devices)
        if (s.how.gpu && devices > device_count())
            a.refuse_for("--devices", "there are " + std::to_string(device_count()));
    pin_thread(s.how.where(), 0);
    printf("%s\n", machine_line(s.how.gpu).c_str());
    result_file file(s.how.json, "acs-devices", a.command(), s.how.gpu);
    bench_interrupts_catch();
    const size_t works = s.launches ? 1 : s.only.empty() ? std::size(g_suite) : s.only.size();
    bench_progress_begin("acs-devices", static_cast<double>(s.devices.size() * works));
    for (unsigned devices : s.devices)
        if (s.launches && !bench_interrupted())
            play_launches(s, devices, file);
    for (unsigned devices : s.launches ? std::vector<unsigned>{} : s.devices)
        for (const work_of_suite &of : g_suite)
            for (const workload &w : workloads())
                if (!bench_interrupted() && w.name == std::string(of.name) &&
                    (s.only.empty() || std::find(s.only.begin(), s.only.end(), w.name) != s.only.end()))
                    ok = play(w, of, devices, s, file) && ok;
    if (!ok)
        fprintf(stderr, "acs-devices: at least one way was wrong\n");
    return end_of("acs-devices", s.how.json, ok);
}

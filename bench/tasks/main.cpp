/*
 * acs-tasks: HuntKTm's suite as tasks that bring their memory, without and with a plan for it: the most memory that each
 * took, beside the paper's Table 5, and how long it took.
 *
 * Owns the command line, the order of measurements and what is told of them. Exit status: 0; 1: something was wrong, or
 * failed; 2: bad command line.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "contest.h"
#include "median.h"
#include "progress.h"
#include "report.h"
#include "task_way.h"

using namespace bench;

namespace {

/* "HuntKTm", Table 5: gigabytes without and with its memory manager, on an A100, at the sizes of preset paper. */
struct paper_row {
    const char *work;
    double without, with;
};
const paper_row table_5[] = {{"vec", 4.80, 4.80}, {"bs", 12.8, 12.8}, {"ml", 3.12, 3.08}, {"img", 11.6, 9.20},
                             {"dl", 7.06, 4.70},  {"m1", 19.2, 13.4}, {"m2", 17.6, 11.2}};

struct settings {
    std::vector<std::string> only, ways = {"all"};
    std::string size = "normal";
    std::vector<unsigned> slots = {0, 8, 4, 2, 1};
    measuring how;
    bool check = false;
};

const char usage_text[] =
    "usage: acs-tasks [options]\n"
    "  --only WORK[,WORK]       these of vec, bs, ml, img, dl, m1, m2                                       (all)\n"
    "  --size PRESET            tiny, normal or paper (up to 20 GB of device memory)                     (normal)\n"
    "  --slots N[,N]            for how many slots groups are planned; 0: footprints alone            (0,8,4,2,1)\n"
    "  --way W[,W]|all          which of the ways below, named as they are told: acs, group-2, ...            (all)\n"
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
    } else if (a.is("--size")) {
        s.size = a.text();
        if (s.size != "tiny" && s.size != "normal" && s.size != "paper")
            a.refuse("'" + s.size + "' is none of tiny, normal, paper");
    } else if (a.is("--slots")) {
        s.slots.clear();
        for (double n : a.reals(0, 4096)) {
            if (n > static_cast<double>(static_cast<unsigned>(n)))
                a.refuse("takes whole numbers");
            s.slots.push_back(static_cast<unsigned>(n));
        }
    } else if (a.is("--way")) {
        s.ways = a.list();
    } else if (a.is("--check")) {
        s.check = true;
    } else {
        return s.how.take(a);
    }
    return true;
}

struct result {
    const task_way_kind *kind;
    std::unique_ptr<task_way> way;
    std::string wrong, left_out;
    std::vector<double> us;
    uint64_t peak = 0, reserved = 0, bound = 0;
};

void run_once(task &t, result &r, bool timed)
{
    if (!r.wrong.empty() || !r.left_out.empty())
        return;
    t.reset();
    const auto begin = std::chrono::steady_clock::now();
    r.wrong = r.way->run(t);
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    if (r.wrong.empty() && !t.is_right())
        r.wrong = "the results are not those of the serial program, bit for bit";
    if (timed)
        r.us.push_back(us);
}

double gigabytes(uint64_t bytes)
{
    return static_cast<double>(bytes) / 1e9;
}

std::string ratio_text(double ratio)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", ratio);
    return text;
}

void print(const char *name, const task &t, const std::vector<result> &results, const paper_row &paper)
{
    const auto acs = std::find_if(results.begin(), results.end(), [](const result &r) { return r.kind->name == "acs"; });
    printf("\n%s: %zu kernels, %zu blocks of %.4g GB; the paper: %.4g GB, with its memory manager %.4g (%.1f %% less)\n",
           name, t.kernels(), t.blocks().size(), gigabytes(t.bytes()), paper.without, paper.with,
           100 * (1 - paper.with / paper.without));
    printf("  %-12s %10s %8s %10s %10s %28s %9s\n", "way", "peak GB", "less", "bound GB", "from device",
           "ms, median (least-most)", "over acs");
    for (const result &r : results) {
        if (!r.wrong.empty() || !r.left_out.empty()) {
            printf("  %-12s %s%s\n", r.kind->name.c_str(), r.left_out.empty() ? "WRONG: " : "left out: ",
                   (r.wrong + r.left_out).c_str());
            continue;
        }
        const auto ends = std::minmax_element(r.us.begin(), r.us.end());
        char bound[32] = "-", ms[64];
        if (r.bound)
            snprintf(bound, sizeof bound, "%.4g", gigabytes(r.bound));
        snprintf(ms, sizeof ms, "%.3f (%.3f-%.3f)", median_of(r.us) / 1000, *ends.first / 1000, *ends.second / 1000);
        const bool beside = acs != results.end() && !acs->us.empty();
        printf("  %-12s %10.4g %6.1f %% %10s %11.4g %28s %9s\n", r.kind->name.c_str(), gigabytes(r.peak),
               100 * (1 - static_cast<double>(r.peak) / static_cast<double>(t.bytes())), bound, gigabytes(r.reserved), ms,
               beside ? ratio_text(median_of(r.us) / median_of(acs->us)).c_str() : "-");
    }
    fflush(stdout);
}

void write(result_file &file, const settings &s, const char *name, const task &t, const std::vector<result> &results,
           const paper_row &paper)
{
    std::vector<entry> entries;
    for (const result &r : results)
        entries.push_back({{{"name", r.kind->name},
                            {"wrong", r.wrong},
                            {"left_out", r.left_out},
                            {"peak_bytes", r.peak},
                            {"reserved_bytes", r.reserved},
                            {"bound_bytes", r.bound}},
                           {{"total_us", r.us}}});
    file.row({{"work", name},
              {"size", s.size},
              {"kernels", t.kernels()},
              {"blocks", t.blocks().size()},
              {"bytes", t.bytes()},
              {"paper_without_gb", paper.without},
              {"paper_with_gb", paper.with},
              {"reps", s.how.repetitions},
              {"cpu", s.how.first_cpu},
              {"backend", s.how.gpu ? "cuda" : "host"}},
             entries);
}

/* Ways that were not timed any more. */
void mark_interrupted(std::vector<result> &results)
{
    for (result &r : results)
        if (bench_interrupted() && r.us.empty() && r.wrong.empty() && r.left_out.empty())
            r.left_out = "interrupted";
}

bool play(const workload &w, const paper_row &paper, const std::vector<task_way_kind> &kinds, const settings &s,
          result_file &file)
{
    if (file.has({{"work", w.name}, {"size", s.size}})) {
        bench_progress_skip();
        return true;
    }
    task t(w, sizes_of_preset(w, s.size), s.how.gpu, s.check);
    if (!t.wrong().empty()) {
        printf("\n%s: the serial program is WRONG: %s\n", w.name, t.wrong().c_str());
        return false;
    }
    std::vector<result> results;
    for (const task_way_kind &k : kinds) {
        results.emplace_back();
        results.back().kind = &k;
        results.back().way = k.make(s.how.where(), t);
        if (!results.back().way)
            results.back().left_out = "a kernel needs more";
        run_once(t, results.back(), false);
    }
    for (int repetition = 0; repetition < s.how.repetitions && !bench_interrupted(); repetition++) {
        for (size_t turn = 0; turn < results.size(); turn++) /* each repetition begins with another one */
            run_once(t, results[(turn + static_cast<size_t>(repetition)) % results.size()], true);
        bench_progress_part((repetition + 1.0) / s.how.repetitions, w.name);
    }
    for (result &r : results) {
        if (!r.way)
            continue;
        r.peak = r.way->peak_bytes();
        r.reserved = r.way->reserved_bytes();
        r.bound = r.way->bound_bytes();
        r.way.reset();
    }
    mark_interrupted(results);
    bench_progress_hide();
    print(w.name, t, results, paper);
    write(file, s, w.name, t, results, paper);
    if (!bench_interrupted())
        bench_progress_step(w.name);
    return std::all_of(results.begin(), results.end(), [](const result &r) { return r.wrong.empty(); });
}

} // namespace

int main(int argc, char **argv)
{
    arguments a(argc, argv, "acs-tasks", usage_text);
    settings s;
    bool ok = true;

    while (a.next())
        if (!take(s, a))
            a.refuse("there is no such option");
    for (const std::string &name : s.only)
        if (std::none_of(std::begin(table_5), std::end(table_5), [&](const paper_row &r) { return name == r.work; }))
            a.refuse_for("--only", "there is no '" + name + "'");
    std::vector<task_way_kind> kinds;
    add_stream_ways(kinds);
    add_acs_ways(kinds, s.slots);
    if (s.ways != std::vector<std::string>{"all"}) {
        for (const std::string &name : s.ways)
            if (std::none_of(kinds.begin(), kinds.end(), [&](const task_way_kind &k) { return k.name == name; }))
                a.refuse_for("--way", "there is no '" + name + "' here");
        kinds.erase(std::remove_if(kinds.begin(), kinds.end(),
                                   [&](const task_way_kind &k) {
                                       return std::find(s.ways.begin(), s.ways.end(), k.name) == s.ways.end();
                                   }),
                    kinds.end());
    }
    pin_thread(s.how.where(), 0);
    printf("%s\n", machine_line(s.how.gpu).c_str());
    result_file file(s.how.json, "acs-tasks", a.command(), s.how.gpu);
    bench_interrupts_catch();
    bench_progress_begin("acs-tasks", static_cast<double>(s.only.empty() ? std::size(table_5) : s.only.size()));
    for (const paper_row &paper : table_5)
        for (const workload &w : workloads())
            if (!bench_interrupted() && w.name == std::string(paper.work) &&
                (s.only.empty() || std::find(s.only.begin(), s.only.end(), w.name) != s.only.end()))
                ok = play(w, paper, kinds, s, file) && ok;
    if (!ok)
        fprintf(stderr, "acs-tasks: at least one way was wrong\n");
    return end_of("acs-tasks", s.how.json, ok);
}

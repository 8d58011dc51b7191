/*
 * acs-jobs: the job streams of the SET paper, by its baselines, by hand, and through ACS in one run.
 *
 * Owns the command line and the order of measurements. Exit status: 0; 1: something was wrong, or failed; 2: bad command
 * line.
 */
#include <algorithm>
#include <cstdio>

#include "contest.h"
#include "job_report.h"
#include "progress.h"

using namespace bench;

namespace {

struct settings {
    std::vector<std::string> only, runners = {"all"};
    std::string size = "normal";
    measuring how;
    job_settings jobs;
    bool jobs_given = false, list = false;
};

std::string usage()
{
    std::string text =
        "usage: acs-jobs [options]\n"
        "  --only WORK[,WORK]       these works, see below                                                      (all)\n"
        "  --size PRESET            tiny, normal (a job is a part of a GPU) or large                         (normal)\n"
        "  --jobs N                 jobs of a run                      (256; of size tiny 24, of size large 96)\n"
        "  --sets N[,N]             numbers of streams, threads or buffer sets to try, the fastest is kept  (4,8,16,32)\n"
        "  --check                  the oracle looks at every job, not only at the first and the last\n"
        "  --backend cuda|host      where the kernels run                        (cuda where a GPU answers, else host)\n"
        "  --runner R[,R]|all       who runs the jobs, see below                                                (all)\n"
        "  --reps N                 timed repetitions of each runner                                              (5)\n"
        "  --cpu N                  pin the program's thread to CPU N and the runners' to those behind   (not pinned)\n"
        "  --json FILE              write all figures for bench/report\n"
        "  --go-on                  skip what FILE has: the same command wrote it and was interrupted\n"
        "  --list                   works and runners\n"
        "works:\n";
    char line[200];
    for (const work_kind &k : work_kinds()) {
        snprintf(line, sizeof line, "  %-12s %s\n", k.name, k.about);
        text += line;
    }
    text += "runners:\n";
    for (const job_runner_kind &k : job_runner_kinds()) {
        snprintf(line, sizeof line, "  %-12s %s%s\n", k.name, k.about, k.gpu && !k.host ? " (cuda only)" : "");
        text += line;
    }
    return text;
}

void parse_sets(settings &s, arguments &a)
{
    s.jobs.sets.clear();
    for (double n : a.reals(1, 256)) {
        if (n > static_cast<double>(static_cast<size_t>(n)))
            a.refuse("takes whole numbers");
        s.jobs.sets.push_back(static_cast<size_t>(n));
    }
}

void parse_size(settings &s, arguments &a)
{
    s.size = a.text();
    if (s.size != "tiny" && s.size != "normal" && s.size != "large")
        a.refuse("'" + s.size + "' is none of tiny, normal, large");
}

bool parse_jobs(settings &s, arguments &a)
{
    if (a.is("--jobs")) {
        s.jobs.jobs = a.number(1, 1000000);
        s.jobs_given = true;
    } else if (a.is("--sets")) {
        parse_sets(s, a);
    } else if (a.is("--size")) {
        parse_size(s, a);
    } else if (a.is("--only")) {
        s.only = a.list();
    } else if (a.is("--check")) {
        s.jobs.check = true;
    } else {
        return false;
    }
    return true;
}

settings parse(arguments &a)
{
    settings s;
    while (a.next()) {
        if (parse_jobs(s, a) || s.how.take(a))
            continue;
        if (a.is("--list"))
            s.list = true;
        else if (a.is("--runner"))
            s.runners = a.list();
        else
            a.refuse("there is no such option");
    }
    s.jobs.where = s.how.where();
    s.jobs.repetitions = s.how.repetitions;
    if (!s.jobs_given)
        s.jobs.jobs = s.size == "tiny" ? 24 : (s.size == "large" ? 96 : 256);
    return s;
}

/* Those of the list with these names, in its order; "all", or no name: every one. */
template <class K>
std::vector<const K *> chosen(const std::vector<K> &list, const std::vector<std::string> &names, const arguments &a,
                              const char *option)
{
    const bool all = names.empty() || names == std::vector<std::string>{"all"};
    std::vector<const K *> found;

    for (const std::string &name : names)
        if (!all && std::none_of(list.begin(), list.end(), [&](const K &k) { return name == k.name; }))
            a.refuse_for(option, "there is no '" + name + "'");
    for (const K &k : list)
        if (all || std::count(names.begin(), names.end(), k.name) > 0)
            found.push_back(&k);
    return found;
}

void list()
{
    for (const work_kind &k : work_kinds())
        printf("work   %-12s %s\n", k.name, k.about);
    for (const job_runner_kind &k : job_runner_kinds())
        printf("runner %-12s %s\n", k.name, k.about);
}

bool play(const work_kind &k, const std::vector<const job_runner_kind *> &runners, const settings &s, result_file &file)
{
    if (file.has({{"work", k.name}, {"size", s.size}})) {
        bench_progress_skip();
        return true;
    }
    memory m(s.jobs.where.gpu);
    const std::unique_ptr<work> w = k.make(m, s.size);
    const job_head head = {&k, s.size, w.get()};
    const job_results done = measure_jobs(*w, runners, s.jobs);
    bench_progress_hide();

    if (!done.wrong.empty()) {
        printf("\n%s, size %s: the serial program is WRONG: %s\n", k.name, s.size.c_str(), done.wrong.c_str());
        return false;
    }
    print_jobs(head, s.jobs, done.outcomes);
    write_jobs(file, head, s.jobs, done.outcomes);
    if (!bench_interrupted())
        bench_progress_step(k.name);
    return std::all_of(done.outcomes.begin(), done.outcomes.end(), [](const job_outcome &o) { return o.wrong.empty(); });
}

} // namespace

int main(int argc, char **argv)
{
    arguments a(argc, argv, "acs-jobs", usage());
    const settings s = parse(a);
    bool ok = true;

    if (s.list) {
        list();
        return 0;
    }
    const std::vector<const work_kind *> works = chosen(work_kinds(), s.only, a, "--only");
    const std::vector<const job_runner_kind *> runners = chosen(job_runner_kinds(), s.runners, a, "--runner");
    pin_thread(s.jobs.where, 0);
    printf("%s\n", machine_line(s.jobs.where.gpu).c_str());
    result_file file(s.how.json, "acs-jobs", a.command(), s.jobs.where.gpu);
    bench_interrupts_catch();
    bench_progress_begin("acs-jobs", static_cast<double>(works.size()));
    for (const work_kind *k : works)
        ok = bench_interrupted() ? ok : play(*k, runners, s, file) && ok;
    if (!ok)
        fprintf(stderr, "acs-jobs: at least one runner was wrong\n");
    return end_of("acs-jobs", s.how.json, ok);
}

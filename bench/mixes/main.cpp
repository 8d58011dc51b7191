/*
 * acs-mixes: HuntKTm's workloads W1 to W8 of 16 or 32 jobs that bring their memory, on devices that have too little for
 * all at once: one job at a time, beside each other, as groups of ACS; in one process, or each in its own.
 *
 * Owns the command line and what is made for a workload. Exit status: 0; 1: something was wrong, failed, or found no
 * memory; 2: bad command line.
 */
#include <algorithm>
#include <cstdio>
#include <map>

#include "mix_contest.h"
#include "processes.h"
#include "progress.h"

using namespace bench;

namespace {

const double tiny_scale = 0.0002; /* for tests: a device has 8 MB */
const double paper_gb = 40;       /* of a GPU of the paper's, for jobs of scale 1 */

struct settings {
    std::vector<std::string> workloads, ways = {"all"};
    std::vector<unsigned> devices = {2};
    double scale = 0.25, memory = 0; /* GB; 0: in proportion */
    bool check = false, processes = false;
    measuring how;
    std::string job, ledger; /* this is a process that is a job: main's own, not for users */

    uint64_t limit() const { return static_cast<uint64_t>((memory > 0 ? memory : paper_gb * scale) * 1e9); }
};

const char usage_text[] =
    "usage: acs-mixes [options]\n"
    "  --workloads W[,W]        these of W1 to W8                                                           (all)\n"
    "  --devices N[,N]          on so many devices; on the CPU they are virtual                               (2)\n"
    "  --scale S                bytes of each job, of those of the paper's, of up to 19.2 GB               (0.25)\n"
    "  --size tiny              a scale for tests\n"
    "  --memory GB              of each device, that all jobs on it share                    (40 times the scale)\n"
    "  --processes              each job is a process of its own\n"
    "  --way W[,W]|all          which of the ways, named as they are told; of processes others                (all)\n"
    "  --check                  an oracle looks at the serial programs first\n"
    "  --backend cuda|host      where the kernels run                        (cuda where a GPU answers, else host)\n"
    "  --reps N                 timed repetitions of each way                                                 (5)\n"
    "  --cpu N                  pin the program's thread to CPU N, and ways' threads to those behind (not pinned)\n"
    "  --json FILE              write all figures for bench/report\n"
    "  --go-on                  skip what FILE has: the same command wrote it and was interrupted\n"
    "ways: one, one-malloc (on a GPU), beside, one-group, groups-none, groups, groups-8\n"
    "ways of processes: one-process, ledger\n";

void take_devices(settings &s, arguments &a)
{
    s.devices.clear();
    for (double n : a.reals(1, 16)) {
        if (n > static_cast<double>(static_cast<unsigned>(n)))
            a.refuse("takes whole numbers");
        s.devices.push_back(static_cast<unsigned>(n));
    }
}

bool take(settings &s, arguments &a)
{
    if (a.is("--workloads")) {
        s.workloads = a.list();
    } else if (a.is("--devices")) {
        take_devices(s, a);
    } else if (a.is("--scale")) {
        s.scale = a.real(0.0001, 1);
    } else if (a.is("--size")) {
        if (a.text() != "tiny")
            a.refuse("takes tiny; for others there is --scale");
        s.scale = tiny_scale;
    } else if (a.is("--memory")) {
        s.memory = a.real(0.001, 4096);
    } else if (a.is("--processes")) {
        s.processes = true;
    } else if (a.is("--way")) {
        s.ways = a.list();
    } else if (a.is("--check")) {
        s.check = true;
    } else if (a.is("--job")) {
        s.job = a.text();
    } else if (a.is("--ledger")) {
        s.ledger = a.text();
    } else {
        return s.how.take(a);
    }
    return true;
}

/* The ways that are asked for, of jobs in this program or of processes; refuses names that are none. */
std::vector<mix_way_kind> chosen_ways(const settings &s, const arguments &a, const mix_machine &on,
                                      const std::vector<job *> &jobs, crowd &c)
{
    const std::vector<std::string> &names = s.ways;
    std::vector<mix_way_kind> kinds;
    if (s.processes) {
        add_process_ways(kinds, on, c);
    } else {
        add_hand_ways(kinds, on, jobs);
        add_acs_ways(kinds, on, jobs);
    }
    if (names == std::vector<std::string>{"all"})
        return kinds;
    for (const std::string &name : names)
        if (std::none_of(kinds.begin(), kinds.end(), [&](const mix_way_kind &k) { return k.name == name; }))
            a.refuse_for("--way", "there is no '" + name + "' here");
    kinds.erase(std::remove_if(kinds.begin(), kinds.end(),
                               [&](const mix_way_kind &k) {
                                   return std::find(names.begin(), names.end(), k.name) == names.end();
                               }),
                kinds.end());
    return kinds;
}

/* Before anything runs: names of ways that are none. */
void check_ways(const settings &s, const arguments &a)
{
    crowd nobody({});
    (void)chosen_ways(s, a, {s.how.where(), 1, 0}, {}, nobody);
}

/* Tasks are learnt once; a job of a task is used by every workload that has so many of it. */
class job_stock {
public:
    explicit job_stock(const settings &s) : s_(s) {}

    /** @return empty, or which serial program is wrong. */
    std::string learn()
    {
        for (const std::string &name : mix_tasks()) {
            const workload &w = mix_workload(name);
            tasks_[name].reset(new task(w, scaled_sizes(w, s_.scale), s_.how.gpu, s_.check, false));
            if (!tasks_[name]->wrong().empty())
                return name + ": the serial program is WRONG: " + tasks_[name]->wrong();
        }
        return "";
    }

    uint64_t most_bytes() const
    {
        uint64_t most = 0;
        for (const auto &t : tasks_)
            most = std::max(most, t.second->bytes());
        return most;
    }

    std::vector<job *> take(const std::vector<std::string> &names)
    {
        std::map<std::string, size_t> taken;
        std::vector<job *> jobs;
        for (const std::string &name : names) {
            std::vector<std::unique_ptr<job>> &of_task = jobs_[name];
            const size_t k = taken[name]++;
            if (k == of_task.size())
                of_task.emplace_back(new job(*tasks_[name]));
            jobs.push_back(of_task[k].get());
        }
        return jobs;
    }

private:
    const settings &s_;
    std::map<std::string, std::unique_ptr<task>> tasks_;
    std::map<std::string, std::vector<std::unique_ptr<job>>> jobs_;
};

/* The program as it goes from workload to workload. */
class player {
public:
    player(arguments &a, const settings &s)
        : a_(a), s_(s), file_(s.how.json, "acs-mixes", a.command(), s.how.gpu), stock_(s)
    {
    }

    bool play_all(unsigned devices)
    {
        const std::vector<std::string> &names = s_.workloads;
        mix_summary summary;
        bool ok = true;
        for (const mix &m : mixes())
            if (bench_interrupted())
                break;
            else if (file_.has({{"work", m.name}, {"devices", devices}}))
                bench_progress_skip();
            else if (names.empty() || std::find(names.begin(), names.end(), m.name) != names.end())
                ok = (s_.processes ? play_processes(m, devices, summary) : play(m, devices, summary)) && ok;
        summary.print(devices);
        return ok;
    }

    bool learn()
    {
        const std::string wrong = s_.processes ? "" : stock_.learn();
        if (!wrong.empty())
            printf("\n%s\n", wrong.c_str());
        if (wrong.empty() && !s_.processes)
            refuse_too_small(stock_.most_bytes());
        return wrong.empty();
    }

private:
    void refuse_too_small(uint64_t most) const
    {
        if (most > s_.limit())
            a_.refuse_for("--memory", "one job takes " + std::to_string(static_cast<double>(most) / 1e9) + " GB");
    }

    bool play(const mix &m, unsigned devices, mix_summary &summary)
    {
        const std::vector<job *> jobs = stock_.take(m.jobs);
        mix_run run = {m, {s_.how.where(), devices, s_.limit()}, s_.scale, false, 0, 0, 0};
        for (const job *j : jobs) {
            run.bytes += j->of().bytes();
            run.in += j->bytes_in();
            run.out += j->bytes_out();
        }
        crowd nobody({});
        return contend_and_tell(run, chosen_ways(s_, a_, run.on, jobs, nobody), summary);
    }

    bool play_processes(const mix &m, unsigned devices, mix_summary &summary)
    {
        mix_run run = {m, {s_.how.where(), devices, s_.limit()}, s_.scale, true, 0, 0, 0};
        std::vector<std::vector<std::string>> arguments;
        for (const std::string &task : m.jobs)
            arguments.push_back(
                child_arguments({task, ledger_text(s_.limit()), s_.scale, devices, s_.how.where(), s_.check}));
        crowd c(arguments);
        uint64_t most = 0;
        const std::string failed = prepare(c, run, most);
        bool ok = false;
        if (!failed.empty())
            printf("\n%s: %s\n", m.name.c_str(), failed.c_str());
        else if (most <= s_.limit())
            ok = contend_and_tell(run, chosen_ways(s_, a_, run.on, {}, c), summary);
        const std::string bad = c.end();
        if (!bad.empty())
            printf("  %s\n", bad.c_str());
        remove_ledger();
        refuse_too_small(most);
        return ok && bad.empty();
    }

    bool contend_and_tell(const mix_run &run, const std::vector<mix_way_kind> &kinds, mix_summary &summary)
    {
        const std::vector<mix_result> results = contend(run, kinds, s_.how.repetitions);
        bench_progress_hide();
        print(run, results);
        write(file_, run, s_.how, results);
        if (!bench_interrupted())
            bench_progress_step(run.what.name.c_str());
        summary.add(results);
        return is_right(results);
    }

    arguments &a_;
    const settings &s_;
    result_file file_;
    job_stock stock_;
};

} // namespace

int main(int argc, char **argv)
{
    arguments a(argc, argv, "acs-mixes", usage_text);
    settings s;
    bool ok = true;

    while (a.next())
        if (!take(s, a))
            a.refuse("there is no such option");
    for (const std::string &name : s.workloads)
        if (std::none_of(mixes().begin(), mixes().end(), [&](const mix &m) { return name == m.name; }))
            a.refuse_for("--workloads", "there is no '" + name + "'");
    for (unsigned devices : s.devices)
        if (s.how.gpu && devices > device_count())
            a.refuse_for("--devices", "there are " + std::to_string(device_count()));
    if (!s.job.empty())
        return run_child({s.job, s.ledger, s.scale, s.devices[0], s.how.where(), s.check});
    check_ways(s, a);
    if (s.processes && s.how.first_cpu >= 0)
        a.refuse_for("--cpu", "--processes are not pinned");
    pin_thread(s.how.where(), 0);
    printf("%s\n", machine_line(s.how.gpu).c_str());
    fflush(stdout);
    player p(a, s);
    if (!p.learn())
        return 1;
    bench_interrupts_catch();
    const size_t each = s.workloads.empty() ? mixes().size() : s.workloads.size();
    bench_progress_begin("acs-mixes", static_cast<double>(s.devices.size() * each));
    for (unsigned devices : s.devices)
        ok = p.play_all(devices) && ok;
    if (!ok)
        fprintf(stderr, "acs-mixes: at least one way was wrong\n");
    return end_of("acs-mixes", s.how.json, ok);
}

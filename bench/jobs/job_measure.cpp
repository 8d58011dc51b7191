/*
 * Owns the order and the timing of runs. Called by the program. All runners get the same jobs in the same host buffers; what
 * they need is taken before the clock starts.
 */
#include "job_measure.h"

#include "progress.h"

#include <algorithm>
#include <chrono>

namespace bench {

namespace {

using clock_type = std::chrono::steady_clock;

/* Runs of each number of sets that is tried, behind one that warms it; then of the one that was kept. */
const int TRIALS = 2, WARM_RUNS = 20;
const double WARM_US = 20000;

double us_since(clock_type::time_point begin)
{
    return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

std::string why_left_out(const job_runner_kind &k, bool gpu)
{
    return (gpu ? k.gpu : k.host) ? "" : (k.make ? "needs a GPU" : "not built in: no CUDA");
}

/* A runner and what is known of it so far. */
class contender {
public:
    contender(const job_runner_kind &k, const job_list &jobs, const std::vector<char> &right, const job_settings &s)
        : jobs_(jobs), right_(right), settings_(s)
    {
        result.kind = &k;
        result.left_out = why_left_out(k, s.where.gpu);
        if (result.left_out.empty())
            runner_ = k.make(s.where);
    }

    job_outcome result;

    void warm_up()
    {
        if (!runs() || !choose())
            return;
        const auto begin = clock_type::now();
        for (int n = 0; n < WARM_RUNS && us_since(begin) < WARM_US && run(); n++)
            continue;
    }

    void repetition()
    {
        if (!runs() || !run())
            return;
        result.total_us.push_back(total_us_);
        result.submit_us.push_back(submit_us_);
    }

    job_outcome end()
    {
        if (bench_interrupted() && runs() && result.total_us.empty())
            result.left_out = "interrupted";
        if (runs()) {
            result.note = runner_->note();
            result.device_bytes = runner_->device_bytes();
        }
        runner_.reset();
        return std::move(result);
    }

private:
    bool runs() const { return result.left_out.empty() && result.wrong.empty(); }

    /* Tries every number of sets and prepares the fastest. @return whether there is one that runs. */
    bool choose()
    {
        const bool several = *result.kind->sets != 0;
        const std::vector<size_t> tried = several ? settings_.sets : std::vector<size_t>{1};
        size_t best = tried.front();
        double best_us = 0;

        for (size_t sets : tried) {
            if (tried.size() == 1)
                break;
            const double us = trial_us(sets);
            if (!result.wrong.empty())
                return false;
            if (us > 0 && (best_us <= 0 || us < best_us)) {
                best = sets;
                best_us = us;
            }
        }
        result.left_out = runner_->prepare(jobs_, best);
        result.sets = several ? best : 0;
        return runs();
    }

    /* The best of some runs; 0 if this number of sets cannot be had here, or a run was wrong. */
    double trial_us(size_t sets)
    {
        double best_us = 0;
        if (!runner_->prepare(jobs_, sets).empty() || !run())
            return 0;
        for (int n = 0; n < TRIALS && run(); n++)
            best_us = n == 0 ? total_us_ : std::min(best_us, total_us_);
        return best_us;
    }

    /* @return whether the run was as it must be. */
    bool run()
    {
        jobs_.reset();
        runner_->ready();
        const auto begin = clock_type::now();
        runner_->run();
        submit_us_ = us_since(begin);
        result.wrong = runner_->finish();
        total_us_ = us_since(begin);
        if (result.wrong.empty() && !jobs_.results_are(right_))
            result.wrong = "the results are not those of the serial program, bit for bit";
        return result.wrong.empty();
    }

    const job_list &jobs_;
    const std::vector<char> &right_;
    const job_settings &settings_;
    std::unique_ptr<job_runner> runner_;
    double total_us_ = 0, submit_us_ = 0; /* of the latest run */
};

/* Runs the serial program once, and asks the oracle. @return what is wrong. */
std::string run_serially(const work &w, const job_list &jobs, const job_settings &s)
{
    const std::unique_ptr<job_runner> serial = make_serial(s.where);
    std::string wrong = serial->prepare(jobs, 1);

    if (!wrong.empty())
        return wrong;
    jobs.reset();
    serial->run();
    wrong = serial->finish();
    for (size_t job = 0; job < jobs.count() && wrong.empty(); job++)
        if (s.check || job == 0 || job + 1 == jobs.count()) {
            const std::string off = w.check(jobs.in(job), jobs.out(job));
            wrong = off.empty() ? "" : "job " + std::to_string(job) + ": " + off;
        }
    return wrong;
}

} // namespace

job_results measure_jobs(const work &w, const std::vector<const job_runner_kind *> &kinds, const job_settings &s)
{
    const job_list jobs(w, s.jobs, s.where.gpu);
    std::vector<std::unique_ptr<contender>> all;
    job_results results;

    results.wrong = run_serially(w, jobs, s);
    if (!results.wrong.empty())
        return results;
    const std::vector<char> right = jobs.results();
    for (const job_runner_kind *k : kinds)
        all.emplace_back(new contender(*k, jobs, right, s));
    double finished = 0;
    const auto tell = [&](const job_runner_kind &k) {
        finished += 1;
        bench_progress_part(finished / (static_cast<double>(all.size()) * (s.repetitions + 1)), k.name);
    };
    for (const auto &c : all)
        if (!bench_interrupted()) {
            c->warm_up();
            tell(*c->result.kind);
        }
    for (int repetition = 0; repetition < s.repetitions && !bench_interrupted(); repetition++)
        for (size_t turn = 0; turn < all.size(); turn++) {
            /* Each repetition begins with another one, and every second one goes backwards. */
            const size_t place = repetition % 2 ? all.size() - 1 - turn : turn;
            contender &c = *all[(place + static_cast<size_t>(repetition)) % all.size()];
            c.repetition();
            tell(*c.result.kind);
        }
    for (const auto &c : all)
        results.outcomes.push_back(c->end());
    return results;
}

} // namespace bench

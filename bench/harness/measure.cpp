/*
 * Owns the order and the timing of runs. Called by the benchmark programs; all runners get the same calls in the same
 * order, the same reset before and the same synchronisation behind.
 */
#include "measure.h"

#include "progress.h"

#include <algorithm>
#include <chrono>

namespace bench {

/* Above this many ops dependencies are not computed, and runners that plan by them say that they cannot. */
static const size_t PLANNED_OPS = 20000;
/* Runs by which the variants of a runner are compared. */
static const int TRIALS = 2;
/* Runs of each runner between those and the timed ones, as some learn as they go: so many, or as many as this time holds. */
static const int WARM_RUNS = 24;
static const double WARM_US = 100000;

spread spread_of(const std::vector<sample> &samples, double sample::*field)
{
    std::vector<double> sorted;
    for (const sample &s : samples)
        sorted.push_back(s.*field);
    if (sorted.empty())
        return {0, 0, 0};
    std::sort(sorted.begin(), sorted.end());
    const size_t n = sorted.size();
    return {n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2, sorted.front(), sorted.back()};
}

static double us_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

dag dag_to_plan_by(const trace &t)
{
    return t.ops.size() <= PLANNED_OPS ? find_dag(t) : dag();
}

std::string time_run(program &p, runner &r, bool awake, sample &s)
{
    std::string wrong;

    p.reset();
    if (awake)
        r.ready();
    r.around([&] {
        const auto begin = std::chrono::steady_clock::now();
        p.run(r);
        r.flush();
        s.submit_us = us_since(begin);
        wrong = r.finish();
        p.mem().wait();
        s.total_us = us_since(begin);
    });
    return wrong;
}

namespace {

class series {
public:
    series(program &p, std::vector<contestant> &runners, const measure_settings &s)
        : program_(p), runners_(runners), settings_(s)
    {
        for (const contestant &c : runners_)
            outcomes_.push_back({c.kind, "", "", "", "", {}});
    }

    std::vector<outcome> all()
    {
        program_.vary(0);
        describe();
        for (size_t k = 0; k < runners_.size() && !bench_interrupted(); k++) {
            warm_up(k);
            tell(runners_[k].kind->name + std::string(" is warm"));
        }
        for (int repetition = 0; repetition < settings_.repetitions && !bench_interrupted(); repetition++) {
            if (program_.vary(static_cast<uint64_t>(repetition) + 1)) {
                describe();
                for (size_t k = 0; k < runners_.size(); k++)
                    prepare(k);
            }
            for (size_t turn = 0; turn < runners_.size(); turn++) {
                /* Each repetition begins with another runner, and every second one goes backwards. */
                const size_t place = repetition % 2 ? runners_.size() - 1 - turn : turn;
                const size_t k = (place + static_cast<size_t>(repetition)) % runners_.size();
                sample s;
                if (runs(k) && run(k, s))
                    outcomes_[k].samples.push_back(s);
                tell(std::string("repetition ") + std::to_string(repetition + 1) + ", " + runners_[k].kind->name);
            }
        }
        for (outcome &o : outcomes_)
            if (bench_interrupted() && o.samples.empty() && o.left_out.empty() && o.wrong.empty())
                o.left_out = "interrupted";
        for (size_t k = 0; k < runners_.size(); k++) {
            outcomes_[k].setting = runners_[k].way->setting();
            outcomes_[k].note = runners_[k].way->note();
        }
        return std::move(outcomes_);
    }

private:
    bool runs(size_t k) const { return outcomes_[k].left_out.empty(); }

    /* To warm a runner takes about as long as to time it. */
    void tell(const std::string &what)
    {
        const double all = static_cast<double>(runners_.size()) * (settings_.repetitions + 1);
        done_ += 1;
        bench_progress_part(done_ / all, what.c_str());
    }

    void describe()
    {
        program_.reset();
        trace_ = program_.describe();
        for (size_t k = 0; k < settings_.us.size() && k < trace_.ops.size(); k++)
            trace_.ops[k].us = settings_.us[k];
        dag_ = dag_to_plan_by(trace_);
        right_.clear();
    }

    void prepare(size_t k)
    {
        if (runs(k))
            outcomes_[k].left_out = runners_[k].way->prepare(trace_, dag_);
    }

    /* The best of a variant's runs after one that warms it; 0 if it does not run. */
    double trial_us(size_t k)
    {
        double best_us = 0;
        sample s;
        if (!runs(k) || !run(k, s))
            return 0;
        for (int n = 0; n < TRIALS && run(k, s); n++)
            best_us = n == 0 ? s.total_us : std::min(best_us, s.total_us);
        return best_us;
    }

    void warm_up(size_t k)
    {
        runner &r = *runners_[k].way;
        int best = 0;
        double best_us = 0;
        sample s;

        for (int v = 0; v < r.variants(); v++) {
            r.choose(v);
            outcomes_[k].left_out.clear();
            prepare(k);
            const double us = trial_us(k);
            if (us > 0 && (best_us <= 0 || us < best_us)) {
                best_us = us;
                best = v;
            }
        }
        if (r.variants() > 1) {
            r.choose(best);
            outcomes_[k].left_out.clear();
            prepare(k);
        }
        const auto begin = std::chrono::steady_clock::now();
        for (int n = 0; n < WARM_RUNS && us_since(begin) < WARM_US && runs(k) && run(k, s); n++)
            continue;
    }

    /* One run. @return whether it was as it must be. */
    bool run(size_t k, sample &s)
    {
        std::string wrong = time_run(program_, *runners_[k].way, true, s);

        if (wrong.empty() && (settings_.check || (settings_.bits && right_.empty())))
            wrong = program_.check();
        if (wrong.empty() && settings_.bits)
            wrong = compare();
        if (wrong.empty())
            return true;
        if (outcomes_[k].wrong.empty())
            outcomes_[k].wrong = wrong;
        return false;
    }

    std::string compare()
    {
        std::vector<char> now = program_.result();
        if (right_.empty())
            right_ = std::move(now);
        else if (now != right_)
            return "the result is not that of the first runner, bit for bit";
        return "";
    }

    program &program_;
    std::vector<contestant> &runners_;
    const measure_settings settings_;
    std::vector<outcome> outcomes_;
    trace trace_;
    dag dag_;
    std::vector<char> right_;
    double done_ = 0; /* runners that were warmed, and runs that were timed */
};

} // namespace

std::vector<outcome> measure(program &p, std::vector<contestant> &runners, const measure_settings &s)
{
    return series(p, runners, s).all();
}

} // namespace bench

/*
 * Owns the order and the timing of first passes. Called by main.cpp. Each repetition runs the same passes, so what varies
 * from pass to pass comes again in the next repetition, for runners that do not know it.
 */
#include "passes.h"

#include "measure.h"
#include "progress.h"

#include <chrono>

namespace bench {

namespace {

class series {
public:
    series(program &p, const machine &m, std::vector<contestant> runners, const passes_settings &s)
        : program_(p), machine_(m), runners_(std::move(runners)), settings_(s)
    {
        for (const contestant &c : runners_)
            curves_.push_back({c.kind, "", "", "", {}, std::vector<std::vector<double>>(static_cast<size_t>(s.passes))});
    }

    std::vector<curve> all()
    {
        settle();
        for (int repetition = 0; repetition < settings_.repetitions && !bench_interrupted(); repetition++) {
            for (size_t k = 0; k < runners_.size(); k++)
                if (ours(k))
                    open(k);
            for (int pass = 0; pass < settings_.passes && !bench_interrupted(); pass++)
                run_pass(repetition, pass);
        }
        for (size_t k = 0; k < runners_.size(); k++)
            curves_[k].setting = runners_[k].way->setting();
        return std::move(curves_);
    }

private:
    bool ours(size_t k) const { return runners_[k].kind->role == OURS; }
    bool runs(size_t k) const { return curves_[k].left_out.empty() && curves_[k].wrong.empty(); }

    /* Rivals find their best settings. */
    void settle()
    {
        measure_settings how;
        how.repetitions = 1;
        for (size_t k = 0; k < runners_.size() && !bench_interrupted(); k++) {
            if (ours(k))
                continue;
            std::vector<contestant> one;
            one.push_back(std::move(runners_[k]));
            const outcome done = measure(program_, one, how).front();
            runners_[k] = std::move(one.front());
            curves_[k].left_out = done.left_out;
            curves_[k].wrong = done.wrong;
        }
    }

    void open(size_t k)
    {
        runners_[k].way.reset();
        const auto begin = std::chrono::steady_clock::now();
        runners_[k].way = runners_[k].kind->make(machine_);
        const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
        curves_[k].open_us.push_back(us.count());
    }

    void run_pass(int repetition, int pass)
    {
        const bool others = program_.vary(static_cast<uint64_t>(pass) + 1);
        if (others || pass == 0)
            prepare();
        for (size_t turn = 0; turn < runners_.size(); turn++) {
            const size_t k = (turn + static_cast<size_t>(pass + repetition)) % runners_.size();
            if (runs(k))
                run(k, pass);
        }
        const double done = repetition * settings_.passes + pass + 1;
        bench_progress_part(done / (settings_.repetitions * settings_.passes), "passes");
    }

    void prepare()
    {
        program_.reset();
        const trace t = program_.describe();
        const dag d = dag_to_plan_by(t);
        for (size_t k = 0; k < runners_.size(); k++)
            if (runs(k))
                curves_[k].left_out = runners_[k].way->prepare(t, d);
    }

    void run(size_t k, int pass)
    {
        sample s;
        const std::string wrong = time_run(program_, *runners_[k].way, !ours(k), s);
        curves_[k].wrong = wrong.empty() ? program_.check() : wrong;
        curves_[k].total_us[static_cast<size_t>(pass)].push_back(s.total_us);
    }

    program &program_;
    const machine machine_;
    std::vector<contestant> runners_;
    const passes_settings settings_;
    std::vector<curve> curves_;
};

} // namespace

std::vector<curve> measure_passes(program &p, const machine &m, const std::vector<std::string> &names,
                                  const passes_settings &s, std::string *unknown)
{
    std::vector<contestant> runners = make_contestants(m, names, unknown);
    return unknown->empty() ? series(p, m, std::move(runners), s).all() : std::vector<curve>();
}

} // namespace bench

/*
 * What runners share that know a run beforehand: ops are held back until the program reads or is through, and compared
 * with those that were planned. A program that launches something else is an error that finish() returns.
 */
#ifndef BENCH_PLAN_RUNNER_H
#define BENCH_PLAN_RUNNER_H

#include <string>
#include <vector>

#include "plan.h"
#include "runner.h"
#include "streams_slot.h"

namespace bench {

class planned_runner : public runner {
public:
    explicit planned_runner(const machine &m);

    std::string prepare(const trace &t, const dag &d) override;
    /** prepare() must follow. */
    void choose(int variant) override;
    void ready() override { start(); }
    void launch(const op &o) override;
    void read(void *to, const void *from, size_t bytes) override;
    void flush() override;
    std::string finish() override;

protected:
    /* Plan the run in trace_ and dag_ for variant_. Returns why it cannot be run, or nothing. Not timed. */
    virtual std::string plan_run() = 0;
    /* A run begins: its first op will come soon, or is here. */
    virtual void begin() {}
    /* Issue the stretch's ops, held_[stretch_begin(stretch)] and on; if it ends with a read, do that and wait for it. */
    virtual void issue(size_t stretch) = 0;
    /* Every stretch was issued, or the run was given up: return when nothing of it is held back. */
    virtual void end() {}

    size_t stretch_begin(size_t stretch) const { return stretch == 0 ? 0 : ends_[stretch - 1]; }
    size_t stretch_end(size_t stretch) const { return ends_[stretch]; }

    const machine machine_;
    int variant_ = 0;
    trace trace_; /* copies: of what its ops point to only kernels, calls and arguments may be looked at */
    dag dag_;
    std::vector<const op *> held_; /* by number in the trace */
    failure failure_;

private:
    void start();
    bool expected(const op &o);
    void issue_stretch();

    std::vector<size_t> ends_;
    std::vector<op> reads_; /* as the program asked for them, by stretch */
    size_t next_ = 0, stretch_ = 0;
    bool running_ = false, lost_ = false; /* lost: the program is not doing what was planned */
    std::string refused_; /* why there is no plan to run */
};

} // namespace bench

#endif

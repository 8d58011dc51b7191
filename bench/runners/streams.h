/*
 * A plan on real CUDA streams: the part that hand-written streams with launches and with 1-node graphs share.
 */
#ifndef BENCH_STREAMS_H
#define BENCH_STREAMS_H

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "plan_runner.h"
#include "streams_crew.h"

namespace bench {

struct streams_setting {
    int streams, threads;
};

class streams_runner : public planned_runner {
public:
    streams_runner(const machine &m, const std::vector<streams_setting> &settings, const plan_costs &costs);
    ~streams_runner() override;

    int variants() const override { return static_cast<int>(settings_.size()); }
    std::string setting() const override;
    std::string note() const override;

protected:
    std::string plan_run() override;
    void begin() override;
    void issue(size_t stretch) override;
    void end() override;

    /* What each op is launched with: a plain call here. `step` is its number in plan_.steps. */
    virtual void send(size_t step, const op &o, slot &s);

    plan plan_;
    std::vector<std::unique_ptr<slot>> slots_; /* as many as the plan's streams, and one for reads */

private:
    /* The steps of one thread, and where each stretch ends among them. */
    struct lane {
        std::vector<uint32_t> steps;
        std::vector<size_t> stretch_end;
    };
    void make_lanes();
    void make_events();
    void help(int thread);
    void issue_lane(int thread, size_t stretch);
    void issue_step(int thread, size_t step);
    void wait_for_event(int thread, const plan_step &step, uint32_t up);
    void record_event(const plan_step &step);
    void await_read(size_t stretch);

    const std::vector<streams_setting> settings_;
    const plan_costs costs_;
    std::vector<lane> lanes_;
    std::vector<void *> pool_;   /* cudaEvent_t, kept from plan to plan */
    std::vector<void *> events_; /* by op; null where none is recorded */
    std::vector<int> thread_;    /* by op: who issues it */
    std::vector<uint16_t> stream_; /* by op */
    std::unique_ptr<std::atomic<uint32_t>[]> recorded_; /* by op: the run in which its event was recorded last */
    uint32_t run_ = 0;
    std::atomic<size_t> open_{0};     /* stretches that may be issued */
    std::atomic<bool> closed_{false}; /* no more will come in this run */
    crew crew_;
};

} // namespace bench

#endif

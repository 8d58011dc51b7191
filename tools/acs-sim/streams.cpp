/*
 * Owns the ways that issue to streams what a programmer would: one stream; streams and events planned with the whole run
 * known (the bench's planner), by launches and by graphs of one kernel. Called through the list of vehicles.
 */
#include <algorithm>

#include "plan.h"
#include "vehicle.h"

namespace design {

namespace {

/* The program's thread, one call after another into one stream. */
class serial_thread : public thread {
public:
    explicit serial_thread(run &r) : thread(r), stream_(acs_sim_stream(r.machine, 0)) {}

protected:
    bool decide(uint64_t now) override
    {
        const uint32_t k = next_;
        if (k == run_.prog.tasks.size()) {
            handed_over(now);
            return false;
        }
        const task &t = run_.prog.tasks[k];
        if (t.kind == WAIT && !run_.all_seen(run_.prog.dag.up[k]))
            return false;
        next_++;
        if (t.kind == WAIT)
            spend(run_.gpu.host.synchronize);
        else
            launching(t.device, t.kind == COPY ? run_.gpu.host.copy : run_.gpu.host.launch,
                      [this, k](uint64_t at) { run_.issue(at, k, stream_); });
        return true;
    }

private:
    const uint32_t stream_;
    uint32_t next_ = 0;
};

class serial : public vehicle {
public:
    void begin(run &r) override
    {
        run_ = &r;
        thread_ = std::make_unique<serial_thread>(r);
        r.wake(*thread_, 0);
    }
    void seen(uint32_t, uint64_t now) override { run_->wake(*thread_, now); }
    uint64_t host_busy() const override { return thread_->busy(); }

private:
    run *run_ = nullptr;
    std::unique_ptr<serial_thread> thread_;
};

struct planned_setting {
    int streams, threads;
};
/* What the bench's runners try, one thread being enough for graphs of one kernel. */
const int STREAMS[] = {4, 8, 16, 32}, THREADS[] = {1, 2, 3, 4};

class planned;

/* One of the threads that a plan is dealt out to. */
class planned_thread : public thread {
public:
    planned_thread(run &r, planned &all, int number) : thread(r), all_(all), number_(number) {}

    struct lane_step {
        size_t step, stretch;
    };
    std::vector<lane_step> steps;

protected:
    bool decide(uint64_t now) override;

private:
    planned &all_;
    const int number_;
    size_t next_ = 0;
};

/* A plan, its streams, and which of its events have been recorded. */
class planned : public vehicle {
public:
    planned(const program &p, planned_setting s, bool graphs) : setting_(s), graphs_(graphs)
    {
        bench::plan_costs c;
        plan_ = bench::make_plan(planned_ops(p), p.dag, s.streams, s.threads, c);
    }

    void begin(run &r) override
    {
        run_ = &r;
        for (int s = 0; s <= setting_.streams; s++)
            streams_.push_back(acs_sim_stream(r.machine, 0));
        for (int t = 0; t < setting_.threads; t++)
            threads_.push_back(std::make_unique<planned_thread>(r, *this, t));
        stream_of_.resize(r.prog.tasks.size());
        event_.assign(r.prog.tasks.size(), ACS_SIM_NONE);
        recorded_.resize(r.prog.tasks.size());
        size_t stretch = 0;
        for (size_t k = 0; k < plan_.steps.size(); k++) {
            while (k == plan_.stretch_end[stretch])
                stretch++;
            const bench::plan_step &s = plan_.steps[k];
            stream_of_[s.op] = s.stream;
            threads_[static_cast<size_t>(plan_.thread_of(s.stream))]->steps.push_back({k, stretch});
        }
        for (auto &t : threads_)
            r.wake(*t, 0);
    }
    void seen(uint32_t, uint64_t now) override { wake_all(now); }
    uint64_t host_busy() const override { return busiest(threads_); }
    std::string setting() const override
    {
        return std::to_string(setting_.streams) + " streams" +
               (setting_.threads > 1 ? ", " + std::to_string(setting_.threads) + " threads" : "");
    }
    std::string note() const override
    {
        size_t events = 0;
        for (const bench::plan_step &s : plan_.steps)
            events += s.record;
        return "events " + std::to_string(events) + ", waits " + std::to_string(plan_.waits.size());
    }

    void wake_all(uint64_t now)
    {
        for (auto &t : threads_)
            run_->wake(*t, now);
    }

private:
    friend class planned_thread;
    const planned_setting setting_;
    const bool graphs_;
    bench::plan plan_;
    run *run_ = nullptr;
    std::vector<uint32_t> streams_, event_;
    std::vector<uint16_t> stream_of_;
    std::vector<bool> recorded_;
    size_t open_ = 0; /* stretches before it may be issued, and it */
    std::vector<std::unique_ptr<planned_thread>> threads_;
};

bool planned_thread::decide(uint64_t now)
{
    if (next_ == steps.size()) {
        if (number_ == 0)
            handed_over(now);
        return false;
    }
    const lane_step at = steps[next_];
    const bench::plan_step &s = all_.plan_.steps[at.step];
    const task &t = run_.prog.tasks[s.op];
    if (at.stretch > all_.open_)
        return false;
    if (t.kind == WAIT) {
        if (!run_.all_seen(run_.prog.dag.up[s.op]))
            return false;
        next_++;
        spend(run_.gpu.host.synchronize, [this](uint64_t when) {
            all_.open_++;
            all_.wake_all(when);
        });
        return true;
    }
    for (uint32_t w = 0; w < s.wait_count; w++) {
        const uint32_t up = all_.plan_.waits[s.first_wait + w];
        if (run_.prog.tasks[up].kind != WAIT && !all_.recorded_[up])
            return false;
    }
    next_++;
    const uint32_t stream = all_.streams_[s.stream], op = s.op;
    for (uint32_t w = 0; w < s.wait_count; w++) {
        const uint32_t up = all_.plan_.waits[s.first_wait + w];
        if (run_.prog.tasks[up].kind != WAIT)
            spend(run_.gpu.host.wait, [this, up, stream](uint64_t when) {
                acs_sim_wait(run_.machine, when, stream, all_.event_[up]);
            });
    }
    if (t.kind == COPY)
        launching(t.device, run_.gpu.host.copy, [this, op, stream](uint64_t when) { run_.issue(when, op, stream); });
    else if (all_.graphs_)
        launching(t.device, run_.gpu.host.graph1_launch,
                  [this, op, stream](uint64_t when) { run_.issue_graph1(when, op, stream); });
    else
        launching(t.device, run_.gpu.host.launch, [this, op, stream](uint64_t when) { run_.issue(when, op, stream); });
    if (s.record)
        spend(run_.gpu.host.record, [this, op, stream](uint64_t when) {
            all_.event_[op] = acs_sim_event(run_.machine);
            acs_sim_record(run_.machine, when, stream, all_.event_[op]);
            all_.recorded_[op] = true;
            all_.wake_all(when);
        });
    return true;
}

} // namespace

void add_stream_vehicles(std::vector<vehicle_kind> &list)
{
    list.push_back({"stream", "one stream, as the program is written", bench::RIVAL, 1,
                    [](const program &, int) { return std::make_unique<serial>(); }});
    list.push_back({"streams", "hand-written streams and events, planned with knowledge of the whole run", bench::RIVAL,
                    16,
                    [](const program &p, int v) {
                        return std::make_unique<planned>(p, planned_setting{STREAMS[v % 4], THREADS[v / 4]}, false);
                    }});
    list.push_back({"graph1", "the same, each kernel by an executable graph of one node", bench::RIVAL, 4,
                    [](const program &p, int v) {
                        return std::make_unique<planned>(p, planned_setting{STREAMS[v], 1}, true);
                    }});
}

} // namespace design

/*
 * Owns ACS-SW as published: the program's thread fills a FIFO, a thread of its own moves ops from there into the window,
 * and each of several threads launches one ready op at a time into its stream, waits for the stream, and removes the op.
 * Called through the list of vehicles.
 */
#include <algorithm>

#include "vehicle.h"

namespace design {

namespace {

enum { WINDOW = 32 };

class acs_sw;

/* Hands every op over; waits where the program does. */
class sw_program : public thread {
public:
    sw_program(run &r, acs_sw &all) : thread(r), all_(all) {}

protected:
    bool decide(uint64_t now) override;

private:
    acs_sw &all_;
    uint32_t next_ = 0;
};

/* The window module. */
class sw_window : public thread {
public:
    sw_window(run &r, acs_sw &all) : thread(r), all_(all) {}

protected:
    bool decide(uint64_t now) override;

private:
    acs_sw &all_;
};

/* One thread of the scheduler module, with its stream. */
class sw_worker : public thread {
public:
    sw_worker(run &r, acs_sw &all) : thread(r), all_(all), stream_(acs_sim_stream(r.machine, 0)) {}

protected:
    bool decide(uint64_t now) override;

private:
    acs_sw &all_;
    const uint32_t stream_;
    uint32_t task_ = ACS_SIM_NONE; /* in its stream */
};

class acs_sw : public vehicle {
public:
    explicit acs_sw(int workers) : count_(workers) {}

    void begin(run &r) override
    {
        run_ = &r;
        left_.resize(r.prog.tasks.size());
        inserted_.resize(r.prog.tasks.size());
        removed_.resize(r.prog.tasks.size());
        down_.resize(r.prog.tasks.size());
        for (uint32_t k = 0; k < r.prog.tasks.size(); k++)
            for (uint32_t u : r.prog.dag.up[k])
                down_[u].push_back(k);
        threads_.push_back(std::make_unique<sw_program>(r, *this));
        threads_.push_back(std::make_unique<sw_window>(r, *this));
        for (int k = 0; k < count_; k++)
            threads_.push_back(std::make_unique<sw_worker>(r, *this));
        wake_all(0);
    }
    void seen(uint32_t, uint64_t now) override { wake_all(now); }
    uint64_t host_busy() const override { return busiest(threads_); }
    std::string setting() const override { return std::to_string(count_) + " worker threads"; }

    void wake_all(uint64_t now)
    {
        for (auto &t : threads_)
            run_->wake(*t, now);
    }

    void insert(uint32_t k, uint64_t now)
    {
        for (uint32_t u : run_->prog.dag.up[k])
            left_[k] += run_->prog.tasks[u].kind != WAIT && !removed_[u];
        inserted_[k] = true;
        if (left_[k] == 0)
            ready.push_back(k);
        wake_all(now);
    }

    void remove(uint32_t k, uint64_t now)
    {
        in_window--;
        removed_[k] = true;
        for (uint32_t d : down_[k])
            if (inserted_[d] && --left_[d] == 0)
                ready.push_back(d);
        wake_all(now);
    }

    std::deque<uint32_t> fifo, ready;
    uint32_t in_window = 0;
    bool removed(uint32_t k) const { return removed_[k]; }
    lock window_lock; /* guards the window, as a mutex does */

private:
    const int count_;
    run *run_ = nullptr;
    std::vector<uint32_t> left_;
    std::vector<bool> inserted_, removed_;
    std::vector<std::vector<uint32_t>> down_;
    std::vector<std::unique_ptr<thread>> threads_;
};

bool sw_program::decide(uint64_t now)
{
    if (next_ == run_.prog.tasks.size()) {
        handed_over(now);
        return false;
    }
    const uint32_t k = next_;
    if (run_.prog.tasks[k].kind == WAIT) {
        /* What the worker has removed is known to the program. */
        for (uint32_t u : run_.prog.dag.up[k])
            if (run_.prog.tasks[u].kind != WAIT && !all_.removed(u))
                return false;
        next_++;
        return true;
    }
    next_++;
    spend(costs.push, [this, k](uint64_t at) {
        all_.fifo.push_back(k);
        all_.wake_all(at);
    });
    return true;
}

bool sw_window::decide(uint64_t)
{
    if (all_.fifo.empty() || all_.in_window == WINDOW)
        return false;
    const uint32_t k = all_.fifo.front();
    all_.fifo.pop_front();
    locked(all_.window_lock, costs.fifo + published_check_ns(std::max(all_.in_window, 1u), run_.prog.tasks[k].segments),
           [this, k](uint64_t at) { all_.insert(k, at); });
    all_.in_window++;
    return true;
}

bool sw_worker::decide(uint64_t)
{
    const acs_sim_host_costs &h = run_.gpu.host;

    if (task_ != ACS_SIM_NONE) {
        const uint32_t done = task_;
        if (!run_.seen(done))
            return false;
        task_ = ACS_SIM_NONE;
        spend(h.synchronize);
        locked(all_.window_lock, costs.record, [this, done](uint64_t at) { all_.remove(done, at); });
        return true;
    }
    if (all_.ready.empty())
        return false;
    const uint32_t k = all_.ready.front();
    all_.ready.pop_front();
    const task &t = run_.prog.tasks[k];
    locked(all_.window_lock, costs.record, nullptr);
    launching(t.device, t.kind == COPY ? h.copy : h.launch, [this, k](uint64_t at) { run_.issue(at, k, stream_); });
    task_ = k;
    return true;
}

} // namespace

void add_acs_sw(std::vector<vehicle_kind> &list)
{
    for (int workers : {4, 8})
        list.push_back({workers == 4 ? "acs-sw-4" : "acs-sw-8",
                        workers == 4
                            ? "ACS-SW as published: a window of 32, 4 threads that wait for their stream after each op"
                            : "ACS-SW as published: a window of 32, 8 threads that wait for their stream after each op",
                        bench::RIVAL, 1,
                        [workers](const program &, int) { return std::make_unique<acs_sw>(workers); }});
}

} // namespace design

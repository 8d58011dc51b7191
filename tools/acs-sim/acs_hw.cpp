/*
 * Owns ACS-HW by the paper's own cost model (section IV): the host compares each op with a stale list of the last M that
 * it sent and puts it into a queue; hardware holds a window of N kernels, takes N cycles to insert one and N - 1 to update
 * the window when one ends, and dispatches what is ready by itself. Called through the list of vehicles.
 *
 * The window is a thread here, at the device's end of the link: so this way's machine has no launch latency (the host's
 * packets take it), and hops between kernels of the model's front end only, with a hardware queue per entry, so that what
 * was dispatched never waits for another.
 */
#include <algorithm>

#include "acs_hw.h"

namespace design {

uint64_t acs_hw_cycles_ns(uint64_t cycles)
{
    return cycles * 1000 / ACS_HW_CLOCK_MHZ;
}

namespace {

class acs_hw;

/* The software half: a dependency check and a launch call for each op. */
class hw_program : public thread {
public:
    hw_program(run &r, acs_hw &all, bool host_free) : thread(r), all_(all), free_(host_free) {}

protected:
    bool decide(uint64_t now) override;

private:
    acs_hw &all_;
    const bool free_;
    uint32_t next_ = 0, sent_ = 0;
};

/* The hardware: does one thing at a time, completions first. */
class hw_window : public thread {
public:
    hw_window(run &r, acs_hw &all) : thread(r), all_(all) {}

protected:
    bool decide(uint64_t now) override;

private:
    acs_hw &all_;
};

class acs_hw : public vehicle {
public:
    acs_hw(uint32_t window, bool host_free) : size_(window), free_host_(host_free) {}

    void begin(run &r) override
    {
        const size_t n = r.prog.tasks.size();
        run_ = &r;
        left_.resize(n);
        stream_.resize(n);
        number_.resize(n);
        inserted_.resize(n);
        gone_.resize(n);
        down_.resize(n);
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t u : r.prog.dag.up[k])
                down_[u].push_back(k);
        for (uint32_t k = 0; k < size_; k++)
            free_.push_back(acs_sim_stream(r.machine, 0));
        program_ = std::make_unique<hw_program>(r, *this, free_host_);
        window_ = std::make_unique<hw_window>(r, *this);
        r.wake(*program_, 0);
    }
    void seen(uint32_t, uint64_t now) override { run_->wake(*program_, now); }
    void ended(uint32_t k, uint64_t now) override
    {
        completed_.push_back(k);
        run_->wake(*window_, now);
    }
    uint64_t host_busy() const override { return program_->busy(); }
    std::string setting() const override { return "window " + std::to_string(size_); }

    void send(uint32_t k, uint64_t now)
    {
        queue_.push_back({k, now + run_->link_ns});
        run_->wake(*window_, now + run_->link_ns);
    }

private:
    friend class hw_window;
    struct packet {
        uint32_t task;
        uint64_t at;
    };

    /* Room, and the oldest kernel in the window would not fall out of the host's list. */
    bool may_insert() const
    {
        return running_.size() < size_ && (running_.empty() || inserts_ - number_[running_.front()] < ACS_HW_STALE);
    }

    void insert(uint32_t k, uint64_t now)
    {
        number_[k] = inserts_++;
        inserted_[k] = true;
        running_.push_back(k);
        for (uint32_t u : run_->prog.dag.up[k])
            left_[k] += run_->prog.tasks[u].kind != WAIT && !gone_[u];
        if (left_[k] == 0)
            dispatch(k, now);
    }

    void update(uint32_t k, uint64_t now)
    {
        gone_[k] = true;
        running_.erase(std::find(running_.begin(), running_.end(), k));
        free_.push_back(stream_[k]);
        for (uint32_t d : down_[k])
            if (inserted_[d] && --left_[d] == 0)
                dispatch(d, now);
    }

    void dispatch(uint32_t k, uint64_t now)
    {
        stream_[k] = free_.front();
        free_.pop_front();
        run_->issue(now, k, stream_[k]);
    }

    const uint32_t size_;
    const bool free_host_;
    run *run_ = nullptr;
    std::deque<packet> queue_;
    std::deque<uint32_t> completed_, free_;
    std::vector<uint32_t> running_; /* in the window, oldest first */
    uint32_t inserts_ = 0;
    std::vector<uint32_t> number_, left_, stream_; /* by task; number: inserts before its own */
    std::vector<bool> inserted_, gone_;
    std::vector<std::vector<uint32_t>> down_;
    std::unique_ptr<hw_program> program_;
    std::unique_ptr<hw_window> window_;
};

bool hw_program::decide(uint64_t now)
{
    if (next_ == run_.prog.tasks.size()) {
        handed_over(now);
        return false;
    }
    const uint32_t k = next_;
    const task &t = run_.prog.tasks[k];
    if (t.kind == WAIT && !run_.all_seen(run_.prog.dag.up[k]))
        return false;
    next_++;
    if (t.kind == WAIT) {
        spend(run_.gpu.host.synchronize);
        return true;
    }
    if (!free_)
        spend(published_check_ns(std::min<uint32_t>(std::max(sent_, 1u), ACS_HW_STALE), t.segments));
    sent_++;
    launching(t.device, free_ ? 0 : t.kind == COPY ? run_.gpu.host.copy : run_.gpu.host.launch,
              [this, k](uint64_t at) { all_.send(k, at); });
    return true;
}

bool hw_window::decide(uint64_t now)
{
    if (!all_.completed_.empty()) {
        const uint32_t k = all_.completed_.front();
        all_.completed_.pop_front();
        spend(acs_hw_cycles_ns(all_.size_ - 1), [this, k](uint64_t at) { all_.update(k, at); });
        return true;
    }
    if (all_.queue_.empty() || !all_.may_insert())
        return false;
    if (all_.queue_.front().at > now) {
        run_.wake(*this, all_.queue_.front().at);
        return false;
    }
    const uint32_t k = all_.queue_.front().task;
    all_.queue_.pop_front();
    spend(acs_hw_cycles_ns(all_.size_), [this, k](uint64_t at) { all_.insert(k, at); });
    return true;
}

void alter(acs_sim_gpu &gpu)
{
    gpu.device.launch_latency = 0;
    gpu.queues = ACS_HW_WINDOW;
}

} // namespace

void add_acs_hw(std::vector<vehicle_kind> &list)
{
    const auto add = [&list](const char *name, const char *about, uint32_t window, bool host_free) {
        list.push_back({name, about, host_free ? bench::BOUND : bench::RIVAL, 1,
                        [window, host_free](const program &, int) { return std::make_unique<acs_hw>(window, host_free); },
                        alter});
    };
    add("acs-hw-16", "ACS-HW by the paper's cost model, a window of 16 in hardware", 16, false);
    add("acs-hw-32", "the same, a window of 32", 32, false);
    add("acs-hw", "the same, a window of 64", ACS_HW_WINDOW, false);
    add("acs-hw-free", "the same, a host whose calls and checks take no time", ACS_HW_WINDOW, true);
}

} // namespace design

/*
 * One play of a program on the machine: virtual time, host threads, and when each task began, ended and was seen to end.
 *
 * Host threads are played one step at a time, always the one whose time is least; what the device does up to then happens
 * first. A call takes its time, then takes effect, so calls reach the device in the order of time.
 */
#ifndef ACS_SIM_RUN_H
#define ACS_SIM_RUN_H

#include <deque>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "program.h"

namespace design {

class run;

/* Something that one thread at a time may do. */
struct lock {
    uint64_t free_at = 0;
};

/** A host thread: does one thing after another, each of which takes it time; sleeps when it has nothing to do. */
class thread {
public:
    typedef std::function<void(uint64_t now)> effect;

    explicit thread(run &r) : run_(r) {}
    virtual ~thread() {}
    thread(const thread &) = delete;
    thread &operator=(const thread &) = delete;
    /** How long it was busy, in ns. */
    uint64_t busy() const { return busy_; }

protected:
    /** Called when it has nothing left to do: says what is next by the calls below. @return false: sleeps until woken. */
    virtual bool decide(uint64_t now) = 0;
    void spend(uint64_t ns, effect e = nullptr) { actions_.push_back({ns, e, ACS_SIM_NONE, nullptr}); }
    /** Time inside a driver's call that launches; slower while other threads launch to the same device. */
    void launching(uint32_t device, uint64_t ns, effect e) { actions_.push_back({ns, e, device, nullptr}); }
    void locked(lock &l, uint64_t ns, effect e) { actions_.push_back({ns, e, ACS_SIM_NONE, &l}); }
    /** The program, or this thread's part of it, has been handed over; only the first time counts. */
    void handed_over(uint64_t now);

    run &run_;

private:
    friend class run;
    struct action {
        uint64_t ns;
        effect then;
        uint32_t device;
        lock *held;
    };
    uint64_t step(uint64_t now);
    uint64_t start(uint64_t now);

    std::deque<action> actions_;
    bool acting_ = false, handed_over_ = false;
    uint64_t due_ = ACS_SIM_NEVER; /* when it is next looked at */
    uint64_t busy_ = 0;
};

struct moment {
    uint64_t start = ACS_SIM_NEVER, end = ACS_SIM_NEVER;
    bool seen = false; /* the host can know that it ended */
};

class vehicle;

class run {
public:
    run(const acs_sim_gpu &gpu, const program &p);
    ~run();
    run(const run &) = delete;
    run &operator=(const run &) = delete;

    const acs_sim_gpu &gpu;
    const program &prog;
    acs_sim *machine;
    uint64_t link_ns; /* from the end of a call to the device, for ways whose machine has no launch latency of its own */

    /** Lets everything happen. */
    void play(vehicle &v);
    /** A thread that is asleep decides again, at `at` or now, unless it will earlier. One that is busy will do so anyway. */
    void wake(thread &t, uint64_t at);

    /** The effect of a launch or a copy; a WAIT is none. */
    void issue(uint64_t now, uint32_t k, uint32_t stream);
    /** Launches a graph of this task alone. */
    void issue_graph1(uint64_t now, uint32_t k, uint32_t stream);
    /** A node for task k, copies as a kernel of one block. */
    uint32_t node(uint32_t graph, uint32_t k, acs_sim_node_kind kind = ACS_SIM_NODE_FIXED);
    void *user(uint32_t k) { return &moments_[k]; }

    bool seen(uint32_t k) const { return moments_[k].seen; }
    bool all_seen(const std::vector<uint32_t> &list) const;
    const std::vector<moment> &moments() const { return moments_; }
    uint64_t total() const { return total_; }
    uint64_t submit() const { return submit_; }
    /** Empty, or the first edge that was not kept, or task that did not run. */
    std::string wrong() const;

    uint64_t now() const { return now_; }

private:
    friend class thread;
    struct event {
        uint64_t at, number;
        thread *who; /* or a task that has ended, or is seen to have */
        uint32_t task;
        bool seen;
        bool operator>(const event &o) const { return at != o.at ? at > o.at : number > o.number; }
    };
    static void told(void *owner, void *user, bool ended, uint64_t when);
    void push(uint64_t at, thread *who, uint32_t task = 0, bool seen = false);
    void handle(const event &e, vehicle &v);

    std::vector<moment> moments_;
    std::vector<uint32_t> launching_; /* by device: threads inside a launch */
    std::priority_queue<event, std::vector<event>, std::greater<event>> events_;
    uint64_t number_ = 0, now_ = 0, submit_ = 0, total_ = 0;
};

} // namespace design

#endif

/*
 * Ways to run a task on several devices: by hand, from a plan that was made before, or through ACS, which sees one op after
 * the other. Memory is there before the clock starts; from the first copy in to the last copy out.
 */
#ifndef BENCH_DEVICES_WAYS_H
#define BENCH_DEVICES_WAYS_H

#include "plan.h"
#include "runner.h"

namespace bench {

class devices_way {
public:
    virtual ~devices_way() = default;
    /** Right before the clock starts: wakes what a program in the middle of its work has awake. */
    virtual void ready() {}
    /** Hands over all of the task; waits only where it reads. Then waits for its end. @return empty, or what failed. */
    virtual void submit(task &t) = 0;
    virtual std::string finish() = 0;
    /** Bytes that a run copies, between devices and to and from the host. */
    virtual uint64_t copied() = 0;
};

std::unique_ptr<devices_way> make_hand_way(const machine &m, const task &t, unsigned devices, const assignment &where);
/** `policy`: ACS_POLICY_*. `copies`: the program copies inputs itself, else it shares pinned memory with the devices. */
std::unique_ptr<devices_way> make_acs_way(const machine &m, const task &t, unsigned devices, int policy, bool copies);

/**
 * Empty kernels launched one by one from one thread, to a context on so many devices in turn. `issue`: ACS_ISSUE_*.
 * @return microseconds of each repetition, to the end of the last kernel.
 */
std::vector<double> launches_us(const machine &m, int issue, unsigned devices, unsigned launches, int reps);

/** The same by hand: a thread, on a CPU of its own, and eight streams for each GPU. Empty: this was built without CUDA. */
std::vector<double> launches_us_by_hand(const machine &m, unsigned devices, unsigned launches, int reps);

} // namespace bench

#endif

/*
 * A way to get a workload's jobs done, which are all there at once, on some devices of little memory.
 */
#ifndef BENCH_MIX_WAY_H
#define BENCH_MIX_WAY_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "job.h"
#include "runner.h"

namespace bench {

/** What all ways are given: `devices`, from number 0 on, each as if it had `limit` bytes of memory. */
struct mix_machine {
    machine where;
    unsigned devices;
    uint64_t limit;
};

class mix_way {
public:
    virtual ~mix_way() = default;
    /** Before the clock starts: no job has results. @return empty, or what failed; so below. */
    virtual std::string reset() = 0;
    /** Runs all jobs, and waits for their ends. */
    virtual std::string run() = 0;
    /** When the clock stands: whether every result is that of the serial program, bit for bit. */
    virtual std::string check() = 0;
    /** Of the latest run: jobs that found no memory, bytes that were copied beside the jobs' inputs and outputs. */
    virtual unsigned exhausted() const = 0;
    virtual uint64_t moved_bytes() const { return 0; }
    /** The most memory of all devices that blocks took at once, over all runs; 0: not known. */
    virtual uint64_t peak_bytes() { return 0; }
};

struct mix_way_kind {
    std::string name, about;
    double paper; /* its speed over the paper's SA, of the scheme that it stands for; negative: it stands for none */
    std::function<std::unique_ptr<mix_way>()> make;
};

/** Jobs of this program, all on its own threads. */
class job_way : public mix_way {
public:
    job_way(const mix_machine &m, const std::vector<job *> &jobs) : machine_(m), jobs_(jobs) {}

    std::string reset() override
    {
        for (job *j : jobs_)
            j->reset();
        return "";
    }

    std::string check() override
    {
        for (size_t k = 0; k < jobs_.size(); k++)
            if (!jobs_[k]->is_right())
                return "the results of job " + std::to_string(k) + " are not those of the serial program, bit for bit";
        return "";
    }

protected:
    const mix_machine machine_;
    const std::vector<job *> jobs_;
};

/* The ways for these jobs, in way_hand.cpp and way_acs.cpp. */
void add_hand_ways(std::vector<mix_way_kind> &list, const mix_machine &m, const std::vector<job *> &jobs);
void add_acs_ways(std::vector<mix_way_kind> &list, const mix_machine &m, const std::vector<job *> &jobs);

} // namespace bench

#endif

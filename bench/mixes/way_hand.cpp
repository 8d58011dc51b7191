/*
 * Owns the ways without ACS: one job at a time on each device, which is the paper's baseline, and jobs beside each
 * other as far as their blocks fit, which is what CASE does. A thread for each job that runs. Called by the measuring
 * loop.
 */
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lane.h"
#include "mix_way.h"

namespace bench {

namespace {

/* What both have: the memory of each device, and what is said of it. */
class hand_way : public job_way {
public:
    hand_way(const mix_machine &m, const std::vector<job *> &jobs, device_memory::source from) : job_way(m, jobs)
    {
        for (unsigned d = 0; d < m.devices; d++) {
            use_device(m.where.gpu, d);
            memories_.emplace_back(new device_memory(m.where.gpu, d, from));
        }
        use_device(m.where.gpu, 0);
    }

    unsigned exhausted() const override { return exhausted_; }

    uint64_t peak_bytes() override
    {
        uint64_t peak = 0;
        for (const auto &m : memories_)
            peak += m->peak_bytes();
        return peak;
    }

protected:
    void enter(unsigned thread, unsigned device) const
    {
        pin_thread(machine_.where, static_cast<int>(thread) + 1);
        use_device(machine_.where.gpu, device);
    }

    std::vector<std::unique_ptr<device_memory>> memories_;
    std::atomic<unsigned> exhausted_{0};
    failure failure_;
};

class one_way : public hand_way {
public:
    one_way(const mix_machine &m, const std::vector<job *> &jobs, device_memory::source from) : hand_way(m, jobs, from)
    {
        for (unsigned d = 0; d < m.devices; d++) {
            use_device(m.where.gpu, d);
            lanes_.emplace_back(new lane(m.where.gpu, *memories_[d]));
        }
        use_device(m.where.gpu, 0);
    }

    std::string run() override
    {
        std::atomic<size_t> next{0};
        std::vector<std::thread> threads;
        exhausted_ = 0;
        for (unsigned d = 0; d < machine_.devices; d++)
            threads.emplace_back([this, d, &next] {
                enter(d, d);
                for (size_t k; (k = next.fetch_add(1)) < jobs_.size();)
                    exhausted_ += lanes_[d]->run(*jobs_[k], failure_) ? 0 : 1;
            });
        for (std::thread &t : threads)
            t.join();
        return failure_.take();
    }

private:
    std::vector<std::unique_ptr<lane>> lanes_; /* of each device */
};

class beside_way : public hand_way {
public:
    beside_way(const mix_machine &m, const std::vector<job *> &jobs)
        : hand_way(m, jobs, device_memory::POOL), used_(m.devices), idle_(m.devices)
    {
    }

    std::string run() override
    {
        std::vector<std::thread> threads;
        exhausted_ = 0;
        for (size_t k = 0; k < jobs_.size(); k++) {
            const unsigned device = wait_for_room(jobs_[k]->of().bytes());
            threads.emplace_back([this, k, device] {
                enter(static_cast<unsigned>(k), device);
                run_job(*jobs_[k], device);
            });
        }
        for (std::thread &t : threads)
            t.join();
        return failure_.take();
    }

private:
    /* The device with most memory left, once the next job has room there. Jobs behind it wait, too. */
    unsigned wait_for_room(uint64_t bytes)
    {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            const size_t d = static_cast<size_t>(std::min_element(used_.begin(), used_.end()) - used_.begin());
            if (used_[d] + bytes <= machine_.limit) {
                used_[d] += bytes;
                return static_cast<unsigned>(d);
            }
            left_.wait(guard);
        }
    }

    void run_job(job &j, unsigned device)
    {
        std::unique_ptr<lane> l = take_lane(device);
        exhausted_ += l->run(j, failure_) ? 0 : 1;
        std::lock_guard<std::mutex> guard(lock_);
        used_[device] -= j.of().bytes();
        idle_[device].push_back(std::move(l));
        left_.notify_one();
    }

    std::unique_ptr<lane> take_lane(unsigned device)
    {
        std::unique_lock<std::mutex> guard(lock_);
        if (idle_[device].empty()) {
            guard.unlock(); /* a stream takes a while */
            return std::unique_ptr<lane>(new lane(machine_.where.gpu, *memories_[device]));
        }
        std::unique_ptr<lane> l = std::move(idle_[device].back());
        idle_[device].pop_back();
        return l;
    }

    std::mutex lock_;
    std::condition_variable left_;
    std::vector<uint64_t> used_;                           /* of each device: bytes of the jobs that run there */
    std::vector<std::vector<std::unique_ptr<lane>>> idle_; /* of each device; made in the first run */
};

} // namespace

void add_hand_ways(std::vector<mix_way_kind> &list, const mix_machine &m, const std::vector<job *> &jobs)
{
    list.push_back({"one", "by hand, one job at a time on each device, memory from a pool: the paper's SA", 1,
                    [=] { return std::unique_ptr<mix_way>(new one_way(m, jobs, device_memory::POOL)); }});
    if (m.where.gpu)
        list.push_back({"one-malloc", "the same with cudaMalloc and cudaFree in each job", 1,
                        [=] { return std::unique_ptr<mix_way>(new one_way(m, jobs, device_memory::MALLOC)); }});
    list.push_back({"beside", "by hand, jobs beside each other as long as their blocks fit: what CASE does", 2.02,
                    [=] { return std::unique_ptr<mix_way>(new beside_way(m, jobs)); }});
}

} // namespace bench

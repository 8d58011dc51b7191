/*
 * Owns the ways through ACS: one group at a time on each device, which is HuntK, and one context that gets all jobs as
 * groups and finds devices and room for them, which is HuntKTm, or without a plan for memory HuntKT. Called by the
 * measuring loop.
 */
#include <atomic>
#include <thread>

#include "acs_context.h"
#include "group.h"
#include "lane.h"
#include "mix_way.h"

namespace bench {

namespace {

/* What both have: contexts, and what is said of them. */
class acs_way : public job_way {
public:
    using job_way::job_way;
    ~acs_way() override
    {
        for (acs_context *c : contexts_)
            (void)acs_close(c);
    }

    std::string run() override
    {
        exhausted_ = 0;
        const uint64_t before = copied();
        run_jobs();
        moved_ = copied() - before;
        return failure_.take();
    }

    unsigned exhausted() const override { return exhausted_; }
    uint64_t moved_bytes() const override { return moved_; }

    /* What pools keep was in use at some time. */
    uint64_t peak_bytes() override
    {
        uint64_t reserved = 0;
        for (acs_context *c : contexts_)
            reserved += statistics_of(c).memory_reserved;
        return reserved;
    }

protected:
    virtual void run_jobs() = 0;

    void open(unsigned devices)
    {
        acs_options o = acs_options_for(machine_.where);
        o.devices = devices;
        o.memory_limit = static_cast<int64_t>(machine_.limit);
        o.pool = ACS_POOL_ON;
        contexts_.push_back(acs_open_for(machine_.where, o));
    }

    void submit(acs_context *c, job &j, const group_plan &plan)
    {
        std::string why;
        const group_end end = submit_group(c, j, plan, why);
        if (end == GROUP_EXHAUSTED)
            exhausted_++;
        if (end != GROUP_QUEUED)
            failure_.note(why);
    }

    void wait(acs_context *c)
    {
        if (acs_sync(c) != ACS_OK)
            failure_.note(acs_error_text("acs_sync"));
    }

    std::vector<acs_context *> contexts_;
    failure failure_;

private:
    uint64_t copied() const
    {
        uint64_t bytes = 0;
        for (acs_context *c : contexts_)
            bytes += own_copies(c);
        return bytes;
    }

    std::atomic<unsigned> exhausted_{0};
    uint64_t moved_ = 0;
};

/* A context opens on the device that is current. */
class one_group_way : public acs_way {
public:
    one_group_way(const mix_machine &m, const std::vector<job *> &jobs) : acs_way(m, jobs)
    {
        for (unsigned d = 0; d < m.devices; d++) {
            use_device(m.where.gpu, d);
            open(1);
        }
        use_device(m.where.gpu, 0);
    }

protected:
    void run_jobs() override
    {
        std::atomic<size_t> next{0};
        std::vector<std::thread> threads;
        for (unsigned d = 0; d < machine_.devices; d++)
            threads.emplace_back([this, d, &next] {
                pin_thread(machine_.where, static_cast<int>(d) + 1);
                use_device(machine_.where.gpu, d);
                for (size_t k; (k = next.fetch_add(1)) < jobs_.size();) {
                    submit(contexts_[d], *jobs_[k], {0, false});
                    wait(contexts_[d]);
                }
            });
        for (std::thread &t : threads)
            t.join();
    }
};

class groups_way : public acs_way {
public:
    groups_way(const mix_machine &m, const std::vector<job *> &jobs, const group_plan &plan)
        : acs_way(m, jobs), plan_(plan)
    {
        open(m.devices);
    }

protected:
    void run_jobs() override
    {
        for (job *j : jobs_)
            submit(contexts_[0], *j, plan_);
        wait(contexts_[0]);
    }

private:
    const group_plan plan_;
};

} // namespace

void add_acs_ways(std::vector<mix_way_kind> &list, const mix_machine &m, const std::vector<job *> &jobs)
{
    const auto add_groups = [&](const char *name, const char *about, double paper, const group_plan &plan) {
        list.push_back({name, about, paper, [=] { return std::unique_ptr<mix_way>(new groups_way(m, jobs, plan)); }});
    };
    list.push_back({"one-group", "ACS, one group at a time on each device: HuntK", 1.20,
                    [=] { return std::unique_ptr<mix_way>(new one_group_way(m, jobs)); }});
    /* Where no blocks share memory, slots order nothing. They say how many queues a group asks for, which are few. */
    add_groups("groups-none", "ACS, all jobs as groups, whose blocks are in use from begin to end: HuntKT", 2.47,
               {8, true});
    add_groups("groups", "ACS, all jobs as groups, memory shared where footprints alone allow it: HuntKTm", 2.69,
               {0, false});
    add_groups("groups-8", "the same, planned for 8 slots", 2.69, {8, false});
}

} // namespace bench

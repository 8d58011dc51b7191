/*
 * Owns all that a process has which is one job. Called by main in processes that way_processes.cpp started. It makes
 * its CUDA contexts when it prepares, which the clock does not see; device memory it has in a run alone.
 */
#include "child.h"

#include <cstdio>
#include <iostream>

#include "acs_context.h"
#include "group.h"
#include "lane.h"
#include "mix.h"

namespace bench {

namespace {

class child {
public:
    explicit child(const child_settings &s) : s_(s) {}
    ~child()
    {
        if (context_)
            (void)acs_close(context_);
    }
    child(const child &) = delete;
    child &operator=(const child &) = delete;

    std::string answer(const std::string &command)
    {
        if (command == "prepare")
            return prepare();
        if (!job_)
            return "wrong it is not prepared";
        if (command == "reset") {
            job_->reset();
            return "ready";
        }
        if (command == "group")
            return run_group();
        if (command.compare(0, 5, "hand ") == 0)
            return run_by_hand(static_cast<unsigned>(std::stoul(command.substr(5))));
        return job_->is_right() ? "right" : "wrong the results are not those of the serial program, bit for bit";
    }

private:
    std::string prepare()
    {
        const workload &w = mix_workload(s_.task);
        task_.reset(new task(w, scaled_sizes(w, s_.scale), s_.where.gpu, s_.check, false));
        if (!task_->wrong().empty())
            return "wrong the serial program: " + task_->wrong();
        job_.reset(new job(*task_));
        for (unsigned d = 0; d < s_.devices; d++) {
            use_device(s_.where.gpu, d);
            memories_.emplace_back(new device_memory(s_.where.gpu, d, device_memory::MALLOC));
            lanes_.emplace_back(new lane(s_.where.gpu, *memories_[d]));
        }
        visit_devices();
        use_device(s_.where.gpu, 0);
        open();
        return "ready " + std::to_string(task_->bytes()) + " " + std::to_string(job_->bytes_in()) + " " +
               std::to_string(job_->bytes_out());
    }

    /* A GPU loads a program's kernels when it runs them first, which would be in a run that counts. */
    void visit_devices()
    {
        for (unsigned d = 1; d < lanes_.size() && s_.where.gpu; d++) {
            use_device(true, d);
            require(lanes_[d]->run(*job_, failure_), "a job that prepares found no memory");
        }
        require(!failure_.any(), failure_.take().c_str());
    }

    /* What it refuses is told when the context is asked for: runs by hand do without it. */
    void open()
    {
        acs_options o = acs_options_for(s_.where);
        o.devices = s_.devices;
        o.pool = ACS_POOL_ON;
        snprintf(o.ledger, sizeof o.ledger, "%s", s_.ledger.c_str());
        if (acs_open(&o, &context_) != ACS_OK)
            refused_ = acs_error_text("acs_open");
    }

    std::string run_by_hand(unsigned device)
    {
        if (device >= lanes_.size())
            return "done 0 there is no such device";
        use_device(s_.where.gpu, device);
        const bool room = lanes_[device]->run(*job_, failure_);
        return done(!room, failure_.take());
    }

    std::string run_group()
    {
        std::string why = refused_;
        if (!context_)
            return done(false, why);
        const group_end end = submit_group(context_, *job_, {0, false}, why);
        if (end == GROUP_QUEUED && acs_sync(context_) != ACS_OK)
            why = acs_error_text("acs_sync");
        return done(end == GROUP_EXHAUSTED, why);
    }

    static std::string done(bool exhausted, const std::string &why)
    {
        return std::string("done ") + (exhausted ? "1" : "0") + (why.empty() ? "" : " " + why);
    }

    const child_settings s_;
    std::unique_ptr<task> task_;
    std::unique_ptr<job> job_;
    std::vector<std::unique_ptr<device_memory>> memories_; /* of each device */
    std::vector<std::unique_ptr<lane>> lanes_;
    failure failure_;
    acs_context *context_ = nullptr;
    std::string refused_;
};

} // namespace

int run_child(const child_settings &s)
{
    child c(s);
    for (std::string line; std::getline(std::cin, line);) {
        printf("%s\n", c.answer(line).c_str());
        if (fflush(stdout) != 0)
            return 1; /* nobody listens any more */
    }
    return 0;
}

} // namespace bench

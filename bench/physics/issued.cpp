/*
 * Owns the ways that issue op by op, as the sample does: one stream, streams by hand, ACS; with or without fused narrow
 * phases. Called by the measurement. On the CPU a stream is the calling thread, and streams are threads.
 */
#include <cstdio>
#include <sched.h>
#include <thread>
#include <unistd.h>

#include "driver.h"
#include "../harness/spread.h"
#include "fuse.h"

bool stay_on_cpu(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return true;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu), &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

namespace {

/* The sample's issue loop with a runner; several threads where the runner asks for them, each with scenes of its own. */
class issued_driver : public driver {
public:
    issued_driver(const driver_setup &setup, std::unique_ptr<runner> r, bool fused)
        : sim_(setup.sim), order_(setup.issue_order), cpu_(setup.cpu)
    {
        if (fused) {
            auto fusing = std::make_unique<fusing_runner>(std::move(r), sim_);
            fusing_ = fusing.get();
            r = std::move(fusing);
        }
        runner_ = std::move(r);
    }

    void begin() override
    {
        size_t parts = static_cast<size_t>(runner_->threads(static_cast<int>(sim_.scenes.size())));
        if (cpu_ >= 0 && parts > 1) {
            const size_t cpus = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN)) - static_cast<size_t>(cpu_);
            parts = parts < cpus ? parts : cpus;
        }
        parts_.clear();
        for (size_t t = 0; t < parts; t++) {
            std::vector<const scene *> own;
            for (size_t k = t; k < sim_.scenes.size(); k += parts)
                own.push_back(sim_.scenes[k].get());
            parts_.push_back(std::make_unique<issue>(own, order_, *runner_));
            parts_.back()->prime();
        }
        runner_->finish();
        saved_ = fusing_ ? fusing_->saved() : 0;
    }

    void step() override
    {
        if (parts_.size() == 1) {
            parts_[0]->step();
            return;
        }
        std::vector<std::thread> running;
        for (size_t t = 0; t < parts_.size(); t++)
            running.emplace_back([this, t] {
                (void)stay_on_cpu(cpu_ < 0 ? -1 : cpu_ + static_cast<int>(t));
                parts_[t]->step();
            });
        for (std::thread &t : running)
            t.join();
    }

    void finish() override { runner_->finish(); }

    driver_counts counts() const override
    {
        driver_counts sum;
        for (const auto &p : parts_)
            sum.kernels += p->counts.kernels;
        if (fusing_)
            sum.kernels -= fusing_->saved() - saved_;
        return sum;
    }

private:
    const simulation &sim_;
    const order order_;
    const int cpu_;
    std::unique_ptr<runner> runner_;
    fusing_runner *fusing_ = nullptr;
    uint64_t saved_ = 0;
    std::vector<std::unique_ptr<issue>> parts_;
};

/* A context of its own for each ACS mode. The arenas are another context's, as far as this one knows foreign memory. */
class acs_driver : public driver {
public:
    acs_driver(const driver_setup &setup, acs_context *context)
        : context_(context),
          issued_(setup, make_acs_runner(context, static_cast<int>(setup.sim.scenes.size())), false)
    {
    }
    ~acs_driver() override { require_acs(acs_close(context_), "acs_close"); }
    acs_driver(const acs_driver &) = delete;
    acs_driver &operator=(const acs_driver &) = delete;

    void begin() override { issued_.begin(); }
    void step() override { issued_.step(); }
    void finish() override { issued_.finish(); }
    driver_counts counts() const override { return issued_.counts(); }

private:
    acs_context *const context_;
    issued_driver issued_;
};

} // namespace

std::unique_ptr<driver> make_stream_driver(const driver_setup &setup, bool stream_per_scene, bool fused)
{
    const int scenes = static_cast<int>(setup.sim.scenes.size());
    std::unique_ptr<runner> r = setup.sim.gpu ? make_stream_runner(stream_per_scene ? scenes : 1, scenes)
                                              : make_inline_runner(stream_per_scene);
    return std::make_unique<issued_driver>(setup, std::move(r), fused);
}

std::unique_ptr<driver> make_acs_driver(const driver_setup &setup, void (*adjust)(acs_options &))
{
    acs_options o;
    acs_context *context = nullptr;

    require_acs(acs_options_init(&o, sizeof o), "acs_options_init");
    if (adjust)
        adjust(o);
    if (setup.cpu >= 0 && !o.cpus[0])
        snprintf(o.cpus, sizeof o.cpus, "%s",
                 bench::spread_list(setup.cpu, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))).c_str());
    require_acs(acs_open(&o, &context), "acs_open");
    return std::make_unique<acs_driver>(setup, context);
}

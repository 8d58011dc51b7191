/*
 * Owns the ways that issue op by op, as the sample does: one stream, streams by hand, ACS; with or without fused narrow
 * phases. Called by the measurement. On the CPU a stream is the calling thread, and streams are threads.
 */
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <thread>
#include <unistd.h>

#include "driver.h"
#include "../harness/spread.h"
#include "../harness/timeline.h"
#include "fuse.h"
#include "resident.h"

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

enum { TIMELINE_OPS = 1 << 19 };

/*
 * The sample's issue loop with a runner; several threads where the runner asks for them, each with scenes of its own.
 */
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
        for (const auto &p : parts_) {
            sum.kernels += p->counts.kernels;
            sum.decisions += p->counts.sections;
        }
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

/* Tells a profile which ops the program waits for. It launches all ops of the context, so it can count them. */
class profiled_runner : public runner {
public:
    profiled_runner(std::unique_ptr<runner> inner, bench_timeline *timeline, size_t scenes)
        : inner_(std::move(inner)), timeline_(timeline), copies_(scenes)
    {
    }
    bool footprints() const override { return inner_->footprints(); }
    decider decides() const override { return inner_->decides(); }
    bool has_sections() const override { return inner_->has_sections(); }
    int threads(int scenes) const override { return inner_->threads(scenes); }
    const launch_counts *step_begins() override { return inner_->step_begins(); }
    void step_ends(const launch_counts &of_step) override { inner_->step_ends(of_step); }

    void launch(const op &o) override
    {
        inner_->launch(o);
        newest_++;
        if (!o.kernel)
            copies_[static_cast<size_t>(o.scene)].op[o.copy] = newest_;
    }

    void wait_copy(int scene, int copy) override
    {
        bench_timeline_wait_begins(timeline_, copies_[static_cast<size_t>(scene)].op[copy]);
        inner_->wait_copy(scene, copy);
        bench_timeline_wait_ends(timeline_);
    }

    void finish() override
    {
        bench_timeline_wait_begins(timeline_, newest_);
        inner_->finish();
        bench_timeline_wait_ends(timeline_);
    }

private:
    struct pair {
        acs_op op[2] = {0, 0};
    };
    std::unique_ptr<runner> inner_;
    bench_timeline *const timeline_;
    std::vector<pair> copies_;
    acs_op newest_ = 0;
};

std::unique_ptr<runner> acs_runner_for(const driver_setup &setup, acs_context *context, decider d,
                                       bool captures, bench_timeline *timeline)
{
    const int scenes = static_cast<int>(setup.sim.scenes.size());
    std::unique_ptr<runner> r = captures ? make_captured_runner(context, scenes, d) : make_acs_runner(context, scenes, d);
    return timeline ? std::make_unique<profiled_runner>(std::move(r), timeline, setup.sim.scenes.size()) : std::move(r);
}

/* A context of its own for each ACS mode. The arenas are another context's, as far as this one knows foreign memory. */
class acs_driver : public driver {
public:
    acs_driver(const driver_setup &setup, acs_context *context, bench_timeline *timeline, bool repeats, decider d,
               bool captures)
        : context_(context), timeline_(timeline), repeats_(repeats), file_(setup.timeline),
          issued_(setup, acs_runner_for(setup, context, d, captures, timeline), false)
    {
    }
    ~acs_driver() override
    {
        require_acs(acs_close(context_), "acs_close");
        if (timeline_)
            write_timeline();
        bench_timeline_close(timeline_);
    }
    acs_driver(const acs_driver &) = delete;
    acs_driver &operator=(const acs_driver &) = delete;

    void begin() override
    {
        issued_.begin();
        not_run_ = count_not_run();
        if (timeline_)
            bench_timeline_restart(timeline_);
    }
    void step() override
    {
        if (repeats_)
            require_acs(acs_repeat_begin(context_, 1), "acs_repeat_begin");
        issued_.step();
        if (repeats_)
            require_acs(acs_repeat_end(context_), "acs_repeat_end");
    }
    void finish() override { issued_.finish(); }
    driver_counts counts() const override
    {
        driver_counts sum = issued_.counts();
        sum.not_run = count_not_run() - not_run_;
        return sum;
    }

private:
    uint64_t count_not_run() const
    {
        acs_statistics all = {};
        all.size = sizeof all;
        require_acs(acs_stats(context_, &all), "acs_stats");
        return all.not_run;
    }

    void write_timeline() const
    {
        FILE *f = fopen(file_, "w");
        bench_timeline_report(timeline_, stdout);
        const bool written = f && bench_timeline_write(timeline_, f);
        if ((f && fclose(f)) || !written)
            fprintf(stderr, "physics-bench: cannot write the timeline to %s\n", file_);
    }

    acs_context *const context_;
    bench_timeline *const timeline_;
    const bool repeats_;
    const char *const file_;
    uint64_t not_run_ = 0;
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

std::unique_ptr<driver> make_acs_driver(const driver_setup &setup, void (*adjust)(acs_options &), decider d,
                                        bool repeats, bool bodies, bool captures)
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
    if (bodies && physics_executor())
        require_acs(acs_executor_add(context, physics_executor()), "acs_executor_add");
    bench_timeline *timeline = nullptr;
    if (setup.timeline && !adjust) {
        timeline = bench_timeline_open(context, TIMELINE_OPS);
        if (!timeline) {
            fprintf(stderr, "physics-bench: no memory for a timeline\n");
            exit(1);
        }
    }
    return std::make_unique<acs_driver>(setup, context, timeline, repeats, d, captures);
}

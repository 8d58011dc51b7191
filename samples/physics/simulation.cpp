/*
 * Owns the scenes' memory and the run loop: reset, prime, steps, wait. Called by main for every runner in turn. Times
 * only the steps, from the first launch to the completion of the last op.
 */
#include "simulation.h"

#include <chrono>
#include <cstdio>
#include <thread>

namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point start)
{
    return std::chrono::duration<double>(steady::now() - start).count();
}

/* One line on standard error, from the third second on, no more than five times a second. */
class progress {
public:
    progress(const char *label, int steps) : label_(label), steps_(steps), start_(steady::now()), shown_(2.0) {}

    void show(int step)
    {
        const double now = seconds_since(start_);
        if (!label_ || now < shown_)
            return;
        shown_ = now + 0.2;
        visible_ = true;
        fprintf(stderr, "\r%-8s step %d of %d, %.0f s left ", label_, step, steps_,
                now * (steps_ - step) / (step ? step : 1));
        fflush(stderr);
    }

    ~progress()
    {
        if (visible_)
            fprintf(stderr, "\r%60s\r", "");
    }
    progress(const progress &) = delete;
    progress &operator=(const progress &) = delete;

private:
    const char *label_;
    int steps_;
    steady::time_point start_;
    double shown_;
    bool visible_ = false;
};

} // namespace

simulation simulation_create(acs_context *context, int scenes, int worlds, uint64_t seed)
{
    simulation s = {context, acs_context_backend(context) == ACS_BACKEND_CUDA, {}};

    for (int k = 0; k < scenes; k++) {
        auto one = std::make_unique<scene>();
        void *base = nullptr;
        scene_init(*one, k, worlds, seed);
        require_acs(acs_malloc(context, one->image.size(), ACS_MEMORY_DEVICE, &base), "acs_malloc of an arena");
        one->at = scene_layout(*one->p, worlds, static_cast<char *>(base));
        for (int *&counts : one->host_counts) {
            const size_t bytes = static_cast<size_t>(one->first_tile[MAX_TYPES]) * sizeof(int);
            require_acs(acs_malloc(context, bytes, ACS_MEMORY_HOST, &base), "acs_malloc of pinned memory");
            counts = static_cast<int *>(base);
        }
        s.scenes.push_back(std::move(one));
    }
    require_acs(acs_sync(context), "acs_sync");
    return s;
}

void simulation_destroy(simulation &s)
{
    for (const auto &one : s.scenes) {
        (void)acs_free(s.context, one->at.m);
        (void)acs_free(s.context, one->host_counts[0]);
        (void)acs_free(s.context, one->host_counts[1]);
    }
    s.scenes.clear();
}

/* The whole run on the calling thread. */
static launch_counts run_together(runner &r, issue &all, int steps, const char *label, const step_hook &hook,
                                  double &seconds)
{
    progress line(label, steps);
    const steady::time_point start = steady::now();

    for (int k = 0; k < steps; k++) {
        all.step();
        if (hook) {
            r.finish();
            hook(k + 1);
        }
        line.show(k + 1);
    }
    r.finish();
    seconds = seconds_since(start);
    return all.counts;
}

/* Each thread runs scenes of its own from the first step to the last; the first one shows how far it is. */
static launch_counts run_apart(const simulation &s, runner &r, int threads, order o, int steps, const char *label,
                               double &seconds)
{
    std::vector<std::unique_ptr<issue>> parts;
    std::vector<std::thread> running;
    launch_counts sum;

    for (int t = 0; t < threads; t++) {
        std::vector<const scene *> own;
        for (size_t k = static_cast<size_t>(t); k < s.scenes.size(); k += static_cast<size_t>(threads))
            own.push_back(s.scenes[k].get());
        parts.push_back(std::make_unique<issue>(own, o, r));
        parts.back()->prime();
    }
    const steady::time_point start = steady::now();
    for (auto &p : parts)
        running.emplace_back([&p, steps, label = p == parts.front() ? label : nullptr] {
            progress line(label, steps);
            for (int k = 0; k < steps; k++) {
                p->step();
                line.show(k + 1);
            }
        });
    for (std::thread &t : running)
        t.join();
    seconds = seconds_since(start);
    for (auto &p : parts)
        sum.add(p->counts);
    return sum;
}

run_result simulation_run(simulation &s, runner &r, order o, int steps, const char *label, const step_hook &hook)
{
    run_result result = {};
    const int threads = hook ? 1 : r.threads(static_cast<int>(s.scenes.size()));
    std::vector<const scene *> all;

    for (const auto &one : s.scenes) {
        memory_copy(s.gpu, one->at.m, one->image.data(), one->image.size());
        all.push_back(one.get());
    }
    if (threads > 1) {
        result.counts = run_apart(s, r, threads, o, steps, label, result.seconds);
        return result;
    }
    issue together(all, o, r);
    together.prime();
    r.finish();
    result.counts = run_together(r, together, steps, label, hook, result.seconds);
    return result;
}

std::vector<char> simulation_state(const simulation &s, const scene &one)
{
    std::vector<char> copy(one.image.size());
    memory_copy(s.gpu, copy.data(), one.at.m, copy.size());
    return copy;
}

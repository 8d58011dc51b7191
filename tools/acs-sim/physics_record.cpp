/*
 * Owns the run of the physics sample in which its ops are taken down: on the CPU, in place, so that contact counts are
 * real. Called by physics.cpp; knows nothing of the machine.
 */
#include "physics_record.h"

#include <cstring>

#include "runner.h"
#include "simulation.h"

namespace design {

namespace {

enum { FIRST_STEPS = 2 };

/* Runs ops at once, and writes them down from some step on. */
class recorder : public runner {
public:
    explicit recorder(size_t scenes) : last_copy_(scenes), inline_(make_inline_runner(false)) {}

    bool footprints() const override { return true; }

    void launch(const op &o) override
    {
        inline_->launch(o);
        if (!on)
            return;
        physics_op kept = {!o.kernel, o.kernel, o.grid, o.block, o.source, o.target, o.bytes, {}};
        if (o.kernel)
            kept.segments.assign(o.segment, o.segment + o.segments);
        else
            last_copy_[static_cast<size_t>(o.scene)].op[o.copy] = static_cast<int64_t>(recording.ops.size());
        recording.ops.push_back(kept);
    }

    /* A copy from before the recording is complete. */
    void wait_copy(int scene, int copy) override
    {
        const int64_t op = last_copy_[static_cast<size_t>(scene)].op[copy];
        if (on && op >= 0)
            recording.waits.push_back({recording.ops.size(), static_cast<uint32_t>(op)});
    }

    void finish() override {}

    bool on = false;
    physics_recording recording;

private:
    struct copies {
        int64_t op[2] = {-1, -1};
    };
    std::vector<copies> last_copy_;
    std::unique_ptr<runner> inline_;
};

} // namespace

int physics_plan(const std::string &name)
{
    for (int k = 0; k < PLANS; k++)
        if (name == plan_get(k).info.name)
            return k;
    return -1;
}

physics_recording record_physics(const physics_request &q)
{
    acs_options options;
    acs_context *context = nullptr;

    require_acs(acs_options_init(&options, sizeof options), "acs_options_init");
    options.backend = ACS_BACKEND_HOST;
    require_acs(acs_open(&options, &context), "acs_open");
    const int scenes = q.plan < 0 ? q.scenes : PLANS;
    simulation sim = simulation_create(context, scenes, q.worlds, 1);
    if (q.plan >= 0) {
        std::unique_ptr<scene> kept = std::move(sim.scenes[static_cast<size_t>(q.plan)]);
        sim.scenes.clear(); /* their arenas are freed with the context */
        sim.scenes.push_back(std::move(kept));
    }
    recorder r(static_cast<size_t>(scenes));
    simulation_run(sim, r, q.scene_order ? ORDER_SCENE : ORDER_INTERLEAVED, FIRST_STEPS + q.steps, nullptr,
                   [&r](int step) { r.on = step >= FIRST_STEPS; });
    simulation_destroy(sim);
    require_acs(acs_close(context), "acs_close");
    return std::move(r.recording);
}

} // namespace design

/*
 * The simulation behind a C interface, as an environment for policies that others train: the caller writes actions, steps,
 * and reads observations, rewards and ends of episodes. For interpreters (samples/torch/train.py).
 */
#include "environment.h"

#include "simulation.h"

struct environment {
    simulation sim;
    std::unique_ptr<runner> through_acs;
    std::unique_ptr<issue> steps;
};

extern "C" environment *environment_open(acs_context *context, int scenes, int worlds, uint64_t seed)
{
    if (!context || scenes < 1 || worlds < 1)
        return nullptr;
    auto made = std::make_unique<environment>();
    std::vector<const scene *> all;

    made->sim = simulation_create(context, scenes, worlds, seed);
    for (const auto &one : made->sim.scenes) {
        memory_copy(made->sim.gpu, one->at.m, one->image.data(), one->image.size());
        all.push_back(one.get());
    }
    made->through_acs = make_acs_runner(context, scenes);
    made->steps = std::make_unique<issue>(all, ORDER_INTERLEAVED, *made->through_acs, ACTOR_CALLER);
    made->steps->prime();
    made->through_acs->finish();
    return made.release();
}

extern "C" void environment_step(environment *e)
{
    e->steps->step();
}

extern "C" int environment_scene(const environment *e, int index, environment_view *view)
{
    if (index < 0 || static_cast<size_t>(index) >= e->sim.scenes.size())
        return 0;
    const scene &s = *e->sim.scenes[static_cast<size_t>(index)];
    const model &m = s.p->m;

    *view = {s.p->info.name, s.worlds,    12 + m.dofs, m.dofs,           m.horizon, s.at.obs,
             s.at.act,       s.at.reward, s.at.done,   &m.drive[0].offset};
    return 1;
}

extern "C" uint64_t environment_kernels(const environment *e)
{
    return e->steps->counts.kernels;
}

extern "C" void environment_close(environment *e)
{
    if (!e)
        return;
    e->through_acs->finish();
    simulation_destroy(e->sim);
    delete e;
}

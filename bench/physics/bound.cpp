/*
 * Owns the one-stream run that others are compared with, and what bounds them: the ops of its last step are kept, and run
 * again from the state in which that step began, as a chain and as a graph. Called by the measurement before the timed
 * runs; its own runs are no part of any figure but the bound.
 */
#include "bound.h"

#include <algorithm>
#include <chrono>

#include "check.h"
#include "grapher.h"
#include "runner.h"

namespace {

using steady = std::chrono::steady_clock;

enum { REPLAYS = 5 };

/* Plain execution that keeps, while told to, the ops that it executes. */
class recorder : public runner {
public:
    recorder(std::unique_ptr<runner> inner, size_t scenes) : recorded(scenes), inner_(std::move(inner)) {}

    bool footprints() const override { return true; }
    void launch(const op &o) override
    {
        if (on)
            recorded[static_cast<size_t>(o.scene)].push_back(o);
        inner_->launch(o);
    }
    void wait_copy(int scene, int copy) override { inner_->wait_copy(scene, copy); }
    void finish() override { inner_->finish(); }

    bool on = false;
    std::vector<std::vector<op>> recorded;

private:
    std::unique_ptr<runner> inner_;
};

scene_states states_of(const simulation &sim)
{
    scene_states all;
    for (const auto &one : sim.scenes)
        all.push_back(simulation_state(sim, *one));
    return all;
}

/* A step must begin as it began when it was recorded: its grids fit the counts that it finds, no others. */
double replay_us(const driver_setup &setup, const ops_graph &graph, const scene_states &before)
{
    const std::unique_ptr<grapher> g = setup.sim.gpu ? make_cuda_grapher(false) : make_emulated_grapher(nullptr);
    std::vector<double> times;

    g->keep(graph);
    for (int k = 0; k < REPLAYS; k++) {
        for (size_t s = 0; s < before.size(); s++)
            memory_copy(setup.sim.gpu, setup.sim.scenes[s]->at.m, before[s].data(), before[s].size());
        const steady::time_point start = steady::now();
        g->replay();
        g->finish();
        if (k > 0) /* the first one is cold */
            times.push_back(std::chrono::duration<double, std::micro>(steady::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

/* All ops, each behind the one before it. */
double chain_us(const driver_setup &setup, const std::vector<std::vector<op>> &recorded, const scene_states &before)
{
    std::vector<op> ops;

    for (const auto &one : recorded)
        ops.insert(ops.end(), one.begin(), one.end());
    dag chain = {std::vector<std::vector<int>>(ops.size()), ops.size() - 1, static_cast<int>(ops.size()), 0};
    for (size_t k = 1; k < ops.size(); k++)
        chain.after[k].push_back(static_cast<int>(k) - 1);
    ops_graph graph;
    graph.parts.push_back({&ops, &chain});
    return replay_us(setup, graph, before);
}

void measure_bound(const driver_setup &setup, const std::vector<std::vector<op>> &recorded, const scene_states &before,
                   const scene_states &after, bench_bound &bound)
{
    std::vector<dag> dags;
    ops_graph graph;

    for (const auto &ops : recorded)
        dags.push_back(dag_of(ops));
    for (size_t k = 0; k < recorded.size(); k++) {
        graph.parts.push_back({&recorded[k], &dags[k]});
        for (const op &o : recorded[k])
            bound.kernels += o.kernel != nullptr;
        bound.edges += dags[k].edges;
        if (dags[k].depth > bound.depth) {
            bound.depth = dags[k].depth;
            bound.deepest = setup.sim.scenes[k]->p->info.name;
        }
    }
    bound.chain_us = chain_us(setup, recorded, before);
    bound.differs = !same_states(setup.sim, after, "chained");
    const double graph_us = replay_us(setup, graph, before);
    bound.differs = !same_states(setup.sim, after, "recorded") || bound.differs;
    bound.graph_us = setup.sim.gpu ? graph_us : 0;
}

} // namespace

void reset_scenes(const simulation &sim)
{
    for (const auto &one : sim.scenes)
        memory_copy(sim.gpu, one->at.m, one->image.data(), one->image.size());
}

bool same_states(const simulation &sim, const scene_states &want, const char *name)
{
    bool same = true;
    for (size_t k = 0; k < sim.scenes.size(); k++)
        same = check_same(*sim.scenes[k], want[k], simulation_state(sim, *sim.scenes[k]), name) && same;
    return same;
}

scene_states reference_run(const driver_setup &setup, int steps, bench_bound &bound)
{
    const simulation &sim = setup.sim;
    recorder r(sim.gpu ? make_stream_runner(1, static_cast<int>(sim.scenes.size())) : make_inline_runner(false),
               sim.scenes.size());
    std::vector<const scene *> all;

    reset_scenes(sim);
    for (const auto &one : sim.scenes)
        all.push_back(one.get());
    issue together(all, ORDER_SCENE, r);
    together.prime();
    for (int k = 0; k < steps - 1; k++)
        together.step();
    r.finish();
    const scene_states before = states_of(sim);
    r.on = true;
    together.step();
    r.finish();
    const scene_states after = states_of(sim);
    measure_bound(setup, r.recorded, before, after, bound);
    return after;
}

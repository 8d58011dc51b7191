/*
 * Owns the order of runs and the clock: every way to run is warmed up, then all are timed in turn in each repetition, from
 * the same initial state. A step is timed twice: until it is submitted, and until all of it is complete; then steps are
 * timed that follow each other without a wait. Called by main once for each number of worlds; prints only what differs.
 */
#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "check.h"
#include "dag.h"
#include "runner.h"

namespace {

using steady = std::chrono::steady_clock;
using states = std::vector<std::vector<char>>;

enum { WARM_UP_STEPS = 5 };

double us_since(steady::time_point start)
{
    return std::chrono::duration<double, std::micro>(steady::now() - start).count();
}

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

void reset(const simulation &sim)
{
    for (const auto &one : sim.scenes)
        memory_copy(sim.gpu, one->at.m, one->image.data(), one->image.size());
}

/* The one-stream run that others must agree with: its final state, and what its last step was made of. */
states reference(const simulation &sim, int steps, bench_bound &bound)
{
    recorder r(sim.gpu ? make_stream_runner(1, static_cast<int>(sim.scenes.size())) : make_inline_runner(false),
               sim.scenes.size());
    std::vector<const scene *> all;
    states final;

    reset(sim);
    for (const auto &one : sim.scenes)
        all.push_back(one.get());
    issue together(all, ORDER_SCENE, r);
    together.prime();
    for (int k = 0; k < steps; k++) {
        r.on = k == steps - 1;
        together.step();
        r.finish();
    }
    for (size_t k = 0; k < all.size(); k++) {
        const dag d = dag_of(r.recorded[k]);
        for (const op &o : r.recorded[k])
            bound.kernels += o.kernel != nullptr;
        bound.edges += d.edges;
        if (d.depth > bound.depth) {
            bound.depth = d.depth;
            bound.deepest = all[k]->p->info.name;
        }
        final.push_back(simulation_state(sim, *all[k]));
    }
    return final;
}

bool same_states(const simulation &sim, const states &want, const char *name)
{
    bool same = true;
    for (size_t k = 0; k < sim.scenes.size(); k++)
        same = check_same(*sim.scenes[k], want[k], simulation_state(sim, *sim.scenes[k]), name) && same;
    return same;
}

/* Steps that each end with a wait for completion, as a program needs it that looks at the observations. */
void run_steps(const simulation &sim, driver &d, int steps, bench_row *row)
{
    reset(sim);
    d.begin();
    for (int k = 0; k < steps; k++) {
        const steady::time_point start = steady::now();
        d.step();
        const double submitted = us_since(start);
        d.finish();
        const double complete = us_since(start);
        if (row) {
            row->submit_us.push_back(submitted);
            row->step_us.push_back(complete);
        }
    }
}

/* @return microseconds per step when nothing waits between steps but for counts. */
double run_back_to_back(const simulation &sim, driver &d, int steps)
{
    reset(sim);
    d.begin();
    const steady::time_point start = steady::now();
    for (int k = 0; k < steps; k++)
        d.step();
    d.finish();
    return us_since(start) / steps;
}

void add_counts(bench_row &row, const driver_counts &c, int steps)
{
    row.counts.kernels += c.kernels;
    row.counts.graphs += c.graphs;
    row.counts.instantiated += c.instantiated;
    row.counts.updated += c.updated;
    row.counted += static_cast<uint64_t>(steps);
}

void repetition(const bench_settings &s, const simulation &sim, driver &d, const states &want, bench_row &row)
{
    run_steps(sim, d, s.steps, &row);
    add_counts(row, d.counts(), s.steps);
    if (s.check && !same_states(sim, want, row.v->name))
        row.differs = true;
    row.back_us.push_back(run_back_to_back(sim, d, s.steps));
    if (s.check && !same_states(sim, want, row.v->name))
        row.differs = true;
}

void run_all(const bench_settings &s, simulation &sim, const states &want, bench_table &t)
{
    const driver_setup setup = {sim, s.issue_order, s.cpu, s.emulate, s.forget};
    std::vector<std::unique_ptr<driver>> drivers(t.rows.size());

    for (int rep = -1; rep < s.reps; rep++)
        for (size_t k = 0; k < t.rows.size(); k++) {
            bench_row &row = t.rows[k];
            if (row.left_out)
                continue;
            if (!drivers[k])
                drivers[k] = row.v->make(setup);
            if (rep < 0)
                run_steps(sim, *drivers[k], std::min<int>(s.steps, WARM_UP_STEPS), nullptr);
            else
                repetition(s, sim, *drivers[k], want, row);
        }
}

const char *backend_name(acs_context *context)
{
    const int backend = acs_context_backend(context);
    return backend == ACS_BACKEND_CUDA ? "cuda" : backend == ACS_BACKEND_HOST ? "host" : "stepped";
}

} // namespace

bench_table measure(const bench_settings &s, int worlds)
{
    acs_options o;
    acs_context *context = nullptr;
    bench_table t;

    /* This context allocates, and its memory outlives those that run; it needs no thread of its own for that. */
    require_acs(acs_options_init(&o, sizeof o), "acs_options_init");
    o.workers = 0;
    o.executors = 1;
    require_acs(acs_open(&o, &context), "acs_open");
    simulation sim = simulation_create(context, s.scenes, worlds, s.seed);
    if (s.emulate && sim.gpu) {
        fprintf(stderr, "physics-bench: --emulate runs graphs on the CPU: it needs --backend host\n");
        exit(2);
    }
    if (!stay_on_cpu(s.cpu)) { /* not before: the driver's own threads should not share that CPU */
        fprintf(stderr, "physics-bench: the system refuses to keep a thread on CPU %d\n", s.cpu);
        exit(1);
    }
    t.worlds = worlds;
    t.backend = backend_name(context);
    for (const variant *v : s.variants) {
        t.rows.emplace_back();
        t.rows.back().v = v;
        t.rows.back().left_out = v->needs_gpu && !sim.gpu && !s.emulate;
    }
    const states want = reference(sim, s.steps, t.bound);
    run_all(s, sim, want, t);
    for (const bench_row &row : t.rows)
        t.passed = t.passed && !row.differs;
    simulation_destroy(sim);
    require_acs(acs_close(context), "acs_close");
    return t;
}

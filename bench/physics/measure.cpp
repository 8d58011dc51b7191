/*
 * Owns the order of runs and the clock: every way to run is warmed up, then all are timed in turn in each repetition, from
 * the same initial state, behind the first steps (--warm-up), which are not timed. A step is timed twice: until it is
 * submitted, and until all of it is complete; then steps are timed that follow each other without a wait. Called by main
 * once for each number of worlds; prints only what differs.
 */
#include "measure.h"

#include "../harness/progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "runner.h"

namespace {

using steady = std::chrono::steady_clock;

enum { FIRST_STEPS = 5 }; /* of each runner, before the first repetition */

double us_since(steady::time_point start)
{
    return std::chrono::duration<double, std::micro>(steady::now() - start).count();
}

/* Begin a repetition: steps from the initial state that are not timed. */
void run_warm_up(const simulation &sim, driver &d, int steps)
{
    reset_scenes(sim);
    d.begin();
    for (int k = 0; k < steps; k++) {
        d.step();
        d.finish();
    }
}

/* Steps that each end with a wait for completion, as a program needs it that looks at the observations. */
void run_steps(driver &d, int steps, bench_row &row)
{
    for (int k = 0; k < steps; k++) {
        const steady::time_point start = steady::now();
        d.step();
        const double submitted = us_since(start);
        d.finish();
        const double complete = us_since(start);
        row.submit_us.push_back(submitted);
        row.step_us.push_back(complete);
    }
}

/* @return microseconds per step when nothing waits between steps but for counts. */
double run_back_to_back(driver &d, int steps)
{
    const steady::time_point start = steady::now();
    for (int k = 0; k < steps; k++)
        d.step();
    d.finish();
    return us_since(start) / steps;
}

void add_counts(bench_row &row, const driver_counts &c, int steps)
{
    row.counts.kernels += c.kernels;
    row.counts.decisions += c.decisions;
    row.counts.not_run += c.not_run;
    row.counts.graphs += c.graphs;
    row.counts.instantiated += c.instantiated;
    row.counts.updated += c.updated;
    row.counted += static_cast<uint64_t>(steps);
}

void repetition(const bench_settings &s, const simulation &sim, driver &d, const scene_states &want, bench_row &row)
{
    run_warm_up(sim, d, s.warm_up);
    run_steps(d, s.steps, row);
    add_counts(row, d.counts(), s.warm_up + s.steps);
    if (s.check && !same_states(sim, want, row.v->name))
        row.differs = true;
    run_warm_up(sim, d, s.warm_up);
    row.back_us.push_back(run_back_to_back(d, s.steps));
    if (s.check && !same_states(sim, want, row.v->name))
        row.differs = true;
}

void run_all(const bench_settings &s, const driver_setup &setup, const scene_states &want, bench_table &t)
{
    std::vector<std::unique_ptr<driver>> drivers(t.rows.size());

    const double each = static_cast<double>(t.rows.size());
    for (int rep = -1; rep < s.reps; rep++)
        for (size_t k = 0; k < t.rows.size() && !bench_interrupted(); k++) {
            bench_row &row = t.rows[k];
            if (row.left_out)
                continue;
            if (!drivers[k])
                drivers[k] = row.v->make(setup);
            if (rep < 0)
                run_warm_up(setup.sim, *drivers[k], std::min<int>(s.warm_up + s.steps, FIRST_STEPS));
            else
                repetition(s, setup.sim, *drivers[k], want, row);
            const double done = (rep + 1) * each + static_cast<double>(k) + 1;
            bench_progress_part(done / (each * (s.reps + 1)), row.v->name);
        }
}

const char *backend_name(acs_context *context)
{
    const int backend = acs_context_backend(context);
    return backend == ACS_BACKEND_CUDA ? "cuda" : backend == ACS_BACKEND_HOST ? "host" : "sim";
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
    if (sim.gpu && !PHYSICS_CUDA) {
        fprintf(stderr, "physics-bench: built without nvcc, so it has no kernels for a GPU: it needs --backend host\n");
        exit(1);
    }
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
    const driver_setup setup = {sim, s.issue_order, s.cpu, s.emulate, s.forget, s.timeline};
    const scene_states want = reference_run(setup, s.warm_up + s.steps, t.bound);
    t.passed = !t.bound.differs;
    run_all(s, setup, want, t);
    for (const bench_row &row : t.rows)
        t.passed = t.passed && !row.differs;
    const auto untimed = [](const bench_row &row) { return !row.left_out && row.step_us.empty(); };
    if (bench_interrupted())
        t.rows.erase(std::remove_if(t.rows.begin(), t.rows.end(), untimed), t.rows.end());
    simulation_destroy(sim);
    require_acs(acs_close(context), "acs_close");
    return t;
}

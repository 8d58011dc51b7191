/*
 * physics: articulated bodies in many worlds, the main job that ACS was built for.
 *
 * Owns the command line and the order of runs: each way to run is warmed up once, then all are repeated in turn, so
 * that a machine that slows down slows all of them. Exit status: 0; 1: a check or a call failed; 2: bad command line.
 */
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "audit.h"
#include "check.h"
#include "render.h"
#include "report.h"
#include "resident.h"

static const char usage[] =
    "usage: physics [options]\n"
    "  --scenes N          scenes; scene k has body plan k mod 5: ant, grasp, humanoid, cheetah, walker  (5)\n"
    "  --worlds N          worlds of each scene                                                        (256)\n"
    "  --steps N           environment steps                                       (20; 100 with --render)\n"
    "  --order ORDER       scene: scene after scene; interleaved: one kernel of each in turn   (interleaved)\n"
    "  --runner RUNNER     acs, captured (by acs, a step as one graph; GPU only), stream (one stream),\n"
    "                      streams (one per scene, by hand), or all                                    (all)\n"
    "  --decide WHO        host: the program waits for counts of contacts, and launches what they need; kernels: it\n"
    "                      launches all that there can be, and kernels look; gpu: the same, but ACS switches off what\n"
    "                      an island without contacts does not need; auto: kernels for acs, host for streams  (auto)\n"
    "  --repeat N          timed repetitions of each runner                                              (3)\n"
    "  --check             compare final states bit for bit with the one-stream run, and bound them by physics\n"
    "  --audit             prove each kernel's footprint by running it with all other bytes spoiled (slow; CPU only);\n"
    "                      with --decide auto those of all ways\n"
    "  --render DIR        write DIR/<plan>.svg, a world of each body plan at six moments\n"
    "  --seed N            seed of worlds and networks                                                   (1)\n"
    "  --json FILE         write the figures to FILE\n"
    "  --backend NAME      auto, cuda, host or sim, as the environment variable ACS_BACKEND says      (auto)\n"
    "Options of ACS itself come from the environment: ACS_WINDOW, ACS_STREAMS, ACS_WORKERS, ACS_LOG and others.\n";

[[noreturn]] static void refuse(const char *option, const char *value)
{
    if (*value)
        fprintf(stderr, "physics: %s does not take \"%s\"\n%s", option, value, usage);
    else
        fprintf(stderr, "physics: %s is unknown, or lacks its value\n%s", option, usage);
    exit(2);
}

static long number(const char *option, const char *value, long low, long high)
{
    char *end = nullptr;
    errno = 0;
    const long n = strtol(value, &end, 10);
    if (errno || end == value || *end || n < low || n > high)
        refuse(option, value);
    return n;
}

static void choose_runner(settings &s, const char *value)
{
    const bool all = strcmp(value, "all") == 0;
    s.use_acs = all || strcmp(value, "acs") == 0;
    s.use_captured = all || strcmp(value, "captured") == 0;
    s.use_stream = all || strcmp(value, "stream") == 0;
    s.use_streams = all || strcmp(value, "streams") == 0;
    if (!s.use_acs && !s.use_captured && !s.use_stream && !s.use_streams)
        refuse("--runner", value);
}

static int choose_decider(const char *value)
{
    const char *const name[] = {"auto", "host", "kernels", "gpu"};

    for (int k = 0; k < 4; k++)
        if (strcmp(value, name[k]) == 0)
            return k - 1;
    refuse("--decide", value);
}

/* One option and its value. @return how many words it took, 0 if it is unknown. */
static int parse_option(settings &s, const char *name, const char *value)
{
    if (strcmp(name, "--check") == 0) {
        s.check = true;
        return 1;
    }
    if (strcmp(name, "--audit") == 0) {
        s.audit = true;
        return 1;
    }
    if (!value)
        return 0;
    if (strcmp(name, "--scenes") == 0)
        s.scenes = static_cast<int>(number(name, value, 1, 1000));
    else if (strcmp(name, "--worlds") == 0)
        s.worlds = static_cast<int>(number(name, value, 1, 100000));
    else if (strcmp(name, "--steps") == 0)
        s.steps = static_cast<int>(number(name, value, 1, 10000000));
    else if (strcmp(name, "--repeat") == 0)
        s.repeat = static_cast<int>(number(name, value, 1, 1000));
    else if (strcmp(name, "--seed") == 0)
        s.seed = static_cast<uint64_t>(number(name, value, 0, 1000000000));
    else if (strcmp(name, "--order") == 0 && (strcmp(value, "scene") == 0 || strcmp(value, "interleaved") == 0))
        s.issue_order = strcmp(value, "scene") == 0 ? ORDER_SCENE : ORDER_INTERLEAVED;
    else if (strcmp(name, "--runner") == 0)
        choose_runner(s, value);
    else if (strcmp(name, "--decide") == 0)
        s.decide = choose_decider(value);
    else if (strcmp(name, "--render") == 0)
        s.render = value;
    else if (strcmp(name, "--json") == 0)
        s.json = value;
    else if (strcmp(name, "--backend") == 0)
        setenv("ACS_BACKEND", value, 1); /* before any thread exists */
    else
        return 0;
    return 2;
}

static settings parse(int argc, char **argv)
{
    settings s = {5, 256, 0, 3, ORDER_INTERLEAVED, true, true, true, true, false, false, 1, nullptr, nullptr, -1};

    for (int k = 1; k < argc;) {
        if (strcmp(argv[k], "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        }
        const int taken = parse_option(s, argv[k], k + 1 < argc ? argv[k + 1] : nullptr);
        if (taken == 0)
            refuse(argv[k], k + 1 < argc ? argv[k + 1] : "");
        k += taken;
    }
    if (s.steps == 0)
        s.steps = s.render ? 100 : 20;
    return s;
}

static std::unique_ptr<runner> make_runner(const simulation &sim, const char *name, int decide)
{
    const int scenes = static_cast<int>(sim.scenes.size());

    const bool acs = strcmp(name, "acs") == 0, captured = strcmp(name, "captured") == 0;
    const decider d = decide >= 0 ? static_cast<decider>(decide) : acs || captured ? KERNELS_DECIDE : HOST_DECIDES;

    if (captured)
        return make_captured_runner(sim.context, scenes, d);
    if (acs)
        return make_acs_runner(sim.context, scenes, d);
    const bool one = strcmp(name, "stream") == 0;
    if (sim.gpu)
        return make_stream_runner(one ? 1 : scenes, scenes, d);
    return make_inline_runner(!one, d);
}

/* The one-stream run in which the host decides, looked at every tenth step and at the end: bounds, and the states to
   compare others with. */
static bool check_reference(simulation &sim, const settings &s, std::vector<std::vector<char>> &states)
{
    const std::unique_ptr<runner> r = make_runner(sim, "stream", HOST_DECIDES);
    std::vector<physics_bounds> worst(sim.scenes.size(), physics_bounds{0, 0, 0, 0, true});
    bool ok = true;

    simulation_run(sim, *r, ORDER_SCENE, s.steps, "checking", [&](int step) {
        if (step % 10 != 0 && step != s.steps)
            return;
        states.clear();
        for (size_t k = 0; k < sim.scenes.size(); k++) {
            states.push_back(simulation_state(sim, *sim.scenes[k]));
            check_measure(*sim.scenes[k], states[k], worst[k]);
        }
    });
    for (size_t k = 0; k < sim.scenes.size(); k++) {
        const scene &one = *sim.scenes[k];
        ok = check_bounds(one, worst[k]) && ok;
        if (k < PLANS)
            printf("bounds      %-9s energy %4.0f of %4.0f J, penetration %4.1f mm, joint gap %4.1f mm\n",
                   one.p->info.name, worst[k].energy, static_cast<double>(one.p->info.most_energy),
                   worst[k].penetration * 1e3, worst[k].joint_gap * 1e3);
    }
    return ok;
}

static bool compare_states(const simulation &sim, const std::vector<std::vector<char>> &states, const char *name)
{
    bool same = true;
    for (size_t k = 0; k < sim.scenes.size(); k++)
        same = check_same(*sim.scenes[k], states[k], simulation_state(sim, *sim.scenes[k]), name) && same;
    return same;
}

/* Of all that the context has run. */
static uint64_t count_not_run(acs_context *context)
{
    acs_statistics all = {};

    all.size = sizeof all;
    require_acs(acs_stats(context, &all), "acs_stats");
    return all.not_run;
}

/* Every runner once to warm up, then `repeat` times in turn. */
static bool run_all(simulation &sim, const settings &s, const std::vector<std::vector<char>> &states,
                    std::vector<measured> &runs)
{
    std::vector<std::unique_ptr<runner>> runners;
    bool same = true;

    for (const measured &m : runs)
        runners.push_back(make_runner(sim, m.name, s.decide));
    for (int repetition = -1; repetition < s.repeat; repetition++)
        for (size_t k = 0; k < runs.size(); k++) {
            const int steps = repetition < 0 && !s.check ? std::min(s.steps, 5) : s.steps;
            const uint64_t not_run = count_not_run(sim.context);
            const run_result r = simulation_run(sim, *runners[k], s.issue_order, steps, runs[k].name);
            if (s.check && !compare_states(sim, states, runs[k].name))
                same = false;
            if (repetition < 0)
                continue;
            runs[k].seconds.push_back(r.seconds);
            runs[k].counts = r.counts;
            runs[k].not_run = count_not_run(sim.context) - not_run;
        }
    return same;
}

static const char *backend_name(acs_context *context)
{
    const int backend = acs_context_backend(context);
    return backend == ACS_BACKEND_CUDA ? "cuda" : (backend == ACS_BACKEND_HOST ? "host" : "sim");
}

int main(int argc, char **argv)
{
    const settings s = parse(argc, argv);
    acs_context *context = nullptr;
    std::vector<std::vector<char>> states;
    std::vector<measured> runs;
    bool passed = true;

    require_acs(acs_open(nullptr, &context), "acs_open");
    if (physics_executor())
        require_acs(acs_executor_add(context, physics_executor()), "acs_executor_add");
    simulation sim = simulation_create(context, s.scenes, s.worlds, s.seed);
    const char *const backend = backend_name(context);
    if (s.use_acs)
        runs.push_back({"acs", {}, {}, 0});
    const bool steps_differ = s.decide == HOST_DECIDES; /* then none can be captured for the others */
    if (s.use_captured && !s.use_acs && (!sim.gpu || steps_differ)) {
        fprintf(stderr, "physics: --runner captured %s\n",
                steps_differ ? "needs steps that are all the same, so not --decide host" : "needs a GPU");
        return 2;
    }
    if (s.use_captured && sim.gpu && !steps_differ)
        runs.push_back({"captured", {}, {}, 0});
    if (s.use_stream)
        runs.push_back({"stream", {}, {}, 0});
    if (s.use_streams)
        runs.push_back({"streams", {}, {}, 0});
    if (s.render)
        passed = render_pictures(sim, *make_runner(sim, "stream", s.decide), s.steps, s.render);
    if (s.audit && sim.gpu)
        refuse("--audit", "the backend cuda");
    if (s.audit) {
        bool exact = true;
        for (const decider d : {HOST_DECIDES, KERNELS_DECIDE, GPU_DECIDES})
            if (s.decide < 0 || s.decide == d)
                exact = audit_footprints(sim, s.steps, d) && exact;
        printf("audit       %s\n", exact ? "every footprint tells the truth" : "FOOTPRINTS ARE WRONG");
        passed = exact && passed;
    }
    if (s.check)
        passed = check_reference(sim, s, states) && passed;
    const bool same = run_all(sim, s, states, runs);
    passed = same && passed;
    uint64_t hash = 0xcbf29ce484222325u;
    for (const auto &one : sim.scenes)
        hash = check_hash(*one, simulation_state(sim, *one), hash);
    report_print(s, backend, runs);
    printf("state       %016llx%s\n", static_cast<unsigned long long>(hash),
           !s.check ? "" : (same ? ", every run the same bit for bit as one stream" : ", RUNS DIFFER"));
    if (s.check)
        printf("check       %s\n", passed ? "passed" : "FAILED");
    if (s.json)
        passed = report_json(s, backend, runs, hash, passed) && passed;
    simulation_destroy(sim);
    require_acs(acs_close(context), "acs_close");
    return passed ? 0 : 1;
}

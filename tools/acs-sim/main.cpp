/*
 * acs-sim: programs issued in many ways on models of GPUs, in virtual time.
 *
 * Owns the command line and what is printed. Exit status: 0; 1: an order was broken, or something failed; 2: bad command
 * line. The same command prints the same, on any machine.
 */
#include <algorithm>
#include <cstdio>
#include <set>

#include "arguments.h"
#include "programs.h"
#include "progress.h"
#include "report.h"
#include "studies.h"
#include "table.h"

using namespace design;

/* tests/random/main.c */
extern "C" int random_main(int argc, char **argv);

namespace {

struct settings {
    std::vector<const acs_sim_gpu *> gpus;
    std::vector<std::string> programs = {"pattern"}, patterns = {"stencil_1d"}, runners = {"all"};
    std::vector<double> kernel_us = {-1};
    program_request request;
    std::string json;
    bool list = false, claims = false, task_bench = false, scale = false;
    uint32_t scale_devices = 1024;
    std::set<std::string> given;
};

const char usage_text[] =
    "usage: acs-sim [options]\n"
    "  --gpu G[,G]|all          models of GPUs                                                             (h200)\n"
    "  --program P[,P]          what is issued, see --list                                              (pattern)\n"
    "  --runner R[,R]|all       ways to issue, see --list                                                   (all)\n"
    "  --kernel-us U[,U]        how long a block of a kernel takes            (5; networks: the bench's estimates)\n"
    "  --json FILE              write all figures in the form of acs-bench\n"
    "of patterns, --width, --steps and --ctas also of `recent`:\n"
    "  --pattern P[,P]          who reads what, see --list                                           (stencil_1d)\n"
    "  --width N, --steps N     tasks of a step, and steps                                             (32, 128)\n"
    "  --radix N, --period N    of nearest and spread                                                     (5, 2)\n"
    "  --fields N               cells per point, written in turn; 0: one per step                            (0)\n"
    "  --ctas N                 blocks of a kernel                                                           (4)\n"
    "  --devices N              devices that places of a step are dealt out to (1 to 1024)                   (1)\n"
    "  --halo-bytes N           size of what one device's task reads of another's                        (65536)\n"
    "of physics:\n"
    "  --worlds N, --env-steps N  worlds of a scene, and steps taken                                    (256, 1)\n"
    "  --scenes N               scenes of `physics`                                                          (5)\n"
    "  --order O                of their launches: interleaved or scene                            (interleaved)\n"
    "of networks:\n"
    "  --size S                 tiny, normal or paper, as acs-workloads has them                         (paper)\n"
    "of random patterns and networks:\n"
    "  --seed N                                                                                              (1)\n"
    "instead of all these:\n"
    "  --replay --seed N [...]  the random program of the tests with this seed, printed step by step; further options\n"
    "                           as the failing run gave them (--faults, --drop, --shrink ...)\n"
    "  --list                   programs, patterns, runners, models of GPUs\n"
    "  --claims                 the paper's comparison, beside the paper's figures\n"
    "  --task-bench             Task Bench's patterns on every model\n"
    "  --scale [--gpu G] [--devices N]   programs dealt out to 1 .. N devices                             (1024)\n";

enum kind_of_program { OF_PATTERN, OF_TASKS, OF_PHYSICS, OF_SCENES, OF_NETWORK, OF_SEED };
const struct {
    const char *option;
    kind_of_program of;
} scopes[] = {
    {"--pattern", OF_PATTERN},   {"--width", OF_TASKS},        {"--steps", OF_TASKS},  {"--radix", OF_PATTERN},
    {"--period", OF_PATTERN},    {"--fields", OF_PATTERN},     {"--ctas", OF_TASKS},   {"--devices", OF_PATTERN},
    {"--halo-bytes", OF_PATTERN}, {"--worlds", OF_PHYSICS},    {"--env-steps", OF_PHYSICS}, {"--scenes", OF_SCENES},
    {"--order", OF_SCENES},      {"--size", OF_NETWORK},       {"--seed", OF_SEED},
};

bool parse_pattern(settings &s, bench::arguments &a)
{
    bench::pattern_settings &p = s.request.shape;
    if (a.is("--pattern"))
        s.patterns = a.list();
    else if (a.is("--width"))
        p.width = static_cast<uint32_t>(a.number(1, 1000000));
    else if (a.is("--steps"))
        p.steps = static_cast<uint32_t>(a.number(1, 1000000));
    else if (a.is("--radix"))
        p.radix = static_cast<uint32_t>(a.number(1, 1000));
    else if (a.is("--period"))
        p.period = static_cast<uint32_t>(a.number(1, 1000));
    else if (a.is("--fields"))
        p.fields = static_cast<uint32_t>(a.number(0, 1000000));
    else if (a.is("--seed"))
        p.seed = a.number(0, UINT32_MAX);
    else if (a.is("--ctas"))
        s.request.ctas = static_cast<uint32_t>(a.number(1, 65535));
    else if (a.is("--devices"))
        s.request.devices = s.scale_devices = static_cast<uint32_t>(a.number(1, 1024));
    else if (a.is("--halo-bytes"))
        s.request.halo_bytes = a.number(1, UINT32_MAX);
    else
        return false;
    return true;
}

bool parse_other(settings &s, bench::arguments &a)
{
    if (a.is("--worlds"))
        s.request.worlds = static_cast<uint32_t>(a.number(1, 100000));
    else if (a.is("--env-steps"))
        s.request.env_steps = static_cast<uint32_t>(a.number(1, 100));
    else if (a.is("--scenes"))
        s.request.scenes = static_cast<uint32_t>(a.number(1, 100));
    else if (a.is("--kernel-us"))
        s.kernel_us = a.reals(0, 1e6);
    else if (a.is("--runner"))
        s.runners = a.list();
    else if (a.is("--program"))
        s.programs = a.list();
    else if (a.is("--json"))
        s.json = a.text();
    else
        return false;
    return true;
}

/* Of a fixed set of words. */
std::string choice(bench::arguments &a, const std::vector<std::string> &words)
{
    const std::string word = a.text();
    std::string all;
    for (const std::string &w : words)
        all += (all.empty() ? "" : ", ") + w;
    if (std::find(words.begin(), words.end(), word) == words.end())
        a.refuse("'" + word + "' is none of " + all);
    return word;
}

std::vector<const acs_sim_gpu *> parse_gpus(bench::arguments &a)
{
    std::vector<const acs_sim_gpu *> found;
    for (const std::string &name : a.list()) {
        const acs_sim_gpu *const one = acs_sim_gpu_find(name.c_str());
        for (uint32_t k = 0; name == "all" && acs_sim_gpu_at(k); k++)
            found.push_back(acs_sim_gpu_at(k));
        if (one)
            found.push_back(one);
        else if (name != "all")
            a.refuse("there is no model of a GPU '" + name + "'; --list shows them");
    }
    return found;
}

settings parse(bench::arguments &a, const std::vector<std::string> &words)
{
    settings s;
    s.gpus = {acs_sim_gpu_find("h200")};
    for (const std::string &w : words)
        if (w.compare(0, 2, "--") == 0)
            s.given.insert(w);
    while (a.next()) {
        if (parse_pattern(s, a) || parse_other(s, a))
            continue;
        if (a.is("--gpu"))
            s.gpus = parse_gpus(a);
        else if (a.is("--order"))
            s.request.scene_order = choice(a, {"interleaved", "scene"}) == "scene";
        else if (a.is("--size"))
            s.request.size = choice(a, {"tiny", "normal", "paper"});
        else if (a.is("--list"))
            s.list = true;
        else if (a.is("--claims"))
            s.claims = true;
        else if (a.is("--task-bench"))
            s.task_bench = true;
        else if (a.is("--scale"))
            s.scale = true;
        else
            a.refuse("there is no such option");
    }
    return s;
}

kind_of_program kind_of(const std::string &program)
{
    if (find_program(program)->pattern)
        return OF_PATTERN;
    for (const char *name : {"physics", "ant", "grasp", "humanoid", "cheetah", "walker"})
        if (program == name)
            return OF_PHYSICS;
    return program == "recent" ? OF_TASKS : OF_NETWORK;
}

bool concerns(const settings &s, kind_of_program of, const std::string &program)
{
    const kind_of_program kind = kind_of(program);
    if (of == OF_SCENES)
        return program == "physics";
    if (of == OF_TASKS)
        return kind == OF_PATTERN || kind == OF_TASKS;
    if (of == OF_SEED)
        return kind == OF_NETWORK || kind == OF_TASKS ||
               (kind == OF_PATTERN && std::any_of(s.patterns.begin(), s.patterns.end(), [](const std::string &p) {
                    return p.find("random:") == 0 || p.find("fresh:") == 0 || p.find("buffers:") == 0;
                }));
    return of == kind;
}

/* Options that would do nothing are refused. */
void look_at_scopes(const settings &s, const bench::arguments &a)
{
    for (const auto &scope : scopes)
        if (s.given.count(scope.option) &&
            std::none_of(s.programs.begin(), s.programs.end(),
                         [&](const std::string &p) { return concerns(s, scope.of, p); }))
            a.refuse_for(scope.option, "does not concern the program that is issued");
}

void look_at_study(const settings &s, const bench::arguments &a)
{
    const std::string mode = s.list ? "--list" : s.claims ? "--claims" : s.task_bench ? "--task-bench" : "--scale";
    for (const std::string &option : s.given)
        if (option != mode && !(s.scale && (option == "--gpu" || option == "--devices")))
            a.refuse_for(option, "does nothing beside " + mode);
    if (s.scale && s.gpus.size() != 1)
        a.refuse_for("--gpu", "--scale takes one model");
}

/* Refuses what cannot be played before anything is. */
void look_at(const settings &s, const bench::arguments &a)
{
    if (s.list || s.claims || s.task_bench || s.scale) {
        look_at_study(s, a);
        return;
    }
    for (const std::string &name : s.programs)
        if (!find_program(name))
            a.refuse_for("--program", "there is no program '" + name + "'; --list shows them");
    for (const std::string &name : s.runners)
        if (name != "all" && !find_vehicle(name))
            a.refuse_for("--runner", "there is no runner '" + name + "'; --list shows them");
    for (const std::string &name : s.patterns) {
        bench::pattern_settings one = s.request.shape;
        uint32_t cells = 0;
        one.name = name;
        one.width = std::min(one.width, 4u);
        one.steps = std::min(one.steps, 4u);
        if (bench::pattern_tasks(one, &cells).empty())
            a.refuse_for("--pattern", "there is no pattern '" + name + "'; --list shows them");
    }
    if (uint64_t(s.request.shape.width) * s.request.shape.steps > 1000000)
        a.refuse_for("--steps", "width times steps is more than a million tasks");
    look_at_scopes(s, a);
}

int print_list()
{
    printf("programs:\n");
    for (const program_kind &k : program_kinds())
        printf("  %-16s %s\n", k.name, k.about);
    printf("%srunners:\n", bench::pattern_help());
    for (const vehicle_kind &v : vehicle_kinds())
        printf("  %-16s %s%s\n", v.name, v.about, v.many_devices ? " (any number of devices)" : "");
    printf("models of GPUs:\n");
    for (uint32_t k = 0; acs_sim_gpu_at(k); k++)
        printf("  %-16s %u multiprocessors, %u hardware queues\n", acs_sim_gpu_at(k)->name, acs_sim_gpu_at(k)->sms,
               acs_sim_gpu_at(k)->queues);
    return 0;
}

/* What bench/harness prints and writes a runner from. */
bench::runner_kind bench_kind(const vehicle_kind &v)
{
    bench::runner_kind k = {};
    k.name = v.name;
    k.about = v.about;
    k.gpu = true;
    k.role = v.role;
    return k;
}

std::string note_of(const result &r)
{
    char text[120];
    snprintf(text, sizeof text, "busy: SMs %.0f %%, threads on them %.1f %%", 100 * r.busy, 100 * r.waves);
    const std::string devices = text;
    snprintf(text, sizeof text, ", host %.0f %%", 100 * r.host_us / r.total_us);
    return devices + (r.host_us > 0 ? text : "") + (r.note.empty() ? "" : "; ") + r.note;
}

/* One program on one GPU, by every runner. @return whether every order was kept. */
bool play(const settings &s, const acs_sim_gpu &gpu, const program &p, const program_request &q, bench::result_file &file)
{
    std::vector<bench::runner_kind> kinds;
    std::vector<bench::outcome> done;
    const limits l = limits_of(gpu, p);
    const bench::bounds b = {static_cast<double>(l.critical) / 1000, static_cast<double>(l.work) / 1000,
                             p.devices > 1 ? 0 : p.kernels * static_cast<double>(gpu.device.front_end) / 1000};

    kinds.reserve(vehicle_kinds().size());
    for (const vehicle_kind &v : vehicle_kinds()) {
        if (std::find(s.runners.begin(), s.runners.end(), v.name) == s.runners.end() &&
            std::find(s.runners.begin(), s.runners.end(), "all") == s.runners.end())
            continue;
        const result r = simulate(gpu, p, v);
        kinds.push_back(bench_kind(v));
        bench::outcome o = {&kinds.back(), r.setting, r.left_out.empty() ? note_of(r) : "", r.left_out, r.wrong, {}};
        if (r.left_out.empty())
            o.samples.push_back({r.submit_us, r.total_us});
        done.push_back(o);
    }
    const std::string title = std::string(gpu.name) + ": " + p.name + "; times: " + p.times;
    bench::print_table({title, p.tasks.size(), p.dag.edges, p.dag.depth, b}, done);
    file.row({{"work", p.name},
              {"model", gpu.name},
              {"width", q.shape.width},
              {"steps", q.shape.steps},
              {"seed", static_cast<double>(q.shape.seed)},
              {"devices", p.devices},
              {"backend", std::string("sim")},
              {"kernel_us", q.kernel_us},
              {"ctas", q.ctas},
              {"ops", static_cast<double>(p.tasks.size())},
              {"edges", static_cast<double>(p.dag.edges)},
              {"depth", p.dag.depth},
              {"critical_us", b.critical_us},
              {"work_us", b.work_us}},
             done);
    return std::all_of(done.begin(), done.end(), [](const bench::outcome &o) { return o.wrong.empty(); });
}

bool play_all(const settings &s, bench::result_file &file)
{
    bool right = true;
    size_t programs = 0;
    for (const std::string &name : s.programs)
        programs += find_program(name)->pattern ? s.patterns.size() : 1;
    bench_interrupts_catch();
    bench_progress_begin("acs-sim", static_cast<double>(programs * s.kernel_us.size() * s.gpus.size()));
    for (const std::string &name : s.programs)
        for (const std::string &pattern : find_program(name)->pattern ? s.patterns : std::vector<std::string>{""})
            for (double us : s.kernel_us) {
                program_request q = s.request;
                q.shape.name = pattern;
                q.kernel_us = us;
                const program p = make_program(name, q);
                for (const acs_sim_gpu *gpu : s.gpus) {
                    if (bench_interrupted())
                        return right;
                    right = play(s, *gpu, p, q, file) && right;
                    bench_progress_step((p.name + " on " + gpu->name).c_str());
                }
            }
    return right;
}

/* What the tests' own program does, one program at a time and with each step. */
int replay(std::vector<char *> given)
{
    static char name[] = "acs-sim --replay", backend[] = "--backend", sim[] = "sim", programs[] = "--programs", one[] = "1",
                trace[] = "--trace";
    std::vector<char *> all = {name, backend, sim, programs, one};
    const bool shrinks = std::any_of(given.begin(), given.end(), [](char *a) { return std::string(a) == "--shrink"; });

    if (!shrinks)
        all.push_back(trace);
    all.insert(all.end(), given.begin(), given.end());
    return random_main(static_cast<int>(all.size()), all.data());
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1 && std::string(argv[1]) == "--replay")
        return replay(std::vector<char *>(argv + 2, argv + argc));
    bench::arguments a(argc, argv, "acs-sim", usage_text);
    const settings s = parse(a, std::vector<std::string>(argv + 1, argv + argc));
    bool right;

    look_at(s, a);
    if (s.list)
        return print_list();
    if (s.claims) {
        right = study_claims();
    } else if (s.task_bench) {
        right = study_task_bench();
    } else if (s.scale) {
        right = study_scale(*s.gpus[0], s.scale_devices);
    } else {
        bench::result_file file(s.json, "acs-sim", a.command(), false);
        right = play_all(s, file);
    }
    if (!right)
        fprintf(stderr, "acs-sim: at least one order was broken\n");
    return bench::end_of("acs-sim", s.json, right, "the rest of its --program, --pattern, --kernel-us or --gpu");
}

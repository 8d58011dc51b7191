/*
 * Owns the comparison with the paper's figures: physics and networks on models of its GPUs, the same ways to issue, over
 * a range of kernel times, since the paper gives none. Called by the command line; prints Markdown.
 */
#include <algorithm>
#include <cstdio>

#include "programs.h"
#include "studies.h"

namespace design {

namespace {

const std::vector<std::string> ENVIRONMENTS = {"ant", "grasp", "humanoid", "cheetah", "walker"};
const std::vector<std::string> DYNAMIC = {"instanas", "dynroute", "condconv"};
const std::vector<std::string> STATIC = {"squeezenet", "nasnet", "randwire"};
const std::vector<std::string> WAYS = {"acs-sw-4", "acs-sw-8",    "acs-hw-16", "acs-hw-32", "acs-hw",   "acs-hw-free",
                                       "acs",      "chained",     "graph-build", "kept",    "layers", "gpu-side"};
/* 39 of 100 of ant's kernels have at most 9 blocks then; the paper says about 40. */
const uint32_t WORLDS = 768;
/* With so many times the blocks one stream fills an RTX 3060 about as full as the paper says: 34 of 100 threads. */
const uint32_t MORE_BLOCKS = 5;
const uint32_t TASK_BENCH_STEPS = 32, TASK_BENCH_BLOCKS = 32;
const double KERNEL_US[] = {2, 5, 10, 20, 50};
const double OWN_TIMES = -1;

bool g_right = true;

double total_us(const acs_sim_gpu &gpu, const program &p, const std::string &way, result *all = nullptr)
{
    const result r = simulate(gpu, p, *find_vehicle(way));
    if (!r.wrong.empty()) {
        fprintf(stderr, "acs-sim: %s, %s: %s\n", p.name.c_str(), way.c_str(), r.wrong.c_str());
        g_right = false;
    }
    if (all)
        *all = r;
    return r.total_us;
}

/* Speed-ups over one stream, and what else is compared. */
struct sums {
    std::vector<double> mean, most;
    double busy = 0, occupied = 0, construction = 0;
};

/* Over programs: the mean and the highest speed-up of each way. */
sums compare(const acs_sim_gpu &gpu, const std::vector<program> &programs)
{
    sums s = {std::vector<double>(WAYS.size()), std::vector<double>(WAYS.size()), 0, 0, 0};
    const double n = static_cast<double>(programs.size());

    for (const program &p : programs) {
        result serial;
        const double one = total_us(gpu, p, "stream", &serial);
        s.busy += serial.busy / n;
        s.occupied += serial.waves / n;
        for (size_t w = 0; w < WAYS.size(); w++) {
            const double us = total_us(gpu, p, WAYS[w]);
            if (us <= 0) /* left out */
                continue;
            s.mean[w] += one / us / n;
            s.most[w] = std::max(s.most[w], one / us);
            if (WAYS[w] == "graph-build")
                s.construction += (1 - total_us(gpu, p, "graph-replay") / us) / n;
        }
    }
    return s;
}

void print_head(const char *first)
{
    printf("| %s |", first);
    for (const std::string &way : WAYS)
        printf(" %s |", way.c_str());
    printf(" construction | SMs busy | occupancy |\n|");
    for (size_t k = 0; k < WAYS.size() + 4; k++)
        printf(" --- |");
    printf("\n");
}

void print_row(const std::string &first, const sums &s, bool most)
{
    printf("| %s |", first.c_str());
    for (size_t w = 0; w < WAYS.size(); w++)
        if (s.most[w] <= 0)
            printf(" - |");
        else if (most)
            printf(" %.2f (%.2f) |", s.mean[w], s.most[w]);
        else
            printf(" %.2f |", s.mean[w]);
    printf(" %.0f %% | %.0f %% | %.1f %% |\n", 100 * s.construction, 100 * s.busy, 100 * s.occupied);
}

std::vector<program> make_all(const std::vector<std::string> &names, const program_request &q)
{
    std::vector<program> list;
    for (const std::string &name : names)
        list.push_back(make_program(name, q));
    return list;
}

std::string times_name(double us)
{
    char text[32];
    if (us < 0)
        return "own times";
    snprintf(text, sizeof text, "%g us", us);
    return text;
}

void set_times(std::vector<program> &programs, double us)
{
    for (program &p : programs)
        set_block_time(p, static_cast<uint64_t>(us * 1000));
}

/* The paper profiled launches and synchronisation of 5 to 20 us: a host whose calls are as slow as that. */
acs_sim_gpu slow_host(const acs_sim_gpu &gpu)
{
    acs_sim_gpu slow = gpu;
    slow.host.launch = 5000;
    slow.host.copy = 5000;
    slow.device.host_visible = 15000;
    slow.host.synchronize = 5000;
    return slow;
}

/* More worlds: the same launches with more blocks. */
void simulations(std::vector<program> programs)
{
    const acs_sim_gpu &small = *acs_sim_gpu_find("rtx3060");
    const acs_sim_gpu slow = slow_host(small);

    printf("### Simulation: speed-up over one stream, mean (highest) of five environments\n\n");
    print_head("GPU, kernel time");
    for (const acs_sim_gpu *gpu : {&small, &slow})
        for (double us : KERNEL_US) {
            set_times(programs, us);
            print_row(gpu->name + std::string(gpu == &slow ? ", slow host, " : ", ") + times_name(us),
                      compare(*gpu, programs), true);
        }
    set_times(programs, 10);
    for (const char *name : {"rtx3070", "a100", "h200"})
        print_row(name + std::string(", 10 us"), compare(*acs_sim_gpu_find(name), programs), true);
    std::vector<program> larger = programs;
    for (program &p : larger)
        for (task &t : p.tasks)
            t.kernel.ctas *= MORE_BLOCKS;
    for (double us : {5.0, 10.0, 20.0}) {
        set_times(larger, us);
        print_row("rtx3060, " + times_name(us) + ", " + std::to_string(MORE_BLOCKS * WORLDS) + " worlds",
                  compare(small, larger), true);
    }
    printf("\n### Simulation: each environment, rtx3060, kernels of 10 us\n\n");
    print_head("environment");
    for (const program &p : programs)
        print_row(p.name + " (" + std::to_string(p.kernels) + " kernels, depth " + std::to_string(p.dag.depth) + ")",
                  compare(small, {p}), false);
    printf("\n");
}

void networks(const char *title, const std::vector<std::string> &names)
{
    const acs_sim_gpu &gpu = *acs_sim_gpu_find("rtx3070");
    program_request q;

    q.size = "normal";
    const std::vector<program> own = make_all(names, q);
    std::vector<program> programs = own;
    printf("### %s networks: speed-up over one stream, rtx3070, mean (highest)\n\n", title);
    print_head("kernel time");
    print_row(times_name(OWN_TIMES), compare(gpu, own), true);
    for (double us : KERNEL_US) {
        set_times(programs, us);
        print_row(times_name(us), compare(gpu, programs), true);
    }
    printf("\n### Each of them, own times\n\n");
    print_head("network");
    for (const program &p : own)
        print_row(p.name + " (" + std::to_string(p.kernels) + " kernels, depth " + std::to_string(p.dag.depth) + ")",
                  compare(gpu, {p}), false);
    printf("\n");
}

/* Patterns as Task Bench has them; several blocks each, so that 32 side by side fill the smaller GPUs. */
std::vector<program> task_bench(double us)
{
    std::vector<program> list;
    for (const char *name : {"trivial", "no_comm", "stencil_1d", "stencil_1d_periodic", "dom", "tree", "fft", "nearest",
                             "spread", "all_to_all"}) {
        program_request q;
        q.shape.name = name;
        q.shape.steps = TASK_BENCH_STEPS;
        q.ctas = TASK_BENCH_BLOCKS;
        q.kernel_us = us;
        list.push_back(make_program("pattern", q));
    }
    return list;
}

} // namespace

bool study_task_bench()
{
    g_right = true;
    printf("Speed-up over one stream; 32 tasks a step, %u steps, %u blocks of 64 threads a task.\n\n"
           "### Mean (highest) of the ten patterns\n\n",
           TASK_BENCH_STEPS, TASK_BENCH_BLOCKS);
    print_head("GPU, kernel time");
    for (const char *name : {"rtx3060", "rtx3070", "a100", "h200"})
        for (double us : {2.0, 5.0, 20.0})
            print_row(name + (", " + times_name(us)), compare(*acs_sim_gpu_find(name), task_bench(us)), true);
    printf("\n### Each pattern, h200, kernels of 5 us\n\n");
    print_head("pattern");
    for (const program &p : task_bench(5))
        print_row(p.name + " (depth " + std::to_string(p.dag.depth) + ")", compare(*acs_sim_gpu_find("h200"), {p}), false);
    printf("\n");
    return g_right;
}

bool study_claims()
{
    program_request q;

    g_right = true;
    q.worlds = WORLDS;
    printf("The paper: ACS-SW 1.66 on average and up to 1.79 simulated (RTX 3070), up to 1.87 on a real RTX 3060; ACS-HW\n"
           "up to 2.19; a CUDA graph below 1, its construction 47 %% of the time; a window of 32 is 4.5 %% faster than one\n"
           "of 16. Dynamic networks: ACS-SW 1.05, ACS-HW 1.3; static ones 1.16 and 1.31.\n\n");
    simulations(make_all(ENVIRONMENTS, q));
    networks("Dynamic", DYNAMIC);
    networks("Static", STATIC);
    return g_right;
}

} // namespace design

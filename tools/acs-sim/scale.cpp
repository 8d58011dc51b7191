/*
 * Owns the study of many devices: programs dealt out by place, issued through one window by one thread, through one window
 * by a thread per device, and through a window per device. Called by the command line; prints Markdown.
 */
#include <algorithm>
#include <cstdio>

#include "programs.h"
#include "studies.h"

namespace design {

namespace {

const char *const WAYS[] = {"chained", "chained-issuers", "chained-windows"};
const uint32_t PLACES = 8, STEPS = 8;

/* us per step of the program, and who was busiest. @return whether the order was kept. */
bool print_row(const acs_sim_gpu &gpu, const program_request &q)
{
    const program p = make_program("pattern", q);
    const limits l = limits_of(gpu, p);
    bool right = true;

    printf("| %u | %u | %.1f |", q.devices, p.kernels, static_cast<double>(l.largest()) / 1000 / q.shape.steps);
    for (const char *way : WAYS) {
        const result r = simulate(gpu, p, *find_vehicle(way));
        if (!r.wrong.empty())
            fprintf(stderr, "acs-sim: %s on %u devices: %s\n", way, q.devices, r.wrong.c_str());
        right = right && r.wrong.empty();
        printf(" %.1f | %s |", r.total_us / q.shape.steps, r.note.c_str());
    }
    printf("\n");
    fflush(stdout);
    return right;
}

bool print_table(const acs_sim_gpu &gpu, const char *title, program_request q, bool weak, uint32_t most)
{
    bool right = true;

    printf("### %s\n\n| devices | kernels | bound | one thread | busy | a thread per device | busy | a window per device | "
           "busy |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", title);
    for (q.devices = 1; q.devices <= most; q.devices *= 4) {
        q.shape.width = (weak ? q.devices : most) * PLACES;
        right = print_row(gpu, q) && right;
    }
    printf("\n");
    return right;
}

} // namespace

bool study_scale(const acs_sim_gpu &gpu, uint32_t most)
{
    program_request q;
    bool right = true;

    q.kernel_us = 20;
    q.shape.steps = STEPS;
    q.ctas = 4;
    printf("us per step on models of %s; kernels of %g us and %u blocks, %u steps; a task reads %llu KiB of a neighbour on\n"
           "another device. The bound is the longest path, or the blocks' time.\n\n",
           gpu.name, q.kernel_us, q.ctas, q.shape.steps, static_cast<unsigned long long>(q.halo_bytes / 1024));
    for (const char *pattern : {"no_comm", "stencil_1d"}) {
        q.shape.name = pattern;
        const std::string name = pattern;
        right = print_table(gpu, (name + ", 8 places per device (weak scaling)").c_str(), q, true, most) && right;
        const std::string all = std::to_string(most * PLACES) + " places in all (strong scaling)";
        right = print_table(gpu, (name + ", " + all).c_str(), q, false, most) && right;
    }
    return right;
}

} // namespace design

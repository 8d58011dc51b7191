/*
 * Kernels side by side, one that reads what they wrote, and a wait for that, again and again: what a turn takes, by how many
 * there are and how long they are, and how many streams they got. Prints a line each. Given a number of blocks, of 256
 * threads then, it takes other sizes, and prints how many bundles and nodes of graphs there were. Built by hand:
 *
 *     nvcc -std=c++17 -O2 -Iinclude bench/experiments/bursts.cu build/release/libacs.a -ldl -lm
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "acs.h"

namespace {

enum { TURNS = 200, CELL = 64 };

unsigned g_blocks = 4, g_threads = 64;

__global__ void spin(unsigned ns)
{
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

const acs_kernel g_kernel = ACS_KERNEL_INIT("spin", reinterpret_cast<const void *>(spin), nullptr);
const acs_site g_site = {"spin", __FILE__, __LINE__};

void require(bool ok)
{
    if (ok)
        return;
    acs_error error = {};
    error.size = sizeof error;
    (void)acs_last_error(&error);
    fprintf(stderr, "bursts: %s\n", error.text);
    exit(1);
}

acs_op launch(acs_context *context, unsigned us, const acs_segment (&uses)[2])
{
    const unsigned ns = us * 1000;
    const acs_arg arg = {&ns, sizeof ns, ACS_ARG_VALUE};
    acs_launch_params p = {};
    p.size = sizeof p;
    p.kernel = &g_kernel;
    p.grid = {g_blocks, 1, 1};
    p.block = {g_threads, 1, 1};
    p.args = {&arg, 1};
    p.uses.segments = uses;
    p.uses.count = 2;
    p.site = &g_site;
    const acs_op op = acs_launch(context, &p);
    require(op != 0);
    return op;
}

double turn_us(acs_context *context, char *memory, unsigned wide, unsigned us, int turns)
{
    const auto begin = std::chrono::steady_clock::now();
    for (int turn = 0; turn < turns; turn++) {
        for (unsigned i = 1; i <= wide; i++)
            launch(context, us, {ACS_IN(memory, CELL), ACS_OUT(memory + i * CELL, CELL)});
        const acs_op last = launch(context, us, {ACS_IN(memory + CELL, wide * CELL), ACS_OUT(memory, CELL)});
        require(acs_wait(context, last) == ACS_OK);
    }
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / turns;
}

void play(int issue, unsigned wide, unsigned us)
{
    acs_options options;
    acs_context *context = nullptr;
    void *memory = nullptr;
    acs_statistics stats = {};
    stats.size = sizeof stats;
    require(acs_options_init(&options, sizeof options) == ACS_OK);
    options.backend = ACS_BACKEND_CUDA;
    options.issue = issue;
    require(acs_open(&options, &context) == ACS_OK);
    require(acs_malloc(context, 1 << 16, ACS_MEMORY_DEVICE, &memory) == ACS_OK);
    char *const cells = static_cast<char *>(memory);
    (void)turn_us(context, cells, wide, us, TURNS);
    const double took = turn_us(context, cells, wide, us, TURNS);
    require(acs_stats(context, &stats) == ACS_OK);
    printf("%s wide %2u us %3u: %7.1f us a turn, slots %2llu", issue == ACS_ISSUE_AUTO ? "auto" : "launch", wide, us, took,
           static_cast<unsigned long long>(stats.slots_used));
    if (g_threads == 256)
        printf(", bundles %llu, nodes %llu", static_cast<unsigned long long>(stats.bundles),
               static_cast<unsigned long long>(stats.nodes_built));
    if (us == 50) {
        const double soon = turn_us(context, cells, wide, 2, 5 * TURNS);
        printf("; then 2 us: %.1f, %.1f us a turn", soon, turn_us(context, cells, wide, 2, TURNS));
    }
    printf("\n");
    require(acs_close(context) == ACS_OK);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1) {
        g_blocks = static_cast<unsigned>(atoi(argv[1]));
        g_threads = 256;
        for (int issue : {ACS_ISSUE_LAUNCH, ACS_ISSUE_AUTO})
            for (unsigned wide : {8u, 16u, 32u, 64u})
                for (unsigned us : {0u, 2u, 5u, 10u, 20u})
                    play(issue, wide, us);
        return 0;
    }
    for (int issue : {ACS_ISSUE_LAUNCH, ACS_ISSUE_AUTO})
        for (unsigned wide : {4u, 5u, 8u, 16u, 32u})
            for (unsigned us : {0u, 2u, 5u, 10u, 20u, 50u, 100u})
                play(issue, wide, us);
    return 0;
}

/*
 * Which lives of blocks are played (lives.c): on all backends without a GPU, in the ways that differ, or as the arguments
 * say.
 */
#include "lives.h"
#include "sanitizers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each way. A sanitizer makes each step slower: fewer show what it looks for. */
enum { STEPS = UNDER_THREAD_SANITIZER ? 6000 : UNDER_ADDRESS_SANITIZER ? 30000 : 60000 };
enum { SEEDS_MOST = 30, STEPS_TO_MOVE = 60000 };

/* Where memory is short enough for a block to need pages of others: in most sequences, but in which hangs on addresses. */
static int run_until_pages_move(settings s)
{
    int result = 0;
    s.options.backend = ACS_BACKEND_SIM;
    s.options.memory_slack = 1 << 20;
    s.options.memory_limit = 9 << 20;
    s.options.faults = s.options.rename = 0;
    s.options.devices = s.threads = 1;
    s.options.policy = ACS_POLICY_AUTO;
    s.lazy = 90;
    s.group = 0;
    s.steps = STEPS_TO_MOVE;
    for (uint64_t i = 0; i < SEEDS_MOST && !result && !g_lives.moved; i++, s.seed++)
        result = lives_run(&s);
    return result;
}

/* What a test of its own runs: each backend without a GPU, in the ways that differ. */
static int run_all(settings s)
{
    static const struct {
        int32_t backend;
        uint32_t threads;
        int64_t slack, limit, faults, workers, rename;
        int32_t pool;
        uint32_t lazy, group;
        int64_t devices;
    } ways[] = {
        {ACS_BACKEND_SIM, 1, 0, 0, 0, 2, 0, ACS_POOL_ON, 0, 0, 1},
        {ACS_BACKEND_SIM, 1, 100000, 20 << 20, 5, 1, 0, ACS_POOL_ON, 0, 0, 1},
        {ACS_BACKEND_SIM, 1, 1 << 28, 10 << 20, 0, 1, -1, ACS_POOL_ON, 80, 0, 1},
        {ACS_BACKEND_SIM, 1, 1 << 28, 0, 0, 3, 1 << 20, ACS_POOL_ON, 10, 0, 1},
        {ACS_BACKEND_SIM, 1, 0, 0, 5, 1, 0, ACS_POOL_OFF, 0, 0, 1},
        {ACS_BACKEND_SIM, 1, 1 << 20, 9 << 20, 0, 2, 0, ACS_POOL_ON, 90, 0, 1},
        {ACS_BACKEND_HOST, 3, 0, 0, 0, 1, 0, ACS_POOL_ON, 0, 0, 1},
        {ACS_BACKEND_HOST, 1, 0, 10 << 20, 0, 0, 0, ACS_POOL_ON, 90, 0, 1},
        {ACS_BACKEND_HOST, 3, 1 << 28, 0, 0, 2, -1, ACS_POOL_ON, 20, 0, 1},
        {ACS_BACKEND_HOST, 3, 1 << 20, 14 << 20, 0, 2, 0, ACS_POOL_ON, 90, 0, 1},
        {ACS_BACKEND_SIM, 1, 1 << 20, 0, 0, 2, 0, ACS_POOL_ON, 80, 60, 1},
        {ACS_BACKEND_SIM, 1, 1 << 20, 12 << 20, 0, 1, -1, ACS_POOL_ON, 80, 40, 1},
        {ACS_BACKEND_HOST, 3, 0, 0, 0, 2, -1, ACS_POOL_ON, 60, 60, 1},
        {ACS_BACKEND_HOST, 1, 0, 0, 0, 0, 0, ACS_POOL_OFF, 60, 60, 1},
        {ACS_BACKEND_SIM, 1, 1 << 20, 0, 0, 2, 0, ACS_POOL_ON, 50, 0, 3},
        {ACS_BACKEND_SIM, 1, 1 << 20, 0, 10, 2, 0, ACS_POOL_ON, 60, 0, 3},
        {ACS_BACKEND_SIM, 1, 1 << 20, 11 << 20, 0, 1, 0, ACS_POOL_ON, 90, 0, 2},
        {ACS_BACKEND_SIM, 1, 0, 12 << 20, 0, 2, 0, ACS_POOL_ON, 80, 40, 8},
        {ACS_BACKEND_HOST, 3, 1 << 20, 12 << 20, 0, 1, 0, ACS_POOL_ON, 80, 0, 2},
        {ACS_BACKEND_HOST, 2, 0, 0, 0, 0, 0, ACS_POOL_ON, 40, 30, 4},
    };
    const uint64_t steps = s.steps;
    int result = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !result; i++) {
        if (UNDER_THREAD_SANITIZER && ways[i].backend == ACS_BACKEND_SIM) /* one thread plays all */
            continue;
        s.options.backend = ways[i].backend;
        s.options.memory_slack = ways[i].slack;
        s.options.memory_limit = ways[i].limit;
        s.options.faults = ways[i].faults;
        s.options.workers = ways[i].workers;
        s.options.rename = ways[i].rename;
        s.options.pool = ways[i].pool;
        s.threads = ways[i].threads;
        s.lazy = ways[i].lazy;
        s.group = ways[i].group;
        s.options.devices = ways[i].devices;
        s.steps = steps / (ways[i].devices > 1 ? ACS_POLICY_COUNT : 1);
        for (s.options.policy = 0; s.options.policy < ACS_POLICY_COUNT && !result; s.options.policy++)
            if (s.options.devices > 1 || s.options.policy == ACS_POLICY_AUTO)
                result = lives_run(&s);
    }
    if (UNDER_THREAD_SANITIZER)
        return result; /* what threads met is required of no run */
    if (!result)
        result = run_until_pages_move(s);
    bool tried = g_lives.spilled && g_lives.shared && g_lives.transfers && g_lives.moved;
    if (!result && !tried)
        fprintf(stderr, "not put to the test: %llu bytes spilled, %llu shared in groups, %llu moved, %llu transfers\n",
                (unsigned long long)g_lives.spilled, (unsigned long long)g_lives.shared,
                (unsigned long long)g_lives.moved, (unsigned long long)g_lives.transfers);
    return result || !tried;
}

int main(int argc, char **argv)
{
    settings s = {.steps = STEPS, .seed = 1, .threads = 1};
    bool all = true;
    (void)acs_options_init(&s.options, sizeof s.options);
    s.options.pool = ACS_POOL_ON;
    (void)snprintf(s.options.fault_kinds, sizeof s.options.fault_kinds, "launch,copy,bounce");
    for (int i = 1; i + 1 < argc; i += 2) {
        int64_t number = strtoll(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--steps"))
            s.steps = (uint64_t)number;
        else if (!strcmp(argv[i], "--seed"))
            s.seed = (uint64_t)number;
        else if (!strcmp(argv[i], "--slack"))
            s.options.memory_slack = number;
        else if (!strcmp(argv[i], "--limit"))
            s.options.memory_limit = number;
        else if (!strcmp(argv[i], "--devices"))
            s.options.devices = number;
        else if (!strcmp(argv[i], "--policy"))
            s.options.policy = (int32_t)number;
        else if (!strcmp(argv[i], "--faults"))
            s.options.faults = number;
        else if (!strcmp(argv[i], "--rename"))
            s.options.rename = number;
        else if (!strcmp(argv[i], "--pool"))
            s.options.pool = !strcmp(argv[i + 1], "auto") ? ACS_POOL_AUTO : !strcmp(argv[i + 1], "off") ? ACS_POOL_OFF
                                                                                                        : ACS_POOL_ON;
        else if (!strcmp(argv[i], "--lazy"))
            s.lazy = (uint32_t)number;
        else if (!strcmp(argv[i], "--group"))
            s.group = (uint32_t)number;
        else if (!strcmp(argv[i], "--threads") && number >= 1 && number <= THREADS_MOST)
            s.threads = (uint32_t)number;
        else if (!strcmp(argv[i], "--backend"))
            all = (s.options.backend = !strcmp(argv[i + 1], "cuda")  ? ACS_BACKEND_CUDA
                                       : !strcmp(argv[i + 1], "host") ? ACS_BACKEND_HOST
                                                                      : ACS_BACKEND_SIM) < 0;
        else
            argc = 0;
    }
    if (argc % 2 == 0) {
        fprintf(stderr,
                "usage: %s [--steps N] [--seed N] [--backend cuda|host|sim [--threads N] [--pool on|off|auto] [--slack B]"
                " [--limit B] [--rename B] [--lazy PERCENT] [--group STEPS] [--devices N]"
                " [--policy N] [--faults N]]\n", argv[0]);
        return 2;
    }
    if (s.group && s.options.faults) { /* a held op has no number yet by which to ask how it ended */
        fprintf(stderr, "%s: --group does not go with --faults\n", argv[0]);
        return 2;
    }
    return all ? run_all(s) : lives_run(&s);
}

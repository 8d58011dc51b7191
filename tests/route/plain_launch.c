/*
 * Launches kernels over the double of the CUDA driver and prints which functions of the library that took: from before the
 * first launch until the wait has returned. Run by tests/route/route. With ACS_WORKERS=0 the program has one thread, so the
 * route is the same each time; what runs only once in a context (the first use of a kernel) is done before.
 *
 *   plain_launch launch   ACS_ISSUE=launch: one kernel, and a wait for it
 *   plain_launch bundles  ACS_ISSUE=replay ACS_REPEATS=named: 256 kernels in 8 chains and their sum, again and again, then
 *                         a wait
 *   plain_launch repeats  the same with the default options: the library finds that the kernels recur, and replays them
 *   plain_launch locks    with a worker, which sleeps: how many locks the caller takes in a launch into an idle context, and
 *                         in its wait: the fewest of many rounds, since a worker that is about to sleep still looks. Third
 *                         figure: 0 if the launch was issued when the call returned, 1 if it was left to a worker
 *   plain_launch fill     the same of a small acs_memset, which becomes a kernel
 */
#include "recorder.h"

#include "acs.h"
#include "api/threads.h"
#include "cuda/twin.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 8, STEPS = 32, WARM_ROUNDS = 9, ROUNDS = 8, LOCK_ROUNDS = 200 };

static acs_context *g_context;
static acs_kernel g_add;
static float *g_memory;
static int g_bad;

static void check(bool good, const char *what)
{
    if (good)
        return;
    acs_error error = {0};
    acs_last_error(&error);
    fprintf(stderr, "plain_launch: %s: %s\n", what, error.text);
    g_bad = 1;
}

/* to += from: one float each. */
static acs_op launch_add(float *to, const float *from)
{
    const acs_arg args[] = {{&to, sizeof to, ACS_ARG_POINTER}, {&from, sizeof from, ACS_ARG_POINTER}};
    const uint64_t to_at = (uint64_t)(uintptr_t)to, from_at = (uint64_t)(uintptr_t)from;
    const acs_segment segments[] = {acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, to_at, sizeof *to, 1, 0),
                                    acs_make_segment(ACS_EXTENT_BYTES, ACS_READ, from_at, sizeof *from, 1, 0)};
    const acs_launch_params params = {.size = sizeof params, .kernel = &g_add, .grid = {1, 1, 1}, .block = {32, 1, 1},
                                      .args = {args, 2}, .uses = {.segments = segments, .count = 2}};
    acs_op op = acs_launch(g_context, &params);
    check(op != 0, "acs_launch");
    return op;
}

static void run_one(void)
{
    acs_op op = launch_add(&g_memory[1], &g_memory[0]);
    check(acs_wait(g_context, op) == ACS_OK, "acs_wait");
}

static void run_chains(void)
{
    for (int step = 0; step < STEPS; step++)
        for (int chain = 1; chain <= CHAINS; chain++)
            launch_add(&g_memory[chain], &g_memory[step == STEPS - 1 ? chain - 1 : chain + CHAINS]);
    check(acs_sync(g_context) == ACS_OK, "acs_sync");
}

static acs_op launch_one(void)
{
    return launch_add(&g_memory[1], &g_memory[0]);
}

static acs_op fill_one(void)
{
    acs_op op = acs_memset(g_context, g_memory, 0, sizeof *g_memory);
    check(op != 0, "acs_memset");
    return op;
}

static void keep_less(unsigned *least, unsigned count)
{
    *least = count < *least ? count : *least;
}

static void count_locks(acs_op (*queue)(void))
{
    unsigned launch = UINT_MAX, wait = UINT_MAX, late = 1;
    for (int i = 0; i < LOCK_ROUNDS && !g_bad; i++) {
        while (!acs_workers_asleep(g_context))
            sched_yield();
        const unsigned before = recorder_locks();
        const uint64_t issued = twin_count("cuLaunchKernelEx");
        acs_op op = queue();
        const unsigned launched = recorder_locks();
        keep_less(&late, twin_count("cuLaunchKernelEx") == issued);
        check(acs_wait(g_context, op) == ACS_OK, "acs_wait");
        const unsigned waited = recorder_locks();
        keep_less(&launch, launched - before);
        keep_less(&wait, waited - launched);
    }
    printf("locks %u %u %u\n", launch, wait, late);
}

static void open_context(int32_t issue, int32_t repeats, int64_t workers)
{
    static const uint32_t sizes[] = {8, 8};
    static const char symbol;
    const twin_kernel_spec spec = {.name = "add", .symbol = &symbol, .param_count = 2, .param_bytes = sizes};
    acs_options options;
    twin_reset();
    twin_set_strategy(TWIN_EAGER);
    (void)twin_kernel(&spec);
    g_add = (acs_kernel){"add", &symbol, NULL, ACS_KERNEL_FUNCTION, 0};
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = workers;
    options.issue = issue;
    options.repeats = repeats;
    check(acs_open(&options, &g_context) == ACS_OK, "acs_open");
    void *memory = NULL;
    check(!g_bad && acs_malloc(g_context, 4096, ACS_MEMORY_DEVICE, &memory) == ACS_OK, "acs_malloc");
    g_memory = memory;
}

static void record(void (*run)(void))
{
    for (int i = 0; i < WARM_ROUNDS && !g_bad; i++)
        run();
    recorder_start();
    for (int i = 0; i < ROUNDS && !g_bad; i++)
        run();
    recorder_stop();
    recorder_print();
}

int main(int argc, char **argv)
{
    const char *mode = argc == 2 ? argv[1] : "";
    const bool fill = strcmp(mode, "fill") == 0, locks = fill || strcmp(mode, "locks") == 0;
    const bool repeats = strcmp(mode, "repeats") == 0, chains = repeats || strcmp(mode, "bundles") == 0;
    if (!locks && !chains && strcmp(mode, "launch") != 0) {
        fprintf(stderr, "usage: plain_launch launch|bundles|repeats|locks|fill\n");
        return 2;
    }
    const int32_t chosen = repeats || fill ? ACS_ISSUE_AUTO : chains ? ACS_ISSUE_REPLAY : ACS_ISSUE_LAUNCH;
    open_context(chosen, repeats ? ACS_REPEATS_AUTO : ACS_REPEATS_NAMED, locks);
    if (fill) /* without its device code a fill stays a fill */
        check(g_context->backend->ops->decider(g_context->backend) != NULL, "device code");
    if (locks)
        count_locks(fill ? fill_one : launch_one);
    else
        record(chains ? run_chains : run_one);
    check(acs_close(g_context) == ACS_OK, "acs_close");
    return g_bad;
}

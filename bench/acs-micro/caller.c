/*
 * Group "caller": what a launch costs the thread that makes it. Bursts smaller than the FIFO are launched inside the
 * measured time and drained outside it, so that no launch waits. With no worker nothing else runs; with a worker the
 * window fills beside the launches. Called by main.
 */
#include "micro.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { BURST = 256, FIFO = 1024, FLOATS = 64 };
enum { SMALL_ARGS = 4, SMALL_SEGMENTS = 3, LARGE_ARGS = 24, LARGE_SEGMENTS = 20 };

static void body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static const acs_kernel g_kernel = ACS_KERNEL_HOST_INIT("nothing", body);
static float g_memory[LARGE_SEGMENTS][FLOATS];

/* Lists made once: acs_launch alone is measured. */
static void *g_pointers[LARGE_ARGS];
static acs_arg g_args[LARGE_ARGS];
static acs_segment g_segments[LARGE_SEGMENTS];

static void make_lists(void)
{
    for (int i = 0; i < LARGE_ARGS; i++) {
        g_pointers[i] = g_memory[i % LARGE_SEGMENTS];
        g_args[i] = (acs_arg){&g_pointers[i], sizeof g_pointers[i], ACS_ARG_POINTER};
    }
    for (int i = 0; i < LARGE_SEGMENTS; i++)
        g_segments[i] = i % 3 ? ACS_IN(g_memory[i], sizeof g_memory[i]) : ACS_INOUT(g_memory[i], sizeof g_memory[i]);
}

static acs_op launch_lists(acs_context *context, size_t args, size_t segments)
{
    static const acs_site site = {"nothing", __FILE__, __LINE__};
    acs_launch_params p = {.size = sizeof p, .kernel = &g_kernel, .grid = {1, 1, 1}, .block = {64, 1, 1},
                           .args = {g_args, args}, .uses = {.segments = g_segments, .count = segments}, .site = &site};
    return acs_launch(context, &p);
}

static acs_op launch_small(acs_context *context)
{
    return launch_lists(context, SMALL_ARGS, SMALL_SEGMENTS);
}

static acs_op launch_large(acs_context *context)
{
    return launch_lists(context, LARGE_ARGS, LARGE_SEGMENTS);
}

/* The macro as a program writes it: lists are built at each call. */
static acs_op macro_small(acs_context *context)
{
    float *x = g_memory[0], *y = g_memory[1], *z = g_memory[2];
    int n = FLOATS;
    size_t bytes = sizeof g_memory[0];
    return ACS_LAUNCH_ON(context, &g_kernel, 1, 64, 0, ACS_ARGS(n, x, y, z),
                         ACS_USES(ACS_INOUT(x, bytes), ACS_IN(y, bytes), ACS_IN(z, bytes)));
}

/* The default context is opened from the environment that main set. */
static acs_op macro_default(acs_context *context)
{
    (void)context;
    float *x = g_memory[0], *y = g_memory[1], *z = g_memory[2];
    int n = FLOATS;
    size_t bytes = sizeof g_memory[0];
    return ACS_LAUNCH(&g_kernel, 1, 64, 0, ACS_ARGS(n, x, y, z),
                      ACS_USES(ACS_INOUT(x, bytes), ACS_IN(y, bytes), ACS_IN(z, bytes)));
}

static acs_op macro_large(acs_context *context)
{
    float(*m)[FLOATS] = g_memory;
    size_t bytes = sizeof g_memory[0];
    return ACS_LAUNCH_ON(
        context, &g_kernel, 1, 64, 0,
        ACS_ARGS(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9], m[10], m[11], m[12], m[13], m[14], m[15],
                 m[16], m[17], m[18], m[19], m[0], m[1], m[2], m[3]),
        ACS_USES(ACS_INOUT(m[0], bytes), ACS_IN(m[1], bytes), ACS_IN(m[2], bytes), ACS_INOUT(m[3], bytes),
                 ACS_IN(m[4], bytes), ACS_IN(m[5], bytes), ACS_INOUT(m[6], bytes), ACS_IN(m[7], bytes),
                 ACS_IN(m[8], bytes), ACS_INOUT(m[9], bytes), ACS_IN(m[10], bytes), ACS_IN(m[11], bytes),
                 ACS_INOUT(m[12], bytes), ACS_IN(m[13], bytes), ACS_IN(m[14], bytes), ACS_INOUT(m[15], bytes),
                 ACS_IN(m[16], bytes), ACS_IN(m[17], bytes), ACS_INOUT(m[18], bytes), ACS_IN(m[19], bytes)));
}

static int measure(const micro_options *options, acs_context *context, const char *name,
                   acs_op (*launch)(acs_context *))
{
    static micro_samples samples;
    micro_samples_clear(&samples);
    for (uint32_t warm = 0; warm < 4 || !micro_samples_full(&samples, options); warm++) {
        acs_op last = 0;
        uint64_t start = acs_clock_ns();
        for (int i = 0; i < BURST; i++)
            last = launch(context);
        uint64_t end = acs_clock_ns();
        if (!last || acs_sync(context) != ACS_OK) {
            acs_error error = {.size = sizeof error};
            acs_last_error(&error);
            fprintf(stderr, "acs-micro: %s: %s\n", name, error.text);
            return 1;
        }
        if (warm >= 4)
            micro_samples_add(&samples, end - start, BURST);
    }
    micro_figure("caller", name, &samples, -1);
    return 0;
}

/* One pass of a repeat whose kernels are one piece. The last one seals it, outside the measured time. */
static bool run_pass(acs_context *context, uint64_t *ns)
{
    acs_op last = 0;
    if (acs_repeat_begin(context, 1) != ACS_OK)
        return false;
    uint64_t start = acs_clock_ns();
    for (int i = 0; i < BURST - 1; i++)
        last = launch_small(context);
    *ns = acs_clock_ns() - start;
    return last && launch_small(context) && acs_repeat_end(context) == ACS_OK && acs_sync(context) == ACS_OK;
}

/* What a launch costs that an earlier pass made. The host backend has no replays, so this is on the simulated GPU. */
static int measure_pass(const micro_options *options, acs_context *context, const char *name)
{
    static micro_samples samples;
    acs_statistics s = {.size = sizeof s};
    uint64_t ns;
    micro_samples_clear(&samples);
    for (uint32_t warm = 0; warm < 4 || !micro_samples_full(&samples, options); warm++) {
        if (!run_pass(context, &ns)) {
            fprintf(stderr, "acs-micro: %s: a pass failed\n", name);
            return 1;
        }
        if (warm >= 4)
            micro_samples_add(&samples, ns, BURST - 1);
    }
    if (acs_stats(context, &s) != ACS_OK || s.unmatched > 2 * BURST) {
        fprintf(stderr, "acs-micro: %s: %llu kernels did not recur\n", name, (unsigned long long)s.unmatched);
        return 1;
    }
    micro_figure("caller", name, &samples, -1);
    return 0;
}

static acs_context *open_context(int backend, int workers)
{
    acs_options o;
    acs_context *context = NULL;
    if (acs_options_init(&o, sizeof o) != ACS_OK)
        return NULL;
    o.backend = backend;
    o.sim_order = ACS_SIM_ORDER_TIME;
    o.workers = workers;
    o.fifo = FIFO;
    return acs_open(&o, &context) == ACS_OK ? context : NULL;
}

int micro_caller(const micro_options *options)
{
    acs_context *alone = open_context(ACS_BACKEND_HOST, 0), *beside = open_context(ACS_BACKEND_HOST, 1);
    acs_context *simulated = open_context(ACS_BACKEND_SIM, 1);
    make_lists();
    int bad = !alone || !beside || !simulated;
    if (bad)
        fprintf(stderr, "acs-micro: cannot open a context\n");
    bad = bad || measure(options, alone, "acs_launch, 4 arguments, 3 segments", launch_small) ||
          measure(options, alone, "ACS_LAUNCH_ON, 4 arguments, 3 segments", macro_small) ||
          measure(options, acs_default(), "ACS_LAUNCH, 4 arguments, 3 segments", macro_default) ||
          measure(options, alone, "acs_launch, 24 arguments, 20 segments", launch_large) ||
          measure(options, alone, "ACS_LAUNCH_ON, 24 arguments, 20 segments", macro_large) ||
          measure(options, beside, "acs_launch, 4 arguments, 3 segments, beside a worker", launch_small) ||
          measure(options, beside, "acs_launch, 24 arguments, 20 segments, beside a worker", launch_large) ||
          measure_pass(options, simulated, "acs_launch, 4 arguments, 3 segments, recurs in a pass");
    acs_close(alone);
    acs_close(beside);
    acs_close(simulated);
    return bad;
}

/*
 * Owns a play of the real core: opens a context on the sim backend by time, launches the tasks with footprints that give
 * just their edges, and reads virtual time. Called by core.cpp. Looks inside the library, for that time and for what a
 * kernel needs.
 *
 * Each task writes a cell of its own and reads those of its upstream tasks. Cells are names for bytes that nobody touches.
 */
#include "core_play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/sim.h"
#include "api/context.h"
#include "simulator/sim_driver.h"

enum { CELL_BYTES = 64 };
#define FIRST_CELL ((uint64_t)1 << 32)

typedef struct play {
    const core_task *tasks;
    acs_op *ops;
    acs_segment *segments; /* of the task in hand */
    bool *ended;
    uint32_t early;
} play;

typedef struct play_args {
    play *all;
    uint64_t task;
} play_args;

static acs_segment cell(uint32_t task, acs_access access)
{
    const void *place = (const void *)(uintptr_t)(FIRST_CELL + (uint64_t)task * CELL_BYTES); /* never looked into */
    return access == ACS_READ ? ACS_IN(place, CELL_BYTES) : ACS_OUT(place, CELL_BYTES);
}

/* Runs when the machine has run the kernel, in that order. */
static void body(const acs_grid *grid, void *const *args)
{
    const play_args *a = args[0];
    const core_task *t = &a->all->tasks[a->task];

    (void)grid;
    for (uint32_t k = 0; k < t->up_count; k++)
        a->all->early += !a->all->tasks[t->up[k]].wait && !a->all->ended[t->up[k]];
    a->all->ended[a->task] = true;
}

static void describe(void *user, const acs_record *op, acs_sim_kernel *kernel)
{
    const play_args *a = (const play_args *)op->arg_bytes;

    (void)user;
    *kernel = a->all->tasks[a->task].kernel;
}

static bool launch(acs_context *context, play *all, uint32_t k)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("task", body);
    const core_task *t = &all->tasks[k];
    play_args args = {all, k};
    acs_arg arg = {&args, sizeof args, ACS_ARG_VALUE};
    acs_launch_params p = {.size = sizeof p, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    uint32_t segments = 0;

    p.block.x += t->type; /* another type of kernel; what it needs is told by describe() */
    for (uint32_t u = 0; u < t->up_count; u++)
        if (!all->tasks[t->up[u]].wait)
            all->segments[segments++] = cell(t->up[u], ACS_READ);
    all->segments[segments++] = cell(k, ACS_WRITE);
    p.args.list = &arg;
    p.args.count = 1;
    p.uses.segments = all->segments;
    p.uses.count = segments;
    all->ops[k] = acs_launch(context, &p);
    return all->ops[k] != 0;
}

static bool wait_for(acs_context *context, const play *all, const core_task *t)
{
    for (uint32_t u = 0; u < t->up_count; u++)
        if (!all->tasks[t->up[u]].wait && acs_wait(context, all->ops[t->up[u]]) != ACS_OK)
            return false;
    return true;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool run(acs_context *context, play *all, uint32_t count, core_result *result)
{
    acs_sim_backend_describe(context->backend, describe, NULL);
    for (uint32_t k = 0; k < count; k++) {
        const core_task *t = &all->tasks[k];
        if (!(t->wait ? wait_for(context, all, t) : launch(context, all, k)))
            return false;
    }
    result->submit_ns = context->sim_driver->caller_at;
    if (acs_sync(context) != ACS_OK)
        return false;
    result->total_ns = later(context->sim_driver->caller_at, acs_sim_backend_now(context->backend));
    result->counters = acs_sim_count(acs_sim_backend_machine(context->backend), 0);
    result->early = all->early;
    result->statistics.size = sizeof result->statistics;
    return acs_stats(context, &result->statistics) == ACS_OK;
}

static bool open_context(uint32_t gpu, int issue, acs_context **context)
{
    acs_options options;

    if (acs_options_init(&options, sizeof options) != ACS_OK)
        return false;
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.sim_gpu = gpu;
    if (issue >= 0)
        options.issue = issue;
    return acs_open(&options, context) == ACS_OK;
}

static void keep_error(core_result *result, const char *otherwise)
{
    acs_error error = {.size = sizeof error};
    const char *text = acs_last_error(&error) != ACS_OK ? error.text : otherwise;

    snprintf(result->text, sizeof result->text, "%s", text);
}

bool core_play(uint32_t gpu, int issue, const core_task *tasks, uint32_t count, core_result *result)
{
    play all = {.tasks = tasks};
    acs_context *context = NULL;
    uint32_t most = 0;
    bool done = false;

    memset(result, 0, sizeof *result);
    for (uint32_t k = 0; k < count; k++)
        most = tasks[k].up_count > most ? tasks[k].up_count : most;
    all.ops = calloc(count, sizeof *all.ops);
    all.ended = calloc(count, sizeof *all.ended);
    all.segments = calloc((size_t)most + 1, sizeof *all.segments);
    if (!all.ops || !all.ended || !all.segments || !open_context(gpu, issue, &context)) {
        keep_error(result, "no memory");
    } else {
        done = run(context, &all, count, result);
        if (!done)
            keep_error(result, "the core gave no reason");
        (void)acs_close(context);
    }
    free(all.segments);
    free(all.ended);
    free(all.ops);
    return done;
}

/*
 * Plays recorded ops on the simulated GPU (what_if.h): opens a context on the sim backend by time for each setting,
 * launches the ops with their segments, and waits where the program waited. Called when a context closes. The played
 * kernels touch nothing.
 */
#include "report/what_if.h"

#include "api/context.h"
#include "base/tuning.h"
#include "simulator/sim.h"
#include "simulator/sim_driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SM_THREADS = 2048, SMS = 132 }; /* of the modelled GPU: an H200 */
enum { CELL_BYTES = 64 };
#define FIRST_CELL ((uint64_t)1 << 46) /* each op writes a cell of its own, a name for bytes that nobody touches */

struct acs_play {
    const acs_analysis *a;
    const acs_surroundings *around;
    acs_options options;   /* of the played context, as it is */
    uint32_t first;        /* the first op */
    acs_op *played;        /* by op: its number in the play */
    acs_segment *segments; /* of the op in hand */
    const acs_play_change *change;
};

typedef struct play_args {
    const acs_play *all;
    uint64_t op;
} play_args;

/* ---------------------------------------------------------------------------------------------------------- kernels */

static void body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static void describe_played(void *user, const acs_record *op, acs_sim_kernel *kernel)
{
    const play_args *args = (const play_args *)(const void *)op->arg_bytes;
    (void)user;
    if (op->kind != ACS_KIND_KERNEL || op->arg_bytes_used != sizeof *args)
        return;
    const acs_recorded_op *from = acs_analysis_recorded(args->all->a, (uint32_t)args->op);
    const uint32_t threads = from->threads ? from->threads : 32, blocks = from->blocks ? from->blocks : 1;
    const uint64_t at_once = (uint64_t)SMS * (SM_THREADS / (threads < SM_THREADS ? threads : SM_THREADS));
    const uint64_t waves = (blocks + at_once - 1) / at_once;
    kernel->ctas = blocks;
    kernel->threads = threads;
    kernel->cta_ns = args->all->a->alone_ns[args->all->a->ops[args->op].label] / waves;
}

/* ------------------------------------------------------------------------------------------------------------- play */

static acs_segment cell_of(uint32_t op, acs_access access)
{
    const void *place = (const void *)(uintptr_t)(FIRST_CELL + (uint64_t)op * CELL_BYTES); /* never looked into */
    return access == ACS_READ ? ACS_IN(place, CELL_BYTES) : ACS_OUT(place, CELL_BYTES);
}

/* Whether the change leaves this dependence out. */
static bool is_left_out(const acs_play *p, const acs_analysed_op *op, uint32_t edge)
{
    const acs_play_change *c = p->change;
    const uint8_t conflict = p->a->up_conflicts[edge];
    if (c->renamed && (conflict == ACS_CONFLICT_WAR || conflict == ACS_CONFLICT_WAW))
        return true;
    return c->no_pair && op->label == c->down && p->a->ops[p->a->ups[edge]].label == c->up && conflict == c->conflict;
}

static uint32_t list_segments(const acs_play *p, uint32_t i)
{
    const acs_analysed_op *op = &p->a->ops[i];
    uint32_t count = 0;
    for (uint32_t edge = op->first_up; edge < op->first_up + op->up_count; edge++)
        if (p->a->ups[edge] >= p->first && !is_left_out(p, op, edge))
            p->segments[count++] = cell_of(p->a->ups[edge], ACS_READ);
    p->segments[count++] = cell_of(i, ACS_WRITE);
    return count;
}

static bool launch_played(acs_context *context, acs_play *p, uint32_t i)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("played", body);
    play_args args = {p, i};
    acs_arg arg = {&args, sizeof args, ACS_ARG_VALUE};
    acs_launch_params params = {.size = sizeof params, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    params.block.x += p->a->ops[i].label % 1000; /* another type of kernel for each label */
    params.args.list = &arg;
    params.args.count = 1;
    params.uses.segments = p->segments;
    params.uses.count = list_segments(p, i);
    p->played[i] = acs_launch(context, &params);
    return p->played[i] != 0;
}

/* Wait where the program waited before it queued op `i`. */
static bool wait_before(acs_context *context, const acs_play *p, uint32_t i, uint32_t *next)
{
    const acs_recording *r = p->a->recording;
    for (; *next < r->wait_count && r->waits[*next].newest < acs_analysis_recorded(p->a, i)->seq; ++*next) {
        const acs_recorded_wait *wait = &r->waits[*next];
        const uint32_t up = acs_analysis_op_before(p->a, wait->op);
        if (wait->type == ACS_RECORDED_WAIT_ROOM || up == ACS_PLACE_NONE || up < p->first || up >= i ||
            (p->change->no_waits && acs_analysis_label_before(p->a, wait->newest) == p->change->wait))
            continue;
        const acs_status status =
            wait->type == ACS_RECORDED_WAIT_ALL ? acs_sync(context) : acs_wait(context, p->played[up]);
        if (status != ACS_OK)
            return false;
    }
    return true;
}

static uint64_t play_ops(acs_context *context, acs_play *p)
{
    uint32_t next = 0;
    acs_sim_backend_describe(context->backend, describe_played, NULL);
    for (uint32_t i = p->first; i < p->a->op_count; i++)
        if (!wait_before(context, p, i, &next) || !launch_played(context, p, i))
            return 0;
    if (acs_sync(context) != ACS_OK)
        return 0;
    const uint64_t caller = context->sim_driver->caller_at, device = acs_sim_backend_now(context->backend);
    return caller > device ? caller : device;
}

uint64_t acs_play_run(acs_play *p, const acs_play_change *change)
{
    acs_options o = p->options;
    acs_context *context;
    uint64_t ns = 0;
    o.window = change->window ? change->window : o.window;
    o.streams = change->streams ? change->streams : o.streams;
    o.devices = change->devices ? change->devices : o.devices;
    p->change = change;
    acs_error_hush(true);
    acs_log_hush(true);
    if (acs_open(&o, &context) == ACS_OK) {
        ns = play_ops(context, p);
        (void)acs_close(context);
    }
    acs_log_hush(false);
    acs_error_hush(false);
    return ns;
}

/* --------------------------------------------------------------------------------------------------------- settings */

/* The settings that were played. */
typedef struct played_list {
    acs_play *play;
    acs_played *to;
    uint32_t count;
} played_list;

static acs_played *add_setting(played_list *list, acs_play_setting which, const char *name, const char *option,
                               int64_t value)
{
    acs_played *to = &list->to[list->count++];
    *to = (acs_played){.which = which, .value = value, .name = name};
    if (option)
        (void)snprintf(to->setting, sizeof to->setting, "%s=%" PRId64, option, value);
    return to;
}

/* The least value, of powers of `factor` times `now`, that brings all but a twentieth of what `most` brings. */
static void add_least(played_list *list, acs_play_setting which, const char *name, const char *option, int64_t now,
                      int64_t most, int64_t factor)
{
    if (now >= most)
        return;
    const uint64_t base = list->to[0].ns;
    acs_play_change change = {0};
    int64_t *changed = which == ACS_PLAY_WINDOW ? &change.window : &change.streams;
    *changed = most;
    const uint64_t best = acs_play_run(list->play, &change);
    int64_t value = now * factor < most ? now * factor : most;
    uint64_t ns = best;
    for (; value < most; value = value * factor < most ? value * factor : most) {
        *changed = value;
        ns = acs_play_run(list->play, &change);
        if (best >= base || (double)(base - best) * 0.95 <= (double)base - (double)ns)
            break;
    }
    add_setting(list, which, name, option, value)->ns = value < most ? ns : best;
}

uint32_t acs_play_settings(acs_play *p, acs_played played[ACS_PLAYED_MOST])
{
    const acs_options *o = &p->options;
    const bool gpu = !p->around->on_cpu;
    played_list list = {p, played, 0};
    add_setting(&list, ACS_PLAY_AS_IT_IS, "as it is", NULL, 0)->ns = acs_play_run(p, &(acs_play_change){.window = 0});
    if (!played[0].ns || p->around->in_order)
        return played[0].ns != 0;
    add_least(&list, ACS_PLAY_WINDOW, "a larger window", "ACS_WINDOW", o->window, 4096, 4);
    add_least(&list, ACS_PLAY_STREAMS, "more streams", "ACS_STREAMS", o->streams, 64, 2);
    if (p->around->options->rename >= 0 && o->pool != ACS_POOL_OFF)
        add_setting(&list, ACS_PLAY_RENAME, "renaming", "ACS_RENAME", -1)->ns =
            acs_play_run(p, &(acs_play_change){.renamed = true});
    if (gpu && o->devices < ACS_DEVICES_MOST)
        add_setting(&list, ACS_PLAY_DEVICES, "another GPU", "ACS_DEVICES", o->devices + 1)->ns =
            acs_play_run(p, &(acs_play_change){.devices = o->devices + 1});
    return list.count;
}

/* -------------------------------------------------------------------------------------------------- create, destroy */

static void init_options(const acs_surroundings *around, acs_options *o)
{
    *o = *around->options;
    o->backend = ACS_BACKEND_SIM;
    o->sim_order = ACS_SIM_ORDER_TIME;
    o->sim_gpu = 0;
    o->trace[0] = o->report[0] = o->dot[0] = o->memory_log[0] = o->ledger[0] = o->barriers[0] = o->topology[0] = 0;
    o->profile[0] = o->cpus[0] = 0;
    o->stats = o->check = o->faults = 0;
    o->devices = around->on_cpu ? 1 : around->devices;
    o->issue = around->on_cpu ? ACS_ISSUE_LAUNCH : o->issue; /* CPU threads run ops one by one */
    o->watchdog_s = o->rename = o->memory_limit = 0;
    o->tune = ACS_TUNE_OFF;
    o->repeats = ACS_REPEATS_NAMED; /* ops without a dependence recur more rarely, which is not what is asked */
}

acs_play *acs_play_create(const acs_analysis *a, const acs_surroundings *around)
{
    uint32_t most = 0;
    acs_play *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->a = a;
    p->around = around;
    p->first = a->op_count > TUNE_REPORT_PLAYED ? a->op_count - TUNE_REPORT_PLAYED : 0;
    for (uint32_t i = p->first; i < a->op_count; i++)
        most = a->ops[i].up_count > most ? a->ops[i].up_count : most;
    init_options(around, &p->options);
    p->played = calloc((size_t)a->op_count + 1, sizeof *p->played);
    p->segments = calloc((size_t)most + 1, sizeof *p->segments);
    if (p->played && p->segments)
        return p;
    acs_play_destroy(p);
    return NULL;
}

void acs_play_destroy(acs_play *p)
{
    if (!p)
        return;
    free(p->played);
    free(p->segments);
    free(p);
}

/*
 * How each row of the cost model is made (see acs_info_measure.h): of the times of a few bundles of different shape, from
 * whose differences the rows follow. Each step is repeated; medians count, and a row whose samples lie too far apart is not
 * taken.
 */
#include "acs_info_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 15,
    SAMPLES_LEAST = 3,
    STEP_MS_MOST = 5000, /* a step that has taken so long is not repeated any more */
    WIDE = 32
};

typedef struct sample {
    double row[ACS_COST_ROWS]; /* NAN: not of this step, or it could not be had */
} sample;

#define ROW(s, field) ((s)->row[ACS_COST_ROW(field)])

/* One step: some rows of one sample. `known`: medians of the steps before. As the meter's functions. */
typedef acs_status (*step_function)(meter *m, const sample *known, sample *s);

typedef struct step {
    const char *what;
    step_function run;
} step;

static acs_status time_of(meter *m, meter_way way, uint32_t ops, uint32_t width, double *ns)
{
    meter_shape(m, ops, width, false);
    return meter_time(m, way, ns);
}

/* ------------------------------------------------------------------------------------------------------------- steps */

static acs_status step_launch(meter *m, const sample *known, sample *s)
{
    (void)known;
    return meter_launch(m, &ROW(s, launch_ns));
}

/* Half of the hops are of either kind, as nobody knows which a program has. */
static acs_status step_hop(meter *m, const sample *known, sample *s)
{
    double few[2], many[2];
    (void)known;
    for (int way = 0; way < 2; way++) {
        ACS_TRY(time_of(m, way ? METER_EVENTS : METER_STREAM, 64, 1, &few[way]));
        ACS_TRY(time_of(m, way ? METER_EVENTS : METER_STREAM, 256, 1, &many[way]));
    }
    ROW(s, hop_ns) = (many[0] - few[0] + many[1] - few[1]) / (2 * 192);
    return ACS_OK;
}

/* Of a chain the hops count, of a wide bundle the ops. */
static acs_status step_replay(meter *m, const sample *known, sample *s)
{
    double chain[2], wide[2];
    (void)known;
    ACS_TRY(time_of(m, METER_REPLAY, 32, 1, &chain[0]));
    ACS_TRY(time_of(m, METER_REPLAY, 128, 1, &chain[1]));
    ACS_TRY(time_of(m, METER_REPLAY, 64, WIDE, &wide[0]));
    ACS_TRY(time_of(m, METER_REPLAY, 256, WIDE, &wide[1]));
    ROW(s, replay_hop_ns) = (chain[1] - chain[0]) / 96;
    ROW(s, replay_op_ns) = (wide[1] - wide[0]) / 192;
    ROW(s, replay_start_ns) = (chain[0] - 32 * ROW(s, replay_hop_ns) + wide[0] - 64 * ROW(s, replay_op_ns)) / 2;
    return ACS_OK;
}

static acs_status step_fixed(meter *m, const sample *known, sample *s)
{
    double wide[2], stencil;
    (void)known;
    ACS_TRY(time_of(m, METER_FIXED, 64, WIDE, &wide[0]));
    ACS_TRY(time_of(m, METER_FIXED, 256, WIDE, &wide[1]));
    meter_shape(m, 256, WIDE, true);
    ACS_TRY(meter_time(m, METER_FIXED, &stencil));
    ROW(s, fixed_op_ns) = (wide[1] - wide[0]) / 192;
    ROW(s, edge_ns) = (stencil - wide[1]) / meter_edges(m);
    return ACS_OK;
}

/* Chains, whose levels have one op each; then with cells beside it that are switched off. */
static acs_status step_layers(meter *m, const sample *known, sample *s)
{
    double chain[2], sparse;
    ACS_TRY(time_of(m, METER_LAYERS, 16, 1, &chain[0]));
    ACS_TRY(time_of(m, METER_LAYERS, 64, 1, &chain[1]));
    meter_shape(m, 16, 1, false);
    meter_cells(m, WIDE);
    ACS_TRY(meter_time(m, METER_LAYERS, &sparse));
    const double level = (chain[1] - chain[0]) / 48;
    ROW(s, layers_level_ns) = level - ROW(known, replay_op_ns);
    ROW(s, layers_start_ns) = chain[0] - 16 * level;
    ROW(s, layers_off_ns) = (sparse - chain[0]) / (16 * (WIDE - 1));
    return ACS_OK;
}

/* Here ops and hops add up: a level of a chain takes a = hop + op, an op of a wide bundle b = op + hop / WIDE. */
static acs_status step_gpu(meter *m, const sample *known, sample *s)
{
    double chain[2], wide[2];
    (void)known;
    ACS_TRY(time_of(m, METER_GPU, 32, 1, &chain[0]));
    ACS_TRY(time_of(m, METER_GPU, 128, 1, &chain[1]));
    ACS_TRY(time_of(m, METER_GPU, 64, WIDE, &wide[0]));
    ACS_TRY(time_of(m, METER_GPU, 256, WIDE, &wide[1]));
    const double a = (chain[1] - chain[0]) / 96, b = (wide[1] - wide[0]) / 192;
    ROW(s, gpu_hop_ns) = (a - b) / (1 - 1.0 / WIDE);
    ROW(s, gpu_op_ns) = a - ROW(s, gpu_hop_ns);
    ROW(s, gpu_start_ns) = (chain[0] - 32 * a + wide[0] - 64 * b) / 2;
    return ACS_OK;
}

static acs_status step_build(meter *m, const sample *known, sample *s)
{
    (void)known;
    meter_shape(m, 128, WIDE, false);
    ACS_TRY(meter_build(m, METER_REPLAY, &ROW(s, build_ns)));
    return meter_build(m, METER_FIXED, &ROW(s, build_fixed_ns));
}

static acs_status step_cell(meter *m, const sample *known, sample *s)
{
    (void)known;
    return meter_cell(m, &ROW(s, cell_ns));
}

static const step g_steps[] = {
    {"launches of the host", step_launch},
    {"kernels behind each other", step_hop},
    {"replayed graphs", step_replay},
    {"replayed graphs that nobody sets", step_fixed},
    {"graphs of layers", step_layers},
    {"GPU-side issue", step_gpu},
    {"building graphs", step_build},
    {"building cells of GPU-side issue", step_cell},
};
enum { STEPS = sizeof g_steps / sizeof *g_steps };

/* -------------------------------------------------------------------------------------------------------- statistics */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The row's value, if half of the samples lie within half of it. */
static void judge(double *values, uint32_t count, uint32_t row, acs_costs_measured *to)
{
    qsort(values, count, sizeof *values, by_value);
    const double median = values[count / 2], low = values[count / 4], high = values[count - 1 - count / 4];
    const bool good = median >= 1 && median < ACS_COST_MOST && high - low <= median / 2;
    if (good)
        *acs_cost_at(&to->costs, row) = (uint32_t)(median + 0.5);
    (void)snprintf(to->note[row], sizeof to->note[row], "%s of %u, half of them %.0f to %.0f",
                   good ? "median" : "the table's value: too far apart, median not taken", count, low, high);
}

/* A step's samples become rows. */
static void judge_all(const sample *samples, uint32_t count, acs_costs_measured *to, sample *known)
{
    for (uint32_t row = 0; row < ACS_COST_ROWS; row++) {
        double values[SAMPLES];
        for (uint32_t i = 0; i < count; i++)
            values[i] = samples[i].row[row];
        if (count == 0 || isnan(values[0]))
            continue;
        judge(values, count, row, to);
        known->row[row] = acs_cost_value(&to->costs, row);
    }
}

static void clear(sample *s)
{
    for (uint32_t row = 0; row < ACS_COST_ROWS; row++)
        s->row[row] = NAN;
}

/* --------------------------------------------------------------------------------------------------------------- run */

/* As often as there is time for; one more at first, which warms up. ACS_NOT_READY: fewer samples than count. */
static acs_status run_step(meter *m, const step *one, const sample *known, sample *samples, uint32_t *count)
{
    const uint64_t begin = acs_clock_ns();
    acs_status status = ACS_OK;
    for (uint32_t turn = 0; turn <= SAMPLES && status == ACS_OK; turn++) {
        const bool late = (acs_clock_ns() - begin) / 1000000 > STEP_MS_MOST;
        if (late && *count >= SAMPLES_LEAST)
            break;
        clear(&samples[*count]);
        status = one->run(m, known, &samples[*count]);
        *count += status == ACS_OK && turn > 0;
    }
    if (status == ACS_NOT_READY && *count < SAMPLES_LEAST)
        *count = 0;
    return status == ACS_NOT_READY ? ACS_OK : status;
}

static acs_status run_all(meter *m, const char *name, acs_costs_measured *to)
{
    sample known, samples[SAMPLES + 1];
    clear(&known);
    for (uint32_t row = 0; row < ACS_COST_ROWS; row++)
        known.row[row] = acs_cost_value(&acs_costs_table, row);
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t count = 0;
        (void)fprintf(stderr, "acs-info: %s: %u of %u: %s\n", name, i + 1, (unsigned)STEPS, g_steps[i].what);
        ACS_TRY(run_step(m, &g_steps[i], &known, samples, &count));
        judge_all(samples, count, to, &known);
    }
    return ACS_OK;
}

acs_status info_measure_costs(int device, const char *name, acs_costs_measured *measured)
{
    meter *m = NULL;
    acs_costs_measured fresh = {.costs = acs_costs_table};
    for (uint32_t row = 0; row < ACS_COST_ROWS; row++)
        (void)snprintf(fresh.note[row], sizeof fresh.note[row], "the table's value: not measured");
    ACS_TRY(meter_open(device, &m));
    meter_gpu(m, &fresh.gpu);
    const acs_status status = run_all(m, name, &fresh);
    meter_close(m);
    ACS_TRY(status);
    *measured = fresh;
    return ACS_OK;
}

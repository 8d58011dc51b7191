/*
 * Launches that are timed in place (acs_measure), tuning of a running program (ACS_TUNE), and plans for mixes
 * (acs_mix_plan): on CPU threads, whose times are real and judged by nobody.
 */
#include "variants_fixture.h"

#include "variants/book.h"

#include <math.h>

/* ----------------------------------------------------------------------------------------------------------- acs_measure */

/* It changes what it reads, so that a run too many shows. */
static void twice_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    int *x = *(int *const *)args[0];
    volatile unsigned busy = 0;
    for (unsigned i = 0; i < 10000; i++)
        busy += i;
    for (int i = 0; i < 4; i++)
        x[i] = (int)(3u * (unsigned)x[i] + (unsigned)busy % 2 + 1);
}
static const acs_kernel g_twice = ACS_KERNEL_HOST_INIT("twice", twice_body);

static acs_launch_params launch_of(int *const *x, acs_arg *arg, const acs_segment *segment)
{
    *arg = (acs_arg){x, sizeof *x, ACS_ARG_POINTER};
    return (acs_launch_params){.size = sizeof(acs_launch_params), .kernel = &g_twice, .grid = {1, 1, 1}, .block = {1, 1, 1},
                               .args = {arg, 1}, .uses = {segment, 1, NULL, NULL, 0}};
}

static void a_measured_launch_leaves_no_trace(void **state)
{
    (void)state;
    acs_options options = variant_options(NULL);
    acs_context *context = open_with(&options);
    int values[4] = {1, 2, 3, 4}, *x = values, others[4] = {5, 6, 7, 8}, *y = others;
    const acs_segment segments[] = {ACS_TILE_INOUT(values, sizeof *values, 2, 2 * sizeof *values), ACS_INOUT(values, 16),
                                    ACS_INOUT(others, 16)};
    acs_arg arg, beside_arg;
    acs_launch_params launch = launch_of(&x, &arg, segments);
    const acs_launch_params beside = launch_of(&y, &beside_arg, &segments[2]);
    launch.uses.count = 2;
    acs_measured measured = {.size = sizeof measured};
    acs_measure_params how = {.size = sizeof how, .runs = 7};
    for (int company = 0; company < 2; company++) {
        how.beside = company ? &beside : NULL;
        assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_OK);
        assert_int_equal(measured.runs, 7);
        assert_true(measured.us > 0 && measured.least_us > 0 && measured.least_us <= measured.us);
        assert_true((measured.beside_us > 0) == (company != 0));
        assert_int_equal(measured.share_ignored, 0);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(values[i], i + 1);
            assert_int_equal(others[i], i + 5);
        }
    }
    how = (acs_measure_params){.size = sizeof how, .share = 50};
    assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_OK);
    assert_int_equal(measured.share_ignored, 1); /* CPU threads are not divided */
    assert_int_equal(acs_measure(context, &launch, NULL, &measured), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void what_cannot_be_measured_is_refused(void **state)
{
    (void)state;
    acs_options options = variant_options(NULL);
    acs_context *context = open_with(&options);
    int values[4] = {1, 2, 3, 4}, *x = values;
    const acs_segment segment = ACS_INOUT(values, 16), all = ACS_ALL_MEMORY;
    acs_arg arg;
    acs_launch_params launch = launch_of(&x, &arg, &segment);
    acs_measured measured = {.size = sizeof measured};
    acs_measure_params how = {.size = sizeof how, .share = 101};
    assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_ERR_ARGUMENT);
    how.share = 0;
    measured.size = 1;
    assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_ERR_ARGUMENT);
    measured.size = sizeof measured;
    assert_int_equal(acs_measure(context, NULL, &how, &measured), ACS_ERR_ARGUMENT);
    launch.uses.any = 1;
    assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "'twice': its footprint is not known");
    launch.uses.any = 0;
    launch.uses.segments = &all;
    assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "may write anything");
    launch.uses.segments = &segment;
    launch.attributes = ACS_VARIANT(1);
    assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "no version number 1");
    launch.attributes = acs_no_attributes();
    launch.grid.x = 0;
    assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_ERR_ARGUMENT);
    assert_memory_equal(values, ((int[]){1, 2, 3, 4}), sizeof values);
    acs_clear(context);
    assert_int_equal(acs_close(context), ACS_OK);
    context = open_on(ACS_BACKEND_SIM, 1);
    launch.grid.x = 1;
    assert_int_equal(acs_measure(context, &launch, &how, &measured), ACS_ERR_UNSUPPORTED);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* -------------------------------------------------------------------------------------------------------------- tuning */

/* Launches of two problems, each twice. */
static void run_program(acs_context *context, int *counts, char *bytes)
{
    for (int i = 0; i < 4; i++)
        assert_int_not_equal(ACS_LAUNCH_WITH(context, acs_no_attributes(), &g_base, 8 + i % 2, 32, 0, ACS_ARGS(counts, 2),
                                             ACS_USES(ACS_INOUT(counts, PLACES * sizeof *counts), ACS_OUT(bytes, 4))), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
}

static uint32_t times_in(const char *path, uint32_t *problems)
{
    char line[512];
    uint32_t times = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    *problems = 0;
    while (fgets(line, sizeof line, file)) {
        times += strncmp(line, "time ", 5) == 0;
        *problems += strncmp(line, "problem ", 8) == 0;
    }
    assert_int_equal(fclose(file), 0);
    return times;
}

static void a_program_is_tuned_as_it_runs(void **state)
{
    (void)state;
    static const int tunes[] = {ACS_TUNE_LIST, ACS_TUNE_MEASURE, ACS_TUNE_MEASURE};
    const profile_file file = write_profile("");
    assert_int_equal(unlink(file.path), 0); /* it need not exist */
    for (int i = 0; i < 3; i++) {
        acs_options options = variant_options(file.path);
        options.tune = tunes[i];
        options.tune_sharing = 0;
        (void)snprintf(options.tune_beside, sizeof options.tune_beside, "memory,itself");
        acs_context *context = open_with(&options);
        int counts[PLACES] = {0};
        char bytes[4] = {0};
        run_program(context, counts, bytes);
        assert_int_equal(counts[BASE] + counts[WIDE] + counts[NARROW], 4); /* as if nothing had been measured */
        assert_int_equal(stats_of(context).kernels > 4, i == 1);
        assert_int_equal(acs_close(context), ACS_OK);
        uint32_t problems;
        const uint32_t times = times_in(file.path, &problems);
        assert_int_equal(problems, 2);
        assert_int_equal(times, i ? 2 * VERSIONS * ACS_SHARE_STEPS : 0);
    }
    assert_int_equal(unlink(file.path), 0);
}

/* ---------------------------------------------------------------------------------------------------------------- mixes */

static double run_mix(void *user, const acs_mix_setting *settings)
{
    int *runs = user;
    ++*runs;
    return 1000.0 - abs((int)settings[0].share - 40) - abs((int)settings[1].fit - 20);
}

static void a_mix_is_planned_once(void **state)
{
    (void)state;
    static const acs_mix_model models[] = {{"resnet18", 1}, {"bert", 1.0 / 3}}, others[] = {{"resnet18", 1}, {"bert", 1}};
    const profile_file file = write_profile("");
    acs_mix_setting best[2];
    double throughput = 77;
    int runs = 0;
    acs_options options = variant_options(file.path);
    acs_context *context = open_with(&options);
    assert_int_equal(acs_mix_plan(context, models, 2, run_mix, &runs, NULL, best, &throughput), ACS_OK);
    assert_true(throughput == 0 && best[1].fit == 0 && best[1].share == 100 && runs == 0);
    assert_int_equal(acs_close(context), ACS_OK);

    options.tune = ACS_TUNE_MIX;
    context = open_with(&options);
    const acs_mix_params params = {.size = sizeof params, .runs = 60, .seed = 3};
    assert_int_equal(acs_mix_plan(context, models, 2, run_mix, &runs, &params, best, &throughput), ACS_OK);
    assert_true(throughput > 900 && runs > 0 && runs <= 60);
    assert_int_equal(acs_close(context), ACS_OK);

    options.tune = ACS_TUNE_OFF;
    context = open_with(&options);
    acs_mix_setting again[2];
    double then = 0;
    const int before = runs;
    assert_int_equal(acs_mix_plan(context, models, 2, run_mix, &runs, NULL, again, &then), ACS_OK);
    assert_memory_equal(best, again, sizeof best);
    assert_true(fabs(then - throughput) < 0.01 && runs == before);
    assert_int_equal(acs_mix_plan(context, others, 2, run_mix, &runs, NULL, again, &then), ACS_OK);
    assert_true(then == 0);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(unlink(file.path), 0);
}

static void bad_mixes_are_refused(void **state)
{
    (void)state;
    acs_options options = variant_options(NULL);
    acs_context *context = open_with(&options);
    acs_mix_setting best[2];
    const acs_mix_model rows[][1] = {{{NULL, 1}}, {{"a b", 1}}, {{"a", 0}}, {{"a", -1}}, {{"a", NAN}}, {{"a", INFINITY}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(acs_mix_plan(context, rows[i], 1, NULL, NULL, NULL, best, NULL), ACS_ERR_ARGUMENT);
    const acs_mix_model good = {"a", 1}, twice[] = {{"a", 1}, {"a", 1}};
    assert_int_equal(acs_mix_plan(context, twice, 2, NULL, NULL, NULL, best, NULL), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "'a' is there twice");
    acs_mix_model many[16];
    char names[16][48];
    for (int i = 0; i < 16; i++) {
        (void)snprintf(names[i], sizeof names[i], "a-long-name-of-a-model-number-%d", i);
        many[i] = (acs_mix_model){names[i], 1};
    }
    assert_int_equal(acs_mix_plan(context, many, 16, NULL, NULL, NULL, best, NULL), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "do not fit into a line");
    assert_int_equal(acs_mix_plan(context, &good, 0, NULL, NULL, NULL, best, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_mix_plan(context, &good, 17, NULL, NULL, NULL, best, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_mix_plan(context, &good, 1, NULL, NULL, NULL, NULL, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SET(a_measured_launch_leaves_no_trace),
        SET(what_cannot_be_measured_is_refused),
        SET(a_program_is_tuned_as_it_runs),
        SET(a_mix_is_planned_once),
        SET(bad_mixes_are_refused),
    };
    return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}

/*
 * Versions of a kernel: which one a launch runs, by pin, by profile and by what runs beside it; what is refused. On CPU
 * threads.
 */
#include "variants_fixture.h"

#include "variants/strands.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* ----------------------------------------------------------------------------------------------------------- declare */

static void bad_declarations_are_refused(void **state)
{
    (void)state;
    static const acs_kernel none = {.name = "none"};
    const struct {
        acs_variant versions[2];
        size_t count;
        const char *word;
    } rows[] = {
        {{{"base", &g_wide, NULL, NULL}}, 1, "is \"base\""},
        {{{NULL, &g_wide, NULL, NULL}}, 1, "(NULL)"},
        {{{"", &g_wide, NULL, NULL}}, 1, "1 to 47"},
        {{{"a b", &g_wide, NULL, NULL}}, 1, "'a b'"},
        {{{"a", &g_wide, NULL, NULL}, {"a", &g_narrow, NULL, NULL}}, 2, "twice"},
        {{{"a", &none, NULL, NULL}}, 1, "'a': its kernel is NULL"},
        {{{"a", NULL, NULL, NULL}}, 1, "'a': its kernel is NULL"},
        {{{0}}, ACS_VARIANTS_MOST + 1, "at most 62"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(acs_variants(&g_nothing, rows[i].versions, rows[i].count), ACS_ERR_ARGUMENT);
        assert_error(ACS_ERR_ARGUMENT, rows[i].word);
    }
    assert_int_equal(acs_variants(NULL, NULL, 0), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_variants(&(acs_kernel){0}, NULL, 0), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_variants(&g_nothing, NULL, 1), ACS_ERR_ARGUMENT);
}

static void numbers_are_by_name(void **state)
{
    (void)state;
    uint32_t number = 77;
    assert_int_equal(acs_variant_number(&g_base, "base", &number), ACS_OK);
    assert_int_equal(number, 0);
    assert_int_equal(acs_variant_number(&g_base, "narrow", &number), ACS_OK);
    assert_int_equal(number, 2);
    assert_int_equal(acs_variant_number(&g_base, "other", &number), ACS_ERR_ARGUMENT);
    assert_error(ACS_ERR_ARGUMENT, "no version 'other'");
    assert_int_equal(number, 2);
    assert_int_equal(acs_variant_number(&g_nothing, "base", &number), ACS_OK);
    assert_int_equal(number, 0);
}

/* -------------------------------------------------------------------------------------------------------------- pinned */

static void a_pinned_version_runs_in_its_shape(void **state)
{
    (void)state;
    acs_options options = variant_options(NULL);
    acs_context *context = open_with(&options);
    static const int grids[VERSIONS] = {8, 16, 1};
    for (int version = 0; version < VERSIONS; version++) {
        int counts[PLACES] = {0};
        assert_int_not_equal(queue_work(context, counts, 2, ACS_VARIANT(version), (char *)counts), 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (int i = 0; i < VERSIONS; i++)
            assert_int_equal(counts[i], i == version);
        assert_int_equal(counts[GRIDS], grids[version]);
    }
    assert_int_equal(stats_of(context).variants, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void a_pin_that_cannot_be_kept_is_refused(void **state)
{
    (void)state;
    acs_options options = variant_options(NULL);
    acs_context *context = open_with(&options);
    int counts[PLACES] = {0};
    assert_int_equal(queue_work(context, counts, 2, ACS_VARIANT(3), (char *)counts), 0);
    assert_error(ACS_ERR_ARGUMENT, "no version number 3; the last one is 2");
    assert_int_equal(queue_work(context, counts, 2, ACS_VARIANT(-1), (char *)counts), 0);
    assert_int_equal(queue_work(context, counts, 3, ACS_VARIANT(2), (char *)counts), 0);
    assert_error(ACS_ERR_ARGUMENT, "'narrow' cannot run this launch");
    assert_int_equal(ACS_LAUNCH_WITH(context, ACS_VARIANT(1), &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE), 0);
    assert_error(ACS_ERR_ARGUMENT, "no version number 1");
    const acs_variant bad[] = {{"wide", &g_wide, wide_shape, NULL}};
    assert_int_equal(acs_variants(&g_nothing, bad, 1), ACS_OK);
    assert_int_equal(ACS_LAUNCH_WITH(context, ACS_VARIANT(1), &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE), 0);
    assert_error(ACS_ERR_ARGUMENT, "'wide' refuses the launch's arguments");
    assert_int_equal(acs_variants(&g_nothing, NULL, 0), ACS_OK);
    acs_clear(context);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* What the GPU decides is the kernel as it stands, unless the program pins a version. */
static void a_section_runs_the_base_or_what_is_pinned(void **state)
{
    (void)state;
    const profile_file file = write_profile(g_lines);
    for (int check = 0; check < 2; check++) {
        acs_options options = variant_options(file.path);
        options.check = check ? ACS_CHECK_READS : ACS_CHECK_OFF;
        acs_context *context = open_with(&options);
        int counts[VERSIONS][PLACES] = {{0}}, unpinned[PLACES] = {0};
        uint32_t on = 1, word[3] = {1, 1, 1};
        assert_int_equal(acs_if(context, &on), ACS_OK);
        for (int version = 0; version < VERSIONS; version++)
            assert_int_not_equal(queue_work(context, counts[version], 2, ACS_VARIANT(version), (char *)counts[version]), 0);
        assert_int_not_equal(queue_work(context, unpinned, 2, acs_no_attributes(), (char *)unpinned), 0);
        assert_int_equal(queue_work(context, unpinned, 3, ACS_VARIANT(2), (char *)unpinned), 0);
        assert_error(ACS_ERR_ARGUMENT, "'narrow' cannot run this launch");
        assert_int_equal(acs_end_if(context), ACS_OK);
        int *at = unpinned, n = 2;
        assert_int_equal(ACS_LAUNCH_WITH(context, ACS_VARIANT(1), &g_base, ACS_GRID_AT(word, 8), 1, 0, ACS_ARGS(at, n),
                                         ACS_USES(ACS_INOUT(unpinned, sizeof unpinned))), 0);
        assert_error(ACS_ERR_ARGUMENT, "its grid is read on the GPU");
        acs_clear(context);
        for (int version = 0; version < VERSIONS; version++)
            assert_in_range(counts[version][version], 1, check ? 1000 : 1);
        assert_int_not_equal(unpinned[BASE], 0);
        assert_int_equal(unpinned[WIDE] + unpinned[NARROW], 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
    assert_int_equal(unlink(file.path), 0);
}

/* -------------------------------------------------------------------------------------------------------------- fixed */

/* Run one launch, and tell which version ran. */
static int version_run(acs_context *context, int n, acs_attributes attributes)
{
    int counts[PLACES] = {0};
    assert_int_not_equal(queue_work(context, counts, n, attributes, (char *)counts), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(counts[BASE] + counts[WIDE] + counts[NARROW], 1);
    return counts[WIDE] ? WIDE : counts[NARROW] ? NARROW : BASE;
}

static void fixed_runs_the_best_on_the_whole(void **state)
{
    (void)state;
    const profile_file file = write_profile(g_lines);
    static const struct {
        int variants, serial, disable, check, version;
    } rows[] = {
        {ACS_VARIANTS_FIXED, 0, 0, 0, WIDE}, {ACS_VARIANTS_BASE, 0, 0, 0, BASE}, {ACS_VARIANTS_AUTO, 1, 0, 0, WIDE},
        {ACS_VARIANTS_AUTO, 0, 1, 0, WIDE},  {ACS_VARIANTS_AUTO, 0, 0, ACS_CHECK_OVERLAP, WIDE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_options options = variant_options(file.path);
        options.variants = rows[i].variants;
        options.serial = rows[i].serial;
        options.disable = rows[i].disable;
        options.check = rows[i].check;
        acs_context *context = open_with(&options);
        assert_int_equal(version_run(context, 2, acs_no_attributes()), rows[i].version);
        assert_int_equal(version_run(context, 2, ACS_VARIANT(NARROW)), NARROW);
        assert_int_equal(acs_close(context), ACS_OK);
    }
    assert_int_equal(unlink(file.path), 0);
}

static acs_attributes fit_for(uint8_t percent)
{
    acs_attributes a = acs_no_attributes();
    a.fit = percent;
    return a;
}

static void a_fit_is_said_by_the_program(void **state)
{
    (void)state;
    const profile_file file = write_profile(g_lines);
    for (int fixed = 0; fixed < 2; fixed++) {
        acs_options options = variant_options(file.path);
        options.variants = fixed ? ACS_VARIANTS_FIXED : ACS_VARIANTS_AUTO;
        acs_context *context = open_with(&options);
        assert_int_equal(version_run(context, 2, fit_for(10)), NARROW);
        assert_int_equal(version_run(context, 2, fit_for(50)), NARROW); /* nearer to 10 than to 100 */
        assert_int_equal(version_run(context, 2, fit_for(60)), WIDE);
        assert_int_equal(version_run(context, 2, fit_for(100)), WIDE);
        assert_int_equal(version_run(context, 3, fit_for(10)), BASE); /* narrow cannot run it */
        assert_int_equal(acs_close(context), ACS_OK);
    }
    assert_int_equal(unlink(file.path), 0);
}

/* --------------------------------------------------------------------------------------------------------------- auto */

enum { OPS = 40 };

/* Waits until the test has queued everything. */
static int wait_for_gate(void *closure)
{
    pthread_mutex_t *gate = *(pthread_mutex_t **)closure;
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return 0;
}

/* Ops that wait behind the gate: all of them side by side, or one behind the other. */
static void run_ops(acs_context *context, int *counts, bool side_by_side)
{
    static char bytes[OPS + 1];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, *closure = &gate;
    pthread_mutex_lock(&gate);
    assert_int_not_equal(acs_host(context, wait_for_gate, &closure, sizeof closure,
                                  ACS_USES(ACS_OUT(bytes, sizeof bytes))), 0);
    for (int i = 0; i < OPS; i++)
        assert_int_not_equal(queue_work(context, counts, 2, acs_no_attributes(), &bytes[side_by_side ? i : OPS]), 0);
    pthread_mutex_unlock(&gate);
    assert_int_equal(acs_sync(context), ACS_OK);
}

/* The first launch knows of no other. */
static void what_runs_side_by_side_decides(void **state)
{
    (void)state;
    const profile_file file = write_profile(g_lines);
    acs_options options = variant_options(file.path);
    acs_context *context = open_with(&options);
    int counts[PLACES] = {0};
    run_ops(context, counts, true);
    assert_int_equal(counts[WIDE], 1);
    assert_int_equal(counts[NARROW], OPS - 1);
    run_ops(context, counts, false);
    assert_int_equal(counts[WIDE], 1 + OPS);
    assert_int_equal(counts[NARROW], OPS - 1);
    assert_int_equal(counts[BASE], 0);
    assert_int_equal(stats_of(context).variants, 2 * OPS);
    assert_int_equal(stats_of(context).trials, 0);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(unlink(file.path), 0);
}

/* Ops of other threads may come and end before a launch is counted: it still runs beside itself. */
static void a_launch_counts_itself_whatever_has_ended(void **state)
{
    (void)state;
    static acs_strands strands;
    static char bytes[2];
    const acs_segment one = ACS_INOUT(&bytes[0], 1), other = ACS_INOUT(&bytes[1], 1);
    assert_int_equal(acs_strands_add(&strands, &one, 1, 5, 9), 1);
    assert_int_equal(acs_strands_add(&strands, &other, 1, 6, 4), 2);
    assert_int_equal(acs_strands_add(&strands, &one, 1, 7, 7), 1);
    assert_int_equal(acs_strands_add(&strands, &one, 0, 8, 6), 2);
}

static void an_op_in_a_group_has_one_version(void **state)
{
    (void)state;
    const profile_file file = write_profile(g_lines);
    acs_options options = variant_options(file.path);
    acs_context *context = open_with(&options);
    int counts[PLACES] = {0};
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    assert_int_not_equal(queue_work(context, counts, 2, acs_no_attributes(), (char *)counts), 0);
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(counts[WIDE], 1);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(unlink(file.path), 0);
}

/* -------------------------------------------------------------------------------------------------------------- learnt */

/* Without a profile each version is timed three times, and then one of them runs. */
static void versions_are_tried_where_there_is_no_profile(void **state)
{
    (void)state;
    const profile_file file = write_profile("");
    acs_options options = variant_options(file.path);
    acs_context *context = open_with(&options);
    int counts[PLACES] = {0};
    for (int i = 0; i < OPS; i++) {
        assert_int_not_equal(queue_work(context, counts, 2, acs_no_attributes(), (char *)counts), 0);
        assert_int_equal(acs_sync(context), ACS_OK);
    }
    const acs_statistics s = stats_of(context);
    assert_true(s.trials <= 3 * VERSIONS); /* a clock that did not move tells nothing, and the version is tried again */
    assert_true(s.trials + s.variants <= OPS);
    for (int i = 0; i < VERSIONS; i++)
        assert_true(counts[i] >= 3);
    assert_int_equal(counts[BASE] + counts[WIDE] + counts[NARROW], OPS);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(unlink(file.path), 0);
}

static void versions_declared_anew_take_the_place_of_the_old(void **state)
{
    (void)state;
    const profile_file file = write_profile(g_lines);
    acs_options options = variant_options(file.path);
    acs_context *context = open_with(&options);
    assert_int_equal(version_run(context, 2, acs_no_attributes()), WIDE);
    const acs_variant swapped[] = {{"narrow", &g_wide, NULL, NULL}, {"wide", &g_narrow, NULL, NULL}};
    assert_int_equal(acs_variants(&g_base, swapped, 2), ACS_OK);
    assert_int_equal(version_run(context, 2, acs_no_attributes()), NARROW); /* "wide" is its name now */
    assert_int_equal(acs_variants(&g_base, swapped, 1), ACS_OK);
    int counts[PLACES] = {0};
    assert_int_equal(queue_work(context, counts, 2, acs_no_attributes(), (char *)counts), 0);
    assert_error(ACS_ERR_OPTION, "times of version 'wide'");
    acs_clear(context);
    assert_int_equal(acs_variants(&g_base, NULL, 0), ACS_OK);
    assert_int_equal(version_run(context, 2, acs_no_attributes()), BASE);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(unlink(file.path), 0);
}

/* What was learnt of a version that is declared no more is left aside, and other kernels of the name have their own. */
static void learnt_times_belong_to_their_kernel(void **state)
{
    (void)state;
    static const acs_kernel twin = ACS_KERNEL_HOST_INIT("work", nothing_body);
    const profile_file file = write_profile("");
    acs_options options = variant_options(file.path);
    acs_context *context = open_with(&options);
    const acs_variant newer[] = {{"newer", &g_wide, NULL, NULL}}, twins[] = {{"other", &twin, NULL, NULL}};
    int counts[PLACES] = {0};
    for (int round = 0; round < 3; round++) {
        if (round == 1)
            assert_int_equal(acs_variants(&twin, twins, 1), ACS_OK);
        if (round == 2)
            assert_int_equal(acs_variants(&g_base, newer, 1), ACS_OK);
        for (int i = 0; i < OPS; i++) {
            assert_int_not_equal(queue_work(context, counts, 2, acs_no_attributes(), (char *)counts), 0);
            assert_int_not_equal(ACS_LAUNCH_ON(context, &twin, 8, 32, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(counts, 1))), 0);
            assert_int_equal(acs_sync(context), ACS_OK);
        }
    }
    assert_int_equal(counts[BASE] + counts[WIDE] + counts[NARROW], 3 * OPS);
    assert_int_equal(acs_variants(&twin, NULL, 0), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(unlink(file.path), 0);
}

/* A full FIFO is no fault of the version that was to be timed. */
static void a_launch_without_room_blames_no_version(void **state)
{
    (void)state;
    const profile_file file = write_profile("");
    acs_options options = variant_options(file.path);
    options.fifo = 2;
    options.window = 1;
    acs_context *context = open_with(&options);
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, *closure = &gate;
    int counts[PLACES] = {0}, n = 2, *pointer = counts;
    const acs_arg args[] = {{&pointer, sizeof pointer, ACS_ARG_POINTER}, {&n, sizeof n, ACS_ARG_VALUE}};
    const acs_segment segment = ACS_INOUT(counts, 1);
    acs_launch_params filler = good_launch(), work = good_launch();
    filler.uses = work.uses = (acs_uses){&segment, 1, NULL, NULL, 0};
    filler.no_wait = work.no_wait = 1;
    work.kernel = &g_base;
    work.grid.x = 8;
    work.block.x = 32;
    work.args = (acs_args){args, 2};
    pthread_mutex_lock(&gate);
    assert_int_not_equal(acs_host(context, wait_for_gate, &closure, sizeof closure, ACS_USES(ACS_INOUT(counts, 1))), 0);
    /* Other launches take the places, since a version on trial has no second trial. None ends before the gate is open. */
    for (int refused = 0; refused < 1000 * OPS; refused += !acs_launch(context, &filler))
        sched_yield();
    for (int refused = 0; refused < OPS;) {
        if (acs_launch(context, &work))
            continue;
        assert_int_equal(acs_last_error(NULL), ACS_ERR_FULL);
        refused++;
    }
    pthread_mutex_unlock(&gate);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < OPS; i++) {
        assert_int_not_equal(queue_work(context, counts, 2, acs_no_attributes(), (char *)counts), 0);
        assert_int_equal(acs_sync(context), ACS_OK);
    }
    for (int i = 0; i < VERSIONS; i++)
        assert_true(counts[i] >= 3);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(unlink(file.path), 0);
}

static acs_context *g_called;

static size_t calls_acs(const acs_footprint_input *in, acs_launch_shape *shape)
{
    (void)in;
    (void)shape;
    return acs_sync(g_called) == ACS_ERR_STATE ? ACS_SHAPE_FITS : 7;
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    acs_options options = variant_options(NULL);
    int counts[PLACES] = {0};
    g_called = open_with(&options);
    const acs_variant calling[] = {{"calls", &g_wide, calls_acs, NULL}};
    assert_int_equal(acs_variants(&g_base, calling, 1), ACS_OK);
    assert_int_equal(version_run(g_called, 2, ACS_VARIANT(1)), WIDE);
    acs_attributes wrong = acs_no_attributes();
    wrong.fit = 101;
    assert_int_equal(queue_work(g_called, counts, 2, wrong, (char *)counts), 0);
    assert_error(ACS_ERR_ARGUMENT, "a fit of 101 percent");
    acs_clear(g_called);
    assert_int_equal(acs_close(g_called), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SET(bad_declarations_are_refused),
        SET(numbers_are_by_name),
        SET(a_pinned_version_runs_in_its_shape),
        SET(a_section_runs_the_base_or_what_is_pinned),
        SET(a_pin_that_cannot_be_kept_is_refused),
        SET(fixed_runs_the_best_on_the_whole),
        SET(a_fit_is_said_by_the_program),
        SET(what_runs_side_by_side_decides),
        cmocka_unit_test(a_launch_counts_itself_whatever_has_ended),
        SET(an_op_in_a_group_has_one_version),
        SET(versions_are_tried_where_there_is_no_profile),
        SET(learnt_times_belong_to_their_kernel),
        SET(a_launch_without_room_blames_no_version),
        SET(bad_shapes_are_refused),
        SET(versions_declared_anew_take_the_place_of_the_old),
    };
    return cmocka_run_group_tests_name("variants", tests, NULL, NULL);
}

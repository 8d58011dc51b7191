/*
 * What the tests of kernels' versions share: a kernel with two other versions that note which of them ran, and profiles.
 */
#ifndef VARIANTS_FIXTURE_H
#define VARIANTS_FIXTURE_H

#include "api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXECUTORS = 2 };

/* Each version adds one to its own place of the counts, and its grid to the sum behind them. */
enum { BASE, WIDE, NARROW, VERSIONS, GRIDS = VERSIONS, PLACES };

static inline void note(const acs_grid *grid, void *const *args, int version)
{
    int *counts = *(int *const *)args[0];
    __atomic_fetch_add(&counts[version], 1, __ATOMIC_RELAXED); /* counts may be shared by ops that name other bytes */
    __atomic_fetch_add(&counts[GRIDS], (int)grid->grid.x, __ATOMIC_RELAXED);
}
static inline void base_body(const acs_grid *grid, void *const *args)
{
    note(grid, args, BASE);
}
static inline void wide_body(const acs_grid *grid, void *const *args)
{
    note(grid, args, WIDE);
}
static inline void narrow_body(const acs_grid *grid, void *const *args)
{
    note(grid, args, NARROW);
}

static const acs_kernel g_base = ACS_KERNEL_HOST_INIT("work", base_body);
static const acs_kernel g_wide = ACS_KERNEL_HOST_INIT(NULL, wide_body);
static const acs_kernel g_narrow = ACS_KERNEL_HOST_INIT(NULL, narrow_body);

/* Twice the launch's grid. */
static inline size_t wide_shape(const acs_footprint_input *in, acs_launch_shape *shape)
{
    ACS_PARAMS(in, (int *, counts), (int, n));
    shape->grid.x = 2 * in->grid[0];
    return ACS_SHAPE_FITS;
}
/* It needs an even n. */
static inline size_t narrow_shape(const acs_footprint_input *in, acs_launch_shape *shape)
{
    ACS_PARAMS(in, (int *, counts), (int, n));
    shape->grid.x = 1;
    return n % 2 ? ACS_SHAPE_UNFIT : ACS_SHAPE_FITS;
}

static inline void declare_versions(void)
{
    const acs_variant versions[] = {{"wide", &g_wide, wide_shape, NULL}, {"narrow", &g_narrow, narrow_shape, NULL}};
    assert_int_equal(acs_variants(&g_base, versions, 2), ACS_OK);
}

static inline int setup_versions(void **state)
{
    *state = NULL;
    declare_versions();
    return 0;
}

static inline int teardown_versions(void **state)
{
    (void)state;
    assert_int_equal(acs_variants(&g_base, NULL, 0), ACS_OK);
    return 0;
}

#define SET(test) cmocka_unit_test_setup_teardown(test, setup_versions, teardown_versions)

/* A profile of this CPU in a file of its own, with these lines. */
typedef struct profile_file {
    char path[64];
} profile_file;

static inline profile_file write_profile(const char *lines)
{
    profile_file file = {"/tmp/acs-profile-XXXXXX"};
    const int fd = mkstemp(file.path);
    assert_true(fd >= 0);
    FILE *stream = fdopen(fd, "w");
    assert_non_null(stream);
    fprintf(stream, "acs-variants 1\ngpu \"CPU\" sms %d\n%s", EXECUTORS, lines);
    assert_int_equal(fclose(stream), 0);
    return file;
}

static inline acs_options variant_options(const char *profile)
{
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.executors = EXECUTORS;
    options.batch = 64;
    if (profile)
        assert_true(snprintf(options.profile, sizeof options.profile, "%s", profile) < (int)sizeof options.profile);
    return options;
}

static inline acs_context *open_with(const acs_options *options)
{
    acs_context *context = NULL;
    assert_int_equal(acs_open(options, &context), ACS_OK);
    return context;
}

static inline acs_statistics stats_of(acs_context *context)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    return s;
}

/* The work reads one byte and writes one: the key of its problem in `g_lines`. */
static inline acs_op queue_work(acs_context *context, int *counts, int n, acs_attributes attributes, const char *touched)
{
    return ACS_LAUNCH_WITH(context, attributes, &g_base, 8, 32, 0, ACS_ARGS(counts, n), ACS_USES(ACS_INOUT(touched, 1)));
}

/* Best on the whole: wide; on 10 %: narrow; the base is best nowhere. */
static const char g_lines[] = "kernel work\nversion base\nversion wide\nversion narrow\n"
                              "problem grid 8 1 1 block 32 1 1 shared 0 reads 1 writes 1\n"
                              "time base 100 30\ntime wide 100 10\ntime narrow 100 20\n"
                              "time base 10 60\ntime wide 10 50\ntime narrow 10 40\n";

#endif

/*
 * What tests of groups share: a kernel whose footprint says in one of several ways what it touches. Included behind
 * cmocka.h.
 */
#ifndef TESTS_GROUP_FIXTURE_H
#define TESTS_GROUP_FIXTURE_H

#include "memory_fixture.h"

#include <stdbool.h>
#include <string.h>

enum { BYTES = 4096, LAZY = ACS_MEMORY_DEVICE | ACS_LAZY };

static inline acs_context *open_with(int64_t limit, int64_t workers, int32_t pool)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.workers = workers;
    options.executors = 2;
    options.memory_limit = limit;
    options.pool = pool;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

static inline uint64_t live(acs_context *context)
{
    return statistics_of(context).memory_live;
}

static inline acs_status submit(acs_context *context, uint32_t slots, acs_group_report *report)
{
    const acs_group_params params = {sizeof params, slots, 0};
    *report = (acs_group_report){.size = sizeof *report};
    return acs_group_submit(context, &params, report);
}

/* to[i] = a[i] + 3 b[i] + add; pointers in a struct. */
typedef struct mix_args {
    uint32_t add, bytes;
    unsigned char *to;
    const unsigned char *a, *b;
} mix_args;

static inline void mix(const mix_args *m)
{
    for (uint32_t i = 0; i < m->bytes; i++)
        m->to[i] = (unsigned char)(m->a[i] + 3 * m->b[i] + m->add);
}

static inline void mix_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    mix(args[0]);
}

static const acs_kernel g_mix = ACS_KERNEL_HOST_INIT("mix", mix_body);

enum { NAMED, NAMED_PART, ANY, ALL, ALL_IN, FOOTPRINTS };

/* The footprint says it in one of these ways; `behind`: a token's key, or 0. */
static inline acs_op launch_mix_as(acs_context *context, const mix_args *m, int how, uint64_t behind)
{
    static const acs_site site = {"mix", __FILE__, __LINE__};
    const acs_arg arg = {m, sizeof *m, ACS_ARG_POINTERS | ACS_POINTER_AT(1) | ACS_POINTER_AT(2) | ACS_POINTER_AT(3)};
    const acs_segment named[] = {ACS_OUT(m->to, m->bytes), ACS_IN(m->a, m->bytes), ACS_IN(m->b, m->bytes),
                                 ACS_TOKEN_IN(behind)};
    const acs_segment part[] = {named[0], named[1], ACS_ALL_MEMORY_IN}, all = ACS_ALL_MEMORY;
    const acs_segment all_in[] = {named[0], ACS_ALL_MEMORY_IN};
    const acs_uses uses[FOOTPRINTS] = {[NAMED] = {.segments = named, .count = behind ? 4 : 3},
                                       [NAMED_PART] = {.segments = part, .count = 3},
                                       [ANY] = {.any = 1},
                                       [ALL] = {.segments = &all, .count = 1},
                                       [ALL_IN] = {.segments = all_in, .count = 2}};
    const acs_launch_params p = {.size = sizeof p, .kernel = &g_mix, .grid = {1, 1, 1}, .block = {64, 1, 1},
                                 .shared_bytes = 32, .args = {&arg, 1}, .uses = uses[how], .site = &site};
    return acs_launch(context, &p);
}

static inline acs_op launch_mix_behind(acs_context *context, const mix_args *m, uint64_t behind)
{
    return launch_mix_as(context, m, NAMED, behind);
}

static inline acs_op launch_mix(acs_context *context, const mix_args *m)
{
    return launch_mix_behind(context, m, 0);
}

#endif

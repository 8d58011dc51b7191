/*
 * What tests of declared footprints and of whole allocations share: a kernel, and how an op touches a byte, as failures
 * tell, which spread to what conflicts with them.
 */
#ifndef DECLARED_FIXTURE_H
#define DECLARED_FIXTURE_H

#include "api_fixture.h"
#include "memory_fixture.h"

#include <stdbool.h>

enum { BYTES = 1000 };

static inline void saxpy_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    const int n = *(const int *)args[0];
    const float a = *(const float *)args[1];
    const float *x = *(const float *const *)args[2];
    float *y = *(float *const *)args[3];
    for (int i = 0; i < n; i++)
        y[i] += a * x[i];
}

static const acs_kernel g_saxpy = ACS_KERNEL_HOST_INIT("saxpy", saxpy_body);

static inline acs_context *open_inline(int check, int pool)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.check = check;
    options.pool = pool;
    options.rename = pool == ACS_POOL_ON ? -1 : 0;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* What is to be tried: an op of this kernel or kind, with these uses. */
typedef struct trial {
    acs_context *context;
    const acs_kernel *kernel; /* NULL: a host function */
    acs_uses uses;
    float *x, *y;
} trial;

static inline int succeed(void *closure)
{
    (void)closure;
    return 0;
}

static inline acs_op queue(const trial *t)
{
    const float *x = t->x;
    float *y = t->y;
    if (!t->kernel)
        return acs_host(t->context, succeed, NULL, 0, t->uses);
    return ACS_LAUNCH_ON(t->context, t->kernel, 1, 1, 0, ACS_ARGS(1, 0.0f, x, y), t->uses);
}

/* Whether the op conflicts with one that touched a byte so: it is then skipped behind that one, which fails. */
static inline bool conflicts(const trial *t, const void *byte, acs_access access)
{
    const acs_segment segment = ACS_BYTES_(access, byte, 1);
    assert_true(acs_host(t->context, failing_function, NULL, 0, ACS_USES_LIST(&segment, 1)) > 0);
    const acs_op op = queue(t);
    assert_true(op > 0);
    const acs_status status = acs_wait(t->context, op);
    assert_true(status == ACS_OK || status == ACS_ERR_SKIPPED);
    assert_int_equal(acs_clear(t->context), ACS_OK);
    return status == ACS_ERR_SKIPPED;
}

static inline bool reads(const trial *t, const void *byte)
{
    return conflicts(t, byte, ACS_UPDATE) && !conflicts(t, byte, ACS_READ);
}

static inline bool writes(const trial *t, const void *byte)
{
    return conflicts(t, byte, ACS_READ);
}

static inline bool leaves(const trial *t, const void *byte)
{
    return !conflicts(t, byte, ACS_UPDATE);
}

static inline trial trial_of(acs_context *context, const acs_kernel *kernel, acs_uses uses)
{
    return (trial){context, kernel, uses, (float *)(void *)block_of(context, ACS_MEMORY_DEVICE, BYTES),
                   (float *)(void *)block_of(context, ACS_MEMORY_DEVICE, BYTES)};
}

#endif

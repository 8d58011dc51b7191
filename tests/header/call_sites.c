/*
 * Every call-site macro of acs_launch.h once. Compiled only, without the project's own flags, as a program's file would
 * be: C11, pedantic, warnings as errors. Never run.
 */
#include "acs.h"

typedef struct pair {
    float a, b;
} pair;

static const acs_kernel g_kernel = ACS_KERNEL_HOST_INIT("kernel", NULL);
static const acs_kernel g_both = ACS_KERNEL_INIT("both", NULL, NULL);
void gpu_function(int n, float *x);

static int host_function(void *closure)
{
    return *(int *)closure;
}

static size_t footprint(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    if (capacity > 0)
        out[0] = ACS_IN(*(void *const *)in->args[0], 4);
    return 1;
}

static size_t declared(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    ACS_PARAMS(in, (int, n), (const float *, x), (float *, y), (pair, unused));
    return ACS_SEGMENTS(out, capacity, ACS_IN(x, (size_t)n * sizeof *x), ACS_INOUT(y, ACS_WHOLE), ACS_ESCAPES(y + 1));
}

static size_t declared_one(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    ACS_PARAMS(in, (const float *, x));
    return ACS_SEGMENTS(out, capacity, ACS_IN(x, ACS_WHOLE));
}

acs_op call_sites(acs_context *context, float *x, const float *y, int n);
acs_op call_sites(acs_context *context, float *x, const float *y, int n)
{
    acs_dim3 grid = {4, 2, 1};
    pair by_value = {1, 2};
    float array[4] = {0};
    int closure = 0;
    acs_attributes attributes = {.cooperative = 1};
    acs_op last = 0;

    last += ACS_LAUNCH(&g_kernel, 1, 32, 0, ACS_NO_ARGS, ACS_USES_NONE);
    last += ACS_LAUNCH(&g_both, grid, n, 1024, ACS_ARGS(n, ACS_VAL(float, 2.0), x, y, by_value, array),
                       ACS_USES(ACS_INOUT(x, 4), ACS_TILE_IN(y, 16, 4, 64), ACS_TOKEN(&closure)));
    last += ACS_LAUNCH_ON(context, gpu_function, 1, 32, 0, ACS_ARGS(n, x), ACS_USES_FN(footprint, NULL));
    last += ACS_LAUNCH_WITH(context, attributes, &g_kernel, 1, 32, 0, ACS_ARGS(x), ACS_USES_ANY);
    last += ACS_LAUNCH_WITH(context, ACS_ON(0), &g_kernel, 1, 32, 0, ACS_ARGS(x), ACS_USES_ANY);
    last += acs_declare(&(acs_kernel){.name = "_Z3fooiPKfPf4pair"}, declared, NULL);
    last += acs_declare(&g_kernel, declared_one, &closure);
    last += ACS_LAUNCH(&g_kernel, grid, n, 0, ACS_ARGS(n, y, x, by_value));
    last += ACS_LAUNCH_ON(context, gpu_function, 1, 32, 0, ACS_ARGS(n, x), ACS_USES_DECLARED);
    last += ACS_LAUNCH_WITH(context, ACS_ON(0), &g_kernel, ACS_GRID_FOR(x, 4, 7), 32, 0, ACS_NO_ARGS);
    last += acs_memcpy(context, x, y, 16);
    last += acs_memset(context, x, 0, 16);
    last += acs_host(context, host_function, &closure, sizeof closure, ACS_USES(ACS_ALL_MEMORY, ACS_TOKEN_IN(7)));
    last += acs_free(context, x);
    return last;
}

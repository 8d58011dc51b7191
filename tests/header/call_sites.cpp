// Every call-site macro of acs_launch.hpp once. Compiled only, as C++17 and, where nvcc is there, as CUDA. Never run.
#include "acs.h"

struct pair {
    float a, b;
};

void saxpy(int, float, const float *, float *) {}

template <class T, int N> void scale(int, T, T *, const T *, pair) {}
static const acs_kernel g_kernel = ACS_KERNEL_HOST_INIT("kernel", nullptr);

static const acs::kernel<int, float, float *> g_typed = ACS_KERNEL_HOST_INIT("typed", nullptr);
static const acs::kernel g_of_function{"saxpy", saxpy, nullptr};

static int host_function(void *closure)
{
    return *static_cast<int *>(closure);
}

static size_t footprint(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    if (capacity > 0)
        out[0] = ACS_IN(*static_cast<void *const *>(in->args[0]), 4);
    return 1;
}

static size_t declared(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    ACS_PARAMS(in, (int, n), (const float *, x), (float *, y), (pair, unused));
    return ACS_SEGMENTS(out, capacity, ACS_IN(x, static_cast<size_t>(n) * sizeof *x), ACS_INOUT(y, ACS_WHOLE));
}

void says(acs::in<float>, acs::inout<float>, acs::out<float>, int) {}
ACS_KERNEL_USES(saxpy, [](int n, float, const float *x, float *y) {
    return acs::uses(ACS_IN(x, n * sizeof *x), ACS_INOUT(y, ACS_WHOLE), ACS_ESCAPES(y));
});
ACS_KERNEL_USES((scale<int, 2>), [](int, int, int *p, const int *q, pair) {
    return acs::uses(ACS_OUT(p, 4), ACS_IN(q, 4));
});

acs_op call_sites(acs_context *context, float *x, const float *y, int n);
acs_op call_sites(acs_context *context, float *x, const float *y, int n)
{
    const acs_dim3 grid = {4, 2, 1};
    const pair by_value = {1, 2};
    float array[4] = {};
    int closure = 0;
    acs_attributes attributes{};
    acs_op last = 0;

    attributes.cooperative = 1;
    last += ACS_LAUNCH(&g_kernel, 1, 32, 0, ACS_NO_ARGS, ACS_USES_NONE);
    last += ACS_LAUNCH(g_kernel, grid, n, 1024, ACS_ARGS(n, ACS_VAL(float, 2.0), x, y, by_value, array),
                       ACS_USES(ACS_INOUT(x, 4), ACS_TILE_IN(y, 16, 4, 64), ACS_TOKEN(&closure)));
    last += ACS_LAUNCH(scale<float, 4>, grid, 32, 0, ACS_ARGS(n, 2.0, x, y, by_value), ACS_USES(ACS_OUT(x, 4)));
    last += ACS_LAUNCH_ON(context, scale<float, 2>, 1, 32, 0, ACS_ARGS(n, 2, x, y, by_value),
                          ACS_USES_FN(footprint, nullptr));
    last += ACS_LAUNCH_WITH(context, attributes, &g_kernel, 1, 32, 0, ACS_ARGS(x), ACS_USES_ANY);
    last += ACS_LAUNCH_WITH(context, ACS_ON(0), &g_kernel, 1, 32, 0, ACS_ARGS(x), ACS_USES_ANY);
    last += acs_declare(&g_kernel, declared, nullptr);
    last += acs::declare_by_type(saxpy);
    last += acs::declare(g_kernel, [n](const float *p) { return acs::uses(ACS_IN(p, n)); });
    last += ACS_LAUNCH(saxpy, grid, n, 0, ACS_ARGS(n, 2.0, y, x));
    last += ACS_LAUNCH_ON(context, scale<float, 2>, 1, 32, 0, ACS_ARGS(n, 2, x, y, by_value), ACS_USES_DECLARED);
    last += ACS_LAUNCH_ON(context, says, 1, 32, 0, ACS_ARGS(y, x, x, n));
    last += ACS_LAUNCH_WITH(context, ACS_ON(0), &g_kernel, ACS_GRID_FOR(x, 4, 7), 32, 0, ACS_NO_ARGS);
    last += ACS_LAUNCH(g_typed, grid, n, 0, ACS_ARGS(2.0, 3, x), ACS_USES(ACS_INOUT(x, 4)));
    last += ACS_LAUNCH_ON(context, &g_of_function, grid, n, 0, ACS_ARGS(n, 2, y, x));
    last += acs_memcpy(context, x, y, 16);
    last += acs_memset(context, x, 0, 16);
    last += acs_host(context, host_function, &closure, sizeof closure, ACS_USES(ACS_ALL_MEMORY, ACS_TOKEN_IN(7)));
    last += acs_free(context, x);
    return last;
}

/*
 * Kernels that call functions which are not inlined: of the program, and of the CUDA library for slow cases of its
 * functions. Compiled to PTX and run by try_kernels.py.
 */

#define CALLED __device__ __noinline__

CALLED void put(float *x, int i, float v) { x[i] = v; }
CALLED float get(const float *x, int i, int n) { return i < n ? x[i] : 0; }
CALLED float *behind(float *x, int by) { return x + by; }
CALLED int twice(int i) { return 2 * i; }
CALLED int narrow(signed char c, unsigned short s, bool b) { return b ? c : s; }
struct three {
    float *x;
    const float *y;
    int n, first;
};
CALLED void by_struct(three t, int i)
{
    if (i < t.n)
        t.x[i + t.first] = t.y[i];
}
CALLED three changed(three t, int by)
{
    t.first += by;
    t.n -= 1;
    return t;
}
CALLED void outer(float *x, const float *y, int i, int n)
{
    put(x, twice(i), get(y, i, n));
    put(x, i, 1);
}
CALLED int depth(const int *x, int i) { return i <= 0 ? x[0] : 1 + depth(x, x[i] - 1); }
CALLED void keep(float **where, float *x) { *where = x; }
CALLED int early(const int *x, int i)
{
    for (int k = 0; k < i; k++)
        if (x[k] == 3)
            return k;
    return i;
}
CALLED float local_sum(const float *x, int i)
{
    float some[8];
    for (int k = 0; k < 8; k++)
        some[k] = x[8 * i + k];
    float sum = 0;
    for (int k = 0; k < i % 8; k++)
        sum += some[(k * 5 + i) % 8];
    return sum;
}
CALLED double doubled(double a, int *out, int i)
{
    *out = i;
    return a + a;
}

extern "C" __global__ void call_put(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        put(x, i, 1);
}
extern "C" __global__ void call_twice(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[twice(i)] = x[twice(i) + 1];
}
extern "C" __global__ void call_behind(float *x, int n)
{
    int i = threadIdx.x;
    if (i < n)
        *behind(x, 3 * i) = *behind(x, n) + 1;
}
extern "C" __global__ void call_nested(float *x, const float *y, int n)
{
    outer(x, y, blockIdx.x * blockDim.x + threadIdx.x, n);
}
extern "C" __global__ void call_loop(float *x, const float *y, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        put(x, i, get(y, n - 1 - i, n));
}
extern "C" __global__ void call_narrow(float *x, int n, int m) { x[narrow(n, m, m & 1) + threadIdx.x] = 1; }
extern "C" __global__ void call_struct(float *x, const float *y, int n, int first)
{
    by_struct(three{x, y, n, first}, threadIdx.x);
}
extern "C" __global__ void call_given_struct(three t) { by_struct(changed(t, 2), threadIdx.x); }
extern "C" __global__ void call_recursive(float *x, const int *y, int n) { x[threadIdx.x] = depth(y, n & 7); }
extern "C" __global__ void call_keep(float **where, float *x) { keep(where + threadIdx.x, x); }
extern "C" __global__ void call_early(float *x, const int *y, int n)
{
    if (threadIdx.x < n)
        x[early(y, threadIdx.x)] = 1;
}
extern "C" __global__ void call_local(float *x, const float *y)
{
    x[threadIdx.x] = local_sum(y, threadIdx.x);
    x[threadIdx.x + 1] = local_sum(y + 4, threadIdx.x + 1);
}
extern "C" __global__ void call_guarded(float *x, const float *y, int n, bool both)
{
    float *to = x;
    if (both)
        to = behind(x, n);
    to[threadIdx.x] = get(y, threadIdx.x, n);
}
extern "C" __global__ void call_out(double *x, int *y, int n)
{
    int i = threadIdx.x, at = 0;
    x[i] = doubled(x[i], &at, 2 * i);
    x[at] = doubled(1, y + i, n);
}
extern "C" __global__ void call_pointer(float *x, int n, int which)
{
    void (*given)(float *, int, float) = which ? put : nullptr;
    if (given)
        given(x, n, 1);
}

// The slow cases of these are functions of the CUDA library, with tables and local memory.
#define LIBRARY(name, type, ...)                                                                                         \
    extern "C" __global__ void library_##name(type *x, type y, int n)                                                    \
    {                                                                                                                    \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                   \
        if (i < n)                                                                                                       \
            x[i] = __VA_ARGS__;                                                                                          \
    }
LIBRARY(sin, double, sin(x[i] * 1e9))
LIBRARY(cos, double, cos(x[i]))
LIBRARY(tan, double, tan(x[i]))
LIBRARY(pow, double, pow(x[i], y))
LIBRARY(tgamma, double, tgamma(x[i]))
LIBRARY(fmod, double, fmod(x[i], y))
LIBRARY(divide, double, x[i] / y)
LIBRARY(sinf, float, sinf(x[i] * 1e9f))
LIBRARY(powf, float, powf(x[i], y))

// A scope of its own in the assembler code has registers of its own.
extern "C" __global__ void scoped_registers(float *x, int n)
{
    int i = threadIdx.x, j;
    asm("{ .reg .b32 %%r1, %%r2, %%r3, %%r4, %%r5; mov.b32 %%r1, 1000; add.s32 %%r2, %%r1, %1;"
        " mov.b32 %%r3, %%r2; mov.b32 %%r4, %%r3; mov.b32 %%r5, %%r4; mov.b32 %0, %%r5; }" : "=r"(j) : "n"(3));
    if (i < n)
        x[i] = j;
}

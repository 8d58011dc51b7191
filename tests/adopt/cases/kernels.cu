/* How kernels may be declared and given. What becomes ACS_LAUNCH compiles; the other launches stay in ACS_OUTSIDE. */
#include <cuda_runtime.h>
#include <unseen.h>

#define GLOBAL __global__
#define BOUNDS(...) __launch_bounds__(__VA_ARGS__)
#define NAMED(n) n##_kernel
#define TEMPLATE(T) template <class T> __global__ void
#define EMPTY
typedef float *vec;
using ivec = int *;
typedef unsigned count_t;

GLOBAL static void a(float *x) { x[0] = 1; }
BOUNDS(128) __global__ void b(float *x) { x[0] = 1; }
template <class T> __global__ void BOUNDS(128, 2) c(T *x, T v) { x[0] = v; }
template <class T> BOUNDS(128, 2) GLOBAL void d(T *x) { x[0] = 1; }
TEMPLATE(T) e(T *x, T v) { x[0] = v; }
__global__ void NAMED(f)(float *x) { x[0] = 1; }
static __global__ EMPTY BOUNDS(32) void g(vec x, ivec i, count_t n) { if (x && i) x[0] = n; }
template <class T> __global__ void null(T p, int n) { (void)p, (void)n; }
__global__ void add(float *x, int n) { x[n] = 1; }
void add(float *x) { add<<<1, 1>>>(x, 1); }
struct sim { float *x; void step(); };
__global__ void step(float *x) { x[0] = 3; }
void sim::step() { ::step<<<1, 1>>>(x); }
template <class K> void run(K kernel, float *x) { kernel<<<1, 1>>>(x); }
template <void (*K)(float *)> void fixed(float *x) { K<<<1, 1>>>(x); }

void run(float *x, sim &s)
{
    a<<<1, 1>>>(x);
    b<<<1, 1>>>(x);
    c<<<1, 1>>>(x, 2.0f);
    c<float><<<1, 1>>>(x, 2);
    d<<<1, 1>>>(x);
    d<float><<<1, 1>>>(x);
    e<<<1, 1>>>(x, 1.0f);
    NAMED(f)<<<1, 1>>>(x);
    f_kernel<<<1, 1>>>(x);
    unseen_kernel<<<1, 1>>>(x);
    g<<<1, 1>>>(0, NULL, 0);
    null<float *><<<1, 1>>>(0, 0);
    null<int><<<1, 1>>>(0, 0);
    null<vec><<<1, 1>>>(0, 0);
    add<<<1, 1>>>(x, 2);
    s.step();
    run(a, x);
    fixed<a>(x);
    auto chosen = x ? a : b;
    chosen<<<1, 1>>>(x);
}

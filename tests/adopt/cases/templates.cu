/* Kernels whose template <...> a macro makes: the compiler deduces template arguments of these launches, too. */
#include <cuda_runtime.h>

#define TKERNEL template <typename T> __global__ void
#define TEMPLATE template <typename T>
#define TYPED(T) template <typename T>
#define KERNEL(T) template <typename T> __global__ void
#define PLAIN __global__ void

TKERNEL one(T *x, T v) { x[0] = v; }
TEMPLATE __global__ void two(T *x, T v) { x[0] = v; }
TYPED(T) __global__ void three(T *x, T v) { x[0] = v; }
KERNEL(T) four(T *x, T v) { x[0] = v; }
PLAIN five(float *x, float v) { x[0] = v; }
TEMPLATE PLAIN six(T *x, T v) { x[0] = v; }

void run(float *x)
{
    one<<<1, 1>>>(x, 1.f);
    two<<<1, 1>>>(x, 1.f);
    three<<<1, 1>>>(x, 1.f);
    four<<<1, 1>>>(x, 1.f);
    five<<<1, 1>>>(x, 1.f);
    six<<<1, 1>>>(x, 1.f);
    one<float><<<1, 1>>>(x, 1.f);
    three<float><<<1, 1>>>(x, 1.f);
}

/* Launches that stay with ACS_OUTSIDE around them, or get no footprint, and the reason. */
#include <cuda_runtime.h>

#define LAUNCH(kernel, n, ...) \
    kernel<<<(n), 32>>>(__VA_ARGS__)
#define STEP(x) do { scale<<<1, 32>>>(x, 1.0f); } while (0)

struct pair { int a, b; };
__global__ void scale(float *x, float a) { x[0] *= a; }
__global__ void shift(float *x, float a = 1, float b = 2) { x[0] += a * b; }
__global__ void over(int *x) { x[0] = 1; }
__global__ void over(float *x) { x[0] = 1; }
__global__ void both(pair p) { (void)p; }
__global__ void fetch(float *x, cudaTextureObject_t texture) { x[0] = tex1Dfetch<float>(texture, 0); }
template <class T> __global__ void deduced(T *x) { x[0] = T(); }
template <int N, class T> __global__ void half(T *x) { x[0] = N; }
template <class... T> __global__ void many(T... x) {}

void run(float *x, int *k, cudaStream_t *streams, int i, void (*given)(float *, float))
{
    void (*table[])(float *, float) = {scale, scale};
    struct { void (*member)(float *, float); } object = {scale}, *pointer = &object;
    LAUNCH(scale, 1, x, 1.0f);
    STEP(x);
    given<<<1, 32>>>(x, 1.0f);
    (*given)<<<1, 32>>>(x, 1.0f);
    table[i]<<<1, 32>>>(x, 1.0f);
    object.member<<<1, 32>>>(x, 1.0f);
    if (i) pointer->member<<<1, 32>>>(x, 1.0f);
    if (i) (*table[1])<<<1, 32>>>(x, 1.0f);
    shift<<<1, 32>>>(x);
    shift<<<1, 32>>>(x, 1, 2);
    over<<<1, 32>>>(x);
    fetch<<<1, 32>>>(x, 0);
    both<<<1, 32>>>({1, 2});
    deduced<<<1, 32>>>(x);
    half<3><<<1, 32>>>(x);
    half<3, float><<<1, 32>>>(x);
    many<<<1, 32>>>(x, k);
    scale<<<1, 32, 0, streams[i++]>>>(x, 1.0f);
    scale<<<1, 32>>>(x,
#ifdef FAST
                     2.0f
#else
                     1.0f
#endif
    );
}

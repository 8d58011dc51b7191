/* Launches that become ACS_LAUNCH, in each place where a launch may stand. */
#include <cstddef>
#include <cuda_runtime.h>

#define SAFE(call) do { call; } while (0)

template <class T, int N> struct tile { static constexpr int size = N; };
template <class T> constexpr int twice(int n) { return 2 * n; }
enum { LANES = 32 };

__global__ void nothing() {}
__global__ void scale(float *x, float a, int n) { if (threadIdx.x < n) x[threadIdx.x] *= a; }
static __global__ __launch_bounds__(256) void two(float *x, const float *y);
static __global__ __launch_bounds__(256) void two(float *x, const float *) { if (x) x[0] = 1; }
template <class T, int N = 4> __global__ void __launch_bounds__(128, 2) fill(T *x, T value) { x[threadIdx.x % N] = value; }
namespace deep { template <int N> __global__ void add(int *x, int) { *x += N; } }

static int blocks(int n) { return (n + 255) / 256; }
static void last(float *x) { return scale<<<1, 32>>>(x, 1.0f, 1); }

void run(float *x, float *y, int *k, int n, cudaStream_t stream, cudaStream_t *streams)
{
    nothing<<<1, 1>>>();
    scale<<<blocks(n), 256>>>(x, 2.0f, n); // the plain case
    scale <<< dim3(blocks(n), 1), dim3(16, 16), n * sizeof(float), stream >>> (x, 2.0f, n);
    scale<<<(n + LANES - 1) / LANES, LANES, 0, streams[n % 4]>>>(x,
                                                                 /* the factor: ), ( */ 2.0f,
                                                                 n); // several lines
    fill<float, 4><<<1, 32, 0, stream>>>(x, 1.0f);
    fill<int><<<1, tile<tile<int, 8>, 32>::size>>>(k, '>' - ')');
    deep::add<3><<<twice<tile<float, 2>>(n), 1>>>(k, 5);
    ::deep::add<(3 > 2)>
        <<<1, 32>>>(k, 5);
    if (n > 3)
        scale<<<1, 32>>>(x, 1.0f, n);
    else
        two<<<1, 32>>>(x, y);
    for (int i = 0; i < n; i++)
        two<<<1, 32>>>(x, NULL);
    do two<<<1, 32>>>(x, 0); while (n-- > 0);
    switch (n) {
    case 1: nothing<<<1, 1>>>(); break;
    default: nothing<<<1, 1>>>();
    }
    n ? nothing<<<1, 1>>>() : scale<<<1, 32>>>(x, 1.0f, n);
    nothing<<<1, 1>>>(), nothing<<<2, 1>>>();
    SAFE((nothing<<<1, 1>>>()));
    SAFE(scale<<<1, 32>>>(x, 1.0f, n));
    scale<<<ceil(n / 256.0), 256>>>(x, 2.0f /* half */, n // a comment at the end
    );
    scale<<<{2, 1, 1}, 32>>>(x, 1.0f, n < 3 ? n : 3);
    const char *text = "scale<<<1, 1>>>(x);"; // scale<<<1, 1>>>(x);
    /* scale<<<1, 1>>>(x); */
    (void)text;
    last(x);
}

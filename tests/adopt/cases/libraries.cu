/* Functions that are not defined here: drained around where they are given memory, a stream or a handle of the GPU. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>
#include <cuda_runtime.h>
#include <unseen.h>

/* In place of the libraries' headers. */
typedef struct ncclComm *ncclComm_t;
typedef struct foo *fooHandle_t;
int ncclAllReduce(const void *, void *, size_t, ncclComm_t, cudaStream_t), ncclGroupStart(), ncclGroupEnd();
int cublasCreate_v2(int *handle), cublasSscal_v2(int handle, float *x);
int cutensorContract(void *, float *), external(float *), fooCreate(fooHandle_t *), fooRun(fooHandle_t);
int fooSetStream(fooHandle_t, cudaStream_t);
namespace cub { struct DeviceReduce { static int Sum(void *, size_t, float *, float *, int) { return 0; } }; }
namespace thrust {
template <class T> struct device_ptr {
    T *p;
    explicit device_ptr(T *q) : p(q) {}
    device_ptr operator+(int n) { return device_ptr(p + n); }
};
template <class T> void sort(T, T);
}
namespace lib {
void scan(float *, int), save(const float *, int);
int init(int), status(const float *);
float *offset(float *, int);
struct solver { solver(float *, int); void run(); };
}
namespace th = thrust;
using namespace cub;

#define CHECK(x) { if ((x) != 0) return; }
#define SAVE(p, n) { lib::save(p, n); }
#define HD __host__ __device__

struct grid { float *u, *host; int n; };
HD inline float root(const float *x) { return sqrtf(x[0]); }
__global__ void kernel(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += root(x); }
template <class F> __global__ void each(F f) { f(threadIdx.x); }
static float *make(int n) { float *made; cudaMalloc(&made, n); return made; }
static void wrapper(float *deep, int n) { lib::scan(deep, n); }
static void print(const char *what, float *h) { printf("%s %g %p\n", what, h[0], (void *)h); }

void run(ncclComm_t comm, cudaStream_t stream, size_t bytes, int (*given)(float *))
{
    grid g;
    float *x = make(128), *y, *h = (float *)malloc(128);
    int blas;
    CHECK(cudaMalloc((void **)&g.u, 128));
    CHECK(cudaMalloc(&y, 128));
    g.n = 32;
    g.host = h;
    kernel<<<1, 32>>>(x, g.n);
    DeviceReduce::Sum(x, bytes, x, y, g.n);
    CHECK(ncclGroupStart());
    CHECK(ncclAllReduce(x, y, 32, comm, stream));
    CHECK(ncclGroupEnd());
    th::device_ptr<float> p(x);
    th::sort(p, p + 32);
    sort(p, p + 32);
    cutensorContract(nullptr, x);
    lib::scan(g.u + 3, g.n);
    if (lib::status(x) == 0) lib::scan(x, 1); else lib::scan(y, lib::status(h));
    const int found = lib::status(lib::offset(x, 3));
    wrapper(y, found);
    print("host", h);
    printf("%p %g\n", (void *)x, h[0]);
    lib::save(g.host, g.n);
    SAVE(x, 3);
    SCAN(x, 3);
    lib::solver solver(x, 3);
    solver.run();
    std::vector<float *> all, more(3, x), after(1, (float *)y);
    const int last(lib::init(4)), status(lib::status(x));
    all.push_back(x);
    for (float *one : all) external(one);
    std::swap(x, y);
    memcpy(h, h + 1, 4);
    lib::init(last + status);
    fooHandle_t foo;
    fooCreate(&foo);
    fooSetStream(foo, stream);
    fooRun(foo);
    cublasCheck(cublasCreate_v2(&blas));
    cublasCheck(cublasSscal_v2(blas, x));
    auto step = [&](float *q) { lib::scan(q, 3); };
    step(x);
    std::for_each(all.begin(), all.end(), [](float *each_of) { lib::scan(each_of, 3); });
    float *alias = &x[3];
    given(alias);
    each<<<1, 32>>>([=] __device__ (int i) { y[i] = fmaf(y[i], 2, root(y)); });
}

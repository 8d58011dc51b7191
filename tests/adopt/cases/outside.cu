/* Work of the GPU that ACS has no op for: ACS is drained before it, and the device after it. */
#include <cuda_runtime.h>

/* In place of the libraries' headers. */
int cublasSgemm_v2(int handle, const float *a, float *b);
int cublasCreate_v2(int *handle);
int cufftExecC2C(int plan, float *a, float *b);
namespace thrust {
template <class T> void sort(T *first, T *last);
template <class T> T reduce(const T *first, const T *last);
}
namespace cub { struct DeviceScan { template <class A, class B> static int ExclusiveSum(void *, size_t, A, B, int); }; }
#define CHECK(call) do { if (call) return; } while (0)
#define ZERO(x) cudaMemset2D((x), 64, 0, 32, 4)

__constant__ float factors[4];
__global__ void kernel(float *x) { x[0] = factors[0]; }
void CUDART_CB called(void *) {}

void run(float *x, float *y, float *host, int handle, cudaStream_t stream, cudaGraphExec_t graph,
         cudaTextureObject_t texture)
{
    void *arguments[] = {&x}, *fresh;
    cudaMemcpyToSymbol(factors, host, sizeof factors);
    CHECK(cudaMemcpyToSymbolAsync(factors, host, sizeof factors, 0, cudaMemcpyHostToDevice, stream));
    kernel<<<1, 1>>>(x);
    cudaMemcpy2D(x, 64, host, 64, 32, 4, cudaMemcpyHostToDevice);
    ZERO(x);
    CHECK(cublasCreate_v2(&handle));
    CHECK(cublasSgemm_v2(handle, x, y));
    const int error = cufftExecC2C(handle, x, y);
    thrust::sort(x, x + 4);
    const float sum = thrust::reduce(x, x + 4) + error;
    if (sum > 1)
        cub::DeviceScan::ExclusiveSum(nullptr, 0, x, y, 4);
    cudaLaunchCooperativeKernel((void *)kernel, 1, 1, arguments, 0, stream);
    cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), arguments, 0, stream);
    cudaLaunchHostFunc(stream, called, nullptr);
    cudaGraphLaunch(graph, stream);
    cudaMallocAsync(&fresh, 64, stream);
    cudaFreeAsync(fresh, stream);
    cudaDestroyTextureObject(texture);
}

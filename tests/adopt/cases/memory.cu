/* --memory: blocks of cudaMalloc become blocks of acs_malloc, which are freed in program order. */
#include <cuda_runtime.h>

#define CHECK(call) do { if (call) return; } while (0)

__global__ void kernel(float *x) { x[0] = 1; }

void run(size_t n, cudaStream_t stream)
{
    float *x, *y, *pinned;
    cudaMalloc((void **)&x, n * sizeof *x);
    CHECK(cudaMalloc(&y, n));
    cudaMallocHost(&pinned, n);
    kernel<<<1, 1>>>(x);
    cudaFree(x);
    CHECK(cudaMallocAsync(&x, n, stream));
    cudaFreeAsync(x, stream);
    cudaFreeHost(pinned);
    CHECK(cudaFree(y));
}

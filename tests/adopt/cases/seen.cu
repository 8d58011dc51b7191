/* A program in which the host sees memory without a copy, or while copies run: blocking calls wait for all. */
#include <cstdlib>
#include <cuda_runtime.h>

__managed__ int counter;
__global__ void kernel(float *x) { x[0] = 1; counter++; }

int main()
{
    float *x, *pinned, host[4];
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMallocHost(&pinned, 64);
    cudaMalloc(&x, 64);
    cudaMemcpyAsync(x, pinned, 64, cudaMemcpyHostToDevice, stream);
    cudaMemset(x, 0, 64);
    cudaMemsetAsync(x, 0, 64, stream);
    kernel<<<1, 1, 0, stream>>>(x);
    if (cudaMemcpyAsync(pinned, x, 64, cudaMemcpyDeviceToHost, stream))
        return 1;
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    cudaMemcpy(x + 4, x, sizeof host, cudaMemcpyDeviceToDevice);
    return counter != 1 || pinned[0] != 1;
}

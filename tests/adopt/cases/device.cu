/* Launches and calls in code of the GPU stay; and since a kernel prints, so do the runtime's waits. */
#include <cstdio>
#include <cuda_runtime.h>

__global__ void child(int *x) { printf("%d\n", x[0]); }
__device__ void help(int *x)
{
    child<<<1, 1>>>(x);
}
__global__ void parent(int *x)
{
    help(x);
    child<<<1, 1>>>(x);
    cudaGetLastError();
}

void run(int *x, int *host)
{
    cudaMemcpy(x, host, 4, cudaMemcpyHostToDevice);
    parent<<<1, 1>>>(x);
    cudaDeviceSynchronize();
    cudaStreamSynchronize(0);
}

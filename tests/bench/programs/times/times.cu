// A plain CUDA program, for bench/adopted/suite: it multiplies numbers. Its Makefile says by how much.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

__global__ void times(int *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= FACTOR;
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 0;
    int *x, last = 1;
    if (n <= 0 || cudaMalloc(&x, n * sizeof *x) != cudaSuccess)
        return 1;
    cudaMemset(x, 1, n * sizeof *x);
    for (int k = 0; k < 3; k++)
        times<<<(n + 255) / 256, 256>>>(x, n);
    cudaMemcpy(&last, x + n - 1, sizeof last, cudaMemcpyDeviceToHost);
    printf("%d\n", last);
    cudaFree(x);
    return last != 0x01010101 * FACTOR * FACTOR * FACTOR;
}

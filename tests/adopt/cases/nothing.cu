/* A program in which no launch becomes an op does not change: its copies would only be slower. */
#include <cuda_runtime.h>

int cublasSgemm_v2(int handle, const float *a, float *b);

void run(float *x, float *host, int handle)
{
    cudaMemcpy(x, host, 4, cudaMemcpyHostToDevice);
    cublasSgemm_v2(handle, x, x);
    cudaDeviceSynchronize();
}
struct preset { int n; int of(int k) { return n * k; } };
int sized(int k) { return preset{3}.of(k); } // the object of a call may end with a brace

/* Events whose times are taken wait for ACS; those that order streams stay, since the order of the calls does that. */
#include <cuda_runtime.h>

#define CHECK(call) do { if (call) return 0; } while (0)

__global__ void kernel(float *x) { x[0] = 1; }

float run(float *x, cudaStream_t one, cudaStream_t other)
{
    cudaEvent_t start, stop[2], ready;
    cudaEventCreate(&start);
    cudaEventCreate(&stop[0]);
    cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
    cudaEventRecord(start);
    kernel<<<1, 1, 0, one>>>(x);
    cudaEventRecord(ready, one);
    cudaStreamWaitEvent(other, ready, 0);
    kernel<<<1, 1, 0, other>>>(x);
    CHECK(cudaEventRecord(stop[0], other));
    CHECK(cudaEventSynchronize(stop[0]));
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop[0]);
    return ms;
}

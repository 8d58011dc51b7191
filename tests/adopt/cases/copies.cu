/* Copies, fills and waits of a program in which the host sees memory by blocking copies alone. */
#include <algorithm>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t error = (call); if (error != cudaSuccess) abort(); } while (0)
#define UPLOAD(to, from, count) cudaMemcpy(to, from, \
                                           (count) * sizeof *(to), cudaMemcpyHostToDevice)
#define WAIT() CHECK(cudaThreadSynchronize())
#define cudaThreadSynchronize cudaDeviceSynchronize

__global__ void kernel(float *x) { x[0] = 1; }
template <class A, class B> size_t bytes_of(size_t n) { return n * (sizeof(A) + sizeof(B)); }

cudaError_t run(float *x, float *y, float *host, size_t n, cudaMemcpyKind kind, cudaStream_t stream, cudaEvent_t event)
{
    cudaMemcpy(x, host, n * sizeof *x, cudaMemcpyHostToDevice);
    CHECK(cudaMemcpy(x, host, n * sizeof *x, cudaMemcpyHostToDevice));
    CHECK(UPLOAD(x, host, n));
    cudaMemset(y, 0, std::max(n, size_t(4)) * sizeof *y);
    CHECK(cudaMemset(y, 0, n * sizeof *y));
    cudaMemsetAsync(y, 0, bytes_of<float, int>(n), stream);
    CHECK(cudaMemsetAsync(y, 0, n, stream));
    kernel<<<1, 32, 0, stream>>>(x);
    CHECK(cudaGetLastError());
    cudaMemcpy(y, x, n * sizeof *x, cudaMemcpyDeviceToDevice);
    ::cudaMemcpy(y, x, n * sizeof *x, cudaMemcpyDeviceToDevice);
    if (cudaMemcpy(y, x, n * sizeof *x, cudaMemcpyDeviceToDevice) != cudaSuccess)
        return cudaErrorUnknown;
    cudaMemcpyAsync(y, x, n * sizeof *x, cudaMemcpyDeviceToDevice, stream);
    CHECK(cudaMemcpyAsync(y, x, n * sizeof *x, cudaMemcpyDeviceToDevice, stream));
    cudaMemcpy(host, y, // the result
               n * sizeof *y, cudaMemcpyDeviceToHost);
    cudaMemcpy(host, y, n * sizeof *y, kind);
    cudaDeviceSynchronize();
    CHECK(cudaDeviceSynchronize());
    cudaStreamSynchronize(stream);
    CHECK(cudaEventSynchronize(event));
    WAIT();
    if (n)
        cudaDeviceSynchronize();
    cudaFree(x);
    cudaDeviceReset();
    return cudaStreamSynchronize(stream);
}

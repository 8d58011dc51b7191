/*
 * What an adopted program does where the default context is on no GPU (ACS_BACKEND=host): its addresses are no memory. Each
 * call returns an error, as CUDA's own does, and touches none of them.
 */
#include <acs_adopt.hpp>

#include <cstdio>

static int g_wrong;

static void refused(cudaError_t error, const char *call)
{
    if (error != cudaSuccess)
        return;
    std::printf("%s: no error\n", call);
    g_wrong = 1;
}
#define REFUSED(call) refused(call, #call)

int main()
{
    void *const x = reinterpret_cast<void *>(16); /* what a program has that does not look at cudaMalloc's result */
    float y = 3, *z = nullptr;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess)
        devices = 0;
    REFUSED(acs_cuda_memcpy(x, &y, 4, cudaMemcpyHostToDevice));
    REFUSED(acs_cuda_memcpy(&y, x, 4, cudaMemcpyDeviceToHost));
    REFUSED(acs_cuda_memcpy(x, x, 4, cudaMemcpyDeviceToDevice));
    REFUSED(acs_cuda_memcpy_all(&y, x, 4, cudaMemcpyDeviceToHost));
    REFUSED(acs_cuda_memcpy_async(&y, x, 4, cudaMemcpyDeviceToHost));
    REFUSED(acs_cuda_memset(x, 0, 4));
    REFUSED(acs_cuda_memset_all(x, 0, 4));
    if (!devices) {
        REFUSED(acs_cuda_malloc(&z, 4));
        REFUSED(acs_cuda_sync());
    }
    return g_wrong || y != 3;
}

/*
 * The smallest use of ACS: three kernels, two of which may run at once, and one wait. Build it with nvcc for the GPU,
 * or with any C++17 compiler for the CPU: the source is the same, and ACS_BACKEND chooses at run time.
 */
#include <cstdio>

#include "acs.h"

#ifdef __CUDACC__
#define ON_BOTH static __host__ __device__
#else
#define ON_BOTH static
#endif

/* What one thread does. */
ON_BOTH void saxpy_at(unsigned i, unsigned n, float a, const float *x, float *y)
{
    if (i < n)
        y[i] = a * x[i] + y[i];
}

/* The kernel of the GPU. */
#ifdef __CUDACC__
static __global__ void saxpy_gpu(unsigned n, float a, const float *x, float *y)
{
    saxpy_at(blockIdx.x * blockDim.x + threadIdx.x, n, a, x, y);
}
#else
#define saxpy_gpu NULL
#endif

/* The kernel of the CPU: the whole grid, arguments by address. */
static void saxpy_cpu(const acs_grid *grid, void *const *args)
{
    for (unsigned i = 0; i < grid->grid.x * grid->block.x; i++)
        saxpy_at(i, *static_cast<unsigned *>(args[0]), *static_cast<float *>(args[1]), *static_cast<float **>(args[2]),
                 *static_cast<float **>(args[3]));
}

/* Both, and the types of the parameters, to which the arguments of launches are converted. */
static const acs::kernel<unsigned, float, const float *, float *> saxpy = ACS_KERNEL_INIT("saxpy", saxpy_gpu, saxpy_cpu);

static int fail(const char *what)
{
    acs_error error = {};

    error.size = sizeof error;
    if (acs_last_error(&error) != ACS_OK)
        fprintf(stderr, "%s: %s\n", what, error.text);
    return 1;
}

int main(void)
{
    const unsigned n = 1000, bytes = n * sizeof(float);
    void *memory[3];
    float in[1000], out[1000];

    for (unsigned i = 0; i < n; i++)
        in[i] = static_cast<float>(i);
    for (void *&m : memory)
        if (acs_malloc(acs_default(), bytes, ACS_MEMORY_DEVICE, &m) != ACS_OK)
            return fail("acs_malloc");
    float *x = static_cast<float *>(memory[0]), *y = static_cast<float *>(memory[1]),
          *z = static_cast<float *>(memory[2]);

    /* Program order is the order of these lines. y and z do not meet until the last launch: those two run at once. */
    acs_memcpy(acs_default(), x, in, bytes);
    acs_memset(acs_default(), y, 0, bytes);
    acs_memset(acs_default(), z, 0, bytes);
    ACS_LAUNCH(saxpy, (n + 255) / 256, 256, 0, ACS_ARGS(n, 2.0f, x, y),
               ACS_USES(ACS_IN(x, bytes), ACS_INOUT(y, bytes)));
    ACS_LAUNCH(saxpy, (n + 255) / 256, 256, 0, ACS_ARGS(n, 3.0f, x, z),
               ACS_USES(ACS_IN(x, bytes), ACS_INOUT(z, bytes)));
    ACS_LAUNCH(saxpy, (n + 255) / 256, 256, 0, ACS_ARGS(n, 10.0f, y, z),
               ACS_USES(ACS_IN(y, bytes), ACS_INOUT(z, bytes)));
    acs_memcpy(acs_default(), out, z, bytes);
    if (acs_sync(acs_default()) != ACS_OK) /* whatever failed above is told here, too */
        return fail("acs_sync");

    printf("10 * (2 * 7) + 3 * 7 = %g, on the %s\n", static_cast<double>(out[7]),
           acs_context_backend(acs_default()) == ACS_BACKEND_CUDA ? "GPU" : "CPU");
    for (void *m : memory)
        acs_free(acs_default(), m);
    for (unsigned i = 0; i < n; i++)
        if (out[i] != 23.0f * in[i])
            return fprintf(stderr, "element %u is %g\n", i, static_cast<double>(out[i])), 1;
    return 0;
}

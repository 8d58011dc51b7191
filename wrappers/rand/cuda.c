/*
 * Random numbers on a GPU: the kernels of numbers.cu, launched by the driver. Called by the thread that issues an op, with
 * the slot's stream. Keeps no state but the loaded kernels, which every device has. Never synchronises. Built without nvcc
 * or cuRAND's device functions it only says so.
 */
#include "rand/rand.h"

#if ACS_RAND_HAVE_CUDA

#include <cuda.h>

#include <pthread.h>

enum { KINDS = ACS_RAND_NORMAL_DOUBLE + 1, BLOCK = 256, BLOCKS_MOST = 1 << 20 };

extern const uint64_t acs_rand_image[];

#define FUNCTIONS(X) X(cuLibraryLoadData) X(cuLibraryGetKernel) X(cuLaunchKernel)

static struct {
    FUNCTIONS(ACS_WRAP_MEMBER)
} g;
static const acs_wrap_function g_functions[] = {FUNCTIONS(ACS_WRAP_ROW)};
static const acs_wrap_library g_library = {"libcuda.so.1", g_functions, sizeof g_functions / sizeof g_functions[0]};
static acs_wrap_loader g_loader = {&g_library, 1, 0, ""};

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static CUlibrary g_code;          /* guarded by g_lock; loaded once, and never unloaded */
static CUkernel g_kernels[KINDS]; /* written before g_code */

bool acs_rand_cuda_load(const char **why)
{
    return acs_wrap_load(&g_loader, why);
}

static CUresult load_kernels(void)
{
    static const char *const names[KINDS] = {"acs_rand_bits_kernel", "acs_rand_uniform_kernel",
                                             "acs_rand_uniform_double_kernel", "acs_rand_normal_kernel",
                                             "acs_rand_normal_double_kernel"};
    CUlibrary code = NULL;
    CUresult result = g.cuLibraryLoadData(&code, acs_rand_image, NULL, NULL, 0, NULL, NULL, 0);

    for (int kind = 0; kind < KINDS && result == CUDA_SUCCESS; kind++)
        result = g.cuLibraryGetKernel(&g_kernels[kind], code, names[kind]);
    if (result == CUDA_SUCCESS)
        g_code = code;
    return result;
}

static CUresult find_kernel(uint64_t kind, CUfunction *kernel)
{
    (void)pthread_mutex_lock(&g_lock); /* cannot fail: the mutex is valid and not held by this thread */
    const CUresult result = g_code ? CUDA_SUCCESS : load_kernels();
    (void)pthread_mutex_unlock(&g_lock);
    *kernel = (CUfunction)g_kernels[kind]; /* the driver launches either */
    return result;
}

int acs_rand_cuda_run(const acs_call_env *env, const acs_rand_args *args)
{
    acs_rand_args copy = *args;
    void *parameters[] = {&copy};
    const uint64_t blocks_of_four = args->count / 4 + 2; /* the first and the last one may be cut */
    const uint64_t blocks = (blocks_of_four + BLOCK - 1) / BLOCK;
    const char *why;
    CUfunction kernel;

    if (!acs_rand_cuda_load(&why))
        return ACS_WRAP_CODE_LIBRARY;
    CUresult result = find_kernel(args->kind, &kernel);
    if (result == CUDA_SUCCESS)
        result = g.cuLaunchKernel(kernel, (unsigned)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST), 1, 1, BLOCK, 1, 1, 0,
                                  env->stream, parameters, NULL);
    return result == CUDA_SUCCESS ? 0 : ACS_WRAP_CODE_BASE + (int)result;
}

#else /* no CUDA */

bool acs_rand_cuda_load(const char **why)
{
    *why = "this build of acs_rand has no kernels: nvcc or cuRAND's headers were not there, or were not wanted";
    return false;
}

int acs_rand_cuda_run(const acs_call_env *env, const acs_rand_args *args)
{
    (void)env;
    (void)args;
    return ACS_WRAP_CODE_LIBRARY;
}

#endif

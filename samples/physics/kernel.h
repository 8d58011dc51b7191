/*
 * One source, two machines: PHYSICS_KERNEL turns a function of one thread into a kernel of the GPU, a function that
 * runs the whole grid on the CPU, and an object that names both.
 *
 * Every kernel takes one struct by value, whose `threads` says how many threads have work. A kernel whose threads work
 * together is a chain of phases with a barrier after each: PHYSICS_BLOCK_KERNEL.
 */
#ifndef PHYSICS_KERNEL_H
#define PHYSICS_KERNEL_H

#include "acs.h"
#include "vec.h"

/* Threads per CTA: kernels over bodies and joints, and kernels over contacts. */
enum { BODY_BLOCK = 256, CONTACT_BLOCK = 128 };

/** A kernel and where it is written: errors and statistics of ACS name both. */
struct kernel_object {
    acs_kernel code;
    acs_site site;
};

#ifdef __CUDACC__
#define PHYSICS_GPU_(name, args_type, cta)                                                                             \
    static __global__ void __launch_bounds__(cta) name##_gpu(const args_type a)                                        \
    {                                                                                                                  \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                      \
        if (i < a.threads)                                                                                             \
            name##_thread(a, i);                                                                                       \
    }
#define PHYSICS_GPU_BLOCK_(name, args_type, shared_type, cta)                                                          \
    static __global__ void __launch_bounds__(cta) name##_gpu(const args_type a)                                        \
    {                                                                                                                  \
        __shared__ shared_type shared;                                                                                 \
        for (int phase = 0; phase < shared_type::phases; phase++) {                                                    \
            name##_phase(a, phase, blockIdx.x, threadIdx.x, shared);                                                   \
            __syncthreads();                                                                                           \
        }                                                                                                              \
    }
#define PHYSICS_GPU_NAME_(name) name##_gpu
#else
#define PHYSICS_GPU_(name, args_type, cta)
#define PHYSICS_GPU_BLOCK_(name, args_type, shared_type, cta)
#define PHYSICS_GPU_NAME_(name) nullptr
#endif

/** The kernel `kernel_<name>` of `void name_thread(const args_type &a, unsigned i)`, in CTAs of `cta` threads. */
#define PHYSICS_KERNEL(name, args_type, cta)                                                                           \
    PHYSICS_GPU_(name, args_type, cta)                                                                                 \
    static void name##_host(const acs_grid *grid, void *const *args)                                                   \
    {                                                                                                                  \
        const args_type &a = *static_cast<const args_type *>(args[0]);                                                 \
        const unsigned launched = grid->grid.x * grid->block.x;                                                        \
        for (unsigned i = 0; i < launched && i < a.threads; i++)                                                       \
            name##_thread(a, i);                                                                                       \
    }                                                                                                                  \
    const kernel_object kernel_##name = {ACS_KERNEL_INIT(#name, PHYSICS_GPU_NAME_(name), name##_host),                 \
                                         {#name, __FILE__, __LINE__}};

/** The same of `void name_phase(const args_type &, int phase, unsigned block, unsigned thread, shared_type &)`. */
#define PHYSICS_BLOCK_KERNEL(name, args_type, shared_type, cta)                                                        \
    PHYSICS_GPU_BLOCK_(name, args_type, shared_type, cta)                                                              \
    static void name##_host(const acs_grid *grid, void *const *args)                                                   \
    {                                                                                                                  \
        const args_type &a = *static_cast<const args_type *>(args[0]);                                                 \
        for (unsigned b = 0; b < grid->grid.x; b++) {                                                                  \
            shared_type shared;                                                                                        \
            for (int phase = 0; phase < shared_type::phases; phase++)                                                  \
                for (unsigned t = 0; t < grid->block.x; t++)                                                           \
                    name##_phase(a, phase, b, t, shared);                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    const kernel_object kernel_##name = {ACS_KERNEL_INIT(#name, PHYSICS_GPU_NAME_(name), name##_host),                 \
                                         {#name, __FILE__, __LINE__}};

#endif

/*
 * One source, two machines: ACS_DUAL_KERNEL turns a function of one thread into a kernel of the GPU, a function that
 * runs the whole grid on the CPU, and an object that names both. A .cu file that uses it is compiled by nvcc where
 * there is one and as C++17 elsewhere. C++17, header only; needs nothing but acs.h.
 *
 * Every kernel takes one struct by value, whose `threads` says how many threads have work. A kernel whose threads work
 * together is a chain of phases with a barrier after each: ACS_DUAL_BLOCK_KERNEL. Grids are of one dimension.
 *
 * Where the struct points into ACS_LAZY or ACS_RELOCATABLE blocks it has a member that says where its pointers are:
 * static constexpr uint32_t acs_pointers = ACS_POINTER_AT(0) | ...; with words of 8 bytes (acs.h).
 */
#ifndef ACS_DUAL_HPP
#define ACS_DUAL_HPP

#include "acs.h"

/** Marks a function that both machines call. */
#ifdef __CUDACC__
#define ACS_DUAL static inline __host__ __device__
#else
#define ACS_DUAL static inline
#endif

/** A kernel and where it is written: errors and statistics of ACS name both. */
struct acs_dual_kernel {
    acs_kernel code;
    acs_site site;
};

#ifdef __CUDACC__
#define ACS_DUAL_GPU_(name, args_type, cta)                                                                            \
    static __global__ void __launch_bounds__(cta) name##_gpu(const args_type a)                                        \
    {                                                                                                                  \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                      \
        if (i < a.threads)                                                                                             \
            name##_thread(a, i);                                                                                       \
    }
#define ACS_DUAL_GPU_BLOCK_(name, args_type, shared_type, cta)                                                         \
    static __global__ void __launch_bounds__(cta) name##_gpu(const args_type a)                                        \
    {                                                                                                                  \
        __shared__ shared_type shared;                                                                                 \
        const int phases = name##_phases(a);                                                                           \
        for (int phase = 0; phase < phases; phase++) {                                                                 \
            name##_phase(a, phase, blockIdx.x, threadIdx.x, shared);                                                   \
            __syncthreads();                                                                                           \
        }                                                                                                              \
    }
#define ACS_DUAL_GPU_NAME_(name) name##_gpu
#else
#define ACS_DUAL_GPU_(name, args_type, cta)
#define ACS_DUAL_GPU_BLOCK_(name, args_type, shared_type, cta)
#define ACS_DUAL_GPU_NAME_(name) nullptr
#endif

#define ACS_DUAL_OBJECT_(name)                                                                                         \
    extern const acs_dual_kernel kernel_##name;                                                                        \
    const acs_dual_kernel kernel_##name = {ACS_KERNEL_INIT(#name, ACS_DUAL_GPU_NAME_(name), name##_host),              \
                                           {#name, __FILE__, __LINE__}};

/** The kernel `kernel_<name>` of `void name_thread(const args_type &a, unsigned i)`, in CTAs of `cta` threads. */
#define ACS_DUAL_KERNEL(name, args_type, cta)                                                                          \
    ACS_DUAL_GPU_(name, args_type, cta)                                                                                \
    static void name##_host(const acs_grid *grid, void *const *args)                                                   \
    {                                                                                                                  \
        const args_type &a = *static_cast<const args_type *>(args[0]);                                                 \
        const unsigned launched = grid->grid.x * grid->block.x;                                                        \
        for (unsigned i = 0; i < launched && i < a.threads; i++)                                                       \
            name##_thread(a, i);                                                                                       \
    }                                                                                                                  \
    ACS_DUAL_OBJECT_(name)

/**
 * The same of `void name_phase(const args_type &, int phase, unsigned block, unsigned thread, shared_type &)`, run for
 * phases 0 to `int name_phases(const args_type &)` - 1. What a thread keeps between phases lies in shared_type, a plain
 * struct of at most 48 KiB.
 */
#define ACS_DUAL_BLOCK_KERNEL(name, args_type, shared_type, cta)                                                       \
    ACS_DUAL_GPU_BLOCK_(name, args_type, shared_type, cta)                                                             \
    static void name##_host(const acs_grid *grid, void *const *args)                                                   \
    {                                                                                                                  \
        const args_type &a = *static_cast<const args_type *>(args[0]);                                                 \
        const int phases = name##_phases(a);                                                                           \
        for (unsigned b = 0; b < grid->grid.x; b++) {                                                                  \
            shared_type shared;                                                                                        \
            for (int phase = 0; phase < phases; phase++)                                                               \
                for (unsigned t = 0; t < grid->block.x; t++)                                                           \
                    name##_phase(a, phase, b, t, shared);                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    ACS_DUAL_OBJECT_(name)

#endif

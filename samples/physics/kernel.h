/*
 * One source, two machines: PHYSICS_KERNEL turns a function of one thread into a kernel of the GPU, a function that
 * runs the whole grid on the CPU, and an object that names both.
 *
 * Every kernel takes one struct by value, whose `threads` says how many threads have work. A kernel whose threads work
 * together is a chain of phases with a barrier after each: PHYSICS_BLOCK_KERNEL.
 */
#ifndef PHYSICS_KERNEL_H
#define PHYSICS_KERNEL_H

#include "acs_dual.hpp"
#include "vec.h"

/* Threads per CTA: kernels over bodies and joints, and kernels over contacts. */
enum { BODY_BLOCK = 256, CONTACT_BLOCK = 128 };

typedef acs_dual_kernel kernel_object;

/** The kernel `kernel_<name>` of `void name_thread(const args_type &a, unsigned i)`, in CTAs of `cta` threads. */
#define PHYSICS_KERNEL(name, args_type, cta) ACS_DUAL_KERNEL(name, args_type, cta)

/** The same of `void name_phase(const args_type &, int phase, unsigned block, unsigned thread, shared_type &)`. */
#define PHYSICS_BLOCK_KERNEL(name, args_type, shared_type, cta)                                                        \
    PHYSICS_HD int name##_phases(const args_type &)                                                                    \
    {                                                                                                                  \
        return shared_type::phases;                                                                                    \
    }                                                                                                                  \
    ACS_DUAL_BLOCK_KERNEL(name, args_type, shared_type, cta)

#endif

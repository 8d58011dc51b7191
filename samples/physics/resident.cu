/*
 * Owns the executor of the simulation's kernels. An executor has the bodies of one file, so the text of all kernels is
 * compiled here once more, as bodies alone: the kernels themselves, and their objects, are in motion.cu, contact.cu and
 * policy.cu. Called once for each context.
 */
#include "resident.h"

#include "contact.h"
#include "kernels.h"

#ifdef __CUDACC__
#include "acs_resident.cuh"

#undef PHYSICS_KERNEL
#undef PHYSICS_BLOCK_KERNEL

#define PHYSICS_KERNEL(name, args_type, cta)                                                                           \
    struct name##_work {                                                                                               \
        template <class Block> static __device__ void run(const Block &block, const args_type &a)                      \
        {                                                                                                              \
            const unsigned i = block.index().x * block.size().x + block.thread().x;                                    \
            if (i < a.threads)                                                                                         \
                name##_thread(a, i);                                                                                   \
        }                                                                                                              \
    };                                                                                                                 \
    PHYSICS_BODY(name, args_type)

#define PHYSICS_BLOCK_KERNEL(name, args_type, shared_type, cta)                                                        \
    struct name##_work {                                                                                               \
        template <class Block> static __device__ void run(const Block &block, const args_type &a)                      \
        {                                                                                                              \
            __shared__ shared_type shared;                                                                             \
            for (int phase = 0; phase < shared_type::phases; phase++) {                                                \
                name##_phase(a, phase, block.index().x, block.thread().x, shared);                                     \
                block.sync();                                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    };                                                                                                                 \
    PHYSICS_BODY(name, args_type)

#define PHYSICS_BODY(name, args_type)                                                                                  \
    struct name##_body : acs::resident_body<name##_work, args_type> {                                                  \
        static const void *kernel() { return kernel_##name.code.function; }                                            \
    };

namespace {

#include "contact.cu"
#include "motion.cu"
#include "policy.cu"

ACS_EXECUTOR(executor, BODY_BLOCK, 0, kinetic_body, joint_body, motor_body, integrate_body, broad_body, islands_body,
             narrow_body, solve_body, apply_body, observe_body, hidden_body, action_body, reward_body, reset_body)

} // namespace

const acs_executor_params *physics_executor()
{
    return executor();
}
#else
const acs_executor_params *physics_executor()
{
    return nullptr;
}
#endif

/**
 * @file acs_cub.cuh
 * Algorithms of CUB and Thrust as ops of ACS, for C++17 compiled by nvcc. Header only: it includes acs.h, and Thrust where
 * ACS_CUB_NO_THRUST is not defined. Temporary memory is the slot's scratch memory, so nothing allocates and nothing waits.
 *
 *     acs::cub_call(context, ACS_USES(ACS_IN(x, n * sizeof *x), ACS_OUT(sum, sizeof *sum)),
 *                   [=](void *temporary, size_t &bytes, cudaStream_t stream) {
 *                       return cub::DeviceReduce::Sum(temporary, bytes, x, sum, n, stream);
 *                   });
 *     acs::thrust_call(context, ACS_USES(ACS_INOUT(x, n * sizeof *x)), 4 * n * sizeof *x,
 *                      [=](auto &policy) { thrust::sort(policy, x, x + n); });
 *
 * **Functions** are copied byte for byte into the op: capture pointers and numbers by value, and nothing that has a
 * destructor. They run on the thread that issues the op, and must not call ACS. They issue work to the stream, or by the
 * policy, and to nothing else.
 *
 * **State and order.** CUB and Thrust keep no state between calls. The footprint is yours, as for a kernel. `uses` names
 * what the algorithm reads and writes; temporary memory is not named.
 *
 * **Repeatable results.** CUB's sums and scans of floating-point numbers may round differently from run to run where its
 * documentation says so. Integers, minimum, maximum and sorting do not.
 *
 * **Errors.** As acs_call. What fails while the op runs is ACS_ERR_HOST: `native` is the cudaError_t of CUB or Thrust;
 * ENOMEM: the scratch memory is too small; ENOTSUP: there is no GPU; ECANCELED: the function threw something else. The
 * exception goes no further.
 *
 * **Captures.** Both work inside. The temporary memory then belongs to the graph.
 */
#ifndef ACS_CUB_CUH
#define ACS_CUB_CUH

#include "acs.h"

#include <cerrno>
#include <cstddef>
#include <cuda_runtime.h>
#include <exception>
#include <new>
#include <type_traits>

#ifndef ACS_CUB_NO_THRUST
#include <thrust/execution_policy.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>
#endif

namespace acs {

namespace wrap {

/* Queue a call whose closure is the function's bytes. */
template <class Function>
acs_op queue(acs_context *context, const acs_uses &uses, const Function &function, acs_call_fn run, size_t scratch_bytes,
             const acs_site *site)
{
    static_assert(std::is_trivially_copyable<Function>::value, "capture values without destructors: the op copies bytes");
    static_assert(sizeof(Function) <= ACS_ARG_BYTES_MAX, "the function captures too much");
    acs_call_params params = {};
    params.size = sizeof params;
    params.function = run;
    params.closure = &function;
    params.closure_bytes = sizeof function;
    params.scratch_bytes = scratch_bytes;
    params.uses = uses;
    params.site = site;
    return acs_call(context, &params);
}

/* The least that is asked for: CUB takes a null pointer for a question. */
constexpr size_t least_bytes = 256;

inline size_t at_least(size_t bytes)
{
    return bytes < least_bytes ? least_bytes : bytes;
}

/* CUB is asked again, since only here the device is certain. */
template <class Function> int run_cub(const acs_call_env *env, void *closure)
{
    Function &function = *static_cast<Function *>(closure);
    const cudaStream_t stream = static_cast<cudaStream_t>(env->stream);
    size_t bytes = 0;

    if (env->device < 0)
        return ENOTSUP;
    try {
        const cudaError_t asked = function(static_cast<void *>(nullptr), bytes, stream);
        if (asked != cudaSuccess)
            return static_cast<int>(asked);
        return bytes > env->scratch_bytes ? ENOMEM : static_cast<int>(function(env->scratch, bytes, stream));
    } catch (...) {
        return ECANCELED;
    }
}

} /* namespace wrap */

/**
 * Queue an algorithm of CUB's cub::Device... functions.
 * @param context   NULL: the default context. On the host backends the op fails with ENOTSUP.
 * @param uses      What the algorithm reads and writes.
 * @param function  cudaError_t (void *temporary, size_t &bytes, cudaStream_t stream): calls one algorithm with these. It
 *                  is called twice with a null pointer, for the size: once here, once when the op is issued.
 * @param site      Static storage; NULL: unknown.
 * @return as acs_call; 0 with ACS_ERR_ARGUMENT, kept by the context, if CUB refuses to tell the size.
 */
template <class Function>
acs_op cub_call(acs_context *context, const acs_uses &uses, Function function, const acs_site *site = nullptr)
{
    size_t bytes = 0;
    const bool gpu = acs_context_backend(context) == ACS_BACKEND_CUDA;
    const cudaError_t asked = gpu ? function(static_cast<void *>(nullptr), bytes, cudaStream_t{}) : cudaSuccess;

    /* A call without a function is refused, and the error kept. */
    return wrap::queue(context, uses, function, asked == cudaSuccess ? wrap::run_cub<Function> : nullptr,
                       gpu ? wrap::at_least(bytes) : 0, site);
}

#ifndef ACS_CUB_NO_THRUST

namespace wrap {

/* Temporary memory of one op: the scratch memory from its start. What is freed is used again once nothing is in use. */
class allocator {
  public:
    using value_type = char;
    allocator(void *memory, size_t bytes) : memory_(static_cast<char *>(memory)), bytes_(bytes)
    {
    }
    allocator(const allocator &) = delete;
    allocator &operator=(const allocator &) = delete;
    char *allocate(std::ptrdiff_t bytes)
    {
        const size_t wanted = (static_cast<size_t>(bytes) + least_bytes - 1) / least_bytes * least_bytes;
        if (wanted > bytes_ - used_)
            throw std::bad_alloc();
        char *const block = memory_ + used_;
        used_ += wanted;
        blocks_++;
        return block;
    }
    /* Work of the stream that still uses the block is ahead of all that may get it next. */
    void deallocate(char *, size_t)
    {
        if (--blocks_ == 0)
            used_ = 0;
    }

  private:
    char *memory_;
    size_t bytes_, used_ = 0, blocks_ = 0;
};

template <class Function> int run_thrust(const acs_call_env *env, void *closure)
{
    Function &function = *static_cast<Function *>(closure);
    using policy_type = decltype(thrust::cuda::par_nosync(std::declval<allocator &>()).on(cudaStream_t{}));
    static_assert(std::is_void<decltype(function(std::declval<policy_type &>()))>::value,
                  "the function returns nothing: a result would have to wait for the GPU");

    if (env->device < 0)
        return ENOTSUP;
    try {
        allocator memory(env->scratch, env->scratch_bytes);
        policy_type policy = thrust::cuda::par_nosync(memory).on(static_cast<cudaStream_t>(env->stream));
        function(policy);
        return 0;
    } catch (const std::bad_alloc &) {
        return ENOMEM;
    } catch (const thrust::system_error &error) {
        return error.code().value() ? error.code().value() : ECANCELED;
    } catch (...) {
        return ECANCELED;
    }
}

template <class Function> int run_thrust_dual(const acs_call_env *env, void *closure)
{
    if (env->device >= 0)
        return run_thrust<Function>(env, closure);
    try {
        auto policy = thrust::seq;
        (*static_cast<Function *>(closure))(policy);
        return 0;
    } catch (...) {
        return ECANCELED;
    }
}

} /* namespace wrap */

/**
 * Queue algorithms of Thrust.
 * @param context          NULL: the default context. On the host backends the op fails with ENOTSUP.
 * @param uses             What the algorithms read and write.
 * @param temporary_bytes  Most temporary memory that one of them takes; 0 where none takes any (transform, fill, copy,
 *                         for_each, sequence). Thrust does not tell: a sort takes about the size of its keys and values
 *                         and some MB, a scan some MB. Too little fails with ENOMEM.
 * @param function         void (auto &policy): gives the policy to each algorithm. The policy does not wait. So leave out
 *                         algorithms that return what the GPU computes (reduce, count, find, copy_if, unique, remove_if,
 *                         partition): they wait for the GPU inside the library's thread, and break a capture. Use
 *                         cub_call for these, with the result in device memory.
 * @param site             Static storage; NULL: unknown.
 */
template <class Function>
acs_op thrust_call(acs_context *context, const acs_uses &uses, size_t temporary_bytes, Function function,
                   const acs_site *site = nullptr)
{
    const bool gpu = acs_context_backend(context) == ACS_BACKEND_CUDA;
    return wrap::queue(context, uses, function, wrap::run_thrust<Function>, gpu ? wrap::at_least(temporary_bytes) : 0, site);
}

/**
 * As thrust_call. On the host backends the function runs with thrust::seq on the CPU. So all that it gives to Thrust must
 * be code of both (__host__ __device__).
 */
template <class Function>
acs_op thrust_dual_call(acs_context *context, const acs_uses &uses, size_t temporary_bytes, Function function,
                        const acs_site *site = nullptr)
{
    const bool gpu = acs_context_backend(context) == ACS_BACKEND_CUDA;
    return wrap::queue(context, uses, function, wrap::run_thrust_dual<Function>,
                       gpu ? wrap::at_least(temporary_bytes) : 0, site);
}

#endif /* ACS_CUB_NO_THRUST */

} /* namespace acs */

#endif /* ACS_CUB_CUH */

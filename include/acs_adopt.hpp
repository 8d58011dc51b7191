/*
 * Calls with the meaning of those of the CUDA runtime, for programs that acs-adopt brought over: C++17, beside acs.h.
 *
 *   acs_cuda_memcpy(dst, src, bytes, kind)        cudaMemcpy: returns when the copy has ended, but for copies on the device
 *   acs_cuda_memcpy_all(dst, src, bytes, kind)    the same, and all ops before it have ended, too
 *   acs_cuda_memcpy_async(dst, src, bytes, kind)  cudaMemcpyAsync: waits where the host's memory is pageable
 *   acs_cuda_memset(dst, value, bytes)            cudaMemset of device memory, cudaMemsetAsync
 *   acs_cuda_memset_all(dst, value, bytes)        cudaMemset: waits for all ops where the host sees the memory
 *   acs_cuda_sync()                               cudaDeviceSynchronize
 *   acs_cuda_event_record(event [, stream])       cudaEventRecord behind all ops; waits, so that times are true
 *   acs_cuda_malloc(&ptr, bytes), acs_cuda_free(ptr), acs_cuda_free_async(ptr, stream)
 *                                                 cudaMalloc as acs_malloc; the others free memory of any origin
 *   acs_cuda_reset()                              cudaDeviceReset: closes the default context first
 *   ACS_OUTSIDE(work)                             GPU work of the program's own, all ops before it, none beside it
 *
 * All use the default context and return a cudaError_t. Where that context is on no GPU they are CUDA's own calls, which say
 * what is wrong: the program's addresses are then no memory. docs/adopt.md says where acs-adopt writes which.
 */
#ifndef ACS_ADOPT_HPP
#define ACS_ADOPT_HPP

#include "acs.h"

#include <cerrno>
#include <mutex>
#include <unordered_set>

#include <cuda_runtime_api.h>

namespace acs {
namespace adopt {

/** The latest error of this thread, as CUDA would tell it. */
inline cudaError_t last_error()
{
    acs_error error{};
    error.size = sizeof error;
    switch (acs_last_error(&error)) {
    case ACS_OK: return cudaSuccess;
    case ACS_ERR_ARGUMENT: return cudaErrorInvalidValue;
    case ACS_ERR_MEMORY: return cudaErrorMemoryAllocation;
    case ACS_ERR_LAUNCH:
    case ACS_ERR_DEVICE:
        if (error.native == ETIMEDOUT) /* of the watchdog */
            return cudaErrorLaunchTimeout;
        return error.native ? static_cast<cudaError_t>(error.native) : cudaErrorLaunchFailure;
    default: return cudaErrorUnknown;
    }
}
inline cudaError_t result(acs_status status)
{
    return status == ACS_OK ? cudaSuccess : last_error();
}
inline cudaError_t result(acs_op op)
{
    return op ? cudaSuccess : last_error();
}

/* Whether the default context takes addresses of a GPU. One that cannot be opened refuses all ops, and touches none. */
inline bool on_gpu()
{
    acs_context *const context = acs_default();
    return !context || acs_context_backend(context) == ACS_BACKEND_CUDA;
}

inline cudaError_t sync()
{
    return on_gpu() ? result(acs_sync(acs_default())) : cudaDeviceSynchronize();
}

/* Whether the host may touch the memory as soon as a call of CUDA with it returns: it is in no memory that CUDA knows. */
inline bool pageable(const void *host)
{
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, host) != cudaSuccess) {
        (void)cudaGetLastError();
        return true;
    }
    return attributes.type == cudaMemoryTypeUnregistered;
}
/* Whether the host sees the memory at its address. */
inline bool seen_by_host(const void *ptr)
{
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, ptr) != cudaSuccess) {
        (void)cudaGetLastError();
        return true;
    }
    return attributes.type != cudaMemoryTypeDevice;
}

inline cudaError_t copy(const acs_op_params *here, void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
    if (!on_gpu())
        return cudaMemcpy(dst, src, bytes, kind);
    const acs_op op = acs_memcpy_op(acs_default(), dst, src, bytes, here);
    return !op || kind == cudaMemcpyDeviceToDevice ? result(op) : result(acs_wait(acs_default(), op));
}
inline cudaError_t copy_all(const acs_op_params *here, void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
    if (!on_gpu())
        return cudaMemcpy(dst, src, bytes, kind);
    const acs_op op = acs_memcpy_op(acs_default(), dst, src, bytes, here);
    return !op || kind == cudaMemcpyDeviceToDevice ? result(op) : sync();
}
inline cudaError_t copy_async(const acs_op_params *here, void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
    if (!on_gpu())
        return cudaMemcpy(dst, src, bytes, kind);
    const acs_op op = acs_memcpy_op(acs_default(), dst, src, bytes, here);
    if (!op || kind == cudaMemcpyDeviceToDevice)
        return result(op);
    if (kind != cudaMemcpyHostToDevice && pageable(dst)) /* whoever sees this copy's end may see that of earlier ones */
        return sync();
    return kind != cudaMemcpyDeviceToHost && pageable(src) ? result(acs_wait(acs_default(), op)) : cudaSuccess;
}
inline cudaError_t fill(const acs_op_params *here, void *dst, int value, size_t bytes)
{
    return on_gpu() ? result(acs_memset_op(acs_default(), dst, value, bytes, here)) : cudaMemset(dst, value, bytes);
}
inline cudaError_t fill_all(const acs_op_params *here, void *dst, int value, size_t bytes)
{
    const cudaError_t error = fill(here, dst, value, bytes);
    return error == cudaSuccess && seen_by_host(dst) ? sync() : error;
}

inline cudaError_t event_record(cudaEvent_t event, cudaStream_t stream = nullptr)
{
    const cudaError_t error = sync(), recorded = cudaEventRecord(event, stream);
    if (recorded != cudaSuccess)
        return recorded;
    const cudaError_t ended = cudaEventSynchronize(event); /* the program's own wait for it may wait for ACS alone */
    return error == cudaSuccess ? ended : error;
}

/* Memory that acs_cuda_malloc made: what else the program frees is CUDA's. */
struct blocks {
    std::mutex mutex;
    std::unordered_set<const void *> live;
};
inline blocks &all_blocks()
{
    static blocks *const all = new blocks; /* never destroyed: destructors of the program may free memory */
    return *all;
}
template <class T> cudaError_t allocate(const acs_op_params *here, T **ptr, size_t bytes)
{
    void *block = nullptr;
    if (!ptr || !on_gpu())
        return cudaMalloc(reinterpret_cast<void **>(ptr), bytes);
    if (bytes) {
        const acs_status status = acs_malloc_op(acs_default(), bytes, ACS_MEMORY_DEVICE, &block, here);
        if (status != ACS_OK)
            return result(status);
        std::lock_guard<std::mutex> hold(all_blocks().mutex);
        all_blocks().live.insert(block);
    }
    *ptr = static_cast<T *>(block);
    return cudaSuccess;
}
/* Whether the memory was one of these; it is none any more. */
inline bool forget(const void *ptr)
{
    std::lock_guard<std::mutex> hold(all_blocks().mutex);
    return all_blocks().live.erase(ptr) != 0;
}
inline cudaError_t release(const acs_op_params *here, void *ptr)
{
    return forget(ptr) ? result(acs_free_op(acs_default(), ptr, here)) : cudaFree(ptr);
}
inline cudaError_t release_async(const acs_op_params *here, void *ptr, cudaStream_t stream)
{
    return forget(ptr) ? result(acs_free_op(acs_default(), ptr, here)) : cudaFreeAsync(ptr, stream);
}

inline cudaError_t reset()
{
    (void)acs_close(acs_default());
    {
        std::lock_guard<std::mutex> hold(all_blocks().mutex);
        all_blocks().live.clear();
    }
    return cudaDeviceReset();
}

/* From before work of the program's own to the end of the expression that it is in. */
struct outside {
    outside() { (void)acs_sync(acs_default()); }
    ~outside() { (void)cudaDeviceSynchronize(); }
    outside(const outside &) = delete;
    outside &operator=(const outside &) = delete;
};

} // namespace adopt
} // namespace acs

#define acs_cuda_memcpy(...) (::acs::adopt::copy(ACS_HERE_("acs_cuda_memcpy"), __VA_ARGS__))
#define acs_cuda_memcpy_all(...) (::acs::adopt::copy_all(ACS_HERE_("acs_cuda_memcpy_all"), __VA_ARGS__))
#define acs_cuda_memcpy_async(...) (::acs::adopt::copy_async(ACS_HERE_("acs_cuda_memcpy_async"), __VA_ARGS__))
#define acs_cuda_memset(...) (::acs::adopt::fill(ACS_HERE_("acs_cuda_memset"), __VA_ARGS__))
#define acs_cuda_memset_all(...) (::acs::adopt::fill_all(ACS_HERE_("acs_cuda_memset_all"), __VA_ARGS__))
#define acs_cuda_sync() (::acs::adopt::sync())
#define acs_cuda_event_record(...) (::acs::adopt::event_record(__VA_ARGS__))
#define acs_cuda_malloc(...) (::acs::adopt::allocate(ACS_HERE_("acs_cuda_malloc"), __VA_ARGS__))
#define acs_cuda_free(...) (::acs::adopt::release(ACS_HERE_("acs_cuda_free"), __VA_ARGS__))
#define acs_cuda_free_async(...) (::acs::adopt::release_async(ACS_HERE_("acs_cuda_free_async"), __VA_ARGS__))
#define acs_cuda_reset() (::acs::adopt::reset())
/** The work keeps its value and type. Not inside a capture. */
#define ACS_OUTSIDE(...) (static_cast<void>(::acs::adopt::outside()), __VA_ARGS__)

#endif

/*
 * Owns the plain execution of one op on a stream or on the CPU, for all runners of this directory that issue ops
 * themselves. Called from the thread that has the slot. Never waits except where it says so.
 */
#include "streams_slot.h"

#include <cstdlib>
#include <cstring>

#include "memory.h"

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

void failure::note(const std::string &text)
{
    std::lock_guard<std::mutex> guard(lock_);
    if (text_.empty())
        text_ = text;
    any_.store(true, std::memory_order_relaxed);
}

std::string failure::take()
{
    std::lock_guard<std::mutex> guard(lock_);
    std::string text;
    text.swap(text_);
    any_.store(false, std::memory_order_relaxed);
    return text;
}

bool failure::refuse(int code, const char *what)
{
#if BENCH_CUDA
    note(std::string(what) + ": " + cudaGetErrorString(static_cast<cudaError_t>(code)));
    (void)cudaGetLastError(); /* said once: not found again by the next check */
#else
    note(std::string(what) + ": CUDA error " + std::to_string(code));
#endif
    return false;
}

std::string why_not(const op &o, bool gpu)
{
    if (o.kind != OP_KERNEL)
        return "";
    if (gpu && (o.kernel->code.kind != ACS_KERNEL_FUNCTION || !o.kernel->code.function))
        return std::string(op_name(o)) + " has no __global__ function";
    if (!gpu && !o.kernel->code.host)
        return std::string(op_name(o)) + " has no host body";
    return "";
}

std::string why_not(const trace &t, bool gpu)
{
    for (size_t k = 0; k < t.ops.size(); k++) {
        const std::string why = why_not(t.ops[k], gpu);
        if (!why.empty())
            return "op " + std::to_string(k) + ": " + why;
    }
    return "";
}

slot::slot(bool gpu, int index) : gpu_(gpu), index_(index)
{
#if BENCH_CUDA
    if (gpu) {
        cudaStream_t s;
        require_cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        stream_ = s;
    }
#endif
}

slot::~slot()
{
    for (const auto &p : places_)
        if (p.second.value && p.second.destroy)
            p.second.destroy(p.second.value);
    free_scratch();
#if BENCH_CUDA
    if (staging_)
        (void)cudaFreeHost(staging_);
    if (stream_)
        (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
#endif
}

void slot::free_scratch()
{
#if BENCH_CUDA
    if (gpu_ && scratch_)
        (void)cudaFree(scratch_); /* waits for what still uses it */
#endif
    if (!gpu_)
        free(scratch_);
    scratch_ = nullptr;
}

void slot::reserve(const op &o)
{
    if (o.kind == OP_CALL && o.call->scratch_bytes > scratch_bytes_) {
        free_scratch();
        scratch_bytes_ = (o.call->scratch_bytes + 255) / 256 * 256;
#if BENCH_CUDA
        if (gpu_)
            require_cuda(cudaMalloc(&scratch_, scratch_bytes_), "scratch memory of a library call");
#endif
        if (!gpu_)
            require((scratch_ = aligned_alloc(256, scratch_bytes_)) != nullptr, "out of memory");
    }
#if BENCH_CUDA
    if (o.kind == OP_READ && gpu_ && !staging_)
        require_cuda(cudaHostAlloc(&staging_, READ_BYTES, cudaHostAllocDefault), "cudaHostAlloc");
#endif
}

void slot::issue(const op &o, failure &f)
{
    if (o.kind == OP_CALL)
        call(o, f);
    else if (gpu_)
        issue_on_gpu(o, f);
    else
        issue_on_host(o);
}

void slot::issue_on_host(const op &o)
{
    if (o.kind == OP_KERNEL) {
        void *args[1] = {const_cast<void *>(o.args)};
        const acs_grid grid = {{o.grid, 1, 1}, {o.block, 1, 1}, 0, nullptr};
        o.kernel->code.host(&grid, args);
    } else if (o.kind == OP_FILL) {
        memset(o.to, o.value, o.bytes);
    } else if (o.bytes > 0) {
        memmove(o.to, o.from, o.bytes); /* a copy, or a read */
    }
}

void slot::issue_on_gpu(const op &o, failure &f)
{
#if BENCH_CUDA
    const cudaStream_t s = static_cast<cudaStream_t>(stream_);
    void *args[1] = {const_cast<void *>(o.args)};
    cudaError_t code = cudaSuccess;

    switch (o.kind) {
    case OP_KERNEL:
        code = cudaLaunchKernel(o.kernel->code.function, dim3(o.grid), dim3(o.block), args, 0, s);
        break;
    case OP_COPY: code = cudaMemcpyAsync(o.to, o.from, o.bytes, cudaMemcpyDefault, s); break;
    case OP_FILL: code = cudaMemsetAsync(o.to, o.value, o.bytes, s); break;
    case OP_READ: code = cudaMemcpyAsync(staging_, o.from, o.bytes, cudaMemcpyDeviceToHost, s); break;
    case OP_CALL: break; /* issue() makes those */
    }
    f.cuda(code, op_name(o));
#else
    (void)o;
    f.note("built without CUDA");
#endif
}

void slot::call(const op &o, failure &f)
{
    const acs_call_params &c = *o.call;
    acs_call_env env = {};

    env.stream = stream_;
    env.device = gpu_ ? 0 : -1;
    env.slot = index_;
    if (c.scratch_bytes > 0) {
        env.scratch = scratch_;
        env.scratch_bytes = c.scratch_bytes;
    }
    if (c.place_key) {
        place &p = places_[c.place_key];
        p.destroy = c.place_destroy;
        env.place = &p.value;
    }
    const int code = c.function(&env, const_cast<void *>(c.closure));
    if (code != 0)
        f.note(std::string(op_name(o)) + ": the library call failed with " + std::to_string(code));
}

void slot::fetch(const op &read)
{
    if (gpu_ && read.bytes > 0)
        memcpy(read.to, staging_, read.bytes);
}

void slot::wait(failure &f)
{
#if BENCH_CUDA
    if (gpu_)
        f.cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), "cudaStreamSynchronize");
#else
    (void)f;
#endif
}

void wait_for_device(bool gpu, failure &f)
{
#if BENCH_CUDA
    if (gpu)
        f.cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
#else
    (void)gpu;
    (void)f;
#endif
}

} // namespace bench

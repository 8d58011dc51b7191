/*
 * Owns the timing of single ops. Called before a measurement; what it leaves in buffers is overwritten by reset().
 */
#include "durations.h"

#include <algorithm>
#include <chrono>

#include "memory.h"

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

static double clock_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* One after another on the calling thread, the best of three. */
static float alone_us(memory &m, const op &o)
{
    double best = 0;
    for (int k = 0; k < 3; k++) {
        const double begin = clock_us();
        execute(m, o);
        const double took = clock_us() - begin;
        best = k == 0 ? took : std::min(best, took);
    }
    return static_cast<float>(best);
}

#if BENCH_CUDA
static const int FEW = 4, MANY = 12;

/* A cached graph of `count` times this op in a chain; NULL where the op cannot be captured. */
static cudaGraphExec_t chain_of(const op &o, const acs_call_env &env, int count, cudaStream_t stream)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    void *args[1] = {const_cast<void *>(o.args)};
    cudaError_t status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);

    for (int k = 0; k < count && status == cudaSuccess; k++)
        switch (o.kind) {
        case OP_KERNEL:
            status = cudaLaunchKernel(o.kernel->code.function, dim3(o.grid), dim3(o.block), args, 0, stream);
            break;
        case OP_COPY: status = cudaMemcpyAsync(o.to, o.from, o.bytes, cudaMemcpyDefault, stream); break;
        case OP_FILL: status = cudaMemsetAsync(o.to, o.value, o.bytes, stream); break;
        case OP_CALL:
            if (o.call->function(&env, const_cast<void *>(o.call->closure)) != 0)
                status = cudaErrorNotSupported;
            break;
        case OP_READ: break;
        }
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || status != cudaSuccess ||
        cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess)
        exec = nullptr;
    if (graph)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    return exec;
}

static double replay_us(cudaGraphExec_t exec, cudaStream_t stream)
{
    double best = 0;
    for (int k = 0; k < 4; k++) {
        require_cuda(cudaStreamSynchronize(stream), "timing an op");
        const double begin = clock_us();
        require_cuda(cudaGraphLaunch(exec, stream), "timing an op");
        require_cuda(cudaStreamSynchronize(stream), "timing an op");
        const double took = clock_us() - begin;
        best = k < 2 ? took : std::min(best, took);
    }
    return best;
}

/* 0 where the op cannot be captured: not known. */
static float chained_us(memory &m, const op &o, cudaStream_t stream)
{
    acs_call_env env = {};
    float us = 0;

    if (o.kind == OP_CALL) {
        execute(m, o); /* makes the handle, which cannot be made inside a capture */
        env = call_env(m, *o.call, stream);
    }
    const cudaGraphExec_t few = chain_of(o, env, FEW, stream), many = chain_of(o, env, MANY, stream);
    if (few && many)
        us = static_cast<float>(std::max(0.0, replay_us(many, stream) - replay_us(few, stream)) / (MANY - FEW));
    if (env.scratch)
        m.release(env.scratch);
    for (cudaGraphExec_t exec : {few, many})
        if (exec)
            (void)cudaGraphExecDestroy(exec);
    return us;
}
#endif

std::vector<float> op_durations(memory &m, const trace &t)
{
    std::vector<float> us(t.ops.size(), 0);
#if BENCH_CUDA
    if (m.gpu()) {
        cudaStream_t stream;
        require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        for (size_t k = 0; k < t.ops.size(); k++)
            us[k] = t.ops[k].kind == OP_READ ? 0 : chained_us(m, t.ops[k], stream);
        require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
        return us;
    }
#endif
    for (size_t k = 0; k < t.ops.size(); k++)
        us[k] = t.ops[k].kind == OP_READ ? 0 : alone_us(m, t.ops[k]);
    return us;
}

} // namespace bench

/*
 * Owns the three ways to execute ops. Called by the issue loop, from one thread at a time per scene. Reorders nothing
 * itself: ACS does, by the footprints; the other runners follow the order of the calls in each stream.
 */
#include "runner.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#if PHYSICS_CUDA
#include <cuda_runtime_api.h>
#endif

void require_acs(acs_status status, const char *what)
{
    acs_error error = {};

    if (status == ACS_OK)
        return;
    error.size = sizeof error;
    const bool known = acs_last_error(&error) != ACS_OK;
    fprintf(stderr, "physics: %s: %s: %s\n", what, acs_status_name(status),
            known ? error.text : acs_status_text(status));
    exit(1);
}

void require_cuda(int code, const char *what)
{
    if (code == 0)
        return;
#if PHYSICS_CUDA
    fprintf(stderr, "physics: %s: %s\n", what, cudaGetErrorString(static_cast<cudaError_t>(code)));
#else
    fprintf(stderr, "physics: %s: CUDA error %d\n", what, code);
#endif
    exit(1);
}

namespace {

/* Through ACS: the footprints say what may run at once. */
class acs_runner : public runner {
public:
    acs_runner(acs_context *context, int scenes, decider d)
        : context_(context), decider_(d), copies_(static_cast<size_t>(scenes))
    {
    }

    bool footprints() const override { return true; }
    bool has_sections() const override { return true; }
    decider decides() const override { return decider_; }

    void launch(const op &o) override
    {
        if (!o.kernel) {
            acs_op &copy = copies_[static_cast<size_t>(o.scene)].op[o.copy];
            copy = acs_memcpy(context_, o.target, o.source, o.bytes);
            require_queued(copy, "acs_memcpy");
            return;
        }
        const acs_arg arg = {o.args, o.arg_bytes, ACS_ARG_VALUE};
        acs_launch_params p = {};
        p.size = sizeof p;
        p.kernel = &o.kernel->code;
        p.grid = {o.grid, 1, 1};
        p.block = {o.block, 1, 1};
        p.args = {&arg, 1};
        p.uses = {o.segment, o.segments, nullptr, nullptr, 0};
        p.site = &o.kernel->site;
        /* The sections of a scene's ops are whole: no other scene's op comes in between. */
        if (o.section_begins)
            require_acs(acs_if(context_, o.section), "acs_if");
        require_queued(acs_launch(context_, &p), o.kernel->site.name);
        if (o.section_ends)
            require_acs(acs_end_if(context_), "acs_end_if");
    }

    void wait_copy(int scene, int copy) override
    {
        require_acs(acs_wait(context_, copies_[static_cast<size_t>(scene)].op[copy]), "acs_wait");
    }

    void finish() override { require_acs(acs_sync(context_), "acs_sync"); }

private:
protected:
    acs_context *const context_;

private:
    static void require_queued(acs_op op, const char *what)
    {
        if (op == 0)
            require_acs(acs_last_error(nullptr), what);
    }

    struct pair {
        acs_op op[2];
    };
    const decider decider_;
    std::vector<pair> copies_;
};

#if PHYSICS_CUDA
/* Through ACS too, but only once: the first step's ops become a graph. */
class captured_runner : public acs_runner {
public:
    captured_runner(acs_context *context, int scenes, decider d) : acs_runner(context, scenes, d)
    {
        require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    }

    ~captured_runner() override
    {
        if (step_)
            (void)cudaGraphExecDestroy(step_);
        (void)cudaStreamDestroy(stream_);
    }
    captured_runner(const captured_runner &) = delete;
    captured_runner &operator=(const captured_runner &) = delete;

    const launch_counts *step_begins() override
    {
        if (step_) {
            require_cuda(cudaGraphLaunch(step_, stream_), "cudaGraphLaunch");
            return &of_step_;
        }
        acs_runner::finish(); /* the graph does not wait for what came before it */
        require_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        if (acs_after_stream(context_, stream_, ACS_USES_ANY) == 0)
            require_acs(acs_last_error(nullptr), "acs_after_stream");
        return nullptr;
    }

    void step_ends(const launch_counts &of_step) override
    {
        cudaGraph_t graph = nullptr;

        require_acs(acs_stream_after(context_, stream_, ACS_USES_ANY), "acs_stream_after");
        require_cuda(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
        require_cuda(cudaGraphInstantiate(&step_, graph, 0), "cudaGraphInstantiate");
        require_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
        require_cuda(cudaGraphUpload(step_, stream_), "cudaGraphUpload"); /* as graphs with decisions need */
        of_step_ = of_step;
        require_cuda(cudaGraphLaunch(step_, stream_), "cudaGraphLaunch");
    }

    void finish() override
    {
        acs_runner::finish();
        require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }

private:
    cudaStream_t stream_ = nullptr;
    cudaGraphExec_t step_ = nullptr;
    launch_counts of_step_;
};
#endif

/* On the calling thread, one op after another. */
class inline_runner : public runner {
public:
    inline_runner(bool thread_per_scene, decider d) : thread_per_scene_(thread_per_scene), decider_(d) {}

    decider decides() const override { return decider_; }

    void launch(const op &o) override
    {
        if (!o.kernel) {
            memcpy(o.target, o.source, o.bytes);
            return;
        }
        const acs_grid grid = {{o.grid, 1, 1}, {o.block, 1, 1}, 0, nullptr};
        void *const args[1] = {const_cast<char *>(o.args)};
        o.kernel->code.host(&grid, args);
    }

    void wait_copy(int, int) override {}
    void finish() override {}

    int threads(int scenes) const override
    {
        const int cpus = static_cast<int>(std::thread::hardware_concurrency());
        if (!thread_per_scene_ || cpus < 2)
            return 1;
        return cpus < scenes ? cpus : scenes;
    }

private:
    bool thread_per_scene_;
    decider decider_;
};

#if PHYSICS_CUDA
/* Plain CUDA: one stream, or one per scene as a programmer would write it by hand. */
class stream_runner : public runner {
public:
    stream_runner(int streams, int scenes, decider d)
        : decider_(d), streams_(static_cast<size_t>(streams)), copied_(static_cast<size_t>(scenes))
    {
        for (cudaStream_t &s : streams_)
            require_cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
        for (pair &p : copied_)
            for (cudaEvent_t &e : p.event)
                require_cuda(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
    }

    ~stream_runner() override
    {
        for (cudaStream_t s : streams_)
            (void)cudaStreamDestroy(s);
        for (pair &p : copied_)
            for (cudaEvent_t e : p.event)
                (void)cudaEventDestroy(e);
    }
    stream_runner(const stream_runner &) = delete;
    stream_runner &operator=(const stream_runner &) = delete;

    decider decides() const override { return decider_; }

    void launch(const op &o) override
    {
        const size_t scene = static_cast<size_t>(o.scene);
        cudaStream_t stream = streams_[scene % streams_.size()];
        if (!o.kernel) {
            require_cuda(cudaMemcpyAsync(o.target, o.source, o.bytes, cudaMemcpyDeviceToHost, stream),
                         "cudaMemcpyAsync");
            require_cuda(cudaEventRecord(copied_[scene].event[o.copy], stream), "cudaEventRecord");
            return;
        }
        void *args[1] = {const_cast<char *>(o.args)};
        require_cuda(cudaLaunchKernel(o.kernel->code.function, dim3(o.grid), dim3(o.block), args, 0, stream),
                     o.kernel->site.name);
    }

    void wait_copy(int scene, int copy) override
    {
        require_cuda(cudaEventSynchronize(copied_[static_cast<size_t>(scene)].event[copy]), "cudaEventSynchronize");
    }

    void finish() override
    {
        for (cudaStream_t s : streams_)
            require_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
    }

private:
    struct pair {
        cudaEvent_t event[2];
    };
    decider decider_;
    std::vector<cudaStream_t> streams_;
    std::vector<pair> copied_;
};
#endif

} // namespace

std::unique_ptr<runner> make_acs_runner(acs_context *context, int scenes, decider d)
{
    return std::make_unique<acs_runner>(context, scenes, d);
}

std::unique_ptr<runner> make_captured_runner(acs_context *context, int scenes, decider d)
{
#if PHYSICS_CUDA
    return std::make_unique<captured_runner>(context, scenes, d);
#else
    (void)context, (void)scenes, (void)d;
    return nullptr;
#endif
}

std::unique_ptr<runner> make_inline_runner(bool thread_per_scene, decider d)
{
    return std::make_unique<inline_runner>(thread_per_scene, d);
}

std::unique_ptr<runner> make_stream_runner(int streams, int scenes, decider d)
{
#if PHYSICS_CUDA
    return std::make_unique<stream_runner>(streams, scenes, d);
#else
    (void)scenes;
    return make_inline_runner(streams > 1, d);
#endif
}

void memory_copy(bool gpu, void *to, const void *from, size_t bytes)
{
#if PHYSICS_CUDA
    if (gpu) {
        require_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
        /* It may return while the last part is on its way, and the runners' streams do not wait for it. */
        require_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        return;
    }
#endif
    (void)gpu;
    memcpy(to, from, bytes);
}

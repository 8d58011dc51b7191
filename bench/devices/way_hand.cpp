/*
 * Runs a plan with plain CUDA: streams and events of each device, one thread. On the CPU step by step, to see that plans are
 * right. Called by the measuring loop.
 */
#include "ways.h"

#include <cstring>

#include "streams_slot.h"

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

namespace {

class hand_way : public devices_way {
public:
    hand_way(const machine &m, const task &t, unsigned devices, const assignment &where)
        : gpu_(m.gpu), plan_(make_plan(t, devices, where))
    {
        for (unsigned d = 0; d < devices; d++) {
            use(d);
            enable_peers(d, devices);
            places_.emplace_back();
            for (const task_block &b : t.blocks())
                places_.back().push_back(allocate(b.bytes));
        }
        for (unsigned s = 0; s < plan_.streams; s++) {
            use(s % devices);
            slots_.emplace_back(new slot(gpu_, static_cast<int>(s)));
            op read = {};
            read.kind = OP_READ;
            slots_.back()->reserve(read);
        }
        make_events();
        use(0);
    }
    ~hand_way() override
    {
        for (size_t d = 0; d < places_.size(); d++)
            for (void *p : places_[d])
                release(static_cast<unsigned>(d), p);
#if BENCH_CUDA
        for (cudaEvent_t e : events_)
            if (e)
                (void)cudaEventDestroy(e);
#endif
        slots_.clear();
        use(0);
    }
    hand_way(const hand_way &) = delete;
    hand_way &operator=(const hand_way &) = delete;

    void submit(task &t) override
    {
        for (size_t i = 0; i < plan_.steps.size() && !failure_.any(); i++)
            issue(t, i);
    }

    std::string finish() override
    {
        for (unsigned s = 0; s < plan_.streams; s++)
            slots_[s]->wait(failure_);
        use(0);
        return failure_.take();
    }

    uint64_t copied() override { return plan_.copied; }

private:
    void use(unsigned device)
    {
        if (device == current_)
            return;
        current_ = device;
#if BENCH_CUDA
        if (gpu_)
            require_cuda(cudaSetDevice(gpu_of(device)), "cudaSetDevice");
#endif
    }

    void enable_peers(unsigned device, unsigned devices)
    {
#if BENCH_CUDA
        for (unsigned other = 0; other < devices && gpu_; other++)
            if (gpu_of(other) != gpu_of(device) && cudaDeviceEnablePeerAccess(gpu_of(other), 0) != cudaSuccess)
                (void)cudaGetLastError(); /* it is enabled, or copies go through the host */
#else
        (void)device, (void)devices;
#endif
    }

    void *allocate(size_t bytes)
    {
#if BENCH_CUDA
        if (gpu_) {
            void *p = nullptr;
            require_cuda(cudaMalloc(&p, bytes), "cudaMalloc");
            return p;
        }
#endif
        return aligned_alloc(256, (bytes + 255) / 256 * 256);
    }

    void release(unsigned device, void *p)
    {
        use(device);
#if BENCH_CUDA
        if (gpu_) {
            (void)cudaFree(p);
            return;
        }
#endif
        free(p);
    }

    void make_events()
    {
#if BENCH_CUDA
        events_.resize(plan_.steps.size(), nullptr);
        for (size_t i = 0; i < events_.size() && gpu_; i++) {
            use(plan_.steps[i].device);
            if (plan_.steps[i].awaited)
                require_cuda(cudaEventCreateWithFlags(&events_[i], cudaEventDisableTiming), "cudaEventCreateWithFlags");
        }
#endif
    }

    void issue(task &t, size_t i)
    {
        const plan_step &step = plan_.steps[i];
        slot &to = *slots_[step.stream];
        use(step.device);
#if BENCH_CUDA
        for (size_t other : step.waits)
            if (gpu_)
                failure_.cuda(cudaStreamWaitEvent(static_cast<cudaStream_t>(to.stream()), events_[other], 0),
                              "cudaStreamWaitEvent");
#endif
        if (step.kind == plan_step::COPY)
            copy(t, step, to);
        else
            to.issue(t.kernel(step.op, places_[step.device]), failure_);
        if (step.kind == plan_step::READ)
            to.wait(failure_); /* the program goes on once it has seen it */
#if BENCH_CUDA
        if (gpu_ && step.awaited)
            failure_.cuda(cudaEventRecord(events_[i], static_cast<cudaStream_t>(to.stream())), "cudaEventRecord");
#endif
    }

    void copy(const task &t, const plan_step &step, slot &to)
    {
        const task_block &b = t.blocks()[step.block];
        op o = {};
        o.kind = step.source < 0 && b.zero ? OP_FILL : OP_COPY;
        o.bytes = step.bytes;
        o.to = (step.target < 0 ? b.out : at(step.target, step.block)) + step.from;
        o.from = o.kind == OP_FILL ? nullptr : (step.source < 0 ? b.in : at(step.source, step.block)) + step.from;
        to.issue(o, failure_);
    }

    char *at(int device, size_t block) { return static_cast<char *>(places_[static_cast<size_t>(device)][block]); }

    const bool gpu_;
    const plan plan_;
    unsigned current_ = UINT32_MAX;
    failure failure_;
    std::vector<std::vector<void *>> places_; /* of each device: of each block */
    std::vector<std::unique_ptr<slot>> slots_;
#if BENCH_CUDA
    std::vector<cudaEvent_t> events_;
#endif
};

} // namespace

std::unique_ptr<devices_way> make_hand_way(const machine &m, const task &t, unsigned devices, const assignment &where)
{
    return std::unique_ptr<devices_way>(new hand_way(m, t, devices, where));
}

} // namespace bench

/*
 * Owns the plain execution of a job's ops, and the serial program: one stream, or the calling thread on the CPU, and the
 * same device buffers for each job. Called by the measuring loop, and by the runners that issue to streams themselves.
 */
#include <cstring>

#include "job_runner.h"
#include "plain_sink.h"

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace bench {

plain_args::plain_args(const job_launch &l)
{
    require(l.arg_count <= PLAIN_ARGS_MAX, "a kernel has too many parameters");
    for (size_t k = 0; k < l.arg_count; k++)
        list[k] = const_cast<void *>(l.args[k].value);
}

/* Both return a cudaError_t. */
#if BENCH_CUDA
static int copy_on_gpu(void *to, const void *from, size_t bytes, void *stream)
{
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream));
}

static int launch_on_gpu(const job_launch &l, void **args, void *stream)
{
    return cudaLaunchKernel(l.kernel->code.function, dim3(l.grid), dim3(l.block), args, 0,
                            static_cast<cudaStream_t>(stream));
}
#else
static int copy_on_gpu(void *, const void *, size_t, void *)
{
    return -1;
}

static int launch_on_gpu(const job_launch &, void **, void *)
{
    return -1;
}
#endif

void plain_sink::copy(void *to, const void *from, size_t bytes)
{
    if (gpu_)
        failure_.cuda(copy_on_gpu(to, from, bytes, stream_), "a copy");
    else
        memcpy(to, from, bytes);
}

void plain_sink::launch(const job_launch &l)
{
    plain_args args(l);
    const acs_grid grid = {{l.grid, 1, 1}, {l.block, 1, 1}, 0, nullptr};

    if (gpu_)
        failure_.cuda(launch_on_gpu(l, args.list, stream_), l.kernel->site.name);
    else
        l.kernel->code.host(&grid, args.list);
}

namespace {

class serial : public job_runner {
public:
    explicit serial(const machine &m) : gpu_(m.gpu), slot_(m.gpu, 0) {}

    std::string prepare(const job_list &jobs, size_t) override
    {
        jobs_ = &jobs;
        return fill_ring(ring_, jobs.what(), 1, gpu_);
    }

    void run() override
    {
        plain_sink sink(slot_.stream(), gpu_, failure_);
        for (size_t job = 0; job < jobs_->count(); job++)
            jobs_->issue(sink, job, ring_.of(job));
    }

    std::string finish() override
    {
        slot_.wait(failure_);
        return failure_.take();
    }

    uint64_t device_bytes() override { return ring_.bytes(); }

private:
    const bool gpu_;
    slot slot_;
    failure failure_;
    buffer_ring ring_; /* of one set */
    const job_list *jobs_ = nullptr;
};

} // namespace

std::unique_ptr<job_runner> make_serial(const machine &m)
{
    return std::unique_ptr<job_runner>(new serial(m));
}

} // namespace bench

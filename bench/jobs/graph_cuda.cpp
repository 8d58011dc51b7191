/*
 * Owns the program that keeps a job as a CUDA graph: made once, launched for each job in one stream, with the job's host
 * buffers set in its copies before. Called by the measuring loop, on one thread.
 */
#include <cuda_runtime_api.h>

#include "job_runner.h"
#include "plain_sink.h"

namespace bench {

namespace {

/* Makes a graph of the ops: each behind the one before, as a capture of one stream would. */
class graph_maker : public job_sink {
public:
    graph_maker(cudaGraph_t graph, failure &f) : graph_(graph), failure_(f) {}

    void copy(void *to, const void *from, size_t bytes) override
    {
        cudaGraphNode_t node = nullptr;
        const cudaError_t code = cudaGraphAddMemcpyNode1D(&node, graph_, &last_, last_ ? 1 : 0, to, from, bytes,
                                                          cudaMemcpyDefault);
        added(code, node, "a copy");
        copies.push_back(node);
    }

    void launch(const job_launch &l) override
    {
        plain_args args(l);
        cudaKernelNodeParams p = {};
        cudaGraphNode_t node = nullptr;
        p.func = const_cast<void *>(l.kernel->code.function);
        p.gridDim = dim3(l.grid);
        p.blockDim = dim3(l.block);
        p.kernelParams = args.list;
        const cudaError_t code = cudaGraphAddKernelNode(&node, graph_, &last_, last_ ? 1 : 0, &p);
        added(code, node, l.kernel->site.name);
    }

    std::vector<cudaGraphNode_t> copies;

private:
    void added(cudaError_t code, cudaGraphNode_t node, const char *what)
    {
        if (failure_.cuda(code, what))
            last_ = node;
    }

    cudaGraph_t graph_;
    cudaGraphNode_t last_ = nullptr;
    failure &failure_;
};

/* Sets the copies of an executable graph to those of a job; its kernels are the same for all jobs. */
class graph_setter : public job_sink {
public:
    graph_setter(cudaGraphExec_t exec, const std::vector<cudaGraphNode_t> &copies, failure &f)
        : exec_(exec), copies_(copies), failure_(f)
    {
    }

    void copy(void *to, const void *from, size_t bytes) override
    {
        failure_.cuda(cudaGraphExecMemcpyNodeSetParams1D(exec_, copies_[place_++], to, from, bytes, cudaMemcpyDefault),
                      "cudaGraphExecMemcpyNodeSetParams1D");
    }
    void launch(const job_launch &) override {}

private:
    cudaGraphExec_t exec_;
    const std::vector<cudaGraphNode_t> &copies_;
    size_t place_ = 0;
    failure &failure_;
};

class graph : public job_runner {
public:
    graph() : slot_(true, 0) {}
    ~graph() override { drop(); }

    std::string prepare(const job_list &jobs, size_t) override
    {
        drop();
        jobs_ = &jobs;
        const std::string lacking = fill_ring(ring_, jobs.what(), 1, true);
        if (!lacking.empty())
            return lacking;
        if (!failure_.cuda(cudaGraphCreate(&graph_, 0), "cudaGraphCreate"))
            return failure_.take();
        graph_maker maker(graph_, failure_);
        jobs.issue(maker, 0, ring_.of(0));
        copies_ = maker.copies;
        if (!failure_.any() && failure_.cuda(cudaGraphInstantiate(&exec_, graph_, 0), "cudaGraphInstantiate"))
            failure_.cuda(cudaGraphUpload(exec_, stream()), "cudaGraphUpload");
        return failure_.take();
    }

    void run() override
    {
        for (size_t job = 0; job < jobs_->count(); job++) {
            graph_setter setter(exec_, copies_, failure_);
            jobs_->issue(setter, job, ring_.of(0));
            failure_.cuda(cudaGraphLaunch(exec_, stream()), "cudaGraphLaunch");
        }
    }

    std::string finish() override
    {
        slot_.wait(failure_);
        return failure_.take();
    }

    uint64_t device_bytes() override { return ring_.bytes(); }

private:
    cudaStream_t stream() const { return static_cast<cudaStream_t>(slot_.stream()); }

    void drop()
    {
        if (exec_)
            (void)cudaGraphExecDestroy(exec_);
        if (graph_)
            (void)cudaGraphDestroy(graph_);
        exec_ = nullptr;
        graph_ = nullptr;
    }

    slot slot_;
    failure failure_;
    buffer_ring ring_; /* of one set */
    const job_list *jobs_ = nullptr;
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t exec_ = nullptr;
    std::vector<cudaGraphNode_t> copies_; /* in the order of a job's ops */
};

} // namespace

std::unique_ptr<job_runner> make_job_graph(const machine &)
{
    return std::unique_ptr<job_runner>(new graph);
}

} // namespace bench

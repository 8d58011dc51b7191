/*
 * Owns CUDA graphs: nodes with edges, instantiation, update, launch. Called by the drivers that use graphs, from one
 * thread. Waits for the GPU only in `wait` and `finish`, and where an executable has to go that may still run.
 */
#include "grapher.h"

#if PHYSICS_CUDA

#include <cuda_runtime_api.h>
#include <unordered_map>

#include "runner.h"

namespace {

enum { LAUNCHES = 16, MOST_KEPT = 256 }; /* launches that are told apart; executables kept for updates */

cudaGraphNode_t add_node(cudaGraph_t graph, const op &o, const std::vector<cudaGraphNode_t> &after)
{
    cudaGraphNode_t node = nullptr;

    if (!o.kernel) {
        require_cuda(cudaGraphAddMemcpyNode1D(&node, graph, after.data(), after.size(), o.target, o.source, o.bytes,
                                              cudaMemcpyDeviceToHost),
                     "cudaGraphAddMemcpyNode1D");
        return node;
    }
    void *args[1] = {const_cast<char *>(o.args)};
    cudaKernelNodeParams p = {};
    p.func = const_cast<void *>(o.kernel->code.function);
    p.gridDim = dim3(o.grid);
    p.blockDim = dim3(o.block);
    p.kernelParams = args;
    require_cuda(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &p), "cudaGraphAddKernelNode");
    return node;
}

void add_part(cudaGraph_t graph, const ops_graph::part &part)
{
    std::vector<cudaGraphNode_t> nodes, after;

    nodes.reserve(part.ops->size());
    for (size_t k = 0; k < part.ops->size(); k++) {
        after.clear();
        for (const int j : part.edges->after[k])
            after.push_back(nodes[static_cast<size_t>(j)]);
        nodes.push_back(add_node(graph, (*part.ops)[k], after));
    }
}

cudaGraph_t build(const ops_graph &g)
{
    cudaGraph_t graph = nullptr;

    require_cuda(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
    for (const ops_graph::part &part : g.parts)
        add_part(graph, part);
    return graph;
}

uint64_t kernels_of(const ops_graph &g)
{
    uint64_t sum = 0;
    for (const ops_graph::part &part : g.parts)
        for (const op &o : *part.ops)
            sum += o.kernel != nullptr;
    return sum;
}

uint64_t shape_of(const ops_graph &g)
{
    uint64_t shape = HASH_START;
    for (const ops_graph::part &part : g.parts)
        shape = hash_add(shape, part.edges->shape);
    return shape;
}

class cuda_grapher : public grapher {
public:
    explicit cuda_grapher(bool update) : update_(update)
    {
        require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        for (launched &l : ring_)
            require_cuda(cudaEventCreateWithFlags(&l.event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    }

    ~cuda_grapher() override
    {
        (void)cudaStreamSynchronize(stream_);
        for (launched &l : ring_) {
            if (l.once)
                (void)cudaGraphExecDestroy(l.once);
            (void)cudaEventDestroy(l.event);
        }
        for (auto &k : kept_)
            (void)cudaGraphExecDestroy(k.second.exec);
        if (replayed_)
            (void)cudaGraphExecDestroy(replayed_);
        (void)cudaStreamDestroy(stream_);
    }
    cuda_grapher(const cuda_grapher &) = delete;
    cuda_grapher &operator=(const cuda_grapher &) = delete;

    uint64_t launch(const ops_graph &g) override
    {
        const uint64_t number = ++launches_;
        launched &l = ring_[number % LAUNCHES];
        cudaGraph_t graph = build(g);

        if (l.once) {
            require_cuda(cudaEventSynchronize(l.event), "cudaEventSynchronize");
            require_cuda(cudaGraphExecDestroy(l.once), "cudaGraphExecDestroy");
        }
        const cudaGraphExec_t exec = update_ ? updated(graph, shape_of(g)) : instantiated(graph);
        l.once = update_ ? nullptr : exec;
        require_cuda(cudaGraphLaunch(exec, stream_), "cudaGraphLaunch");
        require_cuda(cudaEventRecord(l.event, stream_), "cudaEventRecord");
        require_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
        counts.graphs++;
        counts.kernels += kernels_of(g);
        return number;
    }

    /* The event of a launch that was too long ago stands for a later one by now. */
    void wait(uint64_t number) override
    {
        require_cuda(cudaEventSynchronize(ring_[number % LAUNCHES].event), "cudaEventSynchronize");
    }

    void keep(const ops_graph &g) override
    {
        cudaGraph_t graph = build(g);
        replayed_ = instantiated(graph);
        require_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
        require_cuda(cudaGraphUpload(replayed_, stream_), "cudaGraphUpload");
        replayed_kernels_ = kernels_of(g);
        finish();
    }

    void replay() override
    {
        require_cuda(cudaGraphLaunch(replayed_, stream_), "cudaGraphLaunch");
        counts.kernels += replayed_kernels_;
    }

    void finish() override { require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

private:
    struct launched {
        cudaEvent_t event = nullptr;
        cudaGraphExec_t once = nullptr; /* to be destroyed when the launch is complete */
    };
    struct kept {
        cudaGraphExec_t exec;
        uint64_t last; /* launch */
    };

    cudaGraphExec_t instantiated(cudaGraph_t graph)
    {
        cudaGraphExec_t exec = nullptr;
        require_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiateWithFlags");
        counts.instantiated++;
        return exec;
    }

    /* The executable kept for this shape, updated; a new one where there is none or CUDA refuses the update. */
    cudaGraphExec_t updated(cudaGraph_t graph, uint64_t shape)
    {
        const auto found = kept_.find(shape);
        if (found != kept_.end()) {
            cudaGraphExecUpdateResultInfo info = {};
            found->second.last = launches_;
            if (cudaGraphExecUpdate(found->second.exec, graph, &info) == cudaSuccess) {
                counts.updated++;
                return found->second.exec;
            }
            (void)cudaGetLastError(); /* the refusal, which is no failure of the program */
            drop(found);
        } else if (kept_.size() == MOST_KEPT) {
            auto oldest = kept_.begin();
            for (auto k = kept_.begin(); k != kept_.end(); ++k)
                if (k->second.last < oldest->second.last)
                    oldest = k;
            drop(oldest);
        }
        return kept_.emplace(shape, kept{instantiated(graph), launches_}).first->second.exec;
    }

    void drop(std::unordered_map<uint64_t, kept>::iterator k)
    {
        finish();
        require_cuda(cudaGraphExecDestroy(k->second.exec), "cudaGraphExecDestroy");
        kept_.erase(k);
    }

    const bool update_;
    cudaStream_t stream_ = nullptr;
    launched ring_[LAUNCHES];
    uint64_t launches_ = 0, replayed_kernels_ = 0;
    std::unordered_map<uint64_t, kept> kept_;
    cudaGraphExec_t replayed_ = nullptr;
};

} // namespace

std::unique_ptr<grapher> make_cuda_grapher(bool update)
{
    return std::make_unique<cuda_grapher>(update);
}

#else

std::unique_ptr<grapher> make_cuda_grapher(bool)
{
    return nullptr;
}

#endif

/*
 * Owns the runner that issues a plan of streams through 1-node executable graphs. Called by the program's thread;
 * graphs are made in prepare() and kept, because a runtime would keep them too.
 */
#include "graph_launch.h"

#include "memory.h"

#include <cuda_runtime_api.h>

namespace bench {

/* Measured on an H200: parameters 0.2 µs, the launch of one node 1.3. More than one thread makes it slower. */
static plan_costs graph1_costs()
{
    plan_costs c;
    c.launch_us = 1.5;
    return c;
}

graph1_runner::graph1_runner(const machine &m)
    : streams_runner(m, {{4, 1}, {8, 1}, {16, 1}}, graph1_costs())
{
}

graph1_runner::~graph1_runner()
{
    for (const auto &entry : vehicles_) {
        (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(entry.second.exec));
        (void)cudaGraphDestroy(static_cast<cudaGraph_t>(entry.second.graph));
    }
}

static cudaKernelNodeParams node_params(const op &o, void **args)
{
    cudaKernelNodeParams p = {};
    p.func = const_cast<void *>(o.kernel->code.function);
    p.gridDim = dim3(o.grid);
    p.blockDim = dim3(o.block);
    p.kernelParams = args;
    return p;
}

/* With zeros for arguments: they are set before every launch. */
graph1_runner::vehicle graph1_runner::make(const op &o)
{
    std::vector<char> zeros(o.arg_bytes + 1);
    void *args[1] = {zeros.data()};
    const cudaKernelNodeParams p = node_params(o, args);
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t exec;

    require_cuda(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
    require_cuda(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &p), "cudaGraphAddKernelNode");
    require_cuda(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    vehicle v;
    v.graph = graph;
    v.node = node;
    v.exec = exec;
    return v;
}

std::string graph1_runner::plan_run()
{
    const std::string why = streams_runner::plan_run();
    by_step_.assign(plan_.steps.size(), nullptr);
    for (size_t k = 0; why.empty() && k < plan_.steps.size(); k++) {
        const op &o = trace_.ops[plan_.steps[k].op];
        if (o.kind != OP_KERNEL)
            continue;
        vehicle &v = vehicles_[key(plan_.steps[k].stream, o.kernel->code.function)];
        if (!v.exec) {
            v = make(o);
            /* The first launch would upload it: not something that a cached graph pays for. */
            require_cuda(cudaGraphUpload(static_cast<cudaGraphExec_t>(v.exec),
                                         static_cast<cudaStream_t>(slots_[plan_.steps[k].stream]->stream())),
                         "cudaGraphUpload");
        }
        by_step_[k] = &v;
    }
    return why;
}

void graph1_runner::send(size_t step, const op &o, slot &s)
{
    const vehicle *const v = by_step_[step];
    if (!v) {
        s.issue(o, failure_);
        return;
    }
    void *args[1] = {const_cast<void *>(o.args)};
    const cudaKernelNodeParams p = node_params(o, args);
    const cudaGraphExec_t exec = static_cast<cudaGraphExec_t>(v->exec);
    if (failure_.cuda(cudaGraphExecKernelNodeSetParams(exec, static_cast<cudaGraphNode_t>(v->node), &p), op_name(o)))
        failure_.cuda(cudaGraphLaunch(exec, static_cast<cudaStream_t>(s.stream())), op_name(o));
}

void add_graph1(std::vector<runner_kind> &list)
{
    list.push_back({"graph1", "the same plan, each kernel launched as a kept 1-node graph", true, false,
                    [](const machine &m) { return std::unique_ptr<runner>(new graph1_runner(m)); }});
}

} // namespace bench

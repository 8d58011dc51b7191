/*
 * Owns the runners that make a CUDA graph of each stretch of a run: built anew, updated, replayed. Called by the program's
 * thread. A read follows its stretch's graph in the stream, so it waits for all of that, and graphs of two stretches never
 * overlap.
 */
#include "graphs.h"

#include <algorithm>
#include <cstring>

#include "graphs_join.h"
#include "memory.h"
#include "runners.h"

namespace bench {

/* Library calls that may run at once, each with scratch memory and handles of its own. */
static const int CALL_SLOTS = 16;

static cudaStream_t stream_of(const slot &s)
{
    return static_cast<cudaStream_t>(s.stream());
}

graph_runner::~graph_runner()
{
    drop_graph();
    drop_execs();
}

void graph_runner::drop_graph()
{
    if (graph_)
        (void)cudaGraphDestroy(graph_);
    graph_ = nullptr;
}

void graph_runner::drop_execs()
{
    for (cudaGraphExec_t e : execs_)
        if (e)
            (void)cudaGraphExecDestroy(e);
    execs_.clear();
}

std::string graph_runner::setting() const
{
    return variant_ == 0 ? "edges of the dag" : "joins of many edges";
}

std::string graph_runner::note() const
{
    std::string text = "nodes " + std::to_string(shape_.nodes.size()) + ", edges " + std::to_string(shape_.ups.size()) +
                       ", joins " + std::to_string(shape_.joins);
    if (mode_ == GRAPH_UPDATE)
        text += ", updates " + std::to_string(updates_) + ", rebuilds " + std::to_string(rebuilds_);
    return text;
}

/* Executable graphs to be updated are those of the run before, whatever that was; a replay's belong to this plan. */
std::string graph_runner::plan_run()
{
    shape_ = shape_graphs(trace_.ops, dag_, variant_ == 1, CALL_SLOTS);
    while (slots_.size() < static_cast<size_t>(shape_.slots))
        slots_.emplace_back(new slot(machine_.gpu, static_cast<int>(slots_.size())));
    for (const graph_node &n : shape_.nodes)
        if (n.op != NODE_JOIN)
            slots_[static_cast<size_t>(n.slot)]->reserve(trace_.ops[n.op]);
    for (const op &o : trace_.ops)
        if (o.kind == OP_READ)
            slots_[0]->reserve(o);
    if (mode_ == GRAPH_REPLAY)
        drop_execs();
    execs_.resize(std::max(execs_.size(), shape_.stretch_end.size()));
    return try_out();
}

/*
 * Builds every graph once, outside what is timed: a library that cannot be captured is found now, its handles are made,
 * and a replay keeps what is built.
 */
std::string graph_runner::try_out()
{
    for (size_t k = 0; k < trace_.ops.size(); k++)
        held_[k] = &trace_.ops[k];
    for (size_t stretch = 0; stretch < shape_.stretch_end.size() && !failure_.any(); stretch++) {
        if (build(stretch) && mode_ == GRAPH_REPLAY && instantiate(&execs_[stretch]))
            failure_.cuda(cudaGraphUpload(execs_[stretch], stream_of(*slots_[0])), "cudaGraphUpload");
        drop_graph();
    }
    wait_for_device(machine_.gpu, failure_);
    return failure_.take();
}

void graph_runner::begin()
{
    updates_ = rebuilds_ = 0;
}

/*
 * A call that issues nothing ends in what it is behind, so a node may be named twice. The order stays: updates look at it.
 */
static void drop_repeated(std::vector<cudaGraphNode_t> &nodes)
{
    auto end = nodes.begin();
    for (cudaGraphNode_t n : nodes)
        if (std::find(nodes.begin(), end, n) == end)
            *end++ = n;
    nodes.erase(end, nodes.end());
}

/* The upstream nodes of n, into edges_. */
void graph_runner::gather(const graph_node &n)
{
    const size_t first = static_cast<size_t>(&n - shape_.nodes.data()) - leaf_end_.size();

    edges_.clear();
    for (uint32_t k = 0; k < n.up_count; k++) {
        const size_t up = shape_.ups[n.first_up + k] - first;
        for (size_t leaf = up == 0 ? 0 : leaf_end_[up - 1]; leaf < leaf_end_[up]; leaf++)
            edges_.push_back(leaves_[leaf]);
    }
    if (shape_.calls)
        drop_repeated(edges_);
}

/* Leaves no graph behind where it fails. */
bool graph_runner::build(size_t stretch)
{
    leaves_.clear();
    leaf_end_.clear();
    if (!failure_.cuda(cudaGraphCreate(&graph_, 0), "cudaGraphCreate")) {
        graph_ = nullptr;
        return false;
    }
    for (size_t k = stretch == 0 ? 0 : shape_.stretch_end[stretch - 1]; k < shape_.stretch_end[stretch]; k++) {
        const graph_node &n = shape_.nodes[k];
        gather(n);
        if (!(n.op != NODE_JOIN && held_[n.op]->kind == OP_CALL ? capture(n) : add(n))) {
            drop_graph();
            return false;
        }
        leaf_end_.push_back(leaves_.size());
    }
    return true;
}

static cudaKernelNodeParams kernel_params(const acs_dual_kernel &kernel, unsigned grid, unsigned block, void **args)
{
    cudaKernelNodeParams p = {};
    p.func = const_cast<void *>(kernel.code.function);
    p.gridDim = dim3(grid);
    p.blockDim = dim3(block);
    p.kernelParams = args;
    return p;
}

static cudaMemsetParams fill_params(const op &o)
{
    cudaMemsetParams p = {};
    p.dst = o.to;
    p.value = static_cast<unsigned char>(o.value);
    p.elementSize = 1;
    p.width = o.bytes;
    p.height = 1;
    return p;
}

/* A kernel, copy, fill or join behind edges_. */
bool graph_runner::add(const graph_node &n)
{
    static const graph_join_args nothing = {0};
    cudaGraphNode_t node = nullptr;
    cudaError_t code = cudaSuccess;

    if (n.op == NODE_JOIN) {
        void *args[1] = {const_cast<graph_join_args *>(&nothing)};
        const cudaKernelNodeParams p = kernel_params(kernel_graph_join, 1, 32, args);
        code = cudaGraphAddKernelNode(&node, graph_, edges_.data(), edges_.size(), &p);
        leaves_.push_back(node);
        return failure_.cuda(code, "a join of edges");
    }
    const op &o = *held_[n.op];
    if (o.kind == OP_COPY) {
        code = cudaGraphAddMemcpyNode1D(&node, graph_, edges_.data(), edges_.size(), o.to, o.from, o.bytes,
                                        cudaMemcpyDefault);
    } else if (o.kind == OP_FILL) {
        const cudaMemsetParams p = fill_params(o);
        code = cudaGraphAddMemsetNode(&node, graph_, edges_.data(), edges_.size(), &p);
    } else {
        void *args[1] = {const_cast<void *>(o.args)};
        const cudaKernelNodeParams p = kernel_params(*o.kernel, o.grid, o.block, args);
        code = cudaGraphAddKernelNode(&node, graph_, edges_.data(), edges_.size(), &p);
    }
    leaves_.push_back(node);
    return failure_.cuda(code, op_name(o));
}

/* What the stream's next op would be behind; before toolkit 13 the call has another name. */
static cudaError_t capture_leaves(cudaStream_t s, const cudaGraphNode_t **leaves, size_t *count)
{
    cudaStreamCaptureStatus status;
    /* Asked for, or the call fails where edges have some. Our own edges wait for completion all the same. */
    const cudaGraphEdgeData *data = nullptr;
#if CUDART_VERSION >= 13000
    return cudaStreamGetCaptureInfo(s, &status, nullptr, nullptr, leaves, &data, count);
#else
    return cudaStreamGetCaptureInfo_v3(s, &status, nullptr, nullptr, leaves, &data, count);
#endif
}

/*
 * A library call behind edges_: whatever it gives to the slot's stream becomes nodes. Relaxed mode, because a library's
 * first call may allocate.
 */
bool graph_runner::capture(const graph_node &n)
{
    const op &o = *held_[n.op];
    slot &s = *slots_[static_cast<size_t>(n.slot)];
    const cudaGraphNode_t *leaves = nullptr;
    size_t count = 0;
    cudaGraph_t graph = nullptr;

    if (!failure_.cuda(cudaStreamBeginCaptureToGraph(stream_of(s), graph_, edges_.data(), nullptr, edges_.size(),
                                                     cudaStreamCaptureModeRelaxed),
                       op_name(o)))
        return false;
    s.call(o, failure_);
    if (failure_.cuda(capture_leaves(stream_of(s), &leaves, &count), op_name(o)))
        leaves_.insert(leaves_.end(), leaves, leaves + count);
    failure_.cuda(cudaStreamEndCapture(stream_of(s), &graph), op_name(o));
    return !failure_.any();
}

bool graph_runner::instantiate(cudaGraphExec_t *exec)
{
    if (failure_.cuda(cudaGraphInstantiate(exec, graph_, 0), "cudaGraphInstantiate"))
        return true;
    *exec = nullptr;
    return false;
}

/* The kept executable graph becomes the one just built; where CUDA refuses, it is made anew. */
bool graph_runner::update(cudaGraphExec_t *exec)
{
    cudaGraphExecUpdateResultInfo info;

    if (*exec) {
        const cudaError_t code = cudaGraphExecUpdate(*exec, graph_, &info);
        if (code == cudaSuccess) {
            updates_++;
            return true;
        }
        (void)cudaGetLastError();
        if (code != cudaErrorGraphExecUpdateFailure)
            return failure_.cuda(code, "cudaGraphExecUpdate");
        (void)cudaGraphExecDestroy(*exec);
        *exec = nullptr;
    }
    rebuilds_++;
    return instantiate(exec);
}

/* The launch uploads a graph that was not launched before. One in flight is destroyed only when it is through. */
void graph_runner::run_graph(size_t stretch)
{
    cudaGraphExec_t *const exec = &execs_[stretch];
    bool ready = mode_ == GRAPH_REPLAY;

    if (mode_ == GRAPH_BUILD)
        ready = build(stretch) && instantiate(exec);
    else if (mode_ == GRAPH_UPDATE)
        ready = build(stretch) && update(exec);
    if (ready)
        failure_.cuda(cudaGraphLaunch(*exec, stream_of(*slots_[0])), "cudaGraphLaunch");
    if (mode_ == GRAPH_BUILD && *exec) {
        (void)cudaGraphExecDestroy(*exec);
        *exec = nullptr;
    }
    drop_graph();
}

void graph_runner::issue(size_t stretch)
{
    const size_t first = stretch == 0 ? 0 : shape_.stretch_end[stretch - 1];

    if (shape_.stretch_end[stretch] > first)
        run_graph(stretch);
    if (stretch_end(stretch) == stretch_begin(stretch) || held_[stretch_end(stretch) - 1]->kind != OP_READ)
        return;
    const op &read = *held_[stretch_end(stretch) - 1];
    slots_[0]->issue(read, failure_);
    slots_[0]->wait(failure_);
    slots_[0]->fetch(read);
}

std::string known_runner::prepare(const trace &t, const dag &d)
{
    trace all = t;
    const auto is_read = [](const op &o) { return o.kind == OP_READ; };

    answers_ = t.answers;
    next_ = 0;
    all.ops.erase(std::remove_if(all.ops.begin(), all.ops.end(), is_read), all.ops.end());
    if (d.up.size() != t.ops.size()) /* too many: refused */
        return graph_runner::prepare(t, d);
    if (all.ops.size() < t.ops.size())
        return answers_ ? graph_runner::prepare(all, find_dag(all)) : "what the program reads was not recorded";
    const std::string why = why_not(t, machine_.gpu);
    return why.empty() ? READS_NOTHING : why;
}

void known_runner::read(void *to, const void *, size_t bytes)
{
    if (answers_ && next_ < answers_->size() && (*answers_)[next_].size() == bytes) {
        memcpy(to, (*answers_)[next_++].data(), bytes);
        return;
    }
    failure_.note("the program reads other things than in the run that was recorded");
    memset(to, 0, bytes);
}

std::string known_runner::finish()
{
    next_ = 0;
    return graph_runner::finish();
}

void add_graphs(std::vector<runner_kind> &list)
{
    const auto add = [&list](const char *name, const char *about, graph_mode mode) {
        list.push_back({name, about, true, false, [mode](const machine &m) {
                            return std::unique_ptr<runner>(new graph_runner(m, mode));
                        }, mode == GRAPH_REPLAY ? BOUND : RIVAL});
    };
    add("graph-build", "a CUDA graph built, instantiated, launched and destroyed in each run", GRAPH_BUILD);
    add("graph-update", "a CUDA graph built in each run, by which a kept executable one is updated", GRAPH_UPDATE);
    add("graph-replay", "a CUDA graph instantiated beforehand: the bound for static work (knows every decision)",
        GRAPH_REPLAY);
    list.push_back({"graph-known", "the same of a run whose reads are answered beforehand: one graph, no read, no wait",
                    true, false, [](const machine &m) { return std::unique_ptr<runner>(new known_runner(m)); }, BOUND});
}

} // namespace bench

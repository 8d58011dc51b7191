/*
 * Owns the pretended GPU: pending work, streams, events, graphs and captures. Called by runners in place of the CUDA
 * runtime, from any thread; one mutex guards all. Never runs an op before somebody waits.
 */
#include "fake_gpu.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "acs.h"

namespace {

typedef std::function<void()> body;

/* A piece of work that was handed over. */
struct work {
    body run;
    int missing = 0; /* of those before it */
    bool done = false;
    std::vector<std::shared_ptr<work>> after;
};
typedef std::shared_ptr<work> work_ptr;

/* Nodes are kept by address: handles that the runners see. */
struct node {
    int kind = 0;
    body run;
    std::vector<node *> up;
};

struct graph {
    std::vector<std::unique_ptr<node>> nodes;
};

struct exec {
    std::vector<node> nodes; /* up: nodes of the graph it was made from, known by place */
    std::map<node *, size_t> place;
    work_ptr last; /* an executable graph never overlaps with itself */
};

struct stream {
    work_ptr last;
    graph *capturing = nullptr;
    std::vector<node *> leaves;
};

struct event {
    work_ptr recorded;
};

struct machine_state {
    std::mutex lock;
    std::mt19937_64 random;
    std::vector<work_ptr> ready;
    size_t pending = 0;
    std::map<const void *, std::vector<size_t>> kernels; /* bytes of their arguments */
    std::map<std::string, int> calls;
    std::string failing;
    int fail_at = 0;
    std::set<void *> live;
    uint64_t reserved = 0, idle = 0, high = 0, threshold = 0; /* bytes of the memory pool */
    std::map<void *, size_t> pooled;                          /* its blocks */
};

machine_state g;

/* Counts a call. Every function of the runtime begins with it, under the lock. */
bool fails(const char *function)
{
    const int count = ++g.calls[function];
    return g.failing == function && count == g.fail_at;
}

#define CALLED()                                                                                                       \
    std::lock_guard<std::mutex> guard(g.lock);                                                                         \
    if (fails(__func__))                                                                                               \
    return cudaErrorInvalidValue

template <class T, class H> T *as(H handle)
{
    return reinterpret_cast<T *>(handle);
}

template <class T, class H> void create(H *handle)
{
    T *const object = new T();
    g.live.insert(object);
    *handle = reinterpret_cast<H>(object);
}

/* @return whether it existed. */
template <class T, class H> cudaError_t destroy(H handle)
{
    if (g.live.erase(as<T>(handle)) == 0)
        return cudaErrorInvalidResourceHandle;
    delete as<T>(handle);
    return cudaSuccess;
}

work_ptr hand_over(body run, const std::vector<work_ptr> &before)
{
    const work_ptr w = std::make_shared<work>();
    w->run = std::move(run);
    for (const work_ptr &b : before)
        if (b && !b->done) {
            b->after.push_back(w);
            w->missing++;
        }
    g.pending++;
    if (w->missing == 0)
        g.ready.push_back(w);
    return w;
}

/* Runs ready work, one at a time, drawn at random. */
void run_until(const std::function<bool()> &satisfied)
{
    while (!satisfied() && !g.ready.empty()) {
        const size_t k = g.random() % g.ready.size();
        const work_ptr w = g.ready[k];
        g.ready[k] = g.ready.back();
        g.ready.pop_back();
        if (w->run)
            w->run();
        w->done = true;
        g.pending--;
        for (const work_ptr &a : w->after)
            if (--a->missing == 0)
                g.ready.push_back(a);
        w->after.clear();
    }
}

cudaError_t run_until_done(const work_ptr &w)
{
    run_until([&] { return !w || w->done; });
    return cudaSuccess;
}

body kernel_body(const void *function, dim3 grid, dim3 block, void **args)
{
    if (!function) /* compiled without nvcc: the join */
        return [] {};
    const auto copies = std::make_shared<std::vector<std::vector<char>>>();
    for (size_t bytes : g.kernels.at(function)) {
        const char *const value = static_cast<const char *>(args[copies->size()]);
        copies->emplace_back(value, value + bytes);
    }
    return [=] {
        const acs_grid shape = {{grid.x, 1, 1}, {block.x, 1, 1}, 0, nullptr};
        std::vector<void *> list;
        for (std::vector<char> &value : *copies)
            list.push_back(value.data());
        reinterpret_cast<acs_host_body>(const_cast<void *>(function))(&shape, list.data());
    };
}

enum { KERNEL = 1, COPY, FILL, FREE };

cudaError_t add_node(cudaGraphNode_t *handle, graph *to, const cudaGraphNode_t *up, size_t count, int kind, body run)
{
    std::set<node *> distinct;
    std::unique_ptr<node> n(new node());
    n->kind = kind;
    n->run = std::move(run);
    for (size_t k = 0; k < count; k++) {
        n->up.push_back(as<node>(up[k]));
        const bool known = std::any_of(to->nodes.begin(), to->nodes.end(),
                                       [&](const std::unique_ptr<node> &o) { return o.get() == n->up[k]; });
        if (!known || !distinct.insert(n->up[k]).second)
            return cudaErrorInvalidValue;
    }
    *handle = reinterpret_cast<cudaGraphNode_t>(n.get());
    to->nodes.push_back(std::move(n));
    return cudaSuccess;
}

/* Work in a stream; while that is captured, a node. */
cudaError_t issue(cudaStream_t handle, int kind, body run)
{
    stream *const s = as<stream>(handle);
    if (!s->capturing) {
        s->last = hand_over(std::move(run), {s->last});
        return cudaSuccess;
    }
    std::vector<cudaGraphNode_t> up;
    for (node *n : s->leaves)
        up.push_back(reinterpret_cast<cudaGraphNode_t>(n));
    cudaGraphNode_t added;
    const cudaError_t code = add_node(&added, s->capturing, up.data(), up.size(), kind, std::move(run));
    if (code == cudaSuccess)
        s->leaves.assign(1, as<node>(added));
    return code;
}

void fill_exec(exec &e, const graph &from)
{
    e.nodes.clear();
    e.place.clear();
    for (const auto &n : from.nodes) {
        e.place[n.get()] = e.nodes.size();
        e.nodes.push_back(*n);
    }
}

/* Kinds and edges, node by node in the order of their making. */
bool same_topology(const exec &e, const graph &other)
{
    std::map<node *, size_t> place;

    if (e.nodes.size() != other.nodes.size())
        return false;
    for (size_t k = 0; k < e.nodes.size(); k++) {
        const node &a = e.nodes[k], &b = *other.nodes[k];
        place[other.nodes[k].get()] = k;
        if (a.kind != b.kind || a.up.size() != b.up.size())
            return false;
        for (size_t i = 0; i < a.up.size(); i++)
            if (e.place.at(a.up[i]) != place.at(b.up[i]))
                return false;
    }
    return true;
}

} // namespace

void fake_gpu_seed(uint64_t seed)
{
    std::lock_guard<std::mutex> guard(g.lock);
    g.random.seed(seed);
    g.calls.clear();
    g.failing.clear();
}

void fake_gpu_kernel(const void *function, size_t arg_bytes)
{
    g.kernels[function] = {arg_bytes};
}

void fake_gpu_kernel(const void *function, const std::vector<size_t> &arg_bytes)
{
    g.kernels[function] = arg_bytes;
}

void fake_gpu_fail(const char *function, int count)
{
    std::lock_guard<std::mutex> guard(g.lock);
    g.failing = function;
    g.fail_at = g.calls[function] + count;
}

int fake_gpu_calls(const char *function)
{
    std::lock_guard<std::mutex> guard(g.lock);
    return g.calls[function];
}

int fake_gpu_live()
{
    std::lock_guard<std::mutex> guard(g.lock);
    return static_cast<int>(g.live.size());
}

int fake_gpu_free_lost()
{
    std::lock_guard<std::mutex> guard(g.lock);
    const int count = static_cast<int>(g.live.size());
    for (void *p : g.live)
        free(p);
    g.live.clear();
    g.pooled.clear();
    return count;
}

uint64_t fake_gpu_pool_reserved()
{
    std::lock_guard<std::mutex> guard(g.lock);
    return g.reserved;
}

/* ---------------------------------------------------------------------------------------------------- the runtime */

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t)
{
    return "pretended failure";
}

static cudaError_t allocate(void **p, size_t bytes)
{
    *p = malloc(bytes);
    g.live.insert(*p);
    return cudaSuccess;
}

static cudaError_t release(void *p)
{
    if (g.live.erase(p) == 0)
        return cudaErrorInvalidValue;
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    CALLED();
    return allocate(p, bytes);
}

cudaError_t cudaFree(void *p)
{
    CALLED();
    run_until([] { return g.pending == 0; });
    return release(p);
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
    CALLED();
    return allocate(p, bytes);
}

cudaError_t cudaFreeHost(void *p)
{
    CALLED();
    return release(p);
}

cudaError_t cudaDeviceSynchronize()
{
    CALLED();
    run_until([] { return g.pending == 0; });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    CALLED();
    create<stream>(s);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    CALLED();
    return destroy<stream>(s);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    CALLED();
    return run_until_done(as<stream>(s)->last);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    CALLED();
    as<stream>(s)->last = hand_over(nullptr, {as<stream>(s)->last, as<event>(e)->recorded});
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    CALLED();
    create<event>(e);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    CALLED();
    return destroy<event>(e);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    CALLED();
    as<event>(e)->recorded = as<stream>(s)->last;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    CALLED();
    return run_until_done(as<event>(e)->recorded);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t, cudaStream_t s)
{
    CALLED();
    return issue(s, KERNEL, kernel_body(function, grid, block, args));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t s)
{
    CALLED();
    return issue(s, COPY, [=] { memmove(to, from, bytes); });
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t s)
{
    CALLED();
    return issue(s, FILL, [=] { memset(to, value, bytes); });
}

cudaError_t cudaGetDevice(int *device)
{
    CALLED();
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    CALLED();
    *value = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int)
{
    CALLED();
    *pool = reinterpret_cast<cudaMemPool_t>(&g.reserved);
    return cudaSuccess;
}

static uint64_t *pool_attribute(cudaMemPoolAttr which)
{
    return which == cudaMemPoolAttrReleaseThreshold ? &g.threshold : &g.high;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr which, void *value)
{
    CALLED();
    *static_cast<uint64_t *>(value) = *pool_attribute(which);
    return cudaSuccess;
}

/* The mark of the most that was reserved can be set back only, to what is reserved now. */
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr which, void *value)
{
    CALLED();
    *pool_attribute(which) = which == cudaMemPoolAttrReleaseThreshold ? *static_cast<uint64_t *>(value) : g.reserved;
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t keep)
{
    CALLED();
    const uint64_t given = std::min<uint64_t>(g.idle, g.reserved > keep ? g.reserved - keep : 0);
    g.reserved -= given;
    g.idle -= given;
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t)
{
    CALLED();
    const uint64_t kept = std::min<uint64_t>(g.idle, bytes);
    g.idle -= kept;
    g.reserved += bytes - kept;
    g.high = std::max(g.high, g.reserved);
    const cudaError_t code = allocate(p, bytes);
    g.pooled[*p] = bytes;
    return code;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t s)
{
    CALLED();
    const auto found = g.pooled.find(p);
    if (found == g.pooled.end())
        return cudaErrorInvalidValue;
    const size_t bytes = found->second;
    g.pooled.erase(found);
    return issue(s, FREE, [=] {
        g.idle += bytes;
        (void)release(p);
    });
}

cudaError_t cudaGraphCreate(cudaGraph_t *created, unsigned)
{
    CALLED();
    create<graph>(created);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t gone)
{
    CALLED();
    return destroy<graph>(gone);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *n, cudaGraph_t to, const cudaGraphNode_t *up, size_t count,
                                   const cudaKernelNodeParams *p)
{
    CALLED();
    return add_node(n, as<graph>(to), up, count, KERNEL, kernel_body(p->func, p->gridDim, p->blockDim, p->kernelParams));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *n, cudaGraph_t to, const cudaGraphNode_t *up, size_t count,
                                     void *dst, const void *src, size_t bytes, cudaMemcpyKind)
{
    CALLED();
    return add_node(n, as<graph>(to), up, count, COPY, [=] { memmove(dst, src, bytes); });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *n, cudaGraph_t to, const cudaGraphNode_t *up, size_t count,
                                   const cudaMemsetParams *p)
{
    CALLED();
    const cudaMemsetParams m = *p;
    if (m.elementSize != 1 || m.height != 1)
        return cudaErrorInvalidValue;
    return add_node(n, as<graph>(to), up, count, FILL, [=] { memset(m.dst, static_cast<int>(m.value), m.width); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *e, cudaGraph_t from, unsigned long long)
{
    CALLED();
    create<exec>(e);
    fill_exec(*as<exec>(*e), *as<graph>(from));
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e)
{
    CALLED();
    return destroy<exec>(e);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    CALLED();
    return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t e, cudaGraph_t from, cudaGraphExecUpdateResultInfo *)
{
    CALLED();
    if (!same_topology(*as<exec>(e), *as<graph>(from)))
        return cudaErrorGraphExecUpdateFailure;
    /* Handles of the new graph stand for its nodes from now on, which no runner relies on. */
    fill_exec(*as<exec>(e), *as<graph>(from));
    return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t n, const cudaKernelNodeParams *p)
{
    CALLED();
    node &mine = as<exec>(e)->nodes[as<exec>(e)->place.at(as<node>(n))];
    mine.run = kernel_body(p->func, p->gridDim, p->blockDim, p->kernelParams);
    return cudaSuccess;
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t e, cudaGraphNode_t n, void *dst, const void *src,
                                               size_t bytes, cudaMemcpyKind)
{
    CALLED();
    as<exec>(e)->nodes[as<exec>(e)->place.at(as<node>(n))].run = [=] { memmove(dst, src, bytes); };
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t s)
{
    CALLED();
    exec &e = *as<exec>(handle);
    const work_ptr first = hand_over(nullptr, {as<stream>(s)->last, e.last});
    std::vector<work_ptr> all;
    for (const node &n : e.nodes) {
        std::vector<work_ptr> before = {first};
        for (node *up : n.up)
            before.push_back(all[e.place.at(up)]);
        all.push_back(hand_over(n.run, before));
    }
    all.push_back(first);
    e.last = as<stream>(s)->last = hand_over(nullptr, all);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t s, cudaGraph_t to, const cudaGraphNode_t *up,
                                          const cudaGraphEdgeData *, size_t count, cudaStreamCaptureMode)
{
    CALLED();
    as<stream>(s)->capturing = as<graph>(to);
    as<stream>(s)->leaves.clear();
    for (size_t k = 0; k < count; k++)
        as<stream>(s)->leaves.push_back(as<node>(up[k]));
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
#define CAPTURE_INFO cudaStreamGetCaptureInfo
#else
#define CAPTURE_INFO cudaStreamGetCaptureInfo_v3
#endif
cudaError_t CAPTURE_INFO(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *, cudaGraph_t *,
                         const cudaGraphNode_t **leaves, const cudaGraphEdgeData **, size_t *count)
{
    CALLED();
    *status = cudaStreamCaptureStatusActive;
    *leaves = reinterpret_cast<const cudaGraphNode_t *>(as<stream>(s)->leaves.data());
    *count = as<stream>(s)->leaves.size();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *captured)
{
    *captured = reinterpret_cast<cudaGraph_t>(as<stream>(s)->capturing);
    as<stream>(s)->capturing = nullptr; /* also where the call says that the capture was invalid */
    CALLED();
    return cudaSuccess;
}

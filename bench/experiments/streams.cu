/*
 * Kernels of one block in so many streams, by plain CUDA: what a launch costs, alone, with an event behind it, and with a
 * question about an older event; and how many ran at once, in streams and as the roots of a graph. Built by hand:
 *
 *     nvcc -arch=sm_90 -O2 bench/experiments/streams.cu
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return;
    printf("%s: %s\n", what, cudaGetErrorString(status));
    exit(1);
}
#define CHECK(call) check((call), #call)

__global__ void spin(long long ns)
{
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

static double now_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

enum { PLAIN, EVENT, QUERY, MODES, STREAMS_MOST = 128, OPS_MOST = 2048, REPETITIONS = 5 };

struct figure {
    double total = 1e30, submitted = 0;
};

static std::vector<cudaStream_t> g_streams(STREAMS_MOST);
static std::vector<cudaEvent_t> g_events(OPS_MOST);

static void run(int mode, int ops, int streams, long long ns, figure *best)
{
    const double begin = now_us();
    for (int i = 0; i < ops; i++) {
        spin<<<1, 32, 0, g_streams[i % streams]>>>(ns);
        if (mode >= EVENT)
            CHECK(cudaEventRecord(g_events[i], g_streams[i % streams]));
        if (mode == QUERY && i >= streams)
            (void)cudaEventQuery(g_events[i - streams]);
    }
    const double submitted = now_us() - begin;
    CHECK(cudaDeviceSynchronize());
    const double total = now_us() - begin;
    if (total < best->total)
        *best = {total, submitted};
}

static void streams(long long ns, int count)
{
    const int ops = ns > 1000000 ? 128 : OPS_MOST;
    figure best[MODES];
    for (int mode = 0; mode < MODES; mode++)
        for (int i = 0; i < REPETITIONS; i++)
            run(mode, ops, count, ns, &best[mode]);
    printf("kernel %7lld ns, %3d streams: plain %.2f (submit %.2f), event each %.2f (%.2f), event+query %.2f (%.2f) "
           "us/kernel; in flight %.1f\n",
           ns, count, best[PLAIN].total / ops, best[PLAIN].submitted / ops, best[EVENT].total / ops,
           best[EVENT].submitted / ops, best[QUERY].total / ops, best[QUERY].submitted / ops,
           ns * 1e-3 * ops / best[PLAIN].total);
}

static void roots(int count, long long ns)
{
    void *arguments[] = {&ns};
    cudaKernelNodeParams node = {};
    cudaGraph_t graph;
    cudaGraphExec_t kept;
    double best = 1e30;
    node.func = reinterpret_cast<void *>(spin);
    node.gridDim = dim3(1);
    node.blockDim = dim3(32);
    node.kernelParams = arguments;
    CHECK(cudaGraphCreate(&graph, 0));
    for (int i = 0; i < count; i++) {
        cudaGraphNode_t added;
        CHECK(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &node));
    }
    CHECK(cudaGraphInstantiate(&kept, graph, 0));
    for (int i = 0; i <= REPETITIONS; i++) {
        const double begin = now_us();
        CHECK(cudaGraphLaunch(kept, g_streams[0]));
        CHECK(cudaDeviceSynchronize());
        if (i > 0)
            best = std::min(best, now_us() - begin);
    }
    printf("graph of %d roots, %lld ns: %.1f us, at once %.1f\n", count, ns, best, count * ns * 1e-3 / best);
}

int main()
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    for (cudaStream_t &stream : g_streams)
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t &event : g_events)
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (long long ns : {0, 5000, 50000, 2000000})
        for (int count : {4, 8, 16, 32, 64, 128})
            streams(ns, count);
    for (int count : {16, 32, 64, 128, 256})
        for (long long ns : {5000, 2000000})
            roots(count, ns);
    return 0;
}

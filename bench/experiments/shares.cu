/*
 * Green contexts by plain CUDA: what they cost to make and to launch to, how kernels scale with their multiprocessors, and
 * how far they are kept apart. One line for each figure; times are medians in microseconds. Built by hand:
 *
 *     nvcc -arch=sm_90 -O2 bench/experiments/shares.cu -lcuda -o shares
 */
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

static void check(int status, const char *what)
{
    if (status == 0)
        return;
    printf("%s: error %d\n", what, status);
    exit(1);
}
#define CHECK(call) check((int)(call), #call)

static double now_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void empty_kernel() {}

__global__ void compute_kernel(float *out, int rounds)
{
    float a = threadIdx.x, b = 1.0001f;
    for (int i = 0; i < rounds; i++)
        a = a * b + 0.5f;
    if (a == 12345.0f)
        out[0] = a;
}

__global__ void memory_kernel(float4 *to, const float4 *from, size_t count)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

/* Runs for a time on all multiprocessors that it gets; 0: computes, else streams through memory. */
__global__ void hog_kernel(float4 *memory, size_t count, long long ns, int streams)
{
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    float4 sum = {0, 0, 0, 0};
    size_t at = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) % count;
    do {
        for (int i = 0; i < 64; i++) {
            if (streams) {
                const float4 v = memory[at];
                sum.x += v.x;
                at = (at + (size_t)gridDim.x * blockDim.x) % count;
            } else {
                sum.x = sum.x * 1.0001f + 0.5f;
            }
        }
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < ns);
    if (sum.x == 12345.0f)
        memory[0] = sum;
}

enum { WIDE = 132 * 64, THREADS = 256 };
static std::vector<CUdevResource> g_groups;
static CUdevice g_device;
static float4 *g_from, *g_to;
static size_t g_count = (size_t)64 << 20 >> 4; /* 64 MiB each way, above the L2 */

/* The green context of `count` groups from the first one on, and a stream of it. */
struct part {
    CUgreenCtx context = nullptr;
    CUstream stream = nullptr;
    double context_us = 0, stream_us = 0, memory_mib = 0;

    part(unsigned first, unsigned count)
    {
        std::vector<CUdevResource> wanted;
        for (unsigned i = 0; i < count; i++)
            wanted.push_back(g_groups[(first + i) % g_groups.size()]);
        size_t before, after, total;
        CHECK(cuMemGetInfo(&before, &total));
        CUdevResourceDesc described;
        const double begin = now_us();
        CHECK(cuDevResourceGenerateDesc(&described, wanted.data(), count));
        CHECK(cuGreenCtxCreate(&context, described, g_device, CU_GREEN_CTX_DEFAULT_STREAM));
        const double made = now_us();
        CHECK(cuGreenCtxStreamCreate(&stream, context, CU_STREAM_NON_BLOCKING, 0));
        context_us = made - begin;
        stream_us = now_us() - made;
        CHECK(cuMemGetInfo(&after, &total));
        memory_mib = ((double)before - (double)after) / (1 << 20);
    }
    ~part()
    {
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuStreamDestroy(stream));
        CHECK(cuGreenCtxDestroy(context));
    }
    part(const part &) = delete;
    part &operator=(const part &) = delete;
};

static CUstream plain_stream()
{
    CUstream stream;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static double median(std::vector<double> list)
{
    std::sort(list.begin(), list.end());
    return list[list.size() / 2];
}

/* Time of the work on the device, between two events of its stream. */
static double device_us(CUstream stream, const std::function<void()> &work, int runs = 15)
{
    std::vector<double> times;
    CUevent begin, end;
    CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    for (int i = 0; i < runs; i++) {
        CHECK(cuEventRecord(begin, stream));
        work();
        CHECK(cuEventRecord(end, stream));
        CHECK(cuEventSynchronize(end));
        float ms;
        CHECK(cuEventElapsedTime(&ms, begin, end));
        times.push_back(ms * 1000);
    }
    CHECK(cuEventDestroy(begin));
    CHECK(cuEventDestroy(end));
    return median(times);
}

static void compute(CUstream stream)
{
    compute_kernel<<<WIDE, THREADS, 0, stream>>>((float *)g_to, 4000);
}

static void stream_memory(CUstream stream)
{
    memory_kernel<<<WIDE, THREADS, 0, stream>>>(g_to, g_from, g_count);
}

/* ------------------------------------------------------------------------------------------------------------- figures */

static void split()
{
    CUdevResource all, rest;
    unsigned count = 0;
    CHECK(cuDeviceGetDevResource(g_device, &all, CU_DEV_RESOURCE_TYPE_SM));
    const double begin = now_us();
    CHECK(cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, 1));
    g_groups.resize(count);
    CHECK(cuDevSmResourceSplitByCount(g_groups.data(), &count, &all, &rest, 0, 1));
    const double took = now_us() - begin;
    printf("split: %u multiprocessors, %u groups of %u, %u left over, %.1f us\n", all.sm.smCount, count,
           g_groups[0].sm.smCount, rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0, took);
}

static void making()
{
    const unsigned most = (unsigned)g_groups.size();
    for (unsigned count : {1u, 1u, 2u, most / 2, most}) {
        part p(0, count);
        printf("make: %2u groups: context %.0f us, stream %.0f us, %.1f MiB of memory\n", count, p.context_us, p.stream_us,
               p.memory_mib);
    }
    std::vector<part *> many;
    const double begin = now_us();
    double memory = 0;
    for (unsigned i = 0; i < 64; i++) {
        many.push_back(new part(i, 1 + i % (most / 2)));
        memory += many.back()->memory_mib;
    }
    printf("make: 64 contexts with a stream each: %.0f us, %.1f MiB\n", now_us() - begin, memory);
    const double made = now_us();
    for (part *p : many)
        delete p;
    printf("make: 64 contexts destroyed: %.0f us\n", now_us() - made);
    part p(0, 1);
    std::vector<CUstream> streams(64);
    const double first = now_us();
    for (CUstream &stream : streams)
        CHECK(cuGreenCtxStreamCreate(&stream, p.context, CU_STREAM_NON_BLOCKING, 0));
    printf("make: 64 streams of one context: %.0f us\n", now_us() - first);
    for (CUstream stream : streams)
        CHECK(cuStreamDestroy(stream));
}

/* Whether what the library relies on works at all: CUDA's answers, 0 for success. */
static void rules()
{
    part p(0, 2);
    CUfunction function;
    CUkernel kernel;
    CUcontext context = nullptr;
    CUevent event;
    const CUstream plain = plain_stream();
    CHECK(cudaGetFuncBySymbol(&function, (const void *)empty_kernel));
    CHECK(cudaGetKernel(&kernel, (const void *)empty_kernel));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    printf("rule: CUfunction of the primary context on a green stream: %d\n",
           cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, p.stream, nullptr, nullptr));
    printf("rule: CUkernel on a green stream: %d\n",
           cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, p.stream, nullptr, nullptr));
    printf("rule: event of the primary context recorded in a green stream: %d\n", cuEventRecord(event, p.stream));
    printf("rule: ordinary stream waits for it: %d\n", cuStreamWaitEvent(plain, event, 0));
    printf("rule: recorded in an ordinary stream: %d\n", cuEventRecord(event, plain));
    printf("rule: green stream waits for it: %d\n", cuStreamWaitEvent(p.stream, event, 0));
    printf("rule: fill in a green stream: %d\n", cuMemsetD8Async((CUdeviceptr)g_to, 1, 1024, p.stream));
    const int answer = cuStreamGetCtx(p.stream, &context);
    CUcontext current;
    CHECK(cuCtxGetCurrent(&current));
    printf("rule: cuStreamGetCtx of a green stream: %d, %s\n", answer,
           context == current ? "the primary context" : "another one");
    CHECK(cuStreamSynchronize(p.stream));
    CHECK(cuStreamSynchronize(plain));
    CHECK(cuEventDestroy(event));
    CHECK(cuStreamDestroy(plain));
}

/* Time of the call, and of all, for 1000 empty kernels spread over some streams. */
static void launches(const char *what, const std::vector<CUstream> &streams)
{
    std::vector<double> calls, totals;
    for (int run = 0; run < 9; run++) {
        const double begin = now_us();
        for (int i = 0; i < 1000; i++)
            empty_kernel<<<1, 32, 0, streams[i % streams.size()]>>>();
        const double sent = now_us();
        CHECK(cudaDeviceSynchronize());
        calls.push_back((sent - begin) / 1000);
        totals.push_back((now_us() - begin) / 1000);
    }
    printf("launch: %s: %.2f us for the call, %.2f us for all\n", what, median(calls), median(totals));
}

/* A chain that changes its stream at each kernel, by an event. */
static void chain(const char *what, CUstream a, CUstream b)
{
    std::vector<double> calls, totals;
    CUevent event;
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int run = 0; run < 9; run++) {
        const double begin = now_us();
        for (int i = 0; i < 500; i++) {
            const CUstream from = i % 2 ? a : b, to = i % 2 ? b : a;
            empty_kernel<<<1, 32, 0, from>>>();
            CHECK(cuEventRecord(event, from));
            CHECK(cuStreamWaitEvent(to, event, 0));
        }
        const double sent = now_us();
        CHECK(cudaDeviceSynchronize());
        calls.push_back((sent - begin) / 500);
        totals.push_back((now_us() - begin) / 500);
    }
    CHECK(cuEventDestroy(event));
    printf("chain: %s: %.2f us for the calls, %.2f us a kernel\n", what, median(calls), median(totals));
}

static void two_threads(const char *what, CUstream a, CUstream b)
{
    std::vector<double> totals;
    const auto send = [](CUstream stream) {
        for (int i = 0; i < 2000; i++)
            empty_kernel<<<1, 32, 0, stream>>>();
    };
    for (int run = 0; run < 7; run++) {
        const double begin = now_us();
        std::thread other(send, b);
        send(a);
        other.join();
        totals.push_back((now_us() - begin) / 4000);
        CHECK(cudaDeviceSynchronize());
    }
    printf("threads: two, %s: %.2f us a launch\n", what, median(totals));
}

static void scaling()
{
    const unsigned most = (unsigned)g_groups.size();
    const CUstream plain = plain_stream();
    printf("scaling: ordinary stream: compute %.1f us, memory %.1f us\n", device_us(plain, [&] { compute(plain); }),
           device_us(plain, [&] { stream_memory(plain); }));
    for (unsigned percent = 10; percent <= 100; percent += 10) {
        const unsigned count = std::max(1u, (percent * most + 50) / 100);
        part p(0, count);
        printf("scaling: %3u %%, %2u groups: compute %.1f us, memory %.1f us\n", percent, count,
               device_us(p.stream, [&] { compute(p.stream); }), device_us(p.stream, [&] { stream_memory(p.stream); }));
    }
    CHECK(cuStreamDestroy(plain));
}

/* Time of a kernel while a hog runs in another stream for longer. */
static double beside(CUstream stream, CUstream hog_stream, bool memory, bool hog_memory, unsigned hog_blocks)
{
    const auto work = [&] { memory ? stream_memory(stream) : compute(stream); };
    std::vector<double> times;
    for (int i = 0; i < 5; i++) {
        hog_kernel<<<hog_blocks, THREADS, 0, hog_stream>>>(g_from, g_count, 20000000, hog_memory);
        const double wait = now_us() + 300;
        while (now_us() < wait) {
        }
        times.push_back(device_us(stream, work, 1));
        CHECK(cuStreamSynchronize(hog_stream));
    }
    return median(times);
}

static void isolation()
{
    const unsigned half = (unsigned)g_groups.size() / 2;
    part a(0, half), b(half, half), overlapping(half / 2, half);
    const CUstream plain = plain_stream(), other = plain_stream();
    const unsigned full = 132 * 8, halves = half * g_groups[0].sm.smCount * 8; /* 8 blocks fill a multiprocessor */
    for (int memory = 0; memory < 2; memory++) {
        const char *name = memory ? "memory" : "compute";
        const auto work = [&](CUstream stream) { memory ? stream_memory(stream) : compute(stream); };
        printf("isolation: %s, alone on half: %.1f us\n", name, device_us(a.stream, [&] { work(a.stream); }));
        for (int hog = 0; hog < 2; hog++) {
            const char *hogs = hog ? "memory" : "compute";
            printf("isolation: %s on half, %s hog on the other half: %.1f us\n", name, hogs,
                   beside(a.stream, b.stream, memory, hog, halves));
            printf("isolation: %s on half, %s hog on a half that overlaps: %.1f us\n", name, hogs,
                   beside(a.stream, overlapping.stream, memory, hog, halves));
            printf("isolation: %s on half, %s hog in an ordinary stream: %.1f us\n", name, hogs,
                   beside(a.stream, plain, memory, hog, full));
            printf("isolation: %s and %s hog in ordinary streams: %.1f us\n", name, hogs,
                   beside(other, plain, memory, hog, full));
            printf("isolation: %s in an ordinary stream, %s hog on half: %.1f us\n", name, hogs,
                   beside(other, b.stream, memory, hog, halves));
        }
    }
    CHECK(cuStreamDestroy(plain));
    CHECK(cuStreamDestroy(other));
}

int main()
{
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(nullptr));
    CHECK(cuDeviceGet(&g_device, 0));
    CHECK(cudaMalloc(&g_from, g_count * sizeof *g_from));
    CHECK(cudaMalloc(&g_to, g_count * sizeof *g_to));
    CHECK(cudaMemset(g_from, 0, g_count * sizeof *g_from));
    compute(nullptr); /* so that no kernel is loaded later */
    stream_memory(nullptr);
    hog_kernel<<<1, 1>>>(g_from, g_count, 0, 1);
    empty_kernel<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    split();
    rules();
    making();
    const unsigned half = (unsigned)g_groups.size() / 2;
    {
        part a(0, half), b(half, half), same(0, half);
        CUstream second;
        CHECK(cuGreenCtxStreamCreate(&second, a.context, CU_STREAM_NON_BLOCKING, 0));
        const CUstream plain = plain_stream(), other = plain_stream();
        launches("one ordinary stream", {plain});
        launches("one green stream", {a.stream});
        launches("two ordinary streams in turn", {plain, other});
        launches("two streams of one green context in turn", {a.stream, second});
        launches("two green contexts in turn", {a.stream, b.stream});
        launches("two green contexts of the same groups in turn", {a.stream, same.stream});
        launches("an ordinary and a green stream in turn", {plain, a.stream});
        chain("ordinary streams", plain, other);
        chain("streams of one green context", a.stream, second);
        chain("two green contexts", a.stream, b.stream);
        chain("an ordinary and a green stream", plain, a.stream);
        two_threads("ordinary streams", plain, other);
        two_threads("streams of one green context", a.stream, second);
        two_threads("two green contexts", a.stream, b.stream);
        CHECK(cuStreamDestroy(second));
        CHECK(cuStreamDestroy(plain));
        CHECK(cuStreamDestroy(other));
    }
    scaling();
    isolation();
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}

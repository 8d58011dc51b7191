/*
 * What programmatic edges gain in a chain of kernels, captured by its stream alone and as a graph by footprints. Also what
 * the capture costs the host. Prints microseconds per kernel; judges nothing. In the row with second full edges each kernel
 * has a full edge from two kernels back: does it still begin early?
 */
#include "graph_time.cuh"
#include "kernels.cuh"

#include <chrono>
#include <cstdio>

namespace {

constexpr uint32_t KERNELS = 200, WORDS = 64;

struct variant {
    const char *name;
    bool early;  /* kernels are launched with programmatic stream serialization */
    bool graph;  /* acs_graph_begin to acs_graph_end */
    bool second; /* a full edge from two kernels back */
};

struct times {
    double run, capture; /* microseconds per kernel */
    uint64_t programmatic;
};

/* Let the next kernel begin, wait for the one before, then take so long. */
__global__ void step_kernel(uint32_t *words, uint32_t ns)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    delay(ns);
    words[threadIdx.x] = mix_word(words[threadIdx.x], 0, ns);
}

void launch(cudaStream_t stream, uint32_t *words, uint32_t ns, bool early)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(WORDS);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = early;
    CHECK_CUDA(cudaLaunchKernelEx(&config, step_kernel, words, ns));
}

/* The node behind which the stream's next work would be. */
cudaGraphNode_t end_of(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t *ends;
    size_t count;
#if CUDART_VERSION >= 13000
    const cudaGraphEdgeData *data;
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, graph, &ends, &data, &count));
#else
    CHECK_CUDA(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, graph, &ends, &count));
#endif
    return count ? ends[0] : nullptr;
}

void add_full_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to)
{
#if CUDART_VERSION >= 13000
    CHECK_CUDA(cudaGraphAddDependencies(graph, &from, &to, nullptr, 1));
#else
    CHECK_CUDA(cudaGraphAddDependencies(graph, &from, &to, 1));
#endif
}

void capture_step(const variant &v, cudaStream_t stream, acs_graph *graph, uint32_t *words, uint32_t ns)
{
    launch(stream, words, ns, v.early);
    if (graph)
        CHECK(acs_graph_op(graph, stream, ACS_USES(ACS_INOUT(words, WORDS * sizeof *words)), nullptr) != 0);
}

cudaGraph_t capture(const variant &v, acs_context *context, cudaStream_t stream, uint32_t *words, uint32_t ns, times *t)
{
    cudaGraph_t result;
    acs_graph *graph = nullptr;
    std::vector<cudaGraphNode_t> nodes;
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    const auto start = std::chrono::steady_clock::now();
    if (v.graph)
        CHECK_STATUS(acs_graph_begin(context, stream, &graph), ACS_OK);
    for (uint32_t i = 0; i < KERNELS; i++) {
        capture_step(v, stream, graph, words, ns);
        if (v.second)
            nodes.push_back(end_of(stream, &result));
        if (v.second && i >= 2)
            add_full_edge(result, nodes[i - 2], nodes[i]);
    }
    acs_graph_report report = {};
    report.size = sizeof report;
    if (v.graph)
        CHECK_STATUS(acs_graph_end(graph, stream, nullptr, &report), ACS_OK);
    t->capture = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e6 / KERNELS;
    t->programmatic = report.programmatic;
    CHECK_CUDA(cudaStreamEndCapture(stream, &result));
    return result;
}

times measure(const variant &v, acs_context *context, cudaStream_t stream, uint32_t *words, uint32_t ns)
{
    times t = {};
    cudaGraph_t warm = capture(v, context, stream, words, ns, &t);
    cudaGraph_t graph = capture(v, context, stream, words, ns, &t);
    t.run = graph_time(graph, stream) / KERNELS;
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaGraphDestroy(warm));
    return t;
}

} // namespace

int main()
{
    static const variant variants[] = {
        {"stream, full edges", false, false, false},
        {"stream, programmatic edges", true, false, false},
        {"stream, programmatic edges, second full edges", true, false, true},
        {"acs_graph, full edges", false, true, false},
        {"acs_graph, programmatic edges", true, true, false},
    };
    static const uint32_t kernel_ns[] = {0, 2000, 5000};
    if (!check_has_gpu()) {
        printf("skipped: %s\n", check_last_error().text);
        return CHECK_SKIPPED;
    }
    acs_context *context = check_open_default();
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    {
        device_buffer<uint32_t> words(WORDS);
        printf("%-50s%10s%10s%10s%10s   us per kernel, by its time; to capture; edges\n", "", "empty", "2 us", "5 us",
               "capture");
        for (const variant &v : variants) {
            times t = {};
            printf("%-50s", v.name);
            for (uint32_t ns : kernel_ns) {
                t = measure(v, context, stream, words.data, ns);
                printf("%10.2f", t.run);
            }
            printf("%10.2f   %llu programmatic\n", t.capture, (unsigned long long)t.programmatic);
        }
    }
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(context), ACS_OK);
    return g_check_failures ? 1 : 0;
}

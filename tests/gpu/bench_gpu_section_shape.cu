/*
 * What chains gain. Programs of independent parts are captured by ACS inside of a section, and as graphs by footprints:
 * with the edges of the footprints alone, which a section has too, and with chains. Prints microseconds per launch of
 * the graph, and the host's microseconds per op to capture; judges nothing.
 */
#include "graph_time.cuh"
#include "kernels.cuh"

#include <chrono>
#include <cstdio>
#include <random>

namespace {

constexpr uint32_t WORDS = 32;

/* Parts that share nothing; in each, levels of up to `width` ops, every op behind one or two of the level before. */
struct program {
    const char *name;
    uint32_t parts, levels, width;
};

struct op {
    uint32_t to, from; /* places of WORDS words */
};

std::vector<op> ops_of(const program &p)
{
    std::mt19937 random(1);
    std::vector<op> ops;
    for (uint32_t part = 0; part < p.parts; part++)
        for (uint32_t level = 0; level < p.levels; level++)
            for (uint32_t i = 0, width = 1 + random() % p.width; i < width; i++) {
                const uint32_t place = part * p.width;
                ops.push_back({place + i, place + (uint32_t)(random() % p.width)});
            }
    return ops;
}

enum way { STREAM, SECTION, EDGES_ALONE, CHAINS };

acs_uses touched(acs_segment *list, uint32_t *words, const op &o)
{
    list[0] = acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, (uint64_t)(uintptr_t)(words + o.to * WORDS), 4 * WORDS, 1, 0);
    list[1] = acs_make_segment(ACS_EXTENT_BYTES, ACS_READ, (uint64_t)(uintptr_t)(words + o.from * WORDS), 4 * WORDS, 1, 0);
    acs_uses uses = {};
    uses.segments = list;
    uses.count = o.from == o.to ? 1 : 2;
    return uses;
}

void capture_op(way w, acs_context *context, acs_graph *graph, cudaStream_t stream, uint32_t *words, const op &o,
                uint32_t ns)
{
    acs_segment list[2];
    uint32_t *to = words + o.to * WORDS;
    const uint32_t *from = o.from == o.to ? nullptr : words + o.from * WORDS;
    if (w == SECTION) {
        CHECK(launch_mix(context, to, from, WORDS, 1, ns) != 0);
        return;
    }
    mix_kernel<<<1, 256, 0, stream>>>(to, from, WORDS, 1, ns);
    if (graph)
        CHECK(acs_graph_op(graph, stream, touched(list, words, o), nullptr) != 0);
}

cudaGraph_t capture(way w, acs_context *context, cudaStream_t stream, uint32_t *words, const std::vector<op> &ops,
                    uint32_t ns, double *host)
{
    acs_graph *graph = nullptr;
    cudaGraph_t result;
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    const auto start = std::chrono::steady_clock::now();
    if (w == SECTION)
        CHECK(acs_after_stream(context, stream, ACS_USES_ANY) != 0);
    else if (w != STREAM)
        CHECK_STATUS(acs_graph_begin(context, stream, &graph), ACS_OK);
    for (const op &o : ops)
        capture_op(w, context, graph, stream, words, o, ns);
    acs_graph_params params = {};
    params.size = sizeof params;
    params.chains = w == EDGES_ALONE ? ACS_GRAPH_CHAINS_ANY : 0;
    if (w == SECTION)
        CHECK_STATUS(acs_stream_after(context, stream, ACS_USES_ANY), ACS_OK);
    else if (w != STREAM)
        CHECK_STATUS(acs_graph_end(graph, stream, &params, nullptr), ACS_OK);
    *host = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e6 / (double)ops.size();
    CHECK_CUDA(cudaStreamEndCapture(stream, &result));
    return result;
}

void measure(const program &p, acs_context *context, cudaStream_t stream)
{
    static const uint32_t kernel_ns[] = {0, 2000};
    const std::vector<op> ops = ops_of(p);
    device_buffer<uint32_t> words((size_t)p.parts * p.width * WORDS);
    printf("%-34s%6zu ops", p.name, ops.size());
    double host[4] = {};
    for (uint32_t ns : kernel_ns) {
        printf("  |");
        for (int w = STREAM; w <= CHAINS; w++) {
            for (int warm = 0; warm < 2; warm++) {
                cudaGraph_t graph = capture((way)w, context, stream, words.data, ops, ns, &host[w]);
                if (warm)
                    printf("%9.0f", graph_time(graph, stream));
                CHECK_CUDA(cudaGraphDestroy(graph));
            }
        }
    }
    printf("  |%7.2f%7.2f%7.2f%7.2f\n", host[STREAM], host[SECTION], host[EDGES_ALONE], host[CHAINS]);
}

} // namespace

int main()
{
    static const program programs[] = {
        {"one part, up to 8 wide", 1, 64, 8},
        {"one part, up to 256 wide", 1, 16, 256},
        {"8 parts, each up to 6 wide", 8, 32, 6},
        {"32 chains", 32, 20, 1},
        {"128 chains", 128, 16, 1},
        {"64 parts, each up to 6 wide", 64, 8, 6},
    };
    if (!check_has_gpu()) {
        printf("skipped: %s\n", check_last_error().text);
        return CHECK_SKIPPED;
    }
    acs_context *context = check_open_default();
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    printf("stream alone, section, acs_graph with the footprints' edges, acs_graph with chains: us per launch with empty\n"
           "kernels | with kernels of 2 us | host us per op to capture\n");
    for (const program &p : programs)
        measure(p, context, stream);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(context), ACS_OK);
    return g_check_failures ? 1 : 0;
}

/*
 * Graphs by footprints on a real GPU: work that a program captures in its own way from one stream, with loops on the GPU
 * and forks inside an op, leaves what serial execution leaves, on any number of chains.
 */
#include "kernels.cuh"

#include <random>

namespace {

/* A stream that captures, and its graph by footprints. */
struct recording {
    acs_context *context;
    cudaStream_t stream = nullptr;
    cudaGraph_t result = nullptr;
    acs_graph *graph = nullptr;

    explicit recording(acs_context *of) : context(of)
    {
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_STATUS(acs_graph_begin(context, stream, &graph), ACS_OK);
    }
    ~recording()
    {
        if (result)
            CHECK_CUDA(cudaGraphDestroy(result));
        CHECK_CUDA(cudaStreamDestroy(stream));
    }
    recording(const recording &) = delete;
    recording &operator=(const recording &) = delete;

    acs_graph_report end(uint32_t chains)
    {
        acs_graph_params params = {};
        acs_graph_report report = {};
        params.size = sizeof params;
        params.chains = chains;
        report.size = sizeof report;
        CHECK_STATUS(acs_graph_end(graph, stream, &params, &report), ACS_OK);
        CHECK_CUDA(cudaStreamEndCapture(stream, &result));
        return report;
    }
    void run(int launches)
    {
        cudaGraphExec_t exec = nullptr;
        CHECK_CUDA(cudaGraphInstantiate(&exec, result, 0));
        for (int i = 0; i < launches; i++)
            CHECK_CUDA(cudaGraphLaunch(exec, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        CHECK_CUDA(cudaGraphExecDestroy(exec));
    }
};

void mix(cudaStream_t stream, uint32_t *dst, const uint32_t *src, uint32_t words, uint32_t salt, uint32_t ns)
{
    mix_kernel<<<1, 64, 0, stream>>>(dst, src, words, salt, ns);
    CHECK_CUDA(cudaGetLastError());
}

acs_uses touches(acs_segment *segments, uint32_t *dst, const uint32_t *src, uint32_t words)
{
    segments[0] = acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, (uint64_t)(uintptr_t)dst, 4 * words, 1, 4 * words);
    if (src)
        segments[1] = acs_make_segment(ACS_EXTENT_BYTES, ACS_READ, (uint64_t)(uintptr_t)src, 4 * words, 1, 4 * words);
    acs_uses uses = {};
    uses.segments = segments;
    uses.count = src ? 2 : 1;
    return uses;
}

void mix_op(recording &r, uint32_t *dst, const uint32_t *src, uint32_t words, uint32_t salt, uint32_t ns)
{
    acs_segment segments[2];
    mix(r.stream, dst, src, words, salt, ns);
    CHECK(acs_graph_op(r.graph, r.stream, touches(segments, dst, src, words), nullptr) != 0);
}

/* ----------------------------------------------------------------------------------------------------------- programs */

struct op {
    uint32_t to, from, words, salt;
    bool reads;
};

void random_program(uint32_t seed, uint32_t chains)
{
    enum { WORDS = 96, LAUNCHES = 3 };
    std::mt19937 random(seed);
    std::vector<op> program(20 + random() % 300);
    for (uint32_t i = 0; i < program.size(); i++) {
        op &o = program[i];
        o.words = 1 + random() % 8;
        o.to = random() % (WORDS - o.words);
        o.from = random() % (WORDS - o.words);
        o.reads = random() % 2 && (o.from + o.words <= o.to || o.to + o.words <= o.from);
        o.salt = i;
    }
    device_buffer<uint32_t> words(WORDS);
    acs_context *context = check_open_default();
    recording r(context);
    for (const op &o : program)
        mix_op(r, words.data + o.to, o.reads ? words.data + o.from : nullptr, o.words, o.salt, random() % 8 ? 0 : 20000);
    r.end(chains);
    r.run(LAUNCHES);
    std::vector<uint32_t> expected(WORDS);
    for (int i = 0; i < LAUNCHES; i++)
        for (const op &o : program)
            for (uint32_t w = 0; w < o.words; w++)
                expected[o.to + w] = mix_word(expected[o.to + w], o.reads ? expected[o.from + w] : 0, o.salt);
    const std::vector<uint32_t> is = words.read();
    for (uint32_t w = 0; w < WORDS; w++)
        CHECK_EQ(is[w], expected[w]);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

void random_programs_leave_the_bytes_of_serial_execution()
{
    const uint32_t chains[] = {0, 1, 2, 5, 16, ACS_GRAPH_CHAINS_ANY};
    for (uint32_t seed = 1; seed <= 18; seed++)
        random_program(seed, chains[seed % 6]);
}

/* One op forks to another stream and joins it. */
void an_op_may_fork_and_join()
{
    device_buffer<uint32_t> words(4);
    acs_context *context = check_open_default();
    acs_segment segments[2];
    cudaStream_t other;
    cudaEvent_t fork, join;
    CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    recording r(context);
    mix_op(r, words.data, nullptr, 2, 1, 50000);
    mix(r.stream, words.data, nullptr, 1, 2, 0);
    CHECK_CUDA(cudaEventRecord(fork, r.stream));
    CHECK_CUDA(cudaStreamWaitEvent(other, fork, 0));
    mix(other, words.data, nullptr, 1, 3, 20000);
    mix(r.stream, words.data + 1, nullptr, 1, 4, 0);
    CHECK_CUDA(cudaEventRecord(join, other));
    CHECK_CUDA(cudaStreamWaitEvent(r.stream, join, 0));
    CHECK_EQ(acs_graph_op(r.graph, r.stream, touches(segments, words.data, nullptr, 2), nullptr), 2u);
    mix_op(r, words.data, nullptr, 2, 5, 0);
    r.end(0);
    r.run(1);
    const std::vector<uint32_t> is = words.read();
    CHECK_EQ(is[0], mix_word(mix_word(mix_word(mix_word(0, 0, 1), 0, 2), 0, 3), 0, 5));
    CHECK_EQ(is[1], mix_word(mix_word(mix_word(0, 0, 1), 0, 4), 0, 5));
    CHECK_CUDA(cudaEventDestroy(fork));
    CHECK_CUDA(cudaEventDestroy(join));
    CHECK_CUDA(cudaStreamDestroy(other));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* -------------------------------------------------------------------------------------------------------------- loops */

__global__ void count_down(uint32_t *counter, cudaGraphConditionalHandle handle)
{
    *counter = *counter ? *counter - 1 : 0;
    cudaGraphSetConditional(handle, *counter != 0);
}

/* Add a loop to the graph, behind what the stream's next work would be behind; the stream goes on behind the loop. */
cudaGraph_t insert_loop(cudaStream_t stream, cudaGraphConditionalHandle *handle)
{
    cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    const cudaGraphNode_t *behind;
    size_t count;
    cudaGraphNode_t node;
    cudaGraphNodeParams params = {};
#if CUDART_VERSION >= 13000
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &behind, nullptr, &count));
#else
    CHECK_CUDA(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, &behind, &count));
#endif
    CHECK_CUDA(cudaGraphConditionalHandleCreate(handle, graph, 1, cudaGraphCondAssignDefault));
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = *handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
#if CUDART_VERSION >= 13000
    CHECK_CUDA(cudaGraphAddNode(&node, graph, behind, nullptr, count, &params));
    CHECK_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
#else
    CHECK_CUDA(cudaGraphAddNode(&node, graph, behind, count, &params));
    CHECK_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, 1, cudaStreamSetCaptureDependencies));
#endif
    return params.conditional.phGraph_out[0];
}

/* Capture the body on a stream of its own: `steps` kernels on each of two words, and the counter. */
void capture_body(recording &r, uint64_t loop, cudaGraph_t body, cudaGraphConditionalHandle handle, uint32_t *words,
                  uint32_t *counter)
{
    cudaStream_t stream;
    acs_graph *graph;
    acs_segment segments[2];
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
    CHECK_STATUS(acs_graph_begin(r.context, stream, &graph), ACS_OK);
    for (uint32_t step = 0; step < 3; step++)
        for (uint32_t w = 0; w < 2; w++) {
            mix(stream, words + w, nullptr, 1, 10 + step, w ? 5000 : 0);
            CHECK(acs_graph_op(graph, stream, touches(segments, words + w, nullptr, 1), nullptr) != 0);
        }
    count_down<<<1, 1, 0, stream>>>(counter, handle);
    CHECK(acs_graph_op(graph, stream, touches(segments, counter, nullptr, 1), nullptr) != 0);
    acs_graph_params params = {};
    params.size = sizeof params;
    params.body_of = r.graph;
    params.op = loop;
    CHECK_STATUS(acs_graph_end(graph, stream, &params, nullptr), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &body));
    CHECK_CUDA(cudaStreamDestroy(stream));
}

/* Two loops that share nothing, and ops before and behind each. */
void loops_come_where_their_bodies_footprints_say()
{
    enum { ROUNDS = 4 };
    device_buffer<uint32_t> words(4), counters(2);
    const uint32_t rounds[] = {ROUNDS, ROUNDS};
    CHECK_CUDA(cudaMemcpy(counters.data, rounds, sizeof rounds, cudaMemcpyHostToDevice));
    acs_context *context = check_open_default();
    recording r(context);
    for (uint32_t w = 0; w < 4; w++)
        mix_op(r, words.data + w, nullptr, 1, 1, 30000);
    for (uint32_t i = 0; i < 2; i++) {
        cudaGraphConditionalHandle handle;
        acs_segment segments[2];
        cudaGraph_t body = insert_loop(r.stream, &handle);
        const uint64_t loop = acs_graph_op(r.graph, r.stream, touches(segments, counters.data + i, nullptr, 1), nullptr);
        CHECK_EQ(loop, 5u + i);
        capture_body(r, loop, body, handle, words.data + 2 * i, counters.data + i);
    }
    for (uint32_t w = 0; w < 4; w++)
        mix_op(r, words.data + w, nullptr, 1, 2, 0);
    const acs_graph_report report = r.end(0);
    CHECK_EQ(report.levels, 3u);
    CHECK_EQ(report.edges, 8u);
    r.run(1);
    uint32_t expected = mix_word(0, 0, 1);
    for (uint32_t i = 0; i < ROUNDS * 3; i++)
        expected = mix_word(expected, 0, 10 + i % 3);
    const std::vector<uint32_t> is = words.read();
    for (uint32_t w = 0; w < 4; w++)
        CHECK_EQ(is[w], mix_word(expected, 0, 2));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

void an_end_after_the_capture_is_refused()
{
    acs_context *context = check_open_default();
    recording r(context);
    CHECK_CUDA(cudaStreamEndCapture(r.stream, &r.result));
    CHECK_STATUS(acs_graph_end(r.graph, r.stream, nullptr, nullptr), ACS_ERR_STATE);
    CHECK(acs_graph_begin(context, r.stream, &r.graph) == ACS_ERR_STATE);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

} // namespace

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(random_programs_leave_the_bytes_of_serial_execution),
        CHECK_TEST(an_op_may_fork_and_join),
        CHECK_TEST(loops_come_where_their_bodies_footprints_say),
        CHECK_TEST(an_end_after_the_capture_is_refused),
    };
    return CHECK_MAIN(argc, argv, tests);
}

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

/* ---------------------------------------------------------------------------------------- kernels that begin early */

/* As mix_kernel, but the kernels behind it may begin at once. Whether it waits for those before it is the test's choice. */
__global__ void early_kernel(uint32_t *dst, const uint32_t *src, uint32_t words, uint32_t salt, uint32_t delay_ns,
                             bool waits)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    if (waits)
        cudaGridDependencySynchronize();
#endif
    delay(delay_ns);
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
        dst[i] = mix_word(dst[i], src ? src[i] : 0, salt);
}

/* How a kernel is launched, and the earlier ones that may not have ended yet, as the stream's own capture would have it. */
struct early_op {
    op what;
    uint32_t ns;
    bool early, waits;
    std::vector<bool> behind, left; /* when it begins; when it has ended */
};

void launch_early(cudaStream_t stream, uint32_t *memory, const early_op &o)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(64);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = o.early;
    const uint32_t *from = o.what.reads ? memory + o.what.from : nullptr;
    CHECK_CUDA(cudaLaunchKernelEx(&config, early_kernel, memory + o.what.to, from, o.what.words, o.what.salt, o.ns,
                                  o.waits));
}

bool overlap(uint32_t a, uint32_t a_words, uint32_t b, uint32_t b_words)
{
    return a < b + b_words && b < a + a_words;
}

bool conflict(const op &a, const op &b)
{
    return overlap(a.to, a.words, b.to, b.words) || (a.reads && overlap(a.from, a.words, b.to, b.words)) ||
           (b.reads && overlap(b.from, b.words, a.to, a.words));
}

op random_op(std::mt19937 &random, uint32_t salt, uint32_t words)
{
    op o;
    o.words = 1 + random() % 8;
    o.to = random() % (words - o.words);
    o.from = random() % (words - o.words);
    o.reads = random() % 2 && !overlap(o.from, o.words, o.to, o.words);
    o.salt = salt;
    return o;
}

/* False: the stream's own capture would not order the op behind all that it conflicts with. */
bool choose_early(std::vector<early_op> &program, std::mt19937 &random, uint32_t words)
{
    const size_t at = program.size();
    early_op o;
    o.what = random_op(random, (uint32_t)at, words);
    o.ns = random() % 8 ? 0 : 10000;
    o.early = at && random() % 4;
    o.waits = !o.early || random() % 3;
    const std::vector<bool> left = at ? program[at - 1].left : std::vector<bool>();
    o.behind = o.early ? program[at - 1].behind : left;
    o.behind.resize(at + 1);
    if (o.early)
        o.behind[at - 1] = true;
    o.left = o.waits ? left : o.behind;
    o.left.resize(at + 1);
    const std::vector<bool> touching = o.early && o.waits ? left : o.behind;
    for (size_t i = 0; i < at && i < touching.size(); i++)
        if (touching[i] && conflict(o.what, program[i].what))
            return false;
    program.push_back(o);
    return true;
}

cudaError_t edges_of(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data, size_t *count)
{
#if CUDART_VERSION >= 13000
    return cudaGraphGetEdges(graph, from, to, data, count);
#else
    return cudaGraphGetEdges_v2(graph, from, to, data, count);
#endif
}

/* How many edges of the graph are programmatic, as CUDA has them. */
uint64_t programmatic_edges(cudaGraph_t graph)
{
    uint64_t found = 0;
    size_t count = 0;
    CHECK_CUDA(edges_of(graph, nullptr, nullptr, nullptr, &count));
    std::vector<cudaGraphNode_t> from(count), to(count);
    std::vector<cudaGraphEdgeData> data(count);
    CHECK_CUDA(edges_of(graph, from.data(), to.data(), data.data(), &count));
    for (const cudaGraphEdgeData &d : data)
        found += d.type == cudaGraphDependencyTypeProgrammatic;
    return found;
}

/* Compare the words with those of serial execution. */
void compare_serial(const char *how, const std::vector<early_op> &program, const device_buffer<uint32_t> &words,
                    int launches)
{
    std::vector<uint32_t> expected(words.count);
    for (int i = 0; i < launches; i++)
        for (const early_op &o : program)
            for (uint32_t w = 0; w < o.what.words; w++)
                expected[o.what.to + w] =
                    mix_word(expected[o.what.to + w], o.what.reads ? expected[o.what.from + w] : 0, o.what.salt);
    const std::vector<uint32_t> is = words.read();
    uint32_t wrong = 0;
    for (size_t w = 0; w < words.count; w++)
        wrong += is[w] != expected[w];
    if (wrong)
        fprintf(stderr, "%s: %u words are wrong\n", how, wrong);
    CHECK_EQ(wrong, 0);
}

/* The control: the same program captured by the stream alone. */
void run_stream_capture(const std::vector<early_op> &program, uint32_t words, int launches)
{
    device_buffer<uint32_t> memory(words);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (const early_op &o : program)
        launch_early(stream, memory.data, o);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; i++)
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(stream));
    compare_serial("captured by the stream alone", program, memory, launches);
}

acs_graph_report run_graph(const std::vector<early_op> &program, uint32_t words, uint32_t chains, int launches)
{
    device_buffer<uint32_t> memory(words);
    acs_context *context = check_open_default();
    acs_graph_report report;
    {
        recording r(context);
        for (const early_op &o : program) {
            acs_segment segments[2];
            const uint32_t *from = o.what.reads ? memory.data + o.what.from : nullptr;
            launch_early(r.stream, memory.data, o);
            const acs_uses uses = touches(segments, memory.data + o.what.to, from, o.what.words);
            CHECK(acs_graph_op(r.graph, r.stream, uses, nullptr) != 0);
        }
        report = r.end(chains);
        CHECK_EQ(programmatic_edges(r.result), report.programmatic);
        r.run(launches);
    }
    CHECK_STATUS(acs_close(context), ACS_OK);
    compare_serial("as a graph by footprints", program, memory, launches);
    return report;
}

void random_programs_of_early_kernels_leave_the_bytes_of_serial_execution()
{
    enum { WORDS = 96, LAUNCHES = 3, TRIES = 30 };
    const uint32_t chains[] = {0, 1, 2, 5, 16, ACS_GRAPH_CHAINS_ANY};
    uint64_t edges = 0, programmatic = 0;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        std::mt19937 random(seed);
        std::vector<early_op> program;
        const size_t wanted = 20 + random() % 200;
        for (int tries = 0; program.size() < wanted && tries < TRIES;)
            tries = choose_early(program, random, WORDS) ? 0 : tries + 1;
        run_stream_capture(program, WORDS, LAUNCHES);
        const acs_graph_report report = run_graph(program, WORDS, chains[seed % 6], LAUNCHES);
        edges += report.edges;
        programmatic += report.programmatic;
    }
    printf("    %llu of %llu edges are programmatic\n", (unsigned long long)programmatic, (unsigned long long)edges);
}

/* A driver before CUDA 12.3 has no edges with data, and a device before Hopper no kernels that begin early. */
bool has_early_kernels()
{
    int driver = 0, major = 0;
    CHECK_CUDA(cudaDriverGetVersion(&driver));
    CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    return driver >= 12030 && major >= 9;
}

void a_chain_keeps_its_programmatic_edges()
{
    enum { WORDS = 16, OPS = 50 };
    std::vector<early_op> program(OPS);
    for (uint32_t i = 0; i < OPS; i++) {
        program[i].what = {0, 0, WORDS - 1, i, false};
        program[i].ns = i % 4 ? 0 : 10000;
        program[i].early = i != 20;
        program[i].waits = true;
    }
    const acs_graph_report report = run_graph(program, WORDS, 0, 2);
    CHECK_EQ(report.edges, OPS - 1);
    if (has_early_kernels())
        CHECK_EQ(report.programmatic, OPS - 2);
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
        CHECK_TEST(a_chain_keeps_its_programmatic_edges),
        CHECK_TEST(random_programs_of_early_kernels_leave_the_bytes_of_serial_execution),
        CHECK_TEST(loops_come_where_their_bodies_footprints_say),
        CHECK_TEST(an_end_after_the_capture_is_refused),
    };
    return CHECK_MAIN(argc, argv, tests);
}

/*
 * Ops inside somebody else's capture on a real GPU: the graph is as wide as the program, launched again and again it leaves
 * what serial execution leaves, in every mode of capture; copies, attributes, library calls that fork, two streams, errors.
 */
#include "kernels.cuh"

#include <cooperative_groups.h>
#include <random>
#include <thread>

static const acs_uses g_anything = {nullptr, 0, nullptr, nullptr, 1};

/* A stream, what it captured, and the launches of that. */
struct capture {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;

    explicit capture(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal)
    {
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK_CUDA(cudaStreamBeginCapture(stream, mode));
    }
    ~capture()
    {
        if (graph)
            CHECK_CUDA(cudaGraphDestroy(graph));
        CHECK_CUDA(cudaStreamDestroy(stream));
    }
    capture(const capture &) = delete;
    capture &operator=(const capture &) = delete;

    void end() { CHECK_CUDA(cudaStreamEndCapture(stream, &graph)); }
    void run(int launches)
    {
        cudaGraphExec_t exec = nullptr;
        CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
        for (int i = 0; i < launches; i++)
            CHECK_CUDA(cudaGraphLaunch(exec, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        CHECK_CUDA(cudaGraphExecDestroy(exec));
    }
    size_t nodes() const
    {
        size_t count = 0;
        CHECK_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
        return count;
    }
    size_t edges() const
    {
        size_t count = 0;
#if CUDART_VERSION >= 13000
        CHECK_CUDA(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
#else
        CHECK_CUDA(cudaGraphGetEdges(graph, nullptr, nullptr, &count));
#endif
        return count;
    }
};

static void mix_plain(cudaStream_t stream, uint32_t *dst, uint32_t words, uint32_t salt)
{
    mix_kernel<<<1, 256, 0, stream>>>(dst, nullptr, words, salt, 0);
    CHECK_CUDA(cudaGetLastError());
}

static void chains_become_a_wide_graph_in_every_mode()
{
    enum { CHAINS = 16, STEPS = 5, LAUNCHES = 3 };
    const cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                           cudaStreamCaptureModeRelaxed};
    for (cudaStreamCaptureMode mode : modes)
        for (int workers = 0; workers < 2; workers++) {
            device_buffer<uint32_t> words(CHAINS);
            acs_options options = check_options();
            options.workers = workers;
            acs_context *context = check_open(&options);
            capture c(mode);
            mix_plain(c.stream, words.data, CHAINS, 1);
            CHECK(acs_after_stream(context, c.stream, g_anything) & ACS_OP_CAPTURED);
            for (uint32_t i = 0; i < CHAINS * STEPS; i++)
                CHECK(launch_mix(context, words.data + i % CHAINS, nullptr, 1, i, 2000) & ACS_OP_CAPTURED);
            CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
            mix_plain(c.stream, words.data, CHAINS, 2);
            c.end();
            CHECK_EQ(c.nodes(), CHAINS * STEPS + 2);
            CHECK_EQ(c.edges(), CHAINS * (STEPS + 1)); /* four in a chain, one in front, one behind */
            CHECK_EQ(words.first(), 0);
            c.run(LAUNCHES);
            for (uint32_t chain = 0; chain < CHAINS; chain++) {
                uint32_t wanted = 0;
                for (int launch = 0; launch < LAUNCHES; launch++) {
                    wanted = mix_word(wanted, 0, 1);
                    for (uint32_t i = chain; i < CHAINS * STEPS; i += CHAINS)
                        wanted = mix_word(wanted, 0, i);
                    wanted = mix_word(wanted, 0, 2);
                }
                CHECK_EQ(words.read()[chain], wanted);
            }
            CHECK_EQ(check_stats(context).captured, CHAINS * STEPS);
            CHECK_STATUS(acs_close(context), ACS_OK);
        }
}

/* Wide, the stream's own, wide: what a framework makes of a program that calls into ACS now and then. */
static void sections_with_work_between_them_need_no_edges_to_each_other()
{
    enum { WIDTH = 16, SECTIONS = 3, BETWEEN = 5 };
    device_buffer<uint32_t> words(WIDTH);
    acs_context *context = check_open_default();
    capture c;
    for (uint32_t section = 0; section < SECTIONS; section++) {
        CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
        for (uint32_t i = 0; i < WIDTH; i++)
            CHECK(launch_mix(context, words.data + i, nullptr, 1, section, 0) != 0);
        CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
        for (uint32_t i = 0; i < BETWEEN; i++)
            mix_plain(c.stream, words.data, WIDTH, 100 + i);
    }
    c.end();
    CHECK_EQ(c.nodes(), SECTIONS * (WIDTH + BETWEEN));
    CHECK_EQ(c.edges(), (SECTIONS - 1) * WIDTH + SECTIONS * (WIDTH + BETWEEN - 1));
    c.run(1);
    uint32_t wanted = 0;
    for (uint32_t section = 0; section < SECTIONS; section++) {
        wanted = mix_word(wanted, 0, section);
        for (uint32_t i = 0; i < BETWEEN; i++)
            wanted = mix_word(wanted, 0, 100 + i);
    }
    for (uint32_t is : words.read())
        CHECK_EQ(is, wanted);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* Kernels over random ranges, copies, fills; and work of the stream's own between sections that name what it touches. */
static void random_program(uint32_t seed)
{
    enum { WORDS = 512, STEPS = 200, LAUNCHES = 3 };
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    device_buffer<uint32_t> words(WORDS);
    std::vector<uint32_t> wanted(WORDS, 0);
    acs_context *context = check_open_default();
    struct step {
        uint32_t kind, to, from, count, salt;
    };
    std::vector<step> steps;
    capture c;
    CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
    for (uint32_t i = 0; i < STEPS; i++) {
        const step s = {below(12), below(WORDS / 2 - 40), WORDS / 2 + below(WORDS / 2 - 40), 1 + below(40), below(256)};
        uint32_t *to = words.data + s.to, *from = words.data + s.from;
        steps.push_back(s);
        if (s.kind < 7) {
            CHECK(launch_mix(context, s.salt % 2 ? to : from, s.salt % 2 ? from : to, s.count, s.salt,
                             below(3) * 3000) != 0);
        } else if (s.kind < 9) {
            CHECK(acs_memcpy(context, to, from, s.count * 4) != 0);
        } else if (s.kind < 10) {
            CHECK(acs_memset(context, to, static_cast<int>(s.salt), s.count * 4) != 0);
        } else {
            CHECK_STATUS(acs_stream_after(context, c.stream, ACS_USES(ACS_INOUT(to, s.count * 4))), ACS_OK);
            mix_plain(c.stream, to, s.count, s.salt);
            CHECK(acs_after_stream(context, c.stream, ACS_USES(ACS_INOUT(to, s.count * 4))) != 0);
        }
    }
    CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
    c.end();
    c.run(LAUNCHES);
    for (int launch = 0; launch < LAUNCHES; launch++)
        for (const step &s : steps)
            for (uint32_t i = 0; i < s.count; i++) {
                const bool forward = s.salt % 2 != 0;
                uint32_t &to = wanted[s.to + i], &from = wanted[s.from + i];
                if (s.kind < 7)
                    (forward ? to : from) = mix_word(forward ? to : from, forward ? from : to, s.salt);
                else if (s.kind < 9)
                    to = from;
                else if (s.kind < 10)
                    to = s.salt * 0x01010101u;
                else
                    to = mix_word(to, 0, s.salt);
            }
    CHECK(words.read() == wanted);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void random_programs_leave_the_bytes_of_serial_execution()
{
    for (uint32_t seed = 1; seed <= 12; seed++)
        random_program(seed);
}

/* More ops that later ones may depend on than the order keeps one by one: an empty node stands for the rest. */
static void more_ops_than_the_order_keeps()
{
    enum { OPS = 3000 };
    device_buffer<uint32_t> words(OPS);
    acs_context *context = check_open_default();
    capture c;
    CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < OPS; i++)
            CHECK(launch_mix(context, words.data + i, nullptr, 1, i + round, 0) != 0);
    CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
    c.end();
    CHECK(c.nodes() > 2 * OPS);
    c.run(1);
    const std::vector<uint32_t> is = words.read();
    for (uint32_t i = 0; i < OPS; i++)
        CHECK_EQ(is[i], mix_word(mix_word(0, 0, i), 0, i + 1));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------ kinds of nodes */

static __global__ void cooperative_kernel(uint32_t *words)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    if (threadIdx.x == 0)
        words[blockIdx.x] += 1;
    grid.sync();
    if (threadIdx.x == 0 && blockIdx.x == 0)
        for (unsigned i = 1; i < gridDim.x; i++)
            words[0] += words[i];
}

static __global__ void shared_kernel(uint32_t *word, uint32_t bytes)
{
    extern __shared__ unsigned char memory[];
    memory[bytes - 1] = 3;
    *word += memory[bytes - 1];
}

static void attributes_are_captured()
{
    device_buffer<uint32_t> words(16);
    acs_context *context = check_open_default();
    const uint32_t bytes = 100000;
    capture c;
    CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
    uint32_t *data = words.data, *last = words.data + 15;
    const acs_kernel kernel = ACS_KERNEL_INIT("cooperative", cooperative_kernel, nullptr);
    const acs_arg arg = {&data, sizeof data, ACS_ARG_POINTER};
    const acs_segment segment = ACS_INOUT(data, 8 * 4);
    acs_launch_params launch = {};
    launch.size = sizeof launch;
    launch.kernel = &kernel;
    launch.grid = {8, 1, 1};
    launch.block = {32, 1, 1};
    launch.args = {&arg, 1};
    launch.uses.segments = &segment;
    launch.uses.count = 1;
    launch.attributes.cooperative = 1;
    launch.attributes.priority = -1;
    CHECK(acs_launch(context, &launch) != 0);
    CHECK(ACS_LAUNCH_ON(context, shared_kernel, 1, 1, bytes, ACS_ARGS(last, bytes), ACS_USES(ACS_INOUT(last, 4))) != 0);
    CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
    c.end();
    CHECK_EQ(c.nodes(), 2);
    CHECK_EQ(c.edges(), 0);
    c.run(1);
    CHECK_EQ(words.first(), 8);
    CHECK_EQ(words.read()[15], 3);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* Host memory is read and written whenever the graph runs: pinned, and pageable too. */
static void copies_of_host_memory_happen_at_each_launch()
{
    device_buffer<uint32_t> word(1);
    acs_context *context = check_open_default();
    static uint32_t pageable_in, pageable_out;
    uint32_t *pinned = nullptr;
    CHECK_CUDA(cudaMallocHost(&pinned, 8));
    for (int pageable = 0; pageable < 2; pageable++) {
        uint32_t *in = pageable ? &pageable_in : pinned, *out = pageable ? &pageable_out : pinned + 1;
        capture c;
        cudaGraphExec_t exec = nullptr;
        CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
        CHECK(acs_memcpy(context, word.data, in, 4) != 0);
        CHECK(launch_mix(context, word.data, nullptr, 1, 5, 0) != 0);
        CHECK(acs_memcpy(context, out, word.data, 4) != 0);
        CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
        c.end();
        CHECK_EQ(c.nodes(), 3);
        CHECK_EQ(c.edges(), 2);
        CHECK_CUDA(cudaGraphInstantiate(&exec, c.graph, 0));
        for (uint32_t i = 0; i < 3; i++) {
            *in = 100 + i;
            CHECK_CUDA(cudaGraphLaunch(exec, c.stream));
            CHECK_CUDA(cudaStreamSynchronize(c.stream));
            CHECK_EQ(*out, mix_word(100 + i, 0, 5));
        }
        CHECK_CUDA(cudaGraphExecDestroy(exec));
    }
    /* A fill of memory that CUDA does not know cannot be a node, and the capture goes on without it. */
    capture c;
    CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
    CHECK(acs_memset(context, &pageable_in, 1, 4) == 0);
    CHECK_STATUS(check_last_error().status, ACS_ERR_LAUNCH);
    CHECK(launch_mix(context, word.data, nullptr, 1, 5, 0) != 0);
    CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
    c.end();
    CHECK_EQ(c.nodes(), 1);
    (void)acs_clear(context);
    CHECK_CUDA(cudaFreeHost(pinned));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* -------------------------------------------------------------------------------------------------------- library calls */

struct fork_call {
    uint32_t *words;
    cudaStream_t side;
    cudaEvent_t forked, joined;
};

/* As libraries do: part of the work in a stream of its own, forked and joined by events; scratch memory is used. */
static int forking_library(const acs_call_env *env, void *closure)
{
    const fork_call *f = static_cast<fork_call *>(closure);
    cudaStream_t stream = static_cast<cudaStream_t>(env->stream);
    uint32_t *scratch = static_cast<uint32_t *>(env->scratch);
    cudaError_t error = env->slot == -1 && env->scratch ? cudaSuccess : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = cudaEventRecord(f->forked, stream);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(f->side, f->forked, 0);
    if (error == cudaSuccess) {
        mix_kernel<<<1, 32, 0, f->side>>>(f->words + 1, nullptr, 1, 7, 5000);
        mix_kernel<<<1, 32, 0, stream>>>(f->words, nullptr, 1, 7, 0);
        error = cudaMemcpyAsync(scratch, f->words, 4, cudaMemcpyDefault, stream);
        mix_kernel<<<1, 32, 0, stream>>>(f->words, scratch, 1, 9, 0);
    }
    if (error == cudaSuccess)
        error = cudaEventRecord(f->joined, f->side);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(stream, f->joined, 0);
    return error == cudaSuccess ? static_cast<int>(cudaGetLastError()) : static_cast<int>(error);
}

static void library_calls_may_fork_and_join()
{
    enum { CALLS = 3, LAUNCHES = 2 };
    device_buffer<uint32_t> words(2 * CALLS);
    acs_context *context = check_open_default();
    fork_call calls[CALLS];
    for (uint32_t i = 0; i < CALLS; i++) {
        calls[i].words = words.data + 2 * i;
        CHECK_CUDA(cudaStreamCreateWithFlags(&calls[i].side, cudaStreamNonBlocking));
        CHECK_CUDA(cudaEventCreateWithFlags(&calls[i].forked, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&calls[i].joined, cudaEventDisableTiming));
    }
    capture c;
    CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
    for (uint32_t i = 0; i < CALLS; i++) {
        const acs_segment segment = ACS_INOUT(calls[i].words, 8);
        acs_call_params call = {};
        call.size = sizeof call;
        call.function = forking_library;
        call.closure = &calls[i];
        call.closure_bytes = sizeof calls[i];
        call.scratch_bytes = 4;
        call.uses.segments = &segment;
        call.uses.count = 1;
        CHECK(acs_call(context, &call) != 0);
    }
    CHECK(launch_mix(context, words.data, nullptr, 2 * CALLS, 11, 0) != 0);
    CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
    c.end();
    CHECK_EQ(c.nodes(), 4 * CALLS + 1);
    CHECK_EQ(c.edges(), 2 * CALLS + 2 * CALLS); /* inside each call, and both its ends to the last kernel */
    c.run(LAUNCHES);
    uint32_t first = 0, second = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        const uint32_t once = mix_word(first, 0, 7);
        first = mix_word(mix_word(once, once, 9), 0, 11);
        second = mix_word(mix_word(second, 0, 7), 0, 11);
    }
    const std::vector<uint32_t> is = words.read();
    for (uint32_t i = 0; i < CALLS; i++) {
        CHECK_EQ(is[2 * i], first);
        CHECK_EQ(is[2 * i + 1], second);
        CHECK_CUDA(cudaStreamDestroy(calls[i].side));
        CHECK_CUDA(cudaEventDestroy(calls[i].forked));
        CHECK_CUDA(cudaEventDestroy(calls[i].joined));
    }
    CHECK_CUDA(cudaGraphDestroy(c.graph));
    c.graph = nullptr;
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* ---------------------------------------------------------------------------------------------------- streams, threads */

static void two_streams_of_one_capture()
{
    device_buffer<uint32_t> words(4);
    acs_context *context = check_open_default();
    cudaStream_t side;
    cudaEvent_t event;
    CHECK_CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    capture c;
    CHECK_CUDA(cudaEventRecord(event, c.stream));
    CHECK_CUDA(cudaStreamWaitEvent(side, event, 0)); /* part of the capture from here on */
    mix_plain(c.stream, words.data, 1, 1);
    mix_plain(side, words.data + 1, 1, 2);
    CHECK(acs_after_stream(context, c.stream, ACS_USES(ACS_INOUT(words.data, 4))) != 0);
    CHECK(acs_after_stream(context, side, ACS_USES(ACS_INOUT(words.data + 1, 4))) != 0);
    CHECK(launch_mix(context, words.data, nullptr, 1, 3, 0) != 0);
    CHECK(launch_mix(context, words.data + 1, nullptr, 1, 4, 0) != 0);
    CHECK(launch_mix(context, words.data, words.data + 1, 1, 5, 0) != 0);
    CHECK_STATUS(acs_stream_after(context, side, ACS_USES(ACS_IN(words.data + 1, 4))), ACS_OK);
    mix_plain(side, words.data + 2, 1, 6);
    CHECK(launch_mix(context, words.data + 3, nullptr, 1, 7, 0) & ACS_OP_CAPTURED); /* the section goes on */
    CHECK_STATUS(acs_stream_after(context, c.stream, ACS_USES(ACS_INOUT(words.data, 4))), ACS_OK);
    CHECK_CUDA(cudaEventRecord(event, side));
    CHECK_CUDA(cudaStreamWaitEvent(c.stream, event, 0));
    c.end();
    CHECK_EQ(c.nodes(), 7);
    c.run(1);
    const std::vector<uint32_t> is = words.read();
    const uint32_t second = mix_word(mix_word(0, 0, 2), 0, 4);
    CHECK_EQ(is[0], mix_word(mix_word(mix_word(0, 0, 1), 0, 3), second, 5));
    CHECK_EQ(is[1], second);
    CHECK_EQ(is[3], mix_word(0, 0, 7));
    CHECK_CUDA(cudaEventDestroy(event));
    CHECK_CUDA(cudaStreamDestroy(side));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void ops_of_other_threads_run_as_always()
{
    device_buffer<uint32_t> words(2);
    acs_context *context = check_open_default();
    capture c(cudaStreamCaptureModeThreadLocal);
    CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
    CHECK(launch_mix(context, words.data, nullptr, 1, 1, 0) & ACS_OP_CAPTURED);
    std::thread other([&] {
        CHECK(!(launch_mix(context, words.data + 1, nullptr, 1, 2, 0) & ACS_OP_CAPTURED));
        CHECK_STATUS(acs_sync(context), ACS_OK);
    });
    other.join();
    CHECK_STATUS(acs_sync(context), ACS_ERR_STATE);
    CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_OK);
    c.end();
    CHECK_EQ(c.nodes(), 1);
    CHECK_EQ(words.first(), 0);
    CHECK_EQ(words.read()[1], mix_word(0, 0, 2));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* Ended too early, made void by a call that captures forbid; and a section left open is over with the next capture. */
static void broken_captures_are_told_and_forgotten()
{
    device_buffer<uint32_t> word(1);
    acs_context *context = check_open_default();
    capture c;
    CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
    c.end();
    CHECK(launch_mix(context, word.data, nullptr, 1, 1, 0) == 0);
    CHECK_STATUS(check_last_error().status, ACS_ERR_STATE);
    CHECK_CUDA(cudaGraphDestroy(c.graph));
    c.graph = nullptr;
    CHECK_CUDA(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal));
    CHECK(acs_after_stream(context, c.stream, g_anything) != 0);
    CHECK(launch_mix(context, word.data, nullptr, 1, 2, 0) != 0);
    CHECK(cudaStreamSynchronize(c.stream) != cudaSuccess);
    CHECK(launch_mix(context, word.data, nullptr, 1, 3, 0) == 0);
    CHECK_STATUS(check_last_error().status, ACS_ERR_STATE);
    CHECK(strstr(check_last_error().text, "invalidated") != NULL);
    CHECK_STATUS(acs_stream_after(context, c.stream, g_anything), ACS_ERR_STATE);
    CHECK(cudaStreamEndCapture(c.stream, &c.graph) != cudaSuccess);
    (void)cudaGetLastError();
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK(launch_mix(context, word.data, nullptr, 1, 4, 0) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(word.first(), mix_word(0, 0, 4));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(chains_become_a_wide_graph_in_every_mode),
        CHECK_TEST(sections_with_work_between_them_need_no_edges_to_each_other),
        CHECK_TEST(random_programs_leave_the_bytes_of_serial_execution),
        CHECK_TEST(more_ops_than_the_order_keeps),
        CHECK_TEST(attributes_are_captured),
        CHECK_TEST(copies_of_host_memory_happen_at_each_launch),
        CHECK_TEST(library_calls_may_fork_and_join),
        CHECK_TEST(two_streams_of_one_capture),
        CHECK_TEST(ops_of_other_threads_run_as_always),
        CHECK_TEST(broken_captures_are_told_and_forgotten),
    };
    return CHECK_MAIN(argc, argv, tests);
}

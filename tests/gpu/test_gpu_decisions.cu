/*
 * Ops that the GPU decides: grids that are read, sections, loops, by each issue method and in captures. What ran is
 * compared with plain C++. Each kernel mixes, so a lost order shows.
 */
#include "kernels.cuh"

#include <string>

enum { WORLDS = 24, BLOCKS = 8, STEPS = 48 };

static __global__ void set_kernel(uint32_t *word, uint32_t to, uint32_t delay_ns)
{
    delay(delay_ns);
    *word = to;
}

/* Each block mixes a word of its own with the grid's size. */
static __global__ void blocks_kernel(uint32_t *dst, uint32_t salt)
{
    if (threadIdx.x == 0 && blockIdx.y == 0)
        dst[blockIdx.x] = mix_word(dst[blockIdx.x], gridDim.x * gridDim.y * gridDim.z, salt);
}

static __global__ void countdown_kernel(uint32_t *left, uint32_t *stop)
{
    *left -= 1;
    *stop = *left == 0;
}

static void set(acs_context *c, uint32_t *word, uint32_t to, uint32_t delay_ns = 0)
{
    CHECK(ACS_LAUNCH_ON(c, set_kernel, 1, 1, 0, ACS_ARGS(word, to, delay_ns), ACS_USES(ACS_OUT(word, 4))) != 0);
}

static void blocks(acs_context *c, uint32_t *dst, uint32_t salt, const acs_read_grid &grid)
{
    CHECK(ACS_LAUNCH_ON(c, blocks_kernel, grid, 32, 0, ACS_ARGS(dst, salt), ACS_USES(ACS_INOUT(dst, BLOCKS * 4))) != 0);
}

static void blocks_here(uint32_t *dst, uint32_t salt, uint32_t count, uint32_t size)
{
    for (uint32_t b = 0; b < count; b++)
        dst[b] = mix_word(dst[b], size, salt);
}

struct world {
    uint32_t word[4];
    uint32_t grid[4];
    uint32_t x[BLOCKS], y[BLOCKS];
};

static uint32_t contacts_of(uint32_t step, uint32_t w)
{
    return mix_word(step, w, 5) % 4 == 0 ? 0 : mix_word(step, w, 9) % (2 * BLOCKS + 1);
}

/* One step of a world, by the GPU's decisions. */
static void step_gpu(acs_context *c, world *w, uint32_t contacts, uint32_t step)
{
    set(c, &w->word[0], contacts, contacts % 3 * 1000);
    set(c, &w->word[1], step % 3);
    set(c, &w->grid[0], contacts % 4);
    blocks(c, w->x, step, ACS_GRID_FOR(&w->word[0], 2, BLOCKS));
    blocks(c, w->y, step + 1, ACS_GRID_AT(w->grid, (acs_dim3{4, 2, 1})));
    CHECK_STATUS(acs_if(c, &w->word[0]), ACS_OK);
    /* The launch's own grid is the maximum of one that is read: a node then must not keep what was read. */
    blocks(c, w->y, step + 2, acs_make_read_grid(nullptr, 0, acs_dim3{BLOCKS, 1, 1}));
    set(c, &w->word[0], 0);
    CHECK_STATUS(acs_unless(c, &w->word[1]), ACS_OK);
    blocks(c, w->x, step + 3, acs_make_read_grid(nullptr, 0, acs_dim3{4, 1, 1}));
    CHECK_STATUS(acs_else(c), ACS_OK);
    blocks(c, w->x, step + 4, ACS_GRID_FOR(&w->word[1], 1, 4));
    CHECK_STATUS(acs_end_if(c), ACS_OK);
    CHECK(acs_memcpy(c, &w->word[2], w->x, 4) != 0);
    CHECK_STATUS(acs_else(c), ACS_OK);
    CHECK(acs_memset(c, &w->word[3], (int)(step & 255), 4) != 0);
    CHECK_STATUS(acs_end_if(c), ACS_OK);
}

static void step_here(world *w, uint32_t contacts, uint32_t step)
{
    w->word[0] = contacts;
    w->word[1] = step % 3;
    w->grid[0] = contacts % 4;
    blocks_here(w->x, step, (contacts + 1) / 2, (contacts + 1) / 2);
    blocks_here(w->y, step + 1, w->grid[0], 2 * w->grid[0]);
    if (!contacts) {
        memset(&w->word[3], (int)(step & 255), 4);
        return;
    }
    blocks_here(w->y, step + 2, BLOCKS, BLOCKS);
    w->word[0] = 0;
    if (w->word[1])
        blocks_here(w->x, step + 4, w->word[1], w->word[1]);
    else
        blocks_here(w->x, step + 3, 4, 4);
    w->word[2] = w->x[0];
}

static void prepare(std::vector<world> &here, device_buffer<world> &there)
{
    for (world &w : here) {
        memset(&w, 0, sizeof w);
        w.grid[1] = 2;
        w.grid[2] = 1;
    }
    CHECK_CUDA(cudaMemcpy(there.data, here.data(), there.bytes(), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaDeviceSynchronize());
}

/* Prints the first difference. */
static bool equal(const std::vector<world> &here, const device_buffer<world> &there)
{
    const std::vector<world> read = there.read();
    for (size_t w = 0; w < here.size(); w++)
        for (size_t i = 0; i < sizeof(world) / 4; i++) {
            const uint32_t is = reinterpret_cast<const uint32_t *>(&read[w])[i];
            const uint32_t wanted = reinterpret_cast<const uint32_t *>(&here[w])[i];
            if (is != wanted) {
                fprintf(stderr, "  world %zu, word %zu: %08x, not %08x\n", w, i, is, wanted);
                return false;
            }
        }
    return true;
}

static void run_worlds(const char *name, const acs_options &options, int syncs)
{
    std::vector<world> here(WORLDS);
    device_buffer<world> there(WORLDS);
    acs_context *c = check_open(&options);
    const int failures = g_check_failures;
    prepare(here, there);
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t w = 0; w < WORLDS; w++)
            step_gpu(c, there.data + w, contacts_of(step, w), step);
        for (uint32_t w = 0; w < WORLDS; w++)
            step_here(&here[w], contacts_of(step, w), step);
        if (syncs && step % (unsigned)syncs == 0) {
            CHECK_STATUS(acs_sync(c), ACS_OK);
            CHECK(equal(here, there));
        }
    }
    CHECK_STATUS(acs_sync(c), ACS_OK);
    CHECK(equal(here, there));
    const acs_statistics s = check_stats(c);
    printf("  %s: not run %llu; launch %llu replay %llu, replayed %llu\n", name,
           (unsigned long long)s.not_run, (unsigned long long)s.issued_by[ACS_ISSUE_LAUNCH],
           (unsigned long long)s.issued_by[ACS_ISSUE_REPLAY], (unsigned long long)s.replayed);
    CHECK(s.not_run > 0);
    CHECK_STATUS(acs_close(c), ACS_OK);
    if (g_check_failures != failures)
        fprintf(stderr, "  ... with %s\n", name);
}

static void worlds_by_each_issue_method()
{
    static const char *const names[] = {"auto", "launch", "replay"};
    for (int issue = 0; issue < ACS_ISSUE_RESIDENT; issue++)
        for (int repeats = 0; repeats < 2; repeats++)
            for (int syncs : {0, 1, 5}) {
                acs_options options = check_options();
                options.issue = issue;
                options.repeats = repeats ? ACS_REPEATS_AUTO : ACS_REPEATS_NAMED;
                const std::string name = std::string(names[issue]) + (repeats ? ", repeats" : "") + ", sync every " +
                                         std::to_string(syncs);
                run_worlds(name.c_str(), options, syncs);
            }
}

static void worlds_in_other_modes()
{
    acs_options options = check_options();
    options.serial = 1;
    run_worlds("serial", options, 5);
    options = check_options();
    options.disable = 1;
    run_worlds("disable", options, 5);
    options = check_options();
    options.wait = ACS_WAIT_HOST;
    run_worlds("wait=host", options, 5);
    options = check_options();
    options.workers = 0;
    run_worlds("workers=0", options, 5);
    options = check_options();
    options.window = 16;
    run_worlds("window=16", options, 0);
    options = check_options();
    options.graph_nodes = 64;
    run_worlds("few nodes", options, 5);
}

static int add_one(void *counter)
{
    ++**static_cast<uint32_t **>(counter);
    return 0;
}

static int call_set(const acs_call_env *env, void *word)
{
    set_kernel<<<1, 1, 0, static_cast<cudaStream_t>(env->stream)>>>(*static_cast<uint32_t **>(word), 77, 0);
    return (int)cudaGetLastError();
}

static void host_functions_and_calls_are_decided()
{
    acs_context *c = check_open_default();
    device_buffer<uint32_t> words(2);
    uint32_t counted = 0, *counter = &counted, *target = words.data + 1;
    for (uint32_t run = 0; run < 2; run++) {
        set(c, words.data, run, 2000);
        set(c, target, 5);
        CHECK_STATUS(acs_if(c, words.data), ACS_OK);
        CHECK(acs_host(c, add_one, &counter, sizeof counter, ACS_USES(ACS_INOUT(counter, 4))) != 0);
        acs_call_params call{};
        call.size = sizeof call;
        call.function = call_set;
        call.closure = &target;
        call.closure_bytes = sizeof target;
        const acs_segment segment = ACS_INOUT(target, 4);
        call.uses.segments = &segment;
        call.uses.count = 1;
        CHECK(acs_call(c, &call) != 0);
        CHECK_STATUS(acs_end_if(c), ACS_OK);
        CHECK_STATUS(acs_sync(c), ACS_OK);
        CHECK_EQ(counted, run);
        CHECK_EQ(words.read()[1], run ? 77 : 5);
    }
    CHECK_EQ(check_stats(c).not_run, 2);
    CHECK_STATUS(acs_close(c), ACS_OK);
}

static void a_grid_above_its_maximum_is_an_error_and_no_overrun()
{
    acs_context *c = check_open_default();
    device_buffer<uint32_t> words(1 + BLOCKS + 8);
    for (uint32_t turn = 0; turn < 40; turn++) {
        set(c, words.data, turn == 20 ? 1000 : 4);
        blocks(c, words.data + 1, turn, ACS_GRID_FOR(words.data, 2, BLOCKS));
    }
    CHECK_STATUS(acs_sync(c), ACS_ERR_ARGUMENT);
    acs_error error{};
    error.size = sizeof error;
    CHECK_STATUS(acs_context_error(c, &error), ACS_ERR_ARGUMENT);
    CHECK(strstr(error.text, "500 x 1 x 1 blocks, and its maximum is 8 x 1 x 1") != nullptr);
    uint32_t want[BLOCKS] = {};
    for (uint32_t turn = 0; turn < 40; turn++)
        if (turn != 20)
            blocks_here(want, turn, 2, 2);
    CHECK(memcmp(words.read().data() + 1, want, sizeof want) == 0);
    CHECK_STATUS(acs_clear(c), ACS_OK);
    CHECK_STATUS(acs_close(c), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------------- loops */

struct countdown {
    uint32_t *left, *stop, *x;
    uint32_t called;
};

static int countdown_body(acs_context *c, uint32_t iteration, void *user)
{
    countdown *down = static_cast<countdown *>(user);
    down->called = iteration + 1;
    CHECK(ACS_LAUNCH_ON(c, countdown_kernel, 1, 1, 0, ACS_ARGS(down->left, down->stop),
                        ACS_USES(ACS_INOUT(down->left, 4), ACS_OUT(down->stop, 4))) != 0);
    blocks(c, down->x, 3, acs_make_read_grid(nullptr, 0, acs_dim3{2, 1, 1}));
    return 0;
}

static void loops_end_when_their_word_says_so()
{
    for (int issue = 0; issue < 5; issue++) {
        acs_options options = check_options();
        options.issue = issue;
        acs_context *c = check_open(&options);
        device_buffer<uint32_t> words(2 + BLOCKS);
        uint32_t want[BLOCKS] = {}, waste = 0, ran_in_all = 0;
        for (uint32_t length : {1u, 2u, 7u, 40u, 41u, 300u, 40u, 40u, 40u}) {
            countdown down = {words.data, words.data + 1, words.data + 2, 0};
            acs_loop_params loop{};
            loop.size = sizeof loop;
            loop.stop = down.stop;
            loop.most = 100;
            loop.body = countdown_body;
            loop.user = &down;
            set(c, down.left, length);
            set(c, down.stop, 0);
            CHECK_STATUS(acs_loop(c, &loop), ACS_OK);
            blocks(c, down.x, 4, acs_make_read_grid(nullptr, 0, acs_dim3{2, 1, 1}));
            const uint32_t ran = length < 100 ? length : 100;
            for (uint32_t i = 0; i < ran; i++)
                blocks_here(want, 3, 2, 2);
            blocks_here(want, 4, 2, 2);
            waste += down.called - ran;
            ran_in_all += ran;
        }
        CHECK_STATUS(acs_sync(c), ACS_OK);
        CHECK(memcmp(words.read().data() + 2, want, sizeof want) == 0);
        printf("  issue %d: %u iterations ran, %u queued in vain\n", issue, ran_in_all, waste);
        CHECK_STATUS(acs_close(c), ACS_OK);
    }
}

/* ---------------------------------------------------------------------------------------------------------- captures */

static __global__ void next_kernel(world *worlds, const uint32_t *step)
{
    const uint32_t w = threadIdx.x;
    const uint32_t contacts = mix_word(*step, w, 5) % 4 == 0 ? 0 : mix_word(*step, w, 9) % (2 * BLOCKS + 1);
    worlds[w].word[0] = contacts;
    worlds[w].word[1] = *step % 3;
    worlds[w].grid[0] = contacts % 4;
}

/* The section of step_gpu, without what sets the words: a captured graph has constant arguments. */
static void decided_part(acs_context *c, world *w)
{
    blocks(c, w->x, 1, ACS_GRID_FOR(&w->word[0], 2, BLOCKS));
    blocks(c, w->y, 2, ACS_GRID_AT(w->grid, (acs_dim3{4, 2, 1})));
    CHECK_STATUS(acs_if(c, &w->word[0]), ACS_OK);
    for (uint32_t i = 0; i < 25; i++) /* more than one decision has targets */
        blocks(c, w->y, 3 + i, acs_make_read_grid(nullptr, 0, acs_dim3{2, 1, 1}));
    set(c, &w->word[0], 0);
    CHECK_STATUS(acs_unless(c, &w->word[1]), ACS_OK);
    blocks(c, w->x, 4, acs_make_read_grid(nullptr, 0, acs_dim3{3, 1, 1}));
    CHECK_STATUS(acs_else(c), ACS_OK);
    blocks(c, w->x, 5, ACS_GRID_FOR(&w->word[1], 1, 4));
    CHECK_STATUS(acs_end_if(c), ACS_OK);
    CHECK(acs_memcpy(c, &w->word[2], w->x, 4) != 0);
    CHECK_STATUS(acs_else(c), ACS_OK);
    CHECK(acs_memset(c, &w->word[3], 9, 4) != 0);
    CHECK_STATUS(acs_end_if(c), ACS_OK);
}

static void decided_here(world *w, uint32_t step, uint32_t index)
{
    const uint32_t contacts = contacts_of(step, index);
    w->word[0] = contacts;
    w->word[1] = step % 3;
    w->grid[0] = contacts % 4;
    blocks_here(w->x, 1, (contacts + 1) / 2, (contacts + 1) / 2);
    blocks_here(w->y, 2, w->grid[0], 2 * w->grid[0]);
    if (!contacts) {
        memset(&w->word[3], 9, 4);
        return;
    }
    for (uint32_t i = 0; i < 25; i++)
        blocks_here(w->y, 3 + i, 2, 2);
    w->word[0] = 0;
    if (w->word[1])
        blocks_here(w->x, 5, w->word[1], w->word[1]);
    else
        blocks_here(w->x, 4, 3, 3);
    w->word[2] = w->x[0];
}

/* A captured graph decides at each of its launches. It goes on after the context was closed. */
static void captured_graphs_decide_at_each_launch()
{
    std::vector<world> here(WORLDS);
    device_buffer<world> there(WORLDS);
    device_buffer<uint32_t> step(1);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    acs_context *c = check_open_default();
    prepare(here, there);
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    next_kernel<<<1, WORLDS, 0, stream>>>(there.data, step.data);
    CHECK(acs_after_stream(c, stream, acs_uses{nullptr, 0, nullptr, nullptr, 1}) != 0);
    for (uint32_t w = 0; w < WORLDS; w++)
        decided_part(c, there.data + w);
    CHECK_STATUS(acs_stream_after(c, stream, acs_uses{nullptr, 0, nullptr, nullptr, 1}), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphUpload(exec, stream));
    for (uint32_t s = 0; s < 30; s++) {
        if (s == 15)
            CHECK_STATUS(acs_close(c), ACS_OK);
        CHECK_CUDA(cudaMemcpyAsync(step.data, &s, 4, cudaMemcpyHostToDevice, stream));
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        for (uint32_t w = 0; w < WORLDS; w++)
            decided_here(&here[w], s, w);
        CHECK(equal(here, there));
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(stream));
}

static void loops_are_unrolled_in_captures()
{
    device_buffer<uint32_t> words(2 + BLOCKS);
    uint32_t want[BLOCKS] = {};
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    acs_context *c = check_open_default();
    countdown down = {words.data, words.data + 1, words.data + 2, 0};
    acs_loop_params loop{};
    loop.size = sizeof loop;
    loop.stop = down.stop;
    loop.most = 20;
    loop.body = countdown_body;
    loop.user = &down;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(acs_after_stream(c, stream, acs_uses{nullptr, 0, nullptr, nullptr, 1}) != 0);
    set(c, down.stop, 0);
    CHECK_STATUS(acs_loop(c, &loop), ACS_OK);
    CHECK_EQ(down.called, 20);
    CHECK_STATUS(acs_stream_after(c, stream, acs_uses{nullptr, 0, nullptr, nullptr, 1}), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphUpload(exec, stream));
    for (uint32_t length : {3u, 19u, 20u, 25u, 1u}) {
        CHECK_CUDA(cudaMemcpyAsync(down.left, &length, 4, cudaMemcpyHostToDevice, stream));
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        for (uint32_t i = 0; i < length && i < 20; i++)
            blocks_here(want, 3, 2, 2);
        CHECK(memcmp(words.read().data() + 2, want, sizeof want) == 0);
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(c), ACS_OK);
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(host_functions_and_calls_are_decided),
        CHECK_TEST(a_grid_above_its_maximum_is_an_error_and_no_overrun),
        CHECK_TEST(worlds_by_each_issue_method),
        CHECK_TEST(worlds_in_other_modes),
        CHECK_TEST(loops_end_when_their_word_says_so),
        CHECK_TEST(captured_graphs_decide_at_each_launch),
        CHECK_TEST(loops_are_unrolled_in_captures),
    };
    return CHECK_MAIN(argc, argv, tests);
}

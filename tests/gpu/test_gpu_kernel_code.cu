/*
 * What kernels are, by every way to the GPU: clusters that their code requires or a launch asks for, cooperative launches,
 * kernels that launch kernels, priorities, carve-outs, limits of shared memory that the program lowers, textures, and
 * variables of the program's module. Programs recur with other grids and arguments, alone, in sections and in captures,
 * and are compared with plain C++.
 */
#include "kernels.cuh"

#include <cooperative_groups.h>

#include <string>

enum { LANES = 12, WORDS = 8, STRIDE = 128 /* words; textures are aligned to 512 bytes */ };
enum { OPS = 60, PASSES = 8, LARGE = 100 * 1024, LOWERED = 60 * 1024 };
enum kind {
    PLAIN, OWN_CLUSTER, ASKED_CLUSTER, COOPERATIVE, LAUNCHES, PRIORITY, LARGE_SHARED, CARVE_OUT, TEXTURE, VARIABLE, KINDS
};
static const char *const g_names[KINDS] = {"plain", "own cluster", "asked cluster", "cooperative", "launches kernels",
                                           "priority", "large shared memory", "carve-out", "texture", "variable"};

__device__ uint32_t g_variable[LANES][WORDS];

__device__ inline uint32_t rank_in_cluster()
{
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Each block mixes one word, with the size of the grid and the block's rank in its cluster. */
__host__ __device__ inline uint32_t mixed(uint32_t old, uint32_t in, uint32_t salt, uint32_t blocks, uint32_t rank)
{
    return mix_word(old, in, salt * 64 + blocks * 2 + rank);
}

__device__ inline void mix_block(uint32_t *d, uint32_t in, uint32_t salt, uint32_t rank)
{
    if (threadIdx.x == 0)
        d[blockIdx.x] = mixed(d[blockIdx.x], in, salt, gridDim.x, rank);
}

static __global__ void plain_kernel(uint32_t *d, const uint32_t *s, uint32_t salt)
{
    mix_block(d, s[blockIdx.x], salt, rank_in_cluster());
}

/* Of its own, since its carve-out is set. */
static __global__ void carve_out_kernel(uint32_t *d, const uint32_t *s, uint32_t salt)
{
    mix_block(d, s[blockIdx.x], salt, 0);
}

static __global__ void __cluster_dims__(2, 1, 1) own_cluster_kernel(uint32_t *d, const uint32_t *s, uint32_t salt)
{
    mix_block(d, s[blockIdx.x], salt, rank_in_cluster());
}

static __global__ void cooperative_kernel(uint32_t *d, const uint32_t *s, uint32_t salt)
{
    const uint32_t in = s[blockIdx.x];
    cooperative_groups::this_grid().sync();
    mix_block(d, in, salt, 0);
}

static __global__ void child_kernel(uint32_t *d, const uint32_t *s, uint32_t salt, uint32_t block, uint32_t blocks)
{
    delay(3000);
    d[block] = mixed(d[block], s[block], salt, blocks, 0);
}

static __global__ void parent_kernel(uint32_t *d, const uint32_t *s, uint32_t salt)
{
    if (threadIdx.x == 0)
        child_kernel<<<1, 1>>>(d, s, salt, blockIdx.x, gridDim.x);
}

static __global__ void large_shared_kernel(uint32_t *d, const uint32_t *s, uint32_t salt)
{
    extern __shared__ uint32_t words[];
    words[LARGE / 4 - 1 - threadIdx.x] = s[blockIdx.x];
    __syncthreads();
    mix_block(d, words[LARGE / 4 - 1], salt, 0);
}

static __global__ void texture_kernel(uint32_t *d, cudaTextureObject_t s, uint32_t salt)
{
    mix_block(d, tex1Dfetch<uint32_t>(s, (int)blockIdx.x), salt, 0);
}

static __global__ void variable_kernel(uint32_t *d, uint32_t lane, uint32_t salt)
{
    if (threadIdx.x == 0)
        g_variable[lane][blockIdx.x] = mixed(g_variable[lane][blockIdx.x], 1, salt, gridDim.x, 0);
    mix_block(d, threadIdx.x ? 0 : g_variable[lane][blockIdx.x], salt, 0);
}

static __global__ void set_kernel(uint32_t *word, uint32_t to)
{
    *word = to;
}

/* What programs work on, there and here. */
struct memory {
    device_buffer<uint32_t> lanes{LANES * STRIDE}, words{LANES};
    std::vector<uint32_t> here = std::vector<uint32_t>(LANES * STRIDE), variables = std::vector<uint32_t>(LANES * WORDS);
    cudaTextureObject_t textures[LANES];
    uint32_t *variable;

    memory()
    {
        for (size_t i = 0; i < here.size(); i++)
            here[i] = (uint32_t)i * 7 + 1;
        CHECK_CUDA(cudaMemcpy(lanes.data, here.data(), lanes.bytes(), cudaMemcpyHostToDevice));
        CHECK_CUDA(cudaGetSymbolAddress((void **)&variable, g_variable));
        CHECK_CUDA(cudaMemset(variable, 0, sizeof g_variable));
        for (uint32_t lane = 0; lane < LANES; lane++) {
            cudaResourceDesc resource{};
            cudaTextureDesc texture{};
            resource.resType = cudaResourceTypeLinear;
            resource.res.linear.devPtr = lanes.data + lane * STRIDE;
            resource.res.linear.desc = cudaCreateChannelDesc<uint32_t>();
            resource.res.linear.sizeInBytes = WORDS * 4;
            CHECK_CUDA(cudaCreateTextureObject(&textures[lane], &resource, &texture, nullptr));
        }
        CHECK_CUDA(cudaFuncSetAttribute(carve_out_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
        CHECK_CUDA(cudaDeviceSynchronize());
    }
    ~memory()
    {
        for (cudaTextureObject_t texture : textures)
            CHECK_CUDA(cudaDestroyTextureObject(texture));
    }
};

/* One op of a program. */
struct op {
    kind what;
    uint32_t to, from, salt, blocks;
};

static void run_here(memory &m, const op &o)
{
    for (uint32_t b = 0; b < o.blocks; b++) {
        uint32_t &d = m.here[o.to * STRIDE + b], &v = m.variables[o.to * WORDS + b];
        uint32_t in = m.here[o.from * STRIDE + b];
        if (o.what == VARIABLE)
            in = v = mixed(v, 1, o.salt, o.blocks, 0);
        d = mixed(d, in, o.salt, o.blocks, o.what == OWN_CLUSTER || o.what == ASKED_CLUSTER ? b % 2 : 0);
    }
}

static acs_op launch(acs_context *c, memory &m, const op &o)
{
    static const void *const functions[KINDS] = {
        (const void *)plain_kernel,     (const void *)own_cluster_kernel,  (const void *)plain_kernel,
        (const void *)cooperative_kernel, (const void *)parent_kernel,     (const void *)plain_kernel,
        (const void *)large_shared_kernel, (const void *)carve_out_kernel, (const void *)texture_kernel,
        (const void *)variable_kernel};
    uint32_t *d = m.lanes.data + o.to * STRIDE, lane = o.to, salt = o.salt;
    const uint32_t *s = m.lanes.data + o.from * STRIDE;
    const acs_kernel kernel = {g_names[o.what], functions[o.what], nullptr, ACS_KERNEL_FUNCTION, 0};
    acs_arg args[] = {{&d, 8, ACS_ARG_POINTER}, {&s, 8, ACS_ARG_POINTER}, {&salt, 4, ACS_ARG_VALUE}};
    if (o.what == TEXTURE)
        args[1] = {&m.textures[o.from], 8, ACS_ARG_VALUE};
    if (o.what == VARIABLE)
        args[1] = {&lane, 4, ACS_ARG_VALUE};
    const acs_segment segments[] = {ACS_INOUT(d, WORDS * 4), ACS_IN(s, WORDS * 4),
                                    ACS_INOUT(m.variable + lane * WORDS, WORDS * 4)};
    acs_launch_params p{};
    p.size = sizeof p;
    p.kernel = &kernel;
    p.grid = {o.blocks, 1, 1};
    p.block = {32, 1, 1};
    p.args = {args, 3};
    p.uses.segments = segments;
    p.uses.count = o.what == VARIABLE ? 3 : 2;
    p.shared_bytes = o.what == LARGE_SHARED ? LARGE : 0;
    p.attributes.cooperative = o.what == COOPERATIVE;
    p.attributes.priority = o.what == PRIORITY ? -1 : 0;
    if (o.what == ASKED_CLUSTER)
        p.attributes.cluster = {2, 1, 1};
    const acs_op queued = acs_launch(c, &p);
    if (o.what == LARGE_SHARED) /* a program that lowers it for a later launch of its own */
        CHECK_CUDA(cudaFuncSetAttribute(large_shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, LOWERED));
    return queued;
}

static op op_of(kind what, uint32_t *state, uint32_t salt)
{
    const auto random = [state](uint32_t n) {
        *state = *state * 1664525 + 1013904223;
        return (*state >> 8) % n;
    };
    const uint32_t to = random(LANES), from = (to + 1 + random(LANES - 1)) % LANES, blocks = 2 * (1 + random(WORDS / 2));
    return {random(2) ? what : PLAIN, to, from, salt, blocks};
}

/* Ops of a pass; passes recur, some times each, with other salts. With sections each op lies in one. */
static void run_pass(acs_context *c, memory &m, kind what, uint32_t pass, bool sections)
{
    uint32_t state = 77 + pass / 4;
    for (uint32_t i = 0; i < OPS; i++) {
        const op o = op_of(what, &state, pass * OPS + i);
        uint32_t *word = m.words.data + o.from, runs = o.salt % 3 != 0;
        if (sections) {
            CHECK(ACS_LAUNCH_ON(c, set_kernel, 1, 1, 0, ACS_ARGS(word, runs), ACS_USES(ACS_OUT(word, 4))) != 0);
            CHECK_STATUS(acs_if(c, word), ACS_OK);
        }
        CHECK(launch(c, m, o) != 0);
        if (sections)
            CHECK_STATUS(acs_end_if(c), ACS_OK);
        if (!sections || runs)
            run_here(m, o);
    }
}

static bool equal(const memory &m)
{
    return m.lanes.read() == m.here;
}

static void run(kind what, int issue, bool repeats, bool sections)
{
    static const char *const methods[] = {"auto", "launch", "replay", "layers", "gpu", "resident"};
    const int failures = g_check_failures;
    acs_options options = check_options();
    options.issue = issue;
    options.repeats = repeats ? ACS_REPEATS_AUTO : ACS_REPEATS_NAMED;
    acs_context *c = check_open(&options);
    memory m;
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        run_pass(c, m, what, pass, sections);
        if (pass % 5 == 4)
            CHECK_STATUS(acs_sync(c), ACS_OK);
    }
    CHECK_STATUS(acs_sync(c), ACS_OK);
    CHECK(equal(m));
    CHECK_STATUS(acs_close(c), ACS_OK);
    if (g_check_failures != failures)
        fprintf(stderr, "  ... %s, %s%s%s\n", g_names[what], methods[issue], repeats ? ", repeats" : "",
                sections ? ", in sections" : "");
}

static void kinds_by_every_way()
{
    for (int what = 0; what < KINDS; what++)
        for (int issue = 0; issue < ACS_ISSUE_COUNT; issue++)
            for (int rest = 0; rest < 4; rest++)
                run((kind)what, issue, rest & 1, rest & 2);
}

/* Capture ops, and launch the graph some times. @return ops that were refused */
static uint32_t run_captured(kind what, bool sections)
{
    const acs_uses everything = {nullptr, 0, nullptr, nullptr, 1};
    acs_context *c = check_open_default();
    memory m;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    std::vector<op> ops;
    uint32_t state = 5, refused = 0;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(acs_after_stream(c, stream, everything) != 0);
    for (uint32_t i = 0; i < OPS; i++) {
        const op o = op_of(what, &state, i);
        uint32_t *word = m.words.data + o.from, runs = i % 3 != 0;
        if (sections) {
            CHECK(ACS_LAUNCH_ON(c, set_kernel, 1, 1, 0, ACS_ARGS(word, runs), ACS_USES(ACS_OUT(word, 4))) != 0);
            CHECK_STATUS(acs_if(c, word), ACS_OK);
        }
        const bool queued = launch(c, m, o) != 0;
        refused += !queued;
        if (sections)
            CHECK_STATUS(acs_end_if(c), ACS_OK);
        if (queued && (!sections || runs))
            ops.push_back(o);
    }
    CHECK_STATUS(acs_stream_after(c, stream, everything), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_STATUS(acs_context_error(c, nullptr), refused ? ACS_ERR_UNSUPPORTED : ACS_OK);
    CHECK_STATUS(acs_clear(c), ACS_OK);
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphUpload(exec, stream));
    for (int turn = 0; turn < 4; turn++) {
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        for (const op &o : ops)
            run_here(m, o);
    }
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK(equal(m));
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(c), ACS_OK);
    return refused;
}

static void kinds_in_captures()
{
    for (int what = 0; what < KINDS; what++) {
        const int failures = g_check_failures;
        CHECK_EQ(run_captured((kind)what, false), 0);
        if (g_check_failures != failures)
            fprintf(stderr, "  ... %s\n", g_names[what]);
    }
}

/* What the GPU cannot switch is refused: with a cluster results were wrong, and a cooperative kernel hung. */
static void kinds_in_sections_of_captures()
{
    for (int what = 0; what < KINDS; what++) {
        const int failures = g_check_failures;
        const bool refused = run_captured((kind)what, true) != 0;
        CHECK_EQ(refused, what == OWN_CLUSTER || what == ASKED_CLUSTER || what == COOPERATIVE || what == LAUNCHES);
        if (g_check_failures != failures)
            fprintf(stderr, "  ... %s\n", g_names[what]);
    }
}

static void a_grid_that_does_not_fit_the_required_cluster_is_refused_at_the_call()
{
    acs_context *c = check_open_default();
    memory m;
    const op odd = {OWN_CLUSTER, 0, 1, 1, 3};
    acs_error error{};
    error.size = sizeof error;
    CHECK_EQ(launch(c, m, odd), 0);
    CHECK_STATUS(acs_last_error(&error), ACS_ERR_ARGUMENT);
    CHECK(strstr(error.text, "clusters of 2 x 1 x 1") != nullptr);
    CHECK_STATUS(acs_clear(c), ACS_OK);
    CHECK_STATUS(acs_close(c), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------- unloading */

template <class F> static F driver_function(const char *name)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<F>(function);
}

/* A module whose kernel adds `factor` times its argument to a word. */
static std::string module_text(uint32_t factor)
{
    return ".version 8.0\n.target sm_70\n.address_size 64\n"
           ".visible .entry bump(.param .u64 word, .param .u32 by)\n{\n"
           ".reg .b64 %a;\n.reg .b32 %x, %y;\n"
           "ld.param.u64 %a, [word];\nld.param.u32 %y, [by];\ncvta.to.global.u64 %a, %a;\n"
           "ld.global.u32 %x, [%a];\nmad.lo.u32 %x, %y, " +
           std::to_string(factor) + ", %x;\nst.global.u32 [%a], %x;\nret;\n}\n";
}

static void bump_words(acs_context *c, const acs_kernel *kernel, uint32_t *words, uint32_t factor,
                       std::vector<uint32_t> &want)
{
    for (uint32_t i = 0; i < 8 * 64; i++) {
        uint32_t *word = words + i % LANES, by = i;
        acs_arg args[] = {{&word, 8, ACS_ARG_POINTER}, {&by, 4, ACS_ARG_VALUE}};
        const acs_segment segment = ACS_INOUT(word, 4);
        acs_launch_params p{};
        p.size = sizeof p;
        p.kernel = kernel;
        p.grid = p.block = {1, 1, 1};
        p.args = {args, 2};
        p.uses.segments = &segment;
        p.uses.count = 1;
        CHECK(acs_launch(c, &p) != 0);
        want[i % LANES] += factor * by;
        if (i % 64 == 63)
            CHECK_STATUS(acs_sync(c), ACS_OK);
    }
}

/* Modules come and go, with handles that may come again; the program says so by acs_declare. */
static void modules_are_unloaded()
{
    const auto load = driver_function<int (*)(void **, const void *)>("cuModuleLoadData");
    const auto get = driver_function<int (*)(void **, void *, const char *)>("cuModuleGetFunction");
    const auto unload = driver_function<int (*)(void *)>("cuModuleUnload");
    CHECK_CUDA(cudaFree(nullptr)); /* the primary context is current */
    for (int issue = 0; issue < ACS_ISSUE_COUNT; issue++) {
        acs_options options = check_options();
        options.issue = issue;
        acs_context *c = check_open(&options);
        device_buffer<uint32_t> words(LANES);
        std::vector<uint32_t> want(LANES);
        for (uint32_t factor = 1; factor < 6; factor++) {
            void *module = nullptr, *function = nullptr;
            CHECK_EQ(load(&module, module_text(factor).c_str()), 0);
            CHECK_EQ(get(&function, module, "bump"), 0);
            const acs_kernel kernel = {"bump", function, nullptr, ACS_KERNEL_CUFUNCTION, 0};
            bump_words(c, &kernel, words.data, factor, want);
            CHECK(words.read() == want);
            CHECK_STATUS(acs_declare(&kernel, nullptr, nullptr), ACS_OK);
            CHECK_EQ(unload(module), 0);
        }
        CHECK_STATUS(acs_close(c), ACS_OK);
    }
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(modules_are_unloaded),
        CHECK_TEST(a_grid_that_does_not_fit_the_required_cluster_is_refused_at_the_call),
        CHECK_TEST(kinds_by_every_way),
        CHECK_TEST(kinds_in_captures),
        CHECK_TEST(kinds_in_sections_of_captures),
    };
    return CHECK_MAIN(argc, argv, tests);
}

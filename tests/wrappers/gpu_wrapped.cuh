/*
 * What a wrapper must keep on a GPU, for any call: through ACS it has the bits of the library's plain call, in captures and
 * outside, and two independent calls overlap. Overlap is shown without a clock. A kernel before the first call waits for a
 * flag that a kernel behind the second call raises: it only sees the flag if the second call did not wait for the first.
 */
#ifndef GPU_WRAPPED_CUH
#define GPU_WRAPPED_CUH

#include "gpu/check.h"

#include <chrono>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

/* What the input holds. */
enum wrapped_fill { FILL_FLOATS, FILL_DOUBLES, FILL_HALVES };

/* Two independent calls of one kind. `which` is 0 or 1. Each reads `in` and writes all of `out`. */
struct wrapped {
    const char *name;
    wrapped_fill fill;
    size_t in_bytes, out_bytes;
    std::function<void(int which, const void *in, void *out, cudaStream_t stream)> plain;
    std::function<acs_op(acs_context *context, int which, const void *in, void *out)> queue;
};

/* A library, for plain calls. */
struct plain_library {
    void *handle;
    explicit plain_library(const char *file) : handle(dlopen(file, RTLD_NOW | RTLD_LOCAL))
    {
        if (!handle)
            handle = dlopen((std::string(TEST_TOOLKIT_LIBRARIES) + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    template <class F> F get(const char *name) const
    {
        void *const found = handle ? dlsym(handle, name) : nullptr;
        if (!found) {
            fprintf(stderr, "%s is not there\n", name);
            exit(1);
        }
        return reinterpret_cast<F>(found);
    }
};
#define PLAIN(library, function) ((library).get<decltype(&function)>(#function))
#define PLAIN_TEXT_(x) #x
#define PLAIN_TEXT(x) PLAIN_TEXT_(x)

static int g_wrapped_ran; /* wrappers whose library was there */

/* Whether a wrapper's library is there; says so if not. */
static inline bool wrapped_is_there(const char *name, acs_status loaded)
{
    acs_error error = {};
    error.size = sizeof error;
    if (loaded != ACS_OK) {
        (void)acs_wrap_last_error(&error);
        printf("skipped %s: %s\n", name, error.text);
        return false;
    }
    g_wrapped_ran++;
    return true;
}

/* Device memory of one comparison. */
struct wrapped_memory {
    void *in[2], *out[2];
    std::vector<char> input, expected[2], seen;
    int *flag, *saw;
};

static std::vector<char> wrapped_input(const wrapped &w)
{
    std::vector<char> input(w.in_bytes);
    uint64_t random = 88172645463325252u;
    const size_t size = w.fill == FILL_DOUBLES ? 8 : w.fill == FILL_FLOATS ? 4 : 2;
    for (size_t i = 0; i + size <= w.in_bytes; i += size) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const double value = static_cast<double>(random >> 40) / (1 << 24) - 0.5;
        const float single = static_cast<float>(value);
        const uint16_t half = static_cast<uint16_t>(0x2c00 | (random >> 50 & 0x8fff)); /* 1/16 to 1/8, both signs */
        const void *const from[] = {&half, &single, &value};
        memcpy(&input[i], from[size / 4], size);
    }
    return input;
}

static void wrapped_reset(const wrapped &w, const wrapped_memory &m)
{
    for (int i = 0; i < 2; i++) {
        if (w.in_bytes)
            CHECK_CUDA(cudaMemcpy(m.in[i], m.input.data(), w.in_bytes, cudaMemcpyHostToDevice));
        CHECK_CUDA(cudaMemset(m.out[i], 0x5a, w.out_bytes));
    }
    CHECK_CUDA(cudaMemset(m.flag, 0, sizeof(int)));
    CHECK_CUDA(cudaMemset(m.saw, 0, sizeof(int)));
    CHECK_CUDA(cudaDeviceSynchronize());
}

static void wrapped_compare(const wrapped &w, wrapped_memory &m, const char *how)
{
    CHECK_CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 2; i++) {
        CHECK_CUDA(cudaMemcpy(m.seen.data(), m.out[i], w.out_bytes, cudaMemcpyDeviceToHost));
        size_t different = 0;
        for (size_t b = 0; b < w.out_bytes; b++)
            different += m.seen[b] != m.expected[i][b];
        if (different) {
            fprintf(stderr, "%s, %s: %zu of %zu bytes of call %d are not those of the library\n", w.name, how, different,
                    w.out_bytes, i);
            g_check_failures++;
        }
    }
}

static void wrapped_expect(const wrapped &w, wrapped_memory &m, cudaStream_t stream)
{
    wrapped_reset(w, m);
    for (int i = 0; i < 2; i++)
        w.plain(i, m.in[i], m.out[i], stream);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < 2; i++) {
        m.expected[i].resize(w.out_bytes);
        CHECK_CUDA(cudaMemcpy(m.expected[i].data(), m.out[i], w.out_bytes, cudaMemcpyDeviceToHost));
    }
}

/* Queue both; says why if one is refused. */
static void wrapped_queue(const wrapped &w, const wrapped_memory &m, acs_context *context, int which)
{
    if (w.queue(context, which, m.in[which], m.out[which]) == 0) {
        fprintf(stderr, "%s is refused: %s\n", w.name, check_last_error().text);
        g_check_failures++;
    }
}

static void wrapped_sync(const wrapped &w, acs_context *context)
{
    acs_error error = {};
    error.size = sizeof error;
    if (acs_sync(context) == ACS_OK)
        return;
    (void)acs_context_error(context, &error);
    fprintf(stderr, "%s: %s (native %d)\n", w.name, error.text, error.native);
    g_check_failures++;
    CHECK_STATUS(acs_clear(context), ACS_OK);
}

/* Several rounds: in the later ones what a repeatable call comes to is known. */
static void wrapped_equals(const wrapped &w, wrapped_memory &m, acs_context *context)
{
    for (int round = 0; round < 6; round++) {
        wrapped_reset(w, m);
        for (int i = 0; i < 2; i++)
            wrapped_queue(w, m, context, i);
        wrapped_sync(w, context);
        wrapped_compare(w, m, "outside of captures");
    }
}

/* ------------------------------------------------------------------------------------------------------------- overlap */

static __device__ unsigned long long wrapped_ns()
{
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Waits for the flag, a quarter of a second at most. */
static __global__ void wrapped_wait(int *flag, int *saw)
{
    const unsigned long long begin = wrapped_ns();
    int seen = 0;
    while (!seen && wrapped_ns() - begin < 250000000u)
        seen = atomicAdd(flag, 0);
    *saw = seen;
}

static __global__ void wrapped_raise(int *flag)
{
    atomicExch(flag, 1);
}

/* The flag is not in the footprints: the order of the two kernels is what is asked for. */
static void wrapped_handshake(const wrapped &w, const wrapped_memory &m, acs_context *context)
{
    CHECK(ACS_LAUNCH_ON(context, wrapped_wait, 1, 1, 0, ACS_ARGS(m.flag, m.saw),
                        ACS_USES(ACS_INOUT(m.out[0], w.out_bytes), ACS_OUT(m.saw, sizeof(int)))) != 0);
    wrapped_queue(w, m, context, 0);
    wrapped_queue(w, m, context, 1);
    CHECK(ACS_LAUNCH_ON(context, wrapped_raise, 1, 1, 0, ACS_ARGS(m.flag), ACS_USES(ACS_IN(m.out[1], w.out_bytes))) != 0);
}

static bool wrapped_was_seen(const wrapped_memory &m)
{
    int saw = 0;
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaMemcpy(&saw, m.saw, sizeof saw, cudaMemcpyDeviceToHost));
    return saw != 0;
}

/* Handles are made in each slot's first call, which may wait for the device: so there are several attempts. */
static void wrapped_overlaps(const wrapped &w, wrapped_memory &m, acs_context *context)
{
    int attempts = 0;
    bool seen = false;
    while (!seen && attempts++ < 12) {
        wrapped_reset(w, m);
        wrapped_handshake(w, m, context);
        wrapped_sync(w, context);
        seen = wrapped_was_seen(m);
    }
    wrapped_compare(w, m, "behind kernels");
    if (!seen)
        fprintf(stderr, "%s: two independent calls did not overlap\n", w.name);
    CHECK(seen);
}

/* ------------------------------------------------------------------------------------------------------------ captures */

static cudaGraphExec_t wrapped_capture(const wrapped &w, const wrapped_memory &m, acs_context *context, cudaStream_t stream,
                                       bool with_kernels)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(acs_after_stream(context, stream, ACS_USES_ANY) != 0);
    if (with_kernels)
        wrapped_handshake(w, m, context);
    for (int i = 0; i < 2 && !with_kernels; i++)
        wrapped_queue(w, m, context, i);
    CHECK_STATUS(acs_stream_after(context, stream, ACS_USES_ANY), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
    return exec;
}

static void wrapped_is_captured(const wrapped &w, wrapped_memory &m, acs_context *context, cudaStream_t stream)
{
    bool seen = false;
    cudaGraphExec_t exec = wrapped_capture(w, m, context, stream, false);
    for (int launch = 0; launch < 3; launch++) {
        wrapped_reset(w, m);
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        wrapped_compare(w, m, "captured");
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    exec = wrapped_capture(w, m, context, stream, true);
    for (int launch = 0; launch < 4 && !seen; launch++) {
        wrapped_reset(w, m);
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        seen = wrapped_was_seen(m);
        wrapped_compare(w, m, "captured, behind kernels");
    }
    if (!seen)
        fprintf(stderr, "%s: two independent calls of a graph did not overlap\n", w.name);
    CHECK(seen);
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    wrapped_sync(w, context);
}

/* ---------------------------------------------------------------------------------------------------------------- time */

/* Microseconds of a pair of calls, of 40. A report, and no verdict. */
static double wrapped_time(const std::function<void()> &pair, const std::function<void()> &wait)
{
    enum { PAIRS = 40 };
    pair();
    wait();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < PAIRS; i++)
        pair();
    wait();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / PAIRS;
}

static void wrapped_report(const wrapped &w, const wrapped_memory &m, acs_context *context, cudaStream_t stream)
{
    const double one = wrapped_time(
        [&] {
            w.plain(0, m.in[0], m.out[0], stream);
            w.plain(1, m.in[1], m.out[1], stream);
        },
        [&] { CHECK_CUDA(cudaStreamSynchronize(stream)); });
    const double both = wrapped_time(
        [&] {
            wrapped_queue(w, m, context, 0);
            wrapped_queue(w, m, context, 1);
        },
        [&] { wrapped_sync(w, context); });
    printf("%s: two calls take %.1f us in one stream, %.1f us through ACS: %.2f\n", w.name, one, both, both / one);
}

static void wrapped_check(const wrapped &w)
{
    wrapped_memory m;
    cudaStream_t stream = nullptr;
    acs_options options = check_options();
    m.input = wrapped_input(w);
    m.seen.resize(w.out_bytes);
    for (int i = 0; i < 2; i++) {
        CHECK_CUDA(cudaMalloc(&m.in[i], w.in_bytes ? w.in_bytes : 1));
        CHECK_CUDA(cudaMalloc(&m.out[i], w.out_bytes));
    }
    CHECK_CUDA(cudaMalloc(&m.flag, sizeof(int)));
    CHECK_CUDA(cudaMalloc(&m.saw, sizeof(int)));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    options.issue = ACS_ISSUE_LAUNCH; /* kernels that wait for each other must not become one bundle */
    options.streams = 4;
    acs_context *const context = check_open(&options), *const other = check_open_default();
    wrapped_expect(w, m, stream);
    wrapped_equals(w, m, other);
    wrapped_overlaps(w, m, context);
    wrapped_is_captured(w, m, context, stream);
    wrapped_report(w, m, other, stream);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_STATUS(acs_close(other), ACS_OK);
    CHECK_CUDA(cudaStreamDestroy(stream));
    for (void *const p : {m.in[0], m.in[1], m.out[0], m.out[1], static_cast<void *>(m.flag), static_cast<void *>(m.saw)})
        CHECK_CUDA(cudaFree(p));
}

/* As CHECK_MAIN; skipped if no library was there. */
static int wrapped_main(int argc, char **argv, const check_test *tests, size_t count)
{
    const int result = check_main(argc, argv, tests, count);
    return result == 0 && g_wrapped_ran == 0 ? CHECK_SKIPPED : result;
}

#endif

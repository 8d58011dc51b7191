/*
 * Versions of a kernel on a GPU: the instances of a template do the same in other shapes, whatever picks among them; they
 * are timed, measured on parts of the GPU, and tuned in a running program.
 */
#include "kernels.cuh"

#include "acs_variants.hpp"

#include <unistd.h>

#include <cstdlib>
#include <random>

enum { N = 1 << 14, ROWS = 24 };

/* y = 3 y + x + salt, with so many items for each thread. */
template <int EACH> __global__ void step_kernel(int n, uint32_t salt, const uint32_t *x, uint32_t *y)
{
    const int first = (int)(blockIdx.x * blockDim.x + threadIdx.x) * EACH;
    for (int i = first; i < first + EACH && i < n; i++)
        y[i] = 3 * y[i] + x[i] + salt;
}

template <int EACH> static bool shape(acs_launch_shape &s, int n, uint32_t, const uint32_t *, uint32_t *)
{
    s.block.x = 128;
    s.grid.x = (uint32_t)(n + 128 * EACH - 1) / (128 * EACH);
    return true;
}

/* It cannot run anywhere: more threads than a block has. The others are used then. */
static bool too_large(acs_launch_shape &s, int, uint32_t, const uint32_t *, uint32_t *)
{
    s.block.x = 4096;
    return true;
}

static bool never(acs_launch_shape &, int, uint32_t, const uint32_t *, uint32_t *)
{
    return false;
}

ACS_KERNEL_VARIANTS(step_kernel<1>, {{"each2", step_kernel<2>, shape<2>},
                                     {"each8", step_kernel<8>, shape<8>},
                                     {"large", step_kernel<4>, too_large},
                                     {"never", step_kernel<4>, never}});

static acs_op launch_step(acs_context *context, acs_attributes attributes, uint32_t salt, const uint32_t *x, uint32_t *y)
{
    return ACS_LAUNCH_WITH(context, attributes, step_kernel<1>, N / 256, 256, 0, ACS_ARGS(N, salt, x, y),
                           ACS_USES(ACS_IN(x, N * 4), ACS_INOUT(y, N * 4)));
}

/* Rows of words, and what they should be. */
struct rows {
    rows() : device(ROWS * N), host(ROWS * N, 7)
    {
        CHECK_CUDA(cudaMemcpy(device.data, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
    }
    void step(acs_context *context, acs_attributes attributes, uint32_t salt, int from, int to)
    {
        CHECK(launch_step(context, attributes, salt, device.data + from * N, device.data + to * N) != 0);
        for (int i = 0; i < N; i++)
            host[to * N + i] = 3 * host[to * N + i] + host[from * N + i] + salt;
    }
    void check()
    {
        std::vector<uint32_t> got(host.size());
        CHECK_CUDA(cudaMemcpy(got.data(), device.data, got.size() * 4, cudaMemcpyDeviceToHost));
        CHECK(got == host);
    }
    device_buffer<uint32_t> device;
    std::vector<uint32_t> host;
};

/* A program of chains and of crossing ones, with pins and shares now and then. */
static void play(acs_context *context, rows &r, uint32_t seed, int steps)
{
    std::mt19937 random(seed);
    for (int k = 0; k < steps; k++) {
        acs_attributes attributes = acs_no_attributes();
        const int to = (int)(random() % ROWS), from = random() % 3 ? (to + 1) % ROWS : (int)(random() % ROWS);
        if (random() % 8 == 0)
            attributes = ACS_VARIANT(random() % 3);
        if (random() % 8 == 0)
            attributes.share = (uint8_t)(10 + random() % 90);
        if (from != to)
            r.step(context, attributes, (uint32_t)k, from, to);
    }
}

static void versions_do_the_same()
{
    for (uint32_t seed = 0; seed < 4; seed++) {
        acs_context *context = check_open_default();
        rows r;
        play(context, r, seed, 400);
        CHECK_STATUS(acs_sync(context), ACS_OK);
        r.check();
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

static void each_version_is_tried()
{
    acs_context *context = check_open_default();
    rows r;
    for (int k = 0; k < 40; k++) {
        r.step(context, acs_no_attributes(), (uint32_t)k, 1, 0);
        CHECK_STATUS(acs_sync(context), ACS_OK);
    }
    r.check();
    const acs_statistics s = check_stats(context);
    CHECK(s.trials == 9); /* base, each2 and each8, three times each; "large" was refused, "never" does not fit */
    CHECK(s.variants == 31);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void a_version_that_cannot_run_is_refused_if_it_is_pinned()
{
    acs_context *context = check_open_default();
    rows r;
    CHECK(launch_step(context, ACS_VARIANT(3), 0, r.device.data, r.device.data + N) == 0);
    CHECK(launch_step(context, ACS_VARIANT(4), 0, r.device.data, r.device.data + N) == 0);
    CHECK(launch_step(context, ACS_VARIANT(5), 0, r.device.data, r.device.data + N) == 0);
    (void)acs_clear(context);
    r.check();
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static acs_measured measure(acs_context *context, const acs_launch_params &launch, uint32_t share,
                            const acs_launch_params *beside)
{
    acs_measure_params how = CHECK_ZERO;
    acs_measured measured = CHECK_ZERO;
    how.size = sizeof how;
    how.share = share;
    how.beside = beside;
    measured.size = sizeof measured;
    CHECK_STATUS(acs_measure(context, &launch, &how, &measured), ACS_OK);
    return measured;
}

static void measurements_leave_no_trace()
{
    acs_context *context = check_open_default();
    rows r;
    int n = N;
    uint32_t salt = 1;
    const uint32_t *x = r.device.data;
    uint32_t *y = r.device.data + N;
    const acs_arg args[] = {{&n, 4, ACS_ARG_VALUE}, {&salt, 4, ACS_ARG_VALUE}, {&x, 8, ACS_ARG_POINTER},
                            {&y, 8, ACS_ARG_POINTER}};
    const acs_segment segments[] = {ACS_IN(x, N * 4), ACS_INOUT(y, N * 4)};
    const acs_kernel kernel = ACS_KERNEL_INIT("step", step_kernel<1>, nullptr);
    acs_launch_params launch = CHECK_ZERO;
    launch.size = sizeof launch;
    launch.kernel = &kernel;
    launch.grid = {N / 256, 1, 1};
    launch.block = {256, 1, 1};
    launch.args = {args, 4};
    launch.uses = {segments, 2, nullptr, nullptr, 0};
    for (uint32_t version = 0; version < 3; version++) {
        launch.attributes = ACS_VARIANT(version);
        const acs_measured whole = measure(context, launch, 0, nullptr), tenth = measure(context, launch, 10, nullptr);
        const acs_measured beside = measure(context, launch, 50, &launch);
        CHECK(whole.us > 0 && tenth.us > 0 && beside.us > 0 && beside.beside_us > 0);
        CHECK(whole.least_us <= whole.us && whole.runs >= 3);
    }
    r.check();
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void a_program_is_tuned_and_uses_its_profile()
{
    char path[] = "/tmp/acs-gpu-profile-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    for (int tune : {ACS_TUNE_MEASURE, ACS_TUNE_OFF}) {
        acs_options options = check_options();
        options.tune = tune;
        options.tune_sharing = 0;
        (void)snprintf(options.tune_beside, sizeof options.tune_beside, "memory,itself");
        (void)snprintf(options.profile, sizeof options.profile, "%s", path);
        acs_context *context = check_open(&options);
        rows r;
        play(context, r, 77, 100);
        CHECK_STATUS(acs_sync(context), ACS_OK);
        r.check();
        CHECK(check_stats(context).trials == 0);
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
    CHECK(unlink(path) == 0);
}

static void captured_launches_have_one_version()
{
    acs_context *context = check_open_default();
    rows r;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(acs_after_stream(context, stream, ACS_USES_ANY) != 0);
    for (int k = 0; k < 10; k++)
        r.step(context, acs_no_attributes(), (uint32_t)k, 1 + k % 3, 0);
    CHECK_STATUS(acs_stream_after(context, stream, ACS_USES_ANY), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    r.check();
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(versions_do_the_same),
        CHECK_TEST(each_version_is_tried),
        CHECK_TEST(a_version_that_cannot_run_is_refused_if_it_is_pinned),
        CHECK_TEST(measurements_leave_no_trace),
        CHECK_TEST(a_program_is_tuned_and_uses_its_profile),
        CHECK_TEST(captured_launches_have_one_version),
    };
    return CHECK_MAIN(argc, argv, tests);
}

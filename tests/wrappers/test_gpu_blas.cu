/*
 * acs_blas on a GPU: every operation in every form against definitions, what lies around it untouched, and a tiled Cholesky
 * whose bits do not depend on the number of streams or on the run.
 */
#include "gpu/check.h"

#include "blas_reference.h"
#include "tiled_cholesky.h"

#include <vector>

/* An arena on the device, and the context that works on it. */
struct gpu_arena {
    acs_context *context;
    double *elements;
    int *info;
    int cases;
};

static void run_case(const blas_case *c, void *user)
{
    static blas_arena before, after;
    gpu_arena *const gpu = static_cast<gpu_arena *>(user);
    const bool info = case_is_factorization(c) && c->gap;
    acs_blas_call call;

    case_fill(&before, c);
    after = before;
    CHECK_CUDA(cudaMemcpy(gpu->elements, before.bytes, sizeof before.bytes, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(gpu->info, &before.info, sizeof(int), cudaMemcpyHostToDevice));
    CHECK_STATUS(case_prepare(&call, c, gpu->elements, info ? gpu->info : nullptr), ACS_OK);
    const acs_op op = acs_call(gpu->context, &call.params);
    const acs_status status = acs_wait(gpu->context, op);
    if (status != ACS_OK) {
        char text[256] = "";
        acs_error error = {};
        error.size = sizeof error;
        (void)acs_op_error(gpu->context, op, &error);
        (void)acs_blas_code_text(error.native, text, sizeof text);
        fprintf(stderr, "%s: %s, %s\n", case_name(c), acs_status_name(status), text);
        g_check_failures++;
        CHECK_STATUS(acs_clear(gpu->context), ACS_OK);
        return;
    }
    CHECK_CUDA(cudaMemcpy(after.bytes, gpu->elements, sizeof after.bytes, cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(&after.info, gpu->info, sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(reference_agrees(&before, &after));
    CHECK(reference_rest_untouched(&before, &after));
    CHECK_EQ(after.info, info ? 0 : CASE_INFO_BEFORE);
    gpu->cases++;
}

static void every_form_is_right()
{
    gpu_arena gpu = {check_open_default(), nullptr, nullptr, 0};
    CHECK_CUDA(cudaMalloc(&gpu.elements, sizeof(double) * CASE_ELEMENTS));
    CHECK_CUDA(cudaMalloc(&gpu.info, sizeof(int)));
    for (int operation = 0; operation < CASE_OPERATIONS; operation++)
        case_each(operation, run_case, &gpu);
    CHECK_EQ(gpu.cases, 256 + 256 + 1024 + 128 + 64 + 56 + 24);
    CHECK_STATUS(acs_close(gpu.context), ACS_OK);
    CHECK_CUDA(cudaFree(gpu.elements));
    CHECK_CUDA(cudaFree(gpu.info));
}

static void a_breakdown_is_told_by_info_alone()
{
    const double indefinite[9] = {4, 0, 0, 0, -1, 0, 0, 0, 1};
    acs_context *const context = check_open_default();
    double *a = nullptr;
    int *info = nullptr, seen = 0;
    CHECK_CUDA(cudaMalloc(&a, sizeof indefinite));
    CHECK_CUDA(cudaMalloc(&info, sizeof *info));
    CHECK_CUDA(cudaMemcpy(a, indefinite, sizeof indefinite, cudaMemcpyHostToDevice));
    CHECK(acs_blas_dpotrf(context, ACS_BLAS_LOWER, 3, a, 3, info) != 0);
    CHECK(acs_memcpy(context, &seen, info, sizeof seen) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(seen, 2);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFree(a));
    CHECK_CUDA(cudaFree(info));
}

/* The workspace that is set aside is enough: nobody can ask cuSOLVER before it runs. Sizes around the change of the rule. */
static void large_factorizations_have_enough_workspace()
{
    const int sizes[] = {64, 256, 1000, 1408, 1500, 2048, 4096};
    acs_context *const context = check_open_default();
    for (int n : sizes) {
        std::vector<double> matrix(static_cast<size_t>(n) * n, 0.0);
        double *a = nullptr;
        for (int i = 0; i < n; i++)
            matrix[static_cast<size_t>(i) * n + i] = 4;
        CHECK_CUDA(cudaMalloc(&a, matrix.size() * sizeof(double)));
        for (int lu = 0; lu < 2; lu++) {
            CHECK_CUDA(cudaMemcpy(a, matrix.data(), matrix.size() * sizeof(double), cudaMemcpyHostToDevice));
            const acs_op op = lu ? acs_blas_dgetrf_nopiv(context, n, n, a, n, nullptr)
                                 : acs_blas_dpotrf(context, ACS_BLAS_LOWER, n, a, n, nullptr);
            CHECK_STATUS(acs_wait(context, op), ACS_OK);
            double last = 0;
            CHECK_CUDA(cudaMemcpy(&last, a + matrix.size() - 1, sizeof last, cudaMemcpyDeviceToHost));
            CHECK(last == (lu ? 4 : 2));
        }
        CHECK_CUDA(cudaFree(a));
    }
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------ a program's bits */

enum { TILES = 16, TILE = 64, LD = TILES * TILE + 8 };

static std::vector<double> factor(const std::vector<double> &original, int streams)
{
    std::vector<double> factored(original.size());
    const size_t bytes = original.size() * sizeof(double);
    acs_options options = check_options();
    options.streams = streams;
    acs_context *const context = check_open(&options);
    double *a = nullptr;
    CHECK_CUDA(cudaMalloc(&a, bytes));
    CHECK_CUDA(cudaMemcpy(a, original.data(), bytes, cudaMemcpyHostToDevice));
    const tiled t = {a, TILES, TILE, LD};
    CHECK_EQ(tiled_queue(context, &t), TILES * (TILES + 1) * (TILES + 2) / 6);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_CUDA(cudaMemcpy(factored.data(), a, bytes, cudaMemcpyDeviceToHost));
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFree(a));
    return factored;
}

static void streams_and_runs_do_not_change_the_bits()
{
    std::vector<double> original(static_cast<size_t>(LD) * TILES * TILE, 0.0);
    const tiled t = {nullptr, TILES, TILE, LD};
    tiled_fill(&t, original.data());
    const std::vector<double> one = factor(original, 1);
    const double residual = tiled_residual(&t, original.data(), one.data());
    if (!(residual < 1e-9)) {
        fprintf(stderr, "the factor of one stream is wrong by %g\n", residual);
        g_check_failures++;
    }
    for (int run = 0; run < 4; run++)
        CHECK(memcmp(one.data(), factor(original, 8).data(), one.size() * sizeof(double)) == 0);
}

/*
 * What products, solves and updates come to is known after some of each, and has the library's bits: the same calls run
 * once by their library alone (ACS_SERIAL), and often as kernels.
 */
static void calls_without_the_library_have_its_bits()
{
    std::vector<double> original(static_cast<size_t>(LD) * TILES * TILE, 0.0), factored(original.size());
    const size_t bytes = original.size() * sizeof(double);
    acs_options options = {};
    acs_context *serial = nullptr, *context = check_open_default();
    double *a = nullptr;
    CHECK_STATUS(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_CUDA;
    options.serial = 1;
    CHECK_STATUS(acs_open(&options, &serial), ACS_OK);
    CHECK_CUDA(cudaMalloc(&a, bytes));
    const tiled t = {a, TILES, TILE, LD};
    tiled_fill(&t, original.data());
    std::vector<double> expected(original.size());
    for (int run = 0; run < 5; run++) {
        acs_context *const by = run == 0 ? serial : context;
        CHECK_CUDA(cudaMemcpy(a, original.data(), bytes, cudaMemcpyHostToDevice));
        (void)tiled_queue(by, &t);
        CHECK_STATUS(acs_sync(by), ACS_OK);
        CHECK_CUDA(cudaMemcpy((run == 0 ? expected : factored).data(), a, bytes, cudaMemcpyDeviceToHost));
        CHECK(run == 0 || memcmp(expected.data(), factored.data(), bytes) == 0);
    }
    CHECK_EQ(check_stats(serial).calls_as_kernels, 0);
    CHECK(check_stats(context).calls_as_kernels > check_stats(serial).calls); /* of four runs */
    CHECK_STATUS(acs_close(serial), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFree(a));
}

/* The same program inside a capture: a graph, launched twice on a fresh matrix, has the bits of one stream. */
static void captured_it_has_the_same_bits()
{
    std::vector<double> original(static_cast<size_t>(LD) * TILES * TILE, 0.0), factored(original.size());
    const acs_uses anything = {nullptr, 0, nullptr, nullptr, 1};
    const size_t bytes = original.size() * sizeof(double);
    acs_context *const context = check_open_default();
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    double *a = nullptr;
    CHECK_CUDA(cudaMalloc(&a, bytes));
    const tiled t = {a, TILES, TILE, LD};
    tiled_fill(&t, original.data());
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(acs_after_stream(context, stream, anything) != 0);
    CHECK_EQ(tiled_queue(context, &t), TILES * (TILES + 1) * (TILES + 2) / 6);
    CHECK_STATUS(acs_stream_after(context, stream, anything), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    const std::vector<double> one = factor(original, 1);
    for (int launch = 0; launch < 2; launch++) {
        CHECK_CUDA(cudaMemcpy(a, original.data(), bytes, cudaMemcpyHostToDevice));
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        CHECK_CUDA(cudaMemcpy(factored.data(), a, bytes, cudaMemcpyDeviceToHost));
        CHECK(memcmp(one.data(), factored.data(), bytes) == 0);
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFree(a));
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(every_form_is_right),
        CHECK_TEST(a_breakdown_is_told_by_info_alone),
        CHECK_TEST(large_factorizations_have_enough_workspace),
        CHECK_TEST(streams_and_runs_do_not_change_the_bits),
        CHECK_TEST(calls_without_the_library_have_its_bits),
        CHECK_TEST(captured_it_has_the_same_bits),
    };
    if (acs_blas_load() != ACS_OK) {
        acs_error error = {};
        error.size = sizeof error;
        (void)acs_blas_last_error(&error);
        printf("skipped: %s\n", error.text);
        return CHECK_SKIPPED;
    }
    return CHECK_MAIN(argc, argv, tests);
}

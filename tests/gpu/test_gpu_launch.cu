/*
 * Every form of a kernel and every attribute of a launch, and each mistake that has to be refused at the call site with the
 * values in its text.
 */
#include "kernels.cuh"

#include <cooperative_groups.h>
#include <cuda.h>

namespace cg = cooperative_groups;

/* ------------------------------------------------------------------------------------------------- C++ call sites */

struct triple {
    short a;
    double b;
    char c;
};

static __global__ void convert_kernel(double *out, float f, double d, unsigned char c, triple t)
{
    out[0] = f;
    out[1] = d;
    out[2] = c;
    out[3] = t.a + t.b + t.c;
}

template <class T, int N> static __global__ void template_kernel(T *out, T in)
{
    out[threadIdx.x] = in * N;
}

template <class... A> static __global__ void sum_kernel(unsigned *out, A... values)
{
    unsigned sum = 0;
    ((sum = sum * 31 + static_cast<unsigned>(values)), ...);
    *out = sum;
}

struct large {
    uint32_t words[4000]; /* 16 000 bytes: above the 4 KiB that older devices allow */
};

static __global__ void large_kernel(uint32_t *out, const __grid_constant__ large value)
{
    *out = value.words[0] + value.words[3999];
}

static void arguments_are_converted_to_the_parameters()
{
    device_buffer<double> out(4);
    acs_context *context = check_open_default();
    const triple t = {1, 2.5, 3};
    CHECK(ACS_LAUNCH_ON(context, convert_kernel, 1, 1, 0, ACS_ARGS(out.data, 1.5, 2, 'x', t),
                        ACS_USES(ACS_OUT(out.data, 32))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    const std::vector<double> host = out.read();
    CHECK(host[0] == 1.5 && host[1] == 2 && host[2] == 'x' && host[3] == 6.5);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void templates_with_commas_and_dim3_launch()
{
    device_buffer<float> out(32);
    acs_context *context = check_open_default();
    CHECK(ACS_LAUNCH_ON(context, template_kernel<float, 3>, dim3(1), dim3(32), 0, ACS_ARGS(out.data, 2),
                        ACS_USES(ACS_OUT(out.data, 128))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK(out.read()[31] == 6.0f);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

template <class... A> static acs_op launch_sum(acs_context *context, unsigned *out, A... values)
{
    return ACS_LAUNCH_ON(context, sum_kernel<A...>, 1, 1, 0, ACS_ARGS(out, values...), ACS_USES(ACS_OUT(out, 4)));
}

static void many_and_large_arguments_arrive()
{
    device_buffer<uint32_t> out(2);
    acs_context *context = check_open_default();
    static large value;
    value.words[0] = 5;
    value.words[3999] = 6;
    CHECK(launch_sum(context, out.data, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                     24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35) != 0);
    CHECK(ACS_LAUNCH_ON(context, large_kernel, 1, 1, 0, ACS_ARGS(out.data + 1, value),
                        ACS_USES(ACS_OUT(out.data + 1, 4))) != 0);
    uint32_t sum = 0;
    for (uint32_t i = 1; i <= 35; i++)
        sum = sum * 31 + i;
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(out.read()[0], sum);
    CHECK_EQ(out.read()[1], 11);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------------ attributes */

static __global__ void shared_kernel(uint32_t *out, uint32_t words)
{
    extern __shared__ uint32_t memory[];
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
        memory[i] = i;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = memory[words - 1];
}

static void shared_memory_grows_beyond_48_kib()
{
    device_buffer<uint32_t> out(3);
    int most = 0;
    CHECK_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    acs_context *context = check_open_default();
    const uint32_t sizes[3] = {40 * 1024, 64 * 1024, (uint32_t)most};
    for (int i = 0; i < 3; i++)
        CHECK(ACS_LAUNCH_ON(context, shared_kernel, 1, 256, sizes[i], ACS_ARGS(out.data + i, sizes[i] / 4),
                            ACS_USES(ACS_OUT(out.data + i, 4))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(out.read()[i], sizes[i] / 4 - 1);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static __global__ void cooperative_kernel(uint32_t *words)
{
    words[blockIdx.x] = blockIdx.x + 1;
    cg::this_grid().sync();
    if (blockIdx.x == 0)
        words[gridDim.x] = words[gridDim.x - 1];
}

static void cooperative_launch_synchronises_the_grid()
{
    device_buffer<uint32_t> words(33);
    acs_context *context = check_open_default();
    acs_attributes attributes = {};
    attributes.cooperative = 1;
    CHECK(ACS_LAUNCH_WITH(context, attributes, cooperative_kernel, 32, 64, 0, ACS_ARGS(words.data),
                          ACS_USES(ACS_OUT(words.data, words.bytes()))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(words.read()[32], 32);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static __global__ void cluster_kernel(uint32_t *size)
{
    uint32_t blocks;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    size[blockIdx.x] = blocks;
}

static void clusters_form_or_are_refused()
{
    int clusters = 0;
    CHECK_CUDA(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, 0));
    device_buffer<uint32_t> size(16);
    acs_context *context = check_open_default();
    acs_attributes attributes = {};
    for (uint32_t x = 2; x <= 16; x *= 2) {
        attributes.cluster = {x, 1, 1};
        const acs_op op = ACS_LAUNCH_WITH(context, attributes, cluster_kernel, 16, 32, 0, ACS_ARGS(size.data),
                                          ACS_USES(ACS_OUT(size.data, size.bytes())));
        CHECK_EQ(op != 0, clusters != 0);
        if (clusters) {
            CHECK_STATUS(acs_wait(context, op), ACS_OK);
            CHECK_EQ(size.read()[15], x);
        }
    }
    attributes.cluster = {3, 1, 1};
    CHECK(ACS_LAUNCH_WITH(context, attributes, cluster_kernel, 16, 32, 0, ACS_ARGS(size.data), ACS_USES_NONE) == 0);
    attributes.cluster = {32, 1, 1};
    CHECK(ACS_LAUNCH_WITH(context, attributes, cluster_kernel, 64, 32, 0, ACS_ARGS(size.data), ACS_USES_NONE) == 0);
    CHECK_STATUS(check_last_error().status, clusters ? ACS_ERR_ARGUMENT : ACS_ERR_UNSUPPORTED);
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void priorities_keep_the_result()
{
    device_buffer<uint32_t> word(1);
    acs_context *context = check_open_default();
    uint32_t truth = 0;
    for (int i = 0; i < 100; i++) {
        acs_attributes attributes = {};
        attributes.priority = i % 20 - 10; /* clamped to what the device has */
        CHECK(ACS_LAUNCH_WITH(context, attributes, mix_kernel, 1, 32, 0, ACS_ARGS(word.data, nullptr, 1, i, 0),
                              ACS_USES(ACS_INOUT(word.data, 4))) != 0);
        truth = mix_word(truth, 0, i);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(word.first(), truth);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------------ kernels as handles */

/* words[i] = words[i] * factor + 1 */
static const char g_ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 p, .param .u32 n, .param .u32 factor)
{
    .reg .pred %q<2>;
    .reg .b32 %r<8>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [p];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [factor];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %q1, %r6, %r1;
    @%q1 bra done;
    cvta.to.global.u64 %d1, %d1;
    mul.wide.u32 %d2, %r6, 4;
    add.s64 %d3, %d1, %d2;
    ld.global.u32 %r7, [%d3];
    mad.lo.u32 %r7, %r7, %r2, 1;
    st.global.u32 [%d3], %r7;
done:
    ret;
}
)";

static void scale_by(acs_context *context, const acs_kernel *kernel)
{
    device_buffer<uint32_t> words(64);
    for (uint32_t i = 1; i <= 3; i++)
        CHECK(ACS_LAUNCH_ON(context, kernel, 2, 32, 0, ACS_ARGS(words.data, 64u, 10u),
                            ACS_USES(ACS_INOUT(words.data, words.bytes()))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(words.read()[63], 111);
    CHECK(ACS_LAUNCH_ON(context, kernel, 2, 32, 0, ACS_ARGS(words.data, 64ull, 10u), ACS_USES_NONE) == 0);
    CHECK(strstr(check_last_error().text, "argument 1 (from 0)") != NULL);
    CHECK_STATUS(acs_clear(context), ACS_OK);
}

static void library_handle_launches()
{
    cudaLibrary_t library;
    cudaKernel_t handle;
    acs_context *context = check_open_default();
    CHECK_CUDA(cudaLibraryLoadData(&library, g_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CHECK_CUDA(cudaLibraryGetKernel(&handle, library, "scale"));
    const acs_kernel kernel = {"scale", (const void *)handle, NULL, ACS_KERNEL_HANDLE, 0};
    scale_by(context, &kernel);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaLibraryUnload(library));
}

template <class F> static F driver_function(const char *name)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult found;
    CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<F>(function);
}

static void cufunction_launches()
{
    const auto load = driver_function<CUresult (*)(CUmodule *, const void *)>("cuModuleLoadData");
    const auto get = driver_function<CUresult (*)(CUfunction *, CUmodule, const char *)>("cuModuleGetFunction");
    const auto unload = driver_function<CUresult (*)(CUmodule)>("cuModuleUnload");
    acs_context *context = check_open_default();
    CHECK_CUDA(cudaFree(NULL)); /* the primary context is current */
    for (int i = 0; i < 2; i++) { /* the second module may get the handle of the first */
        CUmodule module;
        CUfunction function = NULL;
        CHECK_EQ(load(&module, g_ptx), CUDA_SUCCESS);
        CHECK_EQ(get(&function, module, "scale"), CUDA_SUCCESS);
        const acs_kernel kernel = {"scale", (const void *)function, NULL, ACS_KERNEL_CUFUNCTION, 0};
        scale_by(context, &kernel);
        CHECK_EQ(unload(module), CUDA_SUCCESS);
    }
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* -------------------------------------------------------------------------------------------------------- refusals */

static __global__ void __launch_bounds__(64) bounded_kernel(uint32_t *out)
{
    out[threadIdx.x] = threadIdx.x;
}

static __global__ void static_shared_kernel(float f, double d)
{
    __shared__ double memory[4096]; /* 32 KiB */
    memory[threadIdx.x] = f + d;
    __syncthreads();
    if (memory[blockDim.x - 1 - threadIdx.x] != f + d)
        __trap();
}

static void no_body(const acs_grid *, void *const *)
{
}

static int not_a_kernel(void *)
{
    return 0;
}

static acs_launch_params launch_of(const acs_kernel *kernel, uint32_t grid, uint32_t block, uint64_t shared)
{
    acs_launch_params params = {};
    params.size = sizeof params;
    params.kernel = kernel;
    params.grid = {grid, 1, 1};
    params.block = {block, 1, 1};
    params.shared_bytes = shared;
    return params;
}

/* The launch is refused with this status, and its text has these words. */
static void check_refused(acs_context *context, const acs_launch_params &params, acs_status status, const char *words,
                          int line)
{
    CHECK_EQ(acs_launch(context, &params), 0);
    const acs_error error = check_last_error();
    if (error.status != status || !strstr(error.text, words)) {
        fprintf(stderr, "line %d: refused with %s \"%s\"\n", line, acs_status_name(error.status), error.text);
        g_check_failures++;
    }
    CHECK_STATUS(acs_context_error(context, NULL), status); /* program order has a hole: kept */
    CHECK_STATUS(acs_clear(context), ACS_OK);
}
#define CHECK_REFUSED(params, status, words) check_refused(context, params, status, words, __LINE__)

static void bad_sizes_are_refused_with_the_limit()
{
    static const acs_kernel bounded = ACS_KERNEL_INIT("bounded", bounded_kernel, NULL);
    acs_context *context = check_open_default();
    uint32_t *out = NULL;
    const acs_arg arg = {&out, sizeof out, ACS_ARG_POINTER};
    acs_launch_params params = launch_of(&bounded, 1, 64, 0);
    params.args = {&arg, 1};
    params.grid.x = 0;
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "grid");
    params.grid = {1, 65536, 1};
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "65535");
    params.grid = {1, 1, 1};
    params.block = {1, 0, 1};
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "block");
    params.block = {1, 1, 65};
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "64");
    params.block = {64, 32, 1};
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "2048 threads");
    params.block = {128, 1, 1};
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "128 threads");
    params.block = {64, 1, 1};
    params.shared_bytes = 1 << 20;
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "1048576");
    params.shared_bytes = UINT64_MAX;
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "shared");
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void bad_kernels_are_refused()
{
    static const acs_kernel null = {"null", NULL, NULL, ACS_KERNEL_FUNCTION, 0};
    static const acs_kernel host = ACS_KERNEL_HOST_INIT("host", no_body);
    static const acs_kernel function = ACS_KERNEL_INIT("function", not_a_kernel, NULL);
    static const acs_kernel odd = {"odd", (const void *)not_a_kernel, NULL, 17, 0};
    acs_context *context = check_open_default();
    CHECK_REFUSED(launch_of(NULL, 1, 1, 0), ACS_ERR_ARGUMENT, "");
    CHECK_REFUSED(launch_of(&null, 1, 1, 0), ACS_ERR_ARGUMENT, "");
    CHECK_REFUSED(launch_of(&host, 1, 1, 0), ACS_ERR_UNSUPPORTED, "host body");
    CHECK_REFUSED(launch_of(&function, 1, 1, 0), ACS_ERR_ARGUMENT, "not a __global__");
    CHECK_REFUSED(launch_of(&odd, 1, 1, 0), ACS_ERR_ARGUMENT, "");
    static const acs_kernel fine = ACS_KERNEL_INIT("bounded", bounded_kernel, NULL);
    acs_launch_params params = launch_of(&fine, 1, 1, 0);
    params.attributes.programmatic = 1;
    CHECK_REFUSED(params, ACS_ERR_UNSUPPORTED, "");
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void arguments_that_do_not_match_are_refused_by_number_and_size()
{
    static const acs_kernel kernel = ACS_KERNEL_INIT("static_shared", static_shared_kernel, NULL);
    acs_context *context = check_open_default();
    float f = 1;
    double d = 2;
    const acs_arg good[2] = {{&f, sizeof f, ACS_ARG_VALUE}, {&d, sizeof d, ACS_ARG_VALUE}};
    const acs_arg swapped[2] = {good[1], good[0]}; /* the same bytes in all */
    acs_launch_params params = launch_of(&kernel, 1, 32, 0);
    params.args = {swapped, 2};
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "argument 0 (from 0)");
    params.args = {good, 1};
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "1 arguments");
    params.args = {good, 2};
    params.shared_bytes = 200 * 1024; /* fits alone, not beside the static 32 KiB */
    CHECK_REFUSED(params, ACS_ERR_ARGUMENT, "32768 of static");
    params.shared_bytes = 0;
    CHECK_STATUS(acs_wait(context, acs_launch(context, &params)), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(arguments_are_converted_to_the_parameters),
        CHECK_TEST(templates_with_commas_and_dim3_launch),
        CHECK_TEST(many_and_large_arguments_arrive),
        CHECK_TEST(shared_memory_grows_beyond_48_kib),
        CHECK_TEST(cooperative_launch_synchronises_the_grid),
        CHECK_TEST(clusters_form_or_are_refused),
        CHECK_TEST(priorities_keep_the_result),
        CHECK_TEST(library_handle_launches),
        CHECK_TEST(cufunction_launches),
        CHECK_TEST(bad_sizes_are_refused_with_the_limit),
        CHECK_TEST(bad_kernels_are_refused),
        CHECK_TEST(arguments_that_do_not_match_are_refused_by_number_and_size),
    };
    return CHECK_MAIN(argc, argv, tests);
}

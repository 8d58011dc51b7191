/*
 * Footprints that are declared once for a kernel, on a GPU: by its function, by the name that the driver has for it, by
 * template instance, by the types of its parameters; and whole allocations of the program's own. Which bytes a launch
 * touches is told by failures: a launch is skipped behind an op that failed on bytes that it conflicts with.
 */
#include "kernels.cuh"

#include <cuda.h>

#include <string>

enum { WORDS = 1000 };

__global__ void declared_saxpy(int n, float a, const float *x, float *y)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] += a * x[i];
}

__global__ void declared_mangled(const int *x, int *y)
{
    y[0] = x[0] + 1;
}

template <class T, int N> __global__ void declared_template(const T *x, T *y)
{
    y[threadIdx.x] = x[threadIdx.x] * N;
}

__global__ void declared_by_parameters(acs::in<int> x, acs::inout<int> y, acs::out<int> z, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        y[i] += x[i];
        z[i] = y[i];
    }
}

__global__ void declared_by_type(const int *x, int *y)
{
    y[0] += x[0];
}

__global__ void declared_nowhere(int *y)
{
    y[0] = 1;
}

ACS_KERNEL_USES(declared_saxpy, [](int n, float, const float *x, float *y) {
    return acs::uses(ACS_IN(x, n * sizeof *x), ACS_INOUT(y, ACS_WHOLE));
});
ACS_KERNEL_USES((declared_template<float, 3>), [](const float *x, float *y) {
    return acs::uses(ACS_IN(x, 4), ACS_OUT(y, 4));
});

static size_t mangled_uses(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    ACS_PARAMS(in, (const int *, x), (int *, y));
    return ACS_SEGMENTS(out, capacity, ACS_IN(x, sizeof *x), ACS_OUT(y, sizeof *y));
}

/* As a generated header does. */
__attribute__((constructor)) static void declare_by_name()
{
    acs_kernel kernel = {};
    kernel.name = "_Z16declared_mangledPKiPi";
    (void)acs_declare(&kernel, mangled_uses, nullptr);
}

static int refuse(void *)
{
    return 1;
}

/* How an op that `launch` queues touches a byte: 'r', 'w', or '-'. */
template <class F> static char touches(acs_context *context, const void *byte, F launch)
{
    bool skipped[2];
    for (int i = 0; i < 2; i++) {
        const acs_segment segment[] = {i ? ACS_IN(byte, 1) : ACS_INOUT(byte, 1)};
        CHECK(acs_host(context, refuse, nullptr, 0, ACS_USES_LIST(segment, 1)) > 0);
        const acs_op op = launch();
        CHECK(op > 0);
        skipped[i] = acs_wait(context, op) == ACS_ERR_SKIPPED;
        CHECK_STATUS(acs_clear(context), ACS_OK);
    }
    return skipped[1] ? 'w' : skipped[0] ? 'r' : '-';
}

/* The same of the first and last words of the blocks. */
template <class T, class F> static void check_touches(acs_context *context, std::initializer_list<T *> blocks, F launch,
                                                      const char *wanted)
{
    std::string is;
    for (T *block : blocks)
        for (int at : {0, WORDS - 1})
            is += touches(context, block + at, launch);
    if (is != wanted) {
        fprintf(stderr, "touches %s instead of %s\n", is.c_str(), wanted);
        g_check_failures++;
    }
}

static uint64_t unknown(acs_context *context)
{
    const acs_statistics s = check_stats(context);
    return s.undeclared + s.unknown_memory;
}

/* Memory of cudaMalloc is whole by what the driver says. */
static void by_function_and_of_the_programs_own_memory()
{
    device_buffer<float> x(WORDS), y(WORDS);
    acs_context *context = check_open_default();
    check_touches(context, {x.data, y.data}, [&] {
        return ACS_LAUNCH_ON(context, declared_saxpy, 1, 32, 0, ACS_ARGS(5, 0.5, x.data, y.data + 10));
    }, "r-ww");
    acs_kernel stub = ACS_KERNEL_INIT("saxpy", declared_saxpy, nullptr); /* the call site looks no handle up */
    check_touches(context, {x.data, y.data}, [&] {
        return ACS_LAUNCH_ON(context, stub, 1, 32, 0, ACS_ARGS(ACS_VAL(int, 5), 0.5f, x.data, y.data), ACS_USES_DECLARED);
    }, "r-ww");
    CHECK_EQ(unknown(context), 0);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void by_the_name_of_the_driver()
{
    device_buffer<int> x(WORDS), y(WORDS);
    acs_context *context = check_open_default();
    CUfunction function = nullptr;
    CHECK_CUDA(cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t *>(&function), (const void *)declared_mangled));
    acs_kernel forms[2] = {ACS_KERNEL_INIT(nullptr, declared_mangled, nullptr),
                           ACS_KERNEL_INIT("other", function, nullptr)};
    forms[1].kind = ACS_KERNEL_CUFUNCTION;
    check_touches(context, {x.data, y.data},
                  [&] { return ACS_LAUNCH_ON(context, declared_mangled, 1, 1, 0, ACS_ARGS(x.data, y.data)); }, "r-w-");
    for (const acs_kernel &form : forms)
        check_touches(context, {x.data, y.data},
                      [&] { return ACS_LAUNCH_ON(context, form, 1, 1, 0, ACS_ARGS((const int *)x.data, y.data)); }, "r-w-");
    CHECK_EQ(unknown(context), 0);
    CHECK(ACS_LAUNCH_ON(context, declared_nowhere, 1, 1, 0, ACS_ARGS(y.data)) > 0);
    CHECK_EQ(unknown(context), 1);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void by_template_instance()
{
    device_buffer<float> x(WORDS), y(WORDS);
    acs_context *context = check_open_default();
    check_touches(context, {x.data, y.data}, [&] {
        return ACS_LAUNCH_ON(context, declared_template<float, 3>, 1, 1, 0, ACS_ARGS(x.data, y.data));
    }, "r-w-");
    CHECK_EQ(unknown(context), 0);
    CHECK(ACS_LAUNCH_ON(context, declared_template<float, 4>, 1, 1, 0, ACS_ARGS(x.data, y.data)) > 0);
    CHECK_EQ(unknown(context), 1);
    CHECK_STATUS(acs::declare_by_type(declared_template<float, 4>), ACS_OK);
    check_touches(context, {x.data, y.data}, [&] {
        return ACS_LAUNCH_ON(context, declared_template<float, 4>, 1, 1, 0, ACS_ARGS(x.data + 1, y.data + 1));
    }, "rrww");
    CHECK_EQ(unknown(context), 1);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void by_the_types_of_parameters()
{
    device_buffer<int> x(WORDS), y(WORDS), z(WORDS);
    acs_context *context = check_open_default();
    CHECK_STATUS(acs::declare_by_type(declared_by_type), ACS_OK);
    check_touches(context, {x.data, y.data},
                  [&] { return ACS_LAUNCH_ON(context, declared_by_type, 1, 1, 0, ACS_ARGS(x.data + 3, y.data)); }, "rrww");
    check_touches(context, {x.data, y.data, z.data}, [&] {
        return ACS_LAUNCH_ON(context, declared_by_parameters, 1, 32, 0, ACS_ARGS(x.data, y.data, z.data, WORDS));
    }, "rrwwww");
    CHECK_CUDA(cudaMemset(x.data, 0, WORDS * sizeof(int)));
    CHECK_CUDA(cudaMemset(y.data, 0, WORDS * sizeof(int)));
    CHECK(acs_memset(context, x.data, 1, WORDS * sizeof(int)) > 0);
    CHECK(ACS_LAUNCH_ON(context, declared_by_parameters, 1, 32, 0, ACS_ARGS(x.data, y.data, z.data, WORDS)) > 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(z.read()[WORDS - 1], 0x01010101);
    CHECK_EQ(unknown(context), 0);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* Pointers in structs of one parameter: blocks that are renamed are found. */
static void parameters_on_blocks_that_move()
{
    acs_options options = check_options();
    options.rename = -1;
    options.pool = ACS_POOL_ON;
    acs_context *context = check_open(&options);
    void *x = nullptr, *y = nullptr, *z = nullptr;
    int result = 0;
    CHECK_STATUS(acs_malloc(context, WORDS * 4, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, &x), ACS_OK);
    CHECK_STATUS(acs_malloc(context, WORDS * 4, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, &y), ACS_OK);
    CHECK_STATUS(acs_malloc(context, WORDS * 4, ACS_MEMORY_DEVICE | ACS_LAZY, &z), ACS_OK);
    for (int round = 0; round < 50; round++) {
        CHECK(acs_memset(context, x, 1 + round % 3, WORDS * 4) > 0);
        CHECK(acs_memset(context, y, 1, WORDS * 4) > 0);
        CHECK(ACS_LAUNCH_ON(context, declared_by_parameters, 4, 32, 0,
                            ACS_ARGS(static_cast<int *>(x), static_cast<int *>(y), static_cast<int *>(z), WORDS)) > 0);
        CHECK_STATUS(acs_wait(context, acs_memcpy(context, &result, z, 4)), ACS_OK);
    }
    CHECK_EQ(unknown(context), 0);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* Pinned memory, managed memory and memory of a pool are known, too; pageable memory and cuMemMap's are not. */
static void other_memory_of_the_program()
{
    acs_context *context = check_open_default();
    int *known[3] = {}, *other = nullptr, *pageable = static_cast<int *>(malloc(WORDS * sizeof(int)));
    CHECK_CUDA(cudaMallocHost(&known[0], WORDS * sizeof(int)));
    CHECK_CUDA(cudaMallocManaged(&known[1], WORDS * sizeof(int)));
    CHECK_CUDA(cudaMallocAsync(&known[2], WORDS * sizeof(int), nullptr));
    CHECK_CUDA(cudaMalloc(&other, WORDS * sizeof(int)));
    CHECK_CUDA(cudaDeviceSynchronize());
    for (int *block : known) {
        const acs_segment uses[] = {ACS_IN(block + 7, ACS_WHOLE)};
        check_touches(context, {block, other}, [&] {
            return acs_host(context, [](void *) { return 0; }, nullptr, 0, ACS_USES_LIST(uses, 1));
        }, "rr--");
    }
    CHECK_EQ(unknown(context), 0);
    const acs_segment uses[] = {ACS_INOUT(pageable + 7, ACS_WHOLE)};
    check_touches(context, {pageable, other}, [&] {
        return acs_host(context, [](void *) { return 0; }, nullptr, 0, ACS_USES_LIST(uses, 1));
    }, "wwww");
    CHECK_EQ(unknown(context), 8);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFreeHost(known[0]));
    CHECK_CUDA(cudaFree(known[1]));
    CHECK_CUDA(cudaFreeAsync(known[2], nullptr));
    CHECK_CUDA(cudaFree(other));
    free(pageable);
}

/* Captured launches: edges from declared footprints. */
static void captured_launches()
{
    device_buffer<int> x(WORDS), y(WORDS);
    acs_context *context = check_open_default();
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMemset(x.data, 0, WORDS * sizeof(int)));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(acs_after_stream(context, stream, ACS_USES_ANY) != 0);
    CHECK(ACS_LAUNCH_ON(context, declared_mangled, 1, 1, 0, ACS_ARGS(x.data, y.data)) != 0);
    CHECK(ACS_LAUNCH_ON(context, declared_mangled, 1, 1, 0, ACS_ARGS(y.data, x.data)) != 0);
    CHECK_STATUS(acs_stream_after(context, stream, ACS_USES_ANY), ACS_OK);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 10; i++)
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(x.read()[0], 20);
    CHECK_EQ(unknown(context), 0);
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(by_function_and_of_the_programs_own_memory),
        CHECK_TEST(by_the_name_of_the_driver),
        CHECK_TEST(by_template_instance),
        CHECK_TEST(by_the_types_of_parameters),
        CHECK_TEST(parameters_on_blocks_that_move),
        CHECK_TEST(other_memory_of_the_program),
        CHECK_TEST(captured_launches),
    };
    return check_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}

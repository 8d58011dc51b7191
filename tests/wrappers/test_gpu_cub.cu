/*
 * acs_cub.cuh on a GPU: algorithms of CUB and Thrust through ACS have the bits of the plain calls, in captures and outside,
 * and independent ones overlap; failures are codes.
 */
#include "acs_cub.cuh"
#include "acs_wrap.h"

#include "gpu_wrapped.cuh"

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <cerrno>

enum { COUNT = 200000, INTS = COUNT * 4 };

static uint32_t *ints(void *p)
{
    return static_cast<uint32_t *>(p);
}

static const uint32_t *ints(const void *p)
{
    return static_cast<const uint32_t *>(p);
}

/* A plain call of CUB with temporary memory of its own. */
template <class F> static void plain_cub(F function, cudaStream_t stream)
{
    size_t bytes = 0;
    void *temporary = nullptr;
    CHECK_CUDA(function(nullptr, bytes, stream));
    CHECK_CUDA(cudaMalloc(&temporary, bytes ? bytes : 1));
    CHECK_CUDA(function(temporary, bytes, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaFree(temporary));
}

static auto sum_of(const void *in, void *out)
{
    return [x = ints(in), y = ints(out)](void *temporary, size_t &bytes, cudaStream_t stream) {
        return cub::DeviceReduce::Sum(temporary, bytes, x, y, static_cast<int>(COUNT), stream);
    };
}

static auto scan_of(const void *in, void *out)
{
    return [x = ints(in), y = ints(out)](void *temporary, size_t &bytes, cudaStream_t stream) {
        return cub::DeviceScan::InclusiveSum(temporary, bytes, x, y, static_cast<int>(COUNT), stream);
    };
}

static void sums_and_scans_of_cub()
{
    g_wrapped_ran++;
    wrapped_check({"cub sum", FILL_FLOATS, INTS, sizeof(uint32_t),
                   [](int, const void *in, void *out, cudaStream_t stream) { plain_cub(sum_of(in, out), stream); },
                   [](acs_context *context, int, const void *in, void *out) {
                       return acs::cub_call(context, ACS_USES(ACS_IN(in, INTS), ACS_OUT(out, sizeof(uint32_t))),
                                            sum_of(in, out));
                   }});
    wrapped_check({"cub scan", FILL_FLOATS, INTS, INTS,
                   [](int, const void *in, void *out, cudaStream_t stream) { plain_cub(scan_of(in, out), stream); },
                   [](acs_context *context, int, const void *in, void *out) {
                       return acs::cub_call(context, ACS_USES(ACS_IN(in, INTS), ACS_OUT(out, INTS)), scan_of(in, out));
                   }});
}

struct mix {
    __host__ __device__ uint32_t operator()(uint32_t x) const
    {
        return x * 2654435761u >> 7;
    }
};

/* A transform, and a sort of its result, which takes temporary memory: one op. */
template <class Policy> static void mix_and_sort(Policy &policy, const uint32_t *x, uint32_t *y)
{
    thrust::transform(policy, x, x + COUNT, y, mix{});
    thrust::sort(policy, y, y + COUNT);
}

static acs_op queue_thrust(acs_context *context, const void *in, void *out, size_t temporary)
{
    return acs::thrust_dual_call(context, ACS_USES(ACS_IN(in, INTS), ACS_OUT(out, INTS)), temporary,
                                 [x = ints(in), y = ints(out)](auto &policy) { mix_and_sort(policy, x, y); });
}

static void transforms_and_sorts_of_thrust()
{
    g_wrapped_ran++;
    wrapped_check({"thrust", FILL_FLOATS, INTS, INTS,
                   [](int, const void *in, void *out, cudaStream_t stream) {
                       auto policy = thrust::cuda::par.on(stream);
                       mix_and_sort(policy, ints(in), ints(out));
                   },
                   [](acs_context *context, int, const void *in, void *out) {
                       return queue_thrust(context, in, out, 4 * INTS + (4u << 20));
                   }});
}

static void too_little_memory_is_a_code()
{
    acs_context *const context = check_open_default();
    void *memory = nullptr;
    acs_error error = {};
    error.size = sizeof error;
    CHECK_CUDA(cudaMalloc(&memory, 2 * INTS));
    const acs_op op = queue_thrust(context, memory, static_cast<char *>(memory) + INTS, 0);
    CHECK(op != 0);
    CHECK_STATUS(acs_wait(context, op), ACS_ERR_HOST);
    (void)acs_op_error(context, op, &error);
    CHECK_EQ(error.native, ENOMEM);
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFree(memory));
}

/* The same call on CPU threads: Thrust runs there, CUB says that it cannot. */
static void on_cpu_threads_thrust_runs()
{
    static uint32_t from[COUNT], to[COUNT], wanted[COUNT];
    acs_options options = check_options();
    acs_context *context = nullptr;
    options.backend = ACS_BACKEND_HOST;
    CHECK_STATUS(acs_open(&options, &context), ACS_OK);
    for (uint32_t i = 0; i < COUNT; i++)
        from[i] = i;
    CHECK(queue_thrust(context, from, to, 0) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    auto policy = thrust::seq;
    mix_and_sort(policy, from, wanted);
    CHECK(memcmp(to, wanted, sizeof to) == 0);
    const acs_op op = acs::cub_call(context, ACS_USES(ACS_IN(from, INTS), ACS_OUT(to, 4)), sum_of(from, to));
    CHECK_STATUS(acs_wait(context, op), ACS_ERR_HOST);
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(sums_and_scans_of_cub),
        CHECK_TEST(transforms_and_sorts_of_thrust),
        CHECK_TEST(too_little_memory_is_a_code),
        CHECK_TEST(on_cpu_threads_thrust_runs),
    };
    return wrapped_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}

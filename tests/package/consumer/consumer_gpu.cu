// A program of somebody else's with a kernel. It gives the kernel to ACS in two ways: as a __global__ function, which the
// call site looks up, and in an acs_kernel, which the library looks up: that works only where both use one CUDA runtime.
// Exit status: 0, 1 if something is wrong, 77 where no GPU answers.
#include <acs.h>

#include <cstdio>

__global__ void add(int n, int step, int *x)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        x[i] += step;
}

static int fail(const char *what)
{
    acs_error error{};
    error.size = sizeof error;
    acs_last_error(&error);
    std::fprintf(stderr, "consumer_gpu: %s: %s\n", what, error.text);
    return 1;
}

static int run(acs_context *context)
{
    static const acs_kernel by_library = ACS_KERNEL_INIT("add", &add, nullptr);
    const int n = 1000;
    const size_t bytes = n * sizeof(int);
    static int out[n];
    void *memory = nullptr;

    if (acs_malloc(context, bytes, ACS_MEMORY_DEVICE, &memory) != ACS_OK)
        return fail("acs_malloc");
    int *x = static_cast<int *>(memory);
    if (!acs_memset(context, x, 0, bytes))
        return fail("acs_memset");
    if (!ACS_LAUNCH_ON(context, add, (n + 255) / 256, 256, 0, ACS_ARGS(n, 40, x), ACS_USES(ACS_INOUT(x, bytes))))
        return fail("a __global__ function");
    if (!ACS_LAUNCH_ON(context, by_library, (n + 255) / 256, 256, 0, ACS_ARGS(n, 2, x), ACS_USES(ACS_INOUT(x, bytes))))
        return fail("an acs_kernel");
    if (!acs_memcpy(context, out, x, bytes) || !acs_free(context, x) || acs_sync(context) != ACS_OK)
        return fail("the copy, the free or the wait");
    for (int i = 0; i < n; i++) {
        if (out[i] != 42) {
            std::fprintf(stderr, "consumer_gpu: element %d is %d; it must be 42\n", i, out[i]);
            return 1;
        }
    }
    return 0;
}

int main()
{
    acs_options options;
    acs_context *context = nullptr;
    if (acs_options_init(&options, sizeof options) != ACS_OK)
        return fail("acs_options_init");
    options.backend = ACS_BACKEND_CUDA;
    const acs_status opened = acs_open(&options, &context);
    if (opened != ACS_OK) {
        (void)fail("acs_open");
        return opened == ACS_ERR_UNSUPPORTED ? 77 : 1;
    }
    int failed = run(context);
    if (acs_close(context) != ACS_OK && !failed)
        failed = fail("acs_close");
    std::printf("consumer_gpu: %s\n", failed ? "failed" : "both launches ran");
    return failed;
}

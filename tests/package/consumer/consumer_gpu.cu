// A program of somebody else's with a kernel. It gives the kernel to ACS in two ways: as a __global__ function, which the
// call site looks up, and in an acs_kernel, which the library looks up: that works only where both use one CUDA runtime.
// With the word "mixed" it expects that they do not.
// Exit status: 0, 1 if something is wrong, 77 where no GPU answers.
#include <acs.h>

#include <cstdio>
#include <cstring>

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

/* The launch that the library looks up. `mixed`: the program has a runtime of its own, so it must be refused and named. */
static int launch_by_library(acs_context *context, int n, int *x, bool mixed)
{
    static const acs_kernel by_library = ACS_KERNEL_INIT("add", &add, nullptr);
    const size_t bytes = n * sizeof(int);
    const acs_op op = ACS_LAUNCH_ON(context, by_library, (n + 255) / 256, 256, 0, ACS_ARGS(n, ACS_VAL(int, 2), x),
                                    ACS_USES(ACS_INOUT(x, bytes)));
    if (!mixed)
        return op ? 0 : fail("an acs_kernel");
    acs_error error{};
    error.size = sizeof error;
    acs_last_error(&error);
    if (op || !std::strstr(error.text, "not a __global__ function of this program"))
        return fail("an acs_kernel of another runtime was not refused as it should be");
    acs_clear(context); /* a refused launch is told again by acs_sync */
    return 0;
}

static int run(acs_context *context, bool mixed)
{
    const int n = 1000, wanted = mixed ? 40 : 42;
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
    if (launch_by_library(context, n, x, mixed))
        return 1;
    if (!acs_memcpy(context, out, x, bytes) || !acs_free(context, x) || acs_sync(context) != ACS_OK)
        return fail("the copy, the free or the wait");
    for (int i = 0; i < n; i++) {
        if (out[i] != wanted) {
            std::fprintf(stderr, "consumer_gpu: element %d is %d; it must be %d\n", i, out[i], wanted);
            return 1;
        }
    }
    return 0;
}

int main(int count, char **words)
{
    const bool mixed = count == 2 && std::strcmp(words[1], "mixed") == 0;
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
    int failed = run(context, mixed);
    if (acs_close(context) != ACS_OK && !failed)
        failed = fail("acs_close");
    std::printf("consumer_gpu: %s\n", failed ? "failed" : mixed ? "one launch ran, one was refused" : "both launches ran");
    return failed;
}

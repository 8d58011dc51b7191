/*
 * A program without parallelism: a chain of kernels of 10 µs and more through ACS and on one stream, in turn, so that a
 * machine that slows down slows both. Prints the ratio of medians for each kernel time; judges nothing.
 */
#include "kernels.cuh"

#include <algorithm>
#include <chrono>

enum { KERNELS = 2000, ROUNDS = 9 };

static double seconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

static double on_one_stream(cudaStream_t stream, uint32_t *word, uint32_t ns)
{
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < KERNELS; i++)
        mix_kernel<<<1, 32, 0, stream>>>(word, NULL, 1, i, ns);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return seconds_since(start);
}

static double through_acs(acs_context *context, uint32_t *word, uint32_t ns)
{
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < KERNELS; i++)
        (void)ACS_LAUNCH_ON(context, mix_kernel, 1, 32, 0, ACS_ARGS(word, nullptr, 1, i, ns),
                            ACS_USES(ACS_INOUT(word, 4)));
    CHECK_STATUS(acs_sync(context), ACS_OK);
    return seconds_since(start);
}

static double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

static void compare(acs_context *context, cudaStream_t stream, uint32_t *word, uint32_t ns)
{
    std::vector<double> plain, acs;
    (void)on_one_stream(stream, word, ns); /* warm */
    (void)through_acs(context, word, ns);
    for (int i = 0; i < ROUNDS; i++) {
        plain.push_back(on_one_stream(stream, word, ns));
        acs.push_back(through_acs(context, word, ns));
    }
    printf("kernels of %3u us: one stream %7.2f us per kernel, ACS %7.2f us, ratio %.3f (target at most 1.03)\n", ns / 1000,
           median(plain) / KERNELS * 1e6, median(acs) / KERNELS * 1e6, median(acs) / median(plain));
}

int main()
{
    if (!check_has_gpu()) {
        printf("skipped: %s\n", check_last_error().text);
        return CHECK_SKIPPED;
    }
    acs_context *context = check_open_default();
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    {
        device_buffer<uint32_t> word(1);
        for (uint32_t ns : {10000u, 20000u, 50000u, 100000u})
            compare(context, stream, word.data, ns);
    }
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaStreamDestroy(stream));
    return g_check_failures ? 1 : 0;
}

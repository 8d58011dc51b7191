/*
 * One kernel into an idle runtime, from the launch until its completion is known, through ACS and as a plain launch and
 * cudaStreamSynchronize, in turn. The runtime is idle for a moment (its threads still look for work) or for so long that
 * they sleep. Prints medians, 99th percentiles and ratios; judges nothing.
 */
#include "kernels.cuh"

#include <algorithm>
#include <chrono>

enum { ROUNDS = 2001 };

using us = std::chrono::duration<double, std::micro>;

static void pause_for(double length)
{
    const auto start = std::chrono::steady_clock::now();
    while (us(std::chrono::steady_clock::now() - start).count() < length) {
    }
}

static double plain(cudaStream_t stream, uint32_t *word)
{
    const auto start = std::chrono::steady_clock::now();
    mix_kernel<<<1, 32, 0, stream>>>(word, NULL, 1, 1, 0);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return us(std::chrono::steady_clock::now() - start).count();
}

static double through_acs(acs_context *context, uint32_t *word)
{
    const auto start = std::chrono::steady_clock::now();
    (void)ACS_LAUNCH_ON(context, mix_kernel, 1, 32, 0, ACS_ARGS(word, nullptr, 1, 1, 0), ACS_USES(ACS_INOUT(word, 4)));
    CHECK_STATUS(acs_sync(context), ACS_OK);
    return us(std::chrono::steady_clock::now() - start).count();
}

static double at(std::vector<double> values, double share)
{
    std::sort(values.begin(), values.end());
    return values[(size_t)((double)(values.size() - 1) * share)];
}

static void compare(const char *name, acs_context *context, cudaStream_t stream, uint32_t *word, double idle)
{
    std::vector<double> rival, acs;
    for (int i = 0; i < ROUNDS; i++) {
        pause_for(idle);
        rival.push_back(plain(stream, word));
        pause_for(idle);
        acs.push_back(through_acs(context, word));
    }
    printf("%-8s idle for %4.0f us: plain %6.2f us (p99 %6.2f), ACS %6.2f us (p99 %6.2f), ratio %.3f (target 1.15)\n",
           name, idle, at(rival, 0.5), at(rival, 0.99), at(acs, 0.5), at(acs, 0.99), at(acs, 0.5) / at(rival, 0.5));
}

int main()
{
    if (!check_has_gpu()) {
        printf("skipped: %s\n", check_last_error().text);
        return CHECK_SKIPPED;
    }
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int workers = 1; workers >= 0; workers--) {
        acs_options options;
        CHECK_STATUS(acs_options_init(&options, sizeof options), ACS_OK);
        options.workers = workers;
        acs_context *context = NULL;
        CHECK_STATUS(acs_open(&options, &context), ACS_OK);
        {
            device_buffer<uint32_t> word(1);
            for (double idle : {0.0, 1000.0})
                compare(workers ? "a worker" : "inline", context, stream, word.data, idle);
        }
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
    CHECK_CUDA(cudaStreamDestroy(stream));
    return g_check_failures ? 1 : 0;
}

/*
 * How many kernels a second go to several devices out of one thread: what a worker for each device is for, and bundles.
 * Called by the program.
 */
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "acs_context.h"
#include "acs_dual.hpp"
#include "ways.h"

namespace bench {

namespace {

struct empty_args {
    unsigned threads;
};

ACS_DUAL void empty_thread(const empty_args &, unsigned) {}

ACS_DUAL_KERNEL(empty, empty_args, 32)

} // namespace

#ifdef __CUDACC__
namespace {

enum { STREAMS = 8 };

/** Kept on a CPU of its own: else on that of the thread that started it, with all others. */
void launch_by_hand(const machine &m, unsigned device, unsigned launches)
{
    pin_thread(m, static_cast<int>(device) + 1);
    const empty_args args = {1};
    cudaStream_t streams[STREAMS];
    require(cudaSetDevice(gpu_of(device)) == cudaSuccess, "cudaSetDevice");
    for (cudaStream_t &stream : streams)
        require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "cudaStreamCreate");
    for (unsigned i = 0; i < launches; i++)
        empty_gpu<<<1, 32, 0, streams[i % STREAMS]>>>(args);
    require(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
    for (cudaStream_t stream : streams)
        require(cudaStreamDestroy(stream) == cudaSuccess, "cudaStreamDestroy");
}

} // namespace

std::vector<double> launches_us_by_hand(const machine &m, unsigned devices, unsigned launches, int repetitions)
{
    std::vector<double> us;
    for (int run = 0; run < repetitions + 1; run++) { /* the first is none */
        std::vector<std::thread> threads;
        const auto begin = std::chrono::steady_clock::now();
        for (unsigned d = 0; d < devices; d++)
            threads.emplace_back(launch_by_hand, std::cref(m), d, launches / devices + (d < launches % devices));
        for (std::thread &t : threads)
            t.join();
        if (run > 0)
            us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    return us;
}
#else
std::vector<double> launches_us_by_hand(const machine &, unsigned, unsigned, int)
{
    return {};
}
#endif

std::vector<double> launches_us(const machine &m, int issue, unsigned devices, unsigned launches, int repetitions)
{
    acs_options o = acs_options_for(m);
    std::vector<double> us;
    o.devices = devices;
    o.issue = issue;
    o.pool = ACS_POOL_ON;
    acs_context *const context = acs_open_for(m, o);
    const empty_args args = {1};
    const acs_arg arg = {&args, sizeof args, ACS_ARG_VALUE};
    for (int run = 0; run < repetitions + 1; run++) { /* the first is none */
        const auto begin = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < launches; i++) {
            acs_launch_params p = {};
            p.size = sizeof p;
            p.kernel = &kernel_empty.code;
            p.grid = {1, 1, 1};
            p.block = {32, 1, 1};
            p.args = {&arg, 1};
            p.attributes.on = static_cast<uint8_t>(devices > 1 ? i % devices + 1 : 0);
            p.site = &kernel_empty.site;
            require(acs_launch(context, &p) != 0, acs_error_text("acs_launch").c_str());
        }
        require(acs_sync(context) == ACS_OK, acs_error_text("acs_sync").c_str());
        if (run > 0)
            us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    (void)acs_close(context);
    return us;
}

} // namespace bench

/*
 * Force accumulation: in each step 128 kernels add to one array of forces by atomics, and one uses and clears it. The
 * kernels name the array as ACS_INOUT, as ACS_INOUTSET, as ACS_IN ("as readers": not ordered within a step, and ordered
 * with the one that clears, which is the bound), or not at all ("no footprint": its result may be wrong); beside them the
 * same kernels in one stream, and on eight streams joined by events. Ways take turns. Prints us per kernel, medians, and
 * whether the result is that of serial execution, bit for bit; exits with 1 if one is not.
 */
#include "kernels.cuh"

#include <algorithm>
#include <chrono>

enum { BODIES = 128, STEPS = 40, WORDS = 1024, CTAS = 4, STREAMS = 8, ROUNDS = 9 };

static __global__ void add_forces(uint32_t *force, uint32_t body, uint32_t delay_ns)
{
    delay(delay_ns);
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < WORDS; i += gridDim.x * blockDim.x)
        atomicAdd(&force[i], mix_word(body, i, 7));
}

static __global__ void move(uint32_t *x, uint32_t *force)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < WORDS; i += gridDim.x * blockDim.x) {
        x[i] = mix_word(x[i], force[i], 3);
        force[i] = x[i];
    }
}

enum way { STREAM, STREAMS_8, INOUT, INOUTSET, READERS, UNORDERED, WAYS };
static const char *const g_names[WAYS] = {"one stream", "eight streams", "ACS_INOUT", "ACS_INOUTSET", "as readers",
                                    "no footprint"};

struct scene {
    device_buffer<uint32_t> x{WORDS}, force{WORDS};
    acs_context *context = nullptr;
    cudaStream_t streams[STREAMS];
    cudaEvent_t events[STREAMS], moved;
};

static void by_acs(scene &s, way how, uint32_t delay_ns)
{
    const size_t bytes = WORDS * 4;
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t b = 0; b < BODIES; b++) {
            const acs_access access = how == INOUT ? ACS_UPDATE : how == READERS ? ACS_READ : ACS_COMMUTE;
            const acs_segment force = acs_make_segment(ACS_EXTENT_BYTES, access, (uintptr_t)s.force.data, bytes, 1, 0);
            acs_uses uses{};
            uses.segments = &force;
            uses.count = how != UNORDERED;
            (void)ACS_LAUNCH_ON(s.context, add_forces, CTAS, 256, 0, ACS_ARGS(s.force.data, b, delay_ns), uses);
        }
        (void)ACS_LAUNCH_ON(s.context, move, CTAS, 256, 0, ACS_ARGS(s.x.data, s.force.data),
                            ACS_USES(ACS_INOUT(s.x.data, bytes), ACS_INOUT(s.force.data, bytes)));
    }
    CHECK_STATUS(acs_sync(s.context), ACS_OK);
}

static void by_streams(scene &s, int count, uint32_t delay_ns)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t b = 0; b < BODIES; b++)
            add_forces<<<CTAS, 256, 0, s.streams[b % count]>>>(s.force.data, b, delay_ns);
        for (int i = 1; i < count; i++) {
            CHECK_CUDA(cudaEventRecord(s.events[i], s.streams[i]));
            CHECK_CUDA(cudaStreamWaitEvent(s.streams[0], s.events[i], 0));
        }
        move<<<CTAS, 256, 0, s.streams[0]>>>(s.x.data, s.force.data);
        CHECK_CUDA(cudaEventRecord(s.moved, s.streams[0]));
        for (int i = 1; i < count; i++)
            CHECK_CUDA(cudaStreamWaitEvent(s.streams[i], s.moved, 0));
    }
    CHECK_CUDA(cudaDeviceSynchronize());
}

static double run(scene &s, way how, uint32_t delay_ns, std::vector<uint32_t> &result)
{
    CHECK_CUDA(cudaMemset(s.x.data, 1, WORDS * 4));
    CHECK_CUDA(cudaMemset(s.force.data, 0, WORDS * 4));
    CHECK_CUDA(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    if (how == STREAM || how == STREAMS_8)
        by_streams(s, how == STREAM ? 1 : STREAMS, delay_ns);
    else
        by_acs(s, how, delay_ns);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    result.resize(WORDS);
    CHECK_CUDA(cudaMemcpy(result.data(), s.x.data, WORDS * 4, cudaMemcpyDeviceToHost));
    return took.count() / (STEPS * (BODIES + 1));
}

int main()
{
    if (!check_has_gpu()) {
        printf("skipped: %s\n", check_last_error().text);
        return CHECK_SKIPPED;
    }
    scene s;
    CHECK_STATUS(acs_open(nullptr, &s.context), ACS_OK);
    CHECK_CUDA(cudaEventCreateWithFlags(&s.moved, cudaEventDisableTiming));
    for (int i = 0; i < STREAMS; i++) {
        CHECK_CUDA(cudaStreamCreateWithFlags(&s.streams[i], cudaStreamNonBlocking));
        CHECK_CUDA(cudaEventCreateWithFlags(&s.events[i], cudaEventDisableTiming));
    }
    printf("%d steps of %d kernels that add; us per kernel, medians of %d\n%-16s", STEPS, BODIES, ROUNDS, "");
    for (uint32_t delay_ns : {0u, 2000u, 5000u, 20000u})
        printf("%9u us", delay_ns / 1000);
    printf("   result\n");
    std::vector<double> times[WAYS][4];
    bool right[WAYS] = {true, true, true, true, true, true};
    for (int round = 0; round < ROUNDS; round++)
        for (int d = 0; d < 4; d++) {
            static const uint32_t delays[] = {0, 2000, 5000, 20000};
            std::vector<uint32_t> serial, result;
            for (int w = 0; w < WAYS; w++) {
                times[w][d].push_back(run(s, (way)w, delays[d], w ? result : serial));
                right[w] = right[w] && (!w || result == serial);
            }
        }
    for (int w = 0; w < WAYS; w++) {
        printf("%-16s", g_names[w]);
        for (std::vector<double> &t : times[w]) {
            std::sort(t.begin(), t.end());
            printf("%12.3f", t[t.size() / 2]);
        }
        printf("   %s\n", right[w] ? "equal" : "differs");
    }
    CHECK_STATUS(acs_close(s.context), ACS_OK);
    return g_check_failures || !right[STREAMS_8] || !right[INOUT] || !right[INOUTSET];
}

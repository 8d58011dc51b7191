/*
 * ACS beside the program's own CUDA: foreign streams in both directions, captures beside it, library calls,
 * and what a thread of the program must find unchanged after it stepped the runtime.
 */
#include "kernels.cuh"

#include <atomic>
#include <thread>

/* ------------------------------------------------------------------------------------------------- foreign streams */

/* A round trip: foreign, ACS, foreign; every kernel slow, so that a missing wait shows. */
static void round_trip(acs_context *context, cudaStream_t stream, int rounds)
{
    device_buffer<uint32_t> words(64);
    uint32_t truth = 0;
    for (int i = 0; i < rounds; i++) {
        mix_kernel<<<1, 64, 0, stream>>>(words.data, NULL, 64, 1, 30000);
        CHECK(acs_after_stream(context, stream, ACS_USES(ACS_INOUT(words.data, words.bytes()))) != 0);
        launch_mix(context, words.data, NULL, 64, 2, 30000);
        CHECK_STATUS(acs_stream_after(context, stream, ACS_USES(ACS_INOUT(words.data, words.bytes()))), ACS_OK);
        truth = mix_word(mix_word(truth, 0, 1), 0, 2);
    }
    mix_kernel<<<1, 64, 0, stream>>>(words.data, NULL, 64, 3, 0);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(words.read()[63], mix_word(truth, 0, 3));
    CHECK_STATUS(acs_sync(context), ACS_OK);
}

static void foreign_streams_are_ordered_both_ways()
{
    for (int workers = 0; workers < 2; workers++) {
        acs_options options = check_options();
        options.workers = workers;
        acs_context *context = check_open(&options);
        cudaStream_t own, blocking;
        CHECK_CUDA(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
        CHECK_CUDA(cudaStreamCreate(&blocking));
        round_trip(context, own, 200);
        round_trip(context, blocking, 20);
        round_trip(context, NULL, 20);
        round_trip(context, cudaStreamLegacy, 20);
        CHECK_CUDA(cudaStreamDestroy(own));
        CHECK_CUDA(cudaStreamDestroy(blocking));
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

static void stream_after_returns_before_the_ops_end()
{
    device_buffer<uint32_t> word(1), seen(1);
    acs_context *context = check_open_default();
    void *memory = nullptr;
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_STATUS(acs_malloc(context, 4, ACS_MEMORY_HOST, &memory), ACS_OK);
    mix_kernel<<<1, 1, 0, stream>>>(seen.data, NULL, 1, 1, 0); /* loaded now: loading may wait for the device */
    CHECK_CUDA(cudaStreamSynchronize(stream));
    volatile uint32_t *flag = static_cast<uint32_t *>(memory);
    *flag = 0;
    const acs_op held = ACS_LAUNCH_ON(context, wait_flag_kernel, 1, 1, 0, ACS_ARGS(flag, word.data),
                                      ACS_USES(ACS_INOUT(word.data, 4)));
    CHECK_STATUS(acs_stream_after(context, stream, ACS_USES(ACS_IN(word.data, 4))), ACS_OK);
    CHECK_STATUS(acs_query(context, held), ACS_NOT_READY);
    mix_kernel<<<1, 1, 0, stream>>>(seen.data, word.data, 1, 2, 0);
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
    *flag = 1;
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(seen.first(), mix_word(mix_word(0, 0, 1), 1, 2));
    CHECK(acs_free(context, memory) != 0);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaStreamDestroy(stream));
}

static void per_thread_stream_is_taken_in_and_refused_out()
{
    device_buffer<uint32_t> word(1);
    acs_context *context = check_open_default();
    mix_kernel<<<1, 1, 0, cudaStreamPerThread>>>(word.data, NULL, 1, 1, 100000);
    CHECK(acs_after_stream(context, cudaStreamPerThread, ACS_USES(ACS_INOUT(word.data, 4))) != 0);
    launch_mix(context, word.data, NULL, 1, 2, 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(word.first(), mix_word(mix_word(0, 0, 1), 0, 2));
    CHECK_STATUS(acs_stream_after(context, cudaStreamPerThread, ACS_USES(ACS_IN(word.data, 4))), ACS_ERR_UNSUPPORTED);
    (void)acs_clear(context);
    (void)acs_close(context);
}

/* --------------------------------------------------------------------------------------------------------- capture */

static __global__ void first_seen_in_capture_kernel(uint32_t *word)
{
    *word += 1;
}

/* The thread captures a stream of its own and uses ACS all the while: launches, allocations, waits, a kernel never seen. */
static void own_capture_survives_the_use_of_acs()
{
    for (int workers = 0; workers < 2; workers++) {
        device_buffer<uint32_t> captured(1), word(1);
        acs_options options = check_options();
        options.workers = workers;
        acs_context *context = check_open(&options);
        cudaStream_t stream;
        cudaGraph_t graph = NULL;
        cudaGraphExec_t exec = NULL;
        void *memory = NULL;
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        mix_kernel<<<1, 1, 0, stream>>>(captured.data, NULL, 1, 7, 0);
        for (uint32_t i = 0; i < 200; i++)
            CHECK(launch_mix(context, word.data, NULL, 1, i, 1000) != 0);
        CHECK_STATUS(acs_malloc(context, 4096, ACS_MEMORY_DEVICE, &memory), ACS_OK);
        CHECK(ACS_LAUNCH_ON(context, first_seen_in_capture_kernel, 1, 1, 0, ACS_ARGS(word.data),
                            ACS_USES(ACS_INOUT(word.data, 4))) != 0);
        CHECK_STATUS(acs_wait_range(context, word.data, 4, ACS_READ), ACS_OK);
        CHECK(acs_free(context, memory) != 0);
        CHECK_STATUS(acs_sync(context), ACS_OK);
        CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
        CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        CHECK_EQ(captured.first(), mix_word(0, 0, 7));
        CHECK_CUDA(cudaGraphExecDestroy(exec));
        CHECK_CUDA(cudaGraphDestroy(graph));
        CHECK_CUDA(cudaStreamDestroy(stream));
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

/* One thread captures over and over while another has ACS work. */
static void capture_of_another_thread_survives()
{
    device_buffer<uint32_t> word(1);
    acs_context *context = check_open_default();
    std::atomic<bool> stop{false};
    std::atomic<int> captures{0}, broken{0};
    std::thread other([&] {
        cudaStream_t stream;
        if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
            return;
        while (!stop || captures == 0) {
            cudaGraph_t graph = NULL;
            bool fine = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess;
            for (int i = 0; i < 20; i++)
                mix_kernel<<<1, 1, 0, stream>>>(NULL, NULL, 0, 0, 0);
            fine = cudaStreamEndCapture(stream, &graph) == cudaSuccess && fine && graph;
            if (graph)
                cudaGraphDestroy(graph);
            captures++;
            broken += !fine;
        }
        cudaStreamDestroy(stream);
    });
    uint32_t truth = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        CHECK(launch_mix(context, word.data, NULL, 1, i, 0) != 0);
        truth = mix_word(truth, 0, i);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    stop = true;
    other.join();
    CHECK(captures > 0);
    CHECK_EQ(broken, 0);
    CHECK_EQ(word.first(), truth);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* ---------------------------------------------------------------------------------------------------- library calls */

static std::atomic<int> g_places_made, g_places_destroyed;

struct call_closure {
    uint32_t *word;
    uint32_t salt;
    uint32_t scratch_words;
    int code;
};

static __global__ void through_scratch_kernel(uint32_t *word, uint32_t *scratch, uint32_t words, uint32_t salt, int step)
{
    if (step == 0)
        for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
            scratch[i] = *word;
    else if (threadIdx.x == 0)
        *word = mix_word(scratch[words - 1], 0, salt);
}

/* As a library does it: a handle per slot, work in two kernels with scratch memory between them. */
static int library_call(const acs_call_env *env, void *closure)
{
    const call_closure *c = static_cast<const call_closure *>(closure);
    if (!env->stream || env->device < 0 || env->scratch_bytes < c->scratch_words * 4 || !env->place)
        return -1;
    if (!*env->place) {
        *env->place = malloc(1);
        g_places_made++;
    }
    uint32_t *scratch = static_cast<uint32_t *>(env->scratch);
    cudaStream_t stream = static_cast<cudaStream_t>(env->stream);
    for (int step = 0; step < 2; step++)
        through_scratch_kernel<<<1, 64, 0, stream>>>(c->word, scratch, c->scratch_words, c->salt, step);
    return cudaPeekAtLastError() == cudaSuccess ? c->code : -2;
}

static void destroy_place(void *place)
{
    free(place);
    g_places_destroyed++;
}

static acs_op call(acs_context *context, const call_closure &closure)
{
    static const char key = 0;
    const acs_segment segment = ACS_INOUT(closure.word, 4);
    acs_call_params params = {};
    params.size = sizeof params;
    params.function = library_call;
    params.closure = &closure;
    params.closure_bytes = sizeof closure;
    params.scratch_bytes = closure.scratch_words * 4;
    params.place_key = &key;
    params.place_destroy = destroy_place;
    params.uses.segments = &segment;
    params.uses.count = 1;
    return acs_call(context, &params);
}

static void library_calls_have_scratch_and_a_place_per_slot()
{
    device_buffer<uint32_t> words(16);
    g_places_made = g_places_destroyed = 0;
    acs_context *context = check_open_default();
    uint32_t truth = 0;
    for (uint32_t i = 0; i < 300; i++) {
        for (int w = 0; w < 16; w++) /* scratch grows while earlier calls still use it */
            CHECK(call(context, {words.data + w, i, 64 + (i / 50) * 4096, 0}) != 0);
        truth = mix_word(truth, 0, i);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    for (uint32_t w : words.read())
        CHECK_EQ(w, truth);
    CHECK(g_places_made >= 1 && g_places_made <= 64);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_EQ(g_places_destroyed, g_places_made);
}

static void failing_library_call_skips_its_dependents()
{
    device_buffer<uint32_t> words(2);
    acs_context *context = check_open_default();
    const acs_op failing = call(context, {words.data, 1, 64, 7});
    const acs_op dependent = launch_mix(context, words.data, NULL, 1, 2, 0);
    const acs_op other = launch_mix(context, words.data + 1, NULL, 1, 3, 0);
    CHECK_STATUS(acs_wait(context, failing), ACS_ERR_HOST);
    CHECK_STATUS(acs_wait(context, dependent), ACS_ERR_SKIPPED);
    CHECK_STATUS(acs_wait(context, other), ACS_OK);
    acs_error error = {};
    error.size = sizeof error;
    CHECK_STATUS(acs_op_error(context, failing, &error), ACS_ERR_HOST);
    CHECK_EQ(error.native, 7);
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* ------------------------------------------------------------------------------------------- the program's own thread */

static void the_programs_last_error_and_device_are_left_alone()
{
    device_buffer<uint32_t> word(1);
    acs_options options = check_options();
    options.workers = 0; /* this thread issues and polls */
    acs_context *context = check_open(&options);
    int device = -1;
    CHECK(cudaSetDevice(9999) == cudaErrorInvalidDevice); /* stays as the thread's last error */
    for (uint32_t i = 0; i < 100; i++)
        CHECK(launch_mix(context, word.data, NULL, 1, i, 2000) != 0);
    acs_attributes attributes = {};
    attributes.cooperative = 1; /* the driver refuses: too many blocks to be resident */
    CHECK(ACS_LAUNCH_WITH(context, attributes, mix_kernel, 1 << 20, 1024, 0, ACS_ARGS(word.data, nullptr, 0, 0, 0),
                          ACS_USES_NONE) != 0);
    CHECK_STATUS(acs_sync(context), ACS_ERR_LAUNCH);
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    CHECK_CUDA(cudaGetDevice(&device));
    CHECK_EQ(device, 0);
    CHECK_CUDA(cudaGetLastError());
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(foreign_streams_are_ordered_both_ways),
        CHECK_TEST(stream_after_returns_before_the_ops_end),
        CHECK_TEST(per_thread_stream_is_taken_in_and_refused_out),
        CHECK_TEST(own_capture_survives_the_use_of_acs),
        CHECK_TEST(capture_of_another_thread_survives),
        CHECK_TEST(library_calls_have_scratch_and_a_place_per_slot),
        CHECK_TEST(failing_library_call_skips_its_dependents),
        CHECK_TEST(the_programs_last_error_and_device_are_left_alone),
    };
    return CHECK_MAIN(argc, argv, tests);
}

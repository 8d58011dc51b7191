/*
 * acs::compat: a program that launches through ACS and goes on with plain CUDA, as it did before, sees its results. Linked
 * with acs::compat; without it these tests fail, since the ops then still wait in the FIFO or run.
 */
#include "kernels.cuh"

static acs_context *g_context;
static __device__ uint32_t g_symbol[4];

enum { CHAIN = 200 };

/* A chain that takes about 4 ms, so that who does not wait is early; returns what the word will be. */
static uint32_t launch_chain(uint32_t *word)
{
    uint32_t truth = 0;
    CHECK(acs_memset(g_context, word, 0, 4) != 0);
    for (uint32_t i = 0; i < CHAIN; i++) {
        CHECK(launch_mix(g_context, word, NULL, 1, i, 20000) != 0);
        truth = mix_word(truth, 0, i);
    }
    return truth;
}

static void synchronous_copy_sees_the_ops()
{
    device_buffer<uint32_t> word(1);
    uint32_t host = 0;
    const uint32_t truth = launch_chain(word.data);
    CHECK_CUDA(cudaMemcpy(&host, word.data, 4, cudaMemcpyDeviceToHost));
    CHECK_EQ(host, truth);
}

static void asynchronous_copy_sees_the_ops()
{
    device_buffer<uint32_t> word(1);
    cudaStream_t stream;
    uint32_t host = 0;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const uint32_t truth = launch_chain(word.data);
    CHECK_CUDA(cudaMemcpyAsync(&host, word.data, 4, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(host, truth);
    CHECK_CUDA(cudaStreamDestroy(stream));
}

/* What a wait of plain CUDA promises: pinned memory is final after it. */
template <class Wait> static void check_wait(Wait wait)
{
    void *memory = NULL;
    CHECK_STATUS(acs_malloc(g_context, 4, ACS_MEMORY_HOST, &memory), ACS_OK);
    uint32_t *word = static_cast<uint32_t *>(memory);
    const uint32_t truth = launch_chain(word);
    CHECK_CUDA(wait());
    CHECK_EQ(*word, truth);
    CHECK(acs_free(g_context, memory) != 0);
}

static void synchronising_calls_wait_for_the_ops()
{
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_CUDA(cudaEventCreate(&event));
    CHECK_CUDA(cudaEventRecord(event, stream));
    check_wait([] { return cudaDeviceSynchronize(); });
    check_wait([=] { return cudaStreamSynchronize(stream); });
    check_wait([=] { return cudaEventSynchronize(event); });
    check_wait([=] { return cudaStreamQuery(stream); });
    check_wait([=] { return cudaEventQuery(event); });
    CHECK_CUDA(cudaEventDestroy(event));
    CHECK_CUDA(cudaStreamDestroy(stream));
}

static void fills_and_overwriting_copies_come_after_the_ops()
{
    device_buffer<uint32_t> word(1);
    uint32_t host = 5;
    launch_chain(word.data);
    CHECK_CUDA(cudaMemset(word.data, 0x11, 4));
    CHECK_EQ(word.first(), 0x11111111);
    launch_chain(word.data);
    CHECK_CUDA(cudaMemcpy(word.data, &host, 4, cudaMemcpyHostToDevice));
    CHECK_EQ(word.first(), 5);
}

static void copies_of_symbols_and_planes_see_the_ops()
{
    void *symbol = NULL;
    uint32_t host = 0;
    CHECK_CUDA(cudaGetSymbolAddress(&symbol, g_symbol));
    uint32_t truth = launch_chain(static_cast<uint32_t *>(symbol));
    CHECK_CUDA(cudaMemcpyFromSymbol(&host, g_symbol, 4));
    CHECK_EQ(host, truth);
    truth = launch_chain(static_cast<uint32_t *>(symbol));
    CHECK_CUDA(cudaMemcpy2D(&host, 4, symbol, 8, 4, 1, cudaMemcpyDeviceToHost));
    CHECK_EQ(host, truth);
}

static void freeing_waits_for_the_ops()
{
    uint32_t *word = NULL;
    CHECK_CUDA(cudaMalloc(&word, 4));
    launch_chain(word);
    CHECK_CUDA(cudaFree(word));
    CHECK_EQ(check_stats(g_context).queued, check_stats(g_context).retired);
    CHECK_STATUS(acs_sync(g_context), ACS_OK);
}

static int copy_inside(void *closure)
{
    uint32_t host = 0;
    uint32_t *const *word = static_cast<uint32_t *const *>(closure);
    return cudaMemcpy(&host, *word, 4, cudaMemcpyDeviceToHost) == cudaSuccess && host == 0 ? 0 : 1;
}

/* A drain there would wait for itself. */
static void plain_cuda_inside_a_host_function_does_not_drain()
{
    device_buffer<uint32_t> word(1), other(1);
    uint32_t *address = other.data;
    launch_chain(word.data);
    const acs_op op = acs_host(g_context, copy_inside, &address, sizeof address, ACS_USES(ACS_IN(other.data, 4)));
    launch_mix(g_context, word.data, NULL, 1, 1, 0);
    CHECK_STATUS(acs_wait(g_context, op), ACS_OK);
    CHECK_STATUS(acs_sync(g_context), ACS_OK);
}

static void capture_goes_on_through_a_drain()
{
    device_buffer<uint32_t> word(1);
    cudaStream_t stream, other;
    cudaGraph_t graph = NULL;
    uint32_t host = 0;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    const uint32_t truth = launch_chain(word.data);
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK_CUDA(cudaMemcpyAsync(&host, word.data, 4, cudaMemcpyDeviceToHost, stream)); /* a node; drains all the same */
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK(graph != NULL);
    CHECK_CUDA(cudaMemcpyAsync(&host, word.data, 4, cudaMemcpyDeviceToHost, other));
    CHECK_CUDA(cudaStreamSynchronize(other));
    CHECK_EQ(host, truth);
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA(cudaStreamDestroy(other));
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(synchronous_copy_sees_the_ops),
        CHECK_TEST(asynchronous_copy_sees_the_ops),
        CHECK_TEST(synchronising_calls_wait_for_the_ops),
        CHECK_TEST(fills_and_overwriting_copies_come_after_the_ops),
        CHECK_TEST(copies_of_symbols_and_planes_see_the_ops),
        CHECK_TEST(freeing_waits_for_the_ops),
        CHECK_TEST(plain_cuda_inside_a_host_function_does_not_drain),
        CHECK_TEST(capture_goes_on_through_a_drain),
    };
    if (!check_has_gpu()) {
        printf("skipped: %s\n", check_last_error().text);
        return CHECK_SKIPPED;
    }
    g_context = check_open_default();
    const int failed = CHECK_MAIN(argc, argv, tests);
    g_check_failures = 0;
    CHECK_STATUS(acs_close(g_context), ACS_OK);
    return failed || g_check_failures ? 1 : 0;
}

/*
 * Shares of a GPU: kernels run on no more multiprocessors than their share has, on different ones in turn, and in order
 * with all that runs on the whole GPU. Every test passes where the GPU cannot be partitioned, and says so.
 */
#include "kernels.cuh"

#include <cuda.h>

#include <random>

enum { WORDS = 16 /* of a bit for each multiprocessor */ };

/* Notes on which multiprocessors its blocks run, long enough for all of them to get one. */
static __global__ void places_kernel(uint32_t *seen, uint32_t delay_ns)
{
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0)
        atomicOr(&seen[sm / 32 % WORDS], 1u << sm % 32);
    delay(delay_ns);
}

static uint32_t count_bits(const std::vector<uint32_t> &seen, size_t from)
{
    uint32_t bits = 0;
    for (size_t i = from; i < from + WORDS; i++)
        bits += (uint32_t)__builtin_popcount(seen[i]);
    return bits;
}

static acs_share_info find_share(acs_context *context, uint32_t percent)
{
    acs_share_info info = CHECK_ZERO;
    info.size = sizeof info;
    CHECK_STATUS(acs_share_find(context, 0, percent, &info), ACS_OK);
    return info;
}

static bool is_partitioned(acs_context *context)
{
    const acs_share_info info = find_share(context, 50);
    if (!info.step_sms)
        printf("this GPU is not partitioned: %s\n", info.reason);
    return info.step_sms != 0;
}

static acs_op launch_places(acs_context *context, int percent, uint32_t *seen, uint32_t blocks, uint32_t delay_ns)
{
    const acs_attributes attributes = percent ? ACS_SHARE(percent) : acs_no_attributes();
    return ACS_LAUNCH_WITH(context, attributes, places_kernel, blocks, 128, 0, ACS_ARGS(seen, delay_ns),
                           ACS_USES(ACS_INOUT(seen, WORDS * 4)));
}

static acs_op launch_mix_on(acs_context *context, int percent, uint32_t *word, uint32_t salt, uint32_t delay_ns)
{
    const acs_attributes attributes = percent ? ACS_SHARE(percent) : acs_no_attributes();
    const uint32_t *none = nullptr;
    return ACS_LAUNCH_WITH(context, attributes, mix_kernel, 1, 32, 0, ACS_ARGS(word, none, 1u, salt, delay_ns),
                           ACS_USES(ACS_INOUT(word, 4)));
}

static void share_find_tells_parts_that_grow_with_the_share()
{
    acs_context *context = check_open_default();
    uint32_t before = 0;
    for (uint32_t percent = 1; percent <= 100; percent++) {
        const acs_share_info info = find_share(context, percent);
        CHECK(info.sms >= before && info.sms >= 1 && info.sms <= info.device_sms && info.places >= 1);
        CHECK(percent < 100 || info.sms == info.device_sms);
        before = info.sms;
        if (percent % 10 == 0)
            printf("share %u %%: %u of %u multiprocessors in steps of %u, %u places %s\n", percent, info.sms,
                   info.device_sms, info.step_sms, info.places, info.reason);
    }
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void kernels_use_the_multiprocessors_of_their_share_alone()
{
    static const int shares[] = {10, 30, 50, 70, 0};
    enum { RUNS = 8 };
    acs_context *context = check_open_default();
    const bool parts = is_partitioned(context);
    for (int percent : shares) {
        const acs_share_info info = find_share(context, percent ? (uint32_t)percent : 100);
        device_buffer<uint32_t> seen(RUNS * WORDS);
        for (int i = 0; i < RUNS; i++)
            CHECK(launch_places(context, percent, seen.data + i * WORDS, info.device_sms * 32, 20000) != 0);
        CHECK_STATUS(acs_sync(context), ACS_OK);
        const std::vector<uint32_t> bits = seen.read();
        std::vector<uint32_t> all(WORDS);
        for (int i = 0; i < RUNS; i++) {
            CHECK(count_bits(bits, (size_t)i * WORDS) <= info.sms);
            CHECK(count_bits(bits, (size_t)i * WORDS) > info.sms / 2);
            for (int w = 0; w < WORDS; w++)
                all[w] |= bits[i * WORDS + w];
        }
        printf("share %d %%: at most %u multiprocessors, the first of %d kernels had %u, all together %u\n", percent,
               info.sms, RUNS, count_bits(bits, 0), count_bits(all, 0));
        if (parts && info.places > 1)
            CHECK(count_bits(all, 0) > info.sms);
    }
    if (parts)
        CHECK_EQ(check_stats(context).shares, 4 * RUNS);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* One long chain, in which each op has another share, and chains beside it that read nothing of it. */
static void order_is_kept_across_shares()
{
    static const int shares[] = {0, 10, 30, 50, 70, 99, 100, 0};
    static const int streams[] = {1, 2, 5, 64};
    for (int run = 0; run < 8; run++) {
        acs_options options = check_options();
        options.streams = streams[run / 2];
        options.workers = run % 2 ? 4 : 0;
        acs_context *context = check_open(&options);
        enum { CHAINS = 6, OPS = 400 };
        device_buffer<uint32_t> words(CHAINS);
        uint32_t truth[CHAINS] = {0};
        std::mt19937 random((unsigned)run);
        for (uint32_t i = 0; i < OPS; i++) {
            const uint32_t chain = random() % CHAINS;
            const int percent = shares[random() % 8];
            uint32_t *word = words.data + chain;
            if (random() % 8 == 0) {
                CHECK(acs_memset(context, word, (int)(i & 255), 4) != 0);
                truth[chain] = 0x01010101u * (i & 255);
                continue;
            }
            CHECK(launch_mix_on(context, percent, word, i, random() % 4 ? 0 : 20000) != 0);
            truth[chain] = mix_word(truth[chain], 0, i);
        }
        CHECK_STATUS(acs_sync(context), ACS_OK);
        const std::vector<uint32_t> got = words.read();
        for (uint32_t c = 0; c < CHAINS; c++)
            CHECK_EQ(got[c], truth[c]);
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

static void disabled_context_keeps_order_across_shares()
{
    acs_options options = check_options();
    options.disable = 1;
    acs_context *context = check_open(&options);
    device_buffer<uint32_t> word(1);
    uint32_t truth = 0;
    for (uint32_t i = 0; i < 200; i++) {
        CHECK(launch_mix_on(context, (int)(i % 3) * 40, word.data, i, i % 16 ? 0 : 10000) != 0);
        truth = mix_word(truth, 0, i);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(word.first(), truth);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void every_share_at_once()
{
    acs_context *context = check_open_default();
    device_buffer<uint32_t> words(100);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 100; i++)
            CHECK(launch_mix_on(context, i + 1, words.data + i, (uint32_t)round, 5000) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    const uint32_t truth = mix_word(mix_word(mix_word(0, 0, 0), 0, 1), 0, 2);
    for (uint32_t word : words.read())
        CHECK_EQ(word, truth);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* Small kernels that go in bundles, each round of them behind one with a share, and that one behind them. */
static void bundles_run_beside_shares()
{
    acs_context *context = check_open_default();
    enum { WIDTH = 96, ROUNDS = 40 };
    device_buffer<uint32_t> words(WIDTH), all(WIDTH);
    std::vector<uint32_t> truth(WIDTH), sum(WIDTH);
    const uint32_t none = 0;
    for (uint32_t r = 0; r < ROUNDS; r++) {
        for (uint32_t i = 0; i < WIDTH; i++) {
            CHECK(launch_mix(context, words.data + i, i % 2 ? all.data + i : nullptr, 1, r * WIDTH + i, none) != 0);
            truth[i] = mix_word(truth[i], i % 2 ? sum[i] : 0, r * WIDTH + i);
        }
        const uint32_t *source = words.data;
        CHECK(ACS_LAUNCH_WITH(context, ACS_SHARE(r % 2 ? 30 : 60), mix_kernel, 1, 128, 0,
                              ACS_ARGS(all.data, source, (uint32_t)WIDTH, r, none),
                              ACS_USES(ACS_INOUT(all.data, WIDTH * 4), ACS_IN(source, WIDTH * 4))) != 0);
        for (uint32_t i = 0; i < WIDTH; i++)
            sum[i] = mix_word(sum[i], truth[i], r);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    const std::vector<uint32_t> got = words.read(), got_sum = all.read();
    for (uint32_t i = 0; i < WIDTH; i++) {
        CHECK_EQ(got[i], truth[i]);
        CHECK_EQ(got_sum[i], sum[i]);
    }
    const acs_statistics s = check_stats(context);
    printf("%llu kernels with a share, %llu bundles\n", (unsigned long long)s.shares, (unsigned long long)s.bundles);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static const char g_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                            ".visible .entry bump(.param .u64 to)\n{\n"
                            "    .reg .b64 %a;\n    .reg .b32 %w;\n"
                            "    ld.param.u64 %a, [to];\n    ld.global.u32 %w, [%a];\n"
                            "    add.u32 %w, %w, 1;\n    st.global.u32 [%a], %w;\n    ret;\n}\n";

template <class F> static F driver_function(const char *name)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<F>(function);
}

/* Of the kinds of handles one is of the primary context, and one of no context. */
static void bump_all(acs_context *context, const acs_kernel *kernel)
{
    device_buffer<uint32_t> word(1);
    uint32_t *to = word.data;
    for (int i = 0; i < 30; i++)
        CHECK(ACS_LAUNCH_WITH(context, ACS_SHARE(i % 2 ? 30 : 100), kernel, 1, 1, 0, ACS_ARGS(to),
                              ACS_USES(ACS_INOUT(to, 4))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_EQ(word.first(), 30);
}

static void handles_of_every_kind_run_with_a_share()
{
    const auto load = driver_function<CUresult (*)(CUmodule *, const void *)>("cuModuleLoadData");
    const auto get = driver_function<CUresult (*)(CUfunction *, CUmodule, const char *)>("cuModuleGetFunction");
    const auto unload = driver_function<CUresult (*)(CUmodule)>("cuModuleUnload");
    acs_context *context = check_open_default();
    CHECK_CUDA(cudaFree(NULL)); /* the primary context is current */
    CUmodule module;
    CUfunction function = NULL;
    CHECK_EQ(load(&module, g_ptx), CUDA_SUCCESS);
    CHECK_EQ(get(&function, module, "bump"), CUDA_SUCCESS);
    const acs_kernel by_function = {"bump", (const void *)function, NULL, ACS_KERNEL_CUFUNCTION, 0};
    bump_all(context, &by_function);
    CHECK_EQ(unload(module), CUDA_SUCCESS);

    cudaLibrary_t library;
    cudaKernel_t handle;
    CHECK_CUDA(cudaLibraryLoadData(&library, g_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CHECK_CUDA(cudaLibraryGetKernel(&handle, library, "bump"));
    const acs_kernel by_handle = {"bump", (const void *)handle, NULL, ACS_KERNEL_HANDLE, 0};
    bump_all(context, &by_handle);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaLibraryUnload(library));
}

static void foreign_stream_waits_for_a_kernel_with_a_share()
{
    acs_context *context = check_open_default();
    device_buffer<uint32_t> word(1);
    cudaStream_t stream;
    uint32_t truth = 0;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (uint32_t i = 0; i < 50; i++) {
        CHECK(launch_mix_on(context, 30, word.data, 2 * i, 20000) != 0);
        CHECK_STATUS(acs_stream_after(context, stream, ACS_USES(ACS_INOUT(word.data, 4))), ACS_OK);
        mix_kernel<<<1, 32, 0, stream>>>(word.data, nullptr, 1, 2 * i + 1, 20000);
        CHECK(acs_after_stream(context, stream, ACS_USES(ACS_INOUT(word.data, 4))) != 0);
        truth = mix_word(mix_word(truth, 0, 2 * i), 0, 2 * i + 1);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(word.first(), truth);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void contexts_give_back_what_shares_took()
{
    size_t least = 0, most = 0, total;
    for (int i = 0; i < 8; i++) {
        acs_context *context = check_open_default();
        device_buffer<uint32_t> words(8);
        for (int k = 0; k < 32; k++)
            CHECK(launch_mix_on(context, 10 + k % 4 * 20, words.data + k % 8, (uint32_t)k, 0) != 0);
        CHECK_STATUS(acs_sync(context), ACS_OK);
        CHECK_STATUS(acs_close(context), ACS_OK);
        size_t left;
        CHECK_CUDA(cudaMemGetInfo(&left, &total));
        printf("context %d: %.1f MiB free\n", i, (double)left / (1 << 20));
        most = i == 2 ? left : most; /* the first contexts warm the driver up */
        least = left;
    }
    CHECK(least + (64u << 20) > most);
    printf("%.1f MiB less free after five contexts\n", ((double)most - (double)least) / (1 << 20));
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(share_find_tells_parts_that_grow_with_the_share),
        CHECK_TEST(kernels_use_the_multiprocessors_of_their_share_alone),
        CHECK_TEST(order_is_kept_across_shares),
        CHECK_TEST(disabled_context_keeps_order_across_shares),
        CHECK_TEST(every_share_at_once),
        CHECK_TEST(bundles_run_beside_shares),
        CHECK_TEST(handles_of_every_kind_run_with_a_share),
        CHECK_TEST(foreign_stream_waits_for_a_kernel_with_a_share),
        CHECK_TEST(contexts_give_back_what_shares_took),
    };
    return CHECK_MAIN(argc, argv, tests);
}

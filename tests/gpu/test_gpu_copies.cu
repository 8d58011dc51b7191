/*
 * Small copies and fills on a GPU, which the library may issue as kernels of its own: all alignments and odd sizes, between
 * device and pinned memory, each way, compared byte for byte with what CUDA's own copies leave; also in chains with kernels,
 * by every way to issue. Whether copies become kernels is known from the statistics: where bundles are formed, they do.
 */
#include "kernels.cuh"

enum { BLOCK = 192 * 1024, KERNEL_MOST = 64 * 1024, GUARD = 64 };

static const size_t SIZES[] = {1,    2,    3,    4,    5,    7,    8,     15,    16,          17,          31,
                               33,   255,  256,  1000, 4095, 4096, 4097,  8191,  8192,        16383,       16400,
                               20001, 40000, 65535, KERNEL_MOST, KERNEL_MOST + 1};
static const size_t OFFSETS[] = {0, 1, 2, 4, 7, 8, 12, 15, 16};

/* Two blocks with known bytes, by ACS's allocator or CUDA's, and what they should hold. */
struct sides {
    unsigned char *dst = nullptr, *src = nullptr;
    std::vector<unsigned char> wanted, source;

    sides(bool dst_pinned, bool src_pinned) : wanted(BLOCK), source(BLOCK)
    {
        make(&dst, dst_pinned);
        make(&src, src_pinned);
        for (size_t i = 0; i < BLOCK; i++) {
            wanted[i] = static_cast<unsigned char>(i * 7 + (i >> 9));
            source[i] = static_cast<unsigned char>(i * 13 + (i >> 8) + 101);
        }
        CHECK_CUDA(cudaMemcpy(dst, wanted.data(), BLOCK, cudaMemcpyDefault));
        CHECK_CUDA(cudaMemcpy(src, source.data(), BLOCK, cudaMemcpyDefault));
        CHECK_CUDA(cudaDeviceSynchronize()); /* our streams do not wait for the legacy stream */
    }
    sides(const sides &) = delete;
    sides &operator=(const sides &) = delete;
    ~sides()
    {
        CHECK_CUDA(pinned[0] ? cudaFreeHost(dst) : cudaFree(dst));
        CHECK_CUDA(pinned[1] ? cudaFreeHost(src) : cudaFree(src));
    }
    void check(const char *what, size_t bytes, size_t to, size_t from)
    {
        std::vector<unsigned char> is(BLOCK);
        CHECK_CUDA(cudaMemcpy(is.data(), dst, BLOCK, cudaMemcpyDefault));
        size_t at = 0;
        while (at < BLOCK && is[at] == wanted[at])
            at++;
        if (at < BLOCK) {
            fprintf(stderr, "%s of %zu bytes to offset %zu from %zu: byte %zu is %u, not %u\n", what, bytes, to, from, at,
                    is[at], wanted[at]);
            g_check_failures++;
        }
    }

  private:
    bool pinned[2] = {};
    int made = 0;
    void make(unsigned char **block, bool host)
    {
        void *memory = nullptr;
        CHECK_CUDA(host ? cudaMallocHost(&memory, BLOCK) : cudaMalloc(&memory, BLOCK));
        *block = static_cast<unsigned char *>(memory);
        pinned[made++] = host;
    }
};

/* Whether this process forms bundles at all: not under compute-sanitizer, nor without device code. */
static bool forms_bundles()
{
    device_buffer<uint32_t> words(64);
    acs_options options = check_options();
    options.issue = ACS_ISSUE_REPLAY;
    acs_context *context = check_open(&options);
    for (uint32_t i = 0; i < 512; i++)
        CHECK(ACS_LAUNCH_ON(context, mix_kernel, 1, 1, 0, ACS_ARGS(words.data + i % 64, nullptr, 1, i, 1000),
                            ACS_USES(ACS_INOUT(words.data + i % 64, 4))) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    const acs_statistics stats = check_stats(context);
    const bool formed = stats.bundles + stats.bundles_refused > 0; /* a graph is built at the second sighting */
    CHECK_STATUS(acs_close(context), ACS_OK);
    return formed;
}

/* ---------------------------------------------------------------------------------------------------- one at a time */

/* Small copies are kernels where bundles are formed, but for the first ones: the library's device code comes later. */
static void check_as_kernels(const acs_statistics &stats, uint64_t small)
{
    CHECK(stats.copies_as_kernels <= (forms_bundles() ? small : 0));
    CHECK(!forms_bundles() || stats.copies_as_kernels > 0 || small < 300);
}

static void copies_leave_the_bytes_that_cuda_would()
{
    acs_context *context = check_open_default();
    uint64_t small = 0, all = 0;
    for (int way = 0; way < 4; way++) {
        sides s((way & 1) != 0, (way & 2) != 0);
        for (const size_t bytes : SIZES)
            for (const size_t to : OFFSETS)
                for (const size_t from : {size_t{0}, size_t{1}, size_t{4}, size_t{15}}) {
                    CHECK(acs_memcpy(context, s.dst + GUARD + to, s.src + GUARD + from, bytes) != 0);
                    CHECK_STATUS(acs_sync(context), ACS_OK);
                    memcpy(s.wanted.data() + GUARD + to, s.source.data() + GUARD + from, bytes);
                    s.check(way == 0 ? "a device copy" : "a copy", bytes, to, from);
                    small += bytes <= KERNEL_MOST;
                    all++;
                }
    }
    const acs_statistics stats = check_stats(context);
    CHECK_EQ(stats.copies, all);
    CHECK_EQ(stats.kernels, 0);
    check_as_kernels(stats, small);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

static void fills_leave_the_bytes_that_cuda_would()
{
    acs_context *context = check_open_default();
    uint64_t small = 0, all = 0;
    for (int pinned = 0; pinned < 2; pinned++) {
        sides s(pinned != 0, false);
        for (const size_t bytes : SIZES)
            for (const size_t to : OFFSETS) {
                const int value = static_cast<int>(bytes + to * 3 + 0x100);
                CHECK(acs_memset(context, s.dst + GUARD + to, value, bytes) != 0);
                CHECK_STATUS(acs_sync(context), ACS_OK);
                memset(s.wanted.data() + GUARD + to, value, bytes);
                s.check("a fill", bytes, to, 0);
                small += bytes <= KERNEL_MOST;
                all++;
            }
    }
    const acs_statistics stats = check_stats(context);
    CHECK_EQ(stats.fills, all);
    check_as_kernels(stats, small);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* Memory of a pool has no context of its own; managed and pageable memory stay with copies. */
static void other_memory_is_copied_too()
{
    const size_t bytes = 4096;
    std::vector<unsigned char> pageable(bytes, 3);
    unsigned char *managed = nullptr, *pool = nullptr, *device = nullptr;
    acs_context *context = check_open_default();
    CHECK_CUDA(cudaMallocManaged(&managed, bytes));
    CHECK_CUDA(cudaMallocAsync(&pool, bytes, cudaStreamLegacy));
    CHECK_CUDA(cudaMalloc(&device, bytes));
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK(acs_memcpy(context, pool, pageable.data(), bytes) != 0);
    CHECK(acs_memcpy(context, device, pool, bytes) != 0);
    CHECK(acs_memcpy(context, managed, device, bytes) != 0);
    CHECK(acs_memset(context, managed, 9, 16) != 0);
    CHECK(acs_memcpy(context, pageable.data() + 1, managed, 32) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    for (size_t i = 0; i < bytes; i++)
        CHECK_EQ(pageable[i], i >= 1 && i < 17 ? 9 : 3);
    CHECK(check_stats(context).copies_as_kernels <= 1); /* device from pool, where the driver tells its bounds */
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFree(managed));
    CHECK_CUDA(cudaFree(pool));
    CHECK_CUDA(cudaFree(device));
}

/* -------------------------------------------------------------------------------------------------- among kernels */

/* A kernel, its result to the host, on to the device, and a kernel again: as programs that read counts do. */
static void copies_between_kernels_keep_their_order_by_every_way_to_issue()
{
    enum { CHAINS = 16, STEPS = 300, WORDS = 33 };
    const bool bundles = forms_bundles();
    for (const int issue : {ACS_ISSUE_AUTO, ACS_ISSUE_LAUNCH, ACS_ISSUE_REPLAY}) {
        device_buffer<uint32_t> words(CHAINS * WORDS), back(CHAINS * WORDS);
        std::vector<uint32_t> truth(CHAINS * WORDS), returned(CHAINS * WORDS);
        acs_options options = check_options();
        options.issue = issue;
        acs_context *context = check_open(&options);
        void *memory = nullptr;
        CHECK_STATUS(acs_malloc(context, CHAINS * WORDS * 4, ACS_MEMORY_HOST, &memory), ACS_OK);
        uint32_t *host = static_cast<uint32_t *>(memory);
        memset(host, 0, CHAINS * WORDS * 4);
        for (uint32_t step = 0; step < STEPS; step++)
            for (uint32_t chain = 0; chain < CHAINS; chain++) {
                const uint32_t at = chain * WORDS;
                CHECK(ACS_LAUNCH_ON(context, mix_kernel, 1, 64, 0,
                                    ACS_ARGS(words.data + at, back.data + at, WORDS, step, chain % 4 ? 0 : 2000),
                                    ACS_USES(ACS_INOUT(words.data + at, WORDS * 4),
                                             ACS_IN(back.data + at, WORDS * 4))) != 0);
                CHECK(acs_memcpy(context, host + at, words.data + at, WORDS * 4) != 0);
                CHECK(acs_memcpy(context, back.data + at, host + at, WORDS * 4) != 0);
                if (step % 16 == 7)
                    CHECK(acs_memset(context, back.data + at + 1, static_cast<int>(step), 40) != 0);
                for (uint32_t i = at; i < at + WORDS; i++)
                    returned[i] = truth[i] = mix_word(truth[i], returned[i], step);
                if (step % 16 == 7)
                    memset(&returned[at + 1], static_cast<int>(step), 40);
            }
        CHECK_STATUS(acs_sync(context), ACS_OK);
        CHECK(memcmp(host, truth.data(), CHAINS * WORDS * 4) == 0);
        CHECK(words.read() == truth);
        CHECK(back.read() == returned);
        const acs_statistics stats = check_stats(context);
        CHECK_EQ(stats.copies, 2 * CHAINS * STEPS);
        CHECK_EQ(stats.kernels, CHAINS * STEPS);
        const uint64_t small = bundles && issue != ACS_ISSUE_LAUNCH ? stats.copies + stats.fills : 0;
        if (issue == ACS_ISSUE_AUTO) /* the first ones come before the library's device code */
            CHECK(stats.copies_as_kernels <= small);
        else
            CHECK_EQ(stats.copies_as_kernels, small);
        CHECK(acs_free(context, host) != 0);
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

/* CUDA refuses such a copy; a kernel would have taken the device with it. */
static void copy_beyond_its_allocation_fails_by_itself()
{
    device_buffer<uint32_t> word(1024);
    unsigned char *small = nullptr;
    acs_context *context = check_open_default();
    CHECK_CUDA(cudaMalloc(&small, 256));
    CHECK(acs_memcpy(context, word.data, small, 4096) != 0);
    (void)acs_sync(context); /* an error where the driver looks at bounds; never a lost device */
    CHECK_EQ(check_stats(context).copies_as_kernels, 0);
    CHECK_STATUS(acs_clear(context), ACS_OK);
    CHECK(acs_memcpy(context, word.data, small, 256) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFree(small));
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(copies_leave_the_bytes_that_cuda_would),
        CHECK_TEST(fills_leave_the_bytes_that_cuda_would),
        CHECK_TEST(other_memory_is_copied_too),
        CHECK_TEST(copies_between_kernels_keep_their_order_by_every_way_to_issue),
        CHECK_TEST(copy_beyond_its_allocation_fails_by_itself),
    };
    return CHECK_MAIN(argc, argv, tests);
}

/*
 * The resident executor on a GPU: bodies of several sizes give what launches give, in any DAG; what does not fit goes in
 * other ways; waits inside a bundle, and other kernels beside it, do not wait for its end.
 */
#include "kernels.cuh"

#include <acs_resident.cuh>

#include <random>
#include <string>

#include <unistd.h>

namespace {

enum { WORDS = 2048, BUFFERS = 24, SHARED_BYTES = 8192, THREADS = 256 };

ACS_RESIDENT(mix, uint32_t *, dst, const uint32_t *, src, uint32_t, words, uint32_t, salt, uint32_t, delay_ns)
{
    delay(delay_ns);
    const uint32_t step = block.grid().x * block.size().x;
    for (uint32_t i = block.index().x * block.size().x + block.thread().x; i < words; i += step)
        dst[i] = mix_word(dst[i], src[i], salt);
}

/* The same with parameters that have gaps between them, blocks and grids of three dimensions, and a barrier. */
ACS_RESIDENT(cube, uint8_t, salt, uint32_t *, dst, uint16_t, words, const uint32_t *, src)
{
    const uint3 b = block.index(), t = block.thread();
    const dim3 grid = block.grid(), size = block.size();
    const uint32_t threads = size.x * size.y * size.z, own = (t.z * size.y + t.y) * size.x + t.x;
    const uint32_t number = (b.z * grid.y + b.y) * grid.x + b.x, blocks = grid.x * grid.y * grid.z;
    __shared__ uint32_t sum;
    if (own == 0)
        sum = 0;
    block.sync();
    atomicAdd(&sum, 1);
    block.sync();
    for (uint32_t i = number * threads + own; i < words; i += blocks * threads)
        dst[i] = mix_word(dst[i], src[i], salt + (sum - threads));
}

/* Each block turns its part around in dynamic shared memory. */
ACS_RESIDENT(turn, uint32_t *, dst, uint32_t, part)
{
    uint32_t *own = block.template shared<uint32_t>();
    uint32_t *at = dst + block.index().x * part;
    for (uint32_t i = block.thread().x; i < part; i += block.size().x)
        own[i] = at[i];
    block.sync();
    for (uint32_t i = block.thread().x; i < part; i += block.size().x)
        at[i] = own[part - 1 - i];
}

ACS_RESIDENT(wait_flag, volatile uint32_t *, flag, uint32_t *, dst)
{
    const uint64_t end = now_ns() + 20000000000ull; /* a broken test shall end */
    while (*flag == 0 && now_ns() < end) {
    }
    if (block.thread().x == 0)
        *dst += 1;
}

ACS_RESIDENT(nothing)
{
}

/* It has no body. */
__global__ void apart(uint32_t *dst, uint32_t salt)
{
    for (uint32_t i = threadIdx.x; i < WORDS; i += blockDim.x)
        dst[i] = mix_word(dst[i], 0, salt);
}

ACS_EXECUTOR(bodies, THREADS, SHARED_BYTES, ACS_BODY(mix), ACS_BODY(cube), ACS_BODY(turn), ACS_BODY(wait_flag),
             ACS_BODY(nothing))
ACS_EXECUTOR(large, 64, 64 * 1024, ACS_BODY(turn))

acs_options resident_options()
{
    acs_options options = check_options();
    options.issue = ACS_ISSUE_RESIDENT;
    options.repeats = ACS_REPEATS_NAMED;
    options.window = 1024;
    return options;
}

acs_context *open_resident(const acs_options &options)
{
    acs_context *context = check_open(&options);
    CHECK_STATUS(acs_executor_add(context, bodies()), ACS_OK);
    return context;
}

/* What is in the buffers, on the GPU and as it should be. */
struct world {
    device_buffer<uint32_t> memory{static_cast<size_t>(BUFFERS) * WORDS};
    std::vector<uint32_t> wanted = std::vector<uint32_t>(static_cast<size_t>(BUFFERS) * WORDS, 0);

    uint32_t *on_gpu(uint32_t buffer) { return memory.data + static_cast<size_t>(buffer) * WORDS; }
    uint32_t *on_cpu(uint32_t buffer) { return wanted.data() + static_cast<size_t>(buffer) * WORDS; }
    void mix_on_cpu(uint32_t to, uint32_t from, uint32_t salt)
    {
        for (uint32_t i = 0; i < WORDS; i++)
            on_cpu(to)[i] = mix_word(on_cpu(to)[i], from < BUFFERS ? on_cpu(from)[i] : 0, salt);
    }
    void turn_on_cpu(uint32_t to, uint32_t part)
    {
        for (uint32_t b = 0; b < WORDS / part; b++)
            for (uint32_t i = 0; i < part / 2; i++)
                std::swap(on_cpu(to)[b * part + i], on_cpu(to)[b * part + part - 1 - i]);
    }
    void compare() { CHECK(memory.read() == wanted); }
};

const uint64_t BYTES = WORDS * sizeof(uint32_t);

acs_op queue_mix(acs_context *context, world &w, uint32_t to, uint32_t from, uint32_t grid, uint32_t block, uint32_t salt,
                 uint32_t delay_ns = 0)
{
    w.mix_on_cpu(to, from, salt);
    return ACS_LAUNCH_ON(context, mix, grid, block, 0, ACS_ARGS(w.on_gpu(to), w.on_gpu(from), WORDS, salt, delay_ns),
                         ACS_USES(ACS_INOUT(w.on_gpu(to), BYTES), ACS_IN(w.on_gpu(from), BYTES)));
}

acs_op queue_cube(acs_context *context, world &w, uint32_t to, uint32_t from, dim3 grid, dim3 block, uint8_t salt)
{
    w.mix_on_cpu(to, from, salt);
    return ACS_LAUNCH_ON(context, cube, grid, block, 0, ACS_ARGS(salt, w.on_gpu(to), WORDS, w.on_gpu(from)),
                         ACS_USES(ACS_INOUT(w.on_gpu(to), BYTES), ACS_IN(w.on_gpu(from), BYTES)));
}

acs_op queue_turn(acs_context *context, world &w, uint32_t to, uint32_t part, uint32_t block, uint64_t shared_bytes)
{
    w.turn_on_cpu(to, part);
    return ACS_LAUNCH_ON(context, turn, WORDS / part, block, shared_bytes, ACS_ARGS(w.on_gpu(to), part),
                         ACS_USES(ACS_INOUT(w.on_gpu(to), BYTES)));
}

void queue_any(acs_context *context, world &w, std::mt19937 &dice)
{
    static const uint32_t grids[] = {1, 2, 4, 8, 9, 40}, blocks[] = {32, 64, 128, 256};
    const uint32_t to = dice() % BUFFERS, from = (to + 1 + dice() % (BUFFERS - 1)) % BUFFERS, salt = dice() % 251;
    switch (dice() % 5) {
    case 0:
        (void)queue_cube(context, w, to, from, dim3(1 + dice() % 3, 1 + dice() % 3, 1 + dice() % 2), dim3(4, 4, 2),
                         static_cast<uint8_t>(salt));
        break;
    case 1: {
        const uint32_t part = 64u << dice() % 5;
        (void)queue_turn(context, w, to, part, blocks[dice() % 4], part * sizeof(uint32_t));
        break;
    }
    case 2:
        if (dice() % 2 == 0) {
            const uint32_t first = dice() % 7, words = 1 + dice() % (WORDS - 16);
            memcpy(w.on_cpu(to) + first, w.on_cpu(from) + (first + salt % 3), words * sizeof(uint32_t));
            CHECK(acs_memcpy(context, w.on_gpu(to) + first, w.on_gpu(from) + (first + salt % 3), words * 4) != 0);
        } else {
            const uint32_t bytes = 1 + dice() % (BYTES - 64), at = dice() % 64;
            memset(reinterpret_cast<unsigned char *>(w.on_cpu(to)) + at, static_cast<int>(salt), bytes);
            unsigned char *const from_here = reinterpret_cast<unsigned char *>(w.on_gpu(to)) + at;
            CHECK(acs_memset(context, from_here, static_cast<int>(salt), bytes) != 0);
        }
        break;
    default:
        (void)queue_mix(context, w, to, from, grids[dice() % 6], blocks[dice() % 4], salt, dice() % 8 ? 0 : dice() % 20000);
    }
}

void random_dags_are_as_in_program_order()
{
    for (uint32_t seed = 1; seed <= 12; seed++) {
        world w;
        std::mt19937 dice(seed);
        acs_options options = resident_options();
        options.window = seed % 3 ? 1024 : 64;
        options.streams = seed % 4 ? 64 : 1;
        acs_context *context = open_resident(options);
        for (uint32_t i = 0; i < 2000; i++) {
            queue_any(context, w, dice);
            if (dice() % 300 == 0)
                CHECK_STATUS(acs_sync(context), ACS_OK);
        }
        CHECK_STATUS(acs_sync(context), ACS_OK);
        w.compare();
        const acs_statistics stats = check_stats(context);
        CHECK(stats.issued_by[ACS_ISSUE_RESIDENT] >= 1000);
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

/* Readers that a writer follows, again and again: the window makes joins of them. */
void many_readers_are_joined()
{
    world w;
    acs_context *context = open_resident(resident_options());
    for (uint32_t round = 0; round < 60; round++) {
        for (uint32_t to = 1; to < BUFFERS; to++)
            (void)queue_mix(context, w, to, 0, 1 + round % 12, 64, round);
        (void)queue_mix(context, w, 0, 1 + round % (BUFFERS - 1), 4, 128, round);
        (void)queue_mix(context, w, 0, 1 + (round + 7) % (BUFFERS - 1), 1, 32, round + 100);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    w.compare();
    CHECK(check_stats(context).issued_by[ACS_ISSUE_RESIDENT] > 0);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

void a_chain_of_grids_larger_than_the_device()
{
    world w;
    acs_context *context = open_resident(resident_options());
    for (uint32_t i = 0; i < 60; i++) {
        (void)queue_mix(context, w, i % 3, (i + 1) % 3, i % 2 ? 4000 : 1, 256, i);
        CHECK(ACS_LAUNCH_ON(context, nothing, 1, 32, 0, ACS_NO_ARGS, ACS_USES_NONE) != 0);
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    w.compare();
    CHECK_STATUS(acs_close(context), ACS_OK);
}

void what_does_not_fit_goes_in_other_ways()
{
    world w;
    acs_context *context = open_resident(resident_options());
    for (uint32_t i = 0; i < 200; i++) {
        (void)queue_mix(context, w, i % 8, 8 + i % 8, 4, i % 5 == 0 ? 512 : 100, i); /* too large; not whole warps */
        if (i % 7 == 0) {
            (void)queue_turn(context, w, i % 8, WORDS, 64, 2 * SHARED_BYTES);
            w.mix_on_cpu(i % 8, BUFFERS, i);
            CHECK(ACS_LAUNCH_ON(context, apart, 1, 64, 0, ACS_ARGS(w.on_gpu(i % 8), i),
                                ACS_USES(ACS_INOUT(w.on_gpu(i % 8), BYTES))) != 0);
        }
    }
    CHECK_STATUS(acs_sync(context), ACS_OK);
    w.compare();
    const acs_statistics stats = check_stats(context);
    CHECK_EQ(stats.issued_by[ACS_ISSUE_RESIDENT], 0);
    CHECK_EQ(stats.issued_by[ACS_ISSUE_LAUNCH], stats.kernels);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* The last executor that has a body for a kernel runs it; shared memory above 48 KiB is opted in to. */
void shared_memory_up_to_what_was_declared()
{
    world w;
    acs_context *context = open_resident(resident_options());
    CHECK_STATUS(acs_executor_add(context, large()), ACS_OK);
    for (uint32_t i = 0; i < 64; i++)
        (void)queue_turn(context, w, i % 16, WORDS >> i % 3, 64, 60 * 1024);
    CHECK_STATUS(acs_sync(context), ACS_OK); /* a bundle has ops of one executor */
    for (uint32_t i = 0; i < 16; i++)
        (void)queue_mix(context, w, i, 16 + i % 8, 3, 64, i);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    w.compare();
    CHECK(check_stats(context).issued_by[ACS_ISSUE_RESIDENT] >= 78); /* the first into an idle runtime is launched */
    CHECK_STATUS(acs_close(context), ACS_OK);
}

/* A bundle one of whose ops waits for the host: the ops before it end, and kernels of other streams run. */
void nobody_waits_for_the_end_of_a_bundle()
{
    world w;
    device_buffer<uint32_t> counts(2);
    volatile uint32_t *flag = nullptr;
    CHECK_CUDA(cudaHostAlloc(reinterpret_cast<void **>(const_cast<uint32_t **>(&flag)), 4, cudaHostAllocDefault));
    *flag = 0;
    cudaStream_t own;
    CHECK_CUDA(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    acs_context *context = open_resident(resident_options());
    acs_op early = 0;
    for (uint32_t i = 0; i < 32; i++) {
        const acs_op op = queue_mix(context, w, i % 2, 2 + i % 2, 4, 128, i);
        early = i == 15 ? op : early;
    }
    const acs_op held = ACS_LAUNCH_ON(context, wait_flag, 1, 32, 0, ACS_ARGS(flag, counts.data),
                                      ACS_USES(ACS_INOUT(counts.data, 4), ACS_INOUT(w.on_gpu(0), BYTES)));
    for (uint32_t i = 0; i < 32; i++)
        (void)queue_mix(context, w, i % 2, 2 + i % 2, 4, 128, i);
    CHECK_STATUS(acs_wait(context, early), ACS_OK);
    mix_kernel<<<264, 256, 0, own>>>(w.on_gpu(20), w.on_gpu(21), WORDS, 5, 0);
    CHECK_CUDA(cudaStreamSynchronize(own));
    w.mix_on_cpu(20, 21, 5);
    CHECK_EQ(*flag, 0);
    *flag = 1;
    CHECK_STATUS(acs_wait(context, held), ACS_OK);
    CHECK_STATUS(acs_sync(context), ACS_OK);
    w.compare();
    CHECK_EQ(counts.first(), 1);
    CHECK(check_stats(context).issued_by[ACS_ISSUE_RESIDENT] >= 33);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaStreamDestroy(own));
    CHECK_CUDA(cudaFreeHost(const_cast<uint32_t *>(flag)));
}

/*
 * With auto, bundles whose kernels all have bodies go to the executor. The window is full of such ops when their turn
 * comes: a held kernel keeps them waiting.
 */
void auto_takes_it_where_there_are_bodies()
{
    world w;
    std::mt19937 dice(5);
    device_buffer<uint32_t> counts(1);
    volatile uint32_t *flag = nullptr;
    CHECK_CUDA(cudaHostAlloc(reinterpret_cast<void **>(const_cast<uint32_t **>(&flag)), 4, cudaHostAllocDefault));
    acs_options options = resident_options();
    options.issue = ACS_ISSUE_AUTO;
    acs_context *context = open_resident(options);
    for (uint32_t round = 0; round < 30; round++) {
        *flag = 0;
        (void)ACS_LAUNCH_ON(context, wait_flag, 1, 32, 0, ACS_ARGS(flag, counts.data),
                            ACS_USES(ACS_INOUT(counts.data, 4), ACS_INOUT(w.memory.data, BUFFERS * BYTES)));
        for (uint32_t i = 0; i < 500; i++) {
            const uint32_t to = dice() % BUFFERS, from = (to + 1 + dice() % (BUFFERS - 1)) % BUFFERS;
            (void)queue_mix(context, w, to, from, 2, 128, i);
        }
        *flag = 1;
        CHECK_STATUS(acs_sync(context), ACS_OK);
    }
    w.compare();
    const acs_statistics stats = check_stats(context);
    printf("  by launch %llu, replay %llu, resident %llu\n",
           static_cast<unsigned long long>(stats.issued_by[ACS_ISSUE_LAUNCH]),
           static_cast<unsigned long long>(stats.issued_by[ACS_ISSUE_REPLAY]),
           static_cast<unsigned long long>(stats.issued_by[ACS_ISSUE_RESIDENT]));
    CHECK(stats.issued_by[ACS_ISSUE_RESIDENT] >= 5000);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_CUDA(cudaFreeHost(const_cast<uint32_t *>(flag)));
}

void wrong_executors_are_refused()
{
    acs_context *context = check_open_default();
    acs_executor_params p = *bodies();
    const acs_kernel none = {nullptr, nullptr, nullptr, ACS_KERNEL_FUNCTION, 0};
    CHECK_STATUS(acs_executor_add(context, nullptr), ACS_ERR_ARGUMENT);
    p.layout++;
    CHECK_STATUS(acs_executor_add(context, &p), ACS_ERR_UNSUPPORTED);
    p = *bodies();
    p.threads = 100;
    CHECK_STATUS(acs_executor_add(context, &p), ACS_ERR_ARGUMENT);
    p.threads = 1024; /* more than it was compiled for */
    CHECK_STATUS(acs_executor_add(context, &p), ACS_ERR_ARGUMENT);
    p = *bodies();
    p.count--;
    CHECK_STATUS(acs_executor_add(context, &p), ACS_ERR_ARGUMENT);
    p = *bodies();
    p.shared_bytes = 1 << 20;
    CHECK_STATUS(acs_executor_add(context, &p), ACS_ERR_ARGUMENT);
    p = *bodies();
    p.executor = none;
    CHECK_STATUS(acs_executor_add(context, &p), ACS_ERR_ARGUMENT);
    CHECK_STATUS(acs_executor_add(context, bodies()), ACS_OK);
    CHECK_STATUS(acs_close(context), ACS_OK);
    CHECK_STATUS(acs_executor_add(context, bodies()), ACS_ERR_STATE);
}

} // namespace

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        CHECK_TEST(random_dags_are_as_in_program_order),
        CHECK_TEST(many_readers_are_joined),
        CHECK_TEST(a_chain_of_grids_larger_than_the_device),
        CHECK_TEST(what_does_not_fit_goes_in_other_ways),
        CHECK_TEST(shared_memory_up_to_what_was_declared),
        CHECK_TEST(nobody_waits_for_the_end_of_a_bundle),
        CHECK_TEST(auto_takes_it_where_there_are_bodies),
        CHECK_TEST(wrong_executors_are_refused),
    };
    return CHECK_MAIN(argc, argv, tests);
}

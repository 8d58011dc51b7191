/*
 * ACS_CHECK=reads and all on a GPU: planted wrong footprints are found and located, right ones are not; on memory of
 * acs_malloc and on registered memory of cudaMalloc, with grids that the GPU reads.
 */
#include "kernels.cuh"

#include <string>

#define READS "reads bytes outside its footprint"

enum { ITEMS = 4096, USED = 3000 };

static __global__ void update_kernel(const float *x, float *y, float *z)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= USED)
        return;
    y[i] = 2 * x[i] + z[i];
    z[i] += x[i] + 1;
}

static __global__ void count_kernel(const uint32_t *values, uint32_t *sum)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < USED)
        atomicAdd(&sum[values[i] % 16], values[i]);
}

struct arrays {
    float *x, *y, *z;
    uint32_t *values, *sum, *items;
};

static acs_context *open_checking(int check)
{
    acs_options options = CHECK_ZERO;
    acs_context *context = nullptr;
    CHECK_STATUS(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_CUDA;
    options.check = check;
    CHECK_STATUS(acs_open(&options, &context), ACS_OK);
    return context;
}

static void fill(acs_context *context, const arrays &a)
{
    std::vector<float> floats(ITEMS);
    std::vector<uint32_t> words(ITEMS);
    const uint32_t items = USED;
    for (uint32_t i = 0; i < ITEMS; i++) {
        floats[i] = 1 + 0.25f * static_cast<float>(i);
        words[i] = i * 7 + 2;
    }
    for (float *to : {a.x, a.y, a.z})
        CHECK(acs_memcpy(context, to, floats.data(), ITEMS * 4) != 0);
    CHECK(acs_memcpy(context, a.values, words.data(), ITEMS * 4) != 0);
    CHECK(acs_memcpy(context, a.sum, words.data(), 64) != 0);
    CHECK(acs_memcpy(context, a.items, &items, 4) != 0);
    CHECK_STATUS(acs_sync(context), ACS_OK);
}

/* The launches were right (says NULL), or the error says so. */
static void check_found(acs_context *context, const char *says)
{
    acs_error error = CHECK_ZERO;
    error.size = sizeof error;
    CHECK_STATUS(acs_sync(context), says ? ACS_ERR_CHECK : ACS_OK);
    if (says && (acs_context_error(context, &error) != ACS_ERR_CHECK || !strstr(error.text, says))) {
        fprintf(stderr, "'%s' is not in '%s'\n", says, error.text);
        g_check_failures++;
    }
    CHECK_STATUS(acs_clear(context), ACS_OK);
}

static void launch_all(acs_context *context, const arrays &a)
{
    const size_t bytes = USED * sizeof(float);
    const acs_segment x = ACS_IN(a.x, bytes), y = ACS_OUT(a.y, bytes), z = ACS_INOUT(a.z, bytes);
    const acs_segment values = ACS_IN(a.values, bytes), sum = ACS_INOUTSET(a.sum, 64);
    const struct {
        std::vector<acs_segment> segments;
        const char *says;
    } updates[] = {
        {{x, y, z}, nullptr},
        {{y, z}, READS ", from 'a.x' on, within 12000 bytes"},
        {{x, z}, "changed 12000 bytes outside its footprint, from 'a.y' on, in "},
        {{ACS_IN(a.x, bytes - 4), y, z},
         READS " (segment 0 has 11996 bytes, found 12000), from 'a.x' + 11996 bytes on, within 4 bytes"},
        {{ACS_IN(a.x, USED), y, z},
         READS " (segment 0 has 3000 bytes, found 12000), from 'a.x' + 3000 bytes on, within 9000 bytes"},
        {{x, y, ACS_OUT(a.z, bytes)}, "reads old bytes among all 12000 bytes of segment 2, which is out"},
        {{x, ACS_OUT(a.y + 1, bytes), z}, "footprint (segment 1 starts 4 bytes too late), from 'a.y' on, in "},
        {{x, ACS_OUT(a.y, bytes + 4), z}, "did not write 4 of 12004 bytes of segment 1, which is out"},
        {{x, y, ACS_IN(a.z, bytes)}, "bytes of segment 2, which is in"},
    };
    for (const auto &u : updates)
        for (int decided = 0; decided < 2; decided++) {
            if (decided && u.says && strstr(u.says, "which is out"))
                continue; /* such ops may not run, so what is out is inout for them */
            fill(context, a);
            if (decided)
                CHECK(ACS_LAUNCH_ON(context, update_kernel, ACS_GRID_FOR(a.items, 256, 16), 256, 0, ACS_ARGS(a.x, a.y, a.z),
                                    ACS_USES_LIST(u.segments.data(), u.segments.size())) != 0);
            else
                CHECK(ACS_LAUNCH_ON(context, update_kernel, 12, 256, 0, ACS_ARGS(a.x, a.y, a.z),
                                    ACS_USES_LIST(u.segments.data(), u.segments.size())) != 0);
            check_found(context, u.says);
        }
    fill(context, a);
    CHECK(ACS_LAUNCH_ON(context, count_kernel, 12, 256, 0, ACS_ARGS(a.values, a.sum), ACS_USES(values, sum)) != 0);
    check_found(context, nullptr);
    CHECK(ACS_LAUNCH_ON(context, count_kernel, 12, 256, 0, ACS_ARGS(a.values, a.sum), ACS_USES(sum)) != 0);
    check_found(context, READS ", from 'a.values' on, within 12000 bytes");
}

template <class T> static T *block_of(acs_context *context, size_t items)
{
    void *block = nullptr;
    CHECK_STATUS(acs_malloc(context, items * sizeof(T), ACS_MEMORY_DEVICE, &block), ACS_OK);
    return static_cast<T *>(block);
}

static void mistakes_in_blocks_are_found()
{
    for (const int check : {ACS_CHECK_READS, ACS_CHECK_ALL}) {
        acs_context *context = open_checking(check);
        const arrays a = {block_of<float>(context, ITEMS),    block_of<float>(context, ITEMS),
                          block_of<float>(context, ITEMS),    block_of<uint32_t>(context, ITEMS),
                          block_of<uint32_t>(context, 16), block_of<uint32_t>(context, 1)};
        launch_all(context, a);
        CHECK_STATUS(acs_close(context), ACS_OK);
    }
}

static void mistakes_in_registered_memory_are_found()
{
    acs_context *context = open_checking(ACS_CHECK_READS);
    device_buffer<float> x(ITEMS), y(ITEMS), z(ITEMS);
    device_buffer<uint32_t> values(ITEMS), sum(16), items(1);
    const arrays a = {x.data, y.data, z.data, values.data, sum.data, items.data};
    for (const float *memory : {a.x, a.y, a.z})
        CHECK_STATUS(acs_check_register(context, memory, ITEMS * sizeof *memory), ACS_OK);
    CHECK_STATUS(acs_check_register(context, a.values, ITEMS * sizeof *a.values), ACS_OK);
    launch_all(context, a);
    CHECK_STATUS(acs_check_unregister(context, a.values), ACS_OK);
    CHECK_STATUS(acs_check_unregister(context, a.values), ACS_ERR_ARGUMENT);
    CHECK_STATUS(acs_close(context), ACS_OK);
}

int main(int argc, char **argv)
{
    const check_test tests[] = {
        CHECK_TEST(mistakes_in_blocks_are_found),
        CHECK_TEST(mistakes_in_registered_memory_are_found),
    };
    return CHECK_MAIN(argc, argv, tests);
}

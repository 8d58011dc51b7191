/*
 * Small copies and fills as kernels, over the twin: which of them become kernels, that the bytes are the same either
 * way, and that the statistics count what the program asked for.
 */
#include "backend_cuda.h"

#include "acs.h"
#include "cuda/graphs/graphs.h"

#include <string.h>

enum { BLOCK = 160 * 1024, MOST = 64 * 1024 };

static unsigned char *g_device, *g_pinned;

static unsigned char *block_new(int memory)
{
    void *block = NULL;
    assert_int_equal(g_backend->ops->memory_alloc(g_backend, memory, BLOCK, &block), ACS_OK);
    for (size_t i = 0; i < BLOCK; i++)
        ((unsigned char *)block)[i] = (unsigned char)(i * 131 >> 3);
    return block;
}

static int setup(void **state)
{
    if (backend_setup(state) != 0)
        return -1;
    g_device = block_new(ACS_MEMORY_DEVICE);
    g_pinned = block_new(ACS_MEMORY_HOST);
    return 0;
}

static int teardown(void **state)
{
    twin_run_all();
    (void)g_backend->ops->memory_free(g_backend, ACS_MEMORY_DEVICE, g_device);
    (void)g_backend->ops->memory_free(g_backend, ACS_MEMORY_HOST, g_pinned);
    return backend_teardown(state);
}

static acs_record *rows_new(void *dst, const void *src, size_t bytes, uint32_t rows, size_t pitch)
{
    acs_record *op = record_new(ACS_KIND_MEMCPY);
    op->u.copy.dst = dst;
    op->u.copy.src = src;
    op->u.copy.bytes = bytes;
    op->u.copy.rows = rows;
    op->u.copy.pitch = pitch;
    return op;
}

static acs_record *copy_new(void *dst, const void *src, size_t bytes)
{
    acs_record *op = rows_new(dst, src, bytes, 1, 0);
    g_backend->ops->adapt(g_backend, op);
    return op;
}

static acs_record *fill_new(void *dst, int value, size_t bytes)
{
    acs_record *op = record_new(ACS_KIND_MEMSET);
    op->u.copy.dst = dst;
    op->u.copy.bytes = bytes;
    op->u.copy.rows = 1;
    op->u.copy.value = value;
    g_backend->ops->adapt(g_backend, op);
    return op;
}

/* What was not turned into a kernel is as it was. */
static void assert_stays(const acs_record *op, acs_op_kind kind, const void *dst, const void *src, size_t bytes)
{
    assert_int_equal(op->kind, kind);
    assert_int_equal(op->arg_count, 0);
    assert_ptr_equal(op->u.copy.dst, dst);
    assert_ptr_equal(op->u.copy.src, src);
    assert_int_equal(op->u.copy.bytes, bytes);
}

static void assert_copy_stays(void *dst, const void *src, size_t bytes)
{
    g_records_used = 0;
    assert_stays(copy_new(dst, src, bytes), ACS_KIND_MEMCPY, dst, src, bytes);
}

static void assert_becomes(const acs_record *op)
{
    assert_int_equal(op->kind, ACS_KIND_KERNEL);
    assert_int_not_equal(op->type, 0);
    assert_non_null(op->u.launch.resolved);
}

static void run(acs_record *op)
{
    batch_clear();
    item_new(op, 0);
    submit();
    assert_int_equal(g_batch.items[0].status, ACS_OK);
    assert_string_equal(twin_log(), "launch 0;");
    twin_run_all();
}

/* ---------------------------------------------------------------------------------------------------- which of them */

static void small_copies_of_known_memory_become_kernels_with_the_same_bytes(void **state)
{
    static const size_t sizes[] = {1, 3, 4, 16, 17, 255, 4096, 4097, 8192, 50001, MOST};
    static const size_t offsets[] = {0, 1, 4, 7, 16};
    unsigned char *blocks[] = {g_device, g_pinned};
    static unsigned char wanted[BLOCK];
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t o = 0; o < sizeof offsets / sizeof offsets[0]; o++)
            for (int way = 0; way < 4; way++) {
                unsigned char *dst = blocks[way / 2] + offsets[o], *src = blocks[way % 2] + BLOCK - MOST;
                g_records_used = 0;
                memcpy(wanted, blocks[way / 2], BLOCK);
                memcpy(wanted + offsets[o], src, sizes[i]);
                acs_record *op = copy_new(dst, src, sizes[i]);
                assert_becomes(op);
                run(op);
                assert_memory_equal(blocks[way / 2], wanted, BLOCK);
            }
}

static void copy_rows(unsigned char *dst, const unsigned char *src, size_t bytes, uint32_t rows, size_t pitch)
{
    for (uint32_t row = 0; row < rows; row++)
        memcpy(dst + row * pitch, src + row * pitch, bytes);
}

/* As a kernel where they are small and near, else as copies; what lies between the rows stays. */
static void rows_are_copied_and_nothing_between_them(void **state)
{
    static const struct {
        size_t bytes;
        uint32_t rows;
        size_t pitch;
    } shapes[] = {{1, 2, 2}, {3, 5, 7}, {16, 8, 32}, {4096, 4, 8192}, {5000, 3, 10001}};
    static unsigned char wanted[BLOCK];
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int kernel = 0; kernel < 2; kernel++) {
            g_records_used = 0;
            memset(g_device, 0x5a, BLOCK);
            memcpy(wanted, g_device, BLOCK);
            copy_rows(wanted + 1, g_pinned, shapes[i].bytes, shapes[i].rows, shapes[i].pitch);
            acs_record *op = rows_new(g_device + 1, g_pinned, shapes[i].bytes, shapes[i].rows, shapes[i].pitch);
            if (kernel) {
                g_backend->ops->adapt(g_backend, op);
                assert_becomes(op);
            }
            batch_clear();
            item_new(op, 0);
            submit();
            assert_int_equal(g_batch.items[0].status, ACS_OK);
            twin_run_all();
            (void)twin_log();
            assert_memory_equal(g_device, wanted, BLOCK);
        }
}

static void small_fills_become_kernels_with_the_same_bytes(void **state)
{
    static const size_t sizes[] = {1, 16, 4097, MOST};
    unsigned char *blocks[] = {g_device, g_pinned};
    static unsigned char wanted[BLOCK];
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int b = 0; b < 2; b++) {
            g_records_used = 0;
            memcpy(wanted, blocks[b], BLOCK);
            memset(wanted + 5, 0x1a5, sizes[i]);
            acs_record *op = fill_new(blocks[b] + 5, 0x1a5, sizes[i]);
            assert_becomes(op);
            run(op);
            assert_memory_equal(blocks[b], wanted, BLOCK);
        }
}

static void copies_that_are_large_empty_or_overlap_stay(void **state)
{
    (void)state;
    assert_copy_stays(g_device, g_pinned, MOST + 1);
    assert_copy_stays(g_device, g_pinned, 0);
    assert_copy_stays(g_device, g_device + 63, 64);
    assert_copy_stays(g_device + 63, g_device, 64);
    assert_becomes(copy_new(g_device + 64, g_device, 64));
    assert_stays(fill_new(g_device, 1, MOST + 1), ACS_KIND_MEMSET, g_device, NULL, MOST + 1);
}

/* Where a kernel would run out of its memory, and take the device with it, CUDA refuses the copy. */
static void ranges_beyond_their_allocation_stay(void **state)
{
    (void)state;
    assert_becomes(copy_new(g_device + BLOCK - 100, g_pinned, 100));
    assert_copy_stays(g_device + BLOCK - 100, g_pinned, 101);
    assert_copy_stays(g_device, g_pinned + BLOCK - 1, 2);
    assert_stays(fill_new(g_device + BLOCK - 8, 1, 9), ACS_KIND_MEMSET, g_device + BLOCK - 8, NULL, 9);
}

static void memory_that_kernels_may_not_reach_stays_with_copies(void **state)
{
    static const twin_trait traits[] = {TWIN_MANAGED, TWIN_MAPPED_ELSEWHERE, TWIN_OTHER_CONTEXT};
    static unsigned char pageable[64];
    CUdeviceptr other = 0;
    CUcontext popped;
    (void)state;
    assert_copy_stays(g_device, pageable, 64);
    assert_copy_stays(pageable, g_device, 64);
    assert_stays(fill_new(pageable, 1, 64), ACS_KIND_MEMSET, pageable, NULL, 64);
    for (size_t i = 0; i < sizeof traits / sizeof traits[0]; i++) {
        twin_block_is(g_device, traits[i]);
        assert_copy_stays(g_device, g_pinned, 64);
        assert_copy_stays(g_pinned, g_device + 5, 64);
        twin_block_is(g_device, TWIN_ORDINARY);
    }
    assert_int_equal(TWIN_GET(cuCtxPushCurrent, 4000)(twin_context(1)), CUDA_SUCCESS);
    assert_int_equal(TWIN_GET(cuMemAlloc, 3020)(&other, 64), CUDA_SUCCESS);
    assert_copy_stays((void *)(uintptr_t)other, g_device, 64);
    assert_copy_stays(g_device, (void *)(uintptr_t)other, 64);
    twin_block_is((void *)(uintptr_t)other, TWIN_OF_A_POOL);
    assert_copy_stays(g_device, (void *)(uintptr_t)other, 64);
    assert_int_equal(TWIN_GET(cuMemFree, 3020)(other), CUDA_SUCCESS);
    assert_int_equal(TWIN_GET(cuCtxPopCurrent, 4000)(&popped), CUDA_SUCCESS);
}

static void memory_of_a_pool_is_as_good_as_any(void **state)
{
    (void)state;
    twin_block_is(g_device, TWIN_OF_A_POOL);
    assert_becomes(copy_new(g_device, g_pinned, 64));
}

/* Memory may be freed and the address be another's: the driver is asked each time. */
static void what_the_driver_said_before_is_not_kept(void **state)
{
    (void)state;
    assert_becomes(copy_new(g_device, g_pinned, 64));
    twin_block_is(g_device, TWIN_MANAGED);
    assert_copy_stays(g_device, g_pinned, 64);
    twin_fail("cuPointerGetAttributes", CUDA_ERROR_INVALID_CONTEXT, 0, 1);
    twin_block_is(g_device, TWIN_ORDINARY);
    assert_copy_stays(g_device, g_pinned, 64);
    g_records_used = 0;
    assert_becomes(copy_new(g_device, g_pinned, 64)); /* the device is not taken for lost */
}

/* ------------------------------------------------------------------------------------------------------ where never */

static void assert_never(const acs_options *options)
{
    acs_backend_config config = {.devices = 1, .options = options, .slots = SLOTS, .mark_capacity = MARKS};
    acs_backend *first = g_backend;
    assert_int_equal(acs_backend_cuda.open(&config, &g_backend), ACS_OK);
    (void)acs_backend_cuda.decider(g_backend);
    assert_copy_stays(g_device, g_pinned, 64);
    g_backend->ops->close(g_backend);
    g_backend = first;
}

static void without_bundles_copies_stay(void **state)
{
    static const char *const missing[] = {"cuPointerGetAttributes", "cuLibraryLoadData"};
    acs_options options = {.graph_nodes = 16384};
    (void)state;
    options.serial = 1;
    assert_never(&options);
    options.serial = 0;
    options.disable = 1;
    assert_never(&options);
    options.disable = 0;
    options.issue = ACS_ISSUE_LAUNCH;
    assert_never(&options);
    options.issue = ACS_ISSUE_AUTO;
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        twin_without(missing[i]);
        assert_never(&options);
    }
    twin_without(NULL);
}

/* ------------------------------------------------------------------------------------------------------- statistics */

static acs_statistics use_context(acs_options *options)
{
    acs_context *context = NULL;
    acs_statistics stats = {.size = sizeof stats};
    void *device = NULL, *pinned = NULL;
    options->backend = ACS_BACKEND_CUDA;
    assert_int_equal(acs_open(options, &context), ACS_OK);
    assert_int_equal(acs_malloc(context, 4096, ACS_MEMORY_DEVICE, &device), ACS_OK);
    assert_int_equal(acs_malloc(context, 4096, ACS_MEMORY_HOST, &pinned), ACS_OK);
    for (int i = 0; i < 64; i++) {
        assert_int_not_equal(acs_memset(context, (char *)device + i * 64, i, 64), 0);
        assert_int_not_equal(acs_memcpy(context, (char *)pinned + i * 64, (char *)device + i * 64, 64), 0);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < 4096; i++)
        assert_int_equal(((unsigned char *)pinned)[i], i / 64);
    assert_int_equal(acs_stats(context, &stats), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_ptr_equal(twin_breach(), NULL);
    assert_int_equal(stats.kernels, 0);
    assert_int_equal(stats.copies, 64);
    assert_int_equal(stats.fills, 64);
    for (int way = 0; way < ACS_ISSUE_COUNT; way++)
        assert_int_equal(stats.issued_by[way], 0); /* of kernels */
    return stats;
}

static void statistics_count_what_the_program_asked_for(void **state)
{
    acs_options options;
    (void)state;
    for (int64_t workers = 0; workers < 2; workers++) {
        twin_reset();
        twin_set_strategy(TWIN_UNIFORM);
        acs_options_init(&options, sizeof options);
        options.workers = workers;
        options.issue = ACS_ISSUE_REPLAY;
        acs_statistics stats = use_context(&options);
        assert_int_equal(stats.copies_as_kernels, 128);
        assert_true(stats.bundles + stats.bundles_refused > 0); /* a graph is built at the second sighting */
        options.serial = 1;
        assert_int_equal(use_context(&options).copies_as_kernels, 0);
    }
}

#define COPY_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COPY_TEST(small_copies_of_known_memory_become_kernels_with_the_same_bytes),
        COPY_TEST(small_fills_become_kernels_with_the_same_bytes),
        COPY_TEST(copies_that_are_large_empty_or_overlap_stay),
        COPY_TEST(ranges_beyond_their_allocation_stay),
        COPY_TEST(memory_that_kernels_may_not_reach_stays_with_copies),
        COPY_TEST(memory_of_a_pool_is_as_good_as_any),
        COPY_TEST(what_the_driver_said_before_is_not_kept),
        COPY_TEST(rows_are_copied_and_nothing_between_them),
        COPY_TEST(without_bundles_copies_stay),
        cmocka_unit_test(statistics_count_what_the_program_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

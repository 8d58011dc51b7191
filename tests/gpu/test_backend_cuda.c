/*
 * The CUDA backend over a fake driver: what it sends, in which order, and what it makes of each call that fails. Needs no
 * GPU. A real one is tested by test_gpu_*.cu.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "fake_driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 3, MARKS = 64 };

static acs_backend *g_backend;
static acs_batch g_batch;
static acs_record g_records[16];
static uint32_t g_records_used;

static acs_status open_fake(acs_backend **backend)
{
    static acs_options options;
    acs_backend_config config = {.options = &options, .slots = SLOTS, .mark_capacity = MARKS};
    return acs_backend_cuda.open(&config, backend);
}

static int setup(void **state)
{
    (void)state;
    fake_reset();
    memset(&g_batch, 0, sizeof g_batch);
    g_records_used = 0;
    return open_fake(&g_backend) == ACS_OK ? 0 : -1;
}

/* Whatever happened: nothing is left behind, and the thread is as it was. */
static int teardown(void **state)
{
    (void)state;
    g_fake.failing = NULL;
    g_backend->ops->close(g_backend);
    assert_int_equal(g_fake.streams, 0);
    assert_int_equal(g_fake.events_alive, 0);
    assert_int_equal(g_fake.contexts, 0);
    assert_int_equal(tl_fake.pushed, 0);
    assert_int_equal(g_fake.blocks, 0);
    assert_int_equal(tl_fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    return 0;
}

static acs_record *record_new(acs_op_kind kind)
{
    static const acs_site site = {"op", "file.c", 1};
    acs_record *op = &g_records[g_records_used++];
    memset(op, 0, sizeof *op);
    op->kind = (uint8_t)kind;
    op->site = &site;
    op->args = op->inline_args;
    op->arg_bytes = op->inline_bytes;
    return op;
}

/* A kernel whose handle is `number`, with the two arguments that the fake's kernels have. */
static acs_record *kernel_new(uint32_t kind, uintptr_t number)
{
    acs_record *op = record_new(ACS_KIND_KERNEL);
    op->u.launch.kernel = (acs_kernel){"kernel", (const void *)number, NULL, kind, 0};
    op->u.launch.grid = op->u.launch.block = (acs_dim3){1, 1, 1};
    op->arg_count = 2;
    op->args[0] = (acs_arg_slot){.offset = 0, .size = 8};
    op->args[1] = (acs_arg_slot){.offset = 8, .size = 4};
    return op;
}

static acs_record *checked_kernel(uintptr_t number)
{
    acs_record *op = kernel_new(ACS_KERNEL_CUFUNCTION, number);
    assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
    return op;
}

static acs_item *item_new(acs_record *op, int slot)
{
    acs_item *item = &g_batch.items[g_batch.items_used++];
    item->op = op;
    item->slot = (int16_t)slot;
    item->first_mark = (uint16_t)g_batch.marks_used;
    item->first_wait = (uint16_t)g_batch.waits_used;
    item->first_edge = (uint16_t)g_batch.edges_used;
    return item;
}

static void item_mark_before(acs_item *item, uint16_t slot, uint16_t index)
{
    g_batch.marks[g_batch.marks_used++] = (acs_mark){.slot = slot, .index = index};
    item->mark_count++;
}

static void item_wait(acs_item *item, uint16_t slot, uint16_t index)
{
    g_batch.waits[g_batch.waits_used++] = (acs_mark){.slot = slot, .index = index};
    item->wait_count++;
}

static void item_edge(acs_item *item, uint16_t upstream)
{
    g_batch.edges[g_batch.edges_used++] = upstream;
    item->edge_count++;
}

static void item_mark_after(acs_item *item, uint16_t index)
{
    item->mark_after = true;
    item->after = (acs_mark){.slot = (uint16_t)item->slot, .index = index};
}

static void submit(void)
{
    g_fake.log[0] = 0;
    g_backend->ops->submit(g_backend, &g_batch);
}

static void assert_error(acs_status is, acs_status status, const char *words)
{
    assert_int_equal(is, status);
    assert_int_equal(acs_error_thread()->status, status);
    if (!strstr(acs_error_thread()->text, words))
        fail_msg("\"%s\" lacks \"%s\"", acs_error_thread()->text, words);
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static void open_without_driver_is_unsupported_and_clears_the_last_error(void **state)
{
    (void)state;
    acs_backend *backend = NULL;
    fake_reset();
    g_fake.device_error = cudaErrorInsufficientDriver;
    assert_error(open_fake(&backend), ACS_ERR_UNSUPPORTED, "no usable device");
    assert_int_equal(acs_error_thread()->native, cudaErrorInsufficientDriver);
    assert_null(backend);
    assert_int_equal(g_fake.last_errors_read, 1);
}

static void open_with_an_old_driver_names_the_missing_function(void **state)
{
    (void)state;
    acs_backend *backend = NULL;
    fake_reset();
    g_fake.missing = "cuLaunchKernelEx";
    assert_error(open_fake(&backend), ACS_ERR_UNSUPPORTED, "cuLaunchKernelEx");
}

static void open_that_fails_anywhere_leaves_nothing_behind(void **state)
{
    (void)state;
    static const char *const functions[] = {
        "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode", "cuDeviceGetAttribute",
        "cuCtxGetStreamPriorityRange", "cuStreamCreate", "cudaSetDevice",
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        acs_backend *backend = NULL;
        fake_reset();
        fake_fail(functions[i], CUDA_ERROR_OUT_OF_MEMORY, 1);
        assert_int_equal(open_fake(&backend), ACS_ERR_MEMORY);
        assert_null(backend);
        assert_int_equal(g_fake.contexts, 0);
        assert_int_equal(g_fake.streams, 0);
        assert_int_equal(tl_fake.pushed, 0);
        assert_int_equal(tl_fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    }
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

static void check_of_a_kernel_seen_before_makes_no_driver_call(void **state)
{
    (void)state;
    checked_kernel(0x100);
    int calls = g_fake.calls;
    checked_kernel(0x100);
    assert_int_equal(g_fake.calls, calls);
}

static void check_of_many_kernels_finds_each_again(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        int calls = g_fake.calls;
        for (uintptr_t k = 1; k <= 3000; k++) {
            g_records_used = 0;
            acs_record *op = kernel_new(k % 3 ? ACS_KERNEL_CUFUNCTION : ACS_KERNEL_HANDLE, k * 16);
            assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
            assert_non_null(op->u.launch.resolved);
        }
        assert_true(round == 0 || g_fake.calls == calls);
    }
}

static void check_of_wrong_arguments_names_number_and_sizes(void **state)
{
    (void)state;
    acs_record *op = kernel_new(ACS_KERNEL_FUNCTION, 0x100);
    op->args[1].size = 8;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT,
                 "argument 2 (from 1) is 8 bytes, the kernel's parameter is 4");
    op->arg_count = 1;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "1 arguments were given, the kernel has 2");
}

static void check_of_a_handle_that_means_another_kernel_now_looks_again(void **state)
{
    (void)state;
    checked_kernel(0x100);
    g_fake.param_bytes[1] = 16; /* its module was unloaded, another one loaded */
    acs_record *op = kernel_new(ACS_KERNEL_CUFUNCTION, 0x100);
    op->args[1].size = 16;
    assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
}

static void check_of_a_function_that_is_no_kernel_says_so_and_clears_the_last_error(void **state)
{
    (void)state;
    int cleared = g_fake.last_errors_read;
    assert_error(g_backend->ops->check(g_backend, kernel_new(ACS_KERNEL_FUNCTION, 0x101)), ACS_ERR_ARGUMENT,
                 "not a __global__ function");
    assert_int_equal(g_fake.last_errors_read, cleared + 1);
    assert_error(g_backend->ops->check(g_backend, kernel_new(ACS_KERNEL_NONE, 0)), ACS_ERR_UNSUPPORTED, "host body");
}

static void check_against_limits_names_value_and_limit(void **state)
{
    (void)state;
    acs_record *op = kernel_new(ACS_KERNEL_CUFUNCTION, 0x100);
    op->u.launch.grid.y = 70000;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "grid.y is 70000; it must be 1 to 65535");
    op->u.launch.grid.y = 1;
    op->u.launch.block.x = 600;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "600 threads; this kernel");
    op->u.launch.block.x = 1;
    op->u.launch.shared_bytes = 232448;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "232448 bytes of dynamic and 1024 of static");
    op->u.launch.shared_bytes = 0;
    op->u.launch.grid = (acs_dim3){4, 1, 1};
    op->u.launch.attributes.cluster = (acs_dim3){3, 1, 1};
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "does not divide");
}

static void check_of_large_shared_memory_opts_in_once(void **state)
{
    (void)state;
    for (uint64_t kib = 40; kib <= 200; kib += 40) {
        acs_record *op = kernel_new(ACS_KERNEL_CUFUNCTION, 0x100);
        op->u.launch.shared_bytes = kib * 1024;
        assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
        assert_int_equal(g_fake.opt_ins, kib > 47);
    }
}

enum { THREADS = 4, KERNELS = 2000 };

/* Every kernel once, each thread from another start, with shared memory that needs the opt-in. @return failures */
static void *check_all(void *start)
{
    acs_record op;
    uintptr_t failures = 0;
    for (uintptr_t i = 0; i < KERNELS; i++) {
        uintptr_t k = 1 + ((uintptr_t)start * (KERNELS / THREADS) + i) % KERNELS;
        op = g_records[0];
        op.args = op.inline_args;
        op.u.launch.kernel.function = (const void *)(k * 16);
        op.u.launch.shared_bytes = k % 2 ? 0 : 100000;
        failures += g_backend->ops->check(g_backend, &op) != ACS_OK || !op.u.launch.resolved;
    }
    return (void *)(failures + (uintptr_t)tl_fake.pushed);
}

static void check_from_many_threads_finds_whole_kernels(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    void *failures;
    kernel_new(ACS_KERNEL_CUFUNCTION, 16);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_all, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    assert_true(g_fake.opt_ins >= KERNELS / 2);
}

/* ------------------------------------------------------------------------------------------------------------ issue */

static void submit_sends_marks_then_waits_then_the_op_then_its_mark(void **state)
{
    (void)state;
    item_mark_after(item_new(checked_kernel(0x100), 0), 0);
    acs_item *item = item_new(checked_kernel(0x100), 1);
    item_mark_before(item, 2, 5);
    item_wait(item, 2, 5);
    item_wait(item, 0, 0);
    item_mark_before(item_new(NULL, -1), 1, 0);
    submit();
    assert_string_equal(g_fake.log, "launch 0;record 0 e0;record 2 e1;wait 1 e1;wait 1 e0;launch 1;record 1 e2;");
}

static void submit_of_a_refused_launch_skips_dependents_and_keeps_marks(void **state)
{
    (void)state;
    acs_item *bad = item_new(checked_kernel(0x100), 0);
    acs_item *dependent = item_new(checked_kernel(0x100), 1);
    acs_item *other = item_new(checked_kernel(0x100), 2);
    item_edge(dependent, 0);
    item_mark_after(bad, 0);
    item_mark_after(dependent, 0);
    fake_fail("cuLaunchKernelEx", CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 1);
    submit();
    assert_int_equal(bad->status, ACS_ERR_LAUNCH);
    assert_int_equal(bad->native, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_non_null(bad->text);
    assert_int_equal(dependent->status, ACS_ERR_SKIPPED);
    assert_int_equal(other->status, ACS_OK);
    assert_string_equal(g_fake.log, "record 0 e0;record 1 e1;launch 2;");
}

static void submit_after_a_fault_touches_the_device_no_more(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        item_mark_after(item_new(checked_kernel(0x100), i), 0);
    fake_fail("cuLaunchKernelEx", CUDA_ERROR_ILLEGAL_ADDRESS, 1);
    submit();
    assert_string_equal(g_fake.log, "");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(g_batch.items[i].status, ACS_ERR_DEVICE);
        assert_int_equal(g_batch.items[i].native, CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_string_equal(g_batch.items[i].text, "illegal address");
    }
    uint64_t completed = 7;
    assert_error(g_backend->ops->poll(g_backend, 0, g_batch.marks, 1, &completed), ACS_ERR_DEVICE, "illegal address");
    assert_int_equal(completed, 7);
}

static void event_that_cannot_be_made_or_recorded_is_replaced_by_a_wait(void **state)
{
    (void)state;
    static const char *const functions[] = {"cuEventCreate", "cuEventRecord"};
    for (uint16_t i = 0; i < 2; i++) {
        uint64_t completed = 0;
        memset(&g_batch, 0, sizeof g_batch);
        acs_item *item = item_new(checked_kernel(0x100), 1);
        item_mark_after(item, i);
        fake_fail(functions[i], CUDA_ERROR_OUT_OF_MEMORY, 1);
        submit();
        assert_int_equal(item->status, ACS_OK);
        assert_string_equal(g_fake.log, "launch 1;sync 1;");
        if (i == 0) { /* an event never made counts as complete; one made and not recorded does so by CUDA's rules */
            item->after.value = 9;
            assert_int_equal(g_backend->ops->poll(g_backend, 1, &item->after, 1, &completed), ACS_OK);
            assert_int_equal(completed, 9);
        }
    }
    submit();
    assert_string_equal(g_fake.log, "launch 1;record 1 e0;"); /* the event that was made in vain serves the next time */
}

static void wait_that_cannot_be_sent_is_done_on_the_host(void **state)
{
    (void)state;
    item_mark_after(item_new(checked_kernel(0x100), 0), 0);
    acs_item *item = item_new(checked_kernel(0x100), 1);
    item_wait(item, 0, 0);
    fake_fail("cuStreamWaitEvent", CUDA_ERROR_OUT_OF_MEMORY, 1);
    submit();
    assert_int_equal(item->status, ACS_OK);
    assert_string_equal(g_fake.log, "launch 0;record 0 e0;host-wait -1 e0;launch 1;");
}

static void copies_and_fills_go_to_their_slot_and_empty_ones_nowhere(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        acs_record *op = record_new(i % 2 ? ACS_KIND_MEMSET : ACS_KIND_MEMCPY);
        op->u.copy.bytes = i < 2 ? 16 : 0;
        item_new(op, i % 2);
    }
    submit();
    assert_string_equal(g_fake.log, "copy 0;fill 1;");
    for (int i = 0; i < 4; i++)
        assert_int_equal(g_batch.items[i].status, ACS_OK);
}

static void pageable_memory_is_filled_and_read_in_the_order_of_the_stream(void **state)
{
    (void)state;
    char bytes[4] = {1, 2, 3, 4};
    for (int i = 0; i < 2; i++) {
        acs_record *op = record_new(i ? ACS_KIND_MEMCPY : ACS_KIND_MEMSET);
        op->u.copy.dst = bytes;
        op->u.copy.bytes = 3;
        op->u.copy.value = 7;
        item_new(op, 1);
    }
    g_fake.pageable = true;
    fake_fail("cuMemsetD8Async", CUDA_ERROR_INVALID_VALUE, 1);
    submit();
    assert_string_equal(g_fake.log, "host 1;sync 1;copy 1;");
    assert_memory_equal(bytes, "\7\7\7\4", 4);
}

static int call_note(const acs_call_env *env, void *closure)
{
    assert_non_null(env->stream);
    assert_int_equal(env->device, 0);
    return *(int *)closure;
}

static void larger_scratch_waits_for_the_slots_earlier_calls(void **state)
{
    (void)state;
    int code = 0;
    for (uint64_t bytes = 64; bytes <= 256; bytes *= 2) {
        acs_record *op = record_new(ACS_KIND_CALL);
        op->u.call.function = call_note;
        op->u.call.closure = &code;
        op->u.call.scratch_bytes = bytes == 256 ? 100 : bytes; /* grows once, then fits */
        item_new(op, 2);
    }
    submit();
    assert_string_equal(g_fake.log, "sync 2;");
    code = 5;
    submit();
    assert_int_equal(g_batch.items[0].status, ACS_ERR_HOST);
    assert_int_equal(g_batch.items[0].native, 5);
}

/* ------------------------------------------------------------------------------------------------------- completion */

static void poll_finds_the_newest_complete_mark_whichever_it_is(void **state)
{
    (void)state;
    for (uint16_t i = 0; i < 20; i++)
        item_mark_before(item_new(NULL, -1), 1, i);
    submit();
    for (uint32_t i = 0; i < 20; i++)
        g_batch.marks[i].value = 100 + i;
    for (uint32_t count = 1; count <= 20; count++)
        for (uint32_t complete = 0; complete <= count; complete++) {
            uint64_t value = 1;
            fake_complete((int)complete);
            assert_int_equal(g_backend->ops->poll(g_backend, 1, g_batch.marks, count, &value), ACS_OK);
            assert_int_equal(value, complete ? 99 + complete : 1);
        }
}

static void poll_that_finds_a_fault_keeps_what_completed_before(void **state)
{
    (void)state;
    uint64_t value = 1;
    item_mark_before(item_new(NULL, -1), 1, 0);
    submit();
    fake_fail("cuEventQuery", CUDA_ERROR_LAUNCH_FAILED, 1);
    assert_error(g_backend->ops->poll(g_backend, 1, g_batch.marks, 1, &value), ACS_ERR_DEVICE, "slot 1");
    assert_int_equal(acs_error_thread()->native, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(value, 1);
}

/* ------------------------------------------------------------------------------------------------------- the thread */

static void library_thread_enters_once(void **state)
{
    (void)state;
    g_backend->ops->thread_enter(g_backend);
    assert_int_equal(tl_fake.mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_ptr_equal(tl_fake.current, fake_context());
    item_new(checked_kernel(0x100), 0);
    int calls = g_fake.calls;
    submit();
    assert_int_equal(g_fake.calls, calls + 1); /* the launch alone */
    tl_fake.mode = CU_STREAM_CAPTURE_MODE_GLOBAL; /* for teardown: this thread is no thread of the library */
}

static void device_that_cannot_be_selected_is_lost(void **state)
{
    (void)state;
    acs_item *item = item_new(checked_kernel(0x100), 0);
    fake_fail("cuCtxPushCurrent", CUDA_ERROR_INVALID_CONTEXT, 1);
    submit();
    assert_int_equal(item->status, ACS_ERR_DEVICE);
}

/* -------------------------------------------------------------------------------------------------- foreign streams */

static void foreign_work_is_recorded_and_waited_for_with_few_events(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        memset(&g_batch, 0, sizeof g_batch);
        g_records_used = 0;
        acs_record *op = record_new(ACS_KIND_STREAM_WAIT);
        assert_int_equal(g_backend->ops->stream_record(g_backend, NULL, &op->u.stream.event), ACS_OK);
        item_new(op, 2);
        submit();
        assert_string_equal(g_fake.log, "wait 2 e0;");
        assert_null(op->u.stream.event);
    }
    assert_int_equal(g_fake.events_made, 1);
}

static void streams_that_cannot_be_ordered_are_refused(void **state)
{
    (void)state;
    void *event = NULL, *stream = (void *)(uintptr_t)0x9000;
    g_fake.capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    assert_error(g_backend->ops->stream_record(g_backend, stream, &event), ACS_ERR_UNSUPPORTED, "captured");
    g_fake.capture = CU_STREAM_CAPTURE_STATUS_NONE;
    g_fake.stream_context = (CUcontext)(uintptr_t)0xbad;
    assert_error(g_backend->ops->stream_record(g_backend, stream, &event), ACS_ERR_UNSUPPORTED, "another device");
    g_fake.stream_context = fake_context();
    assert_error(g_backend->ops->stream_record(g_backend, CU_STREAM_PER_THREAD, NULL), ACS_ERR_UNSUPPORTED,
                 "cudaStreamPerThread");
    assert_null(event);
    assert_int_equal(g_backend->ops->stream_record(g_backend, stream, NULL), ACS_OK);
}

static void signal_to_a_stream_that_began_capturing_fails_and_sends_nothing(void **state)
{
    (void)state;
    item_mark_after(item_new(checked_kernel(0x100), 0), 0);
    acs_record *op = record_new(ACS_KIND_STREAM_SIGNAL);
    op->u.stream.stream = (void *)(uintptr_t)0x1007;
    acs_item *item = item_new(op, -1);
    item_wait(item, 0, 0);
    submit();
    assert_int_equal(item->status, ACS_OK);
    assert_string_equal(g_fake.log, "launch 0;record 0 e0;wait 7 e0;");
    g_fake.capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    submit();
    assert_int_equal(item->status, ACS_ERR_LAUNCH);
    assert_string_equal(g_fake.log, "launch 0;record 0 e0;");
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static void memory_that_is_exhausted_is_an_error_and_zero_bytes_are_a_block(void **state)
{
    (void)state;
    void *ptr = NULL;
    fake_fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1);
    assert_error(g_backend->ops->memory_alloc(g_backend, ACS_MEMORY_DEVICE, 1000, &ptr), ACS_ERR_MEMORY, "1000 bytes");
    assert_null(ptr);
    assert_int_equal(g_backend->ops->memory_alloc(g_backend, ACS_MEMORY_DEVICE, 0, &ptr), ACS_OK);
    assert_int_equal(g_backend->ops->memory_free(g_backend, ACS_MEMORY_DEVICE, ptr), ACS_OK);
    assert_int_equal(g_backend->ops->memory_alloc(g_backend, ACS_MEMORY_HOST, 64, &ptr), ACS_OK);
    assert_int_equal(g_backend->ops->memory_free(g_backend, ACS_MEMORY_HOST, ptr), ACS_OK);
}

#define OPEN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_without_driver_is_unsupported_and_clears_the_last_error),
        cmocka_unit_test(open_with_an_old_driver_names_the_missing_function),
        cmocka_unit_test(open_that_fails_anywhere_leaves_nothing_behind),
        OPEN_TEST(check_of_a_kernel_seen_before_makes_no_driver_call),
        OPEN_TEST(check_of_many_kernels_finds_each_again),
        OPEN_TEST(check_of_wrong_arguments_names_number_and_sizes),
        OPEN_TEST(check_of_a_handle_that_means_another_kernel_now_looks_again),
        OPEN_TEST(check_of_a_function_that_is_no_kernel_says_so_and_clears_the_last_error),
        OPEN_TEST(check_against_limits_names_value_and_limit),
        OPEN_TEST(check_of_large_shared_memory_opts_in_once),
        OPEN_TEST(check_from_many_threads_finds_whole_kernels),
        OPEN_TEST(submit_sends_marks_then_waits_then_the_op_then_its_mark),
        OPEN_TEST(submit_of_a_refused_launch_skips_dependents_and_keeps_marks),
        OPEN_TEST(submit_after_a_fault_touches_the_device_no_more),
        OPEN_TEST(event_that_cannot_be_made_or_recorded_is_replaced_by_a_wait),
        OPEN_TEST(wait_that_cannot_be_sent_is_done_on_the_host),
        OPEN_TEST(copies_and_fills_go_to_their_slot_and_empty_ones_nowhere),
        OPEN_TEST(pageable_memory_is_filled_and_read_in_the_order_of_the_stream),
        OPEN_TEST(larger_scratch_waits_for_the_slots_earlier_calls),
        OPEN_TEST(poll_finds_the_newest_complete_mark_whichever_it_is),
        OPEN_TEST(poll_that_finds_a_fault_keeps_what_completed_before),
        OPEN_TEST(library_thread_enters_once),
        OPEN_TEST(device_that_cannot_be_selected_is_lost),
        OPEN_TEST(foreign_work_is_recorded_and_waited_for_with_few_events),
        OPEN_TEST(streams_that_cannot_be_ordered_are_refused),
        OPEN_TEST(signal_to_a_stream_that_began_capturing_fails_and_sends_nothing),
        OPEN_TEST(memory_that_is_exhausted_is_an_error_and_zero_bytes_are_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

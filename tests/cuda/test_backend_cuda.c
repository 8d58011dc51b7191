/*
 * The CUDA backend over the twin: what it sends, in which order, and what it makes of each call that fails. Needs no GPU.
 * A real one is tested by test_gpu_*.cu.
 */
#include "backend_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- opening */

static void open_without_driver_is_unsupported_and_clears_the_last_error(void **state)
{
    (void)state;
    acs_backend *backend = NULL;
    backend_reset();
    twin_device_error(cudaErrorInsufficientDriver);
    assert_error(backend_open(&backend), ACS_ERR_UNSUPPORTED, "no usable device");
    assert_int_equal(acs_error_thread()->native, cudaErrorInsufficientDriver);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    bool says_none = strstr(acs_error_thread()->text, "no NVIDIA driver") != NULL;
    assert_true(says_none == (driver == NULL));
    if (driver)
        dlclose(driver);
    assert_null(backend);
    assert_int_equal(twin_count("cudaGetLastError"), 1);
}

static void open_with_an_old_driver_names_the_missing_function(void **state)
{
    (void)state;
    acs_backend *backend = NULL;
    backend_reset();
    twin_without("cuLaunchKernelEx");
    assert_error(backend_open(&backend), ACS_ERR_UNSUPPORTED, "cuLaunchKernelEx");
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
        backend_reset();
        twin_fail(functions[i], CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
        assert_int_equal(backend_open(&backend), ACS_ERR_MEMORY);
        assert_null(backend);
        twin_audit();
        assert_null(twin_breach());
        assert_int_equal(twin_thread_depth(), 0);
        assert_int_equal(twin_thread_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    }
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

static void check_of_a_kernel_seen_before_makes_no_driver_call(void **state)
{
    (void)state;
    checked_kernel();
    uint64_t calls = twin_calls();
    checked_kernel();
    assert_int_equal(twin_calls(), calls);
}

enum { THREADS = 4, KERNELS = 2000 };

static CUkernel g_kernels[KERNELS];

static void kernels_add(void)
{
    for (int k = 0; k < KERNELS; k++)
        g_kernels[k] = kernel_add();
}

static void check_of_many_kernels_finds_each_again(void **state)
{
    (void)state;
    kernels_add();
    for (int round = 0; round < 2; round++) {
        uint64_t calls = twin_calls();
        for (int k = 0; k < KERNELS; k++) {
            g_records_used = 0;
            acs_record *op = k % 3 ? kernel_new(ACS_KERNEL_CUFUNCTION, twin_function(g_kernels[k], 0))
                                   : kernel_new(ACS_KERNEL_HANDLE, g_kernels[k]);
            assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
            assert_non_null(op->u.launch.resolved);
        }
        assert_true(round == 0 || twin_calls() == calls);
    }
}

static void check_of_wrong_arguments_names_number_and_sizes(void **state)
{
    (void)state;
    acs_record *op = kernel_new(ACS_KERNEL_FUNCTION, &g_symbol);
    op->args[1].size = 8;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT,
                 "argument 1 (from 0) is 8 bytes, the kernel's parameter is 4");
    op->arg_count = 1;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "1 arguments were given, the kernel has 2");
}

static void check_of_a_handle_that_means_another_kernel_now_looks_again(void **state)
{
    (void)state;
    static const uint32_t bytes[] = {8, 16};
    const twin_kernel_spec another = {.name = "another", .param_count = 2, .param_bytes = bytes, .block_threads = 512};
    checked_kernel();
    twin_kernel_replace(g_kernel, &another); /* its module was unloaded, another one loaded */
    acs_record *op = kernel_new(ACS_KERNEL_CUFUNCTION, twin_function(g_kernel, 0));
    op->args[1].size = 16;
    assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
}

static void check_of_a_function_that_is_no_kernel_says_so_and_clears_the_last_error(void **state)
{
    (void)state;
    uint64_t cleared = twin_count("cudaGetLastError");
    assert_error(g_backend->ops->check(g_backend, kernel_new(ACS_KERNEL_FUNCTION, &cleared)), ACS_ERR_ARGUMENT,
                 "not a __global__ function");
    assert_int_equal(twin_count("cudaGetLastError"), cleared + 1);
    assert_error(g_backend->ops->check(g_backend, kernel_new(ACS_KERNEL_NONE, NULL)), ACS_ERR_UNSUPPORTED, "host body");
    assert_error(g_backend->ops->check(g_backend, kernel_new(ACS_KERNEL_HANDLE, NULL)), ACS_ERR_ARGUMENT, "is NULL");
    assert_error(g_backend->ops->check(g_backend, kernel_new(9, &cleared)), ACS_ERR_ARGUMENT, "kind 9 is none");
}

static void check_against_limits_names_value_and_limit(void **state)
{
    (void)state;
    acs_record *op = kernel_new(ACS_KERNEL_CUFUNCTION, twin_function(g_kernel, 0));
    op->grid.y = 70000;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "grid.y is 70000; it must be 1 to 65535");
    op->grid.y = 1;
    op->u.launch.block.x = 600;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "600 threads; this kernel");
    op->u.launch.block.x = 1;
    op->u.launch.shared_bytes = 232448;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "232448 bytes of dynamic and 1024 of static");
    op->u.launch.shared_bytes = 0;
    op->grid = (acs_dim3){4, 1, 1};
    op->u.launch.attributes.cluster = (acs_dim3){3, 1, 1};
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "does not divide");
}

static void check_of_large_shared_memory_opts_in_once(void **state)
{
    (void)state;
    for (uint64_t kib = 40; kib <= 200; kib += 40) {
        acs_record *op = kernel_new(ACS_KERNEL_CUFUNCTION, twin_function(g_kernel, 0));
        op->u.launch.shared_bytes = kib * 1024;
        assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
        assert_int_equal(twin_count("cuFuncSetAttribute"), kib > 47);
    }
}

/* Every kernel once, each thread from another start, with shared memory that needs the opt-in. @return failures */
static void *check_all(void *start)
{
    acs_record op;
    uintptr_t failures = 0;
    for (uintptr_t i = 0; i < KERNELS; i++) {
        uintptr_t k = ((uintptr_t)start * (KERNELS / THREADS) + i) % KERNELS;
        op = g_records[0];
        op.args = op.inline_args;
        op.u.launch.kernel.function = g_kernels[k];
        op.u.launch.shared_bytes = k % 2 ? 0 : 100000;
        failures += g_backend->ops->check(g_backend, &op) != ACS_OK || !op.u.launch.resolved;
    }
    return (void *)(failures + (uintptr_t)twin_thread_depth());
}

static void check_from_many_threads_finds_whole_kernels(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    void *failures;
    kernels_add();
    kernel_new(ACS_KERNEL_HANDLE, g_kernels[0]);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_all, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    assert_true(twin_count("cuFuncSetAttribute") >= KERNELS / 2);
}

/* ------------------------------------------------------------------------------------------------------------ issue */

/* Streams are numbered as slots are first used: slot 0 when the backend is opened, others when something goes there. */

static void submit_sends_marks_then_waits_then_the_op_then_its_mark(void **state)
{
    (void)state;
    item_mark_after(item_new(checked_kernel(), 0), 0);
    acs_item *item = item_new(checked_kernel(), 1);
    item_mark_before(item, 2, 5);
    item_wait(item, 2, 5);
    item_wait(item, 0, 0);
    item_mark_before(item_new(NULL, -1), 1, 0);
    submit();
    assert_string_equal(twin_log(), "launch 0;record 0 e0;record 1 e16;wait 2 e16;wait 2 e0;launch 2;record 2 e32;");
}

static void submit_of_a_refused_launch_skips_dependents_and_keeps_marks(void **state)
{
    (void)state;
    acs_item *bad = item_new(checked_kernel(), 0);
    acs_item *dependent = item_new(checked_kernel(), 1);
    acs_item *other = item_new(checked_kernel(), 2);
    item_edge(dependent, 0);
    item_mark_after(bad, 0);
    item_mark_after(dependent, 0);
    twin_fail("cuLaunchKernelEx", CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 0, 1);
    submit();
    assert_int_equal(bad->status, ACS_ERR_LAUNCH);
    assert_int_equal(bad->native, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_non_null(bad->text);
    assert_int_equal(dependent->status, ACS_ERR_SKIPPED);
    assert_int_equal(other->status, ACS_OK);
    assert_string_equal(twin_log(), "record 0 e0;record 1 e16;launch 2;");
}

static void submit_after_a_fault_touches_the_device_no_more(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        item_mark_after(item_new(checked_kernel(), i), 0);
    twin_fail("cuLaunchKernelEx", CUDA_ERROR_ILLEGAL_ADDRESS, 0, 1);
    submit();
    assert_string_equal(twin_log(), "");
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
        batch_clear();
        acs_item *item = item_new(checked_kernel(), 1);
        item_mark_after(item, i);
        item->after.value = 9;
        twin_fail(functions[i], CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
        submit();
        assert_int_equal(item->status, ACS_OK);
        assert_string_equal(twin_log(), "launch 1;sync 1;");
        if (i == 0) { /* an event never made counts as complete; one made and not recorded does so by CUDA's rules */
            assert_int_equal(g_backend->ops->poll(g_backend, 1, &item->after, 1, &completed), ACS_OK);
            assert_int_equal(completed, 9);
        }
    }
    submit();
    assert_string_equal(twin_log(), "launch 1;record 1 e0;"); /* the event that was made in vain serves the next time */
}

static void wait_that_cannot_be_sent_is_done_on_the_host(void **state)
{
    (void)state;
    item_mark_after(item_new(checked_kernel(), 0), 0);
    acs_item *item = item_new(checked_kernel(), 1);
    item_wait(item, 0, 0);
    twin_fail("cuStreamWaitEvent", CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    submit();
    assert_int_equal(item->status, ACS_OK);
    assert_string_equal(twin_log(), "launch 0;record 0 e0;host-wait -1 e0;launch 1;");
}

static void copies_and_fills_go_to_their_slot_and_empty_ones_nowhere(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        acs_record *op = record_new(i % 2 ? ACS_KIND_MEMSET : ACS_KIND_MEMCPY);
        op->u.copy.dst = g_block;
        op->u.copy.src = g_block + 64;
        op->u.copy.bytes = i < 2 ? 16 : 0;
        op->u.copy.rows = 1;
        item_new(op, i % 2);
    }
    submit();
    assert_string_equal(twin_log(), "copy 0;fill 1;");
    for (int i = 0; i < 4; i++)
        assert_int_equal(g_batch.items[i].status, ACS_OK);
}

static void pageable_memory_is_filled_and_read_in_the_order_of_the_stream(void **state)
{
    (void)state;
    char bytes[4] = {1, 2, 3, 4}, source[4] = {5, 6, 8, 9};
    for (int i = 0; i < 2; i++) {
        acs_record *op = record_new(i ? ACS_KIND_MEMCPY : ACS_KIND_MEMSET);
        op->u.copy.dst = i ? source : bytes; /* the copy reads what the fill wrote */
        op->u.copy.src = bytes;
        op->u.copy.bytes = 3;
        op->u.copy.rows = 1;
        op->u.copy.value = 7;
        item_new(op, 1);
    }
    submit();
    assert_string_equal(twin_log(), "host 1;sync 1;copy 1;");
    assert_memory_equal(bytes, "\7\7\7\4", 4);
    assert_memory_equal(source, "\7\7\7\x9", 4);
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
    assert_string_equal(twin_log(), "sync 1;");
    code = 5;
    submit();
    assert_int_equal(g_batch.items[0].status, ACS_ERR_HOST);
    assert_int_equal(g_batch.items[0].native, 5);
}

/* ------------------------------------------------------------------------------------------------------- completion */

static int stream_note(const acs_call_env *env, void *closure)
{
    *(void **)closure = env->stream;
    return 0;
}

/* A library call is told. */
static CUstream slot_stream(int slot)
{
    void *stream = NULL;
    static acs_batch batch;
    acs_record *op = record_new(ACS_KIND_CALL);
    g_records_used--;
    op->u.call.function = stream_note;
    op->u.call.closure = &stream;
    batch = (acs_batch){.items_used = 1, .items = {{.op = op, .slot = (int16_t)slot}}};
    g_backend->ops->submit(g_backend, &batch);
    return stream;
}

static void poll_finds_the_newest_complete_mark_whichever_it_is(void **state)
{
    (void)state;
    for (uint16_t i = 0; i < 20; i++)
        item_mark_before(item_new(NULL, -1), 1, i);
    for (uint32_t i = 0; i < 20; i++)
        g_batch.marks[i].value = 100 + i;
    submit();
    for (uint32_t complete = 0; complete <= 20; complete++) {
        for (uint32_t count = 1; count <= 20; count++) {
            uint64_t value = 1;
            uint32_t newest = complete < count ? complete : count;
            assert_int_equal(g_backend->ops->poll(g_backend, 1, g_batch.marks, count, &value), ACS_OK);
            assert_int_equal(value, newest ? 99 + newest : 1);
        }
        twin_run(slot_stream(1), 1);
    }
}

static void poll_that_finds_a_fault_keeps_what_completed_before(void **state)
{
    (void)state;
    uint64_t value = 1;
    item_mark_before(item_new(NULL, -1), 1, 0);
    submit();
    twin_fail("cuEventQuery", CUDA_ERROR_LAUNCH_FAILED, 0, 1);
    assert_error(g_backend->ops->poll(g_backend, 1, g_batch.marks, 1, &value), ACS_ERR_DEVICE, "slot 1");
    assert_int_equal(acs_error_thread()->native, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(value, 1);
}

/* ------------------------------------------------------------------------------------------------------- the thread */

/* @return what went wrong, by number */
static void *be_a_library_thread(void *unused)
{
    (void)unused;
    g_backend->ops->thread_enter(g_backend);
    if (twin_thread_mode() != CU_STREAM_CAPTURE_MODE_RELAXED || twin_thread_context() != twin_context(0))
        return (void *)1;
    uint64_t calls = twin_calls();
    submit();
    return (void *)(uintptr_t)(twin_calls() == calls + 2 ? 0 : 2); /* whether the context is there, and the launch */
}

static void library_thread_enters_once(void **state)
{
    pthread_t thread;
    void *wrong;
    (void)state;
    item_new(checked_kernel(), 0);
    assert_int_equal(pthread_create(&thread, NULL, be_a_library_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_ptr_equal(wrong, NULL);
}

static void device_that_cannot_be_selected_is_lost(void **state)
{
    (void)state;
    acs_item *item = item_new(checked_kernel(), 0);
    twin_fail("cuCtxPushCurrent", CUDA_ERROR_INVALID_CONTEXT, 0, 1);
    submit();
    assert_int_equal(item->status, ACS_ERR_DEVICE);
}

/* -------------------------------------------------------------------------------------------------- foreign streams */

static void foreign_work_is_recorded_and_waited_for_with_few_events(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        batch_clear();
        g_records_used = 0;
        acs_record *op = record_new(ACS_KIND_STREAM_WAIT);
        assert_int_equal(g_backend->ops->stream_record(g_backend, NULL, &op->u.stream.event), ACS_OK);
        item_new(op, 2);
        submit();
        assert_string_equal(twin_log(), "wait 1 e0;");
        assert_null(op->u.stream.event);
    }
    assert_int_equal(twin_events_made(), 1);
}

static void capture(CUstream stream, bool begin)
{
    CUcontext popped;
    CUgraph graph = NULL;
    assert_int_equal(TWIN_GET(cuCtxPushCurrent, 4000)(twin_context(0)), CUDA_SUCCESS);
    if (begin) {
        assert_int_equal(TWIN_GET(cuStreamBeginCapture, 10010)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    } else {
        assert_int_equal(TWIN_GET(cuStreamEndCapture, 10000)(stream, &graph), CUDA_SUCCESS);
        assert_int_equal(TWIN_GET(cuGraphDestroy, 10000)(graph), CUDA_SUCCESS);
    }
    assert_int_equal(TWIN_GET(cuCtxPopCurrent, 4000)(&popped), CUDA_SUCCESS);
}

static void streams_that_cannot_be_ordered_are_refused(void **state)
{
    (void)state;
    void *event = NULL;
    CUstream stream = foreign_stream(0), elsewhere = foreign_stream(1);
    capture(stream, true);
    assert_error(g_backend->ops->stream_record(g_backend, stream, &event), ACS_ERR_UNSUPPORTED, "captured");
    /* The legacy stream would wait for it. */
    assert_int_equal(TWIN_GET(cuCtxSetCurrent, 4000)(twin_context(0)), CUDA_SUCCESS);
    assert_error(g_backend->ops->stream_record(g_backend, NULL, &event), ACS_ERR_UNSUPPORTED, "captured");
    assert_int_equal(TWIN_GET(cuCtxSetCurrent, 4000)(NULL), CUDA_SUCCESS);
    capture(stream, false);
    assert_error(g_backend->ops->stream_record(g_backend, elsewhere, &event), ACS_ERR_UNSUPPORTED, "another device");
    assert_error(g_backend->ops->stream_record(g_backend, CU_STREAM_PER_THREAD, NULL), ACS_ERR_UNSUPPORTED,
                 "cudaStreamPerThread");
    assert_null(event);
    assert_int_equal(g_backend->ops->stream_record(g_backend, stream, NULL), ACS_OK);
    foreign_stream_end(stream, 0);
    foreign_stream_end(elsewhere, 1);
}

/* A program that captures on another thread must not notice the library: its capture would be void. */
static void work_beside_a_capture_of_the_programs_own_leaves_it_alone(void **state)
{
    (void)state;
    CUstream stream = foreign_stream(0);
    void *memory = NULL, *event = NULL;
    uint64_t completed;
    capture(stream, true);
    for (uint32_t kind = ACS_KERNEL_FUNCTION; kind <= ACS_KERNEL_HANDLE; kind++) {
        acs_record *op = kernel_new(kind, kind == ACS_KERNEL_HANDLE ? (const void *)g_kernel : &g_symbol);
        op->u.launch.shared_bytes = 100000;
        assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
        item_mark_after(item_new(op, 0), (uint16_t)kind);
    }
    submit();
    assert_int_equal(g_backend->ops->poll(g_backend, 0, &g_batch.items[0].after, 1, &completed), ACS_OK);
    assert_int_equal(g_backend->ops->stream_record(g_backend, CU_STREAM_PER_THREAD, &event), ACS_OK);
    g_backend->ops->event_release(g_backend, event);
    for (int kind = ACS_MEMORY_DEVICE; kind <= ACS_MEMORY_HOST; kind++) {
        assert_int_equal(g_backend->ops->memory_alloc(g_backend, kind, 100, &memory), ACS_OK);
        assert_int_equal(g_backend->ops->memory_free(g_backend, kind, memory), ACS_OK);
    }
    capture(stream, false); /* succeeds only if nothing made it void */
    foreign_stream_end(stream, 0);
}

static void signal_to_a_stream_that_began_capturing_fails_and_sends_nothing(void **state)
{
    (void)state;
    CUstream stream = foreign_stream(0); /* the second: only slot 0 has one */
    item_mark_after(item_new(checked_kernel(), 0), 0);
    acs_record *op = record_new(ACS_KIND_STREAM_SIGNAL);
    op->u.stream.stream = stream;
    acs_item *item = item_new(op, -1);
    item_wait(item, 0, 0);
    submit();
    assert_int_equal(item->status, ACS_OK);
    assert_string_equal(twin_log(), "launch 0;record 0 e0;wait 1 e0;");
    capture(stream, true);
    submit();
    assert_int_equal(item->status, ACS_ERR_LAUNCH);
    assert_string_equal(twin_log(), "launch 0;record 0 e0;");
    capture(stream, false);
    foreign_stream_end(stream, 0);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static void memory_that_is_exhausted_is_an_error_and_zero_bytes_are_a_block(void **state)
{
    (void)state;
    void *ptr = NULL;
    twin_fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    assert_error(g_backend->ops->memory_alloc(g_backend, ACS_MEMORY_DEVICE, 1000, &ptr), ACS_ERR_MEMORY, "1000 bytes");
    assert_null(ptr);
    assert_int_equal(g_backend->ops->memory_alloc(g_backend, ACS_MEMORY_DEVICE, 0, &ptr), ACS_OK);
    assert_int_equal(g_backend->ops->memory_free(g_backend, ACS_MEMORY_DEVICE, ptr), ACS_OK);
    assert_int_equal(g_backend->ops->memory_alloc(g_backend, ACS_MEMORY_HOST, 64, &ptr), ACS_OK);
    assert_int_equal(g_backend->ops->memory_free(g_backend, ACS_MEMORY_HOST, ptr), ACS_OK);
}

#define OPEN_TEST(f) cmocka_unit_test_setup_teardown(f, backend_setup, backend_teardown)

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
        OPEN_TEST(work_beside_a_capture_of_the_programs_own_leaves_it_alone),
        OPEN_TEST(signal_to_a_stream_that_began_capturing_fails_and_sends_nothing),
        OPEN_TEST(memory_that_is_exhausted_is_an_error_and_zero_bytes_are_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

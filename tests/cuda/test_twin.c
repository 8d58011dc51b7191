/*
 * The double of the CUDA driver itself: that it orders, runs and shows work as CUDA does, and that each kind of illegal call
 * is reported when a program makes it. Direct calls only; the library has no part in this.
 */
#include "twin_checks.h"

#include <pthread.h>
#include <string.h>

/* One row per function that the tests call. */
#define CALLS(X)                                                                                                       \
    X(cuDevicePrimaryCtxRetain, 7000) X(cuDevicePrimaryCtxRelease, 11000)                                              \
    X(cuCtxSetCurrent, 4000) X(cuCtxPopCurrent, 4000)                                                                  \
    X(cuFuncSetAttribute, 9000) X(cuFuncGetParamInfo, 12040)                                                           \
    X(cuLaunchKernelEx, 11060) X(cuMemcpyAsync, 4000)                                                                  \
    X(cuMemsetD8Async, 3020) X(cuStreamCreate, 2000)                                                                   \
    X(cuStreamDestroy, 4000) X(cuStreamSynchronize, 2000)                                                              \
    X(cuStreamWaitEvent, 3020) X(cuStreamBeginCapture, 10010)                                                          \
    X(cuStreamEndCapture, 10000) X(cuEventCreate, 2000)                                                                \
    X(cuEventDestroy, 4000) X(cuEventRecord, 2000)                                                                     \
    X(cuEventQuery, 2000) X(cuEventSynchronize, 2000)                                                                  \
    X(cuMemAlloc, 3020) X(cuMemFree, 3020)                                                                             \
    X(cuMemHostAlloc, 2020) X(cuMemFreeHost, 2000)
#define FIELD(name, version) PFN_##name##_v##version name;
static struct calls {
    CALLS(FIELD)
} g_cu;
#define TAKE(name, version) g_cu.name = (PFN_##name##_v##version)(uintptr_t)twin_entry(#name);

static CUstream g_streams[2]; /* of device 0 */
static CUevent g_event;       /* of device 0, never recorded */
static CUdeviceptr g_memory;  /* 64 bytes on device 0 */
static CUkernel g_add;        /* *arg0 = 2 * *arg0 + arg1 */
static uint64_t g_seed;       /* 0: nothing runs before it has to */

typedef unsigned char *bytes;

static void add_body(void *const *args)
{
    bytes at = *(bytes *)args[0];
    *at = (unsigned char)(2 * *at + *(unsigned *)args[1]);
}

static size_t add_touches(void *const *args, twin_range *out, size_t capacity)
{
    (void)capacity;
    out[0] = (twin_range){*(uint64_t *)args[0], 1};
    return 1;
}

static int setup(void **state)
{
    static const uint32_t sizes[] = {8, 4};
    const twin_kernel_spec spec = {.name = "add", .symbol = &g_add, .body = add_body, .touches = add_touches,
                                   .param_count = 2, .param_bytes = sizes, .block_threads = 256, .resident = 4};
    CUcontext context;
    (void)state;
    if (g_seed)
        twin_seed(g_seed);
    else
        twin_reset();
    CALLS(TAKE)
    g_add = twin_kernel(&spec);
    ok(g_cu.cuDevicePrimaryCtxRetain(&context, 0));
    ok(g_cu.cuDevicePrimaryCtxRetain(&context, 1));
    ok(g_cu.cuCtxSetCurrent(twin_context(0)));
    ok(g_cu.cuStreamCreate(&g_streams[0], CU_STREAM_NON_BLOCKING));
    ok(g_cu.cuStreamCreate(&g_streams[1], CU_STREAM_NON_BLOCKING));
    ok(g_cu.cuEventCreate(&g_event, CU_EVENT_DISABLE_TIMING));
    ok(g_cu.cuMemAlloc(&g_memory, 64));
    memset((void *)(uintptr_t)g_memory, 0, 64);
    return 0;
}

/* The test that this follows has looked at its breaches and forgotten them. */
static int teardown(void **state)
{
    (void)state;
    assert_ptr_equal(twin_breach(), NULL);
    return 0;
}

static void assert_clean(void)
{
    if (twin_breach())
        fail_msg("%s", twin_breach());
}

static CUlaunchConfig config_of(CUstream stream)
{
    return (CUlaunchConfig){.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                            .hStream = stream};
}

static CUresult launch_as(const CUlaunchConfig *config, uint64_t at, unsigned value)
{
    void *args[] = {&at, &value};
    return g_cu.cuLaunchKernelEx(config, (CUfunction)g_add, args, NULL);
}

static CUresult launch(CUstream stream, unsigned value)
{
    CUlaunchConfig config = config_of(stream);
    return launch_as(&config, g_memory, value);
}

static unsigned memory_byte(void)
{
    return *(bytes)(uintptr_t)g_memory;
}

/* ---------------------------------------------------------------------------------------------------- how work is run */

static void nothing_runs_before_it_has_to(void **state)
{
    (void)state;
    ok(launch(g_streams[0], 5));
    ok(g_cu.cuEventRecord(g_event, g_streams[0]));
    assert_int_equal(g_cu.cuEventQuery(g_event), CUDA_ERROR_NOT_READY);
    assert_int_equal(memory_byte(), 0);
    ok(g_cu.cuEventSynchronize(g_event));
    ok(g_cu.cuEventQuery(g_event));
    assert_int_equal(memory_byte(), 5);
}

/* As in CUDA: a record that comes after the wait does not move the wait. */
static void wait_is_for_the_latest_record_at_the_time_of_the_wait(void **state)
{
    (void)state;
    ok(launch(g_streams[0], 1));
    ok(g_cu.cuEventRecord(g_event, g_streams[0]));
    ok(g_cu.cuStreamWaitEvent(g_streams[1], g_event, 0));
    ok(launch(g_streams[0], 100));
    ok(g_cu.cuEventRecord(g_event, g_streams[0]));
    ok(launch(g_streams[1], 10)); /* behind the first launch alone */
    ok(g_cu.cuStreamSynchronize(g_streams[1]));
    assert_int_equal(memory_byte(), 12);
    assert_int_equal(g_cu.cuEventQuery(g_event), CUDA_ERROR_NOT_READY);
    ok(g_cu.cuStreamSynchronize(g_streams[0]));
    assert_int_equal(memory_byte(), 124);
}

static void pageable_source_is_read_when_the_copy_is_called_and_pinned_one_later(void **state)
{
    (void)state;
    unsigned char pageable = 3;
    void *pinned;
    ok(g_cu.cuMemHostAlloc(&pinned, 1, 0));
    *(bytes)pinned = 3;
    ok(g_cu.cuMemcpyAsync(g_memory, (CUdeviceptr)(uintptr_t)&pageable, 1, g_streams[0]));
    ok(g_cu.cuMemcpyAsync(g_memory + 1, (CUdeviceptr)(uintptr_t)pinned, 1, g_streams[0]));
    pageable = *(bytes)pinned = 4;
    ok(g_cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)&pageable, g_memory, 1, g_streams[0]));
    assert_int_equal(pageable, 3); /* a pageable destination is written before the call returns */
    assert_int_equal(*(bytes)(uintptr_t)(g_memory + 1), 4);
    ok(g_cu.cuMemFreeHost(pinned));
}

static void legacy_stream_orders_blocking_streams_and_no_others(void **state)
{
    (void)state;
    CUstream blocking;
    ok(g_cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    ok(launch(g_streams[0], 100));
    ok(launch(blocking, 1));
    ok(launch(NULL, 10));
    ok(g_cu.cuStreamSynchronize(NULL));
    assert_int_equal(memory_byte(), 12);
    ok(launch(NULL, 5));
    ok(launch(blocking, 7));
    ok(g_cu.cuStreamSynchronize(blocking));
    assert_int_equal(memory_byte(), 2 * (2 * 12 + 5) + 7);
    twin_run_all();
    ok(g_cu.cuStreamDestroy(blocking));
}

/* Every strategy keeps the order that was asked for, and none keeps more for ever. */
static void orders_between_streams_differ_by_seed_and_keep_what_was_asked_for(void **state)
{
    bool seen[256] = {false};
    unsigned different = 0, hidden = 0;
    for (g_seed = 1; g_seed <= 60; g_seed++) {
        setup(state);
        for (unsigned i = 0; i < 6; i++) {
            ok(launch(g_streams[0], 1));
            ok(launch(g_streams[1], 2));
        }
        ok(g_cu.cuEventRecord(g_event, g_streams[0]));
        ok(g_cu.cuStreamWaitEvent(g_streams[1], g_event, 0));
        ok(g_cu.cuMemsetD8Async(g_memory + 1, 9, 1, g_streams[1]));
        while (g_cu.cuEventQuery(g_event) != CUDA_SUCCESS)
            hidden++;
        ok(g_cu.cuStreamSynchronize(g_streams[1]));
        different += !seen[memory_byte()];
        seen[memory_byte()] = true;
        assert_clean();
    }
    g_seed = 0;
    assert_true(different > 5);
    assert_true(hidden > 20);
}

/* ------------------------------------------------------------------------------------------- objects that are not there */

static void use_after_destroy_is_reported(void **state)
{
    (void)state;
    ok(g_cu.cuEventDestroy(g_event));
    assert_int_equal(g_cu.cuEventRecord(g_event, g_streams[0]), CUDA_ERROR_INVALID_HANDLE);
    assert_breach("cuEventRecord: event 0 was destroyed before");
    assert_int_equal(g_cu.cuEventDestroy(g_event), CUDA_ERROR_INVALID_HANDLE);
    assert_breach("cuEventDestroy: event 0 was destroyed before");
    ok(g_cu.cuStreamDestroy(g_streams[1]));
    assert_int_equal(launch(g_streams[1], 1), CUDA_ERROR_INVALID_HANDLE);
    assert_breach("stream 1 was destroyed before");
    assert_int_equal(g_cu.cuStreamDestroy(g_streams[1]), CUDA_ERROR_INVALID_HANDLE);
    assert_breach("cuStreamDestroy: stream 1 was destroyed before");
    ok(g_cu.cuMemFree(g_memory));
    assert_int_equal(g_cu.cuMemFree(g_memory), CUDA_ERROR_INVALID_VALUE);
    assert_breach("freed before");
}

static void what_is_no_handle_or_another_kind_is_reported(void **state)
{
    (void)state;
    (void)g_cu.cuStreamSynchronize((CUstream)(uintptr_t)0x1230);
    assert_breach("0x1230 is no stream");
    (void)g_cu.cuEventQuery((CUevent)g_streams[0]);
    assert_breach("stream 0 was given for an event");
    (void)g_cu.cuMemFreeHost((void *)(uintptr_t)g_memory);
    assert_breach("no pinned block");
    CUevent earlier = g_event;
    setup(NULL);
    (void)g_cu.cuEventQuery(earlier);
    assert_breach("is no event");
}

static void events_that_were_never_recorded_are_reported(void **state)
{
    (void)state;
    ok(g_cu.cuEventQuery(g_event));
    assert_breach("cuEventQuery: event 0 was never recorded");
    ok(g_cu.cuStreamWaitEvent(g_streams[0], g_event, 0));
    assert_breach("cuStreamWaitEvent: event 0 was never recorded");
    /* A record that failed is the driver's fault, not the caller's. */
    twin_fail("cuEventRecord", CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    assert_int_equal(g_cu.cuEventRecord(g_event, g_streams[0]), CUDA_ERROR_OUT_OF_MEMORY);
    ok(g_cu.cuEventQuery(g_event));
    assert_clean();
}

static void what_work_still_uses_may_not_go(void **state)
{
    (void)state;
    CUdeviceptr other;
    ok(g_cu.cuMemAlloc(&other, 16));
    ok(launch(g_streams[0], 1));
    ok(g_cu.cuMemFree(other));
    assert_clean();
    ok(g_cu.cuMemFree(g_memory));
    assert_breach("which work that has not run uses");
    ok(g_cu.cuStreamDestroy(g_streams[0]));
    assert_breach("stream 0 has work that has not run");
}

static void what_is_left_at_the_end_is_reported(void **state)
{
    (void)state;
    static const char *const left[] = {"stream 0 was not destroyed", "event 0 was not destroyed", "64 bytes",
                                       "device 0 is retained 1 times"};
    for (int i = 0; i < 4; i++) {
        twin_audit();
        assert_breach(left[i]);
        if (i == 0) {
            ok(g_cu.cuStreamDestroy(g_streams[0]));
            ok(g_cu.cuStreamDestroy(g_streams[1]));
        } else if (i == 1) {
            ok(g_cu.cuEventDestroy(g_event));
        } else if (i == 2) {
            ok(g_cu.cuMemFree(g_memory));
        }
    }
    ok(g_cu.cuDevicePrimaryCtxRelease(0));
    ok(g_cu.cuDevicePrimaryCtxRelease(1));
    twin_audit();
    assert_clean();
    assert_int_equal(g_cu.cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
    assert_breach("is not retained");
}

/* ------------------------------------------------------------------------------------------------- devices and threads */

static void handles_are_for_their_own_context(void **state)
{
    (void)state;
    CUstream other;
    CUdeviceptr memory;
    ok(g_cu.cuCtxSetCurrent(twin_context(1)));
    assert_int_equal(launch(g_streams[0], 1), CUDA_ERROR_INVALID_CONTEXT);
    assert_breach("stream 0 is of device 0, the current context of device 1");
    (void)g_cu.cuEventQuery(g_event);
    assert_breach("event 0 is of device 0");
    (void)g_cu.cuMemFree(g_memory);
    assert_breach("a block of device 0");
    ok(g_cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CUlaunchConfig config = config_of(other);
    (void)launch_as(&config, g_memory, 1);
    assert_breach("no memory of device 1");
    (void)g_cu.cuLaunchKernelEx(&config, twin_function(g_add, 0), (void *[]){&g_memory, &config}, NULL);
    assert_breach("function 1 is of device 0"); /* functions are per device, kernels are not */
    ok(g_cu.cuMemAlloc(&memory, 8));
    ok(launch_as(&config, memory, 1));
    assert_clean();
    ok(g_cu.cuCtxSetCurrent(NULL));
    assert_int_equal(g_cu.cuMemAlloc(&memory, 8), CUDA_ERROR_INVALID_CONTEXT);
    assert_breach("no context is current on this thread");
    CUcontext popped;
    (void)g_cu.cuCtxPopCurrent(&popped);
    assert_breach("no context was pushed");
}

/* An event may be waited for on another device, but recorded on its own alone. */
static void event_of_another_device_may_be_waited_for(void **state)
{
    (void)state;
    CUstream other;
    ok(g_cu.cuEventRecord(g_event, g_streams[0]));
    ok(g_cu.cuCtxSetCurrent(twin_context(1)));
    ok(g_cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    ok(g_cu.cuStreamWaitEvent(other, g_event, 0));
    ok(g_cu.cuStreamSynchronize(other));
    assert_clean();
    (void)g_cu.cuEventRecord(g_event, other);
    assert_breach("event 0 is of device 0");
}

static void context_that_ends_takes_its_objects(void **state)
{
    (void)state;
    ok(g_cu.cuDevicePrimaryCtxRelease(0));
    assert_breach("the context of device 0 ends before its stream 0");
    (void)launch(g_streams[0], 1);
    assert_breach("stream 0 was destroyed before");
    assert_int_equal(g_cu.cuCtxSetCurrent((CUcontext)(uintptr_t)0x10), CUDA_ERROR_INVALID_CONTEXT);
    assert_breach("is no context");
}

/* ------------------------------------------------------------------------------------------------------------- capture */

static void *alloc_as(void *mode)
{
    CUdeviceptr memory = 0;
    (void)g_cu.cuCtxSetCurrent(twin_context(0));
    twin_thread_set_mode((CUstreamCaptureMode)(uintptr_t)mode);
    return (void *)(uintptr_t)g_cu.cuMemAlloc(&memory, 1);
}

/* From another thread. @return the call's result */
static CUresult alloc_elsewhere(CUstreamCaptureMode mode)
{
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, alloc_as, (void *)(uintptr_t)mode), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return (CUresult)(uintptr_t)result;
}

static CUgraph capture_end(CUresult expected)
{
    CUgraph graph = NULL;
    assert_int_equal(g_cu.cuStreamEndCapture(g_streams[0], &graph), expected);
    return graph;
}

static void calls_that_a_capture_forbids_follow_the_modes_of_both_threads(void **state)
{
    (void)state;
    static const struct {
        CUstreamCaptureMode capture, thread;
        bool elsewhere, forbidden;
    } rows[] = {
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL, true, true},
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true, false},
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED, true, false},
        {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL, true, false},
        {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false, true},
        {CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL, false, false},
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUdeviceptr memory = 0;
        ok(g_cu.cuStreamBeginCapture(g_streams[0], rows[i].capture));
        twin_thread_set_mode(rows[i].elsewhere ? CU_STREAM_CAPTURE_MODE_RELAXED : rows[i].thread);
        CUresult result = rows[i].elsewhere ? alloc_elsewhere(rows[i].thread) : g_cu.cuMemAlloc(&memory, 1);
        assert_int_equal(result, rows[i].forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
        if (rows[i].forbidden)
            assert_breach("is being captured, and this thread's capture mode forbids the call");
        assert_clean();
        capture_end(rows[i].forbidden ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    }
}

static void what_conflicts_with_a_capture_is_reported_in_every_mode(void **state)
{
    (void)state;
    CUstream blocking;
    twin_thread_set_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
    ok(g_cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    ok(g_cu.cuStreamBeginCapture(g_streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(launch(g_streams[0], 1));
    ok(g_cu.cuEventRecord(g_event, g_streams[0]));
    assert_int_equal(g_cu.cuEventQuery(g_event), CUDA_ERROR_CAPTURED_EVENT);
    assert_breach("cuEventQuery: event 0 was recorded in a capture");
    assert_int_equal(g_cu.cuStreamWaitEvent(g_streams[1], g_event, 0), CUDA_ERROR_CAPTURED_EVENT);
    assert_breach("cuStreamWaitEvent: event 0 was recorded in a capture");
    (void)g_cu.cuStreamSynchronize(g_streams[0]);
    assert_breach("stream 0 is being captured");
    capture_end(CUDA_SUCCESS);
    twin_run_all();
    assert_int_equal(memory_byte(), 0); /* captured, so never run */
    (void)g_cu.cuStreamEndCapture(g_streams[0], &(CUgraph){NULL});
    assert_breach("is not being captured by this thread");
    ok(g_cu.cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    (void)launch(NULL, 1);
    assert_breach("the legacy stream while a stream that synchronises with it is being captured");
    (void)g_cu.cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_breach("legacy stream");
}

/* ------------------------------------------------------------------------------------------------------------ launches */

static void launches_beyond_the_limits_are_reported(void **state)
{
    (void)state;
    CUlaunchConfig c;
#define LAUNCH_WITH(field, value, words)                                                                               \
    c = config_of(g_streams[0]);                                                                                       \
    c.field = (value);                                                                                                 \
    assert_int_not_equal(launch_as(&c, g_memory, 1), CUDA_SUCCESS);                                                    \
    assert_breach(words)
    LAUNCH_WITH(gridDimY, TWIN_GRID_MOST + 1, "grid 1 x 65536 x 1");
    LAUNCH_WITH(gridDimZ, 0, "grid 1 x 1 x 0");
    LAUNCH_WITH(blockDimX, TWIN_BLOCK_MOST + 1, "block 1025 x 1 x 1");
    LAUNCH_WITH(blockDimY, 257, "a block of 257 threads, the kernel takes 256");
    LAUNCH_WITH(sharedMemBytes, TWIN_SHARED_DEFAULT + 1, "the kernel was opted in to 49152");
#undef LAUNCH_WITH
    CUfunction function = twin_function(g_add, 0);
    (void)g_cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, TWIN_SHARED_MOST + 1);
    assert_breach("at most 232448");
    ok(g_cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    c = config_of(g_streams[0]);
    c.sharedMemBytes = 100000;
    ok(launch_as(&c, g_memory, 1));
    assert_clean();
}

static void clusters_and_cooperative_launches_follow_their_rules(void **state)
{
    (void)state;
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {3, 1, 1}};
    CUlaunchConfig c = config_of(g_streams[0]);
    c.gridDimX = 16;
    c.attrs = &a;
    c.numAttrs = 1;
    assert_int_equal(launch_as(&c, g_memory, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    assert_breach("a cluster of 3 x 1 x 1 blocks in a grid of 16");
    a.value.clusterDim.x = 16;
    assert_int_equal(launch_as(&c, g_memory, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    assert_breach("without the opt-in to more than 8");
    ok(g_cu.cuFuncSetAttribute(twin_function(g_add, 0), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    ok(launch_as(&c, g_memory, 1));
    a = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    assert_int_equal(launch_as(&c, g_memory, 1), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE); /* no breach: it depends */
    c.gridDimX = 4;
    ok(launch_as(&c, g_memory, 1));
    assert_clean();
    twin_plain_devices();
    (void)launch_as(&c, g_memory, 1);
    assert_breach("a cooperative launch on a device without");
    a = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 1};
    (void)launch_as(&c, g_memory, 1);
    assert_breach("attribute 8, or its value");
}

static void arguments_must_be_there_and_memory_that_kernels_touch_too(void **state)
{
    (void)state;
    CUlaunchConfig c = config_of(g_streams[0]);
    size_t offset, size;
    void *args[] = {&g_memory, NULL};
    assert_int_equal(g_cu.cuLaunchKernelEx(&c, (CUfunction)g_add, args, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_breach("argument 1 of 2 of kernel 'add' is missing");
    (void)launch_as(&c, g_memory + 64, 1);
    assert_breach("kernel 'add' touches 1 bytes");
    (void)g_cu.cuMemsetD8Async(g_memory + 60, 0, 5, g_streams[0]);
    assert_breach("reach out of a block of 64");
    assert_int_equal(g_cu.cuFuncGetParamInfo(twin_function(g_add, 0), 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    assert_clean();
    twin_run_all();
}

/* ------------------------------------------------------------------------------------------------------------ failures */

static void failures_come_when_they_were_asked_for(void **state)
{
    (void)state;
    CUdeviceptr memory;
    twin_fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1, 2);
    ok(g_cu.cuMemAlloc(&memory, 1));
    assert_int_equal(g_cu.cuMemAlloc(&memory, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(g_cu.cuMemAlloc(&memory, 1), CUDA_ERROR_OUT_OF_MEMORY);
    ok(g_cu.cuMemAlloc(&memory, 1));
    twin_fail_rate(500);
    unsigned failed = 0;
    for (int i = 0; i < 100; i++)
        failed += launch(g_streams[0], 1) != CUDA_SUCCESS;
    assert_true(failed > 20 && failed < 80);
    ok(launch(NULL, 1)); /* not the legacy stream */
    twin_run_all();
    assert_int_equal(twin_kernels_run(), 101 - failed);
    assert_int_equal(twin_failures(), 2 + failed);
}

static void lost_device_answers_every_later_call_with_its_error(void **state)
{
    (void)state;
    unsigned char byte = 7;
    twin_lose_after_kernels(CUDA_ERROR_ILLEGAL_ADDRESS, 1);
    ok(launch(g_streams[0], 1));
    ok(launch(g_streams[0], 1));
    ok(g_cu.cuMemcpyAsync(g_memory, (CUdeviceptr)(uintptr_t)&byte, 1, g_streams[0]));
    assert_int_equal(g_cu.cuStreamSynchronize(g_streams[0]), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(twin_lost());
    assert_int_equal(memory_byte(), 1); /* the second kernel faulted, nothing ran behind it */
    assert_int_equal(g_cu.cuEventDestroy(g_event), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(g_cu.cuMemFree(g_memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(g_cu.cuStreamDestroy(g_streams[0]), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(g_cu.cuStreamDestroy(g_streams[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(g_cu.cuDevicePrimaryCtxRelease(0), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(g_cu.cuDevicePrimaryCtxRelease(1), CUDA_ERROR_ILLEGAL_ADDRESS);
    twin_audit(); /* who tried to destroy has done what can be done */
    assert_clean();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_runs_before_it_has_to),
        TEST(wait_is_for_the_latest_record_at_the_time_of_the_wait),
        TEST(pageable_source_is_read_when_the_copy_is_called_and_pinned_one_later),
        TEST(legacy_stream_orders_blocking_streams_and_no_others),
        TEST(orders_between_streams_differ_by_seed_and_keep_what_was_asked_for),
        TEST(use_after_destroy_is_reported),
        TEST(what_is_no_handle_or_another_kind_is_reported),
        TEST(events_that_were_never_recorded_are_reported),
        TEST(what_work_still_uses_may_not_go),
        TEST(what_is_left_at_the_end_is_reported),
        TEST(handles_are_for_their_own_context),
        TEST(event_of_another_device_may_be_waited_for),
        TEST(context_that_ends_takes_its_objects),
        TEST(calls_that_a_capture_forbids_follow_the_modes_of_both_threads),
        TEST(what_conflicts_with_a_capture_is_reported_in_every_mode),
        TEST(launches_beyond_the_limits_are_reported),
        TEST(clusters_and_cooperative_launches_follow_their_rules),
        TEST(arguments_must_be_there_and_memory_that_kernels_touch_too),
        TEST(failures_come_when_they_were_asked_for),
        TEST(lost_device_answers_every_later_call_with_its_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

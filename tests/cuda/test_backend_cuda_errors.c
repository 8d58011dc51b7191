/*
 * Every call that the CUDA backend makes fails in turn, with errors that CUDA recovers from and with those that end
 * all, and so does every allocation: nothing is left behind, no illegal call is made, and what is reported as done was
 * done in order.
 */
#include "backend_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEP_MOST = 2000, POLLS_MOST = 400, SWEEP_SLOTS = 3, BUNDLES = 3, BUNDLES_UNTIL_FIXED = 40 };

/* ------------------------------------------------------------------------------------------- allocations that fail */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static int64_t g_allocations_left = -1; /* until the one that fails; -1: none does. One thread allocates. */

static bool allocation_fails(void)
{
    return g_allocations_left >= 0 && g_allocations_left-- == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocation_fails() ? NULL : __real_calloc(count, bytes);
}

/* ---------------------------------------------------------------------------------------------------- the scenario */

/* All that a backend is asked for, over memory whose bytes tell what ran and in which order. */
typedef struct scenario {
    acs_backend *backend;
    unsigned char *device, *pinned;
    unsigned char pageable[4];
    CUstream foreign;
    bool complete; /* every op was issued, and seen to end */
    uint64_t value; /* of the bundles' slot */
    bool untyped;          /* no bundle was made */
    bool used_well;        /* no call failed before the backend was closed: whatever failed then is told to nobody */
    bool unpaged;          /* the device was taken for one without virtual memory */
    bool unadapted;        /* a small copy was not made a kernel, or the host decides, as either may be */
    uint32_t bounces;      /* bundles that were handed back: one in any case, the first of those that recur */
    uint32_t refused; /* calls and ops that reported an error */
} scenario;

static void add_body(void *const *args)
{
    unsigned char *at = *(unsigned char **)args[0];
    *at = (unsigned char)(2 * *at + *(unsigned *)args[1]);
}

static CUkernel g_add;
static uint32_t g_bundles = BUNDLES; /* of the scenario */
static const char g_add_symbol;
static scenario g_s;

static bool accept(acs_status status)
{
    g_s.refused += status != ACS_OK;
    return status == ACS_OK;
}

/* at = 2 * at + value */
static acs_record *add_new(uint32_t kind, unsigned char *at, unsigned value)
{
    const void *functions[] = {NULL, &g_add_symbol, g_add, twin_function(g_add, 0)};
    acs_record *op = kernel_new(kind, functions[kind]);
    memcpy(op->arg_bytes, &at, sizeof at);
    memcpy(op->arg_bytes + 8, &value, sizeof value);
    return op;
}

/* Each kind of handle, each with what needs an opt-in or an attribute of its own. */
static bool check_kernels(acs_record **ops)
{
    ops[0] = add_new(ACS_KERNEL_FUNCTION, g_s.device, 1);
    ops[0]->u.launch.shared_bytes = 100000;
    ops[1] = add_new(ACS_KERNEL_HANDLE, g_s.device, 3);
    ops[1]->grid.x = 16;
    ops[1]->u.launch.attributes.cluster = (acs_dim3){16, 1, 1};
    ops[1]->u.launch.attributes.priority = -100;
    ops[2] = add_new(ACS_KERNEL_CUFUNCTION, g_s.device, 5);
    ops[2]->u.launch.attributes.cooperative = 1;
    for (int i = 0; i < 3; i++)
        if (!accept(g_s.backend->ops->check(g_s.backend, ops[i])))
            return false;
    g_s.untyped = !ops[0]->type;
    return true;
}

static acs_record *copy_new(acs_op_kind kind, void *dst, const void *src, int value)
{
    acs_record *op = record_new(kind);
    op->u.copy.dst = dst;
    op->u.copy.src = src;
    op->u.copy.bytes = 1;
    op->u.copy.rows = 1;
    op->u.copy.value = (unsigned char)value;
    return op;
}

/* Both ends are memory that the backend gave out. */
static acs_record *small_new(acs_op_kind kind, void *dst, const void *src, int value)
{
    acs_record *op = copy_new(kind, dst, src, value);
    g_s.backend->ops->adapt(g_s.backend, op);
    g_s.unadapted = g_s.unadapted || op->kind != ACS_KIND_KERNEL || !g_s.backend->ops->decider(g_s.backend);
    return op;
}

static int call_nothing(const acs_call_env *env, void *closure)
{
    (void)closure;
    return env->scratch && env->place ? 0 : 1;
}

static acs_record *call_new(uint64_t scratch)
{
    static const int key;
    acs_record *op = record_new(ACS_KIND_CALL);
    op->u.call.function = call_nothing;
    op->u.call.scratch_bytes = scratch;
    op->u.call.place_key = &key;
    return op;
}

/* Behind the item before it: by an event where that is in another slot. */
static acs_item *chain(acs_record *op, int slot)
{
    uint32_t before = g_batch.items_used;
    acs_item *item = item_new(op, slot);
    if (before) {
        item_edge(item, (uint16_t)(before - 1));
        if (g_batch.items[before - 1].slot >= 0 && g_batch.items[before - 1].mark_after)
            item_wait(item, (uint16_t)g_batch.items[before - 1].slot, g_batch.items[before - 1].after.index);
    }
    if (slot >= 0)
        item_mark_after(item, (uint16_t)before);
    item->after.value = before + 1;
    return item;
}

static void build(acs_record **kernels, void *event)
{
    acs_record *wait = record_new(ACS_KIND_STREAM_WAIT), *signal = record_new(ACS_KIND_STREAM_SIGNAL);
    wait->u.stream.event = event;
    signal->u.stream.stream = g_s.foreign;
    batch_clear();
    chain(small_new(ACS_KIND_MEMSET, g_s.device, NULL, 7), 0);
    chain(kernels[0], 1);                                                /* 15 */
    chain(kernels[1], 0);                                                /* 33 */
    chain(kernels[2], 2);                                                /* 71 */
    chain(copy_new(ACS_KIND_MEMSET, g_s.pageable, NULL, 9), 0);
    chain(copy_new(ACS_KIND_MEMCPY, g_s.device + 1, g_s.pageable, 0), 1); /* 9 */
    chain(small_new(ACS_KIND_MEMCPY, g_s.pinned, g_s.device, 0), 2);      /* 71 */
    chain(call_new(64), 0);
    chain(call_new(128), 0);
    chain(wait, 1);
    chain(signal, -1);
}

/* Until all that the batch was to mark is seen, or the device is lost. */
static bool poll_all(void)
{
    for (int slot = 0; slot < SWEEP_SLOTS; slot++) {
        acs_mark marks[ACS_BATCH_ITEMS];
        uint32_t count = 0;
        uint64_t completed = 0;
        for (uint32_t i = 0; i < g_batch.items_used; i++)
            if (g_batch.items[i].slot == slot)
                marks[count++] = g_batch.items[i].after;
        for (int polls = 0; completed < marks[count - 1].value; polls++) {
            assert_true(polls < POLLS_MOST); /* nothing is hidden for ever */
            if (!accept(g_s.backend->ops->poll(g_s.backend, slot, marks, count, &completed)))
                return false;
        }
    }
    return true;
}

/*
 * Two kernels behind each other, by the issue method; what bounces goes in one batch. Where there are no types: that at
 * once.
 */
static bool use_bundle(acs_issue_method method)
{
    const acs_backend_ops *ops = g_s.backend->ops;
    uint64_t completed = 0;
    batch_clear();
    g_records_used = 12; /* those before have ended */
    g_batch.bundle = true;
    g_batch.method = (uint8_t)method;
    for (int i = 0; i < 2; i++) {
        acs_record *op = add_new(ACS_KERNEL_HANDLE, g_s.device, 1);
        if (!accept(ops->check(g_s.backend, op)))
            return false;
        acs_item *item = item_new(op, 1);
        item->value = ++g_s.value;
        if (i > 0)
            item_edge(item, 0);
        g_batch.bundle = g_batch.bundle && op->type;
        g_s.untyped = g_s.untyped || !op->type;
    }
    item_mark_after(&g_batch.items[1], 60);
    g_batch.items[1].after.value = g_s.value;
    ops->submit(g_s.backend, &g_batch);
    if (g_batch.bundle && g_batch.items[0].status == ACS_NOT_READY) {
        g_s.bounces++;
        g_batch.bundle = false;
        ops->submit(g_s.backend, &g_batch);
    }
    bool ok = accept(g_batch.items[0].status) && accept(g_batch.items[1].status);
    for (int polls = 0; ok && completed < g_s.value; polls++) {
        assert_true(polls < POLLS_MOST);
        ok = accept(ops->poll(g_s.backend, 1, &g_batch.items[1].after, 1, &completed));
    }
    return ok;
}

/* A piece comes, is seen at an address, and goes; what could not go is told. */
static void use_pages(void)
{
    const acs_page_ops *pages = &g_s.backend->pages;
    uint64_t base = 0, piece = 0;
    const size_t bytes = 3 * pages->page;
    g_s.unpaged = pages->page == 0;
    if (g_s.unpaged || !accept(pages->reserve(g_s.backend, pages->span, &base)))
        return;
    bool there = accept(pages->create(g_s.backend, bytes, &piece));
    if (there && accept(pages->map(g_s.backend, base + bytes, bytes, piece))) {
        *(unsigned char *)(uintptr_t)(base + 2 * bytes - 1) = 1;
        there = accept(pages->unmap(g_s.backend, base + bytes, bytes)) ||
                accept(pages->unmap(g_s.backend, base + bytes, bytes));
    }
    if (there && !accept(pages->destroy(g_s.backend, piece, bytes)))
        (void)accept(pages->destroy(g_s.backend, piece, bytes));
    if (!accept(pages->unreserve(g_s.backend, base, pages->span)))
        (void)accept(pages->unreserve(g_s.backend, base, pages->span));
}

static void use_backend(void)
{
    acs_record *kernels[3];
    void *event = NULL, *memory = NULL;
    const acs_backend_ops *ops = g_s.backend->ops;
    if (!accept(ops->memory_alloc(g_s.backend, ACS_MEMORY_DEVICE, 64, &memory)))
        return;
    g_s.device = memory;
    if (!accept(ops->memory_alloc(g_s.backend, ACS_MEMORY_HOST, 64, &memory)))
        return;
    g_s.pinned = memory;
    use_pages();
    if (!check_kernels(kernels) || !accept(ops->stream_record(g_s.backend, g_s.foreign, &event)))
        return;
    build(kernels, event);
    ops->submit(g_s.backend, &g_batch);
    bool ok = true;
    for (uint32_t i = 0; i < g_batch.items_used; i++)
        ok = accept(g_batch.items[i].status) && ok;
    g_s.complete = poll_all() && ok;
    g_s.value = 100;
    for (uint32_t i = 0; i < g_bundles && g_s.complete; i++)
        g_s.complete = use_bundle(ACS_METHOD_REPLAY);
}

/* Whoever is told that a block was not freed still has it. */
static void free_block(int memory, void *block)
{
    const acs_backend_ops *ops = g_s.backend->ops;
    if (block && !accept(ops->memory_free(g_s.backend, memory, block)))
        (void)accept(ops->memory_free(g_s.backend, memory, block));
}

static void scenario_close(void)
{
    twin_run_all();
    free_block(ACS_MEMORY_HOST, g_s.pinned);
    free_block(ACS_MEMORY_DEVICE, g_s.device);
    g_s.used_well = twin_failures() == 0;
    g_s.backend->ops->close(g_s.backend);
}

/* What was there before the backend, and is there after it. */
static void scenario_prepare(uint64_t seed)
{
    static const uint32_t sizes[] = {8, 4};
    const twin_kernel_spec spec = {.name = "add", .symbol = &g_add_symbol, .body = add_body, .param_count = 2,
                                   .param_bytes = sizes, .static_shared = 1024};
    CUcontext context;
    backend_reset();
    twin_seed(seed);
    g_add = twin_kernel(&spec);
    memset(&g_s, 0, sizeof g_s);
    /* The program has a stream, so it holds the context too. */
    assert_int_equal(TWIN_GET(cuDevicePrimaryCtxRetain, 7000)(&context, 0), CUDA_SUCCESS);
    g_s.foreign = foreign_stream(0);
}

/* What the bundles' kernels make of a byte. */
static unsigned char added_often(unsigned char byte, uint32_t kernels)
{
    while (kernels-- > 0)
        byte = (unsigned char)(2 * byte + 1);
    return byte;
}

static void scenario_run(void)
{
    if (!accept(backend_open(&g_s.backend)))
        return;
    use_backend();
    unsigned char seen[2] = {0}, copied = 0;
    if (g_s.complete) {
        memcpy(seen, g_s.device, sizeof seen);
        copied = *g_s.pinned;
    }
    scenario_close();
    if (g_s.complete) {
        assert_int_equal(seen[0], added_often(71, 2 * g_bundles));
        assert_int_equal(seen[1], 9);
        assert_int_equal(copied, 71);
        assert_int_equal(g_s.pageable[0], 9);
    }
}

/* The one call that failed is of those that give a thread its context and mode, or give them back. */
static bool thread_call_failed(void)
{
    static const char *const calls[] = {"cuCtxPushCurrent", "cuCtxPopCurrent", "cuThreadExchangeStreamCaptureMode"};
    for (size_t i = 0; twin_last_failed() && i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(twin_last_failed(), calls[i]) == 0)
            return true;
    return false;
}

static void scenario_end(uint64_t number, const char *what)
{
    CUcontext popped;
    const char *failed = twin_last_failed();
    bool excused = thread_call_failed(); /* then the thread cannot be as it was */
    if (!excused) {
        assert_int_equal(twin_thread_depth(), 0);
        assert_int_equal(twin_thread_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    }
    twin_fail(NULL, CUDA_SUCCESS, 0, 0);
    bool inside = TWIN_GET(cuCtxPushCurrent, 4000)(twin_context(0)) == CUDA_SUCCESS;
    (void)TWIN_GET(cuStreamSynchronize, 2000)(g_s.foreign);
    (void)TWIN_GET(cuStreamDestroy, 4000)(g_s.foreign);
    if (inside)
        (void)TWIN_GET(cuCtxPopCurrent, 4000)(&popped);
    (void)TWIN_GET(cuDevicePrimaryCtxRelease, 11000)(0);
    /* Nor has closing anybody to tell that a slot's scratch block could not be freed for want of a context. */
    if (!excused)
        twin_audit();
    else if (twin_breach() && strstr(twin_breach(), "no context is current"))
        twin_forget_breaches(); /* of closing, which tries all the same */
    if (twin_breach())
        fail_msg("%s %llu failed (%s): %s", what, (unsigned long long)number, failed ? failed : "none", twin_breach());
}

/* ------------------------------------------------------------------------------------------------------- the sweeps */

static void scenario_without_failures_does_all(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        scenario_prepare(seed);
        scenario_run();
        scenario_end(seed, "seed");
        assert_true(g_s.complete);
        assert_int_equal(g_s.refused, 0);
        assert_false(g_s.unadapted);
        assert_false(g_s.unpaged);
    }
}

/* Calls whose failure has a way around it, or has nobody to be told to. */
static bool is_tolerated(const char *function)
{
    static const char *const tolerated[] = {
        "cudaGetDriverEntryPointByVersion", "cuEventCreate", "cuEventRecord", "cuStreamCreate", "cuStreamWaitEvent",
        "cuPointerGetAttribute",
        "cuCtxPopCurrent", "cuThreadExchangeStreamCaptureMode", "cuEventDestroy", "cuFuncGetParamInfo",
        "cuFuncGetModule", "cuModuleGetGlobal",
        "cuMemFree", "cuMemFreeHost", "cuLibraryUnload", "cuGraphDestroy", "cuGraphExecDestroy",
        "cuCtxPushCurrent", "cuCtxGetId", "cudaGetLastError", "cuMemsetD8Async", "cuDeviceGetName"};
    for (size_t i = 0; i < sizeof tolerated / sizeof tolerated[0]; i++)
        if (strcmp(function, tolerated[i]) == 0)
            return true;
    return false;
}

static void call_that_fails_is_reported_or_made_good(void **state)
{
    static const CUresult codes[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED,
                                     CUDA_ERROR_LAUNCH_FAILED};
    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++) {
        uint64_t n = 0;
        for (bool failed = true; failed; n++) {
            assert_true(n < SWEEP_MOST);
            scenario_prepare(n);
            twin_fail("*", codes[c], n, 1);
            scenario_run();
            const char *function = twin_last_failed();
            failed = function != NULL;
            bool told = g_s.refused || g_s.untyped || g_s.unadapted || g_s.unpaged || g_s.bounces > 1;
            if (failed && !told && !g_s.used_well && !is_tolerated(function))
                fail_msg("call %llu, %s, failed with %d and nobody was told", (unsigned long long)n, function, codes[c]);
            scenario_end(n, "call");
        }
        assert_true(n > 100);
    }
}

/* Bundles that recur with their arguments get a graph with nodes that the host sets: in it a call can fail, too. */
static void node_that_cannot_be_set_is_made_good(void **state)
{
    uint64_t n = 0;
    (void)state;
    g_bundles = BUNDLES_UNTIL_FIXED;
    for (bool failed = true; failed; n++) {
        scenario_prepare(n);
        twin_fail("cuGraphExecKernelNodeSetParams", CUDA_ERROR_INVALID_VALUE, n, 1);
        scenario_run();
        failed = twin_last_failed() != NULL;
        assert_true(g_s.complete);
        assert_int_equal(g_s.refused, 0);
        scenario_end(n, "node");
    }
    assert_int_equal(n - 1, BUNDLES_UNTIL_FIXED - 1 + 2); /* a head for each that was not handed back, and two nodes */
    g_bundles = BUNDLES;
}

/* Two in a row: the way around a failure fails too. */
static void call_whose_way_around_fails_too_loses_the_device_at_most(void **state)
{
    static const char *const pairs[][2] = {{"cuEventRecord", "cuStreamSynchronize"},
                                           {"cuEventCreate", "cuStreamSynchronize"},
                                           {"cuStreamWaitEvent", "cuEventSynchronize"},
                                           {"cuMemsetD8Async", "cuPointerGetAttribute"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (uint64_t n = 0; n < 12; n++) {
            scenario_prepare(n);
            twin_fail(pairs[i][0], CUDA_ERROR_NOT_SUPPORTED, n, 1);
            twin_fail_also(pairs[i][1], CUDA_ERROR_NOT_SUPPORTED, n % 3, 100);
            scenario_run();
            twin_fail_also(NULL, CUDA_SUCCESS, 0, 0);
            scenario_end(n, pairs[i][0]);
        }
}

static void device_that_is_lost_at_any_call_is_reported(void **state)
{
    (void)state;
    uint64_t n = 0;
    for (bool lost = true; lost; n++) {
        assert_true(n < SWEEP_MOST);
        scenario_prepare(n);
        twin_lose_after_calls(n % 2 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_ECC_UNCORRECTABLE, n);
        scenario_run();
        lost = twin_lost();
        assert_true(!lost || g_s.refused || g_s.complete);
        scenario_end(n, "device lost at call");
    }
    assert_true(n > 100);
}

static void kernel_that_faults_is_reported(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 90; n++) {
        scenario_prepare(n);
        twin_lose_after_kernels(CUDA_ERROR_LAUNCH_FAILED, n % 3);
        scenario_run();
        assert_true(twin_lost());
        assert_true(g_s.refused > 0 && !g_s.complete);
        scenario_end(n, "device lost in kernel");
    }
}

static void allocation_that_fails_is_reported_or_made_good(void **state)
{
    (void)state;
    uint64_t n = 0;
    for (bool failed = true; failed; n++) {
        assert_true(n < SWEEP_MOST);
        scenario_prepare(n);
        g_allocations_left = (int64_t)n;
        scenario_run();
        failed = g_allocations_left < 0;
        g_allocations_left = -1;
        assert_true(!failed || g_s.refused || g_s.complete); /* complete: what a bundle wanted it for was done without */
        scenario_end(n, "allocation");
    }
    assert_true(n > 10);
}

/* The table of kernels grows when it is half full; one that cannot be remembered is refused, the others stay. */
static void table_that_cannot_grow_refuses_the_kernel_and_keeps_the_others(void **state)
{
    (void)state;
    uint32_t refused = 0;
    scenario_prepare(1);
    assert_int_equal(backend_open(&g_s.backend), ACS_OK);
    for (int i = 0; i < 300; i++) {
        g_records_used = 0;
        acs_record *op = kernel_new(ACS_KERNEL_HANDLE, kernel_add());
        g_allocations_left = 1; /* the kernel is the first, a larger table the second */
        acs_status status = g_s.backend->ops->check(g_s.backend, op);
        g_allocations_left = -1;
        if (status != ACS_OK) {
            assert_error(status, ACS_ERR_MEMORY, "no memory for a larger table of kernels");
            refused++;
            assert_int_equal(g_s.backend->ops->check(g_s.backend, op), ACS_OK);
        }
        assert_non_null(op->u.launch.resolved);
    }
    assert_int_equal(refused, 2); /* at 128 and at 256 */
    scenario_close();
    scenario_end(0, "table");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_without_failures_does_all),
        cmocka_unit_test(call_that_fails_is_reported_or_made_good),
        cmocka_unit_test(node_that_cannot_be_set_is_made_good),
        cmocka_unit_test(call_whose_way_around_fails_too_loses_the_device_at_most),
        cmocka_unit_test(device_that_is_lost_at_any_call_is_reported),
        cmocka_unit_test(kernel_that_faults_is_reported),
        cmocka_unit_test(allocation_that_fails_is_reported_or_made_good),
        cmocka_unit_test(table_that_cannot_grow_refuses_the_kernel_and_keeps_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Library calls that are issued without their library, over the twin: that they are, that the result is the library's, and
 * that whatever does not keep the contract, or cannot be captured, is left to the function.
 */
#include "capture_fixture.h"

#include <stdlib.h>

enum { BLOCKS = 8, BLOCK = 256, POINTERS = 3 };

typedef enum behaviour {
    ONE_KERNEL,
    THREE_KERNELS, /* one after the other, on the same bytes */
    TWO_KERNELS,   /* and a fill of scratch memory, which the second reads */
    HIDDEN_MEMORY, /* reads memory that its footprint does not name */
    ODD_POINTER,   /* an argument that follows from a pointer, but not as an address */
    NOT_CAPTURED,  /* reports failure where it is captured */
    COPIES,        /* is more than kernels and fills */
    CHANGING       /* where it is captured first, another kernel, with more arguments, that does the same */
} behaviour;

typedef struct closure {
    uint64_t id;
    void *pointer[POINTERS]; /* updated, read, read; NULL: not there */
    uint64_t behaviour;
} closure;

static int g_calls;   /* of the function, captures among them */
static unsigned char *g_hidden;
static CUkernel g_wide; /* the kernel that comes first */

static bool is_captured(CUstream stream)
{
    CUstreamCaptureStatus status;
    ok(TWIN_GET(cuStreamIsCapturing, 10000)(stream, &status));
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static work work_of(const closure *c)
{
    work w = update_of((uint32_t)c->id, c->pointer[0], c->pointer[1], BLOCK);
    if (c->pointer[2])
        w.pieces[w.head.pieces++] = piece_at((unsigned char *)c->pointer[2] + BLOCK / 2, BLOCK / 2, MIX_READ);
    return w;
}

static int send_more(const acs_call_env *env, const closure *c, work *w)
{
    if (c->behaviour == HIDDEN_MEMORY)
        w->pieces[w->head.pieces++] = piece_at(g_hidden, 64, MIX_READ);
    if (c->behaviour == ODD_POINTER)
        w->head.id ^= (uint32_t)((uintptr_t)c->pointer[0] >> 8);
    if (c->behaviour == COPIES)
        return TWIN_GET(cuMemcpyAsync, 4000)((CUdeviceptr)c->pointer[0], (CUdeviceptr)c->pointer[1], 16, env->stream);
    for (uint32_t i = 0; c->behaviour == THREE_KERNELS && i < 2; i++) {
        const work first = update_of(20 + i, c->pointer[0], c->pointer[1], BLOCK / 2);
        if (send_work(env->stream, &first) != CUDA_SUCCESS)
            return 4;
    }
    if (c->behaviour != TWO_KERNELS)
        return 0;
    work first = update_of(7, env->scratch, c->pointer[1], 64);
    w->pieces[w->head.pieces++] = piece_at(env->scratch, 64, MIX_READ);
    if (TWIN_GET(cuMemsetD8Async, 3020)((CUdeviceptr)env->scratch, 3, 64, env->stream) != CUDA_SUCCESS)
        return 4;
    return send_work(env->stream, &first) == CUDA_SUCCESS ? 0 : 4;
}

static CUresult send_wide(CUstream stream, const work *w)
{
    work copy = *w;
    uint64_t unused[8] = {0};
    void *args[] = {&copy, unused};
    const CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
                                   .blockDimZ = 1, .hStream = stream};
    const CUfunction wide = (CUfunction)g_wide;
    g_wide = NULL;
    return TWIN_GET(cuLaunchKernelEx, 11060)(&config, wide, args, NULL);
}

static int library(const acs_call_env *env, void *argument)
{
    const closure *c = argument;
    work w = work_of(c);
    g_calls++;
    if (c->behaviour == NOT_CAPTURED && is_captured(env->stream))
        return 9;
    if (c->behaviour == CHANGING && is_captured(env->stream) && g_wide)
        return send_wide(env->stream, &w) == CUDA_SUCCESS ? 0 : 5;
    if (send_more(env, c, &w) != 0)
        return 4;
    return send_work(env->stream, &w) == CUDA_SUCCESS ? 0 : 5;
}

static acs_op call(const closure *c, bool repeatable)
{
    acs_segment segments[POINTERS];
    size_t count = 0;
    for (int i = 0; i < POINTERS; i++)
        if (c->pointer[i])
            segments[count++] = acs_make_segment(ACS_EXTENT_BYTES, i ? ACS_READ : ACS_UPDATE,
                                                 (uint64_t)(uintptr_t)c->pointer[i], BLOCK, 1, BLOCK);
    const acs_call_params params = {.size = sizeof params,
                                    .function = library,
                                    .closure = c,
                                    .closure_bytes = sizeof *c,
                                    .scratch_bytes = c->behaviour == TWO_KERNELS ? 64 : 0,
                                    .uses = {.segments = segments, .count = count},
                                    .repeatable = repeatable,
                                    .pointers = 2 | 4 | 8};
    return acs_call(g_context, &params);
}

static void *block(uint32_t number)
{
    return g_memory + (size_t)number * BLOCK;
}

static uint64_t calls_as_kernels(void)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(g_context, &s), ACS_OK);
    return s.calls_as_kernels;
}

/* The n-th call of a program, with pointers that seem random. */
static closure nth(uint32_t n, behaviour how)
{
    const uint32_t r = (n + 1) * 2654435761u;
    closure c = {.id = 5, .behaviour = how};
    c.pointer[0] = block(r >> 8 & 3);
    c.pointer[1] = block(4 + (r >> 12 & 1));
    c.pointer[2] = block(6 + (r >> 16 & 1));
    return c;
}

/* Memory after `count` calls: what the function alone makes of it, and with what the runtime knows of it. */
static void assert_same_results(uint32_t count, behaviour how)
{
    unsigned char expected[BLOCKS * BLOCK];
    for (int repeatable = 0; repeatable < 2; repeatable++) {
        memset(g_memory, 1, sizeof expected);
        for (uint32_t n = 0; n < count; n++) {
            const closure c = nth(n, how);
            assert_int_not_equal(call(&c, repeatable), 0);
            if (n % 3 == 0)
                assert_int_equal(acs_sync(g_context), ACS_OK);
        }
        assert_int_equal(acs_sync(g_context), ACS_OK);
        if (!repeatable)
            memcpy(expected, g_memory, sizeof expected);
    }
    assert_memory_equal(expected, g_memory, sizeof expected);
}

/* ---------------------------------------------------------------------------------------------------------------- tests */

static void the_same_call_is_captured_once_and_then_a_kernel(void **state)
{
    (void)state;
    const closure c = nth(1, ONE_KERNEL);
    g_calls = 0;
    for (int i = 0; i < 10; i++) {
        assert_int_not_equal(call(&c, true), 0);
        assert_int_equal(acs_sync(g_context), ACS_OK);
    }
    assert_int_equal(g_calls, 2);
    assert_int_equal(calls_as_kernels(), 9);
}

static void calls_with_other_pointers_become_kernels_too(void **state)
{
    (void)state;
    assert_same_results(60, ONE_KERNEL);
    g_calls = 0;
    assert_same_results(60, ONE_KERNEL);
    assert_int_equal(g_calls, 60); /* those that are not repeatable */
    assert_true(calls_as_kernels() > 60);
}

static void several_kernels_become_as_many_ops(void **state)
{
    acs_statistics s = {.size = sizeof s};
    (void)state;
    assert_same_results(60, THREE_KERNELS);
    g_calls = 0;
    const uint64_t before = calls_as_kernels();
    assert_same_results(60, THREE_KERNELS);
    assert_int_equal(g_calls, 60);
    assert_int_equal(calls_as_kernels() - before, 3 * 60);
    const closure c = nth(3, THREE_KERNELS);
    assert_int_equal(acs_stats(g_context, &s), ACS_OK);
    assert_int_equal(call(&c, true), s.queued + 3); /* the last of them */
    assert_int_equal(acs_sync(g_context), ACS_OK);
}

/* The later parts are skipped, and the call's own op tells which one failed. */
static void kernel_that_fails_takes_the_call_s_later_ones_along(void **state)
{
    acs_error error = {.size = sizeof error};
    const closure c = nth(3, THREE_KERNELS);
    (void)state;
    assert_same_results(60, THREE_KERNELS);
    twin_fail("cuLaunchKernelEx", CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    const acs_op op = call(&c, true);
    assert_int_equal(acs_wait(g_context, op), ACS_ERR_SKIPPED);
    twin_fail(NULL, CUDA_SUCCESS, 0, 0);
    assert_int_equal(acs_op_error(g_context, op, &error), ACS_ERR_SKIPPED);
    assert_int_equal(error.cause, op - 2);
    assert_int_equal(acs_clear(g_context), ACS_OK);
}

static void several_kernels_with_scratch_memory_are_launched_in_their_slot(void **state)
{
    (void)state;
    assert_same_results(60, TWO_KERNELS);
    g_calls = 0;
    assert_same_results(60, TWO_KERNELS);
    assert_true(g_calls < 70); /* a slot that makes its scratch memory moves that base for the first time */
    assert_int_equal(calls_as_kernels(), 0);
}

static void memory_without_a_name_leaves_the_call_to_its_function(void **state)
{
    (void)state;
    g_hidden = memory_new(64);
    g_calls = 0;
    assert_same_results(20, HIDDEN_MEMORY);
    assert_int_equal(g_calls, 20 + 20 + 1);
    assert_int_not_equal(acs_free(g_context, g_hidden), 0);
}

static void arguments_that_are_no_addresses_leave_the_call_to_its_function(void **state)
{
    (void)state;
    assert_same_results(60, ODD_POINTER);
    g_calls = 0;
    assert_same_results(20, ODD_POINTER);
    assert_int_equal(g_calls, 40);
}

static void what_cannot_be_captured_is_left_to_its_function(void **state)
{
    (void)state;
    for (int how = NOT_CAPTURED; how <= COPIES; how++) {
        g_calls = 0;
        assert_same_results(20, (behaviour)how);
        assert_int_equal(g_calls, 20 + 20 + 1);
    }
}

/* The arguments of one kernel are not read by the layout of another. */
static void calls_whose_kernels_change_stay_with_their_function(void **state)
{
    static const uint32_t bytes[] = {sizeof(work), 8 * sizeof(uint64_t)};
    const twin_kernel_spec spec = {.name = "wide", .body = mix_body, .touches = mix_touches, .param_count = 2,
                                   .param_bytes = bytes};
    (void)state;
    g_wide = twin_kernel(&spec);
    g_calls = 0;
    assert_same_results(20, CHANGING);
    assert_null(g_wide); /* it was captured */
    assert_int_equal(g_calls, 20 + 20 + 2);
    assert_int_equal(calls_as_kernels(), 0);
}

/* Two pointers that move together leave it open which of them an argument follows. */
static void pointers_that_moved_together_are_told_apart_before_they_part(void **state)
{
    unsigned char expected[BLOCKS * BLOCK];
    (void)state;
    for (int repeatable = 0; repeatable < 2; repeatable++) {
        memset(g_memory, 1, sizeof expected);
        for (uint32_t n = 0; n < 40; n++) {
            const uint32_t part = n < 20 ? 0 : n % 3;
            const closure c = {.id = 9, .pointer = {block(n % 4), block(4 + (n % 4 + part) % 4), NULL}};
            assert_int_not_equal(call(&c, repeatable), 0);
            assert_int_equal(acs_sync(g_context), ACS_OK);
        }
        if (!repeatable)
            memcpy(expected, g_memory, sizeof expected);
    }
    assert_memory_equal(expected, g_memory, sizeof expected);
}

static void null_and_equal_pointers_are_calls_of_their_own(void **state)
{
    unsigned char expected[BLOCKS * BLOCK];
    (void)state;
    for (int repeatable = 0; repeatable < 2; repeatable++) {
        memset(g_memory, 1, sizeof expected);
        for (uint32_t n = 0; n < 60; n++) {
            closure c = nth(n, ONE_KERNEL);
            c.pointer[1] = n % 5 == 0 ? NULL : n % 5 == 1 ? c.pointer[2] : c.pointer[1];
            c.pointer[2] = n % 7 == 0 ? NULL : c.pointer[2];
            assert_int_not_equal(call(&c, repeatable), 0);
            assert_int_equal(acs_sync(g_context), ACS_OK);
        }
        if (!repeatable)
            memcpy(expected, g_memory, sizeof expected);
    }
    assert_memory_equal(expected, g_memory, sizeof expected);
}

/* The op runs, or fails with its own error; no result is wrong, nothing leaks. */
static void any_driver_call_of_a_capture_may_fail(void **state)
{
    static const char *const functions[] = {
        "cuStreamCreate", "cuStreamBeginCapture", "cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphNodeGetDependencies",
        "cuGraphKernelNodeGetParams", "cuGraphMemsetNodeGetParams", "cuGraphKernelNodeGetAttribute",
        "cuPointerGetAttribute", "cuGraphDestroy", "cuFuncGetParamInfo", "cuFuncGetAttribute", "cuKernelGetFunction",
        "cuLaunchKernelEx", "cuMemsetD8Async"};
    (void)state;
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        for (uint64_t after = 0; after < 6; after++) {
            closure one = nth((uint32_t)after, ONE_KERNEL), two = nth((uint32_t)after, TWO_KERNELS);
            one.id = two.id = 100 + f * 10 + after; /* templates of their own, captured now */
            twin_fail(functions[f], CUDA_ERROR_INVALID_VALUE, after, 1);
            const acs_op ops[] = {call(&one, true), call(&two, true), call(&one, true), call(&two, true)};
            (void)acs_sync(g_context);
            twin_fail(NULL, CUDA_SUCCESS, 0, 0);
            for (int i = 0; i < 4; i++) {
                const acs_status ended = acs_wait(g_context, ops[i]);
                assert_true(ended == ACS_OK || ended == ACS_ERR_LAUNCH || ended == ACS_ERR_HOST || ended == ACS_ERR_SKIPPED);
            }
            assert_int_equal(acs_clear(g_context), ACS_OK);
        }
    assert_same_results(40, ONE_KERNEL);
}

/* Parts are queued at once: more than there are places stay one call. */
static void call_of_more_kernels_than_the_fifo_has_places_stays_one(void **state)
{
    (void)state;
    assert_int_not_equal(acs_free(g_context, g_memory), 0);
    assert_int_equal(acs_close(g_context), ACS_OK);
    assert_int_equal(setenv("ACS_FIFO", "2", 1), 0);
    context_open(0, 0);
    assert_int_equal(unsetenv("ACS_FIFO"), 0);
    g_memory = memory_new(4096);
    assert_same_results(60, THREE_KERNELS);
    g_calls = 0;
    assert_same_results(60, THREE_KERNELS);
    assert_int_equal(g_calls, 60);
    assert_int_equal(calls_as_kernels(), 0); /* they are launched in their slot */
}

static void without_the_driver_s_functions_all_is_left_to_the_function(void **state)
{
    (void)state;
    assert_int_not_equal(acs_free(g_context, g_memory), 0);
    assert_int_equal(acs_close(g_context), ACS_OK);
    twin_without("cuGraphKernelNodeGetParams");
    context_open(0, 0);
    g_memory = memory_new(4096);
    g_calls = 0;
    assert_same_results(20, ONE_KERNEL);
    assert_int_equal(g_calls, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_same_call_is_captured_once_and_then_a_kernel),
        TEST(calls_with_other_pointers_become_kernels_too),
        TEST(several_kernels_become_as_many_ops),
        TEST_CLEARED(kernel_that_fails_takes_the_call_s_later_ones_along),
        TEST(several_kernels_with_scratch_memory_are_launched_in_their_slot),
        TEST(memory_without_a_name_leaves_the_call_to_its_function),
        TEST(arguments_that_are_no_addresses_leave_the_call_to_its_function),
        TEST(what_cannot_be_captured_is_left_to_its_function),
        TEST(calls_whose_kernels_change_stay_with_their_function),
        TEST(pointers_that_moved_together_are_told_apart_before_they_part),
        TEST(null_and_equal_pointers_are_calls_of_their_own),
        TEST_CLEARED(any_driver_call_of_a_capture_may_fail),
        TEST(call_of_more_kernels_than_the_fifo_has_places_stays_one),
        TEST(without_the_driver_s_functions_all_is_left_to_the_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

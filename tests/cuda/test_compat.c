/*
 * acs::compat with stand-ins for the functions of the CUDA runtime: memory that a program takes from CUDA is watched where
 * ACS_CHECK asks, and only there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/inside.h"

#include <acs.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { BYTES = 256, PITCH = 64 };

static unsigned char g_memory[BYTES]; /* what each call gives */
static cudaError_t g_result;

/* The stand-ins, and declarations of the wrappers. */
#define STAND_IN(name, parameters, give)                                                                               \
    cudaError_t __real_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters;                                                                              \
    cudaError_t __real_##name parameters                                                                               \
    {                                                                                                                  \
        give;                                                                                                          \
        return g_result;                                                                                               \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-but-set-parameter"
#define ACS_WRAP(name, parameters, arguments) STAND_IN(name, parameters, (void)0)
#define ACS_WRAP_DS(name, parameters, arguments)                                                                       \
    STAND_IN(name, parameters, (void)0) STAND_IN(name##_ptds, parameters, (void)0)
#define ACS_WRAP_SZ(name, parameters, arguments)                                                                       \
    STAND_IN(name, parameters, (void)0) STAND_IN(name##_ptsz, parameters, (void)0)
#define ACS_WRAP_FREE ACS_WRAP
#define ACS_WRAP_FREE_SZ ACS_WRAP_SZ
#define ACS_WRAP_NEW(name, parameters, arguments, memory, bytes) STAND_IN(name, parameters, memory = g_memory)
#define ACS_WRAP_NEW_SZ(name, parameters, arguments, memory, bytes)                                                    \
    STAND_IN(name, parameters, memory = g_memory) STAND_IN(name##_ptsz, parameters, memory = g_memory)
#include "compat/compat.def"

static int write_last(void *closure)
{
    (void)closure;
    g_memory[BYTES - 1]++;
    return 0;
}

/* What a wait says after an op that writes the last byte and names none. */
static acs_status unnamed_write(void)
{
    assert_true(acs_host(NULL, write_last, NULL, 0, ACS_USES_NONE) != 0);
    const acs_status status = acs_sync(acs_default());
    assert_int_equal(acs_clear(acs_default()), ACS_OK);
    return status;
}

static int close_default(void **state)
{
    (void)state;
    (void)acs_close(acs_default());
    g_result = cudaSuccess;
    return unsetenv("ACS_CHECK");
}

static void each_kind_of_memory_is_watched_until_it_is_freed(void **state)
{
    (void)state;
    setenv("ACS_CHECK", "writes", 1);
    for (int kind = 0; kind < 9; kind++) {
        void *ptr = NULL;
        size_t pitch = PITCH;
        struct cudaPitchedPtr pitched = {.pitch = PITCH};
        const struct cudaExtent extent = {.width = 3, .height = 2, .depth = BYTES / PITCH / 2};
        const cudaError_t given[] = {
            kind == 0 ? __wrap_cudaMalloc(&ptr, BYTES) : cudaSuccess,
            kind == 1 ? __wrap_cudaMallocPitch(&ptr, &pitch, 3, BYTES / PITCH) : cudaSuccess,
            kind == 2 ? __wrap_cudaMalloc3D(&pitched, extent) : cudaSuccess,
            kind == 3 ? __wrap_cudaMallocManaged(&ptr, BYTES, 0) : cudaSuccess,
            kind == 4 ? __wrap_cudaMallocAsync(&ptr, BYTES, NULL) : cudaSuccess,
            kind == 5 ? __wrap_cudaMallocFromPoolAsync_ptsz(&ptr, BYTES, NULL, NULL) : cudaSuccess,
            kind == 6 ? __wrap_cudaMallocHost(&ptr, BYTES) : cudaSuccess,
            kind == 7 ? __wrap_cudaHostAlloc(&ptr, BYTES, 0) : cudaSuccess,
            kind == 8 ? __wrap_cudaHostRegister(g_memory, BYTES, 0) : cudaSuccess,
        };
        assert_int_equal(given[kind], cudaSuccess);
        assert_int_equal(unnamed_write(), ACS_ERR_CHECK);
        const cudaError_t freed = kind == 8                ? __wrap_cudaHostUnregister(g_memory)
                                  : kind == 6 || kind == 7 ? __wrap_cudaFreeHost(ptr)
                                  : kind == 4 || kind == 5 ? __wrap_cudaFreeAsync_ptsz(ptr, NULL)
                                                           : __wrap_cudaFree(kind == 2 ? pitched.ptr : ptr);
        assert_int_equal(freed, cudaSuccess);
        assert_int_equal(unnamed_write(), ACS_OK);
    }
}

static void without_a_check_no_context_is_opened(void **state)
{
    (void)state;
    void *ptr = NULL;
    setenv("ACS_WORKERS", "none", 1); /* no context can be opened, and the first that tries leaves an error */
    assert_int_equal(__wrap_cudaMalloc(&ptr, BYTES), cudaSuccess);
    assert_int_equal(__wrap_cudaFree(ptr), cudaSuccess);
    assert_int_equal(acs_last_error(NULL), ACS_OK);
    unsetenv("ACS_WORKERS");
}

static void memory_that_was_refused_is_not_watched(void **state)
{
    (void)state;
    void *ptr = NULL;
    setenv("ACS_CHECK", "writes", 1);
    g_result = cudaErrorMemoryAllocation;
    assert_int_equal(__wrap_cudaMalloc(&ptr, BYTES), cudaErrorMemoryAllocation);
    assert_int_equal(unnamed_write(), ACS_OK);
}

static void memory_of_library_calls_is_not_watched_but_may_be_freed_there(void **state)
{
    (void)state;
    void *ptr = NULL;
    setenv("ACS_CHECK", "writes", 1);
    acs_inside_set(true);
    assert_int_equal(__wrap_cudaMalloc(&ptr, BYTES), cudaSuccess);
    assert_int_equal(__wrap_cudaFree(ptr), cudaSuccess);
    acs_inside_set(false);
    assert_int_equal(unnamed_write(), ACS_OK);
    assert_int_equal(__wrap_cudaMalloc(&ptr, BYTES), cudaSuccess);
    acs_inside_set(true);
    assert_int_equal(__wrap_cudaFree(ptr), cudaSuccess);
    acs_inside_set(false);
    assert_int_equal(unnamed_write(), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_check_no_context_is_opened),
        cmocka_unit_test_teardown(each_kind_of_memory_is_watched_until_it_is_freed, close_default),
        cmocka_unit_test_teardown(memory_that_was_refused_is_not_watched, close_default),
        cmocka_unit_test_teardown(memory_of_library_calls_is_not_watched_but_may_be_freed_there, close_default),
    };
    setenv("ACS_BACKEND", "host", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

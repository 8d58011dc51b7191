/*
 * A device that is found lost by a call of the program's, not by a step: the context knows it for good from then on, and
 * what was under way ends as lost, also while another thread waits for it. Over the twin; nothing runs unless it has to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"
#include "twin.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { HANG_SECONDS = 1800 };

static acs_context *open_with(int64_t workers)
{
    acs_options options;
    acs_context *context = NULL;
    twin_reset();
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = workers;
    options.log = ACS_LOG_OFF;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* A kernel that the backend has not seen: it asks the driver about it. */
static acs_op launch_new(acs_context *context)
{
    const twin_kernel_spec spec = {.name = "new"};
    const acs_kernel kernel = {"new", (const void *)twin_kernel(&spec), NULL, ACS_KERNEL_HANDLE, 0};
    acs_launch_params launch = {.size = sizeof launch, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    return acs_launch(context, &launch);
}

/* For good: neither forgotten by a clear, nor kept from who closes. */
static void assert_lost_for_good(acs_context *context)
{
    assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
    assert_int_equal(acs_clear(context), ACS_ERR_DEVICE);
    assert_int_equal(acs_context_error(context, NULL), ACS_ERR_DEVICE);
    assert_int_equal(launch_new(context), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_DEVICE);
    assert_int_equal(acs_close(context), ACS_ERR_DEVICE);
    assert_ptr_equal(twin_breach(), NULL);
}

static void launch_that_finds_the_device_lost_tells_the_context(void **state)
{
    (void)state;
    for (int64_t workers = 0; workers < 2; workers++) {
        acs_context *context = open_with(workers);
        twin_lose_after_calls(CUDA_ERROR_ILLEGAL_ADDRESS, 0);
        assert_int_equal(launch_new(context), 0);
        assert_int_equal(acs_last_error(NULL), ACS_ERR_DEVICE);
        assert_lost_for_good(context);
    }
}

static void allocation_that_finds_the_device_lost_tells_the_context(void **state)
{
    (void)state;
    for (int64_t workers = 0; workers < 2; workers++) {
        void *memory = NULL;
        acs_context *context = open_with(workers);
        twin_lose_after_calls(CUDA_ERROR_ECC_UNCORRECTABLE, 0);
        assert_int_equal(acs_malloc(context, 64, ACS_MEMORY_DEVICE, &memory), ACS_ERR_DEVICE);
        assert_lost_for_good(context);
    }
}

typedef struct waiter {
    acs_context *context;
    acs_op op;
    acs_status result;
} waiter;

static void *wait_for_op(void *argument)
{
    waiter *w = argument;
    w->result = acs_wait(w->context, w->op);
    return NULL;
}

/* The op is under way and never ends by itself; whether the other thread sleeps already does not matter. */
static void loss_that_a_call_finds_ends_what_is_under_way_and_its_waits(void **state)
{
    (void)state;
    for (int64_t workers = 0; workers < 2; workers++) {
        acs_error error = {.size = sizeof error};
        pthread_t thread;
        waiter w = {.context = open_with(workers)};
        w.op = launch_new(w.context);
        assert_int_not_equal(w.op, 0);
        assert_int_equal(pthread_create(&thread, NULL, wait_for_op, &w), 0);
        while (twin_count("cuLaunchKernelEx") == 0)
            acs_step(w.context);
        twin_lose_after_calls(CUDA_ERROR_ILLEGAL_ADDRESS, 0);
        assert_int_equal(launch_new(w.context), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(w.result, ACS_ERR_DEVICE);
        assert_int_equal(acs_op_error(w.context, w.op, &error), ACS_ERR_DEVICE);
        if (!strstr(error.text, "suspects"))
            fail_msg("no suspects in \"%s\"", error.text);
        assert_lost_for_good(w.context);
    }
}

/* A kernel with memory and a call site, which recurs if it is launched in each pass. */
static acs_op launch_again(acs_context *context, const acs_kernel *kernel)
{
    static char memory[8];
    static const acs_site site = {"again", __FILE__, __LINE__};
    const acs_segment use = acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, (uintptr_t)memory, sizeof memory, 1, 0);
    const acs_launch_params launch = {.size = sizeof launch, .kernel = kernel, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                      .uses = {&use, 1, NULL, NULL, 0}, .site = &site};
    return acs_launch(context, &launch);
}

/* Kernels of a replay that is held back never run; waits for them say that the device is lost. */
static void replay_that_is_held_back_is_lost_with_the_device(void **state)
{
    (void)state;
    enum { KERNELS = 8 };
    for (int64_t workers = 0; workers < 2; workers++) {
        const twin_kernel_spec spec = {.name = "again"};
        acs_context *context = open_with(workers);
        acs_statistics s = {.size = sizeof s};
        acs_error error = {.size = sizeof error};
        acs_op held[KERNELS - 1];
        const acs_kernel kernel = {"again", (const void *)twin_kernel(&spec), NULL, ACS_KERNEL_HANDLE, 0};
        twin_set_strategy(TWIN_EAGER);
        while (s.replayed < 2 * KERNELS) { /* with workers a thread builds the graph, beside the passes */
            assert_int_equal(acs_repeat_begin(context, 1), ACS_OK);
            for (int i = 0; i < KERNELS; i++)
                assert_true(launch_again(context, &kernel) > 0);
            assert_int_equal(acs_repeat_end(context), ACS_OK);
            assert_int_equal(acs_sync(context), ACS_OK);
            assert_int_equal(acs_stats(context, &s), ACS_OK);
        }
        assert_int_equal(acs_repeat_begin(context, 1), ACS_OK);
        for (int i = 0; i < KERNELS - 1; i++)
            assert_true((held[i] = launch_again(context, &kernel)) > 0);
        twin_lose_after_calls(CUDA_ERROR_ILLEGAL_ADDRESS, 0);
        assert_int_equal(launch_new(context), 0);
        for (int i = 0; i < KERNELS - 1; i++) {
            assert_int_equal(acs_wait(context, held[i]), ACS_ERR_DEVICE);
            assert_int_equal(acs_op_error(context, held[i], &error), ACS_ERR_DEVICE);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
        assert_lost_for_good(context);
    }
}

/* Found by the next call that would reach the driver; no handle of before is used, not even by acs_close. */
static void device_that_the_program_reset_is_lost_in_plain_words(void **state)
{
    (void)state;
    for (int64_t workers = 0; workers < 2; workers++) {
        acs_error error = {.size = sizeof error};
        void *memory = NULL;
        acs_context *context = open_with(workers);
        twin_set_strategy(TWIN_EAGER);
        const twin_kernel_spec spec = {.name = "known"};
        const acs_kernel kernel = {"known", (const void *)twin_kernel(&spec), NULL, ACS_KERNEL_HANDLE, 0};
        assert_true(launch_again(context, &kernel) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        twin_device_reset(0);
        (void)launch_again(context, &kernel); /* the driver knows the kernel, so the op may be queued */
        assert_int_equal(acs_sync(context), ACS_ERR_DEVICE);
        assert_int_equal(acs_context_error(context, &error), ACS_ERR_DEVICE);
        assert_non_null(strstr(error.text, "cudaDeviceReset"));
        assert_int_equal(acs_malloc(context, 64, ACS_MEMORY_DEVICE, &memory), ACS_ERR_DEVICE);
        assert_lost_for_good(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launch_that_finds_the_device_lost_tells_the_context),
        cmocka_unit_test(allocation_that_finds_the_device_lost_tells_the_context),
        cmocka_unit_test(loss_that_a_call_finds_ends_what_is_under_way_and_its_waits),
        cmocka_unit_test(replay_that_is_held_back_is_lost_with_the_device),
        cmocka_unit_test(device_that_the_program_reset_is_lost_in_plain_words),
    };
    alarm(HANG_SECONDS); /* a wait that does not return */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

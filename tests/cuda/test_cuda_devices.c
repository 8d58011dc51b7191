/*
 * Several devices on the CUDA backend: where kernels run that belong to one device, and devices that share a GPU. Over the
 * twin, to which a function in another context than its own is a breach.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"
#include "twin.h"

#include <string.h>

enum { BYTES = 4096, OPS = 8 };

static acs_context *g_context;
static CUkernel g_kernel;

static void add_body(void *const *args)
{
    unsigned char *to = *(unsigned char **)args[0];
    for (int i = 0; i < BYTES; i++)
        to[i]++;
}

static size_t touches(void *const *args, twin_range *out, size_t capacity)
{
    if (capacity)
        *out = (twin_range){*(const uint64_t *)args[0], BYTES};
    return 1;
}

static acs_options several(int64_t devices, int64_t devices_per_gpu)
{
    acs_options options;
    (void)acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.devices = devices;
    options.devices_per_gpu = devices_per_gpu;
    options.policy = ACS_POLICY_ROUND_ROBIN;
    options.pool = ACS_POOL_ON;
    options.workers = 0;
    return options;
}

static void prepare_twin(void)
{
    static const uint32_t sizes[] = {8};
    const twin_kernel_spec spec = {
        .name = "add", .body = add_body, .param_count = 1, .param_bytes = sizes, .touches = touches};
    twin_reset();
    twin_set_strategy(TWIN_UNIFORM);
    g_kernel = twin_kernel(&spec);
}

static int open_two(void **state)
{
    const acs_options options = several(2, 1);
    (void)state;
    prepare_twin();
    return acs_open(&options, &g_context) != ACS_OK;
}

static int close_them(void **state)
{
    (void)state;
    return acs_close(g_context) != ACS_OK || twin_breach();
}

static void *lazy(void)
{
    void *block = NULL;
    assert_int_equal(acs_malloc(g_context, BYTES, ACS_MEMORY_DEVICE | ACS_LAZY, &block), ACS_OK);
    return block;
}

static acs_op launch(const acs_kernel *kernel, acs_attributes on, void *block)
{
    return ACS_LAUNCH_WITH(g_context, on, kernel, 1, 1, 0, ACS_ARGS(block), ACS_USES(ACS_INOUT(block, BYTES)));
}

/* The same kernel as a function of device 0 and as a handle, which runs everywhere: the block goes to and fro. */
static void functions_run_on_the_first_device(void **state)
{
    (void)state;
    const acs_kernel function = {"function", (const void *)twin_function(g_kernel, 0), NULL, ACS_KERNEL_CUFUNCTION, 0};
    const acs_kernel handle = {"handle", (const void *)g_kernel, NULL, ACS_KERNEL_HANDLE, 0};
    const acs_attributes any = ACS_ON(ACS_ANY_DEVICE), second = ACS_ON(1);
    unsigned char out[BYTES];
    acs_error error = {.size = sizeof error};
    void *x = lazy();
    assert_int_equal(acs_on(g_context, 1), ACS_OK); /* as far as they can */
    assert_true(acs_memset(g_context, x, 0, BYTES) > 0);
    for (int i = 0; i < OPS; i++) {
        assert_true(launch(&function, any, x) > 0);
        assert_true(launch(&handle, second, x) > 0);
    }
    assert_true(launch(&function, ACS_ON(0), x) > 0);
    assert_true(acs_memcpy(g_context, out, x, BYTES) > 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_int_equal(out[BYTES - 1], 2 * OPS + 1);
    assert_null(twin_breach());
    assert_int_equal(launch(&function, second, x), 0);
    assert_int_equal(acs_last_error(&error), ACS_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "ACS_ON(1): a CUfunction runs on device 0 alone; a cudaKernel_t"));
    assert_int_equal(acs_clear(g_context), ACS_OK);
    assert_int_equal(acs_on(g_context, ACS_ANY_DEVICE), ACS_OK);
}

/* Also where a group is on another device. */
static void functions_in_groups_do_too(void **state)
{
    (void)state;
    const acs_kernel function = {"function", (const void *)twin_function(g_kernel, 0), NULL, ACS_KERNEL_CUFUNCTION, 0};
    const acs_kernel handle = {"handle", (const void *)g_kernel, NULL, ACS_KERNEL_HANDLE, 0};
    unsigned char out[OPS][BYTES];
    for (int i = 0; i < OPS; i++) {
        assert_int_equal(acs_group_begin(g_context, 0), ACS_OK);
        void *x = lazy();
        assert_true(acs_memset(g_context, x, i, BYTES) > 0);
        assert_true(launch(&function, ACS_ON(ACS_ANY_DEVICE), x) > 0);
        assert_true(launch(&handle, ACS_ON(ACS_ANY_DEVICE), x) > 0);
        assert_true(acs_memcpy(g_context, out[i], x, BYTES) > 0);
        assert_true(acs_free(g_context, x) > 0);
        assert_int_equal(acs_group_submit(g_context, NULL, NULL), ACS_OK);
    }
    assert_int_equal(acs_sync(g_context), ACS_OK);
    for (int i = 0; i < OPS; i++)
        assert_int_equal(out[i][BYTES - 1], i + 2);
    assert_null(twin_breach());
}

/* One after the other on all: a block that goes around them is added to by each. */
static void round_trip(int devices)
{
    const acs_kernel handle = {"handle", (const void *)g_kernel, NULL, ACS_KERNEL_HANDLE, 0};
    unsigned char out[BYTES];
    acs_statistics statistics = {.size = sizeof statistics};
    void *x = lazy();
    assert_int_equal(acs_devices(g_context), devices);
    assert_true(acs_memset(g_context, x, 0, BYTES) > 0);
    for (int i = 0; i < 2 * devices; i++)
        assert_true(launch(&handle, ACS_ON(i % devices), x) > 0);
    assert_true(acs_memcpy(g_context, out, x, BYTES) > 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_int_equal(out[BYTES - 1], 2 * devices);
    assert_true(acs_free(g_context, x) > 0);
    assert_int_equal(acs_stats(g_context, &statistics), ACS_OK);
    assert_in_range(statistics.transfers, 2 * devices - 2, 2 * devices);
}

static void a_gpu_stands_for_several_devices(void **state)
{
    static const int asked[] = {2, 3, 2 * TWIN_DEVICES, 0};
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        const acs_options options = several(asked[i], asked[i] == 3 ? 3 : 2);
        prepare_twin();
        assert_int_equal(acs_open(&options, &g_context), ACS_OK);
        round_trip(asked[i] ? asked[i] : 2 * TWIN_DEVICES);
        assert_int_equal(acs_close(g_context), ACS_OK);
        assert_null(twin_breach());
    }
}

static void more_than_there_are_is_refused(void **state)
{
    acs_options options = several(TWIN_DEVICES + 1, 1);
    acs_error error = {.size = sizeof error};
    (void)state;
    prepare_twin();
    assert_int_equal(acs_open(&options, &g_context), ACS_ERR_OPTION);
    (void)acs_last_error(&error);
    assert_non_null(strstr(error.text, "ACS_DEVICES=3, but there are 2: GPUs 2, ACS_DEVICES_PER_GPU=1"));
    options.devices_per_gpu = 2;
    (void)strcpy(options.ledger, "/acs-test-split:1000000");
    assert_int_equal(acs_open(&options, &g_context), ACS_ERR_OPTION);
    (void)acs_last_error(&error);
    assert_non_null(strstr(error.text, "knows no parts of GPUs, but devices share one (ACS_DEVICES_PER_GPU=2)"));
    assert_null(twin_breach());
}

/* The driver's text names a handle alone, of which the library uses many. */
static void a_function_of_another_gpu_is_named(void **state)
{
    acs_options one = several(1, 1);
    acs_error error = {.size = sizeof error};
    void *x = NULL;
    (void)state;
    prepare_twin();
    one.issue = ACS_ISSUE_LAUNCH;
    const acs_kernel function = {"function", (const void *)twin_function(g_kernel, 0), NULL, ACS_KERNEL_CUFUNCTION, 0};
    assert_int_equal(acs_open(&one, &g_context), ACS_OK);
    assert_int_equal(acs_malloc(g_context, BYTES, ACS_MEMORY_DEVICE, &x), ACS_OK);
    twin_fail("cuLaunchKernelEx", CUDA_ERROR_INVALID_HANDLE, 0, 1);
    assert_true(launch(&function, ACS_ON(ACS_ANY_DEVICE), x) > 0);
    assert_int_equal(acs_sync(g_context), ACS_ERR_LAUNCH);
    assert_int_equal(acs_context_error(g_context, &error), ACS_ERR_LAUNCH);
    assert_non_null(strstr(error.text, "the CUfunction is of another GPU or CUDA context, or its module was unloaded"));
    assert_int_equal(acs_clear(g_context), ACS_OK);
    assert_int_equal(acs_close(g_context), ACS_OK);
    assert_null(twin_breach());
}

/* Of two GPUs with a context each: memory of the other one, of the host, and of both devices of a context. */
static void it_tells_which_memory_kernels_reach(void **state)
{
    static unsigned char pageable[BYTES];
    const acs_options one = several(1, 1), two = several(2, 1);
    acs_context *alone = NULL, *other = NULL, *both = NULL;
    acs_error error = {.size = sizeof error};
    void *x = NULL, *second = NULL, *locked = NULL;
    (void)state;
    prepare_twin();
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(acs_open(&one, &other), ACS_OK);
    assert_int_equal(acs_malloc(other, BYTES, ACS_MEMORY_DEVICE, &second), ACS_OK);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(acs_open(&one, &alone), ACS_OK);
    assert_int_equal(acs_malloc(alone, BYTES, ACS_MEMORY_DEVICE, &x), ACS_OK);
    assert_int_equal(acs_malloc(alone, BYTES, ACS_MEMORY_HOST, &locked), ACS_OK);
    assert_int_equal(acs_reaches(alone, (char *)x + BYTES - 1), ACS_OK);
    assert_int_equal(acs_reaches(alone, locked), ACS_OK);
    assert_int_equal(acs_reaches(alone, pageable), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_reaches(alone, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_reaches(alone, second), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "memory of another GPU"));
    assert_int_equal(acs_open(&two, &both), ACS_OK); /* its devices reach each other's memory */
    assert_int_equal(acs_reaches(both, second), ACS_OK);
    assert_int_equal(acs_reaches(both, pageable), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_close(both), ACS_OK);
    assert_int_equal(acs_close(other), ACS_OK);
    twin_fail("cuPointerGetAttribute", CUDA_ERROR_ILLEGAL_ADDRESS, 0, 1);
    assert_int_equal(acs_reaches(alone, x), ACS_ERR_DEVICE);
    (void)acs_close(alone);
    assert_int_equal(acs_reaches(alone, x), ACS_ERR_STATE);
    assert_null(twin_breach());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(functions_run_on_the_first_device, open_two, close_them),
        cmocka_unit_test_setup_teardown(functions_in_groups_do_too, open_two, close_them),
        cmocka_unit_test(a_gpu_stands_for_several_devices),
        cmocka_unit_test(more_than_there_are_is_refused),
        cmocka_unit_test(a_function_of_another_gpu_is_named),
        cmocka_unit_test(it_tells_which_memory_kernels_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Several devices on the CUDA backend: where kernels run that belong to one device. Over the twin, to which a function in
 * another context than its own is a breach.
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

static int open_two(void **state)
{
    static const uint32_t sizes[] = {8};
    const twin_kernel_spec spec = {
        .name = "add", .body = add_body, .param_count = 1, .param_bytes = sizes, .touches = touches};
    acs_options options;
    (void)state;
    twin_reset();
    twin_set_strategy(TWIN_UNIFORM);
    g_kernel = twin_kernel(&spec);
    (void)acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.devices = 2;
    options.policy = ACS_POLICY_ROUND_ROBIN;
    options.pool = ACS_POOL_ON;
    options.workers = 0;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(functions_run_on_the_first_device, open_two, close_them),
        cmocka_unit_test_setup_teardown(functions_in_groups_do_too, open_two, close_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

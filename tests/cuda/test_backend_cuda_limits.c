/*
 * What the CUDA backend asks before it uses a device, and what it refuses: limits of devices that lack something, kernels
 * with very many parameters, the number of hardware connections, ops and handles that are not for it.
 */
#include "backend_cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- the driver's library */

void *__real_dlopen(const char *name, int flags);
int __real_dlclose(void *library);
void *__wrap_dlopen(const char *name, int flags);
int __wrap_dlclose(void *library);

static bool g_driver_loaded;
static int g_driver_closed;

void *__wrap_dlopen(const char *name, int flags)
{
    bool driver = name && strcmp(name, "libcuda.so.1") == 0;
    return driver ? (g_driver_loaded ? &g_driver_loaded : NULL) : __real_dlopen(name, flags);
}

int __wrap_dlclose(void *library)
{
    g_driver_closed += library == &g_driver_loaded;
    return library == &g_driver_loaded ? 0 : __real_dlclose(library);
}

/* ---------------------------------------------------------------------------------------------------- connections */

static const char g_variable[] = "CUDA_DEVICE_MAX_CONNECTIONS";

/* Ten slots need more than the eight connections that there are by default. So do as many of several devices, on one GPU. */
static void open_slots(uint32_t slots, uint32_t devices, int64_t devices_per_gpu)
{
    const acs_options options = {.devices_per_gpu = devices_per_gpu};
    acs_backend *backend = NULL;
    acs_backend_config config = {.devices = devices, .options = &options, .slots = slots, .mark_capacity = 4};
    assert_int_equal(acs_backend_cuda.open(&config, &backend), ACS_OK);
    backend->ops->close(backend);
    assert_null(twin_breach());
}

static void open_wide(void)
{
    open_slots(10, 1, 1);
}

static int forget_variable(void **state)
{
    (void)state;
    g_driver_loaded = false;
    return unsetenv(g_variable);
}

/* Whether this process has threads of its own, as with a sanitizer; then the variable is left alone. */
static bool variable_may_be_set(void)
{
    backend_reset();
    open_wide();
    return getenv(g_variable) != NULL;
}

static void connections_are_asked_for_before_there_is_a_context(void **state)
{
    (void)state;
    if (!variable_may_be_set())
        skip();
    assert_string_equal(getenv(g_variable), "32");
    unsetenv(g_variable);
    open_slots(5, 2, 1); /* of a GPU each */
    assert_null(getenv(g_variable));
    open_slots(3, 4, 4); /* two of each */
    assert_null(getenv(g_variable));
    open_slots(5, 4, 2);
    assert_string_equal(getenv(g_variable), "32");
}

static void connections_are_left_alone_once_there_is_a_context(void **state)
{
    CUcontext context;
    (void)state;
    if (!variable_may_be_set())
        skip();
    /* The driver is loaded: it says whether there is a context; where it does not say, there may be one. */
    for (int i = 0; i < 4; i++) {
        unsetenv(g_variable);
        backend_reset();
        g_driver_loaded = true;
        g_driver_closed = 0;
        if (i == 1)
            assert_int_equal(TWIN_GET(cuDevicePrimaryCtxRetain, 7000)(&context, 0), CUDA_SUCCESS);
        else if (i == 2)
            twin_fail("cuDevicePrimaryCtxGetState", CUDA_ERROR_UNKNOWN, 0, 1);
        else if (i == 3)
            twin_fail("cudaGetDevice", CUDA_ERROR_NOT_INITIALIZED, 0, 1);
        open_wide();
        if (i == 1)
            assert_int_equal(TWIN_GET(cuDevicePrimaryCtxRelease, 11000)(0), CUDA_SUCCESS);
        twin_audit();
        assert_null(twin_breach());
        assert_int_equal(g_driver_closed, 1);
        assert_int_equal(getenv(g_variable) != NULL, i == 0);
    }
}

static void connections_that_the_program_chose_stay(void **state)
{
    (void)state;
    static const char *const values[] = {"0", "-3", "nonsense", "4", "16"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        backend_reset();
        assert_int_equal(setenv(g_variable, values[i], 1), 0);
        open_wide();
        assert_string_equal(getenv(g_variable), values[i]);
    }
}

/* -------------------------------------------------------------------------------------------------- what is refused */

static int plain_setup(void **state)
{
    void *block = NULL;
    (void)state;
    backend_reset();
    twin_plain_devices();
    if (backend_open(&g_backend) != ACS_OK || g_backend->ops->memory_alloc(g_backend, ACS_MEMORY_DEVICE, 64, &block))
        return -1;
    g_block = block;
    return 0;
}

static void device_without_clusters_and_cooperative_launches_refuses_both(void **state)
{
    (void)state;
    acs_record *op = kernel_new(ACS_KERNEL_HANDLE, g_kernel);
    op->u.launch.attributes.cooperative = 1;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_UNSUPPORTED, "no cooperative launch");
    op->u.launch.attributes.cooperative = 0;
    op->u.launch.attributes.cluster = (acs_dim3){2, 1, 1};
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_UNSUPPORTED, "no thread block clusters");
}

static void block_and_cluster_beyond_the_device_are_named(void **state)
{
    (void)state;
    acs_record *op = kernel_new(ACS_KERNEL_HANDLE, g_kernel);
    op->u.launch.kernel.name = NULL; /* then the call's own text serves */
    op->u.launch.block.z = 1025;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "'op': block.z is 1025; it must be 1 to 1024");
    op->u.launch.block.z = 1;
    op->u.launch.attributes.cluster = (acs_dim3){8, 4, 1};
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_ARGUMENT, "8 x 4 x 1 blocks; it must hold 1 to 16");
}

enum { MANY = 40, TOO_MANY = 5000 };

static uint32_t g_sum;

static void sum_body(void *const *args)
{
    g_sum = 0;
    for (uint32_t i = 0; i < MANY; i++)
        g_sum += *(const unsigned char *)args[i];
}

static uint32_t *ones(void)
{
    static uint32_t sizes[TOO_MANY];
    for (uint32_t i = 0; i < TOO_MANY; i++)
        sizes[i] = 1;
    return sizes;
}

/* A record's own room is for a few; the core gives larger blocks. */
static void kernel_with_many_parameters_gets_them_all(void **state)
{
    (void)state;
    static acs_arg_slot slots[MANY];
    static unsigned char bytes[MANY];
    const twin_kernel_spec spec = {.name = "sum", .body = sum_body, .param_count = MANY, .param_bytes = ones()};
    acs_record *op = kernel_new(ACS_KERNEL_HANDLE, twin_kernel(&spec));
    for (uint16_t i = 0; i < MANY; i++) {
        slots[i] = (acs_arg_slot){.offset = i, .size = 1};
        bytes[i] = (unsigned char)i;
    }
    op->args = slots;
    op->arg_bytes = bytes;
    op->arg_count = MANY;
    assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
    item_new(op, 0);
    submit();
    twin_run_all();
    assert_int_equal(g_sum, MANY * (MANY - 1) / 2);
}

static void more_parameters_than_can_be_passed_are_refused(void **state)
{
    (void)state;
    static acs_arg_slot slots[TOO_MANY];
    const twin_kernel_spec spec = {.name = "much", .param_count = TOO_MANY, .param_bytes = ones()};
    acs_record *op = kernel_new(ACS_KERNEL_HANDLE, twin_kernel(&spec));
    op->args = slots;
    op->arg_count = TOO_MANY;
    assert_error(g_backend->ops->check(g_backend, op), ACS_ERR_UNSUPPORTED, "5000 arguments");
}

static void op_that_is_not_for_a_device_is_an_internal_error(void **state)
{
    (void)state;
    acs_item *item = item_new(record_new(ACS_KIND_HOST), 0);
    submit();
    assert_int_equal(item->status, ACS_ERR_INTERNAL);
    assert_string_equal(twin_log(), "");
    g_backend->ops->event_release(g_backend, NULL); /* of an op that never had one */
}

static void device_that_was_given_up_is_touched_no_more(void **state)
{
    (void)state;
    acs_item *item = item_new(checked_kernel(), 0);
    item_mark_after(item, 0);
    g_backend->ops->give_up(g_backend);
    submit();
    assert_int_equal(item->status, ACS_ERR_DEVICE);
    assert_string_equal(twin_log(), "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, backend_setup, backend_teardown)

static void what_a_kernel_takes_is_known_once_it_was_checked(void **state)
{
    (void)state;
    uint32_t registers = 0, shared = 0;
    g_backend->ops->needs(g_backend, checked_kernel(), &registers, &shared);
    assert_int_equal(registers, TWIN_REGISTERS);
    assert_int_equal(shared, 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(connections_are_asked_for_before_there_is_a_context, forget_variable),
        cmocka_unit_test_setup(connections_are_left_alone_once_there_is_a_context, forget_variable),
        cmocka_unit_test_setup(connections_that_the_program_chose_stay, forget_variable),
        cmocka_unit_test_setup_teardown(device_without_clusters_and_cooperative_launches_refuses_both, plain_setup,
                                        backend_teardown),
        TEST(block_and_cluster_beyond_the_device_are_named),
        TEST(kernel_with_many_parameters_gets_them_all),
        TEST(more_parameters_than_can_be_passed_are_refused),
        TEST(op_that_is_not_for_a_device_is_an_internal_error),
        TEST(device_that_was_given_up_is_touched_no_more),
        TEST(what_a_kernel_takes_is_known_once_it_was_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

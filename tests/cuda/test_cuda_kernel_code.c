/*
 * What a kernel's compiled code forbids, over the twin: kernels that require a cluster, kernels that launch kernels, and
 * a limit of shared memory that the program lowers between a call and its launch. The twin refuses nodes that the device
 * may change for the first two.
 */
#include "backend_cuda.h"

#include "cuda/graphs/graphs.h"

#include <string.h>

static const uint32_t g_bytes[] = {8, 4};

static acs_record *op_of(const twin_kernel_spec *spec)
{
    return kernel_new(ACS_KERNEL_HANDLE, twin_kernel(spec));
}

static acs_status check(acs_record *op)
{
    return g_backend->ops->check(g_backend, op);
}

static void kernel_that_requires_a_cluster_is_in_no_bundle(void **state)
{
    const twin_kernel_spec spec = {.name = "pairs", .param_count = 2, .param_bytes = g_bytes, .cluster = 2};
    acs_record *op = op_of(&spec);
    (void)state;
    op->grid = (acs_dim3){4, 1, 1};
    assert_int_equal(check(op), ACS_OK);
    assert_int_equal(op->type, 0);
    item_new(op, 0);
    submit();
    assert_int_equal(g_batch.items[0].status, ACS_OK);
}

static void grid_and_cluster_must_fit_the_cluster_that_is_required(void **state)
{
    const twin_kernel_spec spec = {.name = "pairs", .param_count = 2, .param_bytes = g_bytes, .cluster = 2};
    acs_record *op = op_of(&spec);
    (void)state;
    op->grid = (acs_dim3){3, 1, 1};
    assert_error(check(op), ACS_ERR_ARGUMENT, "a grid of 3 x 1 x 1 does not divide into clusters of 2 x 1 x 1");
    op->grid = (acs_dim3){4, 1, 1};
    op->u.launch.attributes.cluster = (acs_dim3){4, 1, 1};
    assert_error(check(op), ACS_ERR_ARGUMENT, "a cluster of 4 x 1 x 1 blocks; it was compiled for 2 x 1 x 1");
    op->u.launch.attributes.cluster = (acs_dim3){2, 1, 1};
    assert_int_equal(check(op), ACS_OK);
}

static void kernel_that_launches_kernels_is_in_no_bundle(void **state)
{
    const twin_kernel_spec parent = {
        .name = "parent", .param_count = 2, .param_bytes = g_bytes, .runtime = true, .launches = true};
    const twin_kernel_spec child = {.name = "child", .param_count = 2, .param_bytes = g_bytes, .runtime = true};
    acs_record *op = op_of(&parent), *of_its_module = op_of(&child);
    (void)state;
    assert_int_equal(check(op), ACS_OK);
    assert_int_equal(op->type, 0);
    assert_int_equal(check(of_its_module), ACS_OK);
    assert_int_not_equal(of_its_module->type, 0);
}

static void kernel_whose_module_is_not_told_is_tried(void **state)
{
    const twin_kernel_spec plain = {.name = "plain", .param_count = 2, .param_bytes = g_bytes};
    const twin_kernel_spec parent = {.name = "parent", .param_count = 2, .param_bytes = g_bytes, .launches = true};
    acs_record *ops[] = {op_of(&plain), op_of(&parent)};
    (void)state;
    for (int i = 0; i < 2; i++) {
        twin_fail("cuFuncGetModule", CUDA_ERROR_NOT_SUPPORTED, 0, 1);
        assert_int_equal(check(ops[i]), ACS_OK);
        assert_int_equal(ops[i]->type != 0, i == 0);
    }
}

static void limit_of_shared_memory_that_was_lowered_after_the_call_is_raised_again(void **state)
{
    const twin_kernel_spec spec = {.name = "large", .param_count = 2, .param_bytes = g_bytes};
    const CUkernel kernel = twin_kernel(&spec);
    acs_record *op = kernel_new(ACS_KERNEL_HANDLE, kernel);
    (void)state;
    op->u.launch.shared_bytes = 100 * 1024;
    assert_int_equal(check(op), ACS_OK);
    twin_lower_shared(kernel, 0, 60 * 1024);
    item_new(op, 0);
    submit();
    assert_int_equal(g_batch.items[0].status, ACS_OK);
    batch_clear();
    assert_int_equal(check(op), ACS_OK); /* and before the next call */
    twin_lower_shared(kernel, 0, 1024);
    item_new(op, 0);
    submit();
    assert_int_equal(g_batch.items[0].status, ACS_OK);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, backend_setup, backend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kernel_that_requires_a_cluster_is_in_no_bundle),
        TEST(grid_and_cluster_must_fit_the_cluster_that_is_required),
        TEST(kernel_that_launches_kernels_is_in_no_bundle),
        TEST(kernel_whose_module_is_not_told_is_tried),
        TEST(limit_of_shared_memory_that_was_lowered_after_the_call_is_raised_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

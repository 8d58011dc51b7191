/*
 * What a kernel's compiled code forbids, over the twin: kernels that require a cluster, kernels that launch kernels, a
 * limit of shared memory that the program lowers between a call and its launch, and modules that are unloaded. The twin
 * refuses nodes that the device may change for the first two, and nodes of an unloaded module.
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

/* ------------------------------------------------------------------------------------------------------- unloading */

static void add_body(void *const *args)
{
    **(uint64_t **)args[0] += *(const uint32_t *)args[1];
}

static void double_body(void *const *args)
{
    **(uint64_t **)args[0] += 2 * (uint64_t) * (const uint32_t *)args[1];
}

static void run_passes(acs_context *context, CUkernel handle, uint64_t *words)
{
    const acs_kernel kernel = {"add", (const void *)handle, NULL, ACS_KERNEL_HANDLE, 0};
    for (uint32_t i = 0; i < 6 * 64; i++) {
        uint64_t *word = &words[i % 8];
        const uint32_t by = i;
        acs_arg args[] = {{&word, 8, ACS_ARG_POINTER}, {&by, 4, ACS_ARG_VALUE}};
        acs_segment segment = ACS_INOUT(word, sizeof *word);
        acs_launch_params p = {.size = sizeof p, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1},
                               .args = {args, 2}, .uses = {&segment, 1, NULL, NULL, 0}};
        assert_int_not_equal(acs_launch(context, &p), 0);
        if (i % 64 == 63)
            assert_int_equal(acs_sync(context), ACS_OK);
    }
}

/* By each issue method, and by replays: the launches of the second module recur as those of the first. */
static void handle_of_an_unloaded_module_is_another_kernels(void **state)
{
    (void)state;
    for (int issue = 0; issue < ACS_ISSUE_COUNT; issue++) {
        const twin_kernel_spec before = {.name = "before", .body = add_body, .param_count = 2, .param_bytes = g_bytes};
        const twin_kernel_spec after = {.name = "after", .body = double_body, .param_count = 2, .param_bytes = g_bytes};
        acs_options options;
        acs_context *context = NULL;
        void *memory = NULL;
        uint64_t sum = 0;
        twin_reset();
        twin_set_strategy(TWIN_UNIFORM);
        const CUkernel handle = twin_kernel(&before);
        acs_options_init(&options, sizeof options);
        options.backend = ACS_BACKEND_CUDA;
        options.issue = issue;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        assert_int_equal(acs_malloc(context, 64, ACS_MEMORY_HOST, &memory), ACS_OK);
        memset(memory, 0, 64);
        run_passes(context, handle, memory);
        const acs_kernel kernel = {"add", (const void *)handle, NULL, ACS_KERNEL_HANDLE, 0};
        assert_int_equal(acs_declare(&kernel, NULL, NULL), ACS_OK);
        twin_kernel_replace(handle, &after);
        run_passes(context, handle, memory);
        for (int i = 0; i < 8; i++)
            sum += ((uint64_t *)memory)[i];
        assert_int_equal(sum, 3 * (6 * 64) * (6 * 64 - 1) / 2);
        assert_int_equal(acs_close(context), ACS_OK);
        assert_null(twin_breach());
    }
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
        cmocka_unit_test(handle_of_an_unloaded_module_is_another_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

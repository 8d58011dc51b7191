/*
 * What the CUDA backend asks before it uses a device, and what it refuses: limits of devices that lack something, kernels
 * with very many parameters, ops and handles that are not for it, and graphs that replays have not earned.
 */
#include "backend_cuda.h"

#include "cuda/graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

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

/* ---------------------------------------------------------------------------------------------------------- replays */

/* Decision 102: as many nodes as may be kept are built at first, then one for each TUNE_GRAPH_EARN_OPS replayed ops. */
static void graphs_for_replays_are_earned(void **state)
{
    (void)state;
    acs_cuda *self = (acs_cuda *)g_backend;
    const uint64_t most = self->methods->nodes_most;
    for (uint64_t built = 0; built + 64 <= most; built += 64)
        assert_true(acs_cuda_graph_may_build(self, 64, 0));
    assert_false(acs_cuda_graph_may_build(self, 64, 0));
    acs_cuda_graph_earn(self, 63 * TUNE_GRAPH_EARN_OPS);
    assert_false(acs_cuda_graph_may_build(self, 64, 0));
    acs_cuda_graph_earn(self, TUNE_GRAPH_EARN_OPS);
    assert_true(acs_cuda_graph_may_build(self, 64, 0));
    assert_false(acs_cuda_graph_may_build(self, 64, 0));
    for (uint32_t i = 0; i < 1000; i++) /* no more than all are saved up */
        acs_cuda_graph_earn(self, UINT16_MAX);
    assert_int_equal(self->methods->earned, most);
    assert_false(acs_cuda_graph_may_build(self, (uint32_t)most + 1, 0));
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
        TEST(graphs_for_replays_are_earned),
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

/*
 * acs_nccl on the CPU with one rank: every operation is a copy, ops of a communicator follow each other, and bad arguments
 * are named.
 */
#include "host_call.h"

#include "acs_nccl.h"

static acs_context *g_context;
static acs_nccl_comm *g_comm;
static float g_from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, g_to[8];

static int start(void **state)
{
    (void)state;
    g_context = host_open();
    return acs_nccl_comm_alone(&g_comm) != ACS_OK;
}

static int stop(void **state)
{
    (void)state;
    const acs_status status = acs_close(g_context);
    acs_nccl_comm_destroy(g_comm);
    return status != ACS_OK;
}

static void came_over(void)
{
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_memory_equal(g_from, g_to, sizeof g_to);
    memset(g_to, 0, sizeof g_to);
}

static void operations_of_one_rank_copy(void **state)
{
    (void)state;
    assert_true(acs_nccl_all_reduce(g_context, g_comm, ACS_NCCL_F32, ACS_NCCL_SUM, g_from, g_to, 8) != 0);
    came_over();
    assert_true(acs_nccl_broadcast(g_context, g_comm, ACS_NCCL_U8, 0, g_from, g_to, 32) != 0);
    came_over();
    assert_true(acs_nccl_reduce_scatter(g_context, g_comm, ACS_NCCL_F64, ACS_NCCL_MAX, g_from, g_to, 4) != 0);
    came_over();
    assert_true(acs_nccl_all_gather(g_context, g_comm, ACS_NCCL_BF16, g_from, g_to, 16) != 0);
    came_over();
}

static void a_group_sends_to_itself_in_order(void **state)
{
    (void)state;
    const acs_nccl_part parts[] = {
        {ACS_NCCL_SEND, ACS_NCCL_F32, ACS_NCCL_SUM, 0, g_from, NULL, 3},
        {ACS_NCCL_RECEIVE, ACS_NCCL_F32, ACS_NCCL_SUM, 0, NULL, g_to, 3},
        {ACS_NCCL_SEND, ACS_NCCL_F32, ACS_NCCL_SUM, 0, g_from + 3, NULL, 5},
        {ACS_NCCL_RECEIVE, ACS_NCCL_F32, ACS_NCCL_SUM, 0, NULL, g_to + 3, 5},
    };
    assert_true(acs_nccl_group(g_context, g_comm, parts, 4) != 0);
    came_over();
}

/* Each copy is behind the one before, although they touch no common memory: they update the communicator. */
static void ops_of_a_communicator_follow_each_other(void **state)
{
    (void)state;
    acs_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    static float from[16], to[16];
    assert_int_equal(acs_stats(g_context, &before), ACS_OK);
    for (int i = 0; i < 16; i++)
        assert_true(acs_nccl_all_reduce(g_context, g_comm, ACS_NCCL_F32, ACS_NCCL_SUM, from + i, to + i, 1) != 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_int_equal(acs_stats(g_context, &after), ACS_OK);
    assert_true(after.levels >= 2);
    assert_int_equal(after.calls - before.calls, 16);
}

static void in_place_is_allowed(void **state)
{
    (void)state;
    float x[2] = {3, 4};
    assert_true(acs_nccl_all_reduce(g_context, g_comm, ACS_NCCL_F32, ACS_NCCL_SUM, x, x, 2) != 0);
    assert_true(acs_nccl_all_gather(g_context, g_comm, ACS_NCCL_F32, x, x, 2) != 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_true(x[0] == 3 && x[1] == 4);
}

static void refused(acs_op op, const char *text)
{
    assert_int_equal(op, 0);
    host_refused(ACS_ERR_ARGUMENT, text);
    assert_int_equal(acs_sync(g_context), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_clear(g_context), ACS_OK);
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    acs_nccl_comm *made = NULL;
    refused(acs_nccl_all_reduce(g_context, NULL, ACS_NCCL_F32, ACS_NCCL_SUM, g_from, g_to, 1),
            "acs_nccl_all_reduce: comm is NULL");
    refused(acs_nccl_broadcast(g_context, g_comm, ACS_NCCL_F32, 1, g_from, g_to, 1),
            "acs_nccl_broadcast: part 0: peer is 1; it must be 0 to 0");
    refused(acs_nccl_all_gather(g_context, g_comm, ACS_NCCL_F32, g_from, NULL, 1),
            "acs_nccl_all_gather: part 0: receive is NULL");
    refused(acs_nccl_send(g_context, g_comm, ACS_NCCL_F32, 0, g_from, 1),
            "acs_nccl_send: part 0: the rank's send to itself has no partner in the group");
    refused(acs_nccl_group(g_context, g_comm, NULL, 1), "acs_nccl_group: parts is NULL");
    host_refused(acs_nccl_comm_adopt(NULL, &made), "acs_nccl_comm_adopt: nccl_comm is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_of_one_rank_copy),
        cmocka_unit_test(a_group_sends_to_itself_in_order),
        cmocka_unit_test(ops_of_a_communicator_follow_each_other),
        cmocka_unit_test(in_place_is_allowed),
        cmocka_unit_test(bad_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, start, stop);
}

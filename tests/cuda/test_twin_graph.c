/*
 * Graphs in the double of the CUDA driver: they run what they were made of, and what a program may not do with an executable
 * graph is reported, above all changing one that is in flight. Direct calls only.
 */
#include "twin_checks.h"

#include <string.h>

static CUkernel g_add; /* *arg0 = 2 * *arg0 + arg1 */
static CUstream g_stream;
static CUdeviceptr g_memory;
static CUgraph g_graph; /* add 1, add 2 */
static CUgraphNode g_nodes[2];
static CUgraphExec g_exec;

static void add_body(void *const *args)
{
    unsigned char *at = *(unsigned char **)args[0];
    *at = (unsigned char)(2 * *at + *(unsigned *)args[1]);
}

static size_t add_touches(void *const *args, twin_range *out, size_t capacity)
{
    (void)capacity;
    out[0] = (twin_range){*(uint64_t *)args[0], 1};
    return 1;
}

static unsigned memory_byte(void)
{
    return *(unsigned char *)(uintptr_t)g_memory;
}

/* Of one launch of g_add; good until the next. */
static const CUDA_KERNEL_NODE_PARAMS *params(unsigned value)
{
    static unsigned added;
    static void *args[] = {&g_memory, &added};
    static CUDA_KERNEL_NODE_PARAMS p;
    added = value;
    p = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
                                  .blockDimZ = 1, .kern = g_add, .kernelParams = args};
    return &p;
}

static int setup(void **state)
{
    static const uint32_t sizes[] = {8, 4};
    const twin_kernel_spec spec = {.name = "add", .body = add_body, .touches = add_touches, .param_count = 2,
                                   .param_bytes = sizes};
    CUcontext context;
    (void)state;
    twin_reset();
    g_add = twin_kernel(&spec);
    ok(TWIN_GET(cuDevicePrimaryCtxRetain, 7000)(&context, 0));
    ok(TWIN_GET(cuCtxSetCurrent, 4000)(context));
    ok(TWIN_GET(cuStreamCreate, 2000)(&g_stream, CU_STREAM_NON_BLOCKING));
    ok(TWIN_GET(cuMemAlloc, 3020)(&g_memory, 1));
    *(unsigned char *)(uintptr_t)g_memory = 0;
    ok(TWIN_GET(cuGraphCreate, 10000)(&g_graph, 0));
    for (unsigned i = 0; i < 2; i++)
        ok(TWIN_GET(cuGraphAddKernelNode, 12000)(&g_nodes[i], g_graph, g_nodes, i, params(1 + i)));
    ok(TWIN_GET(cuGraphInstantiateWithFlags, 11040)(&g_exec, g_graph, 0));
    return 0;
}

static void launch(void)
{
    ok(TWIN_GET(cuGraphLaunch, 10000)(g_exec, g_stream));
}

static void sync(void)
{
    ok(TWIN_GET(cuStreamSynchronize, 2000)(g_stream));
    assert_ptr_equal(twin_breach(), NULL);
}

static void graph_runs_its_nodes_when_its_stream_gets_there(void **state)
{
    (void)state;
    launch();
    assert_int_equal(memory_byte(), 0);
    sync();
    assert_int_equal(memory_byte(), 4);
    launch();
    sync();
    assert_int_equal(memory_byte(), 2 * (2 * 4 + 1) + 2);
}

static void parameters_hold_for_later_launches(void **state)
{
    (void)state;
    ok(TWIN_GET(cuGraphExecKernelNodeSetParams, 12000)(g_exec, g_nodes[1], params(50)));
    launch();
    sync();
    assert_int_equal(memory_byte(), 52);
    (void)TWIN_GET(cuGraphExecKernelNodeSetParams, 12000)(g_exec, (CUgraphNode)(uintptr_t)0x10, params(1));
    assert_breach("is no node of executable graph 0");
}

static void executable_graph_in_flight_may_not_be_changed(void **state)
{
    CUgraphExecUpdateResultInfo info;
    (void)state;
    launch();
    ok(TWIN_GET(cuGraphExecUpdate, 12000)(g_exec, g_graph, &info));
    assert_breach("cuGraphExecUpdate: executable graph 0 is in flight");
    ok(TWIN_GET(cuGraphExecDestroy, 10000)(g_exec));
    assert_breach("cuGraphExecDestroy: executable graph 0 is in flight");
    (void)TWIN_GET(cuGraphLaunch, 10000)(g_exec, g_stream);
    assert_breach("executable graph 0 was destroyed before");
    sync();
}

static void node_that_is_set_in_flight_changes_later_launches_only(void **state)
{
    (void)state;
    launch();
    ok(TWIN_GET(cuGraphExecKernelNodeSetParams, 12000)(g_exec, g_nodes[1], params(50)));
    launch();
    assert_ptr_equal(twin_breach(), NULL);
    sync();
    assert_int_equal(memory_byte(), (unsigned char)(2 * (2 * 4 + 1) + 50));
}

/* Two streams, held back: the second launch runs the first one's before itself. */
static void launches_of_one_executable_graph_run_in_order(void **state)
{
    CUstream other;
    (void)state;
    ok(TWIN_GET(cuStreamCreate, 2000)(&other, CU_STREAM_NON_BLOCKING));
    launch();
    ok(TWIN_GET(cuGraphExecKernelNodeSetParams, 12000)(g_exec, g_nodes[1], params(50)));
    ok(TWIN_GET(cuGraphLaunch, 10000)(g_exec, other));
    ok(TWIN_GET(cuStreamSynchronize, 2000)(other));
    assert_int_equal(memory_byte(), (unsigned char)(2 * (2 * 4 + 1) + 50));
    ok(TWIN_GET(cuStreamDestroy, 4000)(other));
}

static void memory_of_a_graph_in_flight_may_not_go(void **state)
{
    (void)state;
    launch();
    ok(TWIN_GET(cuMemFree, 3020)(g_memory));
    assert_breach("which work that has not run uses");
}

static void update_takes_what_has_the_same_shape(void **state)
{
    CUgraph other;
    CUgraphNode node;
    CUgraphExecUpdateResultInfo info;
    (void)state;
    ok(TWIN_GET(cuGraphCreate, 10000)(&other, 0));
    ok(TWIN_GET(cuGraphAddKernelNode, 12000)(&node, other, NULL, 0, params(7)));
    assert_int_equal(TWIN_GET(cuGraphExecUpdate, 12000)(g_exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    ok(TWIN_GET(cuGraphAddKernelNode, 12000)(&node, other, &node, 1, params(9)));
    ok(TWIN_GET(cuGraphExecUpdate, 12000)(g_exec, other, &info));
    ok(TWIN_GET(cuGraphDestroy, 10000)(other));
    launch();
    sync();
    assert_int_equal(memory_byte(), 2 * 7 + 9);
    (void)TWIN_GET(cuGraphDestroy, 10000)(other);
    assert_breach("graph 1 was destroyed before");
}

static void nodes_depend_on_nodes_of_their_graph_and_keep_the_limits(void **state)
{
    CUgraph other;
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS large = *params(1);
    (void)state;
    ok(TWIN_GET(cuGraphCreate, 10000)(&other, 0));
    (void)TWIN_GET(cuGraphAddKernelNode, 12000)(&node, other, g_nodes, 1, params(1));
    assert_breach("dependency 0 is no node of graph 1");
    large.blockDimX = TWIN_BLOCK_MOST + 1;
    (void)TWIN_GET(cuGraphAddKernelNode, 12000)(&node, other, NULL, 0, &large);
    assert_breach("block 1025 x 1 x 1");
}

static void edges_of_one_call_have_the_same_data(void **state)
{
    CUgraph graph;
    CUgraphNode nodes[3];
    const CUgraphEdgeData data[] = {{0}, {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                          .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC}};
    (void)state;
    ok(TWIN_GET(cuGraphCreate, 10000)(&graph, 0));
    for (uint32_t i = 0; i < 3; i++)
        ok(TWIN_GET(cuGraphAddKernelNode, 12000)(&nodes[i], graph, NULL, 0, params(1)));
    (void)TWIN_GET(cuGraphAddDependencies, 12030)(graph, nodes, nodes + 1, data, 2);
    assert_breach("edge 1 has other data than edge 0");
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 0);
    for (uint32_t i = 0; i < 2; i++)
        ok(TWIN_GET(cuGraphAddDependencies, 12030)(graph, nodes + i, nodes + i + 1, data + i, 1));
    assert_int_equal(twin_graph_programmatic(graph), 1);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

static void capture_makes_a_graph_of_what_a_stream_was_given(void **state)
{
    CUgraph captured;
    CUgraphExec exec;
    (void)state;
    ok(TWIN_GET(cuStreamBeginCapture, 10010)(g_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(TWIN_GET(cuMemsetD8Async, 3020)(g_memory, 30, 1, g_stream));
    ok(TWIN_GET(cuStreamEndCapture, 10000)(g_stream, &captured));
    sync();
    assert_int_equal(memory_byte(), 0);
    ok(TWIN_GET(cuGraphInstantiateWithFlags, 11040)(&exec, captured, 0));
    ok(TWIN_GET(cuGraphLaunch, 10000)(exec, g_stream));
    sync();
    assert_int_equal(memory_byte(), 30);
}

/* Each node sets its bit where the ones that it is behind have set theirs; the seeds reach both orders of the two. */
static void nodes_run_in_any_order_that_the_edges_allow(void **state)
{
    CUgraph graph, other;
    CUstreamCaptureStatus status;
    cuuint64_t id = 0;
    const CUgraphNode *ends;
    CUgraphNode first, empty;
    size_t count;
    unsigned seen = 0;
    (void)state;
    ok(TWIN_GET(cuStreamBeginCapture, 10010)(g_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(TWIN_GET(cuMemsetD8Async, 3020)(g_memory, 1, 1, g_stream));
    ok(TWIN_GET(cuStreamGetCaptureInfo, 11030)(g_stream, &status, &id, &graph, &ends, &count));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(count, 1);
    first = ends[0];
    ok(TWIN_GET(cuMemsetD8Async, 3020)(g_memory, 2, 1, g_stream));
    ok(TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, &first, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ok(TWIN_GET(cuMemsetD8Async, 3020)(g_memory, 3, 1, g_stream));
    ok(TWIN_GET(cuGraphAddEmptyNode, 10000)(&empty, graph, &first, 1));
    assert_int_equal(twin_graph_nodes(graph), 4);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 3);
    CUgraphNode twice[] = {first, first};
    (void)TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, twice, 2, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    assert_breach("dependencies 0 and 1 are the same node");
    ok(TWIN_GET(cuStreamEndCapture, 10000)(g_stream, &other));
    assert_ptr_equal(graph, other);
    (void)TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, &first, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    assert_breach("is not being captured");
    CUgraphExec exec;
    ok(TWIN_GET(cuGraphInstantiateWithFlags, 11040)(&exec, graph, 0));
    for (int i = 0; i < 32; i++) {
        ok(TWIN_GET(cuGraphLaunch, 10000)(exec, g_stream));
        sync();
        seen |= 1u << memory_byte();
    }
    assert_int_equal(seen, 1u << 2 | 1u << 3);
}

static uint32_t g_destroyed;

static void count_destroyed(void *argument)
{
    (void)argument;
    g_destroyed++;
}

static void user_object_lives_as_long_as_graph_and_executable(void **state)
{
    CUuserObject object;
    (void)state;
    g_destroyed = 0;
    ok(TWIN_GET(cuUserObjectCreate, 11030)(&object, NULL, count_destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ok(TWIN_GET(cuGraphRetainUserObject, 11030)(g_graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CUgraphExec exec;
    ok(TWIN_GET(cuGraphInstantiateWithFlags, 11040)(&exec, g_graph, 0));
    ok(TWIN_GET(cuGraphDestroy, 10000)(g_graph));
    assert_int_equal(g_destroyed, 0);
    ok(TWIN_GET(cuGraphExecDestroy, 10000)(exec));
    assert_int_equal(g_destroyed, 1);
    (void)TWIN_GET(cuUserObjectRelease, 11030)(object, 1);
    assert_breach("user object 0 was destroyed before");
}

static void graphs_that_are_left_are_leaks(void **state)
{
    (void)state;
    ok(TWIN_GET(cuStreamDestroy, 4000)(g_stream));
    ok(TWIN_GET(cuMemFree, 3020)(g_memory));
    twin_audit();
    assert_breach("audit: graph 0 was not destroyed");
    ok(TWIN_GET(cuGraphDestroy, 10000)(g_graph));
    twin_audit();
    assert_breach("audit: executable graph 0 was not destroyed");
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(graph_runs_its_nodes_when_its_stream_gets_there),
        TEST(parameters_hold_for_later_launches),
        TEST(executable_graph_in_flight_may_not_be_changed),
        TEST(node_that_is_set_in_flight_changes_later_launches_only),
        TEST(launches_of_one_executable_graph_run_in_order),
        TEST(memory_of_a_graph_in_flight_may_not_go),
        TEST(update_takes_what_has_the_same_shape),
        TEST(nodes_depend_on_nodes_of_their_graph_and_keep_the_limits),
        TEST(edges_of_one_call_have_the_same_data),
        TEST(capture_makes_a_graph_of_what_a_stream_was_given),
        TEST(nodes_run_in_any_order_that_the_edges_allow),
        TEST(user_object_lives_as_long_as_graph_and_executable),
        TEST(graphs_that_are_left_are_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

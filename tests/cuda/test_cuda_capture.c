/*
 * Ops inside somebody else's capture, over the twin, case by case: what becomes a node and behind what, what is refused,
 * whose ops are captured, and what is left where the capture or a call fails.
 */
#include "capture_fixture.h"

#include <pthread.h>

/* -------------------------------------------------------------------------------------------------------------- edges */

/* Before, four chains of three, after: the graph is as wide as the program. */
static void independent_ops_become_a_wide_graph_between_the_streams_own_work(void **state)
{
    (void)state;
    const work before = update_of(100, g_memory, NULL, 512), after = update_of(101, g_memory, NULL, 512);
    capture_begin(g_stream);
    ok(send_work(g_stream, &before));
    section_begin();
    for (uint32_t i = 0; i < 12; i++)
        assert_true(update(i, g_memory + 64 * (i % 4), NULL, 64) & ACS_OP_CAPTURED);
    section_end();
    ok(send_work(g_stream, &after));
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 14);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 4 + 8 + 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(has_edge(graph, 0, 1 + i));
        assert_true(has_edge(graph, 9 + i, 13));
    }
    for (uint32_t i = 1; i <= 8; i++)
        assert_true(has_edge(graph, i, i + 4));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    acs_statistics stats = {.size = sizeof stats};
    assert_int_equal(acs_stats(g_context, &stats), ACS_OK);
    assert_int_equal(stats.captured, 12);
    assert_int_equal(stats.kernels, 0);
}

static void a_wide_section_gets_no_edges_but_those_of_its_footprints(void **state)
{
    enum { OPS = 200 };
    (void)state;
    capture_begin(g_stream);
    section_begin();
    for (uint32_t i = 0; i < OPS; i++)
        assert_int_not_equal(update(i, g_memory + 2 * i, NULL, 2), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), OPS);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 0);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

static void share_of_a_captured_launch_is_ignored_and_counted(void **state)
{
    (void)state;
    const acs_kernel kernel = {"mix", (const void *)g_mix, NULL, ACS_KERNEL_HANDLE, 0};
    const work w = update_of(1, g_memory, NULL, 64);
    const acs_arg arg = {&w, sizeof w, ACS_ARG_VALUE};
    const acs_segment uses[] = {ACS_INOUT(g_memory, 64)};
    acs_launch_params launch = {.size = sizeof launch, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                .args = {&arg, 1}, .uses = {uses, 1, NULL, NULL, 0}, .attributes = ACS_SHARE(30)};
    acs_statistics s = {.size = sizeof s};
    capture_begin(g_stream);
    section_begin();
    assert_true(acs_launch(g_context, &launch) & ACS_OP_CAPTURED);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 1);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    assert_int_equal(acs_stats(g_context, &s), ACS_OK);
    assert_int_equal(s.shares, 0);
    assert_int_equal(s.shares_ignored, 1);
}

static void only_ops_of_the_range_are_ordered_against_the_stream(void **state)
{
    (void)state;
    const work before = update_of(100, g_memory, NULL, 64), after = update_of(101, g_memory + 64, NULL, 64);
    capture_begin(g_stream);
    ok(send_work(g_stream, &before));
    assert_int_not_equal(acs_after_stream(g_context, g_stream, ACS_USES(ACS_INOUT(g_memory, 64))), 0);
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    assert_int_not_equal(update(2, g_memory + 64, NULL, 64), 0);
    assert_int_not_equal(update(3, g_memory + 128, NULL, 64), 0);
    assert_int_equal(acs_stream_after(g_context, g_stream, ACS_USES(ACS_INOUT(g_memory + 64, 64))), ACS_OK);
    ok(send_work(g_stream, &after));
    CUgraph graph = capture_end(g_stream);
    assert_true(has_edge(graph, 0, 1));
    assert_true(has_edge(graph, 2, 4));
    assert_true(has_edge(graph, 0, 4)); /* the stream's own order */
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 3);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

static void work_of_the_streams_own_inside_a_section_keeps_the_streams_order(void **state)
{
    (void)state;
    const work first = update_of(100, g_memory + 512, NULL, 64), second = update_of(101, g_memory + 512, NULL, 64);
    capture_begin(g_stream);
    ok(send_work(g_stream, &first));
    section_begin();
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    ok(send_work(g_stream, &second));
    assert_int_not_equal(update(2, g_memory, NULL, 64), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_true(has_edge(graph, 0, 1));
    assert_true(has_edge(graph, 0, 2));
    assert_true(has_edge(graph, 1, 3));
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 3);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

/* Copies and fills are nodes; those of no bytes are none, and order goes through them. */
static void copies_and_fills_become_nodes(void **state)
{
    (void)state;
    capture_begin(g_stream);
    section_begin();
    assert_int_not_equal(acs_memset(g_context, g_memory, 7, 64), 0);
    assert_int_not_equal(acs_memcpy(g_context, g_memory + 64, g_memory, 0), 0);
    assert_int_not_equal(acs_memcpy(g_context, g_memory + 128, g_memory, 64), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 2);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 1);
    assert_int_equal(twin_count("cuPointerGetAttributes"), 1); /* of the fill, which is a kernel; the copy is a copy */
    assert_int_equal(g_memory[128], 0);
    graph_run(graph, 2);
    assert_int_equal(g_memory[128], 7);
}

static void serial_options_make_a_chain(void **state)
{
    (void)state;
    capture_open(3, 1);
    g_memory = memory_new(4096);
    capture_begin(g_stream);
    section_begin();
    for (uint32_t i = 0; i < 6; i++)
        assert_int_not_equal(update(i, g_memory + 64 * i, NULL, 64), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(has_edge(graph, i, i + 1));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    finish_with(ACS_OK);
}

/* Wide, the stream's own, wide: the second section is behind the stream's node alone, which is behind the first. */
static void sections_with_work_between_them_need_no_edges_to_each_other(void **state)
{
    enum { WIDTH = 8 };
    (void)state;
    const work between = update_of(100, g_memory, NULL, 64 * WIDTH), more = update_of(101, g_memory, NULL, 64);
    capture_begin(g_stream);
    for (int section = 0; section < 2; section++) {
        section_begin();
        for (uint32_t i = 0; i < WIDTH; i++)
            assert_int_not_equal(update(i, g_memory + 64 * i, NULL, 64), 0);
        section_end();
        if (section == 0) {
            ok(send_work(g_stream, &between));
            ok(send_work(g_stream, &more));
        }
    }
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 2 * WIDTH + 2);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), WIDTH + 1 + WIDTH);
    for (uint32_t i = 0; i < WIDTH; i++)
        assert_true(has_edge(graph, WIDTH + 1, WIDTH + 2 + i));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

/* The stream's node between the sections is not behind the first one's op: the second section's is. */
static void ops_that_the_stream_did_not_wait_for_are_still_waited_for(void **state)
{
    (void)state;
    const work between = update_of(100, g_memory + 64, NULL, 64);
    capture_begin(g_stream);
    section_begin();
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    assert_int_equal(acs_stream_after(g_context, g_stream, ACS_USES(ACS_INOUT(g_memory + 64, 64))), ACS_OK);
    ok(send_work(g_stream, &between));
    section_begin();
    assert_int_not_equal(update(2, g_memory, NULL, 64), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 2);
    assert_true(has_edge(graph, 0, 2));
    assert_true(has_edge(graph, 1, 2));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

/* Sections of one capture share their order, also after other captures came between. */
static void order_is_kept_across_sections_and_captures(void **state)
{
    enum { OTHERS = 6 };
    CUstream others[OTHERS];
    CUgraph graph;
    const acs_uses nothing = ACS_USES(ACS_IN(g_memory + 2048, 1));
    (void)state;
    for (int i = 0; i < OTHERS; i++)
        others[i] = stream_new();
    capture_begin(g_stream);
    assert_int_not_equal(acs_after_stream(g_context, g_stream, nothing), 0);
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    assert_int_equal(acs_stream_after(g_context, g_stream, nothing), ACS_OK);
    for (int i = 0; i < OTHERS; i++) {
        ok(TWIN_GET(cuStreamBeginCapture, 10010)(others[i], CU_STREAM_CAPTURE_MODE_RELAXED));
        assert_int_not_equal(acs_after_stream(g_context, others[i], nothing), 0);
        assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
        assert_int_equal(acs_stream_after(g_context, others[i], nothing), ACS_OK);
    }
    assert_int_not_equal(acs_after_stream(g_context, g_stream, nothing), 0);
    assert_int_not_equal(update(2, g_memory, NULL, 64), 0);
    assert_int_equal(acs_stream_after(g_context, g_stream, nothing), ACS_OK);
    graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 2);
    assert_true(has_edge(graph, 0, 1));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    for (int i = 0; i < OTHERS; i++) {
        graph = capture_end(others[i]);
        assert_int_equal(twin_graph_nodes(graph), 1);
        ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
        ok(TWIN_GET(cuStreamDestroy, 4000)(others[i]));
    }
}

/* ------------------------------------------------------------------------------------------------------------ refusals */

static int host_function(void *closure)
{
    return closure != NULL;
}

static void on_retire(void *user, acs_op op, acs_status status)
{
    (void)user, (void)op, (void)status;
}

static void what_cannot_be_a_node_is_refused_by_name(void **state)
{
    (void)state;
    acs_op before = acs_memset(g_context, g_memory, 1, 64);
    void *more = NULL;
    capture_begin(g_stream);
    section_begin();
    acs_op op = update(1, g_memory, NULL, 64);
    assert_int_equal(acs_host(g_context, host_function, NULL, 0, anything()), 0);
    assert_last_error(ACS_ERR_UNSUPPORTED, "acs_host");
    assert_int_equal(acs_free(g_context, g_memory), 0);
    assert_last_error(ACS_ERR_UNSUPPORTED, "acs_free");
    assert_int_equal(acs_on_retire(g_context, before, on_retire, NULL), 0);
    assert_last_error(ACS_ERR_UNSUPPORTED, "acs_on_retire");
    assert_int_equal(acs_sync(g_context), ACS_ERR_STATE);
    assert_last_error(ACS_ERR_STATE, "acs_sync: the ops of this thread are being captured");
    assert_int_equal(acs_wait_range(g_context, g_memory, 64, ACS_READ), ACS_ERR_STATE);
    assert_int_equal(acs_wait(g_context, op), ACS_ERR_UNSUPPORTED);
    assert_last_error(ACS_ERR_UNSUPPORTED, "was captured");
    assert_int_equal(acs_query(g_context, op), ACS_ERR_UNSUPPORTED);
    assert_int_equal(acs_wait(g_context, before), ACS_OK); /* it runs as always */
    assert_int_equal(acs_malloc(g_context, 64, ACS_MEMORY_DEVICE, &more), ACS_OK); /* no op */
    section_end();
    assert_int_equal(acs_on_retire(g_context, op, on_retire, NULL), 0);
    assert_last_error(ACS_ERR_UNSUPPORTED, "was captured");
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 1);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    assert_int_equal(acs_sync(g_context), ACS_ERR_UNSUPPORTED); /* program order has holes: the first is told again */
    assert_int_not_equal(acs_free(g_context, more), 0);
}

static void streams_that_are_not_of_the_capture_are_refused(void **state)
{
    (void)state;
    CUstream other = stream_new(), third = stream_new();
    capture_begin(g_stream);
    assert_int_equal(acs_stream_after(g_context, g_stream, anything()), ACS_ERR_STATE);
    assert_last_error(ACS_ERR_STATE, "acs_after_stream comes first");
    section_begin();
    assert_int_equal(acs_after_stream(g_context, other, anything()), 0);
    assert_last_error(ACS_ERR_UNSUPPORTED, "is not being captured");
    assert_int_equal(acs_stream_after(g_context, other, anything()), ACS_ERR_UNSUPPORTED);
    ok(TWIN_GET(cuStreamBeginCapture, 10010)(third, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_int_equal(acs_after_stream(g_context, third, anything()), 0);
    assert_last_error(ACS_ERR_STATE, "part of another capture");
    assert_int_equal(acs_stream_after(g_context, third, anything()), ACS_ERR_STATE);
    section_end();
    ok(TWIN_GET(cuGraphDestroy, 10000)(capture_end(g_stream)));
    ok(TWIN_GET(cuGraphDestroy, 10000)(capture_end(third)));
    ok(TWIN_GET(cuStreamDestroy, 4000)(other));
    ok(TWIN_GET(cuStreamDestroy, 4000)(third));
}

/* ----------------------------------------------------------------------------------------------------- whose, and when */

static void *other_thread(void *argument)
{
    unsigned char *at = argument;
    assert_int_not_equal(acs_memset(g_context, at, 9, 64), 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_int_equal(at[63], 9);
    return NULL;
}

static void ops_of_other_threads_run_as_always(void **state)
{
    (void)state;
    pthread_t thread;
    capture_begin(g_stream);
    section_begin();
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, g_memory + 64), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_not_equal(update(2, g_memory + 64, NULL, 64), 0); /* conflicts with that op, and waits for nothing */
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 2);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 0);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

/* Of another thread, in the same capture: as autograd runs backward on a thread of its own. */
static void *section_of_another_thread(void *argument)
{
    CUcontext context = twin_context(0);
    ok(TWIN_GET(cuCtxSetCurrent, 4000)(context));
    section_begin();
    assert_true(update(2, argument, NULL, 64) & ACS_OP_CAPTURED);
    section_end();
    ok(TWIN_GET(cuCtxSetCurrent, 4000)(NULL));
    return NULL;
}

static void sections_of_several_threads_share_the_order_of_a_capture(void **state)
{
    (void)state;
    pthread_t thread;
    ok(TWIN_GET(cuStreamBeginCapture, 10010)(g_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    section_begin();
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    assert_int_equal(pthread_create(&thread, NULL, section_of_another_thread, g_memory), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_not_equal(update(3, g_memory, NULL, 64), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 3);
    assert_true(has_edge(graph, 0, 1));
    assert_true(has_edge(graph, 1, 2));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

static void after_the_section_ops_run_again(void **state)
{
    (void)state;
    capture_begin(g_stream);
    section_begin();
    section_end();
    assert_false(acs_memset(g_context, g_memory, 3, 64) & ACS_OP_CAPTURED);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_int_equal(g_memory[0], 3);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 0);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    assert_false(acs_after_stream(g_context, g_stream, anything()) & ACS_OP_CAPTURED);
    assert_int_equal(acs_stream_after(g_context, g_stream, anything()), ACS_OK);
}

static void capture_that_ended_too_early_refuses_ops_until_the_section_ends(void **state)
{
    (void)state;
    capture_begin(g_stream);
    section_begin();
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(update(2, g_memory, NULL, 64), 0);
    assert_last_error(ACS_ERR_STATE, "ended before acs_stream_after");
    assert_int_equal(update(2, g_memory, NULL, 64), 0);
    assert_int_equal(acs_stream_after(g_context, g_stream, anything()), ACS_ERR_STATE);
    assert_last_error(ACS_ERR_STATE, "ended before acs_stream_after");
    assert_int_equal(acs_clear(g_context), ACS_OK);
    assert_int_not_equal(update(3, g_memory, NULL, 64), 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_int_equal(twin_graph_nodes(graph), 1);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

/* An exception left the section open; the next capture of the stream begins anew. So does what runs, after a clear. */
static void section_that_was_left_open_is_over_with_the_next_capture(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        capture_begin(g_stream);
        section_begin();
        assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
        CUgraph graph = capture_end(g_stream);
        assert_int_equal(twin_graph_nodes(graph), 1);
        ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    }
    assert_int_equal(acs_clear(g_context), ACS_OK);
    assert_false(update(2, g_memory, NULL, 64) & ACS_OP_CAPTURED);
    /* Nor does acs_stream_after take the stream's next capture for the section's. */
    capture_begin(g_stream);
    section_begin();
    ok(TWIN_GET(cuGraphDestroy, 10000)(capture_end(g_stream)));
    capture_begin(g_stream);
    assert_int_equal(acs_stream_after(g_context, g_stream, anything()), ACS_ERR_STATE);
    assert_last_error(ACS_ERR_STATE, "ended before acs_stream_after");
    assert_false(update(3, g_memory, NULL, 64) & ACS_OP_CAPTURED);
    assert_int_equal(acs_clear(g_context), ACS_OK);
    ok(TWIN_GET(cuGraphDestroy, 10000)(capture_end(g_stream)));
}

static void invalidated_capture_says_so(void **state)
{
    CUevent event = NULL;
    CUgraph graph;
    (void)state;
    capture_begin(g_stream);
    section_begin();
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    assert_int_not_equal(TWIN_GET(cuEventCreate, 2000)(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS); /* not allowed */
    twin_forget_breaches();
    assert_int_equal(update(2, g_memory, NULL, 64), 0);
    assert_last_error(ACS_ERR_STATE, "was invalidated");
    assert_int_equal(acs_stream_after(g_context, g_stream, anything()), ACS_ERR_STATE);
    assert_last_error(ACS_ERR_STATE, "was invalidated");
    assert_int_equal(TWIN_GET(cuStreamEndCapture, 10000)(g_stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_false(acs_memset(g_context, g_memory, 3, 64) & ACS_OP_CAPTURED);
}

/* ------------------------------------------------------------------------------------------------------------ failures */

static void refused_node_is_an_error_of_its_op_and_the_capture_goes_on(void **state)
{
    acs_error error = {.size = sizeof error};
    (void)state;
    capture_begin(g_stream);
    section_begin();
    assert_int_not_equal(update(1, g_memory, NULL, 64), 0);
    twin_fail("cuLaunchKernelEx", CUDA_ERROR_INVALID_VALUE, 0, 1);
    assert_int_equal(update(2, g_memory, NULL, 64), 0);
    assert_last_error(ACS_ERR_LAUNCH, "'mix' could not become a node");
    assert_int_equal(acs_context_error(g_context, &error), ACS_ERR_LAUNCH);
    assert_int_equal(error.native, CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(error.site.name, "mix");
    assert_int_not_equal(update(3, g_memory, NULL, 64), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 2);
    assert_true(has_edge(graph, 0, 1));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

static void lost_device_is_known_to_the_context(void **state)
{
    (void)state;
    capture_open(5, 0);
    g_memory = memory_new(4096);
    capture_begin(g_stream);
    section_begin();
    twin_lose_after_calls(CUDA_ERROR_ILLEGAL_ADDRESS, 0);
    assert_int_equal(update(1, g_memory, NULL, 64), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_DEVICE);
    assert_int_equal(acs_close(g_context), ACS_ERR_DEVICE);
    assert_ptr_equal(twin_breach(), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(independent_ops_become_a_wide_graph_between_the_streams_own_work),
        TEST(a_wide_section_gets_no_edges_but_those_of_its_footprints),
        TEST(share_of_a_captured_launch_is_ignored_and_counted),
        TEST(only_ops_of_the_range_are_ordered_against_the_stream),
        TEST(work_of_the_streams_own_inside_a_section_keeps_the_streams_order),
        TEST(copies_and_fills_become_nodes),
        cmocka_unit_test(serial_options_make_a_chain),
        TEST(sections_with_work_between_them_need_no_edges_to_each_other),
        TEST(ops_that_the_stream_did_not_wait_for_are_still_waited_for),
        TEST(order_is_kept_across_sections_and_captures),
        TEST_CLEARED(what_cannot_be_a_node_is_refused_by_name),
        TEST_CLEARED(streams_that_are_not_of_the_capture_are_refused),
        TEST(ops_of_other_threads_run_as_always),
        TEST(sections_of_several_threads_share_the_order_of_a_capture),
        TEST(after_the_section_ops_run_again),
        TEST(capture_that_ended_too_early_refuses_ops_until_the_section_ends),
        TEST(section_that_was_left_open_is_over_with_the_next_capture),
        TEST_CLEARED(invalidated_capture_says_so),
        TEST_CLEARED(refused_node_is_an_error_of_its_op_and_the_capture_goes_on),
        cmocka_unit_test(lost_device_is_known_to_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Library calls inside somebody else's capture, over the twin: they become what they send to the stream that they are given,
 * with scratch memory that lives as long as the graph; and every driver call of a section failing in turn.
 */
#include "capture_fixture.h"

typedef struct call_closure {
    work w;
    int result;
    int nodes;
    bool may_run; /* not captured: a call before failed */
} call_closure;

static int g_place_key;
static void *g_scratches[32];
static int g_calls;
static bool g_may_run;

/* Writes its scratch memory, then reads it: wrong where another call has the same block at the same time. */
static int library(const acs_call_env *env, void *closure)
{
    call_closure *c = closure;
    assert_true(env->slot == -1 || c->may_run);
    assert_int_equal(env->device, 0);
    g_scratches[g_calls++ % 32] = env->scratch;
    *env->place = &g_place_key;
    for (int i = 0; i < c->nodes; i++)
        if (send_work(env->stream, &c->w) != CUDA_SUCCESS)
            return 5;
    assert_int_equal(acs_sync(g_context), ACS_ERR_STATE); /* inside */
    return c->result;
}

static acs_op call(uint32_t id, void *to, int nodes, size_t scratch, int result)
{
    call_closure closure = {update_of(id, to, NULL, 64), result, nodes, g_may_run};
    const acs_segment segment = ACS_INOUT(to, 64);
    const acs_call_params params = {.size = sizeof params, .function = library, .closure = &closure,
                                    .closure_bytes = sizeof closure, .scratch_bytes = scratch,
                                    .place_key = &g_place_key, .uses = {.segments = &segment, .count = 1}};
    return acs_call(g_context, &params);
}

static void library_calls_become_what_they_send(void **state)
{
    (void)state;
    g_calls = 0;
    capture_begin(g_stream);
    section_begin();
    assert_int_not_equal(call(1, g_memory, 3, 100, 0), 0);
    assert_int_not_equal(call(2, g_memory + 64, 2, 100, 0), 0);
    assert_int_not_equal(call(3, g_memory + 128, 0, 0, 0), 0);
    assert_int_not_equal(update(4, g_memory, NULL, 128), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 6);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 2 + 1 + 2);
    assert_true(has_edge(graph, 2, 5));
    assert_true(has_edge(graph, 4, 5));
    assert_non_null(g_scratches[0]);
    assert_non_null(g_scratches[1]);
    assert_ptr_not_equal(g_scratches[0], g_scratches[1]);
    assert_ptr_equal(g_scratches[2], NULL);
    assert_int_equal(twin_user_objects(), 2);
    graph_run(graph, 2);
    assert_int_equal(twin_user_objects(), 0);
}

/* Calls that are ordered anyway share scratch memory; of those that are not, 16 have their own. */
static void scratch_memory_is_bounded_and_its_users_are_ordered(void **state)
{
    enum { CALLS = 20, BLOCKS = 16 };
    (void)state;
    g_calls = 0;
    capture_begin(g_stream);
    section_begin();
    for (uint32_t i = 0; i < CALLS; i++)
        assert_int_not_equal(call(i, g_memory, 1, 64, 0), 0);
    for (uint32_t i = 1; i < CALLS; i++)
        assert_ptr_equal(g_scratches[i], g_scratches[0]);
    assert_int_equal(twin_user_objects(), 1);
    g_calls = 0;
    for (uint32_t i = 0; i < CALLS; i++)
        assert_int_not_equal(call(i, g_memory + 64 + 64 * i, 1, 64, 0), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_user_objects(), BLOCKS);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), CALLS - 1 + CALLS - BLOCKS + 1);
    for (uint32_t i = 0; i < CALLS; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_true(g_scratches[i] != g_scratches[j] || has_edge(graph, CALLS + j, CALLS + i));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

static void scratch_memory_is_used_again_when_its_graph_is_gone(void **state)
{
    (void)state;
    void *first = NULL;
    for (int i = 0; i < 5; i++) {
        g_calls = 0;
        capture_begin(g_stream);
        section_begin();
        assert_int_not_equal(call(1, g_memory, 1, 64, 0), 0);
        section_end();
        graph_run(capture_end(g_stream), 1);
        assert_true(i == 0 || g_scratches[0] == first);
        first = g_scratches[0];
    }
}

/* Its memory stays: the graph may still run. */
static void graph_with_scratch_memory_may_outlive_the_context(void **state)
{
    (void)state;
    capture_begin(g_stream);
    section_begin();
    assert_int_not_equal(call(1, g_memory, 1, 64, 0), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    void *scratch = g_scratches[(g_calls - 1) % 32];
    assert_int_not_equal(acs_free(g_context, g_memory), 0);
    assert_int_equal(acs_close(g_context), ACS_OK);
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    assert_int_equal(twin_user_objects(), 0);
    ok(TWIN_GET(cuMemFree, 3020)((CUdeviceptr)(uintptr_t)scratch)); /* else a leak, rightly */
    context_open(0, 0);
    capture_close(ACS_OK);
}

static void failing_call_names_itself_and_the_capture_goes_on(void **state)
{
    (void)state;
    capture_begin(g_stream);
    section_begin();
    assert_int_equal(call(1, g_memory, 1, 0, 42), 0);
    assert_last_error(ACS_ERR_HOST, "returned 42 while it was captured");
    assert_int_not_equal(update(2, g_memory, NULL, 64), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_nodes(graph), 2); /* what it sent before it failed is there, and in order */
    assert_true(has_edge(graph, 0, 1));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
}

/* Every driver call of a section fails in turn: no order is lost, nothing leaks, nothing hangs. */
static void any_driver_call_may_fail(void **state)
{
    (void)state;
    g_may_run = true;
    for (uint64_t at = 0; at < 140; at++) {
        capture_begin(g_stream);
        twin_fail("*", CUDA_ERROR_INVALID_VALUE, at, 1);
        (void)acs_after_stream(g_context, g_stream, anything());
        (void)update(1, g_memory, NULL, 64);
        (void)call(2, g_memory, 1, 64, 0);
        (void)update(3, g_memory, NULL, 64);
        (void)acs_stream_after(g_context, g_stream, anything());
        twin_fail(NULL, CUDA_SUCCESS, 0, 0);
        (void)acs_clear(g_context); /* a section that could not end */
        CUgraph graph = capture_end(g_stream);
        size_t nodes = twin_graph_nodes(graph);
        assert_true(nodes <= 3);
        assert_int_equal(twin_graph_edges(graph, NULL, 0), nodes ? nodes - 1 : 0);
        ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
        assert_int_equal(acs_sync(g_context), ACS_OK);
        assert_int_equal(twin_user_objects(), 0);
        ok(TWIN_GET(cuStreamSynchronize, 2000)(g_stream));
    }
    g_may_run = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(library_calls_become_what_they_send),
        TEST(scratch_memory_is_bounded_and_its_users_are_ordered),
        TEST(scratch_memory_is_used_again_when_its_graph_is_gone),
        cmocka_unit_test_setup(graph_with_scratch_memory_may_outlive_the_context, setup),
        TEST_CLEARED(failing_call_names_itself_and_the_capture_goes_on),
        TEST_CLEARED(any_driver_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

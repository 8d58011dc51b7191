/*
 * The shape of sections, over the twin. At the end of a section its ops stand on no more chains than the library allows,
 * however many of them are independent. The added edges make no cycle with work of the program's own (SECTION-1,
 * SECTION-2): the twin refuses an edge that makes one.
 */
#include "capture_random.h"

#include "base/tuning.h"

enum { MEMORY = 4096, PLACE = 8 };

static uint32_t roots_of(CUgraph graph)
{
    static uint32_t edges[4096][2];
    const size_t nodes = twin_graph_nodes(graph), count = twin_graph_edges(graph, edges, 4096);
    uint32_t roots = 0;
    for (uint32_t n = 0; n < nodes; n++) {
        bool behind = false;
        for (size_t i = 0; i < count; i++)
            behind |= edges[i][1] == n;
        roots += !behind;
    }
    return roots;
}

static void independent_ops_stand_on_few_chains(void **state)
{
    enum { OPS = 3 * TUNE_GRAPH_CHAINS };
    (void)state;
    capture_begin(g_stream);
    section_begin();
    for (uint32_t i = 0; i < OPS; i++)
        assert_int_not_equal(update(i, g_memory + PLACE * i, NULL, PLACE), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(roots_of(graph), TUNE_GRAPH_CHAINS);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), OPS - TUNE_GRAPH_CHAINS);
    graph_free(graph);
}

/* Their own chains are few enough, so nothing is added. */
static void chains_of_the_program_stay_as_they_are(void **state)
{
    (void)state;
    capture_begin(g_stream);
    section_begin();
    for (uint32_t i = 0; i < 160; i++)
        assert_int_not_equal(update(i, g_memory + PLACE * (i % 16), NULL, PLACE), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(roots_of(graph), 16);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 160 - 16);
    graph_free(graph);
}

static void each_section_has_a_shape_of_its_own(void **state)
{
    enum { OPS = 2 * TUNE_GRAPH_CHAINS };
    (void)state;
    capture_begin(g_stream);
    for (uint32_t s = 0; s < 3; s++) {
        assert_int_not_equal(acs_after_stream(g_context, g_stream, ACS_USES(ACS_TOKEN(1))), 0);
        for (uint32_t i = 0; i < OPS; i++)
            assert_int_not_equal(update(i, g_memory + PLACE * i, NULL, PLACE), 0);
        assert_int_equal(acs_stream_after(g_context, g_stream, ACS_USES(ACS_TOKEN(1))), ACS_OK);
    }
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(roots_of(graph), TUNE_GRAPH_CHAINS);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 2 * OPS + 3 * (OPS - TUNE_GRAPH_CHAINS));
    graph_free(graph);
}

static void a_serial_capture_stays_a_chain(void **state)
{
    (void)state;
    assert_int_not_equal(acs_free(g_context, g_memory), 0);
    assert_int_equal(acs_close(g_context), ACS_OK);
    context_open(1, 0);
    g_memory = memory_new(MEMORY);
    capture_begin(g_stream);
    section_begin();
    for (uint32_t i = 0; i < 100; i++)
        assert_int_not_equal(update(i, g_memory + PLACE * i, NULL, PLACE), 0);
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 99);
    graph_free(graph);
}

static int two_kernels(const acs_call_env *env, void *closure)
{
    const work *w = closure;
    const CUresult result = send_work(env->stream, w);
    return (int)(result == CUDA_SUCCESS ? send_work(env->stream, w) : result);
}

/* A library call of several nodes: what it is placed behind comes before its first node. */
static void calls_stand_on_chains_with_all_their_nodes(void **state)
{
    enum { CALLS = TUNE_GRAPH_CHAINS + 1 };
    (void)state;
    capture_begin(g_stream);
    section_begin();
    for (uint32_t i = 0; i < CALLS; i++) {
        const work w = update_of(i, g_memory + PLACE * i, NULL, PLACE);
        const acs_segment segment = segment_of(&w.pieces[0]);
        const acs_call_params params = {.size = sizeof params, .function = two_kernels, .closure = &w,
                                        .closure_bytes = sizeof w, .uses = {.segments = &segment, .count = 1}};
        assert_int_not_equal(acs_call(g_context, &params), 0);
    }
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(roots_of(graph), TUNE_GRAPH_CHAINS);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), CALLS + 1);
    graph_free(graph);
}

static void a_driver_that_adds_no_edges_leaves_graphs_as_they_are(void **state)
{
    enum { OPS = 2 * TUNE_GRAPH_CHAINS };
    (void)state;
    assert_int_not_equal(acs_free(g_context, g_memory), 0);
    assert_int_equal(acs_close(g_context), ACS_OK);
    twin_without("cuGraphAddDependencies");
    context_open(0, 0);
    twin_without(NULL);
    g_memory = memory_new(MEMORY);
    capture_begin(g_stream);
    for (uint32_t s = 0; s < 2; s++) {
        assert_int_not_equal(acs_after_stream(g_context, g_stream, ACS_USES(ACS_TOKEN(1))), 0);
        for (uint32_t i = 0; i < OPS; i++)
            assert_int_not_equal(update(i, g_memory + PLACE * i, NULL, PLACE), 0);
        assert_int_equal(acs_stream_after(g_context, g_stream, ACS_USES(ACS_TOKEN(1))), ACS_OK);
    }
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(roots_of(graph), OPS);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), OPS);
    graph_free(graph);
}

/* --------------------------------------------------------------------------------------------- the program's own work */

/* Give work to the stream that is behind one node of the graph alone, as an event of another stream would have it. */
static void own_work_behind(uint32_t node, const work *w)
{
    CUgraphNode nodes[1024];
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    size_t count = 1024;
    ok(TWIN_GET(cuStreamGetCaptureInfo, 11030)(g_stream, &status, &id, &graph, NULL, NULL));
    ok(TWIN_GET(cuGraphGetNodes, 10000)(graph, nodes, &count));
    ok(TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, &nodes[node], 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ok(send_work(g_stream, w));
}

/*
 * Each of many ops is before work of the program's own, and that before two further ops. The ranges of the calls do not
 * say so: they name the further ops alone.
 */
static void own_work_in_the_midst_of_a_section_makes_no_cycle(void **state)
{
    enum { OPS = 2 * TUNE_GRAPH_CHAINS };
    const work own = update_of(1000, g_memory + MEMORY - PLACE, NULL, PLACE);
    (void)state;
    capture_begin(g_stream);
    section_begin();
    for (uint32_t i = 0; i < OPS; i++)
        assert_int_not_equal(update(i, g_memory + PLACE * i, NULL, PLACE), 0);
    for (uint32_t i = 0; i < OPS; i++) {
        unsigned char *place = g_memory + PLACE * (OPS + i);
        own_work_behind(i, &own);
        assert_int_not_equal(acs_after_stream(g_context, g_stream, ACS_USES(ACS_INOUT(place, PLACE))), 0);
        assert_int_not_equal(update(i, place, NULL, PLACE), 0);
        assert_int_not_equal(update(i, place, NULL, PLACE), 0);
    }
    section_end();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(roots_of(graph), TUNE_GRAPH_CHAINS);
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(independent_ops_stand_on_few_chains),
        TEST(chains_of_the_program_stay_as_they_are),
        TEST(each_section_has_a_shape_of_its_own),
        TEST(a_serial_capture_stays_a_chain),
        TEST(calls_stand_on_chains_with_all_their_nodes),
        TEST(a_driver_that_adds_no_edges_leaves_graphs_as_they_are),
        TEST(own_work_in_the_midst_of_a_section_makes_no_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

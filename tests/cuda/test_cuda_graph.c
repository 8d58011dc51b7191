/*
 * Graphs by footprints, over the twin: work that the program captures in its own way gets the edges that its footprints
 * need. Case by case, then random programs on every number of chains: the graphs leave the bytes of serial execution.
 */
#include "graph_fixture.h"

/* Give one update to the stream, and say what it touches. */
static uint64_t captured(uint32_t id, const void *to, const void *from, uint32_t bytes)
{
    const work w = update_of(id, to, from, bytes);
    ok(send_work(g_stream, &w));
    return graph_op(&w);
}

/* --------------------------------------------------------------------------------------------------------------- edges */

static void a_serial_capture_becomes_as_wide_as_its_footprints(void **state)
{
    (void)state;
    const work before = update_of(100, g_memory, NULL, 512), after = update_of(101, g_memory, NULL, 512);
    capture_begin(g_stream);
    ok(send_work(g_stream, &before));
    graph_begin();
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(captured(i, g_memory + 64 * (i % 4), NULL, 64), i + 1);
    const acs_graph_report report = graph_end(ACS_GRAPH_CHAINS_ANY);
    ok(send_work(g_stream, &after));
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 4 + 8 + 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(has_edge(graph, 0, 1 + i));
        assert_true(has_edge(graph, 9 + i, 13));
    }
    for (uint32_t i = 1; i <= 8; i++)
        assert_true(has_edge(graph, i, i + 4));
    assert_int_equal(report.ops, 12);
    assert_int_equal(report.nodes, 13);
    assert_int_equal(report.edges, 12);
    graph_free(graph);
}

/* Four chains of three on two chains: two follow each other, so the rest of the graph sees no more than two. */
static void ops_are_placed_on_no_more_chains_than_asked_for(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    for (uint32_t i = 0; i < 12; i++)
        assert_int_not_equal(captured(i, g_memory + 64 * (i % 4), NULL, 64), 0);
    const acs_graph_report report = graph_end(2);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(report.chains, 2);
    assert_int_equal(report.levels, 6);
    graph_free(graph);
}

static void chains_that_a_default_has_are_used(void **state)
{
    (void)state;
    acs_graph_report report = {.size = sizeof report};
    capture_begin(g_stream);
    graph_begin();
    for (uint32_t i = 0; i < 4; i++)
        assert_int_not_equal(captured(i, g_memory + 64 * i, NULL, 64), 0);
    assert_int_equal(acs_graph_end(g_graph, g_stream, NULL, &report), ACS_OK);
    CUgraph graph = capture_end(g_stream);
    assert_in_range(report.chains, 1, 4);
    graph_free(graph);
}

/* Several nodes in a row are one op: their own order stays, and later ops come behind the last. */
static void work_between_two_calls_is_one_op(void **state)
{
    (void)state;
    const work first = update_of(1, g_memory, NULL, 64), second = update_of(2, g_memory + 64, NULL, 64);
    capture_begin(g_stream);
    graph_begin();
    assert_int_not_equal(captured(0, g_memory, NULL, 128), 0);
    ok(send_work(g_stream, &first));
    ok(send_work(g_stream, &second));
    assert_int_equal(acs_graph_op(g_graph, g_stream, ACS_USES(ACS_INOUT(g_memory, 128)), NULL), 2);
    assert_int_equal(captured(3, g_memory, NULL, 64), 3);
    (void)graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 3);
    assert_true(has_edge(graph, 0, 1));
    assert_true(has_edge(graph, 1, 2));
    assert_true(has_edge(graph, 2, 3));
    graph_free(graph);
}

/* An op of two branches, as a fork to another stream makes them: both come behind earlier ops, and later ops behind both. */
static void all_branches_of_an_op_are_ordered(void **state)
{
    (void)state;
    const work left = update_of(1, g_memory, NULL, 64), right = update_of(2, g_memory + 64, NULL, 64);
    CUgraphNode both[2];
    const CUgraphNode *ends;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    size_t count;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(captured(0, g_memory, NULL, 128), 1);
    for (int i = 0; i < 2; i++) {
        ok(TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
        ok(send_work(g_stream, i ? &right : &left));
        ok(TWIN_GET(cuStreamGetCaptureInfo, 11030)(g_stream, &status, &id, NULL, &ends, &count));
        assert_int_equal(count, 1);
        both[i] = ends[0];
    }
    ok(TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, both, 2, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    assert_int_equal(acs_graph_op(g_graph, g_stream, ACS_USES(ACS_INOUT(g_memory, 128)), NULL), 2);
    assert_int_equal(captured(3, g_memory, NULL, 128), 3);
    (void)graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 4);
    for (uint32_t i = 1; i <= 2; i++) {
        assert_true(has_edge(graph, 0, i));
        assert_true(has_edge(graph, i, 3));
    }
    graph_free(graph);
}

static void no_work_is_no_op_and_orders_nothing(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    assert_true(acs_graph_op(g_graph, g_stream, anything(), NULL) == ACS_GRAPH_NO_OP);
    assert_int_equal(captured(0, g_memory, NULL, 64), 1);
    assert_true(acs_graph_op(g_graph, g_stream, anything(), NULL) == ACS_GRAPH_NO_OP);
    assert_int_equal(captured(1, g_memory + 64, NULL, 64), 2);
    const acs_graph_report report = graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(report.edges, 0);
    graph_free(graph);
}

/* The body of a loop is captured after the loop's node, into a graph of its own, by a stream of its own here. */
static void a_loop_touches_what_its_body_touches(void **state)
{
    (void)state;
    CUstream main_stream = g_stream, body_stream = stream_new();
    acs_graph *outer, *body;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(captured(0, g_memory, NULL, 64), 1);
    assert_int_equal(captured(1, g_memory + 64, NULL, 64), 2);
    assert_int_equal(captured(2, g_memory + 1024, g_memory + 128, 64), 3); /* reads what the body writes */
    outer = g_graph;
    g_stream = body_stream;
    ok(TWIN_GET(cuStreamBeginCapture, 10010)(g_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    graph_begin();
    assert_int_equal(captured(3, g_memory, g_memory + 256, 32), 1);
    assert_int_equal(captured(4, g_memory, NULL, 32), 2);
    assert_int_equal(captured(5, g_memory + 128, NULL, 64), 3);
    body = g_graph;
    const acs_graph_params params = {.size = sizeof params, .body_of = outer, .op = 2};
    assert_int_equal(acs_graph_end(body, g_stream, &params, NULL), ACS_OK);
    graph_free(capture_end(g_stream));
    g_stream = main_stream;
    g_graph = outer;
    (void)graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 2);
    assert_true(has_edge(graph, 0, 1));
    assert_true(has_edge(graph, 1, 2));
    graph_free(graph);
    ok(TWIN_GET(cuStreamDestroy, 4000)(body_stream));
}

static void a_body_of_no_op_is_refused(void **state)
{
    (void)state;
    acs_graph *outer;
    capture_begin(g_stream);
    graph_begin();
    outer = g_graph;
    graph_begin();
    const acs_graph_params params = {.size = sizeof params, .body_of = outer, .op = 1};
    assert_int_equal(acs_graph_end(g_graph, g_stream, &params, NULL), ACS_ERR_ARGUMENT);
    assert_last_error(ACS_ERR_ARGUMENT, "no op 1");
    const acs_graph_params wrong = {.size = 4};
    assert_int_equal(acs_graph_end(g_graph, g_stream, &wrong, NULL), ACS_ERR_ARGUMENT);
    assert_last_error(ACS_ERR_ARGUMENT, "size is 4");
    acs_graph_cancel(g_graph);
    acs_graph_cancel(outer);
    graph_free(capture_end(g_stream));
}

/* Each of many readers is behind each of many writers: one empty node takes the place of their edges. */
static void many_edges_become_a_node_between_them(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    for (uint32_t i = 0; i < 40; i++)
        assert_int_not_equal(captured(i, g_memory + 8 * i, NULL, 8), 0);
    for (uint32_t i = 0; i < 40; i++)
        assert_int_not_equal(captured(40 + i, g_memory + 1024 + 8 * i, g_memory, 8 * 40), 0);
    const acs_graph_report report = graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_true(report.nodes > 80);
    assert_true(report.edges < 40 * 40 / 2);
    graph_free(graph);
}

static void uses_that_are_added_later_order_ops_alike(void **state)
{
    (void)state;
    const acs_uses late = ACS_USES(ACS_INOUT(g_memory + 256, 64));
    acs_segment bad = acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, 64, 64, 1, 64);
    const acs_uses wrong = {.segments = &bad, .count = 1};
    bad.access = 9;
    capture_begin(g_stream);
    graph_begin();
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(captured(i, g_memory + 64 * i, NULL, 64), i + 1);
    assert_int_equal(acs_graph_add_uses(g_graph, 3, late), ACS_OK);
    assert_int_equal(acs_graph_add_uses(g_graph, 1, late), ACS_OK);
    assert_int_equal(acs_graph_add_uses(g_graph, 2, wrong), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_graph_add_uses(g_graph, 0, late), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_graph_add_uses(g_graph, 4, late), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_graph_add_uses(NULL, 1, late), ACS_ERR_ARGUMENT);
    (void)graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 1);
    assert_true(has_edge(graph, 0, 2));
    graph_free(graph);
}

static void a_graph_may_go_on_after_it_ended(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(captured(0, g_memory, NULL, 64), 1);
    assert_int_equal(captured(1, g_memory + 64, NULL, 64), 2);
    (void)graph_end(0);
    graph_begin();
    assert_int_equal(captured(2, g_memory + 128, NULL, 64), 1);
    (void)graph_end(0);
    CUgraph graph = capture_end(g_stream);
    assert_true(has_edge(graph, 0, 2));
    assert_true(has_edge(graph, 1, 2));
    graph_free(graph);
}

/* -------------------------------------------------------------------------------------------------------------- errors */

static void a_stream_that_is_not_captured_is_refused(void **state)
{
    (void)state;
    assert_int_equal(acs_graph_begin(g_context, g_stream, &g_graph), ACS_ERR_STATE);
    assert_null(g_graph);
    assert_last_error(ACS_ERR_STATE, "is not being captured");
    assert_int_equal(acs_graph_begin(g_context, g_stream, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_graph_end(NULL, g_stream, NULL, NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_graph_op(NULL, g_stream, anything(), NULL), 0);
    assert_int_equal(acs_graph_resume(NULL, g_stream), ACS_ERR_ARGUMENT);
    acs_graph_cancel(NULL);
}

static void an_end_after_the_capture_is_refused(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(acs_graph_op(g_graph, g_stream, anything(), NULL), 0);
    assert_int_equal(acs_graph_resume(g_graph, g_stream), ACS_ERR_STATE);
    assert_int_equal(acs_graph_end(g_graph, g_stream, NULL, NULL), ACS_ERR_STATE);
    graph_free(graph);
}

static void a_wrong_footprint_is_reported_and_counts_as_any(void **state)
{
    (void)state;
    const work w = update_of(1, g_memory + 64, NULL, 64);
    acs_segment wrong = acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, 64, 64, 1, 64);
    wrong.access = 9;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(captured(0, g_memory, NULL, 64), 1);
    ok(send_work(g_stream, &w));
    assert_int_equal(acs_graph_op(g_graph, g_stream, (acs_uses){.segments = &wrong, .count = 1}, NULL), 0);
    assert_int_equal(captured(2, g_memory + 128, NULL, 64), 3);
    (void)graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_true(has_edge(graph, 0, 1));
    assert_true(has_edge(graph, 1, 2));
    graph_free(graph);
}

/* The op counts as one that may touch anything, so that nothing is lost. */
static void ops_inside_a_group_are_refused(void **state)
{
    (void)state;
    const work w = update_of(1, g_memory + 64, NULL, 64);
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(captured(0, g_memory, NULL, 64), 1);
    assert_int_equal(acs_group_begin(g_context, 16), ACS_OK);
    ok(send_work(g_stream, &w));
    assert_int_equal(graph_op(&w), 0);
    assert_last_error(ACS_ERR_STATE, "");
    assert_int_equal(acs_group_cancel(g_context), ACS_OK);
    (void)graph_end(0);
    CUgraph graph = capture_end(g_stream);
    assert_true(has_edge(graph, 0, 1));
    graph_free(graph);
}

static void a_cancelled_graph_leaves_nothing(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(captured(0, g_memory, NULL, 64), 1);
    acs_graph_cancel(g_graph);
    graph_free(capture_end(g_stream));
}

static void a_fill_is_an_op(void **state)
{
    (void)state;
    const work before = update_of(7, g_memory + 512, NULL, 64);
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(captured(0, g_memory, NULL, 64), 1);
    assert_int_equal(captured(1, g_memory + 64, NULL, 64), 2);
    assert_int_equal(acs_graph_memset(g_graph, g_stream, g_memory, 3, 64, NULL), 3);
    assert_int_equal(captured(2, g_memory, g_memory + 128, 64), 4);
    assert_true(acs_graph_memset(g_graph, g_stream, g_memory, 3, 0, NULL) == ACS_GRAPH_NO_OP);
    assert_int_equal(acs_graph_memset(g_graph, g_stream, NULL, 3, 64, NULL), 0);
    ok(send_work(g_stream, &before)); /* not told: it comes behind all, and before the fill */
    assert_int_equal(acs_graph_memset(g_graph, g_stream, g_memory + 1024, 4, 64, NULL), 6);
    (void)graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_true(has_edge(graph, 0, 2));
    assert_true(has_edge(graph, 2, 3));
    assert_true(has_edge(graph, 3, 4));
    assert_true(has_edge(graph, 1, 4));
    assert_true(has_edge(graph, 4, 5));
    graph_run(graph, 1);
    assert_int_equal(g_memory[1024], 4);
    assert_int_equal(g_memory[1087], 4);
    assert_int_equal(g_memory[1088], 0);
}

/* ------------------------------------------------------------------------------------------------------ random programs */

enum { BYTES = 1536, OPS_MOST = 200, LAUNCHES = 3 };

static unsigned char *g_device, g_expected[BYTES];
static work g_works[OPS_MOST];

typedef struct late_uses {
    uint64_t op;
    acs_segment segment;
} late_uses;

static late_uses g_late[OPS_MOST];
static uint32_t g_late_count;

/* One op of one to three kernels. The last part of its footprint may come later. */
static uint32_t random_op(uint32_t next, uint32_t count)
{
    const uint32_t kernels = count - next < 3 ? 1 : 1 + below(3) / 2;
    acs_segment segments[3 * PIECES];
    uint32_t used = 0;
    for (uint32_t k = 0; k < kernels; k++) {
        const work w = placed(&g_works[next + k], g_device);
        ok(send_work(g_stream, &w));
        for (uint32_t i = 0; i < w.head.pieces; i++)
            segments[used++] = segment_of(&w.pieces[i]);
    }
    const bool late = used && below(4) == 0;
    const acs_uses uses = {.segments = segments, .count = used - late};
    const uint64_t op = acs_graph_op(g_graph, g_stream, uses, NULL);
    assert_int_not_equal(op, 0);
    if (late)
        g_late[g_late_count++] = (late_uses){op, segments[used - 1]};
    return next + kernels;
}

static void random_end(uint32_t chains)
{
    while (g_late_count) {
        const late_uses *late = &g_late[--g_late_count];
        const acs_uses uses = {.segments = &late->segment, .count = 1};
        assert_int_equal(acs_graph_add_uses(g_graph, late->op, uses), ACS_OK);
    }
    (void)graph_end(chains);
}

static void run_program(uint64_t seed)
{
    static const uint32_t chains[] = {ACS_GRAPH_CHAINS_ANY, 1, 2, 3, 5, 8, 32, 0};
    capture_open(seed, seed % 16 == 0);
    g_random = seed;
    const uint32_t count = 10 + below(OPS_MOST - 10);
    for (uint32_t i = 0; i < count; i++)
        g_works[i] = random_work(i, BYTES);
    g_device = memory_new(BYTES);
    for (uint32_t i = 0; i < BYTES; i++)
        g_expected[i] = g_device[i] = (unsigned char)(i * 7);
    capture_begin(g_stream);
    graph_begin();
    for (uint32_t next = 0; next < count;) {
        next = random_op(next, count);
        if (below(60) == 0) {
            random_end(chains[below(8)]);
            graph_begin();
        }
    }
    random_end(chains[seed % 8]);
    graph_run(capture_end(g_stream), LAUNCHES);
    for (int i = 0; i < LAUNCHES; i++)
        for (uint32_t k = 0; k < count; k++) {
            const work w = placed(&g_works[k], g_expected);
            mix_run(&w.head, w.pieces, NULL, 1);
        }
    compare_bytes(seed, g_device, g_expected, BYTES);
    assert_int_not_equal(acs_free(g_context, g_device), 0);
    capture_close(ACS_OK);
}

static uint64_t g_first = 1, g_count = 80;

static void graphs_of_random_programs_leave_the_bytes_of_serial_execution(void **state)
{
    (void)state;
    for (uint64_t seed = g_first; seed < g_first + g_count; seed++)
        run_program(seed);
}

/* test_cuda_graph [first seed [programs]] */
int main(int argc, char **argv)
{
    if (argc > 1)
        g_first = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        g_count = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        TEST(a_serial_capture_becomes_as_wide_as_its_footprints),
        TEST(ops_are_placed_on_no_more_chains_than_asked_for),
        TEST(chains_that_a_default_has_are_used),
        TEST(work_between_two_calls_is_one_op),
        TEST(all_branches_of_an_op_are_ordered),
        TEST(no_work_is_no_op_and_orders_nothing),
        TEST(a_loop_touches_what_its_body_touches),
        TEST(a_body_of_no_op_is_refused),
        TEST(many_edges_become_a_node_between_them),
        TEST_CLEARED(uses_that_are_added_later_order_ops_alike),
        TEST(a_graph_may_go_on_after_it_ended),
        TEST(a_stream_that_is_not_captured_is_refused),
        TEST(an_end_after_the_capture_is_refused),
        TEST_CLEARED(a_wrong_footprint_is_reported_and_counts_as_any),
        TEST_CLEARED(ops_inside_a_group_are_refused),
        TEST(a_cancelled_graph_leaves_nothing),
        TEST_CLEARED(a_fill_is_an_op),
        cmocka_unit_test(graphs_of_random_programs_leave_the_bytes_of_serial_execution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

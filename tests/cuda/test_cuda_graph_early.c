/*
 * Graphs by footprints of kernels that may begin before the one before them has ended (programmatic dependent launch),
 * over the twin. Case by case: which edges are programmatic (GRAPH-1). Then random programs (GRAPH-2): some kernels never
 * wait, where the stream's own capture is right without that. The graphs leave the bytes of serial execution.
 */
#include "graph_fixture.h"

static CUkernel g_rash; /* as g_mix, but it never waits */

static void rash_new(void)
{
    static const uint32_t bytes[] = {sizeof(work)};
    const twin_kernel_spec spec = {.name = "rash", .body = mix_body, .touches = mix_touches, .param_count = 1,
                                   .param_bytes = bytes, .never_waits = true};
    g_rash = twin_kernel(&spec);
}

/* Give a kernel to the stream that may begin before the one before it has ended. */
static void send_early(CUkernel kernel, const work *w)
{
    work copy = *w;
    void *args[] = {&copy};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
                                   .blockDimZ = 1, .hStream = g_stream, .attrs = &attribute, .numAttrs = 1};
    ok(TWIN_GET(cuLaunchKernelEx, 11060)(&config, (CUfunction)kernel, args, NULL));
}

/* An op of one kernel that updates 64 bytes, launched in the usual way, or early. */
static uint64_t op_at(uint32_t id, uint32_t place, bool early)
{
    const work w = update_of(id, g_memory + 64 * place, NULL, 64);
    if (early)
        send_early(g_mix, &w);
    else
        ok(send_work(g_stream, &w));
    return graph_op(&w);
}

/* --------------------------------------------------------------------------------------------------------------- edges */

static void a_chain_keeps_its_programmatic_edges(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(op_at(i, 0, i != 3), i + 1);
    const acs_graph_report report = graph_end(0);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(report.edges, 5);
    assert_int_equal(report.programmatic, 4);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(has_edge(graph, i, i + 1));
        assert_int_equal(twin_edge_programmatic(graph, i, i + 1), i != 2);
    }
    graph_free(graph);
}

static void edges_from_kernels_further_back_are_full(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(op_at(0, 0, false), 1);
    assert_int_equal(op_at(1, 1, false), 2);
    assert_int_equal(op_at(2, 0, true), 3);
    assert_int_equal(op_at(3, 0, true), 4);
    const acs_graph_report report = graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(report.edges, 2);
    assert_true(has_edge(graph, 0, 2) && !twin_edge_programmatic(graph, 0, 2));
    assert_true(has_edge(graph, 2, 3) && twin_edge_programmatic(graph, 2, 3));
    assert_int_equal(report.programmatic, 1);
    graph_free(graph);
}

/* Libraries launch so inside of their calls. */
static void programmatic_edges_inside_of_an_op_stay(void **state)
{
    const work first = update_of(1, g_memory, NULL, 64), second = update_of(2, g_memory, NULL, 64);
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(op_at(0, 0, false), 1);
    ok(send_work(g_stream, &first));
    send_early(g_mix, &second);
    assert_int_equal(acs_graph_op(g_graph, g_stream, ACS_USES(ACS_INOUT(g_memory, 64)), NULL), 2);
    assert_int_equal(op_at(3, 0, true), 3);
    (void)graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 3);
    assert_true(has_edge(graph, 0, 1) && !twin_edge_programmatic(graph, 0, 1));
    assert_true(has_edge(graph, 1, 2) && twin_edge_programmatic(graph, 1, 2));
    assert_true(has_edge(graph, 2, 3) && twin_edge_programmatic(graph, 2, 3));
    graph_free(graph);
}

/* Capture an op of two kernels behind the op before. A programmatic edge leads to the first, a full one to the second. */
static uint64_t op_of_two(void)
{
    const work both[] = {update_of(1, g_memory, NULL, 64), update_of(2, g_memory + 64, NULL, 64)};
    CUgraphNode ends[2];
    const CUgraphNode *last;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    size_t count;
    ok(TWIN_GET(cuStreamGetCaptureInfo, 11030)(g_stream, &status, &id, NULL, &last, &count));
    CUgraphNode before = last[0];
    send_early(g_mix, &both[0]);
    ok(TWIN_GET(cuStreamGetCaptureInfo, 11030)(g_stream, &status, &id, NULL, &last, &count));
    ends[0] = last[0];
    ok(TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, &before, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ok(send_work(g_stream, &both[1]));
    ok(TWIN_GET(cuStreamGetCaptureInfo, 11030)(g_stream, &status, &id, NULL, &last, &count));
    ends[1] = last[0];
    ok(TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, ends, 2, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    return acs_graph_op(g_graph, g_stream, ACS_USES(ACS_INOUT(g_memory, 128)), NULL);
}

static void edges_of_different_types_to_one_op_are_removed(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(op_at(0, 2, false), 1);
    assert_int_equal(op_of_two(), 2);
    assert_int_equal(op_at(3, 1, false), 3);
    const acs_graph_report report = graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(report.programmatic, 0);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 2);
    assert_true(has_edge(graph, 1, 3) && has_edge(graph, 2, 3));
    graph_free(graph);
}

static void a_kernel_behind_a_fill_has_a_full_edge(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(op_at(0, 0, false), 1);
    assert_int_equal(acs_graph_memset(g_graph, g_stream, g_memory, 3, 64, NULL), 2);
    assert_int_equal(op_at(1, 0, true), 3);
    const acs_graph_report report = graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(report.programmatic, 0);
    assert_int_equal(twin_graph_edges(graph, NULL, 0), 2);
    assert_true(has_edge(graph, 1, 2));
    graph_free(graph);
}

/* Where CUDA removes no edges, the one that is there orders the ops, and the rest of the graph has full edges. */
static void a_graph_with_memory_nodes_keeps_one_edge_of_the_stream(void **state)
{
    (void)state;
    capture_begin(g_stream);
    graph_begin();
    assert_int_equal(op_at(0, 0, true), 1);
    twin_fail("cuGraphRemoveDependencies", CUDA_ERROR_NOT_SUPPORTED, 0, UINT64_MAX);
    assert_int_equal(op_at(1, 1, true), 2);
    assert_int_equal(op_at(2, 1, true), 3);
    assert_int_equal(op_at(3, 0, true), 4);
    twin_fail(NULL, CUDA_SUCCESS, 0, 0);
    const acs_graph_report report = graph_end(ACS_GRAPH_CHAINS_ANY);
    CUgraph graph = capture_end(g_stream);
    assert_int_equal(report.programmatic, 0);
    assert_int_equal(report.edges, 2);
    assert_true(has_edge(graph, 0, 1) && twin_edge_programmatic(graph, 0, 1));
    assert_true(has_edge(graph, 1, 2) && !twin_edge_programmatic(graph, 1, 2));
    assert_true(has_edge(graph, 0, 3) && !twin_edge_programmatic(graph, 0, 3));
    graph_free(graph);
}

static void drivers_and_devices_without_programmatic_edges_get_full_ones(void **state)
{
    static const char *const functions[] = {"cuGraphNodeGetDependentNodes", "cuGraphRemoveDependencies", "no function"};
    (void)state;
    for (uint32_t f = 0; f < 3; f++) {
        assert_int_not_equal(acs_free(g_context, g_memory), 0);
        assert_int_equal(acs_close(g_context), ACS_OK);
        twin_without(functions[f]);
        if (f == 2)
            twin_plain_devices();
        context_open(0, 0);
        twin_without(NULL);
        g_memory = memory_new(4096);
        capture_begin(g_stream);
        graph_begin();
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(op_at(i, i % 2, true), i + 1);
        const acs_graph_report report = graph_end(ACS_GRAPH_CHAINS_ANY);
        CUgraph graph = capture_end(g_stream);
        assert_int_equal(report.edges, 1);
        assert_int_equal(twin_graph_programmatic(graph), 0);
        assert_int_equal(twin_count("cuGraphRemoveDependencies"), 0);
        graph_free(graph);
    }
}

/* Work behind the graph may begin early, too, but relies on the stream's order for all ops but the last. */
static void work_behind_the_graph_has_full_edges_from_branches(void **state)
{
    const work next = update_of(9, g_memory, NULL, 128);
    (void)state;
    for (uint32_t branches = 1; branches <= 2; branches++) {
        capture_begin(g_stream);
        graph_begin();
        assert_int_equal(op_at(0, 0, true), 1);
        assert_int_equal(op_at(1, branches - 1, true), 2);
        (void)graph_end(ACS_GRAPH_CHAINS_ANY);
        send_early(g_mix, &next);
        CUgraph graph = capture_end(g_stream);
        assert_int_equal(twin_graph_nodes(graph), 2 + branches);
        assert_int_equal(twin_graph_programmatic(graph), branches == 1 ? 2 : 0);
        graph_free(graph);
    }
}

/* An op that waits for an event of an earlier op has an edge already; it still comes behind what its footprint says. */
static void an_edge_that_an_op_brings_along_orders_it(void **state)
{
    CUgraphNode first;
    const CUgraphNode *ends;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    size_t count;
    (void)state;
    for (uint32_t chains = 0; chains < 3; chains++) {
        capture_begin(g_stream);
        graph_begin();
        const work w = update_of(0, g_memory, NULL, 64);
        ok(send_work(g_stream, &w));
        ok(TWIN_GET(cuStreamGetCaptureInfo, 11030)(g_stream, &status, &id, NULL, &ends, &count));
        first = ends[0];
        assert_int_equal(graph_op(&w), 1);
        assert_int_equal(op_at(1, 1, false), 2);
        ok(TWIN_GET(cuStreamUpdateCaptureDependencies, 11030)(g_stream, &first, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
        assert_int_equal(op_at(2, 1, false), 3);
        assert_int_equal(op_at(3, 0, false), 4);
        (void)graph_end(chains ? chains : ACS_GRAPH_CHAINS_ANY);
        CUgraph graph = capture_end(g_stream);
        assert_true(has_edge(graph, 0, 2));
        assert_true(chains || has_edge(graph, 1, 2));
        graph_free(graph); /* that a chain makes no cycle with the edge is checked by the twin */
    }
}

/* Record three ops, in turn at two places. False: a call failed, and reported its error. */
static bool record_three(void)
{
    if (acs_graph_begin(g_context, g_stream, &g_graph) != ACS_OK)
        return false;
    for (uint32_t i = 0; i < 3; i++)
        if (!op_at(i, i % 2, true)) {
            acs_graph_cancel(g_graph);
            return false;
        }
    return acs_graph_end(g_graph, g_stream, NULL, NULL) == ACS_OK;
}

/* The graph is right, or a call reports the failure. */
static void any_driver_call_may_fail(void **state)
{
    static const char *const functions[] = {
        "cuGraphNodeGetDependentNodes", "cuGraphRemoveDependencies", "cuGraphNodeGetType", "cuGraphNodeGetDependencies",
        "cuGraphAddDependencies", "cuStreamGetCaptureInfo", "cuStreamUpdateCaptureDependencies", "cuGraphAddEmptyNode"};
    uint32_t right = 0;
    (void)state;
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        for (uint64_t after = 0; after < 8; after++) {
            capture_begin(g_stream);
            twin_fail(functions[f], CUDA_ERROR_INVALID_VALUE, after, 1);
            const bool made = record_three();
            twin_fail(NULL, CUDA_SUCCESS, 0, 0);
            CUgraph graph = capture_end(g_stream);
            assert_true(!made || has_edge(graph, 0, 2) || (has_edge(graph, 0, 1) && has_edge(graph, 1, 2)));
            right += made;
            graph_free(graph);
        }
    assert_in_range(right, 20, 60);
}

/* ------------------------------------------------------------------------------------------------------ random programs */

enum { BYTES = 1024, KERNELS_MOST = 160, LAUNCHES = 3, TRIES = 30 };

/* A kernel, and the earlier ones that may not have ended yet, as the stream's own capture would have it. */
typedef struct kernel {
    work w;
    bool early, rash;
    bool behind[KERNELS_MOST]; /* when the kernel begins */
    bool left[KERNELS_MOST];   /* when it has ended */
} kernel;

static kernel g_kernels[KERNELS_MOST];
static unsigned char *g_device, g_expected[BYTES];

static bool pieces_conflict(const mix_piece *a, const mix_piece *b)
{
    const uint64_t a_end = a->base + (uint64_t)(a->rows - 1) * a->pitch + a->row_bytes;
    const uint64_t b_end = b->base + (uint64_t)(b->rows - 1) * b->pitch + b->row_bytes;
    return a->base < b_end && b->base < a_end && ((a->access | b->access) & MIX_WRITE);
}

static bool kernels_conflict(const work *a, const work *b)
{
    for (uint32_t i = 0; i < a->head.pieces; i++)
        for (uint32_t k = 0; k < b->head.pieces; k++)
            if (pieces_conflict(&a->pieces[i], &b->pieces[k]))
                return true;
    return false;
}

/* Choose how kernel `at` is launched. False: the stream's own capture would not order it behind what it conflicts with. */
static bool choose(uint32_t at, uint32_t early_of_8)
{
    static const kernel nothing;
    const kernel *before = at ? &g_kernels[at - 1] : &nothing;
    kernel *k = &g_kernels[at];
    k->w = random_work(at, BYTES);
    k->early = at && below(8) < early_of_8;
    k->rash = k->early && below(3) == 0;
    memcpy(k->behind, k->early ? before->behind : before->left, sizeof k->behind);
    if (k->early)
        k->behind[at - 1] = true;
    memcpy(k->left, k->rash ? k->behind : before->left, sizeof k->left);
    const bool *touching = k->rash || !k->early ? k->behind : before->left;
    for (uint32_t i = 0; i < at; i++)
        if (touching[i] && kernels_conflict(&k->w, &g_kernels[i].w))
            return false;
    return true;
}

static uint32_t generate(void)
{
    const uint32_t wanted = 10 + below(KERNELS_MOST - 10), early_of_8 = below(9);
    for (uint32_t at = 0; at < wanted; at++) {
        uint32_t tries = 0;
        while (!choose(at, early_of_8))
            if (++tries == TRIES)
                return at;
    }
    return wanted;
}

/* One op of one to three kernels. */
static uint32_t random_op(uint32_t next, uint32_t count)
{
    const uint32_t kernels = count - next < 3 ? 1 : 1 + below(4) / 2;
    acs_segment segments[3 * PIECES];
    uint32_t used = 0;
    for (uint32_t k = next; k < next + kernels; k++) {
        const work w = placed(&g_kernels[k].w, g_device);
        if (g_kernels[k].early)
            send_early(g_kernels[k].rash ? g_rash : g_mix, &w);
        else
            ok(send_work(g_stream, &w));
        for (uint32_t i = 0; i < w.head.pieces; i++)
            segments[used++] = segment_of(&w.pieces[i]);
    }
    assert_int_not_equal(acs_graph_op(g_graph, g_stream, (acs_uses){.segments = segments, .count = used}, NULL), 0);
    return next + kernels;
}

static uint64_t capture_program(uint64_t seed, uint32_t count)
{
    static const uint32_t chains[] = {ACS_GRAPH_CHAINS_ANY, 1, 2, 3, 5, 8, 32, 0};
    uint64_t programmatic = 0;
    capture_begin(g_stream);
    graph_begin();
    for (uint32_t next = 0; next < count;) {
        next = random_op(next, count);
        if (below(40) == 0)
            twin_fail("cuGraphRemoveDependencies", CUDA_ERROR_NOT_SUPPORTED, 0, 1);
        if (below(40) == 0) {
            programmatic += graph_end(chains[below(8)]).programmatic;
            graph_begin();
        }
    }
    twin_fail(NULL, CUDA_SUCCESS, 0, 0);
    return programmatic + graph_end(chains[seed % 8]).programmatic;
}

static uint64_t run_program(uint64_t seed)
{
    g_random = seed;
    const uint32_t count = generate();
    capture_open(seed, seed % 16 == 0);
    rash_new();
    g_device = memory_new(BYTES);
    for (uint32_t i = 0; i < BYTES; i++)
        g_expected[i] = g_device[i] = (unsigned char)(i * 7);
    const uint64_t programmatic = capture_program(seed, count);
    graph_run(capture_end(g_stream), LAUNCHES);
    for (int i = 0; i < LAUNCHES; i++)
        for (uint32_t k = 0; k < count; k++) {
            const work w = placed(&g_kernels[k].w, g_expected);
            mix_run(&w.head, w.pieces, NULL, 1);
        }
    compare_bytes(seed, g_device, g_expected, BYTES);
    assert_int_not_equal(acs_free(g_context, g_device), 0);
    capture_close(ACS_OK);
    return programmatic;
}

static uint64_t g_first = 1, g_count = 120;

static void random_programs_leave_the_bytes_of_serial_execution(void **state)
{
    uint64_t programmatic = 0;
    (void)state;
    for (uint64_t seed = g_first; seed < g_first + g_count; seed++)
        programmatic += run_program(seed);
    if (g_count > 20)
        assert_true(programmatic > g_count);
}

/* test_cuda_graph_early [first seed [programs]] */
int main(int argc, char **argv)
{
    if (argc > 1)
        g_first = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        g_count = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        TEST(a_chain_keeps_its_programmatic_edges),
        TEST(edges_from_kernels_further_back_are_full),
        TEST(programmatic_edges_inside_of_an_op_stay),
        TEST(edges_of_different_types_to_one_op_are_removed),
        TEST(a_kernel_behind_a_fill_has_a_full_edge),
        TEST(a_graph_with_memory_nodes_keeps_one_edge_of_the_stream),
        TEST(drivers_and_devices_without_programmatic_edges_get_full_ones),
        TEST(work_behind_the_graph_has_full_edges_from_branches),
        TEST(an_edge_that_an_op_brings_along_orders_it),
        TEST_CLEARED(any_driver_call_may_fail),
        cmocka_unit_test(random_programs_leave_the_bytes_of_serial_execution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

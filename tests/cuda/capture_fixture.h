/*
 * What the tests of captures over the twin share: a context, a stream of the program's that is captured, kernels whose
 * results depend on their order, and the graph's launches. Included by test_cuda_capture*.c, which use all of it.
 */
#ifndef CAPTURE_FIXTURE_H
#define CAPTURE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acs.h"
#include "random/mix.h"
#include "twin.h"

#include <string.h>

enum { PIECES = 6 };

/* Argument of the one kernel. */
typedef struct work {
    mix_head head;
    mix_piece pieces[PIECES];
} work;

static CUkernel g_mix;
static acs_context *g_context;
static CUstream g_stream;

static inline void mix_body(void *const *args)
{
    const work *w = args[0];
    mix_run(&w->head, w->pieces, NULL, 1);
}

static inline size_t mix_touches(void *const *args, twin_range *out, size_t capacity)
{
    const work *w = args[0];
    size_t count = 0;
    for (uint32_t i = 0; i < w->head.pieces && count < capacity; i++)
        out[count++] = (twin_range){w->pieces[i].base,
                                    (uint64_t)(w->pieces[i].rows - 1) * w->pieces[i].pitch + w->pieces[i].row_bytes};
    return count;
}

static inline void ok(CUresult result)
{
    assert_int_equal(result, CUDA_SUCCESS);
}

static inline CUstream stream_new(void)
{
    CUstream stream = NULL;
    ok(TWIN_GET(cuStreamCreate, 2000)(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static inline void context_open(int32_t disable, int64_t workers)
{
    acs_options options;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = workers;
    options.disable = disable;
    options.log = ACS_LOG_OFF;
    assert_int_equal(acs_open(&options, &g_context), ACS_OK);
}

/* A new twin; the device's context stays current on this thread, as a program has it. */
static inline void capture_open(uint64_t seed, int32_t disable)
{
    static const uint32_t bytes[] = {sizeof(work)};
    const twin_kernel_spec spec = {.name = "mix", .body = mix_body, .touches = mix_touches, .param_count = 1,
                                   .param_bytes = bytes};
    CUcontext context;
    twin_seed(seed);
    g_mix = twin_kernel(&spec);
    ok(TWIN_GET(cuDevicePrimaryCtxRetain, 7000)(&context, 0));
    ok(TWIN_GET(cuCtxSetCurrent, 4000)(context));
    context_open(disable, 0);
    g_stream = stream_new();
}

static inline void capture_close(acs_status expected)
{
    assert_int_equal(acs_close(g_context), expected);
    ok(TWIN_GET(cuStreamSynchronize, 2000)(g_stream));
    ok(TWIN_GET(cuStreamDestroy, 4000)(g_stream));
    ok(TWIN_GET(cuDevicePrimaryCtxRelease, 11000)(0));
    ok(TWIN_GET(cuCtxSetCurrent, 4000)(NULL));
    twin_audit();
    if (twin_breach())
        fail_msg("%s", twin_breach());
}

static inline void capture_begin(CUstream stream)
{
    ok(TWIN_GET(cuStreamBeginCapture, 10010)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static inline CUgraph capture_end(CUstream stream)
{
    CUgraph graph = NULL;
    ok(TWIN_GET(cuStreamEndCapture, 10000)(stream, &graph));
    return graph;
}

static inline acs_segment segment_of(const mix_piece *piece)
{
    return acs_make_segment(ACS_EXTENT_BYTES, (acs_access)piece->access, piece->base, piece->row_bytes, piece->rows,
                            piece->pitch);
}

/* The kernel as an op, with a footprint of what it touches. */
static inline acs_op launch_work(const work *w)
{
    static const acs_site site = {"mix", "capture_fixture.h", 1};
    const acs_kernel kernel = {"mix", (const void *)g_mix, NULL, ACS_KERNEL_HANDLE, 0};
    const acs_arg arg = {w, sizeof *w, ACS_ARG_VALUE};
    acs_segment segments[PIECES];
    for (uint32_t i = 0; i < w->head.pieces; i++)
        segments[i] = segment_of(&w->pieces[i]);
    const acs_launch_params launch = {.size = sizeof launch, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                      .args = {&arg, 1}, .uses = {.segments = segments, .count = w->head.pieces},
                                      .site = &site};
    return acs_launch(g_context, &launch);
}

/* The same as the program's own work, in a stream. */
static inline CUresult send_work(CUstream stream, const work *w)
{
    work copy = *w;
    void *args[] = {&copy};
    const CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
                                   .blockDimZ = 1, .hStream = stream};
    return TWIN_GET(cuLaunchKernelEx, 11060)(&config, (CUfunction)g_mix, args, NULL);
}

static inline mix_piece piece_at(const void *memory, uint32_t bytes, uint32_t access)
{
    return (mix_piece){.base = (uint64_t)(uintptr_t)memory, .row_bytes = bytes, .rows = 1, .pitch = bytes, .access = access};
}

/* One launch that updates `bytes` at `to`, and reads as many at `from` where that is not NULL. */
static inline work update_of(uint32_t id, const void *to, const void *from, uint32_t bytes)
{
    work w = {.head = {.id = id, .pieces = from ? 2 : 1}};
    w.pieces[0] = piece_at(to, bytes, MIX_UPDATE);
    if (from)
        w.pieces[1] = piece_at(from, bytes, MIX_READ);
    return w;
}

static inline acs_op update(uint32_t id, const void *to, const void *from, uint32_t bytes)
{
    const work w = update_of(id, to, from, bytes);
    return launch_work(&w);
}

static inline void *memory_new(size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(acs_malloc(g_context, bytes, ACS_MEMORY_DEVICE, &memory), ACS_OK);
    memset(memory, 0, bytes);
    return memory;
}

/* Instantiate, forget the graph, launch it so often, and destroy all. */
static inline void graph_run(CUgraph graph, int launches)
{
    CUgraphExec exec;
    ok(TWIN_GET(cuGraphInstantiateWithFlags, 11040)(&exec, graph, 0));
    ok(TWIN_GET(cuGraphDestroy, 10000)(graph));
    ok(TWIN_GET(cuGraphUpload, 11010)(exec, g_stream));
    for (int i = 0; i < launches; i++)
        ok(TWIN_GET(cuGraphLaunch, 10000)(exec, g_stream));
    ok(TWIN_GET(cuStreamSynchronize, 2000)(g_stream));
    ok(TWIN_GET(cuGraphExecDestroy, 10000)(exec));
}

static inline acs_uses anything(void)
{
    return (acs_uses){.any = 1};
}

static inline void assert_last_error(acs_status status, const char *words)
{
    acs_error error = {.size = sizeof error};
    assert_int_equal(acs_last_error(&error), status);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" lacks \"%s\"", error.text, words);
}

/* For tests one by one: a context and a page of its memory; no failure is left, or all are forgotten. */
static unsigned char *g_memory;

static inline int setup(void **state)
{
    (void)state;
    capture_open(1, 0);
    g_memory = memory_new(4096);
    return 0;
}

static inline void finish_with(acs_status status)
{
    assert_int_not_equal(acs_free(g_context, g_memory), 0);
    assert_int_equal(acs_sync(g_context), status);
    capture_close(status);
}

static inline int teardown(void **state)
{
    (void)state;
    finish_with(ACS_OK);
    return 0;
}

/* For tests that leave failures. */
static inline int teardown_cleared(void **state)
{
    assert_int_equal(acs_clear(g_context), ACS_OK);
    return teardown(state);
}

static inline void section_begin(void)
{
    assert_true(acs_after_stream(g_context, g_stream, anything()) & ACS_OP_CAPTURED);
}

static inline void section_end(void)
{
    assert_int_equal(acs_stream_after(g_context, g_stream, anything()), ACS_OK);
}

static inline bool has_edge(CUgraph graph, uint32_t from, uint32_t to)
{
    uint32_t edges[256][2];
    size_t count = twin_graph_edges(graph, edges, 256);
    for (size_t i = 0; i < count; i++)
        if (edges[i][0] == from && edges[i][1] == to)
            return true;
    return false;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST_CLEARED(f) cmocka_unit_test_setup_teardown(f, setup, teardown_cleared)

#endif

/*
 * What the tests of graphs by footprints share: the graph of the program's stream, its ops and its end. Included by
 * test_cuda_graph*.c, which use all of it.
 */
#ifndef GRAPH_FIXTURE_H
#define GRAPH_FIXTURE_H

#include "capture_random.h"

static acs_graph *g_graph;

static inline void graph_begin(void)
{
    assert_int_equal(acs_graph_begin(g_context, g_stream, &g_graph), ACS_OK);
}

static inline acs_graph_report graph_end(uint32_t chains)
{
    const acs_graph_params params = {.size = sizeof params, .chains = chains};
    acs_graph_report report = {.size = sizeof report};
    assert_int_equal(acs_graph_end(g_graph, g_stream, &params, &report), ACS_OK);
    return report;
}

/* What the stream captured since the last op is an op that touches what the work touches. */
static inline uint64_t graph_op(const work *w)
{
    acs_segment segments[PIECES];
    for (uint32_t i = 0; i < w->head.pieces; i++)
        segments[i] = segment_of(&w->pieces[i]);
    return acs_graph_op(g_graph, g_stream, (acs_uses){.segments = segments, .count = w->head.pieces}, NULL);
}

#endif

/*
 * What the library did with each op, and when, as the library saw it: a profile of one run, for people who ask where the
 * time went. Looks inside the library, through the hook that its tests use (scheduler/trace.h); times are the host's clock,
 * so an op's end is when the library knew of it. The hook costs each op about 0.1 us: never part of a measurement.
 */
#ifndef BENCH_TIMELINE_H
#define BENCH_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "acs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_timeline bench_timeline;

/**
 * Record the context's ops from now on, up to `ops` of them; what comes later is left out. Before the first op.
 * @return NULL: no memory. To be closed after the context.
 */
bench_timeline *bench_timeline_open(acs_context *context, size_t ops);
void bench_timeline_close(bench_timeline *t);

/** The program begins to wait for an op, and goes on. From one thread. */
void bench_timeline_wait_begins(bench_timeline *t, acs_op op);
void bench_timeline_wait_ends(bench_timeline *t);

/** Leave out what was recorded so far: ops queued from now on are the profile. Nothing is under way. */
void bench_timeline_restart(bench_timeline *t);
/** Medians and sums: ops, bundles, how many are under way, waits and what they were for. Nothing is under way. */
void bench_timeline_report(const bench_timeline *t, FILE *to);
/** All of it in the Trace Event Format, which chrome://tracing and ui.perfetto.dev show. @return false: `to` failed. */
bool bench_timeline_write(const bench_timeline *t, FILE *to);

#ifdef __cplusplus
}
#endif

#endif

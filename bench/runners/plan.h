/*
 * A schedule of a whole run on streams, computed beforehand: which op goes to which stream, in which order the host
 * issues them, which events are recorded and who waits for them. What a programmer would write by hand who knew the run.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dag.h"
#include "op.h"

namespace bench {

/* µs that the planner reckons with. */
struct plan_costs {
    double launch_us = 2.6; /* host: one op, by one of the threads */
    double event_us = 0.1;  /* host: an event recorded or waited for */
    double same_us = 1.4;   /* device: from an op to the next one in its stream */
    double other_us = 1.5;  /* device: to an op in another stream, through an event */
    double op_us = 5;       /* an op whose duration is not known */
};

struct plan_step {
    uint32_t op;
    uint16_t stream;
    bool record;         /* an event behind it: another stream waits for it, or it is a read, for which the host waits */
    uint32_t first_wait; /* ops whose events its stream waits for before it, in plan::waits */
    uint32_t wait_count;
};

/**
 * Ops between two reads are a stretch: they may change places as dependencies allow, and none crosses a read in the order
 * of issue. When a read has returned, all that it is behind is complete.
 */
struct plan {
    int streams = 1; /* besides them one more, of this number, for reads that do not follow an op in its stream */
    int threads = 1;
    std::vector<plan_step> steps; /* in order of issue; each thread issues those of its streams */
    std::vector<uint32_t> waits;
    std::vector<size_t> stretch_end; /* behind each stretch, in `steps`; one more than there are reads */
    double end_us = 0;               /* when the planner expects the last op to end */

    int thread_of(int stream) const { return stream == streams ? 0 : stream % threads; }
};

/**
 * List scheduling in program order's dependencies: of the ops that could start now the one with the longest path below
 * it, else the one that can start first. It stays behind an upstream op that is last in its stream, else takes the stream
 * that is free first. Expects that all ops that are issued find room on the device at once.
 */
plan make_plan(const std::vector<op> &ops, const dag &d, int streams, int threads, const plan_costs &costs);

/** Behind each stretch, in program order; one more than there are reads. */
std::vector<size_t> stretches(const std::vector<op> &ops);

} // namespace bench

#endif

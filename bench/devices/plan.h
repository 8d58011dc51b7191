/*
 * A task on several devices as somebody would write it by hand who knows all of it: where each kernel runs, what is copied
 * when, which streams wait for what. Made before anything is timed. Shares no code with the library.
 */
#ifndef BENCH_DEVICES_PLAN_H
#define BENCH_DEVICES_PLAN_H

#include <functional>
#include <vector>

#include "task.h"

namespace bench {

/** A copy of part of a block, an op, or a read of the host's. */
struct plan_step {
    enum kind_type { COPY, OP, READ } kind;
    unsigned device;              /* whose stream it goes to */
    unsigned stream;              /* of all devices' streams */
    std::vector<size_t> waits;    /* steps of other streams that it comes behind */
    bool awaited;                 /* some step comes behind it: an event is recorded */
    size_t op;                    /* OP, READ: which */
    size_t block, from, bytes;    /* COPY */
    int source, target;           /* devices, or -1: the host's input, or output */
};

struct plan {
    unsigned devices, streams;    /* streams of all devices; stream s is of device s % devices */
    std::vector<plan_step> steps; /* in the order of issue */
    uint64_t copied = 0;          /* bytes between devices, and to and from the host */
};

/** Which device each op runs on, of so many. */
typedef std::function<unsigned(size_t op, unsigned devices)> assignment;

plan make_plan(const task &t, unsigned devices, const assignment &where);

} // namespace bench

#endif

/*
 * How long each op of a run takes by itself: for planners and for the bounds that results are held against.
 */
#ifndef BENCH_DURATIONS_H
#define BENCH_DURATIONS_H

#include <vector>

#include "dag.h"

namespace bench {

/**
 * Measures every op of the trace alone, in µs. On the GPU: as a node in a chain of a cached graph, so without the
 * host's launch cost, but with the step from node to node (0.6 µs on an H200), which no issue order avoids. Spoils the
 * program's buffers. OP_READ takes 0, and so does what cannot be captured: its time is not known.
 */
std::vector<float> op_durations(memory &m, const trace &t);

} // namespace bench

#endif

/*
 * A run as data: its ops in program order (trace), and the dependencies among them (dag), found by a slow and simple
 * way that shares no code with the library.
 */
#ifndef BENCH_DAG_H
#define BENCH_DAG_H

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "op.h"

namespace bench {

class memory;
class program;

struct trace {
    std::vector<op> ops; /* OP_READ included; what they point to belongs to the program, until its next run */
    std::shared_ptr<std::deque<acs_segment>> reads; /* the segments of OP_READ */
    std::shared_ptr<std::deque<std::vector<char>>> answers; /* the bytes that each OP_READ got; NULL: not known */
    bool decided = false; /* the program can leave its decisions to the device: program::decided */
    uint64_t identity = 0; /* hash of kinds, kernels, grids and segments: traces with one identity have one dag */
};

/**
 * Runs a program serially, op by op, on the machine of its memory, and records the ops that ran. `decides`: the program
 * leaves its decisions to the device, and the recorder makes them there; ops that do not run are not recorded.
 */
trace record(program &p, bool decides = false);
/**
 * What a library call is given when it runs by itself: the process's one serial slot, `stream`, and scratch memory of its
 * own, which the caller releases (env.scratch; NULL: none).
 */
acs_call_env call_env(memory &m, const acs_call_params &c, void *stream);
/** Executes one op now, on the calling thread, and waits for it. */
void execute(memory &m, const op &o);

struct dag {
    std::vector<std::vector<uint32_t>> up; /* per op the upstream ops, ascending; edges that others imply are left out */
    uint64_t edges = 0;                    /* in all */
    uint32_t depth = 0;                    /* ops on the longest path */
    uint32_t width = 0;                    /* most ops that may run at once: the largest antichain; 0: not computed */
};

/** Finds the dependencies (RAW, WAR, WAW by bytes, tokens, all memory) and drops those that others imply. */
dag find_dag(const trace &t);
/** The largest antichain, by a maximum matching of the closure (Dilworth); quadratic memory, so up to 20000 ops. */
uint32_t dag_width(const dag &d);
/** Length in µs of the longest path, where op k takes us[k] and each hop from one op to the next `hop_us`. */
double dag_critical_us(const dag &d, const std::vector<double> &us, double hop_us);

/**
 * An order in which op `to` runs before op `from`, and every other dependency is kept: what a runtime does that has lost
 * the edge from -> to. The edge must be in d.up[to].
 */
std::vector<uint32_t> order_without(const dag &d, uint32_t from, uint32_t to);

} // namespace bench

#endif

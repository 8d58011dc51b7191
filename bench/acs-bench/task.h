/*
 * The task: waits on the device's clock, checks that it sees what it must, leaves its mark.
 *
 * Task k of n, in run number `epoch`, writes the mark epoch * n + k + 1 into its cell, once per CTA, as the last thing
 * it does. A task that reads a cell must find there the mark of the last task before it in program order that wrote the
 * cell, when it begins and again when it ends: a reader that started early, and a writer that did, both show.
 */
#ifndef ACS_BENCH_TASK_H
#define ACS_BENCH_TASK_H

#include <cstdint>

#include "acs_dual.hpp"

namespace bench {

enum { TASK_READS = 5, TASK_BLOCK = 64, TASK_FUNCTIONS = 64 };
/** Instead of a writer: the cell was not written in this run before. */
const uint32_t TASK_NOBODY = UINT32_MAX;

/** What a task must find in a cell. */
struct task_read {
    uint32_t cell, writer;
};

struct task_args {
    uint64_t *cells;       /* stride words per cell, the first of them one per CTA */
    const uint64_t *epoch; /* number of this run, in device memory: cached graphs need no new arguments */
    uint32_t *bad;         /* counts marks that are not as they must be */
    const task_read *more; /* all reads, where there are more than TASK_READS */
    int64_t cycles;        /* clock cycles, or rounds of the CPU's loop, from begin to end; 0: no waiting */
    uint32_t tasks, me;    /* number of tasks of a run; this one's */
    uint32_t out, before;  /* the cell written, and who wrote it last */
    uint32_t stride, reads;
    uint32_t check;        /* nonzero: look at the cells read */
    task_read read[TASK_READS];
};

/** The same kernel under `TASK_FUNCTIONS` names. */
const acs_dual_kernel &task_kernel(int function);
/** The executor that runs them on a GPU; NULL: there is none. */
const acs_executor_params *task_executor();
/** Cycles of the GPU's clock, or rounds of the CPU's loop, per µs; measured when first asked for. */
double task_cycles_per_us(bool gpu);
/** µs that one launch of `ctas` CTAs takes which all wait `cycles`: the same work in one large grid. GPU only. */
double task_one_grid_us(int64_t cycles, uint32_t ctas);
/** Most CTAs of the task that the GPU holds at once. */
uint32_t task_resident_ctas();

} // namespace bench

#endif

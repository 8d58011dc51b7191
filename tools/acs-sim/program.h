/*
 * A program as data: what its ops need of a device, and which of them depend on which. Generators (programs.h) make
 * programs; ways to issue (vehicle.h) play them on the machine.
 */
#ifndef ACS_SIM_PROGRAM_H
#define ACS_SIM_PROGRAM_H

#include <functional>
#include <string>
#include <vector>

#include "dag.h"
#include "machine.hpp"
#include "op.h"

namespace design {

enum task_kind : uint8_t {
    KERNEL,
    COPY,
    WAIT /* the program's own: it launches nothing behind it before its upstream tasks are complete */
};

struct task {
    task_kind kind;
    acs_sim_kernel kernel;
    acs_sim_copy_kind direction;
    uint32_t peer;
    uint64_t bytes;
    uint32_t device;
    uint32_t segments; /* that a dependency check compares */
    uint32_t type;     /* of its kernel, from 0: tasks of one type differ in grid and arguments only */
};

struct program {
    std::string name;
    std::string times; /* where its kernels' times are from */
    std::vector<task> tasks;
    bench::dag dag;      /* among tasks; no edge that others imply where the program is small enough to find out */
    uint32_t devices = 1;
    uint32_t kernels = 0;
    bool recurs = true; /* what was kept of an earlier run fits this one */
};

/** What no way to issue can beat, in ns. */
struct limits {
    uint64_t critical; /* kernel times along the longest path */
    uint64_t work;     /* all kernels' blocks, with the device full from beginning to end */
    uint64_t largest() const { return critical > work ? critical : work; }
};

task kernel_task(uint32_t ctas, uint32_t threads, uint64_t cta_ns, uint32_t segments);
/** Stands for a copy where there are only kernels: one block that takes as long. */
acs_sim_kernel copy_kernel(const acs_sim_gpu &gpu, const task &t);
/** Blocks of this kernel that one device holds at once. */
uint64_t resident(const acs_sim_gpu &gpu, const acs_sim_kernel &k);
limits limits_of(const acs_sim_gpu &gpu, const program &p);
/** Fills edges, depth and number of kernels from dag.up. */
void finish_program(program &p);
/** Every block takes so long from now on. */
void set_block_time(program &p, uint64_t ns);
/** Ops for planners that take the bench's: kinds and expected durations, nothing to run. */
std::vector<bench::op> planned_ops(const program &p);

/** How long a block takes for each op of a trace, in ns. */
typedef std::function<uint64_t(const bench::op &o)> block_time;
/** The program waits for op `copy` of a trace before it launches op `before`. */
struct trace_wait {
    size_t before;
    uint32_t copy;
};
/**
 * A recorded run: every read becomes a copy to the host, for which the program waits.
 * @param copies  the direction of ops that are copies.
 * @param waits   further waits, in the order of `before`.
 */
program from_trace(const bench::trace &t, block_time time, acs_sim_copy_kind copies, const std::vector<trace_wait> &waits);

} // namespace design

#endif

/*
 * A way to run a task: in one stream by hand, or through ACS with and without groups. From the first allocation to the last
 * result on the host.
 */
#ifndef BENCH_TASK_WAY_H
#define BENCH_TASK_WAY_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner.h"
#include "task.h"

namespace bench {

class task_way {
public:
    virtual ~task_way() = default;
    /** Runs the task, and waits for its end. @return empty, or what failed. */
    virtual std::string run(task &t) = 0;
    /** The most device memory that was in use at once, over all runs; what the device gave. */
    virtual uint64_t peak_bytes() = 0;
    virtual uint64_t reserved_bytes() = 0;
    /** What the plan says, for ways that have one: HuntKTm's upper bound; 0: none. */
    virtual uint64_t bound_bytes() { return 0; }
};

struct task_way_kind {
    std::string name, about;
    /** For one task; null: it cannot be run so. */
    std::function<std::unique_ptr<task_way>(const machine &, const task &)> make;
};


void add_stream_ways(std::vector<task_way_kind> &list);                                    /* task_streams.cpp */
void add_acs_ways(std::vector<task_way_kind> &list, const std::vector<unsigned> &slots); /* task_acs.cpp */

} // namespace bench

#endif

/*
 * How a job runs through ACS: as a group, written as a program is that does not think about memory.
 */
#ifndef BENCH_MIX_GROUP_H
#define BENCH_MIX_GROUP_H

#include "acs.h"
#include "job.h"

namespace bench {

struct group_plan {
    unsigned slots; /* acs_group_params */
    bool hold;      /* blocks are in use from begin to end, so that no plan can let two share memory */
};

enum group_end {
    GROUP_QUEUED,
    GROUP_EXHAUSTED, /* no memory: nothing of it runs */
    GROUP_FAILED
};

/** Submits the job; waits only for its memory. @param[out] why  what was wrong, unless it was queued. */
group_end submit_group(acs_context *context, job &j, const group_plan &plan, std::string &why);

/** Bytes that ACS has copied of itself: between devices, and of blocks for which memory was short. */
uint64_t own_copies(acs_context *context);
/** acs_stats, which may not fail. */
acs_statistics statistics_of(acs_context *context);

/**
 * A kernel that does nothing to the blocks at these places: their first bytes, as far as anybody knows, are changed by
 * it, or with `end` read. @return whether it was queued.
 */
bool launch_hold(acs_context *context, const std::vector<void *> &places, bool end); /* hold.cu */

} // namespace bench

#endif

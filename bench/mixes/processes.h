/*
 * Ways whose jobs are processes, which do not know of each other.
 */
#ifndef BENCH_MIX_PROCESSES_H
#define BENCH_MIX_PROCESSES_H

#include "child.h"
#include "crowd.h"
#include "mix_contest.h"
#include "mix_way.h"

namespace bench {

/** ACS_LEDGER of this program's processes. */
std::string ledger_text(uint64_t limit);
/** Removes what the ledger leaves behind, once all of them have ended. */
void remove_ledger();

/** What main needs to become the process of a job, its own name first; `--job` is an option that it tells nobody of. */
std::vector<std::string> child_arguments(const child_settings &s);

/** Prepares all. @param[out] run  `bytes`, `in`, `out`; most: bytes of one job. @return empty, or what failed. */
std::string prepare(crowd &c, mix_run &run, uint64_t &most);

/** `c`: one for each job, in order, prepared. */
void add_process_ways(std::vector<mix_way_kind> &list, const mix_machine &m, crowd &c);

} // namespace bench

#endif

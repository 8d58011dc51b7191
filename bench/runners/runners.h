/*
 * What each file of this directory adds to the list of runners.
 */
#ifndef BENCH_RUNNERS_H
#define BENCH_RUNNERS_H

#include "runner.h"

namespace bench {

void add_serial(std::vector<runner_kind> &list);  /* one stream; a loop on the CPU */
void add_streams(std::vector<runner_kind> &list); /* hand-written streams and events, 1-node graphs as launches */
void add_graphs(std::vector<runner_kind> &list);  /* a CUDA graph built, updated, replayed */
void add_acs_sw(std::vector<runner_kind> &list);  /* ACS-SW as published */
void add_openmp(std::vector<runner_kind> &list);  /* OpenMP tasks with depend */
void add_starpu(std::vector<runner_kind> &list);  /* StarPU, where it was found */
void add_acs(std::vector<runner_kind> &list);     /* ACS in each mode */

} // namespace bench

#endif

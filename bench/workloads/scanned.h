/*
 * Footprints that acs-scan has found in the workloads' kernels, where the build has made them (ACS_SCANNED), beside those
 * that the workloads name.
 */
#ifndef BENCH_SCANNED_H
#define BENCH_SCANNED_H

#include <vector>

#include "op.h"

namespace bench {

/** Of the kernel `name` of acs_dual.hpp; NULL: it is none of the workloads'. */
acs_footprint scanned_footprint(const char *name);

/** Launches by what acs-scan names beside the bytes that the workload names. */
struct scanned_launches {
    unsigned same = 0;  /* the same bytes read, and the same written */
    unsigned more = 0;  /* more of them */
    unsigned less = 0;  /* not all of them: the workload may name more than the kernel touches */
    unsigned whole = 0; /* whole allocations among them */
};

scanned_launches compare_scanned(const std::vector<op> &ops);

} // namespace bench

#endif

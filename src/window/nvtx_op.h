/*
 * Ranges that show a profiler single ops, and calls that wait for room (base/nvtx.h). Callers ask `acs_nvtx_taken`
 * before.
 */
#ifndef ACS_NVTX_OP_H
#define ACS_NVTX_OP_H

#include "base/nvtx.h"
#include "window/record.h"

/*
 * Begin a range around the issue of an op, or its run on a CPU. `slot` -1: it has none. False: ops of its kind have no
 * range of their own, and none was begun.
 */
bool acs_nvtx_op_push(const acs_record *op, int slot);
/* Begin a range around a call that waits for room in the FIFO, until at least `op` has ended. */
void acs_nvtx_op_push_full(acs_label label, acs_op op);

#endif

/*
 * Private to src/cuda: marks, waits and single ops (issue.c), for submit.c and for the threads that issue (issuers.c). In a
 * scope of the member; the calling thread has the slot.
 */
#ifndef ACS_CUDA_ISSUE_H
#define ACS_CUDA_ISSUE_H

#include "cuda/internal.h"

/* How commands are carried out; `user` is an acs_cuda **: the member whose context is current. */
extern const acs_issue_ops acs_cuda_issue_ops;
/* The event of a mark; NULL: it was never recorded. */
CUevent *acs_cuda_mark_event(acs_cuda *self, const acs_mark *mark);
/* Send one op, without marks and waits; sets the item's result. `batch`: needed for STREAM_SIGNAL only. */
void acs_cuda_issue_op(acs_cuda *self, const acs_batch *batch, acs_item *item);

#endif

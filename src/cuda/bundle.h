/*
 * Private to src/cuda: bundles as the files outside graphs/ and gpu_issue/ see them: opening, issue, progress, and the time
 * that launches take.
 */
#ifndef ACS_CUDA_BUNDLE_H
#define ACS_CUDA_BUNDLE_H

#include "cuda/internal.h"

/* graphs/method.c; init and fini in a scope */
/* Offer bundles where that is possible; where it is not, say why at ACS_LOG=info and go on. */
void acs_cuda_methods_init(acs_cuda *self, const acs_options *options);
void acs_cuda_methods_fini(acs_cuda *self);
/* Issue a bundle, its marks and waits apart. ACS_OK, ACS_NOT_READY: nothing was issued, or ACS_ERR_DEVICE. */
acs_status acs_cuda_bundle_issue(acs_cuda *self, acs_batch *batch, int slot, uint64_t value);
/* What poll learnt of a slot's marks; returns what is known in all. */
uint64_t acs_cuda_progress(acs_cuda *self, int slot, uint64_t completed);

/* graphs/kernel_times.c */
/* Around a batch of launches: true where it is to be timed. */
bool acs_cuda_launches_begin(acs_cuda *self, const acs_batch *batch, uint64_t *began_ns);
void acs_cuda_launches_end(acs_cuda *self, const acs_batch *batch, uint64_t began_ns);
/* What a launch takes of the host with all that belongs to it, as learnt; 0: not known. There are issue methods. */
uint32_t acs_cuda_launch_ns(acs_cuda *self);

/* gpu_issue/gpu_issue.c; in a scope */
struct acs_dag;
/*
 * GPU-side issue: an issue method for bundles. Makes nothing before the first one, and keeps at most `nodes` nodes of
 * graphs.
 */
void acs_cuda_gpu_issue_init(acs_cuda *self, uint64_t nodes);
void acs_cuda_gpu_issue_fini(acs_cuda *self);
/*
 * Launch all ops of a bundle behind what its slot was given before; what the slot is given next is behind them all.
 * Waits and marks are the caller's. `gain_ns`: what that saves, where the cells that are missing have to be earned by
 * what is lost for want of them; 0: they are made. False: refused, nothing of the bundle was issued.
 */
bool acs_cuda_gpu_issue_issue(acs_cuda *self, const acs_batch *batch, const struct acs_dag *dag, uint64_t gain_ns);
/* How many of these marks of a slot, from *first on, the driver is worth asking about: those before are known to be
 * complete, those behind cannot be. Now and then it is all of them, for errors. Any thread. */
uint32_t acs_cuda_gpu_issue_marks(acs_cuda *self, int slot, const acs_mark *marks, uint32_t count, uint32_t *first);
/* Why the device could not go on with a bundle, once it has faulted; NULL: it was not that. */
const char *acs_cuda_gpu_issue_refusal(const acs_cuda *self);

#endif

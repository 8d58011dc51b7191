/*
 * Private to src/cuda: bundles, as files outside graphs/ and resident/ see them: opening, issue, progress.
 */
#ifndef ACS_CUDA_BUNDLE_H
#define ACS_CUDA_BUNDLE_H

#include "cuda/internal.h"

/* graphs/method.c; start and fini in a scope */
/* Offer bundles. If there is no memory for them, that is logged at ACS_LOG=info. */
void acs_cuda_methods_init(acs_cuda *self, const acs_options *options);
/* Get what they need of the device. False: it cannot be had; the reason is logged. */
bool acs_cuda_methods_start(acs_cuda *self);
void acs_cuda_methods_fini(acs_cuda *self);
/*
 * Issue a bundle without its marks and waits. ACS_NOT_READY: nothing was issued. ACS_ERR_DEVICE: the device has
 * faulted.
 */
acs_status acs_cuda_bundle_issue(acs_cuda *self, acs_batch *batch, int slot, uint64_t value);

/* graphs/replay.c */
/* As backend.h says. */
bool acs_cuda_replay_ready(acs_backend *backend, acs_replay *replay, uint32_t *asked);
/* In a scope: */
/* Issue a replay without its marks and waits. ACS_OK, also if ops in it were refused; or ACS_ERR_DEVICE. */
acs_status acs_cuda_replay_issue(acs_cuda *self, const acs_item *item);

/* graphs/progress.c */
/* Take the value that poll learnt of a slot's marks. @return the highest value known to be completed. */
uint64_t acs_cuda_progress(acs_cuda *self, int slot, uint64_t completed);

/* resident/resident.c; init, fini and issue in a scope */
/* Prepare the resident executor, an issue method for bundles. It allocates at a slot's first bundle. */
void acs_cuda_resident_init(acs_cuda *self);
void acs_cuda_resident_fini(acs_cuda *self);
/* The executor that has bodies for all ops of a bundle, and that they fit into. NULL: there is none. */
struct acs_cuda_executor *acs_cuda_resident_executor(acs_cuda *self, const acs_batch *batch);
struct acs_dag;
/*
 * Launch all ops of a bundle in its slot's order, without its marks and waits. False: refused; nothing of the bundle was
 * issued.
 */
bool acs_cuda_resident_issue(acs_cuda *self, struct acs_cuda_executor *executor, const acs_batch *batch,
                             const struct acs_dag *dag);

/*
 * How many marks of a slot, from *first on, poll should ask the driver about. Earlier marks are known to be complete,
 * later ones cannot be, since executors report their ends. Now and then it is all marks, so that errors show. Any thread.
 */
uint32_t acs_cuda_resident_marks(acs_cuda *self, int slot, const acs_mark *marks, uint32_t count, uint32_t *first);

/* resident/executor.c */
/* The kernels of small copies, of copies of rows and of fills: every executor has bodies for them. */
void acs_cuda_resident_copies(acs_cuda_kernel *copy, acs_cuda_kernel *rows, acs_cuda_kernel *fill);
/* executor_add of acs_backend_ops, for one device and for several */
acs_status acs_cuda_executor_add(acs_backend *backend, const acs_executor_params *params);

#endif

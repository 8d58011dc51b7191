/* Private to src/cuda: the threads that issue beside the one that steps the core. */
#ifndef ACS_CUDA_ISSUERS_H
#define ACS_CUDA_ISSUERS_H

#include "cuda/internal.h"

/*
 * Make the queues, and prepare as many threads as the options ask for, maybe none; they start when they are called.
 * ACS_ERR_MEMORY: close is called.
 */
acs_status acs_cuda_issuers_open(acs_cuda *first, const acs_backend_config *config);
/* No op is in the queues, or the device is lost. Waits for the threads. */
void acs_cuda_issuers_close(acs_cuda *first);
/* There is enough for all of them: wake those that sleep. */
void acs_cuda_issuers_call(acs_cuda_issuers *all);
/* settle of acs_backend_ops */
void acs_cuda_issuers_settle(acs_backend *backend);

#endif

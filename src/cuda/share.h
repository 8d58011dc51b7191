/*
 * Private to src/cuda: shares of a GPU (share.c), made of green contexts, and the streams that slots have now. Callers of
 * acs_cuda_share_change are in a scope of the member.
 */
#ifndef ACS_CUDA_SHARE_H
#define ACS_CUDA_SHARE_H

#include "cuda/internal.h"

struct acs_cuda_place;

enum { ACS_CUDA_SHARE_NONE = UINT8_MAX }; /* of a slot that has had no batch; no item's share is like it */

/* The stream of a slot now. Belongs to the slot's submitter. */
struct acs_cuda_slot_stream {
    CUstream stream;              /* acs_cuda.streams of the slot, or one of a green context; NULL: not made yet */
    struct acs_cuda_place *place; /* of that context; NULL: the whole GPU */
    CUevent behind;               /* what the stream before had; NULL: not needed yet */
    uint8_t share;                /* percent; 0: the whole GPU; ACS_CUDA_SHARE_NONE */
};

/* Without a call of the driver. */
acs_status acs_cuda_shares_init(acs_cuda *self);
/* What a share of the GPU comes to; makes its green contexts at the first call. */
acs_status acs_cuda_share_find(acs_backend *backend, uint32_t device, uint32_t percent, acs_share_info *info);
/* From now on the slot's ops go to a stream of this share, behind all that it had before. Makes the slot's own stream. */
void acs_cuda_share_change(acs_cuda *self, uint32_t slot, uint8_t share);
/* Destroy streams, events and contexts; all slots have ended. */
void acs_cuda_shares_fini(acs_cuda *self);

#endif

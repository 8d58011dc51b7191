/*
 * Scratch memory for library calls of a capture: blocks that belong to the graph, each with its latest user. Private to
 * src/capture; guarded by the lock of captures.
 */
#ifndef ACS_CAPTURE_SCRATCH_H
#define ACS_CAPTURE_SCRATCH_H

#include "scheduler/backend.h"
#include "base/tuning.h"
#include "capture/capture_order.h"

typedef struct acs_capture_scratch {
    void *memory;
    uint64_t bytes;
    uint64_t user;  /* number of its latest user; 0: none that the order knows */
    uint64_t turn;  /* turn of its latest use */
    acs_nodes ends; /* end nodes of its latest user */
} acs_capture_scratch;

/* Empty when all zero. */
typedef struct acs_capture_scratches {
    uint32_t count;
    uint64_t turns;
    acs_capture_scratch blocks[TUNE_CAPTURE_SCRATCHES];
} acs_capture_scratches;

/* Where memory of a capture is asked for. */
typedef struct acs_capture_at {
    acs_backend *backend;
    void *stream;
    uint64_t id;
} acs_capture_at;

/*
 * Get memory for the latest call. The call then also runs behind the block's former user, which is added to `behind`.
 */
acs_status acs_capture_scratch_get(acs_capture_scratches *scratches, const acs_capture_at *at,
                                   const acs_capture_order *order, uint64_t bytes, acs_nodes *behind,
                                   acs_capture_scratch **block);
/* Note number and end nodes of the call that got the block. */
acs_status acs_capture_scratch_used(acs_capture_scratch *block, uint64_t number, const acs_nodes *ends);
/* Forget all users, since numbers of the order start again. */
void acs_capture_scratches_forget(acs_capture_scratches *scratches);
void acs_capture_scratches_fini(acs_capture_scratches *scratches);

#endif

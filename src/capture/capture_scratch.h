/*
 * Scratch memory of a capture's library calls: blocks that belong to the graph, and which call used each last. Private to
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
    uint64_t user;  /* number of the call that used it last; 0: none that the order knows */
    uint64_t turn;  /* when */
    acs_nodes ends; /* of that call */
} acs_capture_scratch;

/* All zero: none. */
typedef struct acs_capture_scratches {
    uint32_t count;
    uint64_t turns;
    acs_capture_scratch blocks[TUNE_CAPTURE_SCRATCHES];
} acs_capture_scratches;

/* What a capture's memory is asked for with. */
typedef struct acs_capture_at {
    acs_backend *backend;
    void *stream;
    uint64_t id;
} acs_capture_at;

/* Memory for the call that was taken last, which then also runs behind who used it before: added to `behind`. */
acs_status acs_capture_scratch_get(acs_capture_scratches *scratches, const acs_capture_at *at,
                                   const acs_capture_order *order, uint64_t bytes, acs_nodes *behind,
                                   acs_capture_scratch **block);
/* The call that got the block has this number and these ends. */
acs_status acs_capture_scratch_used(acs_capture_scratch *block, uint64_t number, const acs_nodes *ends);
/* The order's numbers begin anew. */
void acs_capture_scratches_forget(acs_capture_scratches *scratches);
void acs_capture_scratches_fini(acs_capture_scratches *scratches);

#endif

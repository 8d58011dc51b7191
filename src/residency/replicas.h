/*
 * Replicas: on several devices the contents of a relocatable block lie at any number of places, each device and
 * the host, as valid ranges of bytes (devices/coherence.h; GrCUDA's multi-GPU scheduler, section III-B2, by array). An
 * op finds what it reads where it runs: what is missing there is copied before, by ops that are queued like others, so
 * that they run while other ops do. What it writes is then valid there alone. Memory of places that hold nothing any
 * more goes back at once, behind the ops that use it. Private to src/residency; under the lock of relocatable blocks.
 *
 * Before a place gives memory up by choice it is known which copies have failed: else a failed one could be taken for
 * what is left of the contents.
 *
 * N4  memory at a place is there while any byte is valid there; copies into it come before the ops that read them.
 */
#ifndef ACS_REPLICAS_H
#define ACS_REPLICAS_H

#include "devices/coherence.h"
#include "devices/affinity.h"
#include "residency/device_choice.h"

typedef struct acs_replica {
    uint64_t at; /* 0: it has no memory there */
    acs_op last; /* latest op that touches it */
    bool borrowed;   /* the memory is a group's */
} acs_replica;

struct acs_replicas {
    acs_coherence valid;
    uint32_t count;  /* of places: devices, then the host */
    uint32_t canonical;   /* the place of its own address; ACS_ANY_PLACE: a lazy block has none */
    uint32_t target; /* where the op that is being bound uses it; ACS_ANY_PLACE: that only looks */
    bool escapes;     /* that one reaches it at its own address */
    bool taken;      /* memory at the target was taken for it */
    uint32_t changes; /* of `valid`, at most, by what it writes */
    bool followed;   /* an op came behind the latest that wrote some of it */
    uint32_t writer; /* where that one ran */
    acs_affinity *affinity; /* blocks that kernels use together with it */
    double ends;     /* when what wrote it is expected to have ended, in the placement's seconds, */
    uint64_t idles;  /* which began anew after so many times that nothing was under way */
    acs_replica places[];
};

/* replicas.c */

/* The block is on several devices from here on. ACS_ERR_MEMORY. */
acs_status acs_replicas_make(acs_context *context, acs_relocatable *m, uint32_t canonical);
/* All its memory but that of its home goes back, behind the ops that use it; `close`: nothing runs any more. */
void acs_replicas_free(acs_context *context, acs_relocatable *m, bool close);
/* All of it comes to its own address. ACS_ERR_UNSUPPORTED: a lazy block has nothing there. */
acs_status acs_replicas_make_canonical(acs_context *context, acs_relocatable *m);
/* What of [from, to) has come home may change there, unseen: it is valid there alone. */
void acs_replicas_hand_over(acs_context *context, acs_relocatable *m, uint64_t from, uint64_t to);
/* Of copies that failed meanwhile: their bytes are where they were. False: there were none. Takes the core's lock. */
bool acs_replicas_restore(acs_context *context);
/* Any place has memory for it. False on one device. */
bool acs_replicas_used(const acs_relocatable *m);
/* Row number i of a part, as far as it lies in the block: empty behind its end. */
static inline void acs_part_row(const acs_relocatable *m, const acs_part *part, uint64_t i, uint64_t *from,
                                uint64_t *to)
{
    *from = part->first + i * part->rows.pitch;
    *to = *from + part->rows.bytes < m->bytes ? *from + part->rows.bytes : m->bytes;
}
/* What of a part is valid elsewhere is copied to the place, which has memory. Errors of queueing. */
acs_status acs_replicas_fetch(acs_context *context, acs_relocatable *m, uint32_t place, const acs_part *part);
/* Copy [first, end) from one place to another. Errors of queueing. */
acs_status acs_replicas_copy(acs_context *context, acs_relocatable *m, uint32_t to, uint32_t from, uint64_t first,
                             uint64_t end);
/* The place gives its memory up, with what is valid there. */
void acs_replicas_drop(acs_context *context, acs_relocatable *m, uint32_t place, acs_op last);

/* replica_acquire.c: as those of rename.c */
acs_status acs_replicas_prepare(acs_draft *draft);
acs_status acs_replicas_begin(acs_draft *draft);
void acs_replicas_commit(acs_draft *draft, acs_relocatable *m);
void acs_replicas_undo(acs_context *context, acs_relocatable *m);

#endif

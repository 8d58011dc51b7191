/*
 * Replicas: on several devices the contents of a relocatable block lie at any number of places, which are the devices
 * and the host. Ranges of bytes are valid at some of them (devices/coherence.h). (GrCUDA's multi-GPU scheduler, section
 * III-B2, keeps this by array.)
 *
 * An op finds what it reads on its device: missing bytes are copied there by ops that are queued before it, and run
 * while other ops do. The bytes that it writes are then valid there alone. A place where no byte is valid any more gives
 * its memory back, behind the ops that use it. Before a place gives up memory by choice, failed copies are accounted
 * for: else such a copy could be taken for the only contents.
 *
 * Private to src/residency and src/groups; under the lock of relocatable blocks.
 *
 * N4  memory at a place is there while any byte is valid there; copies into it come before the ops that read them.
 */
#ifndef ACS_REPLICAS_H
#define ACS_REPLICAS_H

#include "devices/coherence.h"
#include "api/draft.h"
#include "devices/affinity.h"
#include "residency/device_choice.h"

typedef struct acs_replica {
    uint64_t at; /* address of its memory there; 0: none */
    acs_op last; /* latest op that touches that memory */
    bool borrowed; /* whether that memory is a group's */
} acs_replica;

struct acs_replicas {
    acs_coherence valid;
    uint32_t count;  /* number of places: the devices, then the host */
    uint32_t canonical; /* place of its own address; ACS_ANY_PLACE: none, of a lazy block */
    uint32_t target; /* place at which the op that is being bound uses it; ACS_ANY_PLACE: none, the op only observes */
    bool escapes;    /* whether that op reaches it at its canonical place alone */
    bool taken;      /* whether memory at the target was taken for that op */
    uint32_t changes; /* most changes of `valid` by the writes of that op */
    bool followed;   /* whether an op came behind the latest op that wrote some of it */
    uint32_t writer; /* place at which that writer ran */
    acs_affinity *affinity; /* set of blocks that kernels use together with it */
    double ends;     /* when its writers are expected to have ended, in the placement's seconds */
    uint64_t idles;  /* number of the idle period in which `ends` was noted (acs_device_choice.idles) */
    acs_replica places[];
};

/* replicas.c */

/* Give the block replicas; its contents are at place `canonical`. ACS_ERR_MEMORY. */
acs_status acs_replicas_make(acs_context *context, acs_relocatable *m, uint32_t canonical);
/* Give all memory but that of the canonical place back, behind the ops that use it; `close`: no op runs any more. */
void acs_replicas_free(acs_context *context, acs_relocatable *m, bool close);
/* Copy all contents to the canonical place. ACS_ERR_UNSUPPORTED: a lazy block has no memory there. */
acs_status acs_replicas_make_canonical(acs_context *context, acs_relocatable *m);
/* The program may change bytes [from, to) at the canonical place: those that are valid there are valid there alone. */
void acs_replicas_hand_over(acs_context *context, acs_relocatable *m, uint64_t from, uint64_t to);
/*
 * Account for copies that failed meanwhile: their bytes are valid where they were before. False: none failed. Takes the
 * core's lock.
 */
bool acs_replicas_restore(acs_context *context);
/* Whether any place has memory for the block. False on one device. */
bool acs_replicas_used(const acs_relocatable *m);
/* Row number i of a part, as far as it lies in the block; empty behind the block's end. */
static inline void acs_part_row(const acs_relocatable *m, const acs_part *part, uint64_t i, uint64_t *from,
                                uint64_t *to)
{
    *from = part->first + i * part->rows.pitch;
    *to = *from + part->rows.bytes < m->bytes ? *from + part->rows.bytes : m->bytes;
}
/* Copy the bytes of the part that are valid elsewhere alone to the place, which has memory. Errors of queueing. */
acs_status acs_replicas_fetch(acs_context *context, acs_relocatable *m, uint32_t place, const acs_part *part);
/* Copy [first, end) from one place to another. Errors of queueing. */
acs_status acs_replicas_copy(acs_context *context, acs_relocatable *m, uint32_t to, uint32_t from, uint64_t first,
                             uint64_t end);
/* Give the memory at the place back behind op `last`, with what is valid there. */
void acs_replicas_drop(acs_context *context, acs_relocatable *m, uint32_t place, acs_op last);

/* replica_acquire.c: on several devices the same as the functions of rename.h */
acs_status acs_replicas_prepare(acs_draft *draft);
acs_status acs_replicas_begin(acs_draft *draft);
void acs_replicas_commit(acs_draft *draft, acs_relocatable *m);
void acs_replicas_undo(acs_context *context, acs_relocatable *m);

#endif

/*
 * Affinity: sets of blocks that kernels use together, which had better be on one device. Sets only grow; they are a
 * forest of parent links (union-find, by size). Pure bookkeeping; not thread-safe.
 */
#ifndef ACS_DEVICES_AFFINITY_H
#define ACS_DEVICES_AFFINITY_H

#include "base/base.h"

typedef struct acs_affinity {
    struct acs_affinity *parent; /* NULL: it is the root of its set, and the following fields are the set's */
    uint32_t refs;             /* references: its block while that lives, and its children */
    uint32_t device;           /* one plus the device where its blocks were used last; 0: none */
    uint64_t decided;          /* the owner's number of when `device` was decided */
    uint64_t bytes;            /* bytes of its blocks */
} acs_affinity;

/* Make a set of one block. NULL through ACS_FAIL. */
acs_affinity *acs_affinity_make(uint64_t bytes);
/* The root of the set. */
acs_affinity *acs_affinity_of(acs_affinity *family);
/* Join two sets, unless together they would have more than `most` bytes. True: they are one set. */
bool acs_affinity_join(acs_affinity *a, acs_affinity *b, uint64_t most);
/* A block of `bytes` leaves its set. NULL is allowed. */
void acs_affinity_leave(acs_affinity *family, uint64_t bytes);

#endif

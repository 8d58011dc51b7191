/*
 * Families: blocks that kernels use together, which had better be on one device. Sets that only grow, as a forest of
 * parent links (union-find, by size). Pure bookkeeping; not thread-safe.
 */
#ifndef ACS_DEVICES_FAMILY_H
#define ACS_DEVICES_FAMILY_H

#include "base/base.h"

typedef struct acs_affinity {
    struct acs_affinity *parent; /* NULL: it stands for its set, and what follows is the set's */
    uint32_t refs;             /* its block, as long as that lives, and those whose parent it is */
    uint32_t device;           /* where its blocks were used last, and one; 0: nowhere */
    uint64_t decided;          /* a number of the owner's: when that was decided */
    uint64_t bytes;            /* of its blocks */
} acs_affinity;

/* A family of one block. NULL through ACS_FAIL. */
acs_affinity *acs_affinity_make(uint64_t bytes);
/* The one that stands for the set. */
acs_affinity *acs_affinity_of(acs_affinity *family);
/* Both are one set from here on, unless it would have more bytes than `most`. True: they are. */
bool acs_affinity_join(acs_affinity *a, acs_affinity *b, uint64_t most);
/* A block of so many bytes is gone. NULL is allowed. */
void acs_affinity_leave(acs_affinity *family, uint64_t bytes);

#endif

/*
 * Which relocatable blocks an op names, and how (naming.c). Private to src/residency and src/groups. Functions that take
 * a draft are called under the lock of relocatable blocks.
 */
#ifndef ACS_NAMING_H
#define ACS_NAMING_H

#include "base/hash.h"
#include "residency/relocatable.h"

/* Whether the op may touch any memory. */
bool acs_naming_is_any(const acs_record *record);
/* A walk over the pointers among a kernel's arguments. It begins as all zero. */
typedef struct acs_pointer_walk {
    uint32_t arg, word; /* argument and word of it to look at next */
} acs_pointer_walk;
/*
 * Find the next pointer, as the program gave it; it is word walk->word - 1 of argument walk->arg. False: there are no
 * more.
 */
bool acs_naming_next_pointer(const acs_record *record, acs_pointer_walk *walk, uint64_t *address);
/*
 * Note how the op names each block, in acs_relocatable.naming until the next call. Called before any pointer or segment
 * of the op is changed.
 */
void acs_naming_collect(const acs_draft *draft);
/*
 * Whether the op reaches the block in a way that binding cannot change, so that its contents have to be at their
 * canonical place.
 */
bool acs_naming_escapes(const acs_draft *draft, const acs_naming *naming);
/* The relocatable block in which the segment begins, or NULL; *inside: it also ends there. */
acs_relocatable *acs_naming_block(const acs_draft *draft, const acs_segment *segment, bool *inside);
/* Whether the op does work of its own, and is queued next; unlike waits and streams' ops. */
bool acs_naming_is_work(const acs_record *record);
/*
 * Note that the op touches the segment's part of the block: add the block to the list of touched blocks, and divide it
 * at the part's ends.
 */
void acs_naming_touch(acs_relocatables *relocatables, acs_relocatable *m, const acs_segment *segment);
/*
 * Touch the lazy blocks into which an op has pointers that may touch any memory: it can reach lazy blocks in no other
 * way.
 */
void acs_naming_touch_pointed(const acs_draft *draft);
/* The relocatable block that holds the address, or NULL. */
static inline acs_relocatable *acs_naming_at(const acs_draft *draft, uint64_t address)
{
    acs_relocatables *r = draft->context->relocatables;
    acs_found *found = &r->found[acs_hash64(address) % ACS_FOUND];
    if (found->hold != r->hold || found->address != address)
        *found = (acs_found){address, r->hold, acs_relocatable_at(draft->context, address)};
    return found->at;
}

#endif

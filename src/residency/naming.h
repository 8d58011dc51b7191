/*
 * Which relocatable blocks an op names, and how (naming.c). Private to the modules above src/api; under the lock of
 * relocatable blocks, but for what looks at a record alone.
 */
#ifndef ACS_NAMING_H
#define ACS_NAMING_H

#include "residency/relocatable.h"

/* Whether it may touch anything. */
bool acs_naming_is_any(const acs_record *record);
/* A walk over the pointers among a kernel's arguments. Begins as all zero. */
typedef struct acs_pointer_walk {
    uint32_t arg, word; /* the next place to look at */
} acs_pointer_walk;
/* The next pointer as the program gave it; false: there is none. */
bool acs_naming_next_pointer(const acs_record *record, acs_pointer_walk *walk, uint64_t *address);
/*
 * How the op names each block of its segments, in acs_relocatable.naming until the next call: before anything is
 * changed.
 */
void acs_naming_collect(const acs_draft *draft);
/* Whether the op reaches the block in another way than by what can be changed. */
bool acs_naming_escapes(const acs_draft *draft, const acs_naming *naming);
/* The relocatable block of a segment, or NULL; *inside: all of the segment is in it. */
acs_relocatable *acs_naming_block(const acs_draft *draft, const acs_segment *segment, bool *inside);
/* Whether the op ends like other ops, and is queued next. */
bool acs_naming_is_work(const acs_record *record);
/* The op names this part of the block: it is in the list of those that it touches, and told apart from other parts. */
void acs_naming_touch(acs_relocatables *relocatables, acs_relocatable *m, const acs_segment *segment);
/* The lazy blocks that what may touch anything has pointers into: there is no other way to them. */
void acs_naming_touch_pointed(const acs_draft *draft);
/* The relocatable block that holds the address, or NULL. */
acs_relocatable *acs_naming_at(const acs_draft *draft, uint64_t address);

#endif

/*
 * Binding: the pointers and segments of an op that names relocatable blocks are changed to where their contents are, in
 * the call, before the op is queued. Whatever comes behind knows real addresses only. Where contents go is decided by
 * rename.c, on one device, or by replicas.c, on several, where binding also chooses the device. Private to
 * src/residency.
 */
#ifndef ACS_BIND_H
#define ACS_BIND_H

#include "residency/relocatable.h"
#include "api/draft.h"

/*
 * The record is filled in, but for what the backend adds: point it to the newest contents, or bring those home that it
 * may reach in another way. Errors of queueing a copy; nothing is bound then. The draft is to be queued or dropped
 * next, on this thread, unless it is about streams or a wait: acs_draft_queue and acs_draft_drop call acs_bound.
 */
acs_status acs_bind(acs_draft *draft);
/* Whether it will be possible to bind it: for ops that are held. Changes nothing. */
acs_status acs_bind_check(const acs_draft *draft);
/* Whether it may touch anything. */
bool acs_bind_is_any(const acs_record *record);
/* A walk over the pointers among a kernel's arguments. Begins as all zero. */
typedef struct acs_pointer_walk {
    uint32_t arg, word; /* the next place to look at */
} acs_pointer_walk;
/* The next pointer as the program gave it; false: there is none. */
bool acs_bind_next_pointer(const acs_record *record, acs_pointer_walk *walk, uint64_t *address);
/* The draft is queued next: what it writes as a whole begins anew. ACS_ERR_MEMORY: drop it. */
acs_status acs_bind_begin(acs_draft *draft);
/* The draft was queued as `op`; 0: it was not. */
void acs_bound(acs_draft *draft, acs_op op);

/* The rest is for rename.c and replicas.c, under the lock of relocatable blocks. */

/*
 * How the op names each block of its segments, in acs_relocatable.naming until the next call: before anything is
 * changed.
 */
void acs_bind_name(const acs_draft *draft);
/* Whether the op reaches the block in another way than by what can be changed. */
bool acs_bind_astray(const acs_draft *draft, const acs_naming *naming);
/* The relocatable block of a segment, or NULL; *inside: all of the segment is in it. */
acs_relocatable *acs_bind_segment(const acs_draft *draft, const acs_segment *segment, bool *inside);
/* Whether the op ends like other ops, and is queued next. */
bool acs_bind_is_work(const acs_record *record);
/* The op names this part of the block: it is in the list of those that it touches, and told apart from other parts. */
void acs_bind_touch(acs_relocatables *relocatables, acs_relocatable *m, const acs_segment *segment);
/* The lazy blocks that what may touch anything has pointers into: there is no other way to them. */
void acs_bind_touch_pointed(const acs_draft *draft);

/* rename.c */

/* Decide where the contents of what the op names are to be, and queue what that takes. */
acs_status acs_rename_prepare(acs_draft *draft);
/* As acs_bind_begin. */
acs_status acs_rename_begin(acs_context *context);
/* The op was queued, so the block is where it was to be; or it was not, and all is as it was. */
void acs_rename_commit(acs_context *context, acs_relocatable *m);
void acs_rename_undo(acs_context *context, acs_relocatable *m);

#endif

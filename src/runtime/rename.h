/*
 * Renaming, as processors rename registers: an op that writes the whole of a movable block (ACS_MOVABLE) gets memory of its
 * own for it, so that it depends on nobody who uses the contents before (WAR, WAW), and later ops are pointed there. Done in
 * the call, before the op is queued: whatever comes behind knows real addresses only. Private to src/runtime.
 *
 * N1  a movable block's newest contents are at `at`: its own address, or that of a version, which then no other block has.
 * N2  binding and queueing are one section under a lock, so program order is the order of versions.
 */
#ifndef ACS_RENAME_H
#define ACS_RENAME_H

#include "runtime/context.h"

typedef struct acs_renames acs_renames;

/* As options.rename and the pools say; ACS_ERR_OPTION: it needs pools, and they were switched off. */
acs_status acs_renames_open(acs_context *context);
/* No op is under way. What could not come home goes back. */
void acs_renames_close(acs_context *context);

/* The block is movable from here on. ACS_ERR_MEMORY. */
acs_status acs_rename_add(acs_context *context, const acs_block *block);
/* The block is about to be freed, behind op `last`; returns the op behind which its memory is nobody's. */
acs_op acs_rename_remove(acs_context *context, const void *ptr, acs_op last);

/* Nothing was made movable. */
bool acs_rename_none(const acs_context *context);
/*
 * The record is filled in, but for what the backend adds: point it to the newest versions, or bring those home that it may
 * reach in another way. Errors of queueing a copy; nothing is bound then. The draft is to be queued or dropped next, on this
 * thread, unless it is about streams or a wait: acs_draft_queue and acs_draft_drop call acs_rename_bound.
 */
acs_status acs_rename_bind(acs_draft *draft);
/* The draft is queued next: what it writes as a whole begins anew. ACS_ERR_MEMORY: drop it. */
acs_status acs_rename_begin(acs_context *context);
/* The draft was queued as `op`; 0: it was not. */
void acs_rename_bound(acs_draft *draft, acs_op op);
/* All contents come home: what the program does next may reach them in any way. Queues, does not wait. */
acs_status acs_rename_home_all(acs_context *context);

void acs_rename_count(const acs_context *context, acs_statistics *statistics);

#endif

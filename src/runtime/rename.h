/*
 * Renaming, as processors rename registers: an op that writes the whole of a movable block (ACS_MOVABLE) gets memory of its
 * own for it, so that it depends on nobody who uses the contents before (WAR, WAW), and later ops are pointed there. Done in
 * the call, before the op is queued: whatever comes behind knows real addresses only. Private to src/runtime.
 */
#ifndef ACS_RENAME_H
#define ACS_RENAME_H

#include "runtime/context.h"

/*
 * The record is filled in, but for what the backend adds: point it to the newest contents, or bring those home that it may
 * reach in another way. Errors of queueing a copy; nothing is bound then. The draft is to be queued or dropped next, on this
 * thread, unless it is about streams or a wait: acs_draft_queue and acs_draft_drop call acs_rename_bound.
 */
acs_status acs_rename_bind(acs_draft *draft);
/* Whether it will be possible to bind it: for ops that are held. Changes nothing. */
acs_status acs_rename_check(const acs_draft *draft);
/* The draft is queued next: what it writes as a whole begins anew. ACS_ERR_MEMORY: drop it. */
acs_status acs_rename_begin(acs_context *context);
/* The draft was queued as `op`; 0: it was not. */
void acs_rename_bound(acs_draft *draft, acs_op op);

#endif

/*
 * Binding: in the call, before an op is queued, its pointers and segments that name relocatable blocks are changed to
 * where the contents are. So all later stages know real addresses only. rename.c decides where contents go on one
 * device, replica_acquire.c on several, where it also chooses the device. Private to src/residency and src/library.
 */
#ifndef ACS_BIND_H
#define ACS_BIND_H

#include "residency/relocatable.h"
#include "api/draft.h"

/*
 * Bind the op of a record that is filled in, but for what the backend adds: point it to the newest contents, or bring
 * contents to their canonical place where it may reach them in another way. On an error of queueing a copy nothing is
 * bound.
 *
 * The draft is to be queued or dropped next, on this thread, unless it is about streams or a wait: acs_draft_queue and
 * acs_draft_drop call acs_bind_end.
 */
acs_status acs_bind(acs_draft *draft);
/* Check whether an op that a group holds can be bound later. Changes nothing. */
acs_status acs_bind_check(const acs_draft *draft);
/* End the binding: the draft was queued as `op`; 0: it was not queued. */
void acs_bind_end(acs_draft *draft, acs_op op);

/*
 * rename.c, on one device: decide where the op finds and leaves the contents of each block that it names, and queue the
 * copies that this takes.
 */
acs_status acs_rename_prepare(acs_draft *draft);
/* The draft is queued next: blocks that it writes as a whole begin a new life. ACS_ERR_MEMORY: drop it. */
acs_status acs_rename_begin(acs_context *context);
/*
 * End binding a block. Commit: the op was queued, so the contents are where the op leaves them. Undo: it was not, and
 * the block is as before.
 */
void acs_rename_commit(acs_context *context, acs_relocatable *m);
void acs_rename_undo(acs_context *context, acs_relocatable *m);

#endif

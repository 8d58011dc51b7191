/*
 * Renaming (rename.c): on one device, an op that writes a whole block gets memory of its own for it. Called by bind.c; under
 * the lock of relocatable blocks.
 */
#ifndef ACS_RENAME_H
#define ACS_RENAME_H

#include "residency/relocatable.h"

/*
 * Decide where the op finds and leaves the contents of each block that it names, and queue the copies that this takes.
 */
acs_status acs_rename_prepare(acs_draft *draft);
/* See acs_bind_begin. */
acs_status acs_rename_begin(acs_context *context);
/*
 * End binding a block. Commit: the op was queued, so the contents are where the op leaves them. Undo: it was not, and
 * the block is as before.
 */
void acs_rename_commit(acs_context *context, acs_relocatable *m);
void acs_rename_undo(acs_context *context, acs_relocatable *m);

#endif

/*
 * Renaming (rename.c): on one device, an op that writes a whole block gets memory of its own for it. Called by bind.c; under
 * the lock of relocatable blocks.
 */
#ifndef ACS_RENAME_H
#define ACS_RENAME_H

#include "residency/relocatable.h"

/* Decide where the contents of what the op names are to be, and queue what that takes. */
acs_status acs_rename_prepare(acs_draft *draft);
/* As acs_bind_begin. */
acs_status acs_rename_begin(acs_context *context);
/* The op was queued, so the block is where it was to be; or it was not, and all is as it was. */
void acs_rename_commit(acs_context *context, acs_relocatable *m);
void acs_rename_undo(acs_context *context, acs_relocatable *m);

#endif

/*
 * Waits of callers (wait.c): for one op, for all ops, or for room. The waiting thread steps the core itself while no
 * worker is awake, so no wait depends on a sleeping worker. Never called under a lock of rank CORE or higher.
 */
#ifndef ACS_WAIT_H
#define ACS_WAIT_H

#include "api/context.h"

/* Try to take what the caller waits for. Called again and again until it returns true, and maybe once more. */
typedef bool (*acs_try_fn)(acs_context *context, void *argument);

/* Wait until `op` (ACS_WAIT_FOR_OP), or all ops up to `op` (ACS_WAIT_FOR_ALL), have retired. */
void acs_context_wait(acs_context *context, acs_wait_condition_type type, acs_op op);
/* Wait until `try` succeeds. It returns without that only where nothing can make progress any more. */
void acs_context_wait_room(acs_context *context, acs_try_fn try, void *argument);
/*
 * Wait for all ops queued so far, however they end, and for contents of blocks to come home. A profiler sees the
 * wait by the name of `function`, in static storage.
 * @return true if copies of the runtime's own failed: their bytes are still where they were.
 */
bool acs_context_drain(acs_context *context, const char *function);

#endif

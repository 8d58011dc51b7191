/*
 * What users can read about acs_malloc: a log of all calls, and at close the blocks that were never freed. Private to
 * the modules above src/api.
 */
#ifndef ACS_MEMORY_LOG_H
#define ACS_MEMORY_LOG_H

#include "api/context.h"

/* Begin the file of ACS_MEMORY_LOG. ACS_ERR_OPTION through ACS_FAIL: it cannot be written. */
acs_status acs_memory_log_open(acs_context *context);
/*
 * A block was handed out, or freed behind op `last`: log it, and record it. `began`: ACS_RECORDER_NOW when the call
 * began. From any thread.
 */
void acs_memory_event(acs_context *context, bool freed, const acs_block *block, acs_op last, uint64_t began);
/* Close the file. */
void acs_memory_log_close(acs_context *context);
/*
 * Log the blocks that were not freed, by the calls that asked for them, at ACS_LOG=warn. Called at close, when nothing
 * else runs.
 */
void acs_memory_log_leaks(acs_context *context);

#endif

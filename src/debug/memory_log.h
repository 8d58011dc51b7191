/* What people get to read of acs_malloc: a log of all calls, and at close what was never freed. Private to src/debug. */
#ifndef ACS_MEMORY_LOG_H
#define ACS_MEMORY_LOG_H

#include "api/context.h"

/* ACS_MEMORY_LOG: begin the file. ACS_ERR_OPTION through ACS_FAIL: it cannot be written. */
acs_status acs_memory_log_open(acs_context *context);
/* A block was handed out, or freed behind op `last`; any thread. */
void acs_memory_log_block(acs_context *context, const char *event, const acs_block *block, acs_op last);
/* Closes the file. */
void acs_memory_log_close(acs_context *context);
/* To the log, at ACS_LOG=warn: the blocks that are out, by where they were asked for. At close, nothing else runs. */
void acs_memory_log_leaks(acs_context *context);

#endif

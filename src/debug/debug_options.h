/*
 * What users can read about a context's ops and blocks, and what helps to find a mistake. Private to the modules above
 * src/api. Each option is one file of this folder.
 */
#ifndef ACS_DEBUG_OPTIONS_H
#define ACS_DEBUG_OPTIONS_H

#include "api/draft.h"

/* ACS_LOG=debug: a line when an op enters the window, is issued and ends. The core is open, and holds no op. */
void acs_op_log_open(acs_context *context);

/*
 * ACS_DOT: the graph of a context's ops for Graphviz, coloured by device. Begin the file, if one is asked for. The core is
 * open, and holds no op. ACS_ERR_OPTION: the file cannot be written.
 */
acs_status acs_dot_open(acs_context *context);
/* End the file. No op is left, and no event will come. */
void acs_dot_close(acs_context *context);

/*
 * ACS_BARRIERS: ops of some numbers are ordered with all others, as if they had no footprint. acs-bisect finds with it
 * which two ops lack an order. ACS_ERR_OPTION through ACS_FAIL: the option is no list of ranges. ACS_ERR_MEMORY.
 */
acs_status acs_barriers_open(acs_context *context);
/* Write how many ops there were to standard error. */
void acs_barriers_close(acs_context *context);
/* The draft enters the FIFO next, and no op of another thread comes before it. */
void acs_barriers_mark(acs_draft *draft);

/* ACS_MEMORY_LOG: a log of all calls of acs_malloc and acs_free. ACS_ERR_OPTION: the file cannot be written. */
acs_status acs_memory_log_open(acs_context *context);
/*
 * A block was handed out, or freed behind op `last`: log it, and record it. `began`: ACS_RECORDER_NOW when the call
 * began. From any thread.
 */
void acs_memory_event(acs_context *context, bool freed, const acs_block *block, acs_op last, uint64_t began);
void acs_memory_log_close(acs_context *context);
/*
 * Log the blocks that were not freed, by the calls that asked for them, at ACS_LOG=warn. Called at close, when nothing
 * else runs.
 */
void acs_memory_log_leaks(acs_context *context);

#endif

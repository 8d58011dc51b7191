/*
 * Statistics of a context (stats.c): the counters of acs_stats, and the additional ones and the report of ACS_STATS=1.
 * Called by acs_open, acs_close and acs_stats. Changes nothing that runs.
 */
#ifndef ACS_STATS_H
#define ACS_STATS_H

#include "api/context.h"

/* Prepare what ACS_STATS=1 keeps, if it is set. ACS_ERR_MEMORY: acs_stats_close frees the part that was made. */
acs_status acs_stats_open(acs_context *context, uint64_t (*now_ns)(void *context));
void acs_stats_close(acs_context *context);
/* An op ended: count the pair of call sites of the op and of the op that it had to wait for. Under the core's lock. */
void acs_pairs_end(acs_pairs *pairs, const acs_end *end);
/* Write the report to standard error. Takes the core's lock. */
void acs_stats_report(acs_context *context);
/* Read all counters. Takes the core's lock. */
void acs_stats_read(acs_context *context, acs_statistics *statistics);

#endif

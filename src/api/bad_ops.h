/*
 * The record of a context's ops that failed or were skipped: ranges of consecutive ops that ended alike, sorted by
 * number. Owned by failures.c, which guards it by the core's lock. Knows no threads.
 *
 * F1  an op that was added is never found to have ended well, until acs_bad_ops_clear.
 * F2  ranges do not overlap, and increase.
 */
#ifndef ACS_BAD_OPS_H
#define ACS_BAD_OPS_H

#include "base/base.h"

/* A skipped chain of any length is one range, as long as no other op is between its ops. */
typedef struct acs_bad_range {
    acs_op first, last;
    acs_op cause;
    acs_status status;
    int native;
    const char *text; /* static storage or NULL */
    acs_site site;    /* all zero: the ops have several */
} acs_bad_range;

typedef struct acs_bad_ops {
    acs_bad_range *ranges;
    uint32_t count, room;
    bool siteless;           /* call sites were given up: ranges that differ in them alone are joined */
    acs_op vague_first, vague_last; /* interval whose ops all count as ended badly, though some may not have; 0: none */
    acs_status vague_status; /* status of these ops: ACS_ERR_SKIPPED, or ACS_ERR_DEVICE if one of them ended so */
} acs_bad_ops;

/* Add one op, the `first` and `last` of `what`, which ended as `what` says. Each op is added once. */
void acs_bad_ops_add(acs_bad_ops *bad, const acs_bad_range *what);
/* Find how an op ended. False: well, or not yet. For an op of the vague interval found->first is 0. */
bool acs_bad_ops_find(const acs_bad_ops *bad, acs_op op, acs_bad_range *found);
/* Forget all ops except those that ended with ACS_ERR_DEVICE. */
void acs_bad_ops_clear(acs_bad_ops *bad);
void acs_bad_ops_free(acs_bad_ops *bad);

#endif

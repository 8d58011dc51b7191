/*
 * Which ops of a context failed or were skipped, and how: ranges of consecutive ops that ended alike, sorted by number.
 * Guarded by its owner (failures.c); no threads here.
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
    bool siteless;           /* ranges that differ in their call sites alone are joined */
    acs_op vague_first, vague_last; /* all ops from one to the other may have ended badly; 0: none */
    acs_status vague_status; /* what is said of them: ACS_ERR_SKIPPED, or ACS_ERR_DEVICE if one of them ended so */
} acs_bad_ops;

/* An op ended as `what` says, whose `first` and `last` are both that op. Each op once. */
void acs_bad_ops_add(acs_bad_ops *bad, const acs_bad_range *what);
/* How an op ended. False: well, or it has not ended. Of an op whose record was given up `found->first` is 0. */
bool acs_bad_ops_find(const acs_bad_ops *bad, acs_op op, acs_bad_range *found);
/* Forget all but those that ended with ACS_ERR_DEVICE. */
void acs_bad_ops_clear(acs_bad_ops *bad);
void acs_bad_ops_free(acs_bad_ops *bad);

#endif

/*
 * An independent check of a recorded run, O(n^2) and naive on purpose. Sound: every two ops that conflict and ran were
 * ordered by what was issued. Precise: every wait that was sent was needed, and no earlier mark would have done.
 */
#ifndef RANDOM_CHECKER_H
#define RANDOM_CHECKER_H

#include "scheduler/trace.h"

#include <stdbool.h>

typedef struct checker checker;

typedef struct checker_report {
    uint64_t pairs;         /* conflicting pairs whose order was found */
    uint64_t same_slot;     /* of them, in one slot */
    uint64_t waits;         /* waits that were needed */
    uint64_t late_marks;    /* of them, on a mark recorded on demand behind later ops: nothing tighter existed */
    uint64_t stale_waits;   /* beside them: not needed, of ops that wait behind an attempt which bounced */
    char text[400];         /* what is wrong */
} checker_report;

/* NULL when memory is exhausted. */
checker *checker_create(void);
void checker_destroy(checker *c);
/* An acs_trace_fn; `user` is the checker. */
void checker_event(void *user, const acs_trace_event *event);
/* What was recorded, to standard error. */
void checker_dump(const checker *c);
/* After the context was closed. False: `report->text` says what is wrong. */
bool checker_verify(checker *c, int64_t slots, checker_report *report);

/* trace.c: one event to standard error, as it happens. */
void trace_print(void *user, const acs_trace_event *event);

#endif

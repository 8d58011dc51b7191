/*
 * The trace of a run: the core's decisions in their order, for ACS_DOT, ACS_LOG=debug, the recorder, and tests. Followers
 * run under the core's lock, in the order in which they were added, and must not call ACS.
 */
#ifndef ACS_TRACE_H
#define ACS_TRACE_H

#include "scheduler/backend.h"

typedef enum acs_trace_type {
    ACS_TRACE_INSERT, /* the op entered the window; op->segments and op->any are valid */
    ACS_TRACE_ISSUE,  /* issued to (slot, value), with the waits sent for it; slot -1: runs on the host */
    ACS_TRACE_BOOK,   /* it was handed over, by `method`; not for ops that run on the host */
    ACS_TRACE_RETIRE  /* ended with `status`, also if it failed or was skipped */
} acs_trace_type;

typedef struct acs_trace_event {
    acs_trace_type type;
    acs_op seq;
    const acs_record *op; /* valid during the call */
    uint32_t entry;       /* the op's place in the window, from its insertion to its end */
    int slot;
    uint64_t value;
    const acs_mark *waits; /* ISSUE: outer waits put before the op */
    uint32_t wait_count;
    const acs_batch *bundle; /* ISSUE: the op's bundle, or NULL; its edges up to this item are valid */
    uint32_t item;           /* the op's place in the bundle */
    uint64_t batch;          /* ISSUE: ops with the same number are issued together */
    uint8_t method;          /* BOOK: acs_issue_method */
    acs_status status;       /* RETIRE */
} acs_trace_event;

typedef void (*acs_trace_fn)(void *user, const acs_trace_event *event);

enum { ACS_TRACE_FOLLOWERS = 4 };
typedef struct acs_trace_follower {
    acs_trace_fn function;
    void *user;
} acs_trace_follower;

struct acs_core;
/* Follow the core from its next event on. It should hold no op. False: it has ACS_TRACE_FOLLOWERS. Takes the lock. */
bool acs_trace_add(struct acs_core *core, acs_trace_fn function, void *user);
/* Follow it no more; does nothing where it is not followed so. Takes the lock. */
void acs_trace_remove(struct acs_core *core, acs_trace_fn function, void *user);

#endif

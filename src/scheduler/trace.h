/*
 * The trace of a run, for tests and ACS_DOT: the core's decisions in their order. The hook runs under the core's lock
 * and must not call ACS. Set it on a context before its first op.
 */
#ifndef ACS_TRACE_H
#define ACS_TRACE_H

#include "scheduler/backend.h"

typedef enum acs_trace_type {
    ACS_TRACE_INSERT, /* the op entered the window; op->segments and op->any are valid */
    ACS_TRACE_ISSUE,  /* issued to (slot, value), with the waits sent for it; slot -1: runs on the host */
    ACS_TRACE_RETIRE  /* ended with `status`, also if it failed or was skipped */
} acs_trace_type;

typedef struct acs_trace_event {
    acs_trace_type type;
    acs_op seq;
    const acs_record *op; /* valid during the call */
    int slot;
    uint64_t value;
    const acs_mark *waits; /* ISSUE: outer waits put before the op */
    uint32_t wait_count;
    const acs_batch *bundle; /* ISSUE: the op's bundle, or NULL; its edges up to this item are valid */
    uint32_t item;           /* the op's place in the bundle */
    acs_status status;     /* RETIRE */
} acs_trace_event;

typedef void (*acs_trace_fn)(void *user, const acs_trace_event *event);

void acs_trace_set(acs_context *context, acs_trace_fn function, void *user);

#endif

/*
 * The record of a run, for tests and ACS_DOT: what the core decided, in the order in which it decided it (under the
 * core's lock).
 * A hook is set on a context before its first op; it must not call ACS.
 */
#ifndef ACS_TRACE_H
#define ACS_TRACE_H

#include "scheduler/backend.h"

typedef enum acs_trace_type {
    ACS_TRACE_INSERT, /* the op entered the window; op->segments and op->any are readable */
    ACS_TRACE_ISSUE,  /* issued: slot >= 0 with (slot, value) and the waits sent for it; slot -1: runs on the host now */
    ACS_TRACE_RETIRE  /* known to have ended with `status`; for FAILED or SKIPPED ops too */
} acs_trace_type;

typedef struct acs_trace_event {
    acs_trace_type type;
    acs_op seq;
    const acs_record *op; /* valid during the call */
    int slot;
    uint64_t value;
    const acs_mark *waits; /* ISSUE: outer waits put before it */
    uint32_t wait_count;
    const acs_batch *bundle; /* ISSUE: the bundle that it is in, else NULL; its edges up to this item can be read */
    uint32_t item;           /* its place there */
    acs_status status;     /* RETIRE */
} acs_trace_event;

typedef void (*acs_trace_fn)(void *user, const acs_trace_event *event);

void acs_trace_set(acs_context *context, acs_trace_fn function, void *user);

#endif

/*
 * Which nodes of a graph a captured op runs behind. The ops go through a window of their own, whose dependencies are those
 * of all ops; nothing is issued and nothing retires, so here an op leaves when later ops find all that they owe it through
 * others. A state machine like the window: no threads, no CUDA but through config.join; its owner calls it under one lock.
 *
 * CAP-1  an op's `behind`, with all that those nodes are behind, holds the end nodes of every earlier op that it
 *        conflicts with; and nothing else but where a window of `limit` ops overflowed, or a join node stands for many.
 * CAP-2  no node is in `behind` that another one there is known to be behind. What the last TUNE_CAPTURE_REACH ops are
 *        behind is known exactly; what lies further back is looked for (RED-2 in reduction.h).
 */
#ifndef ACS_CAPTURE_ORDER_H
#define ACS_CAPTURE_ORDER_H

#include "window/nodes.h"
#include "window/record.h"

typedef struct acs_capture_order acs_capture_order;

typedef struct acs_capture_order_config {
    uint32_t limit; /* ops that later ones may depend on, one by one; more: a node that is behind all of them */
    bool in_order;  /* a chain: every op behind the one before it */
    /* Make a node that does nothing behind `behind`, and add it to `end`. */
    acs_status (*join)(void *user, const acs_nodes *behind, acs_nodes *end);
    void *user;
} acs_capture_order_config;

acs_status acs_capture_order_create(const acs_capture_order_config *config, acs_capture_order **order);
void acs_capture_order_destroy(acs_capture_order *order);

/*
 * Take the next op: *behind becomes what it has to run behind. Later ops do not depend on an observer; any other op is
 * followed by acs_capture_order_put. The record is not kept. On an error the order of later ops can no longer be known:
 * every later call fails too.
 */
acs_status acs_capture_order_take(acs_capture_order *order, acs_record *op, bool observer, acs_nodes *behind);
/* The nodes that the op taken last ends with; for one that became none: its `behind`. *number names the op. */
acs_status acs_capture_order_put(acs_capture_order *order, const acs_nodes *ends, uint64_t *number);
/* Whether what was taken last is known to be behind the op of this number. */
bool acs_capture_order_implies(const acs_capture_order *order, uint64_t number);

#endif

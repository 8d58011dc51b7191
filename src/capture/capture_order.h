/*
 * The nodes of a graph behind which a captured op runs. The ops go through a window of their own, whose dependencies are
 * those of all ops. Nothing is issued and nothing retires there; an op leaves when later ops find all their dependencies
 * on it through others. A state machine like the window: no threads, and CUDA only through config.join; its owner calls
 * it under one lock.
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
    /* Most ops that later ones depend on one by one; when there are more, one node comes behind all of them. */
    uint32_t limit;
    bool in_order;  /* whether each op comes behind the one before it */
    /* Make an empty node behind `behind`, and add it to `end`. */
    acs_status (*join)(void *user, const acs_nodes *behind, acs_nodes *end);
    void *user;
} acs_capture_order_config;

acs_status acs_capture_order_create(const acs_capture_order_config *config, acs_capture_order **order);
void acs_capture_order_destroy(acs_capture_order *order);

/*
 * Take the next op; *behind becomes the nodes that it has to run behind. Later ops do not depend on an observer; any
 * other op is followed by acs_capture_order_put. The record is not kept. After an error the order of later ops is
 * unknown, so every later call fails, too.
 */
acs_status acs_capture_order_take(acs_capture_order *order, acs_record *op, bool observer, acs_nodes *behind);
/* Set the nodes with which the latest op ends; for an op without a node: its `behind`. *number is the op's number. */
acs_status acs_capture_order_put(acs_capture_order *order, const acs_nodes *ends, uint64_t *number);
/* Whether the latest op is known to be behind the op of this number. */
bool acs_capture_order_implies(const acs_capture_order *order, uint64_t number);

#endif

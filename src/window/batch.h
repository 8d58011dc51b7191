/*
 * What the core hands to a backend, and what issue methods examine: ops, the slots, marks and waits that they were
 * given (backend.h defines these), and the edges between them. A batch belongs to the action that contains it.
 */
#ifndef ACS_BATCH_H
#define ACS_BATCH_H

#include "base/base.h"
#include "window/record.h"

/* How ops are issued, in the order of the values of ACS_ISSUE; _AUTO is a request only. */
typedef enum acs_issue_method {
    ACS_METHOD_AUTO,
    ACS_METHOD_LAUNCH, /* one launch for each op */
    ACS_METHOD_REPLAY, /* a cached graph with exactly this bundle's types and edges */
    ACS_METHOD_RESIDENT, /* one kernel of the program runs the blocks of all ops, as device functions */
    ACS_METHOD_COUNT
} acs_issue_method;

typedef struct acs_mark {
    uint16_t slot;
    uint16_t index;
    uint32_t reserved;
    uint64_t value; /* once the mark is complete, so are all ops of the slot with values up to this */
} acs_mark;

/* One op of a batch. */
typedef struct acs_item {
    acs_record *op;       /* NULL: nothing to issue, only marks to record (slot -1); in a bundle: a join */
    uint64_t value;       /* the op is complete when the timeline of `slot` reaches this */
    int16_t slot;         /* -1: none (STREAM_SIGNAL: the foreign stream gets the waits) */
    uint16_t first_mark;  /* into batch->marks: marks to record before the op is issued */
    uint16_t mark_count;
    uint16_t first_wait;  /* into batch->waits: outer waits, put on `slot` before the op */
    uint16_t wait_count;
    uint16_t first_edge;  /* into batch->edges: inner edges, indices of earlier items that must be issued */
    uint16_t edge_count;  /* if one of those fails or bounces, this item is not issued: ACS_ERR_SKIPPED */
    uint8_t share;        /* part of the device that the op may take, in percent; 0: all of it. Never in bundles */
    bool mark_after;      /* record `after` behind the op, even if the op failed: waits for it must not hang */
    acs_mark after;
    /* results, set by submit */
    /*
     * ACS_OK; ACS_ERR_LAUNCH, _HOST (of a library call), _SKIPPED; _DEVICE: fatal; ACS_NOT_READY: bounced, to be
     * issued again
     */
    acs_status status;
    int native;
    const char *text;     /* static storage, or NULL */
} acs_item;

enum {
    ACS_BATCH_ITEMS = 512,
    ACS_BATCH_WAITS = 64 * 8 + 64,
    ACS_BATCH_MARKS = 64 * 8 + 64,
    ACS_BATCH_EDGES = 4096
};

/*
 * A batch: single ops, or one *bundle*: ops that go to one slot as a unit, by a method cheaper than a launch for each.
 *
 * Items of a bundle are kernels whose type is not 0, or joins (op NULL), which stand for the items that they have
 * edges to. Each item comes after those that it has edges to. Ops have the bundle's slot and consecutive values; joins
 * have slot -1. Item 0 is an op; it alone has marks and waits, for all. The last op alone has mark_after, always.
 *
 * Only edges order the ops of a bundle: ops that must not overlap are connected by a path. An op is complete once all
 * ops of the slot with smaller values are too; poll may report it before the mark is reached.
 *
 * A bundle is issued as a whole or not at all. If it is refused, items without edges get ACS_NOT_READY and the others
 * ACS_ERR_SKIPPED, and the core issues them in another way. If the device is lost, all get ACS_ERR_DEVICE.
 */
typedef struct acs_batch {
    uint32_t items_used, waits_used, marks_used, edges_used;
    bool bundle;
    uint8_t device;  /* that of all its ops */
    uint8_t method;  /* acs_issue_method of a bundle: the core's wish (AUTO: any), then the one that submit used */
    acs_item items[ACS_BATCH_ITEMS];
    acs_mark waits[ACS_BATCH_WAITS];
    acs_mark marks[ACS_BATCH_MARKS];
    uint16_t edges[ACS_BATCH_EDGES];
} acs_batch;

/* Whether all items that this one follows inside the batch were issued. If not, it must not be issued. */
static inline bool acs_item_may_follow(const acs_batch *batch, const acs_item *item)
{
    for (uint32_t i = 0; i < item->edge_count; i++) {
        ACS_ASSERT(&batch->items[batch->edges[item->first_edge + i]] < item);
        if (batch->items[batch->edges[item->first_edge + i]].status != ACS_OK)
            return false;
    }
    return true;
}

/* An item that found the device lost; NULL: none did. */
static inline const acs_item *acs_batch_fatal(const acs_batch *batch)
{
    for (uint32_t i = 0; i < batch->items_used; i++)
        if (batch->items[i].status == ACS_ERR_DEVICE)
            return &batch->items[i];
    return NULL;
}

static inline void acs_item_result(acs_item *item, acs_status status, int native, const char *text)
{
    item->status = status;
    item->native = native;
    item->text = text;
}

/* Refuse a bundle without an error: the core then issues its ops in another way. */
static inline void acs_bundle_refuse(acs_batch *batch)
{
    for (uint32_t i = 0; i < batch->items_used; i++)
        acs_item_result(&batch->items[i], batch->items[i].edge_count ? ACS_ERR_SKIPPED : ACS_NOT_READY, 0, NULL);
}

#endif

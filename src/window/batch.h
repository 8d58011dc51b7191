/*
 * What the core hands to a backend, and what issue methods look at: ops with the slots, marks and waits that they were
 * given (backend.h says what these mean), and the edges between them. A batch belongs to the action that it is in.
 */
#ifndef ACS_BATCH_H
#define ACS_BATCH_H

#include "base/base.h"
#include "window/record.h"

/* How ops are issued. As ACS_ISSUE names them; _AUTO is a request only. */
typedef enum acs_issue_method {
    ACS_METHOD_AUTO,
    ACS_METHOD_LAUNCH, /* one launch for each op */
    ACS_METHOD_REPLAY, /* a cached graph of exactly this bundle's types and edges */
    ACS_METHOD_LAYERS, /* a cached graph of layers, into which any bundle of few types fits */
    ACS_METHOD_GPU,    /* finished kernels launch what they release */
    ACS_METHOD_COUNT
} acs_issue_method;

typedef struct acs_mark {
    uint16_t slot;
    uint16_t index;
    uint32_t reserved;
    uint64_t value; /* the slot's value that it stands behind: complete implies all ops with value <= this are */
} acs_mark;

/* One op of a batch. */
typedef struct acs_item {
    acs_record *op;       /* NULL: nothing to issue, only the marks listed (slot is -1); in a bundle: a join */
    uint64_t value;       /* token: done when the timeline of `slot` reaches it */
    int16_t slot;         /* -1: none (STREAM_SIGNAL: the waits are put on the foreign stream) */
    uint16_t first_mark;  /* marks to record before this op is issued: batch->marks */
    uint16_t mark_count;
    uint16_t first_wait;  /* outer waits: batch->waits, put on `slot` before the op */
    uint16_t wait_count;
    uint16_t first_edge;  /* inner edges: batch->edges, indices of earlier items that must have been issued; where one */
    uint16_t edge_count;  /* failed or bounced, this item gets ACS_ERR_SKIPPED and is not issued */
    bool mark_after;      /* record `after` behind the op (also if it failed: waits for it must not hang) */
    acs_mark after;
    /* result */
    acs_status status;    /* ACS_OK, ACS_ERR_LAUNCH, _HOST (a library call failed), _SKIPPED, _DEVICE (fatal), _NOT_READY:
                             bounced, issue it again */
    int native;
    const char *text;     /* static storage or NULL */
} acs_item;

enum {
    ACS_BATCH_ITEMS = 512,
    ACS_BATCH_WAITS = 64 * 8 + 64,
    ACS_BATCH_MARKS = 64 * 8 + 64,
    ACS_BATCH_EDGES = 4096
};

/*
 * A batch of ops, or a *bundle*: ops that go to one slot as one unit, for an issue method cheaper than one launch for
 * each.
 *
 * In a bundle all items are kernels whose type is not 0, or joins (op NULL: stands for the items that it has edges
 * to), in an order in which every item comes behind those that it has edges to. Ops have the bundle's slot and
 * consecutive values; a join has slot -1. Only item 0 (an op) has marks and waits: for all. Only the last op has
 * mark_after, and has it always. Nothing but the edges orders the ops: a path of edges leads from one to the other
 * where they must not overlap. An op completes when all ops of the slot with smaller values have too: that is what poll
 * may report before the mark is reached. A bundle is issued as a whole or not at all: then items without edges get
 * ACS_NOT_READY, the others ACS_ERR_SKIPPED, and the core issues them in another way; or all get ACS_ERR_DEVICE.
 */
typedef struct acs_batch {
    uint32_t items_used, waits_used, marks_used, edges_used;
    bool bundle;
    uint8_t device;  /* of all its ops */
    uint8_t beside;  /* of a bundle: as many like it as other slots have under way, at most one a slot */
    uint8_t
        method; /* acs_issue_method; of a bundle: what the core asks for (AUTO: any); result: what it was issued by */
    uint8_t slots;   /* of a bundle: that its ops would share if they were launched */
    uint64_t device_ns; /* of a bundle: what the device takes for all of it, as learnt from launches; 0: not known */
    acs_item items[ACS_BATCH_ITEMS];
    acs_mark waits[ACS_BATCH_WAITS];
    acs_mark marks[ACS_BATCH_MARKS];
    uint16_t edges[ACS_BATCH_EDGES];
} acs_batch;

/* Whether all that the item follows inside the batch was issued; if not, it must not be. */
static inline bool acs_item_may_follow(const acs_batch *batch, const acs_item *item)
{
    for (uint32_t i = 0; i < item->edge_count; i++) {
        ACS_ASSERT(&batch->items[batch->edges[item->first_edge + i]] < item);
        if (batch->items[batch->edges[item->first_edge + i]].status != ACS_OK)
            return false;
    }
    return true;
}

static inline void acs_item_result(acs_item *item, acs_status status, int native, const char *text)
{
    item->status = status;
    item->native = native;
    item->text = text;
}

/* A bundle is not issued, for no fault of its own: the core issues its ops in another way. */
static inline void acs_bundle_refuse(acs_batch *batch)
{
    for (uint32_t i = 0; i < batch->items_used; i++)
        acs_item_result(&batch->items[i], batch->items[i].edge_count ? ACS_ERR_SKIPPED : ACS_NOT_READY, 0, NULL);
}

#endif

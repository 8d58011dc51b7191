/*
 * Slots: which stream an op is issued to, and which waits that takes. Pure bookkeeping over timelines; no backend call.
 *
 * Each slot keeps a vector clock: per other slot the latest value that its next op is known to run behind. A wait is sent
 * only if it adds order (HuntKTm, section 4, prunes redundant synchronisation on the whole graph; clocks do it online).
 *
 * SLOT-1  completed <= issued, and clock[t] of a slot never exceeds what its stream really waits for.
 * SLOT-2  marks of a slot are ordered by value; their indices are distinct while they are not known to be complete.
 * SLOT-3  active <= limit, and slots from `used` on were never issued to.
 * SLOT-4  a slot's clock never falls: of two ops of a slot the later one's clock is nowhere below the earlier one's.
 * SLOT-5  slot s is one of device s % devices, and gets ops of that device alone.
 */
#ifndef ACS_SLOTS_H
#define ACS_SLOTS_H

#include "scheduler/backend.h"
#include "window/window.h"

enum { ACS_SLOTS_MAX = ACS_BACKEND_SLOTS_MOST };

typedef struct acs_slot {
    uint64_t issued;       /* newest value handed out */
    uint64_t completed;    /* newest value seen complete */
    uint64_t marked;       /* value of the newest mark */
    uint64_t stable;       /* marks up to this value are recorded for certain: no batch under way made them */
    uint64_t looked_at;    /* value of the newest mark that the last poll asked about */
    uint64_t completed_before; /* `completed` when all of the device's slots were polled the last time */
    uint64_t batch;        /* the batch under way that owns the slot; 0: none */
    uint32_t outstanding;  /* ops handed out that have not ended */
    uint32_t head, tail;   /* ISSUED entries, oldest first, through slot_next */
    acs_ref newest;        /* the op with value == issued */
    uint32_t mark_first;   /* ring of marks not known to be complete */
    uint32_t mark_count;
    acs_mark *marks;
    uint64_t *clock;
} acs_slot;

typedef struct acs_slots_counters {
    uint64_t same_slot, waits_sent, waits_implied, waits_complete, marks;
} acs_slots_counters;

/* The slots of one device: the first `active` of them. */
typedef struct acs_bank {
    uint32_t active;        /* slots that ops without a place of their own are spread over: grows and shrinks */
    uint32_t deep_now;      /* acs_slots.deep, or 1 where the device was seen to take the time */
    uint32_t idle_polls;    /* in a row that saw the device busy */
    uint64_t looked;        /* bits of slots: asked about since an op was issued to any of them */
    uint64_t fed;           /* bits of slots: ops were issued to them since all were polled */
    uint32_t burst;         /* ops issued since the last one was judged */
    bool pause, busy;       /* there is little to issue; polls saw the device busy then */
    uint32_t quick_bursts;  /* in a row after which they did not */
    uint32_t may_grow;      /* how many more slots may become active: the device was seen to be behind */
    bool wants_poll;        /* all queues look deep, but perhaps only because nobody looked */
} acs_bank;

typedef struct acs_slots {
    uint32_t count;         /* how many there are, of all devices */
    uint32_t devices;
    uint32_t limit;         /* most of a device that may become active */
    uint32_t used;          /* slots that ever were active, and those in front of them; clocks of the others are 0 */
    uint32_t first;         /* of a device that are active from the start, and stay so */
    uint32_t deep;          /* ops out in the emptiest slot: the device is behind, not the launches */
    bool eager;             /* slots become active without a poll (tests) */
    acs_bank banks[ACS_DEVICES_MOST];
    uint32_t mark_capacity; /* per slot, power of two */
    uint32_t mark_interval; /* a slot gets a mark at least every so many ops */
    uint64_t issue_stamp;
    acs_window *window;
    acs_slot slot[ACS_SLOTS_MAX];
    acs_slots_counters counters;
} acs_slots;

/* SLOT-5 */
static inline uint32_t acs_slot_device(const acs_slots *slots, uint32_t slot)
{
    return slots->devices == 1 ? 0 : slot % slots->devices;
}

/* Marks per slot for a window of so many ops. */
uint32_t acs_slots_mark_capacity(uint32_t window);
/* As many of each device: `count` is a multiple of `devices`. */
acs_status acs_slots_init(acs_slots *slots, uint32_t count, uint32_t devices, acs_window *window);
/* A device runs at most `parallel` ops at once (0: many): slots beyond twice as many would only cost. */
void acs_slots_limit(acs_slots *slots, uint32_t parallel);
/*
 * Nothing is known yet of how long ops take: each that need not queue gets an idle slot, until polls see ops go through. For
 * a new context; 128 kernels of 1 ms then end after 3.5 ms instead of 21 (bench/experiments/wide-start-2026-11-24.md).
 */
void acs_slots_expect_long_ops(acs_slots *slots);
/* Other values than usual before the first op, for tests: `first` may exceed what the backend can use. */
void acs_slots_shape(acs_slots *slots, uint32_t first, uint32_t deep, bool eager);
void acs_slots_fini(acs_slots *slots);

/*
 * Place a ready op at the end of a batch: choose the slot, give it its value, add marks and waits. False: not now (every
 * slot is owned by other batches, or a mark that it needs is not recorded yet, or the batch is full); nothing changed.
 */
bool acs_slots_place(acs_slots *slots, acs_batch *batch, uint64_t batch_id, acs_entry *entry);
/*
 * Place a bundle of gathered ops and joins in one slot (backend.h): the first, an op, waits for what any of them needs, and
 * a mark follows the last. The caller adds the edges. False, as above.
 */
bool acs_slots_place_bundle(acs_slots *slots, acs_batch *batch, uint64_t batch_id, const uint32_t *entries,
                            uint32_t count);
/* Add an item without op that puts a mark at the end of each slot of the mask `of` with ops out and no mark behind them. */
void acs_slots_mark_tails(acs_slots *slots, acs_batch *batch, uint64_t batch_id, uint64_t of);
/* The batch is submitted: its slots are free again, its marks recorded. */
void acs_slots_batch_done(acs_slots *slots, uint64_t batch_id);
/* An item was not issued: its value stays empty. */
void acs_slots_cancel(acs_slots *slots, int slot);
/* An item was issued: it joins its slot's list. */
void acs_slots_append(acs_slots *slots, acs_entry *entry);
/* (slot, value) is known to be complete: the next of its ops to end, or NULL. */
acs_entry *acs_slots_pop_complete(acs_slots *slots, uint32_t slot);
void acs_slots_completed(acs_slots *slots, uint32_t slot, uint64_t value);
/* A poll asked about marks of the slot up to this value; what it saw complete follows. */
void acs_slots_looked_at(acs_slots *slots, uint32_t slot, uint64_t value);
/* Whether each of the device's slots where ops are out was asked about since an op was issued to any of them. */
bool acs_slots_all_looked_at(const acs_slots *slots, uint32_t device);
/*
 * What the device has completed is known, for all of its slots, as of when they were looked at: decide whether more of them
 * may become active. `idle`: there was little to issue. `bundled`: what was issued was a bundle.
 */
void acs_slots_polled(acs_slots *slots, uint32_t device, bool idle, bool bundled);
/* Whether all that an entry was to run behind is complete. */
bool acs_slots_reached(const acs_slots *slots, const acs_entry *entry);
/* The slots that hold what an entry has to run behind and that is not known to be complete. */
uint64_t acs_slots_unreached(const acs_slots *slots, const acs_entry *entry);
/* The same but for its own slot, which it is in. */
bool acs_slots_reached_elsewhere(const acs_slots *slots, const acs_entry *entry);
/* Oldest marks, and the newest, not known to be complete: at most `capacity`. */
uint32_t acs_slots_marks(const acs_slots *slots, uint32_t slot, acs_mark *marks, uint32_t capacity);

#endif

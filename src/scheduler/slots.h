/*
 * Slots: the stream that an op is issued to, and the waits that this takes. Bookkeeping over timelines, under the
 * core's lock; it never calls a backend.
 *
 * Each slot keeps a vector clock: for every other slot the latest value that its next op is known to run behind. A
 * wait is sent only if it adds order. (HuntKTm, section 4, prunes redundant synchronisation on a whole graph; clocks
 * do it online.)
 *
 * SLOT-1  completed <= issued, and clock[t] of a slot never exceeds what its stream really waits for.
 * SLOT-2  marks of a slot are ordered by value; their indices are distinct while they are not known to be complete.
 * SLOT-3  active <= limit, and slots from `used` on were never issued to.
 * SLOT-4  a slot's clock never falls: of two ops of a slot the later one's clock is nowhere below the earlier one's.
 * SLOT-5  slot s is one of device s % devices, and gets ops of that device alone.
 * SLOT-6  the share of a slot is that of its newest op. The backend keeps the order of its ops when it changes.
 */
#ifndef ACS_SLOTS_H
#define ACS_SLOTS_H

#include "scheduler/backend.h"
#include "window/window.h"

enum { ACS_SLOTS_MAX = ACS_BACKEND_SLOTS_MOST };

typedef struct acs_slot {
    uint64_t issued;       /* newest value given to an op */
    uint64_t completed;    /* newest value seen complete */
    uint64_t marked;       /* value of the newest mark */
    uint64_t stable;       /* newest value whose mark is certainly recorded: no batch under way makes it */
    uint64_t looked_at;    /* value of the newest mark that the last poll asked about */
    uint64_t completed_before; /* `completed` at the last poll of all slots of the device */
    uint64_t batch;        /* id of the batch under way that owns the slot; 0: none */
    uint32_t outstanding;  /* ops placed that have not ended */
    uint8_t share;         /* part of the device that its newest op may take, in percent; 0: all of it */
    uint32_t head, tail;   /* ISSUED entries, oldest first, linked by slot_next */
    acs_ref newest;        /* the op with value `issued` */
    uint32_t mark_first;   /* ring of the marks not known to be complete */
    uint32_t mark_count;
    acs_mark *marks;
    uint16_t *spare_marks; /* indices of complete marks; the latest is used next: the event of a new one takes 1.6 us */
    uint32_t spares, marks_made;
    uint64_t *clock;
} acs_slot;

typedef struct acs_slots_counters {
    uint64_t same_slot, waits_sent, waits_implied, waits_complete, marks;
} acs_slots_counters;

/* The slots of one device; the first `active` of them take ops. Masks have one bit per slot. */
typedef struct acs_bank {
    uint32_t active;        /* slots among which ops without a preferred slot are spread */
    uint32_t deep_now;      /* acs_slots.deep, or 1 while the device, not the launches, takes the time */
    uint32_t idle_polls;    /* polls in a row that saw the device busy while there was little to issue */
    uint64_t looked;        /* slots polled since an op was issued to any of them */
    uint64_t fed;           /* slots that got ops since all were polled */
    uint32_t burst;         /* ops issued since a burst was judged last */
    bool pause, busy;       /* the last poll found little to issue; such polls of this burst saw the device busy */
    uint32_t quick_bursts;  /* bursts in a row after which no poll saw the device busy */
    uint32_t may_grow;      /* slots that may still become active: the device was seen to be behind */
    bool wants_poll;        /* all queues look deep, perhaps only for want of a poll */
    bool unknown;           /* no poll has shown yet whether ops are long: none queues behind others */
    uint64_t held_ns;       /* while `unknown`: since when an op waits that would queue, and all others are launched */
} acs_bank;

typedef struct acs_slots {
    uint32_t count;         /* of all devices */
    uint32_t devices;
    uint32_t limit;         /* most active slots of a device */
    uint32_t used;          /* slots below this were active once, or precede one that was; the clocks of others are 0 */
    uint32_t first;         /* slots of a device that are always active */
    uint32_t deep;          /* ops out in the emptiest slot that show the device, not the launches, to be behind */
    bool eager;             /* slots become active without a poll (tests) */
    bool shares;            /* an op with a share was placed */
    bool starved;           /* threads that issue have nothing left: not launches take the time */
    acs_bank banks[ACS_DEVICES_MOST];
    uint32_t mark_capacity; /* of each slot; a power of two */
    uint32_t mark_interval; /* most ops of a slot between two marks */
    uint64_t issue_stamp;
    acs_window *window;
    acs_slot slot[ACS_SLOTS_MAX];
    acs_slots_counters counters;
} acs_slots;

/* The device of a slot (SLOT-5). */
static inline uint32_t acs_slot_device(const acs_slots *slots, uint32_t slot)
{
    return slots->devices == 1 ? 0 : slot % slots->devices;
}

/* Whether no other batch owns the slot. */
static inline bool acs_slot_free(const acs_slot *slot, uint64_t batch_id)
{
    return slot->batch == 0 || slot->batch == batch_id;
}

static inline bool acs_slot_reached(const acs_slot *slot, uint64_t value)
{
    return value <= slot->completed || slot->outstanding == 0;
}

static inline const acs_entry *acs_slot_newest(const acs_slots *slots, const acs_slot *slot)
{
    return acs_ref_live(slots->window, slot->newest) ? &slots->window->entries[slot->newest.entry] : NULL;
}

/* Marks per slot for a window of `window` ops. */
uint32_t acs_slots_mark_capacity(uint32_t window);
/* `count` slots, a multiple of `devices`. ACS_ERR_MEMORY: nothing is left allocated. */
acs_status acs_slots_init(acs_slots *slots, uint32_t count, uint32_t devices, acs_window *window);
/* A device runs at most `parallel` ops at once (0: many): limit its active slots to twice as many. */
void acs_slots_limit(acs_slots *slots, uint32_t parallel);
/*
 * For a new context: long ops should get a slot each at once. 128 kernels of 1 ms then end after 3.5 ms instead of 21
 * (bench/experiments/wide-start-2026-11-24.md). But each new stream takes 25 us, and short ops need few. So with `judge` ops
 * that would queue behind others wait until polls have seen how long the first ones take; else all ops count as long.
 */
void acs_slots_expect_long_ops(acs_slots *slots, bool judge);
/* For tests, before the first op: set these values. `first` may exceed what the backend can use. */
void acs_slots_shape(acs_slots *slots, uint32_t first, uint32_t deep, bool eager);
void acs_slots_fini(acs_slots *slots);

/*
 * Place a ready op at the end of a batch: choose its slot, give it the next value, add marks and waits. False, nothing
 * changed: other batches own every slot, a mark that it needs is not recorded yet, or the batch is full.
 */
bool acs_slots_place(acs_slots *slots, acs_batch *batch, uint64_t batch_id, acs_entry *entry);
/*
 * Place the ops and joins of a bundle (batch.h) in one slot. The first entry, an op, gets the waits of all; a mark
 * follows the last op. The caller adds the edges. False: as acs_slots_place.
 */
bool acs_slots_place_bundle(acs_slots *slots, acs_batch *batch, uint64_t batch_id, const uint32_t *entries,
                            uint32_t count);
/* Add an item that records a mark at the end of each slot of mask `of` whose newest op has none. */
void acs_slots_mark_tails(acs_slots *slots, acs_batch *batch, uint64_t batch_id, uint64_t of);
/* The batch was submitted: its slots are free, its marks recorded. */
void acs_slots_batch_done(acs_slots *slots, uint64_t batch_id);
/* An item was not issued: its value stays unused. slot -1: nothing to do. */
void acs_slots_cancel(acs_slots *slots, int slot);
/* An item was issued: append it to its slot's list. */
void acs_slots_append(acs_slots *slots, acs_entry *entry);
/* Take the next op of the slot whose value is complete; NULL: none. */
acs_entry *acs_slots_pop_complete(acs_slots *slots, uint32_t slot);
void acs_slots_completed(acs_slots *slots, uint32_t slot, uint64_t value);
/* A poll asked about the slot's marks up to this value; acs_slots_completed follows. */
void acs_slots_looked_at(acs_slots *slots, uint32_t slot, uint64_t value);
/* Whether every slot of the device with ops out was polled since an op was issued to any of them. */
bool acs_slots_all_looked_at(const acs_slots *slots, uint32_t device);
/*
 * All slots of a device were polled: decide whether more of them may become active. `idle`: there was little to issue.
 * `bundled`: a bundle was issued.
 */
void acs_slots_polled(acs_slots *slots, uint32_t device, bool idle, bool bundled);
/* Whether all slot waits of an entry are complete. */
bool acs_slots_reached(const acs_slots *slots, const acs_entry *entry);
/* One bit per slot with a slot wait of the entry that is not known to be complete. */
uint64_t acs_slots_unreached(const acs_slots *slots, const acs_entry *entry);
/* Whether all its slot waits are complete, except the one in its own slot. */
bool acs_slots_reached_elsewhere(const acs_slots *slots, const acs_entry *entry);
/* Recorded marks not known to be complete: the oldest, and the newest; at most `capacity`. Returns their number. */
uint32_t acs_slots_marks(const acs_slots *slots, uint32_t slot, acs_mark *marks, uint32_t capacity);

#endif

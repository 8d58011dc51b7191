/*
 * Slots: the waits and marks of ready ops (see slots.h). Called by insert.c, step.c and bundles under the core's lock.
 * Owns clocks and timelines. slots_choice.c chooses the slot, slots_marks.c keeps the marks. It never calls a backend.
 */
#include "scheduler/slots_internal.h"

#include "window/replay.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

uint32_t acs_slots_mark_capacity(uint32_t window)
{
    uint32_t capacity = acs_round_up_pow2(window);
    return capacity < TUNE_SLOT_EVENTS_LEAST  ? TUNE_SLOT_EVENTS_LEAST
           : capacity > TUNE_SLOT_EVENTS_MOST ? TUNE_SLOT_EVENTS_MOST
                                              : capacity;
}

acs_status acs_slots_init(acs_slots *slots, uint32_t count, uint32_t devices, acs_window *window)
{
    memset(slots, 0, sizeof *slots);
    slots->count = count;
    slots->devices = devices;
    slots->limit = count / devices;
    slots->window = window;
    acs_slots_shape(slots, TUNE_SLOTS_FIRST, TUNE_SLOT_DEEP, false);
    slots->mark_capacity = acs_slots_mark_capacity(window->limit);
    slots->mark_interval = window->limit / (2 * (count < TUNE_SLOTS_SHARING ? count : TUNE_SLOTS_SHARING));
    if (slots->mark_interval == 0)
        slots->mark_interval = 1;
    if (slots->mark_interval > TUNE_SLOT_EVENTS_LEAST)
        slots->mark_interval = TUNE_SLOT_EVENTS_LEAST;
    /* Of all slots at once: the pages of slots that are not used are not touched. */
    acs_mark *marks = acs_zeros((size_t)count * slots->mark_capacity, sizeof *marks);
    uint64_t *clocks = acs_zeros((size_t)count * count, sizeof *clocks);
    uint16_t *spares = acs_zeros((size_t)count * slots->mark_capacity, sizeof *spares);
    for (uint32_t s = 0; s < count; s++) {
        slots->slot[s].marks = marks ? marks + (size_t)s * slots->mark_capacity : NULL;
        slots->slot[s].spare_marks = spares ? spares + (size_t)s * slots->mark_capacity : NULL;
        slots->slot[s].clock = clocks ? clocks + (size_t)s * count : NULL;
    }
    if (marks && clocks && spares)
        return ACS_OK;
    acs_slots_fini(slots);
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for %u slots", count);
}

void acs_slots_limit(acs_slots *slots, uint32_t parallel)
{
    uint32_t useful = 2 * parallel > TUNE_SLOTS_FIRST ? 2 * parallel : TUNE_SLOTS_FIRST;
    if (parallel && useful < slots->limit)
        slots->limit = useful;
}

void acs_slots_expect_long_ops(acs_slots *slots, bool judge)
{
    for (uint32_t d = 0; d < slots->devices; d++) {
        acs_bank *bank = &slots->banks[d];
        bank->unknown = judge && bank->active < slots->limit;
        bank->deep_now = bank->unknown ? slots->deep : 1;
        bank->may_grow = bank->unknown ? 0 : slots->limit;
    }
}

void acs_slots_shape(acs_slots *slots, uint32_t first, uint32_t deep, bool eager)
{
    uint32_t each = slots->count / slots->devices;
    slots->first = first < each ? first : each;
    slots->deep = deep;
    slots->eager = eager;
    slots->used = slots->first * slots->devices;
    for (uint32_t d = 0; d < slots->devices; d++)
        slots->banks[d] = (acs_bank){.active = slots->first, .deep_now = deep};
    if (slots->limit < slots->first)
        slots->limit = slots->first;
    ACS_ASSERT(slots->limit <= each && slots->used <= slots->count); /* SLOT-3 */
}

void acs_slots_fini(acs_slots *slots)
{
    acs_zeros_free(slots->slot[0].marks); /* all slots' */
    acs_zeros_free(slots->slot[0].clock);
    acs_zeros_free(slots->slot[0].spare_marks);
    memset(slots, 0, sizeof *slots);
}

/* ---------------------------------------------------------------------------------------------------------- reached */

static bool reached_in(const acs_slots *slots, const acs_entry *entry, uint64_t mask)
{
    const acs_slot_wait *slot_waits = acs_entry_waits(slots->window, entry);
    for (; mask; mask &= mask - 1) {
        uint32_t s = (uint32_t)__builtin_ctzll(mask);
        if (!acs_slot_reached(&slots->slot[s], slot_waits[s].value))
            return false;
    }
    return true;
}

bool acs_slots_reached(const acs_slots *slots, const acs_entry *entry)
{
    return reached_in(slots, entry, entry->wait_mask);
}

uint64_t acs_slots_unreached(const acs_slots *slots, const acs_entry *entry)
{
    const acs_slot_wait *slot_waits = acs_entry_waits(slots->window, entry);
    uint64_t unreached = 0;
    for (uint64_t mask = entry->wait_mask; mask; mask &= mask - 1) {
        uint32_t s = (uint32_t)__builtin_ctzll(mask);
        if (!acs_slot_reached(&slots->slot[s], slot_waits[s].value))
            unreached |= 1ull << s;
    }
    return unreached;
}

bool acs_slots_reached_elsewhere(const acs_slots *slots, const acs_entry *entry)
{
    return reached_in(slots, entry, entry->wait_mask & ~(1ull << entry->slot));
}

/* ------------------------------------------------------------------------------------------------------------ waits */

/* The plan for one op, applied only if all of it is possible. */
typedef struct placement {
    int slot;
    bool displaces;         /* the newest op of `slot` needs a mark before this one hides it */
    uint32_t wait_count;
    uint8_t wait_slot[ACS_SLOTS_MAX];
    bool wait_new[ACS_SLOTS_MAX];      /* the mark must be recorded now */
    acs_mark wait_mark[ACS_SLOTS_MAX];
    uint64_t known[ACS_SLOTS_MAX];     /* the slot's clock with the op in it */
    uint64_t implied, complete, same;
} placement;

static const acs_entry *wait_holder(const acs_slots *slots, const acs_slot_wait *slot_wait, uint32_t slot)
{
    const acs_entry *holder = &slots->window->entries[slot_wait->entry];
    if (slots->window->holds[slot_wait->entry].generation != slot_wait->generation)
        return NULL;
    return holder->slot == (int)slot && holder->value == slot_wait->value ? holder : NULL;
}

/* Slot waits by time of issue, newest first: the newest may imply older ones. */
static uint32_t sort_waits(const acs_slots *slots, const acs_entry *entry, uint8_t *order)
{
    const acs_slot_wait *slot_waits = acs_entry_waits(slots->window, entry);
    uint64_t stamps[ACS_SLOTS_MAX];
    uint32_t count = 0;
    for (uint64_t mask = entry->wait_mask; mask; mask &= mask - 1) {
        uint32_t s = (uint32_t)__builtin_ctzll(mask);
        const acs_entry *holder = wait_holder(slots, &slot_waits[s], s);
        uint64_t stamp = holder ? holder->issue_stamp : 0;
        uint32_t at = count++;
        for (; at > 0 && stamps[at - 1] < stamp; at--) {
            stamps[at] = stamps[at - 1];
            order[at] = order[at - 1];
        }
        stamps[at] = stamp;
        order[at] = (uint8_t)s;
    }
    return count;
}

static void learn(const acs_slots *slots, placement *plan, const acs_slot_wait *slot_wait, uint32_t s)
{
    const acs_entry *holder = wait_holder(slots, slot_wait, s);
    if (holder) {
        const uint64_t *clock = acs_entry_clock(slots->window, holder);
        for (uint32_t t = 0; t < slots->used; t++)
            if (t != s && plan->known[t] < clock[t])
                plan->known[t] = clock[t];
    }
    if (plan->known[s] < slot_wait->value)
        plan->known[s] = slot_wait->value;
}

/* Plan the waits of an op. False: a mark cannot be had now. */
static bool plan_waits(const acs_slots *slots, const acs_entry *entry, uint64_t batch_id, placement *plan)
{
    const acs_slot_wait *slot_waits = acs_entry_waits(slots->window, entry);
    uint8_t order[ACS_SLOTS_MAX];
    uint32_t count = sort_waits(slots, entry, order);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t s = order[i];
        const acs_slot *slot = &slots->slot[s];
        if ((int)s == plan->slot) {
            plan->same++;
            continue;
        }
        if (acs_slot_reached(slot, slot_waits[s].value)) {
            plan->complete++;
            continue;
        }
        if (plan->known[s] >= slot_waits[s].value) {
            plan->implied++;
            continue;
        }
        const acs_mark *mark = acs_mark_find(slots, slot, slot_waits[s].value, batch_id);
        bool fresh =
            !mark && acs_slot_free(slot, batch_id) && slot->marked < slot_waits[s].value && acs_mark_room(slots, slot);
        if (!mark && !fresh)
            return false;
        uint32_t at = plan->wait_count++;
        plan->wait_slot[at] = (uint8_t)s;
        plan->wait_new[at] = fresh;
        if (mark)
            plan->wait_mark[at] = *mark;
        learn(slots, plan, &slot_waits[s], s);
        /* the mark may be behind later values than the wait asks for */
        uint64_t behind = mark ? mark->value : slot->issued;
        if (plan->known[s] < behind)
            plan->known[s] = behind;
    }
    return true;
}

/* The newest op of the chosen slot gets a mark before it is hidden, if other ops must or may still wait for it. */
static void plan_displacement(const acs_slots *slots, const acs_entry *entry, placement *plan)
{
    const acs_slot *slot = &slots->slot[plan->slot];
    const acs_entry *newest = acs_slot_newest(slots, slot);
    if (!newest || slot->marked == slot->issued || acs_slot_reached(slot, slot->issued))
        return;
    if (slots->limit == 1 && slots->devices == 1)
        return; /* no other slot waits for it */
    const acs_slot_wait *slot_wait = &acs_entry_waits(slots->window, entry)[plan->slot];
    bool behind = (entry->wait_mask >> plan->slot & 1) && slot_wait->value == slot->issued;
    uint32_t others = newest->waiters - (behind && newest->state == ACS_ENTRY_ISSUING && newest->waiters ? 1 : 0);
    uint32_t claims = newest->pending_waits - (behind && (entry->pending_wait_mask >> plan->slot & 1) ? 1 : 0);
    plan->displaces = acs_entry_hold(slots->window, newest)->refs > 0 || others > 0 || claims > 0;
}

static bool batch_has_room(const acs_batch *batch, uint32_t waits)
{
    return batch->items_used < ACS_BATCH_ITEMS && batch->waits_used + waits <= ACS_BATCH_WAITS &&
           batch->marks_used + waits + 1 <= ACS_BATCH_MARKS;
}

/* ------------------------------------------------------------------------------------------------------------ place */

static void apply_waits(acs_slots *slots, acs_batch *batch, uint64_t batch_id, const placement *plan, acs_item *item)
{
    item->first_mark = (uint16_t)batch->marks_used;
    item->first_wait = (uint16_t)batch->waits_used;
    if (plan->displaces)
        batch->marks[batch->marks_used++] = acs_mark_add(slots, (uint32_t)plan->slot);
    for (uint32_t i = 0; i < plan->wait_count; i++) {
        acs_mark mark = plan->wait_mark[i];
        if (plan->wait_new[i]) {
            mark = acs_mark_add(slots, plan->wait_slot[i]);
            slots->slot[plan->wait_slot[i]].batch = batch_id;
            batch->marks[batch->marks_used++] = mark;
        }
        batch->waits[batch->waits_used++] = mark;
    }
    ACS_ASSERT(batch->marks_used <= ACS_BATCH_MARKS && batch->waits_used <= ACS_BATCH_WAITS);
    item->mark_count = (uint16_t)(batch->marks_used - item->first_mark);
    item->wait_count = (uint16_t)plan->wait_count;
    slots->counters.same_slot += plan->same;
    slots->counters.waits_sent += plan->wait_count;
    slots->counters.waits_implied += plan->implied;
    slots->counters.waits_complete += plan->complete;
}

/*
 * Give the slot's next value to the op; a replay takes one for each of its ops, and the last one names its end.
 * `clock`: the entry at whose place the op's clock is kept.
 */
static void give_value(acs_slots *slots, uint32_t s, acs_entry *entry, uint32_t clock, acs_item *item)
{
    acs_slot *slot = &slots->slot[s];
    ACS_ASSERT(s < slots->used);                            /* SLOT-3 */
    ACS_ASSERT(acs_slot_device(slots, s) == entry->device); /* SLOT-5 */
    ACS_ASSERT(slot->completed <= slot->issued);            /* SLOT-1 */
    slot->outstanding++;
    slot->share = entry->share; /* SLOT-6 */
    slots->shares |= entry->share != 0;
    entry->slot = (int16_t)s;
    slot->issued += ACS_UNLIKELY(entry->kind == ACS_KIND_REPLAY) ? entry->op->u.replay.replay->count : 1;
    entry->value = slot->issued;
    entry->clock = clock;
    entry->issue_stamp = ++slots->issue_stamp;
    slot->newest = (acs_ref){entry->index, acs_entry_hold(slots->window, entry)->generation};
    slot->clock[s] = entry->value;
    item->slot = (int16_t)s;
    item->value = entry->value;
    item->share = entry->share;
}

/* Copy the slot's clock to the place of the op that got its newest value. */
static void keep_clock(acs_slots *slots, const acs_entry *entry)
{
    memcpy(acs_entry_clock(slots->window, entry), slots->slot[entry->slot].clock, slots->used * sizeof(uint64_t));
}

/* For assertions: `from` is nowhere above `to`, and `to` nowhere above the values given out. */
static inline bool is_clock_behind(const acs_slots *slots, const uint64_t *from, const uint64_t *to)
{
    for (uint32_t s = 0; s < slots->used; s++)
        if (from[s] > to[s] || to[s] > slots->slot[s].issued)
            return false;
    return true;
}

static void take_slot(acs_slots *slots, uint64_t batch_id, const placement *plan)
{
    acs_slot *slot = &slots->slot[plan->slot];
    ACS_ASSERT(acs_slot_free(slot, batch_id));
    ACS_ASSERT(is_clock_behind(slots, slot->clock, plan->known)); /* SLOT-1, SLOT-4 */
    slot->batch = batch_id;
    memcpy(slot->clock, plan->known, slots->used * sizeof(uint64_t));
}

static void mark_after(acs_slots *slots, acs_item *item)
{
    item->mark_after = true;
    item->after = acs_mark_add(slots, (uint32_t)item->slot);
}

static void mark_now_and_then(acs_slots *slots, acs_item *item)
{
    const acs_slot *slot = &slots->slot[item->slot];
    if (slot->issued - slot->marked >= slots->mark_interval && acs_mark_room(slots, slot))
        mark_after(slots, item);
}

/*
 * Plan everything that placing the op takes. `bundle`: the op is the first of one, so a mark follows, and another slot
 * costs less than a place behind ops that are not upstream.
 */
static bool plan_place(acs_slots *slots, const acs_batch *batch, uint64_t batch_id, const acs_entry *entry,
                       bool bundle, placement *plan)
{
    bool foreign = entry->kind == ACS_KIND_STREAM_SIGNAL;
    plan->displaces = false;
    plan->wait_count = 0;
    plan->implied = plan->complete = plan->same = 0;
    plan->slot = foreign ? -1 : acs_slots_choose(slots, entry, batch_id, bundle);
    if (!foreign && plan->slot < 0)
        return false;
    if (foreign)
        memset(plan->known, 0, sizeof plan->known);
    else
        memcpy(plan->known, slots->slot[plan->slot].clock, slots->used * sizeof(uint64_t));
    if (!plan_waits(slots, entry, batch_id, plan) || !batch_has_room(batch, plan->wait_count))
        return false;
    if (foreign)
        return true;
    plan_displacement(slots, entry, plan);
    return slots->slot[plan->slot].mark_count + plan->displaces + bundle <= slots->mark_capacity;
}

static acs_item *add_item(acs_batch *batch, acs_record *op)
{
    ACS_ASSERT(batch->items_used < ACS_BATCH_ITEMS);
    acs_item *item = &batch->items[batch->items_used++];
    memset(item, 0, sizeof *item);
    item->op = op;
    item->slot = -1;
    return item;
}

bool acs_slots_place(acs_slots *slots, acs_batch *batch, uint64_t batch_id, acs_entry *entry)
{
    placement plan;
    const bool replay = entry->kind == ACS_KIND_REPLAY;
    if (!plan_place(slots, batch, batch_id, entry, replay, &plan))
        return false;
    acs_item *item = add_item(batch, entry->op);
    apply_waits(slots, batch, batch_id, &plan, item);
    acs_entry_drop_pending_waits(slots->window, entry);
    if (plan.slot < 0)
        return true;
    take_slot(slots, batch_id, &plan);
    give_value(slots, (uint32_t)plan.slot, entry, entry->index, item);
    keep_clock(slots, entry);
    if (ACS_UNLIKELY(replay))
        mark_after(slots, item);
    else
        mark_now_and_then(slots, item);
    return true;
}

/* Add the slot waits of `from` to those of `entry`, without counting them as pending: it is about to be placed. */
static void absorb_waits(acs_window *w, acs_entry *entry, const acs_entry *from)
{
    acs_slot_wait *mine = acs_entry_waits(w, entry);
    const acs_slot_wait *slot_waits = acs_entry_waits(w, from);
    for (uint64_t mask = from->wait_mask; mask; mask &= mask - 1) {
        uint32_t s = (uint32_t)__builtin_ctzll(mask);
        if (!(entry->wait_mask >> s & 1) || mine[s].value < slot_waits[s].value)
            mine[s] = slot_waits[s];
        entry->wait_mask |= 1ull << s;
    }
}

/*
 * The first op gets the slot waits of all, also those that joins stand for. If it cannot be placed now, its own waits
 * are restored, since it may be launched alone later.
 */
static bool plan_bundle(acs_slots *slots, const acs_batch *batch, uint64_t batch_id, const uint32_t *entries,
                        uint32_t count, placement *plan)
{
    acs_window *w = slots->window;
    acs_entry *first = acs_window_entry(w, entries[0]);
    acs_slot_wait own[ACS_SLOTS_MAX];
    uint64_t mask = first->wait_mask;
    if (mask)
        memcpy(own, acs_entry_waits(w, first), slots->used * sizeof *own);
    acs_entry_drop_pending_waits(w, first);
    ACS_ASSERT(first->kind != ACS_KIND_JOIN);
    for (uint32_t i = 1; i < count; i++)
        absorb_waits(w, first, acs_window_entry(w, entries[i]));
    if (plan_place(slots, batch, batch_id, first, true, plan))
        return true;
    acs_entry_set_waits(w, first, mask, own);
    return false;
}

/* All ops of a bundle share the clock of the last op, which ends last, except for their own slot. */
bool acs_slots_place_bundle(acs_slots *slots, acs_batch *batch, uint64_t batch_id, const uint32_t *entries,
                            uint32_t count)
{
    acs_window *w = slots->window;
    placement plan;
    if (!plan_bundle(slots, batch, batch_id, entries, count, &plan))
        return false;
    uint32_t last = count - 1;
    while (acs_window_entry(w, entries[last])->kind == ACS_KIND_JOIN)
        last--;
    take_slot(slots, batch_id, &plan);
    for (uint32_t i = 0; i < count; i++) {
        acs_entry *entry = acs_window_entry(w, entries[i]);
        acs_item *item = add_item(batch, entry->op);
        if (i == 0)
            apply_waits(slots, batch, batch_id, &plan, item);
        if (entry->kind == ACS_KIND_JOIN)
            continue;
        give_value(slots, (uint32_t)plan.slot, entry, entries[last], item);
        acs_entry_drop_pending_waits(w, entry);
    }
    keep_clock(slots, acs_window_entry(w, entries[last]));
    mark_after(slots, &batch->items[last]);
    return true;
}

void acs_slots_mark_tails(acs_slots *slots, acs_batch *batch, uint64_t batch_id, uint64_t of)
{
    ACS_ASSERT(batch->items_used < ACS_BATCH_ITEMS);
    acs_item *item = &batch->items[batch->items_used];
    memset(item, 0, sizeof *item);
    item->slot = -1;
    item->first_mark = (uint16_t)batch->marks_used;
    for (uint32_t s = 0; s < slots->used; s++) {
        acs_slot *slot = &slots->slot[s];
        bool wants = (of >> s & 1) && slot->outstanding && slot->marked < slot->issued;
        if (!wants || slot->batch || !acs_mark_room(slots, slot))
            continue;
        slot->batch = batch_id;
        batch->marks[batch->marks_used++] = acs_mark_add(slots, s);
    }
    item->mark_count = (uint16_t)(batch->marks_used - item->first_mark);
    batch->items_used += item->mark_count > 0;
}

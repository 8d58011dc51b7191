/*
 * Slots: which one a ready op goes to, and how many of a device take part (see slots.h). Called by slots.c,
 * slots_marks.c and step.c under the core's lock. It changes only the number of active slots, and the state that
 * decides it.
 */
#include "scheduler/slots_internal.h"

#include "base/tuning.h"

/* ----------------------------------------------------------------------------------------------------------- choice */

/* The slot with this number among those of a device. */
static uint32_t slot_of(const acs_slots *slots, uint32_t device, uint32_t number)
{
    return number * slots->devices + device;
}

static bool is_of(const acs_slots *slots, uint32_t s, uint32_t device)
{
    return acs_slot_device(slots, s) == device;
}

/* The newest op that is in the slot for certain: later values may belong to refused ops, or to none. */
static const acs_entry *slot_last(const acs_slots *slots, uint32_t s)
{
    const acs_slot *slot = &slots->slot[s];
    const acs_entry *newest = acs_slot_newest(slots, slot);
    if (newest && newest->slot == (int)s)
        return newest;
    return slot->tail ? &slots->window->entries[slot->tail] : NULL;
}

/*
 * HuntKTm's first rule: behind an upstream op that is last in its slot; of several, the one with the fewest waiting
 * successors.
 */
static int choose_behind(const acs_slots *slots, const acs_entry *entry, uint64_t batch_id)
{
    const acs_slot_wait *slot_waits = acs_entry_waits(slots->window, entry);
    int best = -1;
    uint32_t fewest = UINT32_MAX;
    for (uint64_t mask = entry->wait_mask; mask; mask &= mask - 1) {
        int s = __builtin_ctzll(mask);
        const acs_slot *slot = &slots->slot[s];
        const acs_entry *last = slot_last(slots, (uint32_t)s);
        if (!last || slot_waits[s].value != last->value || acs_slot_reached(slot, last->value) ||
            !acs_slot_free(slot, batch_id) || !is_of(slots, (uint32_t)s, entry->device) || slot->share != entry->share)
            continue;
        if (last->waiters < fewest) {
            fewest = last->waiters;
            best = s;
        }
    }
    return best;
}

/*
 * The device's active slot with the fewest ops out, the first idle one if any, for an op that may take the whole device.
 * An idle slot whose last op had a share comes behind the other idle ones. -1: other batches own all, or ops with shares
 * are in them.
 */
static int choose_emptiest(const acs_slots *slots, uint32_t device, uint64_t batch_id)
{
    int best = -1;
    uint64_t fewest = UINT64_MAX;
    for (uint32_t k = 0; k < slots->banks[device].active && fewest > 0; k++) {
        uint32_t s = slot_of(slots, device, k);
        const acs_slot *slot = &slots->slot[s];
        const uint64_t fullness = 2 * (uint64_t)slot->outstanding + (slot->share != 0);
        if (!acs_slot_free(slot, batch_id) || fullness >= fewest || (slot->share && slot->outstanding))
            continue;
        fewest = fullness;
        best = (int)s;
    }
    return best;
}

/*
 * Activate one more slot, which has fewer than `fewest` ops out, with those before it that ops with shares are in. -1:
 * none is left, another batch owns it, or a poll must first show that it is useful. If the op cannot be placed after all,
 * the slot is the emptiest for the next one.
 */
static int activate_slot(acs_slots *slots, uint32_t device, uint32_t fewest, uint64_t batch_id)
{
    acs_bank *bank = &slots->banks[device];
    uint32_t next = bank->active, s = slot_of(slots, device, next);
    while (next < slots->limit && slots->slot[s].share && slots->slot[s].outstanding)
        s = slot_of(slots, device, ++next);
    if (next == slots->limit)
        return -1;
    if (slots->slot[s].outstanding >= fewest || !acs_slot_free(&slots->slot[s], batch_id))
        return -1;
    if (bank->may_grow == 0 && !slots->eager) {
        bank->wants_poll = true;
        return -1;
    }
    if (bank->may_grow > 0)
        bank->may_grow--;
    bank->active = next + 1;
    ACS_ASSERT(bank->active <= slots->limit && is_of(slots, s, device)); /* SLOT-3, SLOT-5 */
    ACS_ASSERT(s < slots->used || slots->slot[s].issued == 0);           /* SLOT-3 */
    slots->slot[s].completed_before = slots->slot[s].completed;
    if (slots->used <= s)
        slots->used = s + 1;
    return (int)s;
}

/*
 * Ops that a poll saw not to have ended. Later ops may have ended unseen: while one thread polls and others issue,
 * queues look deep that are empty.
 */
static uint32_t seen_out(const acs_slot *slot)
{
    const uint64_t seen = slot->looked_at > slot->completed ? slot->looked_at - slot->completed : 0;
    return seen < slot->outstanding ? (uint32_t)seen : slot->outstanding;
}

/* As if no long op was ever seen, except that slots close one at a time. */
static void forget(acs_slots *slots, acs_bank *bank)
{
    bank->deep_now = slots->deep;
    bank->may_grow = 0;
    if (bank->active > slots->first)
        bank->active--;
}

/*
 * A new burst begins: judge the last one. After TUNE_SLOTS_QUICK_BURSTS bursts in which no poll saw the device busy,
 * what long ops showed is forgotten. A burst of few ops shows nothing, and counts with the next.
 */
static void pause_ends(acs_slots *slots, acs_bank *bank)
{
    bank->pause = false;
    if (bank->burst < TUNE_SLOTS_BURST_OPS && !bank->busy)
        return;
    bank->quick_bursts = bank->busy ? 0 : bank->quick_bursts + 1;
    if (bank->quick_bursts >= TUNE_SLOTS_QUICK_BURSTS)
        forget(slots, bank);
    bank->burst = 0;
    bank->busy = false;
}

void acs_slots_fed(acs_slots *slots, const acs_entry *entry)
{
    acs_bank *bank = &slots->banks[entry->device];
    ACS_ASSERT(entry->slot >= 0 && is_of(slots, (uint32_t)entry->slot, entry->device)); /* SLOT-5 */
    if (entry->share) /* its slot shows nothing of how many slots other ops need */
        return;
    if (bank->pause)
        pause_ends(slots, bank);
    bank->burst++;
    bank->looked = 0;
    bank->fed |= 1ull << entry->slot;
}

bool acs_slots_all_looked_at(const acs_slots *slots, uint32_t device)
{
    const acs_bank *bank = &slots->banks[device];
    for (uint32_t k = 0; k < bank->active; k++) {
        uint32_t s = slot_of(slots, device, k);
        if (slots->slot[s].outstanding > 0 && !slots->slot[s].share && !(bank->looked >> s & 1))
            return false;
    }
    return true;
}

/*
 * Whether ops pass through the slot quickly: it got ops since all slots were polled and is empty, or several ended
 * there.
 */
static bool kept_up(const acs_bank *bank, uint32_t s, const acs_slot *slot)
{
    bool fed = bank->fed >> s & 1;
    return fed && (slot->outstanding == 0 || slot->completed >= slot->completed_before + TUNE_SLOTS_KEPT_UP_OPS);
}

/*
 * If every queue is deep, up to twice as many slots may become active.
 *
 * The device takes the time if there is little to issue, and TUNE_SLOTS_IDLE_POLLS polls in a row see at least
 * TUNE_SLOTS_BUSY_OPS ops out. Then a queue of one op counts as deep, since more slots let the device run more at once.
 * Otherwise programs that launch a few kernels of 50 us and wait for them would never get more than the first slots.
 *
 * Ops with shares, and their slots, do not count.
 *
 * This holds for the next launches too, until they are seen to pass quickly, or go in bundles. (Kernels of a bundle
 * run side by side in one slot.) Then slots close again, one at a time.
 */
void acs_slots_polled(acs_slots *slots, uint32_t device, bool idle, bool bundled)
{
    acs_bank *bank = &slots->banks[device];
    uint32_t shallowest = UINT32_MAX, fewest = UINT32_MAX, out = 0, empty = 0;
    bool quick = bundled;
    const bool held = bank->unknown && bank->wants_poll;
    bank->held_ns = held ? bank->held_ns : 0;
    for (uint32_t k = 0; k < bank->active; k++) {
        const uint32_t s = slot_of(slots, device, k);
        acs_slot *slot = &slots->slot[s];
        const uint32_t seen = seen_out(slot);
        if (slot->share && slot->outstanding)
            continue;
        fewest = slot->outstanding < fewest ? slot->outstanding : fewest;
        shallowest = seen < shallowest ? seen : shallowest;
        out += seen;
        empty += slot->outstanding == 0;
        quick |= kept_up(bank, s, slot);
        slot->completed_before = slot->completed;
    }
    ACS_ASSERT(bank->active >= slots->first && bank->active <= slots->limit); /* SLOT-3 */
    bank->looked = bank->fed = 0;
    bank->wants_poll = false;
    bank->pause = idle;
    bank->idle_polls = idle && out >= TUNE_SLOTS_BUSY_OPS ? bank->idle_polls + 1 : 0;
    bank->busy |= idle && out > TUNE_SLOTS_BUSY_OPS;
    if (bank->idle_polls >= TUNE_SLOTS_IDLE_POLLS)
        bank->deep_now = 1;
    if (held && (idle || 2 * empty >= bank->active)) {
        bank->unknown = false;
        if (2 * empty >= bank->active)
            return;
        bank->deep_now = 1;
        bank->may_grow = slots->limit;
        return;
    }
    const bool behind = shallowest >= bank->deep_now;
    if (behind)
        bank->may_grow = bank->active;
    else if (bank->deep_now > 1 || (quick && !idle))
        bank->may_grow = 0;
    if (idle || !quick)
        return;
    bank->deep_now = slots->deep;
    if ((fewest <= 1 || out < slots->first) && bank->active > slots->first)
        bank->active--;
}

/* The emptiest of the slots of its share that hold an upstream op, even if other ops follow it there; -1: none. */
static int choose_upstream(const acs_slots *slots, const acs_entry *entry, uint64_t batch_id)
{
    const acs_slot_wait *slot_waits = acs_entry_waits(slots->window, entry);
    int best = -1;
    uint32_t fewest = UINT32_MAX;
    for (uint64_t mask = entry->wait_mask; mask; mask &= mask - 1) {
        int s = __builtin_ctzll(mask);
        const acs_slot *slot = &slots->slot[s];
        if (acs_slot_reached(slot, slot_waits[s].value) || !acs_slot_free(slot, batch_id) ||
            slot->outstanding >= fewest || !is_of(slots, (uint32_t)s, entry->device) || slot->share != entry->share)
            continue;
        fewest = slot->outstanding;
        best = s;
    }
    return best;
}

/*
 * Whether the op should wait while another thread submits to its slot: it has one slot wait, for the last op there. So
 * a chain stays in one slot.
 */
static bool stays_behind(const acs_slots *slots, const acs_entry *entry, uint64_t batch_id)
{
    uint64_t mask = entry->wait_mask;
    if (!mask || (mask & (mask - 1)))
        return false;
    uint32_t s = (uint32_t)__builtin_ctzll(mask);
    const acs_slot *slot = &slots->slot[s];
    const acs_entry *last = slot_last(slots, s);
    return is_of(slots, s, entry->device) && !acs_slot_free(slot, batch_id) && last && slot->share == entry->share &&
           acs_entry_waits(slots->window, entry)[s].value == last->value && !acs_slot_reached(slot, last->value);
}

/*
 * Whether the op belongs in a slot of its own: behind a large copy ops would wait for a copy engine that they do not need,
 * and a priority is worth nothing behind others.
 */
static bool wants_own_slot(const acs_entry *entry)
{
    return (entry->kind == ACS_KIND_MEMCPY && acs_record_copied(entry->op) >= TUNE_COPY_LARGE) ||
           (entry->kind == ACS_KIND_KERNEL && entry->op->u.launch.attributes.priority);
}

/* The slots of a device as an op with a share sees them; -1: there is none. */
typedef struct offers {
    int idle;    /* of its share, idle */
    int spare;   /* idle, and not active or of another share */
    int active;  /* idle, active, without a share: the last one, since ops without a share prefer the first */
    int same;    /* of its share, the emptiest */
    int emptiest;
    uint32_t whole; /* active slots without a share */
} offers;

static bool is_emptier(const acs_slots *slots, const acs_slot *slot, int than)
{
    return than < 0 || slot->outstanding < slots->slot[than].outstanding;
}

static offers look_for_share(const acs_slots *slots, const acs_entry *entry, uint64_t batch_id)
{
    offers o = {-1, -1, -1, -1, -1, 0};
    const uint32_t active = slots->banks[entry->device].active;
    for (uint32_t k = 0; k < slots->limit; k++) {
        const int s = (int)slot_of(slots, entry->device, k);
        const acs_slot *slot = &slots->slot[s];
        o.whole += k < active && !slot->share;
        if (!acs_slot_free(slot, batch_id))
            continue;
        const bool idle = slot->outstanding == 0, same = slot->share == entry->share;
        if (idle && same && o.idle < 0)
            o.idle = s;
        if (idle && (k >= active || slot->share) && o.spare < 0)
            o.spare = s;
        if (idle && k < active && !slot->share)
            o.active = s;
        if (same && is_emptier(slots, slot, o.same))
            o.same = s;
        if (is_emptier(slots, slot, o.emptiest))
            o.emptiest = s;
    }
    return o;
}

/* The slot may be issued to. */
static void use_slot(acs_slots *slots, uint32_t s)
{
    ACS_ASSERT(s < slots->used || slots->slot[s].issued == 0); /* SLOT-3 */
    if (slots->used <= s)
        slots->used = s + 1;
}

/*
 * An op with a share that is behind no last op of its share: an idle slot of its share, or an idle one that becomes one of
 * its share. One active slot is left to ops without a share, if possible. Else the op queues, with others of its share if
 * there are any. It never waits for a slot, so it cannot be stuck: with a stream or two it is behind ops of other shares.
 */
static int choose_for_share(acs_slots *slots, const acs_entry *entry, uint64_t batch_id)
{
    const offers o = look_for_share(slots, entry, batch_id);
    int best = o.idle >= 0 ? o.idle : o.spare >= 0 ? o.spare : o.whole > 1 ? o.active : -1;
    if (best < 0 && o.same >= 0) {
        const int upstream = choose_upstream(slots, entry, batch_id);
        best = upstream >= 0 && !is_emptier(slots, &slots->slot[o.same], upstream) ? upstream : o.same;
    }
    if (best < 0)
        best = o.active >= 0 ? o.active : o.emptiest;
    if (best >= 0)
        use_slot(slots, (uint32_t)best);
    return best;
}

/*
 * No active slot can take an op without a share. If ops with shares are in all of them it gets another slot, even if it
 * waits there for such ops. -1: other batches own the slots.
 */
static int choose_among_shares(acs_slots *slots, const acs_entry *entry, uint64_t batch_id)
{
    const offers o = look_for_share(slots, entry, batch_id); /* with its share, 0 */
    const int best = o.whole ? -1 : o.spare >= 0 ? o.spare : o.same >= 0 ? o.same : o.emptiest;
    if (best >= 0)
        use_slot(slots, (uint32_t)best);
    return best;
}

/*
 * HuntKTm's rules: behind an upstream op that is last in its slot, or else in an idle slot. Otherwise the op must
 * queue. If all queues are deep the device is behind, and another slot may let it run more at once. Else it goes into
 * the emptiest slot, or into that of an upstream op if as empty: a wait costs 0.1 us, a place behind ops that are not
 * upstream costs more. A bundle, a large copy or an op with a priority gets a slot of its own as long as there is one.
 */
int acs_slots_choose(acs_slots *slots, const acs_entry *entry, uint64_t batch_id, bool bundle)
{
    if (stays_behind(slots, entry, batch_id))
        return -1;
    int best = choose_behind(slots, entry, batch_id);
    if (best >= 0)
        return best;
    if (ACS_UNLIKELY(entry->share))
        return choose_for_share(slots, entry, batch_id);
    best = choose_emptiest(slots, entry->device, batch_id);
    if (ACS_UNLIKELY(best < 0) && slots->shares)
        return choose_among_shares(slots, entry, batch_id);
    if (best < 0 || slots->slot[best].outstanding == 0)
        return best;
    acs_bank *bank = &slots->banks[entry->device];
    const bool apart = bundle || wants_own_slot(entry);
    const bool short_of = slots->starved && bank->active < slots->limit && entry->kind != ACS_KIND_CALL;
    if ((ACS_UNLIKELY(bank->unknown) && entry->kind != ACS_KIND_CALL) || (short_of && bank->fed && !apart)) {
        bank->wants_poll = true;
        return -1;
    }
    uint32_t fewest = slots->slot[best].outstanding;
    bank->may_grow += (apart || short_of) && bank->may_grow == 0;
    /* A library call makes a handle and memory in each slot: 13 us per op of a tiled Cholesky's first run. */
    const uint32_t deep = entry->kind == ACS_KIND_CALL ? slots->deep : bank->deep_now;
    int more = apart || short_of || fewest >= deep ? activate_slot(slots, entry->device, fewest, batch_id) : -1;
    if (more >= 0)
        return more;
    int upstream = choose_upstream(slots, entry, batch_id);
    bool as_empty = upstream >= 0 && slots->slot[upstream].outstanding <= fewest;
    return as_empty ? upstream : best;
}

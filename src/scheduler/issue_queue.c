/*
 * The queues of issuing threads (issue_queue.h): a ring for each slot. Called by backends that issue with several
 * threads, and by the core once an op has failed. Makes no threads, takes no lock, and never sleeps.
 *
 * A  give: fill commands, store `tail` with release; who carries out: load acquire. Broken: a thread carries out garbage.
 * B  carry a command out, store `head` with release; give, acs_issue_queue_idle: load acquire. Broken: a command is
 *    overwritten while it is read, or two threads issue to a stream at once.
 * C  record a mark, store `recorded` with release; other threads: load acquire, then wait for the mark. Broken: a wait
 *    for an event that is not recorded, which is no wait.
 * D  claim a slot by setting its bit in `claimed`, clear it; both acquire and release. Broken: two threads at one ring.
 * E  an op that fails: store `halted` with release, then C. So who depends on the op sees `halted`: load acquire.
 * F  claim a slot, then load `halted`. Who fails has a claim, and clears it behind E: a later claim reads that, and so sees
 *    `halted`; an earlier one is still there when acs_issue_queue_stands finds no claim. Broken: the core changes commands
 *    that a thread carries out. acs_issue_queue_resume: store with release; so the next claim sees what was changed.
 * G  give: A, then set the slot's bit in `filled`; who finds the ring empty clears the bit, then loads `tail` again; both
 *    read-modify-writes acquire and release. Broken: a command that nobody looks for.
 */
#include "scheduler/issue_queue.h"

#include "scheduler/backend.h"

#include <stdlib.h>

typedef struct ring {
    _Alignas(ACS_CACHE_LINE) _Atomic(uint64_t) tail; /* commands given */
    acs_command *commands;
    _Alignas(ACS_CACHE_LINE) _Atomic(uint64_t) head; /* commands carried out */
    _Atomic(uint64_t) recorded;                      /* value of the newest mark that is recorded */
} ring;

struct acs_issue_queue {
    uint32_t slots, capacity;
    _Atomic(bool) halted;
    _Alignas(ACS_CACHE_LINE) _Atomic(uint64_t) filled; /* one bit per slot that may have commands */
    _Atomic(uint64_t) claimed;                         /* one bit per slot whose commands a thread carries out */
    ring ring[ACS_BACKEND_SLOTS_MOST];
};

acs_status acs_issue_queue_create(uint32_t slots, uint32_t commands, acs_issue_queue **queue)
{
    const uint32_t capacity = acs_round_up_pow2(commands);
    acs_issue_queue *q = acs_zeros(1, sizeof *q);
    acs_command *all = acs_zeros((size_t)slots * capacity, sizeof *all);
    if (!q || !all) {
        acs_zeros_free(all);
        acs_zeros_free(q);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the queues of threads that issue");
    }
    q->slots = slots;
    q->capacity = capacity;
    for (uint32_t s = 0; s < slots; s++)
        q->ring[s].commands = all + (size_t)s * capacity;
    *queue = q;
    return ACS_OK;
}

void acs_issue_queue_destroy(acs_issue_queue *q)
{
    if (!q)
        return;
    acs_zeros_free(q->ring[0].commands); /* all slots' */
    acs_zeros_free(q);
}

/* ------------------------------------------------------------------------------------------------------------- state */

/* A count, with which no data goes. */
static uint64_t count_left(const ring *r)
{
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    return atomic_load_explicit(&r->tail, memory_order_relaxed) - head;
}

uint64_t acs_issue_queue_load(const acs_issue_queue *q)
{
    uint64_t sum = 0;
    /* relaxed: a hint */
    for (uint64_t left = atomic_load_explicit(&q->filled, memory_order_relaxed); left; left &= left - 1)
        sum += count_left(&q->ring[__builtin_ctzll(left)]);
    return sum;
}

bool acs_issue_queue_busy(const acs_issue_queue *q)
{
    return atomic_load_explicit(&q->filled, memory_order_acquire) || /* G; a slot whose ring became empty is still claimed */
           atomic_load_explicit(&q->claimed, memory_order_acquire);  /* D */
}

bool acs_issue_queue_idle(const acs_issue_queue *q, uint32_t s)
{
    const uint64_t head = atomic_load_explicit(&q->ring[s].head, memory_order_acquire); /* B */
    return head == atomic_load_explicit(&q->ring[s].tail, memory_order_relaxed); /* relaxed: who has the slot stores it */
}

uint64_t acs_issue_queue_recorded(const acs_issue_queue *q, uint32_t s)
{
    return atomic_load_explicit(&q->ring[s].recorded, memory_order_acquire); /* C */
}

void acs_issue_queue_record(acs_issue_queue *q, const acs_mark *mark)
{
    atomic_store_explicit(&q->ring[mark->slot].recorded, mark->value, memory_order_release); /* C */
}

bool acs_issue_queue_halted(const acs_issue_queue *q)
{
    return atomic_load_explicit(&q->halted, memory_order_acquire); /* E, F */
}

/* -------------------------------------------------------------------------------------------------------------- give */

static acs_command *at(const acs_issue_queue *q, const ring *r, uint64_t number)
{
    return &r->commands[number & (q->capacity - 1)];
}

/*
 * Give commands of one slot. Ops leave half of the room to marks and waits, which are given to halted queues, too. False: no
 * room, or an op to halted queues.
 */
static bool give(acs_issue_queue *q, const acs_command *commands, uint32_t count)
{
    const uint32_t s = commands->slot;
    ring *r = &q->ring[s];
    const bool op = commands[count - 1].type == ACS_COMMAND_OP;
    const uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed); /* relaxed: this thread alone stores it */
    const uint64_t left = tail - atomic_load_explicit(&r->head, memory_order_acquire); /* B */
    if (left + count > (op ? q->capacity / 2 : q->capacity) || (op && acs_issue_queue_halted(q)))
        return false;
    for (uint32_t i = 0; i < count; i++)
        *at(q, r, tail + i) = commands[i];
    atomic_store_explicit(&r->tail, tail + count, memory_order_release);            /* A */
    atomic_fetch_or_explicit(&q->filled, 1ull << s, memory_order_acq_rel); /* G */
    return true;
}

static acs_command wait_command(const acs_item *item, const acs_mark *mark)
{
    return (acs_command){.type = ACS_COMMAND_WAIT, .mark = *mark, .slot = (uint16_t)item->slot, .share = item->share};
}

static bool give_wait(acs_issue_queue *q, const acs_item *item, const acs_mark *mark)
{
    const acs_command command = wait_command(item, mark);
    return give(q, &command, 1);
}

static bool give_item(acs_issue_queue *q, const acs_batch *batch, const acs_item *item)
{
    acs_command commands[ACS_BACKEND_SLOTS_MOST + 1];
    const uint32_t waits = item->wait_count;
    ACS_ASSERT(waits <= ACS_BACKEND_SLOTS_MOST);
    for (uint32_t i = 0; i < waits; i++)
        commands[i] = wait_command(item, &batch->waits[item->first_wait + i]);
    commands[waits] = (acs_command){.type = ACS_COMMAND_OP, .op = item->op, .mark = item->after,
                                    .marks = item->mark_after, .value = item->value, .slot = (uint16_t)item->slot,
                                    .share = item->share};
    return give(q, commands, waits + 1);
}

/* Wait until all that was given to the slot is carried out. False: the queues are halted. */
static bool reach_idle(acs_issue_queue *q, uint32_t s, const acs_issue_ops *ops, void *user)
{
    while (!acs_issue_queue_idle(q, s)) {
        if (acs_issue_queue_halted(q) && !ops->lost(user))
            return false;
        ops->pause(user);
    }
    return true;
}

/* Wait until a mark is recorded. False: the queues are halted. */
static bool reach_mark(acs_issue_queue *q, const acs_mark *mark, const acs_issue_ops *ops, void *user)
{
    while (acs_issue_queue_recorded(q, mark->slot) < mark->value) {
        if (ops->lost(user))
            return true;
        if (acs_issue_queue_halted(q))
            return false;
        ops->pause(user);
    }
    return true;
}

void acs_issue_queue_send_mark(acs_issue_queue *q, const acs_mark *mark, bool takers, const acs_issue_ops *ops, void *user)
{
    const acs_command command = {.type = ACS_COMMAND_MARK, .mark = *mark, .slot = mark->slot};
    if (takers && give(q, &command, 1))
        return;
    if (acs_issue_queue_idle(q, mark->slot) || reach_idle(q, mark->slot, ops, user)) {
        ops->mark(user, mark);
        acs_issue_queue_record(q, mark);
    } else if (!give(q, &command, 1)) {
        ops->full(user);
    }
}

acs_issue_way acs_issue_queue_send(acs_issue_queue *q, const acs_batch *batch, const acs_item *item, bool takers,
                                   bool gives, const acs_issue_ops *ops, void *user)
{
    const bool in_slot = item->slot >= 0;
    for (uint32_t i = 0; i < item->mark_count; i++)
        acs_issue_queue_send_mark(q, &batch->marks[item->first_mark + i], takers, ops, user);
    if (takers && gives && give_item(q, batch, item))
        return ACS_ISSUE_GIVEN;
    const uint32_t s = (uint32_t)item->slot;
    bool goes = !in_slot || acs_issue_queue_idle(q, s) || reach_idle(q, s, ops, user);
    for (uint32_t i = 0; i < item->wait_count; i++) {
        const acs_mark *mark = &batch->waits[item->first_wait + i];
        goes = goes && (acs_issue_queue_recorded(q, mark->slot) >= mark->value || reach_mark(q, mark, ops, user));
        if (goes && in_slot)
            ops->wait(user, s, item->share, mark);
        else if (in_slot && !give_wait(q, item, mark))
            ops->full(user);
    }
    return goes && (!acs_issue_queue_halted(q) || ops->lost(user)) ? ACS_ISSUE_NOW : ACS_ISSUE_LATER;
}

/* -------------------------------------------------------------------------------------------------------------- step */

static void mark(acs_issue_queue *q, const acs_mark *mark, const acs_issue_ops *ops, void *user)
{
    ops->mark(user, mark);
    acs_issue_queue_record(q, mark);
}

/* Carry out an op. False: it failed, and stays in the queue until the core knows. */
static bool carry_out(acs_issue_queue *q, acs_command *c, const acs_issue_ops *ops, void *user)
{
    const bool goes = !c->skip && !ops->lost(user);
    if (goes)
        ops->op(user, c);
    const bool failed = goes && c->status != ACS_OK && !ops->lost(user);
    if (ACS_UNLIKELY(failed))
        atomic_store_explicit(&q->halted, true, memory_order_release); /* E, F */
    if (c->marks)
        mark(q, &c->mark, ops, user);
    return !failed;
}

/* Carry out commands of a claimed slot, up to and with the next op or mark. EMPTY, BLOCKED: none, or they must wait. */
static acs_issue_step carry_on(acs_issue_queue *q, ring *r, const acs_issue_ops *ops, void *user)
{
    for (;;) {
        const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed); /* relaxed: stored under the claim, D */
        if (head == atomic_load_explicit(&r->tail, memory_order_acquire))           /* A */
            return ACS_ISSUE_EMPTY;
        acs_command *c = at(q, r, head);
        const uint8_t type = c->type;
        if (type == ACS_COMMAND_MARK) {
            mark(q, &c->mark, ops, user);
        } else if (type == ACS_COMMAND_WAIT) {
            if (acs_issue_queue_recorded(q, c->mark.slot) < c->mark.value && !ops->lost(user))
                return ACS_ISSUE_BLOCKED;
            ops->wait(user, c->slot, c->share, &c->mark);
        } else if (!c->told && !carry_out(q, c, ops, user)) {
            return ACS_ISSUE_FAILED;
        }
        atomic_store_explicit(&r->head, head + 1, memory_order_release); /* B */
        if (type != ACS_COMMAND_WAIT)
            return ACS_ISSUE_DONE;
        if (ACS_UNLIKELY(acs_issue_queue_halted(q)) && !ops->lost(user))
            return ACS_ISSUE_HALTED;
    }
}

/* The ring of a claimed slot is empty: nobody need look there, unless something was given meanwhile. */
static void note_empty(acs_issue_queue *q, uint32_t s)
{
    atomic_fetch_and_explicit(&q->filled, ~(1ull << s), memory_order_acq_rel); /* G */
    if (count_left(&q->ring[s]))
        atomic_fetch_or_explicit(&q->filled, 1ull << s, memory_order_relaxed); /* relaxed: who sees it loads `tail`, A */
}

/* Claim a slot and go on there. */
static acs_issue_step try_slot(acs_issue_queue *q, uint32_t s, const acs_issue_ops *ops, void *user)
{
    const uint64_t bit = 1ull << s;
    if (atomic_load_explicit(&q->claimed, memory_order_relaxed) & bit || /* relaxed: a hint */
        atomic_fetch_or_explicit(&q->claimed, bit, memory_order_acq_rel) & bit) /* D, F */
        return ACS_ISSUE_BLOCKED;
    const bool halted = acs_issue_queue_halted(q) && !ops->lost(user); /* F */
    const acs_issue_step step = halted ? ACS_ISSUE_HALTED : carry_on(q, &q->ring[s], ops, user);
    if (step == ACS_ISSUE_EMPTY)
        note_empty(q, s);
    atomic_fetch_and_explicit(&q->claimed, ~bit, memory_order_acq_rel); /* D, F */
    return step;
}

acs_issue_step acs_issue_queue_step(acs_issue_queue *q, acs_issue_taker *taker, const acs_issue_ops *ops, void *user)
{
    const uint64_t filled = atomic_load_explicit(&q->filled, memory_order_relaxed); /* relaxed: as in note_empty */
    const uint64_t below = (1ull << taker->next % ACS_BACKEND_SLOTS_MOST) - 1;
    const uint64_t turns[] = {filled & taker->own & ~below, filled & taker->own & below, filled & ~taker->own};
    for (uint32_t turn = 0; turn < sizeof turns / sizeof turns[0]; turn++) {
        for (uint64_t left = turns[turn]; left; left &= left - 1) {
            const uint32_t s = (uint32_t)__builtin_ctzll(left);
            const acs_issue_step step = try_slot(q, s, ops, user);
            taker->next = s + 1;
            if (step != ACS_ISSUE_EMPTY && step != ACS_ISSUE_BLOCKED)
                return step;
        }
    }
    return filled ? ACS_ISSUE_BLOCKED : ACS_ISSUE_EMPTY;
}

/* ------------------------------------------------------------------------------------------------------------ halted */

bool acs_issue_queue_stands(const acs_issue_queue *q)
{
    return acs_issue_queue_halted(q) && atomic_load_explicit(&q->claimed, memory_order_acquire) == 0; /* D, F */
}

acs_command *acs_issue_queue_at(acs_issue_queue *q, uint32_t s, uint32_t index)
{
    ring *r = &q->ring[s];
    /* relaxed: the queues stand, and acs_issue_queue_stands has acquired what the last claims released */
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    return index < count_left(r) ? at(q, r, head + index) : NULL;
}

void acs_issue_queue_resume(acs_issue_queue *q)
{
    atomic_store_explicit(&q->halted, false, memory_order_release); /* F */
}

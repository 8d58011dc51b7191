/*
 * Waiting for memory that other programs have (see ledger.h): entries that wait, rounds over the devices that will do,
 * and naps until a program gives memory. Also the judgement that none ever will, and letting those go first that were
 * overtaken too often. Called by groups, on their threads.
 */
#include "devices/ledger_internal.h"

#include "base/tuning.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000) /* nanoseconds in a millisecond */

static _Atomic(uint64_t) g_patience_ms = TUNE_LEDGER_PATIENCE_MS;

void acs_ledger_patience(uint64_t ms)
{
    atomic_store_explicit(&g_patience_ms, ms, memory_order_relaxed); /* relaxed: set by tests before any wait */
}

/*
 * Patience with entries that were overtaken too often. What they wait for may never come, as when the programs that have
 * it are stopped or always busy; or it takes long. Each time that others go on all the same, the patience doubles, so
 * that no entry starves.
 */
typedef struct patience {
    uint64_t ticket; /* ticket of the first such entry */
    uint64_t least;  /* least bytes that all had reserved since that entry is the first */
    uint64_t since;  /* when `least` last fell, or the entry became the first */
} patience;

/* Take note of the time. True: the first of them has kept others waiting for too long. */
static bool spend_patience(patience *p, const acs_ledger_account *a)
{
    const uint64_t now = acs_clock_ns();
    const uint64_t doubled = a->due_backoff < TUNE_LEDGER_DOUBLED_MOST ? a->due_backoff : TUNE_LEDGER_DOUBLED_MOST;
    if (!a->due || a->due_ticket != p->ticket || a->reserved < p->least)
        *p = (patience){a->due ? a->due_ticket : 0, a->reserved, now};
    /* Relaxed: see acs_ledger_patience. */
    return a->due && now - p->since > (atomic_load_explicit(&g_patience_ms, memory_order_relaxed) * MS << doubled);
}

/*
 * Why a device does not give what is waited for, from the worst reason to the best; of several devices the best counts.
 */
typedef enum outlook { OUTLOOK_NEVER, OUTLOOK_STUCK, OUTLOOK_ALONE, OUTLOOK_SOME } outlook;

/* A wait of a program for some of its devices. */
typedef struct wait {
    acs_ledger *const *ledgers;
    uint32_t count;
    uint32_t asked;         /* a bit for each device that it waits for */
    uint64_t bytes, ticket; /* bytes that it waits for; its ticket, 0: none yet */
    bool holds, busy;       /* whether the program has memory of any device, and whether work that will end uses some */
    outlook outlook;        /* best outlook of this round */
    uint32_t of;            /* index of its device; `count`: none yet */
    acs_ledger_account account; /* account of that device */
    outlook before;
    uint64_t since; /* when the outlook became this one: memory that is about to be given shows a little later */
    patience patience[ACS_DEVICES_MOST];
} wait;

static outlook outlook_locked(const acs_ledger *l, const acs_ledger_account *a, const wait *w)
{
    const uint64_t own = acs_ledger_get(&l->own->reserved), beside_own = acs_ledger_less(l->config.total, own);
    if (w->bytes > l->config.total)
        return OUTLOOK_NEVER;
    if (w->busy)
        return OUTLOOK_SOME;
    /* A program without memory keeps no other from going on; of programs with memory, the last to come gives way. */
    if (w->bytes > beside_own || (w->holds && a->reserved > own && !a->somebody_runs && !a->waits_later))
        return OUTLOOK_STUCK;
    /* Programs outside of the ledger do not tell when they give memory. */
    return a->reserved == own ? OUTLOOK_ALONE : OUTLOOK_SOME;
}

/*
 * Whether it may take memory now. A program without memory keeps no other from going on; it comes behind any that began
 * earlier and has room.
 */
static bool is_in_turn_locked(const acs_ledger *l, acs_ledger_account *a, const wait *w)
{
    return a->before == 0 || (!a->due && (w->holds || !acs_ledger_fits_locked(l, a, a->before)));
}

/* ACS_NOT_READY: not yet; the wait's outlook tells whether it ever will. */
static acs_status try_locked(wait *w, uint32_t which)
{
    acs_ledger *l = w->ledgers[which];
    acs_ledger_account a = acs_ledger_account_locked(l, w->ticket);
    if (spend_patience(&w->patience[which], &a)) {
        acs_ledger_reset_overtaken_locked(l, w->ticket);
        a = acs_ledger_account_locked(l, w->ticket);
    }
    if (is_in_turn_locked(l, &a, w) && acs_ledger_fits_locked(l, &a, w->bytes)) {
        if (a.before)
            acs_ledger_count_overtaken_locked(l, w->ticket);
        acs_ledger_set(&l->own->reserved, acs_ledger_get(&l->own->reserved) + w->bytes);
        return ACS_OK;
    }
    const outlook o = outlook_locked(l, &a, w);
    if (w->of == w->count || o > w->outlook) {
        w->outlook = o;
        w->of = which;
        w->account = a;
    }
    return ACS_NOT_READY;
}

static acs_status refuse_wait(const wait *w, const char *why)
{
    const acs_ledger *l = w->ledgers[w->of];
    const bool several = (w->asked & (w->asked - 1)) != 0;
    return ACS_FAIL(ACS_ERR_MEMORY, 0,
                    "no %llu bytes more of device %s: it has %llu, the programs in the ledger reserve %llu, this one %llu "
                    "of them; %s%s", (unsigned long long)w->bytes, l->config.device,
                    (unsigned long long)l->config.total, (unsigned long long)w->account.reserved,
                    (unsigned long long)acs_ledger_reserved(w->ledgers[w->of]), why,
                    several ? "; the other devices are no better" : "");
}

/* No device had the memory in this round. ACS_NOT_READY: the wait goes on. */
static acs_status judge_round(wait *w)
{
    const acs_ledger *l = w->ledgers[w->of];
    const uint64_t now = acs_clock_ns();
    if (w->outlook != w->before)
        w->since = now;
    w->before = w->outlook;
    if (w->outlook == OUTLOOK_NEVER)
        return refuse_wait(w, "this cannot fit");
    if (w->outlook == OUTLOOK_STUCK && now - w->since > TUNE_LEDGER_STUCK_MS * MS)
        return refuse_wait(w, w->bytes > acs_ledger_less(l->config.total, acs_ledger_reserved(w->ledgers[w->of]))
                             ? "this cannot fit beside what it has"
                             : "all programs that have some wait for more, and this one began last");
    if (w->outlook == OUTLOOK_ALONE && now - w->since > TUNE_LEDGER_ALONE_MS * MS)
        return refuse_wait(w, "the rest is taken outside of the ledger");
    if (l->config.ended && l->config.ended(l->config.user))
        return ACS_FAIL(ACS_ERR_DEVICE, 0, "the device was lost while a group waited for its memory");
    return ACS_NOT_READY;
}

/* Sleep until something was given after `seen`, or for TUNE_LEDGER_NAP_MS. */
static void nap(acs_ledger *l, uint32_t seen)
{
    const struct timespec while_ = {0, TUNE_LEDGER_NAP_MS * (long)MS};
    if (!acs_ledger_usable(l))
        return; /* the next look fails */
    (void)syscall(SYS_futex, &l->table->changes, FUTEX_WAIT, seen, &while_, NULL, 0);
}

static uint32_t changes_seen(acs_ledger *l)
{
    if (!acs_ledger_usable(l))
        return 0;
    /* Acquire; pairs with the release in acs_ledger_tell. */
    return atomic_load_explicit(&l->table->changes, memory_order_acquire);
}

void acs_ledger_nap(acs_ledger *l)
{
    nap(l, changes_seen(l));
}

static uint64_t next_ticket_locked(acs_ledger *l)
{
    const uint64_t ticket = acs_ledger_get(&l->table->tickets) + 1;
    acs_ledger_set(&l->table->tickets, ticket);
    return ticket;
}

/* Wait with the same ticket in all entries of the program, so that its place is the same for all devices. */
static void queue_up_locked(wait *w, uint32_t which)
{
    acs_ledger *l = w->ledgers[which];
    if (!w->ticket)
        w->ticket = next_ticket_locked(l);
    if (!acs_ledger_get(&l->own->waits)) {
        acs_ledger_set(&l->own->ticket, w->ticket);
        acs_ledger_set(&l->own->overtaken, 0);
        acs_ledger_set(&l->own->backoff, 0);
        acs_ledger_set(&l->own->wanted, w->asked >> which & 1 ? w->bytes : 0);
    }
    acs_ledger_set(&l->own->busy, w->busy);
    acs_ledger_set(&l->own->waits, 1);
}

static acs_status wait_at(wait *w, uint32_t which)
{
    acs_ledger *l = w->ledgers[which];
    ACS_TRY(acs_ledger_enter(l));
    queue_up_locked(w, which);
    acs_status status = w->asked >> which & 1 ? try_locked(w, which) : ACS_NOT_READY;
    if (status == ACS_OK)
        acs_ledger_set(&l->own->wanted, 0);
    acs_ledger_leave(l);
    return status;
}

/* Ask each device once, in order. */
static acs_status wait_round(wait *w, uint32_t *which)
{
    const acs_ledger_config *config = &w->ledgers[0]->config;
    acs_status status = ACS_NOT_READY;
    w->busy = config->give_back && config->give_back(config->user);
    w->holds = false;
    w->of = w->count;
    for (uint32_t i = 0; i < w->count; i++)
        w->holds |= acs_ledger_reserved(w->ledgers[i]) > 0; /* its own entry, which others do not write */
    for (uint32_t i = 0; i < w->count && status == ACS_NOT_READY; i++) {
        status = wait_at(w, i);
        *which = i;
    }
    return status == ACS_NOT_READY ? judge_round(w) : status;
}

acs_status acs_ledger_wait_any(acs_ledger *const *ledgers, uint32_t count, uint32_t asked, uint64_t bytes, uint32_t *which)
{
    wait w = {.ledgers = ledgers, .count = count, .asked = asked, .bytes = bytes, .before = OUTLOOK_SOME};
    acs_status status = ACS_NOT_READY;
    *which = 0;
    if (bytes == 0)
        return ACS_OK;
    for (uint32_t i = 0; i < count; i++)
        pthread_mutex_lock(&ledgers[i]->waiting);
    while (status == ACS_NOT_READY) {
        const uint32_t seen = changes_seen(ledgers[0]);
        status = wait_round(&w, which);
        if (status == ACS_NOT_READY)
            nap(ledgers[0], seen);
    }
    for (uint32_t i = 0; i < count; i++) { /* its own entry, and each change is one store */
        if (!acs_ledger_usable(ledgers[i]))
            continue;
        acs_ledger_set(&ledgers[i]->own->wanted, 0);
        acs_ledger_set(&ledgers[i]->own->waits, 0);
    }
    acs_ledger_tell(ledgers[0]); /* others behind it may go on, or are the last to wait */
    for (uint32_t i = count; i-- > 0;)
        pthread_mutex_unlock(&ledgers[i]->waiting);
    return status;
}

acs_status acs_ledger_wait(acs_ledger *l, uint64_t bytes)
{
    uint32_t which;
    return acs_ledger_wait_any(&l, 1, 1, bytes, &which);
}

/*
 * Draw a ticket: only entries with an earlier one are waited for. A later entry may have been overtaken as often when
 * its turn comes.
 */
static acs_status draw_ticket(acs_ledger *l, uint64_t *ticket)
{
    ACS_TRY(acs_ledger_enter(l));
    *ticket = next_ticket_locked(l);
    acs_ledger_leave(l);
    return ACS_OK;
}

static acs_status look_whether_due(acs_ledger *l, uint64_t ticket, patience *p, bool *due)
{
    ACS_TRY(acs_ledger_enter(l));
    const acs_ledger_account a = acs_ledger_account_all_locked(l, ticket);
    const bool gave_up = spend_patience(p, &a);
    if (gave_up)
        acs_ledger_reset_overtaken_locked(l, ticket);
    *due = a.due && !gave_up;
    acs_ledger_leave(l);
    return ACS_OK;
}

acs_status acs_ledger_give_way(acs_ledger *l)
{
    const acs_ledger_config *config = &l->config;
    patience p = {0};
    uint64_t ticket;
    bool due = true;
    ACS_TRY(draw_ticket(l, &ticket));
    for (;;) {
        const uint32_t seen = changes_seen(l);
        if (config->give_back)
            (void)config->give_back(config->user);
        ACS_TRY(look_whether_due(l, ticket, &p, &due));
        if (!due)
            return ACS_OK;
        if (config->ended && config->ended(config->user))
            return ACS_FAIL(ACS_ERR_DEVICE, 0, "the device was lost while a group let others have their memory");
        nap(l, seen);
    }
}

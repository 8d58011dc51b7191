/*
 * The FIFO between callers and the window: a ring of cells, each with a turn counter (Vyukov's bounded queue). A
 * producer takes a ticket, its place in program order, and fills the ticket's cell; the consumer empties cells in
 * ticket order. Callers push in their launch path; the holder of the core's lock pops. After create it never
 * allocates. It never blocks.
 *
 * FIFO-1 (fifo.h) defines the turns. Counters run free and may wrap; only their differences matter.
 *
 * A  fill_cell: write seq and cell, turn release -> acs_fifo_pop, peek, fetch_ahead: turn acquire, read cell and
 *    record.
 *    Broken: the consumer reads a record that is missing or half written.
 * B  acs_fifo_pop: read cell, turn release of all cells of the record -> take_tickets of the next lap: turn acquire,
 *    write cell.
 *    Broken: a producer overwrites a cell that the consumer still reads.
 */
#include "window/fifo_internal.h"

#include "base/tuning.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Not padded: a burst of pushes then shares cache lines, and a lap is long enough to keep the two sides apart. */
struct cell {
    _Atomic uint64_t turn;
    acs_record *record;
};

struct acs_fifo {
    /* immutable */
    struct cell *cells;
    uint64_t mask, lap; /* bits of a ticket that are its cell, and its lap */
    uint64_t first; /* ticket of op 1; not 0 only in tests */
    uint64_t narrow; /* capacity while it is not wide */
    /* changed by acs_fifo_widen alone: most tickets that are taken and not popped */
    _Atomic uint64_t capacity;
    /* producers */
    _Alignas(ACS_CACHE_LINE) _Atomic uint64_t tail; /* next ticket */
    /* consumer */
    _Alignas(ACS_CACHE_LINE) _Atomic uint64_t head; /* next ticket to pop; atomic because acs_fifo_ready reads it */
};

enum { CAPACITY_MIN = 2, CAPACITY_MAX = 1 << 30 }; /* with one cell "full" and "free" would be the same turn */

acs_status acs_fifo_create_at(uint32_t capacity, uint32_t most, uint64_t first_ticket, acs_fifo **fifo)
{
    if (capacity > CAPACITY_MAX || most > CAPACITY_MAX)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "FIFO capacity %u is larger than %d", capacity, CAPACITY_MAX);
    const uint64_t narrow = acs_round_up_pow2(capacity < CAPACITY_MIN ? CAPACITY_MIN : capacity);
    const uint64_t wide = acs_round_up_pow2(most), cells = wide > narrow ? wide : narrow;

    acs_fifo *f = aligned_alloc(ACS_CACHE_LINE, sizeof *f);
    struct cell *ring = acs_zeros(cells, sizeof *ring);
    if (!f || !ring) {
        free(f);
        acs_zeros_free(ring);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a FIFO of %llu ops", (unsigned long long)cells);
    }
    f->cells = ring;
    f->mask = cells - 1;
    f->lap = ~f->mask;
    f->first = first_ticket;
    f->narrow = narrow;
    atomic_init(&f->capacity, narrow);
    /* Each cell is free for the one ticket of the first lap that maps to it. From ticket 0 on that is zero already. */
    for (uint64_t i = 0; first_ticket && i < cells; i++)
        atomic_init(&ring[(first_ticket + i) & f->mask].turn, (first_ticket + i) & f->lap);
    atomic_init(&f->tail, first_ticket);
    atomic_init(&f->head, first_ticket);
    *fifo = f;
    return ACS_OK;
}

acs_status acs_fifo_create(uint32_t capacity, uint32_t most, acs_fifo **fifo)
{
    return acs_fifo_create_at(capacity, most, 0, fifo);
}

void acs_fifo_widen(acs_fifo *fifo, bool wide)
{
    /* relaxed: any capacity is right at any time */
    atomic_store_explicit(&fifo->capacity, wide ? fifo->mask + 1 : fifo->narrow, memory_order_relaxed);
}

void acs_fifo_destroy(acs_fifo *fifo)
{
    if (!fifo)
        return;
    acs_zeros_free(fifo->cells);
    free(fifo);
}

static void fill_cell(acs_fifo *fifo, uint64_t ticket, acs_record *record)
{
    struct cell *cell = &fifo->cells[ticket & fifo->mask];
    record->seq = ticket - fifo->first + 1;
    cell->record = record;
    atomic_store_explicit(&cell->turn, (ticket & fifo->lap) + 1, memory_order_release); /* A */
}

/*
 * Take `count` tickets in a row, if the ticket one capacity before the last of them was popped. Tickets are popped in
 * order, so the cells of all are free then. False: it was not.
 */
static bool take_tickets(acs_fifo *fifo, uint64_t count, uint64_t *first)
{
    const uint64_t lap = fifo->mask + 1;
    const uint64_t capacity = atomic_load_explicit(&fifo->capacity, memory_order_relaxed); /* relaxed: see widen */
    /* relaxed: a stale ticket fails the exchange below and is read again */
    uint64_t ticket = atomic_load_explicit(&fifo->tail, memory_order_relaxed);
    for (;;) {
        const uint64_t before = ticket + count - 1 - capacity;
        const struct cell *cell = &fifo->cells[before & fifo->mask];
        const uint64_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire); /* B */
        const int64_t lead = (int64_t)(turn - ((before + lap) & fifo->lap));
        if (lead < 0)
            return false;
        if (lead > 0) {
            /* relaxed: as above; another producer was faster */
            ticket = atomic_load_explicit(&fifo->tail, memory_order_relaxed);
            continue;
        }
        /* relaxed: coherence of `tail` alone orders the callers; the turn publishes the record (A) */
        if (atomic_compare_exchange_weak_explicit(&fifo->tail, &ticket, ticket + count, memory_order_relaxed,
                                                  memory_order_relaxed))
            break;
    }
    *first = ticket;
    return true;
}

acs_op acs_fifo_push(acs_fifo *fifo, acs_record *record)
{
    uint64_t ticket;
    if (!take_tickets(fifo, acs_record_span(record), &ticket))
        return 0;
    fill_cell(fifo, ticket, record);
    return ticket - fifo->first + 1; /* not record->seq: the consumer may have recycled the record already */
}

acs_op acs_fifo_push_all(acs_fifo *fifo, acs_record *const *records, uint32_t count)
{
    uint64_t ticket;
    if (count > fifo->mask + 1 || !take_tickets(fifo, count, &ticket))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        fill_cell(fifo, ticket + i, records[i]);
    return ticket + count - fifo->first;
}

/*
 * Prefetch a record that the window will read soon, since another CPU has just written it. Only a hint: the cell may
 * hold no record yet.
 */
static void fetch_ahead(const acs_fifo *fifo, uint64_t ticket)
{
    const struct cell *cell = &fifo->cells[ticket & fifo->mask];
    if (atomic_load_explicit(&cell->turn, memory_order_acquire) != (ticket & fifo->lap) + 1) /* A */
        return;
    const char *record = (const char *)cell->record;
    for (int i = 0; i < TUNE_FIFO_FETCH_LINES; i++)
        __builtin_prefetch(record + (size_t)i * ACS_CACHE_LINE);
}

/*
 * A producer may be interrupted between its ticket and its turn. Records behind it then wait: program order is ticket
 * order, without gaps.
 */
acs_record *acs_fifo_pop(acs_fifo *fifo)
{
    /* relaxed: only the consumer writes it, and the core's lock orders consumers */
    uint64_t head = atomic_load_explicit(&fifo->head, memory_order_relaxed);
    struct cell *cell = &fifo->cells[head & fifo->mask];

    if (atomic_load_explicit(&cell->turn, memory_order_acquire) != (head & fifo->lap) + 1) /* A */
        return NULL;
    fetch_ahead(fifo, head + TUNE_FIFO_FETCH_OPS);
    acs_record *record = cell->record;
    const uint32_t span = acs_record_span(record);
    for (uint64_t ticket = head; ticket != head + span; ticket++)
        atomic_store_explicit(&fifo->cells[ticket & fifo->mask].turn, (ticket + fifo->mask + 1) & fifo->lap,
                              memory_order_release);       /* B */
    ACS_ASSERT(record->seq == head - fifo->first + 1); /* FIFO-1 */
    /* relaxed: acs_fifo_ready needs only a guess */
    atomic_store_explicit(&fifo->head, head + span, memory_order_relaxed);
    return record;
}

acs_record *acs_fifo_peek(const acs_fifo *fifo, uint32_t ahead)
{
    /* relaxed: as in acs_fifo_pop */
    uint64_t ticket = atomic_load_explicit(&fifo->head, memory_order_relaxed) + ahead;
    const struct cell *cell = &fifo->cells[ticket & fifo->mask];
    bool there = atomic_load_explicit(&cell->turn, memory_order_acquire) == (ticket & fifo->lap) + 1; /* A */
    return there ? cell->record : NULL;
}

bool acs_fifo_ready(const acs_fifo *fifo)
{
    /* relaxed: nothing is read through the answer; a thread that sleeps on it has its own fence before this call */
    uint64_t head = atomic_load_explicit(&fifo->head, memory_order_relaxed);
    uint64_t turn = atomic_load_explicit(&fifo->cells[head & fifo->mask].turn, memory_order_relaxed);

    /* A turn beyond a full cell's shows that `head` is stale. Say yes: a useless look costs less than a lost wake-up. */
    return (int64_t)(turn - ((head & fifo->lap) + 1)) >= 0;
}

bool acs_fifo_unfinished(const acs_fifo *fifo)
{
    /* relaxed: the consumer wrote `head` itself; an unfinished push is looked at again */
    uint64_t head = atomic_load_explicit(&fifo->head, memory_order_relaxed);
    return atomic_load_explicit(&fifo->tail, memory_order_relaxed) != head && !acs_fifo_ready(fifo);
}

acs_op acs_fifo_last(const acs_fifo *fifo)
{
    /* relaxed: coherence alone shows a caller its own pushes, and those that happened before this call */
    return atomic_load_explicit(&fifo->tail, memory_order_relaxed) - fifo->first;
}

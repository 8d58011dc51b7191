/*
 * The FIFO between callers and the window: bounded, lock-free, in program order. Any number of threads push; one
 * thread at a time pops, the holder of the core's lock. The FIFO moves pointers and does not own the records. A push
 * sets record->seq; a pop prefetches later records. Sequence numbers count from 1 without gaps: each record has one, or
 * several in a row (acs_record_span).
 *
 * FIFO-1  a lap is as many tickets as there are cells. The turn of a ticket's cell is the first ticket of its lap while the
 *         cell is free for it, and one more once it holds the record. The pop makes it the next lap's. Of a record with
 *         several tickets only the first one's cell holds it; the pop frees the cells of all.
 */
#ifndef ACS_FIFO_H
#define ACS_FIFO_H

#include "base/base.h"
#include "window/record.h"

typedef struct acs_fifo acs_fifo;

/*
 * `capacity` is rounded up to a power of two; acs_fifo_widen lets it hold `most` numbers. ACS_ERR_ARGUMENT (too large),
 * ACS_ERR_MEMORY: *fifo is untouched.
 */
acs_status acs_fifo_create(uint32_t capacity, uint32_t most, acs_fifo **fifo);
/*
 * Any thread. As long as it is wide, the capacity is `most`: records with spans leave gaps in the numbers, so there are
 * fewer records than numbers. Threads inside a push may still go by the capacity before.
 */
void acs_fifo_widen(acs_fifo *fifo, bool wide);
void acs_fifo_destroy(acs_fifo *fifo);
/* Any thread; never blocks. Returns the record's first number; 0: the FIFO is full, and nothing has changed. */
acs_op acs_fifo_push(acs_fifo *fifo, acs_record *record);
/* Push several records in a row. Returns the last one's number; 0: full, or `count` exceeds the capacity. */
acs_op acs_fifo_push_all(acs_fifo *fifo, acs_record *const *records, uint32_t count);
/* Consumer only. NULL: the next record in program order has not been pushed completely. */
acs_record *acs_fifo_pop(acs_fifo *fifo);
/* Consumer only. The record that is popped after `ahead` others; NULL: it has not been pushed yet. */
acs_record *acs_fifo_peek(const acs_fifo *fifo, uint32_t ahead);
/* Any thread, approximate: whether a pop would succeed; the last sequence number handed out. */
bool acs_fifo_ready(const acs_fifo *fifo);
acs_op acs_fifo_last(const acs_fifo *fifo);
/* Consumer only. Whether the next op has its number while its thread is still inside acs_fifo_push. */
bool acs_fifo_unfinished(const acs_fifo *fifo);

#endif

/*
 * The FIFO between callers and the window: bounded, in program order, any number of producers, one consumer at a time
 * (whoever holds the core's lock). Lock-free; it moves pointers to records and never touches what they point to, except
 * that a push sets record->seq, and a pop asks the cache for the next few. Sequence numbers count from 1 without gaps:
 * the n-th record pushed is op n.
 *
 * FIFO-1  the turn of the cell of ticket t is t when the cell is free for it, t + 1 once it holds the record, and
 *         t + capacity after the pop, which is "free" for the ticket one lap later.
 */
#ifndef ACS_FIFO_H
#define ACS_FIFO_H

#include "base/base.h"
#include "window/record.h"

typedef struct acs_fifo acs_fifo;

/* `capacity` is rounded up to a power of two. */
acs_status acs_fifo_create(uint32_t capacity, acs_fifo **fifo);
void acs_fifo_destroy(acs_fifo *fifo);
/* Any thread. Returns the record's sequence number, or 0 when full (nothing changed). */
acs_op acs_fifo_push(acs_fifo *fifo, acs_record *record);
/* The same of several, between which no other comes; 0 also for more than `capacity`. Returns the last one's number. */
acs_op acs_fifo_push_all(acs_fifo *fifo, acs_record *const *records, uint32_t count);
/* The consumer. NULL when the next record in program order has not been pushed completely. */
acs_record *acs_fifo_pop(acs_fifo *fifo);
/* The consumer. What the pop after `ahead` others would give, as far as is known now. */
acs_record *acs_fifo_peek(const acs_fifo *fifo, uint32_t ahead);
/* Any thread, approximate: whether a pop would give a record; the last sequence number handed out. */
bool acs_fifo_ready(const acs_fifo *fifo);
acs_op acs_fifo_last(const acs_fifo *fifo);
/* Whether the next op has its place, and its thread is still inside acs_fifo_push. Of the consumer's thread. */
bool acs_fifo_unfinished(const acs_fifo *fifo);

#endif

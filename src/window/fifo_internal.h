/*
 * Private to src/window/ and its tests: a FIFO whose first ticket is chosen, so that a test can cross the wrap of the
 * 64-bit counters. Sequence numbers still count from 1.
 */
#ifndef ACS_FIFO_INTERNAL_H
#define ACS_FIFO_INTERNAL_H

#include "window/fifo.h"

acs_status acs_fifo_create_at(uint32_t capacity, uint32_t most, uint64_t first_ticket, acs_fifo **fifo);

#endif

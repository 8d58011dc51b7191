/*
 * ACS_BARRIERS: ops of some numbers are ordered with all others, as if they had no footprint. acs-bisect finds with it
 * which two ops lack an order. Private to the modules above src/api.
 */
#ifndef ACS_BARRIERS_H
#define ACS_BARRIERS_H

#include "api/draft.h"

/* Read the option. ACS_ERR_OPTION through ACS_FAIL: it is no list of ranges. ACS_ERR_MEMORY. */
acs_status acs_barriers_open(acs_context *context);
/* Write how many ops there were to standard error. */
void acs_barriers_close(acs_context *context);
/* The draft enters the FIFO next, and no op of another thread comes before it. */
void acs_barriers_mark(acs_draft *draft);

#endif

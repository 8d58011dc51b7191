/*
 * The watchdog of a context (watchdog.c, ACS_WATCHDOG_S): when threads look for ops that do not end. Called by
 * threads that found nothing to do. Takes the core's lock when it looks.
 */
#ifndef ACS_WATCHDOG_H
#define ACS_WATCHDOG_H

#include "api/context.h"

/*
 * Look for overdue ops, unless a thread did so a moment ago. Costs a load while the watchdog is off. `now_ns` is of a
 * clock that never goes back and is the same for all threads of the context. Virtual time must pass in steps of at
 * most a quarter of the limit.
 * @return true if ops were given up, so that the caller checks again for its news.
 */
bool acs_watchdog_look(acs_context *context, uint64_t now_ns);
/* The same with the real clock, which is read only if the watchdog is on. False in a context with a stepper. */
bool acs_watchdog_look_now(acs_context *context);
/* Longest sleep of a thread, in microseconds, while ops are out and the watchdog is on; 0: it is off, no limit. */
uint64_t acs_watchdog_nap_us(acs_context *context);

#endif

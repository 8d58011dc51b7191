/*
 * A gate: where threads sleep until somebody has news for them. A sleeper announces itself, looks once more for what it
 * waits for, and only then sleeps; who has news makes it visible first and then opens the gate. One of the two sees the
 * other, so no news is lost, and opening a gate at which nobody sleeps costs a fence and a load.
 */
#ifndef ACS_GATE_H
#define ACS_GATE_H

#include "base/lock.h"

#include <stdatomic.h>

typedef struct acs_gate {
    _Atomic(uint32_t) sleepers; /* announced and not retracted */
    acs_lock lock;              /* rank SLEEP; guards epoch */
    acs_cond cond;
    uint64_t epoch;             /* counts openings */
} acs_gate;

/* 0, or an errno. */
int acs_gate_init(acs_gate *gate);
void acs_gate_fini(acs_gate *gate);
/* Returns what acs_gate_sleep wants; look for news afterwards. */
uint64_t acs_gate_announce(acs_gate *gate);
/* Until the gate is opened after the announcement, or `timeout_us` (0: forever). */
void acs_gate_sleep(acs_gate *gate, uint64_t epoch, uint64_t timeout_us);
void acs_gate_retract(acs_gate *gate);
/* Wake all sleepers. What they are to see was written before. */
void acs_gate_open(acs_gate *gate);
/* How many sleep, seen after everything that this thread wrote before. */
uint32_t acs_gate_sleepers(acs_gate *gate);

#endif

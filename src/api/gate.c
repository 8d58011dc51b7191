/*
 * Gates (see gate.h). Used by threads.c and by whatever has news; knows nothing of ops. Never blocks, except in
 * acs_gate_sleep.
 *
 * A: announce (increment, fence, look for news) against open (write news, fence, load sleepers). Both fences are
 * sequentially consistent: either the opener sees the sleeper or the sleeper sees the news. Broken: a sleeper is missed.
 */
#include "api/gate.h"

int acs_gate_init(acs_gate *gate)
{
    int error = acs_lock_init(&gate->lock, ACS_RANK_SLEEP);
    if (error)
        return error;
    error = acs_cond_init(&gate->cond);
    if (error)
        acs_lock_fini(&gate->lock);
    return error;
}

void acs_gate_fini(acs_gate *gate)
{
    acs_cond_fini(&gate->cond);
    acs_lock_fini(&gate->lock);
}

uint64_t acs_gate_announce(acs_gate *gate)
{
    acs_lock_acquire(&gate->lock);
    uint64_t epoch = gate->epoch;
    acs_lock_release(&gate->lock);
    atomic_fetch_add_explicit(&gate->sleepers, 1, memory_order_seq_cst); /* A */
    atomic_thread_fence(memory_order_seq_cst);                           /* A */
    return epoch;
}

void acs_gate_sleep(acs_gate *gate, uint64_t epoch, uint64_t timeout_us)
{
    acs_lock_acquire(&gate->lock);
    bool in_time = true;
    while (gate->epoch == epoch && in_time) {
        if (timeout_us)
            in_time = acs_cond_wait_us(&gate->cond, &gate->lock, timeout_us);
        else
            acs_cond_wait(&gate->cond, &gate->lock);
    }
    acs_lock_release(&gate->lock);
}

void acs_gate_retract(acs_gate *gate)
{
    atomic_fetch_sub_explicit(&gate->sleepers, 1, memory_order_relaxed); /* seen late: one needless opening */
}

uint32_t acs_gate_sleepers(acs_gate *gate)
{
    atomic_thread_fence(memory_order_seq_cst);                            /* A */
    return atomic_load_explicit(&gate->sleepers, memory_order_relaxed);   /* A: ordered by the fence */
}

void acs_gate_open(acs_gate *gate)
{
    if (acs_gate_sleepers(gate) == 0)
        return;
    acs_lock_acquire(&gate->lock);
    gate->epoch++;
    acs_cond_broadcast(&gate->cond);
    acs_lock_release(&gate->lock);
}

/*
 * The gate before the driver (gate.h). Called by issuers.c, and where events, streams and graphs are made.
 * It takes no lock, and never sleeps.
 *
 * A  count in `alone`, then read `drives`; store true in `drives`, then read `alone`; all sequentially consistent. Broken: a
 *    thread launches beside another one that wanted to be alone, which is slower, and right.
 */
#include "cuda/gate.h"

#include "base/thread.h"
#include "base/tuning.h"

static _Thread_local struct acs_cuda_gate_thread *tl_thread; /* NULL: it does not issue, or has left */

static void drive(acs_cuda_gate *gate, struct acs_cuda_gate_thread *thread)
{
    for (;;) {
        atomic_store_explicit(&thread->drives, true, memory_order_seq_cst); /* A */
        if (ACS_LIKELY(atomic_load_explicit(&gate->alone, memory_order_seq_cst) == 0))
            return;
        atomic_store_explicit(&thread->drives, false, memory_order_release);
        while (atomic_load_explicit(&gate->alone, memory_order_relaxed)) /* relaxed: A follows */
            acs_pause_briefly();
    }
}

void acs_cuda_gate_pass(acs_cuda_gate *gate, uint32_t number)
{
    /* relaxed: a hint, or A follows */
    if (ACS_LIKELY(tl_thread && atomic_load_explicit(&gate->alone, memory_order_relaxed) == 0))
        return;
    tl_thread = &gate->thread[number];
    drive(gate, tl_thread);
}

void acs_cuda_gate_leave(void)
{
    if (tl_thread)
        atomic_store_explicit(&tl_thread->drives, false, memory_order_release);
    tl_thread = NULL;
}

void acs_cuda_gate_begin(acs_cuda_gate *gate)
{
    atomic_fetch_add_explicit(&gate->alone, 1, memory_order_seq_cst); /* A */
    if (tl_thread)
        atomic_store_explicit(&tl_thread->drives, false, memory_order_release);
    for (uint32_t i = 0, pauses = 0; i < ACS_CUDA_GATE_THREADS; i++)
        while (atomic_load_explicit(&gate->thread[i].drives, memory_order_seq_cst) && pauses++ < TUNE_ALONE_PAUSES) /* A */
            acs_pause_briefly();
}

void acs_cuda_gate_end(acs_cuda_gate *gate)
{
    atomic_fetch_sub_explicit(&gate->alone, 1, memory_order_release);
    if (tl_thread)
        drive(gate, tl_thread);
}

/*
 * Private to src/cuda: a gate before the driver, at which threads that issue wait while another thread makes things: an
 * event, a stream, a graph. Beside four threads that launch, an event takes 50 us instead of 1.6, a stream 350 instead
 * of 25, a graph of 31 nodes 400 instead of 100. It is a hint, not a lock: nothing is wrong if both call the driver at
 * once.
 */
#ifndef ACS_CUDA_GATE_H
#define ACS_CUDA_GATE_H

#include "base/base.h"

#include <stdatomic.h>

enum { ACS_CUDA_GATE_THREADS = 16 };

typedef struct acs_cuda_gate {
    _Atomic(uint32_t) alone; /* A; threads that want the driver for themselves */
    struct acs_cuda_gate_thread {
        _Atomic(bool) drives; /* A; the thread that issues with this number may call the driver */
        char unused[ACS_CACHE_LINE - sizeof(bool)];
    } thread[ACS_CUDA_GATE_THREADS];
} acs_cuda_gate;

/* The calling thread issues, has this number, and is about to call the driver: wait for those that want it alone. */
void acs_cuda_gate_pass(acs_cuda_gate *gate, uint32_t number);
/* The calling thread, which has passed, calls the driver no more. */
void acs_cuda_gate_leave(void);
/*
 * Any thread: wait until no thread that issues calls the driver, but not for one that a launch holds up for longer than
 * TUNE_ALONE_PAUSES pauses. None passes until _end.
 */
void acs_cuda_gate_begin(acs_cuda_gate *gate);
void acs_cuda_gate_end(acs_cuda_gate *gate);

#endif

/*
 * Timed kernels (ACS_RECORD_TIMED): a pair of events around a launch. Called where ops are issued, and under the core's
 * lock once they have ended. Keeps pairs for reuse; at most a few are out at once.
 */
#include "cuda/kernel.h"

#include <stdlib.h>

struct acs_cuda_timer {
    CUevent begin, end;
    acs_cuda_timer *next;  /* list of spare timers */
    acs_cuda_timer *older; /* list of all timers, for close */
};

static void release(acs_cuda *self, acs_cuda_timer *timer)
{
    acs_lock_acquire(&self->lock);
    timer->next = self->spare_timers;
    self->spare_timers = timer;
    acs_lock_release(&self->lock);
}

/* No call of the driver is made under the lock. NULL: none can be made, and the kernel is not timed. */
static acs_cuda_timer *acquire(acs_cuda *self)
{
    acs_lock_acquire(&self->lock);
    acs_cuda_timer *timer = self->spare_timers;
    if (timer)
        self->spare_timers = timer->next;
    acs_lock_release(&self->lock);
    if (timer || !self->cu.cuEventElapsedTime || !(timer = calloc(1, sizeof *timer)))
        return timer;
    CUresult result = self->cu.cuEventCreate(&timer->begin, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuEventCreate(&timer->end, CU_EVENT_DEFAULT);
    acs_lock_acquire(&self->lock);
    timer->older = self->all_timers;
    self->all_timers = timer;
    acs_lock_release(&self->lock);
    return result == CUDA_SUCCESS ? timer : NULL; /* an event that is there is destroyed at close */
}

CUresult acs_cuda_launch_timed(acs_cuda *self, acs_record *op, CUstream stream)
{
    acs_cuda_timer *timer = acquire(self);
    if (timer && self->cu.cuEventRecord(timer->begin, stream) != CUDA_SUCCESS) {
        release(self, timer);
        timer = NULL;
    }
    const CUresult result = acs_cuda_launch(self, op, stream);
    if (timer && (result != CUDA_SUCCESS || self->cu.cuEventRecord(timer->end, stream) != CUDA_SUCCESS)) {
        release(self, timer);
        timer = NULL;
    }
    op->u.launch.timer = (uint64_t)(uintptr_t)timer;
    return result;
}

/* Both events were recorded before a mark that was seen complete. */
uint64_t acs_cuda_elapsed(acs_backend *backend, acs_record *op)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[0]->members[op->device];
    acs_cuda_timer *timer = (acs_cuda_timer *)(uintptr_t)op->u.launch.timer;
    acs_cuda_scope scope;
    float ms = 0;
    if (!timer)
        return 0;
    if (acs_cuda_scope_enter(self, &scope) == CUDA_SUCCESS) {
        if (self->cu.cuEventElapsedTime(&ms, timer->begin, timer->end) != CUDA_SUCCESS)
            ms = 0;
        acs_cuda_scope_leave(self, &scope);
    }
    op->u.launch.timer = 0;
    release(self, timer);
    return ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
}

void acs_cuda_timers_fini(acs_cuda *self)
{
    while (self->all_timers) {
        acs_cuda_timer *timer = self->all_timers;
        self->all_timers = timer->older;
        if (timer->begin)
            (void)self->cu.cuEventDestroy(timer->begin); /* after a fault it fails, and nothing depends on it */
        if (timer->end)
            (void)self->cu.cuEventDestroy(timer->end);
        free(timer);
    }
}

/*
 * Timed kernels (ACS_RECORD_TIMED): a pair of events around a launch. Called where ops are issued, and under the core's
 * lock once they have ended. At most a few pairs are out at once.
 */
#include "cuda/kernel.h"

CUresult acs_cuda_launch_timed(acs_cuda *self, acs_record *op, CUstream stream)
{
    acs_cuda_event *timer = NULL;
    if (self->cu.cuEventElapsedTime)
        (void)acs_cuda_event_acquire(self, true, &timer); /* without one the kernel is not timed */
    if (timer && self->cu.cuEventRecord(timer->begin, stream) != CUDA_SUCCESS) {
        acs_cuda_event_release(&self->base, timer);
        timer = NULL;
    }
    const CUresult result = acs_cuda_launch(self, op, stream);
    if (timer && (result != CUDA_SUCCESS || self->cu.cuEventRecord(timer->event, stream) != CUDA_SUCCESS)) {
        acs_cuda_event_release(&self->base, timer);
        timer = NULL;
    }
    op->u.launch.timer = (uint64_t)(uintptr_t)timer;
    return result;
}

/* Both events were recorded before a mark that was seen complete. */
uint64_t acs_cuda_elapsed(acs_backend *backend, acs_record *op)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[0]->members[op->device];
    acs_cuda_event *timer = (acs_cuda_event *)(uintptr_t)op->u.launch.timer;
    float ms = 0;
    if (!timer)
        return 0;
    ACS_CUDA_SCOPE(self);
    if (scope.entered != CUDA_SUCCESS ||
        self->cu.cuEventElapsedTime(&ms, timer->begin, timer->event) != CUDA_SUCCESS)
        ms = 0;
    op->u.launch.timer = 0;
    acs_cuda_event_release(backend, timer);
    return ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
}

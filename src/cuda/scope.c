/*
 * Threads and the device's context: a scope around the calls of an application's thread, and the entry for good of a
 * thread of the library. Called before anything that needs the context. It leaves an application's thread with the
 * context and capture mode that it came with.
 */
#include "cuda/internal.h"

static _Thread_local uint64_t tl_entered; /* serial of the backend that this thread of the library works for; 0: none */
static _Thread_local CUcontext tl_context; /* and which of its contexts is current */

static CUresult enter_member(acs_cuda *self)
{
    CUresult result = self->cu.cuCtxSetCurrent(self->context);
    tl_context = result == CUDA_SUCCESS ? self->context : NULL;
    return result;
}

CUresult acs_cuda_scope_enter(acs_cuda *self, acs_cuda_scope *scope)
{
    scope->pushed = false;
    /* A thread of this backend's own has entered for good: nothing to push, nothing to restore but another member's. */
    if (tl_entered == self->serial)
        return tl_context == self->context ? CUDA_SUCCESS : enter_member(self);
    CUresult result = self->cu.cuCtxPushCurrent(self->context);
    if (result != CUDA_SUCCESS)
        return result;
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    result = self->cu.cuThreadExchangeStreamCaptureMode(&scope->mode);
    if (result != CUDA_SUCCESS) {
        CUcontext popped;
        (void)self->cu.cuCtxPopCurrent(&popped); /* the first error is the one to report */
        return result;
    }
    scope->pushed = true;
    return CUDA_SUCCESS;
}

void acs_cuda_scope_leave(acs_cuda *self, acs_cuda_scope *scope)
{
    if (!scope->pushed)
        return;
    CUcontext popped;
    CUresult mode = self->cu.cuThreadExchangeStreamCaptureMode(&scope->mode);
    CUresult pop = self->cu.cuCtxPopCurrent(&popped);
    if (mode != CUDA_SUCCESS || pop != CUDA_SUCCESS)
        acs_log(ACS_LOG_WARN, "cuda: a thread's context or capture mode could not be restored: %s",
                acs_cuda_text((int)(mode != CUDA_SUCCESS ? mode : pop)));
}

/* For good: the thread belongs to this backend from now on. */
void acs_cuda_thread_enter(acs_backend *backend)
{
    acs_cuda *self = (acs_cuda *)backend;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = self->cu.cuCtxSetCurrent(self->context);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuThreadExchangeStreamCaptureMode(&mode);
    tl_context = self->context;
    if (result == CUDA_SUCCESS)
        tl_entered = self->serial;
    else /* each call of this thread then enters a scope, and reports what is wrong */
        acs_log(ACS_LOG_WARN, "cuda: a thread could not enter the device: %s", acs_cuda_text((int)result));
}

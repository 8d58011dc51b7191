/*
 * Streams of the program: which streams ops can be ordered against, and the events that their work is recorded in. Also the
 * end of all that the slots' own streams do. Called on callers' threads, and where ops that wait for such events are
 * issued. It makes no stream.
 */
#include "cuda/share.h"

#include <stdlib.h>

/* Whether a handle means a stream of the calling thread or context. NULL is the legacy stream. */
static bool is_special(CUstream stream)
{
    return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

acs_status acs_cuda_stream_failed(acs_cuda *self, CUstream stream, CUresult result)
{
    return ACS_CUDA_FAIL(self, ACS_ERR_ARGUMENT, result, "the stream %p: %s", (void *)stream, acs_cuda_text((int)result));
}

acs_status acs_cuda_stream_ours(acs_cuda *self, CUstream stream, CUcontext current)
{
    CUcontext owner = current;
    CUresult result = is_special(stream) ? CUDA_SUCCESS : self->cu.cuStreamGetCtx(stream, &owner);
    if (result != CUDA_SUCCESS)
        return acs_cuda_stream_failed(self, stream, result);
    if (owner && owner != self->context)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "the stream %p belongs to another device or CUDA context; this ACS context runs on device %d",
                        (void *)stream, self->device);
    return ACS_OK;
}

/*
 * Refuse streams of another context, and streams that are being captured, whose ops are nodes and never come here. In
 * a scope; `current` is the context before it.
 */
static acs_status stream_check(acs_cuda *self, CUstream stream, CUcontext current)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = self->cu.cuStreamIsCapturing(stream, &capture);
    /* "implicit": the legacy stream, while a stream that synchronises with it is being captured */
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, (int)result,
                        "the stream %p is being captured into a graph; ops that run cannot be ordered against it",
                        (void *)stream);
    if (result != CUDA_SUCCESS)
        return acs_cuda_stream_failed(self, stream, result);
    return acs_cuda_stream_ours(self, stream, current);
}

CUresult acs_cuda_event_acquire(acs_cuda *self, bool timed, acs_cuda_event **out)
{
    const unsigned flags = timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    acs_lock_acquire(&self->lock);
    acs_cuda_event *node = *out = self->spare_events[timed];
    if (node)
        self->spare_events[timed] = node->next;
    acs_lock_release(&self->lock);
    if (node)
        return CUDA_SUCCESS;
    node = calloc(1, sizeof *node);
    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->owner = self;
    /* Outside the lock: no call of the driver is made under it. */
    CUresult result = self->cu.cuEventCreate(&node->event, flags);
    if (result == CUDA_SUCCESS && timed)
        result = self->cu.cuEventCreate(&node->begin, flags);
    if (result != CUDA_SUCCESS) {
        if (node->event)
            (void)self->cu.cuEventDestroy(node->event); /* the first error is reported */
        free(node);
        return result;
    }
    ACS_HOLD(&self->lock);
    node->older = self->all_events;
    self->all_events = *out = node;
    return CUDA_SUCCESS;
}

/* An event may be recorded again once the waits for it are sent: they keep the state that it had then. */
void acs_cuda_event_release(acs_backend *backend, void *event)
{
    acs_cuda_event *node = event;
    (void)backend;
    if (!node)
        return;
    acs_cuda_event **spare = &node->owner->spare_events[node->begin != NULL];
    ACS_HOLD(&node->owner->lock);
    node->next = *spare;
    *spare = node;
}

acs_status acs_cuda_stream_record(acs_backend *backend, void *stream, void **event)
{
    acs_cuda *self = (acs_cuda *)backend;
    CUcontext current = NULL;
    acs_cuda_event *node = NULL;
    if (!event && stream == (void *)CU_STREAM_PER_THREAD)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "cudaStreamPerThread names another stream on the thread that issues; give a stream of your own");
    CUresult result = self->cu.cuCtxGetCurrent(&current);
    ACS_CUDA_SCOPE(self);
    if (result != CUDA_SUCCESS || scope.entered != CUDA_SUCCESS)
        return acs_cuda_scope_failed(self, result != CUDA_SUCCESS ? result : scope.entered);
    ACS_TRY(stream_check(self, stream, current));
    if (!event)
        return ACS_OK;
    result = acs_cuda_event_acquire(self, false, &node);
    if (result != CUDA_SUCCESS)
        return ACS_CUDA_FAIL(self, ACS_ERR_MEMORY, result, "cuda: an event could not be made: %s",
                             acs_cuda_text((int)result));
    result = self->cu.cuEventRecord(node->event, stream);
    if (result != CUDA_SUCCESS) {
        acs_cuda_event_release(backend, node);
        return acs_cuda_stream_failed(self, stream, result);
    }
    *event = node;
    return ACS_OK;
}

/* Destroy all events, those of queued ops included: the core retires all ops before it closes the backend. */
void acs_cuda_events_fini(acs_cuda *self)
{
    while (self->all_events) {
        acs_cuda_event *node = self->all_events;
        self->all_events = node->older;
        if (node->event)
            acs_cuda_close_note(self, "event", self->cu.cuEventDestroy(node->event));
        if (node->begin)
            acs_cuda_close_note(self, "event", self->cu.cuEventDestroy(node->begin));
        free(node);
    }
}

/* ------------------------------------------------------------------------------------------------- the slots' streams */

/* A slot's stream is behind those that it had before. */
void acs_cuda_stream_wait_all(acs_cuda *self)
{
    for (uint32_t i = self->member; acs_cuda_has_code(self) && i < self->slots; i += self->base.devices)
        if (self->now[i].stream)
            acs_cuda_close_note(self, "stream", self->cu.cuStreamSynchronize(self->now[i].stream));
}

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

acs_status acs_cuda_stream_ours(acs_cuda *self, CUstream stream, CUcontext current)
{
    CUcontext owner = current;
    CUresult result = is_special(stream) ? CUDA_SUCCESS : self->cu.cuStreamGetCtx(stream, &owner);
    if (result != CUDA_SUCCESS)
        return ACS_FAIL(acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_ARGUMENT, (int)result,
                        "the stream %p: %s", (void *)stream, acs_cuda_text((int)result));
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
        return ACS_FAIL(acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_ARGUMENT, (int)result,
                        "the stream %p: %s", (void *)stream, acs_cuda_text((int)result));
    return acs_cuda_stream_ours(self, stream, current);
}

/* Get a spare event, or make one. */
static acs_status event_acquire(acs_cuda *self, acs_cuda_event **out)
{
    acs_lock_acquire(&self->lock);
    acs_cuda_event *node = self->spare_events;
    if (node)
        self->spare_events = node->next;
    acs_lock_release(&self->lock);
    if (!node) {
        node = calloc(1, sizeof *node);
        if (!node)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for an event");
        /* Outside the lock: no call of the driver is made under it. */
        CUresult result = self->cu.cuEventCreate(&node->event, CU_EVENT_DISABLE_TIMING);
        if (result != CUDA_SUCCESS) {
            free(node);
            return ACS_FAIL(acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_MEMORY, (int)result,
                            "cuda: an event could not be made: %s", acs_cuda_text((int)result));
        }
        node->owner = self;
        acs_lock_acquire(&self->lock);
        node->older = self->all_events;
        self->all_events = node;
        acs_lock_release(&self->lock);
    }
    *out = node;
    return ACS_OK;
}

/* An event may be recorded again once the waits for it are sent: they keep the state that it had then. */
void acs_cuda_event_release(acs_backend *backend, void *event)
{
    acs_cuda_event *node = event;
    (void)backend;
    if (!node)
        return;
    acs_cuda *self = node->owner;
    acs_lock_acquire(&self->lock);
    node->next = self->spare_events;
    self->spare_events = node;
    acs_lock_release(&self->lock);
}

/* Record the stream in an event. The stream has passed stream_check. */
static acs_status stream_record(acs_cuda *self, CUstream stream, acs_cuda_event **event)
{
    acs_cuda_event *node = NULL;
    ACS_TRY(event_acquire(self, &node));
    CUresult result = self->cu.cuEventRecord(node->event, stream);
    if (result != CUDA_SUCCESS) {
        acs_cuda_event_release(&self->base, node);
        return ACS_FAIL(acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_ARGUMENT, (int)result,
                        "the stream %p: %s", (void *)stream, acs_cuda_text((int)result));
    }
    *event = node;
    return ACS_OK;
}

acs_status acs_cuda_stream_record(acs_backend *backend, void *stream, void **event)
{
    acs_cuda *self = (acs_cuda *)backend;
    acs_cuda_scope scope;
    CUcontext current = NULL;
    acs_cuda_event *node = NULL;
    if (!event && stream == (void *)CU_STREAM_PER_THREAD)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "cudaStreamPerThread names another stream on the thread that issues; give a stream of your own");
    CUresult result = self->cu.cuCtxGetCurrent(&current);
    if (result == CUDA_SUCCESS)
        result = acs_cuda_scope_enter(self, &scope);
    if (result != CUDA_SUCCESS)
        return ACS_FAIL(acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_UNSUPPORTED, (int)result,
                        "cuda: the device cannot be selected: %s", acs_cuda_text((int)result));
    acs_status status = stream_check(self, stream, current);
    if (status == ACS_OK && event)
        status = stream_record(self, stream, &node);
    acs_cuda_scope_leave(self, &scope);
    if (status == ACS_OK && event)
        *event = node;
    return status;
}

/* Destroy all events, those of queued ops included: the core retires all ops before it closes the backend. */
void acs_cuda_events_fini(acs_cuda *self)
{
    while (self->all_events) {
        acs_cuda_event *node = self->all_events;
        self->all_events = node->older;
        CUresult result = self->cu.cuEventDestroy(node->event);
        if (result != CUDA_SUCCESS && !acs_cuda_note(self, result))
            acs_log(ACS_LOG_WARN, "cuda: close: event: %s", acs_cuda_text((int)result));
        free(node);
    }
}

/* ------------------------------------------------------------------------------------------------- the slots' streams */

/* A slot's stream is behind those that it had before. */
void acs_cuda_stream_wait_all(acs_cuda *self)
{
    for (uint32_t i = self->member; self->methods && i < self->slots; i += self->base.devices) {
        const CUresult result = self->cu.cuStreamSynchronize(self->now[i].stream);
        if (result != CUDA_SUCCESS && !acs_cuda_note(self, result))
            acs_log(ACS_LOG_WARN, "cuda: close: stream: %s", acs_cuda_text((int)result));
    }
}

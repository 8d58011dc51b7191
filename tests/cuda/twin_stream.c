/*
 * The twin's streams and events: the driver's functions that make, order, capture and wait for them. Called through the
 * driver table. Whether work may go to a stream is decided here; running it is twin_queue.c's.
 */
#include "twin_internal.h"

#include <stdlib.h>

enum { QUERY_STEPS = 3 };

/* ------------------------------------------------------------------------------------------------------------- streams */

static twin_stream *stream_new(int device, bool blocking, bool builtin)
{
    twin_stream *stream = twin_object_new_locked(TWIN_STREAM, device, sizeof *stream);
    stream->blocking = blocking;
    stream->builtin = builtin;
    if (g_twin.stream_count == g_twin.stream_capacity) {
        g_twin.stream_capacity = g_twin.stream_capacity ? 2 * g_twin.stream_capacity : 16;
        g_twin.streams = realloc(g_twin.streams, g_twin.stream_capacity * sizeof *g_twin.streams);
        if (!g_twin.streams)
            abort();
    }
    g_twin.streams[g_twin.stream_count++] = stream;
    /* Builtin streams take no number of their own: tests count those that were made. */
    if (builtin)
        g_twin.made[TWIN_STREAM]--;
    return stream;
}

twin_stream *twin_stream_new_locked(int device, bool blocking)
{
    return stream_new(device, blocking, false);
}

/* The legacy stream and the per-thread one, of which there is one per device here. */
twin_stream *twin_stream_builtin_locked(CUstream handle, int device)
{
    twin_stream **builtin = handle == CU_STREAM_PER_THREAD ? g_twin.per_thread : g_twin.legacy;
    if (!builtin[device] || !builtin[device]->base.alive)
        builtin[device] = stream_new(device, true, true);
    return builtin[device];
}

static bool is_builtin(CUstream handle)
{
    return handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

/* The object, by the current context where the handle names none. */
static CUresult stream_find(CUstream handle, twin_stream **stream)
{
    if (!is_builtin(handle))
        return (*stream = twin_find_locked(handle, TWIN_STREAM)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    int device = twin_device_locked();
    if (device < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *stream = twin_stream_builtin_locked(handle, device);
    return CUDA_SUCCESS;
}

/* A stream that the legacy stream would wait for is being captured: CUDA then refuses the legacy stream. */
static bool implicit_capture(const twin_stream *stream)
{
    for (uint32_t i = 0; stream == g_twin.legacy[stream->base.device] && i < g_twin.stream_count; i++)
        if (g_twin.streams[i]->capture != CU_STREAM_CAPTURE_STATUS_NONE && g_twin.streams[i]->blocking)
            return true;
    return false;
}

CUresult twin_stream_use_locked(CUstream handle, twin_stream **stream)
{
    CUresult result = is_builtin(handle) ? stream_find(handle, stream) : twin_use_locked(handle, TWIN_STREAM, stream);
    if (result != CUDA_SUCCESS)
        return result;
    if ((*stream)->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        twin_breach_locked("the capture of stream %u was invalidated and has not ended", (*stream)->base.number);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (implicit_capture(*stream)) {
        twin_breach_locked("the legacy stream while a stream that synchronises with it is being captured");
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuStreamCreate, (CUstream * stream, unsigned flags), (stream, flags))
{
    CUresult result = twin_unsafe_locked();
    int device = twin_device_locked();
    if (device < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (flags > CU_STREAM_NON_BLOCKING) {
        twin_breach_locked("flags %u", flags);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS)
        *stream = (CUstream)stream_new(device, flags == CU_STREAM_DEFAULT, false)->base.handle;
    return result;
}

/* Records and waits that nobody looks for any more are none: they end when what they are behind has ended. */
static bool has_work(const twin_stream *stream)
{
    for (const twin_op *op = stream->head; op; op = op->next)
        if (op->kind != OP_RECORD && op->kind != OP_WAIT)
            return true;
    return false;
}

static void stream_forgive(CUstream handle)
{
    twin_stream *stream = twin_find_locked(handle, TWIN_STREAM);
    if (!stream)
        return;
    stream->base.alive = false;
    if (stream->captured) /* it had no other owner yet */
        stream->captured->base.forgiven = true;
}

TWIN_DEFINE_END(cuStreamDestroy, (CUstream handle), (handle), stream_forgive)
{
    twin_stream *stream = NULL;
    CUresult result = twin_unsafe_locked();
    if (result == CUDA_SUCCESS)
        result = twin_destroy_locked(handle, TWIN_STREAM, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_NONE)
        twin_breach_locked("stream %u is being captured", stream->base.number);
    if (has_work(stream))
        twin_breach_locked("stream %u has work that has not run", stream->base.number);
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuStreamSynchronize, (CUstream handle), (handle))
{
    twin_stream *stream = NULL;
    CUresult result = twin_unsafe_locked();
    if (result == CUDA_SUCCESS)
        result = twin_stream_use_locked(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
        twin_breach_locked("stream %u is being captured", stream->base.number);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    twin_note_locked("sync", stream, NULL);
    twin_progress_locked(QUERY_STEPS);
    twin_need_locked(stream, stream->issued);
    twin_show_locked(stream, true);
    return g_twin.lost;
}

TWIN_DEFINE(cuStreamGetCtx, (CUstream handle, CUcontext *context), (handle, context))
{
    twin_stream *stream = NULL;
    CUresult result = stream_find(handle, &stream);
    if (result == CUDA_SUCCESS)
        *context = (CUcontext)g_twin.contexts[stream->base.device]->handle;
    return result;
}

/* ------------------------------------------------------------------------------------------------------------- capture */

/* For questions about captures, so the answer is no breach. */
CUresult twin_stream_ask_locked(CUstream handle, twin_stream **stream)
{
    CUresult result = stream_find(handle, stream);
    return result == CUDA_SUCCESS && implicit_capture(*stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : result;
}

TWIN_DEFINE(cuStreamIsCapturing, (CUstream handle, CUstreamCaptureStatus *status), (handle, status))
{
    twin_stream *stream = NULL;
    CUresult result = twin_stream_ask_locked(handle, &stream);
    if (result == CUDA_SUCCESS)
        *status = stream->capture;
    return result;
}

TWIN_DEFINE(cuStreamBeginCapture, (CUstream handle, CUstreamCaptureMode mode), (handle, mode))
{
    twin_stream *stream = NULL;
    CUresult result = twin_stream_use_locked(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->builtin || stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
        twin_breach_locked("stream %u cannot be captured", stream->base.number);
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    stream->capture_mode = mode;
    stream->capture_thread = twin_self_locked()->number;
    stream->captured = twin_object_new_locked(TWIN_GRAPH, -1, sizeof *stream->captured);
    stream->capture_id = ++g_twin.capture_ids;
    stream->ends = (twin_nodes){twin_memory(sizeof *stream->ends.list), 0, NULL};
    g_twin.captures++;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuStreamEndCapture, (CUstream handle, CUgraph *graph), (handle, graph))
{
    twin_stream *stream = NULL;
    CUresult result = twin_use_locked(handle, TWIN_STREAM, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    bool active = stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    bool mine = stream->capture_thread == twin_self_locked()->number ||
                stream->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    if (stream->capture == CU_STREAM_CAPTURE_STATUS_NONE || !mine) {
        twin_breach_locked("stream %u is not being captured by this thread", stream->base.number);
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    g_twin.captures--;
    stream->captured->base.alive = active;
    if (!active)
        twin_owned_release_locked(&stream->captured->owned);
    twin_capture_end_locked(stream);
    *graph = active ? (CUgraph)stream->captured->base.handle : NULL;
    stream->captured = NULL;
    return active ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

/* -------------------------------------------------------------------------------------------------------------- events */

TWIN_DEFINE(cuEventCreate, (CUevent * event, unsigned flags), (event, flags))
{
    CUresult result = twin_unsafe_locked();
    int device = twin_device_locked();
    if (device < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (flags & ~(unsigned)(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC)) {
        twin_breach_locked("flags %u", flags);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        twin_event *made = twin_object_new_locked(TWIN_EVENT, device, sizeof *made);
        made->timed = !(flags & CU_EVENT_DISABLE_TIMING);
        *event = (CUevent)made->base.handle;
    }
    return result;
}

static void event_forgive(CUevent handle)
{
    twin_event *event = twin_find_locked(handle, TWIN_EVENT);
    if (event)
        event->base.alive = false;
}

TWIN_DEFINE_END(cuEventDestroy, (CUevent handle), (handle), event_forgive)
{
    twin_event *event = NULL;
    CUresult result = twin_unsafe_locked();
    return result == CUDA_SUCCESS ? twin_destroy_locked(handle, TWIN_EVENT, &event) : result;
}

static void record_refused(CUevent handle, CUstream where)
{
    twin_event *event = twin_find_locked(handle, TWIN_EVENT);
    (void)where;
    if (event)
        event->record_refused = true;
}

TWIN_DEFINE_END(cuEventRecord, (CUevent handle, CUstream where), (handle, where), record_refused)
{
    twin_event *event = NULL;
    twin_stream *stream = NULL;
    CUresult result = twin_use_locked(handle, TWIN_EVENT, &event);
    if (result == CUDA_SUCCESS)
        result = twin_stream_use_locked(where, &stream);
    if (result == CUDA_SUCCESS)
        result = twin_chance_locked(stream);
    if (result != CUDA_SUCCESS) {
        if (event)
            event->record_refused = true;
        return result;
    }
    event->captured = stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    twin_note_locked("record", stream, event);
    twin_op *op = twin_memory(sizeof *op);
    op->kind = OP_RECORD;
    if (!event->captured)
        event->recorded = (twin_point){stream, stream->issued + 1};
    twin_push_locked(stream, op);
    return CUDA_SUCCESS;
}

/* An event that stands for something; false after a breach, or where nothing was recorded because a record failed. */
static CUresult event_ready(const twin_event *event, bool *something)
{
    *something = event->recorded.stream != NULL;
    if (event->captured) {
        twin_breach_locked("event %u was recorded in a capture", event->base.number);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (!*something && !event->record_refused)
        twin_breach_locked("event %u was never recorded", event->base.number);
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuStreamWaitEvent, (CUstream handle, CUevent what, unsigned flags), (handle, what, flags))
{
    twin_stream *stream = NULL;
    bool something = false;
    twin_event *event = twin_find_locked(what, TWIN_EVENT); /* an event of another device may be waited for */
    CUresult result = event ? twin_stream_use_locked(handle, &stream) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && flags != CU_EVENT_WAIT_DEFAULT) {
        twin_breach_locked("flags %u", flags);
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS)
        result = twin_chance_locked(stream);
    /* In a capture the event joins its work into the graph; nodes of a capture run in order here already. */
    if (result != CUDA_SUCCESS || (event->captured && stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE))
        return result;
    result = event_ready(event, &something);
    if (result != CUDA_SUCCESS)
        return result;
    twin_note_locked("wait", stream, event);
    if (!something)
        return CUDA_SUCCESS;
    twin_op *op = twin_memory(sizeof *op);
    op->kind = OP_WAIT;
    op->waits = twin_memory(sizeof *op->waits);
    op->waits[op->wait_count++] = event->recorded;
    twin_push_locked(stream, op);
    return CUDA_SUCCESS;
}

static CUresult event_use(CUevent handle, twin_event **event, bool *something)
{
    CUresult result = twin_unsafe_locked();
    if (result == CUDA_SUCCESS)
        result = twin_use_locked(handle, TWIN_EVENT, event);
    return result == CUDA_SUCCESS ? event_ready(*event, something) : result;
}

TWIN_DEFINE(cuEventQuery, (CUevent handle), (handle))
{
    twin_event *event = NULL;
    bool something;
    CUresult result = event_use(handle, &event, &something);
    if (result != CUDA_SUCCESS || !something)
        return result;
    twin_progress_locked(QUERY_STEPS);
    if (g_twin.lost != CUDA_SUCCESS)
        return g_twin.lost;
    twin_show_locked(event->recorded.stream, false);
    return event->recorded.stream->visible >= event->recorded.position ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* Whether an event was made to tell times, and is known to be complete. */
static CUresult timed_event(CUevent handle, twin_event **event)
{
    bool something;
    CUresult result = event_use(handle, event, &something);
    if (result != CUDA_SUCCESS)
        return result;
    if (!(*event)->timed)
        twin_breach_locked("event %u tells no times", (*event)->base.number);
    if (!something || !(*event)->timed)
        return CUDA_ERROR_INVALID_HANDLE;
    return (*event)->recorded.stream->visible < (*event)->recorded.position ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* Times without a meaning, each time others. */
TWIN_DEFINE(cuEventElapsedTime, (float *ms, CUevent begin, CUevent end), (ms, begin, end))
{
    twin_event *from = NULL, *to = NULL;
    CUresult result = timed_event(begin, &from);
    if (result == CUDA_SUCCESS)
        result = timed_event(end, &to);
    if (result == CUDA_SUCCESS)
        *ms = 0.001f * (float)(1 + to->recorded.position * 7 % 31);
    return result;
}

TWIN_DEFINE(cuEventSynchronize, (CUevent handle), (handle))
{
    twin_event *event = NULL;
    bool something;
    CUresult result = event_use(handle, &event, &something);
    if (result != CUDA_SUCCESS || !something)
        return result;
    twin_note_locked("host-wait", NULL, event);
    twin_need_locked(event->recorded.stream, event->recorded.position);
    if (g_twin.lost == CUDA_SUCCESS)
        twin_show_locked(event->recorded.stream, true);
    return g_twin.lost;
}

/*
 * Streams of the program: ops that come behind the work of a stream, and streams that come behind ops. On a stream that
 * is being captured these two calls begin and end a section of the capture (see capture.h). Waits only where the backend
 * has no streams.
 */
#include "capture/capture.h"
#include "api/expand.h"

static bool begin_stream_op(acs_draft *draft, acs_context *context, const acs_site *site, const char *function)
{
    *draft = (acs_draft){.context = acs_context_enter_op(context, function, site), .site = site};
    return draft->context != NULL;
}

acs_op acs_after_stream(acs_context *context, void *stream, acs_uses uses)
{
    return acs_after_stream_op(context, stream, uses, NULL);
}

acs_op acs_after_stream_op(acs_context *context, void *stream, acs_uses uses, const acs_op_params *params)
{
    static const acs_site own = {"acs_after_stream", NULL, 0};
    const acs_site *site = params && params->site ? params->site : &own;
    acs_draft draft;
    if (!begin_stream_op(&draft, context, site, "acs_after_stream"))
        return 0;
    draft.no_wait = params && params->no_wait;
    if (!acs_draft_begin(&draft, ACS_KIND_STREAM_WAIT))
        return 0;
    acs_backend *backend = draft.context->backend;
    void *event = NULL;
    acs_op op = 0;
    draft.record->u.stream.stream = stream;
    draft.record->u.stream.event = NULL;
    acs_status status = acs_draft_expand(&draft, &uses, 0, 0);
    if (status == ACS_OK)
        status = acs_capture_begin(&draft, stream, &op);
    if (status != ACS_NOT_READY)
        return op ? op : acs_draft_drop(&draft);
    if (backend->ops->stream_record(backend, stream, &event) != ACS_OK)
        return acs_draft_drop(&draft);
    draft.captured = false;
    draft.record->u.stream.event = event;
    op = acs_draft_queue(&draft);
    if (!op && event)
        backend->ops->event_release(backend, event);
    return op;
}

acs_status acs_stream_after(acs_context *context, void *stream, acs_uses uses)
{
    static const acs_site site = {"acs_stream_after", NULL, 0};
    acs_draft draft;
    if (!begin_stream_op(&draft, context, &site, __func__))
        return acs_error_thread()->status;
    acs_backend *backend = draft.context->backend;
    acs_op_kind kind = backend->ops->host_calls ? ACS_KIND_OBSERVE : ACS_KIND_STREAM_SIGNAL;
    draft.gives = true;
    if (!acs_draft_begin(&draft, kind))
        return acs_error_thread()->status;
    draft.record->u.stream.stream = stream;
    draft.record->u.stream.event = NULL;
    acs_status status = acs_draft_expand(&draft, &uses, 0, 0);
    if (status == ACS_OK)
        status = acs_capture_end(&draft, stream);
    if (status == ACS_OK)
        return ACS_OK;
    if (status == ACS_NOT_READY)
        status = backend->ops->stream_record(backend, stream, NULL);
    acs_op op = status == ACS_OK ? acs_draft_queue(&draft) : acs_draft_drop(&draft);
    if (op)
        return acs_wait(draft.context, op);
    return status != ACS_OK ? status : acs_error_thread()->status; /* the op could not be queued */
}

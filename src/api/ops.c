/*
 * Public calls that queue ops: kernels, copies, fills, host functions, library calls, retire callbacks. Each validates
 * its arguments, fills a draft (launch.c) and queues it. Never waits for an op to run.
 */
#include "api/draft.h"

#include "api/decisions.h"
#include "api/expand.h"
#include "api/threads.h"

#include <string.h>

static bool begin_draft(acs_draft *draft, acs_context *context, const acs_op_params *params, const char *function)
{
    *draft = (acs_draft){.context = acs_context_enter_op(context, function, params ? params->site : NULL)};
    if (!draft->context)
        return false;
    draft->site = params ? params->site : NULL;
    draft->no_wait = params && params->no_wait;
    return true;
}

/* Begin an op of this kind, which obeys the section that the thread is in. */
static bool begin_decided(acs_draft *draft, acs_op_kind kind, const acs_uses *uses)
{
    const bool sections = acs_context_modes(draft->context) & ACS_MODE_DECISIONS;
    return (ACS_LIKELY(!sections) || acs_decisions_obey(draft, uses)) && acs_draft_begin(draft, kind);
}

static acs_op finish(acs_draft *draft, acs_status status)
{
    return status == ACS_OK ? acs_draft_queue(draft) : acs_draft_drop(draft);
}

static acs_uses uses_of(const acs_segment *segments, size_t count)
{
    return (acs_uses){segments, count, NULL, NULL, 0};
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

static acs_op refuse_launch(acs_context *context, const acs_launch_params *p)
{
    const bool readable = p && p->size == sizeof *p;
    acs_draft draft = {.site = readable ? p->site : NULL, .name = readable && p->kernel ? p->kernel->name : NULL};
    const acs_site site = acs_label_site(acs_draft_label(&draft));
    acs_context_refuse_op(context, &site);
    return 0;
}

/* Queue a launch with plain segments. */
static acs_op launch_expanded(acs_context *context, const acs_launch_params *p)
{
    const uint64_t modes = acs_context_modes(context);
    if (ACS_UNLIKELY(modes & ACS_MODE_VARIANTS))
        return context->hooks->launch_version(context, p);
    if (ACS_UNLIKELY(modes & (ACS_MODE_CHECK | ACS_MODE_REPEATS)))
        return context->hooks->launch(context, p);
    return ACS_UNLIKELY(acs_decisions_decides(context, p)) ? acs_decisions_launch(context, p)
                                                           : acs_launch_unchecked(context, p);
}

acs_op acs_launch(acs_context *context, const acs_launch_params *p)
{
    const bool readable = p && p->size == sizeof *p;
    acs_context *entered = acs_context_enter_at(context, __func__, ACS_LIKELY(readable) ? p->site : NULL);
    if (ACS_UNLIKELY(!entered))
        return refuse_launch(context, p);
    context = entered;
    if (ACS_UNLIKELY(!readable))
        return acs_launch_unchecked(context, p);
    if (ACS_LIKELY(!acs_context_modes(context) && !p->grid_from.word && !acs_uses_are_computed(&p->uses))) {
        const acs_op op = acs_launch_unchecked(context, p); /* it finds out by itself whether segments are plain */
        if (ACS_LIKELY(op != ACS_OP_EXPANDS))
            return op;
    } else if (acs_uses_are_plain(&p->uses)) {
        return launch_expanded(context, p);
    }
    return acs_launch_expanded(context, p, launch_expanded);
}

/* ------------------------------------------------------------------------------------------------- copies and fills */

/* Bind a copy or fill; let the backend make a kernel of it, unless it is captured or held; queue it. */
static acs_op finish_copy(acs_draft *draft, acs_status status)
{
    acs_backend *backend = draft->context->backend;
    if (status == ACS_OK)
        status = acs_draft_bind(draft);
    if (status == ACS_OK && !draft->captured && !draft->group && backend->ops->adapt)
        backend->ops->adapt(backend, draft->record);
    return finish(draft, status);
}

acs_op acs_memcpy_op(acs_context *context, void *dst, const void *src, size_t bytes, const acs_op_params *params)
{
    acs_draft draft;
    const acs_segment segments[] = {ACS_IN(src, bytes), ACS_OUT(dst, bytes)};
    const acs_uses uses = uses_of(segments, 2);
    if (!begin_draft(&draft, context, params, __func__) || !begin_decided(&draft, ACS_KIND_MEMCPY, &uses))
        return 0;
    if (bytes && (!dst || !src)) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_memcpy: %zu bytes from %p to %p", bytes, src, dst);
        return acs_draft_drop(&draft);
    }
    draft.record->u.copy.dst = dst;
    draft.record->u.copy.src = src;
    draft.record->u.copy.bytes = bytes;
    draft.record->u.copy.rows = 1;
    return finish_copy(&draft, acs_draft_uses(&draft, &uses, 0, 0));
}

acs_op acs_memset_op(acs_context *context, void *dst, int value, size_t bytes, const acs_op_params *params)
{
    acs_draft draft;
    const acs_segment segment = ACS_OUT(dst, bytes);
    const acs_uses uses = uses_of(&segment, 1);
    if (!begin_draft(&draft, context, params, __func__) || !begin_decided(&draft, ACS_KIND_MEMSET, &uses))
        return 0;
    if (bytes && !dst) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_memset: %zu bytes at NULL", bytes);
        return acs_draft_drop(&draft);
    }
    draft.record->u.copy.dst = dst;
    draft.record->u.copy.bytes = bytes;
    draft.record->u.copy.rows = 1;
    draft.record->u.copy.value = value;
    return finish_copy(&draft, acs_draft_uses(&draft, &uses, 0, 0));
}

/*
 * ------------------------------------------------------------------------------------------- host functions and calls
 */

/*
 * Copy footprint and closure into the record. *to is the function's argument. Makes `room` for a call's kernels, too.
 */
static acs_status fill_closure(acs_draft *draft, const acs_uses *uses, const void *closure, size_t bytes, void **to,
                               const acs_call_room *room)
{
    if (bytes > ACS_ARG_BYTES_MAX || (bytes && !closure))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "a closure of %zu bytes at %p; at most %d bytes are copied", bytes, closure,
                        ACS_ARG_BYTES_MAX);
    ACS_TRY(acs_draft_expand(draft, uses, room->args, room->bytes > bytes ? room->bytes : (uint32_t)bytes));
    if (bytes)
        memcpy(draft->record->arg_bytes, closure, bytes);
    draft->record->arg_bytes_used = (uint32_t)bytes;
    *to = bytes ? (void *)draft->record->arg_bytes : (void *)(uintptr_t)closure;
    return ACS_OK;
}

acs_op acs_host_op(acs_context *context, acs_host_fn function, const void *closure, size_t closure_bytes, acs_uses uses,
                   const acs_op_params *params)
{
    acs_draft draft;
    if (!begin_draft(&draft, context, params, __func__) || !begin_decided(&draft, ACS_KIND_HOST, &uses))
        return 0;
    if (!function) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_host: the function is NULL");
        return acs_draft_drop(&draft);
    }
    acs_host_thread_start(draft.context);
    draft.record->u.host.function = function;
    return finish(&draft, fill_closure(&draft, &uses, closure, closure_bytes, &draft.record->u.host.closure,
                                       &(acs_call_room){0}));
}

/*
 * Whether the footprint orders the parts of a call one after the other. It does if the call writes anything, since each
 * part then has the same segments to write.
 */
static bool orders_parts(const acs_record *record)
{
    bool writes = record->any;
    for (uint32_t i = 0; i < record->segment_count; i++) {
        const acs_segment *s = &record->segments[i];
        writes |= s->access != ACS_READ && (s->extent != ACS_EXTENT_BYTES || acs_segment_has_bytes(s));
    }
    return writes;
}

/*
 * A record for a later part of the call. Its out segments are inout, for the first part wrote them. NULL: none is free.
 */
static acs_record *new_part(const acs_draft *draft, const acs_call_room *room)
{
    acs_record_pool *pool = draft->context->records;
    const acs_record *first = draft->record;
    acs_record *part = acs_record_acquire(pool);
    if (!part)
        return NULL;
    if (acs_record_reserve(pool, part, room->args, room->bytes, first->segment_count) != ACS_OK) {
        acs_record_release(pool, part);
        return NULL;
    }
    part->asked = first->asked;
    part->site = first->site;
    part->any = first->any;
    part->segment_count = first->segment_count;
    for (uint32_t i = 0; i < first->segment_count; i++) {
        part->segments[i] = first->segments[i];
        if (part->segments[i].access == ACS_WRITE)
            part->segments[i].access = ACS_UPDATE;
    }
    return part;
}

/* Turn the call into kernels, if the backend knows its work; otherwise it stays a call. */
static void become_kernels(acs_draft *draft, const acs_call_room *room)
{
    acs_backend *backend = draft->context->backend;
    const acs_error before = *acs_error_thread();
    uint32_t parts = 1;
    draft->part[0] = draft->record;
    while (parts < room->parts && (draft->part[parts] = new_part(draft, room)) != NULL)
        parts++;
    bool became = parts == room->parts && backend->ops->call_adapt(backend, draft->part);
    for (uint32_t i = 1; i < parts && !became; i++)
        acs_record_release(draft->context->records, draft->part[i]);
    draft->parts = became && parts > 1 ? parts : 0;
    if (!became)
        *acs_error_thread() = before; /* to stay a call is no error */
}

static acs_status fill_call(acs_draft *draft, const acs_call_params *call)
{
    acs_backend *backend = draft->context->backend;
    acs_record *record = draft->record;
    acs_call_room room = {0};
    record->u.call.function = call->function;
    record->u.call.scratch_bytes = call->scratch_bytes;
    record->u.call.place_key = call->place_key;
    record->u.call.place_destroy = call->place_destroy;
    record->u.call.known = NULL;
    if (call->repeatable && call->closure && !draft->captured && !draft->group && !draft->cell && backend->ops->call_find)
        backend->ops->call_find(backend, record, call, &room);
    ACS_TRY(fill_closure(draft, &call->uses, call->closure, call->closure_bytes, &record->u.call.closure, &room));
    const bool fits = room.parts <= (uint64_t)draft->context->options.fifo; /* all parts are queued at once */
    if (room.parts == 1 || (room.parts && fits && orders_parts(record)))
        become_kernels(draft, &room);
    return ACS_OK;
}

acs_op acs_call(acs_context *context, const acs_call_params *call)
{
    acs_draft draft;
    acs_record *part[ACS_CALL_PARTS];
    acs_op_params params = {call ? call->site : NULL, call ? call->no_wait : 0};
    const acs_uses none = {NULL, 0, NULL, NULL, 0};
    if (!begin_draft(&draft, context, &params, __func__) ||
        !begin_decided(&draft, ACS_KIND_CALL, call && call->size == sizeof *call ? &call->uses : &none))
        return 0;
    if (!call || call->size != sizeof *call || !call->function) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_call: params %p, size %zu instead of %zu, or a NULL function",
                 (const void *)call, call ? call->size : 0, sizeof *call);
        return acs_draft_drop(&draft);
    }
    if (draft.context->backend->ops->host_calls)
        acs_host_thread_start(draft.context);
    draft.part = part;
    return finish(&draft, fill_call(&draft, call));
}

acs_op acs_on_retire(acs_context *context, acs_op op, acs_retire_fn function, void *user)
{
    static const acs_site site = {"acs_on_retire", NULL, 0};
    acs_draft draft;
    acs_op_params params = {&site, 0};
    if (!begin_draft(&draft, context, &params, __func__) || !acs_draft_begin(&draft, ACS_KIND_CALLBACK))
        return 0;
    if (acs_context_check_op(draft.context, op, __func__) != ACS_OK)
        return acs_draft_drop(&draft);
    if (!function) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_on_retire: the function is NULL");
        return acs_draft_drop(&draft);
    }
    acs_host_thread_start(draft.context);
    draft.record->u.callback.function = function;
    draft.record->u.callback.user = user;
    draft.record->u.callback.target = op;
    acs_uses none = uses_of(NULL, 0);
    return finish(&draft, acs_draft_uses(&draft, &none, 0, 0));
}

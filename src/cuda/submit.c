/*
 * The CUDA backend's path of an op: issue of batches, marks, completion. Called by threads that step the runtime; no
 * lock is taken on the path of an op. It never waits for the GPU, with one exception: if the driver cannot make or
 * record an event, the stream is synchronised instead, so that order is never lost.
 */
#include "cuda/bundle.h"
#include "cuda/kernel.h"
#include "cuda/share.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- marks */

static CUevent *mark_event(acs_cuda *self, const acs_mark *mark)
{
    return &self->marks[(size_t)mark->slot * self->mark_capacity + mark->index];
}

/*
 * Record a mark. If the driver refuses, wait for the slot: a mark that was not recorded counts as complete, which is
 * then true.
 */
static void record_own(acs_cuda *self, const acs_mark *mark)
{
    if (acs_cuda_fault(self))
        return;
    if (ACS_UNLIKELY(!self->now[mark->slot].stream))
        acs_cuda_share_change(self, mark->slot, 0);
    CUevent *event = mark_event(self, mark);
    CUstream stream = self->now[mark->slot].stream;
    CUresult result = *event ? CUDA_SUCCESS : self->cu.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuEventRecord(*event, stream);
        if (result == CUDA_SUCCESS)
            return;
    } else {
        *event = NULL;
    }
    if (acs_cuda_note(self, result))
        return;
    acs_log(ACS_LOG_WARN, "cuda: slot %u: an event could not be recorded (%s); waiting for the stream", mark->slot,
            acs_cuda_text((int)result));
    result = self->cu.cuStreamSynchronize(stream);
    if (result != CUDA_SUCCESS)
        acs_cuda_lose(self, result);
}

/* Enter the scope of the member that made an event or stream. False: it cannot be entered. */
static bool visit(acs_cuda *self, acs_cuda *owner, acs_cuda_scope *scope)
{
    CUresult result = owner == self ? CUDA_SUCCESS : acs_cuda_scope_enter(owner, scope);
    if (result != CUDA_SUCCESS)
        acs_cuda_lose(self, result);
    return result == CUDA_SUCCESS;
}

/* Leave the other member's scope. A thread of the library then enters its own member's context again. */
static void end_visit(acs_cuda *self, acs_cuda *owner, acs_cuda_scope *scope)
{
    acs_cuda_scope back;
    if (owner == self)
        return;
    acs_cuda_scope_leave(owner, scope);
    CUresult result = acs_cuda_scope_enter(self, &back);
    if (result == CUDA_SUCCESS)
        acs_cuda_scope_leave(self, &back);
    else
        acs_cuda_lose(self, result);
}

static void record_mark(acs_cuda *self, const acs_mark *mark)
{
    acs_cuda *owner = acs_cuda_of_slot(self, mark->slot);
    acs_cuda_scope scope;
    if (!visit(self, owner, &scope))
        return;
    record_own(owner, mark);
    end_visit(self, owner, &scope);
}

/* Let one of our streams wait for an event of any member; if the driver refuses, wait on the host. */
static void wait_event(acs_cuda *self, CUstream stream, acs_cuda *owner, CUevent event)
{
    acs_cuda_scope scope;
    if (!event || acs_cuda_fault(self))
        return;
    CUresult result = self->cu.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT);
    if (result == CUDA_SUCCESS || acs_cuda_note(self, result))
        return;
    acs_log(ACS_LOG_WARN, "cuda: a stream could not wait for an event (%s); waiting on the host",
            acs_cuda_text((int)result));
    if (!visit(self, owner, &scope))
        return;
    result = self->cu.cuEventSynchronize(event);
    end_visit(self, owner, &scope);
    if (result != CUDA_SUCCESS)
        acs_cuda_lose(self, result);
}

/* ------------------------------------------------------------------------------------------------------------ ops */

/* Fill the item's result from the driver's answer. */
static acs_status item_result(acs_cuda *self, acs_item *item, CUresult result)
{
    if (ACS_LIKELY(result == CUDA_SUCCESS))
        return ACS_OK;
    item->native = (int)result;
    const acs_record *op = item->op;
    item->text = result == CUDA_ERROR_INVALID_HANDLE && op->kind == ACS_KIND_KERNEL &&
                         op->u.launch.kernel.kind == ACS_KERNEL_CUFUNCTION
                     ? "invalid handle: the CUfunction is of another GPU or CUDA context, or its module was unloaded"
                     : acs_cuda_text((int)result);
    return acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_LAUNCH;
}

/* A fill of host memory that CUDA does not know, by a host function on a thread of the driver. */
struct acs_cuda_fill {
    acs_cuda *self;
    void *dst;
    uint64_t bytes;
    int value;
    acs_cuda_fill *next, **link; /* list self->fills */
};

static void fill_unlink(acs_cuda_fill *fill)
{
    ACS_HOLD(&fill->self->lock);
    *fill->link = fill->next;
    if (fill->next)
        fill->next->link = fill->link;
    free(fill);
}

static void CUDA_CB fill_on_host(void *argument)
{
    acs_cuda_fill *fill = argument;
    memset(fill->dst, fill->value, fill->bytes);
    fill_unlink(fill);
}

/*
 * Fill memory that the driver refuses to fill, by a host function of the stream. Once a device is lost that is not
 * called.
 */
static CUresult fill_pageable(acs_cuda *self, const acs_record *op, CUstream stream)
{
    acs_cuda_fill *fill = malloc(sizeof *fill);
    if (!fill)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *fill = (acs_cuda_fill){self, op->u.copy.dst, op->u.copy.bytes, op->u.copy.value, NULL, &self->fills};
    acs_lock_acquire(&self->lock);
    fill->next = self->fills;
    if (fill->next)
        fill->next->link = &fill->next;
    self->fills = fill;
    acs_lock_release(&self->lock);
    CUresult result = self->cu.cuLaunchHostFunc(stream, fill_on_host, fill);
    if (result != CUDA_SUCCESS)
        fill_unlink(fill);
    return result;
}

/* Free the fills that are left: the device was lost, so their functions were not called and never will be. */
void acs_cuda_fills_fini(acs_cuda *self)
{
    while (self->fills)
        fill_unlink(self->fills);
}

/* Ask what the memory is. CUDA_ERROR_INVALID_VALUE: pageable, unknown to CUDA. Any other error: no answer. */
static CUresult ask_memory(acs_cuda *self, CUdeviceptr pointer)
{
    CUmemorytype type = 0;
    return self->cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
}

static CUresult issue_fill(acs_cuda *self, const acs_record *op, CUdeviceptr dst, CUstream stream)
{
    CUresult result = self->cu.cuMemsetD8Async(dst, (unsigned char)op->u.copy.value, op->u.copy.bytes, stream);
    /* The memory is asked about only after a refusal, so that the common fill pays nothing. */
    bool refused = result == CUDA_ERROR_INVALID_VALUE && ask_memory(self, dst) == CUDA_ERROR_INVALID_VALUE;
    return refused ? fill_pageable(self, op, stream) : result;
}

/* Copy rows. Only the library asks for that, between its replicas of a block, which lie where the driver says. */
static CUresult issue_rows(acs_cuda *self, const acs_record *op, CUstream stream)
{
    const CUDA_MEMCPY2D rows = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = (CUdeviceptr)(uintptr_t)op->u.copy.src,
        .srcPitch = op->u.copy.pitch,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = (CUdeviceptr)(uintptr_t)op->u.copy.dst,
        .dstPitch = op->u.copy.pitch,
        .WidthInBytes = op->u.copy.bytes,
        .Height = op->u.copy.rows,
    };
    CUresult result = self->cu.cuMemcpy2DAsync ? self->cu.cuMemcpy2DAsync(&rows, stream) : CUDA_SUCCESS;
    for (uint64_t i = 0; i < rows.Height && !self->cu.cuMemcpy2DAsync && result == CUDA_SUCCESS; i++)
        result = self->cu.cuMemcpyAsync(rows.dstDevice + i * rows.dstPitch, rows.srcDevice + i * rows.srcPitch,
                                        rows.WidthInBytes, stream);
    return result;
}

/*
 * Issue MEMCPY and MEMSET. Pageable memory is legal: the driver stages it while this thread waits. But the driver
 * reads a pageable source during the call, not when the stream gets there. So earlier work of the stream must end
 * first.
 */
static CUresult issue_copy(acs_cuda *self, const acs_record *op, CUstream stream)
{
    CUdeviceptr dst = (CUdeviceptr)(uintptr_t)op->u.copy.dst;
    if (op->u.copy.bytes == 0)
        return CUDA_SUCCESS;
    if (op->kind == ACS_KIND_MEMSET)
        return issue_fill(self, op, dst, stream);
    if (op->u.copy.rows > 1)
        return issue_rows(self, op, stream);
    CUdeviceptr src = (CUdeviceptr)(uintptr_t)op->u.copy.src;
    /* Without an answer this thread waits too, which is right for all memory. */
    CUresult result = ask_memory(self, src) == CUDA_SUCCESS ? CUDA_SUCCESS : self->cu.cuStreamSynchronize(stream);
    if (result != CUDA_SUCCESS)
        return result;
    return self->cu.cuMemcpyAsync(dst, src, op->u.copy.bytes, stream);
}

/* Let earlier calls of the slot end before a larger scratch block replaces the old one, which they may be using. */
static CUresult scratch_settle(acs_cuda *self, const acs_item *item, CUstream stream)
{
    size_t *high = &self->scratch_high[item->slot];
    if (item->op->u.call.scratch_bytes <= *high)
        return CUDA_SUCCESS;
    CUresult result = *high ? self->cu.cuStreamSynchronize(stream) : CUDA_SUCCESS;
    *high = item->op->u.call.scratch_bytes;
    return result;
}

/* Issue a library call: the program's function issues into the slot's stream, so its work is in order there. */
static acs_status issue_call(acs_cuda *self, acs_item *item, CUstream stream)
{
    CUresult sent;
    ACS_TRY(item_result(self, item, scratch_settle(self, item, stream)));
    if (item->op->u.call.known && acs_cuda_call_send(self, item, stream, &sent))
        return item_result(self, item, sent);
    acs_status status =
        acs_call_run(self->base.calls, &self->base, item->op, item->slot, self->device, (void *)stream, &item->native);
    if (status == ACS_ERR_MEMORY) { /* the function did not run */
        item->text = "no memory for the call's scratch block or place";
        return ACS_ERR_LAUNCH;
    }
    if (status == ACS_OK && item->op->u.call.known)
        acs_cuda_call_learn(self, item);
    return status; /* a code of the call's own has no text here, since it may be no CUDA error */
}

/*
 * Let the foreign stream wait for the upstream ops. A capturing stream is refused, since the wait would break its
 * capture.
 */
static CUresult signal_stream(acs_cuda *self, const acs_batch *batch, const acs_item *item)
{
    CUstream stream = item->op->u.stream.stream;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = self->cu.cuStreamIsCapturing(stream, &capture);
    if (result == CUDA_SUCCESS && capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (uint32_t i = 0; i < item->wait_count && result == CUDA_SUCCESS; i++) {
        CUevent event = *mark_event(self, &batch->waits[item->first_wait + i]);
        if (event)
            result = self->cu.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT);
    }
    return result;
}

/*
 * Whether an op runs that the device cannot switch: waits for its stream, and reads the op's cell. False: it does not, or
 * it is unknown; the item has its status.
 */
static bool decided_here(acs_cuda *self, acs_item *item, CUstream stream)
{
    bool runs = true;
    if (ACS_UNLIKELY(item->op->flags & ACS_RECORD_DECIDED))
        item->status = item_result(self, item, acs_cuda_cell_wait(self, item->op, stream, &runs));
    return runs && item->status == ACS_OK;
}

/* Send one op. HOST, FREE and CALLBACK ops never come here: the core runs them when their upstream ops have retired. */
static acs_status issue_op(acs_cuda *self, const acs_batch *batch, acs_item *item)
{
    acs_record *op = item->op;
    CUstream stream = item->slot < 0 ? NULL : self->now[(uint32_t)item->slot].stream;
    switch (op->kind) {
    case ACS_KIND_KERNEL:
        if (ACS_UNLIKELY(op->flags & ACS_RECORD_TIMED))
            return item_result(self, item, acs_cuda_launch_timed(self, op, stream));
        return ACS_LIKELY(!(op->flags & ACS_RECORD_DECISION))
                   ? item_result(self, item, acs_cuda_launch(self, op, stream))
                   : item_result(self, item, acs_cuda_launch_decided(self, op, item->slot, item->value));
    case ACS_KIND_MEMCPY:
    case ACS_KIND_MEMSET:
        return decided_here(self, item, stream) ? item_result(self, item, issue_copy(self, op, stream)) : item->status;
    case ACS_KIND_CALL:
        return decided_here(self, item, stream) ? issue_call(self, item, stream) : item->status;
    case ACS_KIND_REPLAY:
        return acs_cuda_replay_issue(self, item);
    case ACS_KIND_STREAM_WAIT:
        wait_event(self, stream, ((acs_cuda_event *)op->u.stream.event)->owner,
                   ((acs_cuda_event *)op->u.stream.event)->event);
        return ACS_OK; /* after a failure the host has waited, or the device is marked as lost */
    case ACS_KIND_STREAM_SIGNAL:
        return item_result(self, item, signal_stream(self, batch, item));
    default:
        item->text = "the cuda backend does not run this kind of op";
        return ACS_ERR_INTERNAL;
    }
}

/* Issue an op and record its own mark, also if the op failed, since waits for the mark must not hang. */
static void issue_or_skip(acs_cuda *self, const acs_batch *batch, acs_item *item)
{
    if (!acs_cuda_fault(self) && !acs_item_may_follow(batch, item)) {
        item->status = ACS_ERR_SKIPPED;
    } else if (!acs_cuda_fault(self)) {
        const unsigned watched = acs_cuda_watched(self) ? acs_cuda_watch_op(self, item->op, item->slot) : 0;
        item->status = issue_op(self, batch, item);
        if (ACS_UNLIKELY(watched))
            acs_cuda_watch_end(watched);
    }
    if (item->mark_after)
        record_mark(self, &item->after);
    /* If the fault came before the op or while its mark was recorded, nothing is known of the op. */
    if (item->status == ACS_OK && acs_cuda_fault(self))
        acs_item_result(item, ACS_ERR_DEVICE, acs_cuda_fault(self), acs_cuda_text(acs_cuda_fault(self)));
    /* The wait is sent, or will never be. A skipped op keeps its event, which is released when it retires. */
    if (item->op->kind == ACS_KIND_STREAM_WAIT && item->status != ACS_ERR_SKIPPED) {
        acs_cuda_event_release(&self->base, item->op->u.stream.event);
        item->op->u.stream.event = NULL;
    }
}

static void marks_and_waits(acs_cuda *self, const acs_batch *batch, const acs_item *item)
{
    for (uint32_t i = 0; i < item->mark_count; i++)
        record_mark(self, &batch->marks[item->first_mark + i]);
    if (item->slot < 0)
        return;
    const uint32_t slot = (uint32_t)item->slot;
    if (ACS_UNLIKELY(self->now[slot].share != item->share))
        acs_cuda_share_change(self, slot, item->share);
    for (uint32_t i = 0; i < item->wait_count; i++) {
        const acs_mark *mark = &batch->waits[item->first_wait + i];
        wait_event(self, self->now[slot].stream, acs_cuda_of_slot(self, mark->slot), *mark_event(self, mark));
    }
}

/* Marks and waits are issued also for items that fail or are skipped, since other ops rely on that order. */
static void submit_item(acs_cuda *self, acs_batch *batch, acs_item *item)
{
    acs_item_result(item, ACS_OK, 0, NULL);
    marks_and_waits(self, batch, item);
    if (item->op)
        issue_or_skip(self, batch, item);
}

/*
 * Issue a bundle, as a whole or not at all. The mark is recorded also behind a refused bundle, whose ops follow in the
 * same slot.
 */
static void submit_bundle(acs_cuda *self, acs_batch *batch)
{
    const acs_item *first = &batch->items[0], *last = &batch->items[batch->items_used - 1];
    marks_and_waits(self, batch, first);
    while (!last->op)
        last--;
    acs_status status = acs_cuda_fault(self) ? ACS_ERR_DEVICE : acs_cuda_bundle_issue(self, batch, first->slot, last->value);
    record_mark(self, &last->after);
    int fault = acs_cuda_fault(self);
    for (uint32_t i = 0; i < batch->items_used; i++) {
        acs_item *item = &batch->items[i];
        if (fault)
            acs_item_result(item, ACS_ERR_DEVICE, fault, acs_cuda_text(fault));
        else
            acs_item_result(item, status == ACS_OK || !item->edge_count ? status : ACS_ERR_SKIPPED, 0, NULL);
    }
}

/* Ask for the device code once that may pay: after as many ops as a bundle holds, or at a replay, whose program recurs. */
static void count_sent(acs_cuda *first, const acs_batch *batch)
{
    uint32_t ops = 0;
    for (uint32_t i = 0; i < batch->items_used; i++)
        if (batch->items[i].op)
            ops += batch->items[i].op->kind == ACS_KIND_REPLAY ? TUNE_BUNDLE_MOST : 1;
    /* relaxed: a count */
    if (first->code_wanted && atomic_fetch_add_explicit(&first->sent, ops, memory_order_relaxed) + ops >= TUNE_BUNDLE_MOST)
        acs_cuda_code_ask(first);
}

/* Takes no lock: the core gives a slot and its marks to one thread at a time. */
void acs_cuda_submit(acs_backend *backend, acs_batch *batch)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[batch->device];
    acs_cuda_scope scope;
    uint64_t began_ns;
    bool timed = acs_cuda_launches_begin(self, batch, &began_ns);
    CUresult entered = acs_cuda_scope_enter(self, &scope);
    if (entered != CUDA_SUCCESS)
        acs_cuda_lose(self, entered); /* our context cannot be made current any more */
    if (batch->bundle)
        submit_bundle(self, batch);
    for (uint32_t i = 0; i < batch->items_used && !batch->bundle; i++)
        submit_item(self, batch, &batch->items[i]);
    acs_cuda_scope_leave(self, &scope);
    if (ACS_UNLIKELY(!acs_cuda_has_code(self)))
        count_sent(self->members[0], batch);
    if (timed)
        acs_cuda_launches_end(self, batch, began_ns);
}

/* ----------------------------------------------------------------------------------------------------- completion */

/* Whether a mark is complete. A mark that was never recorded is, by record_own's rule. */
static CUresult query(acs_cuda *self, const acs_mark *mark)
{
    CUevent event = *mark_event(self, mark);
    return event ? self->cu.cuEventQuery(event) : CUDA_SUCCESS; /* never recorded: the slot was waited for */
}

/*
 * Find the last completed mark of a slot. Marks complete in order. Mostly none has or all have; else the search
 * halves.
 */
static CUresult poll_marks(acs_cuda *self, const acs_mark *marks, uint32_t count, uint64_t *completed)
{
    CUresult result = query(self, &marks[0]);
    if (result != CUDA_SUCCESS)
        return result;
    uint32_t done = 0, pending = count; /* marks[done] is complete, marks[pending] is not or does not exist */
    uint32_t probe = count - 1;
    while (pending - done > 1) {
        result = query(self, &marks[probe]);
        if (result == CUDA_SUCCESS)
            done = probe;
        else if (result == CUDA_ERROR_NOT_READY)
            pending = probe;
        else
            break; /* marks seen complete stay complete, whatever happened since */
        probe = done + (pending - done) / 2;
    }
    *completed = marks[done].value;
    return result;
}

/* Any error but "not ready" ends the device's use, since completion can no longer be learnt. */
acs_status acs_cuda_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed)
{
    acs_cuda *self = (acs_cuda *)backend;
    acs_cuda_scope scope;
    int fault = acs_cuda_fault(self);
    if (!fault) {
        uint64_t marked = 0;
        uint32_t first;
        CUresult result = acs_cuda_scope_enter(self, &scope);
        if (result == CUDA_SUCCESS) {
            count = acs_cuda_gpu_issue_marks(self, slot, marks, count, &first);
            if (count)
                result = poll_marks(self, marks + first, count, &marked);
            acs_cuda_scope_leave(self, &scope);
            marked = acs_cuda_progress(self, slot, marked);
            if (first && marks[first - 1].value > marked) /* the device reported it, but the core may not have booked it */
                marked = marks[first - 1].value;
        }
        if (marked)
            *completed = marked;
        if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
            return ACS_OK;
        acs_cuda_lose(self, result); /* completion can no longer be learnt, whatever the error */
        fault = acs_cuda_fault(self);
    }
    /* The refusal is pinned memory of the context. */
    const char *refusal = fault == CUDA_ERROR_CONTEXT_IS_DESTROYED ? NULL : acs_cuda_gpu_issue_refusal(self);
    if (refusal)
        return ACS_FAIL(ACS_ERR_DEVICE, fault,
                        "cuda: the device was given up (seen in slot %d): it could not launch an op by itself, for which "
                        "ACS_ISSUE=gpu or auto asks: %s",
                        slot, refusal);
    return ACS_FAIL(ACS_ERR_DEVICE, fault, "cuda: the device faulted (seen in slot %d): %s", slot,
                    acs_cuda_text(fault));
}

/*
 * The CUDA backend's path of an op, but for batches: marks, waits, and what goes to a stream for one op. Called by
 * submit.c, and by the threads that issue (issuers.c). No lock is taken on the path of an op. It never waits for the
 * GPU, with one exception: if the driver cannot make or record an event, the stream is synchronised instead, so that
 * order is never lost.
 */
#include "cuda/issue.h"

#include "cuda/bundle.h"
#include "cuda/kernel.h"
#include "cuda/share.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- marks */

CUevent *acs_cuda_mark_event(acs_cuda *self, const acs_mark *mark)
{
    return &self->marks[(size_t)mark->slot * self->mark_capacity + mark->index];
}

/*
 * Make the event of a mark, and those behind it: making them is dear beside threads that launch. An event is made once, and
 * recorded by whoever has the slot.
 */
static CUresult make_events(acs_cuda *self, const acs_mark *mark)
{
    CUevent *events = acs_cuda_mark_event(self, mark);
    const uint32_t left = self->mark_capacity - mark->index;
    CUresult result = CUDA_SUCCESS, first = CUDA_SUCCESS;
    acs_cuda_gate_begin(&self->members[0]->gate);
    for (uint32_t i = 0; i < TUNE_SLOT_EVENTS_LEAST && i < left && !events[i] && result == CUDA_SUCCESS; i++) {
        result = self->cu.cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING);
        if (result != CUDA_SUCCESS)
            events[i] = NULL;
        first = i ? first : result;
    }
    acs_cuda_gate_end(&self->members[0]->gate);
    return first;
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
    CUevent *event = acs_cuda_mark_event(self, mark);
    CUstream stream = self->now[mark->slot].stream;
    CUresult result = ACS_LIKELY(*event != NULL) ? CUDA_SUCCESS : make_events(self, mark);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuEventRecord(*event, stream);
        if (result == CUDA_SUCCESS)
            return;
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

static void record_mark(void *user, const acs_mark *mark)
{
    acs_cuda *self = *(acs_cuda **)user, *owner = acs_cuda_of_slot(self, mark->slot);
    acs_cuda_scope scope;
    if (ACS_UNLIKELY(owner != self) && !visit(self, owner, &scope))
        return;
    record_own(owner, mark);
    if (ACS_UNLIKELY(owner != self))
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
        CUevent event = *acs_cuda_mark_event(self, &batch->waits[item->first_wait + i]);
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

/* HOST, FREE and CALLBACK ops never come here: the core runs them when their upstream ops have retired. */
void acs_cuda_issue_op(acs_cuda *self, const acs_batch *batch, acs_item *item)
{
    acs_record *op = item->op;
    const unsigned watched = acs_cuda_watched(self) ? acs_cuda_watch_op(self, op, item->slot) : 0;
    if (item->slot >= 0 && ACS_UNLIKELY(self->now[item->slot].share != item->share))
        acs_cuda_share_change(self, (uint32_t)item->slot, item->share);
    CUstream stream = item->slot < 0 ? NULL : self->now[item->slot].stream;
    acs_status status = ACS_ERR_INTERNAL;
    switch (op->kind) {
    case ACS_KIND_KERNEL:
        if (ACS_UNLIKELY(op->flags & ACS_RECORD_TIMED))
            status = item_result(self, item, acs_cuda_launch_timed(self, op, stream));
        else if (ACS_LIKELY(!(op->flags & ACS_RECORD_DECISION)))
            status = item_result(self, item, acs_cuda_launch(self, op, stream));
        else
            status = item_result(self, item, acs_cuda_launch_decided(self, op, item->slot, item->value));
        break;
    case ACS_KIND_MEMCPY:
    case ACS_KIND_MEMSET:
        status = decided_here(self, item, stream) ? item_result(self, item, issue_copy(self, op, stream)) : item->status;
        break;
    case ACS_KIND_CALL:
        status = decided_here(self, item, stream) ? issue_call(self, item, stream) : item->status;
        break;
    case ACS_KIND_REPLAY:
        status = acs_cuda_replay_issue(self, item);
        break;
    case ACS_KIND_STREAM_WAIT:
        wait_event(self, stream, ((acs_cuda_event *)op->u.stream.event)->owner,
                   ((acs_cuda_event *)op->u.stream.event)->event);
        status = ACS_OK; /* after a failure the host has waited, or the device is marked as lost */
        break;
    case ACS_KIND_STREAM_SIGNAL:
        status = item_result(self, item, signal_stream(self, batch, item));
        break;
    default:
        item->text = "the cuda backend does not run this kind of op";
    }
    item->status = status;
    if (ACS_UNLIKELY(watched))
        acs_cuda_watch_end(watched);
}

/* ---------------------------------------------------------------------------------------------- by threads that issue */

/* The context of a slot's member becomes current, in a thread of the library. */
static void enter_slot(acs_cuda **now, uint32_t slot)
{
    acs_cuda_scope scope;
    *now = acs_cuda_of_slot(*now, slot);
    const CUresult result = acs_cuda_scope_enter(*now, &scope);
    if (result != CUDA_SUCCESS)
        acs_cuda_lose(*now, result);
}

static bool issue_lost(void *user)
{
    return acs_cuda_fault(*(acs_cuda **)user) != 0;
}

static void issue_wait(void *user, uint32_t slot, uint8_t share, const acs_mark *mark)
{
    acs_cuda **now = user, *self = acs_cuda_of_slot(*now, slot);
    if (ACS_UNLIKELY(self != *now))
        enter_slot(now, slot);
    if (ACS_UNLIKELY(self->now[slot].share != share))
        acs_cuda_share_change(self, slot, share);
    wait_event(self, self->now[slot].stream, acs_cuda_of_slot(self, mark->slot), *acs_cuda_mark_event(self, mark));
}

static void issue_command(void *user, acs_command *command)
{
    acs_cuda **now = user, *self = acs_cuda_of_slot(*now, command->slot);
    if (ACS_UNLIKELY(self != *now))
        enter_slot(now, command->slot);
    acs_item item = {.op = command->op, .slot = (int16_t)command->slot, .value = command->value, .share = command->share};
    acs_cuda_issue_op(self, NULL, &item);
    command->status = item.status;
    command->native = item.native;
    command->text = item.text;
}

static void issue_full(void *user)
{
    acs_cuda_lose(*(acs_cuda **)user, CUDA_ERROR_OUT_OF_MEMORY);
}

static void issue_pause(void *user)
{
    acs_cuda *first = (*(acs_cuda **)user)->members[0];
    if (first->issuers) /* a thread may have fallen asleep just when it was given an op */
        first->wake_issuers(first);
    acs_pause_briefly();
}

const acs_issue_ops acs_cuda_issue_ops = {.lost = issue_lost, .mark = record_mark, .wait = issue_wait, .op = issue_command,
                                          .pause = issue_pause, .full = issue_full};

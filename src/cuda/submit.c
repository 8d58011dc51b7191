/*
 * The CUDA backend's batches, and completion. Called by threads that step the runtime. What belongs to one op is in
 * issue.c; kernels, copies and fills go by the threads that issue while these are awake (issuers.c). It never waits for
 * the GPU, but as issue.c does.
 */
#include "cuda/bundle.h"
#include "cuda/issue.h"
#include "cuda/issuers.h"
#include "cuda/share.h"

#include "base/tuning.h"

/* ------------------------------------------------------------------------------------------------------------- submit */

/* Issue an op and record its own mark, also if the op is skipped or failed, since waits for the mark must not hang. */
static void issue_now(acs_cuda *self, const acs_batch *batch, acs_item *item, bool follows)
{
    if (!follows)
        item->status = ACS_ERR_SKIPPED;
    else if (!acs_cuda_fault(self))
        acs_cuda_issue_op(self, batch, item);
    if (item->mark_after)
        acs_issue_queue_send_mark(self->members[0]->base.queue, &item->after, false, &acs_cuda_issue_ops, &self);
    /* If the fault came before the op or while its mark was recorded, nothing is known of the op. */
    if (item->status == ACS_OK && acs_cuda_fault(self))
        acs_item_result(item, ACS_ERR_DEVICE, acs_cuda_fault(self), acs_cuda_text(acs_cuda_fault(self)));
    /* The wait is sent, or will never be. A skipped op keeps its event, which is released when it retires. */
    if (item->op->kind == ACS_KIND_STREAM_WAIT && item->status != ACS_ERR_SKIPPED) {
        acs_cuda_event_release(&self->base, item->op->u.stream.event);
        item->op->u.stream.event = NULL;
    }
}

/*
 * Give an item to the threads that issue, or carry it out here. Marks and waits are issued also for items that fail or are
 * skipped, since other ops rely on that order. True: it was given.
 */
static bool send_item(acs_cuda *self, acs_batch *batch, acs_item *item, bool takers)
{
    acs_issue_queue *queue = self->members[0]->base.queue;
    const bool follows = !item->op || acs_item_may_follow(batch, item);
    /* ops whose result nobody needs now, and that run no code of the program */
    const uint32_t given_kinds = 1u << ACS_KIND_KERNEL | 1u << ACS_KIND_MEMCPY | 1u << ACS_KIND_MEMSET;
    const bool gives = takers && item->op && follows && given_kinds >> item->op->kind & 1 &&
                       !(item->op->flags & (ACS_RECORD_TIMED | ACS_RECORD_DECISION));
    acs_item_result(item, ACS_OK, 0, NULL);
    const acs_issue_way way = acs_issue_queue_send(queue, batch, item, takers, gives, &acs_cuda_issue_ops, &self);
    if (way == ACS_ISSUE_NOW && item->op) {
        issue_now(self, batch, item, follows);
    } else if (way == ACS_ISSUE_LATER) {
        item->status = follows ? ACS_NOT_READY : ACS_ERR_SKIPPED;
        if (item->mark_after)
            acs_issue_queue_send_mark(queue, &item->after, false, &acs_cuda_issue_ops, &self);
    }
    return takers || way == ACS_ISSUE_LATER;
}

/*
 * Issue a bundle, as a whole or not at all. The mark is recorded also behind a refused bundle, whose ops follow in the
 * same slot. True: marks or waits were given to threads that issue.
 */
static bool submit_bundle(acs_cuda *self, acs_batch *batch)
{
    const acs_item *first = &batch->items[0], *last = &batch->items[batch->items_used - 1];
    acs_issue_queue *queue = self->members[0]->base.queue;
    const acs_issue_way way = acs_issue_queue_send(queue, batch, first, false, false, &acs_cuda_issue_ops, &self);
    while (!last->op)
        last--;
    acs_status status = ACS_NOT_READY;
    if (way == ACS_ISSUE_NOW) {
        if (ACS_UNLIKELY(self->now[first->slot].share != first->share))
            acs_cuda_share_change(self, (uint32_t)first->slot, first->share);
        status = acs_cuda_fault(self) ? ACS_ERR_DEVICE : acs_cuda_bundle_issue(self, batch, first->slot, last->value);
    }
    acs_issue_queue_send_mark(queue, &last->after, false, &acs_cuda_issue_ops, &self);
    int fault = acs_cuda_fault(self);
    for (uint32_t i = 0; i < batch->items_used; i++) {
        acs_item *item = &batch->items[i];
        if (fault)
            acs_item_result(item, ACS_ERR_DEVICE, fault, acs_cuda_text(fault));
        else
            acs_item_result(item, status == ACS_OK || !item->edge_count ? status : ACS_ERR_SKIPPED, 0, NULL);
    }
    return way == ACS_ISSUE_LATER;
}

/* Ask for the device code at a replay, and after as many ops as a bundle holds if it may pay for these. */
static void count_sent(acs_cuda *first, const acs_batch *batch)
{
    uint32_t ops = 0;
    const uint32_t counts = atomic_load_explicit(&first->code_counts, memory_order_relaxed); /* relaxed: a hint */
    for (uint32_t i = 0; i < batch->items_used; i++)
        if (batch->items[i].op)
            ops += batch->items[i].op->kind == ACS_KIND_REPLAY ? TUNE_BUNDLE_MOST : counts;
    /* relaxed: a count */
    if (first->code_wanted && atomic_fetch_add_explicit(&first->sent, ops, memory_order_relaxed) + ops >= TUNE_BUNDLE_MOST)
        acs_cuda_code_ask(first);
}

/* Takes no lock: the core gives a slot and its marks to one thread at a time. */
void acs_cuda_submit(acs_backend *backend, acs_batch *batch)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[batch->device], *first = self->members[0];
    acs_cuda_scope scope;
    CUresult entered = acs_cuda_scope_enter(self, &scope);
    if (entered != CUDA_SUCCESS)
        acs_cuda_lose(self, entered); /* our context cannot be made current any more */
    if (first->issuers && batch->items_used >= TUNE_ISSUE_WAKE_OPS && !batch->bundle)
        acs_cuda_issuers_call(first->issuers);
    bool given = batch->bundle && submit_bundle(self, batch);
    for (uint32_t i = 0; i < batch->items_used && !batch->bundle; i++) /* relaxed: a hint, see acs_cuda_issuers_gave */
        given |= send_item(self, batch, &batch->items[i], atomic_load_explicit(&first->issuing, memory_order_relaxed) > 0);
    if (given && first->issuers)
        first->wake_issuers(first);
    acs_cuda_scope_leave(self, &scope);
    if (ACS_UNLIKELY(!acs_cuda_has_code(self)))
        count_sent(first, batch);
}

/* ----------------------------------------------------------------------------------------------------- completion */

/*
 * Find the last completed mark of a slot. Marks complete in order. Mostly none has or all have; else the search halves. A
 * mark that was to be recorded, and has no event, is complete: the slot was waited for.
 */
static CUresult poll_marks(acs_cuda *self, const acs_mark *marks, uint32_t count, uint64_t *completed)
{
    const uint64_t recorded = acs_issue_queue_recorded(self->members[0]->base.queue, marks->slot);
    CUresult result = CUDA_SUCCESS;
    uint32_t done = 0, pending = count; /* marks before `done` are complete, those from `pending` on are not */
    for (uint32_t probe = 0; done < pending; probe = probe == 0 && done ? pending - 1 : done + (pending - done) / 2) {
        const bool there = marks[probe].value <= recorded;
        CUevent event = there ? *acs_cuda_mark_event(self, &marks[probe]) : NULL;
        result = !there ? CUDA_ERROR_NOT_READY : event ? self->cu.cuEventQuery(event) : CUDA_SUCCESS;
        if (result == CUDA_SUCCESS)
            done = probe + 1;
        else if (result == CUDA_ERROR_NOT_READY)
            pending = probe;
        else
            break; /* marks seen complete stay complete, whatever happened since */
    }
    if (done)
        *completed = marks[done - 1].value;
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
        uint32_t first = 0;
        CUresult result = acs_cuda_scope_enter(self, &scope);
        if (result == CUDA_SUCCESS) {
            const bool bundles = acs_cuda_has_code(self);
            if (bundles)
                count = acs_cuda_resident_marks(self, slot, marks, count, &first);
            if (count)
                result = poll_marks(self, marks + first, count, &marked);
            acs_cuda_scope_leave(self, &scope);
            if (bundles)
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
    return ACS_FAIL(ACS_ERR_DEVICE, fault, "cuda: the device faulted (seen in slot %d): %s", slot,
                    acs_cuda_text(fault));
}

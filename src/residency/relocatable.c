/*
 * The relocatable blocks of a context, and how their contents come to their canonical place (see relocatable.h). Called
 * when a context is opened and closed, by the calls that queue ops, and by acs_malloc and acs_free.
 */
#include "residency/relocatable.h"

#include "residency/replicas.h"

#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------------ open, close */

acs_status acs_relocatables_open(acs_context *context)
{
    /* Checks run a kernel several times: each time it would get another version of a block. */
    int64_t most = context->options.check >= ACS_CHECK_WRITES ? 0 : context->options.rename;
    if (most != 0 && context->options.pool == ACS_POOL_OFF)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_RENAME needs pools: ACS_POOL is off");
    if (most != 0 && !context->pooled)
        acs_log(ACS_LOG_WARN, "ACS_RENAME has no effect: a tool looks where blocks end, so ACS_POOL=auto is off");
    if (!context->pooled)
        return ACS_OK;
    acs_relocatables *r = calloc(1, sizeof *r);
    if (!r || acs_lock_init(&r->lock, ACS_RANK_BLOCKS) != 0) {
        free(r);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the table of relocatable blocks");
    }
    r->most = most < 0 ? UINT64_MAX : (uint64_t)most;
    r->host_most = context->options.spill < 0 ? UINT64_MAX : (uint64_t)context->options.spill;
    r->first.next = r->first.previous = &r->first;
    /* Several devices: all ops are bound, to choose their device. */
    atomic_init(&r->count, context->device_choice ? 1 : 0);
    if (context->device_choice)
        acs_context_add_mode(context, ACS_MODE_BLOCKS);
    context->relocatables = r;
    return ACS_OK;
}

void acs_relocatable_free(acs_context *context, acs_relocatable *m, acs_op last)
{
    if (m->replicas) {
        acs_replicas_free(context, m, last == UINT64_MAX);
    } else {
        acs_relocatable_drop(context, m, last);
        acs_relocatable_drop_host(context, m, last);
    }
    acs_relocatable_unlink(context, m);
}

void acs_relocatables_close(acs_context *context)
{
    acs_relocatables *r = context->relocatables;
    while (r && r->first.next != &r->first) /* a version remains only if the device was lost */
        acs_relocatable_free(context, r->first.next, UINT64_MAX);
    if (r)
        acs_lock_fini(&r->lock);
    free(r);
    context->relocatables = NULL;
}

void acs_relocatables_each_lazy(acs_context *context, void (*visit)(void *user, const acs_relocatable *block), void *user)
{
    acs_relocatables *r = context->relocatables;
    if (!r)
        return;
    ACS_HOLD_BLOCKS(context);
    for (const acs_relocatable *m = r->first.next; m != &r->first; m = m->next)
        if (m->lazy)
            visit(user, m);
}

void acs_relocatables_count(const acs_context *context, acs_statistics *s)
{
    const acs_relocatables *r = context->relocatables;
    if (!r)
        return;
    /* Relaxed: counters, like those that follow. */
    s->memory_versions = atomic_load_explicit(&r->versions, memory_order_relaxed);
    s->memory_homed = atomic_load_explicit(&r->homed, memory_order_relaxed);
    s->memory_spilled = atomic_load_explicit(&r->spilled, memory_order_relaxed);
    s->memory_returned = atomic_load_explicit(&r->returned, memory_order_relaxed);
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

acs_status acs_relocatable_add(acs_context *context, const acs_block *block)
{
    acs_relocatables *r = context->relocatables;
    if (!r || (!r->most && !context->device_choice))
        return ACS_OK;
    ACS_HOLD_BLOCKS(context);
    acs_relocatable *m = acs_relocatable_make(context, block);
    if (m && context->device_choice &&
        acs_replicas_make(context, m, acs_device_choice_place(context, (uint64_t)(uintptr_t)block->ptr)) != ACS_OK) {
        acs_relocatable_unlink(context, m);
        m = NULL;
    }
    if (m) {
        m->at = m->to = m->canonical;
        r->block_bytes += m->bytes;
        acs_memory_mark(context->memory, block->ptr, m);
    }
    return m ? ACS_OK : acs_error_thread()->status;
}

acs_op acs_relocatable_remove(acs_context *context, const void *ptr, acs_op last)
{
    if (acs_relocatables_none(context))
        return last;
    ACS_HOLD_BLOCKS(context);
    last = acs_fifo_last(context->core.fifo); /* includes copies to canonical places that other threads queued */
    acs_relocatable *m = acs_memory_marked(context->memory, (uint64_t)(uintptr_t)ptr);
    if (m && m->canonical == (uint64_t)(uintptr_t)ptr) {
        context->relocatables->block_bytes -= m->bytes;
        acs_memory_mark(context->memory, ptr, NULL);
        acs_relocatable_free(context, m, last);
    }
    return last;
}

/* -------------------------------------------------------------------------------------------------- canonical place */

acs_status acs_relocatable_make_canonical(acs_context *context, acs_relocatable *m)
{
    if (m->replicas)
        return acs_replicas_make_canonical(context, m);
    if (m->lazy)
        return acs_relocatable_refuse_lazy(m);
    if (m->at == m->canonical)
        return ACS_OK;
    ACS_TRY(acs_relocatable_begin_life(context, m, m->canonical, m->canonical_last));
    acs_op op = acs_relocatable_copy(context, m, m->canonical, m->at);
    if (!op)
        return acs_error_thread()->status;
    /* Relaxed: a counter. */
    atomic_fetch_add_explicit(&context->relocatables->homed, m->cut_count + 1, memory_order_relaxed);
    acs_relocatable_drop(context, m, op);
    m->last = op;
    return ACS_OK;
}

static acs_status make_all_canonical(acs_context *context)
{
    const acs_relocatables *r = context->relocatables;
    for (acs_relocatable *m = r->first.next; m != &r->first && (r->version_bytes || context->device_choice);
         m = m->next)
        if (!m->lazy)
            ACS_TRY(acs_relocatable_make_canonical(context, m));
    return ACS_OK;
}

static void hand_all_over(acs_context *context)
{
    const acs_relocatables *r = context->relocatables;
    for (acs_relocatable *m = r->first.next; m != &r->first && context->device_choice; m = m->next)
        if (!m->lazy)
            acs_replicas_hand_over(context, m, 0, m->bytes);
}

acs_status acs_relocatables_make_canonical_locked(acs_context *context)
{
    ACS_TRY(make_all_canonical(context));
    hand_all_over(context);
    return ACS_OK;
}

acs_status acs_relocatables_make_canonical(acs_context *context)
{
    if (acs_relocatables_none(context))
        return ACS_OK;
    ACS_HOLD_BLOCKS(context);
    if (context->device_choice) /* bytes of failed copies have to come again */
        (void)acs_replicas_restore(context);
    return make_all_canonical(context);
}

bool acs_relocatables_hand_over(acs_context *context)
{
    if (!context->device_choice)
        return false;
    ACS_HOLD_BLOCKS(context);
    const bool restored = acs_replicas_restore(context);
    hand_all_over(context);
    return restored;
}

void acs_relocatables_hand_over_part(acs_context *context, const void *ptr, size_t bytes, acs_status status)
{
    const uint64_t address = (uint64_t)(uintptr_t)ptr;
    if (!context->device_choice)
        return;
    ACS_HOLD_BLOCKS(context);
    acs_relocatable *m = acs_relocatable_at(context, address);
    if (status != ACS_OK) /* else no copy to the part can have failed since */
        (void)acs_replicas_restore(context);
    if (m && !m->lazy) {
        const uint64_t first = address - m->canonical;
        acs_replicas_hand_over(context, m, first, bytes < m->bytes - first ? first + bytes : m->bytes);
    }
}

static acs_status pin_locked(acs_context *context, uint64_t address)
{
    acs_relocatable *m = acs_relocatable_at(context, address);
    acs_status status = m ? acs_relocatable_make_canonical(context, m) : ACS_OK;
    if (m && status == ACS_OK)
        m->pinned = true;
    return status;
}

acs_status acs_relocatable_pin(acs_context *context, uint64_t address, bool no_wait)
{
    if (acs_relocatables_none(context))
        return ACS_OK;
    if (!no_wait)
        acs_relocatables_enter(context);
    else if (!acs_relocatables_try(context))
        return ACS_FAIL(ACS_ERR_FULL, 0, "another thread waits for room in the FIFO, or is about to queue an op");
    context->relocatables->no_wait = no_wait;
    const acs_status status = pin_locked(context, address);
    context->relocatables->no_wait = false;
    acs_relocatables_leave(context);
    return status;
}

acs_status acs_pin(acs_context *context, const void *ptr)
{
    ACS_ENTER(context);
    return acs_relocatable_pin(context, (uint64_t)(uintptr_t)ptr, false);
}

/*
 * One relocatable block and its contents (see relocatable.h): its entry in the ring of blocks, its memory, and copies of
 * its contents. Called by the files that decide where contents lie, under the lock of relocatable blocks. Decides
 * nothing itself.
 *
 * The lock is taken behind that of program order and before all others. It is held while an op is queued, also while that
 * waits for room; a thread that steps the core meanwhile never takes it.
 */
#include "residency/relocatable.h"

#include "api/program_order.h"
#include "residency/device_choice.h"
#include "residency/recycle.h"

#include <stdlib.h>

/* --------------------------------------------------------------------------------------------------------- the lock */

void acs_relocatables_enter(acs_context *context)
{
    acs_order_lock(context);
    while (context->stepper && !acs_lock_try(&context->relocatables->lock))
        context->stepper->wait_for_thread(context);
    if (!context->stepper)
        acs_lock_acquire(&context->relocatables->lock);
    context->relocatables->hold++;
}

void acs_relocatables_leave(acs_context *context)
{
    acs_lock_release(&context->relocatables->lock);
    acs_order_unlock(context);
}

bool acs_relocatables_try(acs_context *context)
{
    if (!acs_order_try(context))
        return false;
    if (!acs_lock_try(&context->relocatables->lock)) {
        acs_order_unlock(context);
        return false;
    }
    context->relocatables->hold++;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

acs_relocatable *acs_relocatable_at(acs_context *context, uint64_t address)
{
    acs_relocatable *m = acs_memory_marked(context->memory, address);
    if (m)
        return m;
    acs_memory *addresses = acs_context_addresses(context);
    return addresses ? acs_memory_marked(addresses, address) : NULL;
}

acs_relocatable *acs_relocatable_make(acs_context *context, const acs_block *block)
{
    acs_relocatables *r = context->relocatables;
    acs_relocatable *m = calloc(1, sizeof *m);
    if (!m) {
        ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to make a block relocatable");
        return NULL;
    }
    m->canonical = (uint64_t)(uintptr_t)block->ptr;
    m->bytes = block->bytes;
    m->number = ++r->made;
    m->last = block->behind;
    m->site = block->site;
    m->next = &r->first;
    m->previous = r->first.previous;
    m->previous->next = m->next->previous = m;
    r->hold++; /* makes the look-ups in `found` void */
    atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed); /* see acs_relocatables_none */
    acs_context_add_mode(context, ACS_MODE_BLOCKS);
    return m;
}

void acs_relocatable_unlink(acs_context *context, acs_relocatable *m)
{
    m->next->previous = m->previous;
    m->previous->next = m->next;
    context->relocatables->hold++; /* makes the look-ups in `found` void */
    atomic_fetch_sub_explicit(&context->relocatables->count, 1, memory_order_relaxed); /* see acs_relocatables_none */
    free(m);
}

acs_status acs_relocatable_refuse_lazy(const acs_relocatable *m)
{
    return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                    "the ACS_LAZY block of %llu bytes at %#llx (acs_malloc at %s:%d) can be reached by the pointers of "
                    "kernels, by copies and by fills alone", (unsigned long long)m->bytes, (unsigned long long)m->canonical,
                    m->site && m->site->file ? m->site->file : "?", m->site ? m->site->line : 0);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

void acs_relocatable_drop(acs_context *context, acs_relocatable *m, acs_op last)
{
    acs_block block;
    if (m->at != m->canonical && m->at && !m->borrowed) {
        if (!m->lazy)
            context->relocatables->version_bytes -= m->bytes;
        (void)acs_memory_free(context->memory, (void *)(uintptr_t)m->at, last, &block); /* it is a block: cannot fail */
    }
    m->borrowed = false;
    m->at = m->to = m->lazy ? 0 : m->canonical;
}

void acs_relocatable_drop_host(acs_context *context, acs_relocatable *m, acs_op last)
{
    acs_block block;
    if (!m->host)
        return;
    context->relocatables->host_bytes -= m->bytes;
    (void)acs_memory_free(context->memory, (void *)(uintptr_t)m->host, last, &block); /* it is a block: cannot fail */
    m->host = 0;
    m->host_valid = false;
}

/* ----------------------------------------------------------------------------------------------------------- copies */

acs_status acs_relocatable_begin_life(acs_context *context, const acs_relocatable *m, uint64_t base, acs_op last)
{
    if (last > acs_core_settled(&context->core))
        return acs_recycle_add(context, base, m->bytes);
    acs_core_forget_block(&context->core, base, m->bytes);
    return ACS_OK;
}

acs_op acs_relocatable_copy_part(acs_context *context, const acs_relocatable *m, const acs_way *way,
                                 const acs_part *part)
{
    const acs_rows rows = part->rows;
    acs_draft draft = {.context = context, .site = m->site, .no_wait = context->relocatables->no_wait, .own = true};
    void *dst = (void *)(uintptr_t)(way->to + part->first);
    const void *src = (const void *)(uintptr_t)(way->from + part->first);
    if (!acs_draft_begin(&draft, ACS_KIND_MEMCPY))
        return 0;
    draft.captured = false; /* queued, and not captured: a graph that runs later has to find the copy done */
    if (acs_record_reserve(context->records, draft.record, 0, 0, 2) != ACS_OK)
        return acs_draft_drop(&draft);
    draft.record->segments[0] = ACS_TILE_IN(src, rows.bytes, rows.count, rows.pitch);
    draft.record->segments[1] = ACS_TILE_OUT(dst, rows.bytes, rows.count, rows.pitch);
    draft.record->segment_count = 2;
    draft.record->flags |= ACS_RECORD_PROPAGATES;
    draft.record->carried.block = m->number;
    draft.record->carried.first = part->first;
    draft.record->carried.place = way->place;
    draft.record->u.copy.dst = dst;
    draft.record->u.copy.src = src;
    draft.record->u.copy.bytes = rows.bytes;
    draft.record->u.copy.rows = rows.count;
    draft.record->u.copy.pitch = rows.pitch;
    if (context->device_choice)
        acs_device_choice_add(context, draft.record, way->device);
    if (context->backend->ops->adapt)
        context->backend->ops->adapt(context->backend, draft.record);
    return acs_draft_queue(&draft);
}

acs_op acs_relocatable_copy(acs_context *context, const acs_relocatable *m, uint64_t to, uint64_t from)
{
    const acs_way way = {to, from, 0, 0};
    acs_op op = 0;
    for (uint32_t i = 0; i <= m->cut_count; i++) {
        uint64_t first = i ? m->cuts[i - 1] : 0, end = i < m->cut_count ? m->cuts[i] : m->bytes;
        op = acs_relocatable_copy_part(context, m, &way, &(acs_part){first, {end - first, 1, end - first}});
        if (!op)
            return 0;
    }
    return op;
}

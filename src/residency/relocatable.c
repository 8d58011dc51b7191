/*
 * The relocatable blocks of a context, and how their contents come home (see relocatable.h). Called by the calls
 * that queue ops, and by acs_malloc and acs_free. The lock comes before all others, and is held while an op is queued,
 * also while that waits for room: who steps meanwhile never wants it.
 */
#include "residency/relocatable.h"

#include "residency/replicas.h"
#include "api/program_order.h"

#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------------ open, close */

acs_status acs_relocatables_open(acs_context *context)
{
    /* A version of its own for what the check writes before a kernel would leave the kernel another one. */
    int64_t most = context->options.check == ACS_CHECK_WRITTEN ? 0 : context->options.rename;
    if (most != 0 && context->options.pool == ACS_POOL_OFF)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_RENAME needs pools: ACS_POOL is off");
    if (most != 0 && !context->pooled)
        acs_log(ACS_LOG_WARN, "ACS_RENAME has no effect: a tool looks where blocks end, so ACS_POOL=auto is off");
    if (!context->pooled)
        return ACS_OK;
    acs_relocatables *r = calloc(1, sizeof *r);
    if (!r || pthread_mutex_init(&r->lock, NULL) != 0) {
        free(r);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the table of relocatable blocks");
    }
    r->most = most < 0 ? UINT64_MAX : (uint64_t)most;
    r->host_most = context->options.spill < 0 ? UINT64_MAX : (uint64_t)context->options.spill;
    r->first.next = r->first.previous = &r->first;
    atomic_init(&r->count, context->device_choice ? 1 : 0); /* all ops are placed */
    if (context->device_choice)
        acs_context_add_mode(context, ACS_MODE_BLOCKS);
    context->relocatables = r;
    return ACS_OK;
}

void acs_relocatables_close(acs_context *context)
{
    acs_relocatables *r = context->relocatables;
    while (r && r->first.next != &r->first) {
        acs_relocatable *m = r->first.next;
        if (m->replicas)
            acs_replicas_free(context, m, true);
        else if (m->lazy)
            acs_lazy_close(context, m);
        else
            acs_relocatable_drop(context, m, UINT64_MAX); /* a version that could not come home: the device is lost */
        acs_relocatable_unlink(context, m);
    }
    if (r)
        pthread_mutex_destroy(&r->lock);
    free(r);
    context->relocatables = NULL;
}

void acs_relocatables_enter(acs_context *context)
{
    acs_order_lock(context);
    while (context->stepper && pthread_mutex_trylock(&context->relocatables->lock) != 0)
        context->stepper->wait_for_thread(context);
    if (!context->stepper)
        pthread_mutex_lock(&context->relocatables->lock);
    context->relocatables->hold++;
}

void acs_relocatables_leave(acs_context *context)
{
    pthread_mutex_unlock(&context->relocatables->lock);
    acs_order_unlock(context);
}

bool acs_relocatables_try(acs_context *context)
{
    if (pthread_mutex_trylock(&context->relocatables->lock) != 0)
        return false;
    context->relocatables->hold++;
    acs_order_lock(context); /* the draft has it already, so it cannot wait */
    return true;
}

bool acs_relocatables_none(const acs_context *context)
{
    /* relaxed: a thread knows of the blocks that it may name by having been told of them */
    return !context->relocatables || atomic_load_explicit(&context->relocatables->count, memory_order_relaxed) == 0;
}

void acs_relocatables_count(const acs_context *context, acs_statistics *s)
{
    const acs_relocatables *r = context->relocatables;
    if (!r)
        return;
    s->memory_versions = atomic_load_explicit(&r->versions, memory_order_relaxed); /* counters, like the rest */
    s->memory_homed = atomic_load_explicit(&r->homed, memory_order_relaxed);
    s->memory_spilled = atomic_load_explicit(&r->spilled, memory_order_relaxed);
    s->memory_returned = atomic_load_explicit(&r->returned, memory_order_relaxed);
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

acs_relocatable *acs_relocatable_at(acs_context *context, uint64_t address)
{
    acs_relocatable *m = acs_memory_marked(context->memory, address);
    return m || !context->addresses ? m : acs_memory_marked(context->addresses, address);
}

acs_relocatable *acs_relocatable_make(acs_context *context, const acs_block *block)
{
    acs_relocatables *r = context->relocatables;
    acs_relocatable *m = calloc(1, sizeof *m);
    if (!m) {
        ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to make a block relocatable");
        return NULL;
    }
    m->home = (uint64_t)(uintptr_t)block->ptr;
    m->bytes = block->bytes;
    m->number = ++r->made;
    m->last = block->behind;
    m->site = block->site;
    m->next = &r->first;
    m->previous = r->first.previous;
    m->previous->next = m->next->previous = m;
    r->hold++; /* what was found does not hold any more */
    atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed); /* see acs_relocatables_none */
    acs_context_add_mode(context, ACS_MODE_BLOCKS);
    return m;
}

void acs_relocatable_unlink(acs_context *context, acs_relocatable *m)
{
    m->next->previous = m->previous;
    m->previous->next = m->next;
    context->relocatables->hold++;                                                     /* the same */
    atomic_fetch_sub_explicit(&context->relocatables->count, 1, memory_order_relaxed); /* see acs_relocatables_none */
    free(m);
}

acs_status acs_relocatable_add(acs_context *context, const acs_block *block)
{
    acs_relocatables *r = context->relocatables;
    if (!r || (!r->most && !context->device_choice))
        return ACS_OK;
    acs_relocatables_enter(context);
    acs_relocatable *m = acs_relocatable_make(context, block);
    if (m && context->device_choice &&
        acs_replicas_make(context, m, acs_device_choice_place(context, (uint64_t)(uintptr_t)block->ptr)) != ACS_OK) {
        acs_relocatable_unlink(context, m);
        m = NULL;
    }
    if (m) {
        m->at = m->to = m->home;
        r->block_bytes += m->bytes;
        acs_memory_mark(context->memory, block->ptr, m);
    }
    acs_relocatables_leave(context);
    return m ? ACS_OK : acs_error_thread()->status;
}

acs_op acs_relocatable_remove(acs_context *context, const void *ptr, acs_op last)
{
    if (acs_relocatables_none(context))
        return last;
    acs_relocatables_enter(context);
    last = acs_fifo_last(context->core.fifo); /* copies home that other threads' calls queued included */
    acs_relocatable *m = acs_memory_marked(context->memory, (uint64_t)(uintptr_t)ptr);
    if (m && m->home == (uint64_t)(uintptr_t)ptr) {
        if (m->replicas)
            acs_replicas_free(context, m, false);
        else
            acs_relocatable_drop(context, m, last);
        context->relocatables->block_bytes -= m->bytes;
        acs_memory_mark(context->memory, ptr, NULL);
        acs_relocatable_unlink(context, m);
    }
    acs_relocatables_leave(context);
    return last;
}

void acs_relocatable_drop(acs_context *context, acs_relocatable *m, acs_op last)
{
    acs_block block;
    if (m->at != m->home && m->at && !m->lent) {
        if (!m->lazy)
            context->relocatables->version_bytes -= m->bytes;
        (void)acs_memory_free(context->memory, (void *)(uintptr_t)m->at, last, &block); /* it is a block: cannot fail */
    }
    m->lent = false;
    m->at = m->to = m->lazy ? 0 : m->home;
}

/* ------------------------------------------------------------------------------------------------------------- home */

acs_op acs_relocatable_copy_part(acs_context *context, const acs_relocatable *m, const acs_way *way,
                                 const acs_part *part)
{
    const acs_rows rows = part->rows;
    acs_draft draft = {.context = context, .site = m->site, .no_wait = context->relocatables->no_wait, .own = true};
    void *dst = (void *)(uintptr_t)(way->to + part->first);
    const void *src = (const void *)(uintptr_t)(way->from + part->first);
    if (!acs_draft_begin(&draft, ACS_KIND_MEMCPY))
        return 0;
    draft.captured = false; /* a graph that runs later has to find it done */
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

acs_status acs_relocatable_begin_anew(acs_context *context, const acs_relocatable *m, uint64_t base, acs_op last)
{
    if (last > acs_core_settled(&context->core))
        return acs_reuse_add(context, base, m->bytes);
    acs_core_forget_block(&context->core, base, m->bytes);
    return ACS_OK;
}

acs_status acs_relocatable_bring_home(acs_context *context, acs_relocatable *m)
{
    if (m->replicas)
        return acs_replicas_home(context, m);
    if (m->lazy)
        return acs_lazy_refuse(m);
    if (m->at == m->home)
        return ACS_OK;
    ACS_TRY(acs_relocatable_begin_anew(context, m, m->home, m->home_last));
    acs_op op = acs_relocatable_copy(context, m, m->home, m->at);
    if (!op)
        return acs_error_thread()->status;
    atomic_fetch_add_explicit(&context->relocatables->homed, m->cut_count + 1, memory_order_relaxed); /* a counter */
    acs_relocatable_drop(context, m, op);
    m->last = op;
    return ACS_OK;
}

static acs_status bring_all_home(acs_context *context)
{
    const acs_relocatables *r = context->relocatables;
    for (acs_relocatable *m = r->first.next; m != &r->first && (r->version_bytes || context->device_choice);
         m = m->next)
        if (!m->lazy)
            ACS_TRY(acs_relocatable_bring_home(context, m));
    return ACS_OK;
}

static void hand_all_over(acs_context *context)
{
    const acs_relocatables *r = context->relocatables;
    for (acs_relocatable *m = r->first.next; m != &r->first && context->device_choice; m = m->next)
        if (!m->lazy)
            acs_replicas_hand_over(context, m, 0, m->bytes);
}

acs_status acs_relocatables_home_locked(acs_context *context)
{
    ACS_TRY(bring_all_home(context));
    hand_all_over(context);
    return ACS_OK;
}

acs_status acs_relocatables_home(acs_context *context)
{
    if (acs_relocatables_none(context))
        return ACS_OK;
    acs_relocatables_enter(context);
    if (context->device_choice) /* what a copy did not bring home is to come again */
        (void)acs_replicas_restore(context);
    acs_status status = bring_all_home(context);
    acs_relocatables_leave(context);
    return status;
}

bool acs_relocatables_came_home(acs_context *context)
{
    if (!context->device_choice)
        return false;
    acs_relocatables_enter(context);
    const bool restored = acs_replicas_restore(context);
    hand_all_over(context);
    acs_relocatables_leave(context);
    return restored;
}

void acs_relocatable_part_came_home(acs_context *context, const void *ptr, size_t bytes, acs_status status)
{
    const uint64_t address = (uint64_t)(uintptr_t)ptr;
    if (!context->device_choice)
        return;
    acs_relocatables_enter(context);
    acs_relocatable *m = acs_relocatable_at(context, address);
    if (status != ACS_OK) /* else what failed there was overwritten since */
        (void)acs_replicas_restore(context);
    if (m && !m->lazy) {
        const uint64_t first = address - m->home;
        acs_replicas_hand_over(context, m, first, bytes < m->bytes - first ? first + bytes : m->bytes);
    }
    acs_relocatables_leave(context);
}

acs_status acs_pin(acs_context *context, const void *ptr)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    if (acs_relocatables_none(context))
        return ACS_OK;
    acs_relocatables_enter(context);
    acs_relocatable *m = acs_relocatable_at(context, (uint64_t)(uintptr_t)ptr);
    acs_status status = m ? acs_relocatable_bring_home(context, m) : ACS_OK;
    if (m && status == ACS_OK)
        m->pinned = true;
    acs_relocatables_leave(context);
    return status;
}

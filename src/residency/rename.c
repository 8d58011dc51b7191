/*
 * Renaming, as processors rename registers: an op that writes a whole relocatable block (ACS_RELOCATABLE) gets memory of
 * its own for it, a *version*. So it does not depend on ops that still use the former contents (WAR, WAW), and later ops
 * are bound to the version. On one device; called by bind.c, under the lock of relocatable blocks.
 */
#include "residency/bind.h"

#include "base/tuning.h"
#include "residency/naming.h"

/* --------------------------------------------------------------------------------------------------------- versions */

/*
 * Take memory that no op uses for a version. False: there is none; a version that has to be waited for gains nothing.
 */
static bool take_version(acs_context *context, const acs_relocatable *m, acs_block *block)
{
    acs_relocatables *r = context->relocatables;
    const acs_memory_request request = {.bytes = m->bytes, .kind = ACS_MEMORY_DEVICE, .optional = true, .site = m->site};
    uint64_t most = r->most == UINT64_MAX ? r->block_bytes : r->most;
    uint64_t held = r->version_bytes - (m->at == m->canonical ? 0 : m->bytes);
    acs_op last = acs_fifo_last(context->core.fifo);
    if (m->bytes > most || held > most - m->bytes || last < r->again)
        return false;
    const acs_error before = *acs_error_thread(); /* a lack of memory is no error of the caller */
    bool taken = acs_memory_take(context->memory, &request, block) == ACS_OK;
    *acs_error_thread() = before;
    r->again = taken ? 0 : last + TUNE_RENAME_PAUSE_OPS;
    return taken;
}

/*
 * The op writes the whole block, so its contents begin a new life. They get memory of their own if earlier users have
 * not ended; acs_rename_commit makes that final. Former failures do not concern them.
 */
static void begin_version(acs_context *context, acs_relocatable *m)
{
    acs_op settled = acs_core_settled(&context->core);
    acs_block block;
    if (m->last > settled && !m->lazy) {
        if (m->at != m->canonical && m->canonical_last <= settled)
            m->to = m->canonical;
        else if (take_version(context, m, &block)) {
            m->to = (uint64_t)(uintptr_t)block.ptr;
            /* Else it replaces another version. */
            context->relocatables->version_bytes += m->at == m->canonical ? m->bytes : 0;
        }
    }
    m->overwritten = true;
}

/* Called once the op can no longer be refused. */
acs_status acs_rename_begin(acs_context *context)
{
    for (const acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched)
        if (m->overwritten && !m->fresh) /* the life of fresh memory has begun already */
            ACS_TRY(acs_relocatable_begin_life(context, m, m->to, m->to == m->at ? m->last : 0));
    return ACS_OK;
}

/* Gives the old version back. */
void acs_rename_commit(acs_context *context, acs_relocatable *m)
{
    acs_relocatables *r = context->relocatables;
    acs_op last = acs_fifo_last(context->core.fifo);
    const uint64_t from = m->at, to = m->to;
    if (m->overwritten)
        m->cut_count = 0;
    m->filled |= m->written;
    if (m->written)
        m->host_valid = false;
    if (to == m->at || m->lazy)
        return;
    if (m->at == m->canonical)
        m->canonical_last = m->last;
    else
        acs_relocatable_drop(context, m, last);
    r->version_bytes += from != m->canonical && to != m->canonical ? m->bytes : 0;
    m->at = m->to = to;
    atomic_fetch_add_explicit(&r->versions, 1, memory_order_relaxed); /* relaxed: a counter */
}

void acs_rename_undo(acs_context *context, acs_relocatable *m)
{
    acs_block block;
    if (m->lazy) {
        acs_lazy_undo(context, m);
    } else if (m->to != m->canonical && m->to != m->at) {
        context->relocatables->version_bytes -= m->at == m->canonical ? m->bytes : 0;
        /* No op has used it; cannot fail. */
        (void)acs_memory_free(context->memory, (void *)(uintptr_t)m->to, 0, &block);
    }
    m->to = m->at;
}

/* ---------------------------------------------------------------------------------------------------------- prepare */

/*
 * Bring the block to its canonical place if the op reaches it in a way that binding cannot change; else give it a new
 * version if the op writes all of it.
 */
static acs_status prepare_block(const acs_draft *draft, acs_relocatable *m, const acs_segment *s)
{
    const acs_record *record = draft->record;
    const acs_naming n = m->naming;
    const bool only_looks = m->lazy && !acs_naming_is_work(record);
    /* A stream wrote all of it at the canonical place. */
    if (record->kind == ACS_KIND_STREAM_WAIT && n.whole && !draft->captured && !m->lazy)
        acs_relocatable_drop(draft->context, m, acs_fifo_last(draft->context->core.fifo));
    if (!only_looks && acs_naming_escapes(draft, &n))
        ACS_TRY(acs_relocatable_make_canonical(draft->context, m));
    else if (n.whole && n.segments == 1 && !m->pinned && acs_naming_is_work(record))
        begin_version(draft->context, m);
    acs_naming_touch(draft->context->relocatables, m, s);
    m->written |= acs_naming_is_work(record) && (s->access & ACS_WRITE);
    return ACS_OK;
}

acs_status acs_rename_prepare(acs_draft *draft)
{
    acs_record *record = draft->record;
    const bool all = acs_naming_is_any(record);
    acs_naming_collect(draft);
    if (all)
        ACS_TRY(acs_relocatables_make_canonical_locked(draft->context));
    for (uint32_t i = 0; i < record->segment_count; i++) {
        bool inside;
        acs_relocatable *m = acs_naming_block(draft, &record->segments[i], &inside);
        ACS_TRY(acs_lazy_check(draft, &record->segments[i], i));
        if (m && (m->lazy || !all))
            ACS_TRY(prepare_block(draft, m, &record->segments[i]));
    }
    if (all)
        acs_naming_touch_pointed(draft);
    return acs_naming_is_work(record) ? acs_lazy_fetch(draft) : ACS_OK;
}

/*
 * Binding of ops to movable blocks, and renaming (see rename.h). Called by the calls that queue ops; holds the lock of
 * movable blocks from here until the op is queued or dropped.
 */
#include "runtime/rename.h"

#include "runtime/movable.h"

#include <string.h>

enum { PAUSE = 256 };

/* ------------------------------------------------------------------------------------------------------------ naming */

/* The movable block of a segment; *inside: all of the segment is in it. */
static acs_movable *of_segment(const acs_draft *draft, const acs_segment *s, bool *inside)
{
    if (!acs_segment_has_bytes(s))
        return NULL;
    acs_movable *m = acs_movable_at(draft->context, s->base);
    *inside = m && acs_segment_end(s) <= m->home + m->bytes;
    return m;
}

/* How often an op names a block, and how. */
typedef struct naming {
    uint32_t segments, pointers;
    bool whole, inside;
} naming;

/* Which words of an argument are pointers, a bit for each. */
static uint32_t pointers_in(const acs_record *record, const acs_arg_slot *arg)
{
    if (record->kind != ACS_KIND_KERNEL || arg->type == ACS_ARG_VALUE)
        return 0;
    return arg->type == ACS_ARG_POINTERS ? arg->words : arg->size == sizeof(uint64_t);
}

static uint64_t pointer_at(const acs_record *record, const acs_arg_slot *arg, uint32_t word)
{
    uint64_t value;
    memcpy(&value, record->arg_bytes + arg->offset + word * sizeof value, sizeof value);
    return value;
}

static bool points_into(const acs_movable *m, uint64_t address)
{
    return address - m->home < m->bytes;
}

static naming naming_of(const acs_draft *draft, const acs_movable *m)
{
    const acs_record *record = draft->record;
    naming n = {.inside = true};
    for (uint32_t i = 0; i < record->segment_count; i++) {
        const acs_segment *s = &record->segments[i];
        bool inside = false;
        if (of_segment(draft, s, &inside) != m)
            continue;
        n.segments++;
        n.inside &= inside;
        n.whole |= s->access == ACS_WRITE && s->rows == 1 && s->base == m->home && s->row_bytes == m->bytes;
    }
    if (record->kind != ACS_KIND_KERNEL)
        n.pointers = 1; /* a copy's ends are its segments */
    for (uint32_t i = 0; i < record->arg_count; i++)
        for (uint32_t left = pointers_in(record, &record->args[i]); left; left &= left - 1)
            n.pointers += points_into(m, pointer_at(record, &record->args[i], (uint32_t)__builtin_ctz(left)));
    return n;
}

/* ---------------------------------------------------------------------------------------------------------- versions */

/* Memory that no op uses, or none: to wait for it would gain nothing. */
static bool take_version(acs_context *context, const acs_movable *m, acs_block *block)
{
    acs_movables *r = context->movables;
    const acs_memory_request request = {.bytes = m->bytes, .kind = ACS_MEMORY_DEVICE, .optional = true, .site = m->site};
    uint64_t most = r->most == UINT64_MAX ? r->block_bytes : r->most;
    uint64_t held = r->version_bytes - (m->at == m->home ? 0 : m->bytes);
    acs_op last = acs_fifo_last(context->core.fifo);
    if (m->bytes > most || held > most - m->bytes || last < r->again)
        return false;
    const acs_error before = *acs_error_thread(); /* that there is none is nobody's error */
    bool taken = acs_memory_take(context->memory, &request, block) == ACS_OK;
    *acs_error_thread() = before;
    r->again = taken ? 0 : last + PAUSE;
    return taken;
}

/*
 * The op writes all of it: the contents begin anew, in memory of their own if who uses those before has not ended (which
 * comes true in commit()). What failed before is no concern of theirs, wherever they are.
 */
static void begin_version(acs_context *context, acs_movable *m)
{
    acs_op settled = acs_core_settled(&context->core);
    acs_block block;
    if (m->last > settled && !m->lazy) {
        if (m->at != m->home && m->home_last <= settled)
            m->to = m->home;
        else if (take_version(context, m, &block)) {
            m->to = (uint64_t)(uintptr_t)block.ptr;
            context->movables->version_bytes += m->bytes;
        }
    }
    m->anew = true;
}

/* All that can be refused has been looked at. */
acs_status acs_rename_begin(acs_context *context)
{
    for (const acs_movable *m = context->movables->touched; m; m = m->next_touched)
        if (m->anew && !m->fresh) /* whose memory began a life just now */
            ACS_TRY(acs_movable_begin_anew(context, m, m->to, m->to == m->at ? m->last : 0));
    return ACS_OK;
}

/* The op was queued, and the old version goes back. */
static void commit(acs_context *context, acs_movable *m)
{
    acs_movables *r = context->movables;
    acs_op last = acs_fifo_last(context->core.fifo);
    uint64_t to = m->to;
    if (m->anew)
        m->cut_count = 0;
    m->filled |= m->written;
    if (m->written)
        m->host_valid = false;
    if (to == m->at || m->lazy)
        return;
    if (m->at == m->home)
        m->home_last = m->last;
    else
        acs_movable_drop(context, m, last);
    m->at = m->to = to;
    atomic_fetch_add_explicit(&r->versions, 1, memory_order_relaxed); /* a counter */
}

/* It was not. */
static void undo(acs_context *context, acs_movable *m)
{
    acs_block block;
    if (m->lazy) {
        acs_lazy_undo(context, m);
    } else if (m->to != m->home && m->to != m->at) {
        context->movables->version_bytes -= m->bytes;
        (void)acs_memory_free(context->memory, (void *)(uintptr_t)m->to, 0, &block); /* nobody has used it: cannot fail */
    }
    m->to = m->at;
}

/* Whether it ends like other ops, and is queued next. */
static bool is_work(const acs_record *record)
{
    return record->kind != ACS_KIND_OBSERVE && record->kind != ACS_KIND_STREAM_WAIT &&
           record->kind != ACS_KIND_STREAM_SIGNAL;
}

/* What a kernel or a copy touches stands in its record. */
static bool can_change(const acs_record *record)
{
    return record->kind == ACS_KIND_KERNEL || record->kind == ACS_KIND_MEMCPY || record->kind == ACS_KIND_MEMSET;
}

/* Without a place for it parts are not told apart any more: more is skipped than need be. */
static void cut(acs_movable *m, uint64_t offset)
{
    uint32_t at = 0;
    while (at < m->cut_count && m->cuts[at] < offset)
        at++;
    if (offset == 0 || offset >= m->bytes || m->cut_count == ACS_CUTS || (at < m->cut_count && m->cuts[at] == offset))
        return;
    memmove(&m->cuts[at + 1], &m->cuts[at], (m->cut_count++ - at) * sizeof *m->cuts);
    m->cuts[at] = offset;
}

static void touch(acs_movables *r, acs_movable *m, const acs_segment *s)
{
    cut(m, s->base - m->home);
    cut(m, acs_segment_end(s) - m->home);
    if (m->touched)
        return;
    m->touched = true;
    m->next_touched = r->touched;
    r->touched = m;
}

/* -------------------------------------------------------------------------------------------------------------- bind */

/* Whether the op reaches the block in another way than by what can be changed. */
static bool goes_astray(const acs_draft *draft, const naming *n)
{
    return !can_change(draft->record) || draft->captured || !n->inside || !n->pointers;
}

acs_status acs_rename_check(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    acs_status status = ACS_OK;
    acs_movables_enter(draft->context);
    for (uint32_t i = 0; i < record->segment_count && status == ACS_OK; i++) {
        bool inside;
        const acs_movable *m = of_segment(draft, &record->segments[i], &inside);
        status = acs_lazy_check(draft, &record->segments[i], i);
        if (status != ACS_OK || !m || !m->lazy)
            continue;
        const naming n = naming_of(draft, m);
        if (m->dying)
            status = ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u at %#llx names an ACS_LAZY block that was freed",
                              draft->site->name, i, (unsigned long long)record->segments[i].base);
        else if (goes_astray(draft, &n))
            status = acs_lazy_refuse(m);
    }
    acs_movables_leave(draft->context);
    return status;
}

/* Whatever the op names of it that is not to be reached by what can be changed comes home; the rest may be renamed. */
static acs_status prepare_block(const acs_draft *draft, acs_movable *m, const acs_segment *s)
{
    const acs_record *record = draft->record;
    const naming n = naming_of(draft, m);
    const bool only_looks = m->lazy && !is_work(record);
    if (record->kind == ACS_KIND_STREAM_WAIT && n.whole && !draft->captured && !m->lazy) /* it was written there anew */
        acs_movable_drop(draft->context, m, acs_fifo_last(draft->context->core.fifo));
    if (!only_looks && goes_astray(draft, &n))
        ACS_TRY(acs_movable_bring_home(draft->context, m));
    else if (n.whole && n.segments == 1 && !m->pinned && is_work(record))
        begin_version(draft->context, m);
    touch(draft->context->movables, m, s);
    m->written |= is_work(record) && (s->access & ACS_WRITE);
    return ACS_OK;
}

/* What may touch anything touches the lazy blocks that it has pointers into: there is no other way to them. */
static void touch_pointed(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    for (uint32_t i = 0; i < record->arg_count && !draft->captured; i++)
        for (uint32_t left = pointers_in(record, &record->args[i]); left; left &= left - 1) {
            acs_movable *m = acs_movable_at(draft->context, pointer_at(record, &record->args[i],
                                                                       (uint32_t)__builtin_ctz(left)));
            if (!m || !m->lazy)
                continue;
            const acs_segment whole = ACS_INOUT(m->home, m->bytes);
            touch(draft->context->movables, m, &whole);
            m->written = true;
        }
}

static acs_status prepare(acs_draft *draft)
{
    acs_record *record = draft->record;
    bool all = record->any != 0;
    for (uint32_t i = 0; i < record->segment_count; i++)
        all |= record->segments[i].extent == ACS_EXTENT_ALL;
    if (all)
        ACS_TRY(acs_movables_home_locked(draft->context));
    for (uint32_t i = 0; i < record->segment_count; i++) {
        bool inside;
        acs_movable *m = of_segment(draft, &record->segments[i], &inside);
        ACS_TRY(acs_lazy_check(draft, &record->segments[i], i));
        if (m && (m->lazy || !all))
            ACS_TRY(prepare_block(draft, m, &record->segments[i]));
    }
    if (all)
        touch_pointed(draft);
    return is_work(record) ? acs_lazy_fetch(draft) : ACS_OK;
}

/* Of blocks that the op names: a pointer may be the end of a block before. */
static uint64_t moved(const acs_draft *draft, uint64_t address)
{
    const acs_movable *m = acs_movable_at(draft->context, address);
    if (!m || !m->touched)
        return address;
    uint64_t to = m->to ? m->to : m->host_valid ? m->host : m->home; /* who only looks brings none in */
    return address + (to - m->home);
}

static const void *moved_pointer(const acs_draft *draft, const void *pointer)
{
    return (const void *)(uintptr_t)moved(draft, (uint64_t)(uintptr_t)pointer);
}

/* Pointers first: segments tell nothing of the block any more once they were changed. */
static void rebase(acs_draft *draft)
{
    acs_record *record = draft->record;
    for (uint32_t i = 0; i < record->arg_count; i++)
        for (uint32_t left = pointers_in(record, &record->args[i]); left; left &= left - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(left);
            uint64_t value = moved(draft, pointer_at(record, &record->args[i], k));
            memcpy(record->arg_bytes + record->args[i].offset + k * sizeof value, &value, sizeof value);
        }
    if (record->kind == ACS_KIND_MEMCPY)
        record->u.copy.src = moved_pointer(draft, record->u.copy.src);
    if (record->kind == ACS_KIND_MEMCPY || record->kind == ACS_KIND_MEMSET)
        record->u.copy.dst = (void *)(uintptr_t)moved_pointer(draft, record->u.copy.dst);
    for (uint32_t i = 0; i < record->segment_count; i++)
        if (record->segments[i].extent == ACS_EXTENT_BYTES)
            record->segments[i].base = moved(draft, record->segments[i].base);
}

/* The op has its number now; 0: it was not queued. */
static void end_bind(acs_context *context, acs_op op)
{
    acs_movables *r = context->movables;
    r->turn++;
    while (r->touched) {
        acs_movable *m = r->touched;
        r->touched = m->next_touched;
        m->touched = false;
        m->named = r->turn;
        if (op)
            commit(context, m);
        else
            undo(context, m);
        m->anew = m->written = m->fresh = false;
        if (op)
            m->last = acs_fifo_last(context->core.fifo); /* at least its number: a captured op has none of the FIFO's */
    }
}

acs_status acs_rename_bind(acs_draft *draft)
{
    acs_context *context = draft->context;
    if (!draft->no_wait)
        acs_movables_enter(context);
    else if (!acs_movables_try(context))
        return ACS_FAIL(ACS_ERR_FULL, 0, "another thread waits for room in the FIFO, or is about to queue an op");
    context->movables->no_wait = draft->no_wait;
    acs_status status = prepare(draft);
    context->movables->no_wait = false;
    if (status == ACS_OK)
        rebase(draft);
    draft->bound = status == ACS_OK && is_work(draft->record);
    if (draft->bound)
        return ACS_OK;
    end_bind(context, status == ACS_OK ? acs_fifo_last(context->core.fifo) + 1 : 0); /* about: it cannot fail */
    acs_movables_leave(context);
    return status;
}

void acs_rename_bound(acs_draft *draft, acs_op op)
{
    draft->bound = false;
    end_bind(draft->context, op);
    acs_movables_leave(draft->context);
}

/*
 * The way of an op to its blocks (see bind.h). Called by the calls that queue ops; holds the lock of relocatable blocks
 * from acs_bind until the op is queued or dropped.
 */
#include "residency/bind.h"

#include "base/hash.h"
#include "residency/replicas.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- naming */

static acs_relocatable *find(const acs_draft *draft, uint64_t address)
{
    acs_relocatables *r = draft->context->relocatables;
    acs_found *found = &r->found[acs_hash64(address) % ACS_FOUND];
    if (found->hold != r->hold || found->address != address)
        *found = (acs_found){address, r->hold, acs_relocatable_at(draft->context, address)};
    return found->at;
}

acs_relocatable *acs_bind_segment(const acs_draft *draft, const acs_segment *s, bool *inside)
{
    if (!acs_segment_has_bytes(s))
        return NULL;
    acs_relocatable *m = find(draft, s->base);
    *inside = m && acs_segment_end(s) <= m->home + m->bytes;
    return m;
}

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

bool acs_bind_next_pointer(const acs_record *record, acs_pointer_walk *walk, uint64_t *address)
{
    for (; walk->arg < record->arg_count; walk->arg++, walk->word = 0) {
        const uint32_t left = pointers_in(record, &record->args[walk->arg]) >> walk->word << walk->word;
        if (!left)
            continue;
        const uint32_t word = (uint32_t)__builtin_ctz(left);
        walk->word = word + 1; /* of 30 words at most */
        *address = pointer_at(record, &record->args[walk->arg], word);
        return true;
    }
    return false;
}

static bool points_into(const acs_relocatable *m, uint64_t address)
{
    return address - m->home < m->bytes;
}

static void name_by_segments(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    const uint64_t turn = draft->context->relocatables->namings;
    for (uint32_t i = 0; i < record->segment_count; i++) {
        const acs_segment *s = &record->segments[i];
        bool inside = false;
        acs_relocatable *m = acs_bind_segment(draft, s, &inside);
        if (!m)
            continue;
        acs_naming *n = &m->naming;
        if (n->turn != turn) /* a copy's ends are its segments */
            *n = (acs_naming){.turn = turn, .pointers = record->kind != ACS_KIND_KERNEL, .inside = true};
        n->segments++;
        n->inside &= inside;
        n->whole |= s->access == ACS_WRITE && s->rows == 1 && s->base == m->home && s->row_bytes == m->bytes;
    }
}

void acs_bind_name(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    const uint64_t turn = ++draft->context->relocatables->namings;
    name_by_segments(draft);
    acs_pointer_walk walk = {0};
    for (uint64_t address; acs_bind_next_pointer(record, &walk, &address);) {
        acs_relocatable *m = find(draft, address);
        if (m && m->naming.turn == turn)
            m->naming.pointers += points_into(m, address);
    }
}

bool acs_bind_is_work(const acs_record *record)
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
static void cut(acs_relocatable *m, uint64_t offset)
{
    uint32_t at = 0;
    while (at < m->cut_count && m->cuts[at] < offset)
        at++;
    if (offset == 0 || offset >= m->bytes || m->cut_count == ACS_CUTS || (at < m->cut_count && m->cuts[at] == offset))
        return;
    memmove(&m->cuts[at + 1], &m->cuts[at], (m->cut_count++ - at) * sizeof *m->cuts);
    m->cuts[at] = offset;
}

/* Who reads and writes all of these bytes makes them one part: if any of it had failed, so has he. */
static void mend(acs_relocatable *m, uint64_t from, uint64_t to)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->cut_count; i++)
        if (m->cuts[i] <= from || m->cuts[i] >= to)
            m->cuts[kept++] = m->cuts[i];
    m->cut_count = kept;
}

void acs_bind_touch(acs_relocatables *r, acs_relocatable *m, const acs_segment *s)
{
    const uint64_t from = s->base - m->home, to = acs_segment_end(s) - m->home;
    cut(m, from);
    cut(m, to);
    if (s->access == ACS_UPDATE && s->rows == 1)
        mend(m, from, to);
    if (m->touched)
        return;
    m->touched = true;
    m->next_touched = r->touched;
    r->touched = m;
}

bool acs_bind_is_any(const acs_record *record)
{
    bool any = record->any != 0;
    for (uint32_t i = 0; i < record->segment_count; i++)
        any |= record->segments[i].extent == ACS_EXTENT_ALL;
    return any;
}

bool acs_bind_astray(const acs_draft *draft, const acs_naming *n)
{
    return !can_change(draft->record) || draft->captured || !n->inside || !n->pointers;
}

void acs_bind_touch_pointed(const acs_draft *draft)
{
    acs_pointer_walk walk = {0};
    for (uint64_t address; !draft->captured && acs_bind_next_pointer(draft->record, &walk, &address);) {
        acs_relocatable *m = find(draft, address);
        if (!m || !m->lazy)
            continue;
        const acs_segment whole = ACS_INOUT(m->home, m->bytes);
        acs_bind_touch(draft->context->relocatables, m, &whole);
        m->written = true;
    }
}

acs_status acs_bind_check(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    acs_status status = ACS_OK;
    acs_relocatables_enter(draft->context);
    acs_bind_name(draft);
    for (uint32_t i = 0; i < record->segment_count && status == ACS_OK; i++) {
        bool inside;
        const acs_relocatable *m = acs_bind_segment(draft, &record->segments[i], &inside);
        status = acs_lazy_check(draft, &record->segments[i], i);
        if (status != ACS_OK || !m || !m->lazy)
            continue;
        if (m->dying)
            status = ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u at %#llx names an ACS_LAZY block that was freed",
                              acs_draft_name(draft), i, (unsigned long long)record->segments[i].base);
        else if (acs_bind_astray(draft, &m->naming))
            status = acs_lazy_refuse(m);
    }
    acs_relocatables_leave(draft->context);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- change */

/* Of blocks that the op names: a pointer may be the end of a block before. */
static uint64_t moved(const acs_draft *draft, uint64_t address)
{
    const acs_relocatable *m = find(draft, address);
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

/* ------------------------------------------------------------------------------------------------------------- bind */

acs_status acs_bind_begin(acs_draft *draft)
{
    return draft->context->device_choice ? acs_replicas_begin(draft) : acs_rename_begin(draft->context);
}

static void settle(acs_draft *draft, acs_relocatable *m, bool queued)
{
    if (m->replicas && queued)
        acs_replicas_commit(draft, m);
    else if (m->replicas)
        acs_replicas_undo(draft->context, m);
    else if (queued)
        acs_rename_commit(draft->context, m);
    else
        acs_rename_undo(draft->context, m);
}

/* The op has its number now; 0: it was not queued. */
static void end_bind(acs_draft *draft, acs_op op)
{
    acs_context *context = draft->context;
    acs_relocatables *r = context->relocatables;
    r->turn++;
    while (r->touched) {
        acs_relocatable *m = r->touched;
        r->touched = m->next_touched;
        m->touched = false;
        m->named = r->turn;
        settle(draft, m, op != 0);
        m->anew = m->written = m->fresh = false;
        if (op)
            m->last = acs_fifo_last(context->core.fifo); /* at least its number: a captured op has none of the FIFO's */
    }
    if (context->device_choice && op && !draft->captured)
        acs_device_choice_queued(context, op);
}

acs_status acs_bind(acs_draft *draft)
{
    acs_context *context = draft->context;
    if (!draft->no_wait)
        acs_relocatables_enter(context);
    else if (!acs_relocatables_try(context))
        return ACS_FAIL(ACS_ERR_FULL, 0, "another thread waits for room in the FIFO, or is about to queue an op");
    context->relocatables->no_wait = draft->no_wait;
    acs_status status = context->device_choice ? acs_replicas_prepare(draft) : acs_rename_prepare(draft);
    context->relocatables->no_wait = false;
    if (status == ACS_OK)
        rebase(draft);
    draft->bound = status == ACS_OK && acs_bind_is_work(draft->record);
    if (draft->bound)
        return ACS_OK;
    if (context->device_choice)
        acs_device_choice_drop(context, draft->record);
    end_bind(draft, status == ACS_OK ? acs_fifo_last(context->core.fifo) + 1 : 0); /* about: it cannot fail */
    acs_relocatables_leave(context);
    return status;
}

void acs_bound(acs_draft *draft, acs_op op)
{
    draft->bound = false;
    end_bind(draft, op);
    acs_relocatables_leave(draft->context);
}

acs_status acs_draft_begin_contents(acs_draft *draft)
{
    if (!draft->bound || draft->begun)
        return ACS_OK;
    draft->begun = true;
    return acs_bind_begin(draft);
}

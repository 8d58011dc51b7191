/*
 * Binding an op to its blocks (see bind.h): its pointers and segments are changed to where the contents are. Called by
 * the calls that queue ops. Holds the lock of relocatable blocks from acs_bind until the op is queued or dropped.
 */
#include "residency/bind.h"

#include "residency/naming.h"
#include "residency/replicas.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- naming */

acs_status acs_bind_check(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    ACS_HOLD_BLOCKS(draft->context);
    acs_naming_collect(draft);
    for (uint32_t i = 0; i < record->segment_count; i++) {
        bool inside;
        const acs_relocatable *m = acs_naming_block(draft, &record->segments[i], &inside);
        ACS_TRY(acs_lazy_check(draft, &record->segments[i], i));
        if (m && m->lazy && m->dying)
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u at %#llx names an ACS_LAZY block that was freed",
                            acs_draft_name(draft), i, (unsigned long long)record->segments[i].base);
        if (m && m->lazy && acs_naming_escapes(draft, &m->naming))
            return acs_relocatable_refuse_lazy(m);
    }
    return ACS_OK;
}

/* ----------------------------------------------------------------------------------------------------------- change */

/*
 * The address at which the op finds what is at `address`. Only blocks that the op names count: a pointer may be the end
 * of the block before.
 */
static uint64_t moved(const acs_draft *draft, uint64_t address)
{
    const acs_relocatable *m = acs_naming_at(draft, address);
    if (!m || !m->touched)
        return address;
    /* An op that only observes brings no contents in. */
    uint64_t to = m->to ? m->to : m->host_valid ? m->host : m->canonical;
    return address + (to - m->canonical);
}

static const void *moved_pointer(const acs_draft *draft, const void *pointer)
{
    return (const void *)(uintptr_t)moved(draft, (uint64_t)(uintptr_t)pointer);
}

/* Pointers come first: once segments are changed they no longer name blocks. */
static void rebase(acs_draft *draft)
{
    acs_record *record = draft->record;
    acs_pointer_walk walk = {0};
    for (uint64_t address; acs_naming_next_pointer(record, &walk, &address);) {
        const uint64_t value = moved(draft, address);
        memcpy(record->arg_bytes + record->args[walk.arg].offset + (walk.word - 1) * sizeof value, &value, sizeof value);
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

static void settle_touched(acs_draft *draft, acs_relocatable *m, bool queued)
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

/* End binding all touched blocks. `op`: the number of the queued op; 0: it was not queued. */
static void end_touched(acs_draft *draft, acs_op op)
{
    acs_context *context = draft->context;
    acs_relocatables *r = context->relocatables;
    r->turn++;
    while (r->touched) {
        acs_relocatable *m = r->touched;
        r->touched = m->next_touched;
        m->touched = false;
        m->named = r->turn;
        settle_touched(draft, m, op != 0);
        m->overwritten = m->written = m->fresh = false;
        if (op) /* at least the op's number; a captured op has none of the FIFO */
            m->last = acs_fifo_last(context->core.fifo);
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
    draft->bound = status == ACS_OK && acs_naming_is_work(draft->record);
    if (draft->bound)
        return ACS_OK;
    if (context->device_choice)
        acs_device_choice_drop(context, draft->record);
    /* An op without work of its own counts as queued; its number need not be exact. */
    end_touched(draft, status == ACS_OK ? acs_fifo_last(context->core.fifo) + 1 : 0);
    acs_relocatables_leave(context);
    return status;
}

void acs_bind_end(acs_draft *draft, acs_op op)
{
    draft->bound = false;
    end_touched(draft, op);
    acs_relocatables_leave(draft->context);
}

acs_status acs_draft_begin_contents(acs_draft *draft)
{
    if (!draft->bound || draft->begun)
        return ACS_OK;
    draft->begun = true;
    return draft->context->device_choice ? acs_replicas_begin(draft) : acs_rename_begin(draft->context);
}

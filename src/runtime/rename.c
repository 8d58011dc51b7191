/*
 * Renaming of movable blocks (see rename.h). Called by the calls that queue ops, and by acs_malloc and acs_free. Its lock
 * comes before all others, and is held while an op is queued, also while that waits for room: who steps meanwhile never
 * wants it.
 */
#include "runtime/rename.h"

#include <stdlib.h>
#include <string.h>

enum { CUTS = 15, PAUSE = 256 };

/* A block that may be renamed. */
typedef struct movable {
    uint64_t home, bytes; /* as acs_malloc returned it */
    uint64_t at;          /* N1 */
    uint64_t to;          /* where the op that is being bound writes them; else `at` */
    acs_op last;          /* latest op that touches the contents there */
    acs_op home_last;     /* while they are elsewhere: the same for the block's own memory */
    uint64_t cuts[CUTS];  /* where parts that ops named begin and end, rising: failures of one are not those of others */
    uint32_t cut_count;
    bool pinned;
    const acs_site *site;
    struct movable *next, *previous;
    struct movable *next_touched;
    bool touched;         /* by the op that is being bound */
    bool anew;            /* and all of it is written */
} movable;

struct acs_renames {
    pthread_mutex_t lock;    /* guards everything below, and program order among ops that name movable blocks */
    movable first;           /* head of a ring */
    movable *touched;        /* by the op that is being bound */
    _Atomic(uint32_t) count; /* blocks; written under the lock */
    uint64_t most;           /* bytes for versions; UINT64_MAX: as many as blocks have */
    uint64_t block_bytes;    /* of all movable blocks */
    uint64_t version_bytes;  /* of them, those that are not at home */
    bool no_wait;            /* the op that is being bound may not wait for room */
    acs_op again;            /* where there was no memory: from this op on more is asked for */
    _Atomic(uint64_t) versions, homed; /* counters */
};

acs_status acs_renames_open(acs_context *context)
{
    int64_t most = context->options.rename;
    if (most == 0)
        return ACS_OK;
    if (context->options.pool == ACS_POOL_OFF)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_RENAME needs pools: ACS_POOL is off");
    if (!context->pooled) {
        acs_log(ACS_LOG_WARN, "ACS_RENAME has no effect: a tool looks where blocks end, so ACS_POOL=auto is off");
        return ACS_OK;
    }
    acs_renames *r = calloc(1, sizeof *r);
    if (!r || pthread_mutex_init(&r->lock, NULL) != 0) {
        free(r);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for renaming");
    }
    r->most = most < 0 ? UINT64_MAX : (uint64_t)most;
    r->first.next = r->first.previous = &r->first;
    context->renames = r;
    return ACS_OK;
}

/* The version at m->at is nobody's: its memory goes back, behind all that was queued so far. */
static void drop_version(acs_context *context, movable *m, acs_op last)
{
    acs_block block;
    if (m->at == m->home)
        return;
    context->renames->version_bytes -= m->bytes;
    (void)acs_memory_free(context->memory, (void *)(uintptr_t)m->at, last, &block); /* it is a block: cannot fail */
    m->at = m->to = m->home;
}

void acs_renames_close(acs_context *context)
{
    acs_renames *r = context->renames;
    while (r && r->first.next != &r->first) {
        movable *m = r->first.next;
        r->first.next = m->next;
        drop_version(context, m, UINT64_MAX); /* that could not come home: the device is lost */
        free(m);
    }
    if (r)
        pthread_mutex_destroy(&r->lock);
    free(r);
    context->renames = NULL;
}

/* On the sim backend producers are fibers of one thread: who waits for the lock lets others go on. */
static void enter(acs_context *context)
{
    while (context->virtual_count && pthread_mutex_trylock(&context->renames->lock) != 0)
        acs_virtual_wait(context);
    if (!context->virtual_count)
        pthread_mutex_lock(&context->renames->lock);
}

bool acs_rename_none(const acs_context *context)
{
    /* relaxed: a thread knows of the blocks that it may name by having been told of them */
    return !context->renames || atomic_load_explicit(&context->renames->count, memory_order_relaxed) == 0;
}

/* ------------------------------------------------------------------------------------------------------------ blocks */

acs_status acs_rename_add(acs_context *context, const acs_block *block)
{
    acs_renames *r = context->renames;
    movable *m = r ? calloc(1, sizeof *m) : NULL;
    if (!r)
        return ACS_OK;
    if (!m)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to make a block movable");
    m->home = m->at = m->to = (uint64_t)(uintptr_t)block->ptr;
    m->bytes = block->bytes;
    m->last = block->behind;
    m->site = block->site;
    enter(context);
    m->next = &r->first;
    m->previous = r->first.previous;
    m->previous->next = m->next->previous = m;
    r->block_bytes += m->bytes;
    atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed); /* see acs_rename_none */
    acs_memory_mark(context->memory, block->ptr, m);
    pthread_mutex_unlock(&r->lock);
    return ACS_OK;
}

acs_op acs_rename_remove(acs_context *context, const void *ptr, acs_op last)
{
    acs_renames *r = context->renames;
    if (acs_rename_none(context))
        return last;
    enter(context);
    last = acs_fifo_last(context->core.fifo); /* copies home that other threads' calls queued included */
    movable *m = acs_memory_marked(context->memory, (uint64_t)(uintptr_t)ptr);
    if (m && m->home == (uint64_t)(uintptr_t)ptr) {
        drop_version(context, m, last);
        m->next->previous = m->previous;
        m->previous->next = m->next;
        r->block_bytes -= m->bytes;
        atomic_fetch_sub_explicit(&r->count, 1, memory_order_relaxed); /* see acs_rename_none */
        acs_memory_mark(context->memory, ptr, NULL);
        free(m);
    }
    pthread_mutex_unlock(&r->lock);
    return last;
}

/* -------------------------------------------------------------------------------------------------------------- home */

/* A copy of some of the contents, as the program would queue it. */
static acs_op queue_copy(acs_context *context, const movable *m, uint64_t first, uint64_t end)
{
    acs_draft draft = {.context = context, .site = m->site, .no_wait = context->renames->no_wait};
    void *to = (void *)(uintptr_t)(m->home + first);
    const void *from = (const void *)(uintptr_t)(m->at + first);
    if (!acs_draft_begin(&draft, ACS_KIND_MEMCPY))
        return 0;
    draft.captured = false; /* a graph that runs later has to find it done */
    if (acs_record_reserve(context->records, draft.record, 0, 0, 2) != ACS_OK)
        return acs_draft_drop(&draft);
    draft.record->segments[0] = ACS_IN(from, end - first);
    draft.record->segments[1] = ACS_OUT(to, end - first);
    draft.record->segment_count = 2;
    draft.record->flags |= ACS_RECORD_CARRIES;
    draft.record->u.copy.dst = to;
    draft.record->u.copy.src = from;
    draft.record->u.copy.bytes = end - first;
    if (context->backend->ops->adapt)
        context->backend->ops->adapt(context->backend, draft.record);
    return acs_draft_queue(&draft);
}

/* What comes to this memory is behind whoever used it, and failures among those are no concern of it. */
static acs_status begin_anew(acs_context *context, const movable *m, uint64_t base, acs_op last)
{
    if (last > acs_core_settled(&context->core))
        return acs_reuse_add(context, base, m->bytes);
    acs_core_forget_block(&context->core, base, m->bytes);
    return ACS_OK;
}

/* Part by part, so that what failed in one keeps no other from coming. */
static acs_status bring_home(acs_context *context, movable *m)
{
    acs_op op = 0;
    if (m->at == m->home)
        return ACS_OK;
    ACS_TRY(begin_anew(context, m, m->home, m->home_last));
    for (uint32_t i = 0; i <= m->cut_count; i++) {
        op = queue_copy(context, m, i ? m->cuts[i - 1] : 0, i < m->cut_count ? m->cuts[i] : m->bytes);
        if (!op)
            return acs_error_thread()->status;
        atomic_fetch_add_explicit(&context->renames->homed, 1, memory_order_relaxed); /* a counter */
    }
    drop_version(context, m, op);
    m->last = op;
    return ACS_OK;
}

static acs_status bring_all_home(acs_context *context)
{
    const acs_renames *r = context->renames;
    for (movable *m = r->first.next; m != &r->first && r->version_bytes; m = m->next)
        ACS_TRY(bring_home(context, m));
    return ACS_OK;
}

acs_status acs_rename_home_all(acs_context *context)
{
    if (acs_rename_none(context))
        return ACS_OK;
    enter(context);
    acs_status status = bring_all_home(context);
    pthread_mutex_unlock(&context->renames->lock);
    return status;
}

acs_status acs_pin(acs_context *context, const void *ptr)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    if (acs_rename_none(context))
        return ACS_OK;
    enter(context);
    movable *m = acs_memory_marked(context->memory, (uint64_t)(uintptr_t)ptr);
    acs_status status = m ? bring_home(context, m) : ACS_OK;
    if (m && status == ACS_OK)
        m->pinned = true;
    pthread_mutex_unlock(&context->renames->lock);
    return status;
}

/* -------------------------------------------------------------------------------------------------------------- bind */

/* The movable block that holds the address, or NULL. */
static movable *at_address(const acs_draft *draft, uint64_t address)
{
    return acs_memory_marked(draft->context->memory, address);
}

/* The movable block of a segment; *inside: all of the segment is in it. */
static movable *of_segment(const acs_draft *draft, const acs_segment *s, bool *inside)
{
    if (s->extent != ACS_EXTENT_BYTES || !s->rows || !s->row_bytes)
        return NULL;
    movable *m = at_address(draft, s->base);
    *inside = m && s->base + (s->rows - 1) * s->pitch_bytes + s->row_bytes <= m->home + m->bytes;
    return m;
}

/* How often an op names a block, and how. */
typedef struct naming {
    uint32_t segments, pointers;
    bool whole, inside;
} naming;

static uint64_t pointer_at(const acs_record *record, const acs_arg_slot *arg)
{
    uint64_t value;
    memcpy(&value, record->arg_bytes + arg->offset, sizeof value);
    return value;
}

static bool is_pointer(const acs_arg_slot *arg)
{
    return arg->type == ACS_ARG_POINTER && arg->size == sizeof(uint64_t);
}

static bool points_into(const movable *m, uint64_t address)
{
    return address - m->home < m->bytes;
}

static naming naming_of(const acs_draft *draft, const movable *m)
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
    for (uint32_t i = 0; i < record->arg_count && record->kind == ACS_KIND_KERNEL; i++)
        n.pointers += is_pointer(&record->args[i]) && points_into(m, pointer_at(record, &record->args[i]));
    return n;
}

/* Memory that no op uses, or none: to wait for it would gain nothing. */
static bool take_version(acs_context *context, const movable *m, acs_block *block)
{
    acs_renames *r = context->renames;
    const acs_memory_request request = {m->bytes, ACS_MEMORY_DEVICE, false, true, m->site};
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
static void begin_version(acs_context *context, movable *m)
{
    acs_op settled = acs_core_settled(&context->core);
    acs_block block;
    if (m->last > settled) {
        if (m->at != m->home && m->home_last <= settled)
            m->to = m->home;
        else if (take_version(context, m, &block)) {
            m->to = (uint64_t)(uintptr_t)block.ptr;
            context->renames->version_bytes += m->bytes;
        }
    }
    m->anew = true;
}

/* All that can be refused has been looked at. */
acs_status acs_rename_begin(acs_context *context)
{
    for (const movable *m = context->renames->touched; m; m = m->next_touched)
        if (m->anew)
            ACS_TRY(begin_anew(context, m, m->to, m->to == m->at ? m->last : 0));
    return ACS_OK;
}

/* The op was queued, and the old version goes back. */
static void commit(acs_context *context, movable *m)
{
    acs_renames *r = context->renames;
    acs_op last = acs_fifo_last(context->core.fifo);
    uint64_t to = m->to;
    if (m->anew)
        m->cut_count = 0;
    if (to == m->at)
        return;
    if (m->at == m->home)
        m->home_last = m->last;
    else
        drop_version(context, m, last);
    m->at = m->to = to;
    atomic_fetch_add_explicit(&r->versions, 1, memory_order_relaxed); /* a counter */
}

/* It was not. */
static void undo(acs_context *context, movable *m)
{
    acs_block block;
    if (m->to != m->home && m->to != m->at) {
        context->renames->version_bytes -= m->bytes;
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
static void cut(movable *m, uint64_t offset)
{
    uint32_t at = 0;
    while (at < m->cut_count && m->cuts[at] < offset)
        at++;
    if (offset == 0 || offset >= m->bytes || m->cut_count == CUTS || (at < m->cut_count && m->cuts[at] == offset))
        return;
    memmove(&m->cuts[at + 1], &m->cuts[at], (m->cut_count++ - at) * sizeof *m->cuts);
    m->cuts[at] = offset;
}

static void touch(acs_renames *r, movable *m, const acs_segment *s)
{
    cut(m, s->base - m->home);
    cut(m, s->base - m->home + (s->rows - 1) * s->pitch_bytes + s->row_bytes);
    if (m->touched)
        return;
    m->touched = true;
    m->next_touched = r->touched;
    r->touched = m;
}

/* Whatever it names that is not to be reached by what can be changed comes home; the rest may be renamed. */
static acs_status prepare(acs_draft *draft)
{
    acs_record *record = draft->record;
    bool all = record->any != 0;
    for (uint32_t i = 0; i < record->segment_count; i++)
        all |= record->segments[i].extent == ACS_EXTENT_ALL;
    if (all)
        return bring_all_home(draft->context);
    for (uint32_t i = 0; i < record->segment_count; i++) {
        bool inside;
        movable *m = of_segment(draft, &record->segments[i], &inside);
        if (!m)
            continue;
        naming n = naming_of(draft, m);
        if (record->kind == ACS_KIND_STREAM_WAIT && n.whole && !draft->captured) /* it was written there anew */
            drop_version(draft->context, m, acs_fifo_last(draft->context->core.fifo));
        if (!can_change(record) || draft->captured || !n.inside || !n.pointers)
            ACS_TRY(bring_home(draft->context, m));
        else if (n.whole && n.segments == 1 && !m->pinned)
            begin_version(draft->context, m);
        touch(draft->context->renames, m, &record->segments[i]);
    }
    return ACS_OK;
}

/* Of blocks that the op names: a pointer may be the end of a block before. */
static uint64_t moved(const acs_draft *draft, uint64_t address)
{
    const movable *m = at_address(draft, address);
    return m && m->touched ? address + (m->to - m->home) : address;
}

static const void *moved_pointer(const acs_draft *draft, const void *pointer)
{
    return (const void *)(uintptr_t)moved(draft, (uint64_t)(uintptr_t)pointer);
}

/* Pointers first: segments tell nothing of the block any more once they were changed. */
static void rebase(acs_draft *draft)
{
    acs_record *record = draft->record;
    for (uint32_t i = 0; i < record->arg_count && record->kind == ACS_KIND_KERNEL; i++) {
        if (!is_pointer(&record->args[i]))
            continue;
        uint64_t value = moved(draft, pointer_at(record, &record->args[i]));
        memcpy(record->arg_bytes + record->args[i].offset, &value, sizeof value);
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
    acs_renames *r = context->renames;
    while (r->touched) {
        movable *m = r->touched;
        r->touched = m->next_touched;
        m->touched = false;
        if (op)
            commit(context, m);
        else
            undo(context, m);
        m->anew = false;
        if (op)
            m->last = acs_fifo_last(context->core.fifo); /* at least its number: a captured op has none of the FIFO's */
    }
}

acs_status acs_rename_bind(acs_draft *draft)
{
    acs_context *context = draft->context;
    if (!draft->no_wait)
        enter(context);
    else if (pthread_mutex_trylock(&context->renames->lock) != 0)
        return ACS_FAIL(ACS_ERR_FULL, 0, "another thread waits for room in the FIFO, or is about to queue an op");
    context->renames->no_wait = draft->no_wait;
    acs_status status = prepare(draft);
    context->renames->no_wait = false;
    if (status == ACS_OK)
        rebase(draft);
    draft->bound = status == ACS_OK && is_work(draft->record);
    if (draft->bound)
        return ACS_OK;
    end_bind(context, status == ACS_OK ? acs_fifo_last(context->core.fifo) + 1 : 0); /* about: it cannot fail */
    pthread_mutex_unlock(&context->renames->lock);
    return status;
}

void acs_rename_bound(acs_draft *draft, acs_op op)
{
    draft->bound = false;
    end_bind(draft->context, op);
    pthread_mutex_unlock(&draft->context->renames->lock);
}

void acs_rename_count(const acs_context *context, acs_statistics *s)
{
    const acs_renames *r = context->renames;
    s->memory_versions = r ? atomic_load_explicit(&r->versions, memory_order_relaxed) : 0; /* counters */
    s->memory_homed = r ? atomic_load_explicit(&r->homed, memory_order_relaxed) : 0;
}

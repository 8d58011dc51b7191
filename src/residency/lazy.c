/*
 * Lazy blocks (ACS_LAZY): addresses, to which an op that names one is bound like to a renamed block. They get device
 * memory with the first op, and give it up where it is short: the contents of the block that was named longest ago are
 * copied to pinned host memory, and come back before the next op that reads them. The copies are ops, and nothing waits
 * for them. Called by acs_malloc and acs_free, and by rename.c for ops; under the lock of relocatable blocks.
 */
#include "residency/replicas.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define IDS (UINT64_C(1) << 48) /* of lazy blocks in the log: from here on */

/* -------------------------------------------------------------------------------------------------------- addresses */

/* Nothing else of the process gets them, the driver included: it places device memory in the same address space. */
static acs_status obtain(void *user, int kind, size_t bytes, void **ptr)
{
    (void)user, (void)kind;
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return ACS_FAIL(ACS_ERR_MEMORY, errno, "no %zu addresses for lazy blocks: %s", bytes, strerror(errno));
    *ptr = at;
    return ACS_OK;
}

static acs_status release(void *user, int kind, void *ptr, size_t bytes)
{
    (void)user, (void)kind;
    return munmap(ptr, bytes) == 0 ? ACS_OK : ACS_FAIL(ACS_ERR_INTERNAL, errno, "munmap: %s", strerror(errno));
}

/* No op knows of them. */
static acs_op settled(void *user)
{
    (void)user;
    return UINT64_MAX;
}

static acs_status open_addresses(acs_context *context)
{
    const acs_memory_config config = {.pooled = true, .obtain = obtain, .release = release, .settled = settled};
    if (context->addresses)
        return ACS_OK;
    ACS_TRY(acs_memory_create(&config, &context->addresses));
    atomic_fetch_add_explicit(&context->relocatables->count, 1,
                              memory_order_relaxed); /* for good: see acs_relocatables_none */
    return ACS_OK;
}

/* ----------------------------------------------------------------------------------------------------- malloc, free */

static acs_status make(acs_context *context, const acs_memory_request *request, acs_block *block)
{
    ACS_TRY(open_addresses(context));
    ACS_TRY(acs_memory_take(context->addresses, request, block));
    acs_relocatable *m = acs_relocatable_make(context, block);
    if (m && context->device_choice && acs_replicas_make(context, m, ACS_ANY_PLACE) != ACS_OK) {
        acs_relocatable_unlink(context, m);
        m = NULL;
    }
    if (!m) {
        (void)acs_memory_free(context->addresses, block->ptr, 0, block); /* it is a block: cannot fail */
        return acs_error_thread()->status;
    }
    m->lazy = true;
    m->named = context->relocatables->turn;
    m->group = context->hooks->group_number(context);
    acs_memory_mark(context->addresses, block->ptr, m);
    block->id += IDS;
    return ACS_OK;
}

acs_status acs_lazy_malloc(acs_context *context, size_t bytes, const acs_site *site, acs_block *block)
{
    const acs_memory_request request = {.bytes = bytes, .kind = ACS_MEMORY_DEVICE, .site = site};
    acs_relocatables_enter(context);
    acs_status status = make(context, &request, block);
    acs_relocatables_leave(context);
    return status;
}

static void drop_host(acs_context *context, acs_relocatable *m, acs_op last)
{
    acs_block block;
    if (!m->host)
        return;
    context->relocatables->host_bytes -= m->bytes;
    (void)acs_memory_free(context->memory, (void *)(uintptr_t)m->host, last, &block); /* it is a block: cannot fail */
    m->host = 0;
    m->host_valid = false;
}

void acs_lazy_close(acs_context *context, acs_relocatable *m)
{
    acs_relocatable_drop(context, m, UINT64_MAX);
    drop_host(context, m, UINT64_MAX);
}

acs_status acs_lazy_free_locked(acs_context *context, const void *ptr, acs_block *block)
{
    const uint64_t address = (uint64_t)(uintptr_t)ptr;
    const acs_op last = acs_fifo_last(context->core.fifo);
    if (!context->addresses || acs_memory_find(context->addresses, address, block) == ACS_PLACE_FOREIGN)
        return ACS_NOT_READY;
    acs_relocatable *m = acs_memory_marked(context->addresses, address);
    if (m && m->group && m->dying)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p was freed before, in a group that is held", ptr);
    ACS_TRY(acs_memory_free(context->addresses, ptr, last, block));
    if (m->replicas) {
        acs_replicas_free(context, m, false);
    } else {
        acs_relocatable_drop(context, m, last);
        drop_host(context, m, last);
    }
    acs_relocatable_unlink(context, m);
    block->id += IDS;
    return ACS_OK;
}

acs_status acs_lazy_free(acs_context *context, const void *ptr, acs_block *block)
{
    if (acs_relocatables_none(context))
        return ACS_NOT_READY;
    acs_relocatables_enter(context);
    acs_status status = acs_lazy_free_locked(context, ptr, block);
    acs_relocatables_leave(context);
    return status;
}

acs_status acs_lazy_check(const acs_draft *draft, const acs_segment *s, uint32_t i)
{
    acs_memory *addresses = draft->context->addresses;
    acs_block block;
    if (!addresses || !acs_segment_has_bytes(s))
        return ACS_OK;
    acs_memory_place place = acs_memory_find(addresses, s->base, &block);
    if (place == ACS_PLACE_FOREIGN)
        return ACS_OK;
    if (place != ACS_PLACE_BLOCK)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u at %#llx names an ACS_LAZY block that was freed",
                        acs_draft_name(draft), i, (unsigned long long)s->base);
    uint64_t base = (uint64_t)(uintptr_t)block.ptr, end = acs_segment_end(s);
    if (end <= base + block.bytes)
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u ends %llu bytes behind its ACS_LAZY block of %zu bytes at %p",
                    acs_draft_name(draft), i, (unsigned long long)(end - base - block.bytes), block.bytes, block.ptr);
}

acs_status acs_lazy_refuse(const acs_relocatable *m)
{
    return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                    "the ACS_LAZY block of %llu bytes at %#llx (acs_malloc at %s:%d) can be reached by the pointers of "
                    "kernels, by copies and by fills alone", (unsigned long long)m->bytes, (unsigned long long)m->home,
                    m->site && m->site->file ? m->site->file : "?", m->site ? m->site->line : 0);
}

/* ------------------------------------------------------------------------------------------------------------ spill */

/* The one that was named longest ago, of those that are not wanted now and were not tried. */
static acs_relocatable *victim_of(const acs_relocatables *r)
{
    acs_relocatable *best = NULL;
    for (acs_relocatable *m = r->first.next; m != &r->first; m = m->next)
        if (m->lazy && m->at && !m->lent && !m->touched && m->tried != r->tries && (!best || m->named < best->named))
            best = m;
    return best;
}

/* It is not larger than all that there may be. */
static bool has_host_room(const acs_relocatables *r, const acs_relocatable *m)
{
    return r->host_bytes <= r->host_most - m->bytes;
}

acs_status acs_lazy_find_pinned(acs_context *context, const acs_relocatable *m, acs_block *block)
{
    const acs_memory_request request = {.bytes = m->bytes, .kind = ACS_MEMORY_HOST, .site = m->site};
    if (!context->relocatables->no_wait)
        return acs_memory_find_room(context, request, NULL, block);
    acs_status status = acs_memory_take(context->memory, &request, block);
    return status != ACS_NOT_READY ? status
                                   : ACS_FAIL(ACS_ERR_FULL, 0, "%zu bytes of pinned memory would have to be waited for",
                                              request.bytes);
}

/* Memory for the host copy, at the first time. */
static acs_status take_host(acs_context *context, acs_relocatable *m)
{
    acs_relocatables *r = context->relocatables;
    acs_block block;
    if (m->host)
        return ACS_OK;
    if (m->bytes > r->host_most)
        return ACS_NOT_READY;
    for (acs_relocatable *o = r->first.next; o != &r->first && !has_host_room(r, m); o = o->next)
        if (o->lazy && o->at && !o->touched)
            drop_host(context, o, acs_fifo_last(context->core.fifo)); /* it would have saved a copy */
    if (!has_host_room(r, m))
        return ACS_NOT_READY; /* a smaller one may have it */
    ACS_TRY(acs_lazy_find_pinned(context, m, &block));
    m->host = (uint64_t)(uintptr_t)block.ptr;
    m->host_last = 0;
    r->host_bytes += m->bytes;
    return ACS_OK;
}

/* Its contents are in the host copy from here on; what was not changed since it came back is there already. */
static acs_status move_out(acs_context *context, acs_relocatable *m)
{
    if (!m->host_valid && m->filled) {
        ACS_TRY(take_host(context, m));
        ACS_TRY(acs_relocatable_begin_anew(context, m, m->host, m->host_last));
        acs_op op = acs_relocatable_copy(context, m, m->host, m->at);
        if (!op)
            return acs_error_thread()->status;
        m->host_last = op;
        m->host_valid = true;
        atomic_fetch_add_explicit(&context->relocatables->spilled, m->bytes, memory_order_relaxed); /* a counter */
    }
    acs_relocatable_drop(context, m, acs_fifo_last(context->core.fifo));
    return ACS_OK;
}

static bool spill_locked(acs_context *context, uint32_t device)
{
    acs_relocatables *r = context->relocatables;
    if (context->device_choice)
        return acs_replicas_spill(context, device);
    r->tries++;
    for (acs_relocatable *m = victim_of(r); m; m = victim_of(r)) {
        m->tried = r->tries;
        acs_status status = move_out(context, m);
        if (status == ACS_OK)
            return true;
        r->short_of_wait |= status == ACS_ERR_FULL;
    }
    return false;
}

bool acs_lazy_spill(acs_context *context, uint32_t device)
{
    if (acs_relocatables_none(context))
        return false;
    acs_relocatables_enter(context);
    bool spilled = spill_locked(context, device);
    acs_relocatables_leave(context);
    return spilled;
}

/* ------------------------------------------------------------------------------------------------------------ fetch */

/* What the op names is in memory together, so that no two ops take each other's blocks for ever. */
static acs_status check_fits(const acs_draft *draft)
{
    const acs_context *context = draft->context;
    const uint64_t limit = (uint64_t)context->options.memory_limit;
    uint64_t bytes = 0;
    uint32_t blocks = 0;
    for (const acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched) {
        bytes += m->lazy ? m->bytes : 0;
        blocks += m->lazy;
    }
    if (!limit || bytes <= limit)
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "'%s' needs %llu bytes in %u ACS_LAZY blocks at once: ACS_MEMORY_LIMIT is %llu",
                    acs_draft_name(draft), (unsigned long long)bytes, blocks, (unsigned long long)limit);
}

/* No wait is wanted: what can be spilled is. */
static acs_status find_at_once(acs_context *context, acs_memory_request request, acs_block *block)
{
    acs_status status;
    context->relocatables->short_of_wait = false;
    request.quiet = true;
    while ((status = acs_memory_take(context->memory, &request, block)) == ACS_NOT_READY)
        if (!spill_locked(context, acs_memory_device(request.kind)))
            break;
    if (status != ACS_NOT_READY)
        return status;
    if (!context->relocatables->short_of_wait &&
        !acs_memory_rests_until(context->memory, request.kind)) { /* none: say why */
        request.quiet = false;
        status = acs_memory_take(context->memory, &request, block);
    }
    return status != ACS_NOT_READY ? status
                                   : ACS_FAIL(ACS_ERR_FULL, 0, "%zu bytes of device memory would have to be waited for",
                                              request.bytes);
}

acs_status acs_lazy_find_memory(acs_context *context, const acs_relocatable *m, int kind, acs_block *block)
{
    const acs_memory_request request = {.bytes = m->bytes, .kind = kind, .early = true, .site = m->site};
    acs_status status = context->relocatables->no_wait ? find_at_once(context, request, block)
                                                   : acs_memory_find_room(context, request, spill_locked, block);
    if (status == ACS_OK)
        acs_context_kept(context, kind);
    return status;
}

static acs_status fetch(acs_context *context, acs_relocatable *m)
{
    acs_block block;
    ACS_TRY(acs_lazy_find_memory(context, m, ACS_MEMORY_DEVICE, &block));
    acs_status status = acs_memory_begin_life(context, &block);
    m->at = m->to = (uint64_t)(uintptr_t)block.ptr;
    m->last = 0;
    m->fresh = m->anew;
    if (status == ACS_OK && m->host_valid && !m->fresh) {
        acs_op op = acs_relocatable_copy(context, m, m->at, m->host);
        status = op ? ACS_OK : acs_error_thread()->status;
        m->last = m->host_last = op ? op : acs_fifo_last(context->core.fifo); /* of some parts, where one failed */
        atomic_fetch_add_explicit(&context->relocatables->returned, m->bytes, memory_order_relaxed); /* a counter */
    }
    if (status != ACS_OK)
        acs_relocatable_drop(context, m,
                             acs_fifo_last(context->core.fifo)); /* the host copy still holds the contents */
    return status;
}

/* Blocks of the op without memory get some, the largest first: they leave the smaller ones more ways to fit. */
static acs_status fetch_missing(acs_context *context)
{
    for (;;) {
        acs_relocatable *largest = NULL;
        for (acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched)
            if (m->lazy && !m->at && (!largest || m->bytes > largest->bytes))
                largest = m;
        if (!largest)
            return ACS_OK;
        ACS_TRY(fetch(context, largest));
    }
}

/* The op's own blocks go out, too: they lie where they came to lie, and what is free between them fits nothing. */
static bool move_own_out(acs_context *context)
{
    bool moved = false;
    for (acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched)
        if (m->lazy && m->at && !m->lent)
            moved |= move_out(context, m) == ACS_OK;
    return moved;
}

acs_status acs_lazy_fetch(acs_draft *draft)
{
    acs_context *context = draft->context;
    ACS_TRY(check_fits(draft));
    acs_error_hush(true);
    acs_status status = fetch_missing(context);
    const acs_error first = *acs_error_thread();
    const bool again = status == ACS_ERR_MEMORY && move_own_out(context);
    acs_error_hush(false);
    if (status == ACS_OK || again)
        return again ? fetch_missing(context) : status;
    *acs_error_thread() = first;
    acs_error_log();
    return status;
}

void acs_lazy_lend(acs_relocatable *m, uint32_t device, uint64_t at)
{
    if (m->replicas) {
        m->replicas->places[device] = (acs_replica){.at = at, .lent = true};
        return;
    }
    m->at = m->to = at;
    m->lent = m->fresh = true;
    m->last = 0;
}

void acs_lazy_undo(acs_context *context, acs_relocatable *m)
{
    if (m->fresh)
        acs_relocatable_drop(context, m, 0); /* nobody has used it */
}

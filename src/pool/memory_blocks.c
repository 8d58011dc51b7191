/*
 * The blocks of pools (see memory.h): taken out of free ranges, freed into quarantine until the ops that may use them have
 * settled, and looked up. Called by the program's threads, and by memory.c and memory_grow.c; under the pools' lock where
 * the name ends in _locked. Never asks the device for more, and never waits.
 *
 * The `last` op of a range, not its place, tells whether ops may still use it. A block that was handed out early and
 * came back is therefore a free range like others; no op uses it any more once its `last` op has settled.
 */
#include "pool/memory_internal.h"

/* ------------------------------------------------------------------------------------------------------- quarantine */

/* Free the block that has been in quarantine for longest, though ops may still use it. */
static void release_oldest_locked(acs_pool *p, acs_quarantine *queue)
{
    acs_range *range = queue->first;
    ACS_ASSERT(queue->bytes >= range->bytes && p->counts.quarantined >= range->bytes);
    queue->first = range->next;
    queue->bytes -= range->bytes;
    p->counts.quarantined -= range->bytes;
    acs_arena_give(range);
}

void acs_pool_settle_locked(acs_pool *p, acs_op settled, uint32_t most)
{
    for (int i = 0; i < 2; i++)
        for (acs_quarantine *queue = &p->quarantines[i]; queue->first && queue->first->last <= settled && most > 0; most--) {
            queue->first->last = 0;
            release_oldest_locked(p, queue);
        }
}

static bool has_settled_locked(const acs_pool *p, acs_op settled)
{
    return (p->quarantines[0].first && p->quarantines[0].first->last <= settled) ||
           (p->quarantines[1].first && p->quarantines[1].first->last <= settled);
}

uint64_t acs_pool_quarantine_most(const acs_memory *m, const acs_pool *p)
{
    uint64_t most = p->counts.live > TUNE_POOL_QUARANTINE_LEAST ? p->counts.live : TUNE_POOL_QUARANTINE_LEAST;
    return most < m->config.slack ? most : m->config.slack;
}

/* Quarantine the range until op `last` has settled. If it has settled already, the range returns to its arena at once. */
static void quarantine_locked(acs_memory *m, acs_range *range, acs_op last)
{
    acs_pool *p = &m->pools[range->kind];
    if (range->last < last)
        range->last = last;
    if (p->last < range->last)
        p->last = range->last;
    if (range->last <= m->config.settled(m->config.user)) {
        range->last = 0;
        acs_arena_give(range);
        return;
    }
    acs_quarantine *queue = &p->quarantines[range->of_group];
    range->next = NULL;
    *(queue->first ? &queue->newest->next : &queue->first) = range;
    queue->newest = range;
    queue->bytes += range->bytes;
    p->counts.quarantined += range->bytes;
    while (acs_memory_is_device(range->kind) && p->quarantines[0].bytes > acs_pool_quarantine_most(m, p))
        release_oldest_locked(p, &p->quarantines[0]); /* free, to be handed out early */
}

/* ------------------------------------------------------------------------------------------------------------- take */

void acs_pool_count_taken_locked(acs_pool *p, uint64_t bytes)
{
    p->counts.live += bytes;
    ACS_ASSERT(p->counts.live + p->counts.quarantined <= p->counts.reserved); /* MEM-1 */
    if (p->counts.peak < p->counts.live + p->counts.quarantined)
        p->counts.peak = p->counts.live + p->counts.quarantined;
}

/* Free the oldest blocks in quarantine, though ops may use them, until a free range fits. */
static acs_range *take_early_locked(acs_pool *p, acs_arena *arena, size_t bytes)
{
    acs_range *range = NULL;
    for (int i = 0; i < 2; i++)
        while (!range && p->quarantines[i].first) {
            release_oldest_locked(p, &p->quarantines[i]);
            range = acs_arena_take(arena, bytes, UINT64_MAX);
        }
    return range;
}

acs_status acs_pool_hand_out_locked(acs_memory *m, const acs_search *s, acs_range *range, acs_op settled)
{
    const acs_memory_request *r = s->request;
    acs_pool *p = &m->pools[r->kind];
    range->kind = (uint8_t)r->kind;
    range->asked = r->bytes;
    range->of_group = r->of_group;
    range->site = r->site;
    range->mark = NULL;
    range->id = ++m->taken_total;
    ACS_ASSERT(m->taken_total % TUNE_CHECKED_TAKES || acs_arena_check(range->arena)); /* ARENA-1, ARENA-2, ARENA-3 */
    if (!acs_blocks_add(&m->blocks, range)) {
        acs_arena_give(range);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the table of blocks");
    }
    acs_op behind = range->last > settled ? range->last : 0;
    p->counts.early += behind != 0;
    acs_pool_count_taken_locked(p, range->bytes);
    *s->block = (acs_block){(void *)(uintptr_t)range->base, r->bytes, r->kind, range, behind, r->site, range->id};
    return ACS_OK;
}

acs_status acs_pool_take(acs_memory *m, const acs_search *s, bool quarantined)
{
    acs_pool *p = &m->pools[s->request->kind];
    acs_arena *arena = p->arenas[s->size];
    ACS_HOLD(&m->lock);
    acs_op settled = m->config.settled(m->config.user);
    acs_pool_settle_locked(p, settled, TUNE_POOL_SETTLED_AT_ONCE);
    const acs_op most = s->early ? UINT64_MAX : settled;
    acs_range *range = acs_arena_take(arena, s->request->bytes, most);
    if (!range && has_settled_locked(p, settled)) {
        acs_pool_settle_locked(p, settled, UINT32_MAX);
        range = acs_arena_take(arena, s->request->bytes, most);
    }
    if (!range && s->early && quarantined)
        range = take_early_locked(p, arena, s->request->bytes);
    return range ? acs_pool_hand_out_locked(m, s, range, settled) : ACS_NOT_READY;
}

/* ------------------------------------------------------------------------------------------------------------- free */

static acs_block block_of(const acs_range *range)
{
    return (acs_block){(void *)(uintptr_t)range->base, range->asked, range->kind, NULL, 0, range->site, range->id};
}

/* The latest freed block that held the address, or NULL. A linear search: the ring is only for diagnostics. */
static const acs_pool_freed *latest_freed_locked(const acs_memory *m, uint64_t address)
{
    for (uint64_t i = 1; i <= TUNE_FREED_KEPT && i <= m->freed_total; i++) {
        const acs_pool_freed *f = &m->freed[(m->freed_total - i) % TUNE_FREED_KEPT];
        if (address - f->base < f->bytes) /* below the base the difference wraps and is large */
            return f;
    }
    return NULL;
}

static const char *file_of(const acs_site *site)
{
    return site && site->file ? site->file : "?";
}

/* Say why `ptr` cannot be freed: a program's author sees this message alone. */
static acs_status refuse_free_locked(acs_memory *m, const void *ptr)
{
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    const acs_range *holder = acs_blocks_holding(&m->blocks, address);
    const acs_pool_freed *f = latest_freed_locked(m, address);
    if (holder)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "%p lies %llu bytes inside the block of %llu bytes at 0x%llx (%s:%d); free its start", ptr,
                        (unsigned long long)(address - holder->base), (unsigned long long)holder->asked,
                        (unsigned long long)holder->base, file_of(holder->site), holder->site ? holder->site->line : 0);
    if (f)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "%p was freed before, behind op %llu, as the block of %llu bytes at 0x%llx (%s:%d)", ptr,
                        (unsigned long long)f->last, (unsigned long long)f->bytes, (unsigned long long)f->base,
                        file_of(f->site), f->site ? f->site->line : 0);
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p is not a block of acs_malloc of this context", ptr);
}

acs_status acs_memory_free(acs_memory *m, const void *ptr, acs_op last, acs_block *block)
{
    ACS_HOLD(&m->lock);
    acs_range *range = acs_blocks_at(&m->blocks, (uint64_t)(uintptr_t)ptr);
    if (!range)
        return refuse_free_locked(m, ptr);
    m->freed[m->freed_total++ % TUNE_FREED_KEPT] = (acs_pool_freed){range->base, range->asked, last, range->site};
    *block = block_of(range);
    acs_blocks_remove(&m->blocks, range);
    acs_pool *p = &m->pools[range->kind];
    ACS_ASSERT(p->counts.live >= range->bytes && !range->free && !range->hole); /* MEM-1 */
    p->counts.live -= range->bytes;
    p->counts.changed |= range->id <= p->noted;
    quarantine_locked(m, range, last);
    return ACS_OK;
}

bool acs_memory_oldest_quarantined(acs_memory *m, int kind, acs_block *block)
{
    acs_pool *p = &m->pools[kind];
    ACS_HOLD(&m->lock);
    acs_range *range = p->quarantines[0].first, *of_group = p->quarantines[1].first;
    if (!range || (of_group && of_group->last < range->last))
        range = of_group;
    if (range)
        *block = (acs_block){(void *)(uintptr_t)range->base, range->bytes, kind, range, range->last, NULL, 0};
    return range != NULL;
}

void acs_memory_end_quarantine(acs_memory *m, const acs_block *block)
{
    acs_pool *p = &m->pools[block->kind];
    ACS_HOLD(&m->lock);
    for (int i = 0; i < 2; i++) {
        acs_quarantine *queue = &p->quarantines[i];
        acs_range *before = NULL, *range = queue->first;
        for (; range && (range != block->range || range->last != block->behind); range = range->next)
            before = range;
        if (!range)
            continue;
        *(before ? &before->next : &queue->first) = range->next;
        if (queue->newest == range)
            queue->newest = before;
        queue->bytes -= range->bytes;
        p->counts.quarantined -= range->bytes;
        range->last = 0;
        acs_arena_give(range);
        return;
    }
}

acs_op acs_memory_quarantined_until(acs_memory *m, int kind)
{
    if (!m->config.pooled)
        return 0;
    ACS_HOLD(&m->lock);
    acs_op last = m->pools[kind].last;
    return last > m->config.settled(m->config.user) ? last : 0;
}

/* ---------------------------------------------------------------------------------------------------------- look up */

acs_memory_place acs_memory_find(acs_memory *m, uint64_t address, acs_block *block)
{
    ACS_HOLD(&m->lock);
    const acs_range *range = acs_blocks_holding(&m->blocks, address);
    if (range) {
        *block = block_of(range);
        return ACS_PLACE_BLOCK;
    }
    if (!acs_blocks_chunk(&m->blocks, address))
        return ACS_PLACE_FOREIGN;
    const acs_pool_freed *f = latest_freed_locked(m, address);
    if (f)
        *block = (acs_block){(void *)(uintptr_t)f->base, f->bytes, 0, NULL, f->last, f->site, 0};
    return f ? ACS_PLACE_FREED : ACS_PLACE_IDLE;
}

uint64_t acs_memory_chunk_behind(acs_memory *m, uint64_t address)
{
    ACS_HOLD(&m->lock);
    const acs_chunk *chunk = acs_blocks_chunk_behind(&m->blocks, address);
    return chunk ? chunk->base : UINT64_MAX;
}

void acs_memory_mark(acs_memory *m, const void *ptr, void *mark)
{
    ACS_HOLD(&m->lock);
    acs_blocks_at(&m->blocks, (uint64_t)(uintptr_t)ptr)->mark = mark;
}

void *acs_memory_marked(acs_memory *m, uint64_t address)
{
    ACS_HOLD(&m->lock);
    const acs_range *range = acs_blocks_holding(&m->blocks, address);
    return range ? range->mark : NULL;
}

void acs_memory_each(acs_memory *m, void (*visit)(void *user, const acs_block *block), void *user)
{
    ACS_HOLD(&m->lock);
    for (const acs_range *range = acs_blocks_next(&m->blocks, NULL); range; range = acs_blocks_next(&m->blocks, range)) {
        const acs_block block = block_of(range);
        visit(user, &block);
    }
}

acs_memory_counts acs_memory_count(acs_memory *m, int kind)
{
    ACS_HOLD(&m->lock);
    return m->pools[kind].counts;
}

acs_memory_counts acs_memory_note(acs_memory *m, int kind)
{
    ACS_HOLD(&m->lock);
    acs_pool *p = &m->pools[kind];
    p->counts.changed = false;
    p->noted = m->taken_total;
    return p->counts;
}

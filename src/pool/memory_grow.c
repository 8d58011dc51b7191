/*
 * How pools grow and shrink (see memory.h): by chunks, which the device gives and takes back in one piece, and by pages
 * (pages.h), which can move to where they are missing. Called by memory.c, one thread at a time, when no free block
 * fits.
 */
#include "pool/memory_internal.h"

#include "base/tuning.h"

/* Chunks by size. The device's allocators give memory by 2 MiB; blocks of up to half a chunk share one. */
static const struct {
    uint64_t block_most, chunk;
} g_chunks[] = {[ACS_POOL_SMALL] = {TUNE_POOL_SMALL_BLOCK, TUNE_POOL_SMALL_CHUNK},
                [ACS_POOL_LARGE] = {TUNE_POOL_LARGE_BLOCK, TUNE_POOL_LARGE_CHUNK}};

/* ------------------------------------------------------------------------------------------------------- the limit */

static bool reserve_within_limit_locked(acs_memory *m, int kind, uint64_t bytes)
{
    acs_pool *p = &m->pools[kind];
    uint64_t limit = m->config.limit && acs_memory_is_device(kind) ? m->config.limit : UINT64_MAX;
    bool room = bytes <= limit && p->counts.reserved <= limit - bytes;
    if (room)
        p->counts.reserved += bytes;
    ACS_ASSERT(!room || p->counts.reserved <= limit); /* MEM-1 */
    return room;
}

static bool is_shared(const acs_memory *m, int kind)
{
    return m->config.admit && acs_memory_is_device(kind);
}

/* Whether other programs leave the memory to this context; if so they count it as taken. */
static bool try_admit(acs_memory *m, int kind, uint64_t bytes)
{
    return !is_shared(m, kind) || bytes == 0 || m->config.admit(m->config.user, kind, bytes) == ACS_OK;
}

static void count_off(acs_memory *m, int kind, uint64_t bytes)
{
    ACS_HOLD(&m->lock);
    ACS_ASSERT(m->pools[kind].counts.reserved >= bytes); /* MEM-1 */
    m->pools[kind].counts.reserved -= bytes;
}

static bool reserve_within_limit(acs_memory *m, int kind, uint64_t bytes)
{
    acs_lock_acquire(&m->lock);
    bool room = reserve_within_limit_locked(m, kind, bytes);
    acs_lock_release(&m->lock);
    if (!room || try_admit(m, kind, bytes))
        return room;
    count_off(m, kind, bytes);
    return false;
}

/* Tell other programs that the device gave the memory. */
static void note_came(acs_memory *m, int kind, uint64_t bytes)
{
    if (is_shared(m, kind) && bytes)
        m->config.came(m->config.user, kind, bytes);
}

/* Tell other programs that `bytes` are no longer asked for; the device had given `came` of them, and has them back. */
static void note_returned(acs_memory *m, int kind, uint64_t bytes, uint64_t came)
{
    if (is_shared(m, kind) && bytes)
        m->config.returned(m->config.user, kind, bytes, came);
}

/* Bytes that are reserved, but neither in use nor in quarantine. */
static uint64_t idle_locked(const acs_pool *p)
{
    ACS_ASSERT(p->counts.live + p->counts.quarantined <= p->counts.reserved); /* MEM-1 */
    return p->counts.reserved - p->counts.live - p->counts.quarantined;
}

/* ------------------------------------------------------------------------------------------------------------ chunks */

acs_status acs_pool_obtain(acs_memory *m, int kind, uint64_t bytes, void **ptr)
{
    if (!reserve_within_limit(m, kind, bytes))
        return ACS_NOT_READY;
    acs_status status = m->config.obtain(m->config.user, kind, bytes, ptr);
    if (status != ACS_OK) {
        count_off(m, kind, bytes);
        note_returned(m, kind, bytes, 0);
        return status;
    }
    note_came(m, kind, bytes);
    acs_lock_acquire(&m->lock);
    m->pools[kind].counts.obtained++;
    acs_lock_release(&m->lock);
    return ACS_OK;
}

void acs_pool_release_count(acs_memory *m, int kind, uint64_t bytes)
{
    count_off(m, kind, bytes);
    note_returned(m, kind, bytes, bytes);
}

static acs_status chunk_add(acs_memory *m, const acs_search *s, uint64_t bytes)
{
    const int kind = s->request->kind;
    void *ptr = NULL;
    acs_status status = acs_pool_obtain(m, kind, bytes, &ptr);
    if (status != ACS_OK)
        return status;
    uint64_t base = (uint64_t)(uintptr_t)ptr;
    acs_lock_acquire(&m->lock);
    status = acs_blocks_add_chunk(&m->blocks, base, bytes);
    if (status == ACS_OK && (status = acs_arena_add(m->pools[kind].arenas[s->size], base, bytes)) != ACS_OK)
        acs_blocks_remove_chunk(&m->blocks, base);
    acs_lock_release(&m->lock);
    if (status == ACS_OK)
        return ACS_OK;
    (void)m->config.release(m->config.user, kind, ptr, bytes); /* the first error is reported */
    acs_pool_release_count(m, kind, bytes);
    return status;
}

/* Remove the largest chunk of the kind of which nothing is in use, while more than `keep` bytes lie idle. */
static bool remove_chunk(acs_memory *m, int kind, acs_op settled, uint64_t keep, acs_chunk *chunk)
{
    acs_pool *p = &m->pools[kind];
    ACS_HOLD(&m->lock);
    acs_pool_settle_locked(p, settled, UINT32_MAX);
    bool found = false;
    for (int size = ACS_POOL_LARGE; size >= ACS_POOL_SMALL && !found; size--)
        found = idle_locked(p) > keep && acs_arena_remove(p->arenas[size], settled, &chunk->base, &chunk->bytes);
    if (found) {
        p->counts.reserved -= chunk->bytes;
        acs_blocks_remove_chunk(&m->blocks, chunk->base);
    }
    return found;
}

/* A chunk that the device does not take back does not keep the others. Returns the first error. */
static acs_status trim_chunks(acs_memory *m, int kind, acs_op settled, uint64_t keep)
{
    acs_status status = ACS_OK;
    acs_chunk chunk;
    while (remove_chunk(m, kind, settled, keep, &chunk)) {
        if (m->config.forget)
            m->config.forget(m->config.user, chunk.base, chunk.bytes);
        acs_status released = m->config.release(m->config.user, kind, (void *)(uintptr_t)chunk.base, chunk.bytes);
        note_returned(m, kind, chunk.bytes, chunk.bytes);
        status = status == ACS_OK ? released : status;
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- pages */

/*
 * Add another span. If there are no addresses at all, large blocks come out of chunks from now on, which is no error.
 */
static acs_status add_span(acs_memory *m, uint64_t bytes)
{
    uint64_t base = 0, span = 0;
    acs_status status = acs_pages_reserve(m->pages, bytes, &base, &span);
    const bool usual = bytes <= m->config.pages->span; /* else the block itself is too large */
    if (status == ACS_ERR_MEMORY && !m->spans && usual) {
        acs_log(ACS_LOG_WARN, "pools: no pages, large blocks come out of chunks: %s", acs_error_thread()->text);
        atomic_store_explicit(&m->paged, false, memory_order_relaxed); /* under `growing` */
        return ACS_OK;
    }
    if (status != ACS_OK)
        return status;
    acs_lock_acquire(&m->lock);
    status = acs_blocks_add_chunk(&m->blocks, base, span);
    if (status == ACS_OK && (status = acs_pages_add(m->pages, base, span)) != ACS_OK)
        acs_blocks_remove_chunk(&m->blocks, base);
    acs_lock_release(&m->lock);
    if (status == ACS_OK)
        m->spans++;
    else
        acs_pages_unreserve(m->pages, base, span);
    return status;
}

/*
 * Most bytes to reserve: the peak of what was in use, the block that is looked for included, and what may lie idle
 * beside that.
 */
static uint64_t reserved_most_locked(const acs_pool *p, uint64_t least)
{
    const uint64_t now = p->counts.live + p->counts.quarantined + least;
    const uint64_t peak = now > p->counts.peak ? now : p->counts.peak;
    return peak + peak / 16 + TUNE_POOL_IDLE_MOST;
}

/* Plan a growth, and reserve its memory. *room false: the limit has none. Returns false if another span is needed. */
static bool plan_locked(acs_memory *m, acs_page_wish *wish, acs_page_plan *plan, bool *room)
{
    acs_pool *p = &m->pools[ACS_MEMORY_DEVICE];
    const uint64_t most = reserved_most_locked(p, wish->least);
    const uint64_t quarter = p->counts.reserved / 4;
    const uint64_t added = quarter < TUNE_POOL_GROWTH_MOST ? quarter : TUNE_POOL_GROWTH_MOST;
    if (p->counts.reserved + wish->least > most)
        wish->move = true;
    wish->added = wish->move || p->counts.reserved + wish->least + added > most ? 0 : added;
    if (!acs_pages_plan_growth(m->pages, wish, plan))
        return false;
    *room = plan->range && reserve_within_limit_locked(m, ACS_MEMORY_DEVICE, plan->fresh);
    return true;
}

/* Map memory so that the block fits. ACS_OK and *looking false: the block was found. Otherwise as acs_pool_grow. */
static acs_status grow_pages(acs_memory *m, const acs_search *s, acs_page_wish wish, bool *looking)
{
    acs_pool *p = &m->pools[ACS_MEMORY_DEVICE];
    acs_page_plan plan = {0};
    bool planned = false, room = false;
    acs_op settled = 0;
    wish.least = s->request->bytes;
    while (!planned) {
        acs_lock_acquire(&m->lock);
        settled = wish.settled = m->config.settled(m->config.user);
        planned = plan_locked(m, &wish, &plan, &room);
        acs_lock_release(&m->lock);
        if (!planned)
            ACS_TRY(add_span(m, wish.least));
        if (!atomic_load_explicit(&m->paged, memory_order_relaxed)) /* under `growing` */
            return ACS_OK; /* look again, elsewhere */
    }
    const bool admitted = room && try_admit(m, ACS_MEMORY_DEVICE, plan.fresh);
    acs_status status = admitted ? acs_pages_carry_out(m->pages, &plan) : ACS_NOT_READY;
    note_came(m, ACS_MEMORY_DEVICE, admitted ? plan.came : 0);
    note_returned(m, ACS_MEMORY_DEVICE, plan.gone, plan.gone - (plan.fresh - plan.came));
    acs_lock_acquire(&m->lock);
    p->counts.reserved -= plan.gone + (room && !admitted ? plan.fresh : 0);
    p->counts.obtained += plan.done ? plan.created : 0;
    p->counts.moved += plan.done ? plan.moved : 0;
    acs_range *range = acs_pages_finish(&plan, wish.least, settled);
    if (range && (status = acs_pool_hand_out_locked(m, s, range, settled)) == ACS_OK)
        *looking = false;
    acs_lock_release(&m->lock);
    return status;
}

static acs_status trim_pages(acs_memory *m, acs_op settled, uint64_t keep)
{
    acs_pool *p = &m->pools[ACS_MEMORY_DEVICE];
    acs_page_plan plan = {0};
    acs_lock_acquire(&m->lock);
    acs_pool_settle_locked(p, settled, UINT32_MAX);
    const uint64_t idle = idle_locked(p);
    const bool planned = idle > keep && acs_pages_plan_release(m->pages, idle - keep, settled, &plan);
    acs_lock_release(&m->lock);
    if (!planned)
        return ACS_OK;
    acs_status status = acs_pages_carry_out(m->pages, &plan);
    note_returned(m, ACS_MEMORY_DEVICE, plan.gone, plan.gone);
    acs_lock_acquire(&m->lock);
    p->counts.reserved -= plan.gone;
    (void)acs_pages_finish(&plan, 0, settled);
    acs_lock_release(&m->lock);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- both ways to grow */

acs_status acs_pool_trim(acs_memory *m, int kind, acs_op settled, uint64_t keep)
{
    acs_status paged = ACS_OK;
    if (m->pages && kind == ACS_MEMORY_DEVICE)
        paged = trim_pages(m, settled, keep);
    acs_status status = trim_chunks(m, kind, settled, keep);
    return paged == ACS_OK ? status : paged;
}

/* Give the block a chunk of its own, where a limit has room for that, but not for whole pages. */
static acs_status grow_by_chunk(acs_memory *m, const acs_search *s, uint64_t bytes, bool *looking)
{
    acs_search large = *s;
    large.size = ACS_POOL_LARGE;
    ACS_TRY(chunk_add(m, &large, bytes));
    acs_status status = acs_pool_take(m, &large, false);
    *looking = status == ACS_NOT_READY; /* another thread took it */
    return *looking ? ACS_OK : status;
}

/*
 * Add memory, in attempts that ask for less each time. 0: the usual amount; 1: pages, moved from where they lie idle
 * first; 2: only what the block needs.
 */
static acs_status add_more(acs_memory *m, const acs_search *s, int attempt, bool *looking)
{
    const uint64_t least = (s->request->bytes + ACS_ARENA_ALIGN - 1) / ACS_ARENA_ALIGN * ACS_ARENA_ALIGN;
    if (s->size == ACS_POOL_PAGED) {
        acs_status status = grow_pages(m, s, (acs_page_wish){.move = attempt > 0}, looking);
        return attempt == 2 && status == ACS_NOT_READY ? grow_by_chunk(m, s, least, looking) : status;
    }
    const uint64_t rounded = (least + 2 * ACS_MIB - 1) / (2 * ACS_MIB) * (2 * ACS_MIB);
    const uint64_t usual = least <= g_chunks[s->size].block_most ? g_chunks[s->size].chunk : rounded;
    return attempt == 1 ? ACS_NOT_READY : chunk_add(m, s, attempt == 0 ? usual : least);
}

/* Take the block out of arenas of other sizes, where the device gives nothing more. */
static bool take_elsewhere(acs_memory *m, const acs_search *s)
{
    acs_search other = *s;
    for (int size = 0; size < ACS_POOL_SIZES; size++) {
        other.size = (acs_pool_size)size;
        if (other.size != s->size && m->pools[s->request->kind].arenas[size] && acs_pool_take(m, &other, false) == ACS_OK)
            return true;
    }
    return false;
}

acs_status acs_pool_grow(acs_memory *m, const acs_search *s, bool *looking)
{
    const int kind = s->request->kind;
    acs_status status = add_more(m, s, 0, looking);
    if (acs_pool_is_short(status))
        status = add_more(m, s, 1, looking);
    if (acs_pool_is_short(status) && s->request->optional)
        return ACS_NOT_READY;
    if (acs_pool_is_short(status) && acs_pool_take(m, s, true) == ACS_OK) {
        *looking = false;
        return ACS_OK;
    }
    if (acs_pool_is_short(status)) {
        const acs_status trimmed = acs_pool_trim(m, kind, m->config.settled(m->config.user), 0);
        if (trimmed == ACS_ERR_DEVICE)
            return trimmed;
        status = add_more(m, s, 0, looking); /* some chunks may have gone even if one stayed */
    }
    if (acs_pool_is_short(status))
        status = add_more(m, s, 2, looking);
    if (acs_pool_is_short(status) && take_elsewhere(m, s)) {
        *looking = false;
        return ACS_OK;
    }
    return status;
}

acs_status acs_memory_trim(acs_memory *m, int kind, uint64_t keep)
{
    if (!m->config.pooled)
        return ACS_OK;
    ACS_HOLD_MUTEX(&m->growing);
    return acs_pool_trim(m, kind, m->config.settled(m->config.user), keep);
}

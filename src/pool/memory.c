/*
 * Opening and closing pools, and the calls that may grow them (see memory.h). An arena for each kind of memory and size of
 * block keeps small blocks from cutting up large chunks. Called by acs_malloc on callers' threads, and without pools by the
 * thread that runs a free op. Never waits for ops, and never touches a block.
 */
#include "pool/memory_internal.h"

#include "base/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------ open, close */

static int kinds(const acs_memory *m)
{
    return 1 + (int)(m->config.devices ? m->config.devices : 1);
}

static acs_status arenas_create(acs_memory *m)
{
    for (int kind = 0; kind < kinds(m); kind++)
        for (int size = ACS_POOL_SMALL; size <= ACS_POOL_LARGE; size++)
            ACS_TRY(acs_arena_create(&m->pools[kind].arenas[size]));
    if (!m->config.pooled || !m->config.pages)
        return ACS_OK;
    acs_arena **paged = &m->pools[ACS_MEMORY_DEVICE].arenas[ACS_POOL_PAGED];
    ACS_TRY(acs_arena_create(paged));
    atomic_init(&m->paged, true);
    return acs_pages_create(m->config.pages, m->config.page_user, *paged, &m->pages);
}

static void arenas_destroy(acs_memory *m, bool keep)
{
    acs_pages_destroy(m->pages, keep);
    for (int kind = 0; kind < kinds(m); kind++)
        for (int size = 0; size < ACS_POOL_SIZES; size++)
            acs_arena_destroy(m->pools[kind].arenas[size]);
    acs_blocks_clear(&m->blocks);
}

acs_status acs_memory_create(const acs_memory_config *config, acs_memory **memory)
{
    acs_memory *m = calloc(1, sizeof *m);
    if (!m)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for pools");
    m->config = *config;
    acs_status status = arenas_create(m);
    int error = status == ACS_OK ? acs_lock_init(&m->lock, ACS_RANK_POOL) : 0;
    if (status == ACS_OK && error == 0 && (error = pthread_mutex_init(&m->growing, NULL)) != 0)
        acs_lock_fini(&m->lock);
    if (error)
        status = ACS_FAIL(ACS_ERR_MEMORY, error, "no mutex for pools of memory");
    if (status == ACS_OK) {
        *memory = m;
        return ACS_OK;
    }
    arenas_destroy(m, false);
    free(m);
    return status;
}

void acs_memory_destroy(acs_memory *m, bool keep)
{
    if (!m)
        return;
    m->config.forget = NULL; /* the memory gets no next owner */
    while (m->blocks.table) {
        acs_range *range = m->blocks.table;
        acs_blocks_remove(&m->blocks, range);
        m->pools[range->kind].counts.live -= range->bytes;
        acs_arena_give(range);
    }
    for (int kind = 0; kind < kinds(m) && !keep && m->config.pooled; kind++)
        (void)acs_pool_trim(m, kind, UINT64_MAX, 0); /* closing: no caller is left to tell, and no op runs */
    arenas_destroy(m, keep);
    acs_lock_fini(&m->lock);
    pthread_mutex_destroy(&m->growing);
    free(m);
}

/* ------------------------------------------------------------------------------------------------------------- take */

static acs_status refuse_request(acs_memory *m, const acs_memory_request *r, acs_status status)
{
    char name[32] = "pinned host", others[128] = "";
    acs_memory_counts counts = acs_memory_count(m, r->kind);
    uint64_t limit = acs_memory_is_device(r->kind) ? m->config.limit : 0;
    const int native = status == ACS_ERR_MEMORY ? acs_error_thread()->native : 0;
    if (acs_memory_is_device(r->kind))
        (void)snprintf(name, sizeof name, kinds(m) > 2 ? "device %u's" : "device", acs_memory_device(r->kind));
    if (acs_memory_is_device(r->kind) && m->config.admit)
        m->config.describe(m->config.user, r->kind, others, sizeof others);
    return ACS_FAIL(ACS_ERR_MEMORY, native,
                    "no %zu bytes of %s memory: %llu are in use, %llu were freed and ops use them, %llu are reserved, "
                    "the limit is %llu%s%s",
                    r->bytes, name, (unsigned long long)counts.live, (unsigned long long)counts.quarantined,
                    (unsigned long long)counts.reserved, (unsigned long long)limit, limit ? "" : " (none)", others);
}

static acs_status take_apart(acs_memory *m, const acs_memory_request *r, acs_block *block)
{
    void *ptr = NULL;
    acs_status status = acs_pool_obtain(m, r->kind, r->bytes, &ptr);
    if (acs_pool_is_short(status))
        return r->quiet ? ACS_NOT_READY : refuse_request(m, r, status);
    if (status != ACS_OK)
        return status;
    acs_lock_acquire(&m->lock);
    acs_pool_count_taken_locked(&m->pools[r->kind], r->bytes);
    acs_lock_release(&m->lock);
    *block = (acs_block){.ptr = ptr, .bytes = r->bytes, .kind = r->kind, .site = r->site};
    return ACS_OK;
}

static acs_pool_size size_of(acs_memory *m, const acs_memory_request *r)
{
    if (r->bytes <= TUNE_POOL_SMALL_BLOCK)
        return ACS_POOL_SMALL;
    /* relaxed: grow_and_take asks again under `growing` */
    bool paged = r->kind == ACS_MEMORY_DEVICE && atomic_load_explicit(&m->paged, memory_order_relaxed);
    return paged ? ACS_POOL_PAGED : ACS_POOL_LARGE;
}

/*
 * One thread grows at a time, so that memory that another thread is about to add or give back is not asked for twice.
 */
static acs_status grow_and_take(acs_memory *m, acs_search *s)
{
    ACS_HOLD_MUTEX(&m->growing);
    s->size = size_of(m, s->request);
    acs_status status = acs_pool_take(m, s, false);
    bool looking = status == ACS_NOT_READY;
    while (looking) { /* again where another thread took the memory that was added */
        status = acs_pool_grow(m, s, &looking);
        if (status != ACS_OK)
            break;
        s->size = size_of(m, s->request);
        if (looking)
            status = acs_pool_take(m, s, false);
        looking = status == ACS_NOT_READY;
    }
    return status;
}

/*
 * Without early blocks the caller waits for the quarantine, so that the pool does not grow without bounds while one op
 * runs.
 */
static bool has_full_quarantine(acs_memory *m, const acs_search *s)
{
    const acs_pool *p = &m->pools[s->request->kind];
    ACS_HOLD(&m->lock);
    return !s->early && p->quarantines[0].bytes > acs_pool_quarantine_most(m, p);
}

acs_status acs_memory_take(acs_memory *m, const acs_memory_request *r, acs_block *block)
{
    acs_search s = {r, block, size_of(m, r), r->early && acs_memory_is_device(r->kind)};
    if (r->bytes > SIZE_MAX - 2 * ACS_MIB) /* so that rounding up cannot wrap */
        return r->quiet ? ACS_NOT_READY : refuse_request(m, r, ACS_NOT_READY);
    if (!m->config.pooled)
        return take_apart(m, r, block);
    acs_status status = acs_pool_take(m, &s, false);
    if (status != ACS_NOT_READY || (!r->beside && has_full_quarantine(m, &s)))
        return status;
    status = grow_and_take(m, &s);
    if ((r->optional || r->quiet) && acs_pool_is_short(status))
        return ACS_NOT_READY;
    return acs_pool_is_short(status) ? refuse_request(m, r, status) : status;
}

/* -------------------------------------------------------------------------------------------------------------- free */

acs_status acs_memory_give(acs_memory *m, const acs_block *block)
{
    acs_pool *p = &m->pools[block->kind];
    acs_lock_acquire(&m->lock);
    ACS_ASSERT(p->counts.live >= block->bytes); /* MEM-1 */
    p->counts.live -= block->bytes;
    acs_lock_release(&m->lock);
    acs_status status = m->config.release(m->config.user, block->kind, block->ptr, block->bytes);
    acs_pool_release_count(m, block->kind, block->bytes);
    return status;
}

/*
 * Pools of memory (see memory.h): two arenas for each kind, so that small blocks do not cut up large chunks. Called by
 * acs_malloc on callers' threads and by whoever retires an acs_free. Never waits for ops, and never touches a block.
 */
#include "pool/memory.h"

#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>

enum { KINDS = 2, SIZES = 2 };

#define MIB (UINT64_C(1) << 20)

/* The device's allocators give memory by 2 MiB. Blocks of up to half a chunk share it. */
static const struct {
    uint64_t block_most, chunk;
} g_sizes[SIZES] = {{1 * MIB, 2 * MIB}, {16 * MIB, 32 * MIB}};

typedef struct pool {
    acs_arena *arenas[SIZES];
    acs_memory_counts counts;
} pool;

struct acs_memory {
    acs_memory_config config; /* constant */
    pthread_mutex_t growing;  /* one thread asks the device for chunks, or gives them back, at a time; taken before `lock` */
    acs_lock lock;            /* rank POOL; guards what follows */
    pool pools[KINDS];
};

/* ------------------------------------------------------------------------------------------------------ open, close */

static acs_status arenas_create(acs_memory *m)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int size = 0; size < SIZES; size++)
            ACS_TRY(acs_arena_create(&m->pools[kind].arenas[size]));
    return ACS_OK;
}

static void arenas_destroy(acs_memory *m)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int size = 0; size < SIZES; size++)
            acs_arena_destroy(m->pools[kind].arenas[size]);
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
    arenas_destroy(m);
    free(m);
    return status;
}

void acs_memory_destroy(acs_memory *m, bool keep)
{
    if (!m)
        return;
    for (int kind = 0; kind < KINDS && !keep; kind++)
        (void)acs_memory_trim(m, kind, 0); /* closing: nobody left to tell */
    arenas_destroy(m);
    acs_lock_fini(&m->lock);
    pthread_mutex_destroy(&m->growing);
    free(m);
}

/* ------------------------------------------------------------------------------------------------------------ chunks */

static bool reserve(acs_memory *m, int kind, uint64_t bytes)
{
    pool *p = &m->pools[kind];
    acs_lock_acquire(&m->lock);
    uint64_t limit = m->config.limit && kind == ACS_MEMORY_DEVICE ? m->config.limit : UINT64_MAX;
    bool room = bytes <= limit && p->counts.reserved <= limit - bytes;
    if (room)
        p->counts.reserved += bytes;
    acs_lock_release(&m->lock);
    return room;
}

static void unreserve(acs_memory *m, int kind, uint64_t bytes)
{
    acs_lock_acquire(&m->lock);
    m->pools[kind].counts.reserved -= bytes;
    acs_lock_release(&m->lock);
}

/* Memory of the device, counted as reserved. ACS_NOT_READY: the limit has no room, and no error was made. */
static acs_status obtain(acs_memory *m, int kind, uint64_t bytes, void **ptr)
{
    if (!reserve(m, kind, bytes))
        return ACS_NOT_READY;
    acs_status status = m->config.obtain(m->config.user, kind, bytes, ptr);
    if (status != ACS_OK) {
        unreserve(m, kind, bytes);
        return status;
    }
    acs_lock_acquire(&m->lock);
    m->pools[kind].counts.obtained++;
    acs_lock_release(&m->lock);
    return ACS_OK;
}

static acs_status chunk_add(acs_memory *m, int kind, int size, uint64_t bytes)
{
    void *ptr = NULL;
    acs_status status = obtain(m, kind, bytes, &ptr);
    if (status != ACS_OK)
        return status;
    acs_lock_acquire(&m->lock);
    status = acs_arena_add(m->pools[kind].arenas[size], (uint64_t)(uintptr_t)ptr, bytes);
    acs_lock_release(&m->lock);
    if (status == ACS_OK)
        return ACS_OK;
    unreserve(m, kind, bytes);
    (void)m->config.release(m->config.user, kind, ptr); /* the first error counts */
    return status;
}

/* A chunk of which nothing is in use, the largest of the kind. */
static bool chunk_remove(acs_memory *m, int kind, uint64_t keep, void **ptr)
{
    pool *p = &m->pools[kind];
    uint64_t base, bytes;
    bool found = false;
    acs_lock_acquire(&m->lock);
    for (int size = SIZES; size-- > 0 && !found;)
        found = p->counts.reserved - p->counts.live > keep && acs_arena_remove(p->arenas[size], &base, &bytes);
    if (found) {
        p->counts.reserved -= bytes;
        *ptr = (void *)(uintptr_t)base;
    }
    acs_lock_release(&m->lock);
    return found;
}

static acs_status trim(acs_memory *m, int kind, uint64_t keep)
{
    acs_status status = ACS_OK;
    void *ptr;
    while (status == ACS_OK && chunk_remove(m, kind, keep, &ptr))
        status = m->config.release(m->config.user, kind, ptr);
    return status;
}

acs_status acs_memory_trim(acs_memory *m, int kind, uint64_t keep)
{
    pthread_mutex_lock(&m->growing);
    acs_status status = trim(m, kind, keep);
    pthread_mutex_unlock(&m->growing);
    return status;
}

static bool is_short(acs_status status)
{
    return status == ACS_ERR_MEMORY || status == ACS_NOT_READY;
}

/* A chunk of the usual size; without room what lies idle goes, and at last it is only as large as it has to be. */
static acs_status grow(acs_memory *m, int kind, int size, uint64_t bytes)
{
    const uint64_t least = (bytes + ACS_ARENA_ALIGN - 1) / ACS_ARENA_ALIGN * ACS_ARENA_ALIGN;
    const uint64_t rounded = (least + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    const uint64_t usual = bytes <= g_sizes[size].block_most ? g_sizes[size].chunk : rounded;
    acs_status status = chunk_add(m, kind, size, usual);
    if (!is_short(status))
        return status;
    ACS_TRY(trim(m, kind, 0));
    status = chunk_add(m, kind, size, usual);
    return is_short(status) && least < usual ? chunk_add(m, kind, size, least) : status;
}

/* ------------------------------------------------------------------------------------------------------------ blocks */

static void count_taken_locked(pool *p, uint64_t bytes)
{
    p->counts.live += bytes;
    if (p->counts.peak < p->counts.live)
        p->counts.peak = p->counts.live;
}

static acs_status refuse(acs_memory *m, int kind, size_t bytes, acs_status status)
{
    static const char *const names[KINDS] = {"device", "pinned host"};
    acs_memory_counts counts = acs_memory_count(m, kind);
    int native = status == ACS_ERR_MEMORY ? acs_error_thread()->native : 0;
    return ACS_FAIL(ACS_ERR_MEMORY, native, "no %zu bytes of %s memory: %llu are in use, %llu reserved, the limit is %llu%s",
                    bytes, names[kind], (unsigned long long)counts.live, (unsigned long long)counts.reserved,
                    kind == ACS_MEMORY_DEVICE ? (unsigned long long)m->config.limit : 0,
                    kind == ACS_MEMORY_DEVICE && m->config.limit ? "" : " (none)");
}

static acs_status take_apart(acs_memory *m, int kind, size_t bytes, acs_block *block)
{
    void *ptr = NULL;
    acs_status status = obtain(m, kind, bytes, &ptr);
    if (is_short(status))
        return refuse(m, kind, bytes, status);
    if (status != ACS_OK)
        return status;
    acs_lock_acquire(&m->lock);
    count_taken_locked(&m->pools[kind], bytes);
    acs_lock_release(&m->lock);
    *block = (acs_block){ptr, bytes, kind, NULL};
    return ACS_OK;
}

static acs_range *range_take(acs_memory *m, int kind, int size, size_t bytes)
{
    pool *p = &m->pools[kind];
    acs_lock_acquire(&m->lock);
    acs_range *range = acs_arena_take(p->arenas[size], bytes);
    if (range)
        count_taken_locked(p, range->bytes);
    acs_lock_release(&m->lock);
    return range;
}

/* One thread at a time: what another is about to add, or to give back, is neither asked for twice nor missing. */
static acs_range *grow_and_take(acs_memory *m, int kind, int size, size_t bytes, acs_status *status)
{
    pthread_mutex_lock(&m->growing);
    acs_range *range = range_take(m, kind, size, bytes);
    *status = ACS_OK;
    while (!range && *status == ACS_OK) { /* again where a thread that found something free was quicker */
        *status = grow(m, kind, size, bytes);
        range = *status == ACS_OK ? range_take(m, kind, size, bytes) : NULL;
    }
    pthread_mutex_unlock(&m->growing);
    return range;
}

acs_status acs_memory_take(acs_memory *m, int kind, size_t bytes, acs_block *block)
{
    const int size = bytes <= g_sizes[0].block_most ? 0 : 1;
    if (bytes > SIZE_MAX - 2 * MIB) /* no size may wrap when it is rounded up */
        return refuse(m, kind, bytes, ACS_NOT_READY);
    if (!m->config.pooled)
        return take_apart(m, kind, bytes, block);
    acs_status status = ACS_OK;
    acs_range *range = range_take(m, kind, size, bytes);
    if (!range)
        range = grow_and_take(m, kind, size, bytes, &status);
    if (is_short(status))
        return refuse(m, kind, bytes, status);
    if (status != ACS_OK)
        return status;
    *block = (acs_block){(void *)(uintptr_t)range->base, bytes, kind, range};
    return ACS_OK;
}

acs_status acs_memory_give(acs_memory *m, const acs_block *block)
{
    pool *p = &m->pools[block->kind];
    acs_lock_acquire(&m->lock);
    p->counts.live -= block->range ? block->range->bytes : block->bytes;
    if (block->range)
        acs_arena_give(block->range);
    else
        p->counts.reserved -= block->bytes;
    acs_lock_release(&m->lock);
    return block->range ? ACS_OK : m->config.release(m->config.user, block->kind, block->ptr);
}

acs_memory_counts acs_memory_count(acs_memory *m, int kind)
{
    acs_lock_acquire(&m->lock);
    acs_memory_counts counts = m->pools[kind].counts;
    acs_lock_release(&m->lock);
    return counts;
}

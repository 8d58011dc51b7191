/*
 * Pools of memory (see memory.h): two arenas for each kind, so that small blocks do not cut up large chunks, and a queue of
 * blocks that rest. Called by acs_malloc and acs_free on callers' threads, and where blocks are apart by whoever runs the op
 * that frees one. Never waits for ops, and never touches a block.
 *
 * Whether a range may be in use is told by its `last` op, not by where it lies: those that were handed out early, and came
 * back, are free ranges like others, and quiet as soon as that op has settled.
 */
#include "pool/memory.h"

#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 2, SIZES = 2, SETTLED_AT_ONCE = 16 };

#define MIB (UINT64_C(1) << 20)

/* The device's allocators give memory by 2 MiB. Blocks of up to half a chunk share it. */
static const struct {
    uint64_t block_most, chunk;
} g_sizes[SIZES] = {{1 * MIB, 2 * MIB}, {16 * MIB, 32 * MIB}};

typedef struct chunk {
    uint64_t base, bytes;
} chunk;

typedef struct pool {
    acs_arena *arenas[SIZES];
    acs_memory_counts counts;
    acs_range *first, *newest; /* resting blocks, through `next`, by when they came */
    acs_op last;               /* the latest op that a block which was given back was behind */
    chunk *chunks;             /* of both arenas, by address */
    uint32_t chunk_count, chunk_capacity;
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
    for (int kind = 0; kind < KINDS; kind++)
        free(m->pools[kind].chunks);
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

/* Where the chunk that begins at the address is in the table, or is to be. */
static uint32_t chunk_at(const pool *p, uint64_t base)
{
    uint32_t from = 0, to = p->chunk_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (p->chunks[middle].base < base)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static acs_status chunk_note_locked(pool *p, uint64_t base, uint64_t bytes)
{
    if (p->chunk_count == p->chunk_capacity) {
        uint32_t capacity = p->chunk_capacity ? 2 * p->chunk_capacity : 64;
        chunk *grown = realloc(p->chunks, capacity * sizeof *grown);
        if (!grown)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the table of chunks");
        p->chunks = grown;
        p->chunk_capacity = capacity;
    }
    uint32_t at = chunk_at(p, base);
    memmove(&p->chunks[at + 1], &p->chunks[at], (p->chunk_count++ - at) * sizeof *p->chunks);
    p->chunks[at] = (chunk){base, bytes};
    return ACS_OK;
}

static void chunk_forget_locked(pool *p, uint64_t base)
{
    uint32_t at = chunk_at(p, base);
    memmove(&p->chunks[at], &p->chunks[at + 1], (--p->chunk_count - at) * sizeof *p->chunks);
}

static acs_status chunk_add(acs_memory *m, int kind, int size, uint64_t bytes)
{
    pool *p = &m->pools[kind];
    void *ptr = NULL;
    acs_status status = obtain(m, kind, bytes, &ptr);
    if (status != ACS_OK)
        return status;
    uint64_t base = (uint64_t)(uintptr_t)ptr;
    acs_lock_acquire(&m->lock);
    status = chunk_note_locked(p, base, bytes);
    if (status == ACS_OK && (status = acs_arena_add(p->arenas[size], base, bytes)) != ACS_OK)
        chunk_forget_locked(p, base);
    acs_lock_release(&m->lock);
    if (status == ACS_OK)
        return ACS_OK;
    unreserve(m, kind, bytes);
    (void)m->config.release(m->config.user, kind, ptr); /* the first error counts */
    return status;
}

/* The block that has rested for longest becomes a free range, though ops may use it. */
static void end_rest_locked(pool *p)
{
    acs_range *range = p->first;
    p->first = range->next;
    p->counts.resting -= range->bytes;
    acs_arena_give(range);
}

/* The same for those whose ops have ended, at most so many. */
static void settle_locked(pool *p, acs_op settled, uint32_t most)
{
    for (; p->first && p->first->last <= settled && most > 0; most--) {
        p->first->last = 0;
        end_rest_locked(p);
    }
}

/* A chunk of which nothing is in use, the largest of the kind. */
static bool chunk_remove(acs_memory *m, int kind, acs_op settled, uint64_t keep, void **ptr)
{
    pool *p = &m->pools[kind];
    uint64_t base, bytes;
    bool found = false;
    acs_lock_acquire(&m->lock);
    settle_locked(p, settled, UINT32_MAX);
    for (int size = SIZES; size-- > 0 && !found;)
        found = p->counts.reserved - p->counts.live - p->counts.resting > keep &&
                acs_arena_remove(p->arenas[size], settled, &base, &bytes);
    if (found) {
        p->counts.reserved -= bytes;
        chunk_forget_locked(p, base);
        *ptr = (void *)(uintptr_t)base;
    }
    acs_lock_release(&m->lock);
    return found;
}

static acs_status trim(acs_memory *m, int kind, acs_op settled, uint64_t keep)
{
    acs_status status = ACS_OK;
    void *ptr;
    while (status == ACS_OK && chunk_remove(m, kind, settled, keep, &ptr))
        status = m->config.release(m->config.user, kind, ptr);
    return status;
}

acs_status acs_memory_trim(acs_memory *m, int kind, uint64_t keep)
{
    if (!m->config.pooled)
        return ACS_OK;
    pthread_mutex_lock(&m->growing);
    acs_status status = trim(m, kind, m->config.settled(m->config.user), keep);
    pthread_mutex_unlock(&m->growing);
    return status;
}

void acs_memory_destroy(acs_memory *m, bool keep)
{
    if (!m)
        return;
    for (int kind = 0; kind < KINDS && !keep && m->config.pooled; kind++)
        (void)trim(m, kind, UINT64_MAX, 0); /* closing: nobody left to tell, and nothing that runs */
    arenas_destroy(m);
    acs_lock_fini(&m->lock);
    pthread_mutex_destroy(&m->growing);
    free(m);
}

bool acs_memory_pools(acs_memory *m, uint64_t address)
{
    bool found = false;
    acs_lock_acquire(&m->lock);
    for (int kind = 0; kind < KINDS && !found; kind++) {
        const pool *p = &m->pools[kind];
        uint32_t behind = address == UINT64_MAX ? p->chunk_count : chunk_at(p, address + 1); /* first that begins behind */
        found = behind > 0 && address - p->chunks[behind - 1].base < p->chunks[behind - 1].bytes;
    }
    acs_lock_release(&m->lock);
    return found;
}

/* ------------------------------------------------------------------------------------------------------------ blocks */

static void count_taken_locked(pool *p, uint64_t bytes)
{
    p->counts.live += bytes;
    if (p->counts.peak < p->counts.live + p->counts.resting)
        p->counts.peak = p->counts.live + p->counts.resting;
}

/* What the oldest blocks at rest leave, though ops may use it: until something fits. */
static acs_range *take_early_locked(pool *p, int size, size_t bytes)
{
    acs_range *range = NULL;
    while (!range && p->first) {
        end_rest_locked(p);
        range = acs_arena_take(p->arenas[size], bytes);
    }
    return range;
}

/* What a taker asks for. */
typedef struct request {
    size_t bytes;
    int kind, size;
    bool early;
} request;

/* What is free; `rests`: or what rests, if it may be handed out early. NULL: there is none. */
static acs_range *range_take(acs_memory *m, const request *r, bool rests, acs_op *behind)
{
    pool *p = &m->pools[r->kind];
    acs_lock_acquire(&m->lock);
    acs_op settled = m->config.settled(m->config.user);
    settle_locked(p, settled, SETTLED_AT_ONCE);
    acs_range *range = acs_arena_take(p->arenas[r->size], r->bytes);
    if (!range && p->first && p->first->last <= settled) {
        settle_locked(p, settled, UINT32_MAX);
        range = acs_arena_take(p->arenas[r->size], r->bytes);
    }
    if (!range && r->early && rests)
        range = take_early_locked(p, r->size, r->bytes);
    if (range && range->last > settled && !r->early) {
        acs_arena_give(range); /* others may have it, who can wait */
        range = NULL;
    }
    if (range) {
        *behind = range->last > settled ? range->last : 0;
        p->counts.early += *behind != 0;
        count_taken_locked(p, range->bytes);
    }
    acs_lock_release(&m->lock);
    return range;
}

static bool is_short(acs_status status)
{
    return status == ACS_ERR_MEMORY || status == ACS_NOT_READY;
}

/*
 * A chunk of the usual size; without room what rests is handed out early, then what lies idle goes, and at last the chunk is
 * only as large as it has to be. ACS_OK without a range: there is a chunk now.
 */
static acs_status grow(acs_memory *m, const request *r, acs_range **range, acs_op *behind)
{
    const uint64_t least = (r->bytes + ACS_ARENA_ALIGN - 1) / ACS_ARENA_ALIGN * ACS_ARENA_ALIGN;
    const uint64_t rounded = (least + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    const uint64_t usual = r->bytes <= g_sizes[r->size].block_most ? g_sizes[r->size].chunk : rounded;
    acs_status status = chunk_add(m, r->kind, r->size, usual);
    if (!is_short(status) || (*range = range_take(m, r, true, behind)) != NULL)
        return *range ? ACS_OK : status;
    ACS_TRY(trim(m, r->kind, m->config.settled(m->config.user), 0));
    status = chunk_add(m, r->kind, r->size, usual);
    return is_short(status) && least < usual ? chunk_add(m, r->kind, r->size, least) : status;
}

static acs_status refuse(acs_memory *m, int kind, size_t bytes, acs_status status)
{
    static const char *const names[KINDS] = {"device", "pinned host"};
    acs_memory_counts counts = acs_memory_count(m, kind);
    int native = status == ACS_ERR_MEMORY ? acs_error_thread()->native : 0;
    return ACS_FAIL(ACS_ERR_MEMORY, native, "no %zu bytes of %s memory: %llu are in use, %llu were freed and ops use them, "
                    "%llu are reserved, the limit is %llu%s",
                    bytes, names[kind], (unsigned long long)counts.live, (unsigned long long)counts.resting,
                    (unsigned long long)counts.reserved,
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
    *block = (acs_block){.ptr = ptr, .bytes = bytes, .kind = kind};
    return ACS_OK;
}

/* One thread at a time: what another is about to add, or to give back, is neither asked for twice nor missing. */
static acs_range *grow_and_take(acs_memory *m, const request *r, acs_op *behind, acs_status *status)
{
    pthread_mutex_lock(&m->growing);
    acs_range *range = range_take(m, r, false, behind);
    *status = ACS_OK;
    while (!range && *status == ACS_OK) { /* again where a thread that found something free was quicker */
        *status = grow(m, r, &range, behind);
        if (!range && *status == ACS_OK)
            range = range_take(m, r, false, behind);
    }
    pthread_mutex_unlock(&m->growing);
    return range;
}

/* What may not be handed out early is waited for rather than to reserve without bounds while one op runs. */
static bool rests_too_much(acs_memory *m, const request *r)
{
    acs_lock_acquire(&m->lock);
    bool too_much = !r->early && m->pools[r->kind].counts.resting > m->config.slack;
    acs_lock_release(&m->lock);
    return too_much;
}

acs_status acs_memory_take(acs_memory *m, int kind, size_t bytes, bool early, acs_block *block)
{
    const request r = {bytes, kind, bytes <= g_sizes[0].block_most ? 0 : 1, early && kind == ACS_MEMORY_DEVICE};
    if (bytes > SIZE_MAX - 2 * MIB) /* no size may wrap when it is rounded up */
        return refuse(m, kind, bytes, ACS_NOT_READY);
    if (!m->config.pooled)
        return take_apart(m, kind, bytes, block);
    acs_status status = ACS_OK;
    acs_op behind = 0;
    acs_range *range = range_take(m, &r, false, &behind);
    if (!range && rests_too_much(m, &r))
        return ACS_NOT_READY;
    if (!range)
        range = grow_and_take(m, &r, &behind, &status);
    if (is_short(status))
        return refuse(m, kind, bytes, status);
    if (status != ACS_OK)
        return status;
    *block = (acs_block){(void *)(uintptr_t)range->base, bytes, kind, range, behind};
    return ACS_OK;
}

/* It rests, behind those that do. Who gave it in time finds it quiet at once. */
static void rest_locked(pool *p, acs_range *range, acs_op last, acs_op settled)
{
    if (range->last < last)
        range->last = last;
    if (p->last < range->last)
        p->last = range->last;
    if (range->last <= settled) {
        range->last = 0;
        acs_arena_give(range);
        return;
    }
    range->next = NULL;
    if (p->first)
        p->newest->next = range;
    else
        p->first = range;
    p->newest = range;
    p->counts.resting += range->bytes;
}

acs_status acs_memory_give(acs_memory *m, const acs_block *block, acs_op last)
{
    pool *p = &m->pools[block->kind];
    acs_lock_acquire(&m->lock);
    p->counts.live -= block->range ? block->range->bytes : block->bytes;
    if (block->range)
        rest_locked(p, block->range, last, m->config.settled(m->config.user));
    else
        p->counts.reserved -= block->bytes;
    while (block->kind == ACS_MEMORY_DEVICE && p->counts.resting > m->config.slack)
        end_rest_locked(p); /* to be handed out early */
    acs_lock_release(&m->lock);
    return block->range ? ACS_OK : m->config.release(m->config.user, block->kind, block->ptr);
}

bool acs_memory_oldest(acs_memory *m, int kind, acs_block *block)
{
    pool *p = &m->pools[kind];
    acs_lock_acquire(&m->lock);
    acs_range *range = p->first;
    if (range) {
        p->first = range->next;
        p->counts.resting -= range->bytes;
        p->counts.live += range->bytes;
        range->last = 0;
        *block = (acs_block){(void *)(uintptr_t)range->base, range->bytes, kind, range, 0};
    }
    acs_lock_release(&m->lock);
    return range != NULL;
}

acs_op acs_memory_rests_until(acs_memory *m, int kind)
{
    if (!m->config.pooled)
        return 0;
    acs_lock_acquire(&m->lock);
    acs_op last = m->pools[kind].last;
    acs_op op = last > m->config.settled(m->config.user) ? last : 0;
    acs_lock_release(&m->lock);
    return op;
}

acs_memory_counts acs_memory_count(acs_memory *m, int kind)
{
    acs_lock_acquire(&m->lock);
    acs_memory_counts counts = m->pools[kind].counts;
    acs_lock_release(&m->lock);
    return counts;
}

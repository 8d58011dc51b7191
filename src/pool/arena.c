/*
 * Free ranges in bins by size (see arena.h): sixteen bins for each power of two, and a bitmap of the bins that are not
 * empty. Called by the files of the pools under their lock, and by tests. Never touches the memory that it hands out.
 */
#include "pool/arena.h"

#include "base/tuning.h"

#include <stdlib.h>

enum {
    SHARES = 1 << TUNE_ARENA_CLASSES_LOG2,
    BINS = (64 - 8 - TUNE_ARENA_CLASSES_LOG2 + 1) * SHARES, /* sizes are counted in units of 256 bytes */
    WORDS = (BINS + 63) / 64
};

typedef struct slab {
    struct slab *next;
    acs_range ranges[TUNE_ARENA_SLAB];
} slab;

struct acs_arena {
    acs_range *bins[BINS], *tails[BINS];
    uint64_t filled[WORDS]; /* a bit for each bin that is not empty */
    acs_range *holes;
    acs_range *spare;       /* list of unused descriptors, through `next` */
    slab *slabs;
    acs_arena_counts counts;
};

acs_status acs_arena_create(acs_arena **arena)
{
    *arena = calloc(1, sizeof **arena);
    return *arena ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for an arena");
}

void acs_arena_destroy(acs_arena *arena)
{
    if (!arena)
        return;
    while (arena->slabs) {
        slab *s = arena->slabs;
        arena->slabs = s->next;
        free(s);
    }
    free(arena);
}

/* ------------------------------------------------------------------------------------------------------- descriptors */

static acs_range *descriptor(acs_arena *arena)
{
    if (!arena->spare) {
        slab *s = malloc(sizeof *s);
        if (!s)
            return NULL;
        s->next = arena->slabs;
        arena->slabs = s;
        for (uint32_t i = 0; i < TUNE_ARENA_SLAB; i++) {
            s->ranges[i].next = arena->spare;
            arena->spare = &s->ranges[i];
        }
    }
    acs_range *range = arena->spare;
    arena->spare = range->next;
    return range;
}

static void discard(acs_arena *arena, acs_range *range)
{
    range->next = arena->spare;
    arena->spare = range;
}

/* -------------------------------------------------------------------------------------------------------------- bins */

/*
 * Up to 15 units each size has a bin; above, each power of two has 16. The number of the bin never falls as sizes grow.
 */
static uint32_t bin_of(uint64_t bytes)
{
    uint64_t units = bytes / ACS_ARENA_ALIGN;
    if (units < SHARES)
        return (uint32_t)units;
    uint32_t log2 = 63 - (uint32_t)__builtin_clzll(units);
    uint32_t shift = log2 - TUNE_ARENA_CLASSES_LOG2;
    return (shift + 1) * SHARES + (uint32_t)(units >> shift) % SHARES;
}

/*
 * A range that no op uses goes to the front, since its memory may still be in caches. Others go to the end: the longer a
 * range waits, the sooner its ops have settled.
 */
static void bin_add(acs_arena *arena, acs_range *range)
{
    uint32_t bin = bin_of(range->bytes);
    ACS_ASSERT(!range->free && !range->hole && bin < BINS);                                                    /* ARENA-2 */
    ACS_ASSERT(!(range->before && range->before->free) && !(range->behind && range->behind->free));            /* ARENA-1 */
    ACS_ASSERT(range->bytes > 0 && range->base % ACS_ARENA_ALIGN == 0 && range->bytes % ACS_ARENA_ALIGN == 0); /* ARENA-3 */
    acs_range *first = arena->bins[bin], *newest = arena->tails[bin];
    range->free = true;
    range->next = range->last ? NULL : first;
    range->previous = range->last ? newest : NULL;
    *(range->previous ? &range->previous->next : &arena->bins[bin]) = range;
    *(range->next ? &range->next->previous : &arena->tails[bin]) = range;
    arena->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void bin_remove(acs_arena *arena, acs_range *range)
{
    uint32_t bin = bin_of(range->bytes);
    ACS_ASSERT(range->free && (arena->filled[bin / 64] >> bin % 64 & 1)); /* ARENA-2 */
    range->free = false;
    *(range->next ? &range->next->previous : &arena->tails[bin]) = range->previous;
    *(range->previous ? &range->previous->next : &arena->bins[bin]) = range->next;
    if (!arena->bins[bin])
        arena->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

/* The first bin from `bin` on that is not empty; BINS: there is none. */
static uint32_t next_filled(const acs_arena *arena, uint32_t bin)
{
    for (uint32_t word = bin / 64; word < WORDS; word++) {
        uint64_t left = arena->filled[word];
        if (word == bin / 64)
            left &= UINT64_MAX << bin % 64;
        if (left)
            return word * 64 + (uint32_t)__builtin_ctzll(left);
    }
    return BINS;
}

/*
 * The smallest range of the bin that is large enough, among its first `looks`; of equal ones the lowest, so that the
 * high ends of chunks become free. An exact fit is taken at once, since programs ask for the same sizes again and again.
 */
static acs_range *best_in(const acs_arena *arena, uint32_t bin, uint64_t bytes, acs_op settled, uint32_t looks)
{
    acs_range *best = NULL;
    for (acs_range *range = arena->bins[bin]; range && looks > 0; range = range->next, looks--) {
        if (range->bytes < bytes || range->last > settled)
            continue;
        if (range->bytes == bytes)
            return range;
        if (!best || range->bytes < best->bytes || (range->bytes == best->bytes && range->base < best->base))
            best = range;
    }
    return best;
}

static acs_range *find_best_fit(const acs_arena *arena, uint64_t bytes, acs_op settled)
{
    uint32_t own = bin_of(bytes);
    acs_range *range = best_in(arena, own, bytes, settled, TUNE_ARENA_SEARCHED);
    for (uint32_t bin = next_filled(arena, own + 1); !range && bin < BINS; bin = next_filled(arena, bin + 1))
        range = best_in(arena, bin, bytes, settled, TUNE_ARENA_SEARCHED);
    return range ? range : best_in(arena, own, bytes, settled, UINT32_MAX);
}

/* ------------------------------------------------------------------------------------------------------------- ranges */

static acs_status add_chunk(acs_arena *arena, uint64_t base, uint64_t bytes, acs_range **range)
{
    if (bytes == 0 || base % ACS_ARENA_ALIGN || bytes % ACS_ARENA_ALIGN || base + bytes < base)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%llu bytes at 0x%llx are no chunk of an arena", (unsigned long long)bytes,
                        (unsigned long long)base);
    *range = descriptor(arena);
    if (!*range)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the descriptors of an arena");
    **range = (acs_range){.base = base, .bytes = bytes, .arena = arena};
    arena->counts.chunks++;
    return ACS_OK;
}

acs_status acs_arena_add(acs_arena *arena, uint64_t base, uint64_t bytes)
{
    acs_range *range;
    ACS_TRY(add_chunk(arena, base, bytes, &range));
    bin_add(arena, range);
    arena->counts.reserved += bytes;
    return ACS_OK;
}

/* Make the bytes behind the first `bytes` a range of their own. NULL: there are none, or no descriptor for them. */
static acs_range *cut_off(acs_arena *arena, acs_range *range, uint64_t bytes)
{
    acs_range *rest = range->bytes > bytes ? descriptor(arena) : NULL;
    if (!rest)
        return NULL;
    *rest = (acs_range){.base = range->base + bytes, .bytes = range->bytes - bytes, .before = range,
                        .behind = range->behind, .arena = arena, .last = range->last};
    if (rest->behind)
        rest->behind->before = rest;
    range->behind = rest;
    range->bytes = bytes;
    ACS_ASSERT(bytes > 0 && bytes % ACS_ARENA_ALIGN == 0); /* ARENA-3 */
    return rest;
}

/* Free what the range has beyond `bytes`. Without a descriptor it stays, and is handed out with the range. */
static void split(acs_arena *arena, acs_range *range, uint64_t bytes)
{
    acs_range *rest = cut_off(arena, range, bytes);
    if (rest)
        bin_add(arena, rest);
}

acs_range *acs_arena_take(acs_arena *arena, uint64_t bytes, acs_op settled)
{
    if (bytes == 0 || bytes > UINT64_MAX - ACS_ARENA_ALIGN)
        return NULL;
    bytes = (bytes + ACS_ARENA_ALIGN - 1) / ACS_ARENA_ALIGN * ACS_ARENA_ALIGN;
    acs_range *range = find_best_fit(arena, bytes, settled);
    if (!range)
        return NULL;
    bin_remove(arena, range);
    split(arena, range, bytes);
    arena->counts.taken += range->bytes;
    ACS_ASSERT(range->bytes >= bytes && arena->counts.taken <= arena->counts.reserved);
    return range;
}

/* `behind` becomes part of `range`. */
static void absorb(acs_arena *arena, acs_range *range, acs_range *behind)
{
    ACS_ASSERT(range->behind == behind && range->base + range->bytes == behind->base); /* ARENA-1 */
    range->bytes += behind->bytes;
    if (range->last < behind->last)
        range->last = behind->last;
    range->behind = behind->behind;
    if (range->behind)
        range->behind->before = range;
    discard(arena, behind);
}

void acs_arena_give(acs_range *range)
{
    acs_arena *arena = range->arena;
    acs_range *before = range->before, *behind = range->behind;
    ACS_ASSERT(!range->free && !range->hole && arena->counts.taken >= range->bytes); /* ARENA-2 */
    arena->counts.taken -= range->bytes;
    if (behind && behind->free) {
        bin_remove(arena, behind);
        absorb(arena, range, behind);
    }
    if (before && before->free) {
        bin_remove(arena, before);
        absorb(arena, before, range);
        range = before;
    }
    bin_add(arena, range);
}

bool acs_arena_remove(acs_arena *arena, acs_op settled, uint64_t *base, uint64_t *bytes)
{
    for (uint32_t bin = BINS; bin-- > 0;)
        for (acs_range *range = arena->bins[bin]; range; range = range->next) {
            if (range->before || range->behind || range->last > settled)
                continue;
            *base = range->base;
            *bytes = range->bytes;
            bin_remove(arena, range);
            ACS_ASSERT(arena->counts.chunks > 0 && arena->counts.reserved >= range->bytes);
            arena->counts.reserved -= range->bytes;
            arena->counts.chunks--;
            discard(arena, range);
            return true;
        }
    return false;
}

/* -------------------------------------------------------------------------------------------------------------- holes */

static void hole_add(acs_arena *arena, acs_range *range)
{
    ACS_ASSERT(!range->free && !range->hole);                                                       /* ARENA-2 */
    ACS_ASSERT(!(range->before && range->before->hole) && !(range->behind && range->behind->hole)); /* ARENA-1 */
    range->hole = true;
    range->last = 0;
    range->previous = NULL;
    range->next = arena->holes;
    if (range->next)
        range->next->previous = range;
    arena->holes = range;
}

static void hole_remove(acs_arena *arena, acs_range *range)
{
    ACS_ASSERT(range->hole && !range->free); /* ARENA-2 */
    range->hole = false;
    *(range->previous ? &range->previous->next : &arena->holes) = range->next;
    if (range->next)
        range->next->previous = range->previous;
}

acs_status acs_arena_add_hole(acs_arena *arena, uint64_t base, uint64_t bytes)
{
    acs_range *range;
    ACS_TRY(add_chunk(arena, base, bytes, &range));
    hole_add(arena, range);
    return ACS_OK;
}

acs_range *acs_arena_hole(const acs_arena *arena, const acs_range *hole)
{
    return hole ? hole->next : arena->holes;
}

acs_range *acs_arena_open(acs_range *hole, uint64_t bytes)
{
    acs_arena *arena = hole->arena;
    acs_range *rest = cut_off(arena, hole, bytes);
    if (!rest && hole->bytes > bytes)
        return NULL;
    hole_remove(arena, hole);
    if (rest)
        hole_add(arena, rest);
    return hole;
}

void acs_arena_empty(acs_range *range)
{
    acs_arena *arena = range->arena;
    acs_range *before = range->before, *behind = range->behind;
    if (behind && behind->hole) {
        hole_remove(arena, behind);
        absorb(arena, range, behind);
    }
    if (before && before->hole) {
        absorb(arena, before, range);
        return;
    }
    hole_add(arena, range);
}

static bool is_idle(const acs_range *range, acs_op settled)
{
    return range && range->free && range->last <= settled;
}

acs_range *acs_arena_fill(acs_range *range, uint64_t least, acs_op settled)
{
    acs_arena *arena = range->arena;
    acs_range *before = range->before, *behind = range->behind;
    ACS_ASSERT(!range->free && !range->hole);
    arena->counts.reserved += range->bytes;
    arena->counts.taken += range->bytes;
    least = (least + ACS_ARENA_ALIGN - 1) / ACS_ARENA_ALIGN * ACS_ARENA_ALIGN;
    if (range->bytes < least && is_idle(behind, settled)) {
        bin_remove(arena, behind);
        arena->counts.taken += behind->bytes;
        absorb(arena, range, behind);
    }
    if (range->bytes < least && is_idle(before, settled)) {
        bin_remove(arena, before);
        arena->counts.taken += before->bytes;
        absorb(arena, before, range);
        range = before;
    }
    range->last = 0;
    if (least == 0 || range->bytes < least) {
        acs_arena_give(range);
        return NULL;
    }
    acs_range *rest = cut_off(arena, range, least);
    if (rest)
        acs_arena_give(rest); /* merges with the free range behind it */
    return range;
}

acs_range *acs_arena_cut(acs_range *range, uint64_t base, uint64_t bytes)
{
    acs_arena *arena = range->arena;
    acs_range *low = base > range->base ? range : NULL, *rest = NULL;
    ACS_ASSERT(base >= range->base && base - range->base + bytes <= range->bytes);
    bin_remove(arena, range);
    if (low)
        range = cut_off(arena, low, base - low->base);
    if (range)
        rest = cut_off(arena, range, bytes);
    if (range && (rest || range->bytes == bytes)) {
        arena->counts.reserved -= bytes;
        if (rest)
            bin_add(arena, rest);
        if (low)
            bin_add(arena, low);
        return range;
    }
    if (low && range) /* no descriptor: undo the first cut */
        absorb(arena, low, range);
    bin_add(arena, low ? low : range);
    return NULL;
}

acs_range *acs_arena_idle(const acs_arena *arena, acs_op settled, const acs_range *range)
{
    uint32_t bin = range ? bin_of(range->bytes) : BINS;
    acs_range *next = range ? range->next : NULL;
    for (;;) {
        for (; next; next = next->next)
            if (next->last <= settled)
                return next;
        if (bin-- == 0)
            return NULL;
        next = arena->bins[bin];
    }
}

/* ------------------------------------------------------------------------------------------------------------- counts */

acs_arena_counts acs_arena_count(const acs_arena *arena)
{
    return arena->counts;
}

static bool is_sound(const acs_range *range, uint32_t bin)
{
    const acs_range *before = range->before, *behind = range->behind;
    bool bound = range->bytes > 0 && range->bytes % ACS_ARENA_ALIGN == 0 && range->base % ACS_ARENA_ALIGN == 0;
    bool left = !before || (before->behind == range && before->base + before->bytes == range->base && !before->free);
    bool right = !behind || (behind->before == range && range->base + range->bytes == behind->base && !behind->free);
    return range->free && bin_of(range->bytes) == bin && bound && left && right;
}

/* Checks ARENA-1, ARENA-2 and ARENA-3 for free ranges and holes. */
bool acs_arena_check(const acs_arena *arena)
{
    uint64_t free_bytes = 0;
    for (uint32_t bin = 0; bin < BINS; bin++) {
        if ((arena->bins[bin] != NULL) != (arena->filled[bin / 64] >> bin % 64 & 1))
            return false;
        for (const acs_range *range = arena->bins[bin]; range; range = range->next) {
            if (!is_sound(range, bin) || (range->next && range->next->previous != range))
                return false;
            free_bytes += range->bytes;
        }
    }
    for (const acs_range *hole = arena->holes; hole; hole = hole->next)
        if (!hole->hole || hole->free || (hole->behind && hole->behind->hole) || (hole->before && hole->before->hole))
            return false;
    return free_bytes + arena->counts.taken == arena->counts.reserved;
}

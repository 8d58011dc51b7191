/*
 * Ranges of addresses, handed out by best fit, split, and merged with their free neighbours when they come back. The
 * arena never touches memory, so the addresses may be a device's. Its owner adds chunks, and takes whole free chunks out
 * again. Chunks are never merged with each other.
 *
 * The owner may also add *holes*: addresses without memory. It fills and empties parts of them (pages.h), and free
 * ranges merge across all parts that were filled. Not thread-safe. Descriptors are allocated by the hundred, and kept
 * until the arena is destroyed.
 *
 * ARENA-1  the ranges of a chunk, holes among them, lie behind each other without gaps; no two free ones, and no two
 *          holes, lie side by side.
 * ARENA-2  exactly the free ranges are in bins, each in that of its size; exactly the holes are in their list.
 * ARENA-3  all sizes and places are multiples of ACS_ARENA_ALIGN.
 * acs_arena_check() tells whether these hold.
 */
#ifndef ACS_ARENA_H
#define ACS_ARENA_H

#include "base/base.h"
#include "base/hash.h"

enum { ACS_ARENA_ALIGN = 256 };

typedef struct acs_arena acs_arena;

/* Read-only outside of the arena, but for the owner's fields. Valid while the range is handed out. */
typedef struct acs_range {
    uint64_t base, bytes;
    struct acs_range *before, *behind; /* neighbours in the chunk, by address; NULL: none */
    struct acs_range *next, *previous; /* of a free range: in its bin; of a hole: in the list of holes */
    acs_arena *arena;
    acs_op last; /* latest op that may still use some of it; 0: none. Set by the owner; of merged ranges the latest */
    bool free, hole;
    /* the owner's fields, of a range that is handed out */
    bool of_group;
    uint8_t kind;
    int hash_failed;
    uint64_t asked, id; /* bytes that were asked for; number of the block */
    const acs_site *site;
    void *mark;
    UT_hash_handle hh;
} acs_range;

typedef struct acs_arena_counts {
    uint64_t reserved; /* bytes of all chunks, without holes */
    uint64_t taken;    /* bytes of them that are handed out */
    uint64_t chunks;
} acs_arena_counts;

/* ACS_ERR_MEMORY. */
acs_status acs_arena_create(acs_arena **arena);
/* Ranges that are handed out, and chunks, remain the owner's business. NULL is allowed. */
void acs_arena_destroy(acs_arena *arena);

/* Add a chunk, all of it free. ACS_ERR_ARGUMENT: it is not aligned, or empty; ACS_ERR_MEMORY: for its descriptor. */
acs_status acs_arena_add(acs_arena *arena, uint64_t base, uint64_t bytes);
/*
 * Hand out a range of at least `bytes` bytes (at least one) that only ops up to `settled` may use. It is the smallest
 * free range that is large enough: of up to TUNE_ARENA_SEARCHED in its size class the best. What exceeds `bytes` stays
 * free.
 *
 * Of ranges that fit exactly, the one is taken that no op uses and came back last, else the one that came back first.
 * NULL: there is none; the owner may add a chunk.
 */
acs_range *acs_arena_take(acs_arena *arena, uint64_t bytes, acs_op settled);
/* Take the range back; it is free again, and `range` is no longer valid. */
void acs_arena_give(acs_range *range);
/* Remove the largest chunk that is free as a whole and that only ops up to `settled` use. False: there is none. */
bool acs_arena_remove(acs_arena *arena, acs_op settled, uint64_t *base, uint64_t *bytes);

/* Add a chunk that is one hole. Errors as acs_arena_add. */
acs_status acs_arena_add_hole(acs_arena *arena, uint64_t base, uint64_t bytes);
/* The hole behind `hole` in the list, in no order; of NULL the first. NULL: there are no more. */
acs_range *acs_arena_hole(const acs_arena *arena, const acs_range *hole);
/*
 * Open the low end of a hole, so that its owner can put memory behind it: the range is handed out, and not yet counted
 * as memory of the arena. acs_arena_fill or acs_arena_empty ends that. NULL: no memory for a descriptor.
 */
acs_range *acs_arena_open(acs_range *hole, uint64_t bytes);
/*
 * Memory is behind the range now, and no op uses it. Hand out at least `least` bytes of it, together with free
 * neighbours that only ops up to `settled` use; the remainder is free. NULL: they do not fit, or `least` is 0, and all
 * of it is free.
 */
acs_range *acs_arena_fill(acs_range *range, uint64_t least, acs_op settled);
/* No memory is behind the range: it becomes a hole. */
void acs_arena_empty(acs_range *range);
/* Cut a part out of a free range, so that its owner can take the memory behind it away. As acs_arena_open. */
acs_range *acs_arena_cut(acs_range *range, uint64_t base, uint64_t bytes);
/*
 * The free range behind `range` that only ops up to `settled` use, larger classes first; of NULL the first. NULL: no
 * more.
 */
acs_range *acs_arena_idle(const acs_arena *arena, acs_op settled, const acs_range *range);

acs_arena_counts acs_arena_count(const acs_arena *arena);
bool acs_arena_check(const acs_arena *arena);

#endif

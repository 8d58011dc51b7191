/*
 * Ranges of addresses, handed out and taken back: best fit, split, and merged with their neighbours. It knows numbers only:
 * memory is never touched, so it may be a device's. Its owner adds chunks, which are never merged with each other, and
 * takes whole ones out again; or addresses behind which there is no memory yet, *holes*, and fills and empties parts of
 * them (pages.h), so that what is free merges across all that was filled. Not thread-safe; allocates descriptors by malloc,
 * by the hundred, and keeps them until it is destroyed.
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

/* Read-only to others. Of a range that is out, valid until it is given back. */
typedef struct acs_range {
    uint64_t base, bytes;
    struct acs_range *before, *behind; /* neighbours in the chunk, by address */
    struct acs_range *next, *previous; /* free ones: in their bin; holes: in their list */
    acs_arena *arena;
    acs_op last; /* ops up to this one may still use some of it, 0: none. The owner's to set; of merged ranges the latest */
    bool free, hole;
    /* of one that is out: its owner's */
    bool of_group;
    uint8_t kind;
    int hash_failed;
    uint64_t asked, id; /* bytes; number */
    const acs_site *site;
    void *mark;
    UT_hash_handle hh;
} acs_range;

typedef struct acs_arena_counts {
    uint64_t reserved; /* bytes of all chunks, without holes */
    uint64_t taken;    /* of them, handed out */
    uint64_t chunks;
} acs_arena_counts;

/* ACS_ERR_MEMORY. */
acs_status acs_arena_create(acs_arena **arena);
/* What is out, and the chunks, are the owner's business. NULL is allowed. */
void acs_arena_destroy(acs_arena *arena);

/* A new chunk, all of it free. ACS_ERR_ARGUMENT: not aligned, or empty; ACS_ERR_MEMORY: for its descriptor. */
acs_status acs_arena_add(acs_arena *arena, uint64_t base, uint64_t bytes);
/*
 * A range of at least `bytes` (at least one) which only ops up to `settled` may use: the smallest free one that is large
 * enough, among up to 32 of its size class (a sixteenth) the best, the rest of it left free. Of those that fit exactly the
 * one that came back last, or if ops may use all of them, first. NULL: there is none; a chunk could be added.
 */
acs_range *acs_arena_take(acs_arena *arena, uint64_t bytes, acs_op settled);
/* It is free again, and `range` no longer valid. */
void acs_arena_give(acs_range *range);
/* Take the largest chunk out of which nothing is, and which only ops up to `settled` use. False: there is none. */
bool acs_arena_remove(acs_arena *arena, acs_op settled, uint64_t *base, uint64_t *bytes);

/* A new chunk without any memory. As acs_arena_add. */
acs_status acs_arena_add_hole(acs_arena *arena, uint64_t base, uint64_t bytes);
/* The holes, in no order; `hole` NULL: the first. NULL: no more. */
acs_range *acs_arena_hole(const acs_arena *arena, const acs_range *hole);
/*
 * The low end of a hole, so that memory can be put behind it: it is out, and no memory of the arena yet. Either of the two
 * that follow gives it back. NULL: no memory for a descriptor.
 */
acs_range *acs_arena_open(acs_range *hole, uint64_t bytes);
/*
 * There is memory behind it now, which no op uses. At least `least` bytes are handed out from there, together with what lies
 * free beside it and only ops up to `settled` use, and the rest is free. NULL: they do not fit, or `least` is 0, and all
 * of it is free.
 */
acs_range *acs_arena_fill(acs_range *range, uint64_t least, acs_op settled);
/* There is no memory behind it: it is a hole. */
void acs_arena_empty(acs_range *range);
/* Part of a free range, so that the memory behind it can go: as acs_arena_open. */
acs_range *acs_arena_cut(acs_range *range, uint64_t base, uint64_t bytes);
/* The free ranges that only ops up to `settled` use, large ones first (by class); `range` NULL: the first. NULL: no more. */
acs_range *acs_arena_idle(const acs_arena *arena, acs_op settled, const acs_range *range);

acs_arena_counts acs_arena_count(const acs_arena *arena);
bool acs_arena_check(const acs_arena *arena);

#endif

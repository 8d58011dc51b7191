/*
 * Memory by pages: physical memory of the device in *pieces*, mapped to *spans* of addresses. So the free memory of an
 * arena is in one place, however often it grew, and can move to where it is missing.
 *
 * Measured on an H200: a piece of any size is created, mapped and made accessible in 45 us, as long as cudaMalloc takes.
 * Moving a piece takes 56 us. Unlike cudaFree, neither waits for the device.
 *
 * A change has three steps. The owner (memory_grow.c) makes the first and the last under the arena's lock; the second
 * calls the device without that lock. A lock of the owner's allows one change at a time.
 *
 * PAGE-1  behind each address of a span that is no hole of the arena, and not part of a plan, stands memory of one
 *         piece.
 * PAGE-2  a piece lies in one span, at a multiple of the page; its size is a multiple of it.
 */
#ifndef ACS_POOL_PAGES_H
#define ACS_POOL_PAGES_H

#include "pool/arena.h"

/* Calls of the device. All sizes and addresses are multiples of `page`. Statuses through ACS_FAIL; from any thread. */
typedef struct acs_page_ops {
    size_t page; /* bytes of a page, a power of two */
    size_t span; /* bytes of addresses in a span, where no block needs more */
    acs_status (*reserve)(void *user, size_t bytes, uint64_t *base); /* ACS_ERR_MEMORY */
    acs_status (*unreserve)(void *user, uint64_t base, size_t bytes);
    acs_status (*create)(void *user, size_t bytes, uint64_t *piece); /* ACS_ERR_MEMORY, ACS_ERR_DEVICE */
    acs_status (*destroy)(void *user, uint64_t piece, size_t bytes);
    /* Map a piece, and make it accessible to the device. */
    acs_status (*map)(void *user, uint64_t base, size_t bytes, uint64_t piece);
    acs_status (*unmap)(void *user, uint64_t base, size_t bytes); /* whole pieces, side by side */
} acs_page_ops;

typedef struct acs_pages acs_pages;

/* A planned change. Its owner zeroes it first, and only reads its fields. */
typedef struct acs_page_plan {
    acs_range *range;  /* part of a hole that is to be filled; NULL: none */
    uint64_t moved;    /* bytes of the range that come from elsewhere in the arena */
    uint64_t fresh;    /* bytes of the range that are to be created; the owner reserves them */
    uint64_t gone;     /* bytes that went back to the device, or of `fresh` never came from it */
    uint64_t created;  /* pieces that the device gave */
    uint64_t came;     /* bytes of those, also if they went back */
    bool done;         /* whether the range was filled */
    struct page_run *runs; /* pieces that leave their place */
    uint32_t run_count, run_capacity;
} acs_page_plan;

/* ACS_ERR_MEMORY through ACS_FAIL. The arena and `ops` outlive the pages. */
acs_status acs_pages_create(const acs_page_ops *ops, void *user, acs_arena *arena, acs_pages **pages);
/* All pieces were unmapped, or with `keep` stay mapped. NULL is allowed. */
void acs_pages_destroy(acs_pages *pages, bool keep);

/* What a growth has to provide. */
typedef struct acs_page_wish {
    uint64_t least;  /* bytes of the block that has to fit */
    uint64_t added;  /* bytes to create beyond the missing ones, if nothing is moved */
    bool move;       /* move idle pieces here before any is created */
    acs_op settled;  /* latest op up to which all have ended */
} acs_page_wish;

/* Plan to fill a hole so that the block fits. False: no hole is large enough; another span is needed. */
bool acs_pages_plan_growth(acs_pages *pages, const acs_page_wish *wish, acs_page_plan *plan);
/* Plan to give `wanted` bytes of idle pieces back to the device, or as many as there are. False: there are none. */
bool acs_pages_plan_release(acs_pages *pages, uint64_t wanted, acs_op settled, acs_page_plan *plan);
/* Call the device. On an error the remaining steps are undone as far as the device allows. */
acs_status acs_pages_carry_out(acs_pages *pages, acs_page_plan *plan);
/* End a plan, whether it was carried out or not. Returns the block, or NULL; other memory that it brought is free. */
acs_range *acs_pages_finish(acs_page_plan *plan, uint64_t least, acs_op settled);

/* Reserve addresses for a span that has room for a block of `bytes`. The owner notes them, then adds the span. */
acs_status acs_pages_reserve(acs_pages *pages, uint64_t bytes, uint64_t *base, uint64_t *span);
acs_status acs_pages_add(acs_pages *pages, uint64_t base, uint64_t span);
/* Give the addresses of a span back that could not be added. */
void acs_pages_unreserve(acs_pages *pages, uint64_t base, uint64_t span);

#endif

/*
 * Memory by pages: physical memory of the device in *pieces*, and *spans* of addresses to which pieces are mapped, so that
 * what an arena has free is in one place, however often it grew, and can be moved to where it is missing. (Measured on an
 * H200: a piece of any size is created, mapped and made accessible in 45 us, as cudaMalloc is; to move it takes 56 us; and
 * nothing of it waits for the device, as cudaFree does.)
 *
 * It changes in three steps, of which the owner (memory.c) makes the first and the last under the arena's lock, and the
 * second, with the calls of the device, without it; a lock of its own keeps one change at a time.
 *
 * PAGE-1  behind each address of a span that is no hole of the arena, and not part of a plan, stands memory of one
 *         piece.
 * PAGE-2  a piece lies in one span, at a multiple of the page; its size is a multiple of it.
 */
#ifndef ACS_POOL_PAGES_H
#define ACS_POOL_PAGES_H

#include "pool/arena.h"

/* The device's. All sizes and addresses are multiples of `page`. Statuses through ACS_FAIL; from any thread. */
typedef struct acs_page_ops {
    size_t page; /* bytes, a power of two */
    size_t span; /* addresses to reserve at once, where no block needs more */
    acs_status (*reserve)(void *user, size_t bytes, uint64_t *base); /* ACS_ERR_MEMORY */
    acs_status (*unreserve)(void *user, uint64_t base, size_t bytes);
    acs_status (*create)(void *user, size_t bytes, uint64_t *piece); /* ACS_ERR_MEMORY, ACS_ERR_DEVICE */
    acs_status (*destroy)(void *user, uint64_t piece, size_t bytes);
    acs_status (*map)(void *user, uint64_t base, size_t bytes, uint64_t piece); /* and let the device read and write it */
    acs_status (*unmap)(void *user, uint64_t base, size_t bytes); /* whole pieces that lie behind each other */
} acs_page_ops;

typedef struct acs_pages acs_pages;

/* A change. Its owner zeroes it, and touches no field but to read. */
typedef struct acs_page_plan {
    acs_range *range;  /* a hole's part to fill; NULL: none */
    uint64_t moved;    /* bytes of the range that are to come from elsewhere */
    uint64_t fresh;    /* bytes that are to be created: the owner sees whether it may */
    uint64_t gone;     /* bytes that went back to the device, or of `fresh` never came from it */
    uint64_t created;  /* pieces that came from the device, */
    uint64_t came;     /* and their bytes, also if they went back */
    bool done;         /* the range is filled */
    struct page_run *runs; /* what is to leave its place */
    uint32_t run_count, run_capacity;
} acs_page_plan;

/* ACS_ERR_MEMORY through ACS_FAIL. The arena and the ops outlive it. */
acs_status acs_pages_create(const acs_page_ops *ops, void *user, acs_arena *arena, acs_pages **pages);
/* Nothing is mapped any more, or all of it stays where it is: `keep`. NULL is allowed. */
void acs_pages_destroy(acs_pages *pages, bool keep);

/* What a growth is to be like. */
typedef struct acs_page_wish {
    uint64_t least;  /* bytes of the block that is looked for */
    uint64_t added;  /* bytes to create beyond what is missing, if nothing is moved */
    bool move;       /* take what lies idle elsewhere before anything is created */
    acs_op settled;  /* ops up to this one have ended */
} acs_page_wish;

/* Plan to fill a hole so that the block fits. False: there is no hole that is large enough: another span. */
bool acs_pages_plan_growth(acs_pages *pages, const acs_page_wish *wish, acs_page_plan *plan);
/* Plan to give so many bytes that lie idle back to the device, or as many as there are. False: there are none. */
bool acs_pages_plan_release(acs_pages *pages, uint64_t wanted, acs_op settled, acs_page_plan *plan);
/* Call the device. On an error what is left of the plan is undone as far as the device allows. */
acs_status acs_pages_carry_out(acs_pages *pages, acs_page_plan *plan);
/* The end of a plan, carried out or not: the block, or NULL; what else it brought is free. */
acs_range *acs_pages_finish(acs_page_plan *plan, uint64_t least, acs_op settled);

/* Another span, in which a block of so many bytes has place. Its addresses are the owner's to know; then it is added. */
acs_status acs_pages_reserve(acs_pages *pages, uint64_t bytes, uint64_t *base, uint64_t *span);
acs_status acs_pages_add(acs_pages *pages, uint64_t base, uint64_t span);
/* Of a span that could not be added. */
void acs_pages_unreserve(acs_pages *pages, uint64_t base, uint64_t span);

#endif

/*
 * The memory of a context that acs_malloc hands out: blocks out of chunks that are kept (arena.h), one set of them for each
 * kind of memory, or, where blocks are to be apart, each by itself. Counts what is in use and reserved, and keeps within a
 * limit. Thread-safe; threads that find something free do not wait for one that asks the device for more.
 *
 * A pooled block is given back when no later op uses it, which does not mean that the earlier ones have ended. It *rests*
 * until they have. Where that is long in coming, and the taker can order ops, it is handed out before: `behind` says so.
 * As much may rest as is in use (16 MiB at least, config.slack at most), so that a program which runs ahead of its ops does
 * not fill the device.
 *
 * MEM-1  what is in use and what rests are parts of what is reserved, and that is within the limit.
 */
#ifndef ACS_POOL_MEMORY_H
#define ACS_POOL_MEMORY_H

#include "base/base.h"
#include "pool/blocks.h"
#include "pool/pages.h"

/* Kinds of memory are ACS_MEMORY_DEVICE, that of device 0, ACS_MEMORY_HOST, and behind them those of device 1, 2, ... */
static inline int acs_memory_kind(uint32_t device)
{
    return device ? (int)device + 1 : ACS_MEMORY_DEVICE;
}
static inline bool acs_memory_is_device(int kind)
{
    return kind != ACS_MEMORY_HOST;
}
/* Of which device it is, where it is a device's. */
static inline uint32_t acs_memory_device(int kind)
{
    return kind > ACS_MEMORY_HOST ? (uint32_t)kind - 1 : 0;
}

typedef struct acs_memory_config {
    bool pooled;    /* else each block is an allocation of its own, given back when no op uses it any more */
    uint32_t devices; /* 0: as 1 */
    uint64_t limit; /* most bytes of each device's memory that are reserved; 0: as many as there are */
    uint64_t slack; /* most bytes of each kind that rest: beyond, they are handed out early, or waited for */
    void *user;
    /* Of the device: ACS_ERR_MEMORY, ACS_ERR_DEVICE through ACS_FAIL; 256-byte aligned. From any thread. */
    acs_status (*obtain)(void *user, int kind, size_t bytes, void **ptr);
    acs_status (*release)(void *user, int kind, void *ptr, size_t bytes); /* as obtain was asked for */
    /*
     * Before device memory is asked for: whether the rest of the machine leaves it to this context (ACS_NOT_READY: not now);
     * that it came; and that so much is not asked for any more, of which `came` had. NULL: nobody else is asked.
     */
    acs_status (*admit)(void *user, int kind, uint64_t bytes);
    void (*came)(void *user, int kind, uint64_t bytes);
    void (*returned)(void *user, int kind, uint64_t bytes, uint64_t came);
    void (*describe)(void *user, int kind, char *text, size_t bytes); /* what others leave, for errors; where `admit` is */
    const acs_page_ops *pages; /* of one device's memory, called with page_user; NULL: pools grow by `obtain` alone */
    void *page_user;
    void (*forget)(void *user, uint64_t base, uint64_t bytes); /* what failed there is no concern of who gets it next */
    acs_op (*settled)(void *user); /* all ops up to this one have ended; never falls. From any thread, under a lock */
} acs_memory_config;

typedef struct acs_block {
    void *ptr;
    size_t bytes;         /* that were asked for */
    int kind;             /* of memory: acs_memory_kind */
    acs_range *range;     /* NULL: an allocation of its own */
    acs_op behind;        /* ops up to this one may still use it; 0: none does */
    const acs_site *site; /* who asked for it; NULL: not known */
    uint64_t id;          /* from 1, of blocks that are apart and of pooled ones; never used again */
} acs_block;

typedef struct acs_memory_counts {
    uint64_t live;     /* bytes handed out, with what they were rounded up by */
    uint64_t quarantined;  /* bytes that were given back, while ops may still use them and nobody else does */
    uint64_t reserved; /* bytes that the device gave */
    uint64_t peak;     /* most bytes that were live or resting at once */
    uint64_t obtained; /* allocations of the device, ever */
    uint64_t early;    /* blocks that were handed out while ops might still use them */
    uint64_t moved;    /* bytes that were mapped elsewhere, ever, since nothing that was free was large enough */
    bool changed;      /* a block that was out at the last acs_memory_note was given back since */
} acs_memory_counts;

typedef struct acs_memory acs_memory;

acs_status acs_memory_create(const acs_memory_config *config, acs_memory **memory);
/*
 * All ops have ended, and blocks that are apart were given back, or nothing is released: `keep`, for memory that may still
 * be in use. NULL is allowed.
 */
void acs_memory_destroy(acs_memory *memory, bool keep);

/*
 * A block; `early`: device memory may be one that ops still use, which the taker then has to order its own ops behind. What
 * lies idle is released first where the device or the limit has no room. ACS_ERR_MEMORY through ACS_FAIL, with sizes:
 * nothing changed, but that idle chunks are gone. ACS_NOT_READY, no error: more rests than may, and may not be handed out
 * early: wait for some of it. ACS_ERR_DEVICE.
 */
typedef struct acs_memory_request {
    size_t bytes;
    int kind;      /* of memory: acs_memory_kind */
    bool early;
    bool beside;   /* not early: even where much rests the device is asked for more instead of waiting */
    bool of_group; /* when it was freed it rests to the end of its ops, however large; handed out early last, oldest first */
    bool optional; /* ACS_NOT_READY where there is none, and nothing that lies idle is released for it */
    bool quiet;    /* ACS_NOT_READY, and no error, instead of ACS_ERR_MEMORY */
    const acs_site *site;
} acs_memory_request;
acs_status acs_memory_take(acs_memory *memory, const acs_memory_request *request, acs_block *block);
/* Of blocks that are apart, which no op uses any more: as the device's `release` says. */
acs_status acs_memory_give(acs_memory *memory, const acs_block *block);
/*
 * The pooled block that begins at `ptr`, which no op after `last` uses; *block tells what it was. No call of the device.
 * ACS_ERR_ARGUMENT through ACS_FAIL: there is none, and why.
 */
acs_status acs_memory_free(acs_memory *memory, const void *ptr, acs_op last, acs_block *block);

/* What an address is to the pools, and the block that holds it, or did last (`behind`: the latest op when it was freed). */
typedef enum acs_memory_place {
    ACS_PLACE_FOREIGN, /* in none of their chunks */
    ACS_PLACE_BLOCK,
    ACS_PLACE_FREED,
    ACS_PLACE_IDLE     /* in no block as far as is remembered */
} acs_memory_place;
acs_memory_place acs_memory_find(acs_memory *memory, uint64_t address, acs_block *block);
/* Where the first chunk begins behind an address that is in none. UINT64_MAX: there is none. */
uint64_t acs_memory_chunk_behind(acs_memory *memory, uint64_t address);
/* A pooled block that is out can have a mark, which any address in it finds, until it is freed. NULL: it has none. */
void acs_memory_mark(acs_memory *memory, const void *ptr, void *mark);
void *acs_memory_marked(acs_memory *memory, uint64_t address);
/* Call `visit` for each pooled block that is out, in the order in which they were taken. It must not call back. */
void acs_memory_each(acs_memory *memory, void (*visit)(void *user, const acs_block *block), void *user);

/*
 * What to wait for, for more to be free. The block that has rested for longest, which stays where it is: the caller waits
 * for the ops that touch it, then says that it has settled, as others may have done meanwhile. False: none rests.
 */
bool acs_memory_oldest_quarantined(acs_memory *memory, int kind, acs_block *block);
void acs_memory_end_quarantine(acs_memory *memory, const acs_block *block);
/* Once all ops up to this one have ended nothing rests, and what was handed out early and came back is free; 0: at once. */
acs_op acs_memory_quarantined_until(acs_memory *memory, int kind);
/* Release chunks of which nothing is in use, the largest first, while more than `keep` bytes are reserved for nothing. */
acs_status acs_memory_trim(acs_memory *memory, int kind, uint64_t keep);
acs_memory_counts acs_memory_count(acs_memory *memory, int kind);
/* The same, from which `changed` counts. */
acs_memory_counts acs_memory_note(acs_memory *memory, int kind);

#endif

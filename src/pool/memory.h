/*
 * The memory of a context that acs_malloc hands out. Blocks come out of chunks that are kept (arena.h), one set of
 * chunks for each kind of memory; without pools each block is an allocation by itself. Counts what is in use and
 * reserved, and keeps within a limit. Thread-safe; a thread that finds a free block does not wait for one that asks the
 * device for more.
 *
 * A pooled block is freed when no later op uses it, which does not mean that the earlier ops have ended. It is in
 * *quarantine* until they have settled. Where that takes long, and the taker can order its ops behind them, the block is
 * handed out early; acs_block.behind says so.
 *
 * As many bytes may be in quarantine as are in use, but at least TUNE_POOL_QUARANTINE_LEAST and at most config.slack. So
 * a program that runs ahead of its ops does not fill the device.
 *
 * MEM-1  what is in use and what is in quarantine are parts of what is reserved, and that is within the limit.
 */
#ifndef ACS_POOL_MEMORY_H
#define ACS_POOL_MEMORY_H

#include "base/base.h"
#include "pool/blocks.h"
#include "pool/pages.h"

/* Kinds of memory: ACS_MEMORY_DEVICE of device 0, ACS_MEMORY_HOST, then one for each of devices 1, 2 and so on. */
static inline int acs_memory_kind(uint32_t device)
{
    return device ? (int)device + 1 : ACS_MEMORY_DEVICE;
}
static inline bool acs_memory_is_device(int kind)
{
    return kind != ACS_MEMORY_HOST;
}
/* The device whose memory it is; for host memory 0. */
static inline uint32_t acs_memory_device(int kind)
{
    return kind > ACS_MEMORY_HOST ? (uint32_t)kind - 1 : 0;
}

typedef struct acs_memory_config {
    bool pooled;    /* else each block is an allocation of its own, given back when no op uses it */
    uint32_t devices; /* number of devices; 0: one */
    uint64_t limit; /* most bytes of each device's memory that are reserved; 0: no limit */
    uint64_t slack; /* most bytes of each kind in quarantine */
    void *user;
    /*
     * Take memory from the device, aligned to 256 bytes. ACS_ERR_MEMORY, ACS_ERR_DEVICE through ACS_FAIL. From any
     * thread.
     */
    acs_status (*obtain)(void *user, int kind, size_t bytes, void **ptr);
    /* Give memory back to the device, with the bytes that `obtain` was asked for. */
    acs_status (*release)(void *user, int kind, void *ptr, size_t bytes);
    /*
     * `admit`: before device memory is asked for, whether the other programs leave it to this context (ACS_NOT_READY:
     * not now). `came`: the device gave it. `returned`: so many bytes are no longer asked for, of which the device had
     * given `came`. NULL: there are no other programs to ask.
     */
    acs_status (*admit)(void *user, int kind, uint64_t bytes);
    void (*came)(void *user, int kind, uint64_t bytes);
    void (*returned)(void *user, int kind, uint64_t bytes, uint64_t came);
    /* Write what other programs leave, for errors. Set where `admit` is. */
    void (*describe)(void *user, int kind, char *text, size_t bytes);
    /* Calls for pages of device 0's memory, called with page_user. NULL: pools grow by `obtain` alone. */
    const acs_page_ops *pages;
    void *page_user;
    /* Forget failures in this memory: they do not concern its next owner. */
    void (*forget)(void *user, uint64_t base, uint64_t bytes);
    /* The latest op up to which all have ended; never falls. From any thread, under a lock. */
    acs_op (*settled)(void *user);
} acs_memory_config;

typedef struct acs_block {
    void *ptr;
    size_t bytes;         /* bytes that were asked for */
    int kind;             /* kind of memory: acs_memory_kind */
    acs_range *range;     /* its range in the pool; NULL: it is an allocation of its own */
    acs_op behind;        /* latest op that may still use it; 0: none */
    const acs_site *site; /* call that asked for it; NULL: not known */
    uint64_t id;          /* number from 1, never used again */
} acs_block;

typedef struct acs_memory_counts {
    uint64_t live;     /* bytes handed out, rounding included */
    uint64_t quarantined; /* bytes in quarantine */
    uint64_t reserved; /* bytes that the device gave */
    uint64_t peak;     /* most bytes that were live or quarantined at once */
    uint64_t obtained; /* allocations that the device ever gave */
    uint64_t early;    /* blocks handed out early: ops might still use them */
    uint64_t moved;    /* bytes ever moved by mapping them elsewhere, since no free range was large enough */
    bool changed;      /* whether a block that was out at the last acs_memory_note was given back since */
} acs_memory_counts;

typedef struct acs_memory acs_memory;

acs_status acs_memory_create(const acs_memory_config *config, acs_memory **memory);
/*
 * All ops have ended, and allocations without pools were given back. With `keep` nothing is released, since ops may
 * still use it. NULL is allowed.
 */
void acs_memory_destroy(acs_memory *memory, bool keep);

/* A request for a block. */
typedef struct acs_memory_request {
    size_t bytes;
    int kind;      /* kind of memory: acs_memory_kind */
    bool early;    /* device memory may be a block that ops still use; the taker orders its ops behind those */
    bool beside;   /* without `early`: ask the device for more, however much is in quarantine */
    /* The block is a group's: once freed it stays in quarantine to the end of its ops, unless there is no room. */
    bool of_group;
    bool optional; /* ACS_NOT_READY where there is no memory, and no idle memory is released for it */
    bool quiet;    /* ACS_NOT_READY, and no error, instead of ACS_ERR_MEMORY */
    const acs_site *site;
} acs_memory_request;
/*
 * Take a block. Idle memory is released first where the device or the limit has no room.
 *
 * ACS_ERR_MEMORY through ACS_FAIL, with sizes: nothing changed, except that idle chunks were released. ACS_NOT_READY, no
 * error: too much is in quarantine, and may not be handed out early; wait for some of it. ACS_ERR_DEVICE.
 */
acs_status acs_memory_take(acs_memory *memory, const acs_memory_request *request, acs_block *block);
/* Give back an allocation without pools that no op uses any more. Errors as the device's `release`. */
acs_status acs_memory_give(acs_memory *memory, const acs_block *block);
/*
 * Free the pooled block that begins at `ptr`, which no op after `last` uses; *block tells what it was. Does not call the
 * device. ACS_ERR_ARGUMENT through ACS_FAIL: there is no such block, and why.
 */
acs_status acs_memory_free(acs_memory *memory, const void *ptr, acs_op last, acs_block *block);

/*
 * What an address is to the pools: *block is the block that holds it, or that held it last (`behind`: latest op when it
 * was freed).
 */
typedef enum acs_memory_place {
    ACS_PLACE_FOREIGN, /* in none of their chunks */
    ACS_PLACE_BLOCK,
    ACS_PLACE_FREED,
    ACS_PLACE_IDLE     /* in no block, as far as is remembered */
} acs_memory_place;
acs_memory_place acs_memory_find(acs_memory *memory, uint64_t address, acs_block *block);
/* Start of the first chunk behind an address that is in none. UINT64_MAX: there is none. */
uint64_t acs_memory_chunk_behind(acs_memory *memory, uint64_t address);
/* Give a pooled block a mark, which any address in it finds until it is freed. NULL: it has none. */
void acs_memory_mark(acs_memory *memory, const void *ptr, void *mark);
void *acs_memory_marked(acs_memory *memory, uint64_t address);
/* Call `visit` for each pooled block that is out, in the order in which they were taken. It must not call back. */
void acs_memory_each(acs_memory *memory, void (*visit)(void *user, const acs_block *block), void *user);

/*
 * The block that has been in quarantine for longest, and stays there: the caller waits for the ops that touch it, then
 * calls acs_memory_end_quarantine. Another thread may have done so meanwhile. False: no block is in quarantine.
 */
bool acs_memory_oldest_quarantined(acs_memory *memory, int kind, acs_block *block);
void acs_memory_end_quarantine(acs_memory *memory, const acs_block *block);
/*
 * Returns an op. Once all ops up to it have ended nothing is in quarantine, and blocks that were handed out early and
 * came back are free. 0: that is so now.
 */
acs_op acs_memory_quarantined_until(acs_memory *memory, int kind);
/* Release memory that lies idle, the largest chunks first, while more than `keep` bytes are reserved and not in use. */
acs_status acs_memory_trim(acs_memory *memory, int kind, uint64_t keep);
acs_memory_counts acs_memory_count(acs_memory *memory, int kind);
/* The same counts; `changed` counts from here on. */
acs_memory_counts acs_memory_note(acs_memory *memory, int kind);

#endif

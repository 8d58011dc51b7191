/*
 * What the files of the pools share. memory.c opens and closes them, and has the calls that may grow them. memory_grow.c
 * asks the device for more memory, and gives it back. memory_blocks.c takes, frees and looks up blocks. Each calls the
 * later ones.
 */
#ifndef ACS_POOL_MEMORY_INTERNAL_H
#define ACS_POOL_MEMORY_INTERNAL_H

#include "base/lock.h"
#include "base/tuning.h"
#include "pool/memory.h"

#include <pthread.h>
#include <stdatomic.h>

#define ACS_MIB (UINT64_C(1) << 20)

/*
 * Small blocks would cut up large chunks, and pages cannot merge with memory that came in one piece. So each size has an
 * arena.
 */
typedef enum acs_pool_size {
    ACS_POOL_SMALL, /* blocks of up to 1 MiB, in chunks */
    ACS_POOL_LARGE, /* larger ones, in chunks */
    ACS_POOL_PAGED, /* larger ones, in spans of pages */
    ACS_POOL_SIZES
} acs_pool_size;

/* A queue of quarantined blocks, through `next`, in the order in which they were freed. */
typedef struct acs_quarantine {
    acs_range *first, *newest;
    uint64_t bytes;
} acs_quarantine;

typedef struct acs_pool {
    acs_arena *arenas[ACS_POOL_SIZES]; /* one for each size; that of pages only with pages */
    acs_memory_counts counts;
    /* [0]: of ordinary blocks; [1]: of groups' blocks, to the end of their ops while there is room */
    acs_quarantine quarantines[2];
    acs_op last;               /* latest op that any freed block was behind */
    uint64_t noted;            /* number of the latest block at acs_memory_note */
} acs_pool;

/* A freed block, remembered for diagnostics. */
typedef struct acs_pool_freed {
    uint64_t base, bytes;
    acs_op last;
    const acs_site *site;
} acs_pool_freed;

struct acs_memory {
    acs_memory_config config; /* constant until the pools are destroyed */
    /* Whether large blocks of the device come out of pages; false for good once there are no addresses. */
    _Atomic(bool) paged;
    pthread_mutex_t growing;  /* held while a thread asks the device for memory or gives it back; taken before `lock` */
    acs_pages *pages;         /* NULL: no pages; guarded by `growing`, and where its arena changes by `lock` */
    uint32_t spans;           /* number of spans of pages so far; guarded by `growing` */
    acs_lock lock;            /* rank POOL; guards what follows */
    acs_pool pools[1 + ACS_DEVICES_MOST]; /* one for each kind of memory */
    acs_blocks blocks;
    /* Ring of the latest freed blocks; freed_total counts all that ever entered. */
    acs_pool_freed freed[TUNE_FREED_KEPT];
    uint64_t freed_total, taken_total;
};

/* A request for a block, and where the block is written. */
typedef struct acs_search {
    const acs_memory_request *request;
    acs_block *block;
    acs_pool_size size;
    bool early;
} acs_search;

/* memory_blocks.c; _locked: under `lock` */
/*
 * Take a free block; with `quarantined` also one out of quarantine, if it may be handed out early. ACS_NOT_READY: there
 * is none.
 */
acs_status acs_pool_take(acs_memory *m, const acs_search *s, bool quarantined);
/* Hand the range out to the request. ACS_ERR_MEMORY: it is free again. */
acs_status acs_pool_hand_out_locked(acs_memory *m, const acs_search *s, acs_range *range, acs_op settled);
/* Free quarantined blocks whose ops have settled, at most `most`. */
void acs_pool_settle_locked(acs_pool *p, acs_op settled, uint32_t most);
/* Most bytes that may be in quarantine: as many as are in use, within bounds. */
uint64_t acs_pool_quarantine_most(const acs_memory *m, const acs_pool *p);
/* Count `bytes` more as in use. */
void acs_pool_count_taken_locked(acs_pool *p, uint64_t bytes);

/* memory_grow.c */
static inline bool acs_pool_is_short(acs_status status)
{
    return status == ACS_ERR_MEMORY || status == ACS_NOT_READY;
}
/* Memory that acs_pool_obtain gave went back to the device. */
void acs_pool_release_count(acs_memory *m, int kind, uint64_t bytes);
/* Take memory from the device, within the limit. ACS_NOT_READY: the limit has no room, and no error was made. */
acs_status acs_pool_obtain(acs_memory *m, int kind, uint64_t bytes, void **ptr);
/*
 * Get more memory. Without room, a quarantined block is handed out early; then idle memory is released; at last no more
 * than the block needs is asked for.
 *
 * ACS_OK: there is more memory now, or *looking is false and the block was found. ACS_NOT_READY: the limit has no room.
 * Under `growing`.
 */
acs_status acs_pool_grow(acs_memory *m, const acs_search *s, bool *looking);
/* As acs_memory_trim, for memory that only ops up to `settled` use. Under `growing`. */
acs_status acs_pool_trim(acs_memory *m, int kind, acs_op settled, uint64_t keep);

#endif

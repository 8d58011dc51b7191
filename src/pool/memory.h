/*
 * The memory of a context that acs_malloc hands out: blocks out of chunks that are kept (arena.h), one set of them for each
 * kind of memory, or, where blocks are to be apart, each by itself. Counts what is in use and reserved, and keeps within a
 * limit. Thread-safe; threads that find something free do not wait for one that asks the device for more.
 *
 * A block may be taken again as soon as it was given: whoever gives it knows that nothing uses it any more.
 */
#ifndef ACS_POOL_MEMORY_H
#define ACS_POOL_MEMORY_H

#include "base/base.h"
#include "pool/arena.h"

typedef struct acs_memory_config {
    bool pooled;    /* else each block is an allocation of its own */
    uint64_t limit; /* most bytes of device memory that are reserved; 0: as many as there are */
    void *user;
    /* Of the device: ACS_ERR_MEMORY, ACS_ERR_DEVICE through ACS_FAIL; 256-byte aligned. From any thread. */
    acs_status (*obtain)(void *user, int kind, size_t bytes, void **ptr);
    acs_status (*release)(void *user, int kind, void *ptr);
} acs_memory_config;

typedef struct acs_block {
    void *ptr;
    size_t bytes;     /* that were asked for */
    int kind;         /* ACS_MEMORY_* */
    acs_range *range; /* NULL: an allocation of its own */
} acs_block;

typedef struct acs_memory_counts {
    uint64_t live;     /* bytes in use, with what they were rounded up by */
    uint64_t reserved; /* bytes that the device gave */
    uint64_t peak;     /* most bytes that were in use at once */
    uint64_t obtained; /* allocations of the device, ever */
} acs_memory_counts;

typedef struct acs_memory acs_memory;

acs_status acs_memory_create(const acs_memory_config *config, acs_memory **memory);
/* All blocks were given back, or nothing is released: `keep`, for memory that may still be in use. NULL is allowed. */
void acs_memory_destroy(acs_memory *memory, bool keep);

/*
 * A block. What lies idle is released first where the device or the limit has no room. ACS_ERR_MEMORY through ACS_FAIL, with
 * sizes: nothing changed, but that idle chunks are gone. ACS_ERR_DEVICE.
 */
acs_status acs_memory_take(acs_memory *memory, int kind, size_t bytes, acs_block *block);
/* As the device's `release` says; of a pooled block ACS_OK, without a call of the device. */
acs_status acs_memory_give(acs_memory *memory, const acs_block *block);
/* Release chunks of which nothing is in use, the largest first, while more than `keep` bytes are reserved for nothing. */
acs_status acs_memory_trim(acs_memory *memory, int kind, uint64_t keep);

acs_memory_counts acs_memory_count(acs_memory *memory, int kind);

#endif

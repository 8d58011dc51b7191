/*
 * The blocks of a recording, by address: which block an address lay in when an op was queued. Made with the analysis.
 * Knows allocations by the recorded calls of acs_malloc and acs_free alone.
 */
#include "report/analysis.h"

#include <stdlib.h>

static int by_base(const void *a, const void *b)
{
    const acs_recorded_block *x = *(const acs_recorded_block *const *)a, *y = *(const acs_recorded_block *const *)b;
    if (x->base != y->base)
        return x->base < y->base ? -1 : 1;
    return (x > y) - (x < y);
}

acs_status acs_analysis_index_blocks(acs_analysis *a)
{
    const acs_recording *r = a->recording;
    a->blocks = calloc((size_t)r->block_count + 1, sizeof *a->blocks);
    if (!a->blocks)
        return ACS_ERR_MEMORY;
    for (uint32_t i = 0; i < r->block_count; i++)
        a->blocks[i] = &r->blocks[i];
    if (r->block_count)
        qsort(a->blocks, r->block_count, sizeof *a->blocks, by_base);
    return ACS_OK;
}

/* A block may have begun before the address where others began since: so many entries are looked at. */
enum { REACH = 256 };

const acs_recorded_block *acs_analysis_block(const acs_analysis *a, uint64_t address, acs_op seq)
{
    uint32_t low = 0, high = a->recording->block_count;
    const acs_recorded_block *found = NULL;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (a->blocks[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t back = 1; back <= REACH && back <= low; back++) {
        const acs_recorded_block *block = a->blocks[low - back];
        const bool earlier = block->newest < seq && (!found || block > found);
        if (earlier && address - block->base < block->bytes)
            found = block;
    }
    return found && !found->freed ? found : NULL;
}

/*
 * Private to src/window/: what depend.c and collect.c share while an op is inserted. collect.c finds the ops that it
 * depends on; depend.c finds its regions before, and registers it in them afterwards.
 */
#ifndef ACS_COLLECT_H
#define ACS_COLLECT_H

#include "window/holders.h"

/* Regions of the op that is being inserted: those that it only reads, those that it writes, and those that it commutes. */
typedef struct acs_op_regions {
    acs_region **reads, **writes, **commutes;
    uint32_t read_count, write_count, commute_count;
    uint8_t all; /* access to all memory; acs_access, 0: none */
    bool linked; /* at least one of them has neighbours */
    bool pinned; /* eviction leaves them alone */
} acs_op_regions;

static inline bool acs_writes(uint8_t access)
{
    return (access & ACS_WRITE) != 0;
}

/* Forget the writer, readers and commuters of a region. Levels and poison stay: they outlive their ops. */
static inline void acs_region_empty(acs_window *w, acs_region *region)
{
    acs_ref_drop(w, &region->writer);
    if (ACS_UNLIKELY(region->covered))
        acs_ref_drop(w, &region->cover);
    for (uint32_t i = 0; i < region->reader_count; i++)
        acs_ref_drop(w, &region->readers[i]);
    if (ACS_UNLIKELY(region->commuted))
        acs_commuters_empty(w, region);
    region->reader_count = 0;
    region->covered = 0;
}

/*
 * Pin the op's regions until they are registered. Needed only if one may be evicted meanwhile: when another is made,
 * or idle neighbours are dropped.
 */
void acs_op_regions_pin(acs_op_regions *found);
void acs_op_regions_drop_pins(acs_op_regions *found);
static inline void acs_op_regions_unpin(acs_op_regions *found)
{
    if (ACS_UNLIKELY(found->pinned))
        acs_op_regions_drop_pins(found);
}

/* Make `entry` depend on upstream ops: through its regions, on those that touched all memory, and on all ops. */
void acs_collect_regions(acs_window *w, acs_entry *entry, acs_op_regions *found);
void acs_collect_write(acs_window *w, acs_entry *entry, acs_op_regions *found, acs_region *region);
void acs_collect_common(acs_window *w, acs_entry *entry, uint8_t access);
void acs_collect_all(acs_window *w, acs_entry *entry, uint8_t access);

#endif

/*
 * The window's memory: allocated once by acs_window_init, sized for all that its limits allow, and freed at close.
 * Called by the owner before its first op and after its last. It also decides which regions may be forgotten.
 */
#include "window/window.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

/*
 * Whether a region may be forgotten. One with poison may not: later ops that name it must be skipped. With statistics
 * on, one with the length of a chain may not either, up to TUNE_REGIONS_STATISTICS bytes.
 */
static bool region_idle(void *user, const acs_region *region)
{
    const acs_window *w = user;
    if (region->pins || acs_region_poisoned(region))
        return false;
    if (region->epoch < w->epoch)
        return true;
    if (w->sites && acs_regions_bytes(w->regions) < TUNE_REGIONS_STATISTICS)
        return false;
    if (acs_ref_live(w, region->writer) || acs_ref_live(w, region->cover))
        return false;
    for (uint32_t i = 0; i < region->reader_count; i++)
        if (acs_ref_live(w, region->readers[i]))
            return false;
    for (uint32_t i = 0; region->commuters && i < region->commuters->count; i++)
        if (acs_ref_live(w, region->commuters->refs[i]))
            return false;
    return true;
}

/*
 * Low indices come first, and entries and edges that nobody has had are zero: no page of theirs is touched here. Generations
 * start at 1, since 0 is the null reference.
 */
static void begin_free_lists(acs_window *w)
{
    for (uint32_t i = 0; i <= w->entry_count; i++) /* 0: see acs_ref_live */
        w->holds[i].generation = 1;
    w->free_entries = w->edges_free = 1;
}

acs_status acs_window_init(acs_window *w, const acs_window_config *config)
{
    memset(w, 0, sizeof *w);
    w->limit = config->limit;
    w->slots = config->slots;
    w->host_wait = config->host_wait;
    w->sites = config->sites;
    ACS_ASSERT(w->slots >= 1 && w->slots <= 64); /* acs_entry.wait_mask has a bit for each */
    w->linked = config->linked;
    w->user = config->user;
    w->joins = 512 + 2 * config->limit;
    w->entry_count = w->limit + w->joins;
    w->edge_count = w->entry_count * TUNE_WINDOW_EDGES;
    w->epoch = 1; /* newer than a new region, which is all zero: at its first use it takes the state of all memory */
    uint32_t numbers = acs_round_up_pow2(4 * w->limit);
    w->seq_mask = numbers - 1;
    size_t places = (size_t)w->entry_count + 1;
    /* In a capture no op ends. Readers for which a join stands need not be remembered. */
    w->readers_most = config->linked ? TUNE_CAPTURE_READERS : w->entry_count;
    w->entries = acs_zeros(places, sizeof *w->entries);
    w->holds = acs_zeros(places, sizeof *w->holds);
    w->upstream = acs_zeros(places, sizeof *w->upstream);
    w->slot_waits = acs_zeros(places * w->slots, sizeof *w->slot_waits);
    w->clocks = acs_zeros(places * w->slots, sizeof *w->clocks);
    w->edges = acs_zeros((size_t)w->edge_count + 1, sizeof *w->edges);
    w->by_seq = acs_zeros(numbers, sizeof *w->by_seq);
    w->lives = acs_zeros(w->joins, sizeof *w->lives);
    if (!w->entries || !w->holds || !w->upstream || !w->slot_waits || !w->clocks || !w->edges || !w->by_seq ||
        !w->lives) {
        acs_window_fini(w);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a window of %u ops", config->limit);
    }
    begin_free_lists(w);
    const uint32_t regions = TUNE_REGIONS_PER_OP * config->limit; /* programs name up to about 6 W shapes repeatedly */
    const uint32_t soft_cap = regions < TUNE_REGIONS_LEAST ? TUNE_REGIONS_LEAST : regions;
    acs_status status = acs_regions_create(soft_cap, region_idle, w, &w->regions);
    if (status != ACS_OK)
        acs_window_fini(w);
    return status;
}

void acs_window_fini(acs_window *w)
{
    if (w->regions)
        acs_regions_destroy(w->regions);
    void *const arrays[] = {w->entries, w->holds, w->upstream, w->slot_waits, w->clocks, w->edges, w->by_seq, w->lives};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        acs_zeros_free(arrays[i]);
    free(w->scratch);
    memset(w, 0, sizeof *w);
}

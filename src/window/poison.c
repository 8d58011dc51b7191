/*
 * Poison: the regions that failed and skipped ops touched make later ops skip, until acs_clear. Ops that are in the
 * window already learn of the failure through their edges. Called when an op ends (window.c), when failures are
 * forgotten, and when memory is handed out again. Owns the poison of regions and window.
 */
#include "window/window.h"

#include "base/tuning.h"

/* `poisoned` counts regions, not failures: while it is 0, insertion looks at none. */
static void poison_region(acs_window *w, acs_region *region, uint8_t access, acs_op failed_by)
{
    ACS_ASSERT(failed_by != 0 && region->in_table);
    w->poisoned += !acs_region_poisoned(region);
    if (access == ACS_COMMUTE) {
        if (!region->poison_commute)
            region->poison_commute = failed_by;
        return;
    }
    if ((access & ACS_READ) && !region->poison_read)
        region->poison_read = failed_by;
    if ((access & ACS_WRITE) && !region->poison_write)
        region->poison_write = failed_by;
}

/* Concerns every later op with a footprint, through collect_common. */
static void poison_all(acs_window *w, uint8_t access, acs_op failed_by)
{
    if ((access & ACS_READ) && !w->poison_all_read)
        w->poison_all_read = failed_by;
    if ((access & ACS_WRITE) && !w->poison_all_write)
        w->poison_all_write = failed_by;
}

/* Concerns ops that touch all memory, which look at no regions. */
static void poison_any(acs_window *w, uint8_t access, acs_op failed_by)
{
    if ((access & ACS_READ) && !w->poison_any_read)
        w->poison_any_read = failed_by;
    if ((access & ACS_WRITE) && !w->poison_any_write)
        w->poison_any_write = failed_by;
}

/*
 * Whether memory of the op was freed behind it and partly handed out again, to op `last` or an earlier one. The new owner
 * must not suffer, and the rest belongs to nobody. The new block may be smaller than the op's.
 */
static bool reused_between(const acs_window *w, const acs_record *op, acs_op last, const acs_shape *shape)
{
    for (uint32_t i = 0; i < w->life_count; i++) {
        const acs_life *life = &w->lives[i];
        if (life->seq > op->seq && life->seq <= last && w->holds[life->join].generation == life->generation &&
            acs_shape_overlap(&life->block, shape))
            return true;
    }
    return false;
}

/*
 * If no region can be had, or TUNE_REGIONS_POISONED are poisoned, all memory is: more ops are skipped than necessary,
 * but none works on bytes that were never written.
 */
void acs_depend_poison(acs_window *w, const acs_record *op, acs_op failed_by)
{
    if (op->any) {
        poison_all(w, ACS_UPDATE, failed_by);
        poison_any(w, ACS_UPDATE, failed_by);
    }
    for (uint32_t i = 0; i < op->segment_count; i++) {
        const acs_segment *segment = &op->segments[i];
        acs_shape shape;
        bool all = segment->extent == ACS_EXTENT_ALL;
        if (!all && acs_shape_of(segment, &shape) != ACS_OK)
            continue;
        if (!all && reused_between(w, op, UINT64_MAX, &shape))
            continue;
        poison_any(w, segment->access, failed_by);
        const bool full = w->poisoned >= TUNE_REGIONS_POISONED;
        if (full && !w->poison_all_read && !w->poison_all_write)
            acs_log(ACS_LOG_WARN, "very many failed or skipped ops: until acs_clear all ops with a footprint are skipped");
        acs_region *region = all || full ? NULL : acs_regions_get(w->regions, &shape, segment->access);
        if (region)
            poison_region(w, region, segment->access, failed_by);
        else
            poison_all(w, segment->access, failed_by);
    }
}

static acs_op region_cause(const acs_region *region, uint8_t access)
{
    if (region->poison_write)
        return region->poison_write;
    if (access != ACS_COMMUTE && region->poison_commute)
        return region->poison_commute;
    return access & ACS_WRITE ? region->poison_read : 0;
}

/* Why an op with this segment is to be skipped; 0: it is not. */
static acs_op segment_cause(acs_window *w, const acs_segment *segment)
{
    const bool writes = segment->access & ACS_WRITE;
    acs_shape shape;
    const bool all = segment->extent == ACS_EXTENT_ALL;
    if (!all && acs_shape_of(segment, &shape) != ACS_OK)
        return 0;
    acs_region *region = all ? NULL : acs_regions_get(w->regions, &shape, segment->access);
    if (!region) /* no memory for the index: more ops are skipped than necessary */
        return w->poison_any_write ? w->poison_any_write : writes ? w->poison_any_read : 0;
    acs_op cause = w->poison_all_write ? w->poison_all_write : writes ? w->poison_all_read : 0;
    cause = cause ? cause : region_cause(region, segment->access);
    for (uint32_t i = 0; i < region->link_count && !cause; i++)
        cause = region_cause(region->links[i].region, segment->access);
    return cause;
}

acs_op acs_depend_cause(acs_window *w, const acs_record *op)
{
    static const acs_segment anything = {.access = ACS_UPDATE, .extent = ACS_EXTENT_ALL};
    acs_op cause = op->any ? segment_cause(w, &anything) : 0;
    for (uint32_t i = 0; i < op->segment_count && !cause && acs_window_has_poison(w); i++)
        cause = segment_cause(w, &op->segments[i]);
    return cause < op->seq ? cause : 0;
}

bool acs_depend_follows(const acs_window *w, const acs_record *up, const acs_record *down)
{
    if (up->any || down->any)
        return acs_records_conflict(up, down);
    for (uint32_t i = 0; i < up->segment_count; i++) {
        const acs_segment *segment = &up->segments[i];
        acs_shape shape;
        const bool ends = segment->extent != ACS_EXTENT_ALL && acs_shape_of(segment, &shape) == ACS_OK &&
                          reused_between(w, up, down->seq, &shape);
        if (!ends && acs_segments_conflict(segment, 1, down->segments, down->segment_count))
            return true;
    }
    return false;
}

static void forget_region(void *user, acs_region *region)
{
    (void)user;
    region->poison_read = region->poison_write = region->poison_commute = 0;
}

void acs_window_clear_poison(acs_window *w)
{
    if (w->poisoned)
        acs_regions_each(w->regions, forget_region, NULL);
    w->poisoned = 0;
    w->poison_all_read = w->poison_all_write = w->poison_any_read = w->poison_any_write = 0;
}

/* Memory handed out again must not inherit failures from former blocks at this address, which may have been larger. */
typedef struct forgetting {
    acs_window *window;
    acs_shape block;
} forgetting;

static void forget_overlapping(void *user, acs_region *region)
{
    const forgetting *f = user;
    if (!acs_region_poisoned(region) || !acs_shape_overlap(&f->block, &region->shape))
        return;
    forget_region(NULL, region);
    ACS_ASSERT(f->window->poisoned > 0);
    f->window->poisoned--;
}

void acs_window_forget_block(acs_window *w, uint64_t base, uint64_t bytes)
{
    forgetting f = {w, {.base = base, .row_bytes = bytes, .rows = 1}};
    if (w->poisoned)
        acs_regions_each(w->regions, forget_overlapping, &f);
}

/*
 * The invariants of the table of regions by brute force: slow and exact. Called by tests and assertions. It changes
 * only the stamps of searches.
 */
#include "window/regions_internal.h"

/* REG-2 for the links of one region; each link must tell the truth. */
static bool check_links(const acs_region *a)
{
    for (uint32_t i = 0; i < a->link_count; i++) {
        const acs_link *link = &a->links[i];
        const acs_region *b = link->region;
        if (!b->in_table || link->mirror >= b->link_count)
            return false;

        const acs_link *back = &b->links[link->mirror];
        if (back->region != a || back->mirror != i)
            return false;
        if (back->covers != link->covered || back->covered != link->covers)
            return false;
        if (!acs_shape_overlap(&a->shape, &b->shape) || link->covers != acs_shape_covers(&a->shape, &b->shape))
            return false;
    }
    return true;
}

/* Whether bytes of b that are not hidden overlap a. */
static bool meets(const acs_regions *t, const acs_region *a, const slot *b)
{
    if (!acs_shape_overlap(&a->shape, &b->region.shape))
        return false;
    return b->region.shape.token || acs_tile_set_meets(b->only_read ? &t->only_read : &t->others, b->place, &a->shape);
}

/* REG-1 for one region: it has the links that it needs, and none twice. */
static bool check_overlaps(acs_regions *t, const acs_region *a)
{
    t->visit++;
    for (uint32_t i = 0; i < a->link_count; i++) {
        slot *s = slot_of(a->links[i].region);
        if (s->visit == t->visit)
            return false;
        s->visit = t->visit;
    }
    for (uint32_t id = 1; id <= t->high && a->serves; id++) {
        const slot *b = slot_at(t, id);
        if (!b->region.in_table || &b->region == a || (a->serves == ACS_READ && b->only_read))
            continue;
        if (b->visit != t->visit && meets(t, a, b))
            return false;
    }
    return true;
}

/* Quadratic in the number of regions. */
bool acs_regions_check(acs_regions *regions)
{
    uint32_t count = 0;

    for (uint32_t id = 1; id <= regions->high; id++) {
        const acs_region *region = acs_region_at(regions, id);
        if (!slot_at(regions, id)->region.in_table)
            continue;
        count++;
        if (region->id != id || acs_regions_find(regions, &region->shape) != region)
            return false;
        if (!check_links(region) || !check_overlaps(regions, region))
            return false;
    }
    return count == regions->count;
}

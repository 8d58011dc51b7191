/*
 * Of the upstream entries that an op's regions name, those that others imply: regions that overlap in part name all ops
 * that touched some of their bytes, most of which precede each other. Called by collect.c during an insertion. It looks
 * only as far as a few upstream entries of each entry, so it may miss some.
 */
#include "window/holders.h"

#include <string.h>

enum {
    STACK_MOST = 32,
    VISITS_FIRST = 64, /* entries looked at for a list, and as many more for each one that is found to be implied: */
    VISITS_EACH = 16
};

#define LISTED UINT64_MAX /* a stamp */

/* Oldest first. They are nearly in order, since regions that are linked later were made later. */
static void sort_by_age(const acs_window *w, uint32_t *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t entry = list[i];
        const uint64_t stamp = w->entries[entry].own_stamp;
        uint32_t to = i;
        for (; to > 0 && w->entries[list[to - 1]].own_stamp > stamp; to--)
            list[to] = list[to - 1];
        list[to] = entry;
    }
}

/*
 * Mark what precedes an upstream entry as if it were linked, back to the stamp `oldest`. Not beyond an entry that is never
 * skipped: it would hide a failure.
 */
static void mark_implied(acs_window *w, const acs_entry *down, uint32_t from, uint64_t oldest, uint32_t *visits)
{
    uint32_t stack[STACK_MOST], depth = 0;
    stack[depth++] = from;
    while (depth > 0 && *visits > 0) {
        const uint32_t at = stack[--depth];
        const acs_upstream *upstream = &w->upstream[at];
        --*visits;
        for (uint32_t i = 0; i < upstream->count && !w->entries[at].never_skipped; i++) {
            const acs_ref ref = upstream->refs[i];
            acs_hold *hold = &w->holds[ref.entry];
            if (hold->generation != ref.generation || hold->stamp == down->own_stamp ||
                w->entries[ref.entry].own_stamp < oldest)
                continue;
            *visits += hold->stamp == LISTED ? VISITS_EACH : 0;
            hold->stamp = down->own_stamp;
            if (depth < STACK_MOST)
                stack[depth++] = ref.entry;
        }
    }
}

uint32_t acs_keep_unimplied(acs_window *w, const acs_entry *entry, uint32_t *list, uint32_t count)
{
    uint32_t kept = count, visits = VISITS_FIRST;
    sort_by_age(w, list, count);
    for (uint32_t i = 0; i < count; i++)
        w->holds[list[i]].stamp = LISTED;
    for (uint32_t i = count; i-- > 0;) {
        if (w->holds[list[i]].stamp == entry->own_stamp)
            continue;
        list[--kept] = list[i];
        w->holds[list[i]].stamp = 0; /* as yet it has no edge */
        if (i > 0)
            mark_implied(w, entry, list[kept], w->entries[list[0]].own_stamp, &visits);
    }
    memmove(list, list + kept, (count - kept) * sizeof *list);
    return count - kept;
}

bool acs_gather_make_room(acs_window *w, const acs_entry *entry)
{
    w->gathered_count = acs_keep_unimplied(w, entry, w->gathered, w->gathered_count);
    for (uint32_t i = 0; i < w->gathered_count; i++)
        w->holds[w->gathered[i]].stamp = entry->own_stamp;
    return w->gathered_count < ACS_GATHERED_MOST;
}

uint32_t acs_gather_end(acs_window *w, acs_entry *entry)
{
    const uint32_t count = acs_keep_unimplied(w, entry, w->gathered, w->gathered_count);
    w->gathers = false;
    for (uint32_t i = count; i-- > 0;) /* the newest first: acs_upstream keeps the first ones */
        acs_window_link(w, &w->entries[w->gathered[i]], entry);
    return count;
}

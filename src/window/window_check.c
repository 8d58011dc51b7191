/*
 * The window's invariants (window.h) as a check. Tests run it between steps, and the core asserts it now and then.
 * Called under the window's lock; only reads.
 */
#include "window/window.h"

/* Sums over the edges of all entries. */
typedef struct sums {
    uint64_t edges, unsatisfied, unretired; /* unsatisfied: counted in `pending`; unretired: counted in joins */
} sums;

/* WIN-3 for one entry: its list is as long as `waiters` says, and leads to used entries. */
static bool check_edges(const acs_window *w, const acs_entry *entry, sums *all)
{
    uint32_t waiters = 0;
    for (uint32_t at = entry->edges; at; at = w->edges[at].next) {
        const acs_edge *edge = &w->edges[at];
        bool join = edge->type == ACS_EDGE_JOIN;
        if (++waiters > w->edges_used || w->entries[edge->down].state == ACS_ENTRY_FREE)
            return false;
        all->unsatisfied += !join || entry->state != ACS_ENTRY_ISSUED;
        all->unretired += join;
    }
    all->edges += waiters;
    return waiters == entry->waiters;
}

/* WIN-1, WIN-2 and WIN-3; of the pending and unretired counts only the sums. */
bool acs_window_check(acs_window *w)
{
    uint64_t pending = 0, unretired = 0;
    uint32_t live = 0, joins = 0;
    sums all = {0};
    for (uint32_t i = 1; i <= w->entry_count; i++) {
        const acs_entry *e = &w->entries[i];
        if (e->state == ACS_ENTRY_FREE)
            continue;
        live += e->kind != ACS_KIND_JOIN;
        joins += e->kind == ACS_KIND_JOIN;
        pending += e->pending - e->held;
        unretired += e->unretired;
        if ((e->state == ACS_ENTRY_READY || e->state == ACS_ENTRY_ISSUED) && e->pending != 0)
            return false;
        if (!check_edges(w, e, &all))
            return false;
    }
    return all.edges == w->edges_used && all.unsatisfied == pending && all.unretired == unretired && live == w->live &&
           joins == w->live_joins && w->live <= (w->limit ? w->limit : 1) && w->live_joins <= w->joins;
}

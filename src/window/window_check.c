/*
 * The window's invariants (window.h) as a check, which tests run between steps and the core asserts now and then. Called
 * under whatever lock the window has. Reads only.
 */
#include "window/window.h"

/* WIN-1, WIN-3, and of WIN-2 what each entry shows. */
bool acs_window_check(acs_window *w)
{
    uint32_t used = 0, live = 0;
    for (uint32_t i = 1; i <= w->entry_count; i++) {
        const acs_entry *e = &w->entries[i];
        if (e->state == ACS_ENTRY_FREE)
            continue;
        live += e->kind != ACS_KIND_JOIN;
        if ((e->state == ACS_ENTRY_READY || e->state == ACS_ENTRY_ISSUED) && e->pending != 0)
            return false;
        uint32_t waiters = 0;
        for (uint32_t at = e->edges; at; at = w->edges[at].next) {
            used++;
            waiters++;
            if (w->entries[w->edges[at].down].state == ACS_ENTRY_FREE)
                return false;
        }
        if (waiters != e->waiters)
            return false;
    }
    return used == w->edges_used && live == w->live && w->live <= (w->limit ? w->limit : 1);
}

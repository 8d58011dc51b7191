/*
 * The cells of a context (decision_cells.c): memory through which decisions reach the ops that obey them
 * (window/decision.h), and the report in which decisions tell the host. Used by decisions.c.
 *
 * A decision and the ops that obey it must have the cell for themselves (DEC-1). So a cell is owned by a section, or by
 * one launch, from before its decision until the last op that obeys it is queued. Ops that recur get the same cell
 * again, since a replay has to find equal arguments. For that a cell belongs to a call site, a word, and the memory that
 * the first op names; these get cells in the order in which they first come. So the cells of ops that depend on each
 * other lie side by side.
 */
#ifndef ACS_DECISION_CELLS_H
#define ACS_DECISION_CELLS_H

#include "api/context.h"

typedef struct acs_cell_key {
    const void *site, *word;
    uint64_t near; /* memory that the first op names */
    uint64_t kind; /* acs_decision_kind */
    uint64_t turn; /* set by acs_cell_own: owners with the rest of the key at the time */
} acs_cell_key;

/* The context's cells; NULL: none yet. K: acquire; pairs with open_locked. */
static inline acs_decisions *acs_decisions_of(acs_context *context)
{
    return atomic_load_explicit(&context->decisions, memory_order_acquire);
}
/* Open the context's cells at the first use. ACS_ERR_MEMORY, ACS_ERR_DEVICE: there are none. */
acs_status acs_cells_open(acs_context *context, acs_decisions **all);
/* Own the key's cell, or another one if it has an owner. ACS_ERR_MEMORY through ACS_FAIL. */
acs_status acs_cell_own(acs_decisions *all, const acs_cell_key *key, acs_cell **owned);
/* All ops that obey the cell are queued. NULL, and a cell of a capture, are allowed. */
void acs_cell_disown(acs_decisions *all, const acs_cell *cell);
acs_decision_report *acs_cells_report(acs_decisions *all);
/* Where decisions count what does not run: the first bytes of a cell's. */
uint64_t *acs_cells_not_run(acs_decisions *all);
/* A graph of the program's uses the report, which therefore stays for good. */
void acs_cells_captured(acs_decisions *all);
/* A number for a loop: not 0. */
uint32_t acs_cells_loop(acs_decisions *all);
/* Where a decision with this cell tells about a loop. */
uint64_t *acs_cells_told(acs_decisions *all, const acs_cell *cell);

#endif

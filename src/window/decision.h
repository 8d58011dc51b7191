/*
 * Decisions: small ops that read a word in device memory and write a *cell*, which says whether the ops that follow
 * run, or with how many blocks. Ops that obey a cell are *decided*. A decision is a kernel of the library's own. Cells
 * are memory like any other: the footprint of a decision writes its cell, and those of decided ops read it. So the
 * window orders them, and nothing else in the core knows of them. Plain C: the backends' bodies and the device code
 * include it.
 *
 * A backend obeys a cell in one of two ways. If it issues the decision and the op in one graph, the decision switches
 * the op's node (`target`). Otherwise the op's cell is complete when the op's upstream ops have ended, and whoever
 * starts the op reads it.
 *
 * DEC-1  between a decision and the last op that obeys its cell, in program order, no other decision writes the cell.
 * DEC-2  at most ACS_DECISION_TARGETS ops obey one decision.
 */
#ifndef ACS_DECISION_H
#define ACS_DECISION_H

#include <stdint.h>

#ifdef __CUDACC__
#define ACS_DECISION_FN static __host__ __device__ inline
#else
#define ACS_DECISION_FN static inline
#endif

typedef struct acs_cell {
    uint32_t runs;    /* whether ops that obey it run */
    uint32_t grid[3]; /* of those that take their grid from it; zeros unless it runs */
    uint64_t *not_run; /* where ops that do not run are counted, by whoever switches them */
    uint32_t loop;    /* number of the loop that it decides about, and of iterations that began */
    uint32_t begun;
} acs_cell;

enum {
    ACS_DECISION_TARGETS = 20, /* the arguments of a decision fit into a record's inline bytes */
    ACS_DECISION_FAULTS = 16,  /* faults that a report remembers */
    ACS_DECISION_CELLS = 4096, /* cells of a context, and words of loops */
    ACS_DECISION_THREADS = 32  /* threads of a decision's block; one for each target */
};

/* How a decision reads its word. */
typedef enum acs_decision_kind {
    ACS_DECIDE_IF,     /* a uint32_t: ops run if it is not zero */
    ACS_DECIDE_UNLESS, /* a uint32_t: ops run if it is zero */
    ACS_DECIDE_DIM3,   /* three uint32_t: the grid; ops run if none is zero */
    ACS_DECIDE_COUNT   /* a uint32_t, a number of items: the grid has as many blocks as they need */
} acs_decision_kind;

/* A grid that was larger than its maximum. */
typedef struct acs_decision_fault {
    const void *site; /* acs_site of the launch */
    uint32_t blocks[3];
    uint32_t most[3];
    uint32_t ready;   /* 1 once the other fields are written */
} acs_decision_fault;

/* What decisions tell the host. In memory that both reach; the host clears `ready`. */
typedef struct acs_decision_report {
    uint32_t fault_count; /* faults so far; fault n is at index n % ACS_DECISION_FAULTS */
    uint32_t reserved;
    uint64_t captured_not_run; /* counter of decisions in captured graphs, which nobody reads */
    acs_decision_fault fault[ACS_DECISION_FAULTS];
} acs_decision_report;

/* What a decision about a loop tells: the loop's number, how many iterations began, and whether it is over. */
ACS_DECISION_FN uint64_t acs_decision_loop_word(const acs_cell *cell)
{
    return (uint64_t)cell->loop << 32 | (uint64_t)(cell->begun & 0x7fffffff) << 1 | !cell->runs;
}

/* What a decision has made of its targets. All bits set: nothing yet. */
typedef struct acs_decision_state {
    uint32_t runs, grid[3];
} acs_decision_state;

/* The one argument of a decision. */
typedef struct acs_decision {
    const uint32_t *word;         /* first, so that the library can point it at a block's present contents */
    const acs_cell *outer;        /* NULL: none. If that does not run, this one does not either */
    acs_cell *cell;
    acs_decision_report *report;
    uint64_t *not_run;            /* counter in memory like the cells' */
    const void *site;             /* acs_site of the launch or section */
    uint32_t kind;                /* acs_decision_kind */
    uint32_t items;               /* COUNT: of a block; at least 1 */
    uint32_t most[3];             /* DIM3, COUNT: the largest grid */
    uint32_t target_count;        /* set by the backend, with the two fields below */
    uint32_t target_grids;        /* bit i: target i takes its grid from the cell */
    uint32_t loop;                /* of a loop's first decision: the loop's number */
    uint64_t *told;               /* of loops: where acs_decision_loop_word goes; NULL: nowhere */
    uint64_t state;               /* acs_decision_state of the targets, which this decision alone switches; 0: none */
    uint64_t target[ACS_DECISION_TARGETS]; /* nodes that the decision switches: CUgraphDeviceNode */
} acs_decision;

/* The grid that the word asks for. */
ACS_DECISION_FN void acs_decision_blocks(const acs_decision *d, uint32_t blocks[3])
{
    const int counts = d->kind == ACS_DECIDE_COUNT;
    blocks[0] = counts ? d->word[0] / d->items + (d->word[0] % d->items != 0) : d->word[0];
    blocks[1] = counts ? d->most[1] : d->word[1];
    blocks[2] = counts ? d->most[2] : d->word[2];
}

/* Whether targets with this state are as the cell wants them. */
ACS_DECISION_FN int acs_decision_is_state(const acs_decision_state *state, const acs_cell *cell)
{
    return state->runs == cell->runs && state->grid[0] == cell->grid[0] && state->grid[1] == cell->grid[1] &&
           state->grid[2] == cell->grid[2];
}

/* Make the decision. @return 0: the grid was larger than allowed, and the cell says that nothing runs. */
ACS_DECISION_FN int acs_decision_make(const acs_decision *d, acs_cell *cell, uint32_t blocks[3])
{
    const int grids = d->kind == ACS_DECIDE_DIM3 || d->kind == ACS_DECIDE_COUNT;
    int fits = 1;
    cell->runs = !d->outer || d->outer->runs;
    cell->grid[0] = cell->grid[1] = cell->grid[2] = 0;
    cell->not_run = d->not_run;
    cell->loop = d->loop || !d->told ? d->loop : d->cell->loop;
    cell->begun = d->loop || !d->told ? 0 : d->cell->begun;
    if (cell->runs && !grids)
        cell->runs = (*d->word != 0) == (d->kind == ACS_DECIDE_IF);
    cell->begun += cell->runs;
    if (!cell->runs || !grids)
        return 1;
    acs_decision_blocks(d, blocks);
    cell->runs = blocks[0] && blocks[1] && blocks[2];
    for (int i = 0; i < 3; i++)
        fits = fits && (!cell->runs || blocks[i] <= d->most[i]);
    cell->runs = cell->runs && fits;
    for (int i = 0; i < 3; i++)
        cell->grid[i] = cell->runs ? (uint32_t)blocks[i] : 0;
    return fits;
}

#ifndef __CUDACC__
/* On a CPU: make a decision, and tell the host what it has to know. The caller writes the cell. */
static inline void acs_decision_run(const acs_decision *d, acs_cell *cell)
{
    uint32_t blocks[3];
    if (!acs_decision_make(d, cell, blocks)) {
        const uint32_t number = __atomic_fetch_add(&d->report->fault_count, 1, __ATOMIC_RELAXED);
        acs_decision_fault *fault = &d->report->fault[number % ACS_DECISION_FAULTS];
        fault->site = d->site;
        for (int i = 0; i < 3; i++) {
            fault->blocks[i] = blocks[i];
            fault->most[i] = d->most[i];
        }
        __atomic_store_n(&fault->ready, 1, __ATOMIC_RELEASE); /* pairs with take_fault of decision_cells.c */
    }
    if (d->told)
        __atomic_store_n(d->told, acs_decision_loop_word(cell), __ATOMIC_RELEASE);
}

/* On a CPU that reaches the cell: whether an op that obeys it runs. If not, it is counted. */
static inline int acs_cell_runs(const acs_cell *cell)
{
    if (!cell->runs)
        (void)__atomic_fetch_add(cell->not_run, 1, __ATOMIC_RELAXED); /* a counter */
    return cell->runs != 0;
}
#endif

#endif

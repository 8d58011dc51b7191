/*
 * The cells of a context (decision_cells.h). Owns the memory of cells and report, and knows which cell belongs to which
 * key. Never queues an op, and never reads a cell.
 */
#include "api/decision_cells.h"

#include "api/decisions.h"
#include "api/failures.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

typedef struct known_cell {
    acs_cell_key key;
    uint32_t index;
    int hash_failed;
    UT_hash_handle hh;
} known_cell;

struct acs_decisions {
    acs_cell *cells; /* ACS_DECISION_CELLS, in memory that devices reach; the counter is in one behind them */
    acs_decision_report *report;
    uint64_t *told;  /* in pinned memory, by cell: acs_decision_loop_word */
    pthread_mutex_t lock; /* guards the fields below; held across no call */
    known_cell *known;
    uint32_t known_count;
    bool owned[ACS_DECISION_CELLS];
    uint64_t not_run_first; /* of the counter, whose memory is not cleared */
    uint32_t loops;  /* numbers of loops given out */
    uint32_t faults; /* faults of the report that were seen */
    bool captured;   /* graphs of the program's may use the report, which therefore stays for good */
};

static pthread_mutex_t g_opening = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------------------------------------------------- open and close */

/* What devices have counted. */
static acs_status read_counter(acs_backend *backend, acs_decisions *all, uint64_t *counted)
{
    acs_cell cell;
    const uint64_t *at = acs_cells_not_run(all);
    if (!backend->ops->read_cell) {
        *counted = __atomic_load_n(at, __ATOMIC_RELAXED);
        return ACS_OK;
    }
    ACS_TRY(backend->ops->read_cell(backend, &all->cells[ACS_DECISION_CELLS], &cell));
    memcpy(counted, &cell, sizeof *counted);
    return ACS_OK;
}

static acs_status open_locked(acs_context *context)
{
    acs_backend *backend = context->backend;
    const int near = backend->devices == 1 ? ACS_MEMORY_DEVICE : ACS_MEMORY_HOST; /* all devices reach pinned memory */
    void *cells = NULL, *report = NULL, *loops = NULL;
    acs_decisions *all = calloc(1, sizeof *all);
    if (!all)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for decisions");
    acs_status status = backend->ops->memory_alloc(backend, near, (ACS_DECISION_CELLS + 1) * sizeof(acs_cell), &cells);
    if (status == ACS_OK)
        status = backend->ops->memory_alloc(backend, ACS_MEMORY_HOST, sizeof(acs_decision_report), &report);
    if (status == ACS_OK)
        status = backend->ops->memory_alloc(backend, ACS_MEMORY_HOST, ACS_DECISION_CELLS * sizeof *all->told, &loops);
    all->cells = cells;
    if (status == ACS_OK)
        status = read_counter(backend, all, &all->not_run_first);
    if (status == ACS_OK && pthread_mutex_init(&all->lock, NULL) == 0) {
        all->report = memset(report, 0, sizeof(acs_decision_report));
        all->told = memset(loops, 0, ACS_DECISION_CELLS * sizeof *all->told);
        atomic_store_explicit(&context->decisions, all, memory_order_release); /* K */
        acs_context_add_mode(context, ACS_MODE_DECISIONS);
        return ACS_OK;
    }
    if (cells)
        (void)backend->ops->memory_free(backend, near, cells);
    if (report)
        (void)backend->ops->memory_free(backend, ACS_MEMORY_HOST, report);
    if (loops)
        (void)backend->ops->memory_free(backend, ACS_MEMORY_HOST, loops);
    free(all);
    return status != ACS_OK ? status : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the lock of decisions");
}

acs_status acs_cells_open(acs_context *context, acs_decisions **all)
{
    acs_status status = ACS_OK;
    if (!acs_decisions_of(context)) {
        pthread_mutex_lock(&g_opening);
        status = acs_decisions_of(context) ? ACS_OK : open_locked(context);
        pthread_mutex_unlock(&g_opening);
    }
    *all = acs_decisions_of(context);
    return status;
}

static void forget_cells_locked(acs_decisions *all)
{
    known_cell *cell, *next;
    HASH_ITER (hh, all->known, cell, next) {
        HASH_DEL(all->known, cell);
        free(cell);
    }
    all->known_count = 0;
}

void acs_decisions_close(acs_context *context, bool keep)
{
    acs_backend *backend = context->backend;
    acs_decisions *all = acs_decisions_of(context);
    if (!all)
        return;
    const int near = backend->devices == 1 ? ACS_MEMORY_DEVICE : ACS_MEMORY_HOST;
    if (!keep) {
        (void)backend->ops->memory_free(backend, near, all->cells);
        (void)backend->ops->memory_free(backend, ACS_MEMORY_HOST, all->told);
    }
    if (!keep && !all->captured)
        (void)backend->ops->memory_free(backend, ACS_MEMORY_HOST, all->report);
    forget_cells_locked(all);
    pthread_mutex_destroy(&all->lock);
    free(all);
    atomic_store_explicit(&context->decisions, NULL, memory_order_relaxed); /* no other thread is here any more */
}

/* ------------------------------------------------------------------------------------------------------------- cells */

/* The index of the cell that the key had last, or of a new one. ACS_DECISION_CELLS: no memory. */
static uint32_t find_cell_locked(acs_decisions *all, const acs_cell_key *key)
{
    known_cell *cell = NULL;
    HASH_FIND(hh, all->known, key, sizeof *key, cell);
    if (cell)
        return cell->index;
    if (all->known_count == ACS_DECISION_CELLS)
        forget_cells_locked(all);
    cell = calloc(1, sizeof *cell);
    if (!cell)
        return ACS_DECISION_CELLS;
    cell->key = *key;
    cell->index = all->known_count;
    HASH_ADD(hh, all->known, key, sizeof cell->key, cell);
    if (!cell->hash_failed) {
        all->known_count++;
        return cell->index;
    }
    free(cell);
    return ACS_DECISION_CELLS;
}

/*
 * Own the key's cell, or one more of the same key if it has an owner: with a cell of another key, failures would reach
 * ops of that.
 */
acs_status acs_cell_own(acs_decisions *all, const acs_cell_key *key, acs_cell **owned)
{
    acs_cell_key own = *key;
    pthread_mutex_lock(&all->lock);
    uint32_t index = find_cell_locked(all, &own);
    while (index < ACS_DECISION_CELLS && all->owned[index] && ++own.turn < ACS_DECISION_CELLS)
        index = find_cell_locked(all, &own);
    const bool memory = index < ACS_DECISION_CELLS, free_one = memory && !all->owned[index];
    if (free_one)
        all->owned[index] = true;
    pthread_mutex_unlock(&all->lock);
    *owned = &all->cells[index % ACS_DECISION_CELLS];
    return free_one ? ACS_OK
                    : ACS_FAIL(ACS_ERR_MEMORY, 0, "%s",
                               memory ? "more sections are open than there are cells" : "no memory for a decision");
}

/* Cells of captures belong to their graph. */
void acs_cell_disown(acs_decisions *all, const acs_cell *cell)
{
    if (!cell || cell < all->cells || cell >= all->cells + ACS_DECISION_CELLS)
        return;
    ACS_HOLD_MUTEX(&all->lock);
    all->owned[cell - all->cells] = false;
}

acs_decision_report *acs_cells_report(acs_decisions *all)
{
    return all->report;
}

uint64_t *acs_cells_not_run(acs_decisions *all)
{
    return (uint64_t *)(void *)&all->cells[ACS_DECISION_CELLS];
}

void acs_cells_captured(acs_decisions *all)
{
    ACS_HOLD_MUTEX(&all->lock);
    all->captured = true;
}

uint32_t acs_cells_loop(acs_decisions *all)
{
    ACS_HOLD_MUTEX(&all->lock);
    all->loops += all->loops == UINT32_MAX ? 2 : 1;
    return all->loops;
}

uint64_t *acs_cells_told(acs_decisions *all, const acs_cell *cell)
{
    return &all->told[cell - all->cells];
}

/* ------------------------------------------------------------------------------------------------------------ report */

static acs_status fail_fault(const acs_decision_fault *fault)
{
    const acs_site *site = fault->site;
    const acs_status status =
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s' (%s:%d): its grid was read as %u x %u x %u blocks, and its maximum is "
                 "%u x %u x %u; it did not run", acs_label_name((acs_label){site, site->name}),
                 site->file ? site->file : "?", site->line, fault->blocks[0], fault->blocks[1], fault->blocks[2],
                 fault->most[0], fault->most[1], fault->most[2]);
    acs_error_thread()->site = *site;
    return status;
}

/* The next fault that was not seen; false: there is none, or it is being written. */
static bool take_fault(acs_decisions *all, acs_decision_fault *taken)
{
    bool found = false;
    ACS_HOLD_MUTEX(&all->lock);
    const uint32_t count = __atomic_load_n(&all->report->fault_count, __ATOMIC_RELAXED);
    if (count - all->faults > ACS_DECISION_FAULTS) /* the older ones were overwritten */
        all->faults = count - ACS_DECISION_FAULTS;
    acs_decision_fault *fault = &all->report->fault[all->faults % ACS_DECISION_FAULTS];
    if (all->faults != count && __atomic_load_n(&fault->ready, __ATOMIC_ACQUIRE)) {
        *taken = *fault;
        fault->ready = 0;
        all->faults++;
        found = true;
    }
    return found;
}

acs_status acs_decisions_look(acs_context *context)
{
    acs_decision_fault fault;
    acs_status first = ACS_OK;
    acs_error error;
    acs_decisions *all = acs_decisions_of(context);
    while (all && take_fault(all, &fault)) {
        (void)fail_fault(&fault);
        acs_log(ACS_LOG_ERROR, "%s", acs_error_thread()->text);
        acs_failures_keep(context);
        if (first == ACS_OK)
            error = *acs_error_thread();
        first = ACS_ERR_ARGUMENT;
    }
    if (first != ACS_OK)
        *acs_error_thread() = error;
    return first;
}

uint64_t acs_decisions_not_run(acs_context *context)
{
    acs_decisions *all = acs_decisions_of(context);
    const acs_error before = *acs_error_thread(); /* a device that is lost is no error of this call */
    uint64_t counted = 0;
    if (!all)
        return 0;
    if (read_counter(context->backend, all, &counted) == ACS_OK)
        counted -= all->not_run_first;
    *acs_error_thread() = before;
    return counted + atomic_load_explicit(&context->backend->not_run, memory_order_relaxed); /* a counter */
}

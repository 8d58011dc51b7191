/*
 * Decided ops (decisions.h): sections of the calling thread, grids that are read on the device, loops. Queues decisions
 * as kernels of the library's own; which device code makes them is the backend's affair. Never reads a cell.
 */
#include "api/decisions.h"

#include "api/decision_cells.h"
#include "api/failures.h"
#include "api/wait.h"
#include "base/tuning.h"

#include <string.h>

enum { SECTIONS_MOST = 32 /* deepest section of a thread */ };

/* A section of the calling thread. */
typedef struct branch {
    acs_context *context;
    uint64_t opened_ns; /* the context's: tells it from later ones in the same struct */
    const uint32_t *word;
    const acs_site *site;
    acs_decision_kind kind;
    acs_status refused;  /* error with which its ops are refused; ACS_OK: none */
    const void *capture; /* capture and group in which its decision was queued */
    uint64_t group;
    bool other;          /* behind acs_else */
    acs_cell *first;     /* of this branch; NULL: not decided yet */
    acs_cell *now;       /* that further ops obey: `first`, or a copy of it */
    acs_cell *before;    /* `first` of the branch before acs_else */
    uint32_t room;       /* ops that may still obey `now` (DEC-2) */
    uint32_t loop;       /* number of the loop that it is the iteration of; 0: none */
    bool iterates;       /* `first` has decided about an earlier iteration */
    uint64_t forgot;     /* acs_failures_forgot when it was opened, or decided anew */
    bool no_wait;        /* the op that it is decided for does not wait for room */
    acs_op decision;     /* number of its latest decision */
} branch;

static _Thread_local struct {
    branch list[SECTIONS_MOST];
    uint32_t count;
    uint32_t beyond;             /* sections that are too deep for the list, open in the context below */
    const acs_context *too_deep;
} tl_branches;

static const void *capture_of(acs_context *context)
{
    return acs_context_modes(context) & ACS_MODE_SECTIONS ? context->hooks->capture(context) : NULL;
}

static uint64_t group_of(acs_context *context)
{
    return acs_context_modes(context) & ACS_MODE_SECTIONS ? context->hooks->group_number(context) : 0;
}

/* A cell for a decision: of the context, or of the graph of a capture, which may run at any time. */
static acs_status get_cell(acs_context *context, acs_decisions *all, const acs_cell_key *key, acs_cell **cell)
{
    void *memory;
    if (!capture_of(context))
        return acs_cell_own(all, key, cell);
    ACS_TRY(context->hooks->capture_memory(context, sizeof **cell, &memory));
    acs_cells_captured(all);
    *cell = memory;
    return ACS_OK;
}

/* --------------------------------------------------------------------------------------------------------- decisions */

/* The host body of decisions. */
static void decide(const acs_grid *grid, void *const *args)
{
    const acs_decision *d = args[0];
    acs_cell cell;
    (void)grid;
    acs_decision_run(d, &cell);
    *d->cell = cell;
}

static bool is_grid(const acs_decision *d)
{
    return d->kind == ACS_DECIDE_DIM3 || d->kind == ACS_DECIDE_COUNT;
}

/* Let a launch recur that is decided, or a decision, as any other. 0: it goes the usual way. */
static acs_op recur(acs_context *context, const acs_launch_params *p)
{
    const bool plain = (acs_context_modes(context) & ACS_MODES_LAUNCH) == ACS_MODE_REPEATS;
    return plain ? context->hooks->recur(context, p) : 0;
}

/* Queue a decision of this site, which obeys nothing itself. Fills in what all decisions have. 0 with an error. */
static acs_op queue_decision(acs_context *context, acs_decisions *all, acs_decision *d, const acs_site *site, bool no_wait)
{
    d->report = acs_cells_report(all);
    d->not_run = capture_of(context) ? &d->report->captured_not_run : acs_cells_not_run(all); /* captured ops do not count */
    d->site = site;
    acs_backend *backend = context->backend;
    const void *decider = backend->ops->decider ? backend->ops->decider(backend) : NULL;
    const acs_kernel kernel = {.name = is_grid(d) ? "acs_grid" : d->told ? "acs_loop" : "acs_if",
                               .function = decider,
                               .host = decide,
                               .kind = decider ? ACS_KERNEL_HANDLE : ACS_KERNEL_NONE};
    const acs_arg arg = {d, sizeof *d, ACS_ARG_POINTERS | ACS_POINTER_AT(0)};
    const bool same = d->outer == d->cell;
    acs_segment segments[3];
    size_t count = 0;
    segments[count++] = ACS_IN(d->word, d->kind == ACS_DECIDE_DIM3 ? 3 * sizeof *d->word : sizeof *d->word);
    segments[count++] = same ? ACS_INOUT(d->cell, sizeof *d->cell) : ACS_OUT(d->cell, sizeof *d->cell);
    if (d->outer && !same)
        segments[count++] = ACS_IN(d->outer, sizeof *d->outer);
    const acs_launch_params p = {.size = sizeof p,
                                 .kernel = &kernel,
                                 .grid = {1, 1, 1},
                                 .block = {ACS_DECISION_THREADS, 1, 1},
                                 .args = {&arg, 1},
                                 .uses = {segments, count, NULL, NULL, 0},
                                 .site = site,
                                 .no_wait = no_wait};
    acs_draft draft = {.context = context, .decision = ACS_RECORD_DECIDES};
    const acs_op op = recur(context, &p);
    return op ? op : acs_launch_fill(&draft, &p) && acs_launch_bind(&draft) ? acs_draft_queue(&draft) : 0;
}

/* The same, with a cell of its own. `near`: memory that the first op which obeys it names. */
static acs_op queue_with_cell(acs_context *context, acs_decisions *all, acs_decision *d, uint64_t near,
                              const acs_site *site, bool no_wait)
{
    const acs_cell_key key = {.site = site, .word = d->word, .near = near, .kind = d->kind};
    if (get_cell(context, all, &key, &d->cell) != ACS_OK)
        return 0;
    const acs_op op = queue_decision(context, all, d, site, no_wait);
    if (!op)
        acs_cell_disown(all, d->cell);
    return op;
}

/* ---------------------------------------------------------------------------------------------------------- sections */

static bool is_mine(const branch *s, const acs_context *context)
{
    return s->context == context && s->opened_ns == context->opened_ns;
}

/* The thread's innermost section of the context below `end`; NULL: none. */
static branch *branch_below(const acs_context *context, uint32_t end)
{
    while (end > 0 && !is_mine(&tl_branches.list[end - 1], context))
        end--;
    return end > 0 ? &tl_branches.list[end - 1] : NULL;
}

static branch *innermost(const acs_context *context)
{
    return branch_below(context, tl_branches.count);
}

static bool is_too_deep(const acs_context *context)
{
    return tl_branches.beyond && tl_branches.too_deep == context;
}

static acs_status fail_depth(const char *what)
{
    return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "%s: sections are nested more than %d deep", what, SECTIONS_MOST);
}

static uint64_t near_of(const acs_uses *uses)
{
    const acs_segment *s = uses->segments;
    for (size_t i = 0; s && i < uses->count; i++)
        if (s[i].access != ACS_READ)
            return s[i].base;
    return s && uses->count ? s->base : 0;
}

/* Queue a decision for the section, with a new cell. */
static acs_status queue_for(branch *s, acs_decisions *all, acs_decision *d, uint64_t near)
{
    s->decision = queue_with_cell(s->context, all, d, near, s->site, s->no_wait);
    return s->decision ? ACS_OK : acs_error_thread()->status;
}

static acs_status decide_branch(branch *s, acs_decisions *all, uint64_t near);
static acs_status begin_iteration(branch *s, acs_decisions *all);

/* The cell of the section around this one; NULL: there is none. That section is decided first. */
static acs_status decide_outer(const branch *s, acs_decisions *all, uint64_t near, const acs_cell **outer)
{
    branch *around = branch_below(s->context, (uint32_t)(s - tl_branches.list));
    *outer = NULL;
    if (!around)
        return ACS_OK;
    around->no_wait = s->no_wait;
    ACS_TRY(decide_branch(around, all, near));
    *outer = around->first;
    return ACS_OK;
}

static void disown_cells(const branch *s, acs_decisions *all)
{
    acs_cell_disown(all, s->now);
    acs_cell_disown(all, s->first);
    acs_cell_disown(all, s->before);
}

/* Its decision may be among the failures that acs_clear has forgotten. Then no decision has written its cells. */
static void forget_decision(branch *s, acs_decisions *all)
{
    const uint64_t forgot = acs_failures_forgot(s->context);
    if (s->forgot == forgot)
        return;
    disown_cells(s, all);
    s->first = s->now = s->before = NULL;
    s->iterates = false;
    s->forgot = forgot;
}

/*
 * See that the section is decided. Behind acs_else the word may have changed, so the other branch's cell decides, if
 * there is one.
 */
static acs_status decide_branch(branch *s, acs_decisions *all, uint64_t near)
{
    if (is_too_deep(s->context))
        return fail_depth(acs_label_name((acs_label){s->site, NULL}));
    if (s->refused != ACS_OK)
        return ACS_FAIL(s->refused, 0, "'%s': the section was refused", acs_label_name((acs_label){s->site, NULL}));
    if (s->first && (s->capture != capture_of(s->context) || s->group != group_of(s->context)))
        return ACS_FAIL(ACS_ERR_STATE, 0, "'%s': a section goes on in another capture or group than it began in",
                        acs_label_name((acs_label){s->site, NULL}));
    forget_decision(s, all);
    if (s->first)
        return ACS_OK;
    if (s->loop)
        return begin_iteration(s, all);
    const bool unless = s->before || s->other == (s->kind == ACS_DECIDE_IF);
    acs_decision d = {.word = s->before ? &s->before->runs : s->word,
                      .kind = unless ? ACS_DECIDE_UNLESS : ACS_DECIDE_IF};
    ACS_TRY(decide_outer(s, all, near, &d.outer));
    s->capture = capture_of(s->context);
    s->group = group_of(s->context);
    ACS_TRY(queue_for(s, all, &d, near));
    s->first = s->now = d.cell;
    s->room = ACS_DECISION_TARGETS;
    return ACS_OK;
}

/* The cell that the section's next op obeys. After ACS_DECISION_TARGETS ops a copy of the cell goes on (DEC-2). */
static acs_status next_cell(branch *s, acs_decisions *all, uint64_t near, const acs_cell **cell)
{
    ACS_TRY(decide_branch(s, all, near));
    if (s->room == 0) {
        acs_decision d = {.word = &s->first->runs, .kind = ACS_DECIDE_IF};
        ACS_TRY(queue_for(s, all, &d, near));
        if (s->now != s->first)
            acs_cell_disown(all, s->now);
        s->now = d.cell;
        s->room = ACS_DECISION_TARGETS;
    }
    s->room--;
    *cell = s->now;
    return ACS_OK;
}

bool acs_decisions_obey(acs_draft *draft, const acs_uses *uses)
{
    acs_decisions *all;
    branch *s = innermost(draft->context);
    if (!s)
        return true;
    s->no_wait = draft->no_wait;
    if (acs_cells_open(draft->context, &all) == ACS_OK && next_cell(s, all, near_of(uses), &draft->cell) == ACS_OK) {
        draft->decision = ACS_RECORD_DECIDED;
        return true;
    }
    (void)acs_draft_drop(draft);
    return false;
}

/* Forget sections of contexts that were closed. Structs of contexts are used again, and never freed. */
static void drop_closed(void)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tl_branches.count; i++) {
        const branch *s = &tl_branches.list[i];
        if (atomic_load_explicit(&s->context->open, memory_order_acquire) && is_mine(s, s->context))
            tl_branches.list[kept++] = *s;
    }
    tl_branches.count = kept;
    tl_branches.beyond = kept == SECTIONS_MOST ? tl_branches.beyond : 0;
}

/* A new section of the thread. NULL: too deep. */
static branch *open_branch(acs_context *context, const uint32_t *word, const acs_site *site, acs_decision_kind kind)
{
    drop_closed();
    if (tl_branches.count == SECTIONS_MOST)
        return NULL;
    branch *s = &tl_branches.list[tl_branches.count++];
    *s = (branch){.context = context, .opened_ns = context->opened_ns, .word = word, .site = site, .kind = kind,
                  .forgot = acs_failures_forgot(context)};
    return s;
}

static void close_branch(branch *s, acs_decisions *all)
{
    if (all)
        disown_cells(s, all);
    const uint32_t at = (uint32_t)(s - tl_branches.list);
    memmove(s, s + 1, (tl_branches.count - at - 1) * sizeof *s);
    tl_branches.count--;
}

static acs_status begin_branch(acs_context *context, const uint32_t *word, const acs_site *site, acs_decision_kind kind,
                                const char *function)
{
    static const acs_site unnamed = {"acs_if", NULL, 0};
    acs_decisions *all;
    context = acs_context_enter_at(context, function, site);
    if (!context)
        return acs_error_thread()->status;
    ACS_TRY(acs_cells_open(context, &all));
    branch *s = open_branch(context, word, site ? site : &unnamed, kind);
    if (!s) {
        tl_branches.beyond++;
        tl_branches.too_deep = context;
        (void)fail_depth(function);
        return acs_failures_refuse(context, site);
    }
    if (word && (uintptr_t)word % sizeof *word == 0)
        return ACS_OK;
    s->refused = ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%s: the word is at %p; it must be at a multiple of %zu, and not NULL",
                          function, (const void *)word, sizeof *word);
    return acs_failures_refuse(context, site);
}

acs_status acs_if_op(acs_context *context, const uint32_t *word, const acs_site *site)
{
    return begin_branch(context, word, site, ACS_DECIDE_IF, "acs_if");
}

acs_status acs_unless_op(acs_context *context, const uint32_t *word, const acs_site *site)
{
    return begin_branch(context, word, site, ACS_DECIDE_UNLESS, "acs_unless");
}

acs_status acs_else(acs_context *context)
{
    ACS_ENTER(context);
    branch *s = innermost(context);
    if (is_too_deep(context))
        return fail_depth(__func__);
    if (!s || s->other || s->loop)
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_else: this thread has %s", s ? "no acs_if that waits for it" : "no section");
    if (s->now != s->first)
        acs_cell_disown(acs_decisions_of(context), s->now);
    s->before = s->first;
    s->first = s->now = NULL;
    s->other = true;
    return ACS_OK;
}

acs_status acs_end_if(acs_context *context)
{
    ACS_ENTER(context);
    branch *s = innermost(context);
    if (is_too_deep(context)) {
        tl_branches.beyond--;
        return ACS_OK;
    }
    if (!s || s->loop)
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_end_if: this thread has no section");
    close_branch(s, acs_decisions_of(context));
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------- grids */

static acs_status check_grid_from(const acs_launch_params *p)
{
    const void *word = p->grid_from.word;
    if ((uintptr_t)word % sizeof(uint32_t))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': its grid is read at %p, which is not a multiple of %zu",
                        acs_label_name((acs_label){p->site ? p->site : &acs_unknown_site, p->kernel->name}), word,
                        sizeof(uint32_t));
    return ACS_OK;
}

/* Queue the decision about a launch's grid. The cell is owned until the launch is queued. */
static acs_status decide_grid(acs_context *context, acs_decisions *all, const acs_launch_params *p, acs_cell **cell)
{
    const uint64_t near = near_of(&p->uses);
    const acs_site *site = p->site ? p->site : &acs_unknown_site;
    const acs_grid_from *from = &p->grid_from;
    acs_decision d = {.word = from->word,
                      .kind = from->items ? ACS_DECIDE_COUNT : ACS_DECIDE_DIM3,
                      .items = from->items,
                      .most = {p->grid.x, p->grid.y, p->grid.z}};
    branch *around = innermost(context);
    ACS_TRY(check_grid_from(p));
    if (around) {
        around->no_wait = p->no_wait != 0;
        ACS_TRY(decide_branch(around, all, near));
        d.outer = around->first;
    }
    if (!queue_with_cell(context, all, &d, near, site, p->no_wait))
        return acs_error_thread()->status;
    *cell = d.cell;
    return ACS_OK;
}

/* Let a decided launch recur: it is compared with the footprint that its record would have. */
static acs_op recur_decided(acs_context *context, const acs_launch_params *p, const acs_cell *cell)
{
    acs_segment segments[TUNE_FOOTPRINT_SEGMENTS];
    acs_launch_params decided = *p;
    if (p->uses.count >= TUNE_FOOTPRINT_SEGMENTS || (p->uses.count && !p->uses.segments))
        return 0;
    if (p->uses.count)
        memcpy(segments, p->uses.segments, p->uses.count * sizeof *segments);
    decided.uses.segments = segments;
    decided.uses.count = acs_decided_segments(segments, (uint32_t)p->uses.count, cell);
    return recur(context, &decided);
}

static acs_op launch_decided(acs_draft *draft, const acs_launch_params *p)
{
    const acs_op op = draft->cell ? recur_decided(draft->context, p, draft->cell) : 0;
    return op ? op : acs_launch_fill(draft, p) && acs_launch_bind(draft) ? acs_draft_queue(draft) : 0;
}

bool acs_decisions_decides(const acs_context *context, const acs_launch_params *p)
{
    return p->grid_from.word || (acs_context_modes(context) & ACS_MODE_DECISIONS && innermost(context));
}

acs_op acs_decisions_launch(acs_context *context, const acs_launch_params *p)
{
    acs_decisions *all;
    acs_cell *cell = NULL;
    acs_draft draft = {.context = context, .site = p->site, .name = p->kernel ? p->kernel->name : NULL,
                       .no_wait = p->no_wait != 0};
    if (!p->grid_from.word || !p->kernel)
        return acs_decisions_obey(&draft, &p->uses) ? launch_decided(&draft, p) : 0;
    if (acs_cells_open(context, &all) != ACS_OK || decide_grid(context, all, p, &cell) != ACS_OK)
        return acs_draft_drop(&draft);
    draft.cell = cell;
    draft.decision = ACS_RECORD_DECIDED | ACS_RECORD_GRID_DECIDED;
    const acs_op op = launch_decided(&draft, p);
    acs_cell_disown(all, cell);
    return op;
}

/* ------------------------------------------------------------------------------------------------------------- loops */

/* Begin an iteration: its decision reads the cell of the one before, so the loop stays over once it is. */
static acs_status begin_iteration(branch *s, acs_decisions *all)
{
    forget_decision(s, all);
    const bool again = s->iterates;
    acs_decision d = {.word = s->word,
                      .outer = s->first,
                      .cell = s->first,
                      .kind = ACS_DECIDE_UNLESS,
                      .loop = again ? 0 : s->loop};
    const acs_cell_key key = {.site = s->site, .word = s->word, .kind = d.kind};
    if (!again) {
        ACS_TRY(decide_outer(s, all, 0, &d.outer));
        ACS_TRY(get_cell(s->context, all, &key, &s->first));
        s->capture = capture_of(s->context);
        s->group = group_of(s->context);
        d.cell = s->first;
    }
    if (s->now != s->first)
        acs_cell_disown(all, s->now);
    s->now = s->first;
    s->room = ACS_DECISION_TARGETS;
    s->iterates = true;
    d.told = s->capture ? NULL : acs_cells_told(all, s->first);
    s->decision = queue_decision(s->context, all, &d, s->site, false);
    return s->decision ? ACS_OK : acs_error_thread()->status;
}

/* Whether the device has told that the loop is over. */
static bool is_over(const branch *s, acs_decisions *all)
{
    if (s->capture)
        return false;
    const uint64_t word = __atomic_load_n(acs_cells_told(all, s->first), __ATOMIC_ACQUIRE);
    return word >> 32 == s->loop && (word & 1);
}

static void wait_for(acs_context *context, acs_op op)
{
    const acs_wait_condition ended = {.type = ACS_WAIT_FOR_OP, .op = op};
    if (!acs_core_true(&context->core, &ended))
        acs_context_wait(context, ACS_WAIT_FOR_OP, op);
}

static acs_status run_loop(branch *s, acs_decisions *all, const acs_loop_params *p)
{
    acs_op ahead[TUNE_LOOP_AHEAD] = {0}; /* decisions of the latest iterations */
    acs_context *context = s->context;
    const uint32_t depth = tl_branches.count;
    for (uint32_t i = 0; i < p->most; i++) {
        acs_op *behind = &ahead[i % TUNE_LOOP_AHEAD];
        if (*behind && !s->capture) {
            wait_for(context, *behind);
            ACS_TRY(acs_failures_of(context, *behind, acs_error_thread()));
        }
        if (i > 0 && is_over(s, all))
            break;
        ACS_TRY(begin_iteration(s, all));
        *behind = s->decision;
        const int ends = p->body(context, i, p->user);
        if (tl_branches.count != depth)
            return ACS_FAIL(ACS_ERR_STATE, 0, "acs_loop: the body left sections open, or ended those around it");
        if (ends)
            break;
    }
    return ACS_OK;
}

static acs_status check_loop(acs_context *context, const acs_loop_params *p)
{
    if (!p || p->size != sizeof *p)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_loop: params %p, size %zu; the size must be %zu", (const void *)p,
                        p ? p->size : 0, sizeof *p);
    if (!p->stop || (uintptr_t)p->stop % sizeof *p->stop)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_loop: the word is at %p; it must be at a multiple of %zu, and not NULL",
                        (const void *)p->stop, sizeof *p->stop);
    if (!p->most || !p->body)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_loop: most is %u, the body is %s; neither may be 0", p->most,
                        p->body ? "set" : "NULL");
    if (group_of(context))
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_loop: this thread's ops are held in a group");
    return ACS_OK;
}

acs_status acs_loop(acs_context *context, const acs_loop_params *p)
{
    static const acs_site unnamed = {"acs_loop", NULL, 0};
    const acs_site *site = p && p->size == sizeof *p ? p->site : NULL;
    acs_decisions *all;
    context = acs_context_enter_at(context, __func__, site);
    if (!context)
        return acs_error_thread()->status;
    if (check_loop(context, p) != ACS_OK)
        return acs_failures_refuse(context, site);
    ACS_TRY(acs_cells_open(context, &all));
    branch *s = open_branch(context, p->stop, site ? site : &unnamed, ACS_DECIDE_UNLESS);
    if (!s) {
        (void)fail_depth(__func__);
        return acs_failures_refuse(context, site);
    }
    const uint32_t around = tl_branches.count - 1;
    s->loop = acs_cells_loop(all);
    const acs_status status = run_loop(s, all, p);
    while (tl_branches.count > around)
        close_branch(&tl_branches.list[tl_branches.count - 1], all);
    return status;
}


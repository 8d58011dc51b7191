/*
 * Makes an analysis of a recording (analysis.h): when ops could run and when they ran, what held them, chains, rows
 * and widths. Called when a context closes. Owns all lists of the analysis; order.c fills that of dependences. Reads
 * no clock.
 */
#include "report/analysis.h"

#include "base/hash.h"
#include "scheduler/slots.h"

#include <stdlib.h>
#include <string.h>

static uint64_t past(uint64_t to, uint64_t from)
{
    return to > from ? to - from : 0;
}

/* ----------------------------------------------------------------------------------------------------------- labels */

typedef struct known_label {
    acs_label key;
    uint32_t number;
    int hash_failed;
    UT_hash_handle hh;
} known_label;

static known_label *find_label(known_label **table, acs_analysis *a, acs_label label)
{
    known_label *known = NULL;
    acs_label key;
    memset(&key, 0, sizeof key);
    key.site = label.site;
    key.name = label.name;
    HASH_FIND(hh, *table, &key, sizeof key, known);
    if (known || !(known = calloc(1, sizeof *known)))
        return known;
    known->key = key;
    known->number = a->label_count;
    HASH_ADD(hh, *table, key, sizeof known->key, known);
    if (known->hash_failed) {
        free(known);
        return NULL;
    }
    a->labels[a->label_count++] = label;
    return known;
}

static acs_status take_labels(acs_analysis *a)
{
    known_label *table = NULL, *known, *next;
    acs_status status = ACS_OK;
    for (uint32_t i = 0; i < a->op_count && status == ACS_OK; i++) {
        known = find_label(&table, a, acs_analysis_recorded(a, i)->label);
        if (known)
            a->ops[i].label = known->number;
        else
            status = ACS_ERR_MEMORY;
    }
    HASH_ITER (hh, table, known, next) {
        HASH_DEL(table, known);
        free(known);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------------------ times */

/* An op in the order of its slot. */
typedef struct slot_op {
    int16_t slot;
    uint64_t value, batch;
    uint32_t op;
} slot_op;

static int by_slot(const void *a, const void *b)
{
    const slot_op *x = a, *y = b;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

/* Of `a` and `b` the op that ended later; ACS_PLACE_NONE stands for none. */
static uint32_t later_op(const acs_analysis *a, uint32_t x, uint32_t y)
{
    if (x == ACS_PLACE_NONE || y == ACS_PLACE_NONE)
        return x == ACS_PLACE_NONE ? y : x;
    return a->ops[x].ended > a->ops[y].ended ? x : y;
}

/* Find for each op the one that ended last of those before it in its slot, in the order in which they were issued. */
static acs_status find_behind(acs_analysis *a)
{
    slot_op *order = calloc((size_t)a->op_count + 1, sizeof *order);
    uint32_t count = 0, before = ACS_PLACE_NONE, last = ACS_PLACE_NONE; /* of all batches but the newest; of all */
    if (!order)
        return ACS_ERR_MEMORY;
    for (uint32_t i = 0; i < a->op_count; i++) {
        const acs_recorded_op *op = acs_analysis_recorded(a, i);
        a->ops[i].behind = ACS_PLACE_NONE;
        if (op->slot >= 0)
            order[count++] = (slot_op){op->slot, op->value, op->batch, i};
    }
    qsort(order, count, sizeof *order, by_slot);
    for (uint32_t i = 0; i < count; i++) {
        const bool first = i == 0 || order[i].slot != order[i - 1].slot;
        const bool beside = acs_analysis_is_bundled(acs_analysis_recorded(a, order[i].op));
        const bool same = !first && beside && order[i].batch == order[i - 1].batch;
        last = first ? ACS_PLACE_NONE : last;
        before = same ? before : last;
        a->ops[order[i].op].behind = before;
        last = later_op(a, last, order[i].op);
    }
    free(order);
    return ACS_OK;
}

static bool same_graph(const acs_analysis *a, uint32_t op, uint32_t other)
{
    const uint32_t graph = acs_analysis_recorded(a, op)->graph;
    return graph != ACS_PLACE_NONE && acs_analysis_recorded(a, other)->graph == graph;
}

static acs_status find_graph_levels(acs_analysis *a)
{
    a->graph_levels = calloc((size_t)a->recording->graph_count + 1, sizeof *a->graph_levels);
    if (!a->graph_levels)
        return ACS_ERR_MEMORY;
    for (uint32_t i = 0; i < a->op_count; i++) {
        acs_analysed_op *op = &a->ops[i];
        const uint32_t graph = acs_analysis_recorded(a, i)->graph;
        for (uint32_t k = op->first_up; k < op->first_up + op->up_count; k++)
            if (same_graph(a, i, a->ups[k]) && a->ops[a->ups[k]].graph_level > op->graph_level)
                op->graph_level = a->ops[a->ups[k]].graph_level;
        op->graph_level++;
        if (graph != ACS_PLACE_NONE && op->graph_level > a->graph_levels[graph])
            a->graph_levels[graph] = op->graph_level;
    }
    return ACS_OK;
}

/* The part of its graph's time in which an op ran, by its level. `begin`: of the graph, where its time is not known. */
static void share_time(const acs_analysis *a, acs_analysed_op *op, const acs_recorded_op *from, uint64_t begin)
{
    const acs_recorded_graph *graph = &a->recording->graphs[from->graph];
    const uint64_t began = graph->ended ? graph->began : begin;
    const uint64_t all = past(graph->ended ? graph->ended : from->ended, began);
    const uint32_t levels = a->graph_levels[from->graph];
    op->ended = began + all * op->graph_level / levels;
    op->began = began + all * (op->graph_level - 1) / levels;
}

static void find_held(acs_analysis *a, acs_analysed_op *op, const acs_recorded_op *from, uint64_t dependence,
                      uint64_t stream, bool full)
{
    const uint64_t taken = acs_max(op->entered, dependence), could = acs_max(taken, from->inserted);
    const uint64_t issued = acs_max(could, from->issued);
    op->held_ns[ACS_HOLD_DEPENDENCE] = past(dependence, op->entered);
    op->held_ns[full ? ACS_HOLD_WINDOW : ACS_HOLD_ISSUE] = past(from->inserted, taken);
    op->held_ns[ACS_HOLD_ISSUE] += past(from->issued, could);
    op->held_ns[ACS_HOLD_STREAM] = past(stream < op->began ? stream : op->began, issued);
    op->reason = ACS_HOLD_NONE;
    for (uint8_t reason = 1; reason < ACS_HOLD_COUNT; reason++) {
        a->held_ns[reason] += op->held_ns[reason];
        if (op->held_ns[reason] > op->held_ns[op->reason])
            op->reason = reason;
    }
}

/* The upstream op that ended last, and the chains that end with the op. Returns that op's end. */
static uint64_t look_upstream(acs_analysis *a, acs_analysed_op *op)
{
    uint64_t end = 0;
    op->waited_for = op->up_segment = op->segment = ACS_PLACE_NONE;
    for (uint32_t i = op->first_up; i < op->first_up + op->up_count; i++) {
        const acs_analysed_op *up = &a->ops[a->ups[i]];
        if (op->waited_for == ACS_PLACE_NONE || up->ended > end) {
            op->waited_for = a->ups[i];
            end = up->ended;
        }
        op->level = up->level > op->level ? up->level : op->level;
    }
    op->level++;
    return end;
}

/* What was in the window, op by op. A replay takes one place. */
typedef struct places {
    const acs_recording *recording;
    uint64_t *ended;      /* in rising order */
    uint32_t count, next; /* number of ends; place in recording.ops */
    uint64_t inserted, gone;
} places;

/* Whether the window was full when the op entered it. Called in program order. */
static bool was_full(places *p, const acs_recorded_op *op, uint64_t window)
{
    for (; p->next < p->recording->op_count && p->recording->ops[p->next].seq <= op->seq; p->next++)
        p->inserted += p->recording->ops[p->next].whole == ACS_PLACE_NONE;
    while (p->gone < p->count && p->ended[p->gone] < op->inserted)
        p->gone++;
    return p->inserted >= window + p->gone;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void find_time(acs_analysis *a, uint32_t number, places *window)
{
    acs_analysed_op *op = &a->ops[number];
    const acs_recorded_op *from = acs_analysis_recorded(a, number);
    const uint64_t dependence = look_upstream(a, op);
    const uint64_t stream = op->behind == ACS_PLACE_NONE ? 0 : a->ops[op->behind].ended;
    const uint64_t begin = acs_max(from->issued, stream);
    op->ready = acs_max(from->inserted, dependence);
    op->began = begin;
    if (from->ran_to)
        op->began = from->ran_from;
    else if (from->graph != ACS_PLACE_NONE)
        share_time(a, op, from, begin);
    op->began = acs_max(op->began, dependence);
    op->ended = acs_max(op->ended, acs_max(op->entered, dependence)); /* it was learnt in another order, in one look */
    op->began = acs_max(op->began, op->entered);
    op->began = op->began < op->ended ? op->began : op->ended;
    const bool behind_up = op->behind != ACS_PLACE_NONE && op->behind == op->waited_for;
    find_held(a, op, from, dependence, behind_up ? 0 : stream, was_full(window, from, a->window));
    if (op->waited_for != ACS_PLACE_NONE)
        op->conflict =
            (uint8_t)acs_analysis_conflict(a, op->waited_for, number, &op->up_segment, &op->segment);
}

static acs_status find_times(acs_analysis *a)
{
    const acs_recording *r = a->recording;
    places window = {.recording = r, .ended = calloc((size_t)r->op_count + 1, sizeof *window.ended)};
    const acs_status status = window.ended ? find_behind(a) : ACS_ERR_MEMORY;
    for (uint32_t i = 0; i < r->op_count && status == ACS_OK; i++)
        if (r->ops[i].whole == ACS_PLACE_NONE)
            window.ended[window.count++] = r->ops[i].ended;
    if (status == ACS_OK)
        qsort(window.ended, window.count, sizeof *window.ended, by_value);
    for (uint32_t i = 0; i < a->op_count && status == ACS_OK; i++)
        find_time(a, i, &window);
    free(window.ended);
    return status;
}

uint32_t acs_analysis_op_before(const acs_analysis *a, acs_op seq)
{
    uint32_t low = 0, high = a->op_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (acs_analysis_recorded(a, middle)->seq <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : ACS_PLACE_NONE;
}

uint32_t acs_analysis_label_before(const acs_analysis *a, acs_op seq)
{
    const uint32_t op = acs_analysis_op_before(a, seq);
    return op == ACS_PLACE_NONE ? ACS_PLACE_NONE : a->ops[op].label;
}

static acs_status find_conflicts(acs_analysis *a)
{
    uint32_t up_segment, segment;
    a->up_conflicts = calloc((size_t)a->up_count + 1, sizeof *a->up_conflicts);
    if (!a->up_conflicts)
        return ACS_ERR_MEMORY;
    for (uint32_t i = 0; i < a->op_count; i++)
        for (uint32_t k = a->ops[i].first_up; k < a->ops[i].first_up + a->ops[i].up_count; k++)
            a->up_conflicts[k] = (uint8_t)acs_analysis_conflict(a, a->ups[k], i, &up_segment, &segment);
    return ACS_OK;
}

/* ---------------------------------------------------------------------------------------------------------- summary */

/* A change of the number of ops that wait to run, run, or are in the window. */
typedef struct change {
    uint64_t at_ns;
    int8_t ready, running, window;
} change;

/* What ends comes before what begins at the same time. */
static int by_change_time(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return (x->running + x->window) - (y->running + y->window);
}

static uint32_t most(uint32_t a, int32_t b)
{
    return b > 0 && (uint32_t)b > a ? (uint32_t)b : a;
}

/* Add up the changes; busy_ns, and the most of each within each of ACS_ANALYSIS_POINTS equal parts of the time. */
static void add_up(acs_analysis *a, const change *changes, size_t count)
{
    acs_widths *w = &a->widths;
    int32_t ready = 0, running = 0, window = 0;
    const uint64_t step = past(a->last_ns, a->first_ns) / ACS_ANALYSIS_POINTS + 1;
    uint64_t before = a->first_ns;
    w->count = ACS_ANALYSIS_POINTS;
    for (size_t i = 0, point = 0; point < ACS_ANALYSIS_POINTS; point++) {
        w->at_ns[point] = a->first_ns + step * (point + 1);
        w->ready[point] = most(0, ready);
        w->running[point] = most(0, running);
        w->window[point] = most(0, window);
        for (; i < count && changes[i].at_ns < w->at_ns[point]; i++) {
            a->busy_ns += running > 0 ? changes[i].at_ns - before : 0;
            before = changes[i].at_ns;
            ready += changes[i].ready;
            running += changes[i].running;
            window += changes[i].window;
            if (i + 1 < count && changes[i + 1].at_ns == before)
                continue;
            w->ready[point] = most(w->ready[point], ready);
            w->running[point] = most(w->running[point], running);
            w->window[point] = most(w->window[point], window);
        }
    }
}

static acs_status find_widths(acs_analysis *a)
{
    size_t count = 0;
    change *changes = calloc(4 * (size_t)a->op_count + 1, sizeof *changes);
    if (!changes)
        return ACS_ERR_MEMORY;
    for (uint32_t i = 0; i < a->op_count; i++) {
        const acs_analysed_op *op = &a->ops[i];
        const uint64_t inserted = acs_analysis_recorded(a, i)->inserted;
        changes[count++] = (change){inserted < op->ended ? inserted : op->ended, 0, 0, 1};
        changes[count++] = (change){op->ready < op->began ? op->ready : op->began, 1, 0, 0};
        changes[count++] = (change){op->began, -1, 1, 0};
        changes[count++] = (change){op->ended, 0, -1, -1};
    }
    qsort(changes, count, sizeof *changes, by_change_time);
    add_up(a, changes, count);
    free(changes);
    return ACS_OK;
}

static acs_status find_alone(acs_analysis *a)
{
    uint64_t *times = calloc((size_t)a->op_count + 1, sizeof *times);
    uint32_t *next =
        calloc((size_t)a->label_count + 2, sizeof *next); /* by label: where its next time goes in `times` */
    a->alone_ns = calloc((size_t)a->label_count + 1, sizeof *a->alone_ns);
    const acs_status status = times && next && a->alone_ns ? ACS_OK : ACS_ERR_MEMORY;
    if (status == ACS_OK) {
        for (uint32_t i = 0; i < a->op_count; i++)
            next[a->ops[i].label + 1]++;
        for (uint32_t label = 0; label < a->label_count; label++)
            next[label + 1] += next[label];
        for (uint32_t i = 0; i < a->op_count; i++)
            times[next[a->ops[i].label]++] = acs_analysis_time(&a->ops[i]);
        for (uint32_t label = 0, first = 0; label < a->label_count; first = next[label++]) {
            qsort(times + first, next[label] - first, sizeof *times, by_value);
            a->alone_ns[label] = times[first + (next[label] - first) / 10];
        }
    }
    free(times);
    free(next);
    return status;
}

/* The longest chains of ops, each as long as it takes alone: by all dependences, and by RAW. */
static void find_chains(acs_analysis *a)
{
    for (uint32_t i = 0; i < a->op_count; i++) {
        acs_analysed_op *op = &a->ops[i];
        for (uint32_t k = op->first_up; k < op->first_up + op->up_count; k++) {
            op->chain_ns = acs_max(op->chain_ns, a->ops[a->ups[k]].chain_ns);
            if (a->up_conflicts[k] == ACS_CONFLICT_RAW)
                op->needed_ns = acs_max(op->needed_ns, a->ops[a->ups[k]].needed_ns);
        }
        op->chain_ns += a->alone_ns[op->label];
        op->needed_ns += a->alone_ns[op->label];
        a->needed_ns = acs_max(a->needed_ns, op->needed_ns);
    }
}

static void sum_up(acs_analysis *a)
{
    uint32_t last = ACS_PLACE_NONE;
    a->first_ns = a->op_count ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < a->op_count; i++) {
        const acs_analysed_op *op = &a->ops[i];
        a->first_ns = op->entered < a->first_ns ? op->entered : a->first_ns;
        a->last_ns = acs_max(a->last_ns, op->ended);
        a->work_ns += acs_analysis_time(op);
        a->alone_work_ns += a->alone_ns[op->label];
        a->levels = op->level > a->levels ? op->level : a->levels;
        a->kernels += acs_analysis_recorded(a, i)->kind == ACS_KIND_KERNEL;
        if (op->chain_ns > a->chain_ns) {
            a->chain_ns = op->chain_ns;
            last = i;
        }
    }
    while (last != ACS_PLACE_NONE) {
        acs_analysed_op *op = &a->ops[last];
        const uint64_t before = op->chain_ns - a->alone_ns[op->label];
        op->critical = true;
        last = ACS_PLACE_NONE;
        for (uint32_t i = op->first_up; i < op->first_up + op->up_count; i++)
            if (a->ops[a->ups[i]].chain_ns == before)
                last = a->ups[i];
    }
}

/* ------------------------------------------------------------------------------------------------------------ lanes */

typedef struct run {
    uint64_t began, ended;
    uint32_t op;
} run;

static int by_begin(const void *a, const void *b)
{
    const run *x = a, *y = b;
    if (x->began != y->began)
        return x->began < y->began ? -1 : 1;
    return (x->ended > y->ended) - (x->ended < y->ended);
}

/* Give ops that run at once in one slot rows of their own. */
static acs_status find_lanes(acs_analysis *a)
{
    run *order = calloc((size_t)a->op_count + 1, sizeof *order);
    uint64_t(*ends)[ACS_LANES] = calloc(ACS_SLOTS_MAX + 1, sizeof *ends);
    if (!order || !ends) {
        free(order);
        free(ends);
        return ACS_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < a->op_count; i++)
        order[i] = (run){a->ops[i].began, a->ops[i].ended, i};
    qsort(order, a->op_count, sizeof *order, by_begin);
    for (uint32_t i = 0; i < a->op_count; i++) {
        acs_analysed_op *op = &a->ops[order[i].op];
        uint64_t *end = ends[acs_analysis_recorded(a, order[i].op)->slot + 1];
        while (op->lane < ACS_LANES && end[op->lane] > op->began)
            op->lane++;
        if (op->lane < ACS_LANES)
            end[op->lane] = op->ended > op->began ? op->ended : op->began + 1; /* slices have a length */
    }
    free(order);
    free(ends);
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------- make, free */

/* A replay as a whole, an op that did not run, or one of which too little is known. */
static bool is_left_out(const acs_recorded_op *op)
{
    return op->kind == ACS_KIND_REPLAY || !op->ended || !op->inserted || !op->issued;
}

static void take_ops(acs_analysis *a)
{
    const acs_recording *r = a->recording;
    for (uint32_t i = 0; i < r->op_count; i++) {
        const acs_recorded_op *op = &r->ops[i];
        if (is_left_out(op))
            continue;
        a->ops[a->op_count++] =
            (acs_analysed_op){.place = i,
                              .entered = op->entered && op->entered < op->inserted ? op->entered : op->inserted,
                              .ended = op->ran_to ? op->ran_to : op->ended,
                              .pair = ACS_PLACE_NONE};
    }
}

static acs_status analyse(acs_analysis *a, bool in_order)
{
    if (!a->ops || !a->labels)
        return ACS_ERR_MEMORY;
    take_ops(a);
    ACS_TRY(take_labels(a));
    ACS_TRY(acs_analysis_index_blocks(a));
    ACS_TRY(acs_analysis_order(a, in_order));
    ACS_TRY(find_conflicts(a));
    ACS_TRY(find_graph_levels(a));
    ACS_TRY(find_times(a));
    ACS_TRY(find_alone(a));
    find_chains(a);
    sum_up(a);
    ACS_TRY(find_widths(a));
    return find_lanes(a);
}

acs_status acs_analysis_make(const acs_recording *recording, uint64_t window, bool in_order, acs_analysis *analysis)
{
    *analysis = (acs_analysis){.recording = recording,
                               .window = window,
                               .ops = calloc((size_t)recording->op_count + 1, sizeof *analysis->ops),
                               .labels = calloc((size_t)recording->op_count + 1, sizeof *analysis->labels)};
    if (analyse(analysis, in_order) == ACS_OK)
        return ACS_OK;
    acs_analysis_free(analysis);
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to analyse %u ops", recording->op_count);
}

void acs_analysis_free(acs_analysis *analysis)
{
    free(analysis->ops);
    free(analysis->ups);
    free(analysis->up_conflicts);
    free(analysis->labels);
    free(analysis->blocks);
    free(analysis->graph_levels);
    free(analysis->alone_ns);
    *analysis = (acs_analysis){0};
}

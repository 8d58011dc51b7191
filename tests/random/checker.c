/*
 * The checker of recorded runs. Called by the random programs and by test_pairs: events come in through checker_event
 * while the run goes on (under the core's lock, so one at a time), checker_verify judges at the end. It uses its own
 * overlap code, and of the library only what the trace says, and that a backend puts the waits of an item into its
 * slot also if the item then fails, bounces or is skipped (backend.h): such attempts hand on order without having run.
 *
 * A bundle is one place in its slot: all its ops are behind what was there, and behind the waits of its first op; among
 * themselves only the bundle's edges order them.
 */
#include "checker.h"
#include "overlap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct traced {
    acs_op seq;             /* 0: not seen */
    uint8_t kind;
    const char *name;
    acs_op target;          /* CALLBACK */
    footprint uses;
    footprint reuses;       /* blocks that were handed out again just before it */
    acs_segment *segments, *reused;
    uint64_t issued, retired; /* when, counted in events; 0: never */
    int slot;
    uint64_t value;
    acs_mark *waits;        /* its own, or of its bundle's first op */
    uint32_t wait_count;
    uint64_t bundle;        /* number of the bundle; 0: none */
    bool leader;            /* its first op */
    acs_op *behind;         /* of its bundle, through joins */
    uint32_t behind_count;
    acs_status status;
    uint64_t *before;       /* ops that must have ended before this one starts, one bit each */
} traced;

struct checker {
    traced *ops;            /* op n at n - 1; behind them, once judged, the attempts */
    size_t count, capacity;
    traced *attempts;       /* issues that came to nothing: the op was issued again later */
    size_t attempt_count, attempt_capacity;
    uint64_t bundles;
    uint64_t clock;
    size_t words;           /* of a set of ops */
    uint64_t *bits;         /* all the sets */
    bool no_memory;
};

checker *checker_create(void)
{
    return calloc(1, sizeof(checker));
}

void checker_destroy(checker *c)
{
    for (size_t i = 0; c && i < c->count; i++) {
        free(c->ops[i].segments);
        free(c->ops[i].reused);
        free(c->ops[i].waits);
        free(c->ops[i].behind);
    }
    for (size_t i = 0; c && i < c->attempt_count; i++) {
        free(c->attempts[i].waits);
        free(c->attempts[i].behind);
    }
    if (c) {
        free(c->ops);
        free(c->attempts);
        free(c->bits);
    }
    free(c);
}

/* -------------------------------------------------------------------------------------------------------- recording */

static void *copy_of(checker *c, const void *bytes, size_t size)
{
    void *copy = malloc(size + 1);
    if (!copy)
        c->no_memory = true;
    else if (size)
        memcpy(copy, bytes, size);
    return copy;
}

static traced *traced_at(checker *c, acs_op seq)
{
    if (seq > c->capacity) {
        size_t capacity = (size_t)seq * 2 + 64;
        traced *ops = realloc(c->ops, capacity * sizeof *ops);
        if (!ops) {
            c->no_memory = true;
            return NULL;
        }
        memset(ops + c->capacity, 0, (capacity - c->capacity) * sizeof *ops);
        c->ops = ops;
        c->capacity = capacity;
    }
    if (seq > c->count)
        c->count = (size_t)seq;
    return &c->ops[seq - 1];
}

static void note_reuses(checker *c, traced *t, const acs_record *op)
{
    const acs_reuse *first = op->flags & ACS_RECORD_REUSES ? op->reuses : NULL;
    size_t count = 0;
    for (const acs_reuse *r = first; r; r = r->next)
        count++;
    t->reused = count ? malloc(count * sizeof *t->reused) : NULL;
    c->no_memory |= count && !t->reused;
    t->reuses = (footprint){t->reused, t->reused ? count : 0, false};
    for (const acs_reuse *r = first; r && t->reused; r = r->next)
        t->reused[--count] = ACS_OUT((void *)(uintptr_t)r->base, r->bytes);
}

static void note_insert(checker *c, traced *t, const acs_record *op)
{
    t->seq = op->seq;
    t->kind = op->kind;
    t->name = op->site ? op->site->name : "";
    t->target = op->kind == ACS_KIND_CALLBACK ? op->u.callback.target : 0;
    t->segments = copy_of(c, op->segments, op->segment_count * sizeof *op->segments);
    note_reuses(c, t, op);
    t->uses = (footprint){t->segments, t->segments ? op->segment_count : 0, op->any != 0};
    t->slot = -1;
}

/* The op was issued before, and will be again: that attempt's place in its slot stays. */
static void keep_attempt(checker *c, traced *t)
{
    if (c->attempt_count == c->attempt_capacity) {
        size_t capacity = c->attempt_capacity * 2 + 16;
        traced *attempts = realloc(c->attempts, capacity * sizeof *attempts);
        if (!attempts) {
            c->no_memory = true;
            return;
        }
        c->attempts = attempts;
        c->attempt_capacity = capacity;
    }
    c->attempts[c->attempt_count] = *t;
    c->attempts[c->attempt_count].retired = 0;
    c->attempts[c->attempt_count++].segments = NULL;
    t->waits = NULL;
    t->behind = NULL;
}

/* The ops that an item of a bundle has edges to, those that a join stands for among them; some more than once. */
static void list_behind(const acs_batch *bundle, uint32_t item, acs_op *behind, uint32_t *count)
{
    const acs_item *from = &bundle->items[item];
    for (uint32_t e = 0; e < from->edge_count; e++) {
        uint32_t to = bundle->edges[from->first_edge + e];
        if (!bundle->items[to].op)
            list_behind(bundle, to, behind, count);
        else if (*count < ACS_BATCH_EDGES)
            behind[(*count)++] = bundle->items[to].op->seq;
    }
}

/* Once per bundle: its first op's waits are everybody's. */
static void note_bundle(checker *c, traced *t, const acs_trace_event *event)
{
    acs_op behind[ACS_BATCH_EDGES];
    uint32_t count = 0;
    const acs_item *first = &event->bundle->items[0];
    c->bundles += event->item == 0;
    t->bundle = c->bundles;
    t->leader = event->item == 0;
    list_behind(event->bundle, event->item, behind, &count);
    t->behind = copy_of(c, behind, count * sizeof *behind);
    t->behind_count = t->behind ? count : 0;
    free(t->waits);
    t->waits = copy_of(c, &event->bundle->waits[first->first_wait], first->wait_count * sizeof *t->waits);
    t->wait_count = t->waits ? first->wait_count : 0;
}

static void note_issue(checker *c, traced *t, const acs_trace_event *event)
{
    if (t->issued)
        keep_attempt(c, t);
    free(t->waits);
    free(t->behind);
    t->behind = NULL;
    t->bundle = t->behind_count = 0;
    t->leader = false;
    t->issued = c->clock;
    t->slot = event->slot;
    t->value = event->value;
    t->waits = copy_of(c, event->waits, event->wait_count * sizeof *event->waits);
    t->wait_count = t->waits ? event->wait_count : 0;
    if (event->bundle)
        note_bundle(c, t, event);
}

void checker_event(void *user, const acs_trace_event *event)
{
    checker *c = user;
    if (event->seq == 0 || (event->op && event->op->kind == ACS_KIND_JOIN))
        return;
    traced *t = traced_at(c, event->seq);
    if (!t)
        return;
    c->clock++;
    if (event->type == ACS_TRACE_INSERT) {
        note_insert(c, t, event->op);
    } else if (event->type == ACS_TRACE_ISSUE) {
        note_issue(c, t, event);
    } else {
        t->retired = c->clock;
        t->status = event->status;
    }
}

void checker_dump(const checker *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const traced *t = &c->ops[i];
        fprintf(stderr,
                "  op %" PRIu64 " kind %u %s: issued at %" PRIu64 " slot %d value %" PRIu64 ", ended at %" PRIu64 " %s",
                t->seq, t->kind, t->name, t->issued, t->slot, t->value, t->retired, acs_status_name(t->status));
        for (uint32_t w = 0; w < t->wait_count; w++)
            fprintf(stderr, ", wait (%u, %" PRIu64 ")", t->waits[w].slot, t->waits[w].value);
        if (t->bundle)
            fprintf(stderr, ", bundle %" PRIu64, t->bundle);
        for (uint32_t k = 0; k < t->behind_count; k++)
            fprintf(stderr, "%s%" PRIu64, k ? ", " : " behind op ", t->behind[k]);
        fputc('\n', stderr);
    }
}

/* ------------------------------------------------------------------------------------------------------------ order */

static bool ran(const traced *t)
{
    return t->seq && (t->issued || t->retired) && (t->status == ACS_OK || t->status == ACS_ERR_HOST);
}

static bool has(const uint64_t *set, size_t i)
{
    return set[i / 64] >> (i % 64) & 1;
}

/* When an op began; one that is never issued (acs_wait_range and the like) when it ended. 0: neither. */
static uint64_t start_of(const traced *t)
{
    return t->issued ? t->issued : t->retired;
}

/* Whether x is ordered before b by what was put into slots; wait number `without` of b is left out. */
static bool in_front_of(const traced *x, const traced *b, uint32_t without)
{
    if (!x->issued || x->issued >= start_of(b) || x->slot < 0)
        return false;
    if (x->bundle && x->bundle == b->bundle) {
        for (uint32_t i = 0; i < b->behind_count; i++)
            if (b->behind[i] == x->seq)
                return true;
        return false;
    }
    if (x->slot == b->slot && x->value < b->value)
        return true;
    for (uint32_t w = 0; w < b->wait_count; w++)
        if (w != without && b->waits[w].slot == x->slot && x->value <= b->waits[w].value)
            return true;
    return false;
}

/*
 * All ops that must have ended before b starts: those in front of it in slots and those seen to end, each with what it
 * is behind itself. The end of an op that did not run says nothing of what it was behind.
 */
static void collect_before(const checker *c, const traced *b, uint32_t without, uint64_t *set)
{
    memset(set, 0, c->words * sizeof *set);
    for (size_t i = 0; i < c->count + c->attempt_count; i++) {
        const traced *x = &c->ops[i];
        if (!x->seq || x == b)
            continue;
        bool in_front = in_front_of(x, b, without), ended = x->retired && x->retired < start_of(b);
        if (in_front || ended)
            set[i / 64] |= 1ull << (i % 64);
        for (size_t w = 0; (in_front || (ended && ran(x))) && w < c->words; w++)
            set[w] |= x->before[w];
    }
}

static int by_start(const void *a, const void *b)
{
    uint64_t x = start_of(*(traced *const *)a), y = start_of(*(traced *const *)b);
    return x < y ? -1 : x > y;
}

/* Put the attempts behind the ops, so that one index names either. */
static bool join_attempts(checker *c)
{
    traced *all = realloc(c->ops, (c->count + c->attempt_count + 1) * sizeof *all);
    if (!all)
        return false;
    if (c->attempt_count)
        memcpy(all + c->count, c->attempts, c->attempt_count * sizeof *all);
    c->ops = all;
    return true;
}

/* Fill in every op's set, in the order of their starts: what an op is behind started earlier. */
static bool find_order(checker *c)
{
    size_t total = c->count + c->attempt_count;
    traced **order = malloc((total + 1) * sizeof *order);
    c->words = total / 64 + 1;
    c->bits = calloc((total + 1) * c->words, sizeof *c->bits);
    if (!order || !c->bits || !join_attempts(c)) {
        free(order);
        return false;
    }
    for (size_t i = 0; i < total; i++) {
        order[i] = &c->ops[i];
        c->ops[i].before = c->bits + i * c->words;
    }
    qsort(order, total, sizeof *order, by_start);
    for (size_t i = 0; i < total; i++)
        if (order[i]->seq)
            collect_before(c, order[i], UINT32_MAX, order[i]->before);
    free(order);
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- judging */

static bool complain(checker_report *report, const traced *a, const traced *b, const char *what)
{
    snprintf(report->text, sizeof report->text,
             "%s: op %" PRIu64 " (%s, slot %d value %" PRIu64 ") and op %" PRIu64 " (%s, slot %d value %" PRIu64
             ", %u waits)",
             what, a->seq, a->name, a->slot, a->value, b->seq, b->name, b->slot, b->value, b->wait_count);
    return false;
}

/* Ops that only look do not make others wait. */
static bool orders_later_ops(const traced *t)
{
    return t->kind != ACS_KIND_OBSERVE && t->kind != ACS_KIND_STREAM_SIGNAL && t->kind != ACS_KIND_CALLBACK;
}

/* Whether b has to come behind a: they conflict, or a used a block that was handed out again, and that b uses. */
static bool must_follow(const checker *c, const traced *b, const traced *a)
{
    if (footprint_conflict(&a->uses, &b->uses))
        return true;
    for (size_t i = (size_t)a->seq; i < (size_t)b->seq; i++)
        for (size_t k = 0; k < c->ops[i].reuses.count; k++) {
            const footprint block = {&c->ops[i].reuses.list[k], 1, false};
            if (footprint_conflict(&a->uses, &block) && footprint_conflict(&block, &b->uses))
                return true;
        }
    return false;
}

static bool check_pair(const checker *c, const traced *a, const traced *b, checker_report *report)
{
    if (b->kind == ACS_KIND_CALLBACK && b->target == a->seq && !(a->retired && a->retired < b->retired))
        return complain(report, a, b, "a callback ran before its op had retired");
    if (!orders_later_ops(a) || !ran(a) || !footprint_conflict(&a->uses, &b->uses))
        return true;
    if (!has(b->before, (size_t)(a - c->ops)))
        return complain(report, a, b, "a required order is missing");
    report->pairs++;
    report->same_slot += a->slot >= 0 && a->slot == b->slot;
    return true;
}

/* Whether an earlier op had a wait on a mark of this slot in [from, to). */
static bool tighter_mark(const checker *c, const traced *b, int slot, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < c->count; i++) {
        const traced *x = &c->ops[i];
        for (uint32_t w = 0; x->issued && x->issued < b->issued && w < x->wait_count; w++)
            if (x->waits[w].slot == slot && x->waits[w].value >= from && x->waits[w].value < to)
                return true;
    }
    return false;
}

/* Whether the wait of b, which is all its bundle's if b leads one, is for an op that has to come behind `a`. */
static bool wait_is_for(const checker *c, const traced *b, const traced *a)
{
    if (!b->bundle)
        return a->seq < b->seq && must_follow(c, b, a);
    for (size_t i = (size_t)a->seq; i < c->count; i++)
        if (c->ops[i].bundle == b->bundle && must_follow(c, &c->ops[i], a))
            return true;
    return false;
}

/* The latest op for which the wait is, and that is ordered before b by nothing in `set`. */
static const traced *needs_wait(const checker *c, const traced *b, const acs_mark *mark, const uint64_t *set)
{
    const traced *latest = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const traced *a = &c->ops[i];
        if (!a->issued || a->slot != mark->slot || a->value > mark->value || has(set, i) || !orders_later_ops(a))
            continue;
        if ((!latest || a->value > latest->value) && wait_is_for(c, b, a))
            latest = a;
    }
    return latest;
}

/*
 * Whether b waits for a place in a slot that an op had in an attempt which came to nothing. The library does not take
 * back what it noted for such an attempt, and does not know what the attempt's own waits imply: both only after a
 * bounce.
 */
static bool waits_for_attempt(const checker *c, const traced *b)
{
    for (size_t i = c->count; i < c->count + c->attempt_count; i++)
        if (c->ops[i].slot != b->slot && in_front_of(&c->ops[i], b, UINT32_MAX))
            return true;
    return false;
}

/* The same of an op in front of b: what that waited for tells the checker more than the library, too. */
static bool follows_such_a_wait(const checker *c, const traced *b)
{
    for (size_t i = 0; c->attempt_count && i < c->count; i++)
        if (c->ops[i].issued && has(b->before, i) && waits_for_attempt(c, &c->ops[i]))
            return true;
    return false;
}

/* Whether b led a bundle that was refused: it keeps what the others had to wait for, which only a bounce shows. */
static bool led_a_refused_bundle(const checker *c, const traced *b)
{
    for (size_t i = c->count; i < c->count + c->attempt_count; i++)
        if (c->ops[i].seq == b->seq && c->ops[i].leader)
            return true;
    return false;
}

static bool check_wait(const checker *c, const traced *b, uint32_t wait, uint64_t *set, checker_report *report)
{
    const acs_mark *mark = &b->waits[wait];
    collect_before(c, b, wait, set);
    const traced *latest = needs_wait(c, b, mark, set);
    bool late = latest && latest->value < mark->value && tighter_mark(c, b, mark->slot, latest->value, mark->value);
    bool stale = waits_for_attempt(c, b) || follows_such_a_wait(c, b) || led_a_refused_bundle(c, b);
    if ((!latest || late) && stale) {
        report->stale_waits++;
        return true;
    }
    if (!latest) {
        char what[80];
        snprintf(what, sizeof what, "wait for slot %u value %" PRIu64 " is not needed", mark->slot, mark->value);
        return complain(report, b, b, what);
    }
    if (late)
        return complain(report, latest, b, "a wait is for a later mark than one that existed");
    report->waits++;
    report->late_marks += latest->value < mark->value;
    return true;
}

static bool check_op(checker *c, const traced *b, int64_t slots, uint64_t *set, checker_report *report)
{
    if (b->slot >= slots)
        return complain(report, b, b, "a slot that does not exist");
    for (const traced *a = c->ops; a < b; a++)
        if (a->seq && !check_pair(c, a, b, report))
            return false;
    for (uint32_t w = 0; w < b->wait_count && (!b->bundle || b->leader); w++)
        if (!check_wait(c, b, w, set, report))
            return false;
    return true;
}

bool checker_verify(checker *c, int64_t slots, checker_report *report)
{
    memset(report, 0, sizeof *report);
    uint64_t *set = find_order(c) ? malloc(c->words * sizeof *set) : NULL;
    if (c->no_memory || !set) {
        free(set);
        snprintf(report->text, sizeof report->text, "memory is exhausted");
        return false;
    }
    bool good = true;
    for (size_t i = 0; i < c->count && good; i++)
        if (ran(&c->ops[i]))
            good = check_op(c, &c->ops[i], slots, set, report);
    free(set);
    return good;
}

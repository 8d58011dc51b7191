/*
 * The oracle: runs a program serially in program order on memory of its own, decides which ops fail and which are
 * skipped, and compares with what the library did: the status of every op, the cause of every skip, callbacks, what
 * waits returned, what the program saw in between, and all bytes at the end. Called by main.c after program_run.
 */
#include "program.h"
#include "sections.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOWHERE = 8 }; /* an address that no arena has */

typedef struct oracle {
    program *p;
    verdict *v;
    random_totals *totals;
    step **poison;          /* failed and skipped ops since the last clear */
    uint32_t poison_count;
    uint32_t origins;       /* of them, originally failed */
    bool refused;           /* a launch was refused since the last clear */
    const step *now;        /* the step that is judged */
    bool one_order;         /* all threads share one order: the context's first error is known */
    uint32_t root_words;
} oracle;

void verdict_fail(verdict *v, const char *format, ...)
{
    if (v->failed)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(v->text, sizeof v->text, format, list);
    va_end(list);
    v->failed = true;
}

const char *step_name(const step *s)
{
    static const char *const names[STEP_KINDS] = {
        "kernel", "memcpy", "memset", "host function", "call", "after_stream", "malloc", "free", "callback",
        "wait", "query", "wait_range", "stream_after", "sync", "clear", "step", "refused launch", "nothing"};
    return names[s->kind];
}

static footprint footprint_of(const step *s)
{
    return (footprint){s->segments, s->segment_count, s->any};
}

/* ----------------------------------------------------------------------------------------- what an op does to truth */

static uint64_t truth_address(const oracle *o, const span *s)
{
    return (uint64_t)(uintptr_t)(o->p->arenas[s->arena].truth + s->offset);
}

/* Who wrote each byte, for the message about a difference. */
static void note_writer(const oracle *o, const step *s)
{
    for (uint32_t i = 0; i < s->work_count; i++) {
        const span *w = &s->work[i];
        uint32_t *writers = o->p->arenas[w->arena].writers;
        for (uint32_t r = 0; writers && (w->access & ACS_WRITE) && r < w->rows; r++)
            for (uint32_t c = 0; c < w->row_bytes; c++)
                writers[w->offset + r * w->pitch + c] = s->index + 1;
    }
}

static void run_mix(const oracle *o, const step *s)
{
    static unsigned char extra_bytes[ACS_ARG_BYTES_MAX];
    const unsigned char *extras[MIX_EXTRAS];
    mix_piece pieces[MIX_PIECES] = {{0}};
    mix_head head = step_head(o->p, s);
    const uint16_t *sizes = s->extra_bytes;
    uint32_t fit, used = 0;
    head.spin = 0;
    if (s->kind == STEP_KERNEL)
        head.extras = signature_extras(s->signature, &sizes, &fit);
    for (uint32_t j = 0; j < head.extras; j++) {
        head.extra_bytes[j] = sizes[j];
        extras[j] = extra_bytes + used;
        for (uint32_t k = 0; k < sizes[j]; k++)
            extra_bytes[used++] = mix_extra_byte(s->id, j, k);
    }
    for (uint32_t i = 0; i < s->work_count; i++) {
        const span *w = &s->work[i];
        pieces[i] = (mix_piece){truth_address(o, w), w->row_bytes, w->rows, w->pitch, w->access, 0};
    }
    mix_run(&head, pieces, extras, s->counted ? sections_blocks(o->p, s) : s->grid);
}

static void execute(const oracle *o, const step *s)
{
    if (s->kind == STEP_MEMCPY)
        memmove((void *)(uintptr_t)truth_address(o, &s->work[0]), (void *)(uintptr_t)truth_address(o, &s->work[1]),
                s->work[0].row_bytes);
    else if (s->kind == STEP_MEMSET || s->kind == STEP_ALLOC)
        memset((void *)(uintptr_t)truth_address(o, &s->work[0]), s->value, s->work[0].row_bytes);
    else if (s->kind == STEP_HOST || s->kind == STEP_CALL || (s->kind == STEP_KERNEL && s->signature >= 0))
        run_mix(o, s);
    if (s->kind != STEP_AFTER_STREAM && !(s->kind == STEP_KERNEL && s->signature < 0))
        note_writer(o, s);
}

/* ----------------------------------------------------------------------------------------------- failures and skips */

static void add_poison(oracle *o, step *s, acs_status fate)
{
    s->fate = fate;
    o->poison[o->poison_count++] = s;
    if (fate != ACS_ERR_SKIPPED) {
        o->origins++;
        s->roots = program_alloc(o->p, o->root_words * sizeof *s->roots);
        s->roots[s->index / 64] |= 1ull << (s->index % 64);
    }
}

/* The span that segment i of a step's footprint was made from. */
static const span *span_at(const step *s, uint32_t i)
{
    return i < s->given_count ? &s->given[i] : &s->work[s->computed_from + i - s->given_count];
}

/*
 * A block was given back: failures are forgotten in it, since its addresses may come back as another block. What was
 * named there moves to where nothing is, so that only ops that may touch everything still depend on it.
 */
static void forget_block(oracle *o, int arena_index)
{
    for (uint32_t i = 0; i < o->poison_count; i++)
        for (uint32_t k = 0; k < o->poison[i]->segment_count; k++)
            if (span_at(o->poison[i], k)->arena == arena_index)
                o->poison[i]->segments[k].base = NOWHERE;
}

static void restore_address(const program *p, step *s, uint32_t i)
{
    const span *from = span_at(s, i);
    if (from->arena >= 0 && s->segments[i].base == NOWHERE)
        s->segments[i].base = (uint64_t)(uintptr_t)p->arenas[from->arena].real + from->offset;
}

/*
 * Whether the two may share memory at all. Threads without a common order have arenas of their own; that a block of
 * one got the address of a block that another had freed is no conflict, though the steps' order here may make it look
 * so.
 */
static bool may_share(const oracle *o, const step *a, const step *b)
{
    return o->one_order || a->thread == b->thread;
}

/* The step's failure may have come from a failed or skipped op. */
static void add_roots(const oracle *o, step *s, const step *from)
{
    if (!s->roots)
        s->roots = program_alloc(o->p, o->root_words * sizeof *s->roots);
    for (uint32_t w = 0; w < o->root_words; w++)
        s->roots[w] |= from->roots[w];
    s->by_decision = s->by_decision || from->by_decision;
}

/* Whether `failed` comes before `s`, so that its failure can reach it. */
static bool precedes(const oracle *o, const step *failed, const step *s)
{
    bool later = s->op && failed->op > s->op; /* of another thread; a freed block may have become its own */
    return !later && may_share(o, s, failed);
}

/* Whether an earlier failure reaches this op; collects where it can have come from. */
static bool inherit(oracle *o, step *s)
{
    footprint mine = footprint_of(s);
    bool hit = false;
    s->roots = NULL;
    for (uint32_t i = 0; i < o->poison_count; i++) {
        footprint theirs = footprint_of(o->poison[i]);
        if (!precedes(o, o->poison[i], s) || !footprint_conflict(&mine, &theirs))
            continue;
        add_roots(o, s, o->poison[i]);
        hit = true;
    }
    return hit;
}

/* Whether the op touches a word of the arena. The arena's bytes may have moved since the program ran. */
static bool touches_word(const step *s, int words, uint32_t offset)
{
    bool hit = s->any;
    for (uint32_t i = 0; i < s->segment_count && !hit; i++) {
        const span *from = span_at(s, i);
        acs_segment word = {.base = s->segments[i].base - from->offset + offset, .row_bytes = 4, .rows = 1,
                            .access = ACS_READ, .extent = ACS_EXTENT_BYTES};
        const footprint mine = {&word, 1, false}, theirs = {&s->segments[i], 1, false};
        const bool everything = s->segments[i].extent == ACS_EXTENT_ALL;
        hit = (everything || from->arena == words) && footprint_conflict(&mine, &theirs);
    }
    return hit;
}

/* sections_failed: whether a failure reaches a decision for the step `now`. */
static bool fails_word(void *user, int words, uint32_t offset)
{
    const oracle *o = user;
    bool hit = false;
    for (uint32_t i = 0; i < o->poison_count && !hit; i++)
        hit = precedes(o, o->poison[i], o->now) && touches_word(o->poison[i], words, offset);
    return hit;
}

static const step *step_of(const oracle *o, acs_op op)
{
    for (uint32_t i = 0; i < o->p->step_count; i++)
        if (op && o->p->steps[i].op == op)
            return &o->p->steps[i];
    return NULL;
}

/*
 * A decided op may be skipped although no failure reaches its footprint: sections share cells, so failures in one
 * can skip another one's decision, and then what writes its word. And injected faults hit decisions, which are no steps.
 * Where that can be, it is learnt from the run.
 */
static bool inherit_decision(oracle *o, step *s, section_fate fate)
{
    const bool faults = o->p->config.options.faults && program_decides(&o->p->config);
    const bool skipped = s->error.status == ACS_ERR_SKIPPED && (o->poison_count || faults);
    if (fate != SECTION_FAILED && !(skipped && (sections_decide(s) || sections_writes_word(o->p, s) || faults)))
        return false;
    if (!s->roots)
        s->roots = program_alloc(o->p, o->root_words * sizeof *s->roots);
    for (uint32_t i = 0; i < o->poison_count; i++)
        if (may_share(o, s, o->poison[i]))
            add_roots(o, s, o->poison[i]);
    if (faults && !step_of(o, s->error.cause)) {
        s->by_decision = true;
        o->origins++;
    }
    return true;
}

/* A block that was given back may have the number of another op. */
static bool is_root(const oracle *o, const step *s, acs_op cause)
{
    for (uint32_t i = 0; i < o->p->step_count; i++)
        if (o->p->steps[i].op == cause && cause && (s->roots[i / 64] >> (i % 64) & 1))
            return true;
    return s->by_decision && cause && cause < s->op && !step_of(o, cause);
}

static void check_error(const oracle *o, const step *s)
{
    const acs_error *e = &s->error;
    if (e->status != s->fate)
        verdict_fail(o->v,
                     "step %u (%s, op %" PRIu64 ") ended with %s (native %d, cause %" PRIu64 "), the oracle says %s",
                     s->index, step_name(s), s->op, acs_status_name(e->status), e->native, e->cause,
                     acs_status_name(s->fate));
    else if (s->fate == ACS_ERR_SKIPPED && !is_root(o, s, e->cause))
        verdict_fail(o->v,
                     "step %u (%s, op %" PRIu64 ") was skipped for op %" PRIu64 ", which is no failed op it depends on",
                     s->index, step_name(s), s->op, e->cause);
    else if (s->fate == ACS_ERR_HOST && e->native != s->fail)
        verdict_fail(o->v, "step %u (%s, op %" PRIu64 ") reported code %d, not %d", s->index, step_name(s), s->op,
                     e->native, s->fail);
    else if (s->fate != ACS_OK && e->op != s->op)
        verdict_fail(o->v, "the error of step %u (%s) names op %" PRIu64 ", not %" PRIu64, s->index, step_name(s), e->op,
                     s->op);
}

/* An op that can be skipped. Injected faults are learnt from the run; everything else is known. */
static void judge_op(oracle *o, step *s)
{
    o->now = s;
    s->by_decision = false;
    const section_fate fate = sections_judge(o->p, s, fails_word, o);
    const bool by_memory = inherit(o, s), by_decision = inherit_decision(o, s, fate); /* both collect roots */
    if (s->kind == STEP_ALLOC && o->p->direct_init)
        execute(o, s); /* filled by the program itself */
    else if (by_memory || by_decision)
        add_poison(o, s, ACS_ERR_SKIPPED);
    else if (o->p->config.options.faults && s->error.status == ACS_ERR_LAUNCH)
        add_poison(o, s, ACS_ERR_LAUNCH);
    else if (o->p->config.options.faults && s->error.status == ACS_ERR_MEMORY && s->kind == STEP_CALL && s->scratch)
        add_poison(o, s, ACS_ERR_MEMORY); /* its scratch */
    else if (fate == SECTION_OFF)
        o->totals->not_run++;
    else if (s->fail)
        add_poison(o, s, ACS_ERR_HOST);
    else
        execute(o, s);
    if (sections_missed(o->p, s) && fate != SECTION_OFF)
        verdict_fail(o->v, "step %u (%s) was not queued, but its iteration runs", s->index, step_name(s));
    check_error(o, s);
    o->totals->failed += s->fate != ACS_OK && s->fate != ACS_ERR_SKIPPED;
    o->totals->skipped += s->fate == ACS_ERR_SKIPPED;
    o->totals->ops++;
}

/* ---------------------------------------------------------------------------------------------- what waits returned */

static void check_result(const oracle *o, const step *s, acs_status expected)
{
    if (s->result != expected)
        verdict_fail(o->v, "step %u (%s) returned %s, the oracle says %s", s->index, step_name(s),
                     acs_status_name(s->result), acs_status_name(expected));
}

/* acs_sync returns the first uncleared error; which of several came first is the library's affair. */
static void check_sync(const oracle *o, const step *s)
{
    bool bad = s->result != ACS_OK;
    bool known = s->result == ACS_ERR_HOST || s->result == ACS_ERR_LAUNCH || s->result == ACS_ERR_SKIPPED ||
                 (s->result == ACS_ERR_MEMORY && o->p->config.options.faults) ||
                 (s->result == ACS_ERR_ARGUMENT && (o->refused || !o->one_order));
    if (bad && !known)
        verdict_fail(o->v, "step %u (sync) returned %s", s->index, acs_status_name(s->result));
    else if (o->one_order && bad != (o->origins > 0 || o->refused))
        verdict_fail(o->v, "step %u (sync) returned %s with %u failures uncleared", s->index, acs_status_name(s->result),
                     o->origins);
}

/* A range: whether an op that it waits for failed or was skipped; then what the program saw. */
static void judge_range(oracle *o, step *s)
{
    footprint mine = footprint_of(s);
    bool hit = false;
    for (uint32_t i = 0; i < o->poison_count; i++) {
        footprint theirs = footprint_of(o->poison[i]);
        hit = hit || (may_share(o, s, o->poison[i]) && footprint_conflict(&theirs, &mine));
    }
    check_result(o, s, hit ? ACS_ERR_SKIPPED : ACS_OK);
    const span *w = &s->work[0];
    unsigned char *truth = o->p->arenas[w->arena].truth + w->offset;
    for (uint32_t i = 0; s->seen && i < w->row_bytes; i++)
        if (s->seen[i] != truth[i]) {
            verdict_fail(o->v, "after step %u (%s) the program saw %02x at arena %d + %u, the oracle has %02x", s->index,
                         step_name(s), s->seen[i], w->arena, w->offset + i, truth[i]);
            return;
        }
    for (uint32_t i = 0; s->program_writes && i < w->row_bytes; i++)
        truth[i] = mix_extra_byte(s->index, 0, i);
    if (s->program_writes)
        note_writer(o, s);
    o->totals->ranges++;
}

static void judge_wait(const oracle *o, const step *s)
{
    if (s->kind == STEP_QUERY && s->result == ACS_NOT_READY)
        return;
    check_result(o, s, s->target->fate);
}

static void judge_callback(const oracle *o, const step *s)
{
    if (s->callbacks != 1)
        verdict_fail(o->v, "callback of step %u ran %u times", s->index, s->callbacks);
    else if (s->callback_op != s->target->op || s->callback_status != s->target->fate)
        verdict_fail(o->v, "callback of step %u was told op %" PRIu64 " %s, should be op %" PRIu64 " %s", s->index,
                     s->callback_op, acs_status_name(s->callback_status), s->target->op,
                     acs_status_name(s->target->fate));
    check_error(o, s);
}

static void judge(oracle *o, step *s)
{
    switch (s->kind) {
    case STEP_FREE:
        check_error(o, s);
        forget_block(o, s->arena);
        break;
    case STEP_CALLBACK: judge_callback(o, s); break;
    case STEP_WAIT:
    case STEP_QUERY: judge_wait(o, s); break;
    case STEP_WAIT_RANGE: judge_range(o, s); break;
    case STEP_STREAM_AFTER: judge_range(o, s); break;
    case STEP_SYNC: check_sync(o, s); break;
    case STEP_CLEAR:
        check_result(o, s, ACS_OK);
        if (o->poison_count)
            sections_reset(o->p);
        o->poison_count = o->origins = 0;
        o->refused = false;
        break;
    case STEP_REFUSED:
    case STEP_NOTHING:
        o->now = s;
        (void)sections_judge(o->p, s, fails_word, o);
        o->refused |= s->kind == STEP_REFUSED;
        break;
    case STEP_STEP: break;
    default: judge_op(o, s); break;
    }
}

/* ------------------------------------------------------------------------------------------------- bytes at the end */

static void oracle_pass(program *p, verdict *v, random_totals *totals)
{
    oracle o = {.p = p, .v = v, .totals = totals};
    o.one_order = p->config.threads == 1 || p->config.baton;
    o.root_words = p->step_count / 64 + 1;
    sections_reset(p);
    o.poison = program_alloc(p, p->step_count * sizeof *o.poison);
    for (uint32_t i = 0; i < p->arena_count; i++)
        for (uint32_t k = 0; k < p->arenas[i].bytes; k++)
            p->arenas[i].truth[k] = mix_extra_byte(i, 99, k);
    for (uint32_t i = 0; i < p->step_count; i++) /* undo what an earlier pass forgot */
        for (uint32_t k = 0; k < p->steps[i].segment_count; k++)
            restore_address(p, &p->steps[i], k);
    for (uint32_t i = 0; i < p->step_count && !v->failed; i++)
        judge(&o, &p->steps[i]);
}

static void explain_difference(program *p, verdict *v, uint32_t index, uint32_t at)
{
    random_totals ignored = {0};
    verdict none = {0};
    arena *a = &p->arenas[index];
    unsigned char expected = a->truth[at];
    a->writers = program_alloc(p, a->bytes * sizeof *a->writers);
    oracle_pass(p, &none, &ignored);
    uint32_t writer = a->writers[at];
    if (writer)
        verdict_fail(v, "arena %u + %u is %02x, should be %02x as written by step %u (%s, op %" PRIu64 ")", index, at,
                     a->real[at], expected, writer - 1, step_name(&p->steps[writer - 1]), p->steps[writer - 1].op);
    else
        verdict_fail(v, "arena %u + %u is %02x, should be %02x: no op writes it", index, at, a->real[at], expected);
}

void program_forget_block(program *p, int arena_index, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        for (uint32_t k = 0; k < p->steps[i].segment_count; k++)
            if (span_at(&p->steps[i], k)->arena == arena_index)
                p->steps[i].segments[k].base = NOWHERE;
}

/* Bytes that may be anything, by arena, or are known again. */
static void taint(const program *p, unsigned char **tainted, const step *s, bool unknown)
{
    for (uint32_t i = 0; i < s->work_count; i++) {
        const span *w = &s->work[i];
        bool writes = s->kind == STEP_MEMCPY ? i == 0 : s->kind == STEP_MEMSET || s->kind == STEP_ALLOC ||
                                                            s->kind == STEP_WAIT_RANGE || (w->access & ACS_WRITE);
        for (uint32_t r = 0; w->arena >= 0 && writes && r < (w->rows ? w->rows : 1); r++)
            memset(tainted[w->arena] + w->offset + r * w->pitch, unknown, w->row_bytes);
    }
    (void)p;
}

/* After a loss: what each step is known to have done. */
static void replay_known(oracle *o, unsigned char **tainted, step *s)
{
    bool direct = s->kind == STEP_ALLOC && o->p->direct_init;
    const span *w = s->work_count ? &s->work[0] : NULL;
    if (s->kind <= STEP_ALLOC && (direct || (s->op && s->error.status == ACS_OK))) {
        execute(o, s);
        if (direct)
            taint(o->p, tainted, s, false);
    } else if (s->kind <= STEP_ALLOC && s->op && s->error.status == ACS_ERR_DEVICE) {
        taint(o->p, tainted, s, true);
    } else if (s->kind == STEP_WAIT_RANGE && s->program_writes) {
        for (uint32_t i = 0; i < w->row_bytes; i++)
            o->p->arenas[w->arena].truth[w->offset + i] = mix_extra_byte(s->index, 0, i);
        taint(o->p, tainted, s, false);
    }
}

void program_verify_bytes(program *p, verdict *v)
{
    oracle o = {.p = p, .v = v};
    unsigned char **tainted = program_alloc(p, p->arena_count * sizeof *tainted);
    for (uint32_t i = 0; i < p->arena_count; i++) {
        p->arenas[i].truth = program_alloc(p, p->arenas[i].bytes);
        tainted[i] = program_alloc(p, p->arenas[i].bytes);
        for (uint32_t k = 0; k < p->arenas[i].bytes; k++)
            p->arenas[i].truth[k] = mix_extra_byte(i, 99, k);
    }
    for (uint32_t i = 0; i < p->step_count; i++)
        replay_known(&o, tainted, &p->steps[i]);
    for (uint32_t i = 0; i < p->arena_count; i++)
        for (uint32_t k = 0; p->arenas[i].live && p->arenas[i].real && k < p->arenas[i].bytes; k++)
            if (!tainted[i][k] && p->arenas[i].real[k] != p->arenas[i].truth[k]) {
                verdict_fail(v, "device lost: arena %u + %u is %02x, should be %02x: no lost op writes it", i, k,
                             p->arenas[i].real[k], p->arenas[i].truth[k]);
                return;
            }
}

void program_verify(program *p, verdict *v, random_totals *totals)
{
    for (uint32_t i = 0; i < p->arena_count; i++)
        p->arenas[i].truth = program_alloc(p, p->arenas[i].bytes);
    oracle_pass(p, v, totals);
    for (uint32_t i = 0; i < p->arena_count && !v->failed; i++) {
        const arena *a = &p->arenas[i];
        for (uint32_t k = 0; a->live && k < a->bytes; k++)
            if (a->real[k] != a->truth[k]) {
                explain_difference(p, v, i, k);
                return;
            }
    }
}

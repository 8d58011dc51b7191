/*
 * Serial execution: goes through the events of a session in program order on the shadow memory, says for each op how it must
 * have ended, and compares with what the library did. Called by run.c when a session's ops have retired or it is closed.
 * Conflicts are computed here, row by row; the library's own overlap code is what is being judged.
 */
#include "program.h"

#include <string.h>

uint64_t fuzz_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ------------------------------------------------------------------------------------------------ what ops do to memory */

typedef struct piece {
    uint8_t *at;
    uint64_t offset, row_bytes, rows, pitch, limit;
    uint8_t access;
} piece;

/* `i` beyond the segments: an op that may touch anything updates the arena. False: nothing to touch. */
static bool piece_of(const fuzz_event *e, uint32_t i, bool shadow, piece *p)
{
    const acs_segment *s = &e->segments[i];
    bool all = i == e->step->segment_count || s->extent == ACS_EXTENT_ALL;
    fuzz_memory *m = all ? &e->session->arena : e->memory[i];
    if (!m)
        return false;
    *p = (piece){.at = shadow ? m->shadow : m->real, .row_bytes = m->bytes, .rows = 1, .limit = m->bytes,
                 .access = i == e->step->segment_count ? ACS_UPDATE : s->access};
    if (all)
        return true;
    p->offset = s->base - (uint64_t)(uintptr_t)m->real;
    p->row_bytes = s->row_bytes;
    p->rows = s->rows;
    p->pitch = s->pitch_bytes;
    return true;
}

/* Bytes of row r that the memory has: a segment may name more. */
static uint64_t row_length(const piece *p, uint64_t r, uint64_t *first)
{
    *first = p->offset + (p->rows > 1 ? r * p->pitch : 0);
    if (*first >= p->limit)
        return 0;
    return p->row_bytes < p->limit - *first ? p->row_bytes : p->limit - *first;
}

static uint64_t gather(const piece *p, uint64_t sum)
{
    uint64_t first, length;
    for (uint64_t r = 0; r < p->rows; r++) {
        length = row_length(p, r, &first);
        for (uint64_t c = 0; c < length; c++)
            sum = (sum ^ p->at[first + c]) * 0x100000001b3u;
    }
    return sum;
}

static void scatter(const piece *p, uint64_t sum)
{
    uint64_t first, length;
    for (uint64_t r = 0; r < p->rows; r++) {
        length = row_length(p, r, &first);
        for (uint64_t c = 0; c < length; c++) {
            uint8_t old = p->access == ACS_UPDATE ? p->at[first + c] : 0;
            sum = sum * 0x5851f42d4c957f2du + 1;
            p->at[first + c] = (uint8_t)((sum >> 40) + old);
        }
    }
}

static void work_mix(const fuzz_event *e, bool shadow)
{
    uint32_t count = e->step->segment_count + e->step->any;
    uint64_t sum = e->step->index + 1;
    piece p;
    for (uint32_t i = 0; i < count; i++)
        if (piece_of(e, i, shadow, &p) && (p.access & ACS_READ))
            sum = gather(&p, sum);
    for (uint32_t i = 0; i < count; i++)
        if (piece_of(e, i, shadow, &p) && (p.access & ACS_WRITE))
            scatter(&p, fuzz_mix(sum + i));
}

static uint8_t *place_of(const fuzz_event *e, uint32_t i, bool shadow)
{
    fuzz_memory *m = e->memory[i];
    return (shadow ? m->shadow : m->real) + (e->segments[i].base - (uint64_t)(uintptr_t)m->real);
}

void fuzz_work(const fuzz_event *e, bool shadow)
{
    if (e->step->kind == FUZZ_KERNEL || e->step->kind == FUZZ_HOST || e->step->kind == FUZZ_CALL)
        work_mix(e, shadow);
    else if (e->step->kind == FUZZ_MEMCPY)
        memmove(place_of(e, 0, shadow), place_of(e, 1, shadow), e->length);
    else if (e->step->kind == FUZZ_MEMSET)
        memset(place_of(e, 0, shadow), e->step->a, e->length);
}

uint64_t fuzz_hash_memory(const fuzz_session *s, bool shadow)
{
    piece p = {.at = (uint8_t *)(uintptr_t)(shadow ? s->arena.shadow : s->arena.real), .row_bytes = FUZZ_ARENA, .rows = 1,
               .limit = FUZZ_ARENA};
    uint64_t sum = gather(&p, 0);
    for (uint32_t i = 0; i < s->block_count; i++) {
        const fuzz_memory *m = &s->blocks[i];
        p = (piece){.at = (uint8_t *)(uintptr_t)(shadow ? m->shadow : m->real), .row_bytes = m->bytes, .rows = 1,
                    .limit = m->bytes};
        if (m->live)
            sum = gather(&p, sum);
    }
    return sum;
}

/* ---------------------------------------------------------------------------------------------------------- conflicts */

/* Bytes [first, last] against the rows of b. */
static bool range_meets(uint64_t first, uint64_t last, const acs_segment *b)
{
    uint64_t pitch = b->rows > 1 ? b->pitch_bytes : 0, row = 0;
    if (first > b->base + (b->row_bytes - 1) && pitch) /* the first row that does not end before the range */
        row = (first - b->base - (b->row_bytes - 1) + pitch - 1) / pitch;
    return row < b->rows && first <= b->base + row * pitch + (b->row_bytes - 1) && b->base + row * pitch <= last;
}

static bool is_empty(const acs_segment *s)
{
    return s->extent == ACS_EXTENT_BYTES && (s->row_bytes == 0 || s->rows == 0);
}

static bool segments_meet(const acs_segment *a, const acs_segment *b)
{
    if (is_empty(a) || is_empty(b) || !((a->access | b->access) & ACS_WRITE))
        return false;
    if (a->extent == ACS_EXTENT_ALL || b->extent == ACS_EXTENT_ALL)
        return true;
    if (a->extent != b->extent)
        return false;
    if (a->extent == ACS_EXTENT_TOKEN)
        return a->base == b->base;
    for (uint64_t r = 0; r < a->rows; r++) {
        uint64_t first = a->base + (a->rows > 1 ? r * a->pitch_bytes : 0);
        if (range_meets(first, first + (a->row_bytes - 1), b))
            return true;
    }
    return false;
}

static uint32_t segment_total(const fuzz_event *e)
{
    switch (e->step->kind) {
    case FUZZ_MEMCPY: return 2;
    case FUZZ_MEMSET:
    case FUZZ_WAIT_RANGE: return 1;
    case FUZZ_FREE:
    case FUZZ_RETIRE: return 0; /* a free is looked at by itself */
    default: return e->step->segment_count + e->step->any;
    }
}

static const acs_segment *segment_at(const fuzz_event *e, uint32_t i)
{
    static const acs_segment everything = {0, 0, 0, 0, ACS_UPDATE, ACS_EXTENT_ALL, 0, 0};
    return i < e->step->segment_count || !e->step->any ? &e->segments[i] : &everything;
}

static bool conflict(const fuzz_event *a, const fuzz_event *b)
{
    for (uint32_t i = 0; i < segment_total(a); i++)
        for (uint32_t j = 0; j < segment_total(b); j++)
            if (segments_meet(segment_at(a, i), segment_at(b, j)))
                return true;
    return false;
}

/* --------------------------------------------------------------------------------------------------------- one event */

static bool has_body(const fuzz_event *e)
{
    return e->step->kind <= FUZZ_CALL || e->step->kind == FUZZ_RETIRE;
}

static void disagree(const fuzz_event *e, const char *what, acs_status got, acs_status expected)
{
    if (got != expected)
        fuzz_fail("step %u (%s, op %llu) %s %s; serial execution says %s", e->step->index, fuzz_kind_name(e->step->kind),
                  (unsigned long long)e->op, what, acs_status_name(got), acs_status_name(expected));
}

/* Failed and skipped events of e's epoch that reach it, as the origins that they come from. */
static uint64_t inherited(const fuzz_session *s, const fuzz_event *e)
{
    uint64_t roots = 0;
    for (const fuzz_event *f = s->events; f < e; f++)
        if (f->roots && f->step->kind <= FUZZ_AFTER_STREAM && f->epoch == e->epoch && conflict(f, e))
            roots |= f->roots;
    return roots;
}

static void check_error(const fuzz_session *s, const fuzz_event *e)
{
    bool rooted = false;
    if (!e->known)
        return;
    disagree(e, "ended with", e->error.status, e->fate);
    if (e->fate == ACS_OK)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        rooted = rooted || ((e->roots >> i & 1) && s->events[i].op == e->error.cause);
    if (e->error.op != e->op || (e->fate == ACS_ERR_SKIPPED && !rooted))
        fuzz_fail("step %u (op %llu): its error names op %llu and cause %llu", e->step->index, (unsigned long long)e->op,
                  (unsigned long long)e->error.op, (unsigned long long)e->error.cause);
    if (e->fate == ACS_ERR_HOST && e->error.native != e->step->fail)
        fuzz_fail("step %u returned %u and not %d", e->step->index, e->step->fail, e->error.native);
}

/* An op that can be skipped. Injected faults are learnt from the run; everything else is known. */
static void judge_op(fuzz_session *s, fuzz_event *e)
{
    fuzz_kind kind = e->step->kind;
    bool issued = kind == FUZZ_KERNEL || kind == FUZZ_MEMCPY || kind == FUZZ_MEMSET;
    acs_status fault = issued ? ACS_ERR_LAUNCH : kind == FUZZ_CALL && (e->step->a & 0xf0u) ? ACS_ERR_MEMORY : ACS_OK;
    bool injected = s->open.options.faults && e->known && fault && e->error.status == fault;
    e->roots = inherited(s, e);
    e->fate = e->roots ? ACS_ERR_SKIPPED : injected ? fault : e->step->fail ? ACS_ERR_HOST : ACS_OK;
    if (e->fate != ACS_OK && !e->roots)
        e->roots = 1ull << (e - s->events);
    if (e->fate == ACS_OK)
        fuzz_work(e, true);
    check_error(s, e);
}

/* Its addresses may come back as another block: failures in it are forgotten, but for ops that may touch anything. */
static void judge_free(fuzz_session *s, fuzz_event *e)
{
    for (fuzz_event *f = s->events; f < e; f++)
        for (uint32_t i = 0; i < FUZZ_SEGMENTS; i++)
            if (f->roots && f->memory[i] == e->block && f->segments[i].extent == ACS_EXTENT_BYTES &&
                !is_empty(&f->segments[i]))
                f->segments[i] = acs_make_segment(ACS_EXTENT_TOKEN, (acs_access)f->segments[i].access, UINT64_MAX, 0, 0, 0);
    e->block->live = false;
    if (s->open.options.pool == ACS_POOL_OFF) /* else it is no op, and the number another's */
        check_error(s, e);
}

/* Whose op somebody asks for: a pool's free has the number of the latest op, or of one of its own, which does nothing. */
static const fuzz_event *asked_for(const fuzz_session *s, const fuzz_event *asker)
{
    const fuzz_event *target = &s->events[asker->target];
    for (const fuzz_event *f = s->events; target->step->kind == FUZZ_FREE && f < target; f++)
        if (f->step->kind != FUZZ_FREE && f->op == target->op)
            return f;
    return target;
}

/* How an op had ended for whoever asks now: failures before the last clear are forgotten. */
static acs_status fate_now(const fuzz_session *s, const fuzz_event *asker)
{
    const fuzz_event *target = asked_for(s, asker);
    return target->epoch == asker->epoch ? target->fate : ACS_OK;
}

static void judge_range(const fuzz_session *s, fuzz_event *e)
{
    e->fate = inherited(s, e) ? ACS_ERR_SKIPPED : ACS_OK; /* and nobody depends on it: no roots */
    disagree(e, "returned", e->result, e->fate);
    if (e->step->kind != FUZZ_WAIT_RANGE || !e->memory[0] || !e->length)
        return;
    uint8_t *at = place_of(e, 0, true);
    if (memcmp(at, e->seen, e->length) != 0)
        fuzz_fail("after step %u (wait_range) the program saw bytes that are not those of serial execution", e->step->index);
    if ((e->step->a & 1) && (e->segments[0].access & ACS_WRITE))
        memset(at, e->step->index, e->length);
}

/* The first error that is left: one of what was refused or has failed. Which of several came first is not promised. */
static void judge_sync(const fuzz_session *s, const fuzz_event *e, acs_status result, uint32_t epoch, uint32_t refused)
{
    uint32_t possible = refused;
    for (const fuzz_event *f = s->events; f < e; f++)
        if (f->op && f->epoch == epoch && f->fate != ACS_OK)
            possible |= 1u << f->fate;
    if (possible ? result == ACS_OK || !(possible >> result & 1) : result != ACS_OK)
        fuzz_fail("a wait for everything after %u steps returned %s; errors left: %x", (unsigned)(e - s->events),
                  acs_status_name(result), possible);
}

static void judge_event(fuzz_session *s, fuzz_event *e)
{
    switch (e->step->kind) {
    case FUZZ_FREE:
        if (e->op)
            judge_free(s, e);
        return;
    case FUZZ_RETIRE:
        if (e->op && atomic_load(&e->times) && (e->told_op != s->events[e->target].op || e->told != fate_now(s, e)))
            fuzz_fail("step %u: the callback was told op %llu, %s", e->step->index, (unsigned long long)e->told_op,
                      acs_status_name(e->told));
        return;
    case FUZZ_WAIT_RANGE:
    case FUZZ_STREAM_AFTER:
        if (e->op)
            judge_range(s, e);
        return;
    case FUZZ_MALLOC:
        if (e->block)
            e->block->live = true;
        return;
    case FUZZ_WAIT:
    case FUZZ_QUERY:
        if (e->target >= 0 && e->result != ACS_NOT_READY)
            disagree(&s->events[e->target], "was reported as", e->result, fate_now(s, e));
        return;
    case FUZZ_SYNC:
    case FUZZ_CLEAR:
        if (e->known) {
            judge_sync(s, e, e->result, e->epoch, e->refused);
            if (e->seen_all != fuzz_hash_memory(s, true))
                fuzz_fail("after step %u (%s) memory is not that of serial execution", e->step->index,
                          fuzz_kind_name(e->step->kind));
        }
        return;
    case FUZZ_ASK:
        if (e->target >= 0 && e->result != ACS_OK)
            disagree(&s->events[e->target], "was reported as", e->result, fate_now(s, e));
        return;
    default:
        if (e->op)
            judge_op(s, e);
    }
}

/* ------------------------------------------------------------------------------------------------------------- order */

static bool waits_for(const fuzz_session *s, const fuzz_event *waiter, const fuzz_event *e)
{
    switch (waiter->step->kind) {
    case FUZZ_SYNC:
    case FUZZ_CLEAR: return true;
    case FUZZ_WAIT:
    case FUZZ_RETIRE: return waiter->target >= 0 && asked_for(s, waiter) == e;
    case FUZZ_QUERY: return waiter->target >= 0 && waiter->result != ACS_NOT_READY && asked_for(s, waiter) == e;
    default: return waiter->op && conflict(e, waiter);
    }
}

/* Bodies ran exactly where serial execution runs them, and in an order in which all that conflicts follows its upstream. */
static void judge_order(const fuzz_session *s)
{
    for (const fuzz_event *e = s->events; e < s->events + s->count; e++) {
        uint32_t began = atomic_load(&e->began);
        bool runs = e->op && has_body(e) && (e->fate == ACS_OK || e->fate == ACS_ERR_HOST);
        if (has_body(e) && atomic_load(&e->times) != runs)
            fuzz_fail("step %u (%s, op %llu, %s) ran %u times", e->step->index, fuzz_kind_name(e->step->kind),
                      (unsigned long long)e->op, acs_status_name(e->fate), atomic_load(&e->times));
        for (const fuzz_event *f = s->events; began && f < e; f++)
            if (atomic_load(&f->times) && has_body(f) && atomic_load(&f->ended) >= began && waits_for(s, e, f))
                fuzz_fail("step %u (%s) was over or began before step %u (%s), which it depends on, ended", e->step->index,
                          fuzz_kind_name(e->step->kind), f->step->index, fuzz_kind_name(f->step->kind));
    }
}

static void compare(const fuzz_memory *m, const char *what, uint32_t which)
{
    for (uint32_t i = 0; i < m->bytes; i++)
        if (m->real[i] != m->shadow[i])
            fuzz_fail("byte %u of %s %u is %02x; serial execution says %02x", i, what, which, m->real[i], m->shadow[i]);
}

void fuzz_judge(fuzz_session *s)
{
    for (uint32_t i = 0; i < s->block_count; i++)
        s->blocks[i].live = false;
    for (uint32_t i = 0; i < s->count; i++)
        memcpy(s->events[i].named, s->events[i].segments, sizeof s->events[i].named);
    for (uint32_t i = 0; i < s->count; i++)
        judge_event(s, &s->events[i]);
    for (uint32_t i = 0; i < s->count; i++)
        memcpy(s->events[i].segments, s->events[i].named, sizeof s->events[i].named);
    judge_order(s);
    compare(&s->arena, "the arena of context", s->count ? s->events[0].step->context : 0);
    for (uint32_t i = 0; s->finished && i < s->block_count; i++)
        if (s->blocks[i].live)
            compare(&s->blocks[i], "block", i);
    judge_sync(s, s->events + s->count, s->result, s->epoch, s->refused);
}

/*
 * The footprint as it should be (checks_internal.h). Bytes that were found outside it may belong to a segment of another
 * place, length or pitch. Such a segment is guessed and takes the place of the declared one if the check, run once more,
 * finds nothing about it, and if all declared bytes are still named that the launch may need. Bytes that no guess explains
 * become a segment of their own. Called by launch_check.c.
 */
#include "checks/checks_internal.h"

#include <stdlib.h>
#include <string.h>

/* What is wrong with a segment; each guess is tried in this order. */
typedef enum guess {
    GUESS_MOVED,       /* its place, by as much as was found */
    GUESS_PITCH_LAST,  /* its pitch, as the last byte found says */
    GUESS_PITCH_FIRST, /* its pitch, as the first byte found says */
    GUESS_PIECES,      /* its pitch and number of rows, or that it is no tile: as the pieces found say */
    GUESS_WIDTH,       /* the length of the run, or of each row */
    GUESS_ROWS,        /* the number of rows */
    GUESSES
} guess;

typedef struct correction {
    acs_launch_check *c;
    acs_segment *list; /* the named segments, as far as they are corrected */
    acs_segment *all;  /* room for them and for bytes that they lack */
    bool lacks[TUNE_CHECK_FINDINGS]; /* the finding's bytes need a segment of their own so far */
} correction;

/* ---------------------------------------------------------------------------------------------------------- guesses */

/* Its place. A run has to have been found as far as it would be new. */
static bool guess_moved(const acs_segment *s, const acs_found_bytes *b, acs_segment *to)
{
    const uint64_t end = acs_segment_end(s), size = end - s->base;
    if (b->first < s->base) {
        to->base = b->first;
        return s->rows > 1 || b->end == (b->first + size < s->base ? b->first + size : s->base);
    }
    if (b->end <= end)
        return false;
    to->base = b->end - size;
    return s->rows > 1 || b->first == (to->base > end ? to->base : end);
}

static bool guess_pitch(const acs_segment *s, const acs_found_bytes *b, guess which, acs_segment *to)
{
    const uint64_t reach = b->end - s->base - s->row_bytes;
    if (s->rows <= 1 || b->first < s->base || (which == GUESS_PITCH_LAST && b->end < s->base + s->row_bytes))
        return false;
    to->pitch_bytes = which == GUESS_PITCH_LAST ? reach / (s->rows - 1) : b->first - s->base;
    return which == GUESS_PITCH_FIRST || reach % (s->rows - 1) == 0;
}

/* Pieces of the same length, at the same distance, are rows. The declared segment begins with such a row. */
static bool guess_pieces(const acs_segment *s, const acs_found_bytes *b, acs_segment *to)
{
    if (b->pieces < 2 || b->first < s->base || b->bytes % b->pieces)
        return false;
    to->row_bytes = b->bytes / b->pieces;
    const uint64_t reach = b->end - b->first - to->row_bytes;
    to->pitch_bytes = reach / (b->pieces - 1);
    if (reach % (b->pieces - 1) || !to->pitch_bytes || (b->first - s->base) % to->pitch_bytes)
        return false;
    to->rows = (b->first - s->base) / to->pitch_bytes + b->pieces;
    return true;
}

/* The bytes found are the next ones, or those before it. */
static bool guess_width(const acs_segment *s, const acs_found_bytes *b, acs_segment *to)
{
    const uint64_t end = acs_segment_end(s), reach = (s->rows - 1) * s->pitch_bytes;
    const uint64_t last = b->end > end ? b->end : end;
    const bool behind = b->first == s->base + s->row_bytes;
    if (b->first < s->base)
        to->base = b->first;
    if (s->rows <= 1 ? b->first > end || b->end < s->base : !behind && b->first >= s->base)
        return false;
    to->row_bytes = last - to->base - reach;
    return to->row_bytes > s->row_bytes;
}

/* The bytes found are rows behind the last one, or before the first one. */
static bool guess_rows(const acs_segment *s, const acs_found_bytes *b, acs_segment *to)
{
    const uint64_t end = acs_segment_end(s), pitch = s->pitch_bytes;
    if (pitch < s->row_bytes || !pitch)
        return false;
    if (b->first < s->base)
        to->base = b->first;
    const uint64_t reach = (b->end > end ? b->end : end) - to->base - s->row_bytes;
    to->rows = reach / pitch + 1;
    return reach % pitch == 0 && (b->first == s->base + s->rows * pitch || b->end == s->base - pitch + s->row_bytes);
}

/* What the segment should be. False: this guess does not fit exactly. */
static bool make_guess(const acs_segment *s, const acs_found_bytes *b, guess which, acs_segment *to)
{
    *to = *s;
    const bool fits = which == GUESS_MOVED    ? guess_moved(s, b, to)
                      : which == GUESS_PIECES ? guess_pieces(s, b, to)
                      : which == GUESS_WIDTH  ? guess_width(s, b, to)
                      : which == GUESS_ROWS   ? guess_rows(s, b, to)
                                              : guess_pitch(s, b, which, to);
    return fits && to->row_bytes && (to->rows <= 1 || to->pitch_bytes >= to->row_bytes);
}

/* -------------------------------------------------------------------------------------------------------- footprint */

static uint8_t access_of(const acs_finding *f)
{
    return f->kind == ACS_FOUND_READS_UNNAMED ? ACS_READ : ACS_UPDATE;
}

/* Make room for bytes that the footprint lacks: at the end, or the beginning, of a segment, or in a new one. */
static uint32_t add_bytes(acs_segment *segments, uint32_t count, const acs_found_bytes *b, uint8_t access)
{
    for (uint32_t i = 0; i < count; i++) {
        acs_segment *s = &segments[i];
        if (s->extent != ACS_EXTENT_BYTES || s->rows > 1 || s->base < b->range->first || s->base >= b->range->end)
            continue;
        const uint64_t end = s->base + s->row_bytes;
        if (b->first > end + TUNE_CHECK_NEAR || b->end + TUNE_CHECK_NEAR < s->base)
            continue;
        const uint64_t first = b->first < s->base ? b->first : s->base;
        s->row_bytes = (b->end > end ? b->end : end) - first;
        s->base = first;
        s->access |= access;
        return count;
    }
    segments[count] = acs_make_segment(ACS_EXTENT_BYTES, (acs_access)access, b->first, b->end - b->first, 1, 0);
    return count + 1;
}

/* Write the footprint as it stands to w->all. @return the number of its segments. */
static uint32_t list_all(const correction *w)
{
    const acs_checked *found = &w->c->found;
    uint32_t count = found->segment_count;
    if (count)
        memcpy(w->all, w->list, count * sizeof *w->all);
    for (uint32_t i = 0; i < found->count; i++)
        if (w->lacks[i])
            count = add_bytes(w->all, count, &found->findings[i].bytes, access_of(&found->findings[i]));
    return count;
}

/* ------------------------------------------------------------------------------------------------------------- check */

/* Whether the launch does the same from other bytes in the set, at both levels. */
static bool needs_none_of(acs_launch_check *c, int set, acs_scramble_level next)
{
    const acs_scrambled some = {set, ACS_SCRAMBLE_NUMBERS, 0, UINT64_MAX}, more = {set, next, 0, UINT64_MAX};
    return acs_trial_scrambled(c, &some) == ACS_TRIAL_SAME && acs_trial_scrambled(c, &more) == ACS_TRIAL_SAME;
}

/* Whether the check finds nothing about the footprint that c->spans are of. */
static bool finds_nothing(acs_launch_check *c)
{
    const bool reads = c->context->options.check != ACS_CHECK_WRITES;
    if (reads && !needs_none_of(c, ACS_SCRAMBLE_UNNAMED, ACS_SCRAMBLE_BITS))
        return false;
    return !acs_compare_has(&c->image, &c->spans, reads ? ACS_SOUGHT_WRITTEN : ACS_SOUGHT_CHANGED) &&
           needs_none_of(c, ACS_SCRAMBLE_OUT, ACS_SCRAMBLE_ALL) &&
           !acs_compare_has(&c->image, &c->spans, ACS_SOUGHT_UNWRITTEN);
}

static bool has_found(const acs_checked *found, acs_finding_kind kind)
{
    bool any = false;
    for (uint32_t i = 0; i < found->count; i++)
        any |= found->findings[i].kind == kind;
    return any;
}

/* Whether the launch left the bytes alone, which are out: in a trial all of them are others, and stay. */
static bool leaves(acs_launch_check *c, uint64_t first, uint64_t end)
{
    const acs_segment bytes = ACS_OUT((void *)(uintptr_t)first, end - first);
    const acs_scrambled out = {ACS_SCRAMBLE_OUT, ACS_SCRAMBLE_ALL, first, end};
    if (has_found(&c->found, ACS_FOUND_READS_OUT) || has_found(&c->found, ACS_FOUND_FAILS) ||
        acs_trial_scrambled(c, &out) == ACS_TRIAL_FAILED)
        return false;
    const acs_use use = acs_compare_use(&c->image, &bytes);
    return use.all_scrambled && !use.written;
}

/*
 * Whether these spans have all that is declared, but for bytes that the launch is known to leave alone. What is read stays,
 * since data may hide a read.
 */
static bool keeps_declared(acs_launch_check *c, const acs_spans *spans)
{
    size_t at = 0;
    bool keeps = true;
    for (size_t i = 0; i < c->spans.count; i++) {
        const acs_span *was = &c->spans.list[i];
        for (uint64_t address = was->first, until; keeps && address < was->end; address = until) {
            const uint8_t lacks = was->access & (uint8_t)~acs_spans_at(spans, &at, address, was->end, &until);
            keeps = !lacks || (was->access == ACS_WRITE && leaves(c, address, until));
        }
    }
    return keeps;
}

/* The same for the footprint as it stands. The word that a grid is read from is not in it, but the op reads it. */
static bool is_right(const correction *w)
{
    acs_launch_check *c = w->c;
    const acs_spans declared = c->spans;
    acs_spans spans;
    uint32_t count = list_all(w);
    for (uint32_t i = c->found.segment_count; i < c->segment_count; i++)
        w->all[count++] = c->segments[i];
    if (!acs_spans_make(w->all, count, &spans))
        return false;
    bool right = keeps_declared(c, &spans);
    c->spans = spans;
    right = right && finds_nothing(c);
    c->spans = declared;
    acs_spans_free(&spans);
    return right;
}

/* --------------------------------------------------------------------------------------------------------- findings */

/* Whether the bytes may belong to the segment: they touch it, or the same pointer leads to both. */
static bool is_related(const correction *w, uint32_t segment, const acs_finding *f)
{
    const acs_segment *s = &w->list[segment];
    const acs_found_bytes *b = &f->bytes;
    const uint8_t needs = f->kind == ACS_FOUND_READS_UNNAMED ? ACS_READ : ACS_WRITE;
    if (s->extent != ACS_EXTENT_BYTES || !s->rows || !(s->access & needs) || s->base < b->range->first ||
        s->base > b->range->end)
        return false;
    return (b->first <= acs_segment_end(s) && b->end >= s->base) ||
           acs_findings_same_pointer(&w->c->found, s->base, b->first);
}

/* Whether the guess is right. */
static bool holds(const correction *w, uint32_t segment, uint8_t access)
{
    w->list[segment].access = access;
    return is_right(w);
}

/* Find what the segment should be, so that the finding's bytes are in it. Its access is the declared one if that fits. */
static bool correct_segment(correction *w, uint32_t segment, const acs_finding *f)
{
    const acs_segment was = w->list[segment];
    const uint8_t declared = w->c->segments[segment].access;
    for (int which = 0; which < GUESSES; which++) {
        if (!make_guess(&was, &f->bytes, (guess)which, &w->list[segment]))
            continue;
        if (holds(w, segment, declared))
            return true;
        if (was.access != declared && holds(w, segment, was.access))
            return true;
    }
    w->list[segment] = was;
    return false;
}

/* Explain a finding by one segment that is wrong. *lacks: there is none, so its bytes need one of their own. */
static void explain(correction *w, acs_finding *f, bool *lacks)
{
    *lacks = false;
    for (uint32_t i = 0; i < w->c->found.segment_count; i++)
        if (is_related(w, i, f) && correct_segment(w, i, f)) {
            f->cause = i;
            return;
        }
    *lacks = true;
}

/* Correct the access of the segment that the finding is about. */
static void correct_access(correction *w, const acs_finding *f, bool *lacks)
{
    const bool unnamed = f->kind == ACS_FOUND_WRITES_UNNAMED || f->kind == ACS_FOUND_READS_UNNAMED;
    *lacks = f->bytes.bytes && unnamed;
    if (!f->bytes.bytes || f->segment == UINT32_MAX || f->kind == ACS_FOUND_READS_UNNAMED || f->kind == ACS_FOUND_FAILS)
        return;
    acs_segment *s = &w->list[f->segment];
    s->access = ACS_UPDATE; /* a write may be hidden as a read may be */
    *lacks = unnamed && f->bytes.end > acs_segment_end(s);
}

/* Correct the copy of the segments. @return whether the check finds nothing about what has come out. */
static bool correct_all(correction *w)
{
    acs_checked *found = &w->c->found;
    bool right = false;
    bool tries = !w->c->once;
    for (uint32_t i = 0; i < found->count; i++) {
        const acs_finding *f = &found->findings[i];
        correct_access(w, f, &w->lacks[i]);
        tries &= f->kind != ACS_FOUND_WRITES_UNNAMED || !f->bytes.range->shared; /* which no trial may change */
    }
    for (uint32_t i = 0; i < found->count && tries; i++) {
        if (!w->lacks[i])
            continue;
        w->lacks[i] = false;
        if (right && is_right(w)) /* another finding's correction holds for this one, too */
            continue;
        explain(w, &found->findings[i], &w->lacks[i]);
        right |= !w->lacks[i];
    }
    return right || (tries && is_right(w));
}

/* Put the accesses back as the program has named them, where a decided op is checked with others. */
static void restore_named(const acs_launch_check *c, acs_segment *segments)
{
    for (uint32_t i = 0; i < c->found.segment_count; i++)
        if (segments[i].access == c->segments[i].access)
            segments[i].access = c->named[i].access;
}

void acs_correct_footprint(acs_launch_check *c)
{
    acs_checked *found = &c->found;
    const size_t bytes = (c->segment_count + TUNE_CHECK_FINDINGS + 1) * sizeof(acs_segment);
    correction w = {.c = c, .list = malloc(bytes), .all = malloc(bytes)};
    if (w.list && w.all) {
        if (found->segment_count)
            memcpy(w.list, c->segments, found->segment_count * sizeof *w.list);
        found->corrected_right = correct_all(&w);
        found->corrected_count = list_all(&w);
        restore_named(c, w.all);
    }
    free(w.list);
    const bool same = w.all && found->corrected_count == found->segment_count &&
                      !memcmp(w.all, c->named, found->segment_count * sizeof *w.all);
    if (w.all && found->corrected_count && !same) {
        found->corrected = w.all;
        return;
    }
    free(w.all);
}

/*
 * Findings and their report (findings.h): names of addresses, a line for each finding, the footprint as it is and as it
 * should be. Called by launch_check.c and correct.c.
 */
#include "checks/findings.h"

#include "api/failures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t acs_segment_with(const acs_segment *segments, uint32_t count, uint64_t address)
{
    for (uint32_t i = 0; i < count; i++) {
        const acs_segment *s = &segments[i];
        if (s->extent != ACS_EXTENT_BYTES || address < s->base || address >= acs_segment_end(s))
            continue;
        if (s->rows <= 1 || (address - s->base) % s->pitch_bytes < s->row_bytes)
            return i;
    }
    return UINT32_MAX;
}

void acs_findings_add(acs_checked *checked, acs_finding_kind kind, const acs_found_bytes *bytes)
{
    if (checked->count == TUNE_CHECK_FINDINGS)
        return;
    const uint32_t segment = acs_segment_with(checked->segments, checked->segment_count, bytes->first);
    checked->findings[checked->count++] = (acs_finding){kind, *bytes, segment, UINT32_MAX};
}

/* ------------------------------------------------------------------------------------------------------------ names */

/* A pointer of the launch's arguments. */
typedef struct arg_pointer {
    size_t arg;    /* the argument */
    uint32_t byte; /* where the pointer is in it, if it is a struct */
    bool whole;    /* the argument is the pointer */
    uint64_t value;
} arg_pointer;

/* Bytes from the address back to the pointer; from a pointer behind it more than from any before it. */
static uint64_t distance(uint64_t address, uint64_t pointer)
{
    return pointer <= address ? address - pointer : pointer - address + (UINT64_MAX >> 1);
}

/* Take the pointer instead of the best one, if it points into the same range, and nearer to the address. */
static void take_nearer(const acs_checked *c, uint64_t address, const arg_pointer *pointer, arg_pointer *best)
{
    const acs_memory_range *range = acs_image_at(c->image, address);
    if (range && pointer->value >= range->first && pointer->value < range->end &&
        (best->arg == SIZE_MAX || distance(address, pointer->value) < distance(address, best->value)))
        *best = *pointer;
}

/*
 * The pointer to the byte, or to the nearest one before it in the same range, or else behind it; its arg is SIZE_MAX: there
 * is none.
 */
static arg_pointer pointer_near(const acs_checked *c, uint64_t address)
{
    arg_pointer best = {.arg = SIZE_MAX};
    for (size_t i = 0; i < c->params->args.count; i++) {
        const acs_arg *arg = &c->params->args.list[i];
        for (uint32_t byte = 0; byte + 8 <= arg->size; byte += 8) {
            arg_pointer pointer = {i, byte, arg->size == 8, 0};
            memcpy(&pointer.value, (const char *)arg->value + byte, 8);
            take_nearer(c, address, &pointer, &best);
        }
    }
    return best;
}

bool acs_findings_same_pointer(const acs_checked *checked, uint64_t a, uint64_t b)
{
    const arg_pointer x = pointer_near(checked, a), y = pointer_near(checked, b);
    return x.arg == y.arg && x.byte == y.byte;
}

/* The place behind a string or a character that begins here; the same place if none does. */
static const char *behind_quotes(const char *at)
{
    const char quote = *at;
    if (quote != '"' && quote != '\'')
        return at;
    for (at++; *at && *at != quote; at++)
        at += *at == '\\' && at[1];
    return at + (*at != 0);
}

/* The place behind an argument: at a comma or bracket outside all brackets of its own, or at the end. */
static const char *behind_argument(const char *at)
{
    int depth = 0;
    while (*at && (depth || (*at != ',' && *at != ')'))) {
        const char *behind = behind_quotes(at);
        if (behind != at) {
            at = behind;
            continue;
        }
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        at++;
    }
    return at;
}

/*
 * The argument as the program has written it, of *bytes bytes. NULL: unknown, or there seem to be more or fewer than were
 * given: a template's arguments have commas, too.
 */
static const char *argument_text(const acs_checked *c, size_t arg, int *bytes)
{
    static const char macro[] = "ACS_ARGS(", launch[] = "ACS_LAUNCH("; /* in C the text is all of one of them */
    const char *at = c->params->args_text, *found = NULL;
    size_t count = 0;
    if (at && strncmp(at, launch, sizeof launch - 1) == 0)
        at = strstr(at, macro);
    if (at && strncmp(at, macro, sizeof macro - 1) == 0)
        at += sizeof macro - 1;
    for (bool more = at && *at; more; count++) {
        at += *at == ' ';
        const char *end = behind_argument(at);
        if (count == arg) {
            found = at;
            *bytes = (int)(end - at);
            while (*bytes > 1 && at[*bytes - 1] == ' ')
                --*bytes;
        }
        more = *end == ',';
        at = end + more;
    }
    return count == c->params->args.count ? found : NULL;
}

/* Write the name of an argument: as the program has written it, or else its number. */
static void print_argument(FILE *to, const acs_checked *c, size_t arg, bool as_code)
{
    int bytes = 0;
    const char *text = argument_text(c, arg, &bytes);
    if (text)
        (void)fprintf(to, as_code ? "%.*s" : "'%.*s'", bytes, text);
    else
        (void)fprintf(to, as_code ? "args[%zu]" : "argument %zu", arg);
}

/* Write the name of an address. */
static void print_address(FILE *to, const acs_checked *c, uint64_t address)
{
    const arg_pointer p = pointer_near(c, address);
    if (p.arg == SIZE_MAX) {
        (void)fprintf(to, "%#llx", (unsigned long long)address);
        return;
    }
    if (!p.whole)
        (void)fprintf(to, "the pointer at byte %u of ", p.byte);
    print_argument(to, c, p.arg, false);
    if (address != p.value)
        (void)fprintf(to, " %c %llu bytes", address > p.value ? '+' : '-',
                      (unsigned long long)(address > p.value ? address - p.value : p.value - address));
}

static void print_origin(FILE *to, const acs_memory_range *range)
{
    const unsigned long long bytes = range->end - range->first;
    const acs_site *site = range->site;
    if (range->origin == ACS_ORIGIN_REGISTERED)
        (void)fprintf(to, "registered memory of %llu bytes at %#llx", bytes, (unsigned long long)range->first);
    else if (range->origin == ACS_ORIGIN_BLOCK)
        (void)fprintf(to, "%llu bytes of acs_malloc at %s:%d", bytes, site && site->file ? site->file : "?",
                      site ? site->line : 0);
    else
        (void)fprintf(to, "memory that acs_malloc did not make");
}

/* Write where bytes lie: from where on, if they are not `all` of those also how far, and in which memory. */
static void print_place(FILE *to, const acs_checked *c, const acs_found_bytes *b, bool all)
{
    (void)fputs("from ", to);
    print_address(to, c, b->first);
    (void)fputs(" on, ", to);
    if (!all)
        (void)fprintf(to, "within %llu bytes, ", (unsigned long long)(b->end - b->first));
    (void)fputs("in ", to);
    print_origin(to, b->range);
}

/* --------------------------------------------------------------------------------------------------------- findings */

static const char *access_word(uint8_t access)
{
    return access & ACS_READ ? access & ACS_WRITE ? "inout" : "in" : "out";
}

/* Write one thing in which a segment was wrong, if it was; `parts` counts them. */
static void print_part(FILE *to, const char *form, uint64_t was, uint64_t is, int *parts)
{
    if (was == is)
        return;
    (void)fputs((*parts)++ ? " and " : " ", to);
    (void)fprintf(to, form, (unsigned long long)was, (unsigned long long)is);
}

/* Write how the segment differs from the one that was found to be right. */
static void print_cause(FILE *to, const acs_checked *c, uint32_t segment)
{
    const acs_segment *was = &c->segments[segment], *is = &c->corrected[segment];
    const bool late = was->base > is->base, tile = is->rows > 1;
    int parts = 0;
    (void)fprintf(to, " (segment %u", segment);
    print_part(to, late ? "starts %llu bytes too late" : "starts %llu bytes too early",
               late ? was->base - is->base : is->base - was->base, 0, &parts);
    if (tile && was->rows <= 1) {
        (void)fprintf(to, "%s is no run: found %llu rows of %llu bytes, pitch %llu", parts ? " and" : "",
                      (unsigned long long)is->rows, (unsigned long long)is->row_bytes, (unsigned long long)is->pitch_bytes);
    } else if (tile) {
        print_part(to, "has %llu rows, found %llu", was->rows, is->rows, &parts);
        print_part(to, "has pitch %llu, found %llu", was->pitch_bytes, is->pitch_bytes, &parts);
        print_part(to, "has rows of %llu bytes, found %llu", was->row_bytes, is->row_bytes, &parts);
    } else if (!parts || acs_segment_end(was) != acs_segment_end(is)) {
        print_part(to, "has %llu bytes, found %llu", was->row_bytes, is->row_bytes, &parts);
    }
    (void)fputc(')', to);
}

/* Whether the footprint with what was found has other bytes than the program named for the segment. */
static bool is_reshaped(const acs_checked *c, uint32_t segment)
{
    const acs_segment *was = &c->segments[segment];
    const acs_segment *is = c->corrected ? &c->corrected[segment] : was;
    return was->base != is->base || was->row_bytes != is->row_bytes || was->rows != is->rows ||
           (is->rows > 1 && was->pitch_bytes != is->pitch_bytes);
}

/*
 * The segment that is named as written, but was not changed, while this one was changed and is named as read; UINT32_MAX:
 * there is none, or several.
 */
static uint32_t swapped_with(const acs_checked *c, const acs_finding *f)
{
    uint32_t found = UINT32_MAX;
    if (f->kind != ACS_FOUND_WRITES_UNNAMED)
        return found;
    for (uint32_t i = 0; i < c->segment_count; i++) {
        const acs_segment *s = &c->segments[i];
        const bool written = s->access == ACS_UPDATE || s->access == ACS_WRITE;
        if (s->extent != ACS_EXTENT_BYTES || !written || !s->row_bytes || is_reshaped(c, i) ||
            acs_compare_use(c->image, s).changed)
            continue;
        if (found != UINT32_MAX)
            return UINT32_MAX;
        found = i;
    }
    return found;
}

static void print_segment(FILE *to, const acs_checked *c, const acs_finding *f, const char *what, const char *advice)
{
    const acs_segment *s = &c->segments[f->segment];
    const unsigned long long bytes = f->bytes.bytes, all = s->rows * s->row_bytes, first = f->bytes.first - s->base;
    const uint32_t other = swapped_with(c, f);
    if (f->bytes.end > acs_segment_end(s))
        (void)fprintf(to, "%s %llu bytes, the first in segment %u", what, bytes, f->segment);
    else if (bytes == all)
        (void)fprintf(to, "%s all %llu bytes of segment %u", what, all, f->segment);
    else
        (void)fprintf(to, "%s %llu of %llu bytes of segment %u", what, bytes, all, f->segment);
    (void)fprintf(to, ", which is %s", access_word(s->access));
    if (first)
        (void)fprintf(to, ", from its byte %llu on", first);
    else if (bytes != all)
        (void)fputs(", from its first byte on", to);
    if (f->cause != UINT32_MAX)
        print_cause(to, c, f->cause);
    else if (!c->corrected || c->corrected[f->segment].access != s->access)
        (void)fprintf(to, ": is it %s?", advice);
    if (other != UINT32_MAX)
        (void)fprintf(to, " Segments %u and %u may be swapped.", f->segment < other ? f->segment : other,
                      f->segment < other ? other : f->segment);
}

/* Write of bytes outside the footprint how the program may have meant them to be inside, how many, and where. */
static void print_outside(FILE *to, const acs_checked *c, const acs_finding *f)
{
    const unsigned long long bytes = f->bytes.bytes, pieces = f->bytes.pieces;
    const bool writes = f->kind == ACS_FOUND_WRITES_UNNAMED;
    if (writes)
        (void)fprintf(to, "changed %llu bytes outside its footprint", bytes);
    else
        (void)fputs("reads bytes outside its footprint", to);
    if (f->cause != UINT32_MAX)
        print_cause(to, c, f->cause);
    if (pieces > 1)
        (void)fprintf(to, ", in %llu pieces", pieces);
    (void)fputs(", ", to);
    print_place(to, c, &f->bytes, writes && pieces == 1);
}

static void print_finding(FILE *to, const acs_checked *c, const acs_finding *f)
{
    if (!f->bytes.bytes && f->kind != ACS_FOUND_FAILS) {
        (void)fputs("reads what it does not name as read, as was reported before", to);
        return;
    }
    switch (f->kind) {
    case ACS_FOUND_WRITES_UNNAMED:
        if (f->segment != UINT32_MAX)
            print_segment(to, c, f, "changed", "inout");
        else
            print_outside(to, c, f);
        break;
    case ACS_FOUND_READS_UNNAMED:
        print_outside(to, c, f);
        break;
    case ACS_FOUND_READS_OUT:
        print_segment(to, c, f, "reads old bytes among",
                      acs_compare_use(c->image, &c->segments[f->segment]).changed ? "inout" : "in, or inout");
        break;
    case ACS_FOUND_UNWRITTEN:
        print_segment(to, c, f, "did not write", "inout");
        break;
    case ACS_FOUND_FAILS:
        (void)fputs("failed when bytes that its footprint does not name as read were others", to);
        break;
    }
}

/* -------------------------------------------------------------------------------------------------------- footprint */

static const char *access_name(uint8_t access)
{
    return access == ACS_READ ? "IN" : access == ACS_WRITE ? "OUT" : access == ACS_COMMUTE ? "INOUTSET" : "INOUT";
}

/* Write an address as an expression of the program's: an argument, a pointer in one, or bytes behind it. */
static void print_pointer(FILE *to, const acs_checked *c, uint64_t address)
{
    const arg_pointer p = pointer_near(c, address);
    const bool behind = p.arg != SIZE_MAX && p.value != address;
    if (p.arg == SIZE_MAX) {
        (void)fprintf(to, "(char *)%#llx", (unsigned long long)address);
        return;
    }
    (void)fputs(!p.whole ? "*(char **)((char *)&" : behind ? "(char *)(" : "", to);
    print_argument(to, c, p.arg, true);
    if (!p.whole)
        (void)fprintf(to, " + %u)", p.byte);
    else if (behind)
        (void)fputc(')', to);
    if (behind)
        (void)fprintf(to, " %c %llu", address > p.value ? '+' : '-',
                      (unsigned long long)(address > p.value ? address - p.value : p.value - address));
}

static void print_named(FILE *to, const acs_checked *c, const acs_segment *s)
{
    const bool tile = s->rows > 1;
    if (s->extent == ACS_EXTENT_TOKEN) {
        (void)fprintf(to, "ACS_TOKEN%s(%#llx)", s->access == ACS_READ ? "_IN" : "", (unsigned long long)s->base);
        return;
    }
    if (s->extent == ACS_EXTENT_ALL) {
        (void)fputs("ACS_ALL_MEMORY_IN", to);
        return;
    }
    (void)fprintf(to, "ACS_%s%s(", tile ? "TILE_" : "", access_name(s->access));
    print_pointer(to, c, s->base);
    (void)fprintf(to, ", %llu", (unsigned long long)s->row_bytes);
    if (tile)
        (void)fprintf(to, ", %llu, %llu", (unsigned long long)s->rows, (unsigned long long)s->pitch_bytes);
    (void)fputc(')', to);
}

static void print_footprint(FILE *to, const acs_checked *c, const char *which, const acs_segment *segments, uint32_t count)
{
    (void)fprintf(to, "acs: check:   footprint, %s: ACS_USES(", which);
    for (uint32_t i = 0; i < count; i++) {
        (void)fputs(i ? ", " : "", to);
        print_named(to, c, &segments[i]);
    }
    (void)fputs(")\n", to);
}

/* ----------------------------------------------------------------------------------------------------------- report */

static void report_one(const acs_checked *c, const acs_finding *f, FILE *report)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return;
    print_finding(memory, c, f);
    if (fclose(memory) == 0 && text) {
        acs_failures_footprint(c->context, c->op, c->number, c->label, text);
        const acs_site site = acs_label_site(c->label);
        if (report)
            (void)fprintf(report, "acs: check: op %llu '%s' (%s:%d) %s\n", (unsigned long long)c->number,
                          acs_label_name(c->label), site.file ? site.file : "?", site.line, text);
    }
    free(text);
}

void acs_findings_report(const acs_checked *checked, bool print, bool first)
{
    for (uint32_t i = 0; i < checked->count; i++)
        report_one(checked, &checked->findings[i], print ? stderr : NULL);
    if (!print || !checked->count)
        return;
    print_footprint(stderr, checked, first ? "as it is (arguments and segments count from 0)" : "as it is", checked->named,
                    checked->segment_count);
    if (checked->corrected)
        print_footprint(stderr, checked, checked->corrected_right ? "corrected" : "with what was found; check it again",
                        checked->corrected, checked->corrected_count);
}

/*
 * Findings and their report (findings.h): names of addresses, a line for each finding, the footprint with what was found.
 * Called by launch_check.c.
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
    checked->findings[checked->count++] = (acs_finding){kind, *bytes, segment};
}

/* ------------------------------------------------------------------------------------------------------------ names */

/* The argument that points at the byte, or nearest before it in the same range; SIZE_MAX: none. *value: where to. */
static size_t argument_before(const acs_checked *c, uint64_t address, uint64_t *value)
{
    const acs_memory_range *range = acs_image_at(c->image, address);
    size_t best = SIZE_MAX;
    for (size_t i = 0; range && i < c->params->args.count; i++) {
        const acs_arg *arg = &c->params->args.list[i];
        uint64_t at = 0;
        if (arg->size != sizeof at)
            continue;
        memcpy(&at, arg->value, sizeof at);
        if (at < range->first || at > address || (best != SIZE_MAX && at <= *value))
            continue;
        best = i;
        *value = at;
    }
    return best;
}

/* The argument as the program has written it, of *bytes bytes; NULL: unknown. A comma in brackets ends none. */
static const char *argument_text(const acs_checked *c, size_t arg, int *bytes)
{
    const char *text = c->params->args_text;
    static const char macro[] = "ACS_ARGS("; /* in C the text is all of it */
    if (text && strncmp(text, macro, sizeof macro - 1) == 0)
        text += sizeof macro - 1;
    const char *first = text;
    int depth = 0;
    for (const char *at = text; at; at++) {
        if (*at == 0 || (depth == 0 && (*at == ',' || *at == ')'))) {
            *bytes = (int)(at - first);
            if (arg-- == 0)
                return first;
            first = at + 1 + (*at && at[1] == ' ');
        }
        if (*at == 0 || (depth == 0 && *at == ')'))
            return NULL;
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
    }
    return NULL;
}

/* Write the name of an address as an expression of the program's. */
static void print_address(FILE *to, const acs_checked *c, uint64_t address)
{
    uint64_t value = 0;
    int bytes = 0;
    const size_t arg = argument_before(c, address, &value);
    const char *text = arg == SIZE_MAX ? NULL : argument_text(c, arg, &bytes);
    if (arg == SIZE_MAX)
        (void)fprintf(to, "%#llx", (unsigned long long)address);
    else if (text)
        (void)fprintf(to, "'%.*s'", bytes, text);
    else
        (void)fprintf(to, "argument %zu", arg);
    if (arg != SIZE_MAX && address != value)
        (void)fprintf(to, " + %llu bytes", (unsigned long long)(address - value));
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

/* Write where bytes lie: from where to where, and in which memory. */
static void print_place(FILE *to, const acs_checked *c, const acs_found_bytes *b)
{
    (void)fputs("from ", to);
    print_address(to, c, b->first);
    (void)fprintf(to, " to %llu bytes behind that, in ", (unsigned long long)(b->end - 1 - b->first));
    print_origin(to, b->range);
}

/* --------------------------------------------------------------------------------------------------------- findings */

static void print_segment(FILE *to, const acs_checked *c, const acs_finding *f, const char *what, const char *advice)
{
    const acs_segment *s = &c->segments[f->segment];
    (void)fprintf(to, "%s %llu of %llu bytes of segment %u, which is %s; the first lie %llu bytes behind its beginning: is "
                  "it %s?", what, (unsigned long long)f->bytes.bytes, (unsigned long long)(s->rows * s->row_bytes),
                  f->segment, s->access & ACS_READ ? s->access & ACS_WRITE ? "inout" : "in" : "out",
                  (unsigned long long)(f->bytes.first - s->base), advice);
}

static void print_finding(FILE *to, const acs_checked *c, const acs_finding *f)
{
    if (!f->bytes.bytes && f->kind != ACS_FOUND_FAILS) {
        (void)fputs("reads what it does not name as read, as was reported before", to);
        return;
    }
    switch (f->kind) {
    case ACS_FOUND_WRITES_UNNAMED:
        if (f->segment != UINT32_MAX) {
            print_segment(to, c, f, "changed", "inout");
            break;
        }
        (void)fprintf(to, "changed %llu bytes outside its footprint, in %llu pieces ", (unsigned long long)f->bytes.bytes,
                      (unsigned long long)f->bytes.pieces);
        print_place(to, c, &f->bytes);
        break;
    case ACS_FOUND_READS_UNNAMED:
        (void)fputs("reads bytes outside its footprint, ", to);
        print_place(to, c, &f->bytes);
        break;
    case ACS_FOUND_READS_OUT:
        print_segment(to, c, f, "reads old bytes among",
                      acs_compare_use(c->image, &c->segments[f->segment]).changed ? "inout" : "in");
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

/* Make room in the footprint for bytes that it lacks: at the end, or the beginning, of a segment, or in a new one. */
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

/* Correct the copy of the footprint by a finding. @return the number of segments. */
static uint32_t correct(const acs_checked *c, acs_segment *segments, uint32_t count, const acs_finding *f)
{
    const bool about_segment = f->segment != UINT32_MAX;
    if (!f->bytes.bytes)
        return count;
    switch (f->kind) {
    case ACS_FOUND_READS_OUT:
        segments[f->segment].access = acs_compare_use(c->image, &c->segments[f->segment]).changed ? ACS_UPDATE : ACS_READ;
        return count;
    case ACS_FOUND_WRITES_UNNAMED:
    case ACS_FOUND_UNWRITTEN:
        if (about_segment) {
            segments[f->segment].access = ACS_UPDATE;
            return count;
        }
        return add_bytes(segments, count, &f->bytes, ACS_UPDATE);
    case ACS_FOUND_READS_UNNAMED:
        return add_bytes(segments, count, &f->bytes, ACS_READ);
    default:
        return count;
    }
}

static const char *access_name(uint8_t access)
{
    switch (access) {
    case ACS_READ:
        return "IN";
    case ACS_WRITE:
        return "OUT";
    case ACS_COMMUTE:
        return "INOUTSET";
    default:
        return "INOUT";
    }
}

/* Write a pointer as the program would: its argument, or bytes behind it. */
static void print_pointer(FILE *to, const acs_checked *c, uint64_t address)
{
    uint64_t value = 0;
    int bytes = 0;
    const size_t arg = argument_before(c, address, &value);
    const char *text = arg == SIZE_MAX ? NULL : argument_text(c, arg, &bytes);
    if (arg == SIZE_MAX || value != address)
        (void)fputs("(char *)", to);
    if (arg == SIZE_MAX)
        (void)fprintf(to, "%#llx", (unsigned long long)address);
    else if (text)
        (void)fprintf(to, value == address ? "%.*s" : "(%.*s)", bytes, text);
    else
        (void)fprintf(to, "args[%zu]", arg);
    if (arg != SIZE_MAX && value != address)
        (void)fprintf(to, " + %llu", (unsigned long long)(address - value));
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

/* Write the footprint as the findings would have it. */
static void print_footprint(FILE *to, const acs_checked *c)
{
    acs_segment *segments = malloc((c->segment_count + c->count + 1) * sizeof *segments);
    uint32_t count = c->segment_count;
    if (!segments)
        return;
    if (count)
        memcpy(segments, c->segments, count * sizeof *segments);
    for (uint32_t i = 0; i < c->count; i++)
        count = correct(c, segments, count, &c->findings[i]);
    (void)fputs("acs: check:   footprint, with what was found: ACS_USES(", to);
    for (uint32_t i = 0; i < count; i++) {
        (void)fputs(i ? ", " : "", to);
        print_named(to, c, &segments[i]);
    }
    (void)fputs(")\n", to);
    free(segments);
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
        acs_failures_footprint(c->context, c->op, c->label, text);
        const acs_site site = acs_label_site(c->label);
        if (report)
            (void)fprintf(report, "acs: check: op %llu '%s' (%s:%d) %s\n", (unsigned long long)c->op,
                          acs_label_name(c->label), site.file ? site.file : "?", site.line, text);
    }
    free(text);
}

void acs_findings_report(const acs_checked *checked, bool print)
{
    for (uint32_t i = 0; i < checked->count; i++)
        report_one(checked, &checked->findings[i], print ? stderr : NULL);
    if (print && checked->count)
        print_footprint(stderr, checked);
}

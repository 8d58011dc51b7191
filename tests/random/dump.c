/*
 * Prints a program after it ran: every step with what it declared, what was observed, and what the oracle says. Called
 * by main.c for a program that failed under --verbose.
 */
#include "program.h"
#include "sections.h"

#include <inttypes.h>
#include <stdio.h>

static void dump_span(const span *s)
{
    static const char *const accesses[] = {"?", "in", "out", "inout"};
    const char *access = s->access == ACS_COMMUTE ? "inoutset" : accesses[s->access & 3];
    if (s->extent == ACS_EXTENT_ALL)
        fprintf(stderr, " %s(everything)", access);
    else if (s->extent == ACS_EXTENT_TOKEN)
        fprintf(stderr, " %s(token %u)", access, s->offset);
    else if (s->rows == 1)
        fprintf(stderr, " %s(%d: %u+%u)", access, s->arena, s->offset, s->row_bytes);
    else
        fprintf(stderr, " %s(%d: %u, %u rows of %u, pitch %u)", access, s->arena, s->offset, s->rows, s->row_bytes,
                s->pitch);
}

/* The sections around a step, the innermost first. */
static void dump_sections(const program *p, const step *s)
{
    for (section_place at = s->section; at.index >= 0; at = p->sections[at.index].around) {
        const section *around = &p->sections[at.index];
        fprintf(stderr, " %s %s(%d: %u)", at.other ? "else of" : "in", around->unless ? "unless" : "if", around->arena,
                around->offset);
    }
    if (s->counted)
        fprintf(stderr, " grid from (%d: %u)", s->count.arena, s->count.offset);
}

static void dump_step(const program *p, const step *s)
{
    fprintf(stderr, "  step %3u thread %u op %3" PRIu64 " %-12s", s->index, s->thread, s->op, step_name(s));
    if (s->any)
        fprintf(stderr, " any");
    for (uint32_t i = 0; i < s->given_count; i++)
        dump_span(&s->given[i]);
    for (uint32_t i = s->computed_from; s->computed && i < s->work_count; i++)
        dump_span(&s->work[i]);
    dump_sections(p, s);
    if (s->target)
        fprintf(stderr, " of step %u", s->target->index);
    if (s->arena >= 0)
        fprintf(stderr, " arena %d", s->arena);
    if (s->fail)
        fprintf(stderr, " fails with %d", s->fail);
    if (s->result)
        fprintf(stderr, " returned %s", acs_status_name(s->result));
    if (s->error.status || s->fate)
        fprintf(stderr, " ended %s (cause %" PRIu64 "), oracle %s", acs_status_name(s->error.status), s->error.cause,
                acs_status_name(s->fate));
    fputc('\n', stderr);
}

void program_dump(const program *p)
{
    for (uint32_t i = 0; i < p->arena_count; i++)
        fprintf(stderr, "  arena %u: kind %d, %u bytes at %p, pitch %u%s\n", i, (int)p->arenas[i].kind, p->arenas[i].bytes,
                (void *)p->arenas[i].real, p->arenas[i].pitch, p->arenas[i].temporary ? ", temporary" : "");
    for (uint32_t i = 0; i < p->step_count; i++)
        if (p->steps[i].kind != STEP_NOTHING)
            dump_step(p, &p->steps[i]);
}

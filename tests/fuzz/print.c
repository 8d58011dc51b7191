/*
 * A readable listing of a program, to standard error: for findings, and for --print of the replayer. Shows what the bytes
 * ask for; what became of it is in the message of the finding.
 */
#include "program.h"

#include <inttypes.h>
#include <stdio.h>

const char *fuzz_kind_name(fuzz_kind kind)
{
    static const char *const names[] = {"kernel", "host", "call", "memcpy", "memset", "after_stream", "free", "on_retire",
                                        "wait_range", "stream_after", "malloc", "wait", "query", "sync", "clear", "step",
                                        "ask", "open/close"};
    return names[kind];
}

static const char *wrong_name(fuzz_wrong wrong)
{
    static const char *const names[FUZZ_WRONGS] = {
        "nothing", "no params", "bad size", "no function", "GPU function only", "zero grid", "large grid", "large block",
        "many threads", "large shared memory", "no args", "null arg", "empty arg", "arg type", "large args", "cluster",
        "programmatic", "no segments", "many segments", "access", "extent", "wraps", "impure footprint",
        "countless segments", "null place", "large closure", "no closure", "op zero", "op of later", "interior pointer",
        "foreign pointer", "freed twice", "kind of memory", "empty block", "huge block", "outside of its block"};
    return names[wrong];
}

static void print_open(const fuzz_open *open)
{
    const acs_options *o = &open->options;
    fprintf(stderr,
            "backend %d, window %d, fifo %d, streams %d, batch %d, workers %d, wait %d, serial %d, disable %d, check %d, "
            "faults %d (%s), order %d, seed %d%s%s; size %zu, wrong %u\n",
            (int)o->backend, (int)o->window, (int)o->fifo, (int)o->streams, (int)o->batch, (int)o->workers, (int)o->wait,
            (int)o->serial, (int)o->disable, (int)o->check, (int)o->faults, o->fault_kinds, (int)o->sim_order, (int)o->seed,
            open->environment ? ", by the environment" : "", open->sync_before_close ? ", sync before close" : "",
            open->size, open->wrong);
}

static void print_segment(const fuzz_segment *s)
{
    static const char *const accesses[] = {"?", "in", "out", "inout"};
    static const char *const areas[] = {"arena", "block", "phantom", "top", "token", "all"};
    fprintf(stderr, " %s(%s", accesses[s->access], areas[s->area]);
    if (s->area == FUZZ_IN_BLOCK)
        fprintf(stderr, " %u", s->block);
    if (s->area != FUZZ_ALL)
        fprintf(stderr, "+%" PRIu64, s->offset);
    if (s->area < FUZZ_TOKEN)
        fprintf(stderr, ", %" PRIu64, s->row_bytes);
    if (s->rows != 1)
        fprintf(stderr, " x %" PRIu64 " every %" PRIu64, s->rows, s->pitch);
    fprintf(stderr, ")");
}

static void print_step(const fuzz_step *s)
{
    fprintf(stderr, "%3u  context %u: %s", s->index, s->context, fuzz_kind_name(s->kind));
    if (s->kind == FUZZ_OPEN_CLOSE) {
        fprintf(stderr, "; to open: ");
        print_open(&s->open);
        return;
    }
    bool one = s->kind == FUZZ_MEMSET || s->kind == FUZZ_WAIT_RANGE;
    uint32_t count = s->kind == FUZZ_MEMCPY ? 2 : one ? 1 : s->segment_count;
    for (uint32_t i = 0; i < count; i++)
        print_segment(&s->segments[i]);
    for (uint32_t i = 0; i < s->arg_count; i++)
        fprintf(stderr, "%s%u", i ? ", " : " arguments of ", s->arg_bytes[i]);
    if (s->computed || s->many)
        fprintf(stderr, " %u computed%s", s->computed, s->many ? " among many" : "");
    if (s->fail || s->borrowed)
        fprintf(stderr, " returns %u%s", s->fail, s->borrowed ? ", closure not copied" : "");
    fprintf(stderr, "%s%s%s, %u", s->any ? " any" : "", s->no_wait ? " no_wait" : "",
            s->calls_inside ? " calls ACS from inside" : "", s->a);
    fprintf(stderr, s->wrong ? "; wrong: %s\n" : "\n", wrong_name(s->wrong));
}

void fuzz_print(const fuzz_program *p)
{
    fprintf(stderr, "opens context 0: ");
    print_open(&p->first);
    for (uint32_t i = 0; i < p->count; i++)
        print_step(&p->steps[i]);
}

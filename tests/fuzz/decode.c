/*
 * From bytes to a program (the layout is in program.h). Called by the fuzzer's entry and the replayer; every value that
 * comes out is one that run.c can take, so that no input is wasted. Never calls the library but for default options.
 */
#include "program.h"

#include <stdio.h>
#include <string.h>

typedef struct cursor {
    const uint8_t *at;
    size_t left;
} cursor;

static uint8_t byte(cursor *c)
{
    if (!c->left)
        return 0;
    c->left--;
    return *c->at++;
}

/* ----------------------------------------------------------------------------------------------------------- options */

enum { WRONG_FROM = 200, OLDER_FROM = 240 };

/* The environment is bad on purpose (see fuzz_api.c): this fails, and leaves the defaults. */
static const acs_options *defaults(void)
{
    static acs_options options;
    if (!options.size)
        (void)acs_options_init(&options, sizeof options);
    return &options;
}

static void decode_open(cursor *c, fuzz_open *open)
{
    static const int64_t windows[] = {1, 2, 3, 4, 6, 8, 16, 64}, fifos[] = {2, 4, 8, 32}, batches[] = {1, 2, 4, 16},
                         faults[] = {0, 0, 20, 200};
    static const char *const kinds[] = {"launch,copy,bounce", "launch,copy,bounce,memory", "copy,bounce,slow", "memory"};
    uint8_t b0 = byte(c), b1 = byte(c), b2 = byte(c), seed = byte(c), wrong = byte(c);
    acs_options *o = &open->options;

    memset(open, 0, sizeof *open);
    *o = *defaults();
    open->environment = b2 >> 7;
    o->window = windows[b0 & 7];
    o->fifo = fifos[b0 >> 3 & 3];
    o->wait = b0 >> 5 & 1;
    o->serial = b0 >> 6 & 1;
    o->check = b0 >> 7;
    o->streams = 1 + (b1 & 7);
    o->batch = batches[b1 >> 3 & 3];
    o->workers = b1 >> 5;
    o->spin_us = 0;
    o->seed = seed;
    o->pool = (wrong & 1) ? ACS_POOL_ON : ACS_POOL_OFF;
    o->repeats = ACS_REPEATS_NAMED; /* numbers have no gaps: the judge expects a certain one of each call */
    o->backend = FUZZ_BACKEND;
    if ((b2 & 15) == 13) {
        o->backend = ACS_BACKEND_HOST;
        o->workers = 0;
        o->executors = 2;
    } else if ((b2 & 15) >= 14) {
        o->disable = 1;
        o->backend = (b2 & 1) ? FUZZ_BACKEND : ACS_BACKEND_HOST;
    }
    if (!open->environment && o->backend == FUZZ_BACKEND) {
        o->sim_order = seed >> 7;
        snprintf(o->fault_kinds, sizeof o->fault_kinds, "%s", kinds[seed >> 5 & 3]);
    }
    o->faults = o->backend == FUZZ_BACKEND ? faults[b2 >> 4 & 3] : 0;
    open->sync_before_close = (b2 >> 6 & 1) || o->faults; /* faults are learnt from the run */
    open->size = sizeof *o;
    if (wrong >= OLDER_FROM && o->backend == FUZZ_BACKEND)
        open->size -= 8u * (wrong & 7u);
    else if (wrong >= WRONG_FROM)
        open->wrong = (uint8_t)(1 + wrong % 8);
}

/* ---------------------------------------------------------------------------------------------------------- segments */

static uint64_t segment_size(uint8_t class, uint8_t size)
{
    return class == 0 ? size % 16 : class == 1 ? size % 64 : class == 2 ? size : (size & 1) ? FUZZ_ARENA : 0;
}

static void decode_tile(cursor *c, fuzz_segment *s)
{
    static const uint8_t usual[] = {16, 24, 32, 48}; /* tiles of one pitch are a case of their own */
    uint8_t rows = byte(c), pitch = byte(c);
    pitch = pitch < 64 ? pitch : usual[pitch & 3];
    s->rows = s->area == FUZZ_NOWHERE ? (uint64_t)(rows & 15) << (rows >> 6) : rows % 9;
    s->pitch = s->area == FUZZ_NOWHERE ? (uint64_t)pitch << (rows >> 4 & 3) * 8 : pitch;
}

static void decode_segment(cursor *c, fuzz_segment *s)
{
    static const uint8_t accesses[] = {ACS_READ, ACS_WRITE, ACS_UPDATE, ACS_READ};
    static const uint8_t areas[] = {FUZZ_IN_ARENA, FUZZ_IN_ARENA, FUZZ_IN_ARENA, FUZZ_IN_BLOCK,
                                    FUZZ_IN_BLOCK, FUZZ_NOWHERE, FUZZ_TOKEN, FUZZ_ALL};
    uint8_t b = byte(c), place = byte(c), size = byte(c);

    memset(s, 0, sizeof *s);
    s->access = accesses[b & 3];
    s->area = areas[b >> 2 & 7];
    s->offset = place;
    s->rows = 1;
    s->row_bytes = segment_size(b >> 6, size);
    if (s->area == FUZZ_IN_BLOCK) {
        s->block = place & 7;
        s->offset = size;
        s->row_bytes = byte(c);
    } else if (s->area == FUZZ_TOKEN) {
        s->offset = place & 3;
    } else if (s->area == FUZZ_NOWHERE && b >> 6 == 3) {
        /* Huge, or at the very end of the address space. */
        s->area = size >= 0xf0 ? FUZZ_TOP : FUZZ_NOWHERE;
        s->row_bytes = size >= 0xf0 ? 16 : 1ull << size % 42;
    }
    if ((b >> 5 & 1) && (s->area == FUZZ_IN_ARENA || s->area == FUZZ_NOWHERE))
        decode_tile(c, s);
}

/* One row; of bytes that are there and end in the arena where `anywhere` is false. */
static void decode_row(cursor *c, fuzz_segment *s, bool anywhere)
{
    decode_segment(c, s);
    s->rows = 1;
    if (s->area == FUZZ_TOKEN || s->area == FUZZ_ALL || (!anywhere && s->area > FUZZ_IN_BLOCK))
        s->area = FUZZ_IN_ARENA;
    if (!anywhere && s->row_bytes > FUZZ_ARENA - s->offset)
        s->row_bytes = FUZZ_ARENA - s->offset;
}

/* ------------------------------------------------------------------------------------------------------------- steps */

/* Flags: segments (bits 0-2), computed (3-4), no_wait (5), any (6), fails or is borrowed (7). */
static uint8_t decode_uses(cursor *c, fuzz_step *s)
{
    uint8_t flags = byte(c);
    s->segment_count = (flags & 7) > FUZZ_SEGMENTS ? (flags & 3) : (flags & 7);
    for (uint32_t i = 0; i < s->segment_count; i++)
        decode_segment(c, &s->segments[i]);
    s->computed = (flags >> 3 & 3) ? s->segment_count / (flags >> 3 & 3) : 0;
    s->many = (flags >> 3 & 3) == 3;
    s->no_wait = flags >> 5 & 1;
    s->any = flags >> 6 & 1;
    return flags >> 7;
}

static void decode_kernel(cursor *c, fuzz_step *s)
{
    static const uint16_t sizes[] = {1, 2, 4, 8, 3, 12, 100, 1000};
    if (!decode_uses(c, s))
        return;
    uint8_t args = byte(c);
    s->arg_count = 1 + (args & 1) + (args >> 1 & 1);
    for (uint32_t i = 0; i < s->arg_count; i++)
        s->arg_bytes[i] = sizes[(args >> (2 + 2 * i)) & 7];
}

static void decode_step(cursor *c, fuzz_step *s)
{
    static const uint8_t kinds[32] = {
        FUZZ_KERNEL, FUZZ_KERNEL, FUZZ_KERNEL, FUZZ_KERNEL, FUZZ_KERNEL, FUZZ_KERNEL, FUZZ_KERNEL, FUZZ_KERNEL, FUZZ_HOST,
        FUZZ_HOST, FUZZ_HOST, FUZZ_CALL, FUZZ_CALL, FUZZ_MEMCPY, FUZZ_MEMCPY, FUZZ_MEMSET, FUZZ_MEMSET, FUZZ_AFTER_STREAM,
        FUZZ_FREE, FUZZ_FREE, FUZZ_RETIRE, FUZZ_WAIT_RANGE, FUZZ_STREAM_AFTER, FUZZ_MALLOC, FUZZ_MALLOC, FUZZ_WAIT,
        FUZZ_QUERY, FUZZ_SYNC, FUZZ_CLEAR, FUZZ_STEP, FUZZ_ASK, FUZZ_OPEN_CLOSE};
    uint8_t b = byte(c), wrong = b >> 7 ? byte(c) : 0;

    s->kind = (fuzz_kind)kinds[b & 31];
    s->context = b >> 5 & 1;
    s->calls_inside = b >> 6 & 1;
    s->wrong = (fuzz_wrong)(wrong % FUZZ_WRONGS);
    s->wrong_detail = wrong;
    switch (s->kind) {
    case FUZZ_KERNEL: decode_kernel(c, s); break;
    case FUZZ_HOST:
    case FUZZ_CALL:
        s->fail = decode_uses(c, s) ? byte(c) : 0;
        s->borrowed = s->fail & 1;
        s->fail >>= 1;
        break;
    case FUZZ_AFTER_STREAM:
    case FUZZ_STREAM_AFTER: (void)decode_uses(c, s); break;
    case FUZZ_MEMCPY: decode_row(c, &s->segments[1], false); /* fall through */
    case FUZZ_MEMSET: decode_row(c, &s->segments[0], false); break;
    case FUZZ_WAIT_RANGE: decode_row(c, &s->segments[0], true); break;
    case FUZZ_SYNC:
    case FUZZ_CLEAR:
    case FUZZ_STEP: break;
    case FUZZ_OPEN_CLOSE: decode_open(c, &s->open); break;
    default: break;
    }
    if (s->kind != FUZZ_SYNC && s->kind != FUZZ_CLEAR && s->kind != FUZZ_STEP)
        s->a = byte(c);
}

void fuzz_decode(const uint8_t *data, size_t bytes, fuzz_program *p)
{
    cursor c = {data, bytes};
    memset(p, 0, sizeof *p);
    decode_open(&c, &p->first);
    while (c.left && p->count < FUZZ_STEPS) {
        p->steps[p->count].index = (uint8_t)p->count;
        decode_step(&c, &p->steps[p->count++]);
    }
}

/*
 * Makes a random program from a seed: arenas, then steps in program order. Called by main.c. It only describes; it
 * touches no arena and calls nothing of the library. The same configuration always gives the same program.
 */
#include "moving.h"
#include "passing.h"
#include "sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAVOURITES = 6, TEMPORARIES = 3, TOKENS = 5, PARTS = 12, MAX_GIVEN = MIX_PIECES + 8, TOLD = 6 /* pointers */,
       CALLS_BACK = 60 /* steps: among which a call is looked for that another is like */ };

/* What the generator remembers about one thread's arenas. */
typedef struct domain {
    int arenas[7 + TEMPORARIES]; /* make_arenas makes up to six, and one for words that decide */
    uint32_t arena_count;
    uint32_t temporaries;
    span favourites[FAVOURITES]; /* shapes that recur, as they do in real programs */
    uint32_t favourite_count;
    step *latest[8];             /* ops that waits and callbacks may name: since the last clear */
    uint32_t latest_count;
} domain;

typedef struct generator {
    dice dice;
    program *p;
    domain domains[8];
    bool shared;   /* all threads use domain 0 */
    uint32_t phase; /* of a crowd: steps that mostly write, then as many that mostly read */
    uint32_t period; /* of a dense program: steps after which much comes again; 0: it is none */
    bool passes;     /* and the program says so */
    bool reading;
    bool any_ok;   /* ops without a footprint are allowed: with failures they would tie the threads together */
} generator;

struct block {
    block *next;
    _Alignas(16) unsigned char bytes[];
};

void *program_alloc(program *p, size_t bytes)
{
    block *b = calloc(1, sizeof *b + bytes + 1);
    if (!b) {
        fprintf(stderr, "test_random: out of memory\n");
        exit(2);
    }
    b->next = p->blocks;
    p->blocks = b;
    return b->bytes;
}

void program_free(program *p)
{
    block *b = p->blocks;
    while (b) {
        block *next = b->next;
        free(b);
        b = next;
    }
    free(p);
}

/* ----------------------------------------------------------------------------------------------------------- arenas */

static int add_arena(generator *g, domain *d, uint32_t owner, arena_kind kind, uint32_t bytes, bool temporary)
{
    static const uint32_t pitches[] = {16, 24, 32, 48, 64, 96};
    program *p = g->p;
    arena *a = &p->arenas[p->arena_count];
    a->kind = kind;
    a->bytes = p->config.tight ? MOVING_TIGHT_BYTES : bytes;
    a->pitch = pitches[dice_below(&g->dice, 6)];
    a->owner = owner;
    a->temporary = temporary;
    a->live = true;
    dice later = {p->config.seed ^ (0x6c62272e07bb0142u + p->arena_count)}; /* seeds keep their meaning without it */
    a->lazy = p->config.lazy && kind == ARENA_DEVICE && dice_percent(&later, p->config.tight ? 90 : 65);
    d->arenas[d->arena_count++] = (int)p->arena_count;
    return (int)p->arena_count++;
}

static arena_kind pick_arena_kind(generator *g, uint32_t n)
{
    if (n < 2) /* each domain has one arena that kernels may use and one that the program may */
        return n == 0 ? ARENA_DEVICE : ARENA_HOST;
    return (arena_kind)dice_below(&g->dice, 3);
}

static void make_arenas(generator *g)
{
    static const uint32_t sizes[] = {64, 200, 512, 1000, 2048, 4096};
    uint32_t domains = g->shared ? 1 : g->p->config.threads;
    g->p->arenas = program_alloc(g->p, (domains * 7 + g->p->config.ops + 1) * sizeof(arena));
    for (uint32_t i = 0; i < domains; i++) {
        uint32_t count = 2 + dice_below(&g->dice, 3) + (g->p->config.tight ? 2 : 0);
        for (uint32_t n = 0; n < count; n++)
            add_arena(g, &g->domains[i], i, pick_arena_kind(g, n), sizes[dice_below(&g->dice, 6)], false);
    }
}

/* Who touches an arena: it matters on a GPU, and where it is lazy. ROLE_CALL: a kernel that tells no pointers, too. */
typedef enum role { ROLE_KERNEL, ROLE_CALL, ROLE_HOST, ROLE_COPY } role;

static bool arena_fits(const program *p, int arena_index, role who)
{
    arena_kind kind = p->arenas[arena_index].kind;
    if (p->arenas[arena_index].lazy)
        return who == ROLE_COPY || who == ROLE_KERNEL;
    if (!p->config.gpu || who == ROLE_COPY || kind == ARENA_HOST)
        return true;
    return who == ROLE_HOST ? kind == ARENA_PLAIN : kind == ARENA_DEVICE;
}

static int pick_arena(generator *g, domain *d, role who)
{
    for (;;) { /* arena 1 of each domain is ARENA_HOST and fits everybody */
        int a = d->arenas[dice_below(&g->dice, d->arena_count)];
        if (arena_fits(g->p, a, who))
            return a;
    }
}

/* ------------------------------------------------------------------------------------------------------------ spans */

static void shape_contiguous(generator *g, const arena *a, span *s)
{
    uint32_t most = dice_percent(&g->dice, 15) ? a->bytes : a->bytes / 6 + 1;
    s->row_bytes = 1 + dice_below(&g->dice, most);
    s->offset = dice_below(&g->dice, a->bytes - s->row_bytes + 1);
}

static void shape_aligned(generator *g, const arena *a, span *s)
{
    s->row_bytes = a->bytes / 8;
    s->offset = s->row_bytes * dice_below(&g->dice, 8);
}

static void shape_tile(generator *g, const arena *a, span *s)
{
    uint32_t pitch = dice_percent(&g->dice, 70) ? a->pitch : 8 + dice_below(&g->dice, 100);
    uint32_t rows = 1 + dice_below(&g->dice, 8);
    /* At times a row just touches the next one; those of several rows do not overlap. */
    uint32_t row = 1 + dice_below(&g->dice, dice_percent(&g->dice, 10) ? pitch + 4 : pitch);
    while (rows > 1 && (rows - 1) * pitch + row > a->bytes)
        rows--;
    if (rows > 1 && row > pitch)
        row = pitch;
    if (row > a->bytes)
        row = a->bytes;
    s->rows = rows;
    s->row_bytes = row;
    s->pitch = pitch;
    s->offset = dice_below(&g->dice, a->bytes - ((rows - 1) * pitch + row) + 1);
}

/* The whole of one arena, or one of its equal parts. Readers mostly take the whole, and writers parts. */
static span pick_crowded(generator *g, domain *d, role who, uint8_t access)
{
    span s = {d->arenas[!arena_fits(g->p, d->arenas[0], who) || who == ROLE_HOST], 0, 0, 1, 0, access, ACS_EXTENT_BYTES};
    const arena *a = &g->p->arenas[s.arena];
    if (dice_percent(&g->dice, access == ACS_READ ? 70 : 8)) {
        s.row_bytes = a->bytes;
        return s;
    }
    s.row_bytes = a->bytes / PARTS;
    s.offset = s.row_bytes * dice_below(&g->dice, PARTS);
    return s;
}

static span pick_span(generator *g, domain *d, role who, uint8_t access)
{
    if (g->phase && dice_percent(&g->dice, 80))
        return pick_crowded(g, d, who, access);
    if (d->favourite_count && dice_percent(&g->dice, 45)) {
        span s = d->favourites[dice_below(&g->dice, d->favourite_count)];
        if (g->p->arenas[s.arena].live && arena_fits(g->p, s.arena, who)) {
            s.access = access;
            return s;
        }
    }
    span s = {pick_arena(g, d, who), 0, 0, 1, 0, access, ACS_EXTENT_BYTES};
    const arena *a = &g->p->arenas[s.arena];
    uint32_t form = dice_below(&g->dice, 10);
    if (form < 4)
        shape_contiguous(g, a, &s);
    else if (form < 6)
        shape_aligned(g, a, &s);
    else
        shape_tile(g, a, &s);
    d->favourites[d->favourite_count < FAVOURITES ? d->favourite_count++ : dice_below(&g->dice, FAVOURITES)] = s;
    return s;
}

static uint8_t pick_access(generator *g)
{
    static const uint8_t accesses[] = {ACS_READ, ACS_READ, ACS_READ, ACS_WRITE, ACS_UPDATE, ACS_COMMUTE};
    if (g->phase && dice_percent(&g->dice, 85))
        return g->reading ? ACS_READ : ACS_WRITE;
    return accesses[dice_below(&g->dice, 6)];
}

/* ------------------------------------------------------------------------------------------------------- footprints */

/* Contiguous bytes around a tile, with at least its access: what a careless but correct program declares. */
static span coarse(const span *s)
{
    span c = *s;
    c.row_bytes = (s->rows - 1) * s->pitch + s->row_bytes;
    c.rows = 1;
    c.access = s->access == ACS_WRITE ? ACS_UPDATE : s->access;
    return c;
}

static void declare(span *given, uint32_t *count, span s)
{
    if (*count < MAX_GIVEN)
        given[(*count)++] = s;
}

/* Segments that change no byte: tokens, empty ones, and one twice. */
static void declare_oddities(generator *g, const step *s, uint32_t domain_index, span *given, uint32_t *count)
{
    if (dice_percent(&g->dice, 12)) {
        uint32_t key = 1 + domain_index * TOKENS + dice_below(&g->dice, TOKENS);
        uint8_t access = dice_percent(&g->dice, 50) ? ACS_READ : ACS_UPDATE;
        declare(given, count, (span){-1, key, 0, 0, 0, access, ACS_EXTENT_TOKEN});
    }
    if (s->work_count && dice_percent(&g->dice, 8)) {
        span empty = s->work[0];
        empty.access = ACS_UPDATE;
        if (dice_percent(&g->dice, 50))
            empty.row_bytes = 0;
        else
            empty.rows = 0;
        declare(given, count, empty);
    }
    if (s->work_count && dice_percent(&g->dice, 5))
        declare(given, count, s->work[0]);
}

static void declare_pieces(const step *s, uint32_t from, uint8_t mask, bool widen, span *given, uint32_t *count)
{
    for (uint32_t i = from; i < s->work_count; i++)
        if (s->work[i].access & mask)
            declare(given, count, widen ? coarse(&s->work[i]) : s->work[i]);
}

/* Choose how the op declares what it touches; always at least what it touches. */
static void declare_footprint(generator *g, step *s, uint32_t domain_index, bool may_compute)
{
    span given[MAX_GIVEN];
    uint32_t count = 0, form = dice_below(&g->dice, 100);
    s->computed_from = s->work_count;
    declare_oddities(g, s, domain_index, given, &count);
    if (form < 2 && g->any_ok) {
        s->any = true;
    } else if (form < 4 && g->any_ok) {
        declare(given, &count, (span){-1, 0, 0, 0, 0, ACS_UPDATE, ACS_EXTENT_ALL});
    } else if (form < 6 && g->any_ok) {
        declare(given, &count, (span){-1, 0, 0, 0, 0, ACS_READ, ACS_EXTENT_ALL});
        declare_pieces(s, 0, ACS_WRITE, false, given, &count);
    } else if (form < 22 && may_compute) {
        s->computed = true;
        s->computed_from = dice_percent(&g->dice, 70) ? 0 : dice_below(&g->dice, s->work_count + 1);
        for (uint32_t i = 0; i < s->computed_from; i++)
            declare(given, &count, s->work[i]);
    } else {
        declare_pieces(s, 0, ACS_UPDATE, form < 30, given, &count);
    }
    span *copy = program_alloc(g->p, count * sizeof *copy);
    memcpy(copy, given, count * sizeof *copy);
    s->given = copy;
    s->given_count = count;
}

/* -------------------------------------------------------------------------------------------------------- the steps */

static void pick_work(generator *g, domain *d, step *s, role who, uint32_t most)
{
    uint32_t n = dice_percent(&g->dice, 6) ? dice_below(&g->dice, most + 1) : 1 + dice_below(&g->dice, 4);
    if (n > most)
        n = most;
    if (n > TOLD && who == ROLE_KERNEL)
        who = ROLE_CALL;
    span *work = program_alloc(g->p, n * sizeof *work);
    for (uint32_t i = 0; i < n; i++) {
        work[i] = pick_span(g, d, who, pick_access(g));
        /* a GPU's operations on memory of the host are not atomic with those of the CPU, and with copies */
        if (g->p->config.gpu && g->p->arenas[work[i].arena].kind != ARENA_DEVICE && work[i].access == ACS_COMMUTE)
            work[i].access = ACS_UPDATE;
    }
    s->work = work;
    s->work_count = n;
    s->spin = dice_percent(&g->dice, 85) ? 0 : dice_below(&g->dice, 3000);
}

/* The kernel without arguments, and streams, touch nothing, so they must not say that they write every byte of something. */
static void promise_nothing(generator *g, step *s)
{
    span *work = program_alloc(g->p, s->work_count * sizeof *work);
    for (uint32_t i = 0; i < s->work_count; i++) {
        work[i] = s->work[i];
        work[i].access = work[i].access == ACS_WRITE ? ACS_UPDATE : work[i].access;
    }
    s->work = work;
}

static void make_kernel(generator *g, domain *d, step *s, uint32_t di)
{
    uint32_t pieces = 3;
    const uint16_t *extras;
    s->signature = (int)dice_below(&g->dice, MIX_SIGNATURE_COUNT + 1) - 1;
    if (s->signature >= MIX_SIGNATURE_BIG && !dice_percent(&g->dice, 15))
        s->signature = (int)dice_below(&g->dice, MIX_SIGNATURE_BIG);
    if (g->period)
        s->signature %= 3;
    if (s->signature >= 0)
        signature_extras(s->signature, &extras, &pieces);
    pick_work(g, d, s, s->signature < 0 ? ROLE_CALL : ROLE_KERNEL, pieces);
    if (s->signature < 0)
        promise_nothing(g, s);
    s->grid = 1 + dice_below(&g->dice, 4);
    if (g->period) { /* few types */
        s->block = 32;
        declare_footprint(g, s, di, s->signature >= 0);
        return;
    }
    s->block = 32 * (1 + dice_below(&g->dice, 4));
    s->shared_bytes = dice_percent(&g->dice, 10) ? dice_below(&g->dice, 4096) : 0;
    declare_footprint(g, s, di, s->signature >= 0);
}

static void make_host(generator *g, domain *d, step *s, uint32_t di)
{
    pick_work(g, d, s, ROLE_HOST, MIX_PIECES);
    s->extra_count = dice_below(&g->dice, 3);
    for (uint32_t i = 0; i < s->extra_count; i++)
        s->extra_bytes[i] = (uint16_t)(dice_percent(&g->dice, 5) ? dice_below(&g->dice, 12000) : dice_below(&g->dice, 60));
    s->borrowed = dice_percent(&g->dice, 25);
    s->fail = g->p->config.failing && dice_percent(&g->dice, 12) ? 1 + (int)dice_below(&g->dice, 100) : 0;
    declare_footprint(g, s, di, false);
}

/* Does what an earlier step of the thread did, if its memory is still there. */
static bool do_again(const generator *g, step *s, const step *model)
{
    const uint32_t index = s->index;
    if (model->thread != s->thread)
        return false;
    for (uint32_t i = 0; i < model->given_count; i++)
        if (model->given[i].arena >= 0 && !g->p->arenas[model->given[i].arena].live)
            return false;
    for (uint32_t i = 0; i < model->work_count; i++)
        if (!g->p->arenas[model->work[i].arena].live)
            return false;
    *s = *model;
    s->index = s->id = index;
    return true;
}

/* Libraries are called for the same again and again: such calls may be issued without them. */
static bool call_again(generator *g, step *s)
{
    const step *model = s;
    while (model->index > 0 && s->index - model->index < CALLS_BACK)
        if (step_repeats(--model) && dice_percent(&g->dice, 50))
            return do_again(g, s, model);
    return false;
}

static void make_call(generator *g, domain *d, step *s, uint32_t di)
{
    if (dice_percent(&g->dice, 60) && call_again(g, s))
        return;
    pick_work(g, d, s, ROLE_CALL, MIX_PIECES);
    s->scratch = dice_percent(&g->dice, 50);
    s->fail = g->p->config.failing && dice_percent(&g->dice, 12) ? 1 + (int)dice_below(&g->dice, 100) : 0;
    declare_footprint(g, s, di, false);
}

static void make_memset(generator *g, domain *d, step *s)
{
    span *work = program_alloc(g->p, sizeof *work);
    *work = pick_span(g, d, ROLE_COPY, ACS_WRITE);
    *work = coarse(work);
    work->access = ACS_WRITE;
    if (dice_percent(&g->dice, 3))
        work->row_bytes = 0;
    s->work = s->given = work;
    s->work_count = s->given_count = s->computed_from = 1;
    s->value = (int)dice_below(&g->dice, 256);
}

static void make_memcpy(generator *g, domain *d, step *s)
{
    span *work = program_alloc(g->p, 2 * sizeof *work);
    work[0] = pick_span(g, d, ROLE_COPY, ACS_WRITE);
    work[0] = coarse(&work[0]);
    work[0].access = ACS_WRITE;
    work[1] = (span){pick_arena(g, d, ROLE_COPY), 0, 0, 1, 0, ACS_READ, ACS_EXTENT_BYTES};
    uint32_t room = g->p->arenas[work[1].arena].bytes;
    if (work[0].row_bytes > room)
        work[0].row_bytes = room;
    work[1].row_bytes = work[0].row_bytes;
    work[1].offset = dice_below(&g->dice, room - work[0].row_bytes + 1);
    bool same = work[0].arena == work[1].arena;
    if (same && work[0].offset < work[1].offset + work[1].row_bytes && work[1].offset < work[0].offset + work[0].row_bytes)
        work[0].row_bytes = work[1].row_bytes = 0; /* source and destination must not overlap: copy nothing */
    s->work = s->given = work;
    s->work_count = s->given_count = s->computed_from = 2;
}

static void make_alloc(generator *g, domain *d, step *s)
{
    if (d->temporaries >= TEMPORARIES) {
        s->kind = STEP_MEMSET;
        make_memset(g, d, s);
        return;
    }
    arena_kind kind = dice_percent(&g->dice, 70) ? ARENA_DEVICE : ARENA_HOST;
    s->arena = add_arena(g, d, s->thread, kind, 1 + dice_below(&g->dice, 1200), true);
    d->temporaries++;
    span *work = program_alloc(g->p, sizeof *work);
    *work = (span){s->arena, 0, g->p->arenas[s->arena].bytes, 1, 0, ACS_WRITE, ACS_EXTENT_BYTES};
    s->work = s->given = work;
    s->work_count = s->given_count = s->computed_from = 1;
    s->value = (int)dice_below(&g->dice, 256);
}

static void make_free(generator *g, domain *d, step *s)
{
    for (uint32_t i = 0; i < d->arena_count; i++) {
        arena *a = &g->p->arenas[d->arenas[i]];
        if (!a->temporary)
            continue;
        s->arena = d->arenas[i];
        a->live = false;
        d->arenas[i] = d->arenas[--d->arena_count];
        d->temporaries--;
        return;
    }
    s->kind = STEP_STEP;
}

/* WAIT_RANGE, STREAM_AFTER: one contiguous range, mostly one that the program may then read. */
static void make_range(generator *g, domain *d, step *s)
{
    span *work = program_alloc(g->p, sizeof *work);
    bool looks = s->kind == STEP_WAIT_RANGE && g->p->config.lazy && dice_percent(&g->dice, 30);
    *work = pick_span(g, d, looks ? ROLE_COPY : ROLE_HOST, ACS_READ);
    *work = coarse(work);
    if (s->kind == STEP_WAIT_RANGE && dice_percent(&g->dice, 25)) {
        s->program_writes = arena_fits(g->p, work->arena, ROLE_HOST);
        work->access = dice_percent(&g->dice, 50) ? ACS_WRITE : ACS_UPDATE;
    }
    s->work = s->given = work;
    s->work_count = s->given_count = s->computed_from = 1;
}

static void make_after_stream(generator *g, domain *d, step *s, uint32_t di)
{
    pick_work(g, d, s, ROLE_COPY, 3);
    if (g->p->config.lazy)
        promise_nothing(g, s);
    declare_footprint(g, s, di, false);
}

static step_kind pick_kind(generator *g)
{
    static const struct {
        step_kind kind;
        uint32_t weight;
    } table[] = {{STEP_KERNEL, 480}, {STEP_MEMCPY, 90}, {STEP_MEMSET, 60}, {STEP_HOST, 80}, {STEP_CALL, 60},
                 {STEP_AFTER_STREAM, 10}, {STEP_ALLOC, 25}, {STEP_FREE, 20}, {STEP_CALLBACK, 35}, {STEP_WAIT, 15},
                 {STEP_QUERY, 20}, {STEP_WAIT_RANGE, 25}, {STEP_STREAM_AFTER, 6}, {STEP_SYNC, 8}, {STEP_CLEAR, 10},
                 {STEP_STEP, 50}, {STEP_REFUSED, 3}};
    uint32_t roll = dice_below(&g->dice, 997), i = 0;
    while (roll >= table[i].weight)
        roll -= table[i++].weight;
    return table[i].kind;
}

static void remember(domain *d, step *s, generator *g)
{
    d->latest[d->latest_count < 8 ? d->latest_count++ : dice_below(&g->dice, 8)] = s;
}

/* Kinds that name an earlier op, or nothing; they fall back to something harmless when there is none. */
static void make_other(generator *g, domain *d, step *s)
{
    bool can_fail = g->p->config.failing || g->p->config.options.faults;
    bool clear_ok = g->shared || !can_fail;
    if (s->kind == STEP_STEP && can_fail && dice_percent(&g->dice, 50))
        s->kind = STEP_CLEAR; /* or most ops would be skipped */
    if (s->kind == STEP_CLEAR && !clear_ok)
        s->kind = STEP_SYNC;
    if (s->kind == STEP_CLEAR)
        d->latest_count = 0;
    if (s->kind == STEP_CALLBACK || s->kind == STEP_WAIT || s->kind == STEP_QUERY) {
        if (d->latest_count)
            s->target = d->latest[dice_below(&g->dice, d->latest_count)];
        else
            s->kind = STEP_STEP;
    }
}

/* Dense programs repeat themselves: what the step a period before did, if its memory is still there. */
static bool repeat(generator *g, step *s)
{
    const step *model = s - g->period;
    if (model->kind != STEP_KERNEL || dice_percent(&g->dice, g->passes ? 3 : 6) || !do_again(g, s, model))
        return false;
    if (g->passes && dice_percent(&g->dice, 70)) /* with the same arguments */
        s->id = model->id;
    return true;
}

static void make_step(generator *g, step *s)
{
    uint32_t di = g->shared ? 0 : s->thread;
    domain *d = &g->domains[di];
    if (g->period && s->index >= g->period && repeat(g, s)) {
        remember(d, s, g);
        return;
    }
    s->kind = pick_kind(g);
    if (g->period && s->kind != STEP_KERNEL && dice_percent(&g->dice, 88))
        s->kind = STEP_KERNEL;
    if (g->phase && s->kind >= STEP_WAIT && dice_percent(&g->dice, 75))
        s->kind = STEP_KERNEL; /* a wait would thin the crowd */
    g->reading = g->phase && s->index / g->phase % 2;
    s->arena = -1;
    switch (s->kind) {
    case STEP_KERNEL: make_kernel(g, d, s, di); break;
    case STEP_MEMCPY: make_memcpy(g, d, s); break;
    case STEP_MEMSET: make_memset(g, d, s); break;
    case STEP_HOST: make_host(g, d, s, di); break;
    case STEP_CALL: make_call(g, d, s, di); break;
    case STEP_AFTER_STREAM: make_after_stream(g, d, s, di); break;
    case STEP_ALLOC: make_alloc(g, d, s); break;
    case STEP_FREE: make_free(g, d, s); break;
    case STEP_WAIT_RANGE:
    case STEP_STREAM_AFTER: make_range(g, d, s); break;
    default: make_other(g, d, s); break;
    }
    if (s->kind <= STEP_AFTER_STREAM)
        remember(d, s, g);
}

program *program_generate(const random_config *config)
{
    program *p = calloc(1, sizeof *p);
    if (!p) {
        fprintf(stderr, "test_random: out of memory\n");
        exit(2);
    }
    p->config = *config;
    generator g = {.dice = {config->seed * 0x2545f4914f6cdd1du + 1}, .p = p};
    g.shared = config->threads == 1 || config->baton;
    g.any_ok = g.shared || !(config->failing || config->options.faults);
    g.phase = config->crowded ? 6 + dice_below(&g.dice, 30) : 0;
    g.passes = program_passes(config);
    g.period = p->period = config->dense ? 6 + dice_below(&g.dice, 60) : 0;
    if (g.passes) /* several passes, of the same threads */
        g.period = p->period = 3 + config->ops / (4 + dice_below(&g.dice, 6));
    p->direct_init = config->failing || config->options.faults;
    make_arenas(&g);
    p->steps = program_alloc(p, config->ops * sizeof *p->steps);
    p->step_count = config->ops;
    for (uint32_t i = 0; i < config->ops; i++) {
        p->steps[i].index = p->steps[i].id = i;
        p->steps[i].thread = dice_below(&g.dice, config->threads);
        if (g.passes && i >= g.period && !dice_percent(&g.dice, 3))
            p->steps[i].thread = p->steps[i - g.period].thread;
        make_step(&g, &p->steps[i]);
    }
    int words[8] = {0};
    for (uint32_t i = 0; program_decides(config) && i < (g.shared ? 1 : config->threads); i++)
        words[i] = add_arena(&g, &g.domains[i], i, ARENA_DEVICE, 4 * SECTION_WORDS, false);
    sections_generate(p, words);
    if (config->tight)
        p->config.options.memory_limit = moving_least_memory(p);
    return p;
}

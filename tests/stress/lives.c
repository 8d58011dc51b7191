/*
 * Random sequences of malloc, use and free against a model: every block is filled, copied and read while others come
 * and go at its addresses, ops fail and are skipped, memory is short, and blocks are handed out while ops still use
 * them. What each op did and how it ended is compared with one life of each block after the other, in program order.
 * Through the public interface alone and without kernels, so that it runs on every backend; without cmocka, for a bare
 * GPU machine.
 */
#include "lives.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 8, LIVE_MOST = 40, PHASE = 256, SAMPLE = 64 };
enum { LIVE_BYTES = 10 << 20 }; /* so that a limit of twice as much is enough, whatever gaps there are */

/* A block from acs_malloc to acs_free. Bytes are alike within a unit. */
typedef struct life {
    unsigned char *memory;
    uint32_t unit, units; /* bytes of each, number */
    int kind;
    bool relocatable;
    bool lazy;            /* an address alone, and memory as it is needed */
    bool live;            /* now, as the program goes on */
    uint8_t value[UNITS]; /* as far as it has been judged, like the rest */
    bool known[UNITS], read_failed[UNITS], write_failed[UNITS];
    bool tainted;         /* something failed on it: on several devices what is not concerned may be skipped, too */
} life;

typedef enum step_kind { STEP_MALLOC, STEP_FREE, STEP_FILL, STEP_COPY, STEP_CHECK, STEP_HOST } step_kind;

/* Units of a life that an op names. */
typedef struct part {
    life *of;
    uint32_t first, count;
    acs_access access;
} part;

typedef struct step {
    step_kind kind;
    acs_op op;
    part parts[2];
    uint32_t part_count;
    uint8_t value;         /* FILL; MALLOC of pinned memory, which the program fills itself */
    bool fails;            /* HOST */
    unsigned char *sample; /* CHECK: where the op copied to */
} step;

typedef struct player {
    const settings *settings;
    acs_context *context;
    pthread_barrier_t *barrier;
    uint32_t index;
    uint64_t random;
    life *lives[LIVE_MOST + PHASE]; /* live ones, and those that ended since it was last judged */
    uint32_t life_count, live_count;
    size_t live_bytes;
    step steps[PHASE];
    uint32_t step_count;
    unsigned char *samples;
    uint64_t failed, skipped, checked, wrong;
    uint32_t held;         /* steps that are left of a group; 0: none is held */
    uint64_t groups, sum, peak; /* bytes of all plans */
} player;

lives_totals g_lives;

static uint32_t below(player *p, uint32_t n)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((p->random >> 33) % n);
}

static void complain(player *p, const step *s, const char *what, unsigned got, unsigned right)
{
    static const char *const names[] = {"malloc", "free", "fill", "copy", "check", "host function"};
    if (p->wrong++ < 5)
        fprintf(stderr, "thread %u, step %u of the phase (%s, op %llu): %s %u, should be %u\n", p->index,
                (unsigned)(s - p->steps), names[s->kind], (unsigned long long)s->op, what, got, right);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

static void play_malloc(player *p, step *s)
{
    static const uint32_t units[] = {16, 16, 64, 200, 200, 4096, 70000, 300000};
    life *l = calloc(1, sizeof *l);
    void *memory = NULL;
    l->kind = below(p, 5) ? ACS_MEMORY_DEVICE : ACS_MEMORY_HOST;
    l->lazy = l->kind == ACS_MEMORY_DEVICE && below(p, 100) < p->settings->lazy;
    const uint32_t sizes = sizeof units / sizeof *units;
    l->unit = units[below(p, p->settings->lazy && !l->lazy ? sizes - 2 : sizes)]; /* what cannot move leaves room */
    l->units = 1 + below(p, UNITS);
    l->relocatable = (l->kind == ACS_MEMORY_DEVICE || p->settings->options.devices > 1) && !l->lazy && below(p, 2);
    l->live = true;
    s->kind = STEP_MALLOC;
    s->parts[s->part_count++] = (part){l, 0, l->units, ACS_WRITE};
    int kind = l->kind | (l->lazy ? ACS_LAZY : l->relocatable ? ACS_RELOCATABLE : 0);
    acs_status status = acs_malloc(p->context, (size_t)l->unit * l->units, kind, &memory);
    if (status != ACS_OK) {
        complain(p, s, "status", status, ACS_OK);
        abort();
    }
    l->memory = memory;
    s->value = (uint8_t)below(p, 256);
    if (l->kind == ACS_MEMORY_HOST) /* nobody's but ours, from here on */
        memset(memory, s->value, (size_t)l->unit * l->units);
    p->lives[p->life_count++] = l;
    p->live_count++;
    p->live_bytes += (size_t)l->unit * l->units;
}

static life *pick(player *p)
{
    uint32_t at = below(p, p->life_count);
    if (p->held && p->life_count > 8 && below(p, 8)) /* of the group's own, most often */
        at = p->life_count - 1 - below(p, 8);
    while (!p->lives[at]->live)
        at = (at + 1) % p->life_count;
    return p->lives[at];
}

/* Read by many at once, now and then, so that readers are looked at as a set. */
static life *pick_popular(player *p)
{
    return below(p, 2) ? pick(p) : p->lives[0]->live ? p->lives[0] : pick(p);
}

static void play_free(player *p, step *s)
{
    s->kind = STEP_FREE;
    life *l = pick(p);
    s->parts[s->part_count++] = (part){l, 0, l->units, ACS_WRITE};
    if (!acs_free(p->context, l->memory))
        complain(p, s, "status", (unsigned)acs_last_error(NULL), ACS_OK);
    l->live = false;
    p->live_count--;
    p->live_bytes -= (size_t)l->unit * l->units;
}

static part pick_part(player *p, life *l, acs_access access)
{
    uint32_t first = below(p, l->units);
    if (below(p, 3) == 0)
        return (part){l, 0, l->units, access};
    return (part){l, first, 1 + below(p, l->units - first), access};
}

static unsigned char *at(const part *q)
{
    return q->of->memory + (size_t)q->first * q->of->unit;
}

static size_t bytes_of(const part *q)
{
    return (size_t)q->count * q->of->unit;
}

static void play_fill(player *p, step *s)
{
    s->kind = STEP_FILL;
    s->value = (uint8_t)below(p, 256);
    s->parts[s->part_count++] = pick_part(p, pick(p), ACS_WRITE);
    s->op = acs_memset(p->context, at(&s->parts[0]), s->value, bytes_of(&s->parts[0]));
}

/* From another block of the same units, or between units of one. */
static bool play_copy(player *p, step *s)
{
    part from = pick_part(p, pick(p), ACS_READ), to = pick_part(p, pick(p), ACS_WRITE);
    uint32_t count = from.count < to.count ? from.count : to.count;
    if (from.of->unit != to.of->unit)
        return false;
    from.count = to.count = count;
    if (from.of == to.of && from.first < to.first + count && to.first < from.first + count)
        return false;
    s->kind = STEP_COPY;
    s->parts[s->part_count++] = from;
    s->parts[s->part_count++] = to;
    s->op = acs_memcpy(p->context, at(&to), at(&from), bytes_of(&to));
    return true;
}

static void play_check(player *p, step *s)
{
    s->kind = STEP_CHECK;
    part from = {pick_popular(p), 0, 1, ACS_READ};
    from.first = below(p, from.of->units);
    s->parts[s->part_count++] = from;
    s->sample = p->samples + (size_t)(s - p->steps) * SAMPLE;
    memset(s->sample, 0, SAMPLE);
    s->op = acs_memcpy(p->context, s->sample, at(&from), from.of->unit < SAMPLE ? from.of->unit : SAMPLE);
}

/* Where the CPU can reach them, the bytes at the block's own address are looked at, too. */
typedef struct body_data {
    bool fails;
    unsigned char *sample;
    const unsigned char *at;
    uint32_t bytes;
} body_data;

static int body(void *closure)
{
    const body_data *b = closure;
    if (b->bytes)
        memcpy(b->sample, b->at, b->bytes);
    return b->fails ? -7 : 0;
}

static bool play_host(player *p, step *s)
{
    acs_segment segments[2];
    s->kind = STEP_HOST;
    s->fails = below(p, 8) == 0 && !p->settings->group;
    s->part_count = 1 + below(p, 2);
    for (uint32_t i = 0; i < s->part_count; i++) {
        part *q = &s->parts[i];
        *q = pick_part(p, pick_popular(p), below(p, 4) ? ACS_READ : ACS_UPDATE);
        if (q->of->lazy) /* has no memory at its address */
            return false;
        segments[i] = q->access == ACS_READ ? ACS_IN(at(q), bytes_of(q)) : ACS_INOUT(at(q), bytes_of(q));
    }
    acs_uses uses = {segments, s->part_count, NULL, NULL, 0};
    uint32_t unit = s->parts[0].of->unit;
    s->sample = p->samples + (size_t)(s - p->steps) * SAMPLE;
    body_data b = {s->fails, s->sample, at(&s->parts[0]), unit < SAMPLE ? unit : SAMPLE};
    if (p->settings->options.backend == ACS_BACKEND_CUDA)
        b.bytes = 0;
    s->op = acs_host(p->context, body, &b, sizeof b, uses);
    return true;
}

static void play(player *p)
{
    step *s = &p->steps[p->step_count];
    uint32_t what = below(p, 100);
    memset(s, 0, sizeof *s);
    if (p->settings->options.devices > 1 && below(p, 4) == 0)
        (void)acs_on(p->context, (int)below(p, (uint32_t)p->settings->options.devices + 1) - 1);
    uint32_t most = p->settings->group && !p->held ? LIVE_MOST / 3 : LIVE_MOST; /* so that groups have room for theirs */
    if (p->live_count < 2 || (what < (p->held ? 24 : 14) && p->live_count < most && p->live_bytes < LIVE_BYTES))
        play_malloc(p, s);
    else if (what < (p->held ? 40 : 28))
        play_free(p, s);
    else if (what < 55)
        play_fill(p, s);
    else if (what < 70 && !play_copy(p, s))
        return;
    else if (what >= 70 && what < 92)
        play_check(p, s);
    else if (what >= 92 && !play_host(p, s))
        return;
    if (s->kind > STEP_FREE && !s->op)
        complain(p, s, "refused, status", (unsigned)acs_last_error(NULL), ACS_OK);
    p->step_count++;
}

static void submit(player *p)
{
    acs_group_params params = {sizeof params, below(p, 5), 0};
    acs_group_report report = {.size = sizeof report};
    if (acs_group_submit(p->context, &params, &report) != ACS_OK && ++p->wrong < 5)
        fprintf(stderr, "thread %u: a group of %llu ops, %llu of %llu bytes: status %d\n", p->index,
                (unsigned long long)report.ops, (unsigned long long)report.memory_peak,
                (unsigned long long)report.memory_sum, (int)acs_last_error(NULL));
    p->groups++;
    p->sum += report.memory_sum;
    p->peak += report.memory_peak;
}

/* A step, of a group or not. */
static void play_some(player *p)
{
    if (p->settings->group && p->held == 0 && below(p, 20) == 0) {
        p->held = 1 + below(p, p->settings->group);
        if (acs_group_begin(p->context, 0) != ACS_OK)
            abort();
    }
    play(p);
    if (p->held && (--p->held == 0 || p->step_count == PHASE)) {
        submit(p);
        p->held = 0;
    }
}

/* ------------------------------------------------------------------------------------------------------------ judge */

/* Its contents may lie elsewhere. */
static bool moves(const player *p, const life *l)
{
    return l->lazy || (l->relocatable && (p->settings->options.rename || p->settings->options.devices > 1));
}

/* Copies of the library's own may fail, and who needs what they were to bring is skipped. */
static bool copies_fail(const player *p, const life *l)
{
    return p->settings->options.devices > 1 && p->settings->options.faults && moves(p, l);
}

/* At another place than what failed, where it finds nothing that did. */
static bool may_be_elsewhere(const player *p, const part *q)
{
    return p->settings->options.devices > 1 && moves(p, q->of) && q->access == ACS_WRITE;
}

static void begin_versions(const player *p, const step *s)
{
    for (uint32_t i = 0; i < s->part_count; i++) {
        life *l = s->parts[i].of;
        if (!moves(p, l) || s->parts[i].access != ACS_WRITE || s->parts[i].count != l->units)
            continue; /* else its contents begin anew */
        memset(l->read_failed, 0, sizeof l->read_failed);
        memset(l->write_failed, 0, sizeof l->write_failed);
        memset(l->known, 0, sizeof l->known);
        l->tainted = false;
    }
}

/* *may: it writes what a failed op read, in a block that may have been renamed since, or where that was elsewhere. */
static bool suffers(const player *p, const step *s, bool *may)
{
    bool must = false;
    *may = false;
    for (uint32_t i = 0; i < s->part_count; i++)
        for (uint32_t u = s->parts[i].first; u < s->parts[i].first + s->parts[i].count; u++) {
            const life *l = s->parts[i].of;
            bool war = (s->parts[i].access & ACS_WRITE) && l->read_failed[u];
            bool loose = moves(p, l), elsewhere = may_be_elsewhere(p, &s->parts[i]);
            must |= (l->write_failed[u] && !elsewhere) || (war && !loose);
            *may |= (war && loose) || (l->write_failed[u] && elsewhere) || l->tainted || copies_fail(p, l);
        }
    return must;
}

static void spread(const player *p, const step *s)
{
    for (uint32_t i = 0; i < s->part_count; i++)
        for (uint32_t u = s->parts[i].first; u < s->parts[i].first + s->parts[i].count; u++) {
            life *l = s->parts[i].of;
            l->read_failed[u] |= (s->parts[i].access & ACS_READ) != 0;
            l->write_failed[u] |= (s->parts[i].access & ACS_WRITE) != 0;
            l->tainted |= p->settings->options.devices > 1 && moves(p, l);
            /* what it was to write, and was there, may not be here, or did not come */
            l->known[u] &= !may_be_elsewhere(p, &s->parts[i]) && !(copies_fail(p, l) && (s->parts[i].access & ACS_WRITE));
        }
}

/* What it wrote has not failed any more. */
static void renew(const player *p, const step *s)
{
    for (uint32_t i = 0; i < s->part_count; i++)
        for (uint32_t u = s->parts[i].first; u < s->parts[i].first + s->parts[i].count && may_be_elsewhere(p, &s->parts[i]);
             u++)
            s->parts[i].of->read_failed[u] = s->parts[i].of->write_failed[u] = false;
}

/* What the op did, since it ended well. */
static void apply(player *p, step *s)
{
    const part *q = &s->parts[0], *to = &s->parts[1];
    for (uint32_t i = 0; i < q->count && s->kind == STEP_FILL; i++) {
        q->of->value[q->first + i] = s->value;
        q->of->known[q->first + i] = true;
    }
    for (uint32_t i = 0; i < q->count && s->kind == STEP_COPY; i++) {
        to->of->value[to->first + i] = q->of->value[q->first + i];
        to->of->known[to->first + i] = q->of->known[q->first + i];
    }
    uint32_t bytes = q->of->unit < SAMPLE ? q->of->unit : SAMPLE;
    bool sees = s->kind == STEP_CHECK || (s->kind == STEP_HOST && p->settings->options.backend != ACS_BACKEND_CUDA);
    for (uint32_t i = 0; i < bytes && sees && q->of->known[q->first]; i++)
        if (s->sample[i] != q->of->value[q->first]) {
            complain(p, s, "byte", s->sample[i], q->of->value[q->first]);
            break;
        }
    p->checked += sees && q->of->known[q->first];
}

static void judge_step(player *p, step *s)
{
    life *l = s->parts[0].of;
    if (s->kind == STEP_MALLOC && l->kind == ACS_MEMORY_HOST) {
        memset(l->value, s->value, sizeof l->value);
        memset(l->known, true, sizeof l->known);
    }
    if (s->kind <= STEP_FREE || !s->op)
        return;
    acs_error error = {.size = sizeof error};
    acs_status status = p->settings->group ? ACS_OK : acs_op_error(p->context, s->op, &error);
    bool may = false;
    begin_versions(p, s);
    bool skip = suffers(p, s, &may) || (may && status == ACS_ERR_SKIPPED);
    bool own = status == ACS_ERR_LAUNCH && p->settings->options.faults;
    acs_status right = skip ? ACS_ERR_SKIPPED : s->fails ? ACS_ERR_HOST : own ? status : ACS_OK;
    if (status != right)
        complain(p, s, "status", status, right);
    p->skipped += status == ACS_ERR_SKIPPED;
    p->failed += status != ACS_OK && status != ACS_ERR_SKIPPED;
    if (right == ACS_OK) {
        renew(p, s);
        apply(p, s);
    } else
        spread(p, s);
}

/* All ops have ended. Lives that are over are forgotten. */
static void judge(player *p)
{
    for (uint32_t i = 0; i < p->step_count; i++)
        judge_step(p, &p->steps[i]);
    p->step_count = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->life_count; i++) {
        life *l = p->lives[i];
        memset(l->read_failed, 0, sizeof l->read_failed);
        memset(l->write_failed, 0, sizeof l->write_failed);
        l->tainted = false;
        if (l->live)
            p->lives[kept++] = l;
        else
            free(l);
    }
    p->life_count = kept;
}

/* ------------------------------------------------------------------------------------------------------------- runs */

static void *run_player(void *argument)
{
    player *p = argument;
    void *samples = NULL;
    if (acs_malloc(p->context, (size_t)PHASE * SAMPLE, ACS_MEMORY_HOST, &samples) != ACS_OK)
        abort();
    p->samples = samples;
    for (uint64_t done = 0; done < p->settings->steps; done += PHASE) {
        while (p->step_count < PHASE && !p->wrong)
            play_some(p);
        if (p->held) /* after an error */
            submit(p);
        p->held = 0;
        pthread_barrier_wait(p->barrier);
        if (p->index == 0)
            (void)acs_sync(p->context);
        pthread_barrier_wait(p->barrier);
        judge(p);
        pthread_barrier_wait(p->barrier);
        if (p->index == 0)
            (void)acs_clear(p->context);
        pthread_barrier_wait(p->barrier);
    }
    for (uint32_t i = 0; i < p->life_count; i++)
        free(p->lives[i]); /* the blocks are acs_close's */
    return NULL;
}

static void print_run(const settings *s, const player *players, const acs_statistics *st)
{
    player all = {0};
    for (uint32_t i = 0; i < s->threads; i++) {
        all.failed += players[i].failed;
        all.skipped += players[i].skipped;
        all.checked += players[i].checked;
        all.groups += players[i].groups;
        all.sum += players[i].sum;
        all.peak += players[i].peak;
    }
    printf("backend %d, pool %d, slack %lld, limit %lld, faults %lld, %u threads, seed %llu: %llu ops, %llu failed, %llu "
           "skipped, %llu blocks read; %llu handed out early, %llu renamed, %llu brought home; %llu bytes spilled, %llu "
           "returned; %llu groups, %llu bytes in %llu; peak %llu of %llu, moved %llu; %lld devices, policy %d: %llu "
           "transfers of %llu bytes\n",
           s->options.backend, s->options.pool, (long long)s->options.memory_slack, (long long)s->options.memory_limit,
           (long long)s->options.faults, s->threads, (unsigned long long)s->seed, (unsigned long long)st->queued,
           (unsigned long long)all.failed, (unsigned long long)all.skipped, (unsigned long long)all.checked,
           (unsigned long long)st->memory_early, (unsigned long long)st->memory_versions,
           (unsigned long long)st->memory_homed, (unsigned long long)st->memory_spilled,
           (unsigned long long)st->memory_returned, (unsigned long long)all.groups, (unsigned long long)all.sum,
           (unsigned long long)all.peak, (unsigned long long)st->memory_peak,
           (unsigned long long)st->memory_reserved, (unsigned long long)st->memory_moved, (long long)s->options.devices,
           s->options.policy, (unsigned long long)st->transfers, (unsigned long long)st->transfer_bytes);
}

/*
 * On the simulator the seed alone decides what a run meets, so that can be required. Elsewhere threads decide. False:
 * nothing was put to the test.
 */
static bool count_run(const settings *s, const player *players, const acs_statistics *st)
{
    g_lives.spilled += st->memory_spilled;
    g_lives.moved += st->memory_moved;
    g_lives.transfers += st->transfers;
    for (uint32_t i = 0; i < s->threads; i++)
        g_lives.shared += players[i].sum - players[i].peak; /* of plans */
    const bool early = s->options.memory_slack == 0 && s->options.pool == ACS_POOL_ON;
    const bool renames = s->options.rename && s->options.devices == 1;
    const bool met = (!early || st->memory_early) && (!renames || st->memory_versions);
    if (!met)
        fprintf(stderr, "not put to the test: %llu blocks handed out early, %llu renamed\n",
                (unsigned long long)st->memory_early, (unsigned long long)st->memory_versions);
    return met;
}

int lives_run(const settings *s)
{
    acs_context *context = NULL;
    pthread_barrier_t barrier;
    pthread_t threads[THREADS_MOST];
    player *players = calloc(s->threads, sizeof *players);
    acs_statistics st = {.size = sizeof st};
    uint64_t wrong = 0;
    acs_status status = acs_open(&s->options, &context);
    if (status == ACS_ERR_UNSUPPORTED) {
        fprintf(stderr, "skipped: no such device\n");
        free(players);
        return SKIPPED_TEST;
    }
    if (status != ACS_OK || !players || pthread_barrier_init(&barrier, NULL, s->threads) != 0)
        abort();
    for (uint32_t i = 0; i < s->threads; i++) {
        players[i] = (player){.settings = s, .context = context, .barrier = &barrier, .index = i, .random = s->seed + i};
        if (pthread_create(&threads[i], NULL, run_player, &players[i]) != 0)
            abort();
    }
    for (uint32_t i = 0; i < s->threads; i++) {
        (void)pthread_join(threads[i], NULL);
        wrong += players[i].wrong;
    }
    (void)acs_stats(context, &st);
    print_run(s, players, &st);
    if (s->options.backend == ACS_BACKEND_SIM)
        wrong += !count_run(s, players, &st);
    (void)acs_close(context);
    pthread_barrier_destroy(&barrier);
    free(players);
    return wrong ? 1 : 0;
}

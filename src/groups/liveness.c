/*
 * Plans of groups (see liveness.h): an order, result by result; slots; and places. Called by group_submit.c and by
 * tests. Never knows what an op is or where memory lies.
 */
#include "groups/liveness.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };

#define NO_SLOT UINT32_MAX

/* -------------------------------------------------------------------------------------------------------------- sets */

acs_status acs_op_sets_create(acs_op_sets *sets, uint32_t count, uint32_t ops)
{
    *sets = (acs_op_sets){.count = count, .words = ops / 64 + 1};
    sets->bits = calloc((size_t)count * sets->words + 1, sizeof *sets->bits);
    return sets->bits ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the order of %u ops", ops);
}

void acs_op_sets_destroy(acs_op_sets *sets)
{
    free(sets->bits);
    sets->bits = NULL;
}

static void include(uint64_t *set, uint32_t op)
{
    set[op / 64] |= UINT64_C(1) << op % 64;
}

void acs_op_sets_behind(acs_op_sets *sets, uint32_t op, uint32_t upstream)
{
    uint64_t *to = acs_op_set(sets, op);
    const uint64_t *from = acs_op_set(sets, upstream);
    for (uint32_t i = 0; i < sets->words; i++)
        to[i] |= from[i];
    include(to, upstream);
}

/* Whether all of `inner` is in `outer`. */
static bool is_subset(const uint64_t *inner, const uint64_t *outer, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        if (inner[i] & ~outer[i])
            return false;
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- work */

/* Place of a block that is in the way of another one. */
typedef struct place {
    uint64_t from, to;
} place;

typedef struct work {
    acs_liveness *plan;
    uint32_t ops, blocks;
    uint32_t *direct;       /* direct upstream ops: those that no other upstream op depends on; op by op, each rising */
    uint32_t *direct_first; /* index in `direct` of each op's first one; one more entry than ops */
    bool *source;           /* whether an op depends on none, and others on it: a copy or fill of input */
    acs_op_sets emitted;    /* one set: ops that have their place in the order */
    uint32_t done;          /* number of those ops */
    uint32_t *stack, *next; /* ops that wait for those above them; index of their next upstream op */
    acs_op_sets order;      /* for each op all ops that it is behind, by slots too */
    acs_op_sets users, meet; /* for each block its users; the ops that all its users are behind */
    uint32_t *rank;         /* place of each op in the order */
    uint32_t *sorted;       /* blocks, in the order in which they get places */
    uint64_t *offsets;
    place *places;
    int64_t *level, *most;  /* of each slot: bytes in use, and their maximum */
} work;

static void free_work(work *w)
{
    free(w->direct);
    free(w->direct_first);
    free(w->source);
    free(w->stack);
    free(w->rank);
    free(w->sorted);
    free(w->offsets);
    free(w->places);
    free(w->level);
    acs_op_sets_destroy(&w->emitted);
    acs_op_sets_destroy(&w->order);
    acs_op_sets_destroy(&w->users);
    acs_op_sets_destroy(&w->meet);
}

static acs_status alloc_work(work *w)
{
    ACS_TRY(acs_op_sets_create(&w->emitted, 1, w->ops));
    ACS_TRY(acs_op_sets_create(&w->order, w->ops, w->ops));
    ACS_TRY(acs_op_sets_create(&w->users, w->blocks, w->ops));
    ACS_TRY(acs_op_sets_create(&w->meet, w->blocks, w->ops));
    w->direct_first = calloc((size_t)w->ops + 1, sizeof *w->direct_first);
    w->source = calloc((size_t)w->ops + 1, sizeof *w->source);
    w->stack = calloc(2 * (size_t)w->ops + 1, sizeof *w->stack);
    w->rank = calloc((size_t)w->ops + 1, sizeof *w->rank);
    w->sorted = calloc((size_t)w->blocks + 1, sizeof *w->sorted);
    w->offsets = calloc((size_t)w->blocks + 1, sizeof *w->offsets);
    w->places = calloc((size_t)w->blocks + 1, sizeof *w->places);
    w->level = calloc(2 * (size_t)w->ops + 1, sizeof *w->level);
    if (!w->direct_first || !w->source || !w->stack || !w->rank || !w->sorted || !w->offsets || !w->places || !w->level)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the plan of %u ops", w->ops);
    w->next = w->stack + w->ops;
    w->most = w->level + w->ops;
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------- order */

/* Reduce the dependencies to those that do not follow from others. */
static acs_status find_direct(work *w)
{
    uint32_t count = 0, room = 0;
    uint64_t *covered = acs_op_set(&w->order, 0); /* not in use yet */
    for (uint32_t op = 0; op < w->ops; op++) {
        const uint64_t *before = acs_op_set(w->plan->before, op);
        w->direct_first[op] = count;
        memset(covered, 0, w->order.words * sizeof *covered);
        for (uint32_t up = op; up-- > 0;) {
            if (!acs_op_set_has(before, up) || acs_op_set_has(covered, up))
                continue;
            if (!ACS_GROW(w->direct, room, (uint64_t)count + 1))
                return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the edges of a plan");
            w->direct[count++] = up;
            for (uint32_t i = 0; i < w->order.words; i++)
                covered[i] |= acs_op_set(w->plan->before, up)[i];
        }
        for (uint32_t i = w->direct_first[op], k = count; i + 1 < k; i++) { /* they were found in falling order */
            uint32_t last = w->direct[--k];
            w->direct[k] = w->direct[i];
            w->direct[i] = last;
        }
    }
    w->direct_first[w->ops] = count;
    for (uint32_t i = 0; i < count; i++)
        w->source[w->direct[i]] = w->direct_first[w->direct[i]] == w->direct_first[w->direct[i] + 1];
    memset(covered, 0, w->order.words * sizeof *covered);
    return ACS_OK;
}

static bool has_gone(const work *w, uint32_t op)
{
    return acs_op_set_has(w->emitted.bits, op);
}

static void emit(work *w, uint32_t op)
{
    ACS_ASSERT(w->done < w->ops && !has_gone(w, op));                                          /* LIVE-2 */
    ACS_ASSERT(is_subset(acs_op_set(w->plan->before, op), w->emitted.bits, w->emitted.words)); /* LIVE-2 */
    w->rank[op] = w->done;
    w->plan->order[w->done++] = op;
    include(w->emitted.bits, op);
}

/* Emit the ops that free memory as soon as their upstream ops are emitted. */
static void emit_soon(work *w)
{
    for (uint32_t op = 0; op < w->ops; op++)
        if (w->plan->soon[op] && !w->source[op] && !has_gone(w, op) &&
            is_subset(acs_op_set(w->plan->before, op), w->emitted.bits, w->emitted.words))
            emit(w, op);
}

/* Emit the op, and just before it the sources that it needs. */
static void emit_with_sources(work *w, uint32_t op)
{
    for (uint32_t k = w->direct_first[op]; k < w->direct_first[op + 1]; k++)
        if (!has_gone(w, w->direct[k])) /* a source; other upstream ops are emitted already */
            emit(w, w->direct[k]);
    emit(w, op);
}

/* Emit the op, and before it what it depends on, each behind its own upstream ops. */
static void emit_with_upstream(work *w, uint32_t op)
{
    uint32_t depth = 0;
    w->stack[depth] = op;
    w->next[depth++] = w->direct_first[op];
    while (depth > 0) {
        uint32_t top = w->stack[depth - 1], *next = &w->next[depth - 1];
        if (*next < w->direct_first[top + 1]) {
            uint32_t up = w->direct[(*next)++];
            if (!has_gone(w, up) && !w->source[up]) {
                w->stack[depth] = up;
                w->next[depth++] = w->direct_first[up];
            }
            continue;
        }
        depth--;
        if (!has_gone(w, top)) {
            emit_with_sources(w, top);
            emit_soon(w);
        }
    }
}

/*
 * Emit result by result, each behind what it needs. So a block is filled late, and its last user comes early, wherever
 * the program has them. (HuntKTm's algorithm 2 moves allocations and copies alone.)
 */
static void find_order(work *w)
{
    uint64_t *needed = acs_op_set(&w->order, 0); /* not in use yet */
    for (uint32_t i = 0; i < w->direct_first[w->ops]; i++)
        include(needed, w->direct[i]);
    for (uint32_t op = 0; op < w->ops; op++)
        if (!acs_op_set_has(needed, op) && !has_gone(w, op))
            emit_with_upstream(w, op);
    ACS_ASSERT(w->done == w->ops); /* LIVE-2 */
    memset(needed, 0, w->order.words * sizeof *needed);
}

/* ------------------------------------------------------------------------------------------------------------- slots */

typedef struct slots {
    uint32_t count, most;
    uint32_t *last, *load; /* last op of each slot, and number of its ops */
} slots;

/* The slot whose last op is upstream, the latest of them; else a new slot, or the one with the fewest ops. */
static uint32_t choose_slot(const work *w, slots *s, uint32_t op)
{
    const uint64_t *before = acs_op_set(w->plan->before, op);
    uint32_t best = NO_SLOT, least = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (acs_op_set_has(before, s->last[i]) && (best == NO_SLOT || w->rank[s->last[i]] > w->rank[s->last[best]]))
            best = i;
        if (s->load[i] < s->load[least])
            least = i;
    }
    if (best != NO_SLOT)
        return best;
    return s->count < s->most ? s->count++ : least;
}

static void put_in_slot(work *w, slots *s, uint32_t op, uint32_t slot)
{
    for (uint32_t k = w->direct_first[op]; k < w->direct_first[op + 1]; k++)
        acs_op_sets_behind(&w->order, op, w->direct[k]);
    if (w->plan->slots && s->load[slot])
        acs_op_sets_behind(&w->order, op, s->last[slot]);
    w->plan->slot[op] = slot;
    s->last[slot] = op;
    s->load[slot]++;
}

/* A source goes into the slot of the first op that needs it, just before that op: HuntKTm, algorithm 2. */
static acs_status assign_slots(work *w)
{
    acs_liveness *p = w->plan;
    slots s = {.most = p->slots && p->slots < w->ops ? p->slots : w->ops};
    s.last = calloc(2 * (size_t)w->ops + 1, sizeof *s.last);
    if (!s.last)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the slots of a plan");
    s.load = s.last + w->ops;
    for (uint32_t i = 0; i < w->ops; i++)
        p->slot[i] = NO_SLOT;
    for (uint32_t i = 0; i < w->ops; i++) {
        uint32_t op = p->order[i];
        if (w->source[op])
            continue;
        uint32_t slot = choose_slot(w, &s, op);
        for (uint32_t k = w->direct_first[op]; k < w->direct_first[op + 1]; k++)
            if (p->slot[w->direct[k]] == NO_SLOT)
                put_in_slot(w, &s, w->direct[k], slot);
        put_in_slot(w, &s, op, slot);
    }
    free(s.last);
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------- places */

static uint64_t rounded(const acs_live_block *block)
{
    return (block->bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void look_at_users(work *w, uint32_t b)
{
    const acs_live_block *block = &w->plan->blocks[b];
    uint64_t *meet = acs_op_set(&w->meet, b), *users = acs_op_set(&w->users, b);
    memset(meet, 0xff, w->meet.words * sizeof *meet);
    for (uint32_t i = 0; i < block->user_count; i++) {
        for (uint32_t k = 0; k < w->order.words; k++)
            meet[k] &= acs_op_set(&w->order, block->users[i])[k];
        include(users, block->users[i]);
    }
}

/* Whether all users of block `one` are before all users of block `other`. */
static bool precedes(const work *w, uint32_t one, uint32_t other)
{
    return is_subset(acs_op_set(&w->users, one), acs_op_set(&w->meet, other), w->order.words);
}

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* The lowest place that overlaps none of the first `count` blocks that may be in use together with block `b`. */
static uint64_t lowest_place(work *w, uint32_t b, uint32_t count)
{
    const uint64_t bytes = rounded(&w->plan->blocks[b]);
    uint32_t found = 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = w->sorted[i];
        if (!precedes(w, b, other) && !precedes(w, other, b))
            w->places[found++] = (place){w->offsets[other], w->offsets[other] + rounded(&w->plan->blocks[other])};
    }
    qsort(w->places, found, sizeof *w->places, compare_places);
    for (uint32_t i = 0; i < found && w->places[i].from < at + bytes; i++)
        if (w->places[i].to > at)
            at = w->places[i].to;
    return at;
}

/* Orders in which blocks get places: each is the best for some programs. */
enum { BY_SIZE, BY_TIME, BY_AREA, WAYS };

typedef struct key {
    uint64_t first, second; /* rising */
    uint32_t block;
} key;

static int compare_keys(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->second != y->second)
        return x->second < y->second ? -1 : 1;
    return (x->block > y->block) - (x->block < y->block);
}

/* Places in the order of the block's first and last user. */
static void lifetime(const work *w, const acs_live_block *block, uint32_t *first, uint32_t *last)
{
    *first = UINT32_MAX;
    *last = 0;
    for (uint32_t i = 0; i < block->user_count; i++) {
        uint32_t rank = w->rank[block->users[i]];
        *first = rank < *first ? rank : *first;
        *last = rank > *last ? rank : *last;
    }
}

static acs_status sort_blocks(work *w, int way)
{
    key *keys = calloc((size_t)w->blocks + 1, sizeof *keys);
    if (!keys)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the places of a plan");
    for (uint32_t b = 0; b < w->blocks; b++) {
        const acs_live_block *block = &w->plan->blocks[b];
        uint32_t first, last;
        lifetime(w, block, &first, &last);
        uint64_t area = block->bytes * (last - first + 1);
        keys[b] = (key){way == BY_TIME ? first : UINT64_MAX - (way == BY_SIZE ? block->bytes : area), first, b};
    }
    qsort(keys, w->blocks, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < w->blocks; i++)
        w->sorted[i] = keys[i].block;
    free(keys);
    return ACS_OK;
}

static acs_status place_blocks(work *w, int way)
{
    uint64_t peak = 0;
    ACS_TRY(sort_blocks(w, way));
    for (uint32_t i = 0; i < w->blocks; i++) {
        uint32_t b = w->sorted[i];
        w->offsets[b] = lowest_place(w, b, i);
        uint64_t end = w->offsets[b] + rounded(&w->plan->blocks[b]);
        peak = end > peak ? end : peak;
    }
    if (way > 0 && peak >= w->plan->peak)
        return ACS_OK;
    w->plan->peak = peak;
    for (uint32_t b = 0; b < w->blocks; b++) {
        ACS_ASSERT(w->offsets[b] % ALIGN == 0 && w->offsets[b] + rounded(&w->plan->blocks[b]) <= peak); /* LIVE-3 */
        w->plan->blocks[b].offset = w->offsets[b];
    }
    return ACS_OK;
}

static void find_taken_over(const work *w)
{
    acs_live_block *blocks = w->plan->blocks;
    for (uint32_t b = 0; b < w->blocks; b++) {
        blocks[b].taken_over = false;
        for (uint32_t other = 0; other < w->blocks; other++) {
            ACS_ASSERT(other == b || precedes(w, other, b) || precedes(w, b, other) ||
                       blocks[other].offset >= blocks[b].offset + rounded(&blocks[b]) ||
                       blocks[b].offset >= blocks[other].offset + rounded(&blocks[other])); /* LIVE-1 */
            blocks[b].taken_over |= other != b && precedes(w, other, b) &&
                                    blocks[other].offset < blocks[b].offset + rounded(&blocks[b]) &&
                                    blocks[b].offset < blocks[other].offset + rounded(&blocks[other]);
        }
    }
}

/*
 * HuntKTm, section 5.4: the allocations and frees of each slot, one after the other, have a maximum, and the sum of
 * these maxima is never exceeded.
 */
static void find_bound(work *w)
{
    const acs_liveness *p = w->plan;
    uint64_t *frees = w->offsets; /* not in use any more; indexed by block, since there may be fewer blocks than ops */
    for (uint32_t b = 0; b < w->blocks; b++) {
        uint32_t first, last;
        lifetime(w, &p->blocks[b], &first, &last);
        w->sorted[b] = first;
        frees[b] = last;
    }
    for (uint32_t i = 0; i < w->ops; i++) {
        uint32_t slot = p->slot[p->order[i]];
        for (uint32_t b = 0; b < w->blocks; b++)
            w->level[slot] += w->sorted[b] == i ? (int64_t)rounded(&p->blocks[b]) : 0;
        if (w->level[slot] > w->most[slot])
            w->most[slot] = w->level[slot];
        for (uint32_t b = 0; b < w->blocks; b++) /* below 0 where it frees an allocation of another slot */
            w->level[slot] -= frees[b] == i ? (int64_t)rounded(&p->blocks[b]) : 0;
    }
    w->plan->bound = 0;
    for (uint32_t slot = 0; slot < w->ops; slot++)
        w->plan->bound += (uint64_t)w->most[slot];
}

static acs_status plan_with(work *w)
{
    ACS_TRY(alloc_work(w));
    ACS_TRY(find_direct(w));
    find_order(w);
    ACS_TRY(assign_slots(w));
    w->plan->sum = w->plan->peak = 0;
    for (uint32_t b = 0; b < w->blocks; b++) {
        look_at_users(w, b);
        w->plan->sum += rounded(&w->plan->blocks[b]);
    }
    for (int way = 0; way < WAYS; way++)
        ACS_TRY(place_blocks(w, way));
    find_taken_over(w);
    find_bound(w);
    return ACS_OK;
}

acs_status acs_liveness_plan(acs_liveness *plan)
{
    work w = {.plan = plan, .ops = plan->before->count, .blocks = plan->block_count};
    acs_status status = plan_with(&w);
    free_work(&w);
    return status;
}

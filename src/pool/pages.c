/*
 * Pieces of memory, and where they are mapped (see pages.h). Called by memory_grow.c when pools grow and shrink, one
 * thread at a time. Touches no memory but its own tables.
 */
#include "pool/pages.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

/* Stored at the page with which the piece begins; all zero at other pages. */
typedef struct piece {
    uint64_t handle;
    uint64_t pages;
} piece;

typedef struct span {
    uint64_t base, bytes;
    piece *pieces; /* one for each page of the span */
} span;

/* Adjacent pieces that leave their place together. */
struct page_run {
    acs_range *range;
    bool unmapped;
};

struct acs_pages {
    const acs_page_ops *ops;
    void *user;
    acs_arena *arena;
    span *spans; /* in no order, since there are few */
    uint32_t span_count;
    uint64_t piece_most; /* bytes of the largest piece that was ever created */
};

acs_status acs_pages_create(const acs_page_ops *ops, void *user, acs_arena *arena, acs_pages **pages)
{
    acs_pages *p = calloc(1, sizeof *p);
    if (!p)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for pages");
    p->ops = ops;
    p->user = user;
    p->arena = arena;
    *pages = p;
    return ACS_OK;
}

void acs_pages_destroy(acs_pages *p, bool keep)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->span_count; i++) {
        free(p->spans[i].pieces);
        if (!keep)
            acs_pages_unreserve(p, p->spans[i].base, p->spans[i].bytes);
    }
    free(p->spans);
    free(p);
}

/* ------------------------------------------------------------------------------------------------------------- spans */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

acs_status acs_pages_reserve(acs_pages *p, uint64_t bytes, uint64_t *base, uint64_t *reserved)
{
    const uint64_t least = round_up(bytes, p->ops->page);
    *reserved = least > p->ops->span ? least : p->ops->span;
    return p->ops->reserve(p->user, *reserved, base);
}

void acs_pages_unreserve(acs_pages *p, uint64_t base, uint64_t bytes)
{
    (void)p->ops->unreserve(p->user, base, bytes); /* only addresses are lost on an error */
}

acs_status acs_pages_add(acs_pages *p, uint64_t base, uint64_t bytes)
{
    span *spans = realloc(p->spans, (p->span_count + 1) * sizeof *spans);
    if (spans)
        p->spans = spans;
    piece *pieces = spans ? calloc((size_t)(bytes / p->ops->page), sizeof *pieces) : NULL;
    if (!pieces)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the table of a span");
    acs_status status = acs_arena_add_hole(p->arena, base, bytes);
    if (status != ACS_OK) {
        free(pieces);
        return status;
    }
    p->spans[p->span_count++] = (span){base, bytes, pieces};
    return ACS_OK;
}

static span *span_of(const acs_pages *p, uint64_t address)
{
    for (uint32_t i = 0; i < p->span_count; i++)
        if (address - p->spans[i].base < p->spans[i].bytes)
            return &p->spans[i];
    return NULL; /* never for an address of the arena */
}

static piece *piece_at(const acs_pages *p, uint64_t address)
{
    const span *s = span_of(p, address);
    ACS_ASSERT(s && (address - s->base) % p->ops->page == 0); /* PAGE-2 */
    return &s->pieces[(address - s->base) / p->ops->page];
}

/* -------------------------------------------------------------------------------------------------------------- runs */

static bool add_run(acs_page_plan *plan, acs_range *range)
{
    if (!ACS_GROW(plan->runs, plan->run_capacity, plan->run_count + 1))
        return false;
    plan->runs[plan->run_count++] = (struct page_run){range, false};
    return true;
}

/*
 * Find whole pieces in a free range, from the first on: at least `wanted` bytes if there are as many, at most `most`.
 * Returns their bytes; *base is where they begin.
 */
static uint64_t whole_pieces(const acs_pages *p, const acs_range *range, uint64_t wanted, uint64_t most, uint64_t *base)
{
    const uint64_t page = p->ops->page, end = range->base + range->bytes;
    uint64_t at = round_up(range->base, page), bytes = 0;
    while (at < end && piece_at(p, at)->pages == 0) /* skip the end of a piece that begins before the range */
        at += page;
    for (*base = at; at < end && bytes < wanted;) {
        const uint64_t size = piece_at(p, at)->pages * page;
        ACS_ASSERT(size > 0); /* PAGE-1 */
        if (size > end - at || size > most - bytes)
            break;
        at += size;
        bytes += size;
    }
    return bytes;
}

/*
 * Cut idle pieces out of the arena, out of large ranges first, but not out of the two in `spared`. Returns their bytes.
 */
static uint64_t collect(acs_pages *p, acs_page_plan *plan, uint64_t wanted, uint64_t most, acs_op settled,
                        const acs_range *const spared[2])
{
    uint64_t sum = 0, base;
    acs_range *range = acs_arena_idle(p->arena, settled, NULL);
    while (range && sum < wanted) {
        const bool is_spared = range == spared[0] || range == spared[1];
        const uint64_t bytes = is_spared ? 0 : whole_pieces(p, range, wanted - sum, most - sum, &base);
        if (bytes == 0) {
            range = acs_arena_idle(p->arena, settled, range);
            continue;
        }
        acs_range *cut = acs_arena_cut(range, base, bytes);
        if (!cut)
            break;
        if (!add_run(plan, cut)) {
            (void)acs_arena_fill(cut, 0, settled); /* free again, as before */
            break;
        }
        sum += bytes;
        range = acs_arena_idle(p->arena, settled, NULL); /* the range that it was cut out of changed its bin */
    }
    return sum;
}

/* ------------------------------------------------------------------------------------------------------------- plans */

static uint64_t idle_bytes(const acs_range *range, acs_op settled)
{
    return range && range->free && range->last <= settled ? range->bytes : 0;
}

/* Bytes of a hole to fill so that the block fits there, together with idle neighbours. 0: it does not fit. */
static uint64_t missing(const acs_pages *p, const acs_range *hole, const acs_page_wish *wish)
{
    const uint64_t before = idle_bytes(hole->before, wish->settled), behind = idle_bytes(hole->behind, wish->settled);
    uint64_t bytes = p->ops->page;
    if (wish->least > before + bytes)
        bytes = round_up(wish->least - before, p->ops->page);
    if (bytes <= hole->bytes)
        return bytes;
    return before + hole->bytes + behind >= wish->least ? hole->bytes : 0;
}

/*
 * The hole with the fewest bytes to fill. Holes that have place for one more piece come first, if pieces are to move.
 */
static acs_range *best_hole(const acs_pages *p, const acs_page_wish *wish, uint64_t *bytes)
{
    acs_range *best = NULL;
    bool roomy = false;
    for (acs_range *hole = acs_arena_hole(p->arena, NULL); hole; hole = acs_arena_hole(p->arena, hole)) {
        const uint64_t wanted = missing(p, hole, wish);
        const bool room = !wish->move || hole->bytes - wanted >= p->piece_most;
        if (wanted == 0 || (roomy && !room) || (best && roomy == room && wanted >= *bytes))
            continue;
        best = hole;
        roomy = room;
        *bytes = wanted;
    }
    return best;
}

bool acs_pages_plan_growth(acs_pages *p, const acs_page_wish *wish, acs_page_plan *plan)
{
    uint64_t bytes = 0, moved = 0;
    acs_range *hole = best_hole(p, wish, &bytes);
    if (!hole)
        return false;
    const acs_range *const beside[2] = {hole->before, hole->behind};
    if (wish->move)
        moved = collect(p, plan, bytes, hole->bytes, wish->settled, beside);
    else
        bytes += acs_min(wish->added / p->ops->page * p->ops->page, hole->bytes - bytes);
    plan->moved = moved;
    plan->fresh = moved < bytes ? bytes - moved : 0;
    plan->range = acs_arena_open(hole, moved + plan->fresh);
    return true;
}

bool acs_pages_plan_release(acs_pages *p, uint64_t wanted, acs_op settled, acs_page_plan *plan)
{
    const acs_range *const none[2] = {NULL, NULL};
    return collect(p, plan, wanted, UINT64_MAX, settled, none) > 0;
}

acs_range *acs_pages_finish(acs_page_plan *plan, uint64_t least, acs_op settled)
{
    for (uint32_t i = 0; i < plan->run_count; i++) {
        if (plan->runs[i].unmapped)
            acs_arena_empty(plan->runs[i].range);
        else
            (void)acs_arena_fill(plan->runs[i].range, 0, settled);
    }
    free(plan->runs);
    plan->runs = NULL;
    plan->run_count = 0;
    if (!plan->range)
        return NULL;
    if (plan->done)
        return acs_arena_fill(plan->range, least, settled);
    acs_arena_empty(plan->range);
    return NULL;
}

/* -------------------------------------------------------------------------------------------------- calls of the device */

/* Pieces that are mapped nowhere. */
typedef struct loose {
    piece *pieces;
    uint32_t count, capacity;
} loose;

static acs_status no_memory(void)
{
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the pieces of a growth");
}

/* Unmap a run, and add its pieces to the loose ones. On a failure nothing changed. */
static acs_status loosen(acs_pages *p, struct page_run *run, loose *l)
{
    const uint32_t before = l->count;
    const uint64_t end = run->range->base + run->range->bytes;
    for (uint64_t at = run->range->base; at < end; at += piece_at(p, at)->pages * p->ops->page) {
        if (!ACS_GROW(l->pieces, l->capacity, (uint64_t)l->count + 1)) {
            l->count = before;
            return no_memory();
        }
        l->pieces[l->count++] = *piece_at(p, at);
    }
    acs_status status = p->ops->unmap(p->user, run->range->base, run->range->bytes);
    if (status != ACS_OK) {
        l->count = before;
        return status;
    }
    uint64_t at = run->range->base;
    for (uint64_t i = before; i < l->count; i++) {
        *piece_at(p, at) = (piece){0, 0};
        at += l->pieces[i].pages * p->ops->page;
    }
    ACS_ASSERT(at == end); /* PAGE-2 */
    run->unmapped = true;
    return ACS_OK;
}

static acs_status create(acs_pages *p, uint64_t bytes, loose *l)
{
    const uint64_t page = p->ops->page, share = round_up(bytes / TUNE_POOL_PIECES, page);
    const uint64_t usual = share > TUNE_POOL_PIECE_LEAST ? share : round_up(TUNE_POOL_PIECE_LEAST, page);
    while (bytes > 0) {
        const uint64_t size = bytes < usual ? bytes : usual;
        piece made = {0, size / page};
        if (!ACS_GROW(l->pieces, l->capacity, (uint64_t)l->count + 1))
            return no_memory();
        ACS_TRY(p->ops->create(p->user, size, &made.handle));
        l->pieces[l->count++] = made;
        p->piece_most = size > p->piece_most ? size : p->piece_most;
        bytes -= size;
    }
    return ACS_OK;
}

static acs_status map_all(acs_pages *p, acs_page_plan *plan, const loose *l)
{
    uint64_t at = plan->range->base;
    acs_status status = ACS_OK;
    for (uint64_t i = 0; i < l->count && status == ACS_OK; i++) {
        const uint64_t bytes = l->pieces[i].pages * p->ops->page;
        status = p->ops->map(p->user, at, bytes, l->pieces[i].handle);
        if (status == ACS_OK)
            at += bytes;
    }
    if (status != ACS_OK) {
        if (at > plan->range->base)
            (void)p->ops->unmap(p->user, plan->range->base, at - plan->range->base); /* the first error is reported */
        return status;
    }
    at = plan->range->base;
    for (uint64_t i = 0; i < l->count; i++) {
        ACS_ASSERT(piece_at(p, at)->pages == 0); /* PAGE-1 */
        *piece_at(p, at) = l->pieces[i];
        at += l->pieces[i].pages * p->ops->page;
    }
    ACS_ASSERT(at == plan->range->base + plan->range->bytes); /* PAGE-1 */
    plan->done = true;
    return ACS_OK;
}

/* Give loose pieces back to the device. Returns the first error, `status` included. */
static acs_status drop(acs_pages *p, acs_page_plan *plan, const loose *l, acs_status status)
{
    for (uint64_t i = 0; i < l->count; i++) {
        const uint64_t bytes = l->pieces[i].pages * p->ops->page;
        acs_status dropped = p->ops->destroy(p->user, l->pieces[i].handle, bytes);
        plan->gone += bytes;
        status = status == ACS_OK ? dropped : status;
    }
    return status;
}

/* New pieces are created first: where the device refuses, all others stay where they are. */
acs_status acs_pages_carry_out(acs_pages *p, acs_page_plan *plan)
{
    loose l = {0};
    acs_status status = plan->range ? create(p, plan->fresh, &l) : ACS_OK;
    uint64_t made = 0;
    for (uint64_t i = 0; i < l.count; i++)
        made += l.pieces[i].pages * p->ops->page;
    plan->created = l.count;
    plan->came = made;
    for (uint32_t i = 0; i < plan->run_count && (status == ACS_OK || !plan->range); i++) {
        /* when all are to go, one that stays does not keep the others */
        acs_status loosened = loosen(p, &plan->runs[i], &l);
        status = status == ACS_OK ? loosened : status;
    }
    if (status == ACS_OK && plan->range)
        status = map_all(p, plan, &l);
    if (!plan->done)
        status = drop(p, plan, &l, status);
    if (plan->range && !plan->done)
        plan->gone += plan->fresh - made; /* bytes that were never created count as gone */
    free(l.pieces);
    return status;
}

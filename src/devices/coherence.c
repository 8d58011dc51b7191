/*
 * Sorted pieces of a block, each with the places that hold it (see coherence.h). Called where ops are placed on devices.
 * Never touches the block's memory.
 */
#include "devices/coherence.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 4, CUTS_MOST = 2 /* most pieces that a change adds */ };

acs_status acs_coherence_init(acs_coherence *c, uint64_t bytes)
{
    acs_validity *pieces = malloc(FIRST_CAPACITY * sizeof *pieces);
    if (!pieces)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for where a block is valid");
    pieces[0] = (acs_validity){.to = bytes};
    *c = (acs_coherence){pieces, 1, FIRST_CAPACITY, bytes};
    return ACS_OK;
}

void acs_coherence_fini(acs_coherence *c)
{
    free(c->pieces);
    *c = (acs_coherence){0};
}

static acs_place_set bit_of(uint32_t place)
{
    return UINT32_C(1) << place;
}

/* The piece that holds the byte. */
static uint32_t piece_of(const acs_coherence *c, uint64_t byte)
{
    uint32_t from = 0, to = c->count;
    while (to - from > 1) {
        uint32_t middle = from + (to - from) / 2;
        if (c->pieces[middle].from <= byte)
            from = middle;
        else
            to = middle;
    }
    return from;
}

/* ------------------------------------------------------------------------------------------------------------ change */

acs_status acs_coherence_reserve(acs_coherence *c, uint32_t changes)
{
    if (ACS_GROW(c->pieces, c->capacity, (uint64_t)c->count + CUTS_MOST * changes))
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for where a block is valid, in %u pieces", c->count);
}

/* Make a piece begin at the byte, and return its index. There is room. */
static uint32_t split_at(acs_coherence *c, uint64_t byte)
{
    uint32_t i = byte < c->bytes ? piece_of(c, byte) : c->count;
    if (i == c->count || c->pieces[i].from == byte)
        return i;
    ACS_ASSERT(c->count < c->capacity && c->pieces[i].from < byte && byte < c->pieces[i].to); /* COH-1 */
    memmove(&c->pieces[i + 1], &c->pieces[i], (c->count++ - i) * sizeof *c->pieces);
    c->pieces[i].to = c->pieces[i + 1].from = byte;
    return i + 1;
}

static bool alike(const acs_validity *a, const acs_validity *b)
{
    return a->places == b->places && a->origin == b->origin && a->inherited == b->inherited;
}

/* Merge neighbours that say the same, among pieces `first` to `last`. */
static void merge_alike(acs_coherence *c, uint32_t first, uint32_t last)
{
    uint32_t kept = first;
    for (uint32_t i = first + 1; i <= last && i < c->count; i++) {
        if (alike(&c->pieces[i], &c->pieces[kept]))
            c->pieces[kept].to = c->pieces[i].to;
        else
            c->pieces[++kept] = c->pieces[i];
    }
    const uint32_t behind = last + 1 < c->count ? last + 1 : c->count;
    if (kept + 1 == behind)
        return;
    memmove(&c->pieces[kept + 1], &c->pieces[behind], (c->count - behind) * sizeof *c->pieces);
    c->count = kept + 1 + (c->count - behind);
}

static void keep_at(acs_validity *piece, uint32_t place)
{
    ACS_ASSERT(place < 8 * sizeof piece->places);
    piece->places = bit_of(place);
    piece->origin = place;
    piece->inherited = false;
}

static void leave(acs_validity *piece, uint32_t place)
{
    piece->places &= ~bit_of(place);
    if (piece->places & bit_of(piece->origin))
        return;
    piece->origin = piece->places ? (uint32_t)__builtin_ctz(piece->places) : 0;
    piece->inherited = piece->places != 0;
}

/* Whether the change would change nothing, as usual where ops write the same bytes repeatedly. */
static bool is_so(const acs_coherence *c, uint64_t from, uint64_t to, uint32_t place, bool alone)
{
    const acs_validity *piece = &c->pieces[piece_of(c, from)];
    if (to > piece->to)
        return false;
    return alone ? piece->places == bit_of(place) && !piece->inherited : !piece->places || (piece->places & bit_of(place));
}

/* Make [from, to) valid at the place; `alone`: there alone. */
static acs_status change(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place, bool alone)
{
    if (from >= to || is_so(c, from, to, place, alone))
        return ACS_OK;
    ACS_TRY(acs_coherence_reserve(c, 1));
    const uint32_t first = split_at(c, from), last = split_at(c, to) - 1;
    for (uint32_t i = first; i <= last; i++) {
        acs_validity *piece = &c->pieces[i];
        if (alone)
            keep_at(piece, place);
        else if (piece->places)
            piece->places |= bit_of(place);
    }
    merge_alike(c, first ? first - 1 : 0, last + 1);
    ACS_ASSERT(c->count > TUNE_CHECKED_PIECES || acs_coherence_check(c)); /* COH-1, COH-2 */
    return ACS_OK;
}

acs_status acs_coherence_write(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place)
{
    return change(c, from, to, place, true);
}

acs_status acs_coherence_copy(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place)
{
    return change(c, from, to, place, false);
}

void acs_coherence_drop(acs_coherence *c, uint32_t place)
{
    for (uint32_t i = 0; i < c->count; i++)
        leave(&c->pieces[i], place);
    merge_alike(c, 0, c->count - 1);
    ACS_ASSERT(c->count > TUNE_CHECKED_PIECES || acs_coherence_check(c)); /* COH-1, COH-2 */
}

static void settle_piece(acs_validity *piece, uint32_t place)
{
    if (piece->places & bit_of(place))
        keep_at(piece, place);
}

static void restore_piece(acs_validity *piece, uint32_t place)
{
    if (piece->inherited && piece->origin == place && piece->places != bit_of(place))
        leave(piece, place);
    else
        settle_piece(piece, piece->origin);
}

static void for_pieces(acs_coherence *c, uint64_t from, uint64_t to, void (*act)(acs_validity *piece, uint32_t place),
                       uint32_t place)
{
    if (from >= to)
        return;
    const bool room = acs_coherence_reserve(c, 1) == ACS_OK;
    const uint32_t first = room ? split_at(c, from) : piece_of(c, from);
    const uint32_t last = room ? split_at(c, to) - 1 : piece_of(c, to - 1);
    for (uint32_t i = first; i <= last; i++)
        act(&c->pieces[i], place);
    merge_alike(c, first ? first - 1 : 0, last + 1);
    ACS_ASSERT(c->count > TUNE_CHECKED_PIECES || acs_coherence_check(c)); /* COH-1, COH-2 */
}

void acs_coherence_restore(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place)
{
    for_pieces(c, from, to, restore_piece, place);
}

void acs_coherence_settle(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place)
{
    for_pieces(c, from, to, settle_piece, place);
}

/* --------------------------------------------------------------------------------------------------------------- ask */

static acs_validity within(const acs_validity *piece, uint64_t from, uint64_t to)
{
    return (acs_validity){piece->from > from ? piece->from : from, piece->to < to ? piece->to : to, piece->places,
                          piece->origin, piece->inherited};
}

/* Piece i, with the pieces behind it that are valid at the same places, since one copy can bring them. */
static acs_validity stretch(const acs_coherence *c, uint32_t i, uint64_t from, uint64_t to)
{
    acs_validity all = c->pieces[i];
    while (++i < c->count && c->pieces[i].places == all.places && all.to < to)
        all.to = c->pieces[i].to;
    return within(&all, from, to);
}

bool acs_coherence_missing(const acs_coherence *c, uint64_t from, uint64_t to, uint32_t place, acs_validity *missing)
{
    for (uint32_t i = from < to ? piece_of(c, from) : c->count; i < c->count && c->pieces[i].from < to; i++) {
        if (c->pieces[i].places == 0 || (c->pieces[i].places & bit_of(place)))
            continue;
        *missing = stretch(c, i, from, to);
        return true;
    }
    return false;
}

bool acs_coherence_sole(const acs_coherence *c, uint64_t from, uint32_t place, acs_validity *sole)
{
    for (uint32_t i = from < c->bytes ? piece_of(c, from) : c->count; i < c->count; i++) {
        if (c->pieces[i].places != bit_of(place))
            continue;
        *sole = within(&c->pieces[i], from, c->bytes);
        return true;
    }
    return false;
}

acs_place_set acs_coherence_any(const acs_coherence *c)
{
    acs_place_set any = 0;
    for (uint32_t i = 0; i < c->count; i++)
        any |= c->pieces[i].places;
    return any;
}

acs_place_set acs_coherence_all(const acs_coherence *c, uint64_t from, uint64_t to)
{
    acs_place_set all = ~(acs_place_set)0;
    for (uint32_t i = from < to ? piece_of(c, from) : c->count; i < c->count && c->pieces[i].from < to; i++)
        all &= c->pieces[i].places ? c->pieces[i].places : ~(acs_place_set)0;
    return all;
}

bool acs_coherence_piece(const acs_coherence *c, uint64_t from, uint64_t to, acs_validity *piece)
{
    if (from >= to || from >= c->bytes)
        return false;
    *piece = stretch(c, piece_of(c, from), from, to);
    return true;
}

/* Checks COH-1 and COH-2. */
bool acs_coherence_check(const acs_coherence *c)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const acs_validity *p = &c->pieces[i];
        if (p->from != at || p->to <= p->from || (i > 0 && alike(p, p - 1)))
            return false;
        if (p->places ? !(p->places & bit_of(p->origin)) : p->origin != 0 || p->inherited)
            return false;
        at = p->to;
    }
    return at == c->bytes;
}

/*
 * Where the contents of a block are on several devices, and the copies that move them (see replicas.h). Called while ops
 * are bound, where memory is short, and where blocks are made, freed or brought to their canonical place.
 */
#include "residency/replicas.h"

#include <stdlib.h>

acs_status acs_replicas_make(acs_context *context, acs_relocatable *m, uint32_t canonical)
{
    const uint32_t places = context->device_choice->count + 1;
    struct acs_replicas *r = calloc(1, sizeof *r + places * sizeof r->places[0]);
    if (!r || acs_coherence_init(&r->valid, m->bytes) != ACS_OK || !(r->affinity = acs_affinity_make(m->bytes))) {
        if (r)
            acs_coherence_fini(&r->valid);
        free(r);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for where a block is valid");
    }
    context->device_choice->bytes += m->bytes;
    r->count = places;
    r->canonical = canonical;
    r->target = ACS_ANY_PLACE;
    m->replicas = r;
    if (canonical == ACS_ANY_PLACE)
        return ACS_OK;
    r->places[canonical].at = m->canonical;
    /* The program may write there by itself. The block is one piece, so no memory is needed. */
    (void)acs_coherence_write(&r->valid, 0, m->bytes, canonical);
    return ACS_OK;
}

void acs_replicas_drop(acs_context *context, acs_relocatable *m, uint32_t place, acs_op last)
{
    struct acs_replicas *r = m->replicas;
    acs_replica *replica = &r->places[place];
    acs_block block;
    acs_coherence_drop(&r->valid, place);
    if (!replica->at || place == r->canonical)
        return;
    if (place == context->device_choice->count)
        context->relocatables->host_bytes -= m->bytes;
    if (!replica->borrowed) /* it is a block: cannot fail */
        (void)acs_memory_free(context->memory, (void *)(uintptr_t)replica->at, last, &block);
    *replica = (acs_replica){0};
}

bool acs_replicas_used(const acs_relocatable *m)
{
    bool used = false;
    for (uint32_t p = 0; m->replicas && p < m->replicas->count; p++)
        used |= m->replicas->places[p].at != 0;
    return used;
}

void acs_replicas_free(acs_context *context, acs_relocatable *m, bool close)
{
    struct acs_replicas *r = m->replicas;
    for (uint32_t p = 0; p <= context->device_choice->count; p++)
        acs_replicas_drop(context, m, p, close ? UINT64_MAX : r->places[p].last);
    acs_coherence_fini(&r->valid);
    acs_affinity_leave(r->affinity, m->bytes);
    context->device_choice->bytes -= m->bytes;
    free(r);
    m->replicas = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- copies */

/* Queue one copy of rows from one place to another. If one row carries a failure, all rows of the copy do. */
static acs_status queue_rows(acs_context *context, acs_relocatable *m, uint32_t to, uint32_t from, uint64_t first,
                             acs_rows rows)
{
    acs_device_choice *s = context->device_choice;
    struct acs_replicas *r = m->replicas;
    const acs_way way = {r->places[to].at, r->places[from].at, to, to < s->count ? to : from < s->count ? from : 0};
    ACS_TRY(acs_coherence_reserve(&r->valid, rows.count));
    acs_op op = acs_relocatable_copy_part(context, m, &way, &(acs_part){first, rows});
    if (!op)
        return acs_error_thread()->status;
    for (uint32_t i = 0; i < rows.count; i++) /* room was reserved */
        (void)acs_coherence_copy(&r->valid, first + i * rows.pitch, first + i * rows.pitch + rows.bytes, to);
    r->places[to].last = r->places[from].last = op;
    atomic_fetch_add_explicit(&s->transfers, 1, memory_order_relaxed); /* relaxed: counters */
    atomic_fetch_add_explicit(&s->transferred, rows.count * rows.bytes, memory_order_relaxed);
    return ACS_OK;
}

/* Part by part, so that a failure in one part keeps no other from coming. */
acs_status acs_replicas_copy(acs_context *context, acs_relocatable *m, uint32_t to, uint32_t from, uint64_t first,
                             uint64_t end)
{
    for (uint32_t i = 0; i <= m->cut_count; i++) {
        const uint64_t cut = i < m->cut_count ? m->cuts[i] : m->bytes;
        const uint64_t behind = cut < end ? cut : end;
        if (behind <= first)
            continue;
        ACS_TRY(queue_rows(context, m, to, from, first, (acs_rows){behind - first, 1, 0}));
        first = behind;
    }
    return ACS_OK;
}

static bool is_cut(const acs_relocatable *m, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < m->cut_count; i++)
        if (m->cuts[i] > from && m->cuts[i] < to)
            return true;
    return false;
}

/* Find the first bytes of the part from `at` on that are not valid at the place. */
static bool find_missing(const acs_relocatable *m, const acs_part *part, uint64_t at, uint32_t place,
                         acs_validity *missing)
{
    const uint64_t pitch = part->rows.pitch;
    for (uint64_t i = pitch && at > part->first ? (at - part->first) / pitch : 0; i < part->rows.count; i++) {
        uint64_t from, to;
        acs_part_row(m, part, i, &from, &to);
        if (acs_coherence_missing(&m->replicas->valid, from > at ? from : at, to, place, missing))
            return true;
    }
    return false;
}

/* Missing bytes from `first` on, as rows of one copy: from the same places, equally long and equally far apart. */
static acs_rows rows_of(const acs_relocatable *m, const acs_part *part, const acs_validity *first, uint32_t place)
{
    acs_rows rows = {first->to - first->from, 1, 0};
    acs_validity last = *first, next;
    for (uint64_t at = first->to; find_missing(m, part, at, place, &next); at = next.to) {
        const uint64_t pitch = next.from - last.from;
        if (next.places != first->places)
            continue;
        if (next.to - next.from != rows.bytes || pitch <= rows.bytes || is_cut(m, next.from, next.to) ||
            (rows.count > 1 && pitch != rows.pitch))
            break;
        rows.pitch = pitch;
        rows.count++;
        last = next;
    }
    return rows;
}

acs_status acs_replicas_fetch(acs_context *context, acs_relocatable *m, uint32_t place, const acs_part *part)
{
    acs_validity missing;
    for (uint64_t at = part->first; find_missing(m, part, at, place, &missing); at = missing.to) {
        const uint32_t source = acs_device_choice_nearest(context, missing.places, place, missing.to - missing.from);
        const bool whole = !is_cut(m, missing.from, missing.to);
        const acs_rows rows = whole ? rows_of(m, part, &missing, place) : (acs_rows){0};
        if (rows.count > 1)
            ACS_TRY(queue_rows(context, m, place, source, missing.from, rows));
        else
            ACS_TRY(acs_replicas_copy(context, m, place, source, missing.from, missing.to));
    } /* bytes that came with others are no longer missing */
    return ACS_OK;
}

acs_status acs_replicas_make_canonical(acs_context *context, acs_relocatable *m)
{
    struct acs_replicas *r = m->replicas;
    if (m->lazy)
        return acs_relocatable_refuse_lazy(m);
    return acs_replicas_fetch(context, m, r->canonical, &(acs_part){0, {m->bytes, 1, 0}});
}

/* Give memory back at places where no byte is valid, but for the canonical place. Returns the number of places. */
static uint32_t drop_idle(acs_context *context, acs_relocatable *m)
{
    struct acs_replicas *r = m->replicas;
    const acs_place_set any = acs_coherence_any(&r->valid);
    uint32_t dropped = 0;
    for (uint32_t p = 0; p < r->count; p++)
        if (p != r->canonical && !(any >> p & 1) && r->places[p].at && !r->places[p].borrowed) {
            acs_replicas_drop(context, m, p, r->places[p].last);
            dropped++;
        }
    return dropped;
}

void acs_replicas_hand_over(acs_context *context, acs_relocatable *m, uint64_t from, uint64_t to)
{
    acs_coherence_settle(&m->replicas->valid, from, to, m->replicas->canonical);
    const uint32_t dropped = drop_idle(context, m);
    atomic_fetch_add_explicit(&context->relocatables->homed, dropped, memory_order_relaxed); /* relaxed: a counter */
}

/* ---------------------------------------------------------------------------------------------------------- restore */

static void restore_part(acs_relocatable *m, const acs_failed_copy *copy)
{
    for (uint32_t i = 0; i < copy->part.rows.count; i++) {
        uint64_t from, to;
        acs_part_row(m, &copy->part, i, &from, &to);
        acs_coherence_restore(&m->replicas->valid, from, to, copy->place);
    }
}

bool acs_replicas_restore(acs_context *context)
{
    acs_failed_copy *copies;
    const uint32_t count = acs_device_choice_take_failed(context, &copies);
    const acs_relocatables *s = context->relocatables;
    for (acs_relocatable *m = s->first.next; m != &s->first && count; m = m->next) {
        for (uint32_t i = 0; i < count; i++)
            if (copies[i].block == m->number)
                restore_part(m, &copies[i]);
        if (!m->touched) /* else the op that is being bound uses it, and drops idle memory itself */
            (void)drop_idle(context, m);
    }
    free(copies);
    return count > 0;
}

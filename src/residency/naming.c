/*
 * Which relocatable blocks an op names, and how (see naming.h): by its segments, by pointers among its arguments, or in
 * a way that binding cannot change. Called while ops are bound, under the lock of relocatable blocks, and for groups.
 * Moves no contents.
 */
#include "residency/naming.h"

#include <string.h>

acs_relocatable *acs_naming_block(const acs_draft *draft, const acs_segment *s, bool *inside)
{
    if (!acs_segment_has_bytes(s))
        return NULL;
    acs_relocatable *m = acs_naming_at(draft, s->base);
    *inside = m && acs_segment_end(s) <= m->canonical + m->bytes;
    return m;
}

/* A bit for each word of the argument that is a pointer. */
static uint32_t pointers_in(const acs_record *record, const acs_arg_slot *arg)
{
    if (record->kind != ACS_KIND_KERNEL || arg->type == ACS_ARG_VALUE)
        return 0;
    return arg->type == ACS_ARG_POINTERS ? arg->words : arg->size == sizeof(uint64_t);
}

static uint64_t pointer_at(const acs_record *record, const acs_arg_slot *arg, uint32_t word)
{
    uint64_t value;
    memcpy(&value, record->arg_bytes + arg->offset + word * sizeof value, sizeof value);
    return value;
}

bool acs_naming_next_pointer(const acs_record *record, acs_pointer_walk *walk, uint64_t *address)
{
    for (; walk->arg < record->arg_count; walk->arg++, walk->word = 0) {
        const uint32_t left = pointers_in(record, &record->args[walk->arg]) >> walk->word << walk->word;
        if (!left)
            continue;
        const uint32_t word = (uint32_t)__builtin_ctz(left);
        walk->word = word + 1; /* at most 30 words */
        *address = pointer_at(record, &record->args[walk->arg], word);
        return true;
    }
    return false;
}

static bool points_into(const acs_relocatable *m, uint64_t address)
{
    return address - m->canonical < m->bytes;
}

static void name_by_segments(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    const uint64_t turn = draft->context->relocatables->namings;
    for (uint32_t i = 0; i < record->segment_count; i++) {
        const acs_segment *s = &record->segments[i];
        bool inside = false;
        acs_relocatable *m = acs_naming_block(draft, s, &inside);
        if (!m)
            continue;
        acs_naming *n = &m->naming;
        if (n->turn != turn) /* the pointers of a copy are its segments */
            *n = (acs_naming){.turn = turn, .pointers = record->kind != ACS_KIND_KERNEL, .inside = true};
        n->segments++;
        n->inside &= inside;
        n->whole |= s->access == ACS_WRITE && s->rows == 1 && s->base == m->canonical && s->row_bytes == m->bytes;
    }
}

void acs_naming_collect(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    const uint64_t turn = ++draft->context->relocatables->namings;
    name_by_segments(draft);
    acs_pointer_walk walk = {0};
    for (uint64_t address; acs_naming_next_pointer(record, &walk, &address);) {
        acs_relocatable *m = acs_naming_at(draft, address);
        if (m && m->naming.turn == turn)
            m->naming.pointers += points_into(m, address);
    }
}

bool acs_naming_is_work(const acs_record *record)
{
    return record->kind != ACS_KIND_OBSERVE && record->kind != ACS_KIND_STREAM_WAIT &&
           record->kind != ACS_KIND_STREAM_SIGNAL;
}

bool acs_naming_is_any(const acs_record *record)
{
    bool any = record->any != 0;
    for (uint32_t i = 0; i < record->segment_count; i++)
        any |= record->segments[i].extent == ACS_EXTENT_ALL;
    return any;
}

/* Whether binding can change the addresses that the op uses: those of a kernel or a copy are in its record. */
static bool can_change(const acs_record *record)
{
    return record->kind == ACS_KIND_KERNEL || record->kind == ACS_KIND_MEMCPY || record->kind == ACS_KIND_MEMSET;
}

bool acs_naming_escapes(const acs_draft *draft, const acs_naming *n)
{
    return !can_change(draft->record) || draft->captured || !n->inside || !n->pointers;
}

/* ------------------------------------------------------------------------------------------------------------ touch */

/*
 * Add a part's end. When the table is full parts are no longer told apart, and more ops than needed are skipped after a
 * failure.
 */
static void add_cut(acs_relocatable *m, uint64_t offset)
{
    uint32_t at = 0;
    while (at < m->cut_count && m->cuts[at] < offset)
        at++;
    if (offset == 0 || offset >= m->bytes || m->cut_count == ACS_CUTS || (at < m->cut_count && m->cuts[at] == offset))
        return;
    memmove(&m->cuts[at + 1], &m->cuts[at], (m->cut_count++ - at) * sizeof *m->cuts);
    m->cuts[at] = offset;
}

/* An inout access to the whole range merges its parts: had one part failed, this op would be skipped, too. */
static void remove_cuts(acs_relocatable *m, uint64_t from, uint64_t to)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->cut_count; i++)
        if (m->cuts[i] <= from || m->cuts[i] >= to)
            m->cuts[kept++] = m->cuts[i];
    m->cut_count = kept;
}

void acs_naming_touch(acs_relocatables *r, acs_relocatable *m, const acs_segment *s)
{
    const uint64_t from = s->base - m->canonical, to = acs_segment_end(s) - m->canonical;
    add_cut(m, from);
    add_cut(m, to);
    if (s->access == ACS_UPDATE && s->rows == 1)
        remove_cuts(m, from, to);
    if (m->touched)
        return;
    m->touched = true;
    m->next_touched = r->touched;
    r->touched = m;
}

void acs_naming_touch_pointed(const acs_draft *draft)
{
    acs_pointer_walk walk = {0};
    for (uint64_t address; !draft->captured && acs_naming_next_pointer(draft->record, &walk, &address);) {
        acs_relocatable *m = acs_naming_at(draft, address);
        if (!m || !m->lazy)
            continue;
        const acs_segment whole = ACS_INOUT(m->canonical, m->bytes);
        acs_naming_touch(draft->context->relocatables, m, &whole);
        m->written = true;
    }
}

/*
 * Binding on several devices (see replicas.h): choose where an op runs, copy what it reads there, and note what it
 * writes. Called by bind.c, under the lock of relocatable blocks.
 */
#include "residency/replicas.h"

#include "base/tuning.h"
#include "residency/naming.h"
#include "residency/spill.h"

#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------------------- naming */

static bool has_gaps(const acs_segment *s)
{
    return s->rows > 1 && s->pitch_bytes > s->row_bytes;
}

/* Whether the gaps between the segment's rows are copied with them, and count as written with them. */
static bool takes_gaps(const acs_segment *s)
{
    return has_gaps(s) && s->rows > TUNE_REPLICA_ROWS;
}

static bool reads(const acs_segment *s)
{
    return (s->access & ACS_READ) || takes_gaps(s);
}

static uint64_t first_of(const acs_relocatable *m, const acs_segment *s)
{
    return s->base - m->canonical;
}

/* The part of its block that the segment names. */
static acs_part named_part(const acs_relocatable *m, const acs_segment *s)
{
    const acs_rows rows = {s->row_bytes, (uint32_t)s->rows, s->pitch_bytes}, run = {acs_segment_end(s) - s->base, 1, 0};
    return (acs_part){first_of(m, s), has_gaps(s) && !takes_gaps(s) ? rows : run};
}

/* Whether the op only asks about other ops, and changes no memory. */
static bool is_observer(const acs_record *record)
{
    return !acs_naming_is_work(record);
}

/* Whether the op runs on a device. */
static bool has_device(const acs_record *record)
{
    return record->kind == ACS_KIND_KERNEL || record->kind == ACS_KIND_MEMCPY || record->kind == ACS_KIND_MEMSET ||
           record->kind == ACS_KIND_CALL;
}

/* Whether the op is a copy out of the block that does not go into it. */
static bool is_source(const acs_draft *draft, const acs_relocatable *m)
{
    const acs_record *record = draft->record;
    return record->kind == ACS_KIND_MEMCPY && (uint64_t)(uintptr_t)record->u.copy.dst - m->canonical >= m->bytes;
}

static acs_status touch(const acs_draft *draft, acs_relocatable *m, const acs_segment *s)
{
    struct acs_replicas *r = m->replicas;
    const acs_naming n = m->naming;
    const bool first = !m->touched;
    r->escapes = m->pinned || acs_naming_escapes(draft, &n);
    if (r->escapes && m->lazy && !is_observer(draft->record))
        return acs_relocatable_refuse_lazy(m);
    acs_naming_touch(draft->context->relocatables, m, s);
    m->written |= acs_naming_is_work(draft->record) && (s->access & ACS_WRITE);
    m->overwritten |= !r->escapes && n.whole && n.segments == 1 && acs_naming_is_work(draft->record);
    if (first) {
        r->target = ACS_ANY_PLACE;
        r->taken = false;
    }
    return ACS_OK;
}

/* ----------------------------------------------------------------------------------------------------------- choose */

/* List the bytes that the op reads of the block, by the places where they are valid. */
static void list_reads(acs_device_choice_op *op, const acs_relocatable *m, const acs_segment *s)
{
    const acs_part part = named_part(m, s);
    const uint32_t others = op->op.read_count;
    for (uint32_t i = 0; i < part.rows.count; i++) {
        uint64_t at, to;
        acs_validity piece;
        for (acs_part_row(m, &part, i, &at, &to); acs_coherence_piece(&m->replicas->valid, at, to, &piece); at = piece.to)
            acs_device_choice_reads(op, others, piece.to - piece.from, piece.places);
    }
}

/*
 * Prefer the device of the block's latest writer, as long as no other op followed that: the first follower can take over
 * the writer's stream.
 */
static void list_upstream(acs_device_choice_op *op, const acs_relocatable *m, const acs_device_choice *choice)
{
    const struct acs_replicas *r = m->replicas;
    const bool now = r->idles == choice->idles; /* else the devices were idle since */
    if (now && r->ends > op->op.ready)
        op->op.ready = r->ends;
    if (r->ends > 0 && !r->followed && r->writer < choice->count)
        op->op.preferred |= 1u << r->writer;
}

static acs_status look_at_segment(const acs_draft *draft, acs_device_choice_op *op, uint32_t i)
{
    const acs_segment *s = &draft->record->segments[i];
    acs_context *context = draft->context;
    bool inside;
    if (!acs_segment_has_bytes(s))
        return ACS_OK;
    op->bytes += s->rows * s->row_bytes;
    const acs_relocatable *m = acs_naming_block(draft, s, &inside);
    if (m && m->touched && !m->replicas->escapes) {
        if (reads(s)) {
            list_reads(op, m, s);
            list_upstream(op, m, context->device_choice);
        }
        return ACS_OK;
    }
    const uint32_t place = m && m->touched ? m->replicas->canonical : acs_device_choice_place(context, s->base);
    if (place < context->device_choice->count)
        return acs_device_choice_restrict(draft, op, place, i);
    if (s->access & ACS_READ)
        acs_device_choice_reads(op, op->op.read_count, s->rows * s->row_bytes, 1u << place);
    return ACS_OK;
}

/* A copy out of a block that can move runs on a device where some of the block's bytes are valid. */
static void stay_at_source(const acs_draft *draft, acs_device_choice_op *op)
{
    for (const acs_relocatable *m = draft->context->relocatables->touched; m; m = m->next_touched) {
        const acs_place_set near = acs_coherence_any(&m->replicas->valid) & op->op.allowed;
        if (!m->replicas->escapes && is_source(draft, m) && near)
            op->op.allowed = near;
    }
}

/* The largest of the blocks that the op names and that can move. */
static acs_relocatable *largest_of(const acs_draft *draft)
{
    acs_relocatable *largest = NULL;
    for (acs_relocatable *m = draft->context->relocatables->touched; m; m = m->next_touched)
        if (!m->replicas->escapes && (!largest || m->bytes > largest->bytes))
            largest = m;
    return largest;
}

/*
 * Policy `auto`: an op that reads nothing on any device goes to the device of its largest block's affinity set. Ops that
 * will use its blocks later tend to be there. The first op of a set since devices were idle decides for all. For other
 * ops that device is preferred among equals.
 */
static void follow_affinity(const acs_draft *draft, acs_device_choice_op *op)
{
    const acs_device_choice *s = draft->context->device_choice;
    const acs_relocatable *largest = largest_of(draft);
    const acs_affinity *affinity = largest ? acs_affinity_of(largest->replicas->affinity) : NULL;
    if (!affinity || !affinity->device || !(op->op.allowed >> (affinity->device - 1) & 1))
        return;
    op->op.preferred = 1u << (affinity->device - 1);
    bool here = affinity->decided == s->idles;
    for (uint32_t i = 0; i < op->op.read_count; i++)
        here &= !(op->reads[i].places & ((1u << s->count) - 1));
    if (here)
        op->op.allowed = op->op.preferred;
}

/*
 * Join the affinity sets of blocks that a kernel uses together. Small blocks are left out, since copying them is cheap.
 * At most TUNE_AFFINITY_BLOCKS of a kernel are joined, and no set gets larger than one device's share of all blocks.
 */
static void lead_affinity(const acs_draft *draft, uint32_t device)
{
    const acs_device_choice *s = draft->context->device_choice;
    const acs_relocatable *largest = largest_of(draft);
    acs_affinity *affinity = largest ? largest->replicas->affinity : NULL;
    uint32_t told = 0;
    for (acs_relocatable *m = draft->context->relocatables->touched; m && draft->kernel; m = m->next_touched)
        if (m != largest && !m->replicas->escapes && m->bytes >= largest->bytes / TUNE_AFFINITY_PART &&
            ++told < TUNE_AFFINITY_BLOCKS)
            (void)acs_affinity_join(affinity, m->replicas->affinity, s->bytes / s->count);
    if (!affinity)
        return;
    affinity = acs_affinity_of(affinity);
    affinity->device = device + 1;
    affinity->decided = s->idles;
}

/* Devices that reach the memory of all others: only there may ops run that touch any memory. */
static acs_place_set reaching_all(const acs_topology *t)
{
    acs_place_set devices = 0;
    for (uint32_t d = 0; d < t->count; d++) {
        bool all = true;
        for (uint32_t other = 0; other < t->count; other++)
            all &= other == d || t->links[d][other].peer;
        devices |= all ? 1u << d : 0;
    }
    return devices ? devices : 1u;
}

/* A CUfunction belongs to one CUDA context, which the driver does not name; it has to be that of the first device. */
static bool needs_first(const acs_draft *draft)
{
    return draft->captured || (draft->kernel && draft->record->u.launch.kernel.kind == ACS_KERNEL_CUFUNCTION);
}

/* Choose a device that is not `full`. ACS_NOT_READY: all devices where the op may run are. */
static acs_status choose_device(const acs_draft *draft, acs_place_set full, uint32_t *device)
{
    acs_device_choice_op op;
    const uint32_t count = draft->context->device_choice->count;
    op.op = (acs_placement_op){.allowed = needs_first(draft) ? 1u : (1u << count) - 1};
    if (acs_naming_is_any(draft->record))
        op.op.allowed &= reaching_all(&draft->context->device_choice->topology);
    if (!op.op.allowed)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "'%s': may touch anything, but device 0, where it has to run, does not "
                        "reach the memory of all others", acs_draft_name(draft));
    op.op.allowed &= ~full;
    if (!op.op.allowed)
        return ACS_NOT_READY;
    op.bytes = 0;
    acs_device_choice_refresh(draft->context->device_choice);
    for (uint32_t i = 0; i < draft->record->segment_count; i++)
        ACS_TRY(look_at_segment(draft, &op, i));
    if (draft->record->kind == ACS_KIND_MEMCPY)
        stay_at_source(draft, &op);
    const bool by_affinity = draft->context->device_choice->placement.policy == ACS_POLICY_AUTO;
    if (by_affinity)
        follow_affinity(draft, &op);
    *device = draft->captured ? 0 : acs_device_choice_choose(draft, &op);
    if (by_affinity)
        lead_affinity(draft, *device);
    return ACS_OK;
}

/*
 * The place from which a copy reads: any place that has all of its bytes; else the device, where they are brought first.
 */
static uint32_t source_of(const acs_draft *draft, const acs_relocatable *m, uint32_t device)
{
    const acs_record *record = draft->record;
    const uint64_t first = (uint64_t)(uintptr_t)record->u.copy.src - m->canonical;
    const uint32_t places = draft->context->device_choice->count + 1;
    const acs_place_set everywhere = (1u << places) - 1;
    const acs_place_set all = acs_coherence_all(&m->replicas->valid, first, first + record->u.copy.bytes) & everywhere;
    if (!all || (all >> device & 1))
        return device;
    return acs_device_choice_nearest(draft->context, all, device, record->u.copy.bytes);
}

static void set_targets(const acs_draft *draft, uint32_t device)
{
    draft->context->device_choice->part_count = 0;
    for (acs_relocatable *m = draft->context->relocatables->touched; m; m = m->next_touched) {
        struct acs_replicas *r = m->replicas;
        r->changes = 0;
        if (r->escapes)
            r->target = r->canonical; /* ACS_ANY_PLACE for a lazy block, which is only observed then */
        else
            r->target = is_source(draft, m) ? source_of(draft, m, device) : device;
    }
}

/* ---------------------------------------------------------------------------------------------------------- provide */

/* All blocks that the op names are on the device together, so that no two ops take each other's blocks for ever. */
static acs_status check_target_limit(const acs_draft *draft, uint32_t device)
{
    const acs_context *context = draft->context;
    const uint64_t limit = (uint64_t)context->options.memory_limit;
    uint64_t bytes = 0;
    for (const acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched)
        bytes += m->replicas->target == device ? m->bytes : 0;
    if (!limit || bytes <= limit)
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_MEMORY, 0,
                    "'%s' needs %llu bytes of ACS_RELOCATABLE and ACS_LAZY blocks on a device at once: "
                    "ACS_MEMORY_LIMIT is %llu",
                    acs_draft_name(draft), (unsigned long long)bytes, (unsigned long long)limit);
}

static acs_status note_written(acs_device_choice *s, acs_relocatable *m, acs_part part)
{
    if (!ACS_GROW(s->parts, s->part_capacity, s->part_count + 1))
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for what an op writes");
    s->parts[s->part_count++] = (acs_written_part){m, part};
    m->replicas->changes += part.rows.count;
    return ACS_OK;
}

/* Whether some gaps between the segment's rows have to be copied with them. */
static bool brings_gaps(const acs_relocatable *m, const acs_segment *s)
{
    acs_validity missing;
    const uint64_t first = first_of(m, s), end = acs_segment_end(s) - m->canonical;
    return takes_gaps(s) && acs_coherence_missing(&m->replicas->valid, first, end < m->bytes ? end : m->bytes,
                                                  m->replicas->target, &missing);
}

/*
 * Copy what the op reads of the segment to the block's target; also what the program waits for, whatever it does
 * afterwards. The program may change the latter once the wait has ended (acs_relocatables_hand_over_part), a foreign
 * stream at once.
 */
static acs_status provide_segment(const acs_draft *draft, acs_relocatable *m, acs_segment *s)
{
    struct acs_replicas *r = m->replicas;
    const acs_part part = named_part(m, s);
    const bool brings = brings_gaps(m, s);
    if (reads(s) || is_observer(draft->record))
        ACS_TRY(acs_replicas_fetch(draft->context, m, r->target, &part));
    const bool writes = (s->access & ACS_WRITE) && (draft->gives || draft->record->kind != ACS_KIND_OBSERVE);
    if (writes && brings) { /* the op comes behind the copies of the gaps, and is skipped with them */
        s->row_bytes = part.rows.bytes;
        s->rows = 1;
        s->access = ACS_UPDATE;
    }
    return writes ? note_written(draft->context->device_choice, m, part) : ACS_OK;
}

/* An op that may touch any memory has no segments for blocks that its pointers name. */
static acs_status provide_pointed(const acs_draft *draft)
{
    for (acs_relocatable *m = draft->context->relocatables->touched; m; m = m->next_touched) {
        acs_segment whole = ACS_INOUT(m->canonical, m->bytes);
        ACS_TRY(provide_segment(draft, m, &whole));
    }
    return ACS_OK;
}

static acs_status provide_segments(const acs_draft *draft)
{
    for (uint32_t i = 0; i < draft->record->segment_count; i++) {
        acs_segment *s = &draft->record->segments[i];
        bool inside;
        acs_relocatable *m = acs_naming_block(draft, s, &inside);
        if (m && m->touched && m->replicas->target != ACS_ANY_PLACE)
            ACS_TRY(provide_segment(draft, m, s));
    }
    return ACS_OK;
}

/* Reserve room in the tables of valid bytes. Called behind all copies, which use some of it. */
static acs_status reserve_changes(const acs_relocatables *relocatables)
{
    for (acs_relocatable *m = relocatables->touched; m; m = m->next_touched)
        ACS_TRY(acs_coherence_reserve(&m->replicas->valid, m->replicas->changes));
    return ACS_OK;
}

static acs_status provide(acs_draft *draft, bool all)
{
    acs_context *context = draft->context;
    for (acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched) {
        struct acs_replicas *r = m->replicas;
        if (r->target == ACS_ANY_PLACE)
            continue;
        r->taken = !r->places[r->target].at;
        ACS_TRY(acs_spill_find_memory_at(context, m, r->target));
        m->to = r->places[r->target].at;
    }
    ACS_TRY(all ? provide_pointed(draft) : provide_segments(draft));
    return reserve_changes(context->relocatables);
}

/* ------------------------------------------------------------------------------------------------------------- look */

/* An op that observes a lazy block observes all places: one by its segment, each other by a further segment. */
static void look_everywhere(const acs_draft *draft)
{
    acs_record *record = draft->record;
    const uint32_t given = record->segment_count;
    for (uint32_t i = 0; i < given; i++) {
        bool inside;
        acs_relocatable *m = acs_naming_block(draft, &record->segments[i], &inside);
        if (!m || !m->touched || m->replicas->target != ACS_ANY_PLACE)
            continue;
        m->to = 0;
        for (uint32_t p = 0; p <= draft->context->device_choice->count; p++) {
            const uint64_t at = m->replicas->places[p].at;
            if (!at)
                continue;
            if (m->to) {
                acs_segment *more = &record->segments[record->segment_count++];
                *more = record->segments[i];
                more->base = at + first_of(m, &record->segments[i]);
            } else {
                m->to = at;
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- prepare */

static acs_status touch_segments(const acs_draft *draft, bool all)
{
    const acs_record *record = draft->record;
    for (uint32_t i = 0; i < record->segment_count; i++) {
        bool inside;
        acs_relocatable *m = acs_naming_block(draft, &record->segments[i], &inside);
        if (!m || !m->lazy || m->dying || !inside)
            ACS_TRY(acs_lazy_check(draft, &record->segments[i], i));
        if (m && (m->lazy || !all))
            ACS_TRY(touch(draft, m, &record->segments[i]));
    }
    return ACS_OK;
}

/* Touch lazy blocks into which an op has pointers that may touch any memory; such pointers can be changed. */
static void touch_pointed(const acs_draft *draft)
{
    acs_naming_touch_pointed(draft);
    for (acs_relocatable *m = draft->context->relocatables->touched; m; m = m->next_touched) {
        m->replicas->escapes = m->replicas->taken = false;
        m->overwritten = false;
    }
}

/* Undo placing the op on a device. */
static void leave_device(const acs_draft *draft)
{
    acs_device_choice_drop(draft->context, draft->record);
    for (acs_relocatable *m = draft->context->relocatables->touched; m; m = m->next_touched) {
        acs_replicas_undo(draft->context, m);
        m->replicas->taken = false;
    }
}

/* For an op without a device: when the contents that it names are expected to be there. */
static double end_of_touched(const acs_context *context)
{
    double end = 0;
    for (const acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched)
        if (m->replicas->idles == context->device_choice->idles && m->replicas->ends > end)
            end = m->replicas->ends;
    return end;
}

/* Place the op and the contents that it names: on the best device for it, or on another one where that has no room. */
static acs_status place_replicas(acs_draft *draft, bool all)
{
    const bool chosen = has_device(draft->record);
    acs_place_set full = 0;
    acs_status status = ACS_OK;
    acs_error first;
    draft->context->device_choice->end = chosen ? 0 : end_of_touched(draft->context);
    for (;;) {
        uint32_t device = 0;
        acs_status can = chosen ? choose_device(draft, full, &device) : ACS_OK;
        if (can != ACS_OK && full) {
            *acs_error_thread() = first;
            return ACS_ERR_MEMORY;
        }
        ACS_TRY(can);
        set_targets(draft, device);
        status = check_target_limit(draft, device);
        if (status == ACS_OK)
            status = provide(draft, all);
        if (status != ACS_ERR_MEMORY || !chosen)
            return status;
        first = full ? first : *acs_error_thread();
        full |= 1u << device;
        leave_device(draft);
    }
}

acs_status acs_replicas_prepare(acs_draft *draft)
{
    acs_context *context = draft->context;
    const bool all = acs_naming_is_any(draft->record);
    acs_naming_collect(draft);
    if (all)
        ACS_TRY(acs_relocatables_make_canonical_locked(context));
    ACS_TRY(touch_segments(draft, all));
    if (all && !is_observer(draft->record))
        touch_pointed(draft);
    ACS_TRY(place_replicas(draft, all && !is_observer(draft->record)));
    if (is_observer(draft->record))
        look_everywhere(draft);
    return ACS_OK;
}

/* Called once the op can no longer be refused. */
acs_status acs_replicas_begin(acs_draft *draft)
{
    acs_context *context = draft->context;
    for (const acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched) {
        const struct acs_replicas *r = m->replicas;
        if (m->overwritten && !r->taken && r->target != ACS_ANY_PLACE)
            ACS_TRY(acs_relocatable_begin_life(context, m, m->to, r->places[r->target].last));
    }
    return ACS_OK;
}

/* ----------------------------------------------------------------------------------------------------------- commit */

static void write_part(acs_relocatable *m, const acs_part *part, uint32_t place)
{
    for (uint32_t i = 0; i < part->rows.count; i++) {
        uint64_t from, to;
        acs_part_row(m, part, i, &from, &to);
        (void)acs_coherence_write(&m->replicas->valid, from, to, place); /* room was reserved */
    }
}

/* What the op wrote is valid at the target alone. Places where no byte is valid any more give their memory back. */
void acs_replicas_commit(acs_draft *draft, acs_relocatable *m)
{
    acs_context *context = draft->context;
    acs_device_choice *s = context->device_choice;
    struct acs_replicas *r = m->replicas;
    const uint32_t target = r->target;
    if (m->overwritten)
        m->cut_count = 0;
    if (target == ACS_ANY_PLACE)
        return;
    r->places[target].last = acs_fifo_last(context->core.fifo);
    r->followed = true;
    for (uint32_t i = 0; i < s->part_count; i++) {
        if (s->parts[i].block != m)
            continue;
        write_part(m, &s->parts[i].part, target);
        r->followed = false;
        r->writer = target;
        r->ends = r->idles == s->idles && r->ends > s->end ? r->ends : s->end;
        r->idles = s->idles;
    }
    const acs_place_set any = acs_coherence_any(&r->valid);
    for (uint32_t p = 0; p <= s->count; p++)
        if (p != target && !(any >> p & 1) && r->places[p].at)
            acs_replicas_drop(context, m, p, r->places[p].last);
    r->target = ACS_ANY_PLACE;
}

void acs_replicas_undo(acs_context *context, acs_relocatable *m)
{
    struct acs_replicas *r = m->replicas;
    const uint32_t target = r->target;
    r->target = ACS_ANY_PLACE;
    if (target != ACS_ANY_PLACE && r->taken && !(acs_coherence_any(&r->valid) >> target & 1))
        acs_replicas_drop(context, m, target, r->places[target].last);
}

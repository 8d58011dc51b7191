/*
 * Ops of a pass that enter replays: which known op a launch repeats, and whether it goes on with the fragment that its
 * strand has open, or begins one. Called by launches through repeat.h. Holds the lock across no call that blocks.
 *
 * A replay's number is older than those of ops that were queued since it was opened. So an op may join it only if no
 * such op conflicts with the strand. Every op that passes through here seals the strands that it conflicts with. Ops of
 * other threads may not pass through here: then there are more numbers than this file knows, and all are sealed.
 */
#include "repeats/repeat_internal.h"

#include "api/threads.h"
#include "api/wait.h"
#include "window/nvtx_op.h"

#include <stdatomic.h>
#include <string.h>
#include <utlist.h>

/* What may become part of a replay: a launch without a record yet, or an op with one. */
typedef struct entering {
    acs_repeat *repeat;       /* NULL: that of the automatic pass */
    uint64_t pass;            /* its pass; coroutines may end it while the op waits for room */
    const acs_launch_params *params;
    const acs_record *record; /* NULL: `params` has the op */
    acs_op op, sealed;        /* results: its number, 0: it matches nothing; and that of a replay that was sealed */
    bool room;                /* false: a replay has to begin, and there was no room */
    bool tried;               /* it is part of a trial, and goes the usual way */
} entering;

static bool repeats(const acs_known *known, const entering *e)
{
    return e->record ? acs_known_op_equals(known, e->record) : acs_known_op_matches(known, e->params);
}

/* The known op that the op repeats; NULL: none. Mostly it is what came here the last time. */
static acs_known *find(const acs_repeat *repeat, const entering *e)
{
    acs_known *known = repeat->last ? repeat->last->follower : repeat->first_op;
    if (known && repeats(known, e))
        return known;
    if (!repeat->pieces)
        return NULL;
    const uint32_t tag = e->record ? acs_known_op_tag(e->record) : acs_known_op_tag_of_launch(e->params);
    known = acs_known_first(repeat, tag);
    while (known && (known->tag != tag || !repeats(known, e)))
        known = known->same;
    return known;
}

/* The op has arguments or a width of its own. */
static void add_values(const entering *e, acs_replay *replay, const acs_known *known, uint32_t at)
{
    unsigned char *args = replay->args + replay->shape->arg_at[at];
    replay->width[at] = e->record ? e->record->grid.x : e->params->grid.x;
    if (e->record)
        memcpy(args, e->record->arg_bytes, e->record->arg_bytes_used);
    else
        acs_known_op_copy_args(known, e->params, args);
}

/* Add the op to the replay, at the place before the strand's. */
static acs_op add(const entering *e, acs_strand *strand, const acs_known *known)
{
    acs_replay *replay = strand->replay;
    const uint32_t at = strand->place - 1;
    const bool same = e->record ? acs_known_op_has_values(known, e->record) : acs_known_op_has_values_of(known, e->params);
    if (!same) {
        add_values(e, replay, known, at);
        acs_strand_differs(strand, at);
        strand->repeat->differing++;
    }
    return acs_replay_add(replay, at, !same);
}

/* The ops that come next, if all goes as the last time, are needed soon: the first is fetched, the second in part. */
static void fetch_next(const acs_known *known)
{
    const acs_known *second = known->follower ? known->follower->follower : NULL;
    if (!second)
        return;
    acs_known_op_fetch_lists(second);
    if (second->follower)
        acs_known_op_fetch(second->follower);
}

/* Strands are sealed if there are numbers of unknown ops: these may have to come before what the pass queues now. */
static acs_op seal_behind_unknown(acs_context *context)
{
    acs_repeats *all = context->repeats;
    const acs_op last = acs_fifo_last(context->core.fifo);
    if (ACS_LIKELY(last == all->numbered))
        return 0;
    const acs_op sealed = acs_strands_seal(context, NULL, false);
    all->numbered = last;
    return sealed;
}

static uint32_t place_in(const acs_piece *piece, uint32_t place, const acs_known *known)
{
    return acs_sequence_place(piece->ops, piece->shape->ops, place, known);
}

/* Move the open replay to a piece with its ops and this one. */
static bool move(acs_strand *strand, const acs_known *known, uint32_t *place)
{
    acs_piece *piece;
    LL_FOREACH2 (strand->pieces, piece, of_next) {
        if (!acs_filter_has(&piece->filter, known))
            continue;
        *place = acs_strand_place_in(strand, piece);
        *place = *place < piece->shape->ops ? place_in(piece, *place, known) : piece->shape->ops;
        if (*place < piece->shape->ops && acs_strand_move(strand, piece, *place))
            return true;
    }
    return false;
}

/* Go on with the open replay; if its piece does not have the op behind the others, with another piece. */
static bool go_on(acs_strand *strand, const acs_known *known)
{
    uint32_t place = place_in(strand->piece, strand->place, known);
    if (place == strand->piece->shape->ops && !move(strand, known, &place))
        return false;
    if (strand->began && strand->began->piece != strand->piece)
        strand->began->piece = strand->piece;
    acs_strand_go_on(strand, place);
    return true;
}

/*
 * The place at which a replay of the op's piece begins: behind the replay before, if that was of the same piece, or else
 * the first one.
 */
static uint32_t first_place(const acs_strand *strand, const acs_known *known)
{
    const acs_piece *piece = known->piece;
    const bool again = piece == strand->piece && piece->ops[0] != known;
    const uint32_t place = again ? place_in(piece, strand->place, known) : piece->shape->ops;
    return place < piece->shape->ops ? place : place_in(piece, 0, known);
}

/* Join the replay that the strand has open, or begin one. False: no piece has the op, or there is no room (e->room). */
static bool join(acs_context *context, entering *e, acs_strand *strand, const acs_known *known)
{
    if (strand->replay && go_on(strand, known))
        return true;
    const bool ends = strand->replay != NULL;
    const acs_op sealed = acs_strand_seal(context, strand);
    e->sealed = sealed ? sealed : e->sealed;
    if (!known->piece)
        return false;
    const uint32_t place = first_place(strand, known);
    if (ends && place)
        strand->learns = strand->repeat->misfits = true;
    return acs_strand_open(context, strand, known->piece, place, e->record != NULL, &e->room);
}

/* The repeat of the op's automatic pass; NULL: there are none. */
static acs_repeat *automatic_pass(acs_context *context, entering *e)
{
    acs_repeats *all = context->repeats;
    const acs_site *site = e->record ? e->record->site : e->params->site;
    if (all->found && acs_repeat_pass_ops(all->found) >= all->found->pass_most) {
        const acs_op sealed = acs_automatic_pass_end(context, true);
        e->sealed = sealed ? sealed : e->sealed;
    }
    if (!all->found && atomic_load_explicit(&all->automatic, memory_order_relaxed)) /* relaxed: written under the lock */
        acs_automatic_pass_begin(all, acs_repeat_get(all, (uint64_t)(uintptr_t)site));
    return all->found;
}

/* Under the lock. */
static void enter(acs_context *context, entering *e)
{
    acs_repeat *repeat = e->repeat ? e->repeat : automatic_pass(context, e);
    e->room = true;
    if (!repeat || !repeat->open || (e->repeat && repeat->passes != e->pass))
        return;
    acs_known *known = find(repeat, e);
    if (!known || known->strand == ACS_STRAND_NONE)
        return;
    acs_strand *strand = &repeat->strands[known->strand];
    if (!e->record && (strand->replay ? strand->trial : known->piece && !known->piece->ready))
        return; /* it comes once more, with its record */
    acs_op sealed = seal_behind_unknown(context);
    e->sealed = sealed ? sealed : e->sealed;
    if (!join(context, e, strand, known))
        return;
    e->room = true;
    const acs_op number = add(e, strand, known);
    e->tried = strand->trial;
    e->op = e->tried ? 0 : number;
    context->repeats->entered += !e->tried;
    acs_repeat_queued(repeat, known, e->op);
    fetch_next(known);
    if (strand->place < strand->piece->shape->ops)
        return;
    sealed = acs_strand_seal(context, strand);
    e->sealed = sealed ? sealed : e->sealed;
}

static bool try_enter(acs_context *context, void *entering_op)
{
    entering *e = entering_op;
    acs_repeats_lock(context->repeats);
    if (!e->op && !e->tried) /* a wait may ask once more after success */
        enter(context, e);
    acs_repeats_unlock(context->repeats);
    return e->room;
}

static void wake(acs_context *context, acs_op op)
{
    if (op)
        acs_context_queued(context, op, true);
}

static acs_label label_of(const entering *e)
{
    if (e->record)
        return acs_record_label(e->record);
    return (acs_label){e->params->site, e->params->kernel->name};
}

/* Enter, and wait for room unless the call must not. @return the op's number; 0: it goes the usual way. */
static acs_op enter_or_wait(acs_context *context, entering *e, bool no_wait)
{
    if (ACS_UNLIKELY(!try_enter(context, e)) && !no_wait) {
        wake(context, e->sealed);
        atomic_fetch_add_explicit(&context->caller_waits, 1, memory_order_relaxed); /* a counter */
        if (ACS_UNLIKELY(acs_nvtx_taken))
            acs_nvtx_op_push_full(label_of(e), acs_core_settled(&context->core) + 1);
        acs_context_wait_room(context, try_enter, e);
        if (ACS_UNLIKELY(acs_nvtx_taken))
            acs_nvtx_pop();
    }
    wake(context, e->sealed);
    return e->op;
}

/* Whether the calling thread is in a pass: that of `repeat`, or else an automatic one. */
static bool is_in_pass(const acs_context *context, const acs_repeat *repeat)
{
    return repeat || atomic_load_explicit(&context->repeats->automatic, memory_order_relaxed); /* relaxed: see passes.c */
}

acs_op acs_repeats_launch(acs_context *context, const acs_launch_params *p)
{
    acs_repeat *repeat = acs_thread_pass_in(context);
    const bool complete = p->kernel && (!p->args.count || p->args.list) && (!p->uses.count || p->uses.segments);
    if (!complete || !is_in_pass(context, repeat))
        return 0;
    entering e = {.repeat = repeat, .pass = repeat ? repeat->passes : 0, .params = p};
    return enter_or_wait(context, &e, p->no_wait != 0);
}

/*
 * Whether no replay may stay open behind the op: a callback, for which the program may wait by itself; and an op with
 * which new lives of blocks begin, since later ops must not be older than these.
 */
static bool ends_all(const acs_record *op)
{
    return op->kind == ACS_KIND_CALLBACK || (op->flags & ACS_RECORD_REUSES);
}

/* The op goes the usual way: learn it. `repeat`: that of the pass that the program named, or NULL. */
static void pass_by(acs_context *context, acs_repeat *repeat, const acs_record *op)
{
    if (!is_in_pass(context, repeat))
        return;
    acs_repeats_lock(context->repeats);
    repeat = repeat ? repeat : context->repeats->found;
    if (repeat && op->kind == ACS_KIND_KERNEL) /* relaxed: a counter */
        atomic_fetch_add_explicit(&context->repeats->unmatched, 1, memory_order_relaxed);
    if (repeat)
        acs_repeat_unmatched(repeat, op);
    acs_repeats_unlock(context->repeats);
}

acs_op acs_repeats_queue(acs_draft *draft)
{
    acs_context *context = draft->context;
    acs_repeat *repeat = acs_thread_pass_in(context);
    const bool plain = (draft->modes & ACS_MODES_LAUNCH) == ACS_MODE_REPEATS && !draft->parts;
    if (plain && is_in_pass(context, repeat) && draft->record->kind == ACS_KIND_KERNEL) {
        entering e = {.repeat = repeat, .pass = repeat ? repeat->passes : 0, .record = draft->record};
        if (enter_or_wait(context, &e, draft->no_wait)) {
            acs_record_release(draft->records, draft->record);
            draft->record = NULL;
            return e.op;
        }
        if (e.tried) { /* relaxed: a counter */
            atomic_fetch_add_explicit(&context->repeats->unmatched, 1, memory_order_relaxed);
            return 0;
        }
    }
    pass_by(context, repeat, draft->record);
    return 0;
}

/*
 * In one step, since a replay that is opened behind the number must not hold ops that come before it: seal the strands
 * that the ops conflict with, and push.
 */
acs_op acs_repeats_push(acs_draft *draft)
{
    acs_context *context = draft->context;
    acs_repeats *all = context->repeats;
    acs_repeat *repeat = acs_thread_pass_in(context);
    const uint32_t count = draft->parts ? draft->parts : 1;
    acs_repeats_lock(all);
    repeat = repeat ? repeat : all->found;
    const bool cuts = repeat && draft->record->kind != ACS_KIND_KERNEL;
    acs_op sealed = seal_behind_unknown(context);
    for (uint32_t i = 0; i < count; i++) {
        const acs_record *op = draft->parts ? draft->part[i] : draft->record;
        const acs_op behind = acs_strands_seal(context, ends_all(op) ? NULL : op, cuts);
        sealed = behind ? behind : sealed;
    }
    const acs_op op = acs_draft_push(draft);
    all->numbered += op ? count : 0; /* less than the number if another thread's op came between */
    if (repeat)
        acs_repeat_numbered(repeat, op);
    acs_repeats_unlock(all);
    wake(context, sealed);
    return op;
}

/*
 * Ops of a pass that enter replays: which known op a launch repeats, and whether it may join the open replay of its
 * strand. Called by launches through repeat.h. Holds the lock across no call that blocks.
 *
 * A replay's number is older than those of ops that were queued since it was opened. So an op may join it only if no
 * such op conflicts with the piece. Every op that passes through here seals the pieces that it conflicts with. Ops of
 * other threads may not pass through here: then there are more numbers than this file knows, and all pieces are sealed.
 */
#include "repeats/repeat_internal.h"

#include "api/threads.h"
#include "api/wait.h"

#include <string.h>

/* What may become part of a replay: a launch without a record yet, or an op with one. */
typedef struct entering {
    acs_repeat *repeat;
    uint64_t pass;            /* its pass; coroutines may end it while the op waits for room */
    const acs_launch_params *params;
    const acs_record *record; /* NULL: `params` has the op */
    acs_op op, sealed;        /* results: its number, 0: it matches nothing; and that of a replay that was sealed */
    bool room;                /* false: a replay has to begin, and there was no room */
} entering;

/* Whether the op repeats the candidate, and comes behind all ops of its strand that entered in this pass. */
static bool repeats(const acs_candidate *c, const entering *e)
{
    return c->piece && c->piece->first + c->at >= c->piece->strand->pos &&
           (e->record ? acs_known_op_equals(c->op, e->record) : acs_known_op_matches(c->op, e->params));
}

/* The first known op of its strand that the op repeats; NULL: none. Mostly it is what came here in the pass before. */
static acs_candidate *find(const entering *e)
{
    const acs_repeat *repeat = e->repeat;
    acs_candidate *found = repeat->last ? repeat->last->follower : repeat->first;
    if (!repeat->matches || (found && repeats(found, e)))
        return repeat->matches ? found : NULL;
    const uint32_t tag = e->record ? acs_known_op_tag(e->record) : acs_known_op_tag_of_launch(e->params);
    found = NULL;
    for (acs_candidate *c = acs_candidate_first(repeat, tag); c; c = c->same)
        if (c->tag == tag && repeats(c, e) && (!found || c->piece->first + c->at < found->piece->first + found->at))
            found = c;
    return found;
}

/* The op changed since a replay before. */
static void changed(acs_piece *piece, uint32_t at)
{
    const uint64_t bit = (uint64_t)1 << at % 64;
    piece->varies[at / 64] |= bit;
    piece->changes_ns += piece->told[at / 64] & bit ? 0 : TUNE_COST_SET_FIXED_NS;
}

/* Add the op to the open replay of its piece. */
static acs_op add(const entering *e, acs_piece *piece, uint32_t at)
{
    acs_replay *replay = piece->now;
    acs_record *op = &replay->ops[at];
    const uint32_t pos = piece->strand->pos > piece->first ? piece->strand->pos - piece->first : 0;
    const bool same = e->record ? acs_known_op_take(op, e->record) : acs_known_op_fill(op, e->params);
    if (!same)
        changed(piece, at);
    for (uint32_t left_out = pos; left_out < at; left_out++)
        changed(piece, left_out);
    op->seq = piece->number + at - replay->from; /* RPL-1 */
    replay->on[at / 64] |= (uint64_t)1 << at % 64;
    replay->count++;
    piece->strand->pos = piece->first + at + 1;
    return op->seq;
}

/* Pieces are sealed if there are numbers of unknown ops: these may have to come before what the pass queues now. */
static acs_op seal_behind_unknown(acs_context *context)
{
    acs_repeats *all = context->repeats;
    const acs_op last = acs_fifo_last(context->core.fifo);
    if (ACS_LIKELY(last == all->numbered))
        return 0;
    const acs_op sealed = acs_pieces_seal(context, NULL, false);
    all->numbered = last;
    return sealed;
}

/* Under the lock. */
static void enter(acs_context *context, entering *e)
{
    acs_repeat *repeat = e->repeat;
    e->room = true;
    if (!repeat->open || repeat->passes != e->pass)
        return;
    acs_candidate *c = find(e);
    if (!c)
        return;
    acs_piece *piece = c->piece;
    const uint32_t at = c->at;
    acs_op sealed = seal_behind_unknown(context);
    if (piece->strand->open && piece->strand->open != piece)
        sealed = acs_piece_seal(context, piece->strand->open);
    if (piece->now || acs_piece_open(context, piece, at, &e->room)) {
        e->room = true;
        e->op = add(e, piece, at);
        acs_repeat_queued(repeat, c);
        if (at + 1 == piece->shape->ops)
            sealed = acs_piece_seal(context, piece);
    }
    e->sealed = sealed ? sealed : e->sealed;
}

static bool try_enter(acs_context *context, void *entering_op)
{
    entering *e = entering_op;
    pthread_mutex_lock(&context->repeats->lock);
    if (!e->op) /* a wait may ask once more after success */
        enter(context, e);
    pthread_mutex_unlock(&context->repeats->lock);
    return e->room;
}

static void wake(acs_context *context, acs_op op)
{
    if (op)
        acs_context_queued(context, op, true);
}

/* Enter, and wait for room unless the call must not. @return the op's number; 0: it goes the usual way. */
static acs_op enter_or_wait(acs_context *context, entering *e, bool no_wait)
{
    if (ACS_UNLIKELY(!try_enter(context, e)) && !no_wait) {
        wake(context, e->sealed);
        atomic_fetch_add_explicit(&context->caller_waits, 1, memory_order_relaxed); /* a counter */
        acs_context_wait_room(context, try_enter, e);
    }
    wake(context, e->sealed);
    return e->op;
}

acs_op acs_repeats_launch(acs_context *context, const acs_launch_params *p)
{
    acs_repeat *repeat = acs_thread_pass_in(context);
    if (!repeat || !p->kernel || (p->args.count && !p->args.list) || (p->uses.count && !p->uses.segments))
        return 0;
    entering e = {.repeat = repeat, .pass = repeat->passes, .params = p};
    return enter_or_wait(context, &e, p->no_wait != 0);
}

/* An op goes the usual way. `repeat`: its thread's pass, or NULL. */
static void pass_by(acs_context *context, acs_repeat *repeat, const acs_record *op)
{
    acs_repeats *all = context->repeats;
    pthread_mutex_lock(&all->lock);
    const bool kernel = op->kind == ACS_KIND_KERNEL;
    acs_op sealed = seal_behind_unknown(context);
    const acs_op behind = acs_pieces_seal(context, op, repeat && !kernel);
    sealed = behind ? behind : sealed;
    all->numbered++; /* it is queued now */
    if (repeat) {
        all->unmatched += kernel;
        acs_repeat_unmatched(repeat, op);
    }
    pthread_mutex_unlock(&all->lock);
    wake(context, sealed);
}

acs_op acs_repeats_queue(acs_draft *draft)
{
    acs_context *context = draft->context;
    acs_repeat *repeat = acs_thread_pass_in(context);
    const bool plain = (draft->modes & ACS_MODES_LAUNCH) == ACS_MODE_REPEATS && !draft->parts;
    if (repeat && plain && draft->record->kind == ACS_KIND_KERNEL) {
        entering e = {.repeat = repeat, .pass = repeat->passes, .record = draft->record};
        if (enter_or_wait(context, &e, draft->no_wait)) {
            acs_record_release(draft->records, draft->record);
            draft->record = NULL;
            return e.op;
        }
    }
    pass_by(context, repeat, draft->record);
    return 0;
}

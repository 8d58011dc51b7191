/*
 * Passes through repeats (repeat.h): which launches go into replays, and when these are sealed. Called by launches, by
 * other calls through hooks, and by the program to begin and end a pass. Owns a context's repeats. Holds its lock
 * across no call that blocks.
 */
#include "repeats/repeat_internal.h"

#include "api/failures.h"
#include "api/threads.h"
#include "api/wait.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local struct {
    acs_context *context; /* NULL: none */
    uint64_t opened_ns;   /* the context's, which tells it from later ones in the same struct */
    acs_repeat *repeat;
} tl_pass;

/* The pass of the calling thread in this context, or NULL. */
static acs_repeat *pass_of(const acs_context *context)
{
    return tl_pass.context == context && tl_pass.opened_ns == context->opened_ns ? tl_pass.repeat : NULL;
}

/* Whether the calling thread is in a pass of any open context. The structs of closed contexts stay. */
static bool in_pass(void)
{
    const acs_context *context = tl_pass.context;
    /* acquire: as acs_context_enter */
    return context && atomic_load_explicit(&context->open, memory_order_acquire) &&
           context->opened_ns == tl_pass.opened_ns;
}

/* ------------------------------------------------------------------------------------------------- open and close */

/*
 * Most ops of a piece. 0: the context has no replays, since its backend has no bundles, ops go in order, or something
 * looks at single ops.
 */
static uint32_t piece_most(const acs_context *context)
{
    const acs_options *o = &context->options;
    const bool single = !context->core.batcher || o->watchdog_s || o->check || context->backend->devices > 1;
    const uint64_t most = (uint64_t)o->fifo / TUNE_REPEAT_FIFO_PART;
    return single ? 0 : most < ACS_REPLAY_OPS ? (uint32_t)most : ACS_REPLAY_OPS;
}

acs_status acs_repeats_open(acs_context *context)
{
    acs_repeats *all = calloc(1, sizeof *all);
    if (!all || pthread_mutex_init(&all->lock, NULL) != 0) {
        free(all);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a context's repeats");
    }
    all->piece_most = piece_most(context);
    context->repeats = all;
    return ACS_OK;
}

void acs_repeats_close(acs_context *context)
{
    acs_repeats *all = context->repeats;
    if (!all)
        return;
    acs_repeat *repeat, *next;
    HASH_ITER (hh, all->table, repeat, next) {
        HASH_DEL(all->table, repeat);
        acs_repeat_destroy(repeat);
    }
    pthread_mutex_destroy(&all->lock);
    free(all);
    context->repeats = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- seal */

/* Push the replay of the pass, if there is one. Returns its number, for wake(); 0: there was none. Under the lock. */
static acs_op seal(acs_context *context, acs_repeat *repeat)
{
    acs_replay *replay = repeat->now;
    acs_record *record = repeat->record;
    if (!replay)
        return 0;
    ACS_ASSERT(replay->count > 0 && repeat->pos > repeat->piece->first + replay->from); /* RPT-2 */
    for (uint32_t word = 0; word < ACS_REPLAY_WORDS; word++)
        repeat->piece->used[word] |= replay->on[word];
    repeat->now = NULL;
    acs_fifo_push_reserved(context->core.fifo, record, repeat->first);
    return repeat->first;
}

static void wake(acs_context *context, acs_op op)
{
    if (op)
        acs_context_queued(context, op, true);
}

/* Seal the replay of the calling thread's pass in the middle of a piece. Under the lock. */
static acs_op cut(acs_context *context, acs_repeat *repeat)
{
    repeat->lost_ns += repeat->now ? TUNE_COST_REPLAY_START_NS : 0;
    acs_repeat_cut(repeat);
    return seal(context, repeat);
}

void acs_repeats_flush(acs_context *context)
{
    acs_repeats *all = context->repeats;
    const acs_repeat *mine = pass_of(context);
    acs_op sealed = 0;
    pthread_mutex_lock(&all->lock);
    for (acs_repeat *repeat = all->table; repeat; repeat = repeat->hh.next) {
        const acs_op one = repeat == mine ? cut(context, repeat) : seal(context, repeat);
        sealed = one ? one : sealed;
    }
    pthread_mutex_unlock(&all->lock);
    wake(context, sealed);
}

/* ---------------------------------------------------------------------------------------------------------- match */

/* What may become part of a replay: a launch without a record yet, or an op with one. */
typedef struct entering {
    acs_repeat *repeat;
    uint64_t pass;            /* its pass; coroutines may end it while the op waits for room */
    const acs_launch_params *params;
    const acs_record *record; /* NULL: `params` has the op */
    acs_op op, sealed;        /* results: its number, 0: it matches nothing; and that of a replay that was sealed */
    bool room;                /* false: a replay has to begin, and there was no room */
} entering;

static bool matches(const acs_record *known, const entering *e)
{
    return e->record ? acs_known_op_equals(known, e->record) : acs_known_op_matches(known, e->params);
}

/* The first known op from `pos` on that the op repeats; UINT32_MAX: none. */
static uint32_t find(const entering *e)
{
    const acs_repeat *repeat = e->repeat;
    if (!repeat->matches)
        return UINT32_MAX;
    const acs_known *known = repeat->known;
    const uint32_t tag = e->record ? acs_known_op_tag(e->record) : acs_known_op_tag_of_launch(e->params);
    for (uint32_t place = repeat->pos; place < known->count; place++)
        if (known->tags[place] == tag && matches(known->ops[place], e))
            return place;
    return UINT32_MAX;
}

static acs_piece *piece_of(const acs_known *known, uint32_t place)
{
    acs_piece *piece = known->pieces;
    while (place >= piece->first + piece->shape->ops)
        piece++;
    return piece;
}

/*
 * Begin a replay with the op at `place`. False: it cannot begin; *room is false if it can once ops have ended, and true
 * if there is no memory, for which no wait helps.
 */
static bool begin(acs_context *context, acs_repeat *repeat, uint32_t place, bool *room)
{
    acs_piece *piece = piece_of(repeat->known, place);
    const uint32_t from = place - piece->first, span = piece->shape->ops - from;
    acs_replay *replay = acs_piece_replay(repeat->known, piece);
    acs_record *record = replay ? acs_record_acquire(context->records) : NULL;
    *room = !replay && piece->made < TUNE_REPEAT_REPLAYS;
    if (!record)
        return false;
    repeat->first = acs_fifo_reserve(context->core.fifo, span);
    if (!repeat->first) {
        acs_record_release(context->records, record);
        return false;
    }
    replay->from = from;
    replay->count = replay->end_count = replay->ends_told = 0;
    memset(replay->on, 0, sizeof replay->on);
    atomic_store_explicit(&replay->busy, true, memory_order_relaxed); /* given away by the push */
    record->kind = record->asked = ACS_KIND_REPLAY;
    record->site = replay->ops[from].site;
    record->any = 0;
    record->type = 0;
    record->segments = piece->shape->segments;
    record->segment_count = piece->shape->segment_count;
    record->u.replay.replay = replay;
    record->u.replay.span = span;
    repeat->now = replay;
    repeat->record = record;
    repeat->piece = piece;
    return true;
}

/* Add the op to the replay. */
static acs_op add(const entering *e, uint32_t place)
{
    acs_repeat *repeat = e->repeat;
    acs_replay *replay = repeat->now;
    const uint32_t at = place - repeat->piece->first;
    acs_record *op = &replay->ops[at];
    if (e->record)
        acs_known_op_take(op, e->record);
    else
        acs_known_op_fill(op, e->params);
    op->seq = repeat->first + at - replay->from; /* RPL-1 */
    replay->on[at / 64] |= (uint64_t)1 << at % 64;
    replay->count++;
    repeat->pos = place + 1;
    return op->seq;
}

static bool is_last(const acs_repeat *repeat)
{
    return repeat->pos == repeat->piece->first + repeat->piece->shape->ops;
}

/* Under the lock. */
static void enter(acs_context *context, entering *e)
{
    acs_repeat *repeat = e->repeat;
    e->room = true;
    if (!repeat->open || repeat->passes != e->pass)
        return;
    const uint32_t place = find(e);
    if (place == UINT32_MAX)
        return;
    if (repeat->now && piece_of(repeat->known, place) != repeat->piece)
        e->sealed = seal(context, repeat);
    if (!repeat->now && !begin(context, repeat, place, &e->room))
        return;
    e->room = true;
    e->op = add(e, place);
    if (is_last(repeat))
        e->sealed = seal(context, repeat);
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
    acs_repeat *repeat = pass_of(context);
    if (!repeat || !p->kernel || (p->args.count && !p->args.list) || (p->uses.count && !p->uses.segments))
        return 0;
    entering e = {.repeat = repeat, .pass = repeat->passes, .params = p};
    return enter_or_wait(context, &e, p->no_wait != 0);
}

/* An op of the pass goes the usual way: learn it. */
static void pass_by(acs_context *context, acs_repeat *repeat, const acs_record *op)
{
    acs_repeats *all = context->repeats;
    pthread_mutex_lock(&all->lock);
    const acs_op sealed = seal(context, repeat);
    all->unmatched += op->kind == ACS_KIND_KERNEL;
    acs_repeat_unmatched(repeat, op);
    pthread_mutex_unlock(&all->lock);
    wake(context, sealed);
}

acs_op acs_repeats_queue(acs_draft *draft)
{
    acs_context *context = draft->context;
    acs_repeat *repeat = pass_of(context);
    if (!repeat)
        return 0;
    entering e = {.repeat = repeat, .pass = repeat->passes, .record = draft->record};
    const bool plain = (draft->modes & ACS_MODES_LAUNCH) == ACS_MODE_REPEATS && !draft->parts;
    if (plain && draft->record->kind == ACS_KIND_KERNEL && enter_or_wait(context, &e, draft->no_wait)) {
        acs_record_release(draft->records, draft->record);
        draft->record = NULL;
        return e.op;
    }
    pass_by(context, repeat, draft->record);
    return 0;
}

void acs_repeats_count(acs_context *context, acs_statistics *s)
{
    pthread_mutex_lock(&context->repeats->lock);
    s->unmatched = context->repeats->unmatched;
    pthread_mutex_unlock(&context->repeats->lock);
}

/* --------------------------------------------------------------------------------------------------------- passes */

/* Find or make the repeat. NULL: no memory. Under the lock. */
static acs_repeat *repeat_of(acs_repeats *all, uint64_t key)
{
    acs_repeat *repeat;
    HASH_FIND(hh, all->table, &key, sizeof key, repeat);
    if (repeat)
        return repeat;
    repeat = calloc(1, sizeof *repeat);
    if (!repeat)
        return NULL;
    repeat->key = key;
    HASH_ADD(hh, all->table, key, sizeof repeat->key, repeat);
    if (!repeat->hash_failed)
        return repeat;
    free(repeat);
    return NULL;
}

/* The mode is set while a pass is under way, so that other programs pay nothing. Under the lock. */
static void count_open(acs_context *context, bool opens)
{
    acs_repeats *all = context->repeats;
    if (!all->piece_most) /* nothing can be replayed, so nothing is learnt */
        return;
    if (opens && all->open++ == 0)
        acs_context_add_mode(context, ACS_MODE_REPEATS);
    if (!opens && --all->open == 0) /* relaxed: a thread in a pass sees the mode that it has set */
        atomic_fetch_and_explicit(&context->modes, ~ACS_MODE_REPEATS, memory_order_relaxed);
}

acs_status acs_repeat_begin(acs_context *context, uint64_t key)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    if (in_pass())
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_repeat_begin: this thread is in a pass of repeat %llu of context %p already",
                        (unsigned long long)tl_pass.repeat->key, (void *)tl_pass.context);
    if (!context->repeats) /* a library without this part */
        return ACS_OK;
    pthread_mutex_lock(&context->repeats->lock);
    acs_repeat *repeat = repeat_of(context->repeats, key);
    const bool busy = repeat && repeat->open;
    if (repeat && !busy) {
        repeat->open = true;
        acs_repeat_pass_begin(repeat);
        count_open(context, true);
    }
    pthread_mutex_unlock(&context->repeats->lock);
    if (!repeat)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "acs_repeat_begin: no memory for repeat %llu", (unsigned long long)key);
    if (busy)
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_repeat_begin: another thread is in a pass of repeat %llu",
                        (unsigned long long)key);
    tl_pass.context = context;
    tl_pass.opened_ns = context->opened_ns;
    tl_pass.repeat = repeat;
    return ACS_OK;
}

acs_status acs_repeat_end(acs_context *context)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    if (!context->repeats)
        return ACS_OK;
    acs_repeat *repeat = pass_of(context);
    if (!repeat)
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_repeat_end: this thread is in no pass of a repeat");
    pthread_mutex_lock(&context->repeats->lock);
    const acs_op sealed = seal(context, repeat);
    acs_repeat_pass_end(repeat, context->repeats->piece_most);
    repeat->open = false;
    count_open(context, false);
    pthread_mutex_unlock(&context->repeats->lock);
    tl_pass.context = NULL;
    wake(context, sealed);
    return ACS_OK;
}

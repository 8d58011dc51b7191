/*
 * Passes through repeats (repeat.h): they begin and end, and waits seal what they wait for. Called by the program, and
 * by other calls through hooks. Owns a context's repeats. Holds its lock across no call that blocks.
 */
#include "repeats/repeat_internal.h"

#include "api/failures.h"
#include "api/threads.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

/* Whether the calling thread is in a pass of any open context. The structs of closed contexts stay. */
static bool in_pass(void)
{
    const acs_thread_pass *pass = acs_thread_pass_get();
    const acs_context *context = pass->context;
    /* acquire: as acs_context_enter */
    return context && atomic_load_explicit(&context->open, memory_order_acquire) &&
           context->opened_ns == pass->opened_ns;
}

/* ------------------------------------------------------------------------------------------------- open and close */

/*
 * Most ops of a fragment. 0: the context has no replays, since its backend has no bundles, ops go in order, or something
 * looks at single ops.
 */
static uint32_t fragment_most(const acs_context *context)
{
    const acs_options *o = &context->options;
    const bool single =
        !context->core.batcher || o->watchdog_s || o->check || o->dot[0] || o->barriers[0] || context->backend->devices > 1;
    const uint64_t most = (uint64_t)o->fifo / TUNE_REPEAT_FIFO_PART;
    return single ? 0 : most < ACS_REPLAY_OPS ? (uint32_t)most : ACS_REPLAY_OPS;
}

acs_status acs_repeats_open(acs_context *context)
{
    acs_repeats *all = calloc(1, sizeof *all);
    if (!all || pthread_spin_init(&all->lock, PTHREAD_PROCESS_PRIVATE) != 0) {
        free(all);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a context's repeats");
    }
    all->most = fragment_most(context);
    all->at_once = !context->backend->replays_later;
    context->repeats = all;
    if (context->options.repeats == ACS_REPEATS_AUTO)
        acs_automatic_start(context);
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
    pthread_spin_destroy(&all->lock);
    free(all);
    context->repeats = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- waits */

/* The strand with the unsealed replay that has this number; NULL: none has. */
static acs_strand *open_with(const acs_repeats *all, acs_op op)
{
    acs_strand *strand;
    DL_FOREACH2 (all->open_strands, strand, open_next)
        if (op - strand->number < strand->span)
            break;
    return strand;
}

static void seal_all(acs_context *context, acs_op *sealed)
{
    const acs_op one = acs_strands_seal(context, NULL, false);
    *sealed = one ? one : *sealed;
}

void acs_repeats_flush(acs_context *context, acs_op op, bool waits)
{
    acs_repeats *all = context->repeats;
    acs_repeat *mine = waits ? acs_thread_pass_in(context) : NULL;
    acs_op sealed = 0;
    acs_repeats_lock(all);
    mine = waits && !mine ? all->found : mine;
    acs_strand *over = mine ? acs_repeat_waits(mine, op) : NULL;
    if (waits && op == UINT64_MAX)
        sealed = acs_automatic_pass_end(context, false);
    if (over)
        sealed = acs_strand_seal(context, over);
    acs_strand *awaited = op && op != UINT64_MAX ? open_with(all, op) : NULL;
    if (awaited)
        sealed = acs_strand_seal(context, awaited);
    else if (op == UINT64_MAX || (op ? !waits && acs_core_stalled(&context->core) : acs_core_rests(&context->core)))
        seal_all(context, &sealed);
    acs_repeats_unlock(all);
    if (sealed)
        acs_context_queued(context, sealed, true);
}

bool acs_repeats_idle(acs_context *context)
{
    acs_repeats *all = context->repeats;
    acs_op sealed = 0;
    if (!all || !atomic_load_explicit(&all->automatic, memory_order_relaxed)) /* relaxed: a hint */
        return false;
    acs_repeats_lock(all);
    const uint64_t now = acs_clock_ns();
    const bool looks = now >= all->looked_ns + TUNE_WORKER_NAP_US * 1000ull; /* else another worker has just looked */
    if (looks && all->entered == all->entered_before)
        seal_all(context, &sealed);
    if (looks) {
        all->entered_before = all->entered;
        all->looked_ns = now;
    }
    const bool held = all->open_strands != NULL;
    acs_repeats_unlock(all);
    if (sealed)
        acs_context_queued(context, sealed, true);
    return held;
}

void acs_repeats_count(acs_context *context, acs_statistics *s)
{
    /* relaxed: a counter. The caller has the core's lock, which is taken under the repeats' lock. */
    s->unmatched = atomic_load_explicit(&context->repeats->unmatched, memory_order_relaxed);
}

void acs_repeats_report(const acs_context *context)
{
    if (context->repeats)
        acs_reasons_report(context->repeats);
}

/* --------------------------------------------------------------------------------------------------------- passes */

acs_status acs_repeat_begin(acs_context *context, uint64_t key)
{
    ACS_ENTER(context);
    if (in_pass())
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_repeat_begin: this thread is in a pass of repeat %llu of context %p already",
                        (unsigned long long)acs_thread_pass_get()->repeat->key,
                        (void *)acs_thread_pass_get()->context);
    if (!context->repeats) /* a library without this part */
        return ACS_OK;
    acs_repeats_lock(context->repeats);
    const acs_op sealed = acs_automatic_stop(context); /* the program knows better */
    acs_repeat *repeat = acs_repeat_get(context->repeats, key);
    const bool busy = repeat && repeat->open;
    if (repeat && !busy)
        acs_pass_begin(context, repeat);
    acs_repeats_unlock(context->repeats);
    if (sealed)
        acs_context_queued(context, sealed, true);
    if (!repeat)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "acs_repeat_begin: no memory for repeat %llu", (unsigned long long)key);
    if (busy)
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_repeat_begin: another thread is in a pass of repeat %llu",
                        (unsigned long long)key);
    *acs_thread_pass_get() = (acs_thread_pass){context, context->opened_ns, repeat};
    return ACS_OK;
}

acs_status acs_repeat_end(acs_context *context)
{
    ACS_ENTER(context);
    if (!context->repeats)
        return ACS_OK;
    acs_repeat *repeat = acs_thread_pass_in(context);
    if (!repeat)
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_repeat_end: this thread is in no pass of a repeat");
    acs_repeats_lock(context->repeats);
    const acs_op sealed = acs_pass_end(context, repeat);
    acs_repeats_unlock(context->repeats);
    acs_thread_pass_get()->context = NULL;
    if (sealed)
        acs_context_queued(context, sealed, true);
    return ACS_OK;
}

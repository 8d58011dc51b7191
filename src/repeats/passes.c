/*
 * Passes: they begin and end because the program says so, or by themselves (ACS_REPEATS=auto). An automatic pass begins
 * with any op. It ends where the program waits for everything, or has queued very many ops. All threads share it: ops of
 * a strand keep their order, and others need none. Called by match.c and repeat.c under the lock.
 */
#include "repeats/repeat_internal.h"

#include "api/threads.h"

#include <stdatomic.h>
#include <stdlib.h>

acs_repeat *acs_repeat_get(acs_repeats *all, uint64_t key)
{
    acs_repeat *repeat;
    HASH_FIND(hh, all->table, &key, sizeof key, repeat);
    if (repeat)
        return repeat;
    repeat = calloc(1, sizeof *repeat);
    if (!repeat)
        return NULL;
    repeat->key = key;
    repeat->passes = 1;
    HASH_ADD(hh, all->table, key, sizeof repeat->key, repeat);
    if (!repeat->hash_failed)
        return repeat;
    free(repeat);
    return NULL;
}

/* The mode is set while passes are under way, so that other programs pay nothing. */
static void count_open(acs_context *context, bool opens)
{
    acs_repeats *all = context->repeats;
    if (!all->most) /* nothing can be replayed, so nothing is learnt */
        return;
    if (opens && all->open++ == 0) {
        acs_fifo_widen(context->core.fifo, true);
        acs_context_add_mode(context, ACS_MODE_REPEATS);
    }
    if (!opens && --all->open == 0) {
        acs_fifo_widen(context->core.fifo, false);
        /* relaxed: a thread in a pass sees the mode that it has set */
        atomic_fetch_and_explicit(&context->modes, ~ACS_MODE_REPEATS, memory_order_relaxed);
    }
}

static acs_op end(acs_context *context, acs_repeat *repeat)
{
    acs_op sealed = 0;
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        if (repeat->strands[s].replay)
            acs_strand_cut(&repeat->strands[s]);
        const acs_op one = acs_strand_seal(context, &repeat->strands[s]);
        sealed = one ? one : sealed;
    }
    acs_repeat_pass_end(repeat, context->repeats->most);
    repeat->open = false;
    return sealed;
}

static void begin(acs_repeat *repeat)
{
    repeat->open = true;
    acs_repeat_pass_begin(repeat);
}

/* ----------------------------------------------------------------------------------------------------------- named */

void acs_pass_begin(acs_context *context, acs_repeat *repeat)
{
    begin(repeat);
    count_open(context, true);
}

acs_op acs_pass_end(acs_context *context, acs_repeat *repeat)
{
    const acs_op sealed = end(context, repeat);
    count_open(context, false);
    return sealed;
}

/* ------------------------------------------------------------------------------------------------------- automatic */

void acs_automatic_start(acs_context *context)
{
    /* relaxed, all: a thread that sees an old value takes the lock, or lets an op go the usual way */
    atomic_store_explicit(&context->repeats->automatic, true, memory_order_relaxed);
    context->repeats->pass_most = TUNE_REPEAT_PASS_FIRST;
    count_open(context, true);
}

acs_op acs_automatic_stop(acs_context *context)
{
    acs_repeats *all = context->repeats;
    if (!atomic_load_explicit(&all->automatic, memory_order_relaxed))
        return 0;
    const acs_op sealed = acs_automatic_pass_end(context, false);
    atomic_store_explicit(&all->automatic, false, memory_order_relaxed);
    count_open(context, false);
    return sealed;
}

void acs_automatic_pass_begin(acs_repeats *all, const acs_site *site)
{
    all->found = acs_repeat_get(all, (uint64_t)(uintptr_t)site);
    if (all->found)
        begin(all->found);
}

/*
 * Passes that end by their length become longer, so that programs that never wait for everything soon recur. Those of
 * others fit between two such waits.
 */
static void lengthen(acs_repeats *all, uint32_t ops, bool torn)
{
    const uint32_t most = torn ? 2 * all->pass_most : 2 * (all->unwaited + ops);
    all->unwaited = torn && most < TUNE_REPEAT_PASS_MOST ? all->unwaited + ops : 0;
    if (most > all->pass_most)
        all->pass_most = most < TUNE_REPEAT_PASS_MOST ? most : TUNE_REPEAT_PASS_MOST;
}

acs_op acs_automatic_pass_end(acs_context *context, bool torn)
{
    acs_repeats *all = context->repeats;
    acs_repeat *found = all->found;
    all->found = NULL;
    if (!found)
        return 0;
    lengthen(all, acs_repeat_pass_ops(found), torn);
    found->torn_end = torn;
    const acs_op sealed = end(context, found);
    found->torn_begin = torn;
    found->torn_end = false;
    if (torn) { /* the next one goes on with the same repeat, whatever op comes next */
        all->found = found;
        begin(found);
    }
    return sealed;
}

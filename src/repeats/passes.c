/*
 * Passes: they begin and end because the program says so, or by themselves (ACS_REPEATS=auto). An automatic pass begins
 * with any op. It ends where the program waits for everything, or has queued very many ops; if these repeat themselves,
 * passes are as long as what comes again. All threads share a pass: ops of a strand keep their order, and others need
 * none. Called by match.c and repeat.c under the lock.
 */
#include "repeats/repeat_internal.h"

#include "api/threads.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Thread_local acs_thread_pass tl_pass;

acs_thread_pass *acs_thread_pass_get(void)
{
    return &tl_pass;
}

acs_repeat *acs_thread_pass_in(const acs_context *context)
{
    return tl_pass.context == context && tl_pass.opened_ns == context->opened_ns ? tl_pass.repeat : NULL;
}

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
    repeat->at_once = all->at_once;
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

/*
 * Passes that end by their length become longer, so that programs that never wait for everything soon recur. Those of
 * others fit between two such waits.
 */
static void lengthen(acs_repeats *all, uint32_t ops, bool torn)
{
    const uint32_t step = all->unwaited + ops; /* kernels since such a wait */
    const bool whole = !torn && step <= TUNE_REPEAT_OPS;
    const uint32_t most = whole ? 2 * step : 2 * all->pass_most;
    const uint32_t limit = whole ? TUNE_REPEAT_OPS : TUNE_REPEAT_PASS_MOST;
    all->unwaited = !torn ? 0 : step < TUNE_REPEAT_OPS ? step : TUNE_REPEAT_OPS;
    if (most > all->pass_most && all->pass_most < limit)
        all->pass_most = most < limit ? most : limit;
}

/*
 * After how many kernels the trace repeats itself, at least once; 0: it does not, or no memory. The trace without its
 * longest border is the shortest such part (Knuth, Morris, Pratt, Fast Pattern Matching in Strings, 1977).
 */
static uint32_t period_of(const acs_pass_trace *trace)
{
    const acs_traced *ops = trace->ops;
    uint32_t *border = calloc((size_t)trace->count + 1, sizeof *border), length = 0;
    for (uint32_t i = 1; border && i < trace->count; i++) {
        while (length && ops[i].op != ops[length].op)
            length = border[length - 1];
        length += ops[i].op == ops[length].op;
        border[i] = length;
    }
    free(border);
    return trace->count - length <= length ? trace->count - length : 0;
}

/* Whether the pass goes on as the end of the one before it did. */
static bool goes_on(acs_repeat *repeat, uint32_t period)
{
    const acs_pass_trace *now = acs_repeat_trace(repeat, repeat->passes);
    const acs_pass_trace *before = acs_repeat_trace(repeat, repeat->passes - 1);
    bool same = before->count >= period;
    for (uint32_t i = 0; same && i < now->count; i++)
        same = now->ops[i].op == before->ops[before->count - period + i % period].op;
    return same;
}

/*
 * A pass ends. If all of it was replayed with the arguments that its kernels had before, and it repeats itself, then
 * passes become as long as the part that comes again, or as several such parts: as many as a fragment may take from the
 * program's order. So they are all the same, and need few pieces: those of the first such pass take the place of all
 * others. What a program queues from one wait to the next, as often as the last time, may be such a part, too: whether it
 * is one is looked at where a pass ends by its length. Its pieces stay if passes do not become longer.
 */
static void find_period(acs_repeats *all, acs_repeat *found, bool torn)
{
    const bool steady = !found->missed && !found->differing;
    const uint32_t ops = acs_repeat_pass_ops(found), before = found->period;
    if (steady && before && (torn ? goes_on(found, before) : ops % before == 0)) {
        found->renews = torn && found->first_of_period;
        found->first_of_period &= !torn;
        return;
    }
    found->period = 0;
    if (steady && !torn && ops == acs_repeat_trace(found, found->passes - 1)->count)
        found->period = ops;
    if (steady && torn && !before)
        found->period = period_of(acs_repeat_trace(found, found->passes));
    found->first_of_period = torn || ops <= TUNE_REPEAT_SPAN / 2;
    if (torn && before)
        all->pass_most = found->pass_most;
    if (!torn || !found->period)
        lengthen(all, ops, torn);
}

void acs_automatic_pass_begin(acs_repeats *all, acs_repeat *repeat)
{
    const uint32_t period = repeat ? repeat->period : 0;
    all->found = repeat;
    if (!repeat)
        return;
    repeat->pass_most = !period ? all->pass_most : period < TUNE_REPEAT_SPAN ? TUNE_REPEAT_SPAN / period * period : period;
    begin(repeat);
}

acs_op acs_automatic_pass_end(acs_context *context, bool torn)
{
    acs_repeats *all = context->repeats;
    acs_repeat *found = all->found;
    all->found = NULL;
    if (!found)
        return 0;
    const uint32_t period = found->period;
    find_period(all, found, torn);
    found->torn_end = torn && !period;
    const acs_op sealed = end(context, found);
    found->torn_begin = torn && !found->period;
    found->torn_end = false;
    if (torn) /* the next one goes on with the same repeat, whatever op comes next */
        acs_automatic_pass_begin(all, found);
    return sealed;
}

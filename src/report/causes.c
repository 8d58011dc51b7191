/*
 * The causes of a program's slowness: looks at an analysis for each kind of cause in turn, measures the time that it
 * takes, and says what would help. Called when a context closes. A cause is reported from 3 % of the time on.
 */
#include "report/causes.h"

#include "base/tuning.h"
#include "report/what_if.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct search {
    acs_analysis *a;
    const acs_surroundings *around;
    acs_causes *to;
    acs_time_span *spans; /* room for one of each op, wait and block */
    uint64_t span_ns;
    acs_play *play;
    uint64_t base_ns; /* simulated time, as it is */
} search;

/* ------------------------------------------------------------------------------------------------------------ found */

static const char g_simulated[] = "At most, by the simulator: the recorded ops, played without this.";

static int dearest_first(const void *a, const void *b)
{
    const acs_cause *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static bool is_dear(const search *s, uint64_t ns)
{
    return ns && ns * 100 >= s->span_ns * TUNE_REPORT_PERCENT;
}

/* Add a cause that took `ns`, to a full list in place of the cheapest. NULL: it took too little. */
static acs_cause *add_cause(search *s, const char *kind, uint64_t ns)
{
    if (!is_dear(s, ns))
        return NULL;
    acs_cause *cause = &s->to->list[0];
    if (s->to->count < ACS_CAUSES_MOST)
        cause = &s->to->list[s->to->count++];
    else
        for (uint32_t i = 1; i < ACS_CAUSES_MOST; i++)
            cause = s->to->list[i].ns < cause->ns ? &s->to->list[i] : cause;
    if (cause->ns > ns)
        return NULL;
    *cause = (acs_cause){.kind = kind, .how = g_simulated, .ns = ns < s->span_ns ? ns : s->span_ns};
    return cause;
}

__attribute__((format(printf, 2, 3))) static void write_text(char text[ACS_CAUSE_TEXT], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, ACS_CAUSE_TEXT, format, list);
    va_end(list);
}

static void show_op(acs_cause *cause, uint32_t op)
{
    if (cause->op_count < ACS_CAUSE_OPS)
        cause->ops[cause->op_count++] = op;
}

/* ------------------------------------------------------------------------------------------------------------ pairs */

/* What the change would bring of the program's time, by the simulator. */
static uint64_t gain(const search *s, acs_play_change change)
{
    const uint64_t ns = s->base_ns ? acs_play_run(s->play, &change) : 0;
    return ns && ns < s->base_ns ? (uint64_t)((double)s->span_ns * (double)(s->base_ns - ns) / (double)s->base_ns)
                                 : 0;
}

static const char *name_of(const search *s, uint32_t label)
{
    return acs_label_name(s->a->labels[label]);
}

/* Kinds of causes by acs_conflict. */
static const char *const g_pair_kinds[ACS_CONFLICT_COUNT] = {"false dependence", "false dependence", "war", "waw",
                                                             "no footprint", "allocation"};

static void describe_pair(search *s, const acs_serial_pair *p, acs_cause *cause)
{
    static const char *const names[ACS_CONFLICT_COUNT] = {"",
                                                          "RAW",
                                                          "WAR (write after read)",
                                                          "WAW (write after write)",
                                                          "no footprint",
                                                          "memory that was freed and handed out again"};
    char up[ACS_CAUSE_TEXT], down[ACS_CAUSE_TEXT], held[32];
    (void)acs_label_text(s->a->labels[p->up], up);
    (void)acs_label_text(s->a->labels[p->down], down);
    if (acs_serial_pair_is_suspicious(p))
        write_text(cause->title, "%.80s waits for itself: each launch names the same whole block", name_of(s, p->down));
    else if (p->conflict == ACS_CONFLICT_ORDER)
        write_text(cause->title, "%.80s waits for memory that %.80s still uses",
                   name_of(s, p->down), name_of(s, p->up));
    else
        write_text(cause->title, "%.80s waits for %.80s: %s", name_of(s, p->down), name_of(s, p->up),
                   names[p->conflict]);
    write_text(cause->text, "%" PRIu64 " times %.120s waited for %.120s%s%.120s; %s summed over them.%s", p->count, down,
               p->up == p->down ? "an earlier launch of itself" : up, p->range[0] ? ", over " : "", p->range,
               acs_time_text(p->held_ns, held),
               acs_serial_pair_is_suspicious(p) ? " Their pointers differ, so they may touch different parts." : "");
    write_text(cause->fix, "%s", p->fix);
    show_op(cause, p->example);
    show_op(cause, s->a->ops[p->example].waited_for);
}

/* What is to be gained without the pair's dependences. Those that carry results cannot go. */
static void find_gain(const search *s, acs_serial_pair *p)
{
    if (p->conflict == ACS_CONFLICT_RAW && !acs_serial_pair_is_suspicious(p))
        return;
    p->gain_ns = gain(s, (acs_play_change){.no_pair = true, .up = p->up, .down = p->down, .conflict = p->conflict});
}

/* True dependences are no defect by themselves; the longest chain has a cause of its own. */
static void look_for_pairs(search *s)
{
    for (uint32_t i = 0; i < s->to->pair_count; i++) {
        const acs_serial_pair *p = &s->to->pairs[i];
        if (p->conflict == ACS_CONFLICT_RAW && !acs_serial_pair_is_suspicious(p))
            continue;
        acs_cause *cause = add_cause(s, g_pair_kinds[p->conflict], p->gain_ns);
        if (cause)
            describe_pair(s, p, cause);
    }
}

/* ------------------------------------------------------------------------------------------------------------ holds */

/* The op that was held longest for this reason; *count: how many were. */
static uint32_t most_held(const search *s, acs_hold_reason reason, uint32_t *count)
{
    uint32_t most = 0;
    *count = 0;
    for (uint32_t i = 0; i < s->a->op_count; i++) {
        *count += s->a->ops[i].held_ns[reason] != 0;
        if (s->a->ops[i].held_ns[reason] > s->a->ops[most].held_ns[reason])
            most = i;
    }
    return most;
}

/*
 * A setting that was played; NULL: it was not. *ns: what it brings of the program's time, at most what ops were held for the
 * reason that it removes.
 */
static const acs_played *setting(const search *s, acs_play_setting which, acs_hold_reason reason, uint64_t *ns)
{
    *ns = 0;
    for (uint32_t i = 0; i < s->to->played_count; i++) {
        const acs_played *played = &s->to->played[i];
        if (played->which != which)
            continue;
        if (played->ns && played->ns < s->base_ns)
            *ns = (uint64_t)((double)s->span_ns * (double)(s->base_ns - played->ns) / (double)s->base_ns);
        *ns = *ns < s->a->held_ns[reason] ? *ns : s->a->held_ns[reason];
        return played;
    }
    return NULL;
}

static void look_for_window(search *s)
{
    uint64_t ns;
    uint32_t count;
    char held[32], text[ACS_CAUSE_TEXT];
    const acs_played *played = setting(s, ACS_PLAY_WINDOW, ACS_HOLD_WINDOW, &ns);
    acs_cause *cause = played ? add_cause(s, "window", ns) : NULL;
    if (!cause)
        return;
    const uint32_t most = most_held(s, ACS_HOLD_WINDOW, &count);
    cause->how = "By the simulator, with the setting below.";
    write_text(cause->title, "The window of %" PRIu64 " ops is too small", s->a->window);
    write_text(cause->text,
               "The window was full, so ops that could have run waited in the FIFO: %u ops, %s summed over them. The "
               "longest wait was at %.120s. Ops behind them waited, too.",
               count, acs_time_text(s->a->held_ns[ACS_HOLD_WINDOW], held),
               acs_label_text(s->a->labels[s->a->ops[most].label], text));
    write_text(cause->fix, "Set ACS_WINDOW to %" PRId64 ". Or queue independent ops in turn, not chain after chain.",
               played->value);
    show_op(cause, most);
}

static void look_for_streams(search *s)
{
    uint64_t ns;
    uint32_t count;
    char held[32], text[ACS_CAUSE_TEXT];
    const acs_played *played = setting(s, ACS_PLAY_STREAMS, ACS_HOLD_STREAM, &ns);
    acs_cause *cause = played ? add_cause(s, "streams", ns) : NULL;
    if (!cause)
        return;
    const uint32_t most = most_held(s, ACS_HOLD_STREAM, &count);
    cause->how = "By the simulator, with the setting below.";
    write_text(cause->title, "%" PRId64 " streams are too few", s->around->options->streams);
    write_text(cause->text,
               "%u ops could have run, but an op on which they do not depend was before them in their stream. They waited "
               "%s summed over them, most at %.120s.",
               count, acs_time_text(s->a->held_ns[ACS_HOLD_STREAM], held),
               acs_label_text(s->a->labels[s->a->ops[most].label], text));
    write_text(cause->fix, "Set ACS_STREAMS to %" PRId64 " or more.%s", played->value,
               s->around->on_cpu ? " They help as far as there are CPUs, and threads for them (ACS_EXECUTORS)." : "");
    show_op(cause, most);
}

/* A cause that took the path's time for this, but for what is to be gained elsewhere. */
static acs_cause *add_past_others(search *s, const char *kind, acs_path_reason reason)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->to->count; i++)
        most = acs_max(most, s->to->list[i].ns);
    acs_cause *cause = add_cause(s, kind, s->to->path.ns[reason] > most ? s->to->path.ns[reason] - most : 0);
    if (cause)
        cause->how = "Its part of the path, less what another cause explains.";
    return cause;
}

/* What hands ops over sooner, by the backend and the options of the run. */
static const char *issue_remedy(const acs_surroundings *around)
{
    if (around->in_order)
        return "The context runs one op after another: unset ACS_SERIAL and ACS_DISABLE.";
    if (!around->options->workers)
        return "Set ACS_WORKERS=1: without a worker, ops are handed over in calls that wait.";
    if (around->on_cpu)
        return "Make ops fewer and larger: the library's own work for each op counts. Leave a CPU to its worker.";
    if (around->options->issue == ACS_ISSUE_LAUNCH)
        return "Set ACS_ISSUE=auto, so that what recurs is replayed (docs/repeats.md). Or make kernels fewer and larger.";
    if (around->options->repeats == ACS_REPEATS_NAMED)
        return "Set ACS_REPEATS=auto, or name the parts that recur (docs/repeats.md). Or make kernels fewer and larger.";
    return "Make ops fewer and larger. Or give kernels bodies, so that they go in bundles (docs/issue-methods.md).";
}

static void look_for_issue(search *s)
{
    uint32_t count;
    char held[32];
    acs_cause *cause = add_past_others(s, "issue", ACS_PATH_ISSUE);
    if (!cause)
        return;
    const uint32_t most = most_held(s, ACS_HOLD_ISSUE, &count);
    write_text(cause->title, "Ops are handed to the device later than they could run");
    write_text(cause->text,
               "%u ops could have run, but no thread had handed them over. They waited %s summed over them. "
               "The host's calls are the limit, or the threads had no CPU.",
               count, acs_time_text(s->a->held_ns[ACS_HOLD_ISSUE], held));
    write_text(cause->fix, "%s", issue_remedy(s->around));
    show_op(cause, most);
}

/* ------------------------------------------------------------------------------------------------------------ waits */

/* Waits of callers behind ops of one label, which more ops follow. */
static void look_for_host_waits_of(search *s, uint32_t label)
{
    const acs_recording *r = s->a->recording;
    const acs_op last = s->a->op_count ? acs_analysis_recorded(s->a, s->a->op_count - 1)->seq : 0;
    uint32_t count = 0, example = 0;
    uint64_t waited_ns = 0;
    for (uint32_t i = 0; i < r->wait_count; i++) {
        if (r->waits[i].type == ACS_RECORDED_WAIT_ROOM || r->waits[i].newest >= last ||
            acs_analysis_label_before(s->a, r->waits[i].newest) != label)
            continue;
        example = acs_analysis_op_before(s->a, r->waits[i].newest);
        waited_ns += r->waits[i].ended - r->waits[i].began;
        count++;
    }
    if (count < TUNE_REPORT_TIMES || !is_dear(s, waited_ns)) /* no more than that is to be gained: it need not be played */
        return;
    acs_cause *cause = add_cause(s, "host wait", gain(s, (acs_play_change){.no_waits = true, .wait = label}));
    char text[ACS_CAUSE_TEXT], time[32];
    if (!cause)
        return;
    write_text(cause->title, "The program waits for ops after it queued %.80s", name_of(s, label));
    write_text(cause->text,
               "After the launch of %.120s a thread called a function that waits for ops, %u times. It queued nothing "
               "meanwhile, so independent ops did not run. Up to %s is to be gained.",
               acs_label_text(s->a->labels[label], text), count, acs_time_text(cause->ns, time));
    write_text(cause->fix, "Wait once, after the loop. If the host needs a result, wait for its bytes alone "
                           "(acs_wait_range), as late as possible.");
    show_op(cause, example);
}

static void look_for_host_waits(search *s)
{
    for (uint32_t label = 0; label < s->a->label_count; label++)
        look_for_host_waits_of(s, label);
}

/* The time between an op's issue and its begin, when nothing else held it. */
static void look_for_late_starts(search *s)
{
    acs_cause *cause = add_past_others(s, "latency", ACS_PATH_START);
    char time[32];
    if (!cause)
        return;
    write_text(cause->title, "Ops begin late after they were handed over");
    write_text(cause->text,
               "For %s of the path an op could run and was handed over, but the device had not begun it. %s",
               acs_time_text(cause->ns, time),
               s->around->on_cpu ? "A CPU thread that sleeps takes microseconds to wake; or no CPU was free."
                                 : "A launch, and each step inside a graph, takes microseconds.");
    write_text(cause->fix, "Join short ops to longer ones. Shorter chains help, too, since each op of a chain pays for it.");
}

/* The caller's own time. */
static void look_for_slow_callers(search *s)
{
    acs_cause *cause = add_past_others(s, "caller", ACS_PATH_CALLER);
    char time[32];
    if (!cause)
        return;
    write_text(cause->title, "The program queues ops later than they could run");
    write_text(cause->text, "For %s the device had nothing to do until the program queued the next op.",
               acs_time_text(cause->ns, time));
    write_text(cause->fix,
               "Queue ops earlier: move the program's own work to another thread, or behind the launches.");
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

/* Whether the op alone takes the whole device: all SMs are full. */
static bool fills(const search *s, const acs_recorded_op *op)
{
    const uint64_t room = s->around->sms * s->around->sm_threads;
    return op->kind == ACS_KIND_KERNEL && room && (uint64_t)op->blocks * op->threads >= room;
}

/* Whether another op was ready, or ran, meanwhile. */
static bool has_others(const search *s, const acs_analysed_op *op)
{
    const acs_widths *w = &s->a->widths;
    for (uint32_t p = 0; p < w->count; p++)
        if (w->at_ns[p] > op->began && w->at_ns[p] <= op->ended && w->ready[p] + w->running[p] > 1)
            return true;
    return false;
}

/* The time in which a kernel of this label filled the device while other ops were there. */
static void look_for_filling(search *s, uint32_t label)
{
    uint32_t example = ACS_PLACE_NONE;
    size_t used = 0;
    for (uint32_t i = 0; i < s->a->op_count; i++) {
        const acs_analysed_op *op = &s->a->ops[i];
        if (op->label != label || !fills(s, acs_analysis_recorded(s->a, i)) || !has_others(s, op))
            continue;
        s->spans[used++] = (acs_time_span){op->began, op->ended};
        example = i;
    }
    acs_cause *cause = add_cause(s, "fills", acs_time_spans_union(s->spans, used));
    if (!cause)
        return;
    const acs_recorded_op *op = acs_analysis_recorded(s->a, example);
    char text[ACS_CAUSE_TEXT], time[32];
    write_text(cause->title, "%.80s fills the device, and others wait for room", name_of(s, label));
    cause->how = "The time in which it ran beside other ops. Its own work has to be done, so less is to be gained.";
    write_text(cause->text,
               "%.120s has %u blocks of %u threads, %.1f times what the device has room for at once (%" PRIu64
               " threads). For %s other ops were ready or ran slowly beside it.",
               acs_label_text(s->a->labels[label], text), op->blocks, op->threads,
               (double)op->blocks * op->threads / (double)(s->around->sms * s->around->sm_threads),
               s->around->sms * s->around->sm_threads, acs_time_text(cause->ns, time));
    write_text(
        cause->fix,
        "Give it a part of the device (ACS_SHARE), or fewer blocks that each do more (docs/variants.md). Or run "
        "it when nothing else can run.");
    show_op(cause, example);
}

static void look_for_kernels(search *s)
{
    bool *filling = calloc((size_t)s->a->label_count + 1, sizeof *filling);
    for (uint32_t i = 0; filling && i < s->a->op_count; i++)
        filling[s->a->ops[i].label] |= fills(s, acs_analysis_recorded(s->a, i));
    for (uint32_t label = 0; filling && label < s->a->label_count; label++)
        if (filling[label])
            look_for_filling(s, label);
    free(filling);
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

static void look_for_allocations_of(search *s, const acs_site *site)
{
    const acs_recording *r = s->a->recording;
    size_t used = 0, calls = 0;
    uint64_t bytes = 0;
    acs_op last = 0;
    for (uint32_t i = 0; i < r->block_count; i++) {
        const acs_recorded_block *block = &r->blocks[i];
        const acs_time_span span = acs_analysis_within(s->a, block->began, block->ended);
        if (block->site != site || span.from >= span.to)
            continue;
        s->spans[used++] = span;
        calls += !block->freed;
        bytes = block->bytes;
        last = block->newest;
    }
    if (calls < TUNE_REPORT_TIMES)
        return;
    acs_cause *cause = add_cause(s, "allocation", acs_time_spans_union(s->spans, used));
    char time[32], size[32];
    if (!cause)
        return;
    cause->how = "The time of the calls within the run.";
    write_text(cause->title, "Memory is allocated %zu times at %.80s:%d", calls, site->file ? site->file : "?",
               site->line);
    write_text(cause->text,
               "%zu blocks, the last of %s, were allocated there. These calls, and those that freed blocks, took %s, in "
               "which their threads queued nothing.",
               calls, acs_bytes_text(bytes, size), acs_time_text(cause->ns, time));
    write_text(cause->fix, "Allocate once, before the loop.%s%s",
               s->around->options->memory_limit ? " Or raise ACS_MEMORY_LIMIT, if the memory is short." : "",
               s->around->options->pool ? "" : " Or set ACS_POOL=auto: without it each block is a call of the driver.");
    const uint32_t op = acs_analysis_op_before(s->a, last);
    if (op != ACS_PLACE_NONE)
        show_op(cause, op);
}

static void look_for_allocations(search *s)
{
    const acs_recording *r = s->a->recording;
    for (uint32_t i = 0; i < r->block_count; i++) {
        bool first = r->blocks[i].site != NULL;
        for (uint32_t k = 0; k < i && first; k++)
            first = r->blocks[k].site != r->blocks[i].site;
        if (first)
            look_for_allocations_of(s, r->blocks[i].site);
    }
}

/* ------------------------------------------------------------------------------------------------------------ chain */

/*
 * The program is a chain if ops that need the result of the one before take most of the time, whatever else is
 * changed. If its footprints allow nothing but a chain, ops count as long as they took: nothing else slowed them.
 */
static void look_for_chain(search *s)
{
    const bool only = !s->around->in_order && s->a->alone_work_ns * 2 < s->a->chain_ns * 3;
    const uint64_t took = only ? s->to->path.ns[ACS_PATH_RESULT] + s->to->path.ns[ACS_PATH_RUN] : s->a->needed_ns;
    const acs_serial_pair *most = NULL;
    for (uint32_t i = 0; i < s->to->pair_count; i++) {
        const acs_serial_pair *p = &s->to->pairs[i];
        if (p->conflict == ACS_CONFLICT_RAW && (!most || p->path_ns > most->path_ns))
            most = p;
    }
    if (!most || acs_serial_pair_is_suspicious(most) || (!only && took * 100 < s->span_ns * TUNE_REPORT_CHAIN_PERCENT))
        return;
    acs_cause *cause = add_cause(s, "chain", took);
    char up[ACS_CAUSE_TEXT], down[ACS_CAUSE_TEXT], time[32];
    if (!cause)
        return;
    write_text(cause->title, "The program is a chain: each op needs the result of the one before");
    cause->how = only ? "Its part of the path: ops that ran while the next one waited for their result."
                      : "The time of the longest chain of results, if each op took as long as it takes alone.";
    write_text(cause->text,
               "Ops that need the result of another take %s one after another. The longest chain has %u ops. Most "
               "often in it, %.120s needs what %.120s wrote.",
               acs_time_text(cause->ns, time), s->a->levels, acs_label_text(s->a->labels[most->down], down),
               acs_label_text(s->a->labels[most->up], up));
    write_text(cause->fix,
               "No setting makes a chain shorter. Split the work into parts that do not need each other, or queue other "
               "work beside it. Join short ops to longer ones%s.",
               s->around->on_cpu ? "" : ", or give each op more blocks, so that it uses more of the device");
    show_op(cause, most->example);
    show_op(cause, s->a->ops[most->example].waited_for);
}

/* ------------------------------------------------------------------------------------------------------- make, free */

acs_status acs_causes_make(acs_analysis *analysis, const acs_surroundings *around, acs_causes *causes)
{
    const acs_recording *r = analysis->recording;
    search s = {.a = analysis, .around = around, .to = causes, .span_ns = analysis->last_ns - analysis->first_ns};
    *causes = (acs_causes){0};
    s.spans = calloc((size_t)analysis->op_count + r->wait_count + r->block_count + 1, sizeof *s.spans);
    s.play = acs_play_create(analysis, around);
    if (!s.spans || !s.play || acs_path_make(analysis, &causes->path) != ACS_OK ||
        acs_serial_pairs_make(analysis, around, causes) != ACS_OK) {
        free(s.spans);
        acs_play_destroy(s.play);
        acs_causes_free(causes);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to look for what made the program slow");
    }
    causes->played_count = acs_play_settings(s.play, causes->played);
    s.base_ns = causes->played_count ? causes->played[0].ns : 0;
    for (uint32_t i = 0; i < causes->pair_count && i < TUNE_REPORT_PAIRS; i++) /* those that take most of the path */
        find_gain(&s, &causes->pairs[i]);
    look_for_window(&s);
    look_for_streams(&s);
    look_for_host_waits(&s);
    look_for_kernels(&s);
    look_for_allocations(&s);
    look_for_pairs(&s);
    look_for_issue(&s);
    look_for_late_starts(&s);
    look_for_slow_callers(&s);
    look_for_chain(&s); /* the last: ops that ran explain none of the path's other parts */
    qsort(causes->list, causes->count, sizeof *causes->list, dearest_first);
    free(s.spans);
    acs_play_destroy(s.play);
    return ACS_OK;
}

void acs_causes_free(acs_causes *causes)
{
    free(causes->pairs);
    acs_path_free(&causes->path);
    *causes = (acs_causes){0};
}

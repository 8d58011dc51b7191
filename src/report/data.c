/*
 * Writes what is known of a recording as one object of JSON, which pages show and acs-report reads. docs/trace.md has
 * its fields. Called when a context closes.
 */
#include "report/writing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Length of the UTF-8 sequence at `c`; 0: it is none. */
static int sequence_length(const unsigned char *c)
{
    const int length = c[0] < 0x80                   ? 1
                       : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
                       : (c[0] & 0xf0) == 0xe0       ? 3
                       : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
                                                     : 0;
    for (int i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

void acs_json_string(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        const int length = sequence_length(c);
        if (length == 1 && (*c < ' ' || *c == '"' || *c == '\\' || *c == '<' || *c == '>' || *c == '&' || *c == 0x7f))
            (void)fprintf(file, "\\u%04x", *c);
        else if (length == 0)
            (void)fputc('?', file);
        else
            (void)fwrite(c, 1, (size_t)length, file);
        c += length ? length : 1;
    }
    (void)fputc('"', file);
}

static void write_names(FILE *file, const char *field, const char *const *names, uint32_t count)
{
    (void)fprintf(file, ",\n\"%s\":[", field);
    for (uint32_t i = 0; i < count; i++) {
        (void)fprintf(file, "%s", i ? "," : "");
        acs_json_string(file, names[i]);
    }
    (void)fprintf(file, "]");
}

static void write_list(FILE *file, const char *field, const uint32_t *values, uint32_t count)
{
    (void)fprintf(file, ",\"%s\":[", field);
    for (uint32_t i = 0; i < count; i++)
        (void)fprintf(file, "%s%" PRIu32, i ? "," : "", values[i]);
    (void)fprintf(file, "]");
}

/* The rest of a list whose bracket is open. */
static void write_numbers(FILE *file, const uint64_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)fprintf(file, "%s%" PRIu64, i ? "," : "", values[i]);
    (void)fprintf(file, "]");
}

static const char *field_of(uint32_t i)
{
    return i ? ",\n" : "";
}

/* -1 where there is none. */
static int64_t place_or_none(uint32_t number)
{
    return number == ACS_PLACE_NONE ? -1 : (int64_t)number;
}

/* ---------------------------------------------------------------------------------------------------------- program */

/* Ops whose time the device told, alone or with their graph. */
static uint32_t timed_ops(const acs_analysis *a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->op_count; i++) {
        const acs_recorded_op *op = acs_analysis_recorded(a, i);
        count += op->ran_to || (op->graph != ACS_PLACE_NONE && a->recording->graphs[op->graph].ended);
    }
    return count;
}

static void write_program(FILE *file, const acs_told *t)
{
    static const char *const issues[ACS_METHOD_COUNT] = {"auto", "launch", "replay", "resident"};
    const acs_options *o = t->around->options;
    const acs_recording *r = t->analysis->recording;
    (void)fprintf(file, "{\"format\":1,\"program\":");
    acs_json_string(file, program_invocation_short_name);
    (void)fprintf(file, ",\"backend\":\"%s\",\"times\":\"%s\",\"timed\":%" PRIu32, t->backend, t->times,
                  timed_ops(t->analysis));
    (void)fprintf(file, ",\"virtual_time\":%s,\"sampled\":%" PRId64 ",\"ops_seen\":%" PRIu64 ",\"span_ns\":%" PRIu64,
                  r->virtual_time ? "true" : "false", o->trace_sample, r->ops_seen, r->span_ns);
    (void)fprintf(file,
                  ",\n\"options\":{\"window\":%" PRId64 ",\"streams\":%" PRId64 ",\"workers\":%" PRId64
                  ",\"devices\":%" PRIu32 ",\"batch\":%" PRId64 ",\"rename\":%" PRId64 ",\"fifo\":%" PRId64
                  ",\"memory_limit\":%" PRId64 ",\"memory_slack\":%" PRId64
                  ",\"serial\":%d,\"disable\":%d,\"repeats\":\"%s\",\"issue\":\"%s\"}",
                  o->window, o->streams, o->workers, t->around->devices, o->batch, o->rename, o->fifo,
                  o->memory_limit, o->memory_slack, o->serial, o->disable,
                  o->repeats == ACS_REPEATS_AUTO ? "auto" : "named", issues[o->issue]);
    (void)fprintf(file, ",\n\"devices\":[");
    for (uint32_t i = 0; i < t->around->devices; i++)
        (void)fprintf(file, "%s{\"sms\":%" PRIu64 ",\"threads\":%" PRIu64 "}", i ? "," : "", t->around->sms,
                      t->around->sm_threads);
    (void)fprintf(file, "]");
}

static void write_labels(FILE *file, const acs_analysis *a)
{
    (void)fprintf(file, ",\n\"labels\":[");
    for (uint32_t i = 0; i < a->label_count; i++) {
        const acs_site site = acs_label_site(a->labels[i]);
        (void)fprintf(file, "%s", i ? ",\n[" : "[");
        acs_json_string(file, acs_label_name(a->labels[i]));
        (void)fputc(',', file);
        acs_json_string(file, site.file ? site.file : "");
        (void)fprintf(file, ",%d]", site.line);
    }
    (void)fprintf(file, "]");
}

/* -------------------------------------------------------------------------------------------------------------- ops */

/* Whether the op begins a bundle: the first of its batch that is bundled, or part of a replay. */
static bool in_bundle(const acs_recorded_op *op)
{
    return op->slot >= 0 && acs_analysis_is_bundled(op);
}

static bool same_bundle(const acs_recorded_op *a, const acs_recorded_op *b)
{
    return in_bundle(a) && in_bundle(b) && a->batch == b->batch && a->slot == b->slot && a->whole == b->whole;
}

/* The place of the op's bundle: that of the nearest earlier op of the same bundle, or a new one. -1: it is in none.
 */
static int64_t bundle_of(const acs_analysis *a, uint32_t op, const int32_t *bundles, int32_t *count)
{
    enum { REACH = 1024 };
    const acs_recorded_op *mine = acs_analysis_recorded(a, op);
    if (!in_bundle(mine))
        return -1;
    for (uint32_t back = 1; back <= REACH && back <= op; back++)
        if (same_bundle(mine, acs_analysis_recorded(a, op - back)))
            return bundles[op - back];
    return (*count)++;
}

static void write_op_row(FILE *file, const acs_analysis *a, uint32_t i, int64_t bundle)
{
    const acs_analysed_op *op = &a->ops[i];
    const acs_recorded_op *from = acs_analysis_recorded(a, i);
    (void)fprintf(file,
                  "%s[%" PRIu64 ",%" PRIu32 ",%d,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                  ",%" PRIu64,
                  field_of(i), from->seq, op->label, from->asked, from->thread, op->entered, from->inserted,
                  op->ready, from->issued, op->began, op->ended);
    (void)fprintf(file, ",%d,%d,%" PRIu32 ",%d,%" PRId64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64,
                  from->device, from->slot, op->lane, from->method, bundle, op->level, from->blocks, from->threads,
                  from->bytes);
    (void)fprintf(file, ",%" PRId64 ",%d,%" PRId64 ",%d,%" PRIu64 ",%d,%d]", place_or_none(op->waited_for),
                  op->conflict, place_or_none(op->pair), op->reason, op->held_ns[op->reason], op->critical,
                  (int)from->status);
}

/* Write the ops, and their bundles. */
static void write_ops(FILE *file, const acs_analysis *a)
{
    int32_t *bundles = calloc((size_t)a->op_count + 1, sizeof *bundles), count = 0;
    uint32_t *sizes = calloc((size_t)a->op_count + 1, sizeof *sizes);
    (void)fprintf(file, ",\n\"ops\":[");
    for (uint32_t i = 0; i < a->op_count && bundles && sizes; i++) {
        bundles[i] = (int32_t)bundle_of(a, i, bundles, &count);
        if (bundles[i] >= 0)
            sizes[bundles[i]]++;
        write_op_row(file, a, i, bundles[i]);
    }
    (void)fprintf(file, "],\n\"bundles\":[");
    for (uint32_t i = 0, next = 0; i < a->op_count && bundles && sizes; i++) {
        const acs_recorded_op *op = acs_analysis_recorded(a, i);
        if (bundles[i] != (int32_t)next)
            continue;
        (void)fprintf(file, "%s[%d,%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 "]", field_of(next), op->slot,
                      op->method, op->issued, op->booked, op->ended, sizes[next]);
        next++;
    }
    (void)fprintf(file, "],\n\"deps\":[");
    bool first = true;
    for (uint32_t i = 0; i < a->op_count; i++)
        for (uint32_t k = 0; k < a->ops[i].up_count; k++, first = false)
            (void)fprintf(file, "%s[%" PRIu32 ",%" PRIu32 "]", first ? "" : ",", a->ups[a->ops[i].first_up + k], i);
    (void)fprintf(file, "]");
    free(bundles);
    free(sizes);
}

/* ------------------------------------------------------------------------------------------------- waits and memory */

static void write_calls(FILE *file, const acs_analysis *a)
{
    const acs_recording *r = a->recording;
    (void)fprintf(file, ",\n\"waits\":[");
    for (uint32_t i = 0; i < r->wait_count; i++) {
        const acs_recorded_wait *w = &r->waits[i];
        (void)fprintf(file, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64 "]",
                      field_of(i), w->thread, w->type, w->began, w->ended, w->op,
                      place_or_none(acs_analysis_label_before(a, w->newest)));
    }
    (void)fprintf(file, "],\n\"memory\":[");
    for (uint32_t i = 0; i < r->block_count; i++) {
        const acs_recorded_block *b = &r->blocks[i];
        (void)fprintf(file, "%s[%" PRIu64 ",%" PRIu64 ",%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", field_of(i),
                      b->began, b->ended, b->freed, b->bytes, b->live, b->reserved);
        acs_json_string(file, b->site && b->site->file ? b->site->file : "");
        (void)fprintf(file, ",%d,%" PRIu32 "]", b->site ? b->site->line : 0, b->thread);
    }
    (void)fprintf(file, "]");
}

static void write_widths(FILE *file, const acs_widths *w)
{
    (void)fprintf(file, ",\n\"counters\":{\"t\":[");
    write_numbers(file, w->at_ns, w->count);
    write_list(file, "ready", w->ready, w->count);
    write_list(file, "running", w->running, w->count);
    write_list(file, "window", w->window, w->count);
    (void)fprintf(file, "}");
}

/* ---------------------------------------------------------------------------------------------------------- summary */

static void write_summary(FILE *file, const acs_analysis *a)
{
    const uint64_t span_ns = a->last_ns - a->first_ns;
    uint64_t waited = 0;
    for (uint32_t i = 0; i < a->recording->wait_count; i++) {
        const acs_time_span wait = acs_analysis_within(a, a->recording->waits[i].began, a->recording->waits[i].ended);
        waited += wait.from < wait.to ? wait.to - wait.from : 0;
    }
    (void)fprintf(file,
                  ",\n\"summary\":{\"ops\":%" PRIu32 ",\"kernels\":%" PRIu32 ",\"work_ns\":%" PRIu64
                  ",\"busy_ns\":%" PRIu64 ",\"critical_ns\":%" PRIu64 ",\"levels\":%" PRIu32
                  ",\"width_possible\":%.3f,\"width_achieved\":%.3f,"
                  "\"span_ns\":%" PRIu64 ",\"host_wait_ns\":%" PRIu64 ",\"reasons_ns\":[",
                  a->op_count, a->kernels, a->work_ns, a->busy_ns, a->chain_ns, a->levels,
                  a->chain_ns ? (double)a->alone_work_ns / (double)a->chain_ns : 0,
                  span_ns ? (double)a->alone_work_ns / (double)span_ns : 0, span_ns, waited);
    write_numbers(file, a->held_ns, ACS_HOLD_COUNT);
    (void)fprintf(file, "}");
}

typedef struct label_times {
    uint64_t count, all, longest, held;
    uint32_t label;
} label_times;

static int by_all(const void *a, const void *b)
{
    const label_times *x = a, *y = b;
    return (x->all < y->all) - (x->all > y->all);
}

static void write_kernels(FILE *file, const acs_analysis *a)
{
    label_times *times = calloc((size_t)a->label_count + 1, sizeof *times);
    (void)fprintf(file, ",\n\"kernels\":[");
    for (uint32_t i = 0; i < a->op_count && times; i++) {
        const acs_analysed_op *op = &a->ops[i];
        label_times *t = &times[op->label];
        t->label = op->label;
        t->count++;
        t->all += acs_analysis_time(op);
        t->longest = acs_analysis_time(op) > t->longest ? acs_analysis_time(op) : t->longest;
        t->held += op->began > op->entered ? op->began - op->entered : 0;
    }
    if (times)
        qsort(times, a->label_count, sizeof *times, by_all);
    for (uint32_t i = 0; i < a->label_count && times; i++)
        (void)fprintf(file, "%s[%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", field_of(i),
                      times[i].label, times[i].count, times[i].all, times[i].longest, times[i].held);
    (void)fprintf(file, "]");
    free(times);
}

/* ----------------------------------------------------------------------------------------------------------- causes */

static void write_field(FILE *file, const char *field, const char *text)
{
    (void)fprintf(file, ",\"%s\":", field);
    acs_json_string(file, text);
}

/* The path, the earliest part first. */
static void write_path(FILE *file, const acs_path *path)
{
    static const char *const names[ACS_PATH_COUNT] = {"run",    "result", "overwrite", "memory", "no footprint",
                                                      "stream", "window", "host wait", "issue",  "caller", "start"};
    write_names(file, "path_reasons", names, ACS_PATH_COUNT);
    (void)fprintf(file, ",\n\"path_ns\":[");
    write_numbers(file, path->ns, ACS_PATH_COUNT);
    (void)fprintf(file, ",\n\"path\":[");
    for (uint32_t i = path->count; i-- > 0;) {
        const acs_path_part *part = &path->parts[i];
        (void)fprintf(file, "%s[%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%d]", i + 1 < path->count ? "," : "", part->op,
                      part->from, part->to, part->reason);
    }
    (void)fprintf(file, "]");
}

static void write_causes(FILE *file, const acs_causes *c)
{
    (void)fprintf(file, ",\n\"pairs\":[");
    for (uint32_t i = 0; i < c->pair_count; i++) {
        const acs_serial_pair *p = &c->pairs[i];
        (void)fprintf(file,
                      "%s{\"up\":%" PRIu32 ",\"down\":%" PRIu32 ",\"conflict\":%d,\"count\":%" PRIu64
                      ",\"wait_ns\":%" PRIu64 ",\"path_ns\":%" PRIu64 ",\"gain_ns\":%" PRIu64,
                      field_of(i), p->up, p->down, p->conflict, p->count, p->held_ns, p->path_ns, p->gain_ns);
        write_field(file, "range", p->range);
        write_field(file, "fix", p->fix);
        (void)fprintf(file, "}");
    }
    (void)fprintf(file, "],\n\"findings\":[");
    for (uint32_t i = 0; i < c->count; i++) {
        const acs_cause *cause = &c->list[i];
        (void)fprintf(file, "%s{\"kind\":\"%s\",\"ns\":%" PRIu64, field_of(i), cause->kind, cause->ns);
        write_field(file, "title", cause->title);
        write_field(file, "text", cause->text);
        write_field(file, "fix", cause->fix);
        write_field(file, "how", cause->how);
        write_list(file, "ops", cause->ops, cause->op_count);
        (void)fprintf(file, "}");
    }
    (void)fprintf(file, "]");
}

static void write_played(FILE *file, const acs_causes *t)
{
    (void)fprintf(file, ",\n\"what_if\":[");
    for (uint32_t i = 0; i < t->played_count; i++) {
        (void)fprintf(file, "%s{\"name\":\"%s\",\"setting\":\"%s\",\"ns\":%" PRIu64 "}", field_of(i),
                      t->played[i].name, t->played[i].setting, t->played[i].ns);
    }
    (void)fprintf(file, "]}\n");
}

void acs_data_write(FILE *file, const acs_told *told)
{
    static const char *const kinds[ACS_KIND_COUNT] = {"kernel",       "copy",          "fill",     "host function",
                                                      "library call", "free",          "callback", "wait for a range",
                                                      "stream wait",  "stream signal", "replay",   "join"};
    static const char *const reasons[ACS_HOLD_COUNT] = {"none", "window", "dependence", "issue", "stream"};
    static const char *const conflicts[ACS_CONFLICT_COUNT] = {"none", "RAW", "WAR", "WAW", "all memory", "order"};
    write_program(file, told);
    write_names(file, "kinds", kinds, ACS_KIND_COUNT);
    write_names(file, "methods", acs_method_names, ACS_METHOD_COUNT);
    write_names(file, "reasons", reasons, ACS_HOLD_COUNT);
    write_names(file, "conflicts", conflicts, ACS_CONFLICT_COUNT);
    write_labels(file, told->analysis);
    write_ops(file, told->analysis);
    write_calls(file, told->analysis);
    write_widths(file, &told->analysis->widths);
    write_summary(file, told->analysis);
    write_kernels(file, told->analysis);
    write_path(file, &told->causes->path);
    write_causes(file, told->causes);
    write_played(file, told->causes);
}

/*
 * Writes a recording as events of the format that Perfetto and chrome://tracing read ("Trace Event Format"): slices,
 * flow arrows and counters. Called when a context closes. Rows of slices are processes and threads of that format:
 *
 *   1 callers          a row for each thread: launches, and calls that wait
 *   2 window           ops from their call to their begin, with what held them
 *   3 issue            the host's calls that hand ops over
 *   4 host             host functions and other ops that need no stream
 *   10 + d device d    a row for each stream, further rows for ops beside it in one bundle, and one for bundles
 */
#include "report/writing.h"

#include "scheduler/slots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CALLERS = 1, WINDOW = 2, ISSUE = 3, HOST = 4, DEVICE = 10 };
enum { ROWS = 64,  THREADS = 4096, LAUNCH_NS = 100 };

typedef struct writer {
    FILE *file;
    const acs_analysis *a;
    const acs_causes *causes;
    bool any;               /* an event was written */
    uint64_t row_end[ROWS]; /* of the process whose rows are given out */
    uint32_t rows;
} writer;

/* ----------------------------------------------------------------------------------------------------------- events */

/* Begin an event, whose further fields follow. Times are in us. */
static void begin_event(writer *w, char type, uint32_t process, uint32_t row, uint64_t at_ns)
{
    (void)fprintf(w->file, "%s{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03u",
                  w->any ? ",\n" : "", type, process, row, at_ns / 1000, (unsigned)(at_ns % 1000));
    w->any = true;
}

static void name_event(writer *w, const char *text)
{
    (void)fprintf(w->file, ",\"name\":");
    acs_json_string(w->file, text);
}

static uint64_t length_ns(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 1;
}

static void begin_slice(writer *w, uint32_t process, uint32_t row, uint64_t from, uint64_t to, const char *text)
{
    const uint64_t ns = length_ns(from, to);
    begin_event(w, 'X', process, row, from);
    (void)fprintf(w->file, ",\"dur\":%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
    name_event(w, text);
}

static void end_event(writer *w)
{
    (void)fprintf(w->file, "}");
}

/* The begin of an arrow ('s') or its end ('f'). */
static void write_arrow_end(writer *w, char type, uint32_t process, uint32_t row, uint64_t at_ns, const char *name,
                            uint64_t id)
{
    begin_event(w, type, process, row, at_ns);
    (void)fprintf(w->file, ",\"name\":\"%s\",\"cat\":\"%s\"%s,\"id\":%" PRIu64 "}", name, name,
                  type == 'f' ? ",\"bp\":\"e\"" : "", id);
}

/* Name a process, or one of its rows. */
static void describe_row(writer *w, uint32_t process, int64_t row, const char *text)
{
    begin_event(w, 'M', process, row < 0 ? 0 : (uint32_t)row, 0);
    name_event(w, row < 0 ? "process_name" : "thread_name");
    (void)fprintf(w->file, ",\"args\":{\"name\":");
    acs_json_string(w->file, text);
    (void)fprintf(w->file, "}}");
    begin_event(w, 'M', process, row < 0 ? 0 : (uint32_t)row, 0);
    name_event(w, row < 0 ? "process_sort_index" : "thread_sort_index");
    (void)fprintf(w->file, ",\"args\":{\"sort_index\":%" PRId64 "}}", row < 0 ? (int64_t)process : row);
}

/* A row that is free at `from`, from 1 on, and taken until `to`; 0: all are taken. */
static uint32_t take_row(writer *w, uint64_t from, uint64_t to)
{
    uint32_t row = 0;
    while (row < ROWS && w->row_end[row] > from)
        row++;
    if (row == ROWS)
        return 0;
    w->row_end[row] = from + length_ns(from, to);
    w->rows = row + 1 > w->rows ? row + 1 : w->rows;
    return row + 1;
}

static void describe_rows(writer *w, uint32_t process, const char *text)
{
    char row[64];
    describe_row(w, process, -1, text);
    for (uint32_t i = 1; i <= w->rows; i++) {
        (void)snprintf(row, sizeof row, "row %" PRIu32, i);
        describe_row(w, process, i, row);
    }
}

/* ------------------------------------------------------------------------------------------------------------- rows */

static uint32_t process_of(const acs_recorded_op *op)
{
    return op->slot < 0 ? HOST : DEVICE + op->device;
}

/* Row of an op: its slot, and its lane in it. */
static uint32_t row_of_op(const acs_recorded_op *op, uint32_t lane)
{
    return (uint32_t)(op->slot + 1) * (ACS_LANES + 1) + lane + 1;
}

static const char *text_of(const acs_analysis *a, const acs_analysed_op *op)
{
    return acs_label_name(a->labels[op->label]);
}

/* -------------------------------------------------------------------------------------------------------------- ops */

static void write_site(writer *w, const acs_analysed_op *op)
{
    const acs_site site = acs_label_site(w->a->labels[op->label]);
    char text[ACS_CAUSE_TEXT];
    (void)snprintf(text, sizeof text, "%.300s:%d", site.file ? site.file : "?", site.line);
    (void)fprintf(w->file, ",\"site\":");
    acs_json_string(w->file, text);
}

static void write_cause(writer *w, const acs_analysed_op *op)
{
    static const char *const reasons[ACS_HOLD_COUNT] = {"nothing", "the window was full", "a dependence",
                                                        "the host's calls", "the op before it in its stream"};
    static const char *const conflicts[ACS_CONFLICT_COUNT] = {"", "RAW", "WAR", "WAW", "all memory", "order"};
    (void)fprintf(w->file, ",\"held by\":\"%s\",\"held us\":%.3f", reasons[op->reason],
                  (double)op->held_ns[op->reason] / 1e3);
    if (op->waited_for == ACS_PLACE_NONE)
        return;
    const acs_analysed_op *up = &w->a->ops[op->waited_for];
    (void)fprintf(w->file, ",\"waited for op\":%" PRIu64 ",\"conflict\":\"%s\",\"waited for\":",
                  acs_analysis_recorded(w->a, op->waited_for)->seq, conflicts[op->conflict]);
    acs_json_string(w->file, text_of(w->a, up));
    if (op->pair == ACS_PLACE_NONE || !w->causes->pairs[op->pair].range[0])
        return;
    (void)fprintf(w->file, ",\"over\":");
    acs_json_string(w->file, w->causes->pairs[op->pair].range);
}

static void write_run(writer *w, uint32_t i)
{
    const acs_analysed_op *op = &w->a->ops[i];
    const acs_recorded_op *from = acs_analysis_recorded(w->a, i);
    begin_slice(w, process_of(from), row_of_op(from, op->lane), op->began, op->ended, text_of(w->a, op));
    (void)fprintf(w->file, ",\"args\":{\"op\":%" PRIu64 ",\"issued by\":\"%s\",\"critical\":%s", from->seq,
                  acs_method_names[from->method], op->critical ? "true" : "false");
    if (from->blocks)
        (void)fprintf(w->file, ",\"blocks\":%" PRIu32 ",\"threads\":%" PRIu32, from->blocks, from->threads);
    if (from->bytes)
        (void)fprintf(w->file, ",\"bytes\":%" PRIu64, from->bytes);
    write_site(w, op);
    write_cause(w, op);
    (void)fprintf(w->file, "}");
    end_event(w);
}

/* The ends of what callers did, by thread. */
typedef struct calls {
    uint64_t end[THREADS];
    uint32_t wait; /* the next wait to look at */
} calls;

/*
 * The call, and the arrow from it to the op. Only its end is known: it is shown as long as calls mostly take, or from
 * the end of the thread's call before.
 */
static void write_call(writer *w, uint32_t i, calls *c)
{
    const acs_analysed_op *op = &w->a->ops[i];
    const acs_recorded_op *from = acs_analysis_recorded(w->a, i);
    const acs_recording *r = w->a->recording;
    if (!from->thread || from->thread >= THREADS || !from->entered || from->whole != ACS_PLACE_NONE)
        return;
    for (; c->wait < r->wait_count && r->waits[c->wait].ended <= op->entered; c->wait++)
        if (r->waits[c->wait].thread < THREADS)
            c->end[r->waits[c->wait].thread] = r->waits[c->wait].ended;
    uint64_t begins = op->entered > LAUNCH_NS ? op->entered - LAUNCH_NS : 0;
    begins = c->end[from->thread] > begins ? c->end[from->thread] : begins;
    begins = begins < op->entered ? begins : op->entered;
    c->end[from->thread] = op->entered;
    begin_slice(w, CALLERS, from->thread, begins, op->entered, text_of(w->a, op));
    (void)fprintf(w->file, ",\"args\":{\"op\":%" PRIu64, from->seq);
    write_site(w, op);
    (void)fprintf(w->file, "}");
    end_event(w);
    write_arrow_end(w, 's', CALLERS, from->thread, begins, "call", i + 1);
    write_arrow_end(w, 'f', process_of(from), row_of_op(from, op->lane), op->began, "call", i + 1);
}

/* An op that finds no row is left out: the picture would have a row for each op of a full FIFO. */
static void write_window(writer *w, uint32_t i)
{
    const acs_analysed_op *op = &w->a->ops[i];
    const uint32_t row = op->began > op->entered ? take_row(w, op->entered, op->began) : 0;
    if (!row)
        return;
    begin_slice(w, WINDOW, row, op->entered, op->began, text_of(w->a, op));
    (void)fprintf(w->file, ",\"args\":{\"op\":%" PRIu64, acs_analysis_recorded(w->a, i)->seq);
    write_cause(w, op);
    (void)fputs("}", w->file);
    end_event(w);
}

static void draw_op(writer *w, uint32_t i, calls *c)
{
    if (w->a->ops[i].lane == ACS_LANES)
        return;
    write_call(w, i, c);
    write_run(w, i);
}

/* An arrow leaves at the end of the one slice, and arrives at the begin of the other, never before. */
static void write_arrow(writer *w, uint32_t up, uint32_t down, uint64_t id)
{
    const acs_analysed_op *from = &w->a->ops[up], *to = &w->a->ops[down];
    if (from->lane == ACS_LANES || to->lane == ACS_LANES)
        return;
    const acs_recorded_op *a = acs_analysis_recorded(w->a, up), *b = acs_analysis_recorded(w->a, down);
    const uint64_t last = from->began + length_ns(from->began, from->ended) - 1;
    write_arrow_end(w, 's', process_of(a), row_of_op(a, from->lane), acs_min(last, to->began), "dependence", id);
    write_arrow_end(w, 'f', process_of(b), row_of_op(b, to->lane), to->began, "dependence", id);
}

static void write_arrows(writer *w)
{
    for (uint32_t i = 0; i < w->a->op_count; i++)
        for (uint32_t k = 0; k < w->a->ops[i].up_count; k++)
            write_arrow(w, w->a->ups[w->a->ops[i].first_up + k], i,
                        (uint64_t)w->a->op_count + w->a->ops[i].first_up + k + 1);
}

/* ---------------------------------------------------------------------------------------------------------- batches */

/* Ops that one call handed over; a bundle has one slot. */
typedef struct batch {
    uint64_t number, issued, booked, began, ended;
    uint32_t ops, first;
} batch;

static int by_batch_number(const void *a, const void *b)
{
    const batch *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_issue(const void *a, const void *b)
{
    const batch *x = a, *y = b;
    return (x->issued > y->issued) - (x->issued < y->issued);
}

/* Join what was handed over together. Returns the number of batches. */
static uint32_t join_batches(batch *list, uint32_t count)
{
    uint32_t used = 0;
    if (count)
        qsort(list, count, sizeof *list, by_batch_number);
    for (uint32_t i = 0; i < count; i++) {
        batch *last = used ? &list[used - 1] : NULL;
        if (!last || last->number != list[i].number) {
            list[used++] = list[i];
            continue;
        }
        last->ops += list[i].ops;
        last->issued = acs_min(last->issued, list[i].issued);
        last->booked = list[i].booked > last->booked ? list[i].booked : last->booked;
        last->began = acs_min(last->began, list[i].began);
        last->ended = list[i].ended > last->ended ? list[i].ended : last->ended;
    }
    if (used)
        qsort(list, used, sizeof *list, by_issue);
    return used;
}

/* `slot_end`: the end of the bundle before in the slot. Ends are estimates, so it may come after this one's begin. */
static void write_bundle(writer *w, const batch *b, const char *method, uint64_t *slot_end)
{
    const acs_recorded_op *op = acs_analysis_recorded(w->a, b->first);
    const uint64_t began = b->began > *slot_end ? b->began : *slot_end;
    char text[ACS_CAUSE_TEXT];
    if (began >= b->ended)
        return;
    *slot_end = b->ended;
    (void)snprintf(text, sizeof text, "bundle of %" PRIu32 ": %s", b->ops, method);
    begin_slice(w, DEVICE + op->device, row_of_op(op, ACS_LANES - 1) + 1, began, b->ended, text);
    end_event(w);
}

static void write_batch(writer *w, const batch *b, uint64_t slot_ends[ACS_SLOTS_MAX])
{
    static const char *const methods[ACS_METHOD_COUNT] = {"launch", "launch", "replay", "resident"};
    const acs_recorded_op *op = acs_analysis_recorded(w->a, b->first);
    const uint32_t row = take_row(w, b->issued, b->booked);
    char text[ACS_CAUSE_TEXT];
    (void)snprintf(text, sizeof text, "issue %" PRIu32 " ops: %s", b->ops, methods[op->method]);
    if (row) {
        begin_slice(w, ISSUE, row, b->issued, b->booked, text);
        end_event(w);
    }
    if (op->slot >= 0 && acs_analysis_is_bundled(op))
        write_bundle(w, b, methods[op->method], &slot_ends[op->slot]);
}

static void write_batches(writer *w)
{
    batch *list = calloc((size_t)w->a->op_count + 1, sizeof *list);
    uint64_t slot_ends[ACS_SLOTS_MAX] = {0};
    uint32_t count = 0;
    memset(w->row_end, 0, sizeof w->row_end);
    w->rows = 0;
    for (uint32_t i = 0; i < w->a->op_count && list; i++) {
        const acs_recorded_op *op = acs_analysis_recorded(w->a, i);
        if (op->slot >= 0 && op->booked)
            list[count++] = (batch){op->batch, op->issued, op->booked, w->a->ops[i].began, w->a->ops[i].ended, 1, i};
    }
    count = list ? join_batches(list, count) : 0;
    for (uint32_t i = 0; i < count; i++)
        write_batch(w, &list[i], slot_ends);
    describe_rows(w, ISSUE, "issue (the host's calls)");
    free(list);
}

/* ----------------------------------------------------------------------------------------------------- other events */

static void write_waits(writer *w)
{
    static const char *const texts[] = {"waits for an op", "waits for all ops", "waits for room in the FIFO"};
    const acs_recording *r = w->a->recording;
    for (uint32_t i = 0; i < r->wait_count; i++) {
        const acs_recorded_wait *wait = &r->waits[i];
        begin_slice(w, CALLERS, wait->thread, wait->began, wait->ended, texts[wait->type]);
        (void)fprintf(w->file, ",\"args\":{\"up to op\":%" PRIu64 "}", wait->op);
        end_event(w);
    }
}

static void write_counters(writer *w)
{
    const acs_widths *c = &w->a->widths;
    const acs_recording *r = w->a->recording;
    for (uint32_t i = 0; i < c->count; i++) {
        const bool same = i > 0 && i + 1 < c->count && c->ready[i] == c->ready[i - 1] &&
                          c->running[i] == c->running[i - 1] && c->window[i] == c->window[i - 1];
        if (same)
            continue;
        begin_event(w, 'C', WINDOW, 0, i ? c->at_ns[i - 1] : w->a->first_ns);
        (void)fprintf(w->file,
                      ",\"name\":\"ops\",\"args\":{\"ready\":%" PRIu32 ",\"running\":%" PRIu32
                      ",\"in the window\":%" PRIu32 "}}",
                      c->ready[i], c->running[i], c->window[i]);
    }
    for (uint32_t i = 0; i < r->block_count; i++) {
        begin_event(w, 'C', CALLERS, 0, r->blocks[i].ended);
        (void)fprintf(w->file,
                      ",\"name\":\"memory\",\"args\":{\"live bytes\":%" PRIu64 ",\"reserved bytes\":%" PRIu64 "}}",
                      r->blocks[i].live, r->blocks[i].reserved);
    }
}

/* ------------------------------------------------------------------------------------------------------------ names */

static void describe_slot(writer *w, const bool *lanes, uint32_t device, int slot)
{
    char text[64];
    const acs_recorded_op place = {.slot = (int16_t)slot};
    for (uint32_t lane = 0; lane < ACS_LANES; lane++) {
        if (!lanes[lane])
            continue;
        if (slot < 0)
            (void)snprintf(text, sizeof text, "row %" PRIu32, lane + 1);
        else if (lane == 0)
            (void)snprintf(text, sizeof text, "stream %d", slot);
        else
            (void)snprintf(text, sizeof text, "stream %d, beside %" PRIu32, slot, lane);
        describe_row(w, slot < 0 ? HOST : DEVICE + device, row_of_op(&place, lane), text);
    }
    (void)snprintf(text, sizeof text, "stream %d, bundles", slot);
    if (slot >= 0 && lanes[0])
        describe_row(w, DEVICE + device, row_of_op(&place, ACS_LANES - 1) + 1, text);
}

static void describe_devices(writer *w, uint32_t devices)
{
    bool(*lanes)[ACS_LANES] = calloc(ACS_SLOTS_MAX + 1, sizeof *lanes);
    char text[64];
    for (uint32_t i = 0; i < w->a->op_count && lanes; i++)
        if (w->a->ops[i].lane < ACS_LANES)
            lanes[acs_analysis_recorded(w->a, i)->slot + 1][w->a->ops[i].lane] = true;
    describe_row(w, HOST, -1, "host functions");
    for (uint32_t device = 0; device < devices; device++) {
        (void)snprintf(text, sizeof text, "device %" PRIu32, device);
        describe_row(w, DEVICE + device, -1, text);
    }
    for (int slot = -1; slot < (int)ACS_SLOTS_MAX && lanes; slot++)
        describe_slot(w, lanes[slot + 1], slot < 0 ? 0 : (uint32_t)slot % devices, slot);
    free(lanes);
}

static void describe_callers(writer *w)
{
    bool seen[THREADS] = {false};
    char text[64];
    describe_row(w, CALLERS, -1, "callers");
    for (uint32_t i = 0; i < w->a->op_count; i++) {
        const uint32_t thread = acs_analysis_recorded(w->a, i)->thread;
        if (thread >= THREADS || seen[thread])
            continue;
        seen[thread] = true;
        (void)snprintf(text, sizeof text, "thread %" PRIu32, thread);
        describe_row(w, CALLERS, thread, text);
    }
}

void acs_timeline_write(FILE *file, const acs_told *told)
{
    writer *w = calloc(1, sizeof *w);
    calls *c = calloc(1, sizeof *c);
    (void)fprintf(file, "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n");
    if (w && c) {
        w->file = file;
        w->a = told->analysis;
        w->causes = told->causes;
        describe_callers(w);
        describe_devices(w, told->around->devices);
        for (uint32_t i = 0; i < w->a->op_count; i++)
            write_window(w, i);
        describe_rows(w, WINDOW, "window (from the call to the begin)");
        for (uint32_t i = 0; i < w->a->op_count; i++)
            draw_op(w, i, c);
        write_batches(w);
        write_arrows(w);
        write_waits(w);
        write_counters(w);
    }
    free(w);
    free(c);
    (void)fprintf(file, "\n],\n\"acs\":");
    acs_data_write(file, told);
    (void)fprintf(file, "}\n");
}

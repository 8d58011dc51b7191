/*
 * ACS_DOT (see debug_options.h). Ops are written when they enter the window, are issued, or fail, so the file of a program
 * that dies is complete up to then. Hook of the core (scheduler/trace.h), under its lock.
 *
 * The edges come from a window of the file's own (capture/capture_order.h) in which no op ends, since the core's window
 * forgets ops that have ended. So a program has the same edges however fast it ran.
 */
#include "debug/debug_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/tuning.h"
#include "capture/capture_order.h"

enum { NAME_MOST = 120 };

/* A node of the order is a number: of an op, or with this bit of a join. */
static const uintptr_t JOIN = (uintptr_t)1 << 63;

struct acs_dot {
    FILE *file;
    char path[ACS_OPTION_TEXT_BYTES + 16];
    acs_capture_order *order; /* NULL: memory ran out, and no more edges are written */
    uintptr_t joins;
    acs_nodes behind, own;
    uint32_t devices;
};

/* Write a line. Errors are reported when the file ends. */
__attribute__((format(printf, 2, 3))) static void put(acs_dot *dot, const char *format, ...)
{
    char text[2 * NAME_MOST + 120];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    (void)fputs(text, dot->file);
}

/* Escape a name that is written between quotes. */
static const char *quoted(const char *name, char text[NAME_MOST])
{
    size_t used = 0;
    for (; *name && used + 3 < NAME_MOST; name++) {
        if (*name == '"' || *name == '\\')
            text[used++] = '\\';
        text[used++] = (unsigned char)*name < ' ' ? ' ' : *name;
    }
    text[used] = '\0';
    return text;
}

/* ColorBrewer's set3. As numbers: Graphviz knows a name such as red only where no colour scheme is chosen. */
static const char *colour(uint32_t device)
{
    static const char *const colours[] = {"#8dd3c7", "#ffffb3", "#bebada", "#fb8072", "#80b1d3", "#fdb462",
                                          "#b3de69", "#fccde5", "#d9d9d9", "#bc80bd", "#ccebc5", "#ffed6f"};
    return colours[device % (sizeof colours / sizeof colours[0])];
}

/* ------------------------------------------------------------------------------------------------------------- edges */

static void write_edges(acs_dot *dot, const acs_nodes *behind, const char *to, uintptr_t number)
{
    for (uint32_t i = 0; i < behind->count; i++) {
        uintptr_t from = (uintptr_t)behind->list[i];
        put(dot, "%s%" PRIuPTR " -> %s%" PRIuPTR "\n", from & JOIN ? "join" : "op", from & ~JOIN, to, number);
    }
}

static acs_status write_join(void *user, const acs_nodes *behind, acs_nodes *end)
{
    acs_dot *dot = user;
    uintptr_t number = ++dot->joins;
    if (!acs_nodes_add(end, (void *)(JOIN | number)))
        return ACS_ERR_MEMORY;
    put(dot, "join%" PRIuPTR " [shape=point, label=\"\"]\n", number);
    write_edges(dot, behind, "join", number);
    return ACS_OK;
}

/* Find the edges to the op, and note the op for later ones. The record stays as it is. False: no memory. */
static bool order_op(acs_dot *dot, const acs_record *op, acs_op seq, bool observer)
{
    acs_record copy = *op;
    uint64_t number;
    if (copy.segments == op->inline_segments)
        copy.segments = copy.inline_segments;
    dot->own.count = 0;
    return acs_capture_order_take(dot->order, &copy, observer, &dot->behind) == ACS_OK &&
           (observer || (acs_nodes_add(&dot->own, (void *)(uintptr_t)seq) &&
                         acs_capture_order_put(dot->order, &dot->own, &number) == ACS_OK));
}

/* --------------------------------------------------------------------------------------------------------------- ops */

static const char *shape_of(const acs_record *op)
{
    const bool copies = op->asked == ACS_KIND_MEMCPY || op->asked == ACS_KIND_MEMSET;
    return op->asked == ACS_KIND_KERNEL || op->asked == ACS_KIND_CALL ? "box" : copies ? "ellipse" : "hexagon";
}

static bool on_device(const acs_record *op)
{
    return op->kind != ACS_KIND_HOST && op->kind != ACS_KIND_FREE && op->kind != ACS_KIND_STREAM_SIGNAL;
}

static void write_op(acs_dot *dot, const acs_record *op, acs_op seq)
{
    char name[NAME_MOST];
    const bool transfer = op->flags & ACS_RECORD_PROPAGATES;
    put(dot, "op%" PRIu64 " [label=\"%s\\nop %" PRIu64, seq,
        transfer ? "transfer" : quoted(acs_record_name(op), name), seq);
    if (op->kind == ACS_KIND_MEMCPY || op->kind == ACS_KIND_MEMSET)
        put(dot, ", %" PRIu64 " bytes", acs_record_copied(op));
    put(dot, "\", shape=%s", shape_of(op));
    if (on_device(op))
        put(dot, ", fillcolor=\"%s\"", colour(op->device));
    put(dot, "%s]\n", transfer ? ", style=\"filled,dashed\"" : "");
}

/* Whether the op is work of the program; ops that only observe others are not. */
static bool is_drawn(const acs_record *op)
{
    return op->kind != ACS_KIND_OBSERVE && op->kind != ACS_KIND_CALLBACK;
}

static void inserted(acs_dot *dot, const acs_record *op, acs_op seq)
{
    write_op(dot, op, seq);
    if (!dot->order)
        return;
    if (order_op(dot, op, seq, op->kind == ACS_KIND_STREAM_SIGNAL)) {
        write_edges(dot, &dot->behind, "op", (uintptr_t)seq);
        return;
    }
    acs_log(ACS_LOG_ERROR, "ACS_DOT: no memory: there are no edges from op %" PRIu64 " on", seq);
    put(dot, "// no memory: no edges from here on\n");
    acs_capture_order_destroy(dot->order);
    dot->order = NULL;
}

static void write_event(acs_dot *dot, const acs_trace_event *event)
{
    if (event->type == ACS_TRACE_INSERT)
        inserted(dot, event->op, event->seq);
    else if (event->type == ACS_TRACE_ISSUE && event->slot >= 0)
        put(dot, "op%" PRIu64 " [tooltip=\"device %" PRIu32 ", slot %d\"]\n", event->seq,
            (uint32_t)event->slot % dot->devices, event->slot);
    else if (event->type == ACS_TRACE_RETIRE && event->status != ACS_OK)
        put(dot, "op%" PRIu64 " [color=\"#ff0000\", penwidth=3, xlabel=\"%s\"]\n", event->seq,
            acs_status_name(event->status));
}

static void on_event(void *user, const acs_trace_event *event)
{
    acs_dot *dot = user;
    if (is_drawn(event->op))
        write_event(dot, event);
}

/* ---------------------------------------------------------------------------------------------------- open and close */

static void write_head(acs_dot *dot)
{
    put(dot, "digraph acs {\nnode [style=filled, fillcolor=\"#ffffff\", fontname=\"Helvetica\"]\n");
    for (uint32_t device = 0; dot->devices > 1 && device < dot->devices; device++)
        put(dot, "device%" PRIu32 " [label=\"device %" PRIu32 "\", shape=plaintext, fillcolor=\"%s\"]\n", device, device,
            colour(device));
}

/* Open the file. ACS_OK without a file: the program runs without a graph. */
static acs_status open_file(acs_context *context, acs_dot *dot)
{
    static _Atomic(uint32_t) contexts;
    const uint32_t number = atomic_fetch_add_explicit(&contexts, 1, memory_order_relaxed) + 1; /* relaxed: a counter */
    int length = snprintf(dot->path, sizeof dot->path, "%s", context->options.dot);
    if (number > 1)
        (void)snprintf(dot->path + length, sizeof dot->path - (size_t)length, ".%" PRIu32, number);
    dot->file = fopen(dot->path, "we");
    if (!dot->file)
        return acs_options_no_file(&context->options, "ACS_DOT", dot->path, errno);
    (void)setvbuf(dot->file, NULL, _IOLBF, BUFSIZ); /* whole lines, in case the program dies */
    write_head(dot);
    if (!ferror(dot->file))
        return ACS_OK;
    const int error = errno;
    (void)fclose(dot->file);
    dot->file = NULL;
    return acs_options_no_file(&context->options, "ACS_DOT", dot->path, error);
}

acs_status acs_dot_open(acs_context *context)
{
    if (!*context->options.dot)
        return ACS_OK;
    if (!(context->dot = calloc(1, sizeof *context->dot)))
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for ACS_DOT");
    const acs_capture_order_config config = {
        .limit = TUNE_DOT_OPS,
        .in_order = context->options.serial || context->options.disable,
        .join = write_join,
        .user = context->dot,
    };
    context->dot->devices = context->backend->devices;
    ACS_TRY(acs_capture_order_create(&config, &context->dot->order));
    ACS_TRY(open_file(context, context->dot));
    if (!context->dot->file) {
        acs_dot_close(context);
        return ACS_OK;
    }
    return acs_trace_add(&context->core, on_event, context->dot)
               ? ACS_OK
               : ACS_FAIL(ACS_ERR_INTERNAL, 0, "ACS_DOT cannot follow the core");
}

void acs_dot_close(acs_context *context)
{
    acs_dot *dot = context->dot;
    if (!dot)
        return;
    acs_trace_remove(&context->core, on_event, dot); /* a thread that was given up may still be in the core */
    context->dot = NULL;
    if (dot->file) {
        put(dot, "}\n");
        bool bad = ferror(dot->file);
        if (fclose(dot->file) != 0 || bad)
            acs_log_always(ACS_LOG_ERROR, "ACS_DOT: '%s' is not whole: %s", dot->path, strerror(errno));
    }
    acs_capture_order_destroy(dot->order);
    acs_nodes_fini(&dot->behind);
    acs_nodes_fini(&dot->own);
    free(dot);
}

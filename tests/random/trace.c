/*
 * Prints a run step by step: what entered the window, what was issued where and behind what, what ended; and with
 * ACS_LOG=debug what the simulated GPU does at which time. Called by main.c (--trace) through the hook of
 * src/scheduler/trace.h.
 */
#include "checker.h"

#include <inttypes.h>
#include <stdio.h>

static const char *kind_name(const acs_record *op)
{
    static const char *const names[ACS_KIND_COUNT] = {
        "kernel",   "memcpy",  "memset",       "host function", "call",  "free",
        "callback", "observe", "after_stream", "stream_after", "replay", "join"};
    return names[op->kind];
}

/* What orders an op inside its bundle; a join stands for what it follows itself. */
static void print_edges(const acs_batch *bundle, uint32_t index)
{
    const acs_item *item = &bundle->items[index];
    for (uint32_t e = 0; e < item->edge_count; e++) {
        uint32_t to = bundle->edges[item->first_edge + e];
        fputs(e ? ", " : " after ", stderr);
        if (bundle->items[to].op)
            fprintf(stderr, "op %" PRIu64, bundle->items[to].op->seq);
        else {
            fputs("a join (", stderr);
            print_edges(bundle, to);
            fputs(")", stderr);
        }
    }
}

void trace_print(void *user, const acs_trace_event *event)
{
    static const char *const types[] = {"window", "issue ", "booked", "end   "};
    (void)user;
    fprintf(stderr, "    %s op %" PRIu64 " %s", types[event->type], event->seq, event->op ? kind_name(event->op) : "");
    if (event->type == ACS_TRACE_ISSUE && event->slot >= 0)
        fprintf(stderr, " slot %d value %" PRIu64, event->slot, event->value);
    for (uint32_t i = 0; event->type == ACS_TRACE_ISSUE && i < event->wait_count; i++)
        fprintf(stderr, "%s slot %u value %" PRIu64, i ? "," : " behind", event->waits[i].slot, event->waits[i].value);
    if (event->type == ACS_TRACE_ISSUE && event->bundle) {
        fprintf(stderr, " in a bundle, item %u", event->item);
        print_edges(event->bundle, event->item);
    }
    if (event->type == ACS_TRACE_RETIRE)
        fprintf(stderr, " %s", acs_status_name(event->status));
    fputc('\n', stderr);
}

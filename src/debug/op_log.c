/* The lines of ACS_LOG=debug about ops (see debug_options.h). Hook of the core (scheduler/trace.h), under its lock. */
#include "debug/debug_options.h"

#include <inttypes.h>
#include <stdio.h>

enum { WAITS_BYTES = 400 };

/* ", after slot 2's 17, slot 3's 4"; as many as have room. */
static const char *waits_of(const acs_trace_event *event, char text[WAITS_BYTES])
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < event->wait_count && used + 64 < WAITS_BYTES; i++)
        used += (size_t)snprintf(text + used, WAITS_BYTES - used, "%s slot %" PRIu32 "'s %" PRIu64,
                                 i ? "," : ", after", event->waits[i].slot, event->waits[i].value);
    return text;
}

static void on_event(void *user, const acs_trace_event *event)
{
    (void)user;
    char waits[WAITS_BYTES];
    const acs_label label = acs_record_label(event->op);
    const acs_site site = acs_label_site(label);
    const char *name = acs_label_name(label), *file = site.file ? site.file : "?";
    switch (event->type) {
    case ACS_TRACE_INSERT:
        acs_log(ACS_LOG_DEBUG, "op %" PRIu64 " '%s' (%s:%d): in the window", event->seq, name, file, site.line);
        break;
    case ACS_TRACE_ISSUE:
        if (event->slot < 0)
            acs_log(ACS_LOG_DEBUG, "op %" PRIu64 " '%s': issued to the host", event->seq, name);
        else
            acs_log(ACS_LOG_DEBUG, "op %" PRIu64 " '%s': issued to slot %d as %" PRIu64 "%s%s", event->seq, name,
                    event->slot, event->value, event->bundle ? ", in a bundle" : "", waits_of(event, waits));
        break;
    case ACS_TRACE_BOOK:
        break;
    case ACS_TRACE_RETIRE:
        acs_log(ACS_LOG_DEBUG, "op %" PRIu64 " '%s': ended: %s", event->seq, name, acs_status_name(event->status));
        break;
    }
}

void acs_op_log_open(acs_context *context)
{
    if (context->options.log >= ACS_LOG_DEBUG)
        (void)acs_trace_add(&context->core, on_event, NULL);
}

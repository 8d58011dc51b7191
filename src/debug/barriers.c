/*
 * Barriers by number (debug_options.h). The lock of program order (api/program_order.h) makes an op's number known before it
 * enters the FIFO. Called while a context opens and closes, and by each call that queues an op.
 */
#include "debug/debug_options.h"

#include "api/program_order.h"
#include "base/tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct number_range {
    acs_op first, last;
} number_range;

struct acs_barriers {
    number_range ranges[TUNE_BARRIERS];
    uint32_t count;
};

/* Read a number; `without`: where there is none. */
static acs_op read_number(const char **text, acs_op without)
{
    char *end;
    const unsigned long long value = **text >= '0' && **text <= '9' ? strtoull(*text, &end, 10) : without;
    *text = **text >= '0' && **text <= '9' ? end : *text;
    return value;
}

/* Read ranges such as 1-41,77-. False: it is no such list. */
static bool read_ranges(const char *text, acs_barriers *barriers)
{
    while (barriers->count < TUNE_BARRIERS) {
        number_range *range = &barriers->ranges[barriers->count++];
        range->first = range->last = read_number(&text, 0);
        if (*text == '-') {
            text++;
            range->last = read_number(&text, UINT64_MAX);
        }
        if (!range->first || range->last < range->first)
            return false;
        if (*text == 0)
            return true;
        if (*text++ != ',')
            return false;
    }
    return false;
}

acs_status acs_barriers_open(acs_context *context)
{
    const char *text = context->options.barriers;
    if (!*text)
        return ACS_OK;
    acs_barriers *barriers = calloc(1, sizeof *barriers);
    if (!barriers)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for ACS_BARRIERS");
    context->barriers = barriers;
    if (!read_ranges(text, barriers))
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_BARRIERS is '%s'; it must be at most %d ranges of numbers from 1 on, such "
                        "as 1-41,77-", text, TUNE_BARRIERS);
    acs_context_add_mode(context, ACS_MODE_BARRIERS);
    return context->order ? ACS_OK : acs_order_open(context);
}

void acs_barriers_close(acs_context *context)
{
    if (context->barriers && acs_context_modes(context) & ACS_MODE_BARRIERS)
        (void)fprintf(stderr, "acs: barriers: %" PRIu64 " ops\n", acs_fifo_last(context->core.fifo));
    free(context->barriers);
    context->barriers = NULL;
}

/* A range that is one op is asked for by its number: tell which op it is. */
static void tell(acs_op number, const acs_draft *draft)
{
    const acs_site site = acs_label_site(acs_draft_label(draft));
    (void)fprintf(stderr, "acs: barriers: op %" PRIu64 " is '%s' (%s:%d)\n", number, acs_draft_name(draft),
                  site.file ? site.file : "?", site.line);
}

static bool is_barrier(const acs_barriers *barriers, acs_op number, const acs_draft *draft)
{
    bool is = false;
    for (uint32_t i = 0; i < barriers->count; i++) {
        const number_range *range = &barriers->ranges[i];
        is |= number >= range->first && number <= range->last;
        if (range->first == number && range->last == number)
            tell(number, draft);
    }
    return is;
}

void acs_barriers_mark(acs_draft *draft)
{
    const acs_barriers *barriers = draft->context->barriers;
    acs_op number = acs_fifo_last(draft->context->core.fifo);
    if (!draft->parts) {
        draft->record->any |= is_barrier(barriers, number + 1, draft);
        return;
    }
    for (uint32_t i = 0; i < draft->parts; i++)
        draft->part[i]->any |= is_barrier(barriers, ++number, draft);
}

/*
 * Pairs of call sites whose ops waited for each other: counted, with the bytes over which they conflict, and what
 * would free them. Called by causes.c. Knows allocations by the recorded calls of acs_malloc alone.
 */
#include "report/causes.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An op that waited, and what its pair is known by. */
typedef struct waited {
    uint32_t up, down, conflict, op;
} waited;

/* ------------------------------------------------------------------------------------------------------------ bytes */

static uint64_t length_of(const acs_segment *s)
{
    return s->rows == 1 ? s->row_bytes : (s->rows - 1) * s->pitch_bytes + s->row_bytes;
}

static bool is_whole_block(const acs_analysis *a, const acs_segment *s, acs_op seq)
{
    const acs_recorded_block *block = acs_analysis_block(a, s->base, seq);
    return block && s->base == block->base && length_of(s) >= block->bytes;
}

/* The bytes that both segments span. */
static void describe_range(const acs_analysis *a, const acs_analysed_op *op, char text[ACS_CAUSE_TEXT])
{
    const acs_recording *r = a->recording;
    text[0] = 0;
    if (op->segment == ACS_PLACE_NONE)
        return;
    const acs_segment *s = &r->segments[op->segment], *u = &r->segments[op->up_segment];
    if (s->extent == ACS_EXTENT_TOKEN) {
        (void)snprintf(text, ACS_CAUSE_TEXT, "token %" PRIu64, s->base);
        return;
    }
    const uint64_t from = s->base > u->base ? s->base : u->base, end = s->base + length_of(s),
                   up_end = u->base + length_of(u);
    const uint64_t to = end < up_end ? end : up_end;
    const acs_recorded_block *block = acs_analysis_block(a, from, r->ops[op->place].seq);
    char first[32], last[32], all[32];
    if (!block)
        (void)snprintf(text, ACS_CAUSE_TEXT, "%s at 0x%" PRIx64, acs_bytes_text(to - from, all), from);
    else if (from == block->base && to - from >= block->bytes)
        (void)snprintf(text, ACS_CAUSE_TEXT, "all %s of the block of %.100s:%d", acs_bytes_text(block->bytes, all),
                       block->site && block->site->file ? block->site->file : "?",
                       block->site ? block->site->line : 0);
    else
        (void)snprintf(text, ACS_CAUSE_TEXT, "%s to %s of the block of %.100s:%d (%s)",
                       acs_bytes_text(from - block->base, first), acs_bytes_text(to - block->base, last),
                       block->site && block->site->file ? block->site->file : "?",
                       block->site ? block->site->line : 0, acs_bytes_text(block->bytes, all));
}

/* ------------------------------------------------------------------------------------------------------------ fixes */

static void describe_fix(const acs_serial_pair *p, const acs_surroundings *around, char text[ACS_CAUSE_TEXT])
{
    const char *fix = "";
    switch ((acs_conflict)p->conflict) {
    case ACS_CONFLICT_WAR:
    case ACS_CONFLICT_WAW:
        fix = around->options->pool == ACS_POOL_OFF /* renaming needs the pool */
                  ? "Give each turn a buffer of its own."
              : around->options->rename == 0
                  ? "Give each turn a buffer of its own. Or, if the op overwrites the whole block: allocate it with "
                    "ACS_RELOCATABLE, name it with ACS_OUT, and set ACS_RENAME=-1."
                  : "Give each turn a buffer of its own. Renaming needs a block of ACS_RELOCATABLE and an ACS_OUT that "
                    "covers all of it.";
        break;
    case ACS_CONFLICT_RAW:
        if (acs_serial_pair_is_suspicious(p))
            fix =
                "If each op touches only a part of these bytes, name only that part in its footprint. ACS_CHECK=all "
                "tells which parts the ops touch.";
        else
            fix = "The op needs the bytes that the other one writes. Shorter ops, or fewer in the chain, help.";
        break;
    case ACS_CONFLICT_ALL:
        fix = "Give both ops a footprint (ACS_USES): without one an op waits for all others.";
        break;
    case ACS_CONFLICT_ORDER:
        fix = around->in_order ? "The context runs one op after another: unset ACS_SERIAL and ACS_DISABLE."
              : around->options->memory_limit
                  ? "Memory is short, so a block waits for the ops that used it before. Raise ACS_MEMORY_LIMIT, or "
                    "allocate several blocks before the loop and use one after another."
                  : "Freed memory is handed out again before its ops have ended. Allocate several blocks before the "
                    "loop and use one after another.";
        break;
    default:
        break;
    }
    (void)snprintf(text, ACS_CAUSE_TEXT, "%s", fix);
}

/* ------------------------------------------------------------------------------------------------------------ count */

static int by_pair(const void *a, const void *b)
{
    const waited *x = a, *y = b;
    const int labels = memcmp(x, y, offsetof(waited, op));
    return labels ? labels : (x->op > y->op) - (x->op < y->op);
}

static void look_at_bytes(const acs_analysis *a, const acs_analysed_op *op, acs_serial_pair *p)
{
    const acs_recording *r = a->recording;
    const acs_recorded_op *down = &r->ops[op->place], *up = acs_analysis_recorded(a, op->waited_for);
    p->other_pointers |= down->pointers != up->pointers;
    if (op->segment == ACS_PLACE_NONE) {
        p->whole_block = false;
        return;
    }
    const acs_segment *s = &r->segments[op->segment], *u = &r->segments[op->up_segment];
    p->whole_block = p->whole_block && is_whole_block(a, s, down->seq) && is_whole_block(a, u, down->seq);
}

static void count_wait(acs_analysis *a, uint32_t number, acs_serial_pair *p)
{
    const acs_analysed_op *op = &a->ops[number];
    const uint64_t held = op->held_ns[ACS_HOLD_DEPENDENCE];
    if (!p->count || held > a->ops[p->example].held_ns[ACS_HOLD_DEPENDENCE])
        p->example = number;
    p->count++;
    p->held_ns += held;
    look_at_bytes(a, op, p);
}

/* What the pairs take of the path. */
static void find_path_times(const acs_analysis *a, acs_causes *causes)
{
    for (uint32_t i = 0; i < causes->path.count; i++) {
        const acs_path_part *part = &causes->path.parts[i];
        const uint32_t pair = ACS_PATH_IS_PAIR(part->reason) ? a->ops[part->next].pair : ACS_PLACE_NONE;
        if (pair != ACS_PLACE_NONE)
            causes->pairs[pair].path_ns += part->to - part->from;
    }
}

static int by_path_time(const void *a, const void *b)
{
    const acs_serial_pair *x = a, *y = b;
    if (x->path_ns != y->path_ns)
        return x->path_ns < y->path_ns ? 1 : -1;
    return (x->held_ns < y->held_ns) - (x->held_ns > y->held_ns);
}

/* Sort the pairs, keep those that are shown, and tell ops their new places. */
static acs_status sort_pairs(acs_analysis *a, acs_causes *causes, const acs_surroundings *around)
{
    enum { SHOWN = 200 };
    find_path_times(a, causes);
    uint32_t *place = calloc((size_t)causes->pair_count + 1, sizeof *place);
    if (!place)
        return ACS_ERR_MEMORY;
    for (uint32_t p = 0; p < causes->pair_count; p++)
        causes->pairs[p].place = p;
    if (causes->pair_count)
        qsort(causes->pairs, causes->pair_count, sizeof *causes->pairs, by_path_time);
    for (uint32_t p = 0; p < causes->pair_count; p++)
        place[causes->pairs[p].place] = p < SHOWN ? p : ACS_PLACE_NONE;
    causes->pair_count = causes->pair_count < SHOWN ? causes->pair_count : SHOWN;
    for (uint32_t i = 0; i < a->op_count; i++)
        if (a->ops[i].pair != ACS_PLACE_NONE)
            a->ops[i].pair = place[a->ops[i].pair];
    free(place);
    for (uint32_t p = 0; p < causes->pair_count; p++) {
        describe_range(a, &a->ops[causes->pairs[p].example], causes->pairs[p].range);
        describe_fix(&causes->pairs[p], around, causes->pairs[p].fix);
    }
    return ACS_OK;
}

acs_status acs_serial_pairs_make(acs_analysis *a, const acs_surroundings *around, acs_causes *causes)
{
    waited *list = calloc((size_t)a->op_count + 1, sizeof *list);
    acs_status status = list ? ACS_OK : ACS_ERR_MEMORY;
    uint32_t count = 0;
    for (uint32_t i = 0; list && i < a->op_count; i++) {
        const acs_analysed_op *op = &a->ops[i];
        if (op->waited_for != ACS_PLACE_NONE && op->held_ns[ACS_HOLD_DEPENDENCE])
            list[count++] = (waited){a->ops[op->waited_for].label, op->label, op->conflict, i};
    }
    if (count)
        qsort(list, count, sizeof *list, by_pair);
    for (uint32_t i = 0; i < count && status == ACS_OK; i++) {
        const waited *w = &list[i];
        if (!ACS_GROW(causes->pairs, causes->pair_room, causes->pair_count + 1))
            status = ACS_ERR_MEMORY;
        else if (i == 0 || memcmp(w, w - 1, offsetof(waited, op)) != 0)
            causes->pairs[causes->pair_count++] = (acs_serial_pair){
                .up = w->up, .down = w->down, .conflict = (uint8_t)w->conflict, .whole_block = true};
        if (status == ACS_OK) {
            a->ops[w->op].pair = causes->pair_count - 1;
            count_wait(a, w->op, &causes->pairs[causes->pair_count - 1]);
        }
    }
    free(list);
    return status == ACS_OK ? sort_pairs(a, causes, around) : status;
}

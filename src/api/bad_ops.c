/*
 * The record of ops that failed or were skipped (bad_ops.h). Called by failures.c under the core's lock. Consecutive
 * ops that ended alike share a range, so a long chain of skipped ops takes one. Where ranges run out, call sites are
 * given up first. Then, or where memory is exhausted, one interval of op numbers stands for the ops that found no
 * range: all ops in it count as ended badly. A failed or skipped op is never reported as ended well.
 */
#include "api/bad_ops.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 16 };

/* ----------------------------------------------------------------------------------------------------------- ranges */

static bool same_site(const acs_site *a, const acs_site *b)
{
    return a->name == b->name && a->file == b->file && a->line == b->line;
}

/* After a lost device all ops are reported with the same error, so ranges with different sites may join. */
static bool may_join(const acs_bad_ops *bad, const acs_bad_range *a, const acs_bad_range *b)
{
    return a->last + 1 == b->first && a->status == b->status && a->cause == b->cause && a->native == b->native &&
           a->text == b->text && (bad->siteless || a->status == ACS_ERR_DEVICE || same_site(&a->site, &b->site));
}

static void join_ranges(acs_bad_range *a, const acs_bad_range *b)
{
    a->last = b->last;
    if (!same_site(&a->site, &b->site))
        a->site = (acs_site){NULL, NULL, 0};
}

/* Number of ranges that begin at or before the op. */
static uint32_t ranges_up_to(const acs_bad_ops *bad, acs_op op)
{
    uint32_t low = 0, high = bad->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (bad->ranges[middle].first <= op)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_range(acs_bad_ops *bad, uint32_t at)
{
    memmove(&bad->ranges[at], &bad->ranges[at + 1], (--bad->count - at) * sizeof *bad->ranges);
}

/* ------------------------------------------------------------------------------------------------------------- room */

/* Join all neighbours that differ in their call sites alone. */
static void give_up_sites(acs_bad_ops *bad)
{
    uint32_t kept = 0;
    bad->siteless = true;
    for (uint32_t i = 1; i < bad->count; i++) {
        if (may_join(bad, &bad->ranges[kept], &bad->ranges[i]))
            join_ranges(&bad->ranges[kept], &bad->ranges[i]);
        else
            bad->ranges[++kept] = bad->ranges[i];
    }
    bad->count = bad->count ? kept + 1 : 0;
    acs_log(ACS_LOG_WARN, "very many failed or skipped ops: acs_op_error no longer knows the call site of each");
}

static bool grow(acs_bad_ops *bad)
{
    uint32_t room = bad->room ? 2 * bad->room : ROOM_FIRST;
    if (bad->room == TUNE_FAILED_RANGES)
        return false;
    acs_bad_range *ranges = realloc(bad->ranges, room * sizeof *ranges);
    if (!ranges)
        return false;
    bad->ranges = ranges;
    bad->room = room;
    return true;
}

/* Extend the vague interval to the op. Other ops in the interval may have ended well. */
static void add_vague(acs_bad_ops *bad, const acs_bad_range *what)
{
    if (!bad->vague_first) {
        bad->vague_first = bad->vague_last = what->first;
        bad->vague_status = ACS_ERR_SKIPPED;
        acs_log(ACS_LOG_WARN, "no room for more failed or skipped ops: from op %llu on some others count as skipped",
                (unsigned long long)what->first);
    }
    if (what->first < bad->vague_first)
        bad->vague_first = what->first;
    if (what->last > bad->vague_last)
        bad->vague_last = what->last;
    if (what->status == ACS_ERR_DEVICE)
        bad->vague_status = ACS_ERR_DEVICE;
}

/*
 * --------------------------------------------------------------------------------------------------------- add, find
 */

/* Add the op to a neighbouring range that ended alike. False: there is none. */
static bool add_to_neighbour(acs_bad_ops *bad, const acs_bad_range *what)
{
    uint32_t at = ranges_up_to(bad, what->first);
    acs_bad_range *before = at > 0 ? &bad->ranges[at - 1] : NULL;
    acs_bad_range *behind = at < bad->count ? &bad->ranges[at] : NULL;
    ACS_ASSERT(!before || before->last < what->first); /* an op ends once */
    bool joins_before = before && may_join(bad, before, what), joins_behind = behind && may_join(bad, what, behind);
    if (!joins_before && !joins_behind)
        return false;
    if (joins_before) {
        join_ranges(before, what);
        if (behind && may_join(bad, before, behind)) {
            join_ranges(before, behind);
            remove_range(bad, at);
        }
        return true;
    }
    acs_bad_range joined = *what;
    join_ranges(&joined, behind);
    *behind = joined;
    return true;
}

void acs_bad_ops_add(acs_bad_ops *bad, const acs_bad_range *what)
{
    if (add_to_neighbour(bad, what))
        return;
    bool full = bad->count == bad->room && !grow(bad);
    if (full && !bad->siteless) {
        give_up_sites(bad);
        if (add_to_neighbour(bad, what))
            return;
        full = bad->count == bad->room;
    }
    if (full) {
        add_vague(bad, what);
        return;
    }
    uint32_t at = ranges_up_to(bad, what->first);
    memmove(&bad->ranges[at + 1], &bad->ranges[at], (bad->count++ - at) * sizeof *bad->ranges);
    bad->ranges[at] = *what;
}

bool acs_bad_ops_find(const acs_bad_ops *bad, acs_op op, acs_bad_range *found)
{
    uint32_t at = ranges_up_to(bad, op);
    if (at > 0 && bad->ranges[at - 1].last >= op) {
        *found = bad->ranges[at - 1];
        return true;
    }
    if (op < bad->vague_first || op > bad->vague_last)
        return false;
    *found = (acs_bad_range){.status = bad->vague_status};
    return true;
}

/*
 * ------------------------------------------------------------------------------------------------------------ forget
 */

void acs_bad_ops_clear(acs_bad_ops *bad)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < bad->count; i++)
        if (bad->ranges[i].status == ACS_ERR_DEVICE)
            bad->ranges[kept++] = bad->ranges[i];
    bad->count = kept;
    bad->siteless = false;
    if (bad->vague_status != ACS_ERR_DEVICE)
        bad->vague_first = bad->vague_last = 0;
}

void acs_bad_ops_free(acs_bad_ops *bad)
{
    free(bad->ranges);
    *bad = (acs_bad_ops){0};
}

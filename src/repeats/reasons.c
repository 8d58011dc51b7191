/*
 * Why kernels of passes went the usual way, by call site, for the report of ACS_STATS. Called by trace.c under the lock,
 * and when the context closes. Only passes that are learnt from are counted, from the second on. Without memory nothing is.
 */
#include "repeats/repeat_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const g_texts[ACS_REASONS] = {
    [ACS_REASON_UNFIT] = "it can be in no replay",
    [ACS_REASON_FULL] = "too many kernels are kept in mind",
    [ACS_REASON_FIRST] = "none came from this call before",
    [ACS_REASON_SEGMENTS] = "its segments differ",
    [ACS_REASON_ARGUMENTS] = "number or sizes of its arguments differ",
    [ACS_REASON_SHAPE] = "its kernel, block, shared memory, or grid's y or z differ",
    [ACS_REASON_AGAIN] = "it came only once before, or with other kernels",
};

struct acs_site_reasons {
    const acs_site *site;
    acs_known *sample; /* an op from there; NULL: there was none, or no memory */
    uint64_t counts[ACS_REASONS];
    UT_hash_handle hh;
    bool hash_failed;
};

/* Find or make the site's. NULL: no memory. */
static acs_site_reasons *reasons_of(acs_repeat *repeat, const acs_site *site)
{
    acs_site_reasons *s;
    HASH_FIND_PTR(repeat->reasons, &site, s);
    if (s)
        return s;
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->site = site;
    HASH_ADD_PTR(repeat->reasons, site, s);
    if (!s->hash_failed)
        return s;
    free(s);
    return NULL;
}

/* How a new op differs from another one of its call site. */
static acs_reason difference(const acs_record *op, const acs_known *sample)
{
    const acs_kernel *kernel = &op->u.launch.kernel;
    if (!sample)
        return ACS_REASON_FIRST;
    if (kernel->function != sample->function || kernel->host != sample->host || kernel->kind != sample->kind ||
        op->grid.y != sample->grid_y || op->grid.z != sample->grid_z || op->type != sample->op->type)
        return ACS_REASON_SHAPE;
    const bool segments = op->segment_count == sample->segment_count &&
                          memcmp(op->segments, sample->segments, op->segment_count * sizeof *op->segments) == 0;
    return segments ? ACS_REASON_ARGUMENTS : ACS_REASON_SEGMENTS;
}

void acs_reason_count(acs_repeat *repeat, const acs_record *op, acs_reason reason)
{
    acs_site_reasons *s = repeat->passes > 1 ? reasons_of(repeat, op->site) : NULL;
    if (!s)
        return;
    s->counts[reason == ACS_REASON_NEW ? difference(op, s->sample) : reason]++;
    if (!s->sample && reason != ACS_REASON_UNFIT)
        s->sample = acs_known_op_create(op);
}

void acs_reasons_free(acs_repeat *repeat)
{
    acs_site_reasons *s, *next;
    HASH_ITER (hh, repeat->reasons, s, next) {
        HASH_DEL(repeat->reasons, s);
        free(s->sample);
        free(s);
    }
}

typedef struct frequent {
    const acs_site *site;
    acs_reason reason;
    uint64_t count;
} frequent;

/* Insert it into a list of the most frequent ones. */
static void rank(frequent *list, const frequent *f)
{
    uint32_t at = TUNE_REPEAT_REASONS;
    while (at > 0 && list[at - 1].count < f->count)
        at--;
    if (at == TUNE_REPEAT_REASONS)
        return;
    memmove(&list[at + 1], &list[at], (TUNE_REPEAT_REASONS - at - 1) * sizeof *list);
    list[at] = *f;
}

void acs_reasons_report(const acs_repeats *all)
{
    frequent list[TUNE_REPEAT_REASONS] = {{0}};
    for (const acs_repeat *repeat = all->table; repeat; repeat = repeat->hh.next)
        for (const acs_site_reasons *s = repeat->reasons; s; s = s->hh.next)
            for (int reason = 0; reason < ACS_REASONS; reason++)
                rank(list, &(frequent){s->site, (acs_reason)reason, s->counts[reason]});
    for (uint32_t i = 0; i < TUNE_REPEAT_REASONS && list[i].count; i++)
        fprintf(stderr, "acs: stats: %10" PRIu64 " x '%.60s' (%s:%d) did not recur: %s\n", list[i].count,
                acs_label_name((acs_label){.name = list[i].site->name}), list[i].site->file ? list[i].site->file : "?",
                list[i].site->line, g_texts[list[i].reason]);
}

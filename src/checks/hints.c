/*
 * Hints of ACS_CHECK=all (checks_internal.h): segments that no launch of a call site needed, or needed less of. They are
 * told when the context closes.
 */
#include "checks/checks_internal.h"

#include <stdio.h>

static void print_hint(const acs_checked_site *site, const char *hint)
{
    const acs_site *at = site->site;
    (void)fprintf(stderr, "acs: check: hint: %llu launches of '%s' (%s:%d) did not %s\n", (unsigned long long)site->looks,
                  acs_label_name((acs_label){at, site->name}), at && at->file ? at->file : "?",
                  at ? at->line : 0, hint);
}

void acs_hints_print(const acs_checked_site *site)
{
    char hint[128];
    for (uint32_t i = 0; i < site->segments && i < TUNE_CHECK_HINTS; i++) {
        const bool unneeded = site->unneeded >> i & 1, unread = site->unread >> i & 1, unwritten = site->unwritten >> i & 1;
        if (!unneeded && !unread && !unwritten)
            continue;
        (void)snprintf(hint, sizeof hint, unneeded ? "need segment %u: without it more ops may run at once"
                                          : unread ? "read segment %u, which is inout: is it out?"
                                                   : "write segment %u, which is inout: is it in?", i);
        print_hint(site, hint);
    }
}

/* Whether another segment has a byte between the first and the last one of this. */
static bool is_alone(const acs_launch_check *c, uint32_t segment)
{
    const acs_segment *s = &c->segments[segment];
    for (uint32_t i = 0; i < c->found.segment_count; i++)
        if (i != segment && c->segments[i].extent == ACS_EXTENT_BYTES && c->segments[i].base < acs_segment_end(s) &&
            acs_segment_end(&c->segments[i]) > s->base)
            return false;
    return true;
}

/* See what the launch does with a segment that it names as read, and forget hints about it that are not true. */
static void look_at_segment(acs_launch_check *c, uint32_t segment)
{
    const acs_segment *s = &c->segments[segment];
    const uint64_t bit = (uint64_t)1 << segment;
    const acs_scrambled read = {ACS_SCRAMBLE_READ, ACS_SCRAMBLE_NUMBERS, 0, 0};
    const bool reads = acs_trial_between(c, read, s->base, acs_segment_end(s));
    const acs_use use = acs_compare_use(&c->image, s);
    if (reads || use.written || !use.scrambled)
        c->site->unneeded &= ~bit;
    if (reads || use.kept || !use.scrambled)
        c->site->unread &= ~bit;
    if (use.written || !use.scrambled)
        c->site->unwritten &= ~bit;
}

/* Hints that the first launch of a site may give. */
static void begin_hints(acs_launch_check *c)
{
    acs_checked_site *site = c->site;
    site->segments = c->found.segment_count;
    for (uint32_t i = 0; i < site->segments && i < TUNE_CHECK_HINTS; i++) {
        const acs_segment *s = &c->segments[i];
        const bool looks = s->extent == ACS_EXTENT_BYTES && s->row_bytes && s->rows && is_alone(c, i);
        if (looks && (s->access == ACS_READ || s->access == ACS_UPDATE))
            site->unneeded |= (uint64_t)1 << i;
        if (looks && s->access == ACS_UPDATE) {
            site->unread |= (uint64_t)1 << i;
            site->unwritten |= (uint64_t)1 << i;
        }
    }
}

void acs_hints_find(acs_launch_check *c)
{
    acs_checked_site *site = c->site;
    if (!site || c->decided || c->spans.reads_all)
        return;
    if (!site->looks++)
        begin_hints(c);
    if (site->segments != c->found.segment_count || !acs_trial_repeats(c))
        site->unneeded = site->unread = site->unwritten = 0;
    for (uint32_t i = 0; i < site->segments && i < TUNE_CHECK_HINTS; i++)
        if ((site->unneeded | site->unread | site->unwritten) >> i & 1)
            look_at_segment(c, i);
}

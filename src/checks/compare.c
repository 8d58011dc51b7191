/*
 * Comparison of the copies of an image (compare.h): stretch by stretch, then byte by byte where they differ. Called by
 * launch_check.c, trial.c and hints.c.
 */
#include "checks/compare.h"

#include "base/tuning.h"

#include <string.h>

/* Bytes of one range whose access is the same. */
typedef struct stretch {
    const acs_memory_range *range;
    uint64_t first, end; /* places in it */
    uint8_t access;
} stretch;

/* Whether bytes of the stretch are the same in two copies. */
static bool is_same(const stretch *s, acs_copy a, acs_copy b, uint64_t first, uint64_t end)
{
    return !memcmp(s->range->copies[a] + first, s->range->copies[b] + first, (size_t)(end - first));
}

static bool is_same_at(const stretch *s, acs_copy a, acs_copy b, uint64_t place)
{
    return s->range->copies[a][place] == s->range->copies[b][place];
}

static void add_found(acs_found_bytes *found, const stretch *s, uint64_t first, uint64_t end)
{
    const uint64_t address = s->range->first + first;
    if (!found->bytes)
        *found = (acs_found_bytes){.range = s->range, .first = address};
    found->pieces += !found->bytes || found->end != address;
    found->bytes += end - first;
    found->end = s->range->first + end;
}

/*
 * The same for a byte that changed: with the word that it is in, as far as that lies in the stretch, since other bytes of a
 * word that was written may have had the same values. So may a few words between such. @return the place to go on at.
 */
static uint64_t add_changed(acs_found_bytes *found, const stretch *s, uint64_t place)
{
    const uint64_t base = s->range->first, word = (base + place) & ~(uint64_t)3;
    const uint64_t first = word > base + s->first ? word - base : s->first;
    const uint64_t end = word + 4 < base + s->end ? word + 4 - base : s->end;
    const bool near = found->bytes && found->end >= base + s->first && base + first - found->end < TUNE_CHECK_GAP;
    add_found(found, s, near ? found->end - base : first, end);
    return end;
}

/* Call `visit` for each stretch of a range. */
static void each_stretch(const acs_memory_range *range, const acs_spans *spans, size_t *at,
                         void (*visit)(const stretch *s, void *user), void *user)
{
    for (uint64_t address = range->first, until; address < range->end; address = until) {
        const uint8_t access = acs_spans_at(spans, at, address, range->end, &until);
        visit(&(stretch){range, address - range->first, until - range->first, access}, user);
    }
}

/* ------------------------------------------------------------------------------------------------------------- find */

static bool is_unwritten(const stretch *s, uint64_t place)
{
    return is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, place) && is_same_at(s, ACS_COPY_GIVEN, ACS_COPY_TRIAL, place);
}

static bool is_sought(const stretch *s, acs_sought what, uint64_t place)
{
    switch (what) {
    case ACS_SOUGHT_CHANGED:
        return !is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, place);
    case ACS_SOUGHT_WRITTEN:
        return !is_unwritten(s, place);
    case ACS_SOUGHT_KEPT:
        return is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, place);
    default:
        return is_unwritten(s, place) && !is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_GIVEN, place);
    }
}

/* What is sought in a range, and what was found. */
typedef struct search {
    acs_sought what;
    acs_found_bytes found;
} search;

static void search_stretch(const stretch *s, void *user)
{
    search *of = user;
    const bool out = of->what >= ACS_SOUGHT_KEPT;
    if (out ? (s->access & ACS_UPDATE) != ACS_WRITE : s->access & ACS_WRITE)
        return;
    if (!out && is_same(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, s->first, s->end) &&
        (of->what == ACS_SOUGHT_CHANGED || is_same(s, ACS_COPY_GIVEN, ACS_COPY_TRIAL, s->first, s->end)))
        return;
    for (uint64_t i = s->first, next; i < s->end; i = next) {
        next = i + 1;
        if (is_sought(s, of->what, i) && !out)
            next = add_changed(&of->found, s, i);
        else if (is_sought(s, of->what, i))
            add_found(&of->found, s, i, next);
    }
}

void acs_compare_find(const acs_image *image, const acs_spans *spans, acs_sought what, acs_found found, void *user)
{
    size_t at = 0;
    for (size_t i = 0; i < image->count; i++) {
        search of = {.what = what};
        each_stretch(&image->list[i], spans, &at, search_stretch, &of);
        if (of.found.bytes)
            found(user, &of.found);
    }
}

static void note(void *user, const acs_found_bytes *bytes)
{
    *(bool *)user = bytes->bytes > 0;
}

bool acs_compare_has(const acs_image *image, const acs_spans *spans, acs_sought what)
{
    bool any = false;
    acs_compare_find(image, spans, what, note, &any);
    return any;
}

/* ---------------------------------------------------------------------------------------------------------- differs */

/* Whether bytes of the stretch differ that the launch wrote. */
static void differs(const stretch *s, void *user)
{
    bool *different = user;
    if (*different || is_same(s, ACS_COPY_AFTER, ACS_COPY_TRIAL, s->first, s->end))
        return;
    for (uint64_t i = s->first; i < s->end && !*different; i++) {
        const bool written = s->access & ACS_WRITE ? !is_unwritten(s, i)
                                                   : !is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, i);
        *different = written && !is_same_at(s, ACS_COPY_AFTER, ACS_COPY_TRIAL, i);
    }
}

bool acs_compare_differs(const acs_image *image, const acs_spans *spans)
{
    bool different = false;
    size_t at = 0;
    for (size_t i = 0; i < image->count && !different; i++)
        each_stretch(&image->list[i], spans, &at, differs, &different);
    return different;
}

/* -------------------------------------------------------------------------------------------------------------- use */

/* Add what was done to a row of the segment. */
static void add_use(const stretch *row, acs_use *use)
{
    for (uint64_t i = row->first; i < row->end; i++) {
        const bool same = is_same_at(row, ACS_COPY_BEFORE, ACS_COPY_GIVEN, i);
        use->scrambled |= !same;
        use->all_scrambled &= !same;
        if (is_unwritten(row, i))
            use->kept = true;
        else
            use->written = true;
    }
}

acs_use acs_compare_use(const acs_image *image, const acs_segment *segment)
{
    acs_use use = {.all_scrambled = true};
    for (uint64_t row = 0; row < segment->rows; row++) {
        const uint64_t first = segment->base + row * segment->pitch_bytes, end = first + segment->row_bytes;
        for (uint64_t at = first; at < end;) {
            const acs_memory_range *range = acs_image_at(image, at);
            if (!range)
                return (acs_use){0};
            const uint64_t until = range->end < end ? range->end : end;
            const stretch part = {range, at - range->first, until - range->first, segment->access};
            add_use(&part, &use);
            use.changed |= !is_same(&part, ACS_COPY_BEFORE, ACS_COPY_AFTER, part.first, part.end);
            at = until;
        }
    }
    return use;
}

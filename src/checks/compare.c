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
        const uint8_t access = acs_spans_at(spans, at, address, &until);
        until = until < range->end ? until : range->end;
        visit(&(stretch){range, address - range->first, until - range->first, access}, user);
    }
}

/* Give what was found in each range, if anything was. */
static void each_range(const acs_image *image, const acs_spans *spans, void (*visit)(const stretch *s, void *user),
                       acs_found found, void *user)
{
    size_t at = 0;
    for (size_t i = 0; i < image->count; i++) {
        acs_found_bytes bytes = {0};
        each_stretch(&image->list[i], spans, &at, visit, &bytes);
        if (bytes.bytes)
            found(user, &bytes);
    }
}

/* ---------------------------------------------------------------------------------------------------------- changed */

static void changed(const stretch *s, void *user)
{
    if (s->access & ACS_WRITE || is_same(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, s->first, s->end))
        return;
    for (uint64_t i = s->first; i < s->end;)
        i = is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, i) ? i + 1 : add_changed(user, s, i);
}

static void changed_or_tried(const stretch *s, void *user)
{
    if (s->access & ACS_WRITE || (is_same(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, s->first, s->end) &&
                                  is_same(s, ACS_COPY_GIVEN, ACS_COPY_TRIAL, s->first, s->end)))
        return;
    for (uint64_t i = s->first; i < s->end;) {
        const bool kept = is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, i);
        i = kept && is_same_at(s, ACS_COPY_GIVEN, ACS_COPY_TRIAL, i) ? i + 1 : add_changed(user, s, i);
    }
}

void acs_compare_changed(const acs_image *image, const acs_spans *spans, bool trial, acs_found found, void *user)
{
    each_range(image, spans, trial ? changed_or_tried : changed, found, user);
}

/* -------------------------------------------------------------------------------------------------------- unwritten */

static bool is_unwritten(const stretch *s, uint64_t place)
{
    return is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, place) && is_same_at(s, ACS_COPY_GIVEN, ACS_COPY_TRIAL, place);
}

static void unwritten(const stretch *s, void *user)
{
    if ((s->access & ACS_UPDATE) != ACS_WRITE)
        return;
    for (uint64_t i = s->first; i < s->end; i++)
        if (is_unwritten(s, i) && !is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_GIVEN, i))
            add_found(user, s, i, i + 1);
}

static void kept(const stretch *s, void *user)
{
    if ((s->access & ACS_UPDATE) != ACS_WRITE)
        return;
    for (uint64_t i = s->first; i < s->end; i++)
        if (is_same_at(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, i))
            add_found(user, s, i, i + 1);
}

void acs_compare_kept(const acs_image *image, const acs_spans *spans, acs_found found, void *user)
{
    each_range(image, spans, kept, found, user);
}

void acs_compare_unwritten(const acs_image *image, const acs_spans *spans, acs_found found, void *user)
{
    each_range(image, spans, unwritten, found, user);
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
